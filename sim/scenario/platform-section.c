#include "sim/scenario/noise-section.h"

#include "sim/base/text.h"

#include <math.h>

/* The position of a sharing in the choices; the first one leaves it to the topology. */
enum { SHARING_AUTO, SHARING_NONE, SHARING_FIFO, SHARING_PHI, SHARING_MAX_MIN };
static const char *const sharing_names[] = {"auto", "none", "fifo", "phi", "max_min", NULL};
static const cs_sharing sharings[] = {CS_SHARING_NONE, CS_SHARING_NONE, CS_SHARING_FIFO,
                                      CS_SHARING_PHI, CS_SHARING_MAX_MIN};

static const cs_field memory_field = {"memory", CS_FIELD_BYTES, .min = 1,
                                      .words =
                                          (const cs_field_word[]){{"unlimited", INFINITY}, {0}}};
static const cs_field reserve_field = {"reserve", CS_FIELD_BYTES};
static const cs_field speed_field = {"speed", CS_FIELD_NUMBER, .above_min = true};

const cs_field cs_scenario_platform_fields[] = {
    {"topology", CS_FIELD_TEXT, offsetof(cs_platform_section, topology),
     .doc = "one of `sim list topologies`"},
    {"devices", CS_FIELD_COUNT, offsetof(cs_platform_section, devices), .fallback = "0",
     .max = 1 << 20,
     .doc =
         "GPUs; 0: as many as the schedule needs, one for sequential and one per layer for a "
         "pipeline of uniform layers or of a model file; required of dp and of pipelines of named "
         "models; with a topology from a file, all GPUs of the file"},
    {"memory", CS_FIELD_LIST, offsetof(cs_platform_section, memory), .fallback = "",
     .of = &memory_field, .each = true,
     .doc = "capacity of a device, or a list with one entry per device; default: the memory of the "
            "named model's device, else unlimited",
     .shape = "bytes, \"unlimited\" or [bytes, ...]"},
    {"reserve", CS_FIELD_LIST, offsetof(cs_platform_section, reserve), .fallback = "0",
     .of = &reserve_field, .each = true,
     .doc = "memory of a device set aside for what is not simulated: the driver's context, "
            "fragmentation, buffers of libraries",
     .shape = "bytes or [bytes, ...]"},
    {"speed", CS_FIELD_LIST, offsetof(cs_platform_section, speed), .fallback = "1",
     .of = &speed_field, .each = true,
     .doc = "speed relative to the model's times: a device with speed 2 takes half the time; one "
            "number, or a list with one per device",
     .shape = "number or [number, ...]"},
    {"sharing", CS_FIELD_CHOICE, offsetof(cs_platform_section, sharing), .fallback = "auto",
     .choices = sharing_names,
     .doc = "how transfers share links; auto: fifo on a ring, which has no switches, else max_min"},
    {"phi", CS_FIELD_NUMBER, offsetof(cs_platform_section, phi), .fallback = "", .min = 1,
     .words = (const cs_field_word[]){{"count", CS_PHI_COUNT}, {0}},
     .doc = "required with sharing phi: the contention coefficient, or \"count\" for the number of "
            "transfers on the link"},
    {"blocking", CS_FIELD_BOOL, offsetof(cs_platform_section, blocking), .fallback = "false",
     .doc = "messages between stages occupy the compute of sender and receiver"},
    {"jitter", CS_FIELD_OBJECT, offsetof(cs_platform_section, jitter), .fallback = "",
     .of = cs_noise_spread_fields, .size = sizeof(cs_spread),
     .doc = "share of its bandwidth that each link loses, for the whole run", .shape = "{spread}"},
    {"stragglers", CS_FIELD_OBJECT, offsetof(cs_platform_section, stragglers), .fallback = "",
     .of = cs_scenario_stragglers_fields, .size = sizeof(cs_stragglers_section),
     .doc = "devices and computations that take longer", .shape = "{stragglers}"},
    {"background", CS_FIELD_OBJECT, offsetof(cs_platform_section, background), .fallback = "",
     .of = cs_scenario_background_fields, .size = sizeof(cs_background_section),
     .doc = "other traffic on the links", .shape = "{background}"},
    {0},
};

/* What is taken for the section's memory when it has none: a named model knows which device it runs
 * on. Put into the section, so that the resolved scenario shows it. */
static cs_status settle_memory(cs_draft *draft, cs_error *error)
{
    const int64_t of_device = draft->model.device_memory;
    if (draft->platform.memory.items)
        return CS_OK;
    int64_t *value = cs_arena_alloc(&draft->scenario->arena, 1, sizeof(*value));
    if (!value)
        return cs_error_no_memory(error);
    *value = of_device > 0 ? of_device : INT64_MAX;
    draft->platform.memory = (cs_list){.n = 1, .one = true, .items = value};
    return CS_OK;
}

