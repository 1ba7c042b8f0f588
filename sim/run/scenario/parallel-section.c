/* The section "parallel": how layers, samples and states are split over devices. */
#include "sim/run/scenario/sections.h"

#include <string.h>

/* limit of meshes and platforms */
enum { MOST = 1 << 20 };

static const char *const context_names[] = {"ring", "all_gather", "all_to_all", NULL};
static const char *const reduce_names[] = {"scattered", "whole", NULL};
static const char *const dispatcher_names[] = {"all_to_all", "once_per_node", NULL};
static const char *const drawn_names[] = {"uniform", "dirichlet", NULL};
static const char *const fold_names[] = {"auto", "yes", "no", "try", "slowest", NULL};

static const cs_field rule_field = {"rule", CS_FIELD_OBJECT, .of = cs_scenario_rule_fields,
                                    .size = sizeof(cs_layer_rule)};
static const cs_field space_field = {"space", CS_FIELD_COUNT, .min = 1, .max = MOST};
static const cs_field order_field = {"order", CS_FIELD_CHOICE, .choices = cs_mesh_axis_names};
static const cs_field rank_field = {"ranks", CS_FIELD_COUNT, .max = CS_PLAN_DEVICES - 1};

const cs_field cs_scenario_routing_fields[] = {
    {"drawn", CS_FIELD_CHOICE, offsetof(cs_routing_section, drawn), .choices = drawn_names,
     .doc = "popularity of the experts, for the multinomial draw of their tokens; uniform: the "
            "same for all; dirichlet: drawn from a symmetric Dirichlet distribution"},
    {"concentration", CS_FIELD_NUMBER, offsetof(cs_routing_section, concentration), .fallback = "1",
     .min = 0.001, .max = 1e6,
     .doc = "parameter of the Dirichlet distribution; with smaller values, fewer experts get most "
            "of the tokens"},
    {"seed", CS_FIELD_COUNT, offsetof(cs_routing_section, seed), .fallback = "",
     .max = UINT32_MAX - 1, .doc = "seed of the draw; default: the scenario's"},
    {0}};

#define AT(member) offsetof(cs_parallel_section, member)

