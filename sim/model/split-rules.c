#include "sim/model/ops/operator.h"

#include <stdio.h>
#include <string.h>

uint32_t cs_features_dim(const cs_net *net, cs_tensor tensor)
{
    return cs_net_tensor(net, tensor)->shape.rank - 1;
}

cs_sliding cs_op_sliding(const cs_net *net, const cs_op *op, uint32_t dim)
{
    return (cs_sliding){.in = cs_net_tensor(net, op->inputs[0])->shape.dims[dim],
                        .out = cs_net_tensor(net, op->output)->shape.dims[dim],
                        .kernel = op->kernel.size[dim - 1],
                        .stride = op->stride.size[dim - 1],
                        .pad = op->pad.size[dim - 1],
                        .dilation = op->dilation.size[dim - 1]};
}

bool cs_is_divided_at(cs_division division, uint32_t dim)
{
    return division.part == CS_DIVIDED && division.dim == dim;
}

void cs_answer_alike(const cs_rule_query *query, cs_division division, cs_rule_answer *answer)
{
    for (uint32_t i = 0; i < query->op->n_inputs; i++)
        answer->inputs[i] = division;
    answer->made = answer->output = division;
}

void cs_rule_follow(const cs_rule_query *query, cs_rule_answer *answer)
{
    cs_division division = query->given[0];
    for (uint32_t i = 1; i < query->op->n_inputs && division.part == CS_WHOLE; i++)
        division = query->given[i];
    cs_answer_alike(query, division, answer);
    answer->shared = division.part == CS_DIVIDED;
}

/* ---- space ---- */

uint32_t cs_space_dim(cs_layout_axis axis)
{
    return 1 + (uint32_t)(axis - CS_LAYOUT_SPACE_X);
}

uint32_t cs_space_end(const cs_net *net, const char *until)
{
    for (uint32_t p = 0; until && p < net->n_ops; p++)
        if (strcmp(net->ops[p].name, until) == 0 ||
            strcmp(net->blocks[net->ops[p].block], until) == 0)
            return p;
    return net->n_ops;
}

bool cs_has_rows(const cs_rule_query *q)
{
    return cs_is_divided_at(q->given[0], cs_space_dim(q->axis)) &&
           (uint32_t)(q->op - q->net->ops) < cs_space_end(q->net, q->split->space_until);
}

void cs_rule_rows(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (cs_has_rows(q))
        cs_answer_alike(q, q->given[0], answer);
}

/* ---- pairs of linear layers ---- */

cs_division cs_outside_pairs(const cs_rule_query *q, cs_tensor tensor)
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

bool cs_has_features(const cs_rule_query *q, uint32_t input)
{
    return cs_is_divided_at(q->given[input], cs_features_dim(q->net, q->op->inputs[input]));
}

bool cs_has_tokens(const cs_rule_query *q, uint32_t input)
{
    return cs_features_dim(q->net, q->op->inputs[input]) > 0 &&
           cs_is_divided_at(q->given[input], 0);
}

bool cs_feeds_pairs(const cs_rule_query *q, cs_tensor tensor)
{
    const uint32_t *at = &q->links->first_reader[tensor];
    bool feeds = at[0] < at[1];
    for (uint32_t r = at[0]; feeds && r < at[1]; r++) {
        const cs_op *reader = &q->net->ops[q->links->readers[r]];
        const cs_operator *kind = cs_operator_of(reader);
        if (kind->takes_parts)
            continue;
        feeds = ((kind->passes_features && kind->passes_features(q, reader)) ||
                 (kind->joins_parts && kind->joins_parts(q, reader))) &&
                cs_feeds_pairs(q, reader->output);
    }
    return feeds;
}

const cs_op *cs_attention_after(const cs_rule_query *q, cs_tensor tensor, bool *keys)
{
    const uint32_t *at = &q->links->first_reader[tensor];
    const cs_op *found = NULL;
    for (uint32_t r = at[0]; !found && r < at[1]; r++) {
        const cs_op *reader = &q->net->ops[q->links->readers[r]];
        const cs_operator *kind = cs_operator_of(reader);
        *keys = reader->inputs[0] != tensor;
        if (reader->kind == CS_OP_ATTENTION)
            return reader;
        if (reader->n_inputs == 1 && kind->passes_features && kind->passes_features(q, reader))
            found = cs_attention_after(q, reader->output, keys);
    }
    return found;
}

