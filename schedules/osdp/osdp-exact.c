/* The exact search for one batch: dynamic programming over the operators, with lower bounds from
 * the linear relaxation of the open operators.
 *
 * For each kind of operators, the options on the lower convex hull of memory and time form a path
 * from the least memory to the least time, whose edges save less and less time per byte. The
 * relaxation takes the edges of all open operators, the steepest first: the remaining memory buys
 * edges, the last one in part. Without that part the purchase is a plan. */
#include "schedules/osdp/osdp-search.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

/* Step from one option of a kind to another, which saves `time` for `memory` more bytes. */
typedef struct edge {
    int64_t memory;
    cs_time time;
    uint32_t kind, to; /* option at the end of the step */
    uint32_t step;     /* position on the path of its kind */
} edge;

/* Options within a surge, sorted by memory, each faster than those before it. */
typedef struct kind {
    cs_osdp_option *options;
    uint32_t n;
    int64_t span; /* difference between the largest and the smallest memory */
    bool taken;   /* whether its operators are in the order already */
} kind;

/* Edges that a budget of bytes buys: all before number `n`, and `part` operators of edge `n`. */
typedef struct purchase {
    uint32_t n, part;
} purchase;

/* Sums over the edges before a number, for the operators open at a stage. */
typedef struct sums {
    int64_t memory;
    cs_time time;
} sums;

typedef struct state {
    int64_t memory;
    cs_time time;
    uint32_t parent; /* state of the previous stage */
    uint32_t option; /* option of the operator decided just before this stage */
} state;

/* Search state. At stage i, operators order[0] to order[i - 1] are decided. */
typedef struct exact {
    const cs_osdp_menu *menu;
    const cs_progress *progress;
    cs_osdp_plan *plan;
    cs_time best; /* time of the best known plan, or the bound */
    int64_t surge, limit;
    kind *kinds;
    cs_osdp_option *options;   /* options of all kinds, one kind after the other */
    uint32_t *order, *kind_at; /* operators grouped by kind; kind per stage */
    edge *edges;
    uint32_t n_edges;
    sums *bought; /* per stage, n_edges + 1 entries each */
    uint32_t cap_bought;
    uint32_t *open; /* per stage and kind: number of open operators */
    sums *least;    /* per stage: all open operators with their least memory */
    state *states;  /* states of all stages */
    uint32_t n_states, cap_states;
    uint32_t *first; /* first state of each stage, and the end */
    uint32_t *heads; /* per option: next state to merge */
} exact;

/* ---- options and edges ---- */

static int by_memory(const void *a, const void *b)
{
    const cs_osdp_option *x = a, *y = b;
    CS_COMPARE(x->memory, y->memory);
    CS_COMPARE(x->time, y->time);
    CS_COMPARE(x->choice.slices, y->choice.slices);
    CS_COMPARE(x->choice.sharded, y->choice.sharded);
    return 0;
}

/* Fills a kind with the options that fit within the surge. Returns false if there are none. */
static bool filter(const cs_osdp_kind *from, int64_t surge, kind *to)
{
    uint32_t n = 0;
    to->n = 0;
    for (uint32_t o = 0; o < from->n_options; o++) {
        if (from->options[o].extra <= surge)
            to->options[n++] = from->options[o];
    }
    qsort(to->options, n, sizeof(*to->options), by_memory);
    for (uint32_t o = 0; o < n; o++) {
        if (to->n == 0 || to->options[o].time < to->options[to->n - 1].time)
            to->options[to->n++] = to->options[o];
    }
    if (to->n > 0)
        to->span = to->options[to->n - 1].memory - to->options[0].memory;
    return to->n > 0;
}

/* Whether going from a to c saves at least as much time per byte as from a to b. */
static bool is_steeper(const cs_osdp_option *a, const cs_osdp_option *b, const cs_osdp_option *c)
{
    return (wide)(a->time - c->time) * (b->memory - a->memory) >=
           (wide)(a->time - b->time) * (c->memory - a->memory);
}

