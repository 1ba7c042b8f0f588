/* Rules for the section "platform": which GPU, in which nodes, joined by what. */
#include "sim/base/fitted.h"
#include "sim/base/number.h"
#include "sim/validate/point-rules.h"

#include <math.h>
#include <string.h>

/* What a GPU is called in points, and what stands for it here. Of a machine that the source leaves
 * open `note` says what it is taken for. */
typedef struct machine {
    const char *gpu;
    const char *device;   /* of `sim list devices` */
    const char *topology; /* of `sim list topologies`, of more than one GPU */
    const char *note;
} machine;

static const machine machines[] = {
    {"A100-SXM4-80GB", "a100", "dgx-a100", NULL},
    {"A100-SXM4-40GB", "a100-40gb", "dgx-a100", NULL},
    {"NVIDIA_A100-SXM4-40GB", "a100-40gb", "dgx-a100", NULL},
    {"A100-PCIe-80GB", "a100-80gb-pcie", "pcie-a100", NULL},
    {"NVIDIA_A100_80GB_PCIe", "a100-80gb-pcie", "pcie-a100", NULL},
    {"H100-SXM5-80GB", "h100", "dgx-h100", NULL},
    {"NVIDIA_H100_80GB_HBM3", "h100", "dgx-h100", NULL},
    {"H100 96GB HBM2e (Grand Teton, 500 W)", "h100-96gb", "dgx-h100", NULL},
    {"H200-SXM-141GB", "h200", "dgx-h100", NULL},
    {"B200-SXM-180GB", "b200", "dgx-b200", NULL},
    {"B300-SXM-288GB", "b300", "dgx-b200", NULL},
    {"GB200 (NVL72)", "gb200", "gb200-nvl72", NULL},
    {"GB300 (NVL72)", "gb300", "gb200-nvl72", NULL},
    {"L40S-48GB", "l40s", "pcie-a100", NULL},
    {"RTX 4090", "rtx-4090", "pcie-a100", NULL},
    {"MI300X-192GB", "mi300x", "mi300x-8", NULL},
    {"MI325X-256GB", "mi325x", "mi300x-8", NULL},
    {"MI355X-288GB", "mi355x", "mi355x-8", NULL},
    {"AMD_Instinct_MI100", "mi100", NULL, NULL},
    {"AMD_Instinct_MI210", "mi210", NULL, NULL},
    {"AMD_Instinct_MI250", "mi250", NULL, NULL},
    {"Tesla P40 24GB", "p40", "pcie-8gpu", NULL},
    {"V100-SXM2-16GB", "v100", "dgx1-v100", NULL},
    {"not stated (V100 class)", "v100", "dgx1-v100",
     "a V100 in nodes with one adapter of 100 Gbit/s, as in OneFlow's DLPerf, where the point "
     "names "
     "a GPU of its figures only"},
};

static const machine *find_machine(const cs_point *point)
{
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
        if (strcmp(machines[i].gpu, point->hardware->gpu) == 0)
            return &machines[i];
    return NULL;
}

const char *cs_point_rules_device(cs_point_rules *rules)
{
    const machine *found = find_machine(rules->point);
    if (!found)
        cs_point_rules_miss(rules, "the device %s", rules->point->hardware->gpu);
    else if (found->note)
        cs_point_rules_assume(rules, "%s", found->note);
    return found ? found->device : NULL;
}

/* ---- links ---- */

/* Networks that are not what the nodes' presets have: adapters of a node and their bandwidth
 * each. */
typedef struct network {
    const char *words; /* in the point's words on links between nodes */
    uint32_t nics;
    const char *bandwidth;
} network;

static const network networks[] = {
    {"Omni-Path, 4 x 100 Gbit/s", 8, "50 Gbit/s"}, /* half an adapter for each GPU */
    {"800 Gbit/s per node", 8, "100 Gbit/s"},
    {"100 Gbit/s", 1, "100 Gbit/s"},
};

/* Words that say what the preset has. */
static const char *const as_preset[] = {"8 x HDR", "1600 Gbit/s", "NDR 400", "400 Gbit/s",
                                        "NDR InfiniBand"};

/* Two sockets with two PCIe 4 switches each, as in a DGX A100 (topologies/dgx-a100.c) without its
 * NVLinks. Between the sockets four pairs that gather at once reach 4 GB/s each (SimuMax,
 * MooreThreads, 4dcaae51, configs/system/a100_pcie.json: dp_fixed_bw), 0.8 of 20 GB/s in all. */
static void write_pcie(FILE *out)
{
    fputs("\"topology\": \"pcie_tree\", \"sockets\": 2, \"switches_per_socket\": 2, "
          "\"bandwidth\": \"24 GB/s\", \"uplink_bandwidth\": \"24 GB/s\", \"socket_bandwidth\": "
          "\"20 GB/s\", \"latency\": \"0.5 us\"",
          out);
}

