/* What kernels around experts move in a training runtime, besides what each operator by itself has
 * to (op-cost.h):
 *
 *   rows that arrive     by an all-to-all they are in the order of the places that sent them, and
 *                        products want them in the order of experts: where a place has several
 *                        experts, rows are read and written once more, on the way back as well, and
 *                        both backward (Megatron Core, transformer/moe/token_dispatcher.py,
 *                        "Permutation 2" and "Unpermutation 2")
 *   tokens sent once     (DeepEP, HybridEP) arrive once at a place, whichever of its experts they
 *                        go to: of p places with k choices each token goes to a share
 *                        1 - (1 - 1/p)^k. What arrives is read, and copied to the rows of experts;
 *                        on the way back rows are added up to as many (transformer/moe/
 *                        token_dispatcher.py, _HybridEPManager)
 *
 * and with a loop over experts, as Megatron Core has it:
 *
 *   products             are on 4 streams, so that one starts while others run: each takes a
 *                        quarter of the time from one kernel to the next (TransformerEngine,
 *                        transformer_engine/common/gemm/cublaslt_gemm.cu, num_streams), as do what
 *                        casts their rows
 *   the host             waits for the number of rows of each expert before it starts what follows,
 *                        unless experts have a capacity (transformer/moe/experts.py, TEGroupedMLP:
 *                        tokens_per_expert.tolist())
 *   the router           with what prepares dispatching has 31 kernels, 17 where tokens are sent
 *                        once (Optimizing DeepSeek-V3 Training Performance on NVIDIA GB200 NVL72,
 *                        NVIDIA/Megatron-LM, docs/discussions, sections 2.1.4 and 2.2.1)
 *   biases               behind the last product are added expert by expert, in float32
 *                        (transformer/moe/experts.py, TEGroupedMLP._apply_bias). Bytes per element
 *                        of the result: the bias times the row's weight is written (4); rows are
 *                        read with it and their sum is written (2 + 4 + 4); the experts' parts are
 *                        put together (4 + 4) and cast (4 + 2): 28. Backward the gradient is cast
 *                        (2 + 4), cast back for the rows (4 + 2), whose parts are put together (2 +
 *                        2), and multiplied by the weights, and by the biases, each product being
 *                        written, and read for a sum (4 + 4 + 4 each): 40
 *
 * Where each expert is modules of its own (Megatron Core without --moe-grouped-gemm,
 * transformer/moe/experts.py, SequentialMLP), the host goes through those of one expert after the
 * other, and their kernels follow each other on one stream: a product, an activation and a product
 * for each. What they make is put together (torch.cat), and backward the gradients of their rows:
 * one kernel, which reads and writes all rows.
 *
 * Where experts are fused, what lies between two of their products is computed in the kernel of the
 * one before it, which writes operands of the next one as they are cast: activations and gates have
 * no kernels, and casts of what a product of experts has made write only. Backward the same holds
 * of gradients (TransformerEngine, transformer_engine/pytorch/ops/fused, grouped MLP).
 */
#ifndef CS_WORKLOAD_EXPERT_KERNELS_H
#define CS_WORKLOAD_EXPERT_KERNELS_H

#include "sim/model/runtime-kernels.h"

/* Changes what an operator of the network of one of `places` places, which divide the experts,
 * costs for a batch; other operators stay. */
void cs_expert_kernels_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                            uint32_t places, uint32_t batch, cs_precision precision,
                            cs_op_cost *cost);

/* Whether the host waits for what a dispatch sends before it starts the experts' kernels. */
bool cs_expert_kernels_wait(const cs_runtime_kernels *kernels, const cs_op *dispatch);

#endif
