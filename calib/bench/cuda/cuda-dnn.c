/* Operators that cuDNN computes: convolutions, batch norm, mean pooling, softmax. Images are laid
 * out as (sample, channel, space), the default of frameworks. */
#include "calib/bench/cuda/cuda-device.h"

#include <stdio.h>

static const int64_t workspace_limit = INT64_C(1) << 30;

static cudnnDataType_t type_of(cs_precision precision)
{
    return precision == CS_PRECISION_FP16   ? CUDNN_DATA_HALF
           : precision == CS_PRECISION_BF16 ? CUDNN_DATA_BFLOAT16
                                            : CUDNN_DATA_FLOAT;
}

static const float one = 1, zero = 0;

/* ---- descriptors ---- */

/* Describes a tensor (first, second, space...) with at least four dimensions, which cuDNN
 * requires. */
static cs_status describe(cudnnTensorDescriptor_t *made, cudnnDataType_t type, const int dims[5],
                          int rank, cs_error *error)
{
    int strides[5];
    int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        strides[i] = (int)stride;
        stride *= dims[i];
        if (stride > INT32_MAX)
            return cs_error_add(error, CS_OVERFLOW,
                                "a tensor of 2^31 elements or more is too large for cuDNN");
    }
    cs_status status = CS_CUDNN(cudnnCreateTensorDescriptor(made), error);
    return status == CS_OK
               ? CS_CUDNN(cudnnSetTensorNdDescriptor(*made, type, rank, dims, strides), error)
               : status;
}

/* Returns the dimensions of a batch of images; 1 is the second dimension of one-dimensional
 * space. */
static int image_dims(const cs_shape *shape, uint32_t batch, int dims[5])
{
    int rank = shape->rank < 3 ? 4 : (int)shape->rank + 1;
    dims[0] = (int)batch;
    for (int i = 1; i < rank; i++)
        dims[i] = i <= (int)shape->rank ? (int)shape->dims[i - 1] : 1;
    return rank;
}

static cs_status describe_image(cudnnTensorDescriptor_t *made, const cs_kernel *kernel,
                                const cs_tensor_info *tensor, cs_error *error)
{
    int dims[5], rank = image_dims(&tensor->shape, kernel->batch, dims);
    return describe(made, type_of(kernel->precision), dims, rank, error);
}

static cs_status describe_ends(cs_cuda_plan *plan, const cs_kernel *kernel, cs_error *error)
{
    CS_TRY(describe_image(&plan->in, kernel, cs_kernel_in(kernel, 0), error));
    return describe_image(&plan->out, kernel, cs_kernel_out(kernel), error);
}

/* ---- convolutions ---- */

typedef struct window {
    int rank, pad[3], stride[3], dilation[3], kernel[5];
} window;

static window window_of(const cs_kernel *kernel)
{
    const cs_op *op = kernel->op;
    window w = {.rank = op->kernel.rank < 2 ? 2 : (int)op->kernel.rank};
    w.kernel[0] = (int)cs_kernel_out(kernel)->shape.dims[0];
    w.kernel[1] = (int)(cs_kernel_in(kernel, 0)->shape.dims[0] / (op->groups > 0 ? op->groups : 1));
    for (int i = 0; i < w.rank; i++) {
        bool has = i < (int)op->kernel.rank;
        w.pad[i] = has ? (int)op->pad.size[i] : 0;
        w.stride[i] = has ? (int)op->stride.size[i] : 1;
        w.kernel[2 + i] = has ? (int)op->kernel.size[i] : 1;
        w.dilation[i] = 1;
    }
    return w;
}

/* The common part of the three lists of proposals. */
typedef struct proposal {
    int algo;
    cudnnStatus_t status;
    cudnnMathType_t math;
} proposal;

/* The three types of proposals differ only in their name. */
#define COPY_PROPOSALS(from, n, to)                                                                \
    for (int i = 0; i < (n); i++)                                                                  \
        (to)[i] = (proposal)                                                                       \
        {                                                                                          \
            (int)(from)[i].algo, (from)[i].status, (from)[i].mathType                              \
        }

