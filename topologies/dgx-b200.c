/* DGX B200: NVSwitch with 900 GB/s per GPU and direction; PCIe, NICs and network are those of the DGX
 * H100 (dgx-h100.c). */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"dgx-b200\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 4, \"gpus_per_switch\": 1, \"nics\": 8,"
    "  \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\"}}";

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    return cs_topology_preset_routed("dgx-b200", text, params, n_devices, platform, error);
}

const cs_topology cs_topology_dgx_b200 = {
    .name = "dgx-b200",
    .summary = "preset: DGX B200, 8 B200 on NVSwitch, eight NDR rails",
    .source = "NVIDIA, DGX B200 datasheet, 2024; DGX SuperPOD (B200) reference architecture, 2024; "
              "NCCL, src/graph/topo.h",
    .fields = cs_routed_fields,
    .params_size = sizeof(cs_routed_params),
    .build = build,
};
