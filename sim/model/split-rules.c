#include "sim/model/split-rules.h"

#include <stdio.h>

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

/* Views of features keep the dimensions; (channels, space) become tokens of so many features, or
 * features in the same order, of which the channels are the outer ones. */
void cs_rule_view(const cs_rule_query *query, cs_rule_answer *answer)
{
    const cs_tensor_info *in = cs_net_tensor(query->net, query->op->inputs[0]);
    const cs_tensor_info *out = cs_net_tensor(query->net, query->op->output);
    const cs_division given = query->given[0];
    const bool one_token = in->shape.rank == 2 && out->shape.rank == 1 &&
                           out->elements == in->shape.dims[1] && in->elements != out->elements;
    const bool features =
        in->shape.rank == 2 && out->shape.rank == 2 && in->shape.dims[0] == out->shape.dims[0];
    if (given.part != CS_DIVIDED)
        return;
    if (features) {
        cs_answer_alike(query, given, answer);
    } else if (one_token ? given.dim == 1 : given.dim == 0) {
        answer->inputs[0] = answer->made = given;
        answer->made.dim = (uint8_t)(!one_token && out->shape.rank == 2);
        answer->output = answer->made;
    }
}

/* ---- reports ---- */

const char *cs_split_key(const cs_split *split, cs_layout_axis axis)
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
    refuse_size(query->report, cs_split_key(query->split, query->axis), query->axis, nearest,
                format, arguments);
    va_end(arguments);
}

void cs_rule_divides(const cs_rule_query *query, uint32_t count, const char *of_what)
{
    if (count % query->size != 0)
        cs_rule_refuse(query, cs_divisors_next_to(count, query->size),
                       "must divide the %u %s of %s (got %u)", count, of_what, query->op->name,
                       query->size);
}
