/* Kernels: one pass over one operator of a network, on real memory.
 *
 * The operators are defined in sim/model/net.h; a kernel runs one for a batch of samples. Images
 * are laid out as (sample, channel, space...), sequences as (sample, token, feature). A view of
 * some features or of one token of its input has gaps between its rows, which linear layers and
 * attention can read; all other tensors are contiguous.
 *
 * `saved` is what an operator keeps for its backward besides tensors of the network (op-cost.h):
 * statistics of norms, positions of maxima, masks, attention weights, logarithms of probabilities.
 */
#ifndef CS_CALIB_KERNEL_H
#define CS_CALIB_KERNEL_H

#include "sim/model/op-shape.h"

/* A tensor in the device's memory: element (sample, row, column) is at data[sample * sample_stride
 * + row * row_stride + column]; rows are tokens. */
typedef struct cs_view {
    void *data;
    int64_t sample_stride, row_stride; /* elements */
} cs_view;

typedef struct cs_operands {
    cs_view in[CS_OP_INPUTS_MAX], out;
    cs_view grad_in[CS_OP_INPUTS_MAX]; /* data NULL: not wanted */
    cs_view grad_out;
    void *parameters, *grad_parameters; /* weights, then biases */
    void *saved, *workspace;
} cs_operands;

/* An operator, its network and its batch. Gradients of parameters are added to the existing values.
 * Operators with parameters but without a separate backward_weight (batch norm, learned tokens:
 * op-cost.h) compute these gradients in backward_input. */
typedef struct cs_kernel {
    const cs_net *net;
    const cs_op *op;
    uint32_t batch;
    cs_precision precision; /* precision of activations, parameters and gradients */
    /* First row, in the whole table, of this part's embedding or learned table; 0 for a whole
     * network; CPU only. */
    int64_t first;
} cs_kernel;

/* Returns the bytes that the operator saves: the same on every backend, called "kept extra" in
 * op-cost.h. Fused attention saves nothing, even if a backend does not fuse it but recomputes the
 * weights. */
int64_t cs_kernel_saved(const cs_kernel *kernel);

/* Returns the offset of the targets in the saved bytes of a cross entropy: after the logarithms of
 * the probabilities, which are float32. */
int64_t cs_kernel_targets_at(const cs_kernel *kernel);

static inline const cs_tensor_info *cs_kernel_in(const cs_kernel *kernel, uint32_t i)
{
    return cs_net_tensor(kernel->net, kernel->op->inputs[i]);
}

static inline const cs_tensor_info *cs_kernel_out(const cs_kernel *kernel)
{
    return cs_net_tensor(kernel->net, kernel->op->output);
}

/* Returns the columns, or the rows per sample, of a tensor. The rows of a sequence are its tokens;
 * features have one row. */
static inline int64_t cs_tensor_columns(const cs_tensor_info *tensor)
{
    return tensor->shape.dims[tensor->shape.rank - 1];
}

static inline int64_t cs_tensor_rows(const cs_tensor_info *tensor)
{
    return tensor->elements / cs_tensor_columns(tensor);
}

#endif
