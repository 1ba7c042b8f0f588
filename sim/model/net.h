/* A network as its architecture describes it: a graph of operators on tensors.
 *
 * A network is written as in a framework, one call per operator:
 *
 *     cs_tensor x = cs_net_image(net, 3, (cs_extent){2, {224, 224}});
 *     x = cs_net_conv(net, "conv1", x, &(cs_conv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
 *     x = cs_net_relu(net, "relu", cs_net_batch_norm(net, "bn1", x));
 *
 * Operators are executed in the order of the calls. Every call infers the shape of its result. The
 * first call that fails writes the error; all later calls do nothing and return CS_NO_TENSOR, and
 * cs_net_end returns the status. Definitions therefore need no checks of their own.
 *
 * Shapes are per sample and do not include the batch. An image is (channels, space...), a sequence
 * is (tokens, features). Every tensor has a storage. Views and in-place operators share the storage
 * of their input, so tensors that autograd keeps are counted once per storage.
 *
 * Names of operators are unique in the network: "layer1.0.conv1" is "conv1" within the scope
 * "layer1.0". A block (cs_net_block) is a scope that is one layer of the coarse chain.
 */
#ifndef CS_WORKLOAD_NET_H
#define CS_WORKLOAD_NET_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/json.h"
#include "sim/model/precision.h"

#include <stdbool.h>
#include <stdint.h>

/* Kinds of operators, each with a table cs_operator_NAME (ops/operator.h). */
#define CS_OP_KIND_MAP(X)                                                                          \
    X(CONV, conv)                                                                                  \
    X(LINEAR, linear)                                                                              \
    X(BATCH_NORM, batch_norm)                                                                      \
    X(LAYER_NORM, layer_norm)                                                                      \
    X(RMS_NORM, rms_norm)                                                                          \
    X(RELU, relu)                                                                                  \
    X(GELU, gelu)                                                                                  \
    X(SILU, silu)                                                                                  \
    X(TANH, tanh)                                                                                  \
    X(ROTARY, rotary)                                                                              \
    X(MUL, mul)                                                                                    \
    X(ADD, add)                                                                                    \
    X(DROPOUT, dropout)                                                                            \
    X(SOFTMAX, softmax)                                                                            \
    X(COPY, copy)                                                                                  \
    X(CONCAT, concat)                                                                              \
    X(MAX_POOL, max_pool)                                                                          \
    X(AVG_POOL, avg_pool)                                                                          \
    X(ADAPTIVE_POOL, adaptive_pool)                                                                \
    X(ATTENTION, attention)                                                                        \
    X(EMBEDDING, embedding)                                                                        \
    X(CROSS_ENTROPY, cross_entropy)                                                                \
    X(SQUARED_ERROR, squared_error)                                                                \
    X(VIEW, view)                                                                                  \
    X(HEAD_CONCAT, head_concat)                                                                    \
    X(TOP_K, top_k)                                                                                \
    X(DISPATCH, dispatch)                                                                          \
    X(GROUPED_LINEAR, grouped_linear)                                                              \
    X(COMBINE, combine)                                                                            \
    X(CAUSAL_CONV, causal_conv)                                                                    \
    X(SCAN, scan)                                                                                  \
    X(EXCHANGE, exchange) /* in local networks only: net-local.h */

typedef enum cs_op_kind {
#define CS_OP_ENUM(kind, name) CS_OP_##kind,
    CS_OP_KIND_MAP(CS_OP_ENUM)
#undef CS_OP_ENUM
        CS_N_OP_KINDS
} cs_op_kind;

typedef uint32_t cs_tensor;

enum { CS_NO_TENSOR = UINT32_MAX, CS_SPACE_MAX = 3, CS_SHAPE_MAX = 1 + CS_SPACE_MAX };

/* Sizes in space, for pooling and convolutions: height and width if rank is 2; depth as well if it
 * is 3. */
typedef struct cs_extent {
    uint32_t rank;
    uint32_t size[CS_SPACE_MAX];
} cs_extent;

typedef struct cs_shape {
    uint32_t rank;
    uint32_t dims[CS_SHAPE_MAX];
} cs_shape;

typedef enum cs_element {
    CS_ELEMENT_ACTIVATION, /* width given by the precision */
    CS_ELEMENT_FLOAT32,
    CS_ELEMENT_INT64,
    /* as wide as an operand of a linear layer, cast if that type is narrow; for exchanges */
    CS_ELEMENT_OPERAND,
} cs_element;

typedef struct cs_tensor_info {
    cs_shape shape;
    int64_t elements; /* elements per sample */
    cs_element element;
    /* number of its storage; tensors that share a storage have the same number */
    uint32_t storage;
    uint32_t last_reader; /* op that reads it last; CS_NO_TENSOR: none reads it */
    bool differentiable;  /* whether its gradient is computed */
    /* whether it is an input, such as targets, that each device loads from outside when it needs
     * it */
    bool loaded;
} cs_tensor_info;

