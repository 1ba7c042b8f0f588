#include "calib/bench/cpu/cpu-kernels.h"

static cs_cpu_pass *const passes[CS_N_OP_KINDS][CS_N_PASSES] = {
    [CS_OP_CONV] = {cs_cpu_conv_forward, cs_cpu_conv_input, cs_cpu_conv_weight},
    [CS_OP_LINEAR] = {cs_cpu_linear_forward, cs_cpu_linear_input, cs_cpu_linear_weight},
    [CS_OP_BATCH_NORM] = {cs_cpu_batch_norm_forward, cs_cpu_batch_norm_input, NULL},
    [CS_OP_LAYER_NORM] = {cs_cpu_row_norm_forward, cs_cpu_row_norm_input, cs_cpu_row_norm_weight},
    [CS_OP_RMS_NORM] = {cs_cpu_row_norm_forward, cs_cpu_row_norm_input, cs_cpu_row_norm_weight},
    [CS_OP_RELU] = {cs_cpu_map_forward, cs_cpu_map_input, NULL},
    [CS_OP_GELU] = {cs_cpu_map_forward, cs_cpu_map_input, NULL},
    [CS_OP_SILU] = {cs_cpu_map_forward, cs_cpu_map_input, NULL},
    [CS_OP_TANH] = {cs_cpu_map_forward, cs_cpu_map_input, NULL},
    [CS_OP_ROTARY] = {cs_cpu_rotary_forward, cs_cpu_rotary_input, NULL},
    [CS_OP_MUL] = {cs_cpu_mul_forward, cs_cpu_mul_input, NULL},
    [CS_OP_ADD] = {cs_cpu_add_forward, NULL, cs_cpu_add_weight},
    [CS_OP_DROPOUT] = {cs_cpu_dropout_forward, cs_cpu_dropout_input, NULL},
    [CS_OP_SOFTMAX] = {cs_cpu_softmax_forward, cs_cpu_softmax_input, NULL},
    [CS_OP_COPY] = {cs_cpu_copy_forward, cs_cpu_copy_input, NULL},
    [CS_OP_CONCAT] = {cs_cpu_concat_forward, cs_cpu_concat_input, NULL},
    [CS_OP_MAX_POOL] = {cs_cpu_pool_forward, cs_cpu_pool_input, NULL},
    [CS_OP_AVG_POOL] = {cs_cpu_pool_forward, cs_cpu_pool_input, NULL},
    [CS_OP_ADAPTIVE_POOL] = {cs_cpu_pool_forward, cs_cpu_pool_input, NULL},
    [CS_OP_ATTENTION] = {cs_cpu_attention_forward, cs_cpu_attention_input, NULL},
    [CS_OP_EMBEDDING] = {cs_cpu_embedding_forward, NULL, cs_cpu_embedding_weight},
    [CS_OP_CROSS_ENTROPY] = {cs_cpu_entropy_forward, cs_cpu_entropy_input, NULL},
    [CS_OP_SQUARED_ERROR] = {cs_cpu_squares_forward, cs_cpu_squares_input, NULL},
};

int64_t cs_cpu_workspace(const cs_kernel *kernel, cs_pass pass)
{
    if (kernel->op->kind == CS_OP_CONV) {
        /* The columns of one group of one sample (im2col). */
        const cs_op *op = kernel->op;
        const cs_tensor_info *out = cs_kernel_out(kernel);
        bool pointwise = true;
        int64_t window = 1;
        for (uint32_t i = 0; i < op->kernel.rank; i++) {
            window *= op->kernel.size[i];
            pointwise &= op->kernel.size[i] == 1 && op->stride.size[i] == 1 && op->pad.size[i] == 0;
        }
        int64_t channels = cs_kernel_in(kernel, 0)->shape.dims[0] / op->groups;
        int64_t pixels = out->elements / out->shape.dims[0];
        return pointwise ? 0 : channels * window * pixels * (int64_t)sizeof(float);
    }
    if (kernel->op->kind == CS_OP_ATTENTION) {
        /* Matrices of one head: the weights if they are not saved, in a backward their gradient,
         * and the weights after dropout if they are needed but not saved. */
        int64_t tokens = cs_kernel_out(kernel)->shape.dims[0];
        const bool flash = kernel->op->attention.kernel == CS_ATTENTION_FLASH;
        const bool backward = pass == CS_PASS_BACKWARD_INPUT;
        int64_t matrices =
            flash + backward + (flash && backward && kernel->op->attention.dropout > 0);
        return matrices * tokens * tokens * (int64_t)sizeof(float);
    }
    return 0;
}

void cs_cpu_run(const cs_kernel *kernel, cs_pass pass, const cs_operands *at)
{
    passes[kernel->op->kind][pass](kernel, at);
}
