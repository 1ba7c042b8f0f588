/* Attention by batched matrix products (cuBLAS) and own kernels for the softmax of rows.
 *
 * The matrices of samples and heads do not have a constant distance, so cuBLAS gets lists of
 * pointers, which a kernel writes. Heads that share keys add their gradients, so the lists put
 * equal indices among the sharing heads together, and one product after another adds them.
 *
 * Products with tensor cores (tf32 and 2-byte numbers) access 16 bytes at a time, so matrices and
 * rows must begin at multiples of 16 bytes; cuBLAS cannot check pointers in a list. Weights in the
 * workspace have padded rows. Weights that are kept for the backward are contiguous, as in
 * frameworks (with 197 tokens, rows begin at odd multiples of 2 bytes); if products cannot use
 * them, they are computed in the workspace and copied. Unaligned inputs (heads of few features) are
 * multiplied without tensor cores.
 *
 * Fused attention of cuDNN needs graphs, which are not built here. So fused attention is computed
 * like unfused attention, with weights in the workspace that are recomputed in backward. Its memory
 * between forward and backward is realistic, its time is not.
 */
#include "calib/bench/cuda/cuda-device.h"

#include <math.h>
#include <stdio.h>

#ifndef CS_ATTENTION_WORKSPACE /* tests use less */
#define CS_ATTENTION_WORKSPACE (INT64_C(1) << 30)
#endif

static const int64_t workspace_limit = CS_ATTENTION_WORKSPACE;

enum list { Q, K, V, O, W, DQ, DK, DV, DO, DW, N_LISTS };

_Static_assert((int)N_LISTS == (int)CS_POINT_LISTS, "the lists that the kernel writes");

typedef struct heads {
    int tokens, features; /* features per head */
    int64_t keys, shared; /* heads of keys; heads of queries per head of keys */
    bool saves, causal;
    float scale;
    int64_t width;   /* bytes per number */
    int64_t stride;  /* elements between rows of weights in the workspace */
    int64_t kept;    /* bytes of all heads' weights per sample, when kept */
    int64_t matrix;  /* the same in the workspace */
    bool apart;      /* weights are kept, but computed in the workspace and copied */
    int64_t at_once; /* samples that the workspace has space for */
} heads;

enum { ALIGNED = 16 }; /* bytes */

static int64_t matrices_of(const heads *h, cs_pass pass)
{
    return (h->saves && !h->apart ? 0 : 1) + (pass == CS_PASS_FORWARD ? 0 : 1);
}

/* Returns the sizes of an attention, with as many samples at once as the workspace has space
 * for. */
static heads heads_of(const cs_kernel *kernel, cs_pass pass)
{
    const cs_attention *a = &kernel->op->attention;
    const cs_shape *out = &cs_kernel_out(kernel)->shape;
    int64_t keys = a->kv_heads > 0 ? a->kv_heads : a->heads;
    heads h = {.tokens = (int)out->dims[0],
               .features = (int)(out->dims[1] / a->heads),
               .keys = keys,
               .shared = a->heads / keys,
               .saves = a->kernel == CS_ATTENTION_MATH,
               .causal = a->causal,
               .width = cs_precision_bytes(kernel->precision),
               .at_once = kernel->batch};
    h.scale = 1 / sqrtf((float)h.features);
    int64_t unit = ALIGNED / h.width;
    h.stride = (h.tokens + unit - 1) / unit * unit;
    /* Only tensor cores require aligned rows. */
    h.apart = h.saves && kernel->precision != CS_PRECISION_FP32 && h.stride != h.tokens;
    h.kept = h.width * a->heads * h.tokens * h.tokens;
    h.matrix = h.width * a->heads * h.tokens * h.stride;
    int64_t needs = h.matrix * matrices_of(&h, pass);
    if (needs > 0 && workspace_limit / needs < h.at_once)
        h.at_once = workspace_limit / needs > 0 ? workspace_limit / needs : 1;
    return h;
}

/* Returns the bytes of the lists, rounded up so that the following matrices are aligned. */
static int64_t pointer_bytes(const heads *h)
{
    return (N_LISTS * (h->keys * h->shared * h->at_once) * (int64_t)sizeof(void *) + 255) / 256 *
           256;
}

static cs_status plan_attention(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                cs_cuda_plan *plan, cs_error *error)
{
    heads h = heads_of(kernel, pass);
    (void)bench, (void)error;
    plan->workspace = pointer_bytes(&h) + h.at_once * h.matrix * matrices_of(&h, pass);
    snprintf(plan->algorithm, sizeof(plan->algorithm), "cublas batched%s%s",
             h.saves ? "" : ", not fused", h.apart ? ", kept by copy" : "");
    return CS_OK;
}

