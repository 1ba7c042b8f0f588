/* The table of an operator: one constant table per kind.
 *
 * To add a kind, write a file in this folder with its builder (net.h) and a `const cs_operator
 * cs_operator_NAME`, and add one line to CS_OP_KIND_MAP (net.h) and one to meson.build. The table
 * has:
 *
 *   cost     flop, bytes and launches of each pass, and the activations saved for backward
 *   split    per axis of a mesh: the layouts of its inputs and its result; and `cut`, which gives
 *            one device its share of the parameters. Without a rule, inputs and result are whole
 *   entry    the keys that a file must give for it, and the call of its builder (net-file.h)
 *   traits   properties that other code asks of all kinds: is it a view, a loss, a product?
 *
 * Members that a table leaves out are zero; their comments say what zero means. No other code lists
 * the kinds, with two exceptions: backends (calib/bench) have a kernel for each kind that they can
 * run, and models of frameworks look for patterns such as "a SiLU in front of a product". */
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
    cs_list inputs;                                      /* list of const char * */
    cs_list output_shape, kernel, stride, pad, dilation; /* lists of uint32_t */
    uint32_t groups, heads, kv_heads, state, chunk, scan_groups;
    uint32_t experts, top_k, window, buckets;
    double capacity, dropout, stored;
    int64_t weights, biases;
    bool causal, math, sinks, padded, wide, frozen, in_place;
} cs_op_entry;

extern const cs_field cs_op_entry_fields[];

/* Values that follow from the other keys; `sim model --json` prints them too. */
extern const cs_field cs_op_entry_figures[];

