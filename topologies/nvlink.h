/* Shared by the topologies with NVLinks inside a node: the GPUs, and the PCIe tree below them. */
#ifndef CS_TOPOLOGIES_NVLINK_H
#define CS_TOPOLOGIES_NVLINK_H

#include "topologies/pcie-tree.h"

enum { CS_NVLINK_GPUS = 1024 }; /* most GPUs per node */

/* Common keys; a params struct begins with this. */
typedef struct cs_nvlink {
    double link_bandwidth; /* bandwidth of one NVLink, one way, bytes/s; 0: the generation's */
    cs_time latency;
    cs_pcie_tree *pcie;
} cs_nvlink;

#define CS_NVLINK_FIELDS                                                                           \
    {"link_bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_nvlink, link_bandwidth), .fallback = "0",   \
     .doc = "bandwidth of one NVLink, one way; 0: the generation's"},                              \
        {"latency", CS_FIELD_TIME, offsetof(cs_nvlink, latency), .fallback = "0 s",                \
         .doc = "latency of an NVLink, or of the whole route through NVSwitches"},                 \
    {                                                                                              \
        "pcie", CS_FIELD_OBJECT, offsetof(cs_nvlink, pcie),                                        \
            .fallback = "{}", .of = cs_pcie_tree_fields, .size = sizeof(cs_pcie_tree),             \
            .doc = "the PCIe tree below the GPUs, with the keys of pcie_tree",                     \
            .shape = "{\"sockets\": 2, ...}"                                                       \
    }

/* Warns of keys of the PCIe tree without effect. Messages between GPUs use the tree only if
 * `relayed`; otherwise its links serve only NICs, if it has some. */
void cs_nvlink_warn(const cs_nvlink *of, bool relayed, const cs_json_place *place);

/* `read` of a cs_topology whose params begin with a cs_nvlink, not relayed. */
CS_MUST_CHECK cs_status cs_nvlink_read(void *params, const cs_json_place *place, cs_arena *arena,
                                       cs_error *error);

/* Adds the GPUs and their PCIe tree to the net. */
CS_MUST_CHECK cs_status cs_nvlink_draw(const cs_nvlink *of, const char *topology, uint32_t n_gpus,
                                       cs_fabric *net, uint32_t gpus[CS_NVLINK_GPUS],
                                       cs_error *error);

#endif
