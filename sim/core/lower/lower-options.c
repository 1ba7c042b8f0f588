#include "sim/core/lower/lower.h"

#include <math.h>

static const char *const algorithm_names[] = {
    "auto",      "usual",  "ring",         "halving",       "tree",          "hierarchical",
    "segmented", "direct", "ring_per_nic", "once_per_node", "ring_per_link", NULL};
static const char *const gradients_names[] = {
    "algorithm", "auto",   "usual",        "ring",          "halving",       "tree", "hierarchical",
    "segmented", "direct", "ring_per_nic", "once_per_node", "ring_per_link", NULL};
static const char *const fidelity_names[] = {"auto", "flow", "analytic", "alpha_beta", NULL};
static const char *const sharing_names[] = {"platform", "max_min", NULL};
static const char *const nccl_names[] = {"none", "volta", "ampere", "hopper", "blackwell", NULL};
static const char *const nccl_algorithm_names[] = {"auto", "tree",      "ring",
                                                   "nvls", "nvls_tree", NULL};
static const char *const order_names[] = {"given", "found", "auto", NULL};

const cs_field cs_lower_level_fields[] = {
    {"alpha", CS_FIELD_TIME, offsetof(cs_alpha_beta, alpha), .fallback = "0 s", .usual_max = 0.1,
     .doc = "time of a message that does not depend on its size"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_alpha_beta, bandwidth), .above_min = true,
     .doc = "1 / beta"},
    {0}};

const cs_field cs_lower_dispatch_fields[] = {
    {"reached", CS_FIELD_NUMBER, offsetof(cs_dispatch_cost, reached), .fallback = "1",
     .above_min = true, .max = 1, .doc = "fraction of the links' bandwidths that it reaches"},
    {"start", CS_FIELD_TIME, offsetof(cs_dispatch_cost, start), .fallback = "0", .usual_max = 0.1,
     .doc = "time that does not depend on its size"},
    {0}};

#define LEVEL(key, number)                                                                         \
    {                                                                                              \
        key, CS_FIELD_OBJECT,                                                                      \
            offsetof(cs_given_levels, level) + (number) * sizeof(cs_alpha_beta *),                 \
            .fallback = "", .of = cs_lower_level_fields, .size = sizeof(cs_alpha_beta)             \
    }

static const cs_field levels_fields[] = {LEVEL("gpu_pair", CS_LEVEL_GPU_PAIR),
                                         LEVEL("node", CS_LEVEL_NODE),
                                         LEVEL("rack", CS_LEVEL_RACK),
                                         LEVEL("system", CS_LEVEL_SYSTEM),
                                         {0}};

