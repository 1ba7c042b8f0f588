/* Kernels of a loss, the cross entropy of logits in a type of w bytes. Fused it reads the logits
 * and writes what op-cost.h says. Otherwise float32 is between its steps, and these are bytes for
 * each logit; values per row are left out, except for their kernels:
 *
 *   stepwise  Megatron-LM's (megatron/core/tensor_parallel/cross_entropy.py; in 2021 megatron/mpu/
 *             cross_entropy.py): forward a cast (w + 4), the maximum (4), the difference, its
 *             exponential (8 each), their sum (4), the quotient (8), and nine kernels for the
 *             target's logit, three for the loss; backward the product (8) and a cast (4 + w), and
 *             six kernels that subtract 1 from the target's
 *   jitted    its steps as --cross-entropy-loss-fusion compiles them (megatron/core/fusions/
 *             fused_cross_entropy.py): a cast with the maximum (w + 4), the exponential with its
 *             sum, the quotient (8 each); backward 4 + w. That each is one kernel is assumed
 *   eager     PyTorch's cross_entropy of logits in float32: a cast (w + 4), the logarithms (8);
 *             backward a fill of their gradients with zeros (4), the gradient of the softmax (12),
 *             a cast (4 + w) (aten/src/ATen/native/LossNLL.cpp; aten/src/ATen/native/cuda/
 *             SoftMax.cu)
 *   parallel  PyTorch's loss_parallel (torch/distributed/tensor/parallel/loss.py, _log_softmax,
 *             _nll_loss_and_log_softmax_backward): a cast (w + 4), the maximum (4), the difference,
 *             its exponential (8 each), their sum (4), the logarithms (8), and eight kernels for
 *             the target; backward a fill (4), an exponential (8), a sum (12), a product (8), a
 *             cast (4 + w), and seven kernels for the target
 *
 * Logits in float32 need no casts. */
#ifndef CS_WORKLOAD_LOSS_KERNELS_H
#define CS_WORKLOAD_LOSS_KERNELS_H

#include "sim/model/runtime-kernels.h"

/* Replaces the cost of a cross entropy by the cost of the runtime's kernels; other operators
 * stay. `precision` is the network's. */
void cs_loss_kernels_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                          uint32_t batch, cs_precision precision, cs_op_cost *cost);

#endif
