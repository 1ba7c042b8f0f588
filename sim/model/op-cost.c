#include "sim/model/op-cost.h"

#include <math.h>

enum { FLOAT = 4, INDEX = 8, MASK = 1, ALIGNED = 16 };

/* What kinds without a rule of their own do per element: flop, and times that an element of
 * activations is moved (with `bytes` more of something else); and what they keep. */
static const struct simple {
    double forward_flop, backward_flop;
    double forward_moves, backward_moves, weight_moves; /* times the output's elements */
    double bytes;                                       /* in both passes, per element of output */
    bool keeps_input, keeps_output;
} simple[CS_N_OP_KINDS] = {
    [CS_OP_BATCH_NORM] = {5, 8, 3, 5, 0, 0, true, false},
    [CS_OP_LAYER_NORM] = {6, 9, 2, 3, 2, 0, true, false},
    [CS_OP_RMS_NORM] = {4, 7, 6, 8, 2, 0, true, false},
    [CS_OP_RELU] = {1, 1, 2, 3, 0, 0, false, true},
    [CS_OP_GELU] = {8, 12, 2, 3, 0, 0, true, false},
    [CS_OP_SILU] = {5, 8, 2, 3, 0, 0, true, false},
    [CS_OP_TANH] = {5, 3, 2, 3, 0, 0, false, true},
    [CS_OP_ROTARY] = {3, 3, 2, 2, 0, 0, false, false},
    [CS_OP_MUL] = {1, 2, 3, 5, 0, 0, true, false},
    [CS_OP_ADD] = {1, 0, 3, 0, 1, 0, false, false},
    [CS_OP_DROPOUT] = {2, 1, 2, 2, 0, MASK, false, false},
    [CS_OP_SOFTMAX] = {5, 4, 2, 3, 0, 0, false, true},
    [CS_OP_COPY] = {0, 0, 2, 2, 0, 0, false, false},
    [CS_OP_CONCAT] = {0, 0, 2, 2, 0, 0, false, false},
    [CS_OP_ADAPTIVE_POOL] = {1, 1, 1, 1, 0, 0, true, false},
    [CS_OP_MAX_POOL] = {0, 1, 1, 1, 0, INDEX, true, false},
    [CS_OP_AVG_POOL] = {0, 1, 1, 1, 0, 0, true, false},
    [CS_OP_EMBEDDING] = {0, 0, 2, 0, 2, 0, true, false},
    [CS_OP_CROSS_ENTROPY] = {6, 3, 0, 0, 0, 0, false, false},
    [CS_OP_SQUARED_ERROR] = {3, 2, 0, 0, 0, 0, true, false},
    [CS_OP_EXCHANGE] = {0, 0, 0, 0, 1, 0, false, false}, /* the gradient of its bias */
};

/* An operator with what all rules need. */
typedef struct subject {
    const cs_net *net;
    const cs_op *op;
    const cs_tensor_info *in, *out;
    double batch, width;
    double operand; /* bytes of an element of an operand that is cast; 0: none is */
    cs_precision precision;
    double x, y; /* elements of first input and output, of the whole batch */
    bool needs_gradient;
} subject;

int64_t cs_tensor_bytes(const cs_net *net, cs_tensor tensor, uint32_t batch, cs_precision precision)
{
    const cs_tensor_info *info = cs_net_tensor(net, tensor);
    int64_t width = info->element == CS_ELEMENT_INT64     ? INDEX
                    : info->element == CS_ELEMENT_FLOAT32 ? FLOAT
                                                          : cs_precision_bytes(precision);
    return info->elements * width * batch;
}

bool cs_op_is_pointwise(const cs_op *op)
{
    if (op->kind != CS_OP_CONV || op->groups != 1)
        return false;
    for (uint32_t i = 0; i < op->kernel.rank; i++)
        if (op->kernel.size[i] != 1 || op->stride.size[i] != 1 || op->pad.size[i] != 0)
            return false;
    return true;
}

/* Rows that a matrix of features has: everything but the last dimension. */
static double rows_of(const cs_tensor_info *tensor)
{
    return (double)tensor->elements / tensor->shape.dims[tensor->shape.rank - 1];
}

/* ---- matrix products ---- */

