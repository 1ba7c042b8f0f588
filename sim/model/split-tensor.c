/* Tensor parallelism as Megatron-LM has it: Shoeybi et al., Megatron-LM, 2019 (arXiv 1909.08053),
 * section 3; Narayanan et al., SC 2021, section 2.3; with sequence_parallel Korthikanti et al.,
 * 2022 (arXiv 2205.05198), section 4.2.2.
 *
 * Of two linear layers between which all operators work head by head or element by element, the
 * first makes a part of the features and the second reads it: a pair. The first reads all of the
 * features, and the gradient that it leaves of them is partial; what the second makes is partial.
 * Which linear is which is not said anywhere: one that finds its input divided is a second one,
 * and one from whose result every way leads to a second one, or to the loss, is a first one. What
 * is in no pair is computed by all places alike, or, with sequence_parallel, by each of them for
 * its part of the tokens.
 *
 * An embedding has the rows of a part of the vocabulary, and makes partial results: zeros for all
 * other tokens. The loss of logits that are divided takes the largest logit, the sum of
 * exponentials and the logit of the target over all places, a float32 per row each. */
#include "sim/model/split-rules.h"

/* Outside of pairs: tokens are divided with sequence_parallel, or nothing is. */
static cs_division outside(const cs_rule_query *q, cs_tensor tensor)
{
    const cs_division whole = {0};
    const cs_shape *shape = &cs_net_tensor(q->net, tensor)->shape;
    if (!q->split->sequence_parallel || shape->rank != 2)
        return whole;
    const uint32_t context = q->split->grid.context, tokens = shape->dims[0] / context;
    if (tokens % q->size != 0)
        cs_rule_refuse(q, cs_divisors_next_to(tokens, q->size),
                       "must divide the %u tokens of %s with sequence_parallel (got %u)", tokens,
                       q->op->name, q->size);
    return cs_divided(0);
}

static bool is_features(const cs_rule_query *q, uint32_t input)
{
    return cs_is_divided_at(q->given[input], cs_features_dim(q->net, q->op->inputs[input]));
}

static bool is_tokens(const cs_rule_query *q, uint32_t input)
{
    return cs_features_dim(q->net, q->op->inputs[input]) > 0 &&
           cs_is_divided_at(q->given[input], 0);
}

/* ---- which linear layers are the first of a pair ---- */

static const cs_op *attention_of(const cs_rule_query *q, cs_tensor tensor, bool *keys);

/* A norm of keys with one head, which each place has a copy of: over all features is head by head
 * there. */
static bool is_of_one_head(const cs_rule_query *q, const cs_op *op)
{
    bool keys = false;
    const cs_op *attention = attention_of(q, op->output, &keys);
    return attention && keys && attention->attention.kv_heads == 1;
}

/* What each place can do with its part of the features. */
static bool passes_features(const cs_rule_query *q, const cs_op *op)
{
    switch (op->kind) {
    case CS_OP_RELU:
    case CS_OP_GELU:
    case CS_OP_SILU:
    case CS_OP_TANH:
    case CS_OP_ROTARY:
    case CS_OP_MUL:
    case CS_OP_DROPOUT:
    case CS_OP_COPY:
    case CS_OP_VIEW:
    case CS_OP_ATTENTION:
    case CS_OP_CAUSAL_CONV:
    case CS_OP_SCAN:
        return true;
    case CS_OP_RMS_NORM: /* head by head */
        return op->groups > 1 || is_of_one_head(q, op);
    case CS_OP_HEAD_CONCAT:
        return op->heads > 1;
    default:
        return false;
    }
}

/* Adding a part to a whole (a residual connection) would cut the whole; parts of other linear
 * layers, as adapters have them, are parts alike. */
static bool adds_parts(const cs_rule_query *q, const cs_op *op)
{
    bool parts = op->kind == CS_OP_ADD && op->n_inputs > 1;
    for (uint32_t i = 0; parts && i < op->n_inputs; i++) {
        const uint32_t writer = q->links->writer[op->inputs[i]];
        parts = writer != CS_NO_TENSOR && q->net->ops[writer].kind == CS_OP_LINEAR;
    }
    return parts;
}

/* A norm over all features of a product with a gate, as mixers of state spaces have it, sums the
 * squares of all places; other norms stand in front of a pair, or between two. */
