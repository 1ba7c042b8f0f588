/* What a backend computes: one pass over one operator of a network, on real memory.
 *
 * The operators are those of sim/model/net.h, for a batch of samples. Images lie as (sample,
 * channel, space...), sequences as (sample, token, feature). A view that takes some of the features
 * or one token of its input leaves gaps between its rows, which linear layers and attention can
 * read; everything else is contiguous.
 *
 * What an operator keeps for its backward besides tensors of the network is `saved` (op-cost.h says
 * what): statistics of norms, the positions of maxima, masks, attention's weights, logarithms of
 * probabilities.
 */
#ifndef CS_CALIB_KERNEL_H
#define CS_CALIB_KERNEL_H

#include "sim/model/op-shape.h"

/* A tensor in the device's memory: element (sample, row, column) is at
 * data[sample * sample_stride + row * row_stride + column], rows being tokens. */
typedef struct cs_view {
    void *data;
    int64_t sample_stride, row_stride; /* elements */
} cs_view;

typedef struct cs_operands {
    cs_view in[CS_OP_INPUTS_MAX], out;
    cs_view grad_in[CS_OP_INPUTS_MAX]; /* data NULL: not asked for */
    cs_view grad_out;
    void *parameters, *grad_parameters; /* weights, then biases */
    void *saved, *workspace;
} cs_operands;

/* An operator as a kernel sees it. Gradients of parameters are added to what is there; an operator
 * with parameters that has no backward_weight of its own (op-cost.h: batch norm, a learned token)
 * makes them in its backward_input. */
typedef struct cs_kernel {
    const cs_net *net;
    const cs_op *op;
    uint32_t batch;
    cs_precision precision; /* of activations, parameters and gradients */
    int64_t
        first; /* of an operator of a part of a network: the first row of an embedding's table that
                    * it has, the first row of a learned table that it adds; CPU only */
} cs_kernel;

/* Bytes that the operator saves: the same on every backend, and what op-cost.h calls kept extra.
 * Attention that is fused saves nothing, whether a backend really fuses it or computes its weights
 * again. */
int64_t cs_kernel_saved(const cs_kernel *kernel);

/* Where the targets of a cross entropy lie in what it saves: behind the logarithms of the
 * probabilities, which are float32. */
int64_t cs_kernel_targets_at(const cs_kernel *kernel);

static inline const cs_tensor_info *cs_kernel_in(const cs_kernel *kernel, uint32_t i)
{
    return cs_net_tensor(kernel->net, kernel->op->inputs[i]);
}

static inline const cs_tensor_info *cs_kernel_out(const cs_kernel *kernel)
{
    return cs_net_tensor(kernel->net, kernel->op->output);
}

/* Rows of a tensor per sample, and columns: a sequence has its tokens, features one row. */
static inline int64_t cs_tensor_columns(const cs_tensor_info *tensor)
{
    return tensor->shape.dims[tensor->shape.rank - 1];
}

static inline int64_t cs_tensor_rows(const cs_tensor_info *tensor)
{
    return tensor->elements / cs_tensor_columns(tensor);
}

#endif
