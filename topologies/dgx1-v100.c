/* DGX-1 with 8 V100: hybrid cube-mesh of NVLinks (dgx1.c), two sockets with two PCIe switches each,
 * a switch for 2 GPUs and an EDR NIC. PCIe 3 x16 at 12 GB/s, 10 GB/s between the sockets and the
 * latencies are those that NCCL reckons with (topo.h, tuning.cc). More than one are joined by EDR
 * switches of 36 ports in a fat-tree of full bandwidth, two levels: up to 162 of them. */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"dgx1\", \"generation\": \"v100\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, \"nics\": 4,"
    "  \"bandwidth\": \"12 GB/s\", \"socket_bandwidth\": \"10 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"fat_tree\", \"levels\": 2, \"radix\": 36,"
    "  \"bandwidth\": \"12.5 GB/s\", \"latency\": \"0.1 us\"}}";

static const cs_field fields[] = {{0}};

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    (void)params;
    return cs_topology_preset("dgx1-v100", text, n_devices, platform, error);
}

const cs_topology cs_topology_dgx1_v100 = {
    .name = "dgx1-v100",
    .summary = "preset: DGX-1 with 8 V100, four EDR NICs, full fat-tree",
    .source = "NVIDIA, DGX-1 with Tesla V100 system architecture, WP-08437-002, 2017; NCCL, "
              "src/graph/topo.h",
    .fields = fields,
    .params_size = 0,
    .build = build,
};
