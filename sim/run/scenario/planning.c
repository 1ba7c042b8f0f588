#include "sim/run/scenario/planning.h"

#include "sim/base/text.h"

#include <stddef.h>

cs_status cs_scenario_chain(const cs_job *job, const cs_json_place *root,
                            const cs_chain_rules *rules, cs_chain *chain, cs_error *error)
{
    const cs_json_place section = {.up = root, .key = "platform"};
    const cs_json_place place = {.up = &section, .key = "speed"};
    cs_chain_options options = {.model = job->model,
                                .n_devices = job->n_devices,
                                .micro_samples = job->micro_samples,
                                .speed = job->n_devices > 0 ? job->speeds[0] : 1,
                                .memory = job->memory,
                                .bandwidth = job->bandwidth,
                                .latency = job->latency,
                                .optimizer_ratio = job->optimizer_ratio,
                                .other_ratio = job->other_ratio,
                                .shared = job->replicas == CS_REPLICAS_ALL_REDUCE};
    for (uint32_t d = 1; d < job->n_devices; d++) {
        const double first = job->speeds[0], own = job->speeds[d];
        if (own < first || own > first)
            return cs_json_invalid(&place, error,
                                   "must be the same on all devices for a planner (got %g on "
                                   "device 0 and %g on device %u)",
                                   first, own, d);
    }
    cs_chain_apply_rules(rules, &options);
    return cs_chain_make(&options, chain, error);
}

cs_chain_rules cs_scenario_chain_rules(const cs_scenario *scenario)
{
    const cs_schedule *schedule = scenario->schedule;
    return schedule->chain_rules ? *schedule->chain_rules(scenario->params)
                                 : cs_chain_default_rules;
}

cs_status cs_planner_unknown(const char *name, const cs_json_place *place, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (size_t i = 0; cs_planners[i]; i++)
        cs_guess_add(&guess, cs_planners[i]->name);
    return cs_json_invalid(place, error, "unknown planner %s", cs_guess_text(&guess));
}

typedef struct name_fields {
    const char *planner;
} name_fields;

static const cs_field name_table[] = {
    {"planner", CS_FIELD_TEXT, offsetof(name_fields, planner), .doc = "one of `sim list planners`"},
    {0},
};

cs_status cs_planner_read_params(const cs_planner *planner, const cJSON *object,
                                 const cs_json_place *place, bool named, cs_arena *arena,
                                 cs_chain_rules *rules, void **params, cs_error *error)
{
    cs_chain_rules read;
    name_fields name;
    void *made = cs_arena_alloc(arena, 1, planner->params_size + 1);
    if (!made)
        return cs_error_no_memory(error);
    const cs_field *tables[4] = {planner->fields};
    void *outs[3] = {made};
    size_t n = 1;
    if (rules) {
        tables[n] = cs_chain_fields;
        outs[n++] = &read;
    }
    if (named) {
        tables[n] = name_table;
        outs[n] = &name;
    }
    CS_TRY(cs_field_read(object, place, tables, outs, arena, error));
    if (rules) {
        if (cs_json_member(object, "kept"))
            rules->kept = read.kept;
        if (cs_json_member(object, "weight_copies"))
            rules->weight_copies = read.weight_copies;
        if (cs_json_member(object, "count_update"))
            rules->count_update = read.count_update;
        if (cs_json_member(object, "count_workspace"))
            rules->count_workspace = read.count_workspace;
    }
    *params = made;
    return CS_OK;
}
