/* Attention, and the concatenation of two parts of each head.
 *
 * With context parallelism the tokens of a sequence are split. All operators work on the device's
 * own tokens, except attention, where tokens of all devices meet. The split's context_method says
 * how:
 *
 *   ring        Keys and values travel around a ring: in each of C steps a device computes with the
 *               keys of another device, while the next keys arrive (Liu et al., Ring attention,
 *               2023, arXiv 2310.01889). In backward they travel again, in the reverse order,
 *               together with their gradients.
 *   all-gather  Keys and values are gathered before the attention, but only the device's own are
 *               saved (Llama team, The Llama 3 herd of models, 2024, section 3.3.2).
 *   all-to-all  Queries, keys and values are exchanged, so that a device has all tokens of some
 *               heads, and the results are exchanged back (Jacobs et al., DeepSpeed Ulysses, 2023,
 *               arXiv 2309.14509).
 *
 * Causal attention pairs a token with the tokens before it. With ring and all-gather, T tokens are
 * cut into 2 C chunks of m = T / (2 C) tokens, and a device takes the chunks c and 2 C - 1 - c.
 * Chunk j has j m^2 + m (m + 1) / 2 pairs. The two chunks together have
 * (2 C - 1) m^2 + m (m + 1) pairs, whichever c is. */
#include "sim/model/ops/operator.h"

#include <math.h>
#include <stdio.h>

enum { ALIGNED = 16 };

/* ---- builders ---- */

cs_tensor cs_net_attention(cs_net *net, const char *name, const cs_tensor qkv[3],
                           const cs_attention *attention)
{
    if (!cs_net_usable(net, qkv, 3))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ATTENTION, qkv, 3);
    op.attention = *attention;
    cs_shape shape = cs_net_tensor(net, qkv[0])->shape;
    const uint32_t values = cs_net_tensor(net, qkv[2])->shape.dims[1];
    const uint32_t keys = cs_net_tensor(net, qkv[1])->shape.dims[0];
    char text[128];
    if (!cs_net_heads_divide(net, name, attention->heads, shape.dims[1]) ||
        !cs_net_heads_divide(net, name, attention->kv_heads, values))
        return CS_NO_TENSOR;
    if (attention->kernel != CS_ATTENTION_FLASH && /* a fused kernel never has the whole matrix */
        (double)shape.dims[0] * keys * attention->heads > CS_MOST_ELEMENTS) {
        snprintf(text, sizeof(text), "has too many weights: %u tokens, squared, of %u heads",
                 shape.dims[0] > keys ? shape.dims[0] : keys, attention->heads);
        cs_net_fail_at(net, name, text);
        return CS_NO_TENSOR;
    }
    op.weights = (int64_t)attention->heads * (attention->buckets + attention->sinks);
    shape.dims[1] = values / attention->kv_heads * attention->heads;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_head_concat(cs_net *net, const char *name, const cs_tensor parts[2],
                             uint32_t heads, bool shared)
{
    if (!cs_net_usable(net, parts, 2))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_HEAD_CONCAT, parts, 2);
    cs_shape shape = cs_net_tensor(net, parts[0])->shape;
    const cs_shape *other = &cs_net_tensor(net, parts[1])->shape;
    if (shape.rank != 2 || other->rank != 2 || shape.dims[0] != other->dims[0]) {
        cs_net_fail_at(net, name, "joins tensors of different sizes");
        return CS_NO_TENSOR;
    }
    if (!cs_net_heads_divide(net, name, heads, shape.dims[1]) ||
        (!shared && !cs_net_heads_divide(net, name, heads, other->dims[1])))
        return CS_NO_TENSOR;
    op.heads = heads;
    shape.dims[1] += shared ? heads * other->dims[1] : other->dims[1];
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_attention(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_attention attention = {.heads = e->heads,
                                    .kv_heads = e->kv_heads > 0 ? e->kv_heads : e->heads,
                                    .kernel = e->math ? CS_ATTENTION_MATH : CS_ATTENTION_FLASH,
                                    .causal = e->causal,
                                    .dropout = e->dropout,
                                    .window = e->window,
                                    .buckets = e->buckets,
                                    .sinks = e->sinks,
                                    .padded = e->padded};
    return cs_net_attention(m->net, m->name, m->in, &attention);
}

