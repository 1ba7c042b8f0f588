/* Presets: machines, each as the text of a scenario's platform. To add one: its text and PRESET
 * below, and a line in registry.c. */
#include "topologies/topology.h"

static const cs_field none[] = {{0}};

#define PRESET(id, machine, ...)                                                                   \
    static cs_status build_##id(const void *params, uint32_t n_devices, cs_platform *platform,     \
                                cs_error *error)                                                   \
    {                                                                                              \
        (void)params;                                                                              \
        return cs_topology_preset(machine, id, n_devices, platform, error);                        \
    }                                                                                              \
    const cs_topology cs_topology_##id = {                                                         \
        .name = (machine), .fields = none, .build = build_##id, .stands_for = (id), __VA_ARGS__};

/* Of clusters whose network is a leaf_spine. */
#define PRESET_ROUTED(id, machine, ...)                                                            \
    static cs_status build_##id(const void *params, uint32_t n_devices, cs_platform *platform,     \
                                cs_error *error)                                                   \
    {                                                                                              \
        return cs_topology_preset_routed(machine, id, params, n_devices, platform, error);         \
    }                                                                                              \
    const cs_topology cs_topology_##id = {.name = (machine),                                       \
                                          .fields = cs_routed_fields,                              \
                                          .params_size = sizeof(cs_routed_params),                 \
                                          .build = build_##id,                                     \
                                          .stands_for = (id),                                      \
                                          __VA_ARGS__};

/* ABCI, the machine of the ParaDL paper: nodes with 4 V100 on two sockets.
 *
 *   between two GPUs of a node   2 NVLinks of 25 GB/s each way
 *   PCIe 3 x16                   12 GB/s (what NCCL assumes; the lanes carry 15.75 GB/s): a PLX
 *                                switch per socket with 2 GPUs, a NIC and an uplink
 *   between the sockets          10 GB/s (UPI, what NCCL assumes for Skylake)
 *   network                      two rails of InfiniBand EDR, 12.5 GB/s: 17 nodes in a rack, two
 *                                leaf switches with 17 NICs each; full bisection in the rack 
 *                                (18 links from a leaf, 6 to each of three switches), a third of it
 *                                over racks (12 links down and 4 up, 2 to each core switch)
 *   latency                      0.6 us over NVLink, 0.5 us per PCIe link (1 us for two of them),
 *                                0.1 us per network link: the latencies of NCCL's tuning model
 *                                (hwLat in src/graph/tuning.cc), 90 ns for a switch (SB7890)
 *
 * The rack is that of the ParaDL paper; a rack of the machine holds twice as much, with the same
 * proportions.
 */
