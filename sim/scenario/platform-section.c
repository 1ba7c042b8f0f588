#include "sim/scenario/sections.h"

#include <string.h>

static const char *const sharing_names[] = {"none", "fifo", "phi", "max_min", NULL};
static const cs_sharing sharings[] = {CS_SHARING_NONE, CS_SHARING_FIFO, CS_SHARING_PHI,
                                      CS_SHARING_MAX_MIN};

const cs_field cs_scenario_platform_fields[] = {
    {"topology", CS_FIELD_TEXT, offsetof(cs_platform_section, topology),
     .doc = "one of `sim list topologies`"},
    {"devices", CS_FIELD_COUNT, offsetof(cs_platform_section, devices), .fallback = "0",
     .max = 1 << 20, .doc = "GPUs; 0: as many as the schedule needs, one per layer for a pipeline"},
    {"memory", CS_FIELD_JSON, offsetof(cs_platform_section, memory), .fallback = "\"unlimited\"",
     .doc = "of a device, or a list with one entry per device",
     .shape = "bytes, \"unlimited\" or [bytes, ...]"},
    {"speed", CS_FIELD_JSON, offsetof(cs_platform_section, speed), .fallback = "1",
     .doc = "factor by which a device is faster than the model's times say, or a list",
     .shape = "number or [number, ...]"},
    {"sharing", CS_FIELD_CHOICE, offsetof(cs_platform_section, sharing), .fallback = "fifo",
     .choices = sharing_names, .doc = "how transfers share links"},
    {"phi", CS_FIELD_JSON, offsetof(cs_platform_section, phi), .fallback = "",
     .doc = "with sharing phi: contention coefficient, or \"count\" for the number of transfers on "
            "the link",
     .shape = "number >= 1 or \"count\""},
    {"blocking", CS_FIELD_BOOL, offsetof(cs_platform_section, blocking), .fallback = "false",
     .doc = "point-to-point transfers occupy the compute of sender and receiver"},
    {0},
};

/* One value of a list or for all devices, read by a field table of its own. */
typedef struct device_value {
    int64_t memory;
    double speed;
} device_value;

static const cs_field memory_field[] = {
    {"memory", CS_FIELD_BYTES, offsetof(device_value, memory), .min = 1}, {0}};
static const cs_field speed_field[] = {
    {"speed", CS_FIELD_NUMBER, offsetof(device_value, speed), .above_min = true}, {0}};

static bool is_unlimited(const cJSON *value)
{
    return cJSON_IsString(value) && strcmp(value->valuestring, "unlimited") == 0;
}

/* Reads one value as if it were a member of the object around it (or of the list), so that the
 * field tables do all checking. */
static cs_status read_value(const cJSON *value, const cs_field *field, const cs_json_place *place,
                            cs_arena *arena, device_value *out, cs_error *error)
{
    cJSON member = *value;
    member.string = (char *)(uintptr_t)field->name;
    member.next = member.prev = NULL;
    cJSON object = {.type = cJSON_Object, .child = &member};
    return cs_field_read(&object, place, (const cs_field *const[]){field, NULL},
                         (void *const[]){out}, arena, error);
}

static void set_device(cs_device *device, const cs_field *field, const device_value *value)
{
    if (field == memory_field)
        device->capacity = value->memory;
    else
        device->speed = value->speed;
}

/* Gives each device its entry of the list. */
static cs_status set_each(cs_draft *draft, const cJSON *list, const cs_field *field,
                          const cs_json_place *place, cs_error *error)
{
    cs_platform *platform = &draft->scenario->platform;
    cs_status status = CS_OK;
    const cJSON *element = list->child;
    if ((uint32_t)cJSON_GetArraySize(list) != platform->n_devices)
        return cs_json_invalid(place, error, "must have one entry for each of %u devices (got %d)",
                               platform->n_devices, cJSON_GetArraySize(list));
    for (uint32_t d = 0; d < platform->n_devices; d++, element = element->next) {
        device_value value;
        cs_json_place at = {.up = place, .index = (int)d};
        cs_status one = read_value(element, field, &at, &draft->scenario->arena, &value, error);
        set_device(&platform->devices[d], field, &value);
        status = status == CS_OK ? one : status;
    }
    return status;
}

