#include "topologies/pcie-tree.h"

#include "sim/base/dependent-key.h"

#include <inttypes.h>

enum { MOST_GPUS = 1024, MOST_SOCKETS = 64, MOST_SWITCHES = 64 /* per socket */ };

/* Like NCCL (PCI_BW, SKL_QPI_BW in its src/graph/topo.h), assume 12 GB/s for PCIe 3 x16, three
 * quarters of the raw 16 GB/s, and 10 GB/s between sockets. */
const cs_field cs_pcie_tree_fields[] = {
    {"sockets", CS_FIELD_COUNT, offsetof(cs_pcie_tree, sockets), .fallback = "2", .min = 1,
     .max = MOST_SOCKETS, .doc = "CPU sockets, each with a host bridge"},
    {"switches_per_socket", CS_FIELD_COUNT, offsetof(cs_pcie_tree, switches), .fallback = "2",
     .max = MOST_SWITCHES,
     .doc = "PCIe switches per socket; 0: GPUs are attached to the host bridge"},
    {"gpus_per_switch", CS_FIELD_COUNT, offsetof(cs_pcie_tree, gpus_per_switch), .fallback = "0",
     .max = MOST_GPUS, .doc = "GPUs per PCIe switch; 0: GPUs are spread evenly"},
    {"nics", CS_FIELD_COUNT, offsetof(cs_pcie_tree, nics), .fallback = "0", .max = 128,
     .doc = "network adapters of the node, spread over the switches"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_pcie_tree, bandwidth), .fallback = "12 GB/s",
     .above_min = true, .doc = "bandwidth of a GPU's link, one way (default: PCIe 3 x16)"},
    {"uplink_bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_pcie_tree, uplink_bandwidth),
     .fallback = "0",
     .doc = "bandwidth of a switch's link to the host bridge, one way; 0: same as bandwidth"},
    {"host_bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_pcie_tree, host_bandwidth), .fallback = "0",
     .doc = "bandwidth of a host bridge, total of all messages in both directions; 0: no limit"},
    {"socket_bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_pcie_tree, socket_bandwidth),
     .fallback = "10 GB/s", .above_min = true, .doc = "bandwidth between two sockets, one way"},
    {"nic_bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_pcie_tree, nic_bandwidth), .fallback = "0",
     .doc = "bandwidth of a network adapter's PCIe link, one way; 0: same as bandwidth"},
    {"latency", CS_FIELD_TIME, offsetof(cs_pcie_tree, latency), .fallback = "0 s", .usual_max = 0.1,
     .doc = "latency of each PCIe link; a message pays it on every link of its route"},
    {"socket_latency", CS_FIELD_TIME, offsetof(cs_pcie_tree, socket_latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency of the link between sockets"},
    {0}};

/* the defaults above */
static const double pcie_3_rate = 12e9, socket_rate = 10e9;

static bool differs(double rate, double usual)
{
    return rate < usual || rate > usual;
}

void cs_pcie_tree_warn(const cs_pcie_tree *tree, bool used, const char *with,
                       const cs_json_place *place)
{
    const bool switched = used && tree->switches > 0, linked = used && tree->sockets > 1;
    const bool network = used && tree->nics > 0;
    const cs_dependent_key keys[] = {
        {"sockets", tree->sockets != 2, used, with},
        {"switches_per_socket", tree->switches != 2, used, with},
        {"gpus_per_switch", tree->gpus_per_switch > 0, used, with},
        {"bandwidth", differs(tree->bandwidth, pcie_3_rate), used, with},
        {"uplink_bandwidth", tree->uplink_bandwidth > 0, switched,
         used ? "\"switches_per_socket\" above 0" : with},
        {"host_bandwidth", tree->host_bandwidth > 0, used, with},
        {"socket_bandwidth", differs(tree->socket_bandwidth, socket_rate), linked,
         used ? "\"sockets\" above 1" : with},
        {"nic_bandwidth", tree->nic_bandwidth > 0, network, "\"nics\" above 0"},
        {"latency", tree->latency > 0, used, with},
        {"socket_latency", tree->socket_latency > 0, linked, used ? "\"sockets\" above 1" : with},
    };
    cs_dependent_keys_warn(keys, sizeof(keys) / sizeof(keys[0]), place);
}

static cs_status warn_of_ignored(void *params, const cs_json_place *place, cs_arena *arena,
                                 cs_error *error)
{
    (void)arena;
    (void)error;
    cs_pcie_tree_warn(params, true, NULL, place);
    return CS_OK;
}

cs_status cs_pcie_tree_draw(const cs_pcie_tree *tree, const char *topology, const uint32_t *gpus,
                            uint32_t n_gpus, cs_fabric *net, cs_error *error)
{
    uint32_t hubs[MOST_SOCKETS * MOST_SWITCHES];
    /* Sockets and switches; GPUs and NICs are attached to `hubs`. */
    const double uplink = tree->uplink_bandwidth > 0 ? tree->uplink_bandwidth : tree->bandwidth;
    uint32_t sockets[MOST_SOCKETS], n_hubs = 0;
    for (uint32_t s = 0; s < tree->sockets; s++) {
        sockets[s] = cs_fabric_vertex(net, CS_VERTEX_CPU, "socket%" PRIu32, s);
        if (tree->host_bandwidth > 0)
            cs_fabric_link(net, sockets[s], sockets[s], tree->host_bandwidth, 0, false);
        for (uint32_t other = 0; other < s; other++)
            cs_fabric_links(net, sockets[other], sockets[s], tree->socket_bandwidth,
                            tree->socket_latency, false);
        for (uint32_t i = 0; i < tree->switches; i++) {
            hubs[n_hubs] = cs_fabric_vertex(net, CS_VERTEX_SWITCH, "plx%" PRIu32, n_hubs);
            cs_fabric_links(net, hubs[n_hubs++], sockets[s], uplink, tree->latency, false);
        }
        if (tree->switches == 0)
            hubs[n_hubs++] = sockets[s];
    }
    const uint32_t each =
        tree->gpus_per_switch > 0 ? tree->gpus_per_switch : (n_gpus + n_hubs - 1) / n_hubs;
    if (n_gpus > (uint64_t)each * n_hubs)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: %" PRIu32 " PCIe switches or host bridges with %" PRIu32
                            " GPUs each hold %" PRIu32 " GPUs (got %" PRIu32 ")",
                            topology, n_hubs, each, n_hubs * each, n_gpus);
    for (uint32_t i = 0; i < n_gpus; i++)
        cs_fabric_links(net, gpus[i], hubs[i / each], tree->bandwidth, tree->latency, false);
    const double nic_rate = tree->nic_bandwidth > 0 ? tree->nic_bandwidth : tree->bandwidth;
    for (uint32_t i = 0; i < tree->nics; i++) {
        const uint32_t nic = cs_fabric_vertex(net, CS_VERTEX_NIC, "nic%" PRIu32, i);
        cs_fabric_links(net, nic, hubs[(uint64_t)i * n_hubs / tree->nics], nic_rate, tree->latency,
                        false);
    }
    return CS_OK;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    uint32_t gpus[MOST_GPUS];
    if (n_devices > MOST_GPUS) {
        cs_status status = cs_platform_check_devices("pcie_tree", n_devices, error);
        return status != CS_OK ? status
                               : cs_error_add(error, CS_INVALID,
                                              "topology pcie_tree: a node has at most %d GPUs (got "
                                              "%" PRIu32 ")",
                                              MOST_GPUS, n_devices);
    }
    cs_fabric *net = cs_fabric_create("pcie_tree");
    for (uint32_t i = 0; i < n_devices; i++)
        gpus[i] = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%" PRIu32, i);
    cs_status status = cs_pcie_tree_draw(params, "pcie_tree", gpus, n_devices, net, error);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, 0, platform, error);
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_pcie_tree = {
    .name = "pcie_tree",
    .summary = "GPUs below PCIe switches with shared uplinks, host bridges and sockets",
    .source = "Li et al., Evaluating Modern GPU Interconnect: PCIe, NVLink, NV-SLI, NVSwitch and "
              "GPUDirect, IEEE TPDS 31(1), 2020; default bandwidths: NCCL, src/graph/topo.h",
    .fields = cs_pcie_tree_fields,
    .params_size = sizeof(cs_pcie_tree),
    .read = warn_of_ignored,
    .build = build,
};
