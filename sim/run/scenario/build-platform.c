#include "sim/run/scenario/build.h"
#include "sim/run/scenario/noise-section.h"

#include <string.h>

/* ---- how many devices ---- */

/* By default, a pipeline has one device per layer of a model from a file or of a uniform model. For
 * networks this is hardly meant, so there the topology decides. */
cs_status cs_scenario_given_devices(const cs_sections *sections, uint32_t *n, cs_error *error)
{
    const cs_platform_section *section = &sections->platform;
    const cs_schedule *kind = sections->schedule.kind;
    const bool fills =
        cs_mesh_fills(kind, sections->schedule.params, sections->model.workload.name != NULL);
    *n = section->devices;
    if (*n > 0 || !section->kind->devices || !(fills || sections->parallel.given))
        return CS_OK;
    return section->kind->devices(section->params, n, error);
}

static cs_status refuse_none(const cs_sections *sections, const cs_model *model,
                             const cs_json_place *devices, cs_error *error)
{
    const cs_schedule *kind = sections->schedule.kind;
    const bool per_layer = kind->mesh.pipeline == CS_LENGTH_LAYERS;
    if (sections->platform.no_devices)
        return cs_json_invalid(devices, error, "must be > 0 (got 0)");
    if (sections->model.workload.name && per_layer)
        return cs_json_invalid(devices, error,
                               "must be given for a pipeline of a named model: as many as stages, "
                               "at most %u, the layers of \"%s\"",
                               model->n_layers, model->name);
    const bool needs_layers = sections->model.uniform && per_layer;
    return cs_json_invalid(devices, error, "must be given for the schedule \"%s\"%s", kind->name,
                           needs_layers ? " if /model/uniform/layers is not" : "");
}

/* Fails if the schedule and the platform require different numbers. */
cs_status cs_scenario_devices(const cs_sections *sections, uint32_t given, const cs_model *model,
                              uint32_t *n, cs_error *error)
{
    const cs_schedule *kind = sections->schedule.kind;
    const void *params = sections->schedule.params;
    const cs_json_place place = {.up = &sections->root, .key = "platform"};
    const cs_json_place devices = {.up = &place, .key = "devices"};
    const uint32_t only = cs_mesh_only(kind, params, model->n_layers);
    if (only > 0 && given > 0 && only != given) {
        (void)cs_json_invalid(&devices, error,
                              "the schedule \"%s\" with these parameters has %u devices (got %u)",
                              kind->name, only, given);
        cs_error_propose(error, true, "/platform/devices", "%u", only);
        cs_error_propose(error, true, "/schedule/micro_batches", "%u", given);
        return CS_INVALID;
    }
    *n = given > 0 ? given
                   : cs_mesh_devices(kind, params, model->n_layers,
                                     sections->model.workload.name != NULL);
    return *n > 0 ? CS_OK : refuse_none(sections, model, &devices, error);
}

/* ---- the platform ---- */

/* Checks that a list has one entry per device. */
static cs_status check_entries(const cs_list *list, uint32_t n, const cs_json_place *section,
                               const char *key, cs_error *error)
{
    const cs_json_place place = {.up = section, .key = key};
    if (list->one || list->n == n)
        return CS_OK;
    return cs_json_invalid(&place, error, "must have one entry for each of %u devices (got %u)", n,
                           list->n);
}

/* Subtracts the reserve from the capacity. */
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

/* Returns the index of a device's value: its own, or 0 if one is for all. */
static size_t entry(const cs_list *list, uint32_t device)
{
    return list->one ? 0 : device;
}

static cs_status set_devices(const cs_platform_section *given, const cs_json_place *section,
                             cs_platform *platform, cs_error *error)
{
    const uint32_t n = platform->n_devices;
    const cs_status lengths[] = {check_entries(&given->memory, n, section, "memory", error),
                                 check_entries(&given->reserve, n, section, "reserve", error),
                                 check_entries(&given->speed, n, section, "speed", error)};
    cs_status status = CS_OK;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && status == CS_OK; i++)
        status = lengths[i];
    for (uint32_t d = 0; d < n && status == CS_OK; d++) {
        cs_device *device = &platform->devices[d];
        device->capacity = ((const int64_t *)given->memory.items)[entry(&given->memory, d)];
        device->speed = ((const double *)given->speed.items)[entry(&given->speed, d)];
        status =
            set_aside(device, d, ((const int64_t *)given->reserve.items)[entry(&given->reserve, d)],
                      section, error);
    }
    return status;
}

/* Candidates of a search share a platform, but need different numbers of communicators, and by
 * default memory is reserved for each communicator. */
cs_status cs_scenario_take_capacities(const cs_sections *sections, cs_arena *arena,
                                      cs_platform *platform, cs_error *error)
{
    const cs_platform_section *section = &sections->platform;
    const cs_json_place place = {.up = &sections->root, .key = "platform"};
    const uint32_t n = platform->n_devices;
    const int64_t reserve = *(const int64_t *)section->reserve.items;
    if (n == 0 || !section->reserve.one || platform->devices[0].reserve == reserve)
        return CS_OK;
    cs_device *own = cs_arena_alloc(arena, n, sizeof(*own));
    if (!own)
        return cs_error_no_memory(error);
    memcpy(own, platform->devices, n * sizeof(*own));
    platform->devices = own;
    return set_devices(section, &place, platform, error);
}

cs_status cs_scenario_platform(const cs_sections *sections, uint32_t n_devices,
                               cs_platform *platform, cs_error *error)
{
    const cs_json_place place = {.up = &sections->root, .key = "platform"};
    const cs_platform_section *section = &sections->platform;
    CS_TRY(cs_topology_build(section->kind, section->params, n_devices, platform, error));
    platform->sharing = section->shared;
    platform->phi = section->coefficient;
    platform->independent_messages = section->independent_messages;
    const cs_status status = set_devices(section, &place, platform, error);
    const cs_status noise =
        cs_scenario_check_noise(&section->noise, platform->n_devices, &place, error);
    return status == CS_OK ? noise : status;
}
