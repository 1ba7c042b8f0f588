#include "sim/scenario/noise-section.h"

#include <inttypes.h>

const cs_field cs_scenario_stragglers_fields[] = {
    {"devices", CS_FIELD_JSON, offsetof(cs_stragglers_section, devices), .fallback = "",
     .doc = "x of each device, for the whole run: all that it computes takes 1 + x times as long",
     .shape = "{spread}"},
    {"tasks", CS_FIELD_JSON, offsetof(cs_stragglers_section, tasks), .fallback = "",
     .doc = "x of each computation", .shape = "{spread}"},
    {0}};

const cs_field cs_scenario_background_fields[] = {
    {"flows", CS_FIELD_COUNT, offsetof(cs_background_section, flows), .fallback = "0",
     .max = 1 << 16, .doc = "sources of messages, each between two devices drawn in every run"},
    {"pairs", CS_FIELD_JSON, offsetof(cs_background_section, pairs), .fallback = "",
     .doc = "instead of flows: a source for each, from the first device to the second",
     .shape = "[[device, device], ...]"},
    {"bytes", CS_FIELD_BYTES, offsetof(cs_background_section, bytes), .min = 1,
     .doc = "of a message"},
    {"gap", CS_FIELD_TIME, offsetof(cs_background_section, gap), .fallback = "0 s",
     .doc = "mean time, exponentially distributed, from the end of a source's message to its next; "
            "0: none"},
    {0}};

/* Nothing where there is no such object. */
static cs_status read_spread(const cJSON *value, const cs_json_place *section, const char *key,
                             bool shares, cs_arena *arena, cs_spread *spread, cs_error *error)
{
    const cs_json_place place = {.up = section, .key = key};
    if (!value)
        return CS_OK;
    const cs_status status =
        cs_field_read(value, &place, (const cs_field *const[]){cs_noise_spread_fields, NULL},
                      (void *const[]){spread}, arena, error);
    return status == CS_OK ? cs_spread_check(spread, shares, &place, error) : status;
}

static cs_status read_stragglers(const cJSON *value, const cs_json_place *platform, cs_arena *arena,
                                 cs_noise *noise, cs_error *error)
{
    const cs_json_place place = {.up = platform, .key = "stragglers"};
    cs_stragglers_section section;
    if (!value)
        return CS_OK;
    cs_status status =
        cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_stragglers_fields, NULL},
                      (void *const[]){&section}, arena, error);
    if (status != CS_OK)
        return status;
    status =
        read_spread(section.devices, &place, "devices", false, arena, &noise->slow_devices, error);
    const cs_status tasks =
        read_spread(section.tasks, &place, "tasks", false, arena, &noise->slow_tasks, error);
    return status == CS_OK ? tasks : status;
}

static cs_status read_pair(const cJSON *value, const cs_json_place *place, cs_pair *pair,
                           cs_error *error)
{
    double ends[2];
    uint32_t n;
    if (!cJSON_IsArray(value) || cJSON_GetArraySize(value) != 2)
        return cs_json_invalid(place, error, "must be a list of two devices");
    const cs_status status = cs_topology_numbers(value, place, 0, true, 2, ends, &n, error);
    if (status != CS_OK)
        return status;
    *pair = (cs_pair){(uint32_t)ends[0], (uint32_t)ends[1]};
    return pair->source != pair->target
               ? CS_OK
               : cs_json_invalid(place, error, "must be two different devices");
}

static cs_status read_pairs(const cJSON *list, const cs_json_place *background, cs_arena *arena,
                            cs_noise *noise, cs_error *error)
{
    const cs_json_place place = {.up = background, .key = "pairs"};
    if (!cJSON_IsArray(list) || !list->child)
        return cs_json_invalid(&place, error, "must be a list of pairs (got %s)",
                               cs_json_kind(list));
    noise->n_sources = (uint32_t)cJSON_GetArraySize(list);
    noise->pairs = cs_arena_alloc(arena, noise->n_sources, sizeof(*noise->pairs));
    if (!noise->pairs)
        return cs_error_no_memory(error);
    cs_status status = CS_OK;
    const cJSON *value = list->child;
    for (uint32_t i = 0; i < noise->n_sources && status == CS_OK; i++, value = value->next) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        status = read_pair(value, &at, &noise->pairs[i], error);
    }
    return status;
}

static cs_status read_background(cs_draft *draft, const cs_json_place *platform, cs_error *error)
{
    const cs_json_place place = {.up = platform, .key = "background"};
    cs_noise *noise = &draft->scenario->noise;
    const cs_sharing sharing = draft->platform.shared;
    cs_background_section section;
    if (!draft->platform.background)
        return CS_OK;
    cs_status status = cs_field_read(draft->platform.background, &place,
                                     (const cs_field *const[]){cs_scenario_background_fields, NULL},
                                     (void *const[]){&section}, &draft->scenario->arena, error);
    if (status != CS_OK)
        return status;
    if ((section.flows > 0) == (section.pairs != NULL))
        return cs_json_invalid(&place, error, "must have one of \"flows\" and \"pairs\"");
    if (sharing == CS_SHARING_NONE || sharing == CS_SHARING_PHI)
        return cs_json_invalid(&place, error,
                               "needs a \"sharing\" by which messages meet: fifo, max_min, or phi "
                               "with \"count\"");
    noise->n_sources = section.flows;
    noise->bytes = section.bytes;
    noise->gap = section.gap;
    return section.pairs ? read_pairs(section.pairs, &place, &draft->scenario->arena, noise, error)
                         : CS_OK;
}

cs_status cs_draft_read_noise(cs_draft *draft, const cs_json_place *platform, cs_error *error)
{
    cs_noise *noise = &draft->scenario->noise;
    cs_arena *arena = &draft->scenario->arena;
    const cs_status jitter =
        read_spread(draft->platform.jitter, platform, "jitter", true, arena, &noise->jitter, error);
    const cs_status stragglers =
        read_stragglers(draft->platform.stragglers, platform, arena, noise, error);
    const cs_status background = read_background(draft, platform, error);
    return jitter != CS_OK ? jitter : stragglers != CS_OK ? stragglers : background;
}

cs_status cs_draft_check_noise(const cs_draft *draft, const cs_json_place *platform,
                               cs_error *error)
{
    const cs_noise *noise = &draft->scenario->noise;
    const uint32_t n = draft->scenario->platform.n_devices;
    const cs_json_place background = {.up = platform, .key = "background"};
    const cs_json_place pairs = {.up = &background, .key = "pairs"};
    if (noise->n_sources > 0 && n < 2)
        return cs_json_invalid(&background, error, "needs two devices at least");
    for (uint32_t i = 0; noise->pairs && i < noise->n_sources; i++) {
        const cs_json_place at = {.up = &pairs, .index = (int)i};
        const cs_pair pair = noise->pairs[i];
        if (pair.source >= n || pair.target >= n)
            return cs_json_invalid(&at, error,
                                   "must be devices from 0 to %" PRIu32 " (got %" PRIu32 ")", n - 1,
                                   pair.source >= n ? pair.source : pair.target);
    }
    return CS_OK;
}