static cs_status ask(cs_bench *bench, const cs_cuda_plan *plan, cs_pass pass,
                     proposal list[CS_CUDA_PROPOSALS], int *n, cs_error *error)
{
    cudnnConvolutionFwdAlgoPerf_t forward[CS_CUDA_PROPOSALS];
    cudnnConvolutionBwdDataAlgoPerf_t data[CS_CUDA_PROPOSALS];
    cudnnConvolutionBwdFilterAlgoPerf_t filter[CS_CUDA_PROPOSALS];
    cs_status status;
    *n = 0;
    if (pass == CS_PASS_FORWARD) {
        status = CS_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(bench->dnn, plan->in, plan->filter,
                                                                 plan->conv, plan->out,
                                                                 CS_CUDA_PROPOSALS, n, forward),
                          error);
        COPY_PROPOSALS(forward, *n, list);
    } else if (pass == CS_PASS_BACKWARD_INPUT) {
        status = CS_CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(
                              bench->dnn, plan->filter, plan->out, plan->conv, plan->in,
                              CS_CUDA_PROPOSALS, n, data),
                          error);
        COPY_PROPOSALS(data, *n, list);
    } else {
        status = CS_CUDNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                              bench->dnn, plan->in, plan->out, plan->conv, plan->filter,
                              CS_CUDA_PROPOSALS, n, filter),
                          error);
        COPY_PROPOSALS(filter, *n, list);
    }
    return status;
}

/* Whether a proposal computes in the required precision. For float32 it is FMA. GPUs older than
 * tf32 call it the default math, which is tf32 on others; there, the default is rejected. No
 * precision converts float32 to 2-byte numbers. */
static bool is_wanted(const proposal *list, int n, int i, cs_precision precision)
{
    bool knows_fma = false;
    if (precision != CS_PRECISION_FP32)
        return list[i].math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    for (int k = 0; k < n; k++)
        knows_fma |= list[k].math == CUDNN_FMA_MATH;
    return list[i].math == (knows_fma ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH);
}

/* Lists proposals in the order of the heuristics, fastest first; the same for equal shapes. */
static cs_status propose(cs_bench *bench, const cs_kernel *kernel, cs_pass pass, cs_cuda_plan *plan,
                         cs_error *error)
{
    proposal list[CS_CUDA_PROPOSALS];
    int n;
    cs_status status = ask(bench, plan, pass, list, &n, error);
    plan->n_proposals = 0;
    for (int i = 0; i < n && status == CS_OK; i++) {
        cudnnMathType_t math =
            kernel->precision == CS_PRECISION_FP32 ? CUDNN_FMA_MATH : list[i].math;
        if (list[i].status == CUDNN_STATUS_SUCCESS && is_wanted(list, n, i, kernel->precision))
            plan->proposals[plan->n_proposals++] =
                (cs_cuda_proposal){.algo = list[i].algo, .math = math};
    }
    return status;
}

static const char *algorithm_name(cs_pass pass, int algo)
{
    static const char *const names[][8] = {
        [CS_PASS_FORWARD] = {"implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft",
                             "fft_tiling", "winograd", "winograd_nonfused"},
        [CS_PASS_BACKWARD_INPUT] = {"algo_0", "algo_1", "fft", "fft_tiling", "winograd",
                                    "winograd_nonfused"},
        [CS_PASS_BACKWARD_WEIGHT] = {"algo_0", "algo_1", "fft", "algo_3", "winograd",
                                     "winograd_nonfused", "fft_tiling"}};
    const char *name = algo >= 0 && algo < 8 ? names[pass][algo] : NULL;
    return name ? name : "unknown";
}