static const char abci[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 4,"
    " \"node\": {\"topology\": \"nvlink_mesh\", \"links\": 2, \"link_bandwidth\": \"25 GB/s\","
    "  \"latency\": \"0.6 us\", \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 1,"
    "  \"gpus_per_switch\": 2, \"nics\": 2, \"bandwidth\": \"12 GB/s\","
    "  \"socket_bandwidth\": \"10 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"fat_tree\", \"levels\": 3, \"bandwidth\": \"12.5 GB/s\","
    "  \"down\": [17, 2, 64], \"up\": [3, 2], \"parallel\": [6, 2], \"latency\": \"0.1 us\"}}";

PRESET(abci, "abci",
       .summary = "preset: ABCI, 4 V100 per node, two EDR rails, racks of 17 nodes, 1:3 "
                  "oversubscribed between racks",
       .source =
           "Kahira et al., An oracle for guiding large-scale model/hybrid parallel training of "
           "convolutional neural networks, HPDC 2021, section 5.1; NCCL, src/graph/topo.h")

/* DGX-1 with 8 V100: hybrid cube-mesh of NVLinks (dgx1.c), two sockets with two PCIe switches each,
 * a switch for 2 GPUs and an EDR NIC. PCIe 3 x16 at 12 GB/s, 10 GB/s between the sockets and the
 * latencies are those that NCCL assumes (topo.h, tuning.cc). More than one are joined by EDR
 * switches of 36 ports in a fat-tree of full bandwidth, two levels: up to 162 of them. */
static const char dgx1_v100[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"dgx1\", \"generation\": \"v100\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, \"nics\": 4,"
    "  \"bandwidth\": \"12 GB/s\", \"socket_bandwidth\": \"10 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"fat_tree\", \"levels\": 2, \"radix\": 36,"
    "  \"bandwidth\": \"12.5 GB/s\", \"latency\": \"0.1 us\"}}";

PRESET(dgx1_v100, "dgx1-v100", .summary = "preset: DGX-1 with 8 V100, four EDR NICs, full fat-tree",
       .source = "NVIDIA, DGX-1 with Tesla V100 system architecture, WP-08437-002, 2017; NCCL, "
                 "src/graph/topo.h")

/* DGX A100: NVSwitch with 300 GB/s per GPU and direction; two sockets with two PCIe 4 switches
 * each, a switch for 2 GPUs and 2 HDR NICs (200 Gbit/s). PCIe 4 x16 at 24 GB/s and 16 GB/s between
 * the sockets are what NCCL assumes. More than one are joined as in a SuperPOD: eight rails, a
 * leaf per rail and 20 nodes, its 20 links up to the spines. The number of nodes is not limited
 * here by the ports of a spine. */
static const char dgx_a100[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"dgx-a100\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, \"nics\": 8,"
    "  \"bandwidth\": \"24 GB/s\", \"uplink_bandwidth\": \"24 GB/s\","
    "  \"socket_bandwidth\": \"16 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 20,"
    "  \"spines\": 10, \"parallel\": 2, \"bandwidth\": \"25 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(
    dgx_a100, "dgx-a100", .summary = "preset: DGX A100, 8 A100 on NVSwitch, eight HDR rails",
    .source =
        "NVIDIA, DGX A100 system architecture white paper, 2020; DGX SuperPOD (A100) reference "
        "architecture, 2021; NCCL, src/graph/topo.h")

/* HGX A800: a DGX A100 whose GPUs have 8 NVLinks in place of 12, 200 GB/s per direction. */
static const char hgx_a800[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"hgx-a800\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, \"nics\": 8,"
    "  \"bandwidth\": \"24 GB/s\", \"uplink_bandwidth\": \"24 GB/s\","
    "  \"socket_bandwidth\": \"16 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 20,"
    "  \"spines\": 10, \"parallel\": 2, \"bandwidth\": \"25 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(hgx_a800, "hgx-a800",
              .summary = "preset: HGX A800, 8 A800 on NVSwitch, eight HDR rails",
              .source = "NVIDIA, A800 Tensor Core GPU data sheet, 2022; all else as dgx-a100")

/* DGX H100: NVSwitch with 450 GB/s per GPU and direction; two sockets, PCIe 5 x16 at 48 GB/s (what
 * NCCL assumes), each GPU with an NDR NIC (400 Gbit/s) of its own on the same PCIe switch (in the
 * ConnectX-7), 40 GB/s between the sockets. More than one are joined as in a SuperPOD: eight rails,
 * a leaf of 64 ports per rail and 32 nodes, its 32 links up to 16 spines. The number of nodes is
 * not limited here by the ports of a spine. */
static const char dgx_h100[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"dgx-h100\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 4, \"gpus_per_switch\": 1, \"nics\": 8,"
    "  \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(
    dgx_h100, "dgx-h100", .summary = "preset: DGX H100, 8 H100 on NVSwitch, eight NDR rails",
    .source = "NVIDIA, H100 Tensor Core GPU architecture white paper, 2022; DGX SuperPOD (H100) "
              "reference architecture, 2023; NCCL, src/graph/topo.h")

/* HGX H800: a DGX H100 whose GPUs have 8 NVLinks in place of 18, 200 GB/s per direction, of which
 * DeepSeek reaches 160 (arXiv 2412.19437, section 3.2.2); there each has an NDR NIC as well. */
static const char hgx_h800[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"hgx-h800\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 4, \"gpus_per_switch\": 1, \"nics\": 8,"
    "  \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(
    hgx_h800, "hgx-h800", .summary = "preset: HGX H800, 8 H800 on NVSwitch, eight NDR rails",
    .source = "NVIDIA, H800 Tensor Core GPU data sheet, 2023; DeepSeek-AI, DeepSeek-V3 technical "
              "report, 2024 (arXiv 2412.19437), section 3.1; all else as dgx-h100")

/* DGX B200: NVSwitch with 900 GB/s per GPU and direction; PCIe, NICs and network are those of the
 * DGX H100. */
static const char dgx_b200[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 8,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"dgx-b200\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 2, \"switches_per_socket\": 4, \"gpus_per_switch\": 1, \"nics\": 8,"
    "  \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 8, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(
    dgx_b200, "dgx-b200", .summary = "preset: DGX B200, 8 B200 on NVSwitch, eight NDR rails",
    .source = "NVIDIA, DGX B200 datasheet, 2024; DGX SuperPOD (B200) reference architecture, 2024; "
              "NCCL, src/graph/topo.h")

/* GB200 NVL72: 72 B200 around the NVSwitches of a rack, 900 GB/s per GPU and direction; 36 Grace
 * CPUs with two GPUs each, and to each GPU an NDR NIC (400 Gbit/s) on PCIe 5 x16 at 48 GB/s; four
 * GPUs and NICs are a tray. Racks are joined by four rails, one for each NIC of a tray; a leaf of
 * 64 ports has
 * 32 links down, and 32 up to 16 spines. The number of racks is not limited here by the ports of a
 * spine. */
static const char gb200_nvl72[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 72,"
    " \"node\": {\"topology\": \"nvswitch\", \"model\": \"nvl72\", \"latency\": \"0.6 us\","
    "  \"pcie\": {\"sockets\": 36, \"switches_per_socket\": 2, \"gpus_per_switch\": 1, "
    "\"nics\": 72, \"bandwidth\": \"48 GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": "
    "\"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 4, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(
    gb200_nvl72, "gb200-nvl72",
    .summary = "preset: GB200 NVL72, racks of 72 B200 on NVSwitch, four NDR rails",
    .source =
        "NVIDIA, GB200 NVL72 datasheet, 2024; DGX SuperPOD (GB200) reference architecture, 2024; "
        "NCCL, src/graph/topo.h")

/* A node of four GH200, as in Alps and JUPITER. Each GPU has 18 NVLinks of 25 GB/s each way, six to
 * each of the other three GPUs. Each superchip has a NIC of 200 Gbit/s on PCIe 5 of its processor.
 * Links between the four processors exist, but no message between GPUs uses them. Nodes are joined
 * by one leaf switch per NIC, with full bandwidth above the leaves; the dragonflies of Slingshot
 * and of JUPITER are not simulated. */
static const char gh200_4[] =
    "{\"topology\": \"cluster\", \"gpus_per_node\": 4,"
    " \"node\": {\"topology\": \"nvlink_mesh\", \"links\": 6, \"link_bandwidth\": \"25 GB/s\","
    "  \"latency\": \"0.6 us\", \"pcie\": {\"sockets\": 4, \"switches_per_socket\": 1,"
    "  \"gpus_per_switch\": 1, \"nics\": 4, \"bandwidth\": \"48 GB/s\","
    "  \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}},"
    " \"network\": {\"topology\": \"leaf_spine\", \"rails\": 4, \"hosts_per_leaf\": 32,"
    "  \"spines\": 16, \"parallel\": 2, \"bandwidth\": \"25 GB/s\", \"latency\": \"0.1 us\","
    "  \"routing\": \"dmodk\"}}";

PRESET_ROUTED(gh200_4, "gh200-4",
              .summary = "preset: nodes of 4 GH200, six NVLinks between each pair, four NICs of "
                         "200 Gbit/s",
              .source =
                  "Fusco et al., Understanding data movement in tightly coupled heterogeneous "
                  "systems: a case study with the Grace Hopper superchip, 2024 (arXiv "
                  "2408.11556); NVIDIA, GH200 data sheet, 2023")

/* A server with 8 RTX TITAN and no NVLink bridges: PCIe 3 x16, two sockets with two switches each,
 * a switch for 2 GPUs. 12 GB/s per x16 link and 10 GB/s between the sockets are what NCCL assumes.
 * The two GPUs of a switch share its uplink. Where the driver does not let such GPUs talk to each
 * other directly, messages go through the memory of a host bridge: say so with host_bandwidth of a
 * pcie_tree. */
static const char pcie_8gpu[] =
    "{\"topology\": \"pcie_tree\", \"sockets\": 2, \"switches_per_socket\": 2,"
    " \"gpus_per_switch\": 2, \"bandwidth\": \"12 GB/s\", \"socket_bandwidth\": \"10 GB/s\","
    " \"latency\": \"0.5 us\"}";

PRESET(pcie_8gpu, "pcie-8gpu",
       .summary = "preset: 8 RTX TITAN on PCIe 3, two sockets with two PCIe switches each",
       .source = "Miao et al., Galvatron: efficient transformer training over multiple GPUs using "
                 "automatic parallelism, PVLDB 16(3), 2022 (nodes of 8 RTX TITAN on PCIe 3); NCCL, "
                 "src/graph/topo.h")

/* Servers with 8 cards and no NVLink bridges on PCIe 4, as a DGX A100 without its NVLinks, and on
 * PCIe 5. Between the sockets of eight A100 four pairs that gather at once reach 4 GB/s each
 * (SimuMax, MooreThreads, 4dcaae51, configs/system/a100_pcie.json: dp_fixed_bw), 0.8 of 20 GB/s in
 * all; with PCIe 5 all has twice as much, as a DGX H100 has by a DGX A100. */
static const char pcie4_8gpu[] =
    "{\"topology\": \"pcie_tree\", \"sockets\": 2, \"switches_per_socket\": 2,"
    " \"gpus_per_switch\": 2, \"bandwidth\": \"24 GB/s\", \"uplink_bandwidth\": \"24 GB/s\","
    " \"socket_bandwidth\": \"20 GB/s\", \"latency\": \"0.5 us\"}";

PRESET(pcie4_8gpu, "pcie4-8gpu",
       .summary = "preset: 8 cards on PCIe 4 (A100 PCIe, A40, A10, L40S, RTX A6000, 3090, 4090)",
       .source = "NCCL, src/graph/topo.h; SimuMax (MooreThreads), 4dcaae51, "
                 "configs/system/a100_pcie.json (between sockets)")

static const char pcie5_8gpu[] =
    "{\"topology\": \"pcie_tree\", \"sockets\": 2, \"switches_per_socket\": 2,"
    " \"gpus_per_switch\": 2, \"bandwidth\": \"48 GB/s\", \"uplink_bandwidth\": \"48 GB/s\","
    " \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}";

PRESET(pcie5_8gpu, "pcie5-8gpu",
       .summary = "preset: 8 cards on PCIe 5 (H100 PCIe and NVL, H200 NVL, RTX 5090)",
       .source = "NCCL, src/graph/topo.h; between sockets twice what pcie4-8gpu has")
