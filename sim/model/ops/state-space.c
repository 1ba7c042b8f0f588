/* State spaces: Mamba-2's convolution along the tokens, and its scan (Dao and Gu, ICML 2024). */
#include "sim/model/ops/operator.h"

#include <math.h>

/* ---- builders ---- */

cs_tensor cs_net_causal_conv(cs_net *net, const char *name, cs_tensor x, uint32_t kernel, bool bias)
{
    const cs_extent one = {1, {1}};
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_CAUSAL_CONV, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    op.kernel = op.stride = op.dilation = op.pad = one;
    op.kernel.size[0] = kernel;
    op.pad.size[0] = kernel - 1;
    op.groups = shape.dims[1];
    op.weights = (int64_t)shape.dims[1] * kernel;
    op.biases = bias ? shape.dims[1] : 0;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_scan(cs_net *net, const char *name, const cs_tensor inputs[4], const cs_scan *scan)
{
    if (!cs_net_usable(net, inputs, 4))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_SCAN, inputs, 4);
    const cs_shape shape = cs_net_tensor(net, inputs[0])->shape;
    if (!cs_net_heads_divide(net, name, scan->heads, shape.dims[1]))
        return CS_NO_TENSOR;
    if (scan->groups == 0 || scan->heads % scan->groups != 0) {
        cs_net_fail_at(net, name, "must have groups that divide its heads");
        return CS_NO_TENSOR;
    }
    op.scan = *scan;
    op.weights = 3 * (int64_t)scan->heads;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_causal_conv(cs_op_making *m)
{
    return cs_net_causal_conv(m->net, m->name, m->in[0], cs_size_at(&m->entry->kernel, 0),
                              m->entry->biases > 0);
}

static cs_status check_scan(const cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    return e->scan_groups > 0 && e->state > 0 && e->chunk > 0
               ? CS_OK
               : cs_op_making_wrong(m, "scan_groups",
                                    "must be given above 0, as must \"state\" and \"chunk\"");
}

static cs_tensor make_scan(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_scan scan = {e->heads, e->scan_groups, e->state, e->chunk};
    return cs_net_scan(m->net, m->name, m->in, &scan);
}

/* ---- cost ---- */

/* Computes the cost of a convolution whose kernel has k tokens: 2 k flop per element of the result,
 * plus a SiLU. Backward computes the convolution again for the SiLU's derivative, and a reversed
 * convolution for the gradient. */
static void cost_causal_conv(const cs_cost_query *s, cs_op_cost *cost)
{
    const double taps = 2.0 * s->op->kernel.size[0];
    const double parameters = s->width * (double)(s->op->weights + s->op->biases);
    const cs_elementwise_cost *silu = &cs_operator_silu.each;
    cost->forward = (cs_pass_cost){(taps + silu->forward_flop) * s->y,
                                   s->width * (s->x + s->y) + parameters, 1};
    if (s->needs_gradient)
        cost->backward_input = (cs_pass_cost){(2 * taps + silu->backward_flop) * s->y,
                                              s->width * (2 * s->x + s->y) + parameters, 1};
    cost->backward_weight = (cs_pass_cost){taps * s->y, s->width * (s->x + s->y) + parameters, 1};
    cost->keeps_input = true;
}

/* Computes the cost of the scan, which works on chunks of Q tokens, with h heads of P features, in
 * G groups with a state of size N (Dao and Gu, section 6):
 *   - C B' in each chunk: Q Q N per group
 *   - with C B', the contributions from within the chunk: Q Q P per head
 *   - the state after a chunk: Q P N per head
 *   - the contributions from the state before the chunk: Q P N per head
 * The last chunk has the remaining tokens.
 *
 * The states and C B' are float32 in memory. States are written, passed on from chunk to chunk
 * (read, written) and read; C B' is written and read. The sums of the steps, one per token and
 * head, are written, read by two kernels, and saved. Backward has two products for each forward
 * product, and computes C B' and the states again, as they are not saved. The exponentials of the
 * mask are left out. */
static void cost_scan(const cs_cost_query *s, cs_op_cost *cost)
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
    cost->forward = (cs_pass_cost){2 * cost->macs + 2 * state,
                                   s->width * (inputs + s->y) + CS_FLOAT_BYTES * floats, 5};
    cost->backward_input = (cs_pass_cost){4 * cost->macs + 2 * (products + states) + 4 * state,
                                          2 * cost->forward.bytes + s->width * s->y, 10};
    cost->backward_weight =
        (cs_pass_cost){2 * s->y + 3 * steps, 2 * s->width * s->y + 2 * CS_FLOAT_BYTES * steps, 2};
    cost->extra_kept_bytes = (int64_t)(CS_FLOAT_BYTES * steps);
    cost->keeps_input = true;
    cost->keeps_output = true;
}

/* ---- split ---- */

/* Splits by features: the convolution runs along the tokens, separately for each feature. */
static void split_features(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (cs_has_features(q, 0))
        cs_answer_alike(q, q->given[0], answer);
}

static void split_heads(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (!cs_has_features(q, 0))
        return;
    cs_rule_divides(q, q->op->scan.heads, "heads");
    cs_rule_divides(q, q->op->scan.groups, "groups");
    cs_answer_alike(q, cs_divided(1), answer);
}

/* Refuses to split the tokens: each token needs the state after the previous token. */
static void refuse_tokens(const cs_rule_query *q, cs_rule_answer *answer)
{
    (void)answer;
    cs_split_refuse(q->report, "context",
                    "must be 1 with %s, which goes from token to token (got %u)", q->op->name,
                    q->size);
}

static void cut_causal_conv(const cs_cut *cut, cs_op *op)
{
    op->groups = cut->out.dims[cut->out.rank - 1];
    cs_cut_features(cut, op);
}

static void cut_scan(const cs_cut *cut, cs_op *op)
{
    op->scan.heads = cs_cut_heads(cut, cut->of->scan.heads);
    op->scan.groups = cs_cut_heads(cut, cut->of->scan.groups);
    op->weights = 3 * (int64_t)op->scan.heads;
}

const cs_operator cs_operator_causal_conv = {
    .name = "causal_conv",
    .group = "elementwise",
    .cost = cost_causal_conv,
    .split = {[CS_SPLIT_PAIRS] = split_features, [CS_SPLIT_CONTEXT] = refuse_tokens},
    .passes_features = cs_op_by_feature,
    .cut = cut_causal_conv,
    .needs = {1, 1, 2, .kernel = true},
    .check = cs_op_check_even_window,
    .make = make_causal_conv,
    .key = CS_KEY_BIAS,
    .is_runnable = cs_op_never_runs,
};

const cs_operator cs_operator_scan = {
    .name = "scan",
    .group = "attention",
    .cost = cost_scan,
    .split = {[CS_SPLIT_PAIRS] = split_heads, [CS_SPLIT_CONTEXT] = refuse_tokens},
    .passes_features = cs_op_by_feature,
    .cut = cut_scan,
    .needs = {4, 4, 2, .heads = true},
    .check = check_scan,
    .make = make_scan,
    .is_runnable = cs_op_never_runs,
};