static void write_node(const machine *found, uint32_t nics, FILE *out)
{
    if (strcmp(found->topology, "dgx1-v100") == 0)
        fputs(
            "\"node\": {\"topology\": \"dgx1\", \"generation\": \"v100\", \"latency\": \"0.6 us\", "
            "\"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, ",
            out);
    else
        fprintf(
            out,
            "\"node\": {\"topology\": \"nvswitch\", \"model\": \"%s\", \"latency\": \"0.6 us\", "
            "\"pcie\": {\"sockets\": 2, \"switches_per_socket\": 2, \"gpus_per_switch\": 2, "
            "\"bandwidth\": \"%s\", ",
            found->topology, strcmp(found->topology, "dgx-a100") == 0 ? "24 GB/s" : "48 GB/s");
    fprintf(out, "\"nics\": %u, \"latency\": \"0.5 us\"}}", nics);
}

/* Nodes of the preset's kind, a full fat-tree or a rail for each adapter between them. */
static void write_cluster(const machine *found, const network *between, FILE *out)
{
    fprintf(out, "\"topology\": \"cluster\", \"gpus_per_node\": 8, ");
    write_node(found, between->nics, out);
    if (between->nics > 1)
        fprintf(out,
                ", \"network\": {\"topology\": \"leaf_spine\", \"rails\": %u, \"hosts_per_leaf\": "
                "1024, \"spines\": 10, \"parallel\": 2, \"bandwidth\": \"%s\", \"latency\": "
                "\"0.1 us\"}",
                between->nics, between->bandwidth);
    else
        fprintf(out,
                ", \"network\": {\"topology\": \"fat_tree\", \"levels\": 2, \"radix\": 36, "
                "\"bandwidth\": \"%s\", \"latency\": \"0.1 us\"}",
                between->bandwidth);
}

/* Racks of 72 of which jobs take 64, so that meshes of powers of two stay within: four rails of NDR
 * between them, as in the preset gb200-nvl72. */
static void write_racks(cs_point_rules *rules, FILE *out)
{
    cs_point_rules_assume(rules, "64 of a rack's 72 GPUs, where a job takes more");
    fputs(
        "\"topology\": \"cluster\", \"gpus_per_node\": 64, \"node\": {\"topology\": "
        "\"nvswitch\", \"model\": \"nvl72\", \"latency\": \"0.6 us\", \"pcie\": {\"sockets\": 36, "
        "\"switches_per_socket\": 2, \"gpus_per_switch\": 1, \"nics\": 72, \"bandwidth\": \"48 "
        "GB/s\", \"socket_bandwidth\": \"40 GB/s\", \"latency\": \"0.5 us\"}}, \"network\": "
        "{\"topology\": \"leaf_spine\", \"rails\": 4, \"hosts_per_leaf\": 1024, \"spines\": 16, "
        "\"parallel\": 2, \"bandwidth\": \"50 GB/s\", \"latency\": \"0.1 us\"}",
        out);
}

/* Eight GPUs, each pair with a link of Infinity Fabric of its own: 64 GB/s each way (AMD, MI300X data
 * sheet: 7 links of 128 GB/s both ways), 76.8 GB/s (MI355X data sheet: 1,075 GB/s of seven). */
static void write_infinity(cs_point_rules *rules, const char *topology, bool several, FILE *out)
{
    const bool wide = strcmp(topology, "mi355x-8") == 0;
    if (several)
        cs_point_rules_miss(rules, "several nodes of AMD's GPUs");
    fprintf(out,
            "\"topology\": \"nvlink_mesh\", \"links\": 1, \"link_bandwidth\": \"%s\", "
            "\"latency\": \"0.6 us\"",
            wide ? "76.8 GB/s" : "64 GB/s");
}

static const network *find_network(const cs_point *point)
{
    const char *words = point->hardware->inter;
    if (strcmp(point->hardware->gpu, "not stated (V100 class)") == 0)
        words = "100 Gbit/s"; /* Oneflow-Inc/DLPerf, README: InfiniBand 100 Gb/sec (4X EDR) */
    for (size_t i = 0; words && i < sizeof(networks) / sizeof(networks[0]); i++)
        if (strstr(words, networks[i].words))
            return &networks[i];
    return NULL;
}

static bool says_preset(const char *words)
{
    for (size_t i = 0; words && i < sizeof(as_preset) / sizeof(as_preset[0]); i++)
        if (strstr(words, as_preset[i]))
            return true;
    return false;
}

/* Pipelines of which one of many like places is simulated: their messages then share no links, and
 * all nodes are below one level of switches. */
static bool is_wide(const cs_point *point)
{
    return point->parallel->pp > 1 && point->hardware->gpus > 64 && !point->options->profiled_ms;
}

/* The adapters of the presets, of nodes that have one for each GPU. */
static const network *find_flat(const machine *found)
{
    static const network hdr = {NULL, 8, "200 Gbit/s"}, ndr = {NULL, 8, "400 Gbit/s"};
    const char *topology = found->topology;
    if (strcmp(topology, "dgx-a100") == 0)
        return &hdr;
    return strcmp(topology, "dgx-h100") == 0 || strcmp(topology, "dgx-b200") == 0 ? &ndr : NULL;
}

