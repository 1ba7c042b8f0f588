/* The planner best. Small chains: the optimum, by trying everything. Larger chains: the best plans
 * of other planners, improved by a local search among allocations.
 *
 * More memory never makes the period longer. Searches use the memories of a fixed ladder, the
 * smallest first, and so do not depend on the memory of a device: more memory means the same
 * searches and some more. The answer is the best fitting pattern of all searches and of
 * contiguous_optimal, which is exact.
 */
#include "schedules/plan/local-search.h"

#include <stddef.h>

typedef struct best_params {
    uint32_t kicks, programs, nodes, tries;
} best_params;

static const cs_field fields[] = {
    {"kicks", CS_FIELD_COUNT, offsetof(best_params, kicks), .fallback = "100", .max = 1000000,
     .doc = "restarts of the search from random changes of the best allocation, for each memory "
            "size tried"},
    {"programs", CS_FIELD_COUNT, offsetof(best_params, programs), .fallback = "4", .max = 1000000,
     .doc =
         "integer programs at the end of each step, for the allocations with the smallest bounds"},
    {"nodes", CS_FIELD_COUNT, offsetof(best_params, nodes), .fallback = "200", .min = 1,
     .max = INT32_MAX, .doc = "limit on the nodes of the search tree of each of these programs"},
    {"tries", CS_FIELD_COUNT, offsetof(best_params, tries), .fallback = "30000", .min = 1,
     .max = INT32_MAX,
     .doc = "allocations examined from each start, and after kicks, for each memory size tried"},
    {0}};

/* Planners whose plans are starting points. */
static const cs_planner *const starts[] = {&cs_planner_contiguous_optimal, &cs_planner_madpipe};

/* Rungs of the ladder are round numbers of bytes, as memories often are: about eight steps double
 * the memory. After eight steps without a shorter period the ladder ends with unlimited memory. */
enum { RUNGS_OF_TWICE = 8 };

static int64_t rung_above(int64_t memory)
{
    static const int8_t mantissas[] = {10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32,
                                       35, 40, 45, 48, 50, 56, 60, 64, 70, 72, 80, 90, 96, 100};
    int64_t scale = 1;
    if (memory < 10)
        return memory + 1;
    while (memory / scale >= 100)
        scale *= 10;
    if (scale > INT64_MAX / 100)
        return INT64_MAX;
    size_t i = 0;
    while (mantissas[i] * scale <= memory)
        i++;
    return mantissas[i] * scale;
}

typedef struct climb {
    const best_params *params;
    cs_chain chain; /* the chain to plan, with the memory of the current rung */
    cs_local local;
    cs_plan_answer *answer;
    cs_planned known; /* best plan of the lower rungs */
    cs_plan start;    /* the plan found with the least memory */
    int64_t least;    /* memory of that plan, bytes */
} climb;

/* Runs the planner with its defaults, but with limits that do not depend on the machine. */
static cs_status run_planner(const climb *c, const cs_planner *planner, cs_planned *planned,
                             cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    const cs_field *tables[] = {planner->fields, NULL};
    void *params = cs_arena_alloc(&arena, 1, planner->params_size + 1);
    cJSON *object = cJSON_CreateObject();
    cs_status status = params && object ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && cs_field_find(planner->fields, "node_limit") &&
        (!cJSON_AddNumberToObject(object, "time_limit", 0) ||
         !cJSON_AddNumberToObject(object, "node_limit", c->params->nodes)))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_field_read(object, &(cs_json_place){.file = planner->name}, tables,
                               (void *[]){params}, &arena, error);
    if (status == CS_OK)
        status = planner->plan(&c->chain, params, planned, error);
    cJSON_Delete(object);
    cs_arena_finish(&arena);
    return status;
}