static cs_status check_attention(const cs_op_making *m)
{
    return cs_input_shape(m, 1)->dims[0] == cs_input_shape(m, 2)->dims[0]
               ? CS_OK
               : cs_op_making_wrong(m, "inputs", "must have as many tokens of keys as of values");
}

/* Makes a head_concat. If the stated features are more than the inputs have together, all heads
 * share the second input: each head gets a copy of it. */
static cs_tensor make_head_concat(cs_op_making *m)
{
    const uint32_t separate = cs_input_shape(m, 0)->dims[1] + cs_input_shape(m, 1)->dims[1];
    return cs_net_head_concat(m->net, m->name, m->in, m->entry->heads,
                              cs_made_features(m) != separate);
}

/* ---- cost ---- */

static bool has_window(const cs_attention *a, double rows)
{
    return a->window > 0 && a->window < rows;
}

/* Returns the number of (query, key) pairs that the kernel computes; with a window, the sum over
 * rows i of min(i, window). */
double cs_op_pairs(const cs_attention *a, double rows, double keys)
{
    if (a->kernel != CS_ATTENTION_FLASH || !a->causal)
        return rows * keys;
    const double window = has_window(a, rows) ? a->window : rows;
    return window * (window + 1) / 2 + (rows - window) * window;
}

/* Returns how many ends of a row's range of keys differ from row to row: 1 (at the diagonal), 2
 * with a window smaller than the rows, 0 if attention is not causal. */
static double sides_of(const cs_attention *a, double rows)
{
    return a->causal ? 1 + has_window(a, rows) : 0;
}

/* Computes the cost of the gradients of learned parameters. The gradient of a head's sink is minus
 * a sum over the rows: the sink's share of the softmax, times the row's product of result and
 * gradient. Both exist already, as a float32 per row and head. The gradient of the position bias
 * sums the gradients of the matrix before the softmax, over the batch too. */
static void cost_learned(const cs_cost_query *s, double rows, double weights, cs_op_cost *cost)
{
    const cs_attention *a = &s->op->attention;
    cs_pass_cost *pass = &cost->backward_weight;
    if (a->sinks)
        *pass = (cs_pass_cost){3 * rows, 2 * CS_FLOAT_BYTES * rows, 1};
    if (a->buckets > 0)
        *pass = (cs_pass_cost){pass->flop + weights, pass->bytes + s->width * weights,
                               pass->launches + 1};
}

/* Computes the cost of the products. Forward has two: queries with keys, and weights with values.
 * Backward has four: two with the features of queries, two with the features of values; a fused
 * kernel also computes the weights a second time (Dao et al., FlashAttention, NeurIPS 2022). With
 * several steps, each step is a kernel that reads the queries and adds to the result. */