static cudnnStatus_t ask_workspace(cs_bench *bench, const cs_cuda_plan *plan, cs_pass pass,
                                   int algo, size_t *bytes)
{
    if (pass == CS_PASS_FORWARD)
        return cudnnGetConvolutionForwardWorkspaceSize(bench->dnn, plan->in, plan->filter,
                                                       plan->conv, plan->out,
                                                       (cudnnConvolutionFwdAlgo_t)algo, bytes);
    if (pass == CS_PASS_BACKWARD_INPUT)
        return cudnnGetConvolutionBackwardDataWorkspaceSize(
            bench->dnn, plan->filter, plan->out, plan->conv, plan->in,
            (cudnnConvolutionBwdDataAlgo_t)algo, bytes);
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(
        bench->dnn, plan->in, plan->out, plan->conv, plan->filter,
        (cudnnConvolutionBwdFilterAlgo_t)algo, bytes);
}

/* Chooses the first proposal from number `from` on whose workspace is within the limit, with its
 * math type. */
static cs_status choose(cs_bench *bench, const cs_kernel *kernel, cs_pass pass, int from,
                        cs_cuda_plan *plan, cs_error *error)
{
    for (int i = from; i < plan->n_proposals; i++) {
        cs_cuda_proposal *at = &plan->proposals[i];
        at->refusal = cudnnSetConvolutionMathType(plan->conv, at->math);
        if (at->refusal == CUDNN_STATUS_SUCCESS)
            at->refusal = ask_workspace(bench, plan, pass, at->algo, &at->workspace);
        if (at->refusal != CUDNN_STATUS_SUCCESS || at->workspace > (size_t)workspace_limit)
            continue;
        plan->choice = i;
        plan->workspace = (int64_t)at->workspace;
        snprintf(plan->algorithm, sizeof(plan->algorithm), "cudnn %s%s",
                 algorithm_name(pass, at->algo),
                 at->math == CUDNN_TENSOR_OP_MATH ? " tensor_op" : "");
        return CS_OK;
    }
    /* List all proposals with the reasons why they cannot be used. */
    char text[CS_CUDA_PROPOSALS * 80] = "";
    for (int i = 0, used = 0; i < plan->n_proposals; i++) {
        const cs_cuda_proposal *at = &plan->proposals[i];
        const char *name = algorithm_name(pass, at->algo), *comma = i > 0 ? ", " : ": ";
        size_t room = sizeof(text) - (size_t)used;
        used += at->refusal == CUDNN_STATUS_SUCCESS
                    ? snprintf(text + used, room, "%s%s needs %zu", comma, name, at->workspace)
                    : snprintf(text + used, room, "%s%s: %.48s", comma, name,
                               cudnnGetErrorString(at->refusal));
    }
    return cs_error_add(error, CS_FAILED,
                        "cuDNN has no algorithm for %s, %s, within %lld bytes of workspace%s",
                        kernel->op->name, cs_pass_names[pass], (long long)workspace_limit, text);
}

static cs_status plan_conv(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                           cs_cuda_plan *plan, cs_error *error)
{
    window w = window_of(kernel);
    cudnnDataType_t type = type_of(kernel->precision);
    int biases[5] = {1, w.kernel[0], 1, 1, 1};
    cs_status status = describe_ends(plan, kernel, error);
    if (status == CS_OK && kernel->op->biases > 0)
        status = describe(&plan->parameters, type, biases, w.rank + 2, error);
    if (status == CS_OK)
        status = CS_CUDNN(cudnnCreateFilterDescriptor(&plan->filter), error);
    if (status == CS_OK)
        status = CS_CUDNN(
            cudnnSetFilterNdDescriptor(plan->filter, type, CUDNN_TENSOR_NCHW, w.rank + 2, w.kernel),
            error);
    if (status == CS_OK)
        status = CS_CUDNN(cudnnCreateConvolutionDescriptor(&plan->conv), error);
    if (status == CS_OK)
        status = CS_CUDNN(cudnnSetConvolutionNdDescriptor(plan->conv, w.rank, w.pad, w.stride,
                                                          w.dilation, CUDNN_CROSS_CORRELATION,
                                                          CUDNN_DATA_FLOAT),
                          error);
    if (status == CS_OK)
        status =
            CS_CUDNN(cudnnSetConvolutionGroupCount(plan->conv, (int)kernel->op->groups), error);
    if (status == CS_OK)
        status =
            CS_CUDNN(cudnnSetConvolutionMathType(plan->conv, kernel->precision == CS_PRECISION_FP32
                                                                 ? CUDNN_FMA_MATH
                                                                 : CUDNN_TENSOR_OP_MATH),
                     error);
    CS_TRY(status);
    CS_TRY(propose(bench, kernel, pass, plan, error));
    return choose(bench, kernel, pass, 0, plan, error);
}

