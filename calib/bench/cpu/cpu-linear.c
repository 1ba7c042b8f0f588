#include "calib/bench/cpu/cpu-kernels.h"

#include <cblas.h>
#include <math.h>

/* ---- linear layers ---- */

/* A linear layer as one matrix product: the rows of all samples have the same distance. */
typedef struct product {
    int rows, in, out;
    int in_stride, grad_stride;
} product;

static int stride_of(const cs_view *view, int64_t rows)
{
    return (int)(rows == 1 ? view->sample_stride : view->row_stride);
}

static product product_of(const cs_kernel *kernel, const cs_operands *at)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0), *out = cs_kernel_out(kernel);
    int64_t rows = cs_tensor_rows(in);
    return (product){.rows = (int)(rows * kernel->batch),
                     .in = (int)cs_tensor_columns(in),
                     .out = (int)cs_tensor_columns(out),
                     .in_stride = stride_of(&at->in[0], rows),
                     .grad_stride = stride_of(&at->grad_in[0], rows)};
}

void cs_cpu_linear_forward(const cs_kernel *kernel, const cs_operands *at)
{
    product p = product_of(kernel, at);
    float *out = at->out.data;
    const float *biases = (float *)at->parameters + kernel->op->weights;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p.rows, p.out, p.in, 1, at->in[0].data,
                p.in_stride, at->parameters, p.in, 0, out, p.out);
    for (int r = 0; kernel->op->biases > 0 && r < p.rows; r++)
        for (int c = 0; c < p.out; c++)
            out[(int64_t)r * p.out + c] += biases[c];
}

void cs_cpu_linear_input(const cs_kernel *kernel, const cs_operands *at)
{
    product p = product_of(kernel, at);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p.rows, p.in, p.out, 1,
                at->grad_out.data, p.out, at->parameters, p.in, 0, at->grad_in[0].data,
                p.grad_stride);
}

void cs_cpu_linear_weight(const cs_kernel *kernel, const cs_operands *at)
{
    product p = product_of(kernel, at);
    const float *grad = at->grad_out.data;
    float *biases = (float *)at->grad_parameters + kernel->op->weights;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, p.out, p.in, p.rows, 1, grad, p.out,
                at->in[0].data, p.in_stride, 1, at->grad_parameters, p.in);
    for (int r = 0; kernel->op->biases > 0 && r < p.rows; r++)
        for (int c = 0; c < p.out; c++)
            biases[c] += grad[(int64_t)r * p.out + c];
}

/* ---- attention ---- */

/* Attention. Per sample and head: scores = q k^T / sqrt(features), weights = softmax(scores), out =
 * dropout(weights) v. If there are fewer heads of keys than of queries, several queries share one.
 * The weights are saved, and also the dropout mask and the weights after dropout (op-cost.h); the
 * fused kernel recomputes them all in the workspace. */
typedef struct heads {
    int tokens, features; /* features per head */
    uint32_t n, shared;   /* heads; heads that share keys and values */
    int64_t all;          /* elements of the weights of all samples and heads */
    bool saves, causal, drops;
    float scale;
} heads;

/* Matrices of one head; without dropout, `dropped` points to the weights. */
typedef struct matrices {
    float *weights, *dropped;
    uint8_t *mask; /* NULL: not kept */
    uint64_t seed; /* odd seed of the mask */
} matrices;

static heads heads_of(const cs_kernel *kernel)
{
    const cs_attention *a = &kernel->op->attention;
    const cs_shape *out = &cs_kernel_out(kernel)->shape;
    int features = (int)(out->dims[1] / a->heads);
    return (heads){.tokens = (int)out->dims[0],
                   .features = features,
                   .n = a->heads,
                   .shared = a->kv_heads > 0 ? a->heads / a->kv_heads : 1,
                   .all = (int64_t)kernel->batch * a->heads * out->dims[0] * out->dims[0],
                   .saves = a->kernel == CS_ATTENTION_MATH,
                   .causal = a->causal,
                   .drops = a->dropout > 0,
                   .scale = 1 / sqrtf((float)features)};
}

static float *head_data(const cs_view *view, uint32_t sample, uint32_t head, int features)
{
    return (float *)view->data + sample * view->sample_stride + (int64_t)head * features;
}

/* Writes tokens x tokens attention weights. */
static void weigh(const heads *h, const cs_operands *at, uint32_t sample, uint32_t head,
                  float *weights)
{
    int t = h->tokens, f = h->features;
    const float *q = head_data(&at->in[0], sample, head, f);
    const float *k = head_data(&at->in[1], sample, head / h->shared, f);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t, t, f, h->scale, q,
                (int)at->in[0].row_stride, k, (int)at->in[1].row_stride, 0, weights, t);
    for (int r = 0; r < t; r++) {
        int seen = h->causal ? r + 1 : t;
        float *row = weights + (int64_t)r * t;
        float most = row[0], sum = 0;
        for (int i = 1; i < seen; i++)
            most = row[i] > most ? row[i] : most;
        for (int i = 0; i < seen; i++) {
            row[i] = expf(row[i] - most);
            sum += row[i];
        }
        for (int i = 0; i < seen; i++)
            row[i] /= sum;
        for (int c = seen; c < t; c++)
            weights[(int64_t)r * t + c] = 0;
    }
}