static void cost_attention(const cs_cost_query *s, cs_op_cost *cost)
{
    const cs_attention *a = &s->op->attention;
    const cs_shape *key = &cs_net_tensor(s->net, s->op->inputs[1])->shape;
    const cs_shape *value = &cs_net_tensor(s->net, s->op->inputs[2])->shape;
    double rows = s->out->shape.dims[0], values = s->out->shape.dims[1];
    double queries = s->in->shape.dims[1];
    double shares = a->shares > 0 ? a->shares : 1, steps = a->steps > 0 ? a->steps : 1;
    double keys = key->dims[0] * steps;
    double pairs = s->batch * cs_op_pairs(a, rows * shares, keys) / shares;
    double weights = s->batch * a->heads * rows * keys; /* elements of the matrix */
    double tensors = s->width * s->batch * steps *
                     (rows * (queries + values) +
                      key->dims[0] * ((double)key->dims[1] + (double)value->dims[1]));
    cost->macs = pairs * (queries + values);
    cost->forward = (cs_pass_cost){2 * cost->macs, tensors, (uint32_t)steps};
    cost->backward_input =
        (cs_pass_cost){2 * pairs * (3 * queries + 2 * values), 2 * tensors, (uint32_t)steps};
    cost->extra_kept_bytes = (int64_t)(s->batch * a->heads * rows * CS_FLOAT_BYTES);
    cost->keeps_input = true;
    cost_learned(s, s->batch * a->heads * rows, weights, cost);
    if (a->kernel == CS_ATTENTION_FLASH) {
        /* with several steps, `rows` counts the results of all kernels, and only one kernel has the
         * diagonal */
        cs_pass_cost *const passes[] = {&cost->forward, &cost->backward_input};
        for (int i = 0; i < 2; i++) {
            passes[i]->rows = s->batch * rows * a->heads * steps;
            passes[i]->columns = pairs / (s->batch * rows * steps);
            passes[i]->sides = sides_of(a, rows * shares) / steps;
        }
        cost->keeps_output = true;
        return;
    }
    /* Bytes per element of the matrix. Forward: one product writes it, the softmax reads and writes
     * it, the other product reads it; dropout reads it, writes it and has a mask. Backward: one
     * product reads it, two products read its gradient, and one writes the gradient; the softmax
     * reads both and writes one; dropout moves the same bytes as forward. */
    const double dropped = a->dropout > 0 ? 2 * s->width + CS_MASK_BYTES : 0;
    const double passes = 4 * s->width + dropped, back_passes = 7 * s->width + dropped;
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
        cost->kept_apart[CS_KEPT_DROPOUT] = (int64_t)(weights * CS_MASK_BYTES);
        cost->extra_kept_bytes +=
            cost->kept_apart[CS_KEPT_DROPPED] + cost->kept_apart[CS_KEPT_DROPOUT];
    }
}

/* Computes the cost of the concatenation. A part that all heads share is copied to each head, and
 * its gradient is the sum over the heads. */
static void cost_head_concat(const cs_cost_query *s, cs_op_cost *cost)
{
    const double other = s->batch * (double)cs_net_tensor(s->net, s->op->inputs[1])->elements;
    const double copies = s->y - s->x; /* elements of the result that come from the second part */
    cost->forward = (cs_pass_cost){0, s->width * (s->x + other + s->y), 1};
    cost->backward_input = (cs_pass_cost){copies - other, cost->forward.bytes, 1};
}

/* ---- split by heads ---- */

static void split_heads(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t kv_heads = q->op->attention.kv_heads;
    if (!cs_has_features(q, 0))
        return;
    cs_answer_alike(q, cs_divided(1), answer);
    cs_rule_check_heads(q, q->op);
    if (q->size <= kv_heads)
        return;
    if (q->size / kv_heads != cs_split_copies(q->net, q->size))
        cs_rule_refuse(q, (cs_nearest){kv_heads, 0, true},
                       "must be at most the %u heads of keys and values of %s, of which other "
                       "layers have another number (got %u)",
                       kv_heads, q->op->name, q->size);
    for (int i = 1; i <= 2; i++)
        answer->inputs[i].copies = (uint16_t)(q->size / kv_heads);
    for (int i = 1; i <= 2; i++)
        if (q->given[i].part == CS_DIVIDED && !cs_division_equal(q->given[i], answer->inputs[i]))
            cs_rule_refuse(q, (cs_nearest){kv_heads, 0, true},
                           "must be at most the %u heads of keys and values of %s, which come from "
                           "one matrix with the queries (got %u)",
                           kv_heads, q->op->name, q->size);
}

/* Splits the heads. If all heads share the second part, it stays whole, and each device makes only
 * its own heads' summand of the gradient. */
static void split_head_concat(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_net *net = q->net;
    const uint32_t own = cs_net_tensor(net, q->op->inputs[0])->shape.dims[1];
    const uint32_t other = cs_net_tensor(net, q->op->inputs[1])->shape.dims[1];
    const bool is_shared = cs_net_tensor(net, q->op->output)->shape.dims[1] != own + other;
    const bool features = cs_has_features(q, 0) || cs_has_features(q, 1);
    if (features && q->op->heads == 1) {
        cs_answer_alike(q, cs_outside_pairs(q, q->op->inputs[0]), answer);
        return;
    }
    cs_rule_follow(q, answer);
    if (features && is_shared) {
        answer->inputs[1] = (cs_division){0};
        answer->partial[1] = true;
    }
}

