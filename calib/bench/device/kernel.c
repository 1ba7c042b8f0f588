#include "calib/bench/device/kernel.h"

enum { FLOAT = sizeof(float), INDEX = sizeof(int64_t) };

int64_t cs_kernel_targets_at(const cs_kernel *kernel)
{
    int64_t bytes = FLOAT * cs_kernel_in(kernel, 0)->elements * kernel->batch;
    return (bytes + INDEX - 1) / INDEX * INDEX;
}

/* Returns the bytes of the weights; with dropout also of the weights after dropout, and the
 * mask. */
static int64_t saved_of_attention(const cs_kernel *kernel)
{
    const cs_attention *a = &kernel->op->attention;
    const int64_t tokens = cs_kernel_out(kernel)->shape.dims[0];
    const int64_t element = cs_precision_bytes(kernel->precision);
    if (a->kernel != CS_ATTENTION_MATH)
        return 0;
    return kernel->batch * a->heads * tokens * tokens *
           (a->dropout > 0 ? 2 * element + 1 : element);
}

int64_t cs_kernel_saved(const cs_kernel *kernel)
{
    const cs_op *op = kernel->op;
    const cs_tensor_info *in = cs_kernel_in(kernel, 0), *out = cs_kernel_out(kernel);
    int64_t batch = kernel->batch, rows = cs_tensor_rows(in) * batch;
    int64_t element = cs_precision_bytes(kernel->precision);
    switch (op->kind) {
    case CS_OP_BATCH_NORM:
        return 2 * FLOAT * (int64_t)in->shape.dims[0];
    case CS_OP_LAYER_NORM:
        return 2 * FLOAT * rows;
    case CS_OP_RMS_NORM:
        return FLOAT * rows + element * in->elements * batch;
    case CS_OP_DROPOUT:
        return out->elements * batch;
    case CS_OP_MAX_POOL:
        return INDEX * out->elements * batch;
    case CS_OP_ATTENTION:
        return saved_of_attention(kernel);
    case CS_OP_CROSS_ENTROPY:
        return cs_kernel_targets_at(kernel) + INDEX * rows;
    case CS_OP_SQUARED_ERROR:
        return element * in->elements * batch;
    default:
        return 0;
    }
}
