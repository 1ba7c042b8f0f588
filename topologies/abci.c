/* ABCI, the machine of the ParaDL paper: nodes with 4 V100 on two sockets.
 *
 *   between two GPUs of a node   2 NVLinks of 25 GB/s each way
 *   PCIe 3 x16                   12 GB/s (what NCCL reckons with; 15.75 GB/s of bare lanes): a PLX
 *                                switch per socket with 2 GPUs, a NIC and an uplink
 *   between the sockets          10 GB/s (UPI, what NCCL reckons with for Skylake)
 *   network                      two rails of InfiniBand EDR, 12.5 GB/s: 17 nodes in a rack, two
 *                                leaf switches with 17 NICs each; full bisection in the rack (18
 *                                links from a leaf, 6 to each of three switches), a third of it over
 *                                racks (12 links down and 4 up, 2 to each of its two core switches)
 *   latency                      0.6 us over NVLink, 0.5 us per PCIe link (1 us for two of them),
 *                                0.1 us per network link: the latencies of NCCL's tuning model
 *                                (hwLat in src/graph/tuning.cc), 90 ns for a switch (SB7890)
 *
 * The rack is that of the ParaDL paper; a rack of the machine holds twice as much, with the same
 * proportions.
 */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 4,"
    " \"node\": {\"topology\": \"nvlink_mesh\", \"links\": 2, \"link_bandwidth\": \"25 GB/s\","
    "  \"latency\": \"0.6 us\", \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 1,"
    "  \"gpus_per_switch\": 2, \"nics\": 2, \"bandwidth\": \"12 GB/s\","
    "  \"socket_bandwidth\": \"10 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"fat_tree\", \"levels\": 3, \"bandwidth\": \"12.5 GB/s\","
    "  \"down\": [17, 2, 64], \"up\": [3, 2], \"parallel\": [6, 2], \"latency\": \"0.1 us\"}}";

static const cs_field fields[] = {{0}};

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    (void)params;
    return cs_topology_preset("abci", text, n_devices, platform, error);
}

const cs_topology cs_topology_abci = {
    .name = "abci",
    .summary = "preset: ABCI, 4 V100 per node, two EDR rails, racks of 17 nodes, 1:3 over racks",
    .source = "Kahira et al., An oracle for guiding large-scale model/hybrid parallel training of "
              "convolutional neural networks, HPDC 2021, section 5.1; NCCL, src/graph/topo.h",
    .fields = fields,
    .params_size = 0,
    .build = build,
};