static void add_edges(exact *x, uint32_t number)
{
    const kind *of = &x->kinds[number];
    uint32_t from = 0, step = 0;
    while (from + 1 < of->n) {
        uint32_t to = from + 1;
        for (uint32_t o = to + 1; o < of->n; o++) {
            if (is_steeper(&of->options[from], &of->options[to], &of->options[o]))
                to = o;
        }
        x->edges[x->n_edges++] =
            (edge){of->options[to].memory - of->options[from].memory,
                   of->options[from].time - of->options[to].time, number, to, step++};
        from = to;
    }
}

/* Sorts edges by steepness; edges of one kind keep their order. */
static int by_slope(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    const wide left = (wide)x->time * y->memory, right = (wide)y->time * x->memory;
    if (left != right)
        return left > right ? -1 : 1;
    CS_COMPARE(x->kind, y->kind);
    CS_COMPARE(x->step, y->step);
    return 0;
}

/* ---- stages ---- */

/* Sorts kinds by the spread of their options' memory, largest first, so that the last kinds fill
 * the remaining memory. */
static void order_operators(exact *x)
{
    const uint32_t n_kinds = x->menu->n_kinds;
    uint32_t n = 0;
    for (uint32_t done = 0; done < n_kinds; done++) {
        uint32_t next = n_kinds;
        for (uint32_t k = 0; k < n_kinds; k++) {
            if (!x->kinds[k].taken && (next == n_kinds || x->kinds[k].span > x->kinds[next].span))
                next = k;
        }
        for (uint32_t i = 0; i < x->menu->n; i++) {
            if (x->menu->kind_of[i] == next) {
                x->order[n] = i;
                x->kind_at[n++] = next;
            }
        }
        x->kinds[next].taken = true;
    }
}

static uint32_t *open_at(const exact *x, uint32_t stage)
{
    return &x->open[(size_t)stage * x->menu->n_kinds];
}

static sums *bought_at(const exact *x, uint32_t stage)
{
    return &x->bought[(size_t)stage * (x->n_edges + 1)];
}

static void count_open(exact *x)
{
    const uint32_t n = x->menu->n, n_kinds = x->menu->n_kinds;
    memset(open_at(x, n), 0, n_kinds * sizeof(*x->open));
    x->least[n] = (sums){0};
    for (uint32_t stage = n; stage-- > 0;) {
        const uint32_t k = x->kind_at[stage];
        const cs_osdp_option *least = &x->kinds[k].options[0];
        memcpy(open_at(x, stage), open_at(x, stage + 1), n_kinds * sizeof(*x->open));
        open_at(x, stage)[k]++;
        x->least[stage] = (sums){x->least[stage + 1].memory + least->memory,
                                 x->least[stage + 1].time + least->time};
    }
}

static void sum_edges(exact *x, uint32_t stage)
{
    sums *sum = bought_at(x, stage);
    sum[0] = (sums){0};
    for (uint32_t e = 0; e < x->n_edges; e++) {
        const int64_t times = open_at(x, stage)[x->edges[e].kind];
        sum[e + 1] = (sums){sum[e].memory + times * x->edges[e].memory,
                            sum[e].time + times * x->edges[e].time};
    }
}

/* ---- bounds ---- */

