/* A partition that a planner makes: "partition": "pipedream", or with parameters. */
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
    cs_status status = planner->replicates ? cs_draft_price_shares(draft, error) : CS_OK;
    if (status == CS_OK)
        status = cs_scenario_chain(draft->scenario, &draft->root, rules, &chain, error);
    if (status != CS_OK)
        return status;
    chain.progress = draft->progress;
    status = cs_planner_run(planner, &chain, params, &planned, NULL, &own);
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
