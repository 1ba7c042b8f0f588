/* Kernels around experts in a training runtime: the data that they move in addition to the cost of
 * each operator alone (op-cost.h).
 *
 *   received rows        An all-to-all delivers rows in the order of the sending devices, but
 *                        products need them in the order of experts. If a device has several
 *                        experts, rows are therefore read and written once more, both when they
 *                        arrive and before they are returned, in forward and backward (Megatron
 *                        Core, transformer/moe/token_dispatcher.py, "Permutation 2" and
 *                        "Unpermutation 2").
 *   tokens sent once     (DeepEP, HybridEP) A device receives a token once, however many of its
 *                        experts the token is routed to: with p devices and k choices, a token goes
 *                        to a share 1 - (1 - 1/p)^k of the devices. The received tokens are read
 *                        and copied to the rows of the experts. Before they are returned, rows are
 *                        summed into as many tokens (transformer/moe/token_dispatcher.py,
 *                        _HybridEPManager).
 *
 * With a loop over experts, as in Megatron Core:
 *
 *   products             run on 4 streams, so one starts while others run: each takes a quarter of
 *                        the time from one kernel to the next (TransformerEngine,
 *                        transformer_engine/common/gemm/cublaslt_gemm.cu, num_streams), and so do
 *                        the kernels that cast their rows
 *   the host             waits for the number of rows of each expert before it starts the kernels
 *                        that follow, unless experts have a capacity (transformer/moe/experts.py,
 *                        TEGroupedMLP: tokens_per_expert.tolist())
 *   the router           and the preparation of the dispatch have 31 kernels together, or 17 if
 *                        tokens are sent once (Optimizing DeepSeek-V3 Training Performance on
 *                        NVIDIA GB200 NVL72, NVIDIA/Megatron-LM, docs/discussions, sections 2.1.4
 *                        and 2.2.1)
 *   biases               after the last product are added expert by expert, in float32
 *                        (transformer/moe/experts.py, TEGroupedMLP._apply_bias). Bytes per element
 *                        of the result, forward: the bias times the row's weight is written (4);
 *                        the rows and this product are read and their sum is written (2 + 4 + 4);
 *                        the experts' results are concatenated (4 + 4) and cast (4 + 2): 28.
 *                        Backward: the gradient is cast (2 + 4); it is cast back for the rows
 *                        (4 + 2), and these parts are concatenated (2 + 2); it is multiplied by the
 *                        weights and by the biases, and each of the two products is written, then
 *                        read for a sum (4 + 4 + 4 each): 40
 *
 * If each expert consists of separate modules (Megatron Core without --moe-grouped-gemm,
 * transformer/moe/experts.py, SequentialMLP), the host visits the modules of one expert after the
 * other, and their kernels run one after the other on one stream: a product, an activation and a
 * product per expert. The experts' results are concatenated (torch.cat), and in backward the
 * gradients of their rows: by one kernel, which reads and writes all rows.
 *
 * If experts are fused, everything between two of their products is computed in the kernel of the
 * first product, which writes the operands of the second product already cast. Activations and
 * gates then have no kernels, and casts of the result of an expert product only write. The same
 * applies to gradients in backward (TransformerEngine, transformer_engine/pytorch/ops/fused,
 * grouped MLP).
 */
#ifndef CS_WORKLOAD_EXPERT_KERNELS_H
#define CS_WORKLOAD_EXPERT_KERNELS_H

#include "sim/model/runtime-kernels.h"

/* Adjusts the cost of an expert-related operator for a batch; leaves other operators unchanged.
 * `net` is one device's part of the network; the experts are split over `places` devices. */
void cs_expert_kernels_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                            uint32_t places, uint32_t batch, cs_precision precision,
                            cs_op_cost *cost);

/* Whether the host waits for the row counts of a dispatch before it starts the experts' kernels. */
bool cs_expert_kernels_wait(const cs_runtime_kernels *kernels, const cs_op *dispatch);

#endif
