#include "sim/run/scenario/noise-section.h"
#include "sim/run/scenario/slowdown-section.h"

#include "sim/base/text.h"

#include <math.h>

/* index of the choice; "auto" leaves it to the topology */
enum { SHARING_AUTO, SHARING_NONE, SHARING_FIFO, SHARING_PHI, SHARING_MAX_MIN };
static const char *const sharing_names[] = {"auto", "none", "fifo", "phi", "max_min", NULL};
static const cs_sharing sharings[] = {CS_SHARING_NONE, CS_SHARING_NONE, CS_SHARING_FIFO,
                                      CS_SHARING_PHI, CS_SHARING_MAX_MIN};

enum { IN_ORDER, INDEPENDENT };
static const char *const messages_names[] = {"in_order", "independent", NULL};

static const cs_field memory_field = {"memory", CS_FIELD_BYTES, .min = 1, .large = true,
                                      .words =
                                          (const cs_field_word[]){{"unlimited", INFINITY}, {0}}};
static const cs_field reserve_field = {"reserve", CS_FIELD_BYTES, .large = true};
static const cs_field slowdown_field = {"slowdown", CS_FIELD_OBJECT,
                                        .of = cs_scenario_slowdown_fields,
                                        .size = sizeof(cs_slowdown_rule)};
static const cs_field speed_field = {"speed", CS_FIELD_NUMBER, .above_min = true};

const cs_field cs_scenario_platform_fields[] = {
    {"topology", CS_FIELD_TEXT, offsetof(cs_platform_section, topology),
     .doc = "one of `sim list topologies`"},
    {"devices", CS_FIELD_COUNT, offsetof(cs_platform_section, devices), .fallback = "0",
     .max = 1 << 20,
     .doc = "number of GPUs; 0: as many as the schedule needs (sequential: one; a pipeline of "
            "uniform layers or of a model file: one per layer), or all GPUs of a topology file; "
            "required for dp and for pipelines of named models"},
    {"memory", CS_FIELD_LIST, offsetof(cs_platform_section, memory), .fallback = "",
     .of = &memory_field, .each = true,
     .doc = "capacity of a device, or a list with one entry per device; default: the memory that "
            "the driver of the named model's device reports, else unlimited",
     .shape = "bytes, \"unlimited\" or [bytes, ...]"},
    {"reserve", CS_FIELD_LIST, offsetof(cs_platform_section, reserve), .fallback = "",
     .of = &reserve_field, .each = true,
     .doc = "memory per device that is set aside because its use is not simulated: the driver's "
            "context, communicators, fragmentation, library buffers; default: if \"memory\" is not "
            "given either, the context and the communicators (one per axis of the mesh with more "
            "than one rank) of the named model's device, else 0",
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
    {"messages", CS_FIELD_CHOICE, offsetof(cs_platform_section, messages), .fallback = "in_order",
     .choices = messages_names,
     .doc = "how messages with the same source, target and purpose are sent, except in "
            "collectives; in_order: one after another, as by NCCL and MPI; independent: all ready "
            "messages share the links"},
    {"blocking", CS_FIELD_BOOL, offsetof(cs_platform_section, blocking), .fallback = "false",
     .doc = "sender and receiver of a message between stages compute nothing until it has arrived"},
    {"slowdown", CS_FIELD_LIST, offsetof(cs_platform_section, slowdown), .fallback = "",
     .of = &slowdown_field, .each = true,
     .doc = "slows computations down while their device communicates; if several rules match, the "
            "last one applies",
     .shape = "{slowdown} or [{slowdown}, ...]"},
    {"jitter", CS_FIELD_OBJECT, offsetof(cs_platform_section, jitter), .fallback = "",
     .of = cs_noise_spread_fields, .size = sizeof(cs_spread),
     .doc = "share of the bandwidth that each link loses for the whole run", .shape = "{spread}"},
    {"stragglers", CS_FIELD_OBJECT, offsetof(cs_platform_section, stragglers), .fallback = "",
     .of = cs_scenario_stragglers_fields, .size = sizeof(cs_stragglers_section),
     .doc = "devices and computations that are slower", .shape = "{stragglers}"},
    {"background", CS_FIELD_OBJECT, offsetof(cs_platform_section, background), .fallback = "",
     .of = cs_scenario_background_fields, .size = sizeof(cs_background_section),
     .doc = "other traffic on the links", .shape = "{background}"},
    {0},
};

/* Sets one value for all devices. */
static cs_status settle_bytes(int64_t bytes, cs_arena *arena, cs_list *list, cs_error *error)
{
    int64_t *value = cs_arena_alloc(arena, 1, sizeof(*value));
    if (!value)
        return cs_error_no_memory(error);
    *value = bytes;
    *list = (cs_list){.n = 1, .one = true, .items = value};
    return CS_OK;
}

/* Returns the number of communicators of a device: one per axis of the mesh with more than one
 * rank. Replicas and context ranks share the communicator that reduces gradients. */
static int64_t communicators(const cs_parallel_section *parallel, uint32_t n_devices)
{
    const uint32_t widths[] = {parallel->tensor, parallel->filter, parallel->channel,
                               parallel->pipeline, parallel->context};
    uint64_t ranks = 1;
    int64_t n = parallel->expert > 1;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        ranks *= widths[i] > 1 ? widths[i] : 1;
        n += widths[i] > 1;
    }
    return n + (n_devices > ranks || (n == 0 && n_devices > 1));
}

