/* The cross entropy of logits whose columns are divided over places: each has the same rows.
 *
 * Three numbers per row go around (Shoeybi et al., Megatron-LM, 2019, section 3): the largest
 * logit, the sum of the exponentials, and the logit of the target, which one place has. */
#ifndef CS_CALIB_DIVIDED_LOSS_H
#define CS_CALIB_DIVIDED_LOSS_H

#include "calib/bench/wire/wire.h"

typedef struct cs_divided_loss {
    const cs_kernel *kernel; /* with the columns of the place */
    const cs_operands *operands;
    int64_t first, columns; /* the first of its columns, and all */
    float *rows;            /* room for three numbers per row */
} cs_divided_loss;

/* Numbers that `rows` needs. */
int64_t cs_divided_loss_rows(const cs_kernel *kernel);

/* Steps 0, 1 and 2: fills the numbers that go around next, returns them; bytes of one per row. Of
 * step 0 the largest over the places is wanted, else the sum. */
enum { CS_DIVIDED_LOSS_STEPS = 3 };
float *cs_divided_loss_step(const cs_divided_loss *loss, int step, int64_t *bytes);

/* Makes what the operator saves and the loss, when all three have gone around. A row whose target
 * is not among the place's columns has the target -1. */
void cs_divided_loss_finish(const cs_divided_loss *loss);

#endif
