/* GB200 NVL72: 72 B200 around the NVSwitches of a rack, 900 GB/s per GPU and direction; 36 Grace CPUs
 * with two GPUs each, and to each GPU an NDR NIC (400 Gbit/s) on PCIe 5 x16 at 48 GB/s; four GPUs and
 * NICs are a tray. Racks are joined by four rails, one for each NIC of a tray; a leaf of 64 ports has
 * 32 links down, and 32 up to 16 spines. The number of racks is not limited here by the ports of a
 * spine. */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 72,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"nvl72\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 36, \"switches_per_socket\": 2, \"gpus_per_switch\": 1, "
    "\"nics\": 72, \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": "
    "\"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 4, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\"}}";

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    return cs_topology_preset_routed("gb200-nvl72", text, params, n_devices, platform, error);
}

const cs_topology cs_topology_gb200_nvl72 = {
    .name = "gb200-nvl72",
    .summary = "preset: GB200 NVL72, racks of 72 B200 on NVSwitch, four NDR rails",
    .source =
        "NVIDIA, GB200 NVL72 datasheet, 2024; DGX SuperPOD (GB200) reference architecture, 2024; "
        "NCCL, src/graph/topo.h",
    .fields = cs_routed_fields,
    .params_size = sizeof(cs_routed_params),
    .build = build,
};
