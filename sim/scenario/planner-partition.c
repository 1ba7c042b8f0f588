/* A partition that a planner makes: "partition": "pipedream", or with parameters. */
#include "schedules/plan/pattern-order.h"
#include "schedules/plan/periodic-program.h"
#include "sim/scenario/planning.h"
#include "sim/scenario/sections.h"

#include <string.h>

static const char *name_in(const cJSON *partition)
{
    const cJSON *name =
        cJSON_IsObject(partition) ? cs_json_member(partition, "planner") : partition;
    return cJSON_IsString(name) ? name->valuestring : NULL;
}

bool cs_draft_has_planner(const cs_draft *draft)
{
    const cJSON *partition = draft->schedule.partition;
    if (cJSON_IsString(partition))
        return strcmp(partition->valuestring, "balanced") != 0;
    return cJSON_IsObject(partition) && cs_json_member(partition, "planner");
}

/* What a planner says knows nothing of files. */
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

cs_status cs_draft_price_shares(cs_draft *draft, cs_error *error)
{
    const cs_job *job = &draft->scenario->job;
    cs_status status = CS_OK;
    if (job->replicas != CS_REPLICAS_ALL_REDUCE)
        return CS_OK;
    for (uint32_t q = 2; q <= job->n_devices && status == CS_OK; q++) {
        if (job->micro_samples % q == 0)
            status = cs_draft_price(draft, job->micro_samples / q, error);
    }
    return status;
}

static cs_status make_plan(cs_draft *draft, const cs_planner *planner, const void *params,
                           const cs_chain_rules *rules, const cs_json_place *place, cs_error *error)
{
    cs_chain chain = {0};
    cs_planned planned = {0};
    cs_error own;
    cs_error_init(&own);
    CS_TRY(planner->replicates ? cs_draft_price_shares(draft, error) : CS_OK);
    CS_TRY(cs_scenario_chain(draft->scenario, &draft->root, rules, &chain, error));
    chain.progress = draft->progress;
    cs_status status = cs_planner_run(planner, &chain, params, &planned, NULL, &own);
    cs_time bound = cs_planner_bound(&chain);
    cs_chain_finish(&chain);
    if (status != CS_OK)
        return add_place(place, status, &own, error);
    draft->scenario->plan = planned.plan;
    draft->scenario->pattern = planned.pattern;
    draft->scenario->search.planner = planner->name;
    draft->scenario->search.promised = planned.promised;
    draft->scenario->search.optimal = planned.optimal;
    draft->scenario->search.bound = planned.pattern.period > 0 ? bound : 0;
    planned.plan = (cs_plan){0};
    planned.pattern = (cs_pattern){0};
    cs_planned_finish(&planned);
    return CS_OK;
}

/* Of the search tree of the integer program, which then does not depend on the machine's speed; and
 * of plans whose program is of a size that can be solved. */
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

/* Why there is no pattern. */
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

cs_status cs_draft_find_pattern(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    const cs_schedule *kind = draft->schedule.kind;
    const cs_program_options options = {.node_limit = PATTERN_NODES, .below = CS_TIME_MAX};
    cs_chain chain = {0};
    cs_program_end end;
    cs_error own;
    cs_error_init(&own);
    bool *taken = cs_arena_alloc(&scenario->arena, scenario->platform.n_devices, sizeof(*taken));
    if (!taken)
        return cs_error_no_memory(error);
    if (scenario->pattern.period > 0 || !is_shared(&scenario->plan, taken))
        return CS_OK;
    if (scenario->plan.n_stages > PATTERN_STAGES)
        return cs_json_invalid(
            place, error,
            "must have a \"pattern\": several of its %u stages are on one device, "
            "and for more than %d none is looked for",
            scenario->plan.n_stages, PATTERN_STAGES);
    const cs_chain_rules *rules =
        kind->chain_rules ? kind->chain_rules(draft->schedule.params) : &cs_chain_default_rules;
    CS_TRY(cs_scenario_chain(scenario, &draft->root, rules, &chain, error));
    cs_status status =
        cs_pattern_program(&chain, &scenario->plan, &options, &scenario->pattern, &end, &own);
    if (status == CS_OK && scenario->pattern.period == 0)
        status = refuse_pattern(&chain, &scenario->plan, &own);
    cs_chain_finish(&chain);
    return status == CS_OK ? CS_OK : add_place(place, status, &own, error);
}

cs_status cs_draft_plan(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    const cJSON *partition = draft->schedule.partition;
    const cs_schedule *kind = draft->schedule.kind;
    const char *name = name_in(partition);
    bool object = cJSON_IsObject(partition);
    cs_json_place key = {.up = place, .key = "planner"};
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!name)
        return cs_json_invalid(
            &key, error, "must be the name of a planner (got %s)",
            cs_json_describe(cs_json_member(partition, "planner"), got, sizeof(got)));
    const cs_planner *planner = cs_planner_find(name);
    if (!planner)
        return cs_planner_unknown(name, object ? &key : place, error);
    if (kind->layout == CS_LAYOUT_PLACED)
        return cs_json_invalid(place, error,
                               "must be no planner's for \"%s\", which has devices of its own for "
                               "each stage",
                               kind->name);
    const cs_chain_rules *own =
        kind->chain_rules ? kind->chain_rules(draft->schedule.params) : NULL;
    cs_chain_rules rules = own ? *own : cs_chain_default_rules;
    void *params;
    cs_status status =
        cs_planner_read_params(planner, object ? partition : NULL, place, object,
                               &draft->scenario->arena, own ? NULL : &rules, &params, error);
    return status == CS_OK ? make_plan(draft, planner, params, &rules, place, error) : status;
}