/* Keys that a file must give for a kind of operator. */
typedef struct cs_entry_needs {
    uint32_t least, most; /* number of inputs */
    uint32_t rank;        /* rank of each input; 0: any */
    /* must have one size per direction of an image; with rank 2, a single size, for tokens */
    bool kernel;
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

/* An operator that is being made from its entry in a file. */
typedef struct cs_op_making {
    cs_net *net;
    cs_error *error;
    const cs_op_entry *entry;
    const cs_json_place *place;
    const char *name; /* name within its block */
    cs_tensor in[CS_OP_INPUTS_MAX];
    cs_tensor lender; /* output of the operator whose weights it uses ("tied_to") */
    uint32_t n;       /* number of inputs */
} cs_op_making;

/* Checks an entry. CS_INVALID, with the key, if the inputs or the entry do not fit its kind. */
CS_MUST_CHECK cs_status cs_op_making_check(const cs_op_making *m);

/* Adds a checked operator to the network. CS_INVALID if the result differs from the entry. */
CS_MUST_CHECK cs_status cs_op_make(cs_op_making *m);

/* Returns the features, or channels, of the result that the entry states; 0: not stated. */
uint32_t cs_made_features(const cs_op_making *m);
const cs_shape *cs_input_shape(const cs_op_making *m, uint32_t input);

/* Reports an error at a key of the entry; returns CS_INVALID. */
CS_MUST_CHECK cs_status cs_op_making_wrong(const cs_op_making *m, const char *key,
                                           const char *text);

/* Checks, as a `check`, that the window is the same in all directions. */
CS_MUST_CHECK cs_status cs_op_check_even_window(const cs_op_making *m);

/* ---- cost ---- */

/* Bytes of a float32, of an index (int64) and of an element of a mask. */
enum { CS_FLOAT_BYTES = 4, CS_INDEX_BYTES = 8, CS_MASK_BYTES = 1 };

/* An operator, and the conditions to compute its cost for. */
typedef struct cs_cost_query {
    const cs_net *net;
    const cs_op *op;
    const cs_tensor_info *in, *out; /* first input; output */
    double batch, width;            /* number of samples; bytes per activation */
    /* bytes per element of an operand that is cast to a narrow type; 0: none is cast */
    double operand;
    cs_precision precision;
    double x, y; /* elements of the first input and of the output, for the whole batch */
    bool needs_gradient;
} cs_cost_query;

/* The cost of an elementwise operator. Flop and moves are per element of the output; a move reads
 * or writes one element of activations. */
typedef struct cs_elementwise_cost {
    double forward_flop, backward_flop;
    double forward_moves, backward_moves, weight_moves;
    double bytes; /* bytes of other data per element of the output, moved in both passes */
    bool keeps_input, keeps_output;
} cs_elementwise_cost;

/* Computes the cost from the operator's `each`, the cost per element. */
void cs_cost_elementwise(const cs_cost_query *s, cs_op_cost *cost);

/* Computes the cost of a product of `macs` multiply-accumulates, including its casts to a narrow
 * type. */
void cs_cost_product(const cs_cost_query *s, double macs, cs_op_cost *cost);

/* Returns the number of rows if the tensor is seen as a matrix: all dimensions but the last. */
static inline double cs_tensor_rows(const cs_tensor_info *tensor)
{
    return (double)tensor->elements / tensor->shape.dims[tensor->shape.rank - 1];
}

/* ---- split ---- */

/* An operator, and the part of it that one device computes. */
typedef struct cs_cut {
    const cs_net *net, *local; /* whole network; network of the device, as far as it is built */
    const cs_split *split;
    uint32_t place;
    const cs_op *of;              /* operator of the whole network */
    cs_shape whole_in, whole_out; /* shapes of its first input and its result */
    cs_shape in, out;             /* shapes of the device's parts of them */
    const cs_tensor_layout *made; /* layout of the result before any exchange */
    uint32_t shares;              /* see cs_rule_answer */
    bool ring;
} cs_cut;

/* Returns `heads` scaled by the device's share of the features of its first input. */
uint32_t cs_cut_heads(const cs_cut *cut, uint32_t heads);

/* Gives the device the weights and biases of its features of the result. */
void cs_cut_features(const cs_cut *cut, cs_op *op);

/* ---- the table ---- */

/* Parts of the key of a measured time, in addition to shapes (op-shape.h). */
enum {
    CS_KEY_WEIGHTS = 1, /* number of parameters, if the shapes do not determine it */
    CS_KEY_BIAS = 2,
    CS_KEY_GROUPS = 4,
    CS_KEY_GROUPS_AS_HEADS = 8, /* number of groups, under the name of heads, if above 1 */
};

typedef struct cs_operator {
    const char *name;  /* name in files and tables */
    const char *group; /* group of kinds that have the same efficiency on a device */

    /* traits */
    bool is_view;            /* only reshapes its input: no kernel, no storage */
    bool is_loss;            /* ends the network: no operator reads its result */
    bool is_product;         /* linear layer: its operands may be cast to a narrow type */
    bool of_experts;         /* weights are one matrix per expert */
    bool channels_first;     /* features are channels, which are the first dimension */
    bool input_for_weights;  /* saves its input only for the gradient of its weights */
    bool batch_statistics;   /* computes statistics over the batch */
    uint32_t no_gradient_of; /* bit 1 << i set: backward makes no gradient of input i */

    /* cost */
    cs_elementwise_cost each;
    void (*cost)(const cs_cost_query *s, cs_op_cost *cost); /* NULL: cs_cost_elementwise */

    /* split */
    cs_layout_rule *split[CS_N_SPLITS];
    bool takes_parts; /* axis tensor: can read an input that is split by features */
    /* passes_features: whether a device can compute the operator on its part of the features; NULL:
     * never. joins_parts: whether the operators around it make that possible; NULL: never. */
    bool (*passes_features)(const cs_rule_query *query, const cs_op *op);
    bool (*joins_parts)(const cs_rule_query *query, const cs_op *op);
    void (*cut)(const cs_cut *cut, cs_op *op); /* NULL: parameters stay whole */

    /* file */
    cs_entry_needs needs;
    cs_status (*check)(const cs_op_making *m); /* NULL: `needs` is sufficient */
    cs_tensor (*make)(cs_op_making *m);        /* NULL: not allowed in files */

    /* measured times and backends */
    uint32_t key;                                            /* CS_KEY_... */
    bool (*is_runnable)(const cs_net *net, const cs_op *op); /* NULL: all are runnable */
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

/* Returns the number of matrices in the operator's weights. */
static inline uint32_t cs_op_matrices(const cs_op *op)
{
    return cs_operator_of(op)->of_experts ? op->experts : 1;
}

/* Returns false: an is_runnable for kinds that no backend can run. */
bool cs_op_never_runs(const cs_net *net, const cs_op *op);

/* Returns true: a passes_features for kinds that work feature by feature. */
bool cs_op_by_feature(const cs_rule_query *query, const cs_op *op);

/* ---- builders ---- */

/* Most elements of a tensor per sample. With more, the bytes of a batch of 2^20 samples could
 * exceed 63 bits. */
#define CS_MOST_ELEMENTS (INT64_C(1) << 36)

/* Whether the network has no error so far and all inputs are tensors. */
bool cs_net_usable(const cs_net *net, const cs_tensor *inputs, uint32_t n_inputs);

/* Returns an operator that reads these tensors, not yet added to a network. */
cs_op cs_net_op(cs_op_kind kind, const cs_tensor *inputs, uint32_t n_inputs);

/* Adds the operator with an output of that shape, and returns the output. */
cs_tensor cs_net_add_op(cs_net *net, const char *name, cs_op *op, const cs_shape *shape,
                        cs_element element);

/* Makes the network fail; the message begins with the operator's full name. */
void cs_net_fail_at(cs_net *net, const char *name, const char *what);

/* Adds an operator with one input and a result of the input's shape. */
cs_tensor cs_net_add_alike(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x,
                           bool in_place);

/* Whether the heads divide the features; makes the network fail if they do not. */
bool cs_net_heads_divide(cs_net *net, const char *name, uint32_t heads, uint32_t features);

/* Whether the shapes have the same rank and the same dimensions from `from` on. */
bool cs_shape_same(const cs_shape *a, const cs_shape *b, uint32_t from);

/* Returns the last operator that writes the tensor, which must not be an input of the network. */
uint32_t cs_net_last_writer(const cs_net *net, cs_tensor tensor);

/* Makes the operator use the weights of the operator whose output is `of`. */
void cs_op_borrow(const cs_net *net, cs_op *op, cs_tensor of);

#endif
