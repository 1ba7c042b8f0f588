/* A server with 8 RTX TITAN and no NVLink bridges: PCIe 3 x16, two sockets with two switches each, a
 * switch for 2 GPUs. 12 GB/s per x16 link and 10 GB/s between the sockets are what NCCL reckons
 * with. The two GPUs of a switch share its uplink. Where the driver does not let such GPUs talk to
 * each other directly, messages go through the memory of a host bridge: say so with host_bandwidth
 * of a pcie_tree. */
#include "topologies/topology.h"

static const char text[] =
    "{\"topology\": \"pcie_tree\", \"sockets\": 2, \"switches_per_socket\": 2,"
    " \"gpus_per_switch\": 2, \"bandwidth\": \"12 GB/s\", \"socket_bandwidth\": \"10 GB/s\","
    " \"latency\": \"0.5 us\"}";

static const cs_field fields[] = {{0}};

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    (void)params;
    return cs_topology_preset("pcie-8gpu", text, n_devices, platform, error);
}

const cs_topology cs_topology_pcie_8gpu = {
    .name = "pcie-8gpu",
    .summary = "preset: 8 RTX TITAN on PCIe 3, two sockets with two PCIe switches each",
    .source = "Miao et al., Galvatron: efficient transformer training over multiple GPUs using "
              "automatic parallelism, PVLDB 16(3), 2022 (nodes of 8 RTX TITAN on PCIe 3); NCCL, "
              "src/graph/topo.h",
    .fields = fields,
    .params_size = 0,
    .build = build,
};