cs_precision cs_op_precision(const cs_op *op, cs_precision precision)
{
    const bool is_linear = op->kind == CS_OP_LINEAR || op->kind == CS_OP_GROUPED_LINEAR;
    return is_linear && !op->wide ? precision : cs_precision_wide(precision);
}

/* Whether a linear layer before it has cast what this one reads, for as many products. */
static bool is_cast_before(const subject *s)
{
    for (const cs_op *op = s->op; op > s->net->ops && op[-1].output != s->op->inputs[0];) {
        op--;
        if (op->n_inputs > 0 && op->inputs[0] == s->op->inputs[0] &&
            cs_precision_is_narrow(cs_op_precision(op, s->precision)) &&
            (!op->frozen || s->op->frozen))
            return true;
    }
    return false;
}

/* A kernel reads a tensor of so many elements and writes `copies` of it in the narrow type. */
static void cast(const subject *s, double elements, uint32_t copies, cs_pass_cost *before)
{
    if (copies == 0)
        return;
    before->cast_bytes += elements * (s->width + copies * s->operand);
    before->launches++;
}

/* Elements of the input as it is kept: of what is gathered again, the part that was there. */
static double kept_elements(const subject *s)
{
    const cs_op *op = s->op;
    while (op > s->net->ops && op->output != s->op->inputs[0])
        op--;
    return op->gathers_again && op->output == s->op->inputs[0]
               ? s->batch * (double)cs_net_tensor(s->net, op->inputs[0])->elements
               : s->x;
}

/* The same product with operands that were cast; results are as wide as ever. Each operand has a
 * copy for each of the products that read it. */
static void cost_narrow(const subject *s, cs_op_cost *cost)
{
    const bool trained = !s->op->frozen;
    const double weights = (double)s->op->weights, thin = s->operand;
    cost->forward.bytes = thin * (s->x + weights) + s->width * (s->y + (double)s->op->biases);
    if (s->needs_gradient)
        cost->backward_input.bytes = thin * (s->y + weights) + s->width * s->x;
    cost->backward_weight.bytes =
        thin * (s->x + s->y) + s->width * (weights + (s->op->biases > 0 ? s->y : 0));
    cost->keeps_input = false;
    if (!is_cast_before(s)) {
        cast(s, s->x, 1 + trained, &cost->forward);
        cost->kept_cast = trained ? (int64_t)ceil(thin * kept_elements(s)) : 0;
        cost->extra_kept_bytes = cost->kept_cast;
    }
    cast(s, s->y, s->needs_gradient + trained,
         s->needs_gradient ? &cost->backward_input : &cost->backward_weight);
    cost->copy_bytes = (int64_t)ceil(thin * (1 + s->needs_gradient) * weights);
}

static void cost_product(const subject *s, double macs, cs_op_cost *cost)
{
    const cs_op *op = s->op;
    double flop = 2 * macs, bytes = s->width * (s->x + s->y + (double)op->weights);
    cost->macs = macs;
    cost->forward = (cs_pass_cost){flop, bytes + s->width * (double)op->biases, 1};
    if (s->needs_gradient)
        cost->backward_input = (cs_pass_cost){flop, bytes, 1};
    cost->backward_weight = (cs_pass_cost){flop, bytes, 1};
    if (op->biases > 0) { /* the sum of the output's gradient over all rows */
        cost->backward_weight.flop += s->y;
        cost->backward_weight.bytes += s->width * s->y;
        cost->backward_weight.launches++;
    }
    cost->keeps_input = true;
    if (s->operand > 0)
        cost_narrow(s, cost);
}

/* An output is a sum over the weights of its channel. */
static void cost_conv(const subject *s, cs_op_cost *cost)
{
    double channels = s->out->shape.dims[0];
    cost_product(s, s->y * (double)s->op->weights / channels, cost);
    cs_winograd_passes(s->net, s->op, (uint32_t)s->batch, &cost->forward.winograd,
                       &cost->backward_input.winograd, &cost->backward_weight.winograd);
}

static void set_result(cs_pass_cost *pass, double rows, double columns)
{
    pass->rows = rows;
    pass->columns = columns;
}

