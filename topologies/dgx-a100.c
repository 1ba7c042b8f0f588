/* DGX A100: NVSwitch with 300 GB/s per GPU and direction; two sockets with two PCIe 4 switches each,
 * a switch for 2 GPUs and 2 HDR NICs (200 Gbit/s). PCIe 4 x16 at 24 GB/s and 16 GB/s between the
 * sockets are what NCCL reckons with. More than one are joined as in a SuperPOD: eight rails, a leaf
 * per rail and 20 nodes, its 20 links up to the spines. The number of nodes is not limited here by
 * the ports of a spine. */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"dgx-a100\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, \"nics\": 8,"
    "  \"bandwidth\": \"24 GB/s\", \"uplink_bandwidth\": \"24 GB/s\","
    "  \"socket_bandwidth\": \"16 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 20,"
    "  \"spines\": 10, \"parallel\": 2, \"bandwidth\": \"25 GB/s\", \"latency\": \"0.1 us\"}}";

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    return cs_topology_preset_routed("dgx-a100", text, params, n_devices, platform, error);
}

const cs_topology cs_topology_dgx_a100 = {
    .name = "dgx-a100",
    .summary = "preset: DGX A100, 8 A100 on NVSwitch, eight HDR rails",
    .source =
        "NVIDIA, DGX A100 system architecture white paper, 2020; DGX SuperPOD (A100) reference "
        "architecture, 2021; NCCL, src/graph/topo.h",
    .fields = cs_routed_fields,
    .params_size = sizeof(cs_routed_params),
    .build = build,
};