/* Finds what `bytes` buy, and a lower bound of the time of all plans from here. */
static cs_time relax(const exact *x, uint32_t stage, int64_t bytes, purchase *what, cs_time *whole)
{
    const sums *sum = bought_at(x, stage);
    uint32_t low = 0, high = x->n_edges;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (sum[middle].memory <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    *what = (purchase){low, 0};
    *whole = sum[low].time;
    if (low == x->n_edges)
        return *whole;
    const edge *next = &x->edges[low];
    const int64_t left = bytes - sum[low].memory, times = left / next->memory;
    what->part = (uint32_t)times;
    *whole += times * next->time;
    return *whole +
           (cs_time)(((wide)(left % next->memory) * next->time + next->memory - 1) / next->memory);
}

/* ---- the best plan ---- */

static void choose(exact *x, uint32_t stage, uint32_t option)
{
    x->plan->choices[x->order[stage]] = x->kinds[x->kind_at[stage]].options[option].choice;
}

/* Option of the j-th open operator of a kind after a purchase. */
static uint32_t bought_option(const exact *x, uint32_t number, purchase what, uint32_t j)
{
    uint32_t option = 0;
    for (uint32_t e = 0; e < what.n; e++)
        option = x->edges[e].kind == number ? x->edges[e].to : option;
    if (what.n < x->n_edges && x->edges[what.n].kind == number && j < what.part)
        option = x->edges[what.n].to;
    return option;
}

/* Records the state's choices, and what was bought for open operators, as the best plan. */
static void keep(exact *x, uint32_t stage, const state *at, purchase what)
{
    uint32_t j = 0;
    for (uint32_t s = stage; s < x->menu->n; s++) {
        j = s > stage && x->kind_at[s] == x->kind_at[s - 1] ? j + 1 : 0;
        choose(x, s, bought_option(x, x->kind_at[s], what, j));
    }
    for (uint32_t s = stage; s > 0; s--) {
        choose(x, s - 1, at->option);
        at = &x->states[x->first[s - 1] + at->parent];
    }
    x->plan->found = true;
}

/* Adds a state to a stage unless it cannot lead to a better plan. */
static bool add_state(exact *x, uint32_t stage, const state *made)
{
    purchase what;
    cs_time whole;
    const int64_t left = x->limit - made->memory - x->least[stage].memory;
    if (left < 0)
        return true;
    const cs_time saved = relax(x, stage, left, &what, &whole);
    const cs_time most = made->time + x->least[stage].time;
    if (most - saved >= x->best)
        return true;
    if (!cs_vector_reserve((void **)&x->states, &x->cap_states, (uint64_t)x->n_states + 1,
                           sizeof(*x->states)))
        return false;
    x->states[x->n_states++] = *made;
    if (most - whole < x->best) {
        x->best = most - whole;
        keep(x, stage, made, what);
    }
    return true;
}

/* ---- one surge ---- */

/* Option whose next state has the least memory, then the least time; n_options: none. */
static uint32_t next_option(const exact *x, uint32_t stage, state *made)
{
    const kind *of = &x->kinds[x->kind_at[stage]];
    const uint32_t first = x->first[stage], n = x->first[stage + 1] - first;
    uint32_t next = of->n;
    for (uint32_t o = 0; o < of->n; o++) {
        if (x->heads[o] == n)
            continue;
        const state *from = &x->states[first + x->heads[o]];
        const state one = {from->memory + of->options[o].memory, from->time + of->options[o].time,
                           x->heads[o], o};
        if (next == of->n || one.memory < made->memory ||
            (one.memory == made->memory && one.time < made->time)) {
            *made = one;
            next = o;
        }
    }
    return next;
}

/* Makes the states of the next stage, sorted by memory, with decreasing time. */
static cs_status decide(exact *x, uint32_t stage, cs_error *error)
{
    const uint32_t n_options = x->kinds[x->kind_at[stage]].n;
    cs_time least = CS_TIME_MAX;
    state made = {0};
    uint32_t o;
    memset(x->heads, 0, n_options * sizeof(*x->heads));
    x->first[stage + 1] = x->n_states;
    while ((o = next_option(x, stage, &made)) < n_options) {
        x->heads[o]++;
        x->plan->visited++;
        if (made.time >= least)
            continue;
        least = made.time;
        if (!add_state(x, stage + 1, &made))
            return cs_error_no_memory(error);
    }
    return cs_progress_step(x->progress, "operators", stage + 1, x->menu->n)
               ? CS_OK
               : cs_error_add(error, CS_INTERRUPTED, "the search was interrupted");
}

/* Prepares options, edges and order of operators within a surge. Returns false if an operator has
 * no option. */
static bool prepare(exact *x, int64_t surge)
{
    cs_osdp_option *room = x->options;
    x->n_edges = 0;
    x->n_states = 0;
    x->first[0] = 0;
    x->limit = x->menu->limit - surge;
    for (uint32_t k = 0; k < x->menu->n_kinds; k++) {
        x->kinds[k] = (kind){.options = room};
        if (!filter(&x->menu->kinds[k], surge, &x->kinds[k]))
            return false;
        room += x->menu->kinds[k].n_options;
        add_edges(x, k);
    }
    qsort(x->edges, x->n_edges, sizeof(*x->edges), by_slope);
    order_operators(x);
    count_open(x);
    return true;
}

/* Searches plans whose operators need at most `surge` extra bytes while they run. */
static cs_status search_within(exact *x, int64_t surge, cs_error *error)
{
    const uint32_t n = x->menu->n;
    if (!prepare(x, surge))
        return CS_OK;
    if (!cs_vector_reserve((void **)&x->bought, &x->cap_bought,
                           ((uint64_t)n + 1) * (x->n_edges + 1), sizeof(*x->bought)))
        return cs_error_no_memory(error);
    sum_edges(x, 0);
    if (!add_state(x, 0, &(state){0}))
        return cs_error_no_memory(error);
    for (uint32_t stage = 1; x->n_states > 0 && stage <= n; stage++)
        sum_edges(x, stage);
    for (uint32_t stage = 0; x->n_states > x->first[stage] && stage < n; stage++)
        CS_TRY(decide(x, stage, error));
    return CS_OK;
}

/* ---- all of it ---- */

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    CS_COMPARE(x, y);
    return 0;
}

