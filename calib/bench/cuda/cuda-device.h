/* The shared part of the CUDA backend: an opened GPU, and the check of every call.
 *
 * All work runs in one stream, in order. Plans of the libraries (descriptors, algorithms) are kept
 * per operator and pass, and are created when the workspace is first requested.
 */
#ifndef CS_CALIB_CUDA_DEVICE_H
#define CS_CALIB_CUDA_DEVICE_H

#include "calib/bench/cuda/device-operators.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

/* An algorithm that cuDNN's heuristics propose for a convolution, its math type, and the reason why
 * it cannot be used. */
typedef struct cs_cuda_proposal {
    int algo; /* cudnnConvolution...Algo_t of the pass */
    cudnnMathType_t math;
    cudnnStatus_t refusal;
    size_t workspace; /* 0 if not queried */
} cs_cuda_proposal;

enum { CS_CUDA_PROPOSALS = 10 };

/* The plan of a library for an operator's pass. The operator determines which members are set;
 * others are NULL. */
typedef struct cs_cuda_plan {
    cs_kernel kernel;
    bool made;
    int64_t workspace;
    char algorithm[96];
    /* cuDNN */
    cudnnTensorDescriptor_t in, out, parameters;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnPoolingDescriptor_t pool;
    cs_cuda_proposal proposals[CS_CUDA_PROPOSALS];
    int n_proposals, choice;
    bool proven; /* the choice has run once */
    /* cuBLASLt: c = a b, column-major */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    /* planned row strides of the input and of its gradient */
    int64_t row_strides[2];
} cs_cuda_plan;

struct cs_bench {
    int index; /* index of the GPU */
    cudaStream_t stream;
    cudnnHandle_t dnn;
    cublasHandle_t blas;
    cublasLtHandle_t lt;
    cs_launcher launcher;
    cudaEvent_t *marks;
    uint32_t n_marks, cap_marks;
    cs_cuda_plan *plans; /* per operator and pass */
    uint32_t n_plans;
    char device[320], driver[64], libraries[160], clock[64];
};

/* ---- checks: CS_OK, or CS_FAILED with the call and its place in the message ---- */

CS_MUST_CHECK cs_status cs_cuda_check(cudaError_t code, const char *call, const char *file,
                                      int line, cs_error *error);
CS_MUST_CHECK cs_status cs_cudnn_check(cudnnStatus_t code, const char *call, const char *file,
                                       int line, cs_error *error);
CS_MUST_CHECK cs_status cs_cublas_check(cublasStatus_t code, const char *call, const char *file,
                                        int line, cs_error *error);

#define CS_CUDA(call, error)   cs_cuda_check(call, #call, __FILE__, __LINE__, error)
#define CS_CUDNN(call, error)  cs_cudnn_check(call, #call, __FILE__, __LINE__, error)
#define CS_CUBLAS(call, error) cs_cublas_check(call, #call, __FILE__, __LINE__, error)

/* Writes the message of any check, for functions that return objects. `call` is cut at its
 * parenthesis. */
CS_MUST_CHECK cs_status cs_cuda_complain(const char *call, const char *file, int line,
                                         const char *name, const char *what, cs_error *error);

/* ---- plans ---- */

/* Returns the plan of an operator's pass; if it is not made yet, only `kernel` is set. */
CS_MUST_CHECK cs_status cs_cuda_plan_find(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                          cs_cuda_plan **plan, cs_error *error);
/* Frees the members of a plan; accepts zeroed ones. */
void cs_cuda_plan_finish(cs_cuda_plan *plan);

/* Creates plans of an operator, and runs them. */
typedef struct cs_cuda_operator {
    CS_MUST_CHECK cs_status (*plan)(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                    cs_cuda_plan *plan, cs_error *error);
    CS_MUST_CHECK cs_status (*run)(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                   cs_cuda_plan *plan, const cs_operands *at, cs_error *error);
} cs_cuda_operator;

extern const cs_cuda_operator cs_cuda_conv, cs_cuda_batch_norm, cs_cuda_mean_pool, cs_cuda_softmax;
extern const cs_cuda_operator cs_cuda_linear, cs_cuda_attention;

extern const cs_backend cs_backend_cuda;

#endif
