/* The functions of cuBLAS and cuBLASLt that linear layers and attention call, as plain loops on
 * host memory; tests link them in front of the libraries. Only float32. Types, algorithms and
 * workspaces of a call are ignored, alignments are checked. */
#include <cublasLt.h>
#include <cublas_v2.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Column-major: element (r, c) of a matrix is at data[r + c * stride]. */
typedef struct matrix {
    float *data;
    int64_t stride;
    bool transposed;
} matrix;

static float *at(const matrix *m, int64_t r, int64_t c)
{
    return m->data + (m->transposed ? c + r * m->stride : r + c * m->stride);
}

static void multiply(const matrix *a, const matrix *b, const matrix *c, int64_t m, int64_t n,
                     int64_t k, float scale, float beta, const float *biases)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) {
            float *to = at(c, i, j), sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += *at(a, i, l) * *at(b, l, j);
            float before = beta != 0 ? beta * *to : 0; /* without beta, the old value is not read */
            *to = scale * sum + before + (biases ? biases[i] : 0);
        }
    }
}

/* ---- cuBLAS ---- */

/* Alignment that tensor cores require of a list of matrices: rows, and so pointers, at multiples of
 * 16 bytes. */
static bool are_aligned(const void *const list[], int n, int stride)
{
    uintptr_t all = (uintptr_t)stride * sizeof(float);
    for (int i = 0; i < n; i++)
        all |= (uintptr_t)list[i];
    return all % 16 == 0;
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                   const void *const Aarray[], cudaDataType Atype, int lda,
                                   const void *const Barray[], cudaDataType Btype, int ldb,
                                   const void *beta, void *const Carray[], cudaDataType Ctype,
                                   int ldc, int batchCount, cublasComputeType_t computeType,
                                   cublasGemmAlgo_t algo)
{
    (void)handle, (void)Atype, (void)Btype, (void)Ctype, (void)algo;
    if (computeType == CUBLAS_COMPUTE_32F_FAST_TF32 &&
        (!are_aligned(Aarray, batchCount, lda) || !are_aligned(Barray, batchCount, ldb) ||
         !are_aligned((const void *const *)Carray, batchCount, ldc)))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < batchCount; i++) {
        matrix a = {(float *)Aarray[i], lda, transa != CUBLAS_OP_N};
        matrix b = {(float *)Barray[i], ldb, transb != CUBLAS_OP_N};
        matrix c = {Carray[i], ldc, false};
        multiply(&a, &b, &c, m, n, k, *(const float *)alpha, *(const float *)beta, NULL);
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- cuBLASLt: descriptors are opaque words, which store their settings here ---- */

typedef struct layout {
    uint64_t rows, columns;
    int64_t stride;
} layout;

typedef struct product {
    int32_t transpose_a, transpose_b, epilogue;
    const float *biases;
} product;

/* Alignments that the choice of an algorithm may assume: in bytes, of a, b, c, d, biases. */
typedef struct alignments {
    uint64_t of[5];
} alignments;

_Static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "room for a layout");
_Static_assert(sizeof(alignments) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "room for them");
_Static_assert(sizeof(alignments) <= sizeof(cublasLtMatmulAlgo_t), "room for them");
_Static_assert(sizeof(product) <= sizeof(cublasLtMatmulDescOpaque_t), "room for a product");

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t cols,
                                                 int64_t ld)
{
    layout of = {rows, cols, ld};
    (void)type;
    memset(matLayout, 0, size);
    memcpy(matLayout, &of, sizeof(of));
    return CUBLAS_STATUS_SUCCESS;
}

static cublasLtMatrixLayoutOpaque_t layouts[64];
static cublasLtMatmulDescOpaque_t products[64];
static uint64_t layouts_used, products_used; /* a bit per place */

