#include "sim/scenario/sections.h"

#include <stdlib.h>

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
    cs_model_section section = draft->model;
    section.uniform = NULL;
    section.batch_size = draft->scenario->batch_size;
    cJSON *model = add_section(root, "model", cs_scenario_model_fields, &section, NULL, NULL);
    if (!model)
        return false;
    return !draft->model.uniform ||
           add_section(model, "uniform", cs_scenario_uniform_fields, &draft->uniform, NULL, NULL);
}

static bool add_platform(const cs_draft *draft, cJSON *root)
{
    cs_platform_section section = draft->platform;
    section.topology = section.kind->name;
    return add_section(root, "platform", cs_scenario_platform_fields, &section,
                       section.kind->fields, section.params);
}

static bool add_schedule(const cs_draft *draft, cJSON *root)
{
    return add_section(root, "schedule", cs_scenario_schedule_fields, &draft->schedule,
                       draft->schedule.kind->fields, draft->schedule.params);
}

char *cs_draft_resolved(const cs_draft *draft)
{
    cs_top_section top = draft->top;
    top.name = draft->scenario->name;
    top.model = top.platform = top.schedule = NULL;
    cJSON *root = cJSON_CreateObject();
    char *text = NULL;
    if (root && cs_field_write(cs_scenario_fields, &top, root) && add_model(draft, root) &&
        add_platform(draft, root) && add_schedule(draft, root))
        text = cs_json_print(root);
    cJSON_Delete(root);
    return text;
}
