/* Linear layers by cuBLASLt. Its matrices are column-major: rows x columns here are columns x rows
 * for cuBLASLt. With x (rows, in), w (out, in), y (rows, out):
 *
 *     forward   y  = x w^T        for cuBLASLt  c (out, rows) = a^T b, a = w, b = x
 *     input     dx = dy w                       c (in, rows)  = a b,   a = w, b = dy
 *     weight    dw += dy^T x                    c (in, out)  += a b^T, a = x, b = dy
 */
#include "calib/bench/cuda/cuda-device.h"

#include <stdio.h>

static const int64_t workspace_limit = INT64_C(32) << 20;

enum { MOST_ALIGNED = 16 }; /* bytes; kernels require no more */

typedef struct matrix {
    int64_t rows, columns, stride; /* column-major, as for cuBLASLt */
} matrix;

typedef struct product {
    matrix a, b, c;
    bool transpose_a, transpose_b, adds, biased;
} product;

static product product_of(const cs_kernel *kernel, cs_pass pass, const int64_t strides[2])
{
    const cs_tensor_info *x = cs_kernel_in(kernel, 0);
    int64_t rows = cs_tensor_rows(x) * kernel->batch, in = cs_tensor_columns(x);
    int64_t out = cs_tensor_columns(cs_kernel_out(kernel));
    matrix of_x = {in, rows, strides[0]}, of_dx = {in, rows, strides[1]};
    matrix of_w = {in, out, in}, of_y = {out, rows, out};
    switch (pass) {
    case CS_PASS_FORWARD:
        return (product){of_w, of_x, of_y, .transpose_a = true, .biased = kernel->op->biases > 0};
    case CS_PASS_BACKWARD_INPUT:
        return (product){of_w, of_y, of_dx};
    default:
        return (product){of_x, of_y, of_w, .transpose_b = true, .adds = true};
    }
}

/* ---- plans ---- */

/* Returns the largest power of two, in bytes, that divides the size of these elements. */
static uint32_t alignment_of(int64_t elements, cs_precision precision)
{
    uint32_t bytes = MOST_ALIGNED;
    while (elements * cs_precision_bytes(precision) % bytes != 0)
        bytes /= 2;
    return bytes;
}

/* Describes a product. Algorithms depend on the alignment of the biases, which follow the weights.
 * For the heuristics, a placeholder pointer has this alignment. */
static cs_status describe(cs_cuda_plan *plan, const cs_kernel *kernel, const product *p,
                          cs_error *error)
{
    cudaDataType_t type = kernel->precision == CS_PRECISION_FP16   ? CUDA_R_16F
                          : kernel->precision == CS_PRECISION_BF16 ? CUDA_R_16BF
                                                                   : CUDA_R_32F;
    cublasComputeType_t compute =
        kernel->precision == CS_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t a = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t end = p->biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    uintptr_t biases = p->biased ? alignment_of(kernel->op->weights, kernel->precision) : 0;
    const struct {
        cublasLtMatmulDescAttributes_t name;
        const void *value;
        size_t size;
    } attributes[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof(a)},
                      {CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof(b)},
                      {CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof(end)},
                      {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof(type)},
                      {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &biases, sizeof(biases)}};
    const struct {
        cublasLtMatrixLayout_t *made;
        const matrix *of;
    } layouts[] = {{&plan->a, &p->a}, {&plan->b, &p->b}, {&plan->c, &p->c}};
    cs_status status =
        CS_CUBLAS(cublasLtMatmulDescCreate(&plan->product, compute, CUDA_R_32F), error);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]) && status == CS_OK; i++)
        status = CS_CUBLAS(cublasLtMatmulDescSetAttribute(plan->product, attributes[i].name,
                                                          attributes[i].value, attributes[i].size),
                           error);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]) && status == CS_OK; i++)
        status = CS_CUBLAS(
            cublasLtMatrixLayoutCreate(layouts[i].made, type, (uint64_t)layouts[i].of->rows,
                                       (uint64_t)layouts[i].of->columns, layouts[i].of->stride),
            error);
    return status;
}

/* Names an algorithm by numbers of the library, such as "cublaslt algo 21 tile 20 split 1". */
static cs_status name_algorithm(cs_cuda_plan *plan, cs_error *error)
{
    static const cublasLtMatmulAlgoConfigAttributes_t names[] = {
        CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_SPLITK_NUM};
    int32_t values[3] = {0};
    cs_status status = CS_OK;
    for (int i = 0; i < 3 && status == CS_OK; i++)
        status = CS_CUBLAS(cublasLtMatmulAlgoConfigGetAttribute(&plan->algo, names[i], &values[i],
                                                                sizeof(values[i]), NULL),
                           error);
    snprintf(plan->algorithm, sizeof(plan->algorithm), "cublaslt algo %d tile %d split %d",
             values[0], values[1], values[2]);
    return status;
}

