#include "sim/run/scenario/noise-section.h"

#include <inttypes.h>

#define SPREAD .of = cs_noise_spread_fields, .size = sizeof(cs_spread), .shape = "{spread}"

const cs_field cs_scenario_stragglers_fields[] = {
    {"devices", CS_FIELD_OBJECT, offsetof(cs_stragglers_section, devices), .fallback = "", SPREAD,
     .doc = "x of each device, for the whole run: all its computations take 1 + x times as long"},
    {"tasks", CS_FIELD_OBJECT, offsetof(cs_stragglers_section, tasks), .fallback = "", SPREAD,
     .doc = "x of each computation, which takes 1 + x times as long"},
    {0}};

static const cs_field device_field = {"device", CS_FIELD_COUNT};
static const cs_field pair_field = {"pair", CS_FIELD_LIST, .of = &device_field, .least = 2,
                                    .most = 2};

const cs_field cs_scenario_background_fields[] = {
    {"flows", CS_FIELD_COUNT, offsetof(cs_background_section, flows), .fallback = "0",
     .max = 1 << 16,
     .doc = "number of message sources; each sends from one device to another, both drawn at "
            "random for every run"},
    {"pairs", CS_FIELD_LIST, offsetof(cs_background_section, pairs), .fallback = "",
     .of = &pair_field, .least = 1,
     .doc = "instead of flows: one source per pair, from the first device to the second",
     .shape = "[[device, device], ...]"},
    {"bytes", CS_FIELD_BYTES, offsetof(cs_background_section, bytes), .min = 1,
     .doc = "size of a message"},
    {"gap", CS_FIELD_TIME, offsetof(cs_background_section, gap), .fallback = "0 s",
     .doc = "mean pause of a source between two messages, exponentially distributed; 0: no pause"},
    {0}};

/* Leaves `spread` zeroed if it is not given. */
static cs_status take_spread(const cs_spread *given, const cs_json_place *section, const char *key,
                             bool shares, cs_spread *spread, cs_error *error)
{
    const cs_json_place place = {.up = section, .key = key};
    if (!given)
        return CS_OK;
    *spread = *given;
    return cs_spread_check(spread, shares, &place, error);
}

static cs_status take_stragglers(const cs_stragglers_section *section,
                                 const cs_json_place *platform, cs_noise *noise, cs_error *error)
{
    const cs_json_place place = {.up = platform, .key = "stragglers"};
    if (!section)
        return CS_OK;
    const cs_status devices =
        take_spread(section->devices, &place, "devices", false, &noise->slow_devices, error);
    const cs_status tasks =
        take_spread(section->tasks, &place, "tasks", false, &noise->slow_tasks, error);
    return devices == CS_OK ? tasks : devices;
}

static cs_status take_background(const cs_background_section *section, cs_sharing sharing,
                                 const cs_json_place *platform, cs_arena *arena, cs_noise *noise,
                                 cs_error *error)
{
    const cs_json_place place = {.up = platform, .key = "background"};
    if (!section)
        return CS_OK;
    if ((section->flows > 0) == (section->pairs.n > 0))
        return cs_json_invalid(&place, error, "must have one of \"flows\" and \"pairs\"");
    if (sharing == CS_SHARING_NONE || sharing == CS_SHARING_PHI)
        return cs_json_invalid(&place, error,
                               "needs a \"sharing\" with contention between messages: fifo, "
                               "max_min, or phi with \"count\"");
    noise->n_sources = section->flows;
    noise->bytes = section->bytes;
    noise->gap = section->gap;
    if (section->pairs.n <= 0)
        return CS_OK;
    const cs_json_place pairs_place = {.up = &place, .key = "pairs"};
    const cs_list *ends = section->pairs.items;
    noise->n_sources = section->pairs.n;
    noise->pairs = cs_arena_alloc(arena, section->pairs.n, sizeof(*noise->pairs));
    if (!noise->pairs)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < section->pairs.n; i++) {
        const cs_json_place at = {.up = &pairs_place, .index = (int)i};
        const uint32_t *devices = ends[i].items;
        if (devices[0] == devices[1])
            return cs_json_invalid(&at, error, "must be two different devices");
        noise->pairs[i] = (cs_pair){devices[0], devices[1]};
    }
    return CS_OK;
}

cs_status cs_scenario_noise(const cs_platform_section *section, const cs_json_place *platform,
                            cs_arena *arena, cs_noise *noise, cs_error *error)
{
    const cs_status jitter =
        take_spread(section->jitter, platform, "jitter", true, &noise->jitter, error);
    const cs_status stragglers = take_stragglers(section->stragglers, platform, noise, error);
    const cs_status background =
        take_background(section->background, section->shared, platform, arena, noise, error);
    return jitter != CS_OK ? jitter : stragglers != CS_OK ? stragglers : background;
}

cs_status cs_scenario_check_noise(const cs_noise *noise, uint32_t n_devices,
                                  const cs_json_place *platform, cs_error *error)
{
    const cs_json_place background = {.up = platform, .key = "background"};
    const cs_json_place pairs = {.up = &background, .key = "pairs"};
    if (noise->n_sources > 0 && n_devices < 2)
        return cs_json_invalid(&background, error, "needs two devices at least");
    for (uint32_t i = 0; noise->pairs && i < noise->n_sources; i++) {
        const cs_json_place at = {.up = &pairs, .index = (int)i};
        const cs_pair pair = noise->pairs[i];
        if (pair.source >= n_devices || pair.target >= n_devices)
            return cs_json_invalid(
                &at, error, "must be devices from 0 to %" PRIu32 " (got %" PRIu32 ")",
                n_devices - 1, pair.source >= n_devices ? pair.source : pair.target);
    }
    return CS_OK;
}
