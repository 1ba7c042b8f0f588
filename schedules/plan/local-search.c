#include "schedules/plan/local-search.h"

#include "schedules/plan/pattern-order.h"
#include "sim/base/random.h"

#include <stdlib.h>
#include <string.h>

/* ---- moves ---- */

typedef enum move_kind {
    MOVE_BOUNDARY, /* moves the boundary before `stage` to layer `layer` */
    MOVE_DEVICE,   /* moves `stage` to `device` */
    MOVE_SWAP,     /* exchanges the devices of `stage` and of stage number `device` */
    MOVE_SPLIT,    /* splits `stage` before `layer`; the first part moves to `device` */
    MOVE_SPLIT_END /* splits `stage` before `layer`; the second part moves to `device` */
} move_kind;

typedef struct cs_local_move {
    move_kind kind;
    uint32_t stage, layer, device;
    cs_time bound;
    double spread;
} move;

/* Removes stages without layers (two equal cuts). */
static void drop_empty(cs_allocation *a)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < a->n_stages; s++) {
        if (a->cuts[s + 1] > a->cuts[s]) {
            a->devices[n] = a->devices[s];
            a->cuts[n++] = a->cuts[s];
        }
    }
    a->cuts[n] = a->cuts[a->n_stages];
    a->n_stages = n;
}

static void insert_cut(cs_allocation *a, uint32_t stage, uint32_t layer)
{
    size_t after = a->n_stages - stage;
    memmove(&a->cuts[stage + 2], &a->cuts[stage + 1], after * sizeof(*a->cuts));
    memmove(&a->devices[stage + 1], &a->devices[stage], after * sizeof(*a->devices));
    a->cuts[stage + 1] = layer;
    a->n_stages++;
}

static void copy(const cs_allocation *from, cs_allocation *to)
{
    to->n_stages = from->n_stages;
    memcpy(to->cuts, from->cuts, ((size_t)from->n_stages + 1) * sizeof(*to->cuts));
    memcpy(to->devices, from->devices, from->n_stages * sizeof(*to->devices));
}

static void apply(const cs_allocation *now, const move *m, cs_allocation *trial)
{
    copy(now, trial);
    if (m->kind == MOVE_BOUNDARY) {
        trial->cuts[m->stage] = m->layer;
    } else if (m->kind == MOVE_DEVICE) {
        trial->devices[m->stage] = m->device;
    } else if (m->kind == MOVE_SWAP) {
        trial->devices[m->stage] = now->devices[m->device];
        trial->devices[m->device] = now->devices[m->stage];
    } else {
        insert_cut(trial, m->stage, m->layer);
        trial->devices[m->stage + (m->kind == MOVE_SPLIT_END)] = m->device;
    }
    drop_empty(trial);
}

/* Computes the lower bound of an allocation's period. */
static cs_status measure(cs_local *l, const cs_allocation *allocation, cs_time *bound,
                         double *spread, cs_error *error)
{
    cs_plan plan;
    cs_order order;
    CS_TRY(cs_allocation_plan(allocation, &plan, error));
    l->left -= l->left > 0;
    cs_status status = cs_order_make(l->search.chain, &plan, &order, error);
    if (status == CS_OK) {
        *bound = cs_order_bound(&order);
        *spread = cs_order_spread(&order);
        cs_order_finish(&order);
    }
    cs_plan_finish(&plan);
    return status;
}

/* Adds the move if it could lead to a shorter period, or whenever nothing fits yet. */
static cs_status add_move(cs_local *l, move m, cs_error *error)
{
    cs_time below = l->search.program.below;
    if (l->left == 0)
        return CS_OK;
    apply(&l->now, &m, &l->trial);
    cs_status status = measure(l, &l->trial, &m.bound, &m.spread, error);
    if (status == CS_OK && (m.bound < below || l->search.best.pattern.period == 0 ||
                            (m.bound == below && m.spread < l->spread)))
        l->moves[l->n_moves++] = m;
    return status;
}

static cs_status add_splits(cs_local *l, uint32_t stage, uint32_t device, cs_error *error)
{
    cs_status status = CS_OK;
    uint32_t first = l->now.cuts[stage], end = l->now.cuts[stage + 1];
    for (uint32_t layer = first + 1; layer < end && status == CS_OK; layer++) {
        status = add_move(l, (move){MOVE_SPLIT, stage, layer, device, 0, 0}, error);
        if (status == CS_OK)
            status = add_move(l, (move){MOVE_SPLIT_END, stage, layer, device, 0, 0}, error);
    }
    return status;
}