/* Runs the planner. Also returns CS_OK if no plan fits; `planned` is empty in that case. */
static cs_status plan_by(const climb *c, const cs_planner *planner, cs_planned *planned,
                         cs_error *error)
{
    *planned = (cs_planned){0};
    cs_status status = run_planner(c, planner, planned, NULL);
    if (status == CS_OK || status == CS_LIMIT)
        return CS_OK;
    return run_planner(c, planner, planned, error); /* run again to get its message */
}

static cs_status descend_from(climb *c, const cs_planner *planner, cs_error *error)
{
    cs_planned planned;
    cs_status status = plan_by(c, planner, &planned, error);
    if (status == CS_OK && planned.pattern.period > 0)
        status = cs_local_from_planned(&c->local, &planned, error);
    cs_planned_finish(&planned);
    return status;
}

/* ---- the ladder ---- */

static bool at_bound(const cs_local *l)
{
    return l->all.program.below <= l->bound;
}

/* Searches one rung: first with methods that take milliseconds, then with methods that may take
 * seconds. Each start may examine a limited number of allocations; so may all kicks together, and
 * the moves between integer programs. */
static cs_status search_rung(climb *c, cs_error *error)
{
    cs_local *l = &c->local;
    cs_status status = CS_OK;
    if (c->known.pattern.period > 0)
        status = cs_local_from_planned(l, &c->known, error);
    else if (c->chain.memory >= c->least)
        status = cs_local_from(l, &c->start, error);
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts) && status == CS_OK; i++) {
        l->left = c->params->tries;
        if (!at_bound(l))
            status = descend_from(c, starts[i], error);
    }
    if (l->all.best.pattern.period == 0)
        return status;
    l->left = c->params->tries;
    for (uint32_t i = 0; i < c->params->kicks && status == CS_OK && !cs_local_done(l); i++)
        status = cs_local_from_kick(l, error);
    l->left = c->params->tries;
    if (status == CS_OK && c->params->programs > 0 && !at_bound(l))
        status = cs_local_from_best(l, error);
    return status;
}

/* Searches one rung. A pattern counts only if it needs more memory than the rung below has, or is
 * better than the best one known for that memory. */
static cs_status climb_rung(climb *c, int64_t memory, int64_t below, bool *better, cs_error *error)
{
    cs_time known = c->known.pattern.period;
    c->chain.memory = memory;
    cs_local_restart(&c->local, &c->chain, c->params->tries);
    c->local.all.answer = c->answer;
    c->local.all.floor = below;
    c->local.all.known = known > 0 ? known : CS_TIME_MAX;
    cs_status status = search_rung(c, error);
    *better = known == 0 || c->local.all.best.pattern.period < known;
    if (status == CS_OK && c->local.all.best.pattern.period > 0) {
        cs_planned_finish(&c->known);
        c->known = c->local.all.best;
        c->local.all.best = (cs_planned){0};
    }
    return status;
}

/* Climbs the ladder of memory sizes up to the first rung that has the requested memory, or jumps to
 * unlimited memory once nothing improves. Starts below the least memory found, since madpipe may
 * need less. */
static cs_status climb_ladder(climb *c, cs_error *error)
{
    cs_status status = CS_OK;
    const cs_chain *asked = c->answer->chain;
    cs_time bound = cs_planner_bound(asked);
    int64_t below = 0, memory = rung_above(c->least / 2);
    for (int idle = 0; status == CS_OK && below < asked->memory; memory = rung_above(memory)) {
        bool better;
        if (idle == RUNGS_OF_TWICE)
            memory = INT64_MAX;
        status = climb_rung(c, memory, below, &better, error);
        idle = better || c->known.pattern.period == 0 ? 0 : idle + 1;
        below = memory;
        cs_time period = c->answer->best.pattern.period;
        if (period > 0 && period <= bound)
            break;
    }
    return status;
}

/* ---- the least memory ---- */

/* Finds the least memory for which contiguous_optimal finds a plan, and gives the chain that
 * memory. */
