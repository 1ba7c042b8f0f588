#include "topologies/platform.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* So that topologies may count a few links per device in 32 bits without a check of their own. */
enum { MOST_DEVICES = 1 << 24 };

void cs_platform_finish(cs_platform *platform)
{
    if (!platform)
        return;
    cs_arena_finish(&platform->arena);
    *platform = (cs_platform){0};
}

static cs_status allocate(cs_platform *platform, cs_error *error)
{
    platform->devices = cs_arena_alloc(&platform->arena, platform->n_devices, sizeof(cs_device));
    platform->links = cs_arena_alloc(&platform->arena, platform->n_links, sizeof(cs_link));
    if (!platform->devices || !platform->links)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < platform->n_devices; i++)
        platform->devices[i] = (cs_device){.speed = 1, .capacity = INT64_MAX};
    return CS_OK;
}

cs_status cs_platform_init(cs_platform *platform, const char *topology, uint32_t n_devices,
                           uint32_t n_links, cs_error *error)
{
    if (n_devices == 0 || n_devices > MOST_DEVICES)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: the number of devices must be from 1 to %d "
                            "(got %" PRIu32 ")",
                            topology, MOST_DEVICES, n_devices);
    cs_platform made = {.topology = topology,
                        .n_devices = n_devices,
                        .n_links = n_links,
                        .sharing = CS_SHARING_NONE,
                        .phi = 1};
    cs_arena_init(&made.arena);
    cs_status status = allocate(&made, error);
    if (status != CS_OK) {
        cs_platform_finish(&made);
        return status;
    }
    *platform = made;
    return CS_OK;
}

static char *format_name(cs_arena *arena, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    char *name = length < 0 ? NULL : cs_arena_alloc(arena, (size_t)length + 1, 1);
    if (name)
        (void)vsnprintf(name, (size_t)length + 1, format, again);
    va_end(again);
    return name;
}

cs_status cs_platform_link(cs_platform *platform, uint32_t link, double bandwidth, cs_time latency,
                           cs_error *error, const char *format, ...)
{
    assert(link < platform->n_links);
    va_list arguments;
    va_start(arguments, format);
    const char *name = format_name(&platform->arena, format, arguments);
    va_end(arguments);
    if (!name)
        return cs_error_no_memory(error);
    if (!(bandwidth > 0)) /* this way round it refuses NaN as well */
        return cs_error_add(error, CS_INVALID,
                            "topology %s: link \"%s\": bandwidth must be > 0 bytes/s (got %g)",
                            platform->topology, name, bandwidth);
    if (latency < 0)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: link \"%s\": latency must be >= 0 (got %" PRId64 " ps)",
                            platform->topology, name, latency);
    platform->links[link] = (cs_link){.name = name, .bandwidth = bandwidth, .latency = latency};
    return CS_OK;
}

static cs_status add_up(const cs_platform *platform, const uint32_t *route, uint32_t length,
                        cs_time *latency, double *bandwidth, cs_error *error)
{
    cs_time sum = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < length; i++) {
        const cs_link *link = &platform->links[route[i]];
        if (!cs_time_add(sum, link->latency, &sum))
            return cs_error_add(error, CS_OVERFLOW,
                                "topology %s: the latencies of a route with link \"%s\" add up to "
                                "more than 2^63 ps",
                                platform->topology, link->name);
        least = fmin(least, link->bandwidth);
    }
    *latency = sum;
    *bandwidth = least;
    return CS_OK;
}

cs_status cs_platform_path(const cs_platform *platform, uint32_t source, uint32_t target,
                           cs_time *latency, double *bandwidth, cs_error *error)
{
    assert(source < platform->n_devices && target < platform->n_devices);
    uint32_t *route = malloc(((size_t)platform->longest_route + 1) * sizeof(*route));
    if (!route)
        return cs_error_no_memory(error);
    const uint32_t length = platform->route(platform, source, target, route);
    assert(length <= platform->longest_route);
    const cs_status status = add_up(platform, route, length, latency, bandwidth, error);
    free(route);
    return status;
}
