/* A network as its architecture tells it: a graph of operators on tensors.
 *
 * A network is written down as in a framework, one call per operator:
 *
 *     cs_tensor x = cs_net_image(net, 3, (cs_extent){2, {224, 224}});
 *     x = cs_net_conv(net, "conv1", x, &(cs_conv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
 *     x = cs_net_relu(net, "relu", cs_net_batch_norm(net, "bn1", x));
 *
 * The order of the calls is the order of execution. Every call infers the shape of its result; the
 * first one that fails writes the error, every later one does nothing and returns CS_NO_TENSOR, and
 * cs_net_end passes the status on: definitions need no checks of their own.
 *
 * Shapes are per sample: the batch is no part of them. An image is (channels, space...), a sequence
 * is (tokens, features). A tensor has a storage: an operator that works in place and a view have
 * that of what they read, so that what autograd keeps is counted once per storage.
 *
 * Operators have names, unique in the network: "layer1.0.conv1" is "conv1" within the scope
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
    X(EXCHANGE, exchange) /* only in local networks: net-local.h */

typedef enum cs_op_kind {
#define CS_OP_ENUM(kind, name) CS_OP_##kind,
    CS_OP_KIND_MAP(CS_OP_ENUM)
#undef CS_OP_ENUM
        CS_N_OP_KINDS
} cs_op_kind;

typedef uint32_t cs_tensor;

enum { CS_NO_TENSOR = UINT32_MAX, CS_SPACE_MAX = 3, CS_SHAPE_MAX = 1 + CS_SPACE_MAX };

/* Sizes in space: 2 are height and width, 3 depth as well; only a pooling or convolution cares. */
typedef struct cs_extent {
    uint32_t rank;
    uint32_t size[CS_SPACE_MAX];
} cs_extent;

typedef struct cs_shape {
    uint32_t rank;
    uint32_t dims[CS_SHAPE_MAX];
} cs_shape;

typedef enum cs_element {
    CS_ELEMENT_ACTIVATION, /* as wide as the precision says */
    CS_ELEMENT_FLOAT32,
    CS_ELEMENT_INT64,
    CS_ELEMENT_OPERAND, /* of exchanges: as what linear layers multiply, cast where that is narrow */
} cs_element;

typedef struct cs_tensor_info {
    cs_shape shape;
    int64_t elements; /* per sample */
    cs_element element;
    uint32_t storage;     /* tensors that share one have the same number */
    uint32_t last_reader; /* op, CS_NO_TENSOR when none reads it */
    bool differentiable;  /* a gradient of it is computed */
    bool loaded; /* an input that every device that reads it loads by itself, like targets */
} cs_tensor_info;

/* How attention is computed, which decides what it keeps. */
typedef enum cs_attention_kernel {
    CS_ATTENTION_FLASH, /* fused: keeps queries, keys, values, output and a log-sum per row */
    CS_ATTENTION_MATH,  /* with the matrix of weights in memory, which it keeps */
} cs_attention_kernel;

typedef struct cs_conv {
    uint32_t out;
    uint32_t kernel;                  /* in all directions, unless kernels says otherwise */
    uint32_t kernels[CS_SPACE_MAX];   /* per direction; 0: kernel */
    uint32_t stride;                  /* 0: 1 */
    uint32_t pad, pads[CS_SPACE_MAX]; /* pads where not 0, else pad */
    uint32_t dilation;                /* pixels from one that the kernel reads to the next; 0: 1 */
    uint32_t groups;                  /* 0: 1 */
    bool bias;
} cs_conv;

typedef struct cs_window {
    uint32_t kernel, stride, pad; /* stride 0: the kernel */
    uint32_t dilation;            /* 0: 1 */
} cs_window;

typedef struct cs_linear {
    uint32_t out;
    bool bias;
    bool wide; /* no operand is cast to a narrow type: a router, a last matrix */
    bool tied; /* its weights are another operator's: used, not counted */
    cs_tensor
        lender; /* of tied ones: that operator's output; 0: of the first with as many weights */
} cs_linear;

/* E matrices: rows that are grouped by expert are multiplied by the matrix of theirs. */
typedef struct cs_grouped_linear {
    uint32_t out;
    uint32_t experts, top_k; /* E, of which so many compute a token */
    bool bias;
} cs_grouped_linear;

typedef struct cs_attention {
    uint32_t heads, kv_heads; /* of queries; of keys and values */
    cs_attention_kernel kernel;
    bool causal;
    double dropout;  /* of the attention weights */
    uint32_t window; /* of causal ones: a token attends to so many, itself included; 0: to all */
    uint32_t
        buckets; /* of relative positions, each with a learned bias per head; 0: there are none */
    bool sinks;  /* a learned logit per head joins each softmax (Xiao et al., ICLR 2024) */
    bool padded; /* samples are shorter than the sequence, and a mask leaves the rest out */
    /* of a local network (net-local.h): */
    uint32_t
        shares; /* its queries are one of so many shares of the sequence, which have equally many
                      * pairs of queries and keys; 0 is 1 */
    uint32_t steps; /* it reads keys and values of so many places, one after the other; 0 is 1 */
} cs_attention;