static cudnnStatus_t start_conv(cs_bench *bench, cs_pass pass, const cs_cuda_plan *plan,
                                const cs_operands *at, void *workspace)
{
    int algo = plan->proposals[plan->choice].algo;
    size_t bytes = (size_t)plan->workspace;
    if (pass == CS_PASS_FORWARD)
        return cudnnConvolutionForward(bench->dnn, &one, plan->in, at->in[0].data, plan->filter,
                                       at->parameters, plan->conv, (cudnnConvolutionFwdAlgo_t)algo,
                                       workspace, bytes, &zero, plan->out, at->out.data);
    if (pass == CS_PASS_BACKWARD_INPUT)
        return cudnnConvolutionBackwardData(bench->dnn, &one, plan->filter, at->parameters,
                                            plan->out, at->grad_out.data, plan->conv,
                                            (cudnnConvolutionBwdDataAlgo_t)algo, workspace, bytes,
                                            &zero, plan->in, at->grad_in[0].data);
    return cudnnConvolutionBackwardFilter(bench->dnn, &one, plan->in, at->in[0].data, plan->out,
                                          at->grad_out.data, plan->conv,
                                          (cudnnConvolutionBwdFilterAlgo_t)algo, workspace, bytes,
                                          &one, plan->filter, at->grad_parameters);
}

static cs_status check_start(cudnnStatus_t code, cs_pass pass, cs_error *error)
{
    static const char *const calls[] = {
        [CS_PASS_FORWARD] = "cudnnConvolutionForward",
        [CS_PASS_BACKWARD_INPUT] = "cudnnConvolutionBackwardData",
        [CS_PASS_BACKWARD_WEIGHT] = "cudnnConvolutionBackwardFilter",
    };
    return cs_cudnn_check(code, calls[pass], __FILE__, __LINE__, error);
}

/* Whether the GPU still works as if nothing had been started. */
static bool is_refusal(cs_bench *bench, cudnnStatus_t code)
{
    int kind = CUDNN_STATUS_CATEGORY(code);
    if (kind != CUDNN_STATUS_NOT_SUPPORTED && kind != CUDNN_STATUS_BAD_PARAM &&
        kind != CUDNN_STATUS_EXECUTION_FAILED)
        return false;
    (void)cudaGetLastError(); /* clear the error of a failed launch */
    return cudaStreamSynchronize(bench->stream) == cudaSuccess;
}

/* Some algorithms fail only when they first run. Then the next one replaces it, this time with a
 * separate workspace. */
static cs_status try_others(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                            cs_cuda_plan *plan, const cs_operands *at, cudnnStatus_t code,
                            cs_error *error)
{
    cs_status status = CS_OK;
    while (code != CUDNN_STATUS_SUCCESS && status == CS_OK) {
        void *room = NULL;
        if (!is_refusal(bench, code))
            return check_start(code, pass, error);
        plan->proposals[plan->choice].refusal = code;
        status = choose(bench, kernel, pass, plan->choice + 1, plan, error);
        if (status == CS_OK && plan->workspace > 0)
            status = CS_CUDA(cudaMalloc(&room, (size_t)plan->workspace), error);
        if (status == CS_OK)
            code = start_conv(bench, pass, plan, at, room);
        (void)cudaFree(room); /* waits; accepts NULL */
    }
    return status;
}