static bool is_gated_norm(const cs_rule_query *q, const cs_op *op)
{
    const uint32_t writer = q->links->writer[op->inputs[0]];
    return op->kind == CS_OP_RMS_NORM && writer != CS_NO_TENSOR &&
           q->net->ops[writer].kind == CS_OP_MUL;
}

bool cs_feeds_pairs(const cs_rule_query *q, cs_tensor tensor)
{
    const uint32_t *at = &q->links->first_reader[tensor];
    bool feeds = at[0] < at[1];
    for (uint32_t r = at[0]; feeds && r < at[1]; r++) {
        const cs_op *reader = &q->net->ops[q->links->readers[r]];
        if (reader->kind == CS_OP_LINEAR || reader->kind == CS_OP_GROUPED_LINEAR ||
            reader->kind == CS_OP_CROSS_ENTROPY)
            continue;
        feeds = (passes_features(q, reader) || adds_parts(q, reader) || is_gated_norm(q, reader)) &&
                cs_feeds_pairs(q, reader->output);
    }
    return feeds;
}

/* The attention to which a tensor leads, through what passes features on; NULL: none. `keys` are
 * its keys or values. */
static const cs_op *attention_of(const cs_rule_query *q, cs_tensor tensor, bool *keys)
{
    const uint32_t *at = &q->links->first_reader[tensor];
    const cs_op *found = NULL;
    for (uint32_t r = at[0]; !found && r < at[1]; r++) {
        const cs_op *reader = &q->net->ops[q->links->readers[r]];
        *keys = reader->inputs[0] != tensor;
        if (reader->kind == CS_OP_ATTENTION)
            return reader;
        if (reader->n_inputs == 1 && reader->kind != CS_OP_LINEAR && passes_features(q, reader))
            found = attention_of(q, reader->output, keys);
    }
    return found;
}

/* Places that need the same keys and values, where there are more places than heads of these. */
static uint32_t copies_of(const cs_rule_query *q, cs_tensor tensor)
{
    bool keys = false;
    const cs_op *attention = attention_of(q, tensor, &keys);
    return attention && keys && q->size > attention->attention.kv_heads
               ? q->size / attention->attention.kv_heads
               : 1;
}

uint32_t cs_split_copies(const cs_net *net, uint32_t tensor)
{
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const uint32_t heads = net->ops[p].attention.kv_heads;
        if (net->ops[p].kind == CS_OP_ATTENTION && tensor > heads)
            return tensor / heads;
    }
    return 1;
}

static bool feeds_loss(const cs_rule_query *q, cs_tensor tensor)
{
    const uint32_t *at = &q->links->first_reader[tensor];
    bool only_loss = at[0] < at[1];
    for (uint32_t r = at[0]; only_loss && r < at[1]; r++)
        only_loss = q->net->ops[q->links->readers[r]].kind == CS_OP_CROSS_ENTROPY;
    return only_loss;
}

/* ---- heads ---- */

/* Each place has as many heads of queries as the others, and whole heads of keys and values, or one
 * that some neighbours have as well. */
static bool divides_heads(const cs_attention *a, uint32_t places)
{
    return a->heads % places == 0 && (a->kv_heads % places == 0 || places % a->kv_heads == 0);
}

static void check_heads(const cs_rule_query *q, const cs_op *attention)
{
    const cs_attention *a = &attention->attention;
    uint32_t below = q->size < a->heads ? q->size : a->heads, above = q->size;
    if (divides_heads(a, q->size))
        return;
    while (!divides_heads(a, below))
        below--;
    while (above < a->heads && !divides_heads(a, above))
        above++;
    const cs_nearest nearest = {.below = below,
                                .above = above <= a->heads && above != below ? above : 0};
    if (a->heads == a->kv_heads || q->size <= a->kv_heads)
        cs_rule_refuse(q, nearest, "must divide the %u heads%s of %s (got %u)", a->kv_heads,
                       a->heads == a->kv_heads ? "" : " of keys and values", attention->name,
                       q->size);
    else
        cs_rule_refuse(q, nearest,
                       "must divide the %u heads of %s, and its %u heads of keys and values or be "
                       "a multiple of these (got %u)",
                       a->heads, attention->name, a->kv_heads, q->size);
}

