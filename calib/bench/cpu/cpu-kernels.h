/* Operators on the CPU, in float32 and in one thread: matrix products use OpenBLAS, convolutions
 * im2col, and all other operators plain loops. */
#ifndef CS_CALIB_CPU_KERNELS_H
#define CS_CALIB_CPU_KERNELS_H

#include "calib/bench/device/kernel.h"

/* Returns the bytes of workspace of a pass. */
int64_t cs_cpu_workspace(const cs_kernel *kernel, cs_pass pass);

/* Runs a pass that has work (cs_op_shape), except the update. */
void cs_cpu_run(const cs_kernel *kernel, cs_pass pass, const cs_operands *at);

/* ---- per group of operators, for the dispatcher in cpu-kernels.c ---- */

typedef void cs_cpu_pass(const cs_kernel *kernel, const cs_operands *at);

cs_cpu_pass cs_cpu_conv_forward, cs_cpu_conv_input, cs_cpu_conv_weight;
cs_cpu_pass cs_cpu_linear_forward, cs_cpu_linear_input, cs_cpu_linear_weight;
cs_cpu_pass cs_cpu_attention_forward, cs_cpu_attention_input;
cs_cpu_pass cs_cpu_batch_norm_forward, cs_cpu_batch_norm_input;
cs_cpu_pass cs_cpu_row_norm_forward, cs_cpu_row_norm_input, cs_cpu_row_norm_weight;
cs_cpu_pass cs_cpu_map_forward, cs_cpu_map_input; /* relu, gelu, silu, tanh */
cs_cpu_pass cs_cpu_add_forward, cs_cpu_add_weight;
cs_cpu_pass cs_cpu_mul_forward, cs_cpu_mul_input;
cs_cpu_pass cs_cpu_dropout_forward, cs_cpu_dropout_input;
cs_cpu_pass cs_cpu_softmax_forward, cs_cpu_softmax_input;
cs_cpu_pass cs_cpu_copy_forward, cs_cpu_copy_input;
cs_cpu_pass cs_cpu_rotary_forward, cs_cpu_rotary_input;
cs_cpu_pass cs_cpu_concat_forward, cs_cpu_concat_input;
cs_cpu_pass cs_cpu_pool_forward, cs_cpu_pool_input;
cs_cpu_pass cs_cpu_embedding_forward, cs_cpu_embedding_weight;
cs_cpu_pass cs_cpu_entropy_forward, cs_cpu_entropy_input;
cs_cpu_pass cs_cpu_squares_forward, cs_cpu_squares_input;

#endif
