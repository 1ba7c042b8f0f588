/* Operators that gather or sum: pooling, embeddings, losses. */
#include "calib/bench/cpu/cpu-kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- pooling ---- */

/* A window along one direction: [first, end) of the input, for an output. */
typedef struct span {
    int64_t first, end;
} span;

typedef struct pool {
    cs_op_kind kind;
    int64_t planes;
    int64_t in[3], out[3];
    const cs_op *op;
} pool;

static pool pool_of(const cs_kernel *kernel)
{
    const cs_shape *in = &cs_kernel_in(kernel, 0)->shape, *out = &cs_kernel_out(kernel)->shape;
    pool p = {
        .kind = kernel->op->kind, .planes = (int64_t)in->dims[0] * kernel->batch, .op = kernel->op};
    for (uint32_t i = 0; i < 3; i++) {
        p.in[i] = 1 + i < in->rank ? in->dims[1 + i] : 1;
        p.out[i] = 1 + i < out->rank ? out->dims[1 + i] : 1;
    }
    return p;
}

/* Returns the input of an output. Adaptive pooling divides the input as evenly as possible. */
static span window(const pool *p, uint32_t axis, int64_t o)
{
    int64_t n = p->in[axis];
    if (p->kind == CS_OP_ADAPTIVE_POOL)
        return (span){o * n / p->out[axis], ((o + 1) * n + p->out[axis] - 1) / p->out[axis]};
    if (axis >= p->op->kernel.rank)
        return (span){0, 1};
    int64_t first = o * p->op->stride.size[axis] - p->op->pad.size[axis];
    int64_t end = first + p->op->kernel.size[axis];
    return (span){first < 0 ? 0 : first, end > n ? n : end};
}

/* Returns the mean of a window, or its maximum and the place of the maximum. */
static float reduce(const pool *p, const float *plane, const span w[3], int64_t *place)
{
    bool most = p->kind == CS_OP_MAX_POOL;
    float value = most ? -FLT_MAX : 0;
    int64_t count = 0;
    for (int64_t a = w[0].first; a < w[0].end; a++)
        for (int64_t b = w[1].first; b < w[1].end; b++)
            for (int64_t c = w[2].first; c < w[2].end; c++) {
                int64_t i = (a * p->in[1] + b) * p->in[2] + c;
                if (most && plane[i] > value) {
                    value = plane[i];
                    *place = i;
                }
                if (!most)
                    value += plane[i];
                count++;
            }
    return most || count == 0 ? value : value / (float)count;
}

static void spread(const pool *p, float *plane, const span w[3], float value)
{
    int64_t count = (w[0].end - w[0].first) * (w[1].end - w[1].first) * (w[2].end - w[2].first);
    float share = count > 0 ? value / (float)count : 0;
    for (int64_t a = w[0].first; a < w[0].end; a++)
        for (int64_t b = w[1].first; b < w[1].end; b++)
            for (int64_t c = w[2].first; c < w[2].end; c++)
                plane[(a * p->in[1] + b) * p->in[2] + c] += share;
}

typedef void visit(const pool *p, int64_t plane, int64_t out, const span w[3],
                   const cs_operands *at);

static void for_windows(const cs_kernel *kernel, const cs_operands *at, visit *visitor)
{
    pool p = pool_of(kernel);
    span w[3];
    int64_t out = 0;
    for (int64_t plane = 0; plane < p.planes; plane++) {
        for (int64_t a = 0; a < p.out[0]; a++) {
            w[0] = window(&p, 0, a);
            for (int64_t b = 0; b < p.out[1]; b++) {
                w[1] = window(&p, 1, b);
                for (int64_t c = 0; c < p.out[2]; c++) {
                    w[2] = window(&p, 2, c);
                    visitor(&p, plane, out++, w, at);
                }
            }
        }
    }
}

static int64_t plane_size(const pool *p)
{
    return p->in[0] * p->in[1] * p->in[2];
}

static void visit_forward(const pool *p, int64_t plane, int64_t out, const span w[3],
                          const cs_operands *at)
{
    int64_t place = 0;
    ((float *)at->out.data)[out] =
        reduce(p, (const float *)at->in[0].data + plane * plane_size(p), w, &place);
    if (p->kind == CS_OP_MAX_POOL)
        ((int64_t *)at->saved)[out] = place;
}

static void visit_input(const pool *p, int64_t plane, int64_t out, const span w[3],
                        const cs_operands *at)
{
    float *grad = (float *)at->grad_in[0].data + plane * plane_size(p);
    float value = ((const float *)at->grad_out.data)[out];
    if (p->kind == CS_OP_MAX_POOL)
        grad[((const int64_t *)at->saved)[out]] += value;
    else
        spread(p, grad, w, value);
}

