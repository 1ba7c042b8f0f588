#include "sim/workload/split-rules.h"

#include <stdio.h>

uint32_t cs_features_dim(const cs_net *net, cs_tensor tensor)
{
    return cs_net_tensor(net, tensor)->shape.rank - 1;
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

char *cs_nearest_text(uint32_t below, uint32_t above, char *text, size_t size)
{
    if (above != below)
        snprintf(text, size, "%u or %u would", below, above);
    else
        snprintf(text, size, "%u would", below);
    return text;
}

char *cs_divisors_text(uint32_t count, uint32_t got, char *text, size_t size)
{
    uint32_t below = got < count ? got : count, above = got;
    while (below > 1 && count % below != 0)
        below--;
    while (above < count && count % above != 0)
        above++;
    return cs_nearest_text(below, above <= count ? above : below, text, size);
}

void cs_split_refuse(cs_split_report *report, const char *key, const char *format, ...)
{
    char text[512];
    const cs_json_place at = {.up = report->at, .key = key};
    va_list arguments;
    if (report->status != CS_OK)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    report->status = report->at ? cs_json_invalid(&at, report->error, "%s", text)
                                : cs_error_add(report->error, CS_INVALID, "%s: %s %s",
                                               report->net->name, key, text);
}

void cs_rule_divides(const cs_rule_query *query, uint32_t count, const char *of_what)
{
    char would[CS_DIVISORS_TEXT_BYTES];
    if (count % query->size != 0)
        cs_split_refuse(query->report, cs_split_key(query->split, query->axis),
                        "must divide the %u %s of %s (got %u): %s", count, of_what, query->op->name,
                        query->size, cs_divisors_text(count, query->size, would, sizeof(would)));
}
