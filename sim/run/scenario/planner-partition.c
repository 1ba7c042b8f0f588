/* Plans and patterns that a scenario requests from planners. */
#include "schedules/plan/pattern-order.h"
#include "schedules/plan/periodic-program.h"
#include "sim/run/scenario/build.h"
#include "sim/run/scenario/planning.h"

#include <string.h>

/* Adds file and pointer to a planner's message, since planners do not know about files. */
static cs_status add_place(const cs_json_place *place, cs_status status, const cs_error *from,
                           cs_error *error)
{
    char pointer[80];
    const cs_json_place *root = place;
    while (root->up)
        root = root->up;
    cs_json_pointer(place, pointer, sizeof(pointer));
    (void)cs_error_add(error, status, "%s: %s: %s", root->file, pointer, from->text);
    cs_error_place(error, strlen(root->file), strlen(pointer));
    return status;
}

cs_status cs_scenario_plan_by_planner(const cs_sections *sections, const cs_job *unplanned,
                                      const cs_progress *progress, cs_scenario_planned *planned,
                                      cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const cs_partition *partition = &schedule->partition;
    const cs_planner *planner = partition->planner;
    const cs_json_place section = {.up = &sections->root, .key = "schedule"};
    const cs_json_place place = {.up = &section, .key = "partition"};
    const cs_chain_rules *rules = schedule->kind->chain_rules
                                      ? schedule->kind->chain_rules(schedule->params)
                                      : &partition->rules;
    cs_chain chain = {0};
    cs_planned made = {0};
    cs_error own;
    cs_error_init(&own);
    CS_TRY(cs_scenario_chain(unplanned, &sections->root, rules, &chain, error));
    chain.progress = progress;
    cs_status status = cs_planner_run(planner, &chain, partition->params, &made, NULL, &own);
    const cs_time bound = cs_planner_bound(&chain);
    cs_chain_finish(&chain);
    if (status != CS_OK)
        return add_place(&place, status, &own, error);
    planned->plan = made.plan;
    planned->pattern = made.pattern;
    planned->search = (cs_search){.promised = made.promised,
                                  .bound = made.pattern.period > 0 ? bound : 0,
                                  .optimal = made.optimal,
                                  .planner = planner->name};
    made.plan = (cs_plan){0};
    made.pattern = (cs_pattern){0};
    cs_planned_finish(&made);
    return CS_OK;
}

/* Limits of the integer program: nodes of its search tree (not time, so that results do not depend
 * on the machine), and stages of a plan. */
enum { PATTERN_NODES = 10000, PATTERN_STAGES = 64 };

static bool is_shared(const cs_plan *plan, bool *taken)
{
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        if (taken[cs_plan_device(plan, s)])
            return true;
        taken[cs_plan_device(plan, s)] = true;
    }
    return false;
}

/* Explains why there is no pattern. */
static cs_status refuse_pattern(const cs_chain *chain, const cs_plan *plan, cs_error *error)
{
    cs_order order;
    uint32_t device = 0;
    CS_TRY(cs_order_make(chain, plan, &order, error));
    int64_t need = cs_order_need(&order, &device);
    cs_order_finish(&order);
    if (need <= chain->memory)
        return cs_error_add(error, CS_LIMIT,
                            "no pattern was found with %d nodes of an integer program; give the "
                            "plan a \"pattern\"",
                            PATTERN_NODES);
    return cs_error_add(error, CS_LIMIT,
                        "the plan has no pattern that fits: device %u needs %lld bytes with one "
                        "active micro-batch, and has %lld",
                        device, (long long)need, (long long)chain->memory);
}

cs_status cs_scenario_find_pattern(const cs_sections *sections, const cs_job *unplanned,
                                   cs_arena *arena, const cs_plan *plan, cs_pattern *pattern,
                                   cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const cs_json_place section = {.up = &sections->root, .key = "schedule"};
    const cs_json_place place = {.up = &section, .key = "partition"};
    const cs_program_options options = {.node_limit = PATTERN_NODES, .below = CS_TIME_MAX};
    cs_chain chain = {0};
    cs_program_end end;
    cs_error own;
    cs_error_init(&own);
    bool *taken = cs_arena_alloc(arena, unplanned->n_devices, sizeof(*taken));
    if (!taken)
        return cs_error_no_memory(error);
    if (pattern->period > 0 || !is_shared(plan, taken))
        return CS_OK;
    if (plan->n_stages > PATTERN_STAGES)
        return cs_json_invalid(
            &place, error,
            "must have a \"pattern\": several of its %u stages are on one device, and patterns are "
            "searched for at most %d stages",
            plan->n_stages, PATTERN_STAGES);
    const cs_chain_rules *rules = schedule->kind->chain_rules
                                      ? schedule->kind->chain_rules(schedule->params)
                                      : &cs_chain_default_rules;
    CS_TRY(cs_scenario_chain(unplanned, &sections->root, rules, &chain, error));
    cs_status status = cs_pattern_program(&chain, plan, &options, pattern, &end, &own);
    if (status == CS_OK && pattern->period == 0)
        status = refuse_pattern(&chain, plan, &own);
    cs_chain_finish(&chain);
    return status == CS_OK ? CS_OK : add_place(&place, status, &own, error);
}
