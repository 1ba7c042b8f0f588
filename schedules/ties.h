/* Weights shared by layers of several stages, such as an embedding that is also the last matrix.
 *
 * Stages on different devices each hold a copy, with its gradients and optimizer states. Before an
 * update one all-reduce sums the gradients of all copies, so that they stay equal (Megatron-LM's
 * embedding group): among the holders with the same number in each stage, or among all holders if
 * the stages have different numbers of them.
 */
#ifndef CS_SCHEDULES_TIES_H
#define CS_SCHEDULES_TIES_H

#include "schedules/plan/plan.h"

typedef struct cs_tie {
    uint32_t lender, borrower; /* stages; the lender has the earlier layer */
    uint32_t layer;            /* the borrower's first layer with these weights */
    int64_t gradient_bytes;
} cs_tie;

/* Finds the next tie of trained weights in layers [*layer, end) and advances *layer. Returns false
 * if there is none. A borrower whose devices all hold the lender or an earlier borrower shares that
 * copy, unless the plan keeps stages separate. */
bool cs_tie_next(const cs_model *model, const cs_plan *plan, uint32_t end, uint32_t *layer,
                 cs_tie *tie);

/* Adds the bytes of borrowed weights to a stage's sum. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_ties_borrow(const cs_model *model, const cs_plan *plan, uint32_t stage,
                                       cs_layer_sum *sum, cs_error *error);

#endif