static bool passes_heads(const cs_rule_query *q, const cs_op *op)
{
    (void)q;
    return op->heads > 1;
}

/* ---- split by tokens ---- */

static void split_tokens(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_context_method method = q->split->context_method;
    const uint32_t tokens = cs_net_tensor(q->net, q->op->inputs[0])->shape.dims[0];
    if (!cs_is_divided_at(q->given[0], 0))
        return;
    if (method == CS_CONTEXT_ALL_TO_ALL) {
        const uint32_t tensor = q->split->grid.tensor;
        const uint32_t heads = q->op->attention.heads, keys = q->op->attention.kv_heads;
        cs_rule_divides(q, heads > tensor ? heads / tensor : 1, "heads that a device has");
        cs_rule_divides(q, keys > tensor ? keys / tensor : 1,
                        "heads of keys and values that a device has");
        cs_answer_alike(q, cs_divided(1), answer);
        answer->output = cs_divided(0);
        return;
    }
    if (q->op->attention.causal && tokens / q->size % 2 != 0)
        cs_rule_refuse(q, cs_divisors_next_to(tokens / 2, q->size),
                       "must divide the %u tokens of %s into two equal chunks per device (got %u)",
                       tokens, q->op->name, q->size);
    cs_answer_alike(q, cs_divided(0), answer);
    answer->shares = q->size;
    answer->ring = method == CS_CONTEXT_RING;
    for (int i = 1; i <= 2 && !answer->ring; i++) {
        answer->inputs[i] = (cs_division){0};
        answer->partial[i] = true;
    }
}

/* Gives a device its heads, and as many heads of keys and values as its keys contain. With
 * all-to-all a device holds the learned parameters of all heads that the devices of the context
 * axis split among themselves. */
static void cut_attention(const cs_cut *cut, cs_op *op)
{
    const cs_attention *of = &cut->of->attention;
    const cs_split *split = cut->split;
    const uint32_t keys = cs_net_tensor(cut->local, op->inputs[1])->shape.dims[1];
    const uint32_t whole_keys = cs_net_tensor(cut->net, cut->of->inputs[1])->shape.dims[1];
    const uint32_t contexts =
        split->context_method == CS_CONTEXT_ALL_TO_ALL ? split->grid.context : 1;
    op->attention.heads = cs_cut_heads(cut, of->heads);
    op->attention.kv_heads = (uint32_t)((uint64_t)of->kv_heads * keys / whole_keys);
    op->weights = (int64_t)op->attention.heads * contexts * (of->buckets + of->sinks);
    if (cut->shares == 0)
        return;
    op->attention.shares = cut->shares;
    op->attention.steps = cut->ring ? cut->shares : 1;
}

static void cut_head_concat(const cs_cut *cut, cs_op *op)
{
    op->heads = cs_cut_heads(cut, cut->of->heads);
}

static bool is_runnable(const cs_net *net, const cs_op *op)
{
    const cs_attention *a = &op->attention;
    const cs_shape *out = &cs_net_tensor(net, op->output)->shape;
    return a->window == 0 && !a->sinks && a->buckets == 0 &&
           cs_shape_same(&cs_net_tensor(net, op->inputs[0])->shape, out, 0) &&
           cs_net_tensor(net, op->inputs[1])->shape.dims[0] == out->dims[0];
}

const cs_operator cs_operator_attention = {
    .name = "attention",
    .group = "attention",
    .cost = cost_attention,
    .split = {[CS_SPLIT_PAIRS] = split_heads, [CS_SPLIT_CONTEXT] = split_tokens},
    .passes_features = cs_op_by_feature,
    .cut = cut_attention,
    .needs = {3, 3, 2, .heads = true},
    .check = check_attention,
    .make = make_attention,
    .is_runnable = is_runnable,
};

const cs_operator cs_operator_head_concat = {
    .name = "head_concat",
    .group = "elementwise",
    .cost = cost_head_concat,
    .split = {[CS_SPLIT_PAIRS] = split_head_concat, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .passes_features = passes_heads,
    .cut = cut_head_concat,
    .needs = {2, 2, 2, .output = true, .heads = true},
    .make = make_head_concat,
    .is_runnable = cs_op_never_runs,
};