/* ---- a group of samples ---- */

typedef struct group {
    cs_bench *bench;
    const cs_kernel *kernel;
    const cs_operands *at;
    heads h;
    int64_t samples, n; /* number of matrices */
    char **lists;
    char *weights, *grad, *kept; /* matrices of these samples */
    int64_t stride;              /* elements between rows of weights */
    cublasComputeType_t compute;
    int strides[N_LISTS];
    cs_error *error;
} group;

/* Returns the list of a view's matrices; empty if the pass does not use the view. */
static cs_point_list list_of(const group *g, const cs_view *view, int64_t first, bool per_key)
{
    if (!view->data)
        return (cs_point_list){0};
    return (cs_point_list){(char *)view->data + first * view->sample_stride * g->h.width,
                           view->sample_stride * g->h.width, g->h.features * g->h.width, per_key};
}

/* Whether all matrices of the lists, and their rows, begin at multiples of 16 bytes. */
static bool are_aligned(const cs_point_list *lists, const int *strides, int64_t width)
{
    uintptr_t all = 0;
    for (int i = 0; i < N_LISTS; i++)
        if (lists[i].base)
            all |= (uintptr_t)lists[i].base | (uintptr_t)lists[i].sample_stride |
                   (uintptr_t)lists[i].head_stride | (uintptr_t)(strides[i] * width);
    return all % ALIGNED == 0;
}

static cublasComputeType_t compute_of(cs_precision precision, bool aligned)
{
    if (precision == CS_PRECISION_FP32)
        return CUBLAS_COMPUTE_32F;
    if (precision == CS_PRECISION_TF32)
        return aligned ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return aligned ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_PEDANTIC;
}

/* Writes the lists, and chooses the arithmetic that their alignment allows. */
static cs_status write_lists(group *g, int64_t first)
{
    const cs_operands *at = g->at;
    cs_precision p = g->kernel->precision;
    int64_t row = g->stride * g->h.width, grad_row = g->h.stride * g->h.width;
    const struct {
        enum list list;
        const cs_view *view;
        bool per_key;
    } views[] = {{Q, &at->in[0], false},       {K, &at->in[1], true},
                 {V, &at->in[2], true},        {O, &at->out, false},
                 {DQ, &at->grad_in[0], false}, {DK, &at->grad_in[1], true},
                 {DV, &at->grad_in[2], true},  {DO, &at->grad_out, false}};
    cs_work work = {.y = g->lists,
                    .point = {.samples = g->samples, .keys = g->h.keys, .shared = g->h.shared}};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        work.point.lists[views[i].list] = list_of(g, views[i].view, first, views[i].per_key);
        g->strides[views[i].list] = (int)views[i].view->row_stride;
    }
    work.point.lists[W] = (cs_point_list){g->weights, row * g->h.tokens * g->h.keys * g->h.shared,
                                          row * g->h.tokens, 0};
    work.point.lists[DW] = (cs_point_list){g->grad, g->h.matrix, grad_row * g->h.tokens, 0};
    g->strides[W] = (int)g->stride;
    g->strides[DW] = (int)g->h.stride;
    g->compute = compute_of(p, are_aligned(work.point.lists, g->strides, g->h.width));
    return cs_launch(&g->bench->launcher, CS_BODY_point, p, &work, N_LISTS * g->n, g->error);
}

/* Computes c = scale * a b (+ c), in cuBLAS's order, for `n` matrices from `from` on. */
static cs_status multiply(const group *g, enum list a, bool transpose_a, enum list b,
                          bool transpose_b, enum list c, int m, int k, float scale, float beta,
                          int64_t from, int64_t n)
{
    cs_precision p = g->kernel->precision;
    cudaDataType_t type = p == CS_PRECISION_FP16   ? CUDA_R_16F
                          : p == CS_PRECISION_BF16 ? CUDA_R_16BF
                                                   : CUDA_R_32F;
    char **lists = g->lists + from;
    return CS_CUBLAS(cublasGemmBatchedEx(g->bench->blas, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                         transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, m, g->h.tokens, k,
                                         &scale, (const void *const *)(lists + a * g->n), type,
                                         g->strides[a], (const void *const *)(lists + b * g->n),
                                         type, g->strides[b], &beta,
                                         (void *const *)(lists + c * g->n), type, g->strides[c],
                                         (int)n, g->compute, CUBLAS_GEMM_DEFAULT),
                     g->error);
}

