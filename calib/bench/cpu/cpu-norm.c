#include "calib/bench/cpu/cpu-kernels.h"

#include <math.h>

static const float epsilon = 1e-5f;

/* ---- batch norm: saves mean and inverse deviation of each channel, over samples and pixels
 * ---- */

typedef struct channels {
    int64_t n, pixels, samples;
} channels;

static channels channels_of(const cs_kernel *kernel)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0);
    int64_t n = in->shape.dims[0];
    return (channels){n, in->elements / n, kernel->batch};
}

static const float *pixels_at(const channels *c, const float *image, int64_t sample,
                              int64_t channel)
{
    return image + (sample * c->n + channel) * c->pixels;
}

static void measure_channel(const channels *c, const float *in, int64_t channel, float *mean,
                            float *inverse)
{
    float sum = 0, squares = 0, count = (float)(c->samples * c->pixels);
    for (int64_t s = 0; s < c->samples; s++) {
        const float *x = pixels_at(c, in, s, channel);
        for (int64_t p = 0; p < c->pixels; p++)
            sum += x[p];
    }
    *mean = sum / count;
    for (int64_t s = 0; s < c->samples; s++) {
        const float *x = pixels_at(c, in, s, channel);
        for (int64_t p = 0; p < c->pixels; p++)
            squares += (x[p] - *mean) * (x[p] - *mean);
    }
    *inverse = 1 / sqrtf(squares / count + epsilon);
}

void cs_cpu_batch_norm_forward(const cs_kernel *kernel, const cs_operands *at)
{
    channels c = channels_of(kernel);
    const float *weights = at->parameters, *biases = weights + c.n;
    float *means = at->saved, *inverses = means + c.n;
    for (int64_t i = 0; i < c.n; i++) {
        measure_channel(&c, at->in[0].data, i, &means[i], &inverses[i]);
        float scale = inverses[i] * weights[i], shift = biases[i] - means[i] * scale;
        for (int64_t s = 0; s < c.samples; s++) {
            const float *x = pixels_at(&c, at->in[0].data, s, i);
            float *y = (float *)at->out.data + (s * c.n + i) * c.pixels;
            for (int64_t p = 0; p < c.pixels; p++)
                y[p] = x[p] * scale + shift;
        }
    }
}

/* Computes the sums, over a channel, of the gradient and of the gradient times the normalised
 * input. */
static void sum_channel(const channels *c, const cs_operands *at, int64_t channel, float *sum,
                        float *product)
{
    const float *means = at->saved, *inverses = means + c->n;
    *sum = *product = 0;
    for (int64_t s = 0; s < c->samples; s++) {
        const float *x = pixels_at(c, at->in[0].data, s, channel);
        const float *g = pixels_at(c, at->grad_out.data, s, channel);
        float a = 0, b = 0;
        for (int64_t p = 0; p < c->pixels; p++) {
            a += g[p];
            b += g[p] * (x[p] - means[channel]);
        }
        *sum += a;
        *product += b * inverses[channel];
    }
}

/* Computes dx = w / sigma * (g - mean(g) - x^ * mean(g x^)); the two sums are the gradients of the
 * shift and of the scale. */
void cs_cpu_batch_norm_input(const cs_kernel *kernel, const cs_operands *at)
{
    channels c = channels_of(kernel);
    const float *weights = at->parameters, *means = at->saved, *inverses = means + c.n;
    float *grad = at->grad_parameters, sum, product;
    float count = (float)(c.samples * c.pixels);
    for (int64_t i = 0; i < c.n; i++) {
        sum_channel(&c, at, i, &sum, &product);
        grad[i] += product;
        grad[c.n + i] += sum;
        float scale = weights[i] * inverses[i], mean = sum / count;
        float slope = product / count * inverses[i];
        for (int64_t s = 0; s < c.samples; s++) {
            const float *x = pixels_at(&c, at->in[0].data, s, i);
            const float *g = pixels_at(&c, at->grad_out.data, s, i);
            float *dx = (float *)at->grad_in[0].data + (s * c.n + i) * c.pixels;
            for (int64_t p = 0; p < c.pixels; p++)
                dx[p] = scale * (g[p] - mean - (x[p] - means[i]) * slope);
        }
    }
}

