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
#include "sim/workload/precision.h"

#include <stdbool.h>
#include <stdint.h>

/* name in files and tables, name of the group that a device has an efficiency for */
#define CS_OP_KIND_MAP(X)                                                                          \
    X(CONV, "conv", "conv")                                                                        \
    X(LINEAR, "linear", "linear")                                                                  \
    X(BATCH_NORM, "batch_norm", "norm")                                                            \
    X(LAYER_NORM, "layer_norm", "norm")                                                            \
    X(RMS_NORM, "rms_norm", "norm")                                                                \
    X(RELU, "relu", "elementwise")                                                                 \
    X(GELU, "gelu", "elementwise")                                                                 \
    X(SILU, "silu", "elementwise")                                                                 \
    X(TANH, "tanh", "elementwise")                                                                 \
    X(ROTARY, "rotary", "elementwise")                                                             \
    X(MUL, "mul", "elementwise")                                                                   \
    X(ADD, "add", "elementwise")                                                                   \
    X(DROPOUT, "dropout", "elementwise")                                                           \
    X(SOFTMAX, "softmax", "elementwise")                                                           \
    X(COPY, "copy", "elementwise")                                                                 \
    X(CONCAT, "concat", "elementwise")                                                             \
    X(MAX_POOL, "max_pool", "pool")                                                                \
    X(AVG_POOL, "avg_pool", "pool")                                                                \
    X(ADAPTIVE_POOL, "adaptive_pool", "pool")                                                      \
    X(ATTENTION, "attention", "attention")                                                         \
    X(EMBEDDING, "embedding", "embedding")                                                         \
    X(CROSS_ENTROPY, "cross_entropy", "loss")                                                      \
    X(SQUARED_ERROR, "squared_error", "loss")                                                      \
    X(VIEW, "view", "elementwise")                                                                 \
    X(EXCHANGE, "exchange", "elementwise") /* of a local network: net-local.h */

typedef enum cs_op_kind {
#define CS_OP_ENUM(name, text, group) CS_OP_##name,
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
} cs_element;

typedef struct cs_tensor_info {
    cs_shape shape;
    int64_t elements; /* per sample */
    cs_element element;
    uint32_t storage;     /* tensors that share one have the same number */
    uint32_t last_reader; /* op, CS_NO_TENSOR when none reads it */
    bool differentiable;  /* a gradient of it is computed */
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
    uint32_t groups;                  /* 0: 1 */
    bool bias;
} cs_conv;

typedef struct cs_window {
    uint32_t kernel, stride, pad; /* stride 0: the kernel */
} cs_window;

typedef struct cs_linear {
    uint32_t out;
    bool bias;
    bool tied; /* its weights are another operator's: used, not counted */
} cs_linear;

typedef struct cs_attention {
    uint32_t heads, kv_heads; /* of queries; of keys and values */
    cs_attention_kernel kernel;
    bool causal;
    double dropout; /* of the attention weights */
} cs_attention;

enum { CS_OP_INPUTS_MAX = 8 };

typedef struct cs_op {
    cs_op_kind kind;
    const char *name;
    uint32_t block;
    uint32_t n_inputs;
    cs_tensor inputs[CS_OP_INPUTS_MAX];
    cs_tensor output;
    bool in_place;
    int64_t weights, biases; /* elements used */
    bool tied;               /* the weights are counted elsewhere */
    cs_extent kernel, stride, pad;
    uint32_t groups;
    cs_attention attention;
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
    bool has_precision;     /* its description says which numbers it is kept in: */
    cs_precision precision;
    /* while it is built: */
    char scope[128];
    cs_status status;
    cs_error *error;
    const cs_json_place *place; /* where the network is described, for messages; or NULL */
    bool has_keys;              /* by the names of its parameters */
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

/* ---- operators ---- */

cs_tensor cs_net_conv(cs_net *net, const char *name, cs_tensor x, const cs_conv *conv);
cs_tensor cs_net_linear(cs_net *net, const char *name, cs_tensor x, const cs_linear *linear);
cs_tensor cs_net_batch_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_layer_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_rms_norm(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_max_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool);
cs_tensor cs_net_avg_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool);
cs_tensor cs_net_adaptive_pool(cs_net *net, const char *name, cs_tensor x, uint32_t size);
cs_tensor cs_net_relu(cs_net *net, const char *name, cs_tensor x);       /* in place */
cs_tensor cs_net_leaky_relu(cs_net *net, const char *name, cs_tensor x); /* in place */
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

/* x + a learned parameter of x's shape; x + rows of a learned table of so many parameters; a
 * learned first token in front of the others. */
cs_tensor cs_net_add_learned(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_add_table(cs_net *net, const char *name, cs_tensor x, int64_t parameters);
cs_tensor cs_net_first_token(cs_net *net, const char *name, cs_tensor x);

/* queries, keys and values are (tokens, features). */
cs_tensor cs_net_attention(cs_net *net, const char *name, const cs_tensor qkv[3],
                           const cs_attention *attention);

/* Views: (channels, space...) as features, or as tokens of `channels` features; some of the
 * features; token number 0 alone (what keeps it keeps all tokens: they are one storage). */
cs_tensor cs_net_flatten(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_tokens(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_features(cs_net *net, const char *name, cs_tensor x, uint32_t features);
cs_tensor cs_net_take_first(cs_net *net, const char *name, cs_tensor x);

/* Losses, with a mean over all that is predicted. */
cs_tensor cs_net_cross_entropy(cs_net *net, const char *name, cs_tensor x);
cs_tensor cs_net_squared_error(cs_net *net, const char *name, cs_tensor x);

/* ---- what was built ---- */

const cs_tensor_info *cs_net_tensor(const cs_net *net, cs_tensor tensor);

/* The operator whose weights operator `op` uses: itself, or of a tied one the first that has as many
 * of its own. n_ops: there is none. */
uint32_t cs_net_lender(const cs_net *net, uint32_t op);

const char *cs_op_kind_name(cs_op_kind kind);
const char *cs_op_kind_group(cs_op_kind kind);

/* "64 x 112 x 112"; returns `text`. */
char *cs_shape_text(const cs_shape *shape, char *text, size_t size);

enum { CS_SHAPE_TEXT_BYTES = 64 };

#endif
