/* One constant table per kind of operator.
 *
 * A new kind is a file here with its builder (net.h) and a `const cs_operator cs_operator_NAME`, a
 * line in CS_OP_KIND_MAP (net.h) and one in meson.build. The table says:
 *
 *   cost     flop, bytes and launches of each pass, and what is kept for backward
 *   split    per axis of a mesh: the layouts of its inputs and its result; and `cut`, its parameters
 *            on one place. Without a rule it reads and makes everything whole
 *   entry    what a file has to say of it, and the call of its builder (net-file.h)
 *   traits   what other code asks of all kinds: is it a view, a loss, a product?
 *
 * Members that a table leaves out are zero, and their comment says what that means. Nothing else
 * lists the kinds, except backends (calib/bench), which have a kernel per kind that they can run,
 * and models of frameworks, which look for patterns such as "a SiLU in front of a product". */
#ifndef CS_WORKLOAD_OPERATOR_H
#define CS_WORKLOAD_OPERATOR_H

#include "sim/base/field.h"
#include "sim/model/op-cost.h"
#include "sim/model/split-rules.h"

/* ---- entries of files (net-file.h) ---- */

enum { CS_NET_NAME_BYTES = 192 };

typedef struct cs_op_entry {
    const char *name, *block, *tied_to;
    uint32_t kind;
    cs_list inputs;                                      /* const char * */
    cs_list output_shape, kernel, stride, pad, dilation; /* uint32_t */
    uint32_t groups, heads, kv_heads, state, chunk, scan_groups;
    uint32_t experts, top_k, window, buckets;
    double capacity, dropout, stored;
    int64_t weights, biases;
    bool causal, math, sinks, padded, wide, frozen, in_place;
} cs_op_entry;

extern const cs_field cs_op_entry_fields[];

/* Values that `sim model --json` prints as well; they follow from the rest. */
extern const cs_field cs_op_entry_figures[];

/* Keys that a file must give for a kind of operator. */
typedef struct cs_entry_needs {
    uint32_t least, most; /* inputs */
    uint32_t rank;        /* rank of each input; 0: any */
    bool kernel;          /* with a size per direction of an image; of rank 2, one for tokens */
    bool output, heads, experts, routed, weights;
} cs_entry_needs;

static inline uint32_t cs_size_at(const cs_list *list, uint32_t i)
{
    return ((const uint32_t *)list->items)[i];
}

static inline uint32_t cs_size_or(const cs_list *list, uint32_t i, uint32_t otherwise)
{
    return i < list->n ? cs_size_at(list, i) : otherwise;
}

/* An operator, while it is made. */
typedef struct cs_op_making {
    cs_net *net;
    cs_error *error;
    const cs_op_entry *entry;
    const cs_json_place *place;
    const char *name; /* within its block */
    cs_tensor in[CS_OP_INPUTS_MAX];
    cs_tensor lender; /* the output of the operator that it is tied to */
    uint32_t n;       /* inputs */
} cs_op_making;

/* CS_INVALID, with the key, if the inputs or the entry do not fit its kind. */
CS_MUST_CHECK cs_status cs_op_making_check(const cs_op_making *m);

/* Adds what was checked to the network. CS_INVALID if it is not what the entry says. */
CS_MUST_CHECK cs_status cs_op_make(cs_op_making *m);

/* The features, or channels, that the entry says it makes; 0: it does not say. */
uint32_t cs_made_features(const cs_op_making *m);
const cs_shape *cs_input_shape(const cs_op_making *m, uint32_t input);

/* CS_INVALID, at a key of the entry. */
CS_MUST_CHECK cs_status cs_op_making_wrong(const cs_op_making *m, const char *key,
                                           const char *text);

/* For `check`: its window is the same in all directions. */
CS_MUST_CHECK cs_status cs_op_check_even_window(const cs_op_making *m);

/* ---- cost ---- */

/* Bytes of a float32, of an index (int64) and of an element of a mask. */
enum { CS_FLOAT_BYTES = 4, CS_INDEX_BYTES = 8, CS_MASK_BYTES = 1 };

/* The operator to charge for. */
typedef struct cs_cost_query {
    const cs_net *net;
    const cs_op *op;
    const cs_tensor_info *in, *out; /* first input, and output */
    double batch, width;            /* samples; bytes of an activation */
    double operand; /* bytes of an element of an operand that is cast; 0: none is cast */
    cs_precision precision;
    double x, y; /* elements of first input and output, of the whole batch */
    bool needs_gradient;
} cs_cost_query;

/* The cost of a pass over the elements. Flop and moves are per element of the output; a move reads
 * or writes one element of activations. */
typedef struct cs_elementwise_cost {
    double forward_flop, backward_flop;
    double forward_moves, backward_moves, weight_moves;
    double bytes; /* other data, moved in both passes */
    bool keeps_input, keeps_output;
} cs_elementwise_cost;

/* Charges the operator's `each`. */
void cs_cost_elementwise(const cs_cost_query *s, cs_op_cost *cost);

/* Charges a product of `macs` multiply-accumulates, with its casts to a narrow type. */
void cs_cost_product(const cs_cost_query *s, double macs, cs_op_cost *cost);

/* Rows of a matrix of features: everything but the last dimension. */
static inline double cs_tensor_rows(const cs_tensor_info *tensor)
{
    return (double)tensor->elements / tensor->shape.dims[tensor->shape.rank - 1];
}

/* ---- split ---- */