/* Runs a body on each row of the weights of all samples and heads. */
static cs_status soften(const group *g, cs_body body, const cs_work *work)
{
    return cs_launch(&g->bench->launcher, body, g->kernel->precision, work, g->n * g->h.tokens,
                     g->error);
}

/* w = softmax(q k^T / sqrt(features)); `keep`: also where the weights are kept */
static cs_status weigh(const group *g, bool keep)
{
    int t = g->h.tokens, f = g->h.features;
    const cs_work work = {.y = g->weights,
                          .t = keep && g->h.apart ? g->kept : NULL,
                          .columns = t,
                          .to_stride = g->stride,
                          .from_stride = t,
                          .flag = g->h.causal};
    CS_TRY(multiply(g, K, true, Q, false, W, t, f, g->h.scale, 0, 0, g->n));
    return soften(g, CS_BODY_weigh_forward, &work);
}

/* o = w v */
static cs_status forward(const group *g)
{
    cs_status status = weigh(g, true);
    return status == CS_OK
               ? multiply(g, V, false, W, false, O, g->h.features, g->h.tokens, 1, 0, 0, g->n)
               : status;
}

/* Provides the weights for a backward: copies the kept ones, or computes them again. */
static cs_status have_weights(const group *g)
{
    const cs_rows rows = {.from = g->kept,
                          .to = g->weights,
                          .from_stride = g->h.tokens,
                          .to_stride = g->stride,
                          .n = g->n * g->h.tokens,
                          .columns = g->h.tokens};
    if (!g->h.saves)
        return weigh(g, false);
    return g->h.apart
               ? cs_device_copy_rows(&g->bench->launcher, g->kernel->precision, &rows, g->error)
               : CS_OK;
}

/* dv = w^T do, dw = do v^T, then through the softmax, dq = dw k, dk = dw^T q; one product after
 * another for heads that share keys. */
static cs_status backward(const group *g)
{
    int t = g->h.tokens, f = g->h.features;
    int64_t part = g->n / g->h.shared;
    const cs_work work = {.y = g->grad,
                          .a = g->weights,
                          .columns = t,
                          .to_stride = g->h.stride,
                          .from_stride = g->stride,
                          .scale = g->h.scale};
    cs_status status = have_weights(g);
    if (status == CS_OK)
        status = multiply(g, V, true, DO, false, DW, t, f, 1, 0, 0, g->n);
    for (int64_t s = 0; s < g->h.shared && status == CS_OK; s++)
        status = multiply(g, DO, false, W, true, DV, f, t, 1, s > 0, s * part, part);
    if (status == CS_OK)
        status = soften(g, CS_BODY_weigh_input, &work);
    if (status == CS_OK)
        status = multiply(g, K, false, DW, false, DQ, f, t, 1, 0, 0, g->n);
    for (int64_t s = 0; s < g->h.shared && status == CS_OK; s++)
        status = multiply(g, Q, false, DW, true, DK, f, t, 1, s > 0, s * part, part);
    return status;
}

static cs_status run_attention(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                               cs_cuda_plan *plan, const cs_operands *at, cs_error *error)
{
    group g = {.bench = bench,
               .kernel = kernel,
               .at = at,
               .h = heads_of(kernel, pass),
               .lists = at->workspace,
               .error = error};
    char *room = (char *)at->workspace + pointer_bytes(&g.h);
    bool in_place = g.h.saves && !g.h.apart;
    cs_status status = CS_OK;
    (void)plan;
    g.stride = in_place ? g.h.tokens : g.h.stride;
    for (int64_t first = 0; first < kernel->batch && status == CS_OK; first += g.h.at_once) {
        int64_t left = kernel->batch - first;
        g.samples = left < g.h.at_once ? left : g.h.at_once;
        g.n = g.samples * g.h.keys * g.h.shared;
        g.kept = g.h.saves ? (char *)at->saved + first * g.h.kept : NULL;
        g.weights = in_place ? g.kept : room;
        g.grad = in_place ? room : room + g.h.at_once * g.h.matrix;
        status = write_lists(&g, first);
        if (status == CS_OK)
            status = pass == CS_PASS_FORWARD ? forward(&g) : backward(&g);
    }
    return status;
}

const cs_cuda_operator cs_cuda_attention = {plan_attention, run_attention};
