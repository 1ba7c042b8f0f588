/* Operators that work element by element: activations, sums, products, copies and views. */
#include "sim/model/ops/operator.h"

/* ---- one input ---- */

#define ALIKE(function, kind, in_place)                                                            \
    cs_tensor function(cs_net *net, const char *name, cs_tensor x)                                 \
    {                                                                                              \
        return cs_net_add_alike(net, name, kind, x, in_place);                                     \
    }

ALIKE(cs_net_relu, CS_OP_RELU, true)
ALIKE(cs_net_gelu, CS_OP_GELU, false)
ALIKE(cs_net_silu, CS_OP_SILU, false)
ALIKE(cs_net_tanh, CS_OP_TANH, false)
ALIKE(cs_net_softmax, CS_OP_SOFTMAX, false)
ALIKE(cs_net_rotary, CS_OP_ROTARY, false)
ALIKE(cs_net_copy, CS_OP_COPY, false)

cs_tensor cs_net_dropout(cs_net *net, const char *name, cs_tensor x, double probability)
{
    return probability > 0 ? cs_net_add_alike(net, name, CS_OP_DROPOUT, x, false) : x;
}

static cs_tensor make_alike(cs_op_making *m)
{
    const cs_op_kind kind = (cs_op_kind)m->entry->kind;
    return cs_net_add_alike(m->net, m->name, kind, m->in[0], kind == CS_OP_RELU);
}

/* Computes the cost of a dropout, which saves its mask. */
static void cost_dropout(const cs_cost_query *s, cs_op_cost *cost)
{
    cs_cost_elementwise(s, cost);
    cost->extra_kept_bytes = (int64_t)(CS_MASK_BYTES * s->y);
}

#define CS_SPLIT_ALL_AXES                                                                          \
    {                                                                                              \
        [CS_SPLIT_PAIRS] = cs_rule_follow, [CS_SPLIT_SPACE] = cs_rule_rows,                        \
        [CS_SPLIT_CONTEXT] = cs_rule_follow, [CS_SPLIT_EXPERT] = cs_rule_follow,                   \
        [CS_SPLIT_EXPERT_TENSOR] = cs_rule_follow                                                  \
    }

#define ACTIVATION(name_)                                                                          \
    .name = name_, .group = "elementwise", .split = CS_SPLIT_ALL_AXES,                             \
    .passes_features = cs_op_by_feature, .needs = {1, 1}, .make = make_alike

const cs_operator cs_operator_relu = {ACTIVATION("relu"), .each = {1, 1, 2, 3, 0, 0, false, true}};
const cs_operator cs_operator_gelu = {ACTIVATION("gelu"), .each = {8, 12, 2, 3, 0, 0, true, false}};
const cs_operator cs_operator_silu = {ACTIVATION("silu"), .each = {5, 8, 2, 3, 0, 0, true, false}};
const cs_operator cs_operator_tanh = {ACTIVATION("tanh"), .each = {5, 3, 2, 3, 0, 0, false, true}};

const cs_operator cs_operator_dropout = {
    ACTIVATION("dropout"),
    .each = {2, 1, 2, 2, 0, CS_MASK_BYTES, false, false},
    .cost = cost_dropout,
};

