#include "sim/scenario/noise-section.h"

#include "sim/base/text.h"

#include <string.h>

static const char *const sharing_names[] = {"none", "fifo", "phi", "max_min", NULL};
static const cs_sharing sharings[] = {CS_SHARING_NONE, CS_SHARING_FIFO, CS_SHARING_PHI,
                                      CS_SHARING_MAX_MIN};

const cs_field cs_scenario_platform_fields[] = {
    {"topology", CS_FIELD_TEXT, offsetof(cs_platform_section, topology),
     .doc = "one of `sim list topologies`"},
    {"devices", CS_FIELD_COUNT, offsetof(cs_platform_section, devices), .fallback = "0",
     .max = 1 << 20,
     .doc = "GPUs; 0: as many as the schedule needs, one per layer for a pipeline; pipelines of "
            "named models and dp have to be told, but for a topology from a file, "
            "which has its own number"},
    {"memory", CS_FIELD_JSON, offsetof(cs_platform_section, memory), .fallback = "",
     .doc = "of a device, or a list with one entry per device; when not given, that of a named "
            "model's device, else unlimited",
     .shape = "bytes, \"unlimited\" or [bytes, ...]"},
    {"reserve", CS_FIELD_JSON, offsetof(cs_platform_section, reserve), .fallback = "0",
     .doc = "of its memory, set aside for what is not simulated: the driver's context, what the "
            "allocator wastes, buffers of libraries",
     .shape = "bytes or [bytes, ...]"},
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
    {"jitter", CS_FIELD_JSON, offsetof(cs_platform_section, jitter), .fallback = "",
     .doc = "share of its bandwidth that each link has lost in a run", .shape = "{spread}"},
    {"stragglers", CS_FIELD_JSON, offsetof(cs_platform_section, stragglers), .fallback = "",
     .doc = "devices and computations that take longer", .shape = "{stragglers}"},
    {"background", CS_FIELD_JSON, offsetof(cs_platform_section, background), .fallback = "",
     .doc = "messages of others on the links", .shape = "{background}"},
    {0},
};

/* One value of a list or for all devices, read by a field table of its own. */
typedef struct device_value {
    int64_t memory, reserve;
    double speed;
} device_value;

static const cs_field memory_field[] = {
    {"memory", CS_FIELD_BYTES, offsetof(device_value, memory), .min = 1}, {0}};
static const cs_field reserve_field[] = {
    {"reserve", CS_FIELD_BYTES, offsetof(device_value, reserve)}, {0}};
static const cs_field speed_field[] = {
    {"speed", CS_FIELD_NUMBER, offsetof(device_value, speed), .above_min = true}, {0}};

static bool is_unlimited(const cJSON *value)
{
    return cJSON_IsString(value) && strcmp(value->valuestring, "unlimited") == 0;
}

/* Reads one value as if it were the member `name` of an object at `place`, so that the field tables
 * do all checking. */
static cs_status read_value(const cJSON *value, const cs_field *field, const char *name,
                            const cs_json_place *place, device_value *out, cs_error *error)
{
    cs_field table[] = {*field, {0}};
    cJSON member = *value;
    table[0].name = name;
    member.string = (char *)(uintptr_t)name;
    member.next = member.prev = NULL;
    cJSON object = {.type = cJSON_Object, .child = &member};
    *out = (device_value){.memory = INT64_MAX, .speed = 1};
    if (field == memory_field && is_unlimited(value))
        return CS_OK;
    return cs_field_read(&object, place, (const cs_field *const[]){table, NULL},
                         (void *const[]){out}, NULL, error);
}

/* What stands in the section, or what is taken for it when nothing does: a named model knows which
 * device it runs on. In the section, so that the resolved scenario shows it. */
static cs_status settle_memory(cs_draft *draft, cs_error *error)
{
    const int64_t of_device = draft->model.device_memory;
    if (draft->platform.memory)
        return CS_OK;
    cJSON *value = cs_arena_alloc(&draft->scenario->arena, 1, sizeof(*value));
    if (!value)
        return cs_error_no_memory(error);
    if (of_device > 0)
        *value = (cJSON){.type = cJSON_Number, .valuedouble = (double)of_device};
    else
        *value = (cJSON){.type = cJSON_String, .valuestring = (char *)(uintptr_t) "unlimited"};
    draft->platform.memory = value;
    return CS_OK;
}

