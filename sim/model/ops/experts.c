/* Routing in a mixture of experts: the choice of experts, and the transfer of rows to the experts
 * and back. The products of the experts are grouped linear layers (products.c).
 *
 * With expert parallelism the experts are split over the axis EXPERT, and the features within an
 * expert over EXPERT_TENSOR, as a pair of linear layers is over TENSOR. A device routes its own
 * tokens: an all-to-all sends the rows to the devices of their experts, and another all-to-all
 * brings the results back (Lepikhin et al., GShard, ICLR 2021; Megatron Core's all-to-all
 * dispatcher). If several devices share an expert, they first gather the rows among themselves, and
 * in the end scatter the sums. The gradients of experts are summed over EXPERT_DATA, the devices
 * with the same experts. */
#include "sim/model/ops/operator.h"

#include <math.h>
#include <stdio.h>

/* ---- builders ---- */

cs_tensor cs_net_top_k(cs_net *net, const char *name, cs_tensor logits, uint32_t k)
{
    char text[96];
    if (!cs_net_usable(net, &logits, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_TOP_K, &logits, 1);
    cs_shape shape = cs_net_tensor(net, logits)->shape;
    op.experts = shape.dims[shape.rank - 1];
    op.top_k = k;
    if (k < 1 || k > op.experts) {
        snprintf(text, sizeof(text), "must choose from 1 to %u of its experts (got %u)", op.experts,
                 k);
        cs_net_fail_at(net, name, text);
        return CS_NO_TENSOR;
    }
    shape.dims[shape.rank - 1] = k;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_dispatch(cs_net *net, const char *name, cs_tensor x, cs_tensor routing,
                          double capacity)
{
    const cs_tensor inputs[] = {x, routing};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    const cs_op *router = &net->ops[cs_net_last_writer(net, routing)];
    cs_op op = cs_net_op(CS_OP_DISPATCH, inputs, 2);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    const double routed = (double)shape.dims[0] * router->top_k;
    const double rows =
        capacity > 0 ? ceil(capacity * routed / router->experts) * router->experts : routed;
    op.experts = router->experts;
    op.top_k = router->top_k;
    op.capacity = capacity;
    if (rows > UINT32_MAX) {
        cs_net_fail_at(net, name, "makes more than 2^32 rows");
        return CS_NO_TENSOR;
    }
    shape.dims[0] = (uint32_t)rows;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_combine(cs_net *net, const char *name, cs_tensor rows, cs_tensor routing)
{
    const cs_tensor inputs[] = {rows, routing};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    const cs_op *router = &net->ops[cs_net_last_writer(net, routing)];
    cs_op op = cs_net_op(CS_OP_COMBINE, inputs, 2);
    op.experts = router->experts;
    op.top_k = router->top_k;
    cs_shape shape = {
        2, {cs_net_tensor(net, routing)->shape.dims[0], cs_net_tensor(net, rows)->shape.dims[1]}};
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_top_k(cs_op_making *m)
{
    return cs_net_top_k(m->net, m->name, m->in[0], m->entry->top_k);
}

static cs_tensor make_dispatch(cs_op_making *m)
{
    return cs_net_dispatch(m->net, m->name, m->in[0], m->in[1], m->entry->capacity);
}

static cs_tensor make_combine(cs_op_making *m)
{
    return cs_net_combine(m->net, m->name, m->in[0], m->in[1]);
}

/* ---- cost ---- */

/* Computes the cost of a softmax of the logits in float32, the choice of its largest k values with
 * their indices (a comparison per logit), and the division of these values by their sum. */
static void cost_top_k(const cs_cost_query *s, cs_op_cost *cost)
{
    const double probabilities = CS_FLOAT_BYTES * s->x;
    const double chosen = (CS_INDEX_BYTES + s->width) * s->y;
    cost->forward =
        (cs_pass_cost){6 * s->x + 2 * s->y, s->width * s->x + 2 * probabilities + chosen, 2};
    cost->backward_input =
        (cs_pass_cost){4 * s->x + 2 * s->y, probabilities + s->width * s->x + chosen, 2};
    cost->extra_kept_bytes = (int64_t)(probabilities + CS_INDEX_BYTES * s->y);
}

/* Computes the cost of copying rows to their experts. The indices of the rows are sorted by expert
 * (read, written) and say which token a row is a copy of (read). A token's gradient is the sum of
 * its rows' gradients. */
static void cost_dispatch(const cs_cost_query *s, cs_op_cost *cost)
{
    const double numbers = CS_INDEX_BYTES * s->batch * cs_tensor_rows(s->out);
    const double moved = s->width * (s->x + s->y);
    cost->forward = (cs_pass_cost){0, moved + 3 * numbers, 2};
    cost->backward_input = (cs_pass_cost){s->y, moved + numbers, 1};
    cost->extra_kept_bytes = (int64_t)numbers;
}

/* Computes the cost of the sum of weighted rows. In backward, the gradient of a row is the gradient
 * of its token times the row's weight, and the gradient of the weight is the product of the row and
 * the token's gradient. The indices are those made by the dispatch. */
static void cost_combine(const cs_cost_query *s, cs_op_cost *cost)
{
    const double weights = s->batch * (double)cs_net_tensor(s->net, s->op->inputs[1])->elements;
    const double numbers = CS_INDEX_BYTES * s->batch * cs_tensor_rows(s->in);
    cost->forward = (cs_pass_cost){2 * s->x, s->width * (s->x + s->y + weights) + numbers, 1};
    cost->backward_input =
        (cs_pass_cost){3 * s->x, s->width * (2 * s->x + s->y + 2 * weights) + numbers, 1};
    cost->keeps_input = true;
}

/* ---- split ---- */

/* Requires split tokens: each device routes its own tokens, because the experts' axes cross the
 * tensor axis. */
static void split_tensor(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (!cs_has_tokens(q, 0))
        cs_split_refuse(
            q->report, "sequence_parallel",
            "must be true with \"tensor\" %u and the experts of %s: a device routes its own "
            "tokens (got false)",
            q->size, q->op->name);
    cs_rule_follow(q, answer);
}

/* Splits the experts, and sets the load of the busiest device. With a capacity all experts compute
 * equally many rows, whatever the router draws. `rows` counts the rows that a group of devices
 * exchanges: the tokens of each device's samples, times k. */
static void split_experts(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_grid *grid = &q->split->grid;
    const cs_routing *routing = &q->split->routing;
    const bool even = routing->router != CS_ROUTER_GIVEN && q->op->capacity > 0;
    const uint32_t tokens = cs_net_tensor(q->net, q->op->inputs[0])->shape.dims[0];
    const uint32_t samples = q->split->samples > 0 ? q->split->samples : 1;
    const double rows =
        (double)samples * tokens * q->op->top_k * q->size / grid->tensor / grid->context;
    cs_rule_divides(q, q->op->experts, "experts");
    if (q->report->status != CS_OK)
        return;
    const double load =
        even ? 1 : cs_routing_load(routing, q->op->name, q->op->experts, q->size, rows);
    if (load < 0)
        q->report->status = cs_error_no_memory(q->report->error);
    answer->output.part = CS_ROUTED;
    answer->output.load = load;
}

const cs_operator cs_operator_top_k = {
    .name = "top_k",
    .group = "elementwise",
    .cost = cost_top_k,
    .split = {[CS_SPLIT_PAIRS] = cs_rule_follow, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .needs = {1, 1, 2},
    .make = make_top_k,
    .is_runnable = cs_op_never_runs,
};

const cs_operator cs_operator_dispatch = {
    .name = "dispatch",
    .group = "embedding",
    .no_gradient_of = 1 << 1, /* input 1 only says where the rows go; its weights are not read */
    .cost = cost_dispatch,
    .split = {[CS_SPLIT_PAIRS] = split_tensor,
              [CS_SPLIT_CONTEXT] = cs_rule_follow,
              [CS_SPLIT_EXPERT] = split_experts},
    .needs = {2, 2, 2, .routed = true},
    .make = make_dispatch,
    .is_runnable = cs_op_never_runs,
};

/* Has no rule for EXPERT: its rows come back, so that each device makes its own rows again. */
const cs_operator cs_operator_combine = {
    .name = "combine",
    .group = "embedding",
    .cost = cost_combine,
    .split = {[CS_SPLIT_PAIRS] = cs_rule_follow, [CS_SPLIT_CONTEXT] = cs_rule_follow},
    .needs = {2, 2, 2, .routed = true},
    .make = make_combine,
    .is_runnable = cs_op_never_runs,
};