static cs_status search_all(exact *x, int64_t *surges, cs_error *error)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->menu->n_kinds; k++) {
        for (uint32_t o = 0; o < x->menu->kinds[k].n_options; o++)
            surges[n++] = x->menu->kinds[k].options[o].extra;
    }
    qsort(surges, n, sizeof(*surges), by_size);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || surges[i] > surges[i - 1])
            CS_TRY(search_within(x, surges[i], error));
    }
    x->plan->complete = true;
    return CS_OK;
}

cs_status cs_osdp_search_exactly(const cs_osdp_menu *menu, const cs_progress *progress,
                                 cs_time bound, cs_osdp_plan *plan, cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    exact x = {.menu = menu, .progress = progress, .plan = plan, .best = bound};
    size_t n_options = 0, most = 0;
    for (uint32_t k = 0; k < menu->n_kinds; k++) {
        n_options += menu->kinds[k].n_options;
        most = menu->kinds[k].n_options > most ? menu->kinds[k].n_options : most;
    }
    const size_t stages = (size_t)menu->n + 1;
    int64_t *surges = cs_arena_alloc(&arena, n_options, sizeof(*surges));
    x.kinds = cs_arena_alloc(&arena, menu->n_kinds, sizeof(*x.kinds));
    x.options = cs_arena_alloc(&arena, n_options, sizeof(*x.options));
    x.order = cs_arena_alloc(&arena, menu->n, sizeof(*x.order));
    x.kind_at = cs_arena_alloc(&arena, menu->n, sizeof(*x.kind_at));
    x.edges = cs_arena_alloc(&arena, n_options, sizeof(*x.edges));
    x.open = cs_arena_alloc(&arena, stages * menu->n_kinds, sizeof(*x.open));
    x.least = cs_arena_alloc(&arena, stages, sizeof(*x.least));
    x.first = cs_arena_alloc(&arena, stages + 1, sizeof(*x.first));
    x.heads = cs_arena_alloc(&arena, most, sizeof(*x.heads));
    cs_status status = surges && x.kinds && x.options && x.order && x.kind_at && x.edges &&
                               x.open && x.least && x.first && x.heads
                           ? search_all(&x, surges, error)
                           : cs_error_no_memory(error);
    free(x.states);
    free(x.bought);
    cs_arena_finish(&arena);
    return status;
}