/* Adds moves of a boundary, up to the neighbouring boundaries, which removes a stage. */
static cs_status add_boundaries(cs_local *l, uint32_t stage, cs_error *error)
{
    cs_status status = CS_OK;
    const uint32_t *cuts = l->now.cuts;
    if (stage == 0)
        return CS_OK;
    for (uint32_t layer = cuts[stage - 1]; layer <= cuts[stage + 1] && status == CS_OK; layer++) {
        if (layer != cuts[stage])
            status = add_move(l, (move){MOVE_BOUNDARY, stage, layer, 0, 0, 0}, error);
    }
    return status;
}

static cs_status add_moves(cs_local *l, cs_error *error)
{
    cs_status status = CS_OK;
    l->n_moves = 0;
    for (uint32_t s = 0; s < l->now.n_stages && status == CS_OK; s++) {
        status = add_boundaries(l, s, error);
        for (uint32_t d = 0; d < l->search.chain->n_devices && status == CS_OK; d++) {
            if (d == l->now.devices[s])
                continue;
            status = add_move(l, (move){MOVE_DEVICE, s, 0, d, 0, 0}, error);
            if (status == CS_OK)
                status = add_splits(l, s, d, error);
        }
        for (uint32_t r = s + 1; r < l->now.n_stages && status == CS_OK; r++) {
            if (l->now.devices[r] != l->now.devices[s])
                status = add_move(l, (move){MOVE_SWAP, s, 0, r, 0, 0}, error);
        }
    }
    return status;
}

/* ---- the search ---- */

static int compare_fields(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Sorts by bound, by spread, and then by all fields, so that the order is total. */
static int compare_moves(const void *a, const void *b)
{
    const move *x = a, *y = b;
    int by = compare_fields((uint64_t)x->bound, (uint64_t)y->bound);
    by = by ? by : (x->spread > y->spread) - (x->spread < y->spread);
    by = by ? by : compare_fields(x->kind, y->kind);
    by = by ? by : compare_fields(x->stage, y->stage);
    by = by ? by : compare_fields(x->layer, y->layer);
    return by ? by : compare_fields(x->device, y->device);
}

static cs_status try_move(cs_local *l, const move *m, cs_plan_effort effort, bool *better,
                          cs_error *error)
{
    cs_time below = l->search.program.below;
    bool even = below < CS_TIME_MAX && effort == CS_EFFORT_CONSTRUCT && m->spread < l->spread;
    l->left -= l->left > 0;
    l->search.program.below += even;
    apply(&l->now, m, &l->trial);
    cs_status status = cs_plan_search_try(&l->search, &l->trial, effort, better, error);
    if (status == CS_OK && *better) {
        copy(&l->trial, &l->now);
        l->spread = m->spread;
    } else {
        l->search.program.below = below;
    }
    return status;
}

/* Tries the first `most` moves and accepts the first that improves. */
static cs_status try_moves(cs_local *l, size_t most, cs_plan_effort effort, bool *better,
                           cs_error *error)
{
    *better = false;
    for (size_t i = 0; i < l->n_moves && i < most && !*better && l->left > 0; i++) {
        CS_TRY(cs_chain_step(l->search.chain, "best: moves", 0, 0, error));
        CS_TRY(try_move(l, &l->moves[i], effort, better, error));
    }
    return CS_OK;
}

/* ---- descents ---- */

/* Descends from l->now, which l->search has tried: with constructed patterns, and with integer
 * programs where these do not improve and `programs` is set. */
static cs_status descend(cs_local *l, bool programs, cs_error *error)
{
    bool better = true;
    cs_time bound;
    cs_status status = measure(l, &l->now, &bound, &l->spread, error);
    while (status == CS_OK && better && l->search.program.below > l->bound && l->left > 0) {
        CS_TRY(add_moves(l, error));
        qsort(l->moves, l->n_moves, sizeof(*l->moves), compare_moves);
        status = try_moves(l, l->n_moves, CS_EFFORT_CONSTRUCT, &better, error);
        if (status == CS_OK && !better && programs)
            status = try_moves(l, l->options.programs, CS_EFFORT_SOLVE, &better, error);
    }
    if (l->search.need < l->all.need) {
        l->all.need = l->search.need;
        l->all.need_device = l->search.need_device;
        copy(&l->now, &l->least);
    }
    return status == CS_OK ? cs_plan_search_offer(&l->all, &l->search.best, error) : status;
}

static void begin(cs_local *l)
{
    cs_plan_search_finish(&l->search);
    cs_plan_search_init(&l->search, l->all.chain);
    l->search.program.node_limit = (int)l->options.nodes;
    l->search.answer = l->all.answer;
    l->search.floor = l->all.floor;
    l->search.known = l->all.known;
}

static void take_plan(const cs_plan *plan, cs_allocation *allocation)
{
    allocation->n_stages = plan->n_stages;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        allocation->cuts[s] = plan->stages[s].first_layer;
        allocation->cuts[s + 1] = plan->stages[s].end_layer;
        allocation->devices[s] = cs_plan_device(plan, s);
    }
}

