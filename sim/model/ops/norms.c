/* Norms over the batch, over the features of a token, or over the features of a head. */
#include "sim/model/ops/operator.h"

/* ---- builders ---- */

/* Adds a norm with a scale per channel or feature, and also a shift if `shift` is true. */
static cs_tensor add_norm(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x, bool shift,
                          uint32_t heads)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(kind, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    const uint32_t features = shape.dims[cs_operator_of(&op)->channels_first ? 0 : shape.rank - 1];
    if (!cs_net_heads_divide(net, name, heads, features))
        return CS_NO_TENSOR;
    op.weights = features / heads;
    op.biases = shift ? op.weights : 0;
    op.groups = heads;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_batch_norm(cs_net *net, const char *name, cs_tensor x)
{
    return add_norm(net, name, CS_OP_BATCH_NORM, x, true, 1);
}

cs_tensor cs_net_layer_norm(cs_net *net, const char *name, cs_tensor x)
{
    return add_norm(net, name, CS_OP_LAYER_NORM, x, true, 1);
}

cs_tensor cs_net_rms_norm(cs_net *net, const char *name, cs_tensor x)
{
    return add_norm(net, name, CS_OP_RMS_NORM, x, false, 1);
}

cs_tensor cs_net_head_norm(cs_net *net, const char *name, cs_tensor x, uint32_t heads)
{
    return add_norm(net, name, CS_OP_RMS_NORM, x, false, heads);
}

static cs_tensor make_norm(cs_op_making *m)
{
    const bool is_rms = m->entry->kind == CS_OP_RMS_NORM;
    return add_norm(m->net, m->name, (cs_op_kind)m->entry->kind, m->in[0], !is_rms,
                    is_rms && m->entry->heads > 1 ? m->entry->heads : 1);
}

/* ---- cost ---- */

/* Computes the cost of a batch norm, which saves mean and deviation of each channel, whatever the
 * batch size. */
static void cost_batch_norm(const cs_cost_query *s, cs_op_cost *cost)
{
    cs_cost_elementwise(s, cost);
    cost->extra_kept_bytes = (int64_t)(CS_FLOAT_BYTES * 2.0 * s->in->shape.dims[0]);
}

static void cost_layer_norm(const cs_cost_query *s, cs_op_cost *cost)
{
    cs_cost_elementwise(s, cost);
    cost->extra_kept_bytes = (int64_t)(CS_FLOAT_BYTES * (2.0 * s->batch * cs_tensor_rows(s->in)));
}

/* Computes the cost of an RMS norm, which saves one statistic per row and head, and the normalised
 * input. */
static void cost_rms_norm(const cs_cost_query *s, cs_op_cost *cost)
{
    const double statistics = s->batch * cs_tensor_rows(s->in) * s->op->groups;
    cs_cost_elementwise(s, cost);
    cost->extra_kept_bytes = (int64_t)(CS_FLOAT_BYTES * statistics) + (int64_t)(s->width * s->x);
}

/* ---- split ---- */

/* Whether the norm follows a product with a gate, as in the mixers of state spaces. If it covers
 * all features, its squares are summed over all devices. All other norms are in front of a pair of
 * linear layers, or between the two. */
static bool is_gated(const cs_rule_query *q, const cs_op *op)
{
    const uint32_t writer = q->links->writer[op->inputs[0]];
    return op->kind == CS_OP_RMS_NORM && writer != CS_NO_TENSOR &&
           q->net->ops[writer].kind == CS_OP_MUL;
}

/* Whether the norm works head by head. If the keys have a single head, each device has a copy of
 * it. */
static bool passes_features(const cs_rule_query *q, const cs_op *op)
{
    bool keys = false;
    const cs_op *attention = op->groups > 1 ? NULL : cs_attention_after(q, op->output, &keys);
    return op->groups > 1 || (attention && keys && attention->attention.kv_heads == 1);
}

/* Splits a norm. A norm head by head works on the device's own heads, with the same weights on all
 * devices. A norm over all features of a token reads whole tokens, unless it follows a gate: then
 * its squares are summed over all devices. */
void cs_rule_norm(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_operator *kind = cs_operator_of(q->op);
    const bool features = cs_has_features(q, 0), gated = features && is_gated(q, q->op);
    const bool by_heads = kind->passes_features && kind->passes_features(q, q->op);
    const bool gathers = features && !gated && !by_heads;
    cs_answer_alike(q, gathers ? cs_outside_pairs(q, q->op->inputs[0]) : q->given[0], answer);
    answer->shared = !gated && answer->made.part == CS_DIVIDED;
    if (gated && q->op->groups == 1) {
        cs_add_row_sum(answer, false);
        cs_add_row_sum(answer, true);
    }
}

static void cut_rms_norm(const cs_cut *cut, cs_op *op)
{
    op->groups = cut->of->groups > 1 ? cs_cut_heads(cut, cut->of->groups) : 1;
    if (cut->of->groups == 1)
        op->weights = cut->out.dims[cut->out.rank - 1];
}

static bool is_runnable(const cs_net *net, const cs_op *op)
{
    (void)net;
    return op->groups == 1;
}

const cs_operator cs_operator_batch_norm = {
    .name = "batch_norm",
    .group = "norm",
    .channels_first = true,
    .batch_statistics = true,
    .each = {5, 8, 3, 5, 0, 0, true, false},
    .cost = cost_batch_norm,
    .split = {[CS_SPLIT_SPACE] = cs_rule_rows},
    .needs = {1, 1},
    .make = make_norm,
};

const cs_operator cs_operator_layer_norm = {
    .name = "layer_norm",
    .group = "norm",
    .each = {6, 9, 2, 3, 2, 0, true, false},
    .cost = cost_layer_norm,
    .split = {[CS_SPLIT_PAIRS] = cs_rule_norm, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .cut = cs_cut_features,
    .needs = {1, 1},
    .make = make_norm,
};

const cs_operator cs_operator_rms_norm = {
    .name = "rms_norm",
    .group = "norm",
    .each = {4, 7, 6, 8, 2, 0, true, false},
    .cost = cost_rms_norm,
    .split = {[CS_SPLIT_PAIRS] = cs_rule_norm, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .passes_features = passes_features,
    .joins_parts = is_gated,
    .cut = cut_rms_norm,
    .needs = {1, 1},
    .make = make_norm,
    .key = CS_KEY_GROUPS_AS_HEADS,
    .is_runnable = is_runnable,
};
