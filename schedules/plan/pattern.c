#include "schedules/plan/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_pattern_finish(cs_pattern *pattern)
{
    if (!pattern)
        return;
    free(pattern->ops);
    *pattern = (cs_pattern){0};
}

cs_status cs_pattern_create(uint32_t n_stages, cs_pattern *pattern, cs_error *error)
{
    cs_pattern_op *ops = calloc((size_t)n_stages * CS_PATTERN_KINDS + 1, sizeof(*ops));
    if (!ops)
        return cs_error_no_memory(error);
    *pattern = (cs_pattern){.n_stages = n_stages, .ops = ops};
    return CS_OK;
}

cs_status cs_pattern_copy(const cs_pattern *pattern, cs_pattern *copy, cs_error *error)
{
    CS_TRY(cs_pattern_create(pattern->n_stages, copy, error));
    copy->period = pattern->period;
    memcpy(copy->ops, pattern->ops,
           (size_t)pattern->n_stages * CS_PATTERN_KINDS * sizeof(*copy->ops));
    return CS_OK;
}

bool cs_pattern_has(const cs_plan *plan, uint32_t stage, cs_pattern_kind kind)
{
    if (kind == CS_PATTERN_FORWARD || kind == CS_PATTERN_BACKWARD)
        return true;
    return stage + 1 < plan->n_stages &&
           cs_plan_device(plan, stage) != cs_plan_device(plan, stage + 1);
}

cs_time cs_pattern_duration(const cs_chain *chain, const cs_plan *plan, uint32_t stage,
                            cs_pattern_kind kind)
{
    const cs_stage *at = &plan->stages[stage];
    if (!cs_pattern_has(plan, stage, kind))
        return 0;
    if (kind == CS_PATTERN_FORWARD)
        return cs_chain_forward(chain, at->first_layer, at->end_layer);
    if (kind == CS_PATTERN_BACKWARD)
        return cs_chain_backward(chain, at->first_layer, at->end_layer);
    return chain->message[at->end_layer];
}

char *cs_pattern_name(uint32_t stage, cs_pattern_kind kind, char text[CS_PATTERN_NAME_BYTES])
{
    switch (kind) {
    case CS_PATTERN_FORWARD:
        snprintf(text, CS_PATTERN_NAME_BYTES, "forward of stage %u", stage);
        break;
    case CS_PATTERN_BACKWARD:
        snprintf(text, CS_PATTERN_NAME_BYTES, "backward of stage %u", stage);
        break;
    case CS_PATTERN_SEND:
        snprintf(text, CS_PATTERN_NAME_BYTES, "message from stage %u to stage %u", stage,
                 stage + 1);
        break;
    default:
        snprintf(text, CS_PATTERN_NAME_BYTES, "message from stage %u to stage %u", stage + 1,
                 stage);
        break;
    }
    return text;
}

int64_t cs_pattern_active(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                          uint32_t stage)
{
    const cs_pattern_op *ops = &pattern->ops[(size_t)stage * CS_PATTERN_KINDS];
    const cs_pattern_op *forward = &ops[CS_PATTERN_FORWARD], *backward = &ops[CS_PATTERN_BACKWARD];
    /* time from the start of the forward to the end of the backward, minus the difference of their
     * shifts; > -period */
    cs_time more = backward->start - forward->start +
                   cs_pattern_duration(chain, plan, stage, CS_PATTERN_BACKWARD);
    int64_t periods = more / pattern->period + (more % pattern->period > 0);
    int64_t active = backward->shift - forward->shift + periods;
    return active > 1 ? active : 1;
}
