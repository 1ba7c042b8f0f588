/* The planner best: what the other planners find, and then a local search on allocations. */
#include "schedules/plan/pattern-order.h"
#include "schedules/plan/plan-search.h"
#include "sim/base/random.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct best_params {
    cs_time time_budget;
    uint32_t kicks, programs, nodes;
} best_params;

static const cs_field fields[] = {
    {"time_budget", CS_FIELD_TIME, offsetof(best_params, time_budget), .fallback = "60 s",
     .above_min = true, .doc = "when to end; if it is met, the plan depends on the machine"},
    {"kicks", CS_FIELD_COUNT, offsetof(best_params, kicks), .fallback = "100", .max = 1000000,
     .doc = "random changes of the best allocation from which the search starts again"},
    {"programs", CS_FIELD_COUNT, offsetof(best_params, programs), .fallback = "20", .max = 1000000,
     .doc = "at the end, integer programs in a step, for the allocations with the least bounds"},
    {"nodes", CS_FIELD_COUNT, offsetof(best_params, nodes), .fallback = "200", .min = 1,
     .max = INT32_MAX, .doc = "of the search tree of each of these programs"},
    {0}};

/* The planners to start from. */
static const char *const starts[] = {"contiguous_optimal", "madpipe"};

/* ---- moves ---- */

typedef enum move_kind {
    MOVE_BOUNDARY, /* in front of `stage`: to layer `layer` */
    MOVE_DEVICE,   /* `stage` to `device` */
    MOVE_SWAP,     /* the devices of `stage` and stage number `device` */
    MOVE_SPLIT,    /* `stage` in front of `layer`; what is before it to `device` */
    MOVE_SPLIT_END /* the same; what is behind it to `device` */
} move_kind;

typedef struct move {
    move_kind kind;
    uint32_t stage, layer, device;
    cs_time bound;
    double spread;
} move;

/* A descent from one allocation: to a smaller period, or to the same one with more even loads, until
 * no move leads on. */
typedef struct local_search {
    const best_params *params;
    cs_plan_search search; /* of this descent */
    cs_plan_search all;    /* the best of all descents */
    cs_time bound;
    double deadline;
    cs_allocation now, trial; /* room for n_layers stages */
    double spread;            /* of `now` */
    gsl_rng *rng;
    move *moves;
    size_t n_moves;
    cs_arena arena;
} local_search;

static double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Layers between two cuts that are the same make a stage that is none. */
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

/* What an allocation can give at best. */
static cs_status measure(const local_search *l, const cs_allocation *allocation, cs_time *bound,
                         double *spread, cs_error *error)
{
    cs_plan plan;
    cs_order order;
    cs_status status = cs_allocation_plan(allocation, &plan, error);
    if (status != CS_OK)
        return status;
    status = cs_order_make(l->search.chain, &plan, &order, error);
    if (status == CS_OK) {
        *bound = cs_order_bound(&order);
        *spread = cs_order_spread(&order);
        cs_order_finish(&order);
    }
    cs_plan_finish(&plan);
    return status;
}

static bool out_of_time(const local_search *l)
{
    return clock_seconds() >= l->deadline;
}

/* Keeps the move if it could lead on, each one as long as nothing fits; none when time is over. */
static cs_status add_move(local_search *l, move m, cs_error *error)
{
    cs_time below = l->search.program.below;
    if (out_of_time(l))
        return CS_OK;
    apply(&l->now, &m, &l->trial);
    cs_status status = measure(l, &l->trial, &m.bound, &m.spread, error);
    if (status == CS_OK && (m.bound < below || l->search.best.pattern.period == 0 ||
                            (m.bound == below && m.spread < l->spread)))
        l->moves[l->n_moves++] = m;
    return status;
}

static cs_status add_splits(local_search *l, uint32_t stage, uint32_t device, cs_error *error)
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

/* A boundary may go as far as the boundaries beside it, which takes a stage away. */
static cs_status add_boundaries(local_search *l, uint32_t stage, cs_error *error)
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

static cs_status add_moves(local_search *l, cs_error *error)
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

/* By bound, by spread; then by what they are, so that the order is total. */
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