/* How attention is computed, which decides what it keeps for backward. */
typedef enum cs_attention_kernel {
    /* fused: keeps queries, keys, values, output and a log-sum (float32) per row and head */
    CS_ATTENTION_FLASH,
    CS_ATTENTION_MATH, /* holds the matrix of weights in memory, and keeps it */
} cs_attention_kernel;

typedef struct cs_conv {
    uint32_t out;
    uint32_t kernel;                /* size in all directions, unless `kernels` is set */
    uint32_t kernels[CS_SPACE_MAX]; /* size per direction; 0: kernel */
    uint32_t stride;                /* 0 means 1 */
    /* padding per direction, from `pads`; `pad` where that is 0 */
    uint32_t pad, pads[CS_SPACE_MAX];
    /* distance in pixels between elements that the kernel reads; 0 means 1 */
    uint32_t dilation;
    uint32_t groups; /* 0 means 1 */
    bool bias;
} cs_conv;

typedef struct cs_window {
    uint32_t kernel, stride, pad; /* stride 0 means: same as kernel */
    uint32_t dilation;            /* 0 means 1 */
} cs_window;

typedef struct cs_linear {
    uint32_t out;
    bool bias;
    bool wide; /* operands are not cast to a narrow type, as in a router or the last matrix */
    bool tied; /* its weights belong to another operator: used, not counted */
    /* if tied: output of the operator that owns the weights; 0: the first operator with equally
     * many weights */
    cs_tensor lender;
} cs_linear;

/* A linear layer per expert: E matrices. Rows are grouped by expert, and each row is multiplied by
 * its expert's matrix. */
typedef struct cs_grouped_linear {
    uint32_t out;
    uint32_t experts, top_k; /* E, the number of experts; number of experts per token */
    bool bias;
} cs_grouped_linear;

typedef struct cs_attention {
    uint32_t heads, kv_heads; /* heads of queries; heads of keys and values */
    cs_attention_kernel kernel;
    bool causal;
    double dropout; /* probability of dropout of the attention weights */
    /* if causal: number of tokens, including itself, that a token attends to; 0: all */
    uint32_t window;
    /* buckets of relative positions, each with a learned bias per head; 0: none */
    uint32_t buckets;
    bool sinks;  /* whether a learned logit per head joins each softmax (Xiao et al., ICLR 2024) */
    bool padded; /* whether samples are shorter than the sequence, and a mask leaves out the rest */
    /* set in local networks (net-local.h): */
    /* number of equal shares of the sequence (with equally many pairs of queries and keys); its
     * queries are one share; 0 means 1 */
    uint32_t shares;
    /* number of places whose keys and values it reads, one place after another; 0 means 1 */
    uint32_t steps;
} cs_attention;

/* A state-space scan in chunks (Dao and Gu, Mamba-2, ICML 2024). Heads are in `groups` groups; the
 * heads of a group share the matrices B and C, as grouped queries share keys and values. */
typedef struct cs_scan {
    uint32_t heads, groups;
    uint32_t state; /* features per row of a group's B and C */
    uint32_t chunk; /* tokens per chunk */
} cs_scan;

enum { CS_OP_INPUTS_MAX = 8 };

typedef struct cs_op {
    cs_op_kind kind;
    const char *name;
    uint32_t block;
    uint32_t n_inputs;
    cs_tensor inputs[CS_OP_INPUTS_MAX];
    cs_tensor output;
    bool in_place;
    bool gathers_again;      /* see net-local.h; exchanges only */
    int64_t weights, biases; /* elements that it uses */
    bool tied;               /* whether its weights are counted elsewhere */
    cs_extent kernel, stride, pad, dilation;
    /* groups of channels; for a norm: groups of features that are normalised separately, one per
     * head */
    uint32_t groups;
    cs_attention attention;
    cs_scan scan;
    uint32_t heads;          /* heads of a concatenation of heads */
    uint32_t experts, top_k; /* set for operators of a mixture of experts; else 0 */
    double capacity;         /* capacity of a dispatch; see cs_net_dispatch */
    bool wide;               /* see cs_linear */
    bool frozen;             /* whether its weights are not trained */
    /* stored bytes per frozen weight, which a pass first converts to the network's precision; 0:
     * stored in that precision */
    double stored;
    uint32_t lender; /* if tied: operator that owns the weights, + 1; 0: not given */
} cs_op;