/* Sets a product; `beside`: bytes of its pass that other kernels move. */
static void set_product(const subject *s, double rows, double columns, double beside,
                        cs_pass_cost *pass)
{
    set_result(pass, rows, columns);
    pass->product_bytes = pass->bytes - beside;
    pass->result_bytes = s->width * rows * columns;
}

static void cost_linear(const subject *s, cs_op_cost *cost)
{
    const double rows = s->batch * rows_of(s->in);
    const double in = s->in->shape.dims[s->in->shape.rank - 1], out = (double)s->op->weights / in;
    cost_product(s, rows * (double)s->op->weights, cost);
    set_product(s, rows, out, 0, &cost->forward);
    set_product(s, rows, in, 0, &cost->backward_input);
    set_product(s, out, in, s->op->biases > 0 ? s->width * s->y : 0, &cost->backward_weight);
}

/* The products of all experts in one kernel, each row with one of the matrices. */
static void cost_grouped_linear(const subject *s, cs_op_cost *cost)
{
    cost_product(s, s->batch * rows_of(s->in) * (double)s->op->weights / s->op->experts, cost);
}

/* ---- attention ---- */

static bool has_window(const cs_attention *a, double rows)
{
    return a->window > 0 && a->window < rows;
}

/* With a window: sum over rows i of min(i, window). */
double cs_op_pairs(const cs_attention *a, double rows, double keys)
{
    if (a->kernel != CS_ATTENTION_FLASH || !a->causal)
        return rows * keys;
    const double window = has_window(a, rows) ? a->window : rows;
    return window * (window + 1) / 2 + (rows - window) * window;
}

double cs_op_sides(const cs_attention *a, double rows)
{
    return a->causal ? 1 + has_window(a, rows) : 0;
}

/* So many queries of a head meet so many keys, in kernels of which one has the diagonal in it. */
static void set_pairs(const cs_attention *a, double queries, double pairs, double sides,
                      double kernels, cs_pass_cost *pass)
{
    set_result(pass, queries * a->heads * kernels, pairs / (queries * kernels));
    pass->sides = sides / kernels;
}

/* The gradient of a head's sink is minus the sum over the rows of its share of the softmax, times
 * the row's product of result and gradient; both are there, a float32 per row and head. That of
 * the bias of positions is the sum of the gradients of the matrix before the softmax, over the
 * batch too. */
static void cost_learned(const subject *s, double rows, double weights, cs_op_cost *cost)
{
    const cs_attention *a = &s->op->attention;
    cs_pass_cost *pass = &cost->backward_weight;
    if (a->sinks)
        *pass = (cs_pass_cost){3 * rows, 2 * FLOAT * rows, 1};
    if (a->buckets > 0)
        *pass = (cs_pass_cost){pass->flop + weights, pass->bytes + s->width * weights,
                               pass->launches + 1};
}

static double or_one(uint32_t count)
{
    return count > 0 ? count : 1;
}

/* The two products of queries and keys, and of weights and values. Backward there are four: two of
 * the features of queries, two of those of values; a fused kernel computes the weights a second
 * time (Dao et al., FlashAttention, NeurIPS 2022). With several steps each is a kernel that reads
 * the queries and adds to the result. */
