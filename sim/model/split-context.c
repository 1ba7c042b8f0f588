/* Context parallelism: the tokens of a sequence are divided, and all operators work on the place's
 * own, but for attention, in which all tokens meet. How they do is the split's context_method:
 *
 *   ring        Keys and values go around: in each of C steps a place computes with those of another one,
 *               while the next ones arrive (Liu et al., Ring attention, 2023, arXiv 2310.01889).
 *               Backward they come again, in the reverse order, and their gradients go with them.
 *   all-gather  Keys and values are gathered before, and not kept (Llama team, The Llama 3 herd of models,
 *               2024, section 3.3.2).
 *   all-to-all  Queries, keys and values of all tokens, of a part of the heads, and back behind the
 *               attention (Jacobs et al., DeepSpeed Ulysses, 2023, arXiv 2309.14509).
 *
 * Causal attention pairs a token with those before it. With the first two a place takes the chunks
 * c and
 * 2 C - 1 - c of 2 C of m = T / (2 C) tokens: of chunk j there are j m^2 + m (m + 1) / 2 pairs, of
 * the two together (2 C - 1) m^2 + m (m + 1), whichever c is. */
#include "sim/model/split-rules.h"

static void check_chunks(const cs_rule_query *q)
{
    const uint32_t tokens = cs_net_tensor(q->net, q->op->inputs[0])->shape.dims[0];
    if (tokens / q->size % 2 != 0)
        cs_rule_refuse(q, cs_divisors_next_to(tokens / 2, q->size),
                       "must divide the %u tokens of %s into two equal chunks per device (got %u)",
                       tokens, q->op->name, q->size);
}

static void rule_heads(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t tensor = q->split->grid.tensor;
    const uint32_t heads = q->op->attention.heads, keys = q->op->attention.kv_heads;
    cs_rule_divides(q, heads > tensor ? heads / tensor : 1, "heads that a device has");
    cs_rule_divides(q, keys > tensor ? keys / tensor : 1,
                    "heads of keys and values that a device has");
    cs_answer_alike(q, cs_divided(1), answer);
    answer->output = cs_divided(0);
}

static void rule_attention(const cs_rule_query *q, cs_rule_answer *answer)
{
    const bool is_divided = cs_is_divided_at(q->given[0], 0);
    if (!is_divided)
        return;
    if (q->split->context_method == CS_CONTEXT_ALL_TO_ALL) {
        rule_heads(q, answer);
        return;
    }
    if (q->op->attention.causal)
        check_chunks(q);
    cs_answer_alike(q, cs_divided(0), answer);
    answer->shares = q->size;
    answer->ring = q->split->context_method == CS_CONTEXT_RING;
    for (int i = 1; i <= 2 && !answer->ring; i++) {
        answer->inputs[i] = (cs_division){0};
        answer->partial[i] = true;
    }
}

/* A token needs what the one before it left. */
static void rule_sequence(const cs_rule_query *q, cs_rule_answer *answer)
{
    (void)answer;
    cs_split_refuse(q->report, "context",
                    "must be 1 with %s, which goes from token to token (got %u)", q->op->name,
                    q->size);
}

/* A mean over the place's own tokens. */
static void rule_loss(const cs_rule_query *q, cs_rule_answer *answer)
{
    answer->inputs[0] = q->given[0];
}

const cs_axis_rules cs_rules_context = {{
    [CS_OP_LINEAR] = cs_rule_follow,
    [CS_OP_LAYER_NORM] = cs_rule_follow,
    [CS_OP_RMS_NORM] = cs_rule_follow,
    [CS_OP_RELU] = cs_rule_follow,
    [CS_OP_GELU] = cs_rule_follow,
    [CS_OP_SILU] = cs_rule_follow,
    [CS_OP_TANH] = cs_rule_follow,
    [CS_OP_ROTARY] = cs_rule_follow,
    [CS_OP_MUL] = cs_rule_follow,
    [CS_OP_ADD] = cs_rule_follow,
    [CS_OP_DROPOUT] = cs_rule_follow,
    [CS_OP_SOFTMAX] = cs_rule_follow,
    [CS_OP_COPY] = cs_rule_follow,
    [CS_OP_ATTENTION] = rule_attention,
    [CS_OP_EMBEDDING] = cs_rule_follow,
    [CS_OP_CROSS_ENTROPY] = rule_loss,
    [CS_OP_SQUARED_ERROR] = rule_loss,
    [CS_OP_VIEW] = cs_rule_view,
    [CS_OP_HEAD_CONCAT] = cs_rule_follow,
    [CS_OP_TOP_K] = cs_rule_follow,
    [CS_OP_DISPATCH] = cs_rule_follow,
    [CS_OP_COMBINE] = cs_rule_follow,
    [CS_OP_GROUPED_LINEAR] = cs_rule_follow,
    [CS_OP_CAUSAL_CONV] = rule_sequence,
    [CS_OP_SCAN] = rule_sequence,
}};
