/* The PCIe part of a node: sockets with a host bridge each, switches below it, and GPUs and NICs
 * below the switches. Used by the topology "pcie_tree", and below the NVLinks of other topologies.
 *
 *     socket0 ----------- socket1        inter-socket link
 *     /     \\             /     \\        uplinks, shared by everything below a switch
 *   plx0    plx1        plx2    plx3
 *   / | \\   / | \\       / | \\   / | \\    x16 links of GPUs and NICs
 */
#ifndef CS_TOPOLOGIES_PCIE_TREE_H
#define CS_TOPOLOGIES_PCIE_TREE_H

#include "topologies/fabric.h"
#include "topologies/topology.h"

typedef struct cs_pcie_tree {
    uint32_t sockets;
    uint32_t switches;        /* per socket; 0: GPUs are attached to the host bridges */
    uint32_t gpus_per_switch; /* or per host bridge, without switches; 0: GPUs are spread evenly */
    uint32_t nics;            /* total per node, spread over the switches */
    double bandwidth, uplink_bandwidth, host_bandwidth, socket_bandwidth, nic_bandwidth;
    cs_time latency, socket_latency;
} cs_pcie_tree;

extern const cs_field cs_pcie_tree_fields[];

/* Warns of keys without effect: keys of parts that the tree lacks and, unless messages use the tree
 * (`used`), all keys; `with` names the setting that makes messages use it. */
void cs_pcie_tree_warn(const cs_pcie_tree *tree, bool used, const char *with,
                       const cs_json_place *place);

/* Adds the tree to GPUs that exist already. CS_INVALID: they do not fit the switches. */
CS_MUST_CHECK cs_status cs_pcie_tree_draw(const cs_pcie_tree *tree, const char *topology,
                                          const uint32_t *gpus, uint32_t n_gpus, cs_fabric *net,
                                          cs_error *error);

#endif
