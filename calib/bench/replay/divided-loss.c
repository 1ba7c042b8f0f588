#include "calib/bench/replay/divided-loss.h"

#include <math.h>

static int64_t rows_of(const cs_kernel *kernel)
{
    return cs_tensor_rows(cs_kernel_in(kernel, 0)) * kernel->batch;
}

static int64_t columns_of(const cs_kernel *kernel)
{
    return cs_tensor_columns(cs_kernel_in(kernel, 0));
}

int64_t cs_divided_loss_rows(const cs_kernel *kernel)
{
    return CS_DIVIDED_LOSS_STEPS * rows_of(kernel);
}

/* Returns the column of a row's target on this place; -1 if another place has it. */
static int64_t target_of(const cs_divided_loss *loss, int64_t row)
{
    const int64_t at = row % loss->columns - loss->first;
    return at >= 0 && at < columns_of(loss->kernel) ? at : -1;
}

static float value_of(const cs_divided_loss *loss, int step, int64_t row)
{
    const int64_t columns = columns_of(loss->kernel), at = target_of(loss, row);
    const float *x = (const float *)loss->operands->in[0].data + row * columns;
    const float most = loss->rows[row]; /* from step 1 on */
    float value = step == 0 ? x[0] : 0;
    if (step == 2)
        return at >= 0 ? x[at] - most : 0;
    for (int64_t c = 0; c < columns; c++)
        value = step == 1 ? value + expf(x[c] - most) : fmaxf(value, x[c]);
    return value;
}

float *cs_divided_loss_step(const cs_divided_loss *loss, int step, int64_t *bytes)
{
    const int64_t rows = rows_of(loss->kernel);
    float *to = loss->rows + step * rows;
    for (int64_t r = 0; r < rows; r++)
        to[r] = value_of(loss, step, r);
    *bytes = rows * (int64_t)sizeof(*to);
    return to;
}

void cs_divided_loss_finish(const cs_divided_loss *loss)
{
    const int64_t rows = rows_of(loss->kernel), columns = columns_of(loss->kernel);
    float *logarithms = loss->operands->saved, sum = 0;
    int64_t *targets =
        (int64_t *)(void *)((char *)loss->operands->saved + cs_kernel_targets_at(loss->kernel));
    for (int64_t r = 0; r < rows; r++) {
        const float *x = (const float *)loss->operands->in[0].data + r * columns;
        const float total = logf(loss->rows[rows + r]), shift = loss->rows[r] + total;
        for (int64_t c = 0; c < columns; c++)
            logarithms[r * columns + c] = x[c] - shift;
        targets[r] = target_of(loss, r);
        sum -= loss->rows[2 * rows + r] - total;
    }
    *(float *)loss->operands->out.data = sum / (float)rows;
}
