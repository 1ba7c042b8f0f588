#include "sim/scenario/sections.h"

#include <stdlib.h>

/* The resolved scenario needs no other file: models and plans that came from one stand in it, so
 * that it can be run from anywhere, and later, whatever became of the files. */

/* Adds the fields of a table, and then those of a second one if there is one. */
static cJSON *add_section(cJSON *root, const char *key, const cs_field *table, const void *values,
                          const cs_field *more, const void *more_values)
{
    cJSON *section = cJSON_AddObjectToObject(root, key);
    if (!section || !cs_field_write(table, values, section))
        return NULL;
    return !more || cs_field_write(more, more_values, section) ? section : NULL;
}

static bool add_model(const cs_draft *draft, cJSON *root)
{
    const cs_scenario *scenario = draft->scenario;
    cs_model_section section = draft->model;
    section.file = NULL;
    section.uniform = section.in_place = NULL;
    section.batch_size = scenario->batch_size;
    cJSON *model = add_section(root, "model", cs_scenario_model_fields, &section, NULL, NULL);
    if (model && draft->model.uniform)
        return add_section(model, "uniform", cs_scenario_uniform_fields, &draft->uniform, NULL,
                           NULL);
    return model && cJSON_AddItemToObject(model, "inline", cs_model_json(&scenario->model));
}

static bool add_platform(const cs_draft *draft, cJSON *root)
{
    cs_platform_section section = draft->platform;
    section.topology = section.kind->name;
    return add_section(root, "platform", cs_scenario_platform_fields, &section,
                       section.kind->fields, section.params);
}

/* A plan from a file or a planner can have any device in any stage, which a list of cuts cannot say.
 * Planners may take long. */
static bool add_schedule(const cs_draft *draft, cJSON *root, cs_error *error)
{
    const cs_scenario *scenario = draft->scenario;
    cs_schedule_section section = draft->schedule;
    bool plan = cJSON_IsObject(section.partition) || cs_draft_has_planner(draft);
    if (plan || !cs_layout_is_partitioned(section.kind->layout))
        section.partition = NULL;
    cJSON *schedule = add_section(root, "schedule", cs_scenario_schedule_fields, &section,
                                  section.kind->fields, section.params);
    if (!schedule || !plan)
        return schedule;
    cJSON *partition = cJSON_AddObjectToObject(schedule, "partition");
    cJSON *in_place = cs_plan_json(&scenario->plan, &scenario->model);
    if (!partition || !cJSON_AddItemToObject(partition, "inline", in_place)) {
        cJSON_Delete(in_place);
        return false;
    }
    return scenario->pattern.period == 0 ||
           cs_pattern_add_json(in_place, &scenario->plan, &scenario->pattern, error) == CS_OK;
}

/* The model has its times already; what is left are the collectives'. */
static bool add_costs(const cs_draft *draft, cJSON *root)
{
    cs_costs rest = draft->costs;
    if (rest.n_network == 0)
        return true;
    rest.n_compute = rest.n_bandwidths = rest.n_overheads = 0;
    cJSON *costs = cJSON_AddObjectToObject(root, "costs");
    return costs && cJSON_AddItemToObject(costs, "inline", cs_costs_json(&rest));
}

char *cs_draft_resolved(const cs_draft *draft, cs_error *error)
{
    cs_top_section top = draft->top;
    top.name = draft->scenario->name;
    top.model = top.platform = top.schedule = top.collectives = top.costs = top.sweep = NULL;
    cJSON *root = cJSON_CreateObject();
    char *text = NULL;
    if (root && cs_field_write(cs_scenario_fields, &top, root) && add_model(draft, root) &&
        add_platform(draft, root) && add_schedule(draft, root, error) &&
        add_section(root, "collectives", cs_lower_fields, &draft->scenario->collectives, NULL,
                    NULL) &&
        add_costs(draft, root))
        text = cs_json_print(root);
    cJSON_Delete(root);
    return text;
}