static void cost_attention(const subject *s, cs_op_cost *cost)
{
    const cs_attention *a = &s->op->attention;
    const cs_shape *key = &cs_net_tensor(s->net, s->op->inputs[1])->shape;
    const cs_shape *value = &cs_net_tensor(s->net, s->op->inputs[2])->shape;
    bool flash = a->kernel == CS_ATTENTION_FLASH;
    double rows = s->out->shape.dims[0], values = s->out->shape.dims[1];
    double queries = s->in->shape.dims[1];
    double shares = or_one(a->shares), steps = or_one(a->steps);
    double keys = key->dims[0] * steps;
    double pairs = s->batch * cs_op_pairs(a, rows * shares, keys) / shares;
    double weights = s->batch * a->heads * rows * keys; /* elements of the matrix */
    double tensors = s->width * s->batch * steps *
                     (rows * (queries + values) +
                      key->dims[0] * ((double)key->dims[1] + (double)value->dims[1]));
    /* bytes of an element of it: the product writes it, the softmax reads and writes, the other
     * product reads, dropout reads, writes and has a mask; backward a product reads it and two
     * its gradient, which one writes, the softmax reads both and writes, dropout as forward */
    const double dropped = a->dropout > 0 ? 2 * s->width + MASK : 0;
    const double passes = 4 * s->width + dropped, back_passes = 7 * s->width + dropped;
    cost->macs = pairs * (queries + values);
    cost->forward = (cs_pass_cost){2 * cost->macs, tensors, (uint32_t)steps};
    cost->backward_input =
        (cs_pass_cost){2 * pairs * (3 * queries + 2 * values), 2 * tensors, (uint32_t)steps};
    cost->extra_kept_bytes = (int64_t)(s->batch * a->heads * rows * FLOAT);
    cost->keeps_output = flash;
    cost->keeps_input = true;
    cost_learned(s, s->batch * a->heads * rows, weights, cost);
    if (flash) {
        const double sides = cs_op_sides(a, rows * shares);
        set_pairs(a, s->batch * rows, pairs, sides, steps, &cost->forward);
        set_pairs(a, s->batch * rows, pairs, sides, steps, &cost->backward_input);
        return;
    }
    cost->forward = (cs_pass_cost){2 * cost->macs + 5 * weights, tensors + passes * weights,
                                   3 * (uint32_t)steps};
    cost->backward_input = (cs_pass_cost){4 * cost->macs + 4 * weights,
                                          2 * tensors + back_passes * weights, 5 * (uint32_t)steps};
    const bool aligned = fmod(queries / a->heads * s->width, ALIGNED) == 0;
    cost->forward.unaligned = cost->backward_input.unaligned = !aligned;
    cost->extra_kept_bytes = (int64_t)(weights * s->width);
    cost->workspace_bytes = (int64_t)(weights * s->width);
    if (a->dropout > 0) {
        cost->kept_apart[CS_KEPT_DROPPED] = (int64_t)(weights * s->width);
        cost->kept_apart[CS_KEPT_DROPOUT] = (int64_t)(weights * MASK);
        cost->extra_kept_bytes +=
            cost->kept_apart[CS_KEPT_DROPPED] + cost->kept_apart[CS_KEPT_DROPOUT];
    }
}

/* The part that all heads share is written to each of them, and its gradient is the sum over
 * them. */
static void cost_head_concat(const subject *s, cs_op_cost *cost)
{
    const double other = s->batch * (double)cs_net_tensor(s->net, s->op->inputs[1])->elements;
    const double copies = s->y - s->x; /* of the other part */
    cost->forward = (cs_pass_cost){0, s->width * (s->x + other + s->y), 1};
    cost->backward_input = (cs_pass_cost){copies - other, cost->forward.bytes, 1};
}

/* ---- mixtures of experts ---- */

/* A softmax of the logits in float32; from what it wrote, the largest k (a comparison per logit)
 * with their numbers, and those divided by their sum. */
static void cost_top_k(const subject *s, cs_op_cost *cost)
{
    const double probabilities = FLOAT * s->x, chosen = (INDEX + s->width) * s->y;
    cost->forward =
        (cs_pass_cost){6 * s->x + 2 * s->y, s->width * s->x + 2 * probabilities + chosen, 2};
    cost->backward_input =
        (cs_pass_cost){4 * s->x + 2 * s->y, probabilities + s->width * s->x + chosen, 2};
    cost->extra_kept_bytes = (int64_t)(probabilities + INDEX * s->y);
}

/* The numbers of the routed rows are sorted by expert (read, written) and say which token a row is
 * a copy of (read); a token's gradient is the sum of its rows'. */
static void cost_dispatch(const subject *s, cs_op_cost *cost)
{
    const double numbers = INDEX * s->batch * rows_of(s->out), moved = s->width * (s->x + s->y);
    cost->forward = (cs_pass_cost){0, moved + 3 * numbers, 2};
    cost->backward_input = (cs_pass_cost){s->y, moved + numbers, 1};
    cost->extra_kept_bytes = (int64_t)numbers;
}

/* Each row is multiplied by its weight and added; backward, a row's gradient is its token's times
 * the weight, and the weight's the product of the row and that gradient. The numbers are the
 * dispatch's. */