static int take(uint64_t *used)
{
    for (int i = 0; i < 64; i++) {
        if (*used & UINT64_C(1) << i)
            continue;
        *used |= UINT64_C(1) << i;
        return i;
    }
    return -1;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    int i = take(&layouts_used);
    if (i < 0)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *matLayout = &layouts[i];
    return cublasLtMatrixLayoutInit_internal(*matLayout, sizeof(layouts[i]), type, rows, cols, ld);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout)
{
    layouts_used &= ~(UINT64_C(1) << (matLayout - layouts));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc,
                                        cublasComputeType_t computeType, cudaDataType_t scaleType)
{
    int i = take(&products_used);
    (void)computeType, (void)scaleType;
    if (i < 0)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(&products[i], 0, sizeof(products[i]));
    *matmulDesc = &products[i];
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc)
{
    products_used &= ~(UINT64_C(1) << (matmulDesc - products));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
                                              cublasLtMatmulDescAttributes_t attr, const void *buf,
                                              size_t sizeInBytes)
{
    product of;
    memcpy(&of, matmulDesc, sizeof(of));
    if (attr == CUBLASLT_MATMUL_DESC_TRANSA)
        memcpy(&of.transpose_a, buf, sizeInBytes);
    if (attr == CUBLASLT_MATMUL_DESC_TRANSB)
        memcpy(&of.transpose_b, buf, sizeInBytes);
    if (attr == CUBLASLT_MATMUL_DESC_EPILOGUE)
        memcpy(&of.epilogue, buf, sizeInBytes);
    if (attr == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
        memcpy(&of.biases, buf, sizeInBytes);
    memcpy(matmulDesc, &of, sizeof(of));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    static cublasLtMatmulPreferenceOpaque_t none;
    *pref = &none;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    (void)pref;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr,
                                                    const void *buf, size_t sizeInBytes)
{
    int i = (int)attr - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    uint32_t bytes;
    alignments told;
    if (i < 0 || i > 3)
        return CUBLAS_STATUS_SUCCESS;
    if (sizeInBytes != sizeof(bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&bytes, buf, sizeof(bytes));
    memcpy(&told, pref, sizeof(told));
    told.of[i] = bytes;
    memcpy(pref, &told, sizeof(told));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount)
{
    alignments told;
    product of;
    (void)lightHandle, (void)Adesc, (void)Bdesc, (void)Cdesc, (void)Ddesc;
    (void)requestedAlgoCount;
    memcpy(&told, preference, sizeof(told));
    memcpy(&of, operationDesc, sizeof(of));
    uintptr_t biases = (uintptr_t)of.biases;
    told.of[4] = biases & (~biases + 1); /* its lowest bit */
    if (of.epilogue == CUBLASLT_EPILOGUE_BIAS && !biases)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(&heuristicResultsArray[0], 0, sizeof(heuristicResultsArray[0]));
    memcpy(&heuristicResultsArray[0].algo, &told, sizeof(told));
    *returnAlgoCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr,
                                                    void *buf, size_t sizeInBytes,
                                                    size_t *sizeWritten)
{
    (void)algo, (void)attr, (void)sizeWritten;
    memset(buf, 0, sizeInBytes);
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_placed(const void *data, int64_t stride, uint64_t alignment)
{
    return ((uintptr_t)data | (uintptr_t)stride * sizeof(float)) % alignment == 0;
}

/* Sizes have to agree, as the library demands it, and places to be what the algorithm was chosen
 * for.
 */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
                              const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
                              const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
                              const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspaceSizeInBytes, cudaStream_t stream)
{
    layout a, b, c;
    product of;
    alignments told;
    (void)lightHandle, (void)workspace, (void)workspaceSizeInBytes, (void)stream;
    memcpy(&told, algo, sizeof(told));
    memcpy(&a, Adesc, sizeof(a));
    memcpy(&b, Bdesc, sizeof(b));
    memcpy(&c, Cdesc, sizeof(c));
    memcpy(&of, computeDesc, sizeof(of));
    bool ta = of.transpose_a != CUBLAS_OP_N, tb = of.transpose_b != CUBLAS_OP_N;
    uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
    uint64_t n = tb ? b.rows : b.columns;
    if (C != D || Cdesc != Ddesc || c.rows != m || c.columns != n ||
        k != (tb ? b.columns : b.rows) || a.stride < (int64_t)a.rows ||
        b.stride < (int64_t)b.rows || c.stride < (int64_t)c.rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_placed(A, a.stride, told.of[0]) || !is_placed(B, b.stride, told.of[1]) ||
        !is_placed(C, c.stride, told.of[2]) || told.of[3] != told.of[2] ||
        (of.epilogue == CUBLASLT_EPILOGUE_BIAS && !is_placed(of.biases, 0, told.of[4])))
        return CUBLAS_STATUS_INVALID_VALUE;
    matrix ma = {(float *)A, a.stride, ta}, mb = {(float *)B, b.stride, tb};
    matrix mc = {D, c.stride, false};
    multiply(&ma, &mb, &mc, (int64_t)m, (int64_t)n, (int64_t)k, *(const float *)alpha,
             *(const float *)beta, of.epilogue == CUBLASLT_EPILOGUE_BIAS ? of.biases : NULL);
    return CUBLAS_STATUS_SUCCESS;
}
