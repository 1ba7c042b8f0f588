/* How long a kernel of fused attention takes with other heads and other sequences than those of
 * which its rate is stated, which are heads of 128 features and 4,096 causal tokens.
 *
 *   heads     of a pair of a query and a key, the two products (backward five) take time by the
 *             features of a head, and the softmax between them takes the same for heads of all
 *             sizes: exponentials have units of their own, 16 a clock on a multiprocessor of
 *             NVIDIA's, and maxima, sums, scales and casts go through those of fp32. `softmax` is
 *             its share in the time with 128 features, so that with f of them a pair takes
 *             softmax + (1 - softmax) f / 128 of that. With more than 128, products alone decide
 *   backward  of heads of more than 192 features has tiles of fewer rows, as the sums of the
 *             gradients of keys and values fill the registers (Blackwell: the tensor memory): 0.73
 *             of the rate. With 256 by 128 features an H200 has 393 of 541, a GB200 1,045 of 1,473
 *             and an A100 136 of 180 Tflop/s (NVIDIA/cudnn-frontend, benchmark/
 *             attention_training/results/qwen35 of 28 September 2026 and llama3.1; on A100
 *             FlashAttention-2)
 *   tiles     a tile of queries is done with all its keys before the next is begun. To fill the
 *             pipeline and to empty it, to read the queries and to write the result takes as long
 *             as `ramp` keys more would; and where the band of pairs ends within tiles, half a
 *             tile's height (`tile`) of keys are computed and masked: at the diagonal, and at the
 *             far side of a window
 *
 * With k keys for each query, and e sides of the band in tiles, the time is that of the flop, times
 *
 *   (1 + (ramp + e tile / 2) / k) / (1 + (ramp + tile / 2) / 2048.5)
 */
#ifndef CS_WORKLOAD_FUSED_ATTENTION_H
#define CS_WORKLOAD_FUSED_ATTENTION_H

#include "sim/model/accelerator.h"
#include "sim/model/op-shape.h"
#include "sim/model/runtime-kernels.h"

/* The time of a pass over fused attention by that of its flop at the stated rate; 1 where the cost
 * does not say its queries and keys, or the rate none of the three figures. */
double cs_fused_attention_factor(const cs_flash_rate *rate, const cs_pass_cost *cost, cs_pass pass);

/* Fused attention in fp8, cuDNN's: its cost in addition to attention in the wide type.
 *
 *   casts      queries, keys and values are cast in front of it, and its result is cast back;
 *              backward the gradient of the result is, and the gradients of the three are cast back: two
 *              kernels each (TransformerEngine, transformer_engine/pytorch/attention/
 *              dot_product_attention/backends.py, FusedAttnFunc: combine_and_quantize,
 *              combine_and_dequantize)
 *   windows    forward leaves out what is outside of a window; backward computes the whole triangle:
 *              with windows of 1,024 in 32,768 tokens it takes 10 times as long as in bf16, and as
 *              long as without them (NVIDIA/cudnn-frontend at afa9f7c0, benchmark/
 *              sdpa_benchmark_training/results/gb200_919_only_cudnn/gpt_oss_20260226_175022.csv)
 *
 * How fast it is, is the device's figure `cudnn_fp8`, else `cudnn` (accelerator.h). */

/* Changes what fused attention costs for a batch where the runtime computes it in fp8; other
 * operators stay. `precision` is the network's. */
void cs_narrow_attention_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                              uint32_t batch, cs_precision precision, cs_op_cost *cost);

#endif