static void cost_combine(const subject *s, cs_op_cost *cost)
{
    const double weights = s->batch * (double)cs_net_tensor(s->net, s->op->inputs[1])->elements;
    const double numbers = INDEX * s->batch * rows_of(s->in);
    cost->forward = (cs_pass_cost){2 * s->x, s->width * (s->x + s->y + weights) + numbers, 1};
    cost->backward_input =
        (cs_pass_cost){3 * s->x, s->width * (2 * s->x + s->y + 2 * weights) + numbers, 1};
    cost->keeps_input = true;
}

/* ---- state spaces ---- */

/* With a kernel of k tokens 2k flop each, and a SiLU. Backward computes the convolution again for
 * the SiLU's derivative, and turned around for the gradient. */
static void cost_causal_conv(const subject *s, cs_op_cost *cost)
{
    const double taps = 2.0 * s->op->kernel.size[0];
    const double parameters = s->width * (double)(s->op->weights + s->op->biases);
    const struct simple *silu = &simple[CS_OP_SILU];
    cost->forward = (cs_pass_cost){(taps + silu->forward_flop) * s->y,
                                   s->width * (s->x + s->y) + parameters, 1};
    if (s->needs_gradient)
        cost->backward_input = (cs_pass_cost){(2 * taps + silu->backward_flop) * s->y,
                                              s->width * (2 * s->x + s->y) + parameters, 1};
    cost->backward_weight = (cs_pass_cost){taps * s->y, s->width * (s->x + s->y) + parameters, 1};
    cost->keeps_input = true;
}

/* In chunks of Q tokens, with h heads of P features in G groups of N (Dao and Gu, section 6): C B'
 * in each chunk, Q Q N for a group; with it, what comes from within the chunk, Q Q P a head; the
 * state behind a chunk, and what comes from the state before it, Q P N a head each. The last chunk
 * has what is left of the tokens. The states and C B' are float32 in memory: states are written,
 * passed on from chunk to chunk (read, written) and read, C B' written and read; the sums of the
 * steps, one per token and head, are written, read by two kernels, and kept. Backward there are
 * two products for each, and C B' and the states again, which are not kept. The exponentials of
 * the mask are left out. */
static void cost_scan(const subject *s, cs_op_cost *cost)
{
    const cs_scan *scan = &s->op->scan;
    const double tokens = s->out->shape.dims[0], features = s->out->shape.dims[1];
    const double q = scan->chunk < tokens ? scan->chunk : tokens;
    const double whole = floor(tokens / q), rest = tokens - whole * q;
    const double pairs = s->batch * (whole * q * q + rest * rest);
    const double products = pairs * scan->state * scan->groups;
    const double states = s->y * scan->state;
    const double state = s->batch * ceil(tokens / q) * features * scan->state;
    const double steps = s->batch * tokens * scan->heads;
    double inputs = 0;
    for (uint32_t i = 0; i < s->op->n_inputs; i++)
        inputs += s->batch * (double)cs_net_tensor(s->net, s->op->inputs[i])->elements;
    const double floats = 4 * state + 2 * pairs * scan->groups + 3 * steps;
    cost->macs = products + pairs * features + 2 * states;
    cost->forward =
        (cs_pass_cost){2 * cost->macs + 2 * state, s->width * (inputs + s->y) + FLOAT * floats, 5};
    cost->backward_input = (cs_pass_cost){4 * cost->macs + 2 * (products + states) + 4 * state,
                                          2 * cost->forward.bytes + s->width * s->y, 10};
    cost->backward_weight =
        (cs_pass_cost){2 * s->y + 3 * steps, 2 * s->width * s->y + 2 * FLOAT * steps, 2};
    cost->extra_kept_bytes = (int64_t)(FLOAT * steps);
    cost->keeps_input = true;
    cost->keeps_output = true;
}

/* ---- elementwise and the rest ---- */

static double statistics(const subject *s)
{
    switch (s->op->kind) {
    case CS_OP_BATCH_NORM:
        return 2.0 * s->in->shape.dims[0];
    case CS_OP_LAYER_NORM:
        return 2.0 * s->batch * rows_of(s->in);
    case CS_OP_RMS_NORM:
        return s->batch * rows_of(s->in) * s->op->groups;
    default:
        return 0;
    }
}

