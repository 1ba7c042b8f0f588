/* Rules for the section "platform": which GPU, in which nodes, joined by what. */
#include "sim/base/number.h"
#include "sim/base/text-stream.h"
#include "sim/recipe/rules.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* GPUs by the words of their names, as data sheets, CUDA and ROCm have them: the first row of whose
 * words the name has all, as "NVIDIA A100-PCIE-40GB" has "a100", "pcie" and "40". Of a machine that
 * the source leaves open `note` says what it is taken for. */
typedef struct machine {
    const char *words[3];
    const char *device;   /* of `sim list devices`; NULL: known not to be one of them */
    const char *topology; /* of `sim list topologies`, of more than one GPU */
    const char *note;
} machine;

static const machine machines[] = {
    {{"laptop"}, NULL, NULL, NULL},
    {{"a100", "pcie", "40"}, "a100-40gb-pcie", "pcie4-8gpu", NULL},
    {{"a100", "pcie"}, "a100-80gb-pcie", "pcie4-8gpu", NULL},
    {{"a100", "40"}, "a100-40gb", "dgx-a100", NULL},
    {{"a100"}, "a100", "dgx-a100", NULL},
    {{"a800", "pcie"}, NULL, NULL, NULL},
    {{"a800", "40"}, NULL, NULL, NULL},
    {{"a800"}, "a800", "hgx-a800", NULL},
    {{"h100", "pcie"}, "h100-pcie", "pcie5-8gpu", NULL},
    {{"h100", "nvl"}, "h100-nvl", "pcie5-8gpu", NULL},
    {{"h100", "96"}, "h100-96gb", "dgx-h100", NULL},
    {{"h100"}, "h100", "dgx-h100", NULL},
    {{"h200", "nvl"}, "h200-nvl", "pcie5-8gpu", NULL},
    {{"h200"}, "h200", "dgx-h100", NULL},
    {{"h800", "pcie"}, NULL, NULL, NULL},
    {{"h800"}, "h800", "hgx-h800", NULL},
    {{"h20", "3e"}, NULL, NULL, NULL}, /* 141 GB */
    {{"h20"}, "h20", "dgx-h100", NULL},
    {{"b200"}, "b200", "dgx-b200", NULL},
    {{"b300"}, "b300", "dgx-b200", NULL},
    {{"gb200"}, "gb200", "gb200-nvl72", NULL},
    {{"gb300"}, "gb300", "gb200-nvl72", NULL},
    {{"gh200", "144"}, NULL, NULL, NULL}, /* HBM3e */
    {{"gh200"}, "gh200", "gh200-4", NULL},
    {{"a10"}, "a10", "pcie4-8gpu", NULL},
    {{"a30"}, "a30", "pcie4-8gpu", NULL},
    {{"a40"}, "a40", "pcie4-8gpu", NULL},
    {{"a6000"}, "rtx-a6000", "pcie4-8gpu", NULL},
    {{"l40"}, "l40", "pcie4-8gpu", NULL},
    {{"l40s"}, "l40s", "pcie4-8gpu", NULL},
    {{"l4"}, "l4", "pcie4-8gpu", NULL},
    {{"6000", "ada"}, "rtx-6000-ada", "pcie4-8gpu", NULL},
    {{"3090", "ti"}, NULL, NULL, NULL},
    {{"3090"}, "rtx-3090", "pcie4-8gpu", NULL},
    {{"4090", "d"}, NULL, NULL, NULL},
    {{"4090"}, "rtx-4090", "pcie4-8gpu", NULL},
    {{"5090", "d"}, NULL, NULL, NULL},
    {{"5090"}, "rtx-5090", "pcie5-8gpu", NULL},
    {{"2080", "ti"}, "rtx-2080-ti", "pcie-8gpu", NULL},
    {{"titan", "rtx"}, "titan-rtx", "pcie-8gpu", NULL},
    {{"mi300x"}, "mi300x", "mi300x-8", NULL},
    {{"mi325x"}, "mi325x", "mi300x-8", NULL},
    {{"mi350x"}, "mi350x", "mi355x-8", NULL},
    {{"mi355x"}, "mi355x", "mi355x-8", NULL},
    {{"mi100"}, "mi100", NULL, NULL},
    {{"mi210"}, "mi210", NULL, NULL},
    {{"mi250"}, "mi250", NULL, NULL},
    {{"mi250x"}, "mi250x", NULL, NULL},
    {{"p4"}, "p4", "pcie-8gpu", NULL},
    {{"p40"}, "p40", "pcie-8gpu", NULL},
    {{"p100", "pcie"}, "p100-pcie", "pcie-8gpu", NULL},
    {{"p100"}, "p100", NULL, NULL},
    {{"t4"}, "t4", "pcie-8gpu", NULL},
    {{"v100", "stated"},
     "v100",
     "dgx1-v100",
     "a V100 in nodes with one adapter of 100 Gbit/s, as in OneFlow's DLPerf, where the point "
     "names "
     "a GPU of its figures only"},
    {{"v100", "pcie"}, "v100-pcie", "pcie-8gpu", NULL},
    {{"v100"}, "v100", "dgx1-v100", NULL},
};

