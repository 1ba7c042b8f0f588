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

/* Some device of the borrower does not hold the lender, or not at the same time. */
static bool crosses(const cs_plan *plan, uint32_t lender, uint32_t borrower)
{
    const cs_stage *of = &plan->stages[borrower];
    if (plan->apart)
        return true;
    for (uint32_t i = 0; i < of->n_devices; i++) {
        if (!holds(plan, lender, plan->devices[of->first_device + i]))
            return true;
    }
    return false;
}

/* A layer of the same stage before it uses the same weights. */
static bool borrowed_before(const cs_model *model, const cs_stage *stage, uint32_t layer)
{
    const uint32_t lender = cs_model_lender(model, layer);
    for (uint32_t i = stage->first_layer; i < layer; i++) {
        if (cs_model_lender(model, i) == lender)
            return true;
    }
    return false;
}

/* The first tie of layers [*layer, end). */
static bool next_before(const cs_model *model, const cs_plan *plan, uint32_t end, uint32_t *layer,
                        cs_tie *tie)
{
    for (uint32_t i = *layer; i < end; i++) {
        if (model->layers[i].tied_bytes == 0)
            continue;
        const uint32_t lender = stage_of(plan, cs_model_lender(model, i));
        const uint32_t borrower = stage_of(plan, i);
        if (lender == borrower || !crosses(plan, lender, borrower) ||
            borrowed_before(model, &plan->stages[borrower], i))
            continue;
        *tie = (cs_tie){lender, borrower, i, cs_model_tied_gradients(model, i)};
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
