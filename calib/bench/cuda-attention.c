/* Attention by products of many matrices (cuBLAS) and own kernels for the softmax of their rows.
 *
 * The matrices of samples and heads lie at places that no single distance describes, so cuBLAS gets
 * lists of pointers, which a kernel writes. They are ordered so that those of one place among the
 * heads that share keys follow each other: the gradients of shared keys are added place by place.
 *
 * cuDNN has fused attention, through graphs only, which are not built here: attention that a model
 * says is fused is computed like the other, with its weights in the workspace and again in backward.
 * Its memory between forward and backward is that of a fused kernel, its time is not.
 */
#include "calib/bench/cuda-device.h"

#include <math.h>
#include <stdio.h>

#ifndef CS_ATTENTION_WORKSPACE /* a test has less */
#define CS_ATTENTION_WORKSPACE (INT64_C(1) << 30)
#endif

static const int64_t workspace_limit = CS_ATTENTION_WORKSPACE;

enum list { Q, K, V, O, W, DQ, DK, DV, DO, DW, N_LISTS };

_Static_assert((int)N_LISTS == (int)CS_POINT_LISTS, "the lists that the kernel writes");

typedef struct heads {
    int tokens, features; /* of a head */
    int64_t keys, shared; /* heads of keys; heads of queries per one of them */
    bool saves, causal;
    float scale;
    int64_t width;   /* bytes of a number */
    int64_t matrix;  /* bytes of weights per sample: all heads */
    int64_t at_once; /* samples */
} heads;

static int64_t matrices_of(bool saves, cs_pass pass)
{
    return (saves ? 0 : 1) + (pass == CS_PASS_FORWARD ? 0 : 1);
}

/* As many samples at once as the workspace has room for. */
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
    h.matrix = h.width * a->heads * h.tokens * h.tokens;
    int64_t needs = h.matrix * matrices_of(h.saves, pass);
    if (needs > 0 && workspace_limit / needs < h.at_once)
        h.at_once = workspace_limit / needs > 0 ? workspace_limit / needs : 1;
    return h;
}

static int64_t count_of(const heads *h)
{
    return h->keys * h->shared * h->at_once;
}

/* Rounded up, so that what follows is aligned. */
static int64_t pointer_bytes(const heads *h)
{
    return (N_LISTS * count_of(h) * (int64_t)sizeof(void *) + 255) / 256 * 256;
}

static cs_status plan_attention(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                cs_cuda_plan *plan, cs_error *error)
{
    heads h = heads_of(kernel, pass);
    (void)bench, (void)error;
    plan->workspace = pointer_bytes(&h) + h.at_once * h.matrix * matrices_of(h.saves, pass);
    snprintf(plan->algorithm, sizeof(plan->algorithm), "cublas batched%s",
             h.saves ? "" : ", not fused");
    return CS_OK;
}

/* ---- a group of samples ---- */

typedef struct group {
    cs_bench *bench;
    const cs_kernel *kernel;
    const cs_operands *at;
    heads h;
    int64_t samples, n; /* matrices */
    char **lists;
    char *weights, *grad;
    int strides[N_LISTS];
    cs_error *error;
} group;

/* What the pass does not use is nowhere. */
static cs_point_list list_of(const group *g, const cs_view *view, int64_t first, bool per_key)
{
    if (!view->data)
        return (cs_point_list){0};
    return (cs_point_list){(char *)view->data + first * view->sample_stride * g->h.width,
                           view->sample_stride * g->h.width, g->h.features * g->h.width, per_key};
}

static cs_status write_lists(group *g, int64_t first)
{
    const cs_operands *at = g->at;
    int64_t square = (int64_t)g->h.tokens * g->h.tokens * g->h.width;
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
    work.point.lists[W] = (cs_point_list){g->weights, g->h.matrix, square, 0};
    work.point.lists[DW] = (cs_point_list){g->grad, g->h.matrix, square, 0};
    g->strides[W] = g->strides[DW] = g->h.tokens;
    return cs_launch(&g->bench->launcher, CS_BODY_point, g->kernel->precision, &work,
                     N_LISTS * g->n, g->error);
}