/* A list has an entry for each device. */
static cs_status check_entries(const cs_draft *draft, const cs_list *list, const char *key,
                               cs_error *error)
{
    const cs_json_place section = {.up = &draft->root, .key = "platform"};
    const cs_json_place place = {.up = &section, .key = key};
    const uint32_t n = draft->scenario->platform.n_devices;
    if (list->one || list->n == n)
        return CS_OK;
    return cs_json_invalid(&place, error, "must have one entry for each of %u devices (got %u)", n,
                           list->n);
}

/* The rest is the capacity. */
static cs_status set_aside(cs_device *device, uint32_t number, int64_t bytes,
                           const cs_json_place *section, cs_error *error)
{
    const cs_json_place place = {.up = section, .key = "reserve"};
    if (bytes > 0 && device->capacity == INT64_MAX)
        return cs_json_invalid(&place, error,
                               "must be 0 for device %u, whose memory is unlimited (got %lld)",
                               number, (long long)bytes);
    if (bytes >= device->capacity)
        return cs_json_invalid(&place, error,
                               "must leave device %u some of its memory of %lld bytes (got %lld)",
                               number, (long long)device->capacity, (long long)bytes);
    device->reserve = bytes;
    if (bytes > 0)
        device->capacity -= bytes;
    return CS_OK;
}

/* The value for a device: its own, or that of all. */
static size_t entry(const cs_list *list, uint32_t device)
{
    return list->one ? 0 : device;
}

static cs_status set_devices(cs_draft *draft, cs_error *error)
{
    const cs_json_place section = {.up = &draft->root, .key = "platform"};
    const cs_platform_section *given = &draft->platform;
    cs_platform *platform = &draft->scenario->platform;
    const cs_status lengths[] = {check_entries(draft, &given->memory, "memory", error),
                                 check_entries(draft, &given->reserve, "reserve", error),
                                 check_entries(draft, &given->speed, "speed", error)};
    cs_status status = CS_OK;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && status == CS_OK; i++)
        status = lengths[i];
    for (uint32_t d = 0; d < platform->n_devices && status == CS_OK; d++) {
        cs_device *device = &platform->devices[d];
        device->capacity = ((const int64_t *)given->memory.items)[entry(&given->memory, d)];
        device->speed = ((const double *)given->speed.items)[entry(&given->speed, d)];
        status =
            set_aside(device, d, ((const int64_t *)given->reserve.items)[entry(&given->reserve, d)],
                      &section, error);
    }
    return status;
}

/* What `sharing` and `phi` say together; `auto` is settled in the section, so that the resolved
 * scenario shows it. */
static cs_status settle_sharing(cs_platform_section *platform, const cs_json_place *section,
                                cs_error *error)
{
    const bool given = !isnan(platform->phi);
    const cs_json_place place = {.up = section, .key = "phi"};
    if (platform->sharing == SHARING_AUTO)
        platform->sharing =
            cs_topology_sharing(platform->kind) == CS_SHARING_FIFO ? SHARING_FIFO : SHARING_MAX_MIN;
    platform->shared = sharings[platform->sharing];
    platform->coefficient = 1;
    if (platform->shared != CS_SHARING_PHI)
        return given ? cs_json_invalid(&place, error, "goes with \"sharing\": \"phi\" only")
                     : CS_OK;
    if (!given)
        return cs_json_invalid(&place, error,
                               "must be given with \"sharing\": \"phi\": a number >= 1 or "
                               "\"count\"");
    if (platform->phi > CS_PHI_COUNT)
        platform->coefficient = platform->phi;
    else
        platform->shared = CS_SHARING_COUNT;
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
    const cs_field_names measured = cs_scenario_measured_links(&draft->costs);
    cs_json_place place = {.up = &draft->root, .key = "platform", .names = &measured};
    const cJSON *value = draft->top.platform;
    cs_arena *arena = &draft->scenario->arena;
    CS_TRY(find_kind(draft, value, &place, error));
    cJSON name_only = {.type = cJSON_Object}, name = {.type = cJSON_String};
    if (cJSON_IsString(value)) {
        name.string = (char *)(uintptr_t) "topology";
        name.valuestring = value->valuestring;
        name_only.child = &name;
        value = &name_only;
    }
    cs_status status =
        cs_topology_params(draft->platform.kind, value, &place, cs_scenario_platform_fields,
                           &draft->platform, arena, &draft->platform.params, error);
    if (status == CS_OK)
        status = settle_sharing(&draft->platform, &place, error);
    if (status == CS_OK)
        status = cs_scenario_noise(&draft->platform, &place, arena, &draft->scenario->noise, error);
    return status;
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
    CS_TRY(settle_memory(draft, error));
    cs_platform *platform = &draft->scenario->platform;
    CS_TRY(cs_topology_build(section->kind, section->params, section->devices, platform, error));
    platform->sharing = section->shared;
    platform->phi = section->coefficient;
    const cs_json_place place = {.up = &draft->root, .key = "platform"};
    status = set_devices(draft, error);
    const cs_status noise = cs_draft_check_noise(draft, &place, error);
    return status == CS_OK ? noise : status;
}
