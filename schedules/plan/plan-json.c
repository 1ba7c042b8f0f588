#include "schedules/plan/plan.h"

#include "sim/base/field.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

typedef struct stage_fields {
    uint32_t first_layer, last_layer;
    cs_list devices; /* entries: uint32_t */
    const char *first_name, *last_name;
} stage_fields;

static const cs_field device_field = {"device", CS_FIELD_COUNT, .max = CS_PLAN_DEVICES - 1};

static const cs_field stage_table[] = {
    {"first_layer", CS_FIELD_COUNT, offsetof(stage_fields, first_layer), .max = UINT32_MAX - 1,
     .doc = "number of the stage's first layer, from 0"},
    {"last_layer", CS_FIELD_COUNT, offsetof(stage_fields, last_layer), .max = UINT32_MAX - 1,
     .doc = "number of its last layer"},
    {"devices", CS_FIELD_LIST, offsetof(stage_fields, devices), .of = &device_field, .least = 1,
     .doc = "devices that hold the stage, each a replica", .shape = "[device, ...]"},
    {"first_layer_name", CS_FIELD_TEXT, offsetof(stage_fields, first_name), .fallback = "",
     .doc = "for people"},
    {"last_layer_name", CS_FIELD_TEXT, offsetof(stage_fields, last_name), .fallback = "",
     .doc = "for people"},
    {0},
};

static const cs_field stage_field = {"stage", CS_FIELD_OBJECT, .of = stage_table,
                                     .size = sizeof(stage_fields)};

typedef struct file_fields {
    uint32_t schema_version;
    const char *model;
    cs_list stages;       /* entries: pointers to stage_fields */
    const cJSON *pattern; /* read by cs_pattern_read (pattern.h) */
} file_fields;

static const cs_field file_table[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(file_fields, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of the format"},
    {"model", CS_FIELD_TEXT, offsetof(file_fields, model), .fallback = "",
     .doc = "name of the model that the plan is for"},
    {"stages", CS_FIELD_LIST, offsetof(file_fields, stages), .of = &stage_field, .least = 1,
     .doc = "stages in order", .shape = "[{stage}, ...]"},
    {"pattern", CS_FIELD_JSON, offsetof(file_fields, pattern), .fallback = "",
     .doc = "what devices and links do in every period", .shape = "{pattern}"},
    {0},
};

static cJSON *stage_json(const cs_plan *plan, const cs_stage *stage, const cs_model *model)
{
    cJSON *object = cJSON_CreateObject();
    bool complete = cJSON_AddNumberToObject(object, "first_layer", stage->first_layer) &&
                    cJSON_AddNumberToObject(object, "last_layer", stage->end_layer - 1) &&
                    cJSON_AddStringToObject(object, "first_layer_name",
                                            model->layers[stage->first_layer].name) &&
                    cJSON_AddStringToObject(object, "last_layer_name",
                                            model->layers[stage->end_layer - 1].name);
    cJSON *devices = complete ? cJSON_AddArrayToObject(object, "devices") : NULL;
    for (uint32_t d = 0; devices && d < stage->n_devices; d++) {
        cJSON *number = cJSON_CreateNumber(plan->devices[stage->first_device + d]);
        if (!cJSON_AddItemToArray(devices, number))
            devices = NULL;
    }
    if (devices)
        return object;
    cJSON_Delete(object);
    return NULL;
}

cJSON *cs_plan_json(const cs_plan *plan, const cs_model *model)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *stages = NULL;
    if (cJSON_AddNumberToObject(root, "schema_version", SCHEMA_VERSION) &&
        cJSON_AddStringToObject(root, "model", model->name))
        stages = cJSON_AddArrayToObject(root, "stages");
    for (uint32_t s = 0; stages && s < plan->n_stages; s++) {
        cJSON *stage = stage_json(plan, &plan->stages[s], model);
        if (!stage || !cJSON_AddItemToArray(stages, stage))
            stages = NULL;
    }
    if (stages)
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* Appends a stage; the plan has room for it. */
static cs_status add_stage(const stage_fields *fields, const cs_json_place *place,
                           const cs_model *model, cs_plan *plan, cs_error *error)
{
    uint32_t expected = plan->n_stages == 0 ? 0 : plan->stages[plan->n_stages - 1].end_layer;
    if (fields->first_layer != expected)
        return cs_json_invalid(place, error,
                               "first_layer must be %u, where the stage before ends (got %u)",
                               expected, fields->first_layer);
    if (fields->last_layer < fields->first_layer || fields->last_layer >= model->n_layers)
        return cs_json_invalid(place, error,
                               "last_layer must be from %u to %u, the model's last (got %u)",
                               fields->first_layer, model->n_layers - 1, fields->last_layer);
    plan->stages[plan->n_stages++] = (cs_stage){.first_layer = fields->first_layer,
                                                .end_layer = fields->last_layer + 1,
                                                .first_device = plan->n_devices,
                                                .n_devices = fields->devices.n};
    memcpy(plan->devices + plan->n_devices, fields->devices.items,
           fields->devices.n * sizeof(*plan->devices));
    plan->n_devices += fields->devices.n;
    return CS_OK;
}

static cs_status add_stages(const cs_list *list, const cs_json_place *root, const cs_model *model,
                            cs_plan *plan, cs_error *error)
{
    cs_json_place place = {.up = root, .key = "stages"};
    const stage_fields *const *stages = list->items;
    size_t n_devices = 0;
    for (uint32_t i = 0; i < list->n; i++)
        n_devices += stages[i]->devices.n;
    plan->stages = calloc(list->n, sizeof(*plan->stages));
    plan->devices = calloc(n_devices, sizeof(*plan->devices));
    if (!plan->stages || !plan->devices)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < list->n; i++) {
        cs_json_place at = {.up = &place, .index = (int)i};
        CS_TRY(add_stage(stages[i], &at, model, plan, error));
    }
    const uint32_t end = plan->stages[plan->n_stages - 1].end_layer;
    if (end == model->n_layers)
        return CS_OK;
    return cs_json_invalid(&place, error, "the stages hold layers 0 to %u, the model \"%s\" has %u",
                           end - 1, model->name, model->n_layers);
}