/* Losses compute in float32 on what the operator before them wrote. */
static void cost_loss(const subject *s, cs_op_cost *cost)
{
    bool entropy = s->op->kind == CS_OP_CROSS_ENTROPY;
    double targets = entropy ? INDEX * s->batch * rows_of(s->in) : s->width * s->x;
    double logarithms = entropy ? FLOAT * s->x : 0;
    cost->forward.bytes = s->width * s->x + logarithms + targets;
    cost->backward_input.bytes = cost->forward.bytes + s->width * s->x;
    cost->forward.flop = simple[s->op->kind].forward_flop * s->x;
    cost->backward_input.flop = simple[s->op->kind].backward_flop * s->x;
    cost->extra_kept_bytes = (int64_t)(logarithms + targets);
    cost->keeps_input = simple[s->op->kind].keeps_input;
}

static void cost_simple(const subject *s, cs_op_cost *cost)
{
    const struct simple *rule = &simple[s->op->kind];
    double parameters = (double)(s->op->weights + s->op->biases);
    cost->forward.flop = rule->forward_flop * s->y;
    cost->forward.bytes = (rule->forward_moves * s->width + rule->bytes) * s->y;
    if (s->needs_gradient) {
        cost->backward_input.flop = rule->backward_flop * s->y;
        cost->backward_input.bytes = (rule->backward_moves * s->width + rule->bytes) * s->y;
    }
    if (parameters > 0 && rule->weight_moves > 0)
        cost->backward_weight =
            (cs_pass_cost){s->y, rule->weight_moves * s->width * s->y + s->width * parameters, 1};
    cost->keeps_input = rule->keeps_input;
    cost->keeps_output = rule->keeps_output;
    cost->extra_kept_bytes = (int64_t)(FLOAT * statistics(s));
    if (s->op->kind == CS_OP_DROPOUT)
        cost->extra_kept_bytes = (int64_t)(MASK * s->y);
    if (s->op->kind == CS_OP_RMS_NORM)
        cost->extra_kept_bytes += (int64_t)(s->width * s->x);
}

static void cost_pool(const subject *s, cs_op_cost *cost)
{
    double window = 1;
    cost_simple(s, cost);
    for (uint32_t i = 0; i < s->op->kernel.rank; i++)
        window *= s->op->kernel.size[i];
    cost->forward.bytes += s->width * s->x;
    cost->backward_input.bytes += s->width * s->x;
    cost->forward.flop += window * s->y;
    if (s->op->kind == CS_OP_MAX_POOL)
        cost->extra_kept_bytes = (int64_t)(INDEX * s->y);
    if (s->op->kind == CS_OP_ADAPTIVE_POOL && s->out->elements == s->out->shape.dims[0])
        cost->keeps_input = false;
}

/* Kinds with a rule of their own; the others have a row in `simple`. */
static void (*const rules[CS_N_OP_KINDS])(const subject *s, cs_op_cost *cost) = {
    [CS_OP_CONV] = cost_conv,
    [CS_OP_LINEAR] = cost_linear,
    [CS_OP_GROUPED_LINEAR] = cost_grouped_linear,
    [CS_OP_ATTENTION] = cost_attention,
    [CS_OP_HEAD_CONCAT] = cost_head_concat,
    [CS_OP_TOP_K] = cost_top_k,
    [CS_OP_DISPATCH] = cost_dispatch,
    [CS_OP_COMBINE] = cost_combine,
    [CS_OP_CAUSAL_CONV] = cost_causal_conv,
    [CS_OP_SCAN] = cost_scan,
    [CS_OP_CROSS_ENTROPY] = cost_loss,
    [CS_OP_SQUARED_ERROR] = cost_loss,
    [CS_OP_MAX_POOL] = cost_pool,
    [CS_OP_AVG_POOL] = cost_pool,
    [CS_OP_ADAPTIVE_POOL] = cost_pool,
};

static void cost_by_kind(const subject *s, cs_op_cost *cost)
{
    if (s->op->kind == CS_OP_VIEW)
        return;
    if (rules[s->op->kind])
        rules[s->op->kind](s, cost);
    else
        cost_simple(s, cost);
}

