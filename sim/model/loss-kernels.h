/* Kernels of a loss: the cross entropy of logits in a type of w bytes.
 *
 * A fused loss reads the logits and writes the tensors that op-cost.h states. Otherwise, its steps
 * pass on float32 values. Numbers in parentheses are bytes per logit; values per row are not
 * counted as bytes, but their kernels are counted:
 *
 *   stepwise  Megatron-LM (megatron/core/tensor_parallel/cross_entropy.py; in 2021 megatron/mpu/
 *             cross_entropy.py). Forward: a cast (w + 4), the maximum (4), the difference and its
 *             exponential (8 each), their sum (4), the quotient (8), nine kernels for the target's
 *             logit and three for the loss. Backward: the product (8), a cast (4 + w), and six
 *             kernels that subtract 1 at the target
 *   jitted    the same steps as compiled by --cross-entropy-loss-fusion (megatron/core/fusions/
 *             fused_cross_entropy.py). Forward: a cast with the maximum (w + 4), the exponential
 *             with its sum, the quotient (8 each). Backward: 4 + w. Each step is assumed to be one
 *             kernel
 *   eager     PyTorch's cross_entropy of logits in float32. Forward: a cast (w + 4), the logarithms
 *             (8). Backward: filling their gradients with zeros (4), the gradient of the softmax
 *             (12), a cast (4 + w) (aten/src/ATen/native/LossNLL.cpp; aten/src/ATen/native/cuda/
 *             SoftMax.cu)
 *   parallel  PyTorch's loss_parallel (torch/distributed/tensor/parallel/loss.py, _log_softmax,
 *             _nll_loss_and_log_softmax_backward). Forward: a cast (w + 4), the maximum (4), the
 *             difference and its exponential (8 each), their sum (4), the logarithms (8), and eight
 *             kernels for the target. Backward: a fill (4), an exponential (8), a sum (12), a
 *             product (8), a cast (4 + w), and seven kernels for the target
 *
 * Logits in float32 need no casts. */
#ifndef CS_WORKLOAD_LOSS_KERNELS_H
#define CS_WORKLOAD_LOSS_KERNELS_H

#include "sim/model/runtime-kernels.h"

/* Replaces the cost of a cross entropy with the cost of the runtime's kernels; leaves other
 * operators unchanged. `precision` is the network's. */
void cs_loss_kernels_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                          uint32_t batch, cs_precision precision, cs_op_cost *cost);

#endif