/* Letters and digits from `*at` on, which is moved behind them; 0: there are none. */
static size_t next_word(const char **at)
{
    const char *from = *at;
    while (*from && !isalnum((unsigned char)*from))
        from++;
    const char *to = from;
    while (isalnum((unsigned char)*to))
        to++;
    *at = to;
    return (size_t)(to - from);
}

/* Whether a name has the word, in any case, with its unit where it is a number of GB. */
static bool has_word(const char *name, const char *word)
{
    const size_t length = strlen(word);
    size_t n;
    for (const char *at = name; (n = next_word(&at)) > 0;)
        if (strncasecmp(at - n, word, length) == 0 &&
            (n == length || (n == length + 2 && strncasecmp(at - 2, "gb", 2) == 0)))
            return true;
    return false;
}

static const machine *find_machine(const cs_description *point)
{
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        bool all = true;
        for (size_t w = 0; w < 3 && machines[i].words[w]; w++)
            all &= has_word(point->hardware->gpu, machines[i].words[w]);
        if (all)
            return machines[i].device ? &machines[i] : NULL;
    }
    return NULL;
}

/* GiB: as stated, or as the name of the GPU has it ("32GB"); NaN: neither. The name "GH200 480GB"
 * has the memory of its processor. */
static double memory_of(const cs_description *point)
{
    size_t n;
    if (isfinite(point->hardware->memory_gb) || has_word(point->hardware->gpu, "gh200"))
        return point->hardware->memory_gb;
    for (const char *at = point->hardware->gpu; (n = next_word(&at)) > 0;) {
        char *end;
        const double size = strtod(at - n, &end);
        if (end == at - 2 && strncasecmp(end, "gb", 2) == 0)
            return size;
    }
    return (double)NAN;
}

const char *cs_rules_gpu(const cs_description *point)
{
    const machine *found = find_machine(point);
    return found ? found->device : "";
}

cs_device_facts cs_rules_facts(const cs_description *point)
{
    const char *name = cs_rules_gpu(point);
    cs_accelerator device = {0};
    cs_error ignored;
    cs_error_init(&ignored);
    if (!*name || cs_accelerator_load(name, NULL, &device, &ignored) != CS_OK)
        return (cs_device_facts){0};
    const cs_device_facts facts = cs_accelerator_facts(&device);
    cs_accelerator_finish(&device);
    return facts;
}

static bool is_rack(const machine *found)
{
    return found && found->topology && strcmp(found->topology, "gb200-nvl72") == 0;
}

bool cs_rules_rack(const cs_description *point)
{
    return is_rack(find_machine(point));
}

