/* DGX H100: NVSwitch with 450 GB/s per GPU and direction; two sockets, PCIe 5 x16 at 48 GB/s (what
 * NCCL reckons with), each GPU with an NDR NIC (400 Gbit/s) of its own on the same PCIe switch (in
 * the ConnectX-7), 40 GB/s between the sockets. More than one are joined as in a SuperPOD: eight
 * rails, a leaf of 64 ports per rail and 32 nodes, its 32 links up to 16 spines. The number of nodes
 * is not limited here by the ports of a spine. */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"dgx-h100\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 4, \"gpus_per_switch\": 1, \"nics\": 8,"
    "  \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\"}}";

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    return cs_topology_preset_routed("dgx-h100", text, params, n_devices, platform, error);
}

const cs_topology cs_topology_dgx_h100 = {
    .name = "dgx-h100",
    .summary = "preset: DGX H100, 8 H100 on NVSwitch, eight NDR rails",
    .source = "NVIDIA, H100 Tensor Core GPU architecture white paper, 2022; DGX SuperPOD (H100) "
              "reference architecture, 2023; NCCL, src/graph/topo.h",
    .fields = cs_routed_fields,
    .params_size = sizeof(cs_routed_params),
    .build = build,
};