static void set_device(cs_device *device, const cs_field *field, const device_value *value)
{
    if (field == memory_field)
        device->capacity = value->memory;
    else if (field == reserve_field)
        device->reserve = value->reserve;
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
        char index[16];
        snprintf(index, sizeof(index), "%u", d);
        cs_status one = read_value(element, field, index, place, &value, error);
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
    cs_status status = read_value(value, field, field->name, &section, &read, error);
    for (uint32_t d = 0; d < platform->n_devices; d++)
        set_device(&platform->devices[d], field, &read);
    return status;
}

/* The rest is the capacity. */
static cs_status set_aside(cs_draft *draft, cs_error *error)
{
    cs_platform *platform = &draft->scenario->platform;
    cs_json_place section = {.up = &draft->root, .key = "platform"};
    cs_json_place place = {.up = &section, .key = "reserve"};
    cs_status status = set_devices(draft, draft->platform.reserve, reserve_field, error);
    for (uint32_t d = 0; d < platform->n_devices && status == CS_OK; d++) {
        cs_device *device = &platform->devices[d];
        if (device->reserve == 0)
            continue;
        if (device->capacity == INT64_MAX)
            return cs_json_invalid(&place, error,
                                   "must be 0 for device %u, whose memory is unlimited (got %lld)",
                                   d, (long long)device->reserve);
        if (device->reserve >= device->capacity)
            return cs_json_invalid(&place, error,
                                   "must leave device %u some of its memory of %lld bytes (got "
                                   "%lld)",
                                   d, (long long)device->capacity, (long long)device->reserve);
        device->capacity -= device->reserve;
    }
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
    char got[CS_JSON_DESCRIBED_BYTES] = "nothing";
    if (!cJSON_IsNumber(phi) || !(phi->valuedouble >= 1))
        return cs_json_invalid(
            &place, error, "must be a number >= 1 or \"count\" with \"sharing\": \"phi\" (got %s)",
            phi ? cs_json_describe(phi, got, sizeof(got)) : got);
    platform->coefficient = phi->valuedouble;
    return CS_OK;
}

/* Which topology it is has to be known before the section's keys can be. "ideal" stands for
 * {"topology": "ideal"}. */
static cs_status find_kind(cs_draft *draft, const cJSON *value, const cs_json_place *place,
                           cs_error *error)
{
    cs_json_place key = {.up = place, .key = "topology"};
    const cJSON *name = cJSON_IsString(value) ? value : cs_json_member(value, "topology");
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!cJSON_IsString(value) && !cJSON_IsObject(value))
        return cs_json_invalid(place, error, "must be an object or the name of a topology (got %s)",
                               cs_json_describe(value, got, sizeof(got)));
    cs_guess guess;
    cs_guess_init(&guess, cJSON_IsString(name) ? name->valuestring : "");
    for (size_t i = 0; cs_topologies[i]; i++)
        cs_guess_add(&guess, cs_topologies[i]->name);
    if (!name)
        return cs_json_invalid(place, error, "missing key \"topology\": must be one of %s",
                               guess.known);
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error, "must be one of %s (got %s)", guess.known,
                               cs_json_describe(name, got, sizeof(got)));
    draft->platform.kind = cs_topology_find(name->valuestring);
    if (draft->platform.kind)
        return CS_OK;
    return cs_json_invalid(name == value ? place : &key, error, "unknown topology %s",
                           cs_guess_text(&guess));
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
    if (cJSON_IsString(value)) {
        name.string = (char *)(uintptr_t) "topology";
        name.valuestring = value->valuestring;
        name_only.child = &name;
        value = &name_only;
    }
    status = cs_topology_params(draft->platform.kind, value, &place, cs_scenario_platform_fields,
                                &draft->platform, arena, &draft->platform.params, error);
    if (status == CS_OK)
        status = read_phi(&draft->platform, &place, error);
    return status == CS_OK ? cs_draft_read_noise(draft, &place, error) : status;
}

/* A pipeline of a model from a file, or of a uniform one, has a device per layer where it is told
 * nothing; that is hardly meant of a network. */
cs_status cs_draft_count_devices(cs_draft *draft, cs_error *error)
{
    cs_platform_section *section = &draft->platform;
    const cs_schedule *kind = draft->schedule.kind;
    const bool spread = kind->layout == CS_LAYOUT_REPLICATED || kind->layout == CS_LAYOUT_PLANNED ||
                        (kind->layout == CS_LAYOUT_PIPELINE && draft->model.workload.name);
    if (section->devices > 0 || !section->kind->devices || !spread ||
        (kind->devices && kind->devices(draft->schedule.params) > 0))
        return CS_OK;
    return section->kind->devices(section->params, &section->devices, error);
}