/* c = scale * a b (+ c), in cuBLAS's order, of `n` matrices from `from` on. */
static cs_status multiply(const group *g, enum list a, bool transpose_a, enum list b,
                          bool transpose_b, enum list c, int m, int k, float scale, float beta,
                          int64_t from, int64_t n)
{
    cs_precision p = g->kernel->precision;
    cudaDataType_t type = p == CS_PRECISION_FP16   ? CUDA_R_16F
                          : p == CS_PRECISION_BF16 ? CUDA_R_16BF
                                                   : CUDA_R_32F;
    cublasComputeType_t compute =
        p == CS_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    char **lists = g->lists + from;
    return CS_CUBLAS(cublasGemmBatchedEx(g->bench->blas, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                         transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, m, g->h.tokens, k,
                                         &scale, (const void *const *)(lists + a * g->n), type,
                                         g->strides[a], (const void *const *)(lists + b * g->n),
                                         type, g->strides[b], &beta,
                                         (void *const *)(lists + c * g->n), type, g->strides[c],
                                         (int)n, compute, CUBLAS_GEMM_DEFAULT),
                     g->error);
}

static cs_status soften(const group *g, cs_body body, char *y, const char *a, float scale)
{
    cs_work work = {.y = y, .a = a, .columns = g->h.tokens, .flag = g->h.causal, .scale = scale};
    return cs_launch(&g->bench->launcher, body, g->kernel->precision, &work, g->n * g->h.tokens,
                     g->error);
}

/* w = softmax(q k^T / sqrt(features)) */
static cs_status weigh(const group *g)
{
    int t = g->h.tokens, f = g->h.features;
    cs_status status = multiply(g, K, true, Q, false, W, t, f, g->h.scale, 0, 0, g->n);
    return status == CS_OK ? soften(g, CS_BODY_weigh_forward, g->weights, NULL, 0) : status;
}

/* o = w v */
static cs_status forward(const group *g)
{
    cs_status status = weigh(g);
    return status == CS_OK
               ? multiply(g, V, false, W, false, O, g->h.features, g->h.tokens, 1, 0, 0, g->n)
               : status;
}

/* dv = w^T do, dw = do v^T, through the softmax, dq = dw k, dk = dw^T q; heads that share keys one
 * after the other. */
static cs_status backward(const group *g)
{
    int t = g->h.tokens, f = g->h.features;
    int64_t part = g->n / g->h.shared;
    cs_status status = g->h.saves ? CS_OK : weigh(g);
    if (status == CS_OK)
        status = multiply(g, V, true, DO, false, DW, t, f, 1, 0, 0, g->n);
    for (int64_t s = 0; s < g->h.shared && status == CS_OK; s++)
        status = multiply(g, DO, false, W, true, DV, f, t, 1, s > 0, s * part, part);
    if (status == CS_OK)
        status = soften(g, CS_BODY_weigh_input, g->grad, g->weights, g->h.scale);
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
    cs_status status = CS_OK;
    (void)plan;
    for (int64_t first = 0; first < kernel->batch && status == CS_OK; first += g.h.at_once) {
        int64_t left = kernel->batch - first;
        g.samples = left < g.h.at_once ? left : g.h.at_once;
        g.n = g.samples * g.h.keys * g.h.shared;
        g.weights = g.h.saves ? (char *)at->saved + first * g.h.matrix : room;
        g.grad = g.h.saves ? room : room + g.h.at_once * g.h.matrix;
        status = write_lists(&g, first);
        if (status == CS_OK)
            status = pass == CS_PASS_FORWARD ? forward(&g) : backward(&g);
    }
    return status;
}

const cs_cuda_operator cs_cuda_attention = {plan_attention, run_attention};