/* Assigns the matrices of a head. Those that are not saved are in the workspace: weights, the
 * gradient (backward), weights after dropout; in a forward these overwrite the weights. */
static matrices matrices_at(const heads *h, const cs_operands *at, uint32_t sample, uint32_t head,
                            bool backward)
{
    const int64_t size = (int64_t)h->tokens * h->tokens, index = sample * (int64_t)h->n + head;
    matrices m = {.seed = 2 * (uint64_t)index + 1};
    m.weights = h->saves ? (float *)at->saved + index * size : at->workspace;
    m.dropped = m.weights;
    if (h->drops && h->saves) {
        m.dropped += h->all;
        m.mask = (uint8_t *)((float *)at->saved + 2 * h->all) + index * size;
    } else if (h->drops && backward) {
        m.dropped += 2 * size;
    }
    return m;
}

static bool next_bit(uint64_t *state)
{
    *state *= UINT64_C(0xf1357aea2e62a9c5); /* like cs_cpu_dropout_forward, which also drops half */
    return *state >> 63;
}

static void drop(const heads *h, const matrices *m)
{
    uint64_t state = m->seed;
    for (int64_t i = 0; h->drops && i < (int64_t)h->tokens * h->tokens; i++) {
        const bool keeps = next_bit(&state);
        m->dropped[i] = keeps ? 2 * m->weights[i] : 0;
        if (m->mask)
            m->mask[i] = keeps;
    }
}

void cs_cpu_attention_forward(const cs_kernel *kernel, const cs_operands *at)
{
    heads h = heads_of(kernel);
    int t = h.tokens, f = h.features;
    for (uint32_t s = 0; s < kernel->batch; s++) {
        for (uint32_t head = 0; head < h.n; head++) {
            const matrices m = matrices_at(&h, at, s, head, false);
            weigh(&h, at, s, head, m.weights);
            drop(&h, &m);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t, f, t, 1, m.dropped, t,
                        head_data(&at->in[2], s, head / h.shared, f), (int)at->in[2].row_stride, 0,
                        head_data(&at->out, s, head, f), (int)at->out.row_stride);
        }
    }
}

/* Turns the gradient of the weights into the gradient of the scaled scores, in place. */
static void through_softmax(const heads *h, const float *weights, float *grad)
{
    int t = h->tokens;
    for (int r = 0; r < t; r++) {
        const float *w = weights + (int64_t)r * t;
        float *g = grad + (int64_t)r * t, sum = 0;
        for (int c = 0; c < t; c++)
            sum += w[c] * g[c];
        for (int c = 0; c < t; c++)
            g[c] = w[c] * (g[c] - sum) * h->scale;
    }
}

/* Heads that share keys add their gradients; only the first head clears them before. */
void cs_cpu_attention_input(const cs_kernel *kernel, const cs_operands *at)
{
    heads h = heads_of(kernel);
    int t = h.tokens, f = h.features;
    int q_stride = (int)at->in[0].row_stride, k_stride = (int)at->in[1].row_stride;
    float *grad = (float *)at->workspace + (h.saves ? 0 : (int64_t)t * t);
    for (uint32_t s = 0; s < kernel->batch; s++) {
        for (uint32_t head = 0; head < h.n; head++) {
            uint32_t key = head / h.shared;
            float clear = head % h.shared == 0 ? 0 : 1;
            const matrices m = matrices_at(&h, at, s, head, true);
            const float *out = head_data(&at->grad_out, s, head, f);
            int out_stride = (int)at->grad_out.row_stride;
            if (!h.saves) {
                weigh(&h, at, s, head, m.weights);
                drop(&h, &m);
            }
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t, f, t, 1, m.dropped, t, out,
                        out_stride, clear, head_data(&at->grad_in[2], s, key, f),
                        (int)at->grad_in[2].row_stride);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t, t, f, 1, out, out_stride,
                        head_data(&at->in[2], s, key, f), (int)at->in[2].row_stride, 0, grad, t);
            /* Apply the dropout mask to the gradient, in place. */
            uint64_t state = m.seed;
            for (int64_t i = 0; h.drops && i < (int64_t)h.tokens * h.tokens; i++)
                grad[i] = (m.mask ? m.mask[i] : next_bit(&state)) ? 2 * grad[i] : 0;
            through_softmax(&h, m.weights, grad);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t, f, t, 1, grad, t,
                        head_data(&at->in[1], s, key, f), k_stride, 0,
                        head_data(&at->grad_in[0], s, head, f), (int)at->grad_in[0].row_stride);
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t, f, t, 1, grad, t,
                        head_data(&at->in[0], s, head, f), q_stride, clear,
                        head_data(&at->grad_in[1], s, key, f), (int)at->grad_in[1].row_stride);
        }
    }
}
