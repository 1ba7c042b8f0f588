/* The PCIe side of a node: sockets, the host bridge of each, switches below it, GPUs and NICs below
 * the switches. By itself the topology "pcie_tree", and what stands below the NVLinks of others.
 *
 *     socket0 ----------- socket1        inter-socket link
 *     /     \             /     \        uplinks, shared by all that is below a switch
 *   plx0    plx1        plx2    plx3
 *   / | \   / | \       / | \   / | \    x16 links of GPUs and NICs
 */
#ifndef CS_TOPOLOGIES_PCIE_TREE_H
#define CS_TOPOLOGIES_PCIE_TREE_H

#include "topologies/fabric.h"
#include "topologies/topology.h"

typedef struct cs_pcie_tree {
    uint32_t sockets;
    uint32_t switches;        /* per socket; 0: GPUs hang on the host bridges */
    uint32_t gpus_per_switch; /* 0: as many as it takes (of a host bridge without switches) */
    uint32_t nics;            /* of the whole node, spread over the switches */
    double bandwidth, uplink_bandwidth, host_bandwidth, socket_bandwidth, nic_bandwidth;
    cs_time latency, socket_latency;
} cs_pcie_tree;

extern const cs_field cs_pcie_tree_fields[];

/* Warns of keys that change nothing: those of what the tree does not have, and, unless messages
 * take the tree's links (`used`), all of them; `with` says what they would take them with. */
void cs_pcie_tree_warn(const cs_pcie_tree *tree, bool used, const char *with,
                       const cs_json_place *place);

/* Draws the tree below (and around) the GPUs, which are there already. CS_INVALID when they do not
 * fit the switches. */
CS_MUST_CHECK cs_status cs_pcie_tree_draw(const cs_pcie_tree *tree, const char *topology,
                                          const uint32_t *gpus, uint32_t n_gpus, cs_fabric *net,
                                          cs_error *error);

#endif