/* ---- what all have ---- */

bool cs_op_accumulates(const cs_net *net, const cs_op *op, uint32_t i)
{
    const cs_tensor_info *read = cs_net_tensor(net, op->inputs[i]);
    return cs_op_makes_gradient(net, op, i) && read->last_reader != (uint32_t)(op - net->ops) &&
           op->kind != CS_OP_VIEW;
}

/* Where several operators read a tensor, their gradients are added: all but the first one that
 * arrives, that of the last reader, read two and write one. */
static void add_accumulations(const subject *s, cs_op_cost *cost)
{
    cs_pass_cost *sum = &cost->accumulate;
    for (uint32_t i = 0; i < s->op->n_inputs; i++) {
        if (!cs_op_accumulates(s->net, s->op, i))
            continue;
        double elements = s->batch * (double)cs_net_tensor(s->net, s->op->inputs[i])->elements;
        sum->flop += elements;
        sum->bytes += 3 * s->width * elements;
        sum->launches++;
    }
    cost->backward_input.flop += sum->flop;
    cost->backward_input.bytes += sum->bytes;
    cost->backward_input.launches += sum->launches;
}

/* Weights that are stored in fewer bytes: a pass reads them, and writes them in the network's
 * precision for the product, which frees them. */
static void make_weights(const subject *s, cs_op_cost *cost)
{
    const double weights = (double)s->op->weights;
    cs_pass_cost *const passes[] = {&cost->forward, &cost->backward_input};
    for (size_t i = 0; i < 2; i++) {
        if (passes[i]->launches == 0)
            continue;
        passes[i]->cast_bytes += weights * (s->op->stored + s->width);
        passes[i]->launches++;
    }
    cost->workspace_bytes += (int64_t)ceil(weights * s->width);
    cost->narrowed_bytes = (int64_t)floor(weights * (s->width - s->op->stored));
}

/* What nobody computes a gradient of is not kept, nor is the input of a product whose weights are
 * frozen. */
static void drop_unneeded(const subject *s, cs_op_cost *cost)
{
    const cs_op_kind kind = s->op->kind;
    if (s->op->frozen) {
        cost->frozen = cost->weights + cost->biases;
        cost->backward_weight = (cs_pass_cost){0};
        cost->keeps_input &= kind != CS_OP_LINEAR && kind != CS_OP_GROUPED_LINEAR &&
                             kind != CS_OP_CONV && kind != CS_OP_EMBEDDING;
    }
    if (s->out->differentiable)
        return;
    cost->keeps_input = cost->keeps_output = false;
    cost->extra_kept_bytes = cost->kept_cast = 0;
}

static void count_launches(cs_pass_cost *pass)
{
    if (pass->launches == 0 && (pass->bytes > 0 || pass->flop > 0))
        pass->launches = 1;
}

void cs_op_cost_of(const cs_net *net, const cs_op *op, uint32_t batch, cs_precision precision,
                   cs_op_cost *cost)
{
    subject s = {.net = net,
                 .op = op,
                 .in = cs_net_tensor(net, op->inputs[0]),
                 .out = cs_net_tensor(net, op->output),
                 .batch = batch,
                 .width = cs_precision_bytes(precision),
                 .precision = precision};
    if (cs_precision_is_narrow(cs_op_precision(op, precision)))
        s.operand = cs_precision_operand_bytes(precision);
    *cost = (cs_op_cost){.weights = op->tied ? 0 : op->weights, .biases = op->biases};
    s.x = s.batch * (double)s.in->elements;
    s.y = s.batch * (double)s.out->elements;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        s.needs_gradient |= cs_op_makes_gradient(net, op, i);
        cost->input_bytes += cs_tensor_bytes(net, op->inputs[i], batch, precision);
    }
    cost->output_bytes = cs_tensor_bytes(net, op->output, batch, precision);
    cost_by_kind(&s, cost);
    drop_unneeded(&s, cost);
    if (!s.needs_gradient)
        cost->backward_input = (cs_pass_cost){0};
    count_launches(&cost->forward);
    count_launches(&cost->backward_input);
    if (op->stored > 0)
        make_weights(&s, cost);
    add_accumulations(&s, cost);
}
