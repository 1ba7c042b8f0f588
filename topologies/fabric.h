/* Nets: platforms built vertex by vertex, with routes found by a search and stored in tables.
 *
 * For small and irregular networks: the inside of a node, a topology from a file. A net with T
 * terminals and V vertices stores 2 * T * V next links.
 *
 * Routes. There are two kinds of links. Over peer links (NVLink and similar) devices may forward
 * messages of others; over ordinary links (PCIe, cables) they do not. A pair of terminals that peer
 * links connect uses only these, if at most `relays` devices have to forward its messages; every
 * other pair uses only ordinary links. A route has as few links as possible, then as few devices,
 * then as much bandwidth; the number of the target breaks ties. Ports do not forward. (NCCL decides
 * in the same way: an NVLink path, if needed through one other GPU, is preferred to PCIe; PATH_NVL,
 * PATH_NVB, PATH_PIX ... in its src/graph/topo.h.)
 *
 *     cs_fabric *net = cs_fabric_create("mine");
 *     uint32_t gpu = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%u", 0), ...;
 *     cs_fabric_links(net, gpu, plx, 12e9, 0, false);
 *     status = cs_fabric_finish(net, n_devices, relays, platform, error);
 *     cs_fabric_destroy(net);
 *
 * The net remembers its first failure (memory), which cs_fabric_finish reports.
 */
#ifndef CS_TOPOLOGIES_FABRIC_H
#define CS_TOPOLOGIES_FABRIC_H

#include "topologies/platform.h"

#define CS_FABRIC_NONE UINT32_MAX

/* bytes of a vertex' name with the NUL; longer names are truncated */
enum { CS_FABRIC_NAME_BYTES = 96 };

typedef struct cs_fabric cs_fabric;

/* `topology` is its name in messages and must outlive net and platform. Returns NULL if memory runs
 * out; the functions below then do nothing, and cs_fabric_finish fails. */
cs_fabric *cs_fabric_create(const char *topology);
void cs_fabric_destroy(cs_fabric *net);

/* Adds a vertex with a printf-style name. Ids count up from 0. */
uint32_t cs_fabric_vertex(cs_fabric *net, cs_vertex_kind kind, const char *format, ...)
    CS_PRINTF(3, 4);

/* Adds one link, or one in each direction. A link from a vertex to itself limits the total that the
 * vertex can forward; of several, the narrowest counts. */
void cs_fabric_link(cs_fabric *net, uint32_t from, uint32_t to, double bandwidth, cs_time latency,
                    bool peer);
void cs_fabric_links(cs_fabric *net, uint32_t from, uint32_t to, double bandwidth, cs_time latency,
                     bool peer);

/* Gives the route between two vertices, in place of the search's; the links (indices) must lead
 * from `source` to `target` (an assertion). */
void cs_fabric_route(cs_fabric *net, uint32_t source, uint32_t target, const uint32_t *links,
                     uint32_t n);

/* Whether the links lead from `source` to `target`. */
bool cs_fabric_leads(const cs_fabric *net, uint32_t source, uint32_t target, const uint32_t *links,
                     uint32_t n);

/* Number of vertices of a kind. */
uint32_t cs_fabric_count(const cs_fabric *net, cs_vertex_kind kind);

/* Builds the platform: its devices are the first n_devices vertices of kind GPU, its ports all
 * vertices of kind NIC. CS_INVALID: too few GPUs, no route between two terminals (the message names
 * both), or tables of more than 4 GiB. */
CS_MUST_CHECK cs_status cs_fabric_finish(cs_fabric *net, uint32_t n_devices, uint32_t relays,
                                         cs_platform *platform, cs_error *error);

#endif