static cs_status run_conv(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                          cs_cuda_plan *plan, const cs_operands *at, cs_error *error)
{
    cudnnStatus_t code = start_conv(bench, pass, plan, at, at->workspace);
    cs_status status = plan->proven ? check_start(code, pass, error)
                                    : try_others(bench, kernel, pass, plan, at, code, error);
    plan->proven = plan->proven || status == CS_OK;
    if (status != CS_OK || kernel->op->biases == 0 || pass == CS_PASS_BACKWARD_INPUT)
        return status;
    int64_t offset = kernel->op->weights * (int64_t)cs_precision_bytes(kernel->precision);
    if (pass == CS_PASS_FORWARD)
        return CS_CUDNN(cudnnAddTensor(bench->dnn, &one, plan->parameters,
                                       (char *)at->parameters + offset, &one, plan->out,
                                       at->out.data),
                        error);
    return CS_CUDNN(cudnnConvolutionBackwardBias(bench->dnn, &one, plan->out, at->grad_out.data,
                                                 &one, plan->parameters,
                                                 (char *)at->grad_parameters + offset),
                    error);
}

const cs_cuda_operator cs_cuda_conv = {plan_conv, run_conv};

/* ---- batch norm ---- */

/* Whether scales and shifts must be converted, because cuDNN requires float32. The workspace holds
 * scales, shifts, and the gradients of both. */
static bool widens(const cs_kernel *kernel)
{
    return cs_precision_bytes(kernel->precision) < sizeof(float);
}

static cs_status plan_batch_norm(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                 cs_cuda_plan *plan, cs_error *error)
{
    int64_t channels = cs_kernel_in(kernel, 0)->shape.dims[0];
    (void)bench, (void)pass;
    plan->workspace = widens(kernel) ? 4 * channels * (int64_t)sizeof(float) : 0;
    snprintf(plan->algorithm, sizeof(plan->algorithm), "cudnn spatial");
    CS_TRY(describe_ends(plan, kernel, error));
    CS_TRY(CS_CUDNN(cudnnCreateTensorDescriptor(&plan->parameters), error));
    return CS_CUDNN(
        cudnnDeriveBNTensorDescriptor(plan->parameters, plan->in, CUDNN_BATCHNORM_SPATIAL), error);
}

/* Returns scales as cuDNN reads them, followed by shifts. */
static cs_status widen(cs_bench *bench, const cs_kernel *kernel, const cs_operands *at,
                       int64_t channels, const float **scales, cs_error *error)
{
    cs_work work = {.a = at->parameters, .y = at->workspace};
    *scales = widens(kernel) ? at->workspace : at->parameters;
    return widens(kernel) ? cs_launch(&bench->launcher, CS_BODY_widen, kernel->precision, &work,
                                      2 * channels, error)
                          : CS_OK;
}

static cs_status batch_norm_input(cs_bench *bench, const cs_kernel *kernel, cs_cuda_plan *plan,
                                  const cs_operands *at, const float *scales, int64_t channels,
                                  cs_error *error)
{
    bool apart = widens(kernel);
    float *means = at->saved;
    float *grad = apart ? (float *)at->workspace + 2 * channels : at->grad_parameters;
    cs_status status = CS_CUDNN(
        cudnnBatchNormalizationBackward(
            bench->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, apart ? &zero : &one, plan->in,
            at->in[0].data, plan->out, at->grad_out.data, plan->in, at->grad_in[0].data,
            plan->parameters, scales, grad, grad + channels, 1e-5, means, means + channels),
        error);
    cs_work work = {.a = grad, .y = at->grad_parameters};
    return status == CS_OK && apart ? cs_launch(&bench->launcher, CS_BODY_accumulate_wide,
                                                kernel->precision, &work, 2 * channels, error)
                                    : status;
}