const cs_operator cs_operator_softmax = {
    .name = "softmax",
    .group = "elementwise",
    .each = {5, 4, 2, 3, 0, 0, false, true},
    .split = {[CS_SPLIT_PAIRS] = cs_rule_norm, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .needs = {1, 1},
    .make = make_alike,
};

const cs_operator cs_operator_rotary = {
    .name = "rotary",
    .group = "elementwise",
    .each = {3, 3, 2, 2, 0, 0, false, false},
    .split = {[CS_SPLIT_PAIRS] = cs_rule_follow, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .passes_features = cs_op_by_feature,
    .needs = {1, 1},
    .make = make_alike,
};

const cs_operator cs_operator_copy = {
    .name = "copy",
    .group = "elementwise",
    .each = {0, 0, 2, 2, 0, 0, false, false},
    .split = {[CS_SPLIT_PAIRS] = cs_rule_follow,
              [CS_SPLIT_SPACE] = cs_rule_rows,
              [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .passes_features = cs_op_by_feature,
    .needs = {1, 1},
    .make = make_alike,
};

/* ---- two inputs or more ---- */

static cs_tensor add_pair(cs_net *net, const char *name, cs_op_kind kind, cs_tensor a, cs_tensor b,
                          bool in_place)
{
    const cs_tensor inputs[] = {a, b};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    cs_shape shape = cs_net_tensor(net, a)->shape;
    if (!cs_shape_same(&shape, &cs_net_tensor(net, b)->shape, 0)) {
        cs_net_fail_at(net, name, "reads two tensors of different shapes");
        return CS_NO_TENSOR;
    }
    cs_op op = cs_net_op(kind, inputs, 2);
    op.in_place = in_place;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_mul(cs_net *net, const char *name, cs_tensor a, cs_tensor b)
{
    return add_pair(net, name, CS_OP_MUL, a, b, false);
}

cs_tensor cs_net_add(cs_net *net, const char *name, cs_tensor a, cs_tensor b)
{
    return add_pair(net, name, CS_OP_ADD, a, b, false);
}

cs_tensor cs_net_add_to(cs_net *net, const char *name, cs_tensor a, cs_tensor b)
{
    return add_pair(net, name, CS_OP_ADD, a, b, true);
}

cs_tensor cs_net_add_table(cs_net *net, const char *name, cs_tensor x, int64_t parameters)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ADD, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    op.weights = parameters;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_add_learned(cs_net *net, const char *name, cs_tensor x)
{
    return x == CS_NO_TENSOR ? x : cs_net_add_table(net, name, x, cs_net_tensor(net, x)->elements);
}

cs_tensor cs_net_concat(cs_net *net, const char *name, const cs_tensor *parts, uint32_t n)
{
    if (!cs_net_usable(net, parts, n))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_CONCAT, parts, n);
    cs_shape shape = cs_net_tensor(net, parts[0])->shape;
    for (uint32_t i = 1; i < n; i++) {
        const cs_shape *part = &cs_net_tensor(net, parts[i])->shape;
        if (!cs_shape_same(&shape, part, 1)) {
            cs_net_fail_at(net, name, "joins tensors of different sizes");
            return CS_NO_TENSOR;
        }
        shape.dims[0] += part->dims[0];
    }
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_first_token(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_CONCAT, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    shape.dims[0]++;
    op.weights = shape.dims[1];
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_mul(cs_op_making *m)
{
    return cs_net_mul(m->net, m->name, m->in[0], m->in[1]);
}

/* Makes a sum of two tensors, or of one tensor and rows of a learned table. The table may belong to
 * another sum ("tied_to"). */
static cs_tensor make_add(cs_op_making *m)
{
    if (m->n == 2)
        return add_pair(m->net, m->name, CS_OP_ADD, m->in[0], m->in[1], m->entry->in_place);
    if (!m->entry->tied_to)
        return cs_net_add_table(m->net, m->name, m->in[0], m->entry->weights);
    cs_op op = cs_net_op(CS_OP_ADD, m->in, 1);
    const cs_shape shape = cs_net_tensor(m->net, m->in[0])->shape;
    cs_op_borrow(m->net, &op, m->lender);
    return cs_net_add_op(m->net, m->name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* Makes a concatenation; a single input gets a learned token in front. */
static cs_tensor make_concat(cs_op_making *m)
{
    return m->n == 1 ? cs_net_first_token(m->net, m->name, m->in[0])
                     : cs_net_concat(m->net, m->name, m->in, m->n);
}

/* Splits a sum like its inputs. With split tokens, all devices hold the same learned table of
 * positions, which has as many features as the tensor that it is added to. */
static void split_add(const cs_rule_query *q, cs_rule_answer *answer)
{
    cs_rule_follow(q, answer);
    answer->shared = cs_has_tokens(q, 0);
}

/* Whether all inputs are results of linear layers, as with adapters, so that all are split in the
 * same way. A residual connection is different: it adds to a whole tensor, which would have to be
 * split. */
static bool adds_parts(const cs_rule_query *q, const cs_op *op)
{
    bool parts = op->n_inputs > 1;
    for (uint32_t i = 0; parts && i < op->n_inputs; i++) {
        const uint32_t writer = q->links->writer[op->inputs[i]];
        parts = writer != CS_NO_TENSOR && q->net->ops[writer].kind == CS_OP_LINEAR;
    }
    return parts;
}

const cs_operator cs_operator_mul = {
    .name = "mul",
    .group = "elementwise",
    .each = {1, 2, 3, 5, 0, 0, true, false},
    .split = CS_SPLIT_ALL_AXES,
    .passes_features = cs_op_by_feature,
    .needs = {2, 2},
    .make = make_mul,
};

const cs_operator cs_operator_add = {
    .name = "add",
    .group = "elementwise",
    .each = {1, 0, 3, 0, 1, 0, false, false},
    .split = {[CS_SPLIT_PAIRS] = split_add,
              [CS_SPLIT_SPACE] = cs_rule_rows,
              [CS_SPLIT_CONTEXT] = cs_rule_follow,
              [CS_SPLIT_EXPERT] = cs_rule_follow,
              [CS_SPLIT_EXPERT_TENSOR] = cs_rule_follow},
    .joins_parts = adds_parts,
    .cut = cs_cut_features,
    .needs = {1, 2},
    .make = make_add,
    .key = CS_KEY_WEIGHTS,
};

const cs_operator cs_operator_concat = {
    .name = "concat",
    .group = "elementwise",
    .each = {0, 0, 2, 2, 0, 0, false, false},
    .split = {[CS_SPLIT_SPACE] = cs_rule_rows},
    .cut = cs_cut_features,
    .needs = {1, CS_OP_INPUTS_MAX},
    .make = make_concat,
    .key = CS_KEY_WEIGHTS,
};

/* ---- views ---- */

cs_tensor cs_net_view(cs_net *net, const char *name, cs_tensor x, const cs_shape *shape)
{
    double elements = 1;
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    if (elements > (double)cs_net_tensor(net, x)->elements) {
        cs_net_fail_at(net, name, "has more elements than what it is a view of");
        return CS_NO_TENSOR;
    }
    cs_op op = cs_net_op(CS_OP_VIEW, &x, 1);
    return cs_net_add_op(net, name, &op, shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_flatten(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    const int64_t elements = cs_net_tensor(net, x)->elements;
    if (elements > UINT32_MAX) {
        cs_net_fail_at(net, name, "has more than 2^32 features");
        return CS_NO_TENSOR;
    }
    return cs_net_view(net, name, x, &(cs_shape){1, {(uint32_t)elements}});
}

cs_tensor cs_net_tokens(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    const cs_tensor_info *info = cs_net_tensor(net, x);
    const uint32_t channels = info->shape.dims[0];
    const uint32_t tokens = (uint32_t)(info->elements / channels);
    return cs_net_view(net, name, x, &(cs_shape){2, {tokens, channels}});
}

cs_tensor cs_net_features(cs_net *net, const char *name, cs_tensor x, uint32_t features)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    const uint32_t tokens = cs_net_tensor(net, x)->shape.dims[0];
    return cs_net_view(net, name, x, &(cs_shape){2, {tokens, features}});
}

cs_tensor cs_net_take_first(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    return cs_net_view(net, name, x, &(cs_shape){1, {cs_net_tensor(net, x)->shape.dims[1]}});
}

static cs_tensor make_view(cs_op_making *m)
{
    cs_shape shape = {m->entry->output_shape.n, {0}};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = cs_size_at(&m->entry->output_shape, i);
    return cs_net_view(m->net, m->name, m->in[0], &shape);
}

/* Splits a view if the view keeps the split dimension. A view of [tokens, features] keeps both
 * dimensions. (channels, space) become tokens with a feature per channel, or features in the same
 * order, channel by channel. A view may also select one of the tokens. */
static void split_view(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_tensor_info *in = cs_net_tensor(q->net, q->op->inputs[0]);
    const cs_tensor_info *out = cs_net_tensor(q->net, q->op->output);
    const cs_division given = q->given[0];
    const bool one_token = in->shape.rank == 2 && out->shape.rank == 1 &&
                           out->elements == in->shape.dims[1] && in->elements != out->elements;
    const bool features =
        in->shape.rank == 2 && out->shape.rank == 2 && in->shape.dims[0] == out->shape.dims[0];
    if (given.part != CS_DIVIDED)
        return;
    if (features) {
        cs_answer_alike(q, given, answer);
    } else if (one_token ? given.dim == 1 : given.dim == 0) {
        answer->inputs[0] = answer->made = given;
        answer->made.dim = (uint8_t)(!one_token && out->shape.rank == 2);
        answer->output = answer->made;
    }
}

const cs_operator cs_operator_view = {
    .name = "view",
    .group = "elementwise",
    .is_view = true,
    .split = {[CS_SPLIT_PAIRS] = split_view, [CS_SPLIT_CONTEXT] = split_view},
    .passes_features = cs_op_by_feature,
    .needs = {1, 1, .output = true},
    .make = make_view,
};
