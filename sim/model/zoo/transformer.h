/* What transformers share: fields of their parameters, and positions. */
#ifndef CS_WORKLOAD_TRANSFORMER_H
#define CS_WORKLOAD_TRANSFORMER_H

#include "sim/model/zoo/zoo.h"

enum { CS_DIM_MAX = 1 << 20 };

#define CS_DIM(struct_, key, default_, doc_)                                                       \
    {                                                                                              \
#key, CS_FIELD_COUNT, offsetof(struct_, key), .fallback = default_, .min = 1,              \
                                                      .max = CS_DIM_MAX, .doc = doc_               \
    }

#define CS_LAYERS_FIELD(struct_, default_)                                                         \
    {                                                                                              \
        "layers", CS_FIELD_COUNT, offsetof(struct_, layers),                                       \
            .fallback = default_, .min = 1, .max = 4096, .doc = "number of blocks"                 \
    }

#define CS_DIM_OR_ZERO(struct_, key, doc_)                                                         \
    {                                                                                              \
#key, CS_FIELD_COUNT, offsetof(struct_, key), .fallback = "0", .max = CS_DIM_MAX,          \
                                                      .doc = doc_                                  \
    }

#define CS_DROPOUT_FIELD(struct_, default_)                                                        \
    {                                                                                              \
        "dropout", CS_FIELD_NUMBER, offsetof(struct_, dropout),                                    \
            .fallback = default_, .max = 1, .doc = "dropout probability; 0: no dropout"            \
    }

#define CS_KERNEL_FIELD(struct_)                                                                   \
    {                                                                                              \
        "attention", CS_FIELD_CHOICE, offsetof(struct_, kernel),                                   \
            .fallback = "flash", .choices = cs_attention_kernels,                                  \
            .doc = "flash: a fused kernel; math: one that keeps the attention matrix"              \
    }

#define CS_FORM_FIELD(struct_)                                                                     \
    {                                                                                              \
        "form", CS_FIELD_CHOICE, offsetof(struct_, form),                                          \
            .fallback = "paper", .choices = cs_encoder_forms,                                      \
            .doc = "paper: as in its paper; megatron: as in Megatron Core, with layer norms in "   \
                   "front, learned positions, biases, GELU, and no dropout within MLPs"            \
    }

/* x attends to `from`, which may be x: queries, keys and values of `inner` features each are one
 * product with biases, or of another `from` queries are one and the others one. */
cs_tensor cs_net_attend_packed(cs_net *net, cs_tensor x, cs_tensor from, uint32_t inner,
                               const cs_attention *attention);

/* x plus the first rows of a learned table of positions. */
cs_tensor cs_net_positions(cs_net *net, const char *name, cs_tensor x, uint32_t positions);

#endif
