#include "schedules/ties.h"

static uint32_t stage_of(const cs_plan *plan, uint32_t layer)
{
    uint32_t s = 0;
    while (layer >= plan->stages[s].end_layer)
        s++;
    return s;
}

static bool holds(const cs_plan *plan, uint32_t stage, uint32_t device)
{
    const cs_stage *of = &plan->stages[stage];
    for (uint32_t i = 0; i < of->n_devices; i++) {
        if (plan->devices[of->first_device + i] == device)
            return true;
    }
    return false;
}

/* Whether some device of a stage does not hold the other stage, or not at the same time. */
static bool crosses(const cs_plan *plan, uint32_t other, uint32_t stage)
{
    const cs_stage *of = &plan->stages[stage];
    if (plan->apart)
        return true;
    for (uint32_t i = 0; i < of->n_devices; i++) {
        if (!holds(plan, other, plan->devices[of->first_device + i]))
            return true;
    }
    return false;
}

static bool borrows(const cs_model *model, uint32_t layer, uint32_t lender)
{
    return model->layers[layer].tied_bytes > 0 && cs_model_lender(model, layer) == lender;
}

/* Whether the lender, or an earlier borrower, is in the same stage or on all of its devices. */
static bool has_copy(const cs_model *model, const cs_plan *plan, uint32_t layer)
{
    const uint32_t lender = cs_model_lender(model, layer), stage = stage_of(plan, layer);
    for (uint32_t i = lender; i < layer; i++) {
        const uint32_t other = stage_of(plan, i);
        if ((i == lender || borrows(model, i, lender)) &&
            (other == stage || !crosses(plan, other, stage)))
            return true;
    }
    return false;
}

/* Finds the first tie of layers [*layer, end). */
static bool next_before(const cs_model *model, const cs_plan *plan, uint32_t end, uint32_t *layer,
                        cs_tie *tie)
{
    for (uint32_t i = *layer; i < end; i++) {
        if (model->layers[i].tied_bytes == 0)
            continue;
        if (has_copy(model, plan, i))
            continue;
        const uint32_t lender = stage_of(plan, cs_model_lender(model, i));
        *tie = (cs_tie){lender, stage_of(plan, i), i, cs_model_tied_gradients(model, i)};
        *layer = i + 1;
        return true;
    }
    return false;
}

bool cs_tie_next(const cs_model *model, const cs_plan *plan, uint32_t end, uint32_t *layer,
                 cs_tie *tie)
{
    bool found;
    do
        found = next_before(model, plan, end, layer, tie);
    while (found && tie->gradient_bytes == 0); /* frozen weights need no sum */
    return found;
}

cs_status cs_ties_borrow(const cs_model *model, const cs_plan *plan, uint32_t stage,
                         cs_layer_sum *sum, cs_error *error)
{
    uint32_t layer = plan->stages[stage].first_layer;
    cs_tie tie;
    while (next_before(model, plan, plan->stages[stage].end_layer, &layer, &tie)) {
        CS_TRY(cs_model_borrow(model, tie.layer, sum, error));
    }
    return CS_OK;
}