const cs_field cs_lower_fields[] = {
    {"algorithm", CS_FIELD_CHOICE, offsetof(cs_lower_options, algorithm), .fallback = "usual",
     .choices = algorithm_names,
     .doc = "algorithm of all collectives; if named, it must fit all of them; usual: ring_per_nic, "
            "else ring_per_link (except on a ring or torus), else ring, else direct (all_to_all: "
            "direct, or as \"dispatcher\" says); auto: the fastest when nothing else runs"},
    {"gradients", CS_FIELD_CHOICE, offsetof(cs_lower_options, gradients), .fallback = "algorithm",
     .choices = gradients_names,
     .doc = "algorithm of weight-gradient reductions; algorithm: the same as for all others; "
            "hierarchical: through one leader per node; segmented: through all devices of a node "
            "(multi-leader)"},
    {"chunks", CS_FIELD_COUNT, offsetof(cs_lower_options, chunks), .fallback = "0", .max = 4096,
     .doc = "number of chunks into which chains and trees cut the vector; 0: the fastest of 1, 4, "
            "16 and 64"},
    {"fidelity", CS_FIELD_CHOICE, offsetof(cs_lower_options, fidelity), .fallback = "auto",
     .choices = fidelity_names,
     .doc = "flow: every message is simulated; analytic: a collective is one delay, its time when "
            "nothing runs but the same collective in other groups of the mesh; alpha_beta: one "
            "delay by the alpha-beta model; auto: analytic with \"reached\", \"start\", "
            "\"tensor_overlap\", \"expert_overlap\" or \"nccl\", which apply to delays only, or "
            "above most_flows; else flow"},
    {"order", CS_FIELD_CHOICE, offsetof(cs_lower_options, order), .fallback = "auto",
     .choices = order_names,
     .doc =
         "order of the ranks; given: as numbered by the scenario; found: each rank is followed by "
         "the nearest of those that are left; auto: found within each node if one ring per "
         "NIC is possible, otherwise given"},
    {"sharing", CS_FIELD_CHOICE, offsetof(cs_lower_options, sharing), .fallback = "platform",
     .choices = sharing_names,
     .doc = "how the messages of collectives that are one delay share links; platform: as all "
            "transfers do; max_min: fairly, even if other transfers do not share links"},
    {"reached", CS_FIELD_VARIANT, offsetof(cs_lower_options, reached), .fallback = "1",
     .size = sizeof(cs_reached), .kind = &cs_reached_kind,
     .doc = "fraction of the links' bandwidths that a collective reaches, if it is one delay; or a "
            "fraction for each level of its messages, by default that of the next nearer level",
     .shape = "a number > 0 and <= 1, or {gpu_pair, node, rack, system: number}"},
    {"network_reached", CS_FIELD_NUMBER, offsetof(cs_lower_options, network_reached),
     .fallback = "", .above_min = true, .max = 1,
     .doc = "what \"reached\" is for messages between nodes; default: as it says itself"},
    {"tensor_overlap", CS_FIELD_NUMBER, offsetof(cs_lower_options, tensor_overlap), .fallback = "0",
     .max = 1,
     .doc = "share of a tensor-parallel collective that products hide, not counting the first of "
            "its chunks (as many as ranks); only if it is one delay"},
    {"expert_overlap", CS_FIELD_NUMBER, offsetof(cs_lower_options, expert_overlap), .fallback = "",
     .max = 1,
     .doc =
         "share of an all_to_all of experts that layers of another micro-batch hide: of all, but "
         "with interleaved_1f1b and dualpipe_v only of those in pairs of a forward and a backward; "
         "only if it is one delay; "
         "default: 0.85 with dualpipe_v, else 0"},
    {"start", CS_FIELD_TIME, offsetof(cs_lower_options, start), .fallback = "0", .usual_max = 0.1,
     .doc =
         "time until the kernel of a collective has started on all ranks; only if it is one delay"},
    {"dispatch", CS_FIELD_OBJECT, offsetof(cs_lower_options, dispatch), .fallback = "",
     .of = cs_lower_dispatch_fields, .size = sizeof(cs_dispatch_cost),
     .doc = "for an all_to_all by once_per_node that leaves a node and is one delay: values that "
            "replace reached and start",
     .shape = "{dispatch}"},
    {"nccl", CS_FIELD_CHOICE, offsetof(cs_lower_options, nccl), .fallback = "none",
     .choices = nccl_names,
     .doc = "latencies, protocols and thresholds of NCCL on GPUs of this generation, instead of "
            "the links' latencies; for each all_reduce, all_gather or reduce_scatter that is one "
            "delay and would use rings"},
    {"nccl_algorithm", CS_FIELD_CHOICE, offsetof(cs_lower_options, nccl_algorithm),
     .fallback = "auto", .choices = nccl_algorithm_names,
     .doc = "with nccl: the algorithm, as NCCL_ALGO sets it; auto: the fastest; nvls: sums within "
            "the NVSwitches of one node, nvls_tree: of several nodes, both from hopper on; ring is "
            "used for collectives that the algorithm does not do"},
    {"network_latency", CS_FIELD_TIME, offsetof(cs_lower_options, network_latency), .fallback = "0",
     .usual_max = 0.1,
     .doc = "with nccl: extra latency of a step between nodes, compared with InfiniBand, as the "
            "network's plugin tells NCCL; the protocol Simple pays it twice"},
    {"most_flows", CS_FIELD_COUNT, offsetof(cs_lower_options, most_flows), .fallback = "4000000",
     .doc = "with fidelity auto: largest number of messages in a run for which each is simulated"},
    {"levels", CS_FIELD_OBJECT, offsetof(cs_lower_options, given), .fallback = "",
     .of = levels_fields, .size = sizeof(cs_given_levels),
     .doc = "alpha and beta for alpha_beta; default for a level: those of a message's route",
     .shape = "{gpu_pair, node, rack, system: {level}}"},
    {0}};

cs_status cs_lower_read(const cJSON *value, const cs_json_place *place, cs_arena *arena,
                        cs_lower_options *options, cs_error *error)
{
    const cs_json_place levels = {.up = place, .key = "levels"};
    cs_status status = cs_field_read(value, place, (const cs_field *const[]){cs_lower_fields, NULL},
                                     (void *const[]){options}, arena, error);
    if (status == CS_OK && isfinite(options->network_reached))
        cs_reached_between_nodes(&options->reached, options->network_reached);
    if (status != CS_OK || !options->given)
        return status;
    if (options->fidelity != CS_FIDELITY_ALPHA_BETA)
        return cs_json_invalid(&levels, error, "goes with \"fidelity\": \"alpha_beta\" only");
    for (uint32_t i = 0; i < CS_N_LEVELS; i++) {
        if (options->given->level[i])
            options->levels[i] = *options->given->level[i];
    }
    return CS_OK;
}

const char *cs_fidelity_name(cs_fidelity fidelity)
{
    return fidelity_names[fidelity];
}
