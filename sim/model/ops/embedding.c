/* The ends of a network: embedding tables at the beginning, losses at the end. */
#include "sim/model/ops/operator.h"

/* ---- embeddings ---- */

cs_tensor cs_net_embedding(cs_net *net, const char *name, cs_tensor ids, uint32_t rows,
                           uint32_t features)
{
    if (!cs_net_usable(net, &ids, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_EMBEDDING, &ids, 1);
    op.weights = (int64_t)rows * features;
    cs_shape shape = {2, {cs_net_tensor(net, ids)->shape.dims[0], features}};
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_embedding_of(cs_net *net, const char *name, cs_tensor ids, cs_tensor of)
{
    const cs_tensor inputs[] = {ids, of};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_EMBEDDING, &ids, 1);
    cs_op_borrow(net, &op, of);
    cs_shape shape = {
        2, {cs_net_tensor(net, ids)->shape.dims[0], cs_net_tensor(net, of)->shape.dims[1]}};
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_embedding(cs_op_making *m)
{
    const uint32_t features = cs_made_features(m);
    if (m->entry->tied_to)
        return cs_net_embedding_of(m->net, m->name, m->in[0], m->lender);
    return cs_net_embedding(m->net, m->name, m->in[0], (uint32_t)(m->entry->weights / features),
                            features);
}

/* Splits the table: each device has the rows of a part of the vocabulary, and outputs zeros for all
 * other tokens. */
static void split_vocabulary(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_tensor_info *out = cs_net_tensor(q->net, q->op->output);
    const int64_t rows = q->op->weights / out->shape.dims[1];
    if (rows < q->size)
        cs_rule_refuse(q, (cs_nearest){(uint32_t)rows, 0, true},
                       "must be at most the %lld rows of %s (got %u)", (long long)rows, q->op->name,
                       q->size);
    answer->made.part = CS_PARTIAL;
    answer->output = cs_outside_pairs(q, q->op->output);
}

static void cut_embedding(const cs_cut *cut, cs_op *op)
{
    int64_t rows = cut->of->weights / cut->whole_out.dims[1];
    for (int axis = 0; axis < CS_N_LAYOUT_AXES; axis++) {
        const cs_axes axes = cs_grid_axes(&cut->split->grid, cs_layout_axes((cs_layout_axis)axis));
        if (cut->made->axes[axis].part == CS_PARTIAL)
            rows = cs_part_size((uint32_t)rows, axes.size, cs_axes_coordinate(axes, cut->place));
    }
    op->weights = rows * cut->out.dims[1];
}

const cs_operator cs_operator_embedding = {
    .name = "embedding",
    .group = "embedding",
    .input_for_weights = true,
    .each = {0, 0, 2, 0, 2, 0, true, false},
    .split = {[CS_SPLIT_PAIRS] = split_vocabulary, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .cut = cut_embedding,
    .needs = {1, 1, 1, .output = true, .weights = true},
    .make = make_embedding,
    .key = CS_KEY_WEIGHTS,
};

/* ---- losses ---- */

static cs_tensor add_loss(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(kind, &x, 1);
    return cs_net_add_op(net, name, &op, &(cs_shape){1, {1}}, CS_ELEMENT_FLOAT32);
}

cs_tensor cs_net_cross_entropy(cs_net *net, const char *name, cs_tensor x)
{
    return add_loss(net, name, CS_OP_CROSS_ENTROPY, x);
}

cs_tensor cs_net_squared_error(cs_net *net, const char *name, cs_tensor x)
{
    return add_loss(net, name, CS_OP_SQUARED_ERROR, x);
}

static cs_tensor make_loss(cs_op_making *m)
{
    return add_loss(m->net, m->name, (cs_op_kind)m->entry->kind, m->in[0]);
}

/* Computes the cost of a loss, which reads activations and computes in float32. `targets` and
 * `logarithms` are bytes; both are saved. */
static void cost_loss(const cs_cost_query *s, double targets, double logarithms, cs_op_cost *cost)
{
    const cs_elementwise_cost *each = &cs_operator_of(s->op)->each;
    cost->forward.bytes = s->width * s->x + logarithms + targets;
    cost->backward_input.bytes = cost->forward.bytes + s->width * s->x;
    cost->forward.flop = each->forward_flop * s->x;
    cost->backward_input.flop = each->backward_flop * s->x;
    cost->extra_kept_bytes = (int64_t)(logarithms + targets);
    cost->keeps_input = each->keeps_input;
}

static void cost_cross_entropy(const cs_cost_query *s, cs_op_cost *cost)
{
    cost_loss(s, CS_INDEX_BYTES * s->batch * cs_tensor_rows(s->in), CS_FLOAT_BYTES * s->x, cost);
}

static void cost_squared_error(const cs_cost_query *s, cs_op_cost *cost)
{
    cost_loss(s, s->width * s->x, 0, cost);
}

/* Splits a loss like its input: each device computes the mean of its own part. */
static void split_mean(const cs_rule_query *q, cs_rule_answer *answer)
{
    answer->inputs[0] = q->given[0];
}

/* Splits the loss by features. The largest logit, the sum of the exponentials and the logit of the
 * target are reduced over all devices. */
static void split_logits(const cs_rule_query *q, cs_rule_answer *answer)
{
    answer->inputs[0] = q->given[0];
    for (int sum = 0; sum < 3 && cs_has_features(q, 0); sum++)
        cs_add_row_sum(answer, false);
}

const cs_operator cs_operator_cross_entropy = {
    .name = "cross_entropy",
    .group = "loss",
    .is_loss = true,
    .each = {6, 3, 0, 0, 0, 0, false, false},
    .cost = cost_cross_entropy,
    .split = {[CS_SPLIT_PAIRS] = split_logits, [CS_SPLIT_CONTEXT] = split_mean},
    .takes_parts = true,
    .needs = {1, 1},
    .make = make_loss,
};

const cs_operator cs_operator_squared_error = {
    .name = "squared_error",
    .group = "loss",
    .is_loss = true,
    .each = {3, 2, 0, 0, 0, 0, true, false},
    .cost = cost_squared_error,
    .split = {[CS_SPLIT_PAIRS] = split_mean, [CS_SPLIT_CONTEXT] = split_mean},
    .needs = {1, 1},
    .make = make_loss,
};
