/* A ring: device d has a link to d + 1 ("up") and, with at least three devices, one to d - 1
 * ("down").
 *
 *     up:    0 -> 1 -> 2 -> 3 -> 0     links 0 .. n - 1; link d leaves device d
 *     down:  0 -> 3 -> 2 -> 1 -> 0     links n .. 2n - 1; link n + d leaves device d
 *
 * Messages take the shorter direction, up if both are equally long. In a ring of two that is always
 * up, so there are only the links 0 -> 1 and 1 -> 0: both neighbours are the same device, which is
 * not connected twice. A single device has no links.
 */
#include "topologies/topology.h"

typedef struct ring_params {
    double bandwidth;
    cs_time latency;
} ring_params;

static const cs_field fields[] = {
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(ring_params, bandwidth), .above_min = true,
     .doc = "bandwidth of each link, one way"},
    {"latency", CS_FIELD_TIME, offsetof(ring_params, latency), .fallback = "0 s", .usual_max = 0.1,
     .doc = "latency of each link; a message pays it on every link of its route"},
    {0}};

/* 64 bits, so that a sum of two positions does not overflow */
static uint32_t around(uint64_t position, uint32_t n)
{
    return (uint32_t)(position % n);
}

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    const uint32_t n = platform->n_devices;
    const uint32_t up = around((uint64_t)target + n - source, n);
    if (up <= n - up) {
        for (uint32_t i = 0; i < up; i++)
            links[i] = around((uint64_t)source + i, n);
        return up;
    }
    const uint32_t down = n - up;
    for (uint32_t i = 0; i < down; i++)
        links[i] = n + around((uint64_t)source + n - i, n);
    return down;
}

static cs_status add_links(const ring_params *ring, cs_platform *platform, cs_error *error)
{
    const uint32_t n = platform->n_devices;
    for (uint32_t link = 0; link < platform->n_links; link++) {
        const uint32_t from = link % n;
        const uint32_t to = around((uint64_t)from + (link < n ? 1 : n - 1), n);
        const cs_status status =
            cs_platform_link(platform, link, from, to, ring->bandwidth, ring->latency, error);
        if (status != CS_OK)
            return status;
        platform->links[link].peer = true;
    }
    return CS_OK;
}

static uint32_t count_links(uint32_t n_devices)
{
    if (n_devices == 1)
        return 0;
    return n_devices == 2 ? 2 : 2 * n_devices;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    cs_platform made;
    CS_TRY(cs_platform_init(&made, "ring", n_devices, 0, count_links(n_devices), error));
    made.longest_route = n_devices / 2;
    made.route = route;
    return cs_platform_hand_over(add_links(params, &made, error), &made, platform);
}

const cs_topology cs_topology_ring = {
    .name = "ring",
    .summary = "each device is linked to its two neighbours, in both directions",
    .source = "Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of "
              "workstations, JPDC 69(2), 2009",
    .fields = fields,
    .unswitched = true,
    .params_size = sizeof(ring_params),
    .build = build,
};