/* Descends from l->now, which has not been tried. */
static cs_status descend_from_now(cs_local *l, cs_plan_effort effort, cs_error *error)
{
    bool better;
    begin(l);
    CS_TRY(cs_plan_search_try(&l->search, &l->now, effort, &better, error));
    return descend(l, effort == CS_EFFORT_SOLVE, error);
}

cs_status cs_local_from(cs_local *local, const cs_plan *plan, cs_error *error)
{
    take_plan(plan, &local->now);
    return descend_from_now(local, CS_EFFORT_CONSTRUCT, error);
}

cs_status cs_local_from_planned(cs_local *local, const cs_planned *planned, cs_error *error)
{
    cs_planned start = {0};
    begin(local);
    take_plan(&planned->plan, &local->now);
    cs_status status = cs_plan_copy(&planned->plan, &start.plan, error);
    if (status == CS_OK)
        status = cs_pattern_copy(&planned->pattern, &start.pattern, error);
    if (status == CS_OK)
        status = cs_plan_search_offer(&local->search, &start, error);
    cs_planned_finish(&start);
    return status == CS_OK ? descend(local, false, error) : status;
}

cs_status cs_local_from_kick(cs_local *local, cs_error *error)
{
    take_plan(&local->all.best.plan, &local->now);
    for (int i = 0; i < 2; i++) {
        begin(local); /* without a pattern, so that all moves count */
        local->n_moves = 0;
        cs_status status = add_moves(local, error);
        if (status != CS_OK || local->n_moves == 0)
            return status;
        apply(&local->now, &local->moves[gsl_rng_uniform_int(local->rng, local->n_moves)],
              &local->trial);
        copy(&local->trial, &local->now);
    }
    return descend_from_now(local, CS_EFFORT_CONSTRUCT, error);
}

cs_status cs_local_from_best(cs_local *local, cs_error *error)
{
    take_plan(&local->all.best.plan, &local->now);
    return descend_from_now(local, CS_EFFORT_SOLVE, error);
}

bool cs_local_done(const cs_local *local)
{
    return local->all.program.below <= local->bound || local->left == 0;
}

/* ---- life cycle ---- */

static bool allocate(cs_local *l, const cs_chain *chain)
{
    size_t n = chain->n_layers, devices = chain->n_devices;
    size_t room = 2 * n + n * n + n * devices * 3;
    cs_allocation *all[] = {&l->now, &l->trial, &l->least};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        all[i]->cuts = cs_arena_alloc(&l->arena, n + 2, sizeof(uint32_t));
        all[i]->devices = cs_arena_alloc(&l->arena, n + 1, sizeof(uint32_t));
        if (!all[i]->cuts || !all[i]->devices)
            return false;
    }
    l->moves = cs_arena_alloc(&l->arena, room, sizeof(*l->moves));
    l->rng = cs_random_stream(1, "best");
    return l->moves && l->rng;
}

cs_status cs_local_init(cs_local *local, const cs_chain *chain, cs_error *error)
{
    *local = (cs_local){0};
    cs_arena_init(&local->arena);
    cs_plan_search_init(&local->search, chain);
    cs_plan_search_init(&local->all, chain);
    if (allocate(local, chain))
        return CS_OK;
    cs_local_finish(local);
    return cs_error_no_memory(error);
}

void cs_local_finish(cs_local *local)
{
    cs_plan_search_finish(&local->search);
    cs_plan_search_finish(&local->all);
    if (local->rng)
        gsl_rng_free(local->rng);
    cs_arena_finish(&local->arena);
    *local = (cs_local){0};
}

void cs_local_restart(cs_local *local, const cs_chain *chain, uint64_t tries)
{
    cs_plan_search_finish(&local->all);
    cs_plan_search_init(&local->all, chain);
    local->bound = cs_planner_bound(chain);
    if (local->bound == CS_TIME_MAX)
        local->bound = 0; /* nothing fits, so the search looks for the least excess */
    local->left = tries;
}