static cs_status least_contiguous(climb *c, cs_planned *planned, cs_error *error)
{
    const cs_chain *chain = &c->chain;
    int64_t low = 0, all = 0, high;
    uint32_t n = chain->n_layers;
    if (__builtin_add_overflow(chain->sum_fixed[n], chain->sum_kept[n], &all))
        all = INT64_MAX; /* bytes of all layers on one device */
    cs_status status = CS_OK;
    for (high = all; status == CS_OK && low < high;) {
        cs_planned tried;
        c->chain.memory = low + (high - low) / 2;
        status = plan_by(c, &cs_planner_contiguous_optimal, &tried, error);
        if (tried.pattern.period > 0)
            high = c->chain.memory;
        else
            low = c->chain.memory + 1;
        cs_planned_finish(&tried);
    }
    c->chain.memory = high;
    return status == CS_OK ? plan_by(c, &cs_planner_contiguous_optimal, planned, error) : status;
}

/* Searches with no memory at all: nothing fits, so the search minimises the memory needed. */
static cs_status find_start(climb *c, cs_error *error)
{
    cs_planned planned = {0};
    cs_status status = least_contiguous(c, &planned, error);
    c->chain.memory = 0;
    cs_local_restart(&c->local, &c->chain, c->params->tries);
    if (status == CS_OK)
        status = cs_local_from(&c->local, &planned.plan, error);
    cs_planned_finish(&planned);
    return status == CS_OK ? cs_allocation_plan(&c->local.least, &c->start, error) : status;
}

/* ---- all together ---- */

static cs_status search_more(climb *c, cs_plan_search *result, cs_error *error)
{
    cs_status status = find_start(c, error);
    result->need = c->least = c->local.all.need;
    result->need_device = c->local.all.need_device;
    return status == CS_OK ? climb_ladder(c, error) : status;
}

/* Fills result->best if there is a plan. */
static cs_status search_all(climb *c, cs_plan_search *result, cs_error *error)
{
    cs_planned contiguous;
    cs_status status = plan_by(c, &cs_planner_contiguous_optimal, &contiguous, error);
    if (status == CS_OK && cs_plan_search_has_few(result->chain)) {
        if (contiguous.pattern.period > 0)
            status = cs_plan_search_offer(result, &contiguous, error);
        if (status == CS_OK)
            status = cs_plan_search_try_all(result, error);
        return status;
    }
    cs_plan_answer answer = {.chain = result->chain, .best = contiguous};
    c->answer = &answer;
    cs_time period = answer.best.pattern.period;
    if (status == CS_OK && (period == 0 || period > cs_planner_bound(result->chain)))
        status = search_more(c, result, error);
    result->proven = false;
    cs_status offered = cs_plan_search_offer(result, &answer.best, error);
    return status == CS_OK ? offered : status;
}

static cs_status plan_best(const cs_chain *chain, const void *params, cs_planned *planned,
                           cs_error *error)
{
    climb c = {.params = params, .chain = *chain};
    cs_plan_search result;
    cs_plan_search_init(&result, chain);
    cs_status status = cs_local_init(&c.local, &c.chain, error);
    c.local.options = (cs_local_options){c.params->programs, c.params->nodes};
    if (status == CS_OK)
        status = search_all(&c, &result, error);
    if (status == CS_OK)
        status = cs_plan_search_result(&result, planned, error);
    if (status == CS_OK)
        planned->optimal = result.proven || planned->pattern.period == planned->bound;
    cs_planned_finish(&c.known);
    cs_plan_finish(&c.start);
    cs_local_finish(&c.local);
    cs_plan_search_finish(&result);
    return status;
}

const cs_planner cs_planner_best = {
    .name = "best",
    .summary = "for small chains the optimum; for others the best of contiguous_optimal, madpipe "
               "and a local search",
    .source = "local search; HAL hal-03025305 for what it starts from and for its patterns",
    .fields = fields,
    .params_size = sizeof(best_params),
    .plan = plan_best,
};