const char *cs_rules_device(cs_rules *rules)
{
    const machine *found = find_machine(rules->run);
    if (!found)
        cs_rules_miss(rules, "the device %s", rules->run->hardware->gpu);
    else if (found->note)
        cs_rules_assume(rules, "%s", found->note);
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

/* With PCIe 4 and HDR. */
static bool is_ampere(const char *topology)
{
    return strcmp(topology, "dgx-a100") == 0 || strcmp(topology, "hgx-a800") == 0;
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
            found->topology, is_ampere(found->topology) ? "24 GB/s" : "48 GB/s");
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
static void write_racks(cs_rules *rules, FILE *out)
{
    cs_rules_assume(rules, "64 of a rack's 72 GPUs, where a job takes more");
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
static void write_infinity(cs_rules *rules, const char *topology, bool several, FILE *out)
{
    const bool wide = strcmp(topology, "mi355x-8") == 0;
    if (several)
        cs_rules_miss(rules, "several nodes of %s", rules->run->hardware->gpu);
    fprintf(out,
            "\"topology\": \"nvlink_mesh\", \"links\": 1, \"link_bandwidth\": \"%s\", "
            "\"latency\": \"0.6 us\"",
            wide ? "76.8 GB/s" : "64 GB/s");
}

static const network *find_network(const cs_description *point)
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
static bool is_wide(const cs_description *point)
{
    return point->parallel->pp > 1 && point->hardware->gpus > 64 && !point->options->profiled_ms;
}

/* The adapters of the presets, of nodes that have one for each GPU. */
static const network *find_flat(const machine *found)
{
    static const network hdr = {NULL, 8, "200 Gbit/s"}, ndr = {NULL, 8, "400 Gbit/s"};
    static const char *const with_ndr[] = {"dgx-h100", "hgx-h800", "dgx-b200"};
    if (is_ampere(found->topology))
        return &hdr;
    for (size_t i = 0; i < sizeof(with_ndr) / sizeof(with_ndr[0]); i++)
        if (strcmp(found->topology, with_ndr[i]) == 0)
            return &ndr;
    return NULL;
}

static bool is_pcie(const char *topology)
{
    return strncmp(topology, "pcie", strlen("pcie")) == 0;
}

static void write_links(cs_rules *rules, const machine *found, FILE *out)
{
    const cs_description_hardware *hardware = rules->run->hardware;
    const char *topology = found->topology;
    const bool quad = topology && strcmp(topology, "gh200-4") == 0;
    const uint32_t node = hardware->gpus_per_node > 0 ? hardware->gpus_per_node : quad ? 4 : 8;
    const bool rack = is_rack(found);
    const bool several = hardware->gpus > node && !rack;
    if (topology && strcmp(topology, "dgx1-v100") == 0 && hardware->inter &&
        strstr(hardware->inter, "ABCI"))
        topology = "abci";
    if (hardware->gpus == 1)
        fputs("\"topology\": \"ideal\"", out);
    else if (!topology || (quad && node != 4))
        cs_rules_miss(rules, "the nodes of %s", hardware->gpu);
    else if (is_pcie(topology) && (several || hardware->gpus > 8))
        cs_rules_miss(rules, "several nodes of %s", hardware->gpu);
    else if (strncmp(topology, "mi3", strlen("mi3")) == 0)
        write_infinity(rules, topology, several, out);
    else if (is_wide(rules->run) && several && !find_network(rules->run) && find_flat(found))
        write_cluster(found, find_flat(found), out);
    else if (rack && hardware->gpus > 72)
        write_racks(rules, out);
    else if (several && strcmp(topology, "abci") != 0 && says_preset(hardware->inter))
        fprintf(out, "\"topology\": \"%s\"", topology);
    else if (several && strcmp(topology, "abci") != 0 && find_network(rules->run))
        write_cluster(found, find_network(rules->run), out);
    else {
        if (several && strcmp(topology, "abci") != 0)
            cs_rules_assume(rules, "nodes are joined as in %s, where the point does not say how",
                            topology);
        if (is_pcie(topology))
            cs_rules_assume(rules, "cards have no bridges of NVLinks between them");
        fprintf(out, "\"topology\": \"%s\"", topology);
    }
}

/* ---- the section ---- */

/* Each message has the time that was measured, and no other to share links with. */
static void write_measured_links(const cs_description *run, FILE *out)
{
    char latency[CS_NUMBER_TEXT_BYTES];
    const double stated = cs_time_seconds(run->options->exchange_latency);
    const double seconds = stated > 0 ? stated : run->options->profiled_ms->message * 1e-3;
    fprintf(out, "\"topology\": \"nvlink_switch\", \"bandwidth\": \"1 PB/s\", \"latency\": %s",
            cs_number_format(seconds, latency, sizeof(latency)));
}

/* Writes the memory only if it differs from the device's by more than 10 %: vendors call 270 GiB
 * "288 GB". If a GPU is sold with several sizes of memory, the driver is assumed to report the same
 * share of each size. */
static void write_memory(const cs_description *point, FILE *out)
{
    static const double gib = 1024.0 * 1024 * 1024;
    const cs_device_facts facts = cs_rules_facts(point);
    const double stated = memory_of(point) * gib, nominal = (double)facts.memory;
    const cs_driver *driver = &facts.driver;
    if (!isfinite(stated) || !(fabs(stated - nominal) > 0.1 * nominal))
        return;
    const double reported = nominal > 0 ? stated * ((double)driver->reported / nominal) : stated;
    const int64_t taken = driver->context + (point->hardware->gpus > 1 ? driver->communicator : 0);
    fprintf(out, ", \"memory\": \"%.9g GiB\", \"reserve\": %.0f", reported / gib,
            (double)taken < reported / 2 ? (double)taken : 0);
}

static void write_platform(cs_rules *rules, FILE *out)
{
    const cs_description *point = rules->run;
    const machine *found = find_machine(point);
    const bool blocking = point->options->blocking_messages;
    fputs("{", out);
    if (point->options->profiled_ms)
        write_measured_links(point, out);
    else if (found)
        write_links(rules, found, out);
    fprintf(out, ", \"devices\": %u", point->hardware->gpus);
    if (is_wide(point)) {
        cs_rules_assume(rules, "messages between stages share no links, on over 64 GPUs");
        fputs(", \"sharing\": \"none\"", out);
    }
    write_memory(point, out);
    if (blocking)
        fputs(", \"blocking\": true", out);
    fputs("}", out);
}

void cs_rules_platform(cs_rules *rules)
{
    char *text = NULL;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    if (!out) {
        rules->status = cs_error_no_memory(rules->error);
        return;
    }
    write_platform(rules, out);
    if (fclose(out) == 0 && rules->made->n_missing == 0)
        cs_rules_put(rules, "/scenario/platform", cJSON_Parse(text));
    free(text);
}