/* Running means, which only inference reads, are not kept. */
static cs_status run_batch_norm(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                cs_cuda_plan *plan, const cs_operands *at, cs_error *error)
{
    int64_t channels = cs_kernel_in(kernel, 0)->shape.dims[0];
    const float *scales;
    float *means = at->saved;
    CS_TRY(widen(bench, kernel, at, channels, &scales, error));
    if (pass != CS_PASS_FORWARD)
        return batch_norm_input(bench, kernel, plan, at, scales, channels, error);
    return CS_CUDNN(cudnnBatchNormalizationForwardTraining(
                        bench->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, plan->in, at->in[0].data,
                        plan->out, at->out.data, plan->parameters, scales, scales + channels, 1,
                        NULL, NULL, 1e-5, means, means + channels),
                    error);
}

const cs_cuda_operator cs_cuda_batch_norm = {plan_batch_norm, run_batch_norm};

/* ---- mean pooling ---- */

static cs_status plan_mean_pool(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                cs_cuda_plan *plan, cs_error *error)
{
    window w = window_of(kernel);
    (void)bench, (void)pass;
    snprintf(plan->algorithm, sizeof(plan->algorithm), "cudnn pooling");
    CS_TRY(describe_ends(plan, kernel, error));
    CS_TRY(CS_CUDNN(cudnnCreatePoolingDescriptor(&plan->pool), error));
    return CS_CUDNN(
        cudnnSetPoolingNdDescriptor(plan->pool, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                                    CUDNN_PROPAGATE_NAN, w.rank, w.kernel + 2, w.pad, w.stride),
        error);
}

/* cuDNN requires the input and the output for the backward of any pooling, though the mean does not
 * depend on them. The output is not kept, so its gradient replaces it. */
static cs_status run_mean_pool(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                               cs_cuda_plan *plan, const cs_operands *at, cs_error *error)
{
    (void)kernel;
    if (pass == CS_PASS_FORWARD)
        return CS_CUDNN(cudnnPoolingForward(bench->dnn, plan->pool, &one, plan->in, at->in[0].data,
                                            &zero, plan->out, at->out.data),
                        error);
    return CS_CUDNN(cudnnPoolingBackward(bench->dnn, plan->pool, &one, plan->out, at->grad_out.data,
                                         plan->out, at->grad_out.data, plan->in, at->in[0].data,
                                         &zero, plan->in, at->grad_in[0].data),
                    error);
}

const cs_cuda_operator cs_cuda_mean_pool = {plan_mean_pool, run_mean_pool};

/* ---- softmax over the last dimension ---- */

static cs_status plan_softmax(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                              cs_cuda_plan *plan, cs_error *error)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0);
    int dims[5] = {(int)(cs_tensor_rows(in) * kernel->batch), (int)cs_tensor_columns(in), 1, 1};
    (void)bench, (void)pass;
    snprintf(plan->algorithm, sizeof(plan->algorithm), "cudnn accurate");
    return describe(&plan->in, type_of(kernel->precision), dims, 4, error);
}

static cs_status run_softmax(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                             cs_cuda_plan *plan, const cs_operands *at, cs_error *error)
{
    (void)kernel;
    if (pass == CS_PASS_FORWARD)
        return CS_CUDNN(cudnnSoftmaxForward(bench->dnn, CUDNN_SOFTMAX_ACCURATE,
                                            CUDNN_SOFTMAX_MODE_INSTANCE, &one, plan->in,
                                            at->in[0].data, &zero, plan->in, at->out.data),
                        error);
    return CS_CUDNN(cudnnSoftmaxBackward(bench->dnn, CUDNN_SOFTMAX_ACCURATE,
                                         CUDNN_SOFTMAX_MODE_INSTANCE, &one, plan->in, at->out.data,
                                         plan->in, at->grad_out.data, &zero, plan->in,
                                         at->grad_in[0].data),
                    error);
}

const cs_cuda_operator cs_cuda_softmax = {plan_softmax, run_softmax};