/* Gives each device its entry of the list, or all of them the one value. */
static cs_status set_devices(cs_draft *draft, const cJSON *value, const cs_field *field,
                             cs_error *error)
{
    cs_platform *platform = &draft->scenario->platform;
    cs_json_place section = {.up = &draft->root, .key = "platform"};
    cs_json_place place = {.up = &section, .key = field->name};
    device_value read;
    if (cJSON_IsArray(value))
        return set_each(draft, value, field, &place, error);
    cs_status status = read_value(value, field, &place, &draft->scenario->arena, &read, error);
    for (uint32_t d = 0; d < platform->n_devices; d++)
        set_device(&platform->devices[d], field, &read);
    return status;
}

static cs_status read_phi(cs_platform_section *platform, const cs_json_place *section,
                          cs_error *error)
{
    const cJSON *phi = platform->phi;
    cs_json_place place = {.up = section, .key = "phi"};
    platform->shared = sharings[platform->sharing];
    platform->coefficient = 1;
    if (platform->shared != CS_SHARING_PHI)
        return phi ? cs_json_invalid(&place, error, "goes with \"sharing\": \"phi\" only") : CS_OK;
    if (cJSON_IsString(phi) && strcmp(phi->valuestring, "count") == 0) {
        platform->shared = CS_SHARING_COUNT;
        return CS_OK;
    }
    if (!cJSON_IsNumber(phi) || !(phi->valuedouble >= 1))
        return cs_json_invalid(&place, error,
                               "must be a number >= 1 or \"count\" with \"sharing\": \"phi\"");
    platform->coefficient = phi->valuedouble;
    return CS_OK;
}

/* Which topology it is has to be known before the section's keys can be. */
static cs_status find_kind(cs_draft *draft, const cJSON *value, const cs_json_place *place,
                           cs_error *error)
{
    cs_json_place key = {.up = place, .key = "topology"};
    const cJSON *name = cJSON_IsString(value) ? value : cs_json_member(value, "topology");
    if (!cJSON_IsString(value) && !cJSON_IsObject(value))
        return cs_json_invalid(place, error, "must be an object or the name of a topology (got %s)",
                               cs_json_kind(value));
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error,
                               "must be the name of a topology (`sim list topologies`)");
    draft->platform.kind = cs_topology_find(name->valuestring);
    return draft->platform.kind ? CS_OK
                                : cs_topology_unknown(name->valuestring,
                                                      cJSON_IsString(value) ? place : &key, error);
}

cs_status cs_draft_read_platform(cs_draft *draft, cs_error *error)
{
    cs_json_place place = {.up = &draft->root, .key = "platform"};
    const cJSON *value = draft->top.platform;
    cs_arena *arena = &draft->scenario->arena;
    cs_status status = find_kind(draft, value, &place, error);
    if (status != CS_OK)
        return status;
    cJSON name_only = {.type = cJSON_Object}, name = {.type = cJSON_String};
    if (cJSON_IsString(value)) { /* "ideal" stands for {"topology": "ideal"} */
        name.string = (char *)(uintptr_t) "topology";
        name.valuestring = value->valuestring;
        name_only.child = &name;
        value = &name_only;
    }
    status = cs_topology_params(draft->platform.kind, value, &place, cs_scenario_platform_fields,
                                &draft->platform, arena, &draft->platform.params, error);
    return status == CS_OK ? read_phi(&draft->platform, &place, error) : status;
}

/* How many devices a schedule runs on when the scenario does not say. */
static uint32_t devices_needed(const cs_draft *draft)
{
    switch (draft->schedule.kind->layout) {
    case CS_LAYOUT_SINGLE:
        return 1;
    case CS_LAYOUT_PIPELINE:
        return draft->scenario->model.n_layers;
    case CS_LAYOUT_REPLICATED:
        break;
    }
    return 0;
}

cs_status cs_draft_build_platform(cs_draft *draft, cs_error *error)
{
    cs_platform_section *section = &draft->platform;
    cs_json_place place = {.up = &draft->root, .key = "platform"};
    cs_json_place devices = {.up = &place, .key = "devices"};
    if (section->devices == 0)
        section->devices = devices_needed(draft);
    if (section->devices == 0)
        return cs_json_invalid(&devices, error, "must be given for the schedule \"%s\"",
                               draft->schedule.kind->name);
    cs_platform *platform = &draft->scenario->platform;
    cs_status status = section->kind->build(section->params, section->devices, platform, error);
    if (status != CS_OK)
        return status;
    platform->sharing = section->shared;
    platform->phi = section->coefficient;
    status = set_devices(draft, section->memory, memory_field, error);
    cs_status speeds = set_devices(draft, section->speed, speed_field, error);
    return status == CS_OK ? speeds : status;
}
