/* Measured training runs, as files of the schema "truth/1" have them (docs/reference/points.md):
 * what was trained on what and how, what it took, and what other tools predict.
 *
 * A file says more than a simulator asks for (who measured, with which version): keys that are not
 * in the tables below are ignored, and null stands for what is not known, as a missing key does.
 * What is in the tables is checked.
 */
#ifndef CS_VALIDATE_POINTS_H
#define CS_VALIDATE_POINTS_H

#include "sim/base/field.h"

/* Numbers that are not stated are 0, texts NULL, where nothing else is said. */
typedef struct cs_point_model {
    const char *name;
    const char *kind; /* "decoder", "decoder-moe", "encoder", "encoder-decoder", "cnn" */
    uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq;
    const char *act, *norm, *pos;
    bool tied, bias, qk_norm, mamba;
    uint32_t experts, topk, moe_ffn, shared_ffn, dense_layers, mtp_layers;
    uint32_t sliding_window, sliding_every;
    const cJSON *mla;                 /* latent attention, an object */
    const char *unknown_architecture; /* why the rest is missing */
} cs_point_model;

typedef struct cs_point_hardware {
    const char *gpu;
    uint32_t gpus, gpus_per_node;
    double memory_gb; /* of a GPU, GiB as vendors count them; NaN: not stated */
    const char *intra, *inter;
} cs_point_hardware;

typedef struct cs_point_parallel {
    uint32_t tp, pp, vpp, dp, cp, ep, etp; /* etp 0: as tp */
    uint32_t zero;                         /* 0 to 3 */
    uint32_t fsdp_group;                   /* ranks over which weights are divided; 0: dp * cp */
    bool sp;
    const char *cp_comm;
} cs_point_parallel;

typedef struct cs_point_batch {
    uint32_t global, micro, micro_batches; /* sequences, sequences, per replica and step */
} cs_point_batch;

/* Measured times of a stage for a micro-batch, ms: forward, the halves of the backward, a
 * message. */
typedef struct cs_point_profile {
    double forward, backward_input, backward_weight, message;
} cs_point_profile;

typedef struct cs_point_options {
    const cJSON *flash_attention; /* true or false; NULL: not stated */
    bool lora, offload, no_optimizer_step, first_last_stage_one_layer_less;
    bool moe_pad_to_capacity, fused_cross_entropy;
    bool tp_overlap, async_tp;     /* tensor-parallel collectives go on beside products */
    bool compile;                  /* a compiler fuses what only moves */
    const cJSON *cuda_graphs;      /* true, or whose: "local", "none"; NULL: not stated */
    bool float8_allgather;         /* weights are gathered in fp8 */
    bool dp_overlap;               /* gradients are reduced while the backward still runs */
    double moe_capacity_factor;    /* 0: none */
    const cJSON *moe_drop_tokens;  /* true or false; NULL: not stated */
    const char *moe_dispatcher;    /* "alltoall" or "flex" */
    uint32_t packed_tokens;        /* of a sample that shares a sequence with others */
    const char *grad_dtype;        /* in which gradients are summed: "fp32" or "bf16" */
    const char *grad_reduce_dtype; /* in which FSDP reduces them */
    cs_list stage_layers;          /* uint32_t: blocks of each stage; empty: not stated */
    cs_list stages_with_parts;     /* uint32_t: the same, embedding and head counted as blocks */
    double last_stage_layers;      /* blocks of the last stage, the others share the rest equally */
    double head_on_stage;          /* stage that has the head; NaN: the last one */
    const char *quantization;      /* number format of frozen weights, such as "nf4" */
    cs_point_profile *profiled_ms; /* NULL: not measured */
} cs_point_options;

typedef struct cs_point_measured {
    double step_time_s;          /* NaN: not measured; the same of the next four */
    double samples_per_s;        /* of all GPUs */
    double tokens_per_s_per_gpu; /* tokens/s */
    double allocated, reserved;  /* bytes: torch.cuda.max_memory_allocated, max_memory_reserved */
    double device;               /* bytes: nvidia-smi, or what the source does not say */
    const cJSON *per_rank;       /* {"0": {"allocated": bytes, "reserved": bytes}, ...} or NULL */
    const cJSON *oom;            /* true, false, or NULL: not stated */
} cs_point_measured;

typedef struct cs_point {
    const char *id;
    const char *dataset; /* of the file */
    const char *file;    /* that it was read from */
    cs_point_model *model;
    cs_point_hardware *hardware;
    cs_point_parallel *parallel;
    cs_point_batch *batch;
    const char *precision, *recompute, *schedule, *optimizer, *framework, *quality;
    cs_point_options *options;
    cs_point_measured *measured;
    cs_list unknown, features; /* of const char * */
    const cJSON *peers;        /* {"tool": {"step_time_s": s, ...}, ...} or NULL */
    cs_list unread;            /* const char *: options that no table knows */
    const cJSON *args;         /* of Megatron-LM, an object or NULL */
    const cJSON *env;          /* variables of the environment, an object or NULL */
} cs_point;

typedef struct cs_points {
    cs_arena arena;
    uint32_t n, capacity;
    cs_point *points;
    uint32_t n_documents, cap_documents;
    cJSON **documents; /* that points refer to */
} cs_points;

/* The fields of a point and of its parts, for the documentation; ended by {0}. */
extern const cs_field cs_point_fields[];
extern const cs_field cs_point_model_fields[];
extern const cs_field cs_point_hardware_fields[];
extern const cs_field cs_point_parallel_fields[];
extern const cs_field cs_point_batch_fields[];
extern const cs_field cs_point_options_fields[];
extern const cs_field cs_point_profile_fields[];
extern const cs_field cs_point_measured_fields[];

/* Zeroed points can be finished. */
void cs_points_finish(cs_points *points);

/* Adds the points of a file, or of a text that messages call `name`. Errors name file and JSON
 * pointer; several are reported in one go. An id that an earlier point has is one. */
CS_MUST_CHECK cs_status cs_points_load(const char *path, cs_points *points, cs_error *error);
CS_MUST_CHECK cs_status cs_points_parse(const char *name, const char *text, size_t length,
                                        cs_points *points, cs_error *error);

/* Adds those that come with the program (facts/points/README.md). */
CS_MUST_CHECK cs_status cs_points_load_shipped(cs_points *points, cs_error *error);

/* The point with that id, or NULL with a message that lists near ones. */
const cs_point *cs_points_find(const cs_points *points, const char *id, cs_error *error);

/* The time of a step, s: as it was measured, or the samples of a step over samples per s, or its
 * tokens over tokens per s of all GPUs. NaN: not known, or the point's quality is that of memory
 * only. */
double cs_point_step_time(const cs_point *point);

/* Text i of a list of texts. */
static inline const char *cs_point_text(const cs_list *list, uint32_t i)
{
    return ((const char *const *)list->items)[i];
}

/* Whether a feature, such as "pp", is among the point's. */
bool cs_point_has(const cs_point *point, const char *feature);

#endif
