/* Time of a fused attention kernel with heads and sequences other than those that its rate is
 * stated for: heads of 128 features and 4,096 causal tokens.
 *
 *   heads     For each pair of a query and a key, the time of the two products (backward: five) is
 *             proportional to the features of a head. The softmax between them takes the same time
 *             for all head sizes: exponentials have their own units, 16 per clock on an NVIDIA
 *             multiprocessor, and maxima, sums, scales and casts use the fp32 units. `softmax` is
 *             the softmax's share of the time with 128 features, so a pair with f features takes
 *             softmax + (1 - softmax) f / 128 of that time. With more than 128 features, only the
 *             products determine the time.
 *   backward  With heads of more than 192 features, tiles have fewer rows, because the sums of the
 *             gradients of keys and values fill the registers (Blackwell: the tensor memory): 0.73
 *             of the rate. With 256 by 128 features an H200 reaches 393 of 541, a GB200 1,045 of
 *             1,473 and an A100 136 of 180 Tflop/s (NVIDIA/cudnn-frontend, benchmark/
 *             attention_training/results/qwen35 of 28 September 2026 and llama3.1; on A100
 *             FlashAttention-2).
 *   tiles     A tile of queries is finished with all its keys before the next tile begins. Filling
 *             and emptying the pipeline, reading the queries and writing the result together take
 *             as long as `ramp` more keys. Where the band of pairs ends inside tiles, keys for half
 *             a tile's height (`tile`) are computed and masked: at the diagonal, and at the far
 *             side of a window.
 *
 * With k keys per query, and e sides where the band ends inside tiles, the time of the flop is
 * multiplied by
 *
 *   (1 + (ramp + e tile / 2) / k) / (1 + (ramp + tile / 2) / 2048.5)
 */
#ifndef CS_WORKLOAD_FUSED_ATTENTION_H
#define CS_WORKLOAD_FUSED_ATTENTION_H

#include "sim/model/accelerator.h"
#include "sim/model/op-shape.h"
#include "sim/model/runtime-kernels.h"

/* Returns the factor on the time that the flop of a fused attention pass would take at the stated
 * rate. 1 if the cost does not state queries and keys, or if `rate` has none of the three
 * parameters. */
double cs_fused_attention_factor(const cs_flash_rate *rate, const cs_pass_cost *cost, cs_pass pass);

/* cuDNN's fused attention in fp8: cost in addition to attention in the wide type.
 *
 *   casts      Queries, keys and values are cast before the kernel, and its result is cast back. In
 *              backward, the gradient of the result is cast, and the gradients of queries, keys and
 *              values are cast back. Two kernels per pass (TransformerEngine,
 *              transformer_engine/pytorch/attention/dot_product_attention/backends.py,
 *              FusedAttnFunc: combine_and_quantize, combine_and_dequantize).
 *   windows    The forward skips pairs outside the window; the backward computes the whole
 *              triangle. With windows of 1,024 in 32,768 tokens the backward takes 10 times as long
 *              as in bf16, and as long as without windows (NVIDIA/cudnn-frontend at afa9f7c0,
 *              benchmark/sdpa_benchmark_training/results/gb200_919_only_cudnn/
 *              gpt_oss_20260226_175022.csv).
 *
 * Its rate is `cudnn_fp8` of the device, or else `cudnn` (accelerator.h). */

/* Adds the cost of fp8 to fused attention for a batch, if the runtime computes it in fp8; leaves
 * other operators unchanged. `precision` is the network's. */
void cs_narrow_attention_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                              uint32_t batch, cs_precision precision, cs_op_cost *cost);

#endif
