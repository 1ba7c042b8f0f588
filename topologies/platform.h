/* A platform: devices, directed links, and the route from each device to each other.
 *
 * A topology builds a platform from its parameters. Routes are computed on request, not stored: a
 * fat tree of 65,536 hosts has 4e9 of them.
 *
 * Links lead from vertex to vertex. The first vertices are the devices, then the ports (NICs where
 * a node can be joined with others, see cluster.c), then vertices that only forward messages:
 * switches, host bridges, sockets. Devices and ports are the terminals, between which there are
 * routes. A link from a vertex to itself limits the total that the vertex can forward: every route
 * through the vertex uses it too.
 *
 * A transfer of n bytes takes the sum of its route's latencies, and then its bytes compete for the
 * route's links, as `sharing` determines:
 *   none     each transfer has all links of its route to itself
 *   fifo     one message at a time per directed link; a message waits until it is the oldest on
 *            every link of its route, then occupies them all until its bytes have passed
 *   phi      every link gives bandwidth / phi, with a given coefficient phi (Kahira et al., HPDC
 *   2021) count    bandwidth / (number of transfers now on the link), the smallest over the route
 *   max_min  fair shares over whole routes (progressive filling)
 *
 * With fifo, count and max_min, messages between the same two devices for the same purpose are sent
 * one after the other, in order of arrival, as on a stream of NCCL or between a pair
 * of MPI ranks. With count and max_min they can be `independent_messages` instead, each with its
 * own share.
 */
#ifndef CS_TOPOLOGIES_PLATFORM_H
#define CS_TOPOLOGIES_PLATFORM_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>

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
    int64_t capacity; /* bytes of memory for the simulated data; INT64_MAX: unlimited */
    /* additional bytes for data that is not simulated; set if memory is limited */
    int64_t reserve;
} cs_device;

#define CS_VERTEX_MAP(X)                                                                           \
    X(GPU, "gpu")                                                                                  \
    X(NIC, "nic")                                                                                  \
    X(SWITCH, "switch")                                                                            \
    X(CPU, "cpu")

typedef enum cs_vertex_kind {
#define CS_VERTEX_ENUM(name, text) CS_VERTEX_##name,
    CS_VERTEX_MAP(CS_VERTEX_ENUM)
#undef CS_VERTEX_ENUM
        CS_N_VERTEX_KINDS
} cs_vertex_kind;

typedef struct cs_vertex {
    const char *name;
    cs_vertex_kind kind;
} cs_vertex;

typedef struct cs_link {
    const char *name; /* "gpu3 to switch" */
    double bandwidth; /* bytes/s, > 0, may be infinite */
    cs_time latency;
    uint32_t from, to; /* vertices */
    bool peer;         /* NVLink and similar: devices may forward messages from it (fabric.h) */
} cs_link;

typedef struct cs_platform cs_platform;

/* Writes the links from `source` to `target` in order and returns their number, at most
 * platform->longest_route; 0 if both are the same terminal. Every pair of terminals has a route. */
typedef uint32_t cs_route_function(const cs_platform *platform, uint32_t source, uint32_t target,
                                   uint32_t *links);

struct cs_platform {
    const char *topology;
    uint32_t n_devices;
    cs_device *devices;
    uint32_t
        node_devices; /* devices 0 .. node_devices - 1 share a node, the next ones another, ...;
                            * 0: not known, or all in one */
    const uint32_t *nic_of; /* per device of a node: its NIC in the node; NULL: unknown */
    /* likewise for racks, groups and pods: devices that reach each other below the top level of the
     * network; 0: unknown, or one level */
    uint32_t rack_devices;
    uint32_t n_ports; /* terminals n_devices .. n_devices + n_ports - 1 */
    uint32_t n_vertices;
    cs_vertex *vertices;
    uint32_t n_links;
    cs_link *links;
    const cs_link *quiet_links; /* links without noise (noise.h); NULL: there is no noise */
    /* GPUs have direct links over which communication libraries build rings; false for the
     * topologies ring and torus */
    bool linked_gpus;
    uint32_t longest_route; /* links */
    cs_route_function *route;
    const void *layout; /* data of `route`, private to the topology */
    cs_sharing sharing;
    double phi;                /* CS_SHARING_PHI: >= 1 */
    bool independent_messages; /* messages of one pair do not wait for each other */
    /* warning for users about a valid but implausible platform; NULL: none */
    const char *warning;
    cs_arena arena; /* owns all of the above */
};

/* Accepts a zeroed platform. */
void cs_platform_finish(cs_platform *platform);

/* Checks the number of devices, for topologies that compute with it before they create a
 * platform. */
CS_MUST_CHECK cs_status cs_platform_check_devices(const char *topology, uint32_t n_devices,
                                                  cs_error *error);

/* Allocates devices (speed 1, unlimited memory), vertices and links, for topologies. The devices'
 * vertices are named "gpu0", "gpu1", ...; `n_inner` is the number of further vertices. */
CS_MUST_CHECK cs_status cs_platform_init(cs_platform *platform, const char *topology,
                                         uint32_t n_devices, uint64_t n_inner, uint64_t n_links,
                                         cs_error *error);

/* Ends a topology's build(): moves `made` to *platform, or finishes it if filling it failed with
 * `status`, which is returned. */
CS_MUST_CHECK cs_status cs_platform_hand_over(cs_status status, cs_platform *made,
                                              cs_platform *platform);

/* Names a vertex ("leaf3", printf-style), for topologies. */
CS_MUST_CHECK cs_status cs_platform_vertex(cs_platform *platform, uint32_t vertex,
                                           cs_vertex_kind kind, cs_error *error, const char *format,
                                           ...) CS_PRINTF(5, 6);

/* Sets a link, named "A to B" after its ends, for topologies; the vertices must have names.
 * CS_INVALID, naming the link: the bandwidth is not > 0, or the latency is < 0. */
CS_MUST_CHECK cs_status cs_platform_link(cs_platform *platform, uint32_t link, uint32_t from,
                                         uint32_t to, double bandwidth, cs_time latency,
                                         cs_error *error);

/* Sets two links, one in each direction: `link` from `from` to `to`, and `link` + 1 back. */
CS_MUST_CHECK cs_status cs_platform_links(cs_platform *platform, uint32_t link, uint32_t from,
                                          uint32_t to, double bandwidth, cs_time latency,
                                          cs_error *error);

/* Numbers parallel links: "A to B #1", "A to B #2". */
CS_MUST_CHECK cs_status cs_platform_number_links(cs_platform *platform, cs_error *error);

/* Builds a star: each device has a link up (2 d) to the vertex after the devices, with the latency,
 * and a link down (2 d + 1) without: every route has one of each. */
CS_MUST_CHECK cs_status cs_platform_star(cs_platform *platform, double bandwidth, cs_time latency,
                                         cs_error *error);

static inline uint32_t cs_star_up(uint32_t device)
{
    return 2 * device;
}

static inline uint32_t cs_star_down(uint32_t device)
{
    return 2 * device + 1;
}

enum { CS_SHARING_TEXT_BYTES = 32 };

/* Writes how links are shared in the words of scenarios, "max_min", "phi 2", "phi count", into
 * `text`, and returns it. */
const char *cs_sharing_text(const cs_platform *platform, char text[CS_SHARING_TEXT_BYTES]);

#endif