static void write_links(cs_point_rules *rules, const machine *found, FILE *out)
{
    const cs_point_hardware *hardware = rules->point->hardware;
    const uint32_t node = hardware->gpus_per_node > 0 ? hardware->gpus_per_node : 8;
    const char *topology = found->topology;
    const bool rack = topology && strcmp(topology, "gb200-nvl72") == 0;
    const bool several = hardware->gpus > node && !rack;
    if (topology && strcmp(topology, "dgx1-v100") == 0 && hardware->inter &&
        strstr(hardware->inter, "ABCI"))
        topology = "abci";
    if (hardware->gpus == 1)
        fputs("\"topology\": \"ideal\"", out);
    else if (!topology)
        cs_point_rules_miss(rules, "the nodes of %s", hardware->gpu);
    else if (strcmp(topology, "pcie-a100") == 0)
        write_pcie(out);
    else if (strncmp(topology, "mi3", strlen("mi3")) == 0)
        write_infinity(rules, topology, several, out);
    else if (is_wide(rules->point) && several && !find_network(rules->point) && find_flat(found))
        write_cluster(found, find_flat(found), out);
    else if (rack && hardware->gpus > 72)
        write_racks(rules, out);
    else if (several && strcmp(topology, "abci") != 0 && says_preset(hardware->inter))
        fprintf(out, "\"topology\": \"%s\"", topology);
    else if (several && strcmp(topology, "abci") != 0 && find_network(rules->point))
        write_cluster(found, find_network(rules->point), out);
    else {
        if (several && strcmp(topology, "abci") != 0)
            cs_point_rules_assume(
                rules, "nodes are joined as in %s, where the point does not say how", topology);
        fprintf(out, "\"topology\": \"%s\"", topology);
    }
}

/* ---- the section ---- */

/* Megatron-LM overlaps messages between stages with computing in interleaved schedules only
 * (megatron/training/arguments.py: "Overlap P2P communication is disabled if not using the
 * interleaved schedule"), and before that could be switched on, in 2023, in none. The schedules of
 * the zero-bubble fork send and receive asynchronously and wait where a tensor is read
 * (megatron/core/pipeline_parallel/zb_schedules.py). */
static bool blocks(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const char *note;
    const bool old = strcmp(cs_point_rules_runtime(point, &note), "megatron-lm-2021") == 0;
    const bool plain = strcmp(point->schedule, "1f1b") == 0 && point->parallel->vpp == 1;
    const bool interleaved = old && strcmp(point->schedule, "interleaved_1f1b") == 0;
    if (!cs_point_rules_megatron(point) || !(plain || interleaved) || point->parallel->pp < 2)
        return false;
    cs_point_rules_assume(rules,
                          "messages between stages block computing, as in Megatron-LM without "
                          "interleaving, and before 2023 with it");
    return true;
}

/* Each message has the time that was measured, and no other to share links with. That was measured
 * of schedules that send asynchronously; an exchange of interleaved stages that blocks ends with
 * the host waiting for the device (megatron/p2p_communication.py: torch.cuda.synchronize behind
 * batch_isend_irecv), which takes as long whatever is sent: a fitted figure (tests/fit-figures.py).
 */
static void write_measured_links(cs_point_rules *rules, bool blocking, FILE *out)
{
    const cs_point *point = rules->point;
    char latency[CS_NUMBER_TEXT_BYTES];
    fputs("\"topology\": \"nvlink_switch\", \"bandwidth\": \"1 PB/s\", \"latency\": ", out);
    if (blocking && point->parallel->vpp > 1) {
        cs_point_rules_assume(rules, "a message of interleaved stages takes " CS_FITTED_EXCHANGE
                                     ", whatever its size, where the host waits for it");
        fputs("\"" CS_FITTED_EXCHANGE "\"", out);
    } else {
        fputs(
            cs_number_format(point->options->profiled_ms->message * 1e-3, latency, sizeof(latency)),
            out);
    }
}

void cs_point_rules_platform(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const machine *found = find_machine(point);
    const bool blocking = blocks(rules);
    fputs("\"platform\": {", out);
    if (point->options->profiled_ms)
        write_measured_links(rules, blocking, out);
    else if (found)
        write_links(rules, found, out);
    fprintf(out, ", \"devices\": %u", point->hardware->gpus);
    if (is_wide(point)) {
        cs_point_rules_assume(rules, "messages between stages share no links, on over 64 GPUs");
        fputs(", \"sharing\": \"none\"", out);
    }
    if (isfinite(point->hardware->memory_gb))
        fprintf(out, ", \"memory\": \"%.9g GiB\"", point->hardware->memory_gb);
    if (blocking)
        fputs(", \"blocking\": true", out);
    fputs("}", out);
}