/* A state-space scan in chunks (Dao and Gu, Mamba-2, ICML 2024). Its `heads` are in `groups` that
 * have the matrices B and C in common, as grouped queries have keys and values. */
typedef struct cs_scan {
    uint32_t heads, groups;
    uint32_t state; /* features of a group's rows of B and C */
    uint32_t chunk; /* tokens */
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
    bool gathers_again;      /* of an exchange of a local network: see net-local.h */
    int64_t weights, biases; /* elements used */
    bool tied;               /* the weights are counted elsewhere */
    cs_extent kernel, stride, pad, dilation;
    uint32_t groups; /* of channels; of features that a norm is taken over, one head each */
    cs_attention attention;
    cs_scan scan;
    uint32_t heads;          /* of a concatenation of heads */
    uint32_t experts, top_k; /* of the operators of a mixture; 0: it is of none */
    double capacity;         /* of a dispatch: see cs_net_dispatch */
    bool wide;               /* see cs_linear */
    bool frozen;             /* its weights are not trained, */
    double stored;   /* stored bytes of each; a pass converts them to the network's precision
                    * first. 0: they are stored in it */
    uint32_t lender; /* of a tied one: the operator whose weights these are, + 1; 0: not said */
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
    int64_t input_elements; /* per sample, of all inputs that are no token ids */
    int64_t input_ids;      /* token ids per sample */
    cs_tensor carried;      /* see cs_net_carry; 0: there is none */
    bool has_precision;     /* its description says which numbers it is kept in: */
    cs_precision precision;
    /* while it is built: */
    char scope[128];
    cs_status status;
    cs_error *error;
    const cs_json_place *place; /* where the network is described, for messages; or NULL */
    bool has_keys;              /* by the names of its parameters */
    bool frozen;                /* operators with parameters are not trained */
} cs_net;

/* ---- life cycle ---- */

/* Starts a network; `error` gets the first error of what follows. Zeroed networks can be finished.
 */
void cs_net_begin(cs_net *net, const char *name, cs_error *error);

/* The status of all that was built; the last operator is the network's output. */
CS_MUST_CHECK cs_status cs_net_end(cs_net *net);
void cs_net_finish(cs_net *net);

/* Makes the network fail; the second for parameters that do not fit each other: the text goes on
 * where the parameter's name ends, "must divide hidden, 768 (got 7)". */
void cs_net_fail(cs_net *net, const char *format, ...) CS_PRINTF(2, 3);
void cs_net_refuse(cs_net *net, const char *parameter, const char *format, ...) CS_PRINTF(3, 4);

/* ---- names ---- */

/* Starts the block of that name; the scope is the block until the next one. */
void cs_net_block(cs_net *net, const char *format, ...) CS_PRINTF(2, 3);

/* A scope within the present one; leaving takes what entering gave. */
uint32_t cs_net_enter(cs_net *net, const char *name);
void cs_net_leave(cs_net *net, uint32_t entered);

/* ---- inputs ---- */

cs_tensor cs_net_image(cs_net *net, uint32_t channels, cs_extent space);
cs_tensor cs_net_token_ids(cs_net *net, uint32_t tokens);

/* The ids again, or others, for operators further on: whoever reads them loads them by itself, as
 * it does the targets of a loss, so that they cross no boundary of the chain. */
cs_tensor cs_net_more_token_ids(cs_net *net, uint32_t tokens);

/* Says that operators further on read a tensor, which is handed past those between: the chain has
 * boundaries there all the same. A network has one at most. */
void cs_net_carry(cs_net *net, cs_tensor tensor);

/* ---- operators ---- */

cs_tensor cs_net_conv(cs_net *net, const char *name, cs_tensor x, const cs_conv *conv);
cs_tensor cs_net_linear(cs_net *net, const char *name, cs_tensor x, const cs_linear *linear);
cs_tensor cs_net_batch_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_layer_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_rms_norm(cs_net *net, const char *name, cs_tensor x);

/* Over each of so many equal parts of a token's features by itself, with one scale for all parts
 * (the queries and keys of Qwen3). */
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
cs_tensor cs_net_copy(cs_net *net, const char *name, cs_tensor x); /* made contiguous */
cs_tensor cs_net_mul(cs_net *net, const char *name, cs_tensor a, cs_tensor b);
cs_tensor cs_net_add(cs_net *net, const char *name, cs_tensor a, cs_tensor b);

/* a += b, as residual networks have it. */
cs_tensor cs_net_add_to(cs_net *net, const char *name, cs_tensor a, cs_tensor b);

/* Nothing is done, and no operator made, for a probability of 0. */
cs_tensor cs_net_dropout(cs_net *net, const char *name, cs_tensor x, double probability);
cs_tensor cs_net_concat(cs_net *net, const char *name, const cs_tensor *parts, uint32_t n);
cs_tensor cs_net_embedding(cs_net *net, const char *name, cs_tensor ids, uint32_t rows,
                           uint32_t features);