cs_status cs_plan_read(const cJSON *root, const cs_json_place *place, const cs_model *model,
                       cs_plan *plan, cs_error *error)
{
    cs_plan made = {0};
    cs_arena arena; /* temporary texts and lists */
    cs_arena_init(&arena);
    file_fields fields;
    cs_status status = cs_field_read(root, place, (const cs_field *const[]){file_table, NULL},
                                     (void *const[]){&fields}, &arena, error);
    if (status == CS_OK)
        status = add_stages(&fields.stages, place, model, &made, error);
    cs_arena_finish(&arena);
    if (status == CS_OK)
        *plan = made;
    else
        cs_plan_finish(&made);
    return status;
}

static cs_status read_cut(const cJSON *value, const cs_json_place *place, const cs_model *model,
                          uint32_t *cuts, cs_error *error)
{
    double number = value->valuedouble;
    uint32_t index = (uint32_t)place->index, least = cuts[index] + 1;
    if (!cJSON_IsNumber(value) || !(number >= least && number < model->n_layers) ||
        number != (double)(uint32_t)number)
        return cs_json_invalid(
            place, error,
            "must be the first layer of stage %u, a whole number from %u to %u: the "
            "model has %u layers, and the list must rise",
            index + 1, least, model->n_layers - 1, model->n_layers);
    cuts[index + 1] = (uint32_t)number;
    return CS_OK;
}

cs_status cs_plan_read_cuts(const cJSON *list, const cs_json_place *place, const cs_model *model,
                            cs_plan *plan, cs_error *error)
{
    if (!cJSON_IsArray(list))
        return cs_json_invalid(place, error, "must be a list of layers (got %s)",
                               cs_json_kind(list));
    uint32_t n_stages = (uint32_t)cJSON_GetArraySize(list) + 1;
    uint32_t *cuts = calloc((size_t)n_stages + 1, sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    cs_json_place element = {.up = place};
    cs_status status = CS_OK;
    for (const cJSON *value = list->child; value && status == CS_OK; value = value->next) {
        status = read_cut(value, &element, model, cuts, error);
        element.index++;
    }
    cuts[n_stages] = model->n_layers;
    if (status == CS_OK)
        status = cs_plan_pipeline(cuts, n_stages, plan, error);
    free(cuts);
    return status;
}