typedef struct cs_net {
    const char *name;
    cs_arena arena;
    cs_op *ops;
    uint32_t n_ops, cap_ops;
    cs_tensor_info *tensors;
    uint32_t n_tensors, cap_tensors;
    const char **blocks;
    uint32_t n_blocks, cap_blocks;
    uint32_t n_storages;
    int64_t input_elements; /* elements per sample of all inputs except token ids */
    int64_t input_ids;      /* token ids per sample */
    cs_tensor carried;      /* see cs_net_carry; 0: none */
    bool has_precision;     /* whether its description gives the precision of its numbers: */
    cs_precision precision;
    /* used while the network is built: */
    char scope[128];
    cs_status status;
    cs_error *error;
    const cs_json_place *place; /* where the network is described, for messages; or NULL */
    bool has_keys;              /* whether the keys in `place` are the names of its parameters */
    bool frozen;                /* whether parameters of new operators are not trained */
} cs_net;

/* ---- life cycle ---- */

/* Starts a network; `error` gets the first error of the calls that follow. cs_net_finish is allowed
 * on a zeroed struct. */
void cs_net_begin(cs_net *net, const char *name, cs_error *error);

/* Ends a network; returns the status of all calls. The last operator is the network's output. */
CS_MUST_CHECK cs_status cs_net_end(cs_net *net);
void cs_net_finish(cs_net *net);

/* Makes the network fail. The second function is for parameters that are incompatible with each
 * other: its text continues after the parameter's name, e.g. "must divide hidden, 768 (got 7)". */
void cs_net_fail(cs_net *net, const char *format, ...) CS_PRINTF(2, 3);
void cs_net_refuse(cs_net *net, const char *parameter, const char *format, ...) CS_PRINTF(3, 4);

/* ---- names ---- */

/* Starts a block with this name; the block is the scope until the next block starts. */
void cs_net_block(cs_net *net, const char *format, ...) CS_PRINTF(2, 3);

/* Enters a scope within the current scope. cs_net_leave takes the value that cs_net_enter
 * returned. */
uint32_t cs_net_enter(cs_net *net, const char *name);
void cs_net_leave(cs_net *net, uint32_t entered);

/* ---- inputs ---- */

cs_tensor cs_net_image(cs_net *net, uint32_t channels, cs_extent space);
cs_tensor cs_net_token_ids(cs_net *net, uint32_t tokens);

/* Adds another input of token ids, the same ids or others, for later operators. Each device that
 * reads them loads them itself, like the targets of a loss, so they cross no boundary of the
 * chain. */
cs_tensor cs_net_more_token_ids(cs_net *net, uint32_t tokens);

/* Marks a tensor that later operators read and that is handed past the operators in between: the
 * chain can still be cut there. A network has at most one. */
void cs_net_carry(cs_net *net, cs_tensor tensor);

/* ---- operators ---- */

cs_tensor cs_net_conv(cs_net *net, const char *name, cs_tensor x, const cs_conv *conv);
cs_tensor cs_net_linear(cs_net *net, const char *name, cs_tensor x, const cs_linear *linear);
cs_tensor cs_net_batch_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_layer_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_rms_norm(cs_net *net, const char *name, cs_tensor x);

/* Normalises each of `heads` equal parts of a token's features alone, with one scale for all parts
 * (as for queries and keys in Qwen3). */
