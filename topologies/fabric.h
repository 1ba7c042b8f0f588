/* Nets: platforms built vertex by vertex, with routes found by search and stored as tables.
 *
 * For small and irregular networks: the inside of a node, a topology from a file. A net with T
 * terminals and V vertices stores 2 * T * V next links.
 *
 * Routes. There are two sorts of links. Over peer links (NVLink and similar) devices may forward
 * messages of others; over the others (PCIe, cables) they do not. A pair of terminals that peer
 * links connect uses them alone, if no more than `relays` devices have to pass on its messages;
 * every other pair uses the other links alone. A route has as few links as possible, then as few
 * devices, then as much bandwidth; where several are left, the number of the target chooses. Ports
 * do not forward. (NCCL makes the same decision: an NVLink path, if needed through one other GPU,
 * goes before PCIe; PATH_NVL, PATH_NVB, PATH_PIX ... in its src/graph/topo.h.)
 *
 *     cs_fabric *net = cs_fabric_create("mine");
 *     uint32_t gpu = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%u", 0), ...;
 *     cs_fabric_links(net, gpu, plx, 12e9, 0, false);
 *     status = cs_fabric_finish(net, n_devices, relays, platform, error);
 *     cs_fabric_destroy(net);
 *
 * The net remembers the first failure (memory), which cs_fabric_finish reports.
 */
#ifndef CS_TOPOLOGIES_FABRIC_H
#define CS_TOPOLOGIES_FABRIC_H

#include "topologies/platform.h"

#define CS_FABRIC_NONE UINT32_MAX

enum { CS_FABRIC_NAME_BYTES = 96 }; /* of a vertex, with the NUL; longer names are cut off */

typedef struct cs_fabric cs_fabric;

/* `topology` is what messages call it, and must live as long as the net, and the platform. NULL
 * when memory runs out; the functions below then do nothing, and cs_fabric_finish fails. */
cs_fabric *cs_fabric_create(const char *topology);
void cs_fabric_destroy(cs_fabric *net);

/* Adds a vertex; printf-like name. Ids count up from 0. */
uint32_t cs_fabric_vertex(cs_fabric *net, cs_vertex_kind kind, const char *format, ...)
    CS_PRINTF(3, 4);

/* Adds one link, or one each way. A link from a vertex to itself limits what it can pass on; of
 * several, the narrowest. */
void cs_fabric_link(cs_fabric *net, uint32_t from, uint32_t to, double bandwidth, cs_time latency,
                    bool peer);
void cs_fabric_links(cs_fabric *net, uint32_t from, uint32_t to, double bandwidth, cs_time latency,
                     bool peer);

/* Gives the route between two vertices, in place of what a search would find; the links, counted
 * from 0, must lead from the one to the other (an assertion). */
void cs_fabric_route(cs_fabric *net, uint32_t source, uint32_t target, const uint32_t *links,
                     uint32_t n);

/* Whether the links make a way from the one vertex to the other. */
bool cs_fabric_leads(const cs_fabric *net, uint32_t source, uint32_t target, const uint32_t *links,
                     uint32_t n);

/* How many vertices of a kind there are. */
uint32_t cs_fabric_count(const cs_fabric *net, cs_vertex_kind kind);

/* Makes the platform: its devices are the first n_devices vertices of kind GPU, its ports all of
 * kind NIC. CS_INVALID when there are too few GPUs, when two terminals have no way to each other
 * (both are named), or when the tables would take more than 4 GiB. */
CS_MUST_CHECK cs_status cs_fabric_finish(cs_fabric *net, uint32_t n_devices, uint32_t relays,
                                         cs_platform *platform, cs_error *error);

#endif
