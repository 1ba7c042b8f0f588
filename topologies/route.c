#include "topologies/route.h"

#include "topologies/link-rings.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static cs_status add_up(const cs_platform *platform, const uint32_t *links, cs_route *route,
                        cs_error *error)
{
    for (uint32_t i = 0; i < route->n; i++) {
        const cs_link *link = &platform->links[links[i]];
        if (!cs_time_add(route->latency, link->latency, &route->latency))
            return cs_error_add(error, CS_OVERFLOW,
                                "topology %s: the latencies of a route with link \"%s\" add up to "
                                "more than 2^63 ps",
                                platform->topology, link->name);
        route->bandwidth = fmin(route->bandwidth, link->bandwidth);
    }
    return CS_OK;
}

cs_status cs_route_find(const cs_platform *platform, uint32_t source, uint32_t target,
                        uint32_t *links, cs_route *route, cs_error *error)
{
    assert(source < platform->n_devices && target < platform->n_devices);
    uint32_t *own = links ? NULL : malloc(((size_t)platform->longest_route + 1) * sizeof(*own));
    if (!links && !own)
        return cs_error_no_memory(error);
    cs_route found = {.links = links, .bandwidth = INFINITY};
    found.n = platform->route(platform, source, target, links ? links : own);
    assert(found.n <= platform->longest_route);
    const cs_status status = add_up(platform, links ? links : own, &found, error);
    free(own);
    if (status == CS_OK)
        *route = found;
    return status;
}

cs_status cs_messages_init(cs_messages *messages, const cs_platform *platform, cs_error *error)
{
    *messages = (cs_messages){
        .platform = platform,
        .bandwidth = INFINITY,
        .alike = true,
        .apart = true,
        .route = malloc(((size_t)platform->longest_route + 1) * sizeof(*messages->route)),
        .users = calloc((size_t)platform->n_links + 1, sizeof(*messages->users))};
    if (messages->route && messages->users)
        return CS_OK;
    cs_messages_finish(messages);
    return cs_error_no_memory(error);
}

void cs_messages_finish(cs_messages *messages)
{
    free(messages->route);
    free(messages->users);
    *messages = (cs_messages){0};
}

cs_status cs_messages_add(cs_messages *messages, uint32_t source, uint32_t target, uint64_t user,
                          cs_error *error)
{
    cs_route found;
    CS_TRY(cs_route_find(messages->platform, source, target, messages->route, &found, error));
    if (messages->n++ == 0) {
        messages->latency = found.latency;
        messages->bandwidth = found.bandwidth;
    }
    messages->alike &= found.latency == messages->latency && found.bandwidth == messages->bandwidth;
    for (uint32_t i = 0; i < found.n; i++) {
        uint64_t *last = &messages->users[found.links[i]];
        messages->apart &= *last == 0 || *last == user + 1;
        *last = user + 1;
    }
    return CS_OK;
}

cs_status cs_messages_init_ring(cs_messages *messages, const cs_platform *platform, uint32_t n,
                                cs_error *error)
{
    CS_TRY(cs_messages_init(messages, platform, error));
    cs_status status = CS_OK;
    for (uint32_t d = 0; n > 1 && d < n && status == CS_OK; d++)
        status = cs_messages_add(messages, d, (d + 1) % n, d, error);
    if (status != CS_OK)
        cs_messages_finish(messages);
    return status;
}

bool cs_messages_are_equal(const cs_messages *messages)
{
    return messages->alike && (messages->apart || !cs_links_are_contended(messages->platform));
}

/* ---- rings ---- */

static uint32_t next_in_ring(const cs_rings *rings, uint32_t device)
{
    const uint32_t member = device / rings->stride % rings->size;
    return member + 1 < rings->size ? device + rings->stride : device - member * rings->stride;
}

static uint32_t device_of(const cs_rings *rings, uint32_t number)
{
    return rings->devices ? rings->devices[number] : number;
}