/* How many devices a schedule runs on when the platform section does not say; 0: that cannot be
 * known. */
static uint32_t devices_needed(const cs_draft *draft)
{
    const cs_schedule *kind = draft->schedule.kind;
    uint32_t asked = kind->devices ? kind->devices(draft->schedule.params) : 0;
    if (asked > 0)
        return asked;
    switch (kind->layout) {
    case CS_LAYOUT_SINGLE:
        return 1;
    case CS_LAYOUT_PIPELINE:
        return draft->model.workload.name ? 0 : draft->scenario->model.n_layers;
    case CS_LAYOUT_PLACED:
        return cs_draft_devices_placed(draft);
    case CS_LAYOUT_PLANNED:
    case CS_LAYOUT_REPLICATED:
        break;
    }
    return 0;
}

/* The schedule and the platform must not say different numbers. */
static cs_status settle_devices(cs_draft *draft, cs_error *error)
{
    cs_platform_section *section = &draft->platform;
    const cs_schedule *kind = draft->schedule.kind;
    cs_json_place place = {.up = &draft->root, .key = "platform"};
    cs_json_place devices = {.up = &place, .key = "devices"};
    uint32_t asked = kind->devices ? kind->devices(draft->schedule.params) : 0;
    if (asked > 0 && section->devices > 0 && asked != section->devices)
        return cs_json_invalid(&devices, error,
                               "must be %u, as /schedule/workers says, or one of the two not given "
                               "(got %u)",
                               asked, section->devices);
    if (section->devices == 0)
        section->devices = devices_needed(draft);
    if (section->devices > 0)
        return CS_OK;
    if (cs_json_member(draft->top.platform, "devices"))
        return cs_json_invalid(&devices, error, "must be > 0 (got 0)");
    if (draft->model.workload.name && kind->layout == CS_LAYOUT_PIPELINE)
        return cs_json_invalid(&devices, error,
                               "must be given for a pipeline of a named model: as many as stages, "
                               "at most %u, the layers of \"%s\"",
                               draft->scenario->model.n_layers, draft->scenario->model.name);
    bool needs_layers = draft->model.uniform && kind->layout == CS_LAYOUT_PIPELINE;
    return cs_json_invalid(&devices, error, "must be given for the schedule \"%s\"%s", kind->name,
                           needs_layers ? " if /model/uniform/layers is not" : "");
}

/* A uniform model with a layer for each device. */
static cs_status fill_pipeline(cs_draft *draft, cs_error *error)
{
    cs_json_place model = {.up = &draft->root, .key = "model"};
    cs_json_place uniform = {.up = &model, .key = "uniform"};
    cs_json_place layers = {.up = &uniform, .key = "layers"};
    if (draft->schedule.kind->layout == CS_LAYOUT_PIPELINE)
        return cs_draft_build_uniform(draft, draft->platform.devices, error);
    if (draft->schedule.kind->layout == CS_LAYOUT_PLACED)
        return cs_draft_build_uniform(draft,
                                      draft->schedule.kind->placement->n_stages(
                                          draft->schedule.params, draft->platform.devices),
                                      error);
    return cs_json_invalid(&layers, error, "must be given for the schedule \"%s\"",
                           draft->schedule.kind->name);
}

cs_status cs_draft_build_platform(cs_draft *draft, cs_error *error)
{
    cs_platform_section *section = &draft->platform;
    cs_status status = settle_devices(draft, error);
    if (status == CS_OK && draft->model.uniform && draft->uniform.layers == 0)
        status = fill_pipeline(draft, error);
    if (status != CS_OK)
        return status;
    status = settle_memory(draft, error);
    if (status != CS_OK)
        return status;
    cs_platform *platform = &draft->scenario->platform;
    status = cs_topology_build(section->kind, section->params, section->devices, platform, error);
    if (status != CS_OK)
        return status;
    platform->sharing = section->shared;
    platform->phi = section->coefficient;
    const cs_json_place place = {.up = &draft->root, .key = "platform"};
    const cs_status parts[] = {set_devices(draft, section->memory, memory_field, error),
                               set_aside(draft, error),
                               set_devices(draft, section->speed, speed_field, error),
                               cs_draft_check_noise(draft, &place, error)};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == CS_OK; i++)
        status = parts[i];
    return status;
}