/* With the table of another embedding, whose output `of` is. */
cs_tensor cs_net_embedding_of(cs_net *net, const char *name, cs_tensor ids, cs_tensor of);

/* x + a learned parameter of x's shape; x + rows of a learned table of so many parameters; a
 * learned first token in front of the others. */
cs_tensor cs_net_add_learned(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_add_table(cs_net *net, const char *name, cs_tensor x, int64_t parameters);

cs_tensor cs_net_first_token(cs_net *net, const char *name, cs_tensor x);

/* Of (tokens, heads x features) each, the features of a head side by side; a part with `shared` has
 * one head, which stands in all of the result. */
cs_tensor cs_net_head_concat(cs_net *net, const char *name, const cs_tensor parts[2],
                             uint32_t heads, bool shared);

/* queries, keys and values are (tokens, features), keys and values of as many tokens each; the
 * heads of queries and keys have equally many features, those of values may have others, as the
 * result then has. */
cs_tensor cs_net_attention(cs_net *net, const char *name, const cs_tensor qkv[3],
                           const cs_attention *attention);

/* A mixture of experts (Shazeer et al., ICLR 2017), for tokens of one sample:
 *
 *     routing = cs_net_top_k(net, "top_k", cs_net_linear(net, "router", x, ...), experts, k);
 *     rows = cs_net_dispatch(net, "dispatch", x, routing, capacity);
 *     ... rows through cs_net_grouped_linear and what works element by element ...
 *     y = cs_net_combine(net, "combine", rows, routing);
 *
 * top_k makes of the logits (tokens, experts) the weights (tokens, k) of the k experts that a token
 * goes to; which they are is part of it. dispatch copies every token to its experts, grouped by
 * expert: (tokens k) rows, where experts take what comes (capacity 0), else experts times their
 * capacity, ceil(capacity tokens k / experts) rows, the rest of a group being padding and what does
 * not fit it dropped (GShard, Lepikhin et al., ICLR 2021). combine adds to each token the rows that
 * are its own, times their weights. How many rows an expert gets is the data's; costs are those of
 * equal groups. */
cs_tensor cs_net_top_k(cs_net *net, const char *name, cs_tensor logits, uint32_t k);
cs_tensor cs_net_dispatch(cs_net *net, const char *name, cs_tensor x, cs_tensor routing,
                          double capacity);
cs_tensor cs_net_grouped_linear(cs_net *net, const char *name, cs_tensor rows,
                                const cs_grouped_linear *linear);
cs_tensor cs_net_combine(cs_net *net, const char *name, cs_tensor rows, cs_tensor routing);

/* A convolution along the tokens, each feature by itself, of a token and those before it, and a
 * SiLU: one kernel that keeps its input only (causal_conv1d). */
cs_tensor cs_net_causal_conv(cs_net *net, const char *name, cs_tensor x, uint32_t kernel,
                             bool bias);

/* Of x (tokens, heads x features), the steps (tokens, heads), B and C (tokens, groups x state);
 * with three learned numbers per head: decay, bias of the step, and what is handed on. */
cs_tensor cs_net_scan(cs_net *net, const char *name, const cs_tensor inputs[4],
                      const cs_scan *scan);

/* Views: (channels, space...) as features, or as tokens of `channels` features; some of the
 * features; token number 0 alone (what keeps it keeps all tokens: they are one storage). */
cs_tensor cs_net_flatten(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_tokens(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_features(cs_net *net, const char *name, cs_tensor x, uint32_t features);
cs_tensor cs_net_take_first(cs_net *net, const char *name, cs_tensor x);

/* Of any shape, with no more elements than it is of. */
cs_tensor cs_net_view(cs_net *net, const char *name, cs_tensor x, const cs_shape *shape);

/* Losses, with a mean over all that is predicted. */
cs_tensor cs_net_cross_entropy(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_squared_error(cs_net *net, const char *name, cs_tensor x);

/* ---- what was built ---- */

const cs_tensor_info *cs_net_tensor(const cs_net *net, cs_tensor tensor);

/* The operator whose output a tensor is; n_ops: it is an input of the network. */
uint32_t cs_net_writer(const cs_net *net, cs_tensor tensor);

/* The operator whose weights operator `op` uses: itself, or of a tied one the one that was said, or
 * else the first that has as many of its own. n_ops: there is none. */
uint32_t cs_net_lender(const cs_net *net, uint32_t op);

/* Whether backward makes a gradient of what `op` reads as input i. A dispatch reads where the rows
 * go, not the weights that the routing has besides. */
bool cs_op_makes_gradient(const cs_net *net, const cs_op *op, uint32_t i);

const char *cs_op_kind_name(cs_op_kind kind);
const char *cs_op_kind_group(cs_op_kind kind);

/* "64 x 112 x 112"; returns `text`. */
char *cs_shape_text(const cs_shape *shape, char *text, size_t size);

enum { CS_SHAPE_TEXT_BYTES = 64 };

#endif
