/* A platform: devices, directed links, and the route from each device to each other.
 *
 * A topology builds one from its parameters. Routes are computed when asked for, not stored: a
 * fat-tree of 65,536 hosts has 4e9 of them.
 *
 * Links lead from vertex to vertex. The first vertices are the devices, then come the ports (the
 * NICs of a node that can be joined with others, see cluster.c), then what only passes messages on:
 * switches, host bridges, sockets. Devices and ports are the terminals, between which there are
 * routes. A link from a vertex to itself limits what the vertex can forward in total: every route
 * through the vertex takes it as well.
 *
 * A transfer of n bytes spends the sum of its route's latencies on the way, and then its bytes
 * compete on the route's links, as `sharing` says:
 *   none     each transfer has all links of its route to itself
 *   fifo     one message at a time on a directed link; a message waits until it is the oldest on
 *            every link of its route, then holds them all until its bytes are through
 *   phi      every link gives bandwidth / phi, phi a given coefficient (Kahira et al., HPDC 2021)
 *   count    bandwidth / (number of transfers now on the link), smallest over the route
 *   max_min  fair shares over whole routes (progressive filling)
 *
 * With fifo, count and max_min, messages that one device sends another for one purpose go one after
 * the other in the order in which they come to the links, as those of one pair do on a stream of
 * NCCL's or in MPI. With count and max_min they can be `independent_messages` instead, each of
 * which has a share of its own.
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
    int64_t capacity; /* bytes of memory for what is simulated; INT64_MAX: unlimited */
    int64_t reserve;  /* bytes besides, for what is not: known where the memory is limited */
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
    bool peer;         /* NVLink and similar: devices may forward what comes over it (fabric.h) */
} cs_link;

typedef struct cs_platform cs_platform;

/* Writes the links from `source` to `target` in order and returns their number, at most
 * platform->longest_route; 0 when the two are one terminal. Every pair of terminals has a route. */
typedef uint32_t cs_route_function(const cs_platform *platform, uint32_t source, uint32_t target,
                                   uint32_t *links);

struct cs_platform {
    const char *topology;
    uint32_t n_devices;
    cs_device *devices;
    uint32_t
        node_devices; /* devices 0 .. node_devices - 1 share a node, the next ones another, ...;
                            * 0: not known, or all in one */
    const uint32_t *nic_of; /* per device of a node: its NIC of the node; NULL: not known */
    uint32_t rack_devices;  /* the same of racks, groups and pods: what stays below the top level of
                             * the network; 0: unknown, or there is one */
    uint32_t n_ports;       /* terminals n_devices .. n_devices + n_ports - 1 */
    uint32_t n_vertices;
    cs_vertex *vertices;
    uint32_t n_links;
    cs_link *links;
    const cs_link *quiet_links; /* as they are without noise (noise.h); NULL: these */
    bool linked_gpus;           /* GPUs have links to each other, over which libraries lay rings; of
                                 * rings and tori it is not said who would */
    uint32_t longest_route;     /* links */
    cs_route_function *route;
    const void *layout; /* what `route` needs to know, private to the topology */
    cs_sharing sharing;
    double phi;                /* of CS_SHARING_PHI, >= 1 */
    bool independent_messages; /* of one pair; else one after the other */
    const char *warning;       /* what is valid and hardly meant, for people; or NULL */
    cs_arena arena;            /* owns all of the above */
};

/* Zeroed platforms can be finished. */
void cs_platform_finish(cs_platform *platform);

/* For topologies that compute with the number of devices before they make a platform. */
CS_MUST_CHECK cs_status cs_platform_check_devices(const char *topology, uint32_t n_devices,
                                                  cs_error *error);

/* Allocates devices (speed 1, unlimited memory), vertices and links; for topologies. The devices'
 * vertices are named "gpu0", "gpu1", ...; `n_inner` is how many more there are. */
CS_MUST_CHECK cs_status cs_platform_init(cs_platform *platform, const char *topology,
                                         uint32_t n_devices, uint64_t n_inner, uint64_t n_links,
                                         cs_error *error);

/* The end of a topology's build(): hands `made` over to *platform, or finishes it when filling it
 * failed, which `status` says and which is returned. */
CS_MUST_CHECK cs_status cs_platform_hand_over(cs_status status, cs_platform *made,
                                              cs_platform *platform);

/* Names a vertex, "leaf3", printf-like; for topologies. */
CS_MUST_CHECK cs_status cs_platform_vertex(cs_platform *platform, uint32_t vertex,
                                           cs_vertex_kind kind, cs_error *error, const char *format,
                                           ...) CS_PRINTF(5, 6);

/* Sets a link, which is called "A to B" after its ends; for topologies, after they have named their
 * vertices. CS_INVALID, naming the link, where the bandwidth is not > 0 or the latency < 0. */
CS_MUST_CHECK cs_status cs_platform_link(cs_platform *platform, uint32_t link, uint32_t from,
                                         uint32_t to, double bandwidth, cs_time latency,
                                         cs_error *error);

/* Two links, one each way: `link` up and `link` + 1 down. */
CS_MUST_CHECK cs_status cs_platform_links(cs_platform *platform, uint32_t link, uint32_t from,
                                          uint32_t to, double bandwidth, cs_time latency,
                                          cs_error *error);

/* Numbers the links that lead from one vertex to one other: "A to B #1", "A to B #2". */
CS_MUST_CHECK cs_status cs_platform_number_links(cs_platform *platform, cs_error *error);

/* A star: from each device a link up to the vertex behind the devices (link 2 d), which has the
 * latency, and one down (link 2 d + 1), which has none: every way has one of each. */
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

/* "max_min", "phi 2", "phi count": in the words of scenarios, written to `text`, which is returned;
 * NULL of a platform without links. */
const char *cs_sharing_text(const cs_platform *platform, char text[CS_SHARING_TEXT_BYTES]);

#endif
