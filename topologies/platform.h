/* A platform: devices, directed links, and the route from each device to each other.
 *
 * A topology builds one from its parameters. Routes are computed when asked for, not stored: a
 * fat-tree of 65,536 hosts has 4e9 of them.
 *
 * A transfer of n bytes spends the sum of its route's latencies on the way, and then its bytes
 * compete on the route's links, as `sharing` says:
 *   none     each transfer has all links of its route for itself
 *   fifo     one message at a time on a directed link; a message waits until it is the oldest on
 *            every link of its route, then holds them all until its bytes are through
 *   phi      every link gives bandwidth / phi, phi a given coefficient (Kahira et al., HPDC 2021)
 *   count    bandwidth / (number of transfers now on the link), smallest over the route
 *   max_min  fair shares over whole routes (progressive filling)
 */
#ifndef CS_TOPOLOGIES_PLATFORM_H
#define CS_TOPOLOGIES_PLATFORM_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

#define CS_SHARING_MAP(X)                                                                          \
    X(NONE, "none")                                                                                \
    X(FIFO, "fifo")                                                                                \
    X(PHI, "phi")                                                                                  \
    X(COUNT, "count")                                                                              \
    X(MAX_MIN, "max_min")

typedef enum cs_sharing {
#define CS_SHARING_ENUM(name, text) CS_SHARING_##name,
    CS_SHARING_MAP(CS_SHARING_ENUM)
#undef CS_SHARING_ENUM
} cs_sharing;

typedef struct cs_device {
    double speed;     /* > 0; a task of duration d at speed 1 takes d / speed */
    int64_t capacity; /* bytes of memory; INT64_MAX: unlimited */
} cs_device;

typedef struct cs_link {
    const char *name;
    double bandwidth; /* bytes/s, > 0, may be infinite */
    cs_time latency;
} cs_link;

typedef struct cs_platform cs_platform;

/* Writes the links from `source` to `target` in order and returns their number, at most
 * platform->longest_route; 0 when the two are one device. Every pair has a route. */
typedef uint32_t cs_route_function(const cs_platform *platform, uint32_t source, uint32_t target,
                                   uint32_t *links);

struct cs_platform {
    const char *topology;
    uint32_t n_devices;
    cs_device *devices;
    uint32_t n_links;
    cs_link *links;
    uint32_t longest_route; /* links */
    cs_route_function *route;
    const void *layout; /* what `route` needs to know, private to the topology */
    cs_sharing sharing;
    double phi;     /* of CS_SHARING_PHI, >= 1 */
    cs_arena arena; /* owns all of the above */
};

/* Zeroed platforms can be finished. */
void cs_platform_finish(cs_platform *platform);

/* Allocates devices (speed 1, unlimited memory) and links; for topologies. */
CS_MUST_CHECK cs_status cs_platform_init(cs_platform *platform, const char *topology,
                                         uint32_t n_devices, uint32_t n_links, cs_error *error);

/* Names a link, "gpu3 to switch", printf-like; for topologies. */
CS_MUST_CHECK cs_status cs_platform_link(cs_platform *platform, uint32_t link, double bandwidth,
                                         cs_time latency, cs_error *error, const char *format, ...)
    CS_PRINTF(6, 7);

/* Sum of latencies, and smallest bandwidth (infinity for an empty route), of the route between two
 * devices: the time of a lone transfer is latency + bytes / bandwidth. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_platform_path(const cs_platform *platform, uint32_t source,
                                         uint32_t target, cs_time *latency, double *bandwidth,
                                         cs_error *error);

#endif
