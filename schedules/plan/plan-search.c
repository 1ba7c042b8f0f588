#include "schedules/plan/plan-search.h"
#include "schedules/plan/pattern-order.h"

#include <stdlib.h>

cs_status cs_allocation_plan(const cs_allocation *allocation, cs_plan *plan, cs_error *error)
{
    uint32_t n = allocation->n_stages;
    cs_plan made;
    uint32_t *counts = malloc((n + 1) * sizeof(*counts));
    if (!counts)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < n; s++)
        counts[s] = 1;
    cs_status status = cs_plan_pipeline(allocation->cuts, n, &made, error);
    if (status == CS_OK) {
        status = cs_plan_place(&made, counts, allocation->devices, error);
        if (status == CS_OK)
            *plan = made;
        else
            cs_plan_finish(&made);
    }
    free(counts);
    return status;
}

void cs_plan_search_init(cs_plan_search *search, const cs_chain *chain)
{
    *search = (cs_plan_search){.chain = chain,
                               .program = {.below = CS_TIME_MAX},
                               .proven = true,
                               .floor = INT64_MAX,
                               .known = CS_TIME_MAX,
                               .need = INT64_MAX};
}

void cs_plan_search_finish(cs_plan_search *search)
{
    cs_planned_finish(&search->best);
}

/* Keeps plan and pattern if the pattern is better than the best so far. Takes ownership of both. */
static void keep(cs_plan_search *search, cs_plan *plan, cs_pattern *pattern, bool *better)
{
    if (pattern->period > 0 && pattern->period < search->program.below) {
        *better = true;
        search->program.below = pattern->period;
        cs_plan_finish(&search->best.plan);
        cs_pattern_finish(&search->best.pattern);
        search->best.plan = *plan;
        search->best.pattern = *pattern;
    } else {
        cs_plan_finish(plan);
        cs_pattern_finish(pattern);
    }
}

cs_status cs_plan_answer_offer(cs_plan_answer *answer, const cs_plan *plan,
                               const cs_pattern *pattern, cs_error *error)
{
    cs_planned made = {0};
    cs_time has = answer ? answer->best.pattern.period : 0;
    if (!answer || pattern->period == 0 || (has > 0 && pattern->period >= has))
        return CS_OK;
    cs_status status = cs_pattern_check(answer->chain, plan, pattern, NULL, NULL);
    if (status != CS_OK)
        return status == CS_LIMIT ? CS_OK : cs_error_no_memory(error);
    status = cs_plan_copy(plan, &made.plan, error);
    if (status == CS_OK)
        status = cs_pattern_copy(pattern, &made.pattern, error);
    if (status != CS_OK) {
        cs_planned_finish(&made);
        return status;
    }
    cs_planned_finish(&answer->best);
    answer->best = made;
    return CS_OK;
}

/* Keeps the pattern if it is valid and better than `best`; takes ownership then. */
static cs_status take_valid(const cs_plan_search *search, const cs_order *order,
                            cs_pattern *pattern, cs_pattern *best, cs_error *error)
{
    cs_status status = cs_pattern_check(order->chain, order->plan, pattern, NULL, NULL);
    if (status != CS_OK) /* see keep() in periodic-program.c */
        return status == CS_LIMIT ? CS_OK : cs_error_no_memory(error);
    status = cs_plan_answer_offer(search->answer, order->plan, pattern, error);
    if (status == CS_OK && (best->period == 0 || pattern->period < best->period)) {
        cs_pattern swapped = *best;
        *best = *pattern;
        *pattern = swapped;
    }
    return status;
}

/* Constructs patterns with 1F1B*'s method for rising periods. A longer period is of interest only
 * if it needs less memory. */
static cs_status construct(const cs_plan_search *search, cs_order *order, cs_time bound,
                           cs_pattern *best, cs_error *error)
{
    size_t n = cs_order_periods(order, bound);
    int64_t memory = search->chain->memory, least = INT64_MAX;
    cs_status status = CS_OK;
    for (size_t i = 0; i < n && status == CS_OK; i++) {
        cs_pattern pattern = {0};
        cs_time period;
        if (best->period > 0 && (least <= search->floor || order->periods[i] >= search->known))
            break;
        if (!cs_order_greedy(order, order->periods[i]) || !cs_order_fits(order))
            continue;
        int64_t bytes = cs_order_bytes(order);
        if ((best->period > 0 && bytes >= least) || bytes > memory ||
            !cs_order_tighten(order, &period))
            continue;
        least = bytes;
        status = cs_order_pattern(order, period, &pattern, error);
        if (status == CS_OK)
            status = take_valid(search, order, &pattern, best, error);
        cs_pattern_finish(&pattern);
    }
    return status;
}

static cs_status try_order(cs_plan_search *search, cs_order *order, cs_plan_effort effort,
                           cs_pattern *pattern, bool *better, cs_error *error)
{
    uint32_t device = 0;
    int64_t need = cs_order_need(order, &device);
    cs_time bound = cs_order_bound(order);
    cs_program_end end = CS_PROGRAM_UNKNOWN;
    if (need < search->need) {
        *better = search->best.pattern.period == 0;
        search->need = need;
        search->need_device = device;
    }
    if (bound >= search->program.below)
        return CS_OK;
    if (effort == CS_EFFORT_CONSTRUCT)
        return construct(search, order, bound, pattern, error);
    cs_status status =
        cs_pattern_program(search->chain, order->plan, &search->program, pattern, &end, error);
    search->proven &= end == CS_PROGRAM_OPTIMAL || end == CS_PROGRAM_INFEASIBLE;
    return status == CS_OK ? cs_plan_answer_offer(search->answer, order->plan, pattern, error)
                           : status;
}

cs_status cs_plan_search_try(cs_plan_search *search, const cs_allocation *allocation,
                             cs_plan_effort effort, bool *better, cs_error *error)
{
    cs_plan plan = {0};
    cs_order order = {0};
    cs_pattern pattern = {0};
    *better = false;
    cs_status status = cs_allocation_plan(allocation, &plan, error);
    if (status == CS_OK)
        status = cs_order_make(search->chain, &plan, &order, error);
    if (status == CS_OK)
        status = try_order(search, &order, effort, &pattern, better, error);
    cs_order_finish(&order);
    if (status == CS_OK) {
        keep(search, &plan, &pattern, better);
    } else {
        cs_plan_finish(&plan);
        cs_pattern_finish(&pattern);
    }
    return status;
}

cs_status cs_plan_search_offer(cs_plan_search *search, cs_planned *planned, cs_error *error)
{
    bool better = false;
    cs_status status =
        cs_plan_answer_offer(search->answer, &planned->plan, &planned->pattern, error);
    keep(search, &planned->plan, &planned->pattern, &better);
    *planned = (cs_planned){0};
    return status;
}

cs_status cs_plan_search_result(cs_plan_search *search, cs_planned *planned, cs_error *error)
{
    if (search->best.pattern.period == 0)
        return cs_error_add(error, CS_LIMIT,
                            "no plan of %u layers on %u devices fits: of all that were tried, the "
                            "one that needs the least has %lld bytes on device %u with one active "
                            "micro-batch, and a device has %lld",
                            search->chain->n_layers, search->chain->n_devices,
                            (long long)search->need, search->need_device,
                            (long long)search->chain->memory);
    search->best.bound = cs_planner_bound(search->chain);
    *planned = search->best;
    search->best = (cs_planned){0};
    return CS_OK;
}