const cs_field cs_scenario_parallel_fields[] = {
    {"tensor", CS_FIELD_COUNT, AT(tensor), .fallback = "1", .min = 1, .max = MOST,
     .doc = "tensor-parallel size: devices that split each layer as Megatron-LM does, attention by "
            "heads, MLPs by features, the vocabulary by tokens"},
    {"sequence_parallel", CS_FIELD_BOOL, AT(sequence_parallel), .fallback = "false",
     .doc = "with tensor: outside the split layers, the same devices split the tokens"},
    {"regather", CS_FIELD_BOOL, AT(regather), .fallback = "true",
     .doc = "with sequence_parallel: gathered tokens are not kept, but gathered again in the "
            "backward (Megatron-LM); false: they are kept (PyTorch's tensor parallelism)"},
    {"narrow_gathers", CS_FIELD_BOOL, AT(narrow_gathers), .fallback = "true",
     .doc = "with tensor and fp8, mxfp8 or nvfp4: operands are cast before they are gathered; "
            "false: after they are gathered (torchtitan with rowwise scales)"},
    {"scatter_gather", CS_FIELD_BOOL, AT(scatter_gather), .fallback = "false",
     .doc = "with tensor, without sequence_parallel: each tensor-parallel rank sends only its part "
            "of the output of a stage (Narayanan et al., SC 2021, section 4.1); false: each sends "
            "all of it. Gathering the parts at the receiver is not simulated"},
    {"context", CS_FIELD_COUNT, AT(context), .fallback = "1", .min = 1, .max = MOST,
     .doc = "context-parallel size: devices that split the tokens of each sequence, attention "
            "included"},
    {"context_method", CS_FIELD_CHOICE, AT(context_method), .fallback = "ring",
     .choices = context_names,
     .doc = "how attention accesses all tokens; ring: keys and values travel around a ring; "
            "all_gather: they are gathered; all_to_all: heads are split instead of tokens "
            "(DeepSpeed-Ulysses)"},
    {"pipeline", CS_FIELD_COUNT, AT(pipeline), .fallback = "0", .max = MOST,
     .doc = "pipeline-parallel size: ranks, each with one or more stages; 0: the number of devices "
            "divided by \"data\" and the other sizes; 1 for sequential"},
    {"data", CS_FIELD_COUNT, AT(data), .fallback = "0", .max = MOST,
     .doc = "data-parallel size: ranks that split the samples of a mini-batch; 0: the number of "
            "devices divided by \"pipeline\" and the other sizes"},
    {"expert", CS_FIELD_COUNT, AT(expert), .fallback = "1", .min = 1, .max = MOST,
     .doc = "expert-parallel size: devices among which the experts of a layer are distributed; "
            "they are devices of the other axes, except pipeline"},
    {"expert_tensor", CS_FIELD_COUNT, AT(expert_tensor), .fallback = "0", .max = MOST,
     .doc = "expert-tensor-parallel size: devices that split each expert; 0: as \"tensor\""},
    {"dispatcher", CS_FIELD_CHOICE, AT(dispatcher), .fallback = "all_to_all",
     .choices = dispatcher_names,
     .doc = "how tokens reach their experts; all_to_all: each copy of a token is sent separately "
            "(Megatron Core's default); once_per_node: a token is sent once to each device, and "
            "over the network once to each node, which forwards it (DeepEP, HybridEP)"},
    {"expert_imbalance", CS_FIELD_NUMBER, AT(expert_imbalance), .fallback = "1", .min = 1,
     .doc = "tokens of the busiest expert-parallel rank, relative to the mean"},
    {"expert_routing", CS_FIELD_OBJECT, AT(routing), .fallback = "",
     .of = cs_scenario_routing_fields, .size = sizeof(cs_routing_section),
     .doc = "instead of expert_imbalance: the tokens of each expert are drawn at random, "
            "separately for each MoE layer",
     .shape = "{routing}"},
    {"space", CS_FIELD_LIST, AT(space), .fallback = "[1, 1, 1]", .of = &space_field, .least = 1,
     .most = 3, .doc = "devices that split images, in each dimension", .shape = "[x, y, z]"},
    {"space_until", CS_FIELD_TEXT, AT(space_until), .fallback = "",
     .doc = "with space: the first operator or block that needs gathered images; default: where "
            "the network loses its spatial dimensions"},
    {"filter", CS_FIELD_COUNT, AT(filter), .fallback = "1", .min = 1, .max = MOST,
     .doc = "instead of tensor: devices that split the output features (filters) of each operator; "
            "its results are gathered afterwards (ParaDL)"},
    {"channel", CS_FIELD_COUNT, AT(channel), .fallback = "1", .min = 1, .max = MOST,
     .doc = "instead of tensor: devices that split the input features (channels) of each operator; "
            "its results are summed afterwards (ParaDL)"},
    {"synchronised_norm", CS_FIELD_BOOL, AT(synchronised_norm), .fallback = "false",
     .doc = "the statistics of batch norm are over the samples of all replicas and all parts of an "
            "image"},
    {"zero", CS_FIELD_COUNT, AT(zero), .fallback = "0", .max = 3,
     .doc = "ZeRO stage, over data, context and space; 0: nothing is sharded; 1: optimizer states; "
            "2: gradients too; 3: weights too (FSDP)"},
    {"rules", CS_FIELD_LIST, AT(rules), .fallback = "", .of = &rule_field,
     .doc = "exceptions from \"zero\" for some layers; if several rules match a layer, the last "
            "one applies",
     .shape = "[{rule}, ...]"},
    {"shard", CS_FIELD_COUNT, AT(shard), .fallback = "0", .max = MOST,
     .doc = "with zero: number of neighbouring devices to shard over; such groups are replicas of "
            "each other (HSDP); 0: all devices"},
    {"prefetch", CS_FIELD_COUNT, AT(prefetch), .fallback = "1", .max = MOST,
     .doc =
         "with zero 3: number of layers whose weights are gathered ahead of the computing layer"},
    {"keep_gathered", CS_FIELD_BOOL, AT(keep_gathered), .fallback = "false",
     .doc = "with zero 3: weights stay gathered from a forward until its backward"},
    {"gather_once", CS_FIELD_BOOL, AT(gather_once), .fallback = "false",
     .doc = "with zero 3: weights stay gathered from the first forward of a mini-batch until its "
            "last backward; gradients are then reduced, unless \"accumulate\" is false (PyTorch's "
            "pipelining with FSDP)"},
    {"shard_copies", CS_FIELD_BOOL, AT(shard_copies), .fallback = "true",
     .doc =
         "with zero 3 and 16-bit weights: a device holds its shard of them in addition to the "
         "optimizer's fp32 copy (DeepSpeed, Megatron-LM's FSDP); false: it holds only the fp32 "
         "copy, which is cast before it is gathered, and gradient shards are fp32 too (PyTorch's "
         "FSDP)"},
    {"accumulate", CS_FIELD_BOOL, AT(accumulate), .fallback = "false",
     .doc =
         "with zero 2 and 3: each device accumulates unsharded gradients over the micro-batches, "
         "and they are reduced once (PyTorch's no_sync); false: they are reduced after each "
         "micro-batch, and a device keeps only its shard, as in ZeRO, DeepSpeed and FSDP; default: "
         "true with gather_once"},
    {"bucket", CS_FIELD_BYTES, AT(bucket), .fallback = "0 B", .large = true,
     .doc = "bytes of gradients that are reduced together while the last backward still runs; 0: "
            "all are reduced after it, or, with zero 2 without accumulate, layer by layer; with "
            "zero 3 always layer by layer"},
    {"reduce", CS_FIELD_CHOICE, AT(reduce), .fallback = "scattered", .choices = reduce_names,
     .doc = "with zero 1: how gradients are summed; scattered: each device gets its share of the "
            "sum (Megatron-LM's distributed optimizer); whole: each gets all of it, in an "
            "all-reduce, and uses its share (InternEvo, Colossal-AI)"},
    {"order", CS_FIELD_LIST, AT(order),
     .fallback = "[\"tensor\", \"space\", \"context\", \"data\", \"pipeline\"]", .of = &order_field,
     .least = 1, .most = CS_N_MESH_AXES,
     .doc = "the axes, innermost first: neighbours on the first axis are neighbouring devices; "
            "axes of size 1 may be left out",
     .shape = "[\"tensor\", \"data\", ...]"},
    {"ranks", CS_FIELD_LIST, AT(ranks), .fallback = "", .of = &rank_field,
     .doc =
         "device of the platform for each rank, as numbered by \"order\"; default: the same number",
     .shape = "[device, ...]"},
    {"fold", CS_FIELD_CHOICE, AT(fold), .fallback = "auto", .choices = fold_names,
     .doc = "whether to simulate one device on behalf of all that do the same at the same times; "
            "yes: fail if they differ; try: fold if they do not differ; auto: as try on more than "
            "64 devices, but with the schedule dp only if \"fidelity\" makes collectives delays; "
            "slowest: fold even if their routes through the network differ: an estimate with the "
            "times of the slowest, without contention between messages of different replicas"},
    {0},
};

