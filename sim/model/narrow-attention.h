/* Fused attention in fp8, cuDNN's: what it costs besides what attention in the wide type does.
 *
 *   casts      queries, keys and values are cast in front of it, and its result is cast back;
 *              backward the gradient of the result is, and those of the three are cast back: two
 *              kernels each (TransformerEngine, transformer_engine/pytorch/attention/
 *              dot_product_attention/backends.py, FusedAttnFunc: combine_and_quantize,
 *              combine_and_dequantize)
 *   windows    forward leaves out what is outside of a window; backward computes the whole triangle:
 *              with windows of 1,024 in 32,768 tokens it takes 10 times as long as in bf16, and as
 *              long as without them (NVIDIA/cudnn-frontend at afa9f7c0, benchmark/
 *              sdpa_benchmark_training/results/gb200_919_only_cudnn/gpt_oss_20260226_175022.csv)
 *
 * How fast it is, is the device's figure `cudnn_fp8`, else `cudnn` (accelerator.h). */
#ifndef CS_WORKLOAD_NARROW_ATTENTION_H
#define CS_WORKLOAD_NARROW_ATTENTION_H

#include "sim/model/runtime-kernels.h"

/* Changes what fused attention costs for a batch where the runtime computes it in fp8; other
 * operators stay. `precision` is the network's. */
void cs_narrow_attention_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                              uint32_t batch, cs_precision precision, cs_op_cost *cost);

#endif