/* Chooses the first algorithm of the heuristics, which is expected to be the fastest. */
static cs_status choose(cs_bench *bench, const cs_kernel *kernel, cs_pass pass, const product *p,
                        int64_t limit, cs_cuda_plan *plan, cs_error *error)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    CS_TRY(CS_CUBLAS(cublasLtMatmulPreferenceCreate(&preference), error));
    /* The alignment of rows follows from their length and their distance; views begin at multiples
     * of their own length. */
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const int64_t places[] = {p->a.rows | p->a.stride, p->b.rows | p->b.stride,
                              p->c.rows | p->c.stride, p->c.rows | p->c.stride};
    size_t bytes = (size_t)limit;
    cs_status status =
        CS_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
                      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)),
                  error);
    for (int i = 0; i < 4 && status == CS_OK; i++) {
        uint32_t aligned = alignment_of(places[i], kernel->precision);
        status = CS_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &aligned,
                                                                sizeof(aligned)),
                           error);
    }
    if (status == CS_OK)
        status =
            CS_CUBLAS(cublasLtMatmulAlgoGetHeuristic(bench->lt, plan->product, plan->a, plan->b,
                                                     plan->c, plan->c, preference, 1, &found, &n),
                      error);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (status == CS_OK && (n == 0 || found.state != CUBLAS_STATUS_SUCCESS))
        return cs_error_add(error, CS_FAILED, "cuBLASLt has no algorithm for %s, %s",
                            kernel->op->name, cs_pass_names[pass]);
    if (status != CS_OK)
        return status;
    plan->algo = found.algo;
    plan->workspace = (int64_t)found.workspaceSize;
    return name_algorithm(plan, error);
}

static cs_status make(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                      const int64_t strides[2], int64_t limit, cs_cuda_plan *plan, cs_error *error)
{
    product p = product_of(kernel, pass, strides);
    cs_status status = describe(plan, kernel, &p, error);
    if (status == CS_OK)
        status = choose(bench, kernel, pass, &p, limit, plan, error);
    plan->row_strides[0] = strides[0];
    plan->row_strides[1] = strides[1];
    return status;
}

static int64_t sums_bytes(const cs_kernel *kernel, cs_pass pass)
{
    const cs_tensor_info *out = cs_kernel_out(kernel);
    return pass == CS_PASS_BACKWARD_WEIGHT && kernel->op->biases > 0
               ? cs_device_sums_bytes(cs_tensor_rows(out) * kernel->batch, cs_tensor_columns(out))
               : 0;
}

/* Plans the product; sums over rows are computed after it, in the same workspace. */
static cs_status plan_linear(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                             cs_cuda_plan *plan, cs_error *error)
{
    int64_t in = cs_tensor_columns(cs_kernel_in(kernel, 0)), sums = sums_bytes(kernel, pass);
    cs_status status =
        make(bench, kernel, pass, (const int64_t[]){in, in}, workspace_limit, plan, error);
    plan->workspace = plan->workspace < sums ? sums : plan->workspace;
    return status;
}

/* Plans again, once and in the same workspace, if the rows of a view have a larger distance than
 * planned.
 */
static cs_status fit_strides(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                             const cs_operands *at, cs_cuda_plan *plan, cs_error *error)
{
    bool single = cs_tensor_rows(cs_kernel_in(kernel, 0)) == 1;
    const cs_view *views[] = {&at->in[0], &at->grad_in[0]};
    int64_t strides[2], workspace = plan->workspace;
    for (int i = 0; i < 2; i++) {
        int64_t stride = single ? views[i]->sample_stride : views[i]->row_stride;
        strides[i] = views[i]->data ? stride : plan->row_strides[i];
    }
    if (strides[0] == plan->row_strides[0] && strides[1] == plan->row_strides[1])
        return CS_OK;
    cs_cuda_plan_finish(plan);
    plan->kernel = *kernel;
    cs_status status = make(bench, kernel, pass, strides, workspace, plan, error);
    plan->workspace = workspace;
    plan->made = status == CS_OK;
    return status;
}

/* ---- running ---- */

static cs_status multiply(cs_bench *bench, const cs_cuda_plan *plan, const void *a, const void *b,
                          void *c, bool adds, void *workspace, cs_error *error)
{
    const float one = 1, beta = adds ? 1 : 0;
    return CS_CUBLAS(cublasLtMatmul(bench->lt, plan->product, &one, a, plan->a, b, plan->b, &beta,
                                    c, plan->c, c, plan->c, &plan->algo, workspace,
                                    (size_t)plan->workspace, bench->stream),
                     error);
}

static cs_status run_linear(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                            cs_cuda_plan *plan, const cs_operands *at, cs_error *error)
{
    const cs_op *op = kernel->op;
    int64_t width = cs_precision_bytes(kernel->precision);
    char *biases = (char *)at->parameters + op->weights * width;
    cs_status status = fit_strides(bench, kernel, pass, at, plan, error);
    if (status == CS_OK && pass == CS_PASS_FORWARD && op->biases > 0)
        status = CS_CUBLAS(cublasLtMatmulDescSetAttribute(plan->product,
                                                          CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                          &biases, sizeof(biases)),
                           error);
    if (status != CS_OK)
        return status;
    if (pass == CS_PASS_FORWARD)
        return multiply(bench, plan, at->parameters, at->in[0].data, at->out.data, false,
                        at->workspace, error);
    if (pass == CS_PASS_BACKWARD_INPUT)
        return multiply(bench, plan, at->parameters, at->grad_out.data, at->grad_in[0].data, false,
                        at->workspace, error);
    status = multiply(bench, plan, at->in[0].data, at->grad_out.data, at->grad_parameters, true,
                      at->workspace, error);
    if (status != CS_OK || op->biases == 0)
        return status;
    const cs_tensor_info *out = cs_kernel_out(kernel);
    int64_t columns = cs_tensor_columns(out);
    return cs_device_sum_rows(&bench->launcher, kernel->precision, at->grad_out.data, columns,
                              cs_tensor_rows(out) * kernel->batch, columns,
                              (char *)at->grad_parameters + op->weights * width, at->workspace,
                              error);
}

const cs_cuda_operator cs_cuda_linear = {plan_linear, run_linear};