cs_status cs_platform_section_settle(cs_platform_section *platform, const cs_device_facts *device,
                                     const cs_parallel_section *parallel, uint32_t n_devices,
                                     cs_arena *arena, cs_error *error)
{
    const cs_driver *driver = &device->driver;
    const bool known = !platform->memory.items && driver->reported > 0;
    int64_t reserve =
        known ? driver->context + driver->communicator * communicators(parallel, n_devices) : 0;
    if (reserve >= driver->reported)
        reserve = 0;
    if (!platform->memory.items)
        CS_TRY(settle_bytes(known ? driver->reported : INT64_MAX, arena, &platform->memory, error));
    return platform->reserve.items ? CS_OK
                                   : settle_bytes(reserve, arena, &platform->reserve, error);
}

/* Resolves `sharing` and `phi`. Writes the choice of "auto" into the section, so that the resolved
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
        return given ? cs_json_invalid(&place, error, "requires \"sharing\": \"phi\"") : CS_OK;
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

/* Finds the topology, which has to be known before the section's keys can be read. "ideal" is short
 * for {"topology": "ideal"}. */
static cs_status find_kind(const cJSON *value, const cs_json_place *place, cs_arena *arena,
                           const cs_topology **kind, cs_error *error)
{
    cs_json_place key = {.up = place, .key = "topology"};
    const cJSON *name = cJSON_IsString(value) ? value : cs_json_member(value, "topology");
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!cJSON_IsString(value) && !cJSON_IsObject(value))
        return cs_json_invalid(place, error, "must be an object or the name of a topology (got %s)",
                               cs_json_describe(value, got, sizeof(got)));
    if (cJSON_IsString(name))
        return cs_topology_named(name->valuestring, name == value ? place : &key, arena, kind,
                                 error);
    cs_guess guess;
    cs_guess_init(&guess, "");
    cs_topology_guess(&guess);
    return name ? cs_json_invalid(&key, error, "must be one of %s (got %s)", guess.known,
                                  cs_json_describe(name, got, sizeof(got)))
                : cs_json_invalid(place, error, "missing key \"topology\": must be one of %s",
                                  guess.known);
}

cs_status cs_platform_section_read(const cJSON *value, const cs_json_place *root,
                                   const cs_costs *costs, cs_arena *arena,
                                   cs_platform_section *section, cs_error *error)
{
    const cs_field_names measured = cs_scenario_measured_links(costs);
    const cs_json_place place = {.up = root, .key = "platform", .names = &measured};
    CS_TRY(find_kind(value, &place, arena, &section->kind, error));
    cJSON name_only = {.type = cJSON_Object}, name = {.type = cJSON_String};
    if (cJSON_IsString(value)) {
        name.string = (char *)(uintptr_t) "topology";
        name.valuestring = value->valuestring;
        name_only.child = &name;
        value = &name_only;
    }
    CS_TRY(cs_topology_params(section->kind, value, &place, cs_scenario_platform_fields, section,
                              arena, &section->params, error));
    section->no_devices = section->devices == 0 && cs_json_member(value, "devices");
    section->has_latency = cs_json_member(value, "latency") != NULL;
    CS_TRY(settle_sharing(section, &place, error));
    const cs_json_place messages_place = {.up = &place, .key = "messages"};
    section->independent_messages = section->messages == INDEPENDENT;
    if (section->independent_messages && section->shared == CS_SHARING_FIFO)
        return cs_json_invalid(&messages_place, error,
                               "must be \"in_order\" with \"sharing\": \"fifo\": a link carries "
                               "one message after another");
    CS_TRY(cs_scenario_slowdown(&section->slowdown, arena, &section->slowdowns, error));
    return cs_scenario_noise(section, &place, arena, &section->noise, error);
}