static double shared_bandwidth(const cs_platform *platform, const cs_route *route,
                               const uint32_t *messages)
{
    double bandwidth = INFINITY;
    for (uint32_t i = 0; i < route->n; i++) {
        const double all = platform->links[route->links[i]].bandwidth;
        bandwidth = fmin(bandwidth,
                         cs_links_are_contended(platform) ? all / messages[route->links[i]] : all);
    }
    return platform->sharing == CS_SHARING_PHI ? bandwidth / platform->phi : bandwidth;
}

/* Counts the messages on each link or, given `slowest`, finds the slowest message from the
 * counts. */
static cs_status walk_rings(const cs_platform *platform, const cs_rings *rings, uint32_t *links,
                            uint32_t *messages, cs_ring_hop *slowest, cs_error *error)
{
    const uint32_t end = rings->alone ? rings->size * rings->stride : rings->n;
    for (uint32_t d = 0; d < end; d += rings->alone ? rings->stride : 1) {
        cs_route route;
        CS_TRY(cs_route_find(platform, device_of(rings, d),
                             device_of(rings, next_in_ring(rings, d)), links, &route, error));
        for (uint32_t i = 0; !slowest && i < route.n; i++)
            messages[links[i]]++;
        if (!slowest)
            continue;
        slowest->latency = route.latency > slowest->latency ? route.latency : slowest->latency;
        slowest->bandwidth = fmin(slowest->bandwidth, shared_bandwidth(platform, &route, messages));
    }
    return CS_OK;
}

static cs_status walk_twice(const cs_platform *platform, const cs_rings *rings, cs_ring_hop *hop,
                            cs_error *error)
{
    uint32_t *links = malloc(((size_t)platform->longest_route + 1) * sizeof(*links));
    uint32_t *messages = calloc((size_t)platform->n_links + 1, sizeof(*messages));
    cs_status status = links && messages ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = walk_rings(platform, rings, links, messages, NULL, error);
    if (status == CS_OK)
        status = walk_rings(platform, rings, links, messages, hop, error);
    free(links);
    free(messages);
    return status;
}

/* Finds the slowest of all groups, which share no link; *all: each group has rings over links. */
static cs_status walk_groups(const cs_platform *platform, const cs_rings *rings,
                             cs_link_memory *memory, cs_ring_hop *hop, bool *all, cs_error *error)
{
    const uint32_t block = rings->size * rings->stride;
    for (uint32_t d = 0; d < (rings->alone ? 1 : rings->n) && *all; d++) {
        uint32_t members[CS_LINK_RANKS_MAX];
        cs_link_step step;
        if (d % block >= rings->stride)
            continue;
        for (uint32_t i = 0; i < rings->size; i++)
            members[i] = device_of(rings, d + i * rings->stride);
        CS_TRY(cs_link_step_find(memory, platform, members, rings->size, &step, error));
        *all = step.rings > 0;
        hop->latency = step.latency > hop->latency ? step.latency : hop->latency;
        hop->bandwidth = fmin(hop->bandwidth, step.bandwidth);
    }
    return CS_OK;
}

static cs_status walk_links(const cs_platform *platform, const cs_rings *rings, cs_ring_hop *hop,
                            bool *all, cs_error *error)
{
    *all = rings->over_links && platform->linked_gpus && rings->size <= CS_LINK_RANKS_MAX;
    if (!*all)
        return CS_OK;
    cs_link_memory *memory = cs_link_memory_create();
    const cs_status status =
        memory ? walk_groups(platform, rings, memory, hop, all, error) : cs_error_no_memory(error);
    cs_link_memory_destroy(memory);
    return status;
}

cs_status cs_rings_slowest(const cs_platform *platform, const cs_rings *rings, cs_ring_hop *hop,
                           cs_error *error)
{
    const cs_ring_hop none = {0, INFINITY};
    cs_ring_hop slowest = none;
    bool over_links = false;
    if (rings->size > 1)
        CS_TRY(walk_links(platform, rings, &slowest, &over_links, error));
    if (rings->size > 1 && !over_links) {
        slowest = none;
        CS_TRY(walk_twice(platform, rings, &slowest, error));
    }
    *hop = slowest;
    return CS_OK;
}
