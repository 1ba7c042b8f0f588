/* Weights that layers of several stages share, such as an embedding and a last matrix that is the
 * same.
 *
 * Where the stages are on different devices each holds a copy of them, with its gradients and the
 * optimizer's states. Before an update the gradients of all copies are summed by one all-reduce, so
 * that the copies stay equal (Megatron-LM's embedding group): of the holders with the same number
 * in each stage, or of all of them together where there are not as many.
 */
#ifndef CS_SCHEDULES_TIES_H
#define CS_SCHEDULES_TIES_H

#include "schedules/plan/plan.h"

typedef struct cs_tie {
    uint32_t lender, borrower; /* stages; the lender has the layer that comes first */
    uint32_t layer;            /* of the borrower: the first that uses these weights */
    int64_t gradient_bytes;
} cs_tie;

/* The next tie of a plan, of weights that are trained, in layers [*layer, end); *layer becomes
 * where to go on. False when there is none. A borrower that has no other devices than the lender,
 * or than an earlier borrower, shares its copy, unless the plan's stages are held apart. */
bool cs_tie_next(const cs_model *model, const cs_plan *plan, uint32_t end, uint32_t *layer,
                 cs_tie *tie);

/* Adds to a stage's sum what it holds of other stages' weights. CS_OVERFLOW when it does not
 * fit. */
CS_MUST_CHECK cs_status cs_ties_borrow(const cs_model *model, const cs_plan *plan, uint32_t stage,
                                       cs_layer_sum *sum, cs_error *error);

#endif