/* ---- linear layers ---- */

/* A vocabulary need not be divided evenly: Megatron fills it up, here the first places have one
 * more. */
static void first_of_pair(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_tensor out = q->op->output;
    const uint32_t dim = cs_features_dim(q->net, out);
    const uint32_t features = cs_net_tensor(q->net, out)->shape.dims[dim];
    const uint32_t copies = copies_of(q, out);
    bool keys = false;
    const cs_op *attention = attention_of(q, out, &keys);
    if (attention)
        check_heads(q, attention);
    if (!feeds_loss(q, out) && copies == 1)
        cs_rule_divides(q, features, "features");
    else if ((uint64_t)features * copies < q->size)
        cs_rule_refuse(q, (cs_nearest){features, 0, true},
                       "must be at most the %u features of %s (got %u)", features, q->op->name,
                       q->size);
    answer->partial[0] = true;
    answer->made = cs_divided(dim);
    answer->made.copies = (uint16_t)copies;
    answer->output = answer->made;
    answer->copied = copies > 1;
}

static void second_of_pair(const cs_rule_query *q, cs_rule_answer *answer)
{
    answer->inputs[0] = q->given[0];
    answer->made.part = CS_PARTIAL;
    answer->output = outside(q, q->op->output);
}

static void rule_linear(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (is_features(q, 0))
        second_of_pair(q, answer);
    else if (cs_feeds_pairs(q, q->op->output))
        first_of_pair(q, answer);
    else
        cs_rule_follow(q, answer);
}

/* ---- attention ---- */

static void rule_attention(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_attention *attention = &q->op->attention;
    if (!is_features(q, 0))
        return;
    cs_answer_alike(q, cs_divided(1), answer);
    check_heads(q, q->op);
    if (q->size <= attention->kv_heads)
        return;
    if (q->size / attention->kv_heads != cs_split_copies(q->net, q->size))
        cs_rule_refuse(q, (cs_nearest){attention->kv_heads, 0, true},
                       "must be at most the %u heads of keys and values of %s, of which other "
                       "layers have another number (got %u)",
                       attention->kv_heads, q->op->name, q->size);
    for (int i = 1; i <= 2; i++)
        answer->inputs[i].copies = (uint16_t)(q->size / attention->kv_heads);
    for (int i = 1; i <= 2; i++)
        if (q->given[i].part == CS_DIVIDED && !cs_division_equal(q->given[i], answer->inputs[i]))
            cs_rule_refuse(q, (cs_nearest){attention->kv_heads, 0, true},
                           "must be at most the %u heads of keys and values of %s, which come from "
                           "one matrix with the queries (got %u)",
                           attention->kv_heads, q->op->name, q->size);
}

/* ---- normalisation ---- */

static int64_t rows_of(const cs_net *local, const cs_op *op)
{
    const cs_tensor_info *read = cs_net_tensor(local, op->inputs[0]);
    return read->elements / read->shape.dims[read->shape.rank - 1];
}

/* The sum of a float32 per row over all places. */
static void add_row_sum(cs_rule_answer *answer, bool backward)
{
    answer->inner[answer->n_inner++] =
        (cs_inner_exchange){CS_EXCHANGE_ALL_REDUCE, backward, CS_ELEMENT_FLOAT32, rows_of};
}

/* Over all features of a token, or head by head: then a place has some heads, and the same
 * weights. */
static void rule_norm(const cs_rule_query *q, cs_rule_answer *answer)
{
    const bool features = is_features(q, 0), gated = features && is_gated_norm(q, q->op);
    const bool gathers = features && !gated && !passes_features(q, q->op);
    cs_answer_alike(q, gathers ? outside(q, q->op->inputs[0]) : q->given[0], answer);
    answer->shared = !gated && answer->made.part == CS_DIVIDED;
    if (gated && q->op->groups == 1) {
        add_row_sum(answer, false);
        add_row_sum(answer, true);
    }
}

/* ---- state spaces ---- */

/* Along the tokens, feature by feature. */
static void rule_causal_conv(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (is_features(q, 0))
        cs_answer_alike(q, q->given[0], answer);
}

static void rule_scan(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (!is_features(q, 0))
        return;
    cs_rule_divides(q, q->op->scan.heads, "heads");
    cs_rule_divides(q, q->op->scan.groups, "groups");
    cs_answer_alike(q, cs_divided(1), answer);
}