static cs_status try_move(local_search *l, const move *m, cs_plan_effort effort, bool *better,
                          cs_error *error)
{
    cs_time below = l->search.program.below;
    double left = l->deadline - clock_seconds();
    bool even = below < CS_TIME_MAX && effort == CS_EFFORT_CONSTRUCT && m->spread < l->spread;
    l->search.program.time_limit = left > 0.001 ? left : 0.001;
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

/* Of the time that there is: when it ends by itself nobody knows. */
static cs_status step(const local_search *l, cs_error *error)
{
    const double all = cs_time_seconds(l->params->time_budget);
    const double spent = all - (l->deadline - clock_seconds());
    return cs_chain_step(l->search.chain, "best", spent > 0 ? (uint64_t)(1e3 * spent) : 0,
                         (uint64_t)(1e3 * all) + 1, error);
}

/* Tries the first `most` moves, and goes over to the first that is better. */
static cs_status try_moves(local_search *l, size_t most, cs_plan_effort effort, bool *better,
                           cs_error *error)
{
    cs_status status = CS_OK;
    *better = false;
    for (size_t i = 0; i < l->n_moves && i < most && !*better && !out_of_time(l); i++) {
        status = step(l, error);
        if (status == CS_OK)
            status = try_move(l, &l->moves[i], effort, better, error);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

/* From l->now, which l->search has tried, downwards; by patterns that are constructed, and where
 * that does not lead on, by integer programs if asked. */
static cs_status descend(local_search *l, bool programs, cs_error *error)
{
    bool better = true;
    cs_time bound;
    cs_status status = measure(l, &l->now, &bound, &l->spread, error);
    while (status == CS_OK && better && l->search.program.below > l->bound && !out_of_time(l)) {
        status = add_moves(l, error);
        if (status != CS_OK)
            return status;
        qsort(l->moves, l->n_moves, sizeof(*l->moves), compare_moves);
        status = try_moves(l, l->n_moves, CS_EFFORT_CONSTRUCT, &better, error);
        if (status == CS_OK && !better && programs)
            status = try_moves(l, l->params->programs, CS_EFFORT_SOLVE, &better, error);
    }
    if (l->search.need < l->all.need) {
        l->all.need = l->search.need;
        l->all.need_device = l->search.need_device;
    }
    cs_plan_search_offer(&l->all, &l->search.best);
    return status;
}

/* ---- where it starts ---- */

/* The planner's plan with its defaults, but no more time than there is. */
static cs_status run_planner(const local_search *l, const cs_planner *planner, cs_planned *planned,
                             cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    const cs_field *tables[] = {planner->fields, NULL};
    void *params = cs_arena_alloc(&arena, 1, planner->params_size);
    cJSON *object = cJSON_CreateObject();
    double left = l->deadline - clock_seconds();
    cs_status status = params && object ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && cs_field_find(planner->fields, "time_limit") &&
        !cJSON_AddNumberToObject(object, "time_limit", left > 0.01 ? left / 10 : 0.001))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_field_read(object, &(cs_json_place){.file = planner->name}, tables,
                               (void *[]){params}, &arena, error);
    if (status == CS_OK)
        status = planner->plan(l->search.chain, params, planned, error);
    cJSON_Delete(object);
    cs_arena_finish(&arena);
    return status;
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

static void begin(local_search *l, const cs_chain *chain)
{
    cs_plan_search_finish(&l->search);
    cs_plan_search_init(&l->search, chain);
    l->search.program.node_limit = (int)l->params->nodes;
}

/* Everything on device 0: in case that there is no other plan to start from, and to have seen one
 * allocation where nothing fits. */
static cs_status descend_alone(local_search *l, cs_error *error)
{
    bool better;
    begin(l, l->all.chain);
    l->now.n_stages = 1;
    l->now.cuts[0] = 0;
    l->now.cuts[1] = l->search.chain->n_layers;
    l->now.devices[0] = 0;
    cs_status status = cs_plan_search_try(&l->search, &l->now, CS_EFFORT_CONSTRUCT, &better, error);
    return status == CS_OK ? descend(l, false, error) : status;
}

static cs_status descend_from(local_search *l, const cs_planner *planner, cs_error *error)
{
    cs_planned planned = {0};
    cs_status status = run_planner(l, planner, &planned, NULL);
    if (status == CS_LIMIT)
        return CS_OK; /* it found no plan that fits */
    if (status != CS_OK)
        return run_planner(l, planner, &planned, error); /* again, for its message */
    begin(l, l->all.chain);
    take_plan(&planned.plan, &l->now);
    cs_plan_search_offer(&l->search, &planned);
    return descend(l, false, error);
}

/* Two random moves away from the best allocation. */
static cs_status descend_from_kick(local_search *l, cs_error *error)
{
    bool better;
    take_plan(&l->all.best.plan, &l->now);
    for (int i = 0; i < 2; i++) {
        begin(l, l->all.chain); /* without a pattern, so that all moves count */
        cs_status status = add_moves(l, error);
        if (status != CS_OK || l->n_moves == 0)
            return status;
        apply(&l->now, &l->moves[gsl_rng_uniform_int(l->rng, l->n_moves)], &l->trial);
        copy(&l->trial, &l->now);
    }
    cs_status status = cs_plan_search_try(&l->search, &l->now, CS_EFFORT_CONSTRUCT, &better, error);
    return status == CS_OK ? descend(l, false, error) : status;
}

static bool allocate(local_search *l, const cs_chain *chain)
{
    size_t n = chain->n_layers, devices = chain->n_devices;
    size_t room = 2 * n + n * n + n * devices * 3;
    l->now.cuts = cs_arena_alloc(&l->arena, n + 2, sizeof(uint32_t));
    l->now.devices = cs_arena_alloc(&l->arena, n + 1, sizeof(uint32_t));
    l->trial.cuts = cs_arena_alloc(&l->arena, n + 2, sizeof(uint32_t));
    l->trial.devices = cs_arena_alloc(&l->arena, n + 1, sizeof(uint32_t));
    l->moves = cs_arena_alloc(&l->arena, room, sizeof(*l->moves));
    l->rng = cs_random_stream(1, "best");
    return l->now.cuts && l->now.devices && l->trial.cuts && l->trial.devices && l->moves && l->rng;
}

/* With programs, from the best there is. */
static cs_status descend_from_best(local_search *l, cs_error *error)
{
    bool better;
    begin(l, l->all.chain);
    take_plan(&l->all.best.plan, &l->now);
    cs_status status = cs_plan_search_try(&l->search, &l->now, CS_EFFORT_SOLVE, &better, error);
    return status == CS_OK ? descend(l, true, error) : status;
}

static bool done(const local_search *l)
{
    return l->all.program.below <= l->bound || out_of_time(l);
}

/* First what takes milliseconds, then what may take seconds. */
static cs_status search_all(local_search *l, cs_error *error)
{
    cs_status status = CS_OK;
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts) && status == CS_OK; i++) {
        const cs_planner *planner = cs_planner_find(starts[i]);
        if (planner && (i == 0 || !done(l)))
            status = descend_from(l, planner, error);
    }
    if (status == CS_OK && (l->all.best.pattern.period == 0 || !done(l)))
        status = descend_alone(l, error);
    if (l->all.best.pattern.period == 0)
        return status;
    for (uint32_t i = 0; i < l->params->kicks && status == CS_OK && !done(l); i++)
        status = descend_from_kick(l, error);
    if (status == CS_OK && l->params->programs > 0 && !done(l))
        status = descend_from_best(l, error);
    return status;
}

static cs_status plan_best(const cs_chain *chain, const void *params, cs_planned *planned,
                           cs_error *error)
{
    local_search l = {.params = params, .bound = cs_planner_bound(chain)};
    if (l.bound == CS_TIME_MAX)
        l.bound = 0; /* nothing fits: the search then says what comes nearest */
    l.deadline = clock_seconds() + cs_time_seconds(l.params->time_budget);
    cs_plan_search_init(&l.all, chain);
    cs_plan_search_init(&l.search, chain);
    cs_arena_init(&l.arena);
    cs_status status = allocate(&l, chain) ? search_all(&l, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_plan_search_result(&l.all, planned, error);
    if (status == CS_OK)
        planned->optimal = planned->pattern.period == planned->bound;
    cs_plan_search_finish(&l.search);
    cs_plan_search_finish(&l.all);
    gsl_rng_free(l.rng);
    cs_arena_finish(&l.arena);
    return status;
}

const cs_planner cs_planner_best = {
    .name = "best",
    .summary = "the best of contiguous_optimal and madpipe, improved by moving layers and stages",
    .source = "local search; HAL hal-03025305 for what it starts from and for its patterns",
    .fields = fields,
    .params_size = sizeof(best_params),
    .plan = plan_best,
};