cs_tensor cs_net_head_norm(cs_net *net, const char *name, cs_tensor x, uint32_t heads);
cs_tensor cs_net_max_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool);
cs_tensor cs_net_avg_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool);
cs_tensor cs_net_adaptive_pool(cs_net *net, const char *name, cs_tensor x, uint32_t size);
cs_tensor cs_net_relu(cs_net *net, const char *name, cs_tensor x); /* in place */
cs_tensor cs_net_gelu(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_silu(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_tanh(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_softmax(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_rotary(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_copy(cs_net *net, const char *name, cs_tensor x); /* makes x contiguous */
cs_tensor cs_net_mul(cs_net *net, const char *name, cs_tensor a, cs_tensor b);
cs_tensor cs_net_add(cs_net *net, const char *name, cs_tensor a, cs_tensor b);

/* Computes a += b, as residual networks do. */
cs_tensor cs_net_add_to(cs_net *net, const char *name, cs_tensor a, cs_tensor b);

/* A probability of 0 adds no operator and returns x. */
cs_tensor cs_net_dropout(cs_net *net, const char *name, cs_tensor x, double probability);
cs_tensor cs_net_concat(cs_net *net, const char *name, const cs_tensor *parts, uint32_t n);
cs_tensor cs_net_embedding(cs_net *net, const char *name, cs_tensor ids, uint32_t rows,
                           uint32_t features);

/* Adds an embedding that shares the table of another one, whose output is `of`. */
cs_tensor cs_net_embedding_of(cs_net *net, const char *name, cs_tensor ids, cs_tensor of);

/* Adds learned parameters to x: as many as x has elements; or rows from a learned table of
 * `parameters` parameters. The third function puts a learned token before all other tokens. */
cs_tensor cs_net_add_learned(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_add_table(cs_net *net, const char *name, cs_tensor x, int64_t parameters);

cs_tensor cs_net_first_token(cs_net *net, const char *name, cs_tensor x);

/* Joins two tensors of (tokens, heads x features), so that the features of each head are adjacent.
 * With `shared`, the second part has one head, which is copied to all heads of the result. */
cs_tensor cs_net_head_concat(cs_net *net, const char *name, const cs_tensor parts[2],
                             uint32_t heads, bool shared);

/* Adds attention. Queries, keys and values are (tokens, features); keys and values have the same
 * number of tokens. Heads of queries and keys have the same number of features; heads of values,
 * and so the result, may have another. */
cs_tensor cs_net_attention(cs_net *net, const char *name, const cs_tensor qkv[3],
                           const cs_attention *attention);

/* A mixture of experts (Shazeer et al., ICLR 2017), for the tokens of one sample:
 *
 *     routing = cs_net_top_k(net, "top_k", cs_net_linear(net, "router", x, ...), experts, k);
 *     rows = cs_net_dispatch(net, "dispatch", x, routing, capacity);
 *     ... rows through cs_net_grouped_linear and elementwise operators ...
 *     y = cs_net_combine(net, "combine", rows, routing);
 *
 * top_k turns the logits (tokens, experts) into the weights (tokens, k) of the k experts of each
 * token; the result also says which experts these are. dispatch copies every token to its experts
 * and groups the copies by expert. With capacity 0, experts take all (tokens k) rows. Otherwise
 * each expert has a capacity of ceil(capacity tokens k / experts) rows: groups are padded to this
 * size, and rows that do not fit are dropped (GShard, Lepikhin et al., ICLR 2021). combine adds up
 * the rows of each token, times their weights. The number of rows per expert depends on the data;
 * costs assume groups of equal size. */
cs_tensor cs_net_top_k(cs_net *net, const char *name, cs_tensor logits, uint32_t k);
cs_tensor cs_net_dispatch(cs_net *net, const char *name, cs_tensor x, cs_tensor routing,
                          double capacity);
cs_tensor cs_net_grouped_linear(cs_net *net, const char *name, cs_tensor rows,
                                const cs_grouped_linear *linear);
cs_tensor cs_net_combine(cs_net *net, const char *name, cs_tensor rows, cs_tensor routing);

/* Adds a convolution along the tokens, for each feature alone, over a token and the tokens before
 * it, and then a SiLU: one kernel that keeps only its input (causal_conv1d). */
cs_tensor cs_net_causal_conv(cs_net *net, const char *name, cs_tensor x, uint32_t kernel,
                             bool bias);

/* Adds a scan over x (tokens, heads x features), steps (tokens, heads), B and C (tokens, groups x
 * state). It has three learned numbers per head: the decay, the bias of the step, and the factor of
 * the skip connection. */
cs_tensor cs_net_scan(cs_net *net, const char *name, const cs_tensor inputs[4],
                      const cs_scan *scan);

/* Adds a view: (channels, space...) as features, or as tokens of `channels` features; some of
 * the features; token 0 only (an operator that keeps token 0 keeps all tokens, because they share
 * a storage). */
cs_tensor cs_net_flatten(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_tokens(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_features(cs_net *net, const char *name, cs_tensor x, uint32_t features);
cs_tensor cs_net_take_first(cs_net *net, const char *name, cs_tensor x);

/* Adds a view of any shape that has no more elements than x. */
cs_tensor cs_net_view(cs_net *net, const char *name, cs_tensor x, const cs_shape *shape);

/* Adds a loss: the mean over all predictions. */
cs_tensor cs_net_cross_entropy(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_squared_error(cs_net *net, const char *name, cs_tensor x);

/* ---- what was built ---- */

const cs_tensor_info *cs_net_tensor(const cs_net *net, cs_tensor tensor);

/* The operator that writes a tensor; n_ops: it is an input of the network. */
uint32_t cs_net_writer(const cs_net *net, cs_tensor tensor);

/* The operator that owns the weights of operator `op`: `op` itself unless it is tied, else the
 * operator that was given, or the first one with as many weights of its own. n_ops: there is
 * none. */
uint32_t cs_net_lender(const cs_net *net, uint32_t op);

/* Whether backward computes a gradient of input i of `op`. A dispatch reads from the routing where
 * the rows go, not the weights, so the routing gets no gradient from it. */
bool cs_op_makes_gradient(const cs_net *net, const cs_op *op, uint32_t i);

const char *cs_op_kind_name(cs_op_kind kind);
const char *cs_op_kind_group(cs_op_kind kind);

/* Writes a shape, e.g. "64 x 112 x 112"; returns `text`. */
char *cs_shape_text(const cs_shape *shape, char *text, size_t size);

enum { CS_SHAPE_TEXT_BYTES = 64 };

#endif