/* ---- heads side by side ---- */

/* A part that all heads share is whole where the heads are divided, and each place has the
 * gradient of its heads. */
static void rule_head_concat(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_net *net = q->net;
    const uint32_t own = cs_net_tensor(net, q->op->inputs[0])->shape.dims[1];
    const uint32_t other = cs_net_tensor(net, q->op->inputs[1])->shape.dims[1];
    const bool is_shared = cs_net_tensor(net, q->op->output)->shape.dims[1] != own + other;
    const bool features = is_features(q, 0) || is_features(q, 1);
    if (features && q->op->heads == 1) {
        cs_answer_alike(q, outside(q, q->op->inputs[0]), answer);
        return;
    }
    cs_rule_follow(q, answer);
    if (features && is_shared) {
        answer->inputs[1] = (cs_division){0};
        answer->partial[1] = true;
    }
}

/* ---- additions ---- */

/* Learned rows of positions are as wide as what they are added to. */
static void rule_add(const cs_rule_query *q, cs_rule_answer *answer)
{
    cs_rule_follow(q, answer);
    answer->shared = is_tokens(q, 0);
}

/* ---- mixtures of experts ---- */

/* Each place routes its own tokens: the experts' axes cross this one. */
static void rule_dispatch(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (!is_tokens(q, 0))
        cs_split_refuse(
            q->report, "sequence_parallel",
            "must be true with \"tensor\" %u and the experts of %s: a device routes its own "
            "tokens (got false)",
            q->size, q->op->name);
    cs_rule_follow(q, answer);
}

/* ---- embedding and losses ---- */

static void rule_embedding(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_tensor_info *out = cs_net_tensor(q->net, q->op->output);
    const int64_t rows = q->op->weights / out->shape.dims[1];
    if (rows < q->size)
        cs_rule_refuse(q, (cs_nearest){(uint32_t)rows, 0, true},
                       "must be at most the %lld rows of %s (got %u)", (long long)rows, q->op->name,
                       q->size);
    answer->made.part = CS_PARTIAL;
    answer->output = outside(q, q->op->output);
}

static void rule_cross_entropy(const cs_rule_query *q, cs_rule_answer *answer)
{
    answer->inputs[0] = q->given[0];
    if (!is_features(q, 0))
        return;
    for (int sum = 0; sum < 3; sum++)
        add_row_sum(answer, false);
}

static void rule_squared_error(const cs_rule_query *q, cs_rule_answer *answer)
{
    answer->inputs[0] = q->given[0];
}

const cs_axis_rules cs_rules_tensor_pairs = {{
    [CS_OP_LINEAR] = rule_linear,
    [CS_OP_ATTENTION] = rule_attention,
    [CS_OP_LAYER_NORM] = rule_norm,
    [CS_OP_RMS_NORM] = rule_norm,
    [CS_OP_SOFTMAX] = rule_norm,
    [CS_OP_CAUSAL_CONV] = rule_causal_conv,
    [CS_OP_SCAN] = rule_scan,
    [CS_OP_HEAD_CONCAT] = rule_head_concat,
    [CS_OP_RELU] = cs_rule_follow,
    [CS_OP_GELU] = cs_rule_follow,
    [CS_OP_SILU] = cs_rule_follow,
    [CS_OP_TANH] = cs_rule_follow,
    [CS_OP_ROTARY] = cs_rule_follow,
    [CS_OP_MUL] = cs_rule_follow,
    [CS_OP_ADD] = rule_add,
    [CS_OP_DROPOUT] = cs_rule_follow,
    [CS_OP_COPY] = cs_rule_follow,
    [CS_OP_VIEW] = cs_rule_view,
    [CS_OP_TOP_K] = cs_rule_follow,
    [CS_OP_DISPATCH] = rule_dispatch,
    [CS_OP_GROUPED_LINEAR] = cs_rule_follow,
    [CS_OP_COMBINE] = cs_rule_follow,
    [CS_OP_EMBEDDING] = rule_embedding,
    [CS_OP_CROSS_ENTROPY] = rule_cross_entropy,
    [CS_OP_SQUARED_ERROR] = rule_squared_error,
}};
