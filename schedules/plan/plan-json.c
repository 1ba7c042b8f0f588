#include "schedules/plan/plan.h"

#include "sim/base/field.h"

#include <stddef.h>
#include <stdlib.h>

enum { SCHEMA_VERSION = 1 };

typedef struct file_fields {
    uint32_t schema_version;
    const char *model;
    const cJSON *stages, *pattern;
} file_fields;

static const cs_field file_table[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(file_fields, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of this format"},
    {"model", CS_FIELD_TEXT, offsetof(file_fields, model), .fallback = "",
     .doc = "name of the model that the plan is for"},
    {"stages", CS_FIELD_JSON, offsetof(file_fields, stages), .doc = "stages in order",
     .shape = "[{stage}, ...]"},
    {"pattern", CS_FIELD_JSON, offsetof(file_fields, pattern), .fallback = "",
     .doc = "what devices and links do in every period", .shape = "{pattern}"},
    {0},
};

typedef struct stage_fields {
    uint32_t first_layer, last_layer;
    const cJSON *devices;
    const char *first_name, *last_name;
} stage_fields;

static const cs_field stage_table[] = {
    {"first_layer", CS_FIELD_COUNT, offsetof(stage_fields, first_layer), .max = UINT32_MAX - 1,
     .doc = "number of the stage's first layer, from 0"},
    {"last_layer", CS_FIELD_COUNT, offsetof(stage_fields, last_layer), .max = UINT32_MAX - 1,
     .doc = "number of its last layer"},
    {"devices", CS_FIELD_JSON, offsetof(stage_fields, devices),
     .doc = "devices that hold the stage, each a replica", .shape = "[device, ...]"},
    {"first_layer_name", CS_FIELD_TEXT, offsetof(stage_fields, first_name), .fallback = "",
     .doc = "for people"},
    {"last_layer_name", CS_FIELD_TEXT, offsetof(stage_fields, last_name), .fallback = "",
     .doc = "for people"},
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

/* What is read grows here; arena-less since the parts have their final size only at the end. */
typedef struct reading {
    const cs_model *model;
    cs_plan plan;
    cs_arena arena; /* of texts that are not kept */
} reading;

static cs_status read_device(const cJSON *value, const cs_json_place *place, reading *r,
                             cs_error *error)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    double number = value->valuedouble;
    if (!cJSON_IsNumber(value) || !(number >= 0 && number < CS_PLAN_DEVICES) ||
        number != (double)(uint32_t)number)
        return cs_json_invalid(place, error, "must be the number of a device, from 0 (got %s)",
                               cs_json_describe(value, got, sizeof(got)));
    r->plan.devices[r->plan.n_devices++] = (uint32_t)number;
    return CS_OK;
}

static cs_status read_devices(const cJSON *list, const cs_json_place *place, cs_stage *stage,
                              reading *r, cs_error *error)
{
    cs_json_place devices = {.up = place, .key = "devices"};
    if (!cJSON_IsArray(list) || !list->child)
        return cs_json_invalid(&devices, error, "must be a list of one device at least");
    stage->first_device = r->plan.n_devices;
    cs_json_place element = {.up = &devices};
    cs_status status = CS_OK;
    for (const cJSON *value = list->child; value && status == CS_OK; value = value->next) {
        status = read_device(value, &element, r, error);
        element.index++;
        stage->n_devices++;
    }
    return status;
}

static cs_status read_stage(const cJSON *value, const cs_json_place *place, reading *r,
                            cs_error *error)
{
    stage_fields fields;
    cs_status status = cs_field_read(value, place, (const cs_field *const[]){stage_table, NULL},
                                     (void *const[]){&fields}, &r->arena, error);
    if (status != CS_OK)
        return status;
    uint32_t expected = r->plan.n_stages == 0 ? 0 : r->plan.stages[r->plan.n_stages - 1].end_layer;
    if (fields.first_layer != expected)
        return cs_json_invalid(place, error,
                               "first_layer must be %u, where the stage before ends (got %u)",
                               expected, fields.first_layer);
    if (fields.last_layer < fields.first_layer || fields.last_layer >= r->model->n_layers)
        return cs_json_invalid(place, error,
                               "last_layer must be from %u to %u, the model's last (got %u)",
                               fields.first_layer, r->model->n_layers - 1, fields.last_layer);
    cs_stage *stage = &r->plan.stages[r->plan.n_stages++];
    *stage = (cs_stage){fields.first_layer, fields.last_layer + 1, 0, 0};
    return read_devices(fields.devices, place, stage, r, error);
}

static cs_status check_end(const reading *r, const cs_json_place *place, cs_error *error)
{
    uint32_t end = r->plan.stages[r->plan.n_stages - 1].end_layer;
    if (end == r->model->n_layers)
        return CS_OK;
    return cs_json_invalid(place, error, "the stages hold layers 0 to %u, the model \"%s\" has %u",
                           end - 1, r->model->name, r->model->n_layers);
}

/* Enough room for all stages, and for every device that any of them lists. */
static bool reserve(reading *r, const cJSON *stages)
{
    size_t n_stages = 1, n_devices = 1;
    for (const cJSON *stage = stages->child; stage; stage = stage->next) {
        n_stages++;
        n_devices += (size_t)cJSON_GetArraySize(cs_json_member(stage, "devices"));
    }
    r->plan.stages = calloc(n_stages, sizeof(*r->plan.stages));
    r->plan.devices = calloc(n_devices, sizeof(*r->plan.devices));
    return r->plan.stages && r->plan.devices;
}

static cs_status read_stages(const cJSON *list, const cs_json_place *root, reading *r,
                             cs_error *error)
{
    cs_json_place place = {.up = root, .key = "stages"};
    if (!cJSON_IsArray(list))
        return cs_json_invalid(&place, error, "must be a list of stages (got %s)",
                               cs_json_kind(list));
    if (!list->child)
        return cs_json_invalid(&place, error, "must be a list of one stage at least");
    if (!reserve(r, list))
        return cs_error_no_memory(error);
    cs_json_place element = {.up = &place};
    cs_status status = CS_OK;
    for (const cJSON *value = list->child; value && status == CS_OK; value = value->next) {
        status = read_stage(value, &element, r, error);
        element.index++;
    }
    return status == CS_OK ? check_end(r, &place, error) : status;
}

cs_status cs_plan_read(const cJSON *root, const cs_json_place *place, const cs_model *model,
                       cs_plan *plan, cs_error *error)
{
    reading r = {.model = model};
    cs_arena_init(&r.arena);
    file_fields fields;
    cs_status status = cs_field_read(root, place, (const cs_field *const[]){file_table, NULL},
                                     (void *const[]){&fields}, &r.arena, error);
    if (status == CS_OK)
        status = read_stages(fields.stages, place, &r, error);
    cs_arena_finish(&r.arena);
    if (status == CS_OK)
        *plan = r.plan;
    else
        cs_plan_finish(&r.plan);
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