static cs_status check_divided_layers(const cs_parallel_section *section,
                                      const cs_json_place *place, cs_error *error)
{
    const struct {
        const char *key;
        uint32_t size;
    } methods[] = {
        {"tensor", section->tensor}, {"filter", section->filter}, {"channel", section->channel}};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        const cs_json_place key = {.up = place, .key = methods[i].key};
        if (methods[i].size > 1 && first)
            return cs_json_invalid(&key, error, "must be 1 with \"%s\" (got %u)", first,
                                   methods[i].size);
        if (methods[i].size > 1)
            first = methods[i].key;
    }
    return CS_OK;
}

/* The load of the busiest rank is either given or drawn. */
static cs_status check_routing(const cs_parallel_section *section, const cs_json_place *parallel,
                               cs_error *error)
{
    const cs_json_place place = {.up = parallel, .key = "expert_imbalance"};
    if (!section->routing || section->expert_imbalance <= 1)
        return CS_OK;
    return cs_json_invalid(&place, error, "must be left out with \"expert_routing\" (got %g)",
                           section->expert_imbalance);
}

static cs_status check_order(const cs_list *order, const cs_json_place *parallel, cs_error *error)
{
    const cs_json_place place = {.up = parallel, .key = "order"};
    const uint32_t *axes = order->items;
    bool listed[CS_N_MESH_AXES] = {false};
    for (uint32_t i = 0; i < order->n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        if (listed[axes[i]])
            return cs_json_invalid(&at, error, "must list each axis once (has \"%s\" before)",
                                   cs_mesh_axis_names[axes[i]]);
        listed[axes[i]] = true;
    }
    return CS_OK;
}

cs_status cs_parallel_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                   cs_parallel_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "parallel"};
    CS_TRY(cs_field_read(value, &place,
                         (const cs_field *const[]){cs_scenario_parallel_fields, NULL},
                         (void *const[]){section}, arena, error));
    section->given = true;
    if (section->gather_once && !cs_json_member(value, "accumulate"))
        section->accumulate = cs_parallel_section_zero(section, NULL) == 3;
    section->only_fold =
        value->child && !value->child->next && strcmp(value->child->string, "fold") == 0;
    const cs_status layers = check_divided_layers(section, &place, error);
    const cs_status order = check_order(&section->order, &place, error);
    const cs_status routing = check_routing(section, &place, error);
    return layers != CS_OK ? layers : order != CS_OK ? order : routing;
}
