/* How the CUDA backend chooses an algorithm for a convolution, on a fake cuDNN that reports what a
 * test wants and computes nothing; it is linked in front of the library. */
#include "calib/bench/cuda/cuda-device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4, GIB = 1 << 30 };

/* The library's offer for every pass. `math`: mode that an algorithm can run with; with any other
 * it reports no workspace. */
typedef struct offer {
    int algo;
    cudnnMathType_t proposed, math;
    size_t workspace;
    cudnnStatus_t when_run;
} offer;

static struct {
    offer offers[MOST];
    int n;
    cudnnMathType_t math; /* math mode of the descriptor */
    int ran[16], n_ran;   /* algorithms that were started */
    size_t given;         /* workspace of the last one */
    bool no_room;         /* a workspace was missing */
    bool broken;          /* the stream */
    int rooms;            /* workspaces of its own that have not been given back */
} library;

/* ---- the library ---- */

#define MAKE(name, type)                                                                           \
    cudnnStatus_t cudnnCreate##name(type *made)                                                    \
    {                                                                                              \
        *made = (type)&library;                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }                                                                                              \
    cudnnStatus_t cudnnDestroy##name(type made)                                                    \
    {                                                                                              \
        (void)made;                                                                                \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
MAKE(TensorDescriptor, cudnnTensorDescriptor_t)
MAKE(FilterDescriptor, cudnnFilterDescriptor_t)
MAKE(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int n, const int dims[], const int strides[])
{
    (void)tensor, (void)type, (void)n, (void)dims, (void)strides;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int n, const int dims[])
{
    (void)filter, (void)type, (void)format, (void)n, (void)dims;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t conv, int n,
                                              const int pad[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type)
{
    (void)conv, (void)n, (void)pad, (void)stride, (void)dilation, (void)mode, (void)type;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups)
{
    (void)conv, (void)groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math)
{
    (void)conv;
    library.math = math;
    return CUDNN_STATUS_SUCCESS;
}

#define PROPOSE(type)                                                                              \
    *returned = library.n;                                                                         \
    for (int i = 0; i < library.n; i++)                                                            \
        results[i] = (cudnnConvolution##type##AlgoPerf_t)                                          \
        {                                                                                          \
            .algo = (cudnnConvolution##type##Algo_t)library.offers[i].algo,                        \
            .mathType = library.offers[i].proposed                                                 \
        }

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, const int requested,
    int *returned, cudnnConvolutionFwdAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)w, (void)conv, (void)y, (void)requested;
    PROPOSE(Fwd);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw, const int requested,
    int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)dy, (void)conv, (void)dw, (void)requested;
    PROPOSE(BwdFilter);
    return CUDNN_STATUS_SUCCESS;
}

static const offer *offer_of(int algo)
{
    for (int i = 0; i < library.n; i++)
        if (library.offers[i].algo == algo && library.offers[i].math == library.math)
            return &library.offers[i];
    return NULL;
}

static cudnnStatus_t tell_workspace(int algo, size_t *bytes)
{
    const offer *at = offer_of(algo);
    if (!at)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes = at->workspace;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t start_algorithm(int algo, const void *workspace, size_t bytes)
{
    const offer *at = offer_of(algo);
    library.ran[library.n_ran++] = algo;
    library.given = bytes;
    library.no_room |= bytes > 0 && !workspace;
    return at && bytes >= at->workspace ? at->when_run : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle,
                                                      const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
    (void)handle, (void)x, (void)w, (void)conv, (void)y;
    return tell_workspace((int)algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
    (void)handle, (void)x, (void)dy, (void)conv, (void)dw;
    return tell_workspace((int)algo, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x_of, const void *x,
                                      const cudnnFilterDescriptor_t w_of, const void *w,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t y_of, void *y)
{
    (void)handle, (void)alpha, (void)x_of, (void)x, (void)w_of, (void)w, (void)conv, (void)beta;
    (void)y_of, (void)y;
    return start_algorithm((int)algo, workspace, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_of, const void *x,
                                             const cudnnTensorDescriptor_t dy_of, const void *dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                             size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw_of, void *dw)
{
    (void)handle, (void)alpha, (void)x_of, (void)x, (void)dy_of, (void)dy, (void)conv, (void)beta;
    (void)dw_of, (void)dw;
    return start_algorithm((int)algo, workspace, bytes);
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "NOT_SUPPORTED" : "another";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    (void)size;
    message[0] = '\0';
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return library.broken ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t cudaMalloc(void **made, size_t bytes)
{
    *made = malloc(bytes);
    library.rooms++;
    return cudaSuccess;
}

cudaError_t cudaFree(void *data)
{
    library.rooms -= data != NULL;
    free(data);
    return cudaSuccess;
}

/* ---- an operator ---- */

typedef struct subject {
    cs_net net;
    cs_bench bench;
    cs_kernel kernel;
    cs_cuda_plan plan;
    cs_error error;
} subject;

static void begin(subject *s, cs_precision precision, const offer *offers, int n)
{
    memset(s, 0, sizeof(*s));
    memset(&library, 0, sizeof(library));
    memcpy(library.offers, offers, (size_t)n * sizeof(*offers));
    library.n = n;
    cs_error_init(&s->error);
    cs_net_begin(&s->net, "test", &s->error);
    cs_tensor x = cs_net_image(&s->net, 3, (cs_extent){2, {8, 8}});
    x = cs_net_conv(&s->net, "conv", x, &(cs_conv){.out = 4, .kernel = 3});
    cs_net_squared_error(&s->net, "loss", x);
    assert_int_equal(cs_net_end(&s->net), CS_OK);
    s->kernel = (cs_kernel){&s->net, &s->net.ops[0], 2, precision};
    s->plan.kernel = s->kernel;
}

static cs_status plan(subject *s, cs_pass pass)
{
    return cs_cuda_conv.plan(&s->bench, &s->kernel, pass, &s->plan, &s->error);
}

/* Runs with the planned workspace, which may be too small for a fallback. */
static cs_status run(subject *s, cs_pass pass)
{
    cs_operands at = {.workspace = malloc((size_t)s->plan.workspace + 1)};
    cs_status status = cs_cuda_conv.run(&s->bench, &s->kernel, pass, &s->plan, &at, &s->error);
    free(at.workspace);
    assert_false(library.no_room);
    assert_int_equal(library.rooms, 0);
    return status;
}

static void end(subject *s)
{
    cs_cuda_plan_finish(&s->plan);
    cs_net_finish(&s->net);
}

/* float32: algorithms for tensor cores, algorithms without a workspace under FMA, and algorithms
 * that need more than 1 GiB are skipped, on both sides of the choice. */
static void test_float32(void **state)
{
    static const offer offers[] = {
        {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_TENSOR_OP_MATH,
         CUDNN_TENSOR_OP_MATH, 1, 0},
        {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH, 2, 0},
        {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH, CUDNN_FMA_MATH, (size_t)GIB + 1, 0},
        {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_FMA_MATH, CUDNN_FMA_MATH, GIB, 0}};
    subject s;
    (void)state;
    begin(&s, CS_PRECISION_FP32, offers, 4);
    assert_int_equal(plan(&s, CS_PASS_FORWARD), CS_OK);
    assert_string_equal(s.plan.algorithm, "cudnn gemm");
    assert_int_equal(s.plan.workspace, GIB);
    assert_int_equal(library.math, CUDNN_FMA_MATH);
    end(&s);

    begin(&s, CS_PRECISION_FP32, offers, 3);
    assert_int_equal(plan(&s, CS_PASS_FORWARD), CS_FAILED);
    assert_string_equal(s.error.text,
                        "cuDNN has no algorithm for test.conv, forward, within 1073741824 bytes of "
                        "workspace: winograd: NOT_SUPPORTED, fft needs 1073741825");
    end(&s);
}

/* GPUs before tf32 do not distinguish FMA from the default, but it is requested all the same. */
static void test_old_gpu(void **state)
{
    static const offer offers[] = {
        {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH, 1, 0},
        {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH, 5, 0}};
    subject s;
    (void)state;
    begin(&s, CS_PRECISION_FP32, offers, 2);
    assert_int_equal(plan(&s, CS_PASS_FORWARD), CS_OK);
    assert_string_equal(s.plan.algorithm, "cudnn gemm");
    assert_int_equal(s.plan.workspace, 5);
    end(&s);
}

static const offer late[] = {
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH, 10,
     CUDNN_STATUS_NOT_SUPPORTED_SHAPE},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH, 20,
     CUDNN_STATUS_EXECUTION_FAILED},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH, 4000, 0}};

/* Two say when they are run that they cannot: the third runs, with room of its own, and is what
 * later runs have. When that fails it is a failure. */
static void test_late_refusals(void **state)
{
    subject s;
    (void)state;
    begin(&s, CS_PRECISION_BF16, late, 3);
    assert_int_equal(plan(&s, CS_PASS_BACKWARD_WEIGHT), CS_OK);
    assert_string_equal(s.plan.algorithm, "cudnn algo_1 tensor_op");
    assert_int_equal(s.plan.workspace, 10);
    assert_int_equal(run(&s, CS_PASS_BACKWARD_WEIGHT), CS_OK);
    assert_int_equal(library.n_ran, 3);
    assert_string_equal(s.plan.algorithm, "cudnn algo_0");
    assert_int_equal(s.plan.workspace, 4000);
    assert_int_equal(library.given, 4000);

    assert_int_equal(run(&s, CS_PASS_BACKWARD_WEIGHT), CS_OK);
    assert_int_equal(library.n_ran, 4);
    assert_int_equal(library.ran[3], CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0);

    library.offers[2].when_run = CUDNN_STATUS_EXECUTION_FAILED;
    assert_int_equal(run(&s, CS_PASS_BACKWARD_WEIGHT), CS_FAILED);
    assert_int_equal(library.n_ran, 5);
    assert_non_null(strstr(s.error.text, "cudnnConvolutionBackwardFilter at cuda-dnn.c"));
    end(&s);
}

/* Nothing is left; or the GPU does not go on, which is nobody else's chance. */
static void test_no_way_on(void **state)
{
    subject s;
    (void)state;
    begin(&s, CS_PRECISION_BF16, late, 2);
    assert_int_equal(plan(&s, CS_PASS_BACKWARD_WEIGHT), CS_OK);
    assert_int_equal(run(&s, CS_PASS_BACKWARD_WEIGHT), CS_FAILED);
    assert_int_equal(s.error.count, 1);
    assert_non_null(strstr(s.error.text, "of workspace: algo_1: another, algo_3: another"));
    end(&s);

    begin(&s, CS_PRECISION_BF16, late + 1, 2);
    library.broken = true;
    assert_int_equal(plan(&s, CS_PASS_BACKWARD_WEIGHT), CS_OK);
    assert_int_equal(run(&s, CS_PASS_BACKWARD_WEIGHT), CS_FAILED);
    assert_int_equal(library.n_ran, 1);
    assert_non_null(strstr(s.error.text, "cudnnConvolutionBackwardFilter at cuda-dnn.c"));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float32), cmocka_unit_test(test_old_gpu),
        cmocka_unit_test(test_late_refusals), cmocka_unit_test(test_no_way_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
