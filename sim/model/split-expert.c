/* Expert parallelism: the experts of a mixture are divided over the axis EXPERT, and the features
 * within one over EXPERT_TENSOR, as a pair of linear layers is over TENSOR (split-tensor.c). A
 * place routes its own tokens: an all-to-all brings the rows to the places of their experts, and
 * another one what these make of them back (Lepikhin et al., GShard, ICLR 2021; Megatron Core's
 * all-to-all dispatcher). With several places per expert the rows are gathered among them before,
 * and the sums are scattered behind.
 *
 * The gradients of experts are summed over EXPERT_DATA, the places with the same ones. */
#include "sim/model/split-rules.h"

/* Rows of a group of places that exchange theirs: the tokens that each has of its samples, times k.
 * */
static double rows_of_group(const cs_rule_query *q)
{
    const cs_grid *grid = &q->split->grid;
    const uint32_t tokens = cs_net_tensor(q->net, q->op->inputs[0])->shape.dims[0];
    const uint32_t samples = q->split->samples > 0 ? q->split->samples : 1;
    return (double)samples * tokens * q->op->top_k * q->size / grid->tensor / grid->context;
}

/* The rows of a mixture stay where they are, but for these two. With a capacity all experts compute
 * as many rows, whatever is drawn. */
static void rule_dispatch(const cs_rule_query *q, cs_rule_answer *answer)
{
    const cs_routing *routing = &q->split->routing;
    const bool even = routing->router != CS_ROUTER_GIVEN && q->op->capacity > 0;
    cs_rule_divides(q, q->op->experts, "experts");
    if (q->report->status != CS_OK)
        return;
    const double load =
        even ? 1 : cs_routing_load(routing, q->op->name, q->op->experts, q->size, rows_of_group(q));
    if (load < 0)
        q->report->status = cs_error_no_memory(q->report->error);
    answer->output.part = CS_ROUTED;
    answer->output.load = load;
}

static void rule_combine(const cs_rule_query *q, cs_rule_answer *answer)
{
    (void)q;
    (void)answer; /* own rows again */
}

const cs_axis_rules cs_rules_expert = {{
    [CS_OP_DISPATCH] = rule_dispatch,
    [CS_OP_GROUPED_LINEAR] = cs_rule_follow,
    [CS_OP_RELU] = cs_rule_follow,
    [CS_OP_GELU] = cs_rule_follow,
    [CS_OP_SILU] = cs_rule_follow,
    [CS_OP_TANH] = cs_rule_follow,
    [CS_OP_MUL] = cs_rule_follow,
    [CS_OP_ADD] = cs_rule_follow,
    [CS_OP_DROPOUT] = cs_rule_follow,
    [CS_OP_COMBINE] = rule_combine,
}};

/* ---- within an expert ---- */

static void rule_grouped_linear(const cs_rule_query *q, cs_rule_answer *answer)
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

const cs_axis_rules cs_rules_expert_tensor = {{
    [CS_OP_GROUPED_LINEAR] = rule_grouped_linear,
    [CS_OP_RELU] = cs_rule_follow,
    [CS_OP_GELU] = cs_rule_follow,
    [CS_OP_SILU] = cs_rule_follow,
    [CS_OP_TANH] = cs_rule_follow,
    [CS_OP_MUL] = cs_rule_follow,
    [CS_OP_ADD] = cs_rule_follow,
    [CS_OP_DROPOUT] = cs_rule_follow,
}};
