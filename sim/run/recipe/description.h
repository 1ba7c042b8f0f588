/* Run descriptions: the network, the GPUs, parallel sizes, batches, precision, framework and
 * options of a training run, in the field's words (docs/reference/points.md). A description is a
 * file of the schema "run/1", or part of a measured point.
 */
#ifndef CS_RECIPE_DESCRIPTION_H
#define CS_RECIPE_DESCRIPTION_H

#include "sim/base/field.h"
#include "sim/base/time.h"

/* Numbers that are not stated are 0, texts NULL, where nothing else is said. */
typedef struct cs_description_model {
    const char *name;
    const char *kind; /* "decoder", "decoder-moe", "encoder", "encoder-decoder", "cnn" */
    uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq;
    const char *act, *norm, *pos;
    bool tied, bias, qk_norm, mamba;
    uint32_t experts, topk, moe_ffn, shared_ffn, dense_layers, mtp_layers;
    uint32_t sliding_window, sliding_every;
    const cJSON *mla;                 /* latent attention, an object */
    const char *unknown_architecture; /* why the rest is missing */
} cs_description_model;

typedef struct cs_description_hardware {
    const char *gpu;
    uint32_t gpus, gpus_per_node;
    double memory_gb; /* memory of a GPU, GiB as vendors count them; NaN: not stated */
    const char *intra, *inter;
    const char *machine;      /* NULL: not stated */
    uint32_t adapters;        /* of a node */
    double adapter_bandwidth; /* bytes/s of each */
} cs_description_hardware;

typedef struct cs_description_parallel {
    uint32_t tp, pp, vpp, dp, cp, ep, etp; /* etp 0: as tp */
    uint32_t zero;                         /* 0 to 3 */
    uint32_t fsdp_group;                   /* ranks over which weights are divided; 0: dp * cp */
    bool sp;
    const char *cp_comm;
} cs_description_parallel;

typedef struct cs_description_batch {
    uint32_t global, micro, micro_batches; /* sequences, sequences, per replica and step */
} cs_description_batch;

/* Measured times of a stage for a micro-batch, ms: forward, the halves of the backward, a
 * message. */
typedef struct cs_description_profile {
    double forward, backward_input, backward_weight, message;
} cs_description_profile;

typedef struct cs_description_options {
    /* true, false; NULL: not stated */
    const cJSON *flash_attention, *moe_drop_tokens, *moe_a2a_overlap, *early_stop, *accumulate;
    const cJSON *cuda_graphs; /* true, or whose; NULL: not stated */
    bool lora, offload, no_optimizer_step, first_last_stage_one_layer_less;
    bool dp_overlap, tp_overlap, async_tp, tp_linear_async_communication, blocking_messages;
    bool compile, compiled_loss, fused_cross_entropy, fused_optimizer, fused_experts, written_out;
    bool float8_allgather, fp8_attention, moe_pad_to_capacity, expert_sizes_on_device;
    bool scatter_gather, deterministic, launch_blocking;
    uint32_t packed_tokens, vocab_multiple, offload_layers, lora_rank, optimizer_instances;
    double dropout, moe_capacity_factor, moe_hidden_share;
    int64_t bucket; /* bytes */
    cs_time exchange_latency;
    const char *moe_dispatcher, *grad_dtype, *grad_reduce_dtype, *fp8_scaling, *fp8_weights;
    const char *pytorch, *stage_results, *adapter, *quantization, *weights_dtype;
    cs_list lora_targets;      /* const char * */
    cs_list stage_layers;      /* uint32_t: blocks of each stage; empty: not stated */
    cs_list stages_with_parts; /* uint32_t: the same, embedding and head counted as blocks */
    double last_stage_layers;  /* blocks of the last stage, the others share the rest equally */
    double head_on_stage;      /* stage that has the head; NaN: the last one */
    cs_description_profile *profiled_ms; /* NULL: not measured */
} cs_description_options;

typedef struct cs_description {
    const char *name; /* for messages */
    cs_description_model *model;
    cs_description_hardware *hardware;
    cs_description_parallel *parallel;
    cs_description_batch *batch;
    const char *precision, *recompute, *schedule, *optimizer, *framework;
    cs_description_options *options;
    const cJSON *args; /* arguments of Megatron-LM, an object or NULL */
    const cJSON *env;  /* variables of the environment, an object or NULL */
    const cJSON *json; /* the document: keys of the tables below, without those that are null */
    cs_list unread;    /* const char *: keys that no table has, such as "/options/x" */
} cs_description;

/* The fields of a description and of its parts; ended by {0}. */
extern const cs_field cs_description_fields[];
extern const cs_field cs_description_model_fields[];
extern const cs_field cs_description_hardware_fields[];
extern const cs_field cs_description_parallel_fields[];
extern const cs_field cs_description_batch_fields[];
extern const cs_field cs_description_options_fields[];
extern const cs_field cs_description_profile_fields[];

/* Reads an object with the keys of cs_description_fields; and with those of `others` into `other`,
 * both of which may be NULL. Unknown keys and keys that are null are removed from `object`, which
 * must live as long as the description. */
CS_MUST_CHECK cs_status cs_description_read(cJSON *object, const cs_json_place *place,
                                            const cs_field *others, void *other, cs_arena *arena,
                                            cs_description *description, cs_error *error);

/* Reads a file of the schema "run/1": {"schema": "run/1", "name": text, ...keys of a description}.
 * The caller frees *document, which the description refers to. */
CS_MUST_CHECK cs_status cs_description_parse(const char *name, const char *text, size_t length,
                                             cs_arena *arena, cJSON **document,
                                             cs_description *description, cs_error *error);

#endif
