/* The cross entropy of logits whose columns are divided over places, with the same rows on each.
 *
 * The places exchange three numbers per row (Shoeybi et al., Megatron-LM, 2019, section 3): the
 * largest logit, the sum of the exponentials, and the logit of the target, which one place has. */
#ifndef CS_CALIB_DIVIDED_LOSS_H
#define CS_CALIB_DIVIDED_LOSS_H

#include "calib/bench/wire/wire.h"

typedef struct cs_divided_loss {
    const cs_kernel *kernel; /* with the columns of this place */
    const cs_operands *operands;
    int64_t first, columns; /* first column of this place; columns of all places */
    float *rows;            /* three numbers per row */
} cs_divided_loss;

/* Returns the size of `rows`, in numbers. */
int64_t cs_divided_loss_rows(const cs_kernel *kernel);

/* Computes the numbers to exchange in step 0, 1 or 2 and returns them; `bytes` is their size. Step
 * 0 needs their maximum over the places, the others the sum. */
enum { CS_DIVIDED_LOSS_STEPS = 3 };
float *cs_divided_loss_step(const cs_divided_loss *loss, int step, int64_t *bytes);

/* Computes the loss and what the operator saves, after all three exchanges. The target of a row is
 * -1 if another place has its column. */
void cs_divided_loss_finish(const cs_divided_loss *loss);

#endif