/* An operator as one place computes it. */
typedef struct cs_cut {
    const cs_net *net, *local; /* the whole network, and the place's as far as it is built */
    const cs_split *split;
    uint32_t place;
    const cs_op *of;              /* the whole operator */
    cs_shape whole_in, whole_out; /* shapes of its first input and its result, */
    cs_shape in, out;             /* and of the place's parts of them */
    const cs_tensor_layout *made; /* the result before any exchange */
    uint32_t shares;              /* as in cs_rule_answer */
    bool ring;
} cs_cut;

/* `heads` by the place's part of the features of its input. */
uint32_t cs_cut_heads(const cs_cut *cut, uint32_t heads);

/* Weights and biases that belong to features of the result. */
void cs_cut_features(const cs_cut *cut, cs_op *op);

/* ---- the table ---- */

/* Parts of the key of a measured time besides shapes (op-shape.h). */
enum {
    CS_KEY_WEIGHTS = 1, /* the number of parameters, which does not follow from the shapes */
    CS_KEY_BIAS = 2,
    CS_KEY_GROUPS = 4,
    CS_KEY_GROUPS_AS_HEADS = 8, /* above 1 */
};

typedef struct cs_operator {
    const char *name;  /* in files and tables */
    const char *group; /* kinds that share one efficiency of a device */

    /* traits */
    bool is_view;            /* its input in another shape: no kernel, no storage */
    bool is_loss;            /* ends the network: nothing reads its result */
    bool is_product;         /* a linear layer: its operands may be cast to a narrow type */
    bool of_experts;         /* its weights are one matrix per expert */
    bool channels_first;     /* its features are channels, the first dimension */
    bool input_for_weights;  /* it keeps its input only for the gradient of its weights */
    bool batch_statistics;   /* it computes statistics over the batch */
    uint32_t no_gradient_of; /* bit 1 << i: backward makes no gradient of input i */

    /* cost */
    cs_elementwise_cost each;
    void (*cost)(const cs_cost_query *s, cs_op_cost *cost); /* NULL: cs_cost_elementwise */

    /* split */
    cs_layout_rule *split[CS_N_SPLITS];
    bool takes_parts; /* on the axis tensor it can read its input split by features */
    /* Whether a place can compute it on its part of the features (NULL: no); or can do so because of
     * the operators around it. */
    bool (*passes_features)(const cs_rule_query *query, const cs_op *op);
    bool (*joins_parts)(const cs_rule_query *query, const cs_op *op);
    void (*cut)(const cs_cut *cut, cs_op *op); /* NULL: its parameters stay as they are */

    /* file */
    cs_entry_needs needs;
    cs_status (*check)(const cs_op_making *m); /* NULL: `needs` says it all */
    cs_tensor (*make)(cs_op_making *m);        /* NULL: files cannot have it */

    /* measured times and backends */
    uint32_t key;                                            /* CS_KEY_... */
    bool (*is_runnable)(const cs_net *net, const cs_op *op); /* NULL: all are */
} cs_operator;

#define CS_OPERATOR_DECLARE(kind, name) extern const cs_operator cs_operator_##name;
CS_OP_KIND_MAP(CS_OPERATOR_DECLARE)
#undef CS_OPERATOR_DECLARE

const cs_operator *cs_operator_of_kind(cs_op_kind kind);

static inline const cs_operator *cs_operator_of(const cs_op *op)
{
    return cs_operator_of_kind(op->kind);
}

static inline bool cs_op_is_view(const cs_op *op)
{
    return cs_operator_of(op)->is_view;
}

static inline bool cs_op_is_loss(const cs_op *op)
{
    return cs_operator_of(op)->is_loss;
}

static inline bool cs_op_is_product(const cs_op *op)
{
    return cs_operator_of(op)->is_product;
}

/* The number of matrices in its weights. */
static inline uint32_t cs_op_matrices(const cs_op *op)
{
    return cs_operator_of(op)->of_experts ? op->experts : 1;
}

/* For is_runnable: no backend can run it. */
bool cs_op_never_runs(const cs_net *net, const cs_op *op);

/* For passes_features: it works feature by feature. */
bool cs_op_by_feature(const cs_rule_query *query, const cs_op *op);

/* ---- builders ---- */

/* Per sample and tensor. Beyond this, bytes of a batch of 2^20 samples could leave 63 bits. */
#define CS_MOST_ELEMENTS (INT64_C(1) << 36)

/* True while the network has no error and all inputs are tensors. */
bool cs_net_usable(const cs_net *net, const cs_tensor *inputs, uint32_t n_inputs);

/* An operator that reads these tensors. */
cs_op cs_net_op(cs_op_kind kind, const cs_tensor *inputs, uint32_t n_inputs);

/* Adds it with an output of that shape, and returns the output. */
cs_tensor cs_net_add_op(cs_net *net, const char *name, cs_op *op, const cs_shape *shape,
                        cs_element element);

/* Makes the network fail, with the operator's full name. */
void cs_net_fail_at(cs_net *net, const char *name, const char *what);

/* An operator of one input, whose result has the input's shape. */
cs_tensor cs_net_add_alike(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x,
                           bool in_place);

/* Fails unless the heads divide the features. */
bool cs_net_heads_divide(cs_net *net, const char *name, uint32_t heads, uint32_t features);

/* Whether dimensions from `from` on agree. */
bool cs_shape_same(const cs_shape *a, const cs_shape *b, uint32_t from);

/* The operator that wrote a tensor, which must not be an input. */
uint32_t cs_net_last_writer(const cs_net *net, cs_tensor tensor);

/* It uses the weights of the operator that makes `of`. */
void cs_op_borrow(const cs_net *net, cs_op *op, cs_tensor of);

#endif