void cs_cpu_pool_forward(const cs_kernel *kernel, const cs_operands *at)
{
    for_windows(kernel, at, visit_forward);
}

void cs_cpu_pool_input(const cs_kernel *kernel, const cs_operands *at)
{
    int64_t n = cs_kernel_in(kernel, 0)->elements * kernel->batch;
    memset(at->grad_in[0].data, 0, (size_t)n * sizeof(float));
    for_windows(kernel, at, visit_input);
}

/* ---- embedding: skips ids whose rows are on other places ---- */

void cs_cpu_embedding_forward(const cs_kernel *kernel, const cs_operands *at)
{
    int64_t columns = cs_tensor_columns(cs_kernel_out(kernel));
    const int64_t *ids = at->in[0].data, rows = kernel->op->weights / columns;
    for (int64_t i = 0, n = cs_kernel_in(kernel, 0)->elements * kernel->batch; i < n; i++) {
        const int64_t row = ids[i] - kernel->first;
        float *out = (float *)at->out.data + i * columns;
        if (row >= 0 && row < rows)
            memcpy(out, (float *)at->parameters + row * columns, (size_t)columns * sizeof(*out));
        else
            memset(out, 0, (size_t)columns * sizeof(*out));
    }
}

void cs_cpu_embedding_weight(const cs_kernel *kernel, const cs_operands *at)
{
    int64_t columns = cs_tensor_columns(cs_kernel_out(kernel));
    const int64_t *ids = at->in[0].data, rows = kernel->op->weights / columns;
    for (int64_t i = 0, n = cs_kernel_in(kernel, 0)->elements * kernel->batch; i < n; i++) {
        const int64_t row = ids[i] - kernel->first;
        float *grad = (float *)at->grad_parameters + row * columns;
        const float *g = (const float *)at->grad_out.data + i * columns;
        for (int64_t c = 0; row >= 0 && row < rows && c < columns; c++)
            grad[c] += g[c];
    }
}

/* ---- losses: means over all rows or elements; targets are generated ---- */

/* Saves the logarithms of the probabilities, then an int64 target per row. */
void cs_cpu_entropy_forward(const cs_kernel *kernel, const cs_operands *at)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0);
    int64_t columns = cs_tensor_columns(in), rows = cs_tensor_rows(in) * kernel->batch;
    float *logarithms = at->saved, loss = 0;
    int64_t *targets = (int64_t *)(void *)((char *)at->saved + cs_kernel_targets_at(kernel));
    for (int64_t r = 0; r < rows; r++) {
        const float *x = (const float *)at->in[0].data + r * columns;
        float most = x[0], sum = 0;
        for (int64_t c = 1; c < columns; c++)
            most = x[c] > most ? x[c] : most;
        for (int64_t c = 0; c < columns; c++)
            sum += expf(x[c] - most);
        float shift = most + logf(sum);
        for (int64_t c = 0; c < columns; c++)
            logarithms[r * columns + c] = x[c] - shift;
        targets[r] = r % columns;
        loss -= logarithms[r * columns + targets[r]];
    }
    *(float *)at->out.data = loss / (float)rows;
}

void cs_cpu_entropy_input(const cs_kernel *kernel, const cs_operands *at)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0);
    int64_t columns = cs_tensor_columns(in), rows = cs_tensor_rows(in) * kernel->batch;
    const float *logarithms = at->saved;
    const int64_t *targets =
        (const int64_t *)(const void *)((const char *)at->saved + cs_kernel_targets_at(kernel));
    float *dx = at->grad_in[0].data, scale = 1 / (float)rows;
    for (int64_t i = 0; i < rows * columns; i++)
        dx[i] = expf(logarithms[i]) * scale;
    for (int64_t r = 0; r < rows; r++)
        if (targets[r] >= 0) /* else another place has this logit */
            dx[r * columns + targets[r]] -= scale;
}

/* The target is a row of zeros. */
void cs_cpu_squares_forward(const cs_kernel *kernel, const cs_operands *at)
{
    const float *x = at->in[0].data;
    float *target = at->saved, sum = 0;
    int64_t n = cs_kernel_in(kernel, 0)->elements * kernel->batch;
    memset(target, 0, (size_t)n * sizeof(*target));
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - target[i]) * (x[i] - target[i]);
    *(float *)at->out.data = sum / (float)n;
}

void cs_cpu_squares_input(const cs_kernel *kernel, const cs_operands *at)
{
    const float *x = at->in[0].data, *target = at->saved;
    float *dx = at->grad_in[0].data;
    int64_t n = cs_kernel_in(kernel, 0)->elements * kernel->batch;
    for (int64_t i = 0; i < n; i++)
        dx[i] = 2 * (x[i] - target[i]) / (float)n;
}
