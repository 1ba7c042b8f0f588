/* Linear layers: products with one matrix, or with one matrix per expert. */
#include "sim/model/ops/operator.h"

#include <math.h>

/* ---- builders ---- */

cs_tensor cs_net_linear(cs_net *net, const char *name, cs_tensor x, const cs_linear *linear)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_LINEAR, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    uint32_t *features = &shape.dims[shape.rank - 1];
    op.weights = (int64_t)*features * linear->out;
    op.biases = linear->bias ? linear->out : 0;
    op.tied = linear->tied;
    op.wide = linear->wide;
    op.lender = linear->tied && linear->lender ? cs_net_last_writer(net, linear->lender) + 1 : 0;
    *features = linear->out;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_grouped_linear(cs_net *net, const char *name, cs_tensor rows,
                                const cs_grouped_linear *linear)
{
    if (!cs_net_usable(net, &rows, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_GROUPED_LINEAR, &rows, 1);
    cs_shape shape = cs_net_tensor(net, rows)->shape;
    op.experts = linear->experts;
    op.top_k = linear->top_k;
    op.weights = (int64_t)linear->experts * shape.dims[1] * linear->out;
    op.biases = linear->bias ? (int64_t)linear->experts * linear->out : 0;
    shape.dims[1] = linear->out;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_linear(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const bool tied = e->tied_to != NULL;
    const cs_linear linear = {.out = cs_made_features(m),
                              .bias = e->biases > 0,
                              .wide = e->wide,
                              .tied = tied,
                              .lender = tied ? m->lender : 0};
    return cs_net_linear(m->net, m->name, m->in[0], &linear);
}

static cs_tensor make_grouped_linear(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_grouped_linear linear = {.out = cs_made_features(m),
                                      .experts = e->experts,
                                      .top_k = e->top_k,
                                      .bias = e->biases > 0};
    return cs_net_grouped_linear(m->net, m->name, m->in[0], &linear);
}

/* ---- cost ---- */

/* Whether an earlier linear layer has already cast this input, for at least as many products. */
static bool is_cast_before(const cs_cost_query *s)
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

/* Adds the cost of a kernel that reads `elements` and writes them `copies` times in the narrow
 * type. */
static void cast(const cs_cost_query *s, double elements, uint32_t copies, cs_pass_cost *before)
{
    if (copies == 0)
        return;
    before->cast_bytes += elements * (s->width + copies * s->operand);
    before->launches++;
}

/* Returns the elements of the saved input. If backward gathers the input again, only the part that
 * the device had before the gather is saved. */
static double kept_elements(const cs_cost_query *s)
{
    const cs_op *op = s->op;
    while (op > s->net->ops && op->output != s->op->inputs[0])
        op--;
    return op->gathers_again && op->output == s->op->inputs[0]
               ? s->batch * (double)cs_net_tensor(s->net, op->inputs[0])->elements
               : s->x;
}

/* Computes the cost of the same product with operands that are cast to a narrow type; results keep
 * their width. Each product that reads an operand has its own copy of it. */
static void cost_narrow(const cs_cost_query *s, cs_op_cost *cost)
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

void cs_cost_product(const cs_cost_query *s, double macs, cs_op_cost *cost)
{
    const cs_op *op = s->op;
    double flop = 2 * macs, bytes = s->width * (s->x + s->y + (double)op->weights);
    cost->macs = macs;
    cost->forward = (cs_pass_cost){flop, bytes + s->width * (double)op->biases, 1};
    if (s->needs_gradient)
        cost->backward_input = (cs_pass_cost){flop, bytes, 1};
    cost->backward_weight = (cs_pass_cost){flop, bytes, 1};
    if (op->biases > 0) { /* bias gradient: sum of the output's gradient over all rows */
        cost->backward_weight.flop += s->y;
        cost->backward_weight.bytes += s->width * s->y;
        cost->backward_weight.launches++;
    }
    cost->keeps_input = true;
    if (s->operand > 0)
        cost_narrow(s, cost);
}

/* Sets the size of the result. `other` is the number of the pass's bytes that other kernels
 * move. */
static void set_product(const cs_cost_query *s, double rows, double columns, double other,
                        cs_pass_cost *pass)
{
    pass->rows = rows;
    pass->columns = columns;
    pass->product_bytes = pass->bytes - other;
    pass->result_bytes = s->width * rows * columns;
}

static void cost_linear(const cs_cost_query *s, cs_op_cost *cost)
{
    const double rows = s->batch * cs_tensor_rows(s->in);
    const double in = s->in->shape.dims[s->in->shape.rank - 1], out = (double)s->op->weights / in;
    cs_cost_product(s, rows * (double)s->op->weights, cost);
    set_product(s, rows, out, 0, &cost->forward);
    set_product(s, rows, in, 0, &cost->backward_input);
    set_product(s, out, in, s->op->biases > 0 ? s->width * s->y : 0, &cost->backward_weight);
}

/* Computes the cost of one kernel for the products of all experts; each row is multiplied by one
 * matrix. */
static void cost_grouped_linear(const cs_cost_query *s, cs_op_cost *cost)
{
    cs_cost_product(s, s->batch * cs_tensor_rows(s->in) * (double)s->op->weights / s->op->experts,
                    cost);
}

/* ---- split ---- */

/* Splits the first linear layer of a pair by features. A vocabulary need not divide evenly:
 * Megatron pads it; here the first devices have one entry more. */
static void first_of_pair(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_tensor out = q->op->output;
    const uint32_t dim = cs_features_dim(q->net, out);
    const uint32_t features = cs_net_tensor(q->net, out)->shape.dims[dim];
    bool keys = false;
    const cs_op *attention = cs_attention_after(q, out, &keys);
    const uint32_t kv_heads = attention && keys ? attention->attention.kv_heads : q->size;
    /* number of devices that need the same keys and values, if there are more devices than heads */
    const uint32_t copies = q->size > kv_heads ? q->size / kv_heads : 1;
    if (attention)
        cs_rule_check_heads(q, attention);
    if (!cs_feeds_loss(q, out) && copies == 1)
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

static void split_pairs(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (cs_has_features(q, 0)) { /* second of a pair */
        answer->inputs[0] = q->given[0];
        answer->made.part = CS_PARTIAL;
        answer->output = cs_outside_pairs(q, q->op->output);
    } else if (cs_feeds_pairs(q, q->op->output)) {
        first_of_pair(q, answer);
    } else {
        cs_rule_follow(q, answer);
    }
}

static void split_within_expert(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t features = cs_net_tensor(q->net, q->op->output)->shape.dims[1];
    if (cs_is_divided_at(q->given[0], 1)) {
        answer->inputs[0] = q->given[0];
        answer->made.part = CS_PARTIAL;
    } else if (cs_feeds_pairs(q, q->op->output)) {
        cs_rule_divides(q, features, "features");
        answer->inputs[0].part = CS_GATHERED;
        answer->partial[0] = true;
        answer->made = answer->output = cs_divided(1);
    }
}

static void cut_linear(const cs_cut *cut, cs_op *op)
{
    const uint32_t features = cut->out.dims[cut->out.rank - 1];
    op->weights = (int64_t)cut->in.dims[cut->in.rank - 1] * features;
    op->biases = cut->of->biases > 0 ? features : 0;
}

static void cut_grouped_linear(const cs_cut *cut, cs_op *op)
{
    const uint32_t features = cut->out.dims[cut->out.rank - 1];
    op->experts = cut->of->experts / cut->split->grid.expert;
    op->weights = (int64_t)op->experts * cut->in.dims[1] * features;
    op->biases = cut->of->biases > 0 ? (int64_t)op->experts * features : 0;
}

const cs_operator cs_operator_linear = {
    .name = "linear",
    .group = "linear",
    .is_product = true,
    .input_for_weights = true,
    .cost = cost_linear,
    .split = {[CS_SPLIT_PAIRS] = split_pairs,
              [CS_SPLIT_FILTER] = cs_rule_filter,
              [CS_SPLIT_CHANNEL] = cs_rule_channel,
              [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .takes_parts = true,
    .cut = cut_linear,
    .needs = {1, 1, .output = true},
    .make = make_linear,
    .key = CS_KEY_BIAS,
};

const cs_operator cs_operator_grouped_linear = {
    .name = "grouped_linear",
    .group = "linear",
    .is_product = true,
    .of_experts = true,
    .input_for_weights = true,
    .cost = cost_grouped_linear,
    .split = {[CS_SPLIT_PAIRS] = cs_rule_follow,
              [CS_SPLIT_CONTEXT] = cs_rule_follow,
              [CS_SPLIT_EXPERT] = cs_rule_follow,
              [CS_SPLIT_EXPERT_TENSOR] = split_within_expert},
    .takes_parts = true,
    .cut = cut_grouped_linear,
    .needs = {1, 1, 2, .output = true, .experts = true},
    .make = make_grouped_linear,
    .key = CS_KEY_BIAS,
    .is_runnable = cs_op_never_runs,
};