/* ---- layer norm and RMS norm: over the features of a row ---- */

/* Layer norm saves a mean and an inverse deviation per row. RMS norm saves an inverse deviation and
 * the normalised input, like frameworks that compose it from other operators. */
typedef struct rows {
    int64_t n, columns;
    bool centred;
} rows;

static rows rows_of(const cs_kernel *kernel)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0);
    return (rows){cs_tensor_rows(in) * kernel->batch, cs_tensor_columns(in),
                  kernel->op->kind == CS_OP_LAYER_NORM};
}

static float *inverses_of(const rows *r, const cs_operands *at)
{
    return (float *)at->saved + (r->centred ? r->n : 0);
}

static float mean_of(const rows *r, const cs_operands *at, int64_t row)
{
    return r->centred ? ((const float *)at->saved)[row] : 0;
}

static void measure_row(const rows *r, const float *x, float *mean, float *inverse)
{
    float sum = 0, squares = 0;
    for (int64_t c = 0; r->centred && c < r->columns; c++)
        sum += x[c];
    *mean = sum / (float)r->columns;
    for (int64_t c = 0; c < r->columns; c++)
        squares += (x[c] - *mean) * (x[c] - *mean);
    *inverse = 1 / sqrtf(squares / (float)r->columns + epsilon);
}

void cs_cpu_row_norm_forward(const cs_kernel *kernel, const cs_operands *at)
{
    rows r = rows_of(kernel);
    bool shift = kernel->op->biases > 0;
    const float *weights = at->parameters, *biases = weights + r.columns;
    float *inverses = inverses_of(&r, at), *normal = inverses + r.n, mean;
    for (int64_t i = 0; i < r.n; i++) {
        const float *x = (const float *)at->in[0].data + i * r.columns;
        float *y = (float *)at->out.data + i * r.columns;
        measure_row(&r, x, &mean, &inverses[i]);
        if (r.centred)
            ((float *)at->saved)[i] = mean;
        for (int64_t c = 0; c < r.columns; c++)
            y[c] = (x[c] - mean) * inverses[i];
        for (int64_t c = 0; !r.centred && c < r.columns; c++)
            normal[i * r.columns + c] = y[c];
        for (int64_t c = 0; c < r.columns; c++)
            y[c] = y[c] * weights[c] + (shift ? biases[c] : 0);
    }
}

/* Like batch norm; RMS norm does not subtract the mean of the gradient. */
void cs_cpu_row_norm_input(const cs_kernel *kernel, const cs_operands *at)
{
    rows r = rows_of(kernel);
    const float *weights = at->parameters, *inverses = inverses_of(&r, at);
    for (int64_t i = 0; i < r.n; i++) {
        const float *x = (const float *)at->in[0].data + i * r.columns;
        const float *g = (const float *)at->grad_out.data + i * r.columns;
        float *dx = (float *)at->grad_in[0].data + i * r.columns;
        float sum = 0, product = 0, mean = mean_of(&r, at, i), inverse = inverses[i];
        for (int64_t c = 0; c < r.columns; c++) {
            float scaled = g[c] * weights[c];
            sum += scaled;
            product += scaled * (x[c] - mean) * inverse;
        }
        sum = r.centred ? sum / (float)r.columns : 0;
        product /= (float)r.columns;
        for (int64_t c = 0; c < r.columns; c++)
            dx[c] = inverse * (g[c] * weights[c] - sum - (x[c] - mean) * inverse * product);
    }
}

void cs_cpu_row_norm_weight(const cs_kernel *kernel, const cs_operands *at)
{
    rows r = rows_of(kernel);
    bool shift = kernel->op->biases > 0;
    const float *inverses = inverses_of(&r, at);
    float *grad = at->grad_parameters, *biases = grad + r.columns;
    for (int64_t i = 0; i < r.n; i++) {
        const float *x = (const float *)at->in[0].data + i * r.columns;
        const float *g = (const float *)at->grad_out.data + i * r.columns;
        float mean = mean_of(&r, at, i), inverse = inverses[i];
        for (int64_t c = 0; c < r.columns; c++)
            grad[c] += g[c] * (x[c] - mean) * inverse;
        for (int64_t c = 0; shift && c < r.columns; c++)
            biases[c] += g[c];
    }
}