uint32_t cs_split_copies(const cs_net *net, uint32_t tensor)
{
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const uint32_t heads = net->ops[p].attention.kv_heads;
        if (heads > 0 && tensor > heads)
            return tensor / heads;
    }
    return 1;
}

bool cs_feeds_loss(const cs_rule_query *q, cs_tensor tensor)
{
    const uint32_t *at = &q->links->first_reader[tensor];
    bool only_loss = at[0] < at[1];
    for (uint32_t r = at[0]; only_loss && r < at[1]; r++)
        only_loss = q->net->ops[q->links->readers[r]].kind == CS_OP_CROSS_ENTROPY;
    return only_loss;
}

static int64_t row_count(const cs_net *local, const cs_op *op)
{
    return (int64_t)cs_tensor_rows(cs_net_tensor(local, op->inputs[0]));
}

void cs_add_row_sum(cs_rule_answer *answer, bool backward)
{
    answer->inner[answer->n_inner++] =
        (cs_inner_exchange){CS_EXCHANGE_ALL_REDUCE, backward, CS_ELEMENT_FLOAT32, row_count};
}

static bool divides_heads(const cs_attention *a, uint32_t places)
{
    return a->heads % places == 0 && (a->kv_heads % places == 0 || places % a->kv_heads == 0);
}

void cs_rule_check_heads(const cs_rule_query *q, const cs_op *attention)
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

/* ---- reports ---- */

static const char *split_key(const cs_split *split, cs_layout_axis axis)
{
    switch (axis) {
    case CS_LAYOUT_CONTEXT:
        return "context";
    case CS_LAYOUT_EXPERT:
        return "expert";
    case CS_LAYOUT_EXPERT_TENSOR:
        return "expert_tensor";
    case CS_LAYOUT_TENSOR:
        return split->tensor_method == CS_TENSOR_FILTER    ? "filter"
               : split->tensor_method == CS_TENSOR_CHANNEL ? "channel"
                                                           : "tensor";
    default:
        return "space";
    }
}

char *cs_nearest_text(cs_nearest nearest, char *text, size_t size)
{
    if (nearest.above > 0)
        snprintf(text, size, "%u or %u would", nearest.below, nearest.above);
    else
        snprintf(text, size, "%u would", nearest.below);
    return text;
}

cs_nearest cs_divisors_next_to(uint32_t count, uint32_t got)
{
    uint32_t below = got < count ? got : count, above = got;
    while (below > 1 && count % below != 0)
        below--;
    while (above < count && count % above != 0)
        above++;
    return (cs_nearest){.below = below, .above = above <= count && above != below ? above : 0};
}

static void refuse(cs_split_report *report, const char *key, const char *format, va_list arguments)
{
    report->status = CS_INVALID;
    report->key = key;
    vsnprintf(report->text, sizeof(report->text), format, arguments);
}

void cs_split_refuse(cs_split_report *report, const char *key, const char *format, ...)
{
    va_list arguments;
    if (report->status != CS_OK)
        return;
    va_start(arguments, format);
    refuse(report, key, format, arguments);
    va_end(arguments);
}

static void refuse_size(cs_split_report *report, const char *key, cs_layout_axis axis,
                        cs_nearest nearest, const char *format, va_list arguments)
{
    if (report->status != CS_OK)
        return;
    refuse(report, key, format, arguments);
    report->sized = true;
    report->axis = axis;
    report->nearest = nearest;
}

void cs_split_refuse_size(cs_split_report *report, const char *key, cs_layout_axis axis,
                          cs_nearest nearest, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse_size(report, key, axis, nearest, format, arguments);
    va_end(arguments);
}

void cs_rule_refuse(const cs_rule_query *query, cs_nearest nearest, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse_size(query->report, split_key(query->split, query->axis), query->axis, nearest, format,
                arguments);
    va_end(arguments);
}

void cs_rule_divides(const cs_rule_query *query, uint32_t count, const char *of_what)
{
    if (count % query->size != 0)
        cs_rule_refuse(query, cs_divisors_next_to(count, query->size),
                       "must divide the %u %s of %s (got %u)", count, of_what, query->op->name,
                       query->size);
}
