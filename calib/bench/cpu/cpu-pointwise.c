#include "calib/bench/cpu/cpu-kernels.h"

#include <math.h>
#include <string.h>

static int64_t elements_of(const cs_kernel *kernel)
{
    return cs_kernel_out(kernel)->elements * kernel->batch;
}

/* ---- functions of one element ---- */

static const float gelu_slope = 0.7071067811865476f, gelu_peak = 0.3989422804014327f;

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

void cs_cpu_map_forward(const cs_kernel *kernel, const cs_operands *at)
{
    const float *x = at->in[0].data;
    float *y = at->out.data;
    int64_t n = elements_of(kernel);
    switch (kernel->op->kind) {
    case CS_OP_RELU:
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] > 0 ? x[i] : 0;
        break;
    case CS_OP_GELU:
        for (int64_t i = 0; i < n; i++)
            y[i] = 0.5f * x[i] * (1 + erff(x[i] * gelu_slope));
        break;
    case CS_OP_SILU:
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * sigmoid(x[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            y[i] = tanhf(x[i]);
        break;
    }
}

/* ReLU and tanh use only their output, GELU and SiLU their input. */
void cs_cpu_map_input(const cs_kernel *kernel, const cs_operands *at)
{
    const float *x = at->in[0].data, *y = at->out.data, *g = at->grad_out.data;
    float *dx = at->grad_in[0].data;
    int64_t n = elements_of(kernel);
    switch (kernel->op->kind) {
    case CS_OP_RELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] > 0 ? g[i] : 0;
        break;
    case CS_OP_GELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = g[i] * (0.5f * (1 + erff(x[i] * gelu_slope)) +
                            x[i] * gelu_peak * expf(-0.5f * x[i] * x[i]));
        break;
    case CS_OP_SILU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = g[i] * sigmoid(x[i]) * (1 + x[i] * (1 - sigmoid(x[i])));
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            dx[i] = g[i] * (1 - y[i] * y[i]);
        break;
    }
}

/* ---- sums and products ---- */

/* Returns the first number of the table that this place uses; a place with a part of the tokens has
 * their rows. */
static int64_t first_of_table(const cs_kernel *kernel)
{
    return kernel->first * cs_tensor_columns(cs_kernel_out(kernel));
}

/* Adds two tensors, or a tensor and the first rows of a learned table, the same for every
 * sample. */
void cs_cpu_add_forward(const cs_kernel *kernel, const cs_operands *at)
{
    const float *a = at->in[0].data, *b = at->in[1].data;
    float *y = at->out.data;
    int64_t n = cs_kernel_out(kernel)->elements;
    if (kernel->op->n_inputs == 1) {
        const float *table = (const float *)at->parameters + first_of_table(kernel);
        for (int64_t s = 0; s < kernel->batch; s++)
            for (int64_t i = 0; i < n; i++)
                y[s * n + i] = a[s * n + i] + table[i];
        return;
    }
    for (int64_t i = 0; i < n * kernel->batch; i++)
        y[i] = a[i] + b[i];
}

static void hand_on(const cs_view *from, const cs_view *to, int64_t n)
{
    if (to->data && to->data != from->data)
        memcpy(to->data, from->data, (size_t)n * sizeof(float));
}

void cs_cpu_add_weight(const cs_kernel *kernel, const cs_operands *at)
{
    const float *g = at->grad_out.data;
    float *grad = (float *)at->grad_parameters + first_of_table(kernel);
    int64_t n = cs_kernel_out(kernel)->elements;
    for (int64_t s = 0; s < kernel->batch; s++)
        for (int64_t i = 0; i < n; i++)
            grad[i] += g[s * n + i];
}

void cs_cpu_mul_forward(const cs_kernel *kernel, const cs_operands *at)
{
    const float *a = at->in[0].data, *b = at->in[1].data;
    float *y = at->out.data;
    for (int64_t i = 0, n = elements_of(kernel); i < n; i++)
        y[i] = a[i] * b[i];
}

void cs_cpu_mul_input(const cs_kernel *kernel, const cs_operands *at)
{
    const float *g = at->grad_out.data;
    for (uint32_t k = 0; k < 2; k++) {
        const float *other = at->in[1 - k].data;
        float *dx = at->grad_in[k].data;
        for (int64_t i = 0, n = elements_of(kernel); dx && i < n; i++)
            dx[i] = g[i] * other[i];
    }
}

/* ---- dropout ---- */

/* Drops half of the elements, whatever the probability, because the time does not depend on it. The
 * mask comes from a multiplicative generator (Steele and Vigna, 2021), which restarts in every
 * pass. */
void cs_cpu_dropout_forward(const cs_kernel *kernel, const cs_operands *at)
{
    const float *x = at->in[0].data;
    float *y = at->out.data;
    uint8_t *mask = at->saved;
    uint64_t state = 1;
    for (int64_t i = 0, n = elements_of(kernel); i < n; i++) {
        state = state * UINT64_C(0xf1357aea2e62a9c5);
        mask[i] = (uint8_t)(state >> 63);
        y[i] = mask[i] ? 2 * x[i] : 0;
    }
}

void cs_cpu_dropout_input(const cs_kernel *kernel, const cs_operands *at)
{
    const float *g = at->grad_out.data;
    float *dx = at->grad_in[0].data;
    const uint8_t *mask = at->saved;
    for (int64_t i = 0, n = elements_of(kernel); i < n; i++)
        dx[i] = mask[i] ? 2 * g[i] : 0;
}

/* ---- softmax over the last dimension ---- */

void cs_cpu_softmax_forward(const cs_kernel *kernel, const cs_operands *at)
{
    int64_t columns = cs_tensor_columns(cs_kernel_out(kernel));
    for (int64_t r = 0, n = elements_of(kernel) / columns; r < n; r++) {
        const float *x = (const float *)at->in[0].data + r * columns;
        float *y = (float *)at->out.data + r * columns, most = x[0], sum = 0;
        for (int64_t c = 1; c < columns; c++)
            most = x[c] > most ? x[c] : most;
        for (int64_t c = 0; c < columns; c++) {
            y[c] = expf(x[c] - most);
            sum += y[c];
        }
        for (int64_t c = 0; c < columns; c++)
            y[c] /= sum;
    }
}

void cs_cpu_softmax_input(const cs_kernel *kernel, const cs_operands *at)
{
    int64_t columns = cs_tensor_columns(cs_kernel_out(kernel));
    for (int64_t r = 0, n = elements_of(kernel) / columns; r < n; r++) {
        const float *y = (const float *)at->out.data + r * columns;
        const float *g = (const float *)at->grad_out.data + r * columns;
        float *dx = (float *)at->grad_in[0].data + r * columns, sum = 0;
        for (int64_t c = 0; c < columns; c++)
            sum += y[c] * g[c];
        for (int64_t c = 0; c < columns; c++)
            dx[c] = y[c] * (g[c] - sum);
    }
}

/* ---- copies, rotations ---- */

void cs_cpu_copy_forward(const cs_kernel *kernel, const cs_operands *at)
{
    hand_on(&at->in[0], &at->out, elements_of(kernel));
}

void cs_cpu_copy_input(const cs_kernel *kernel, const cs_operands *at)
{
    hand_on(&at->grad_out, &at->grad_in[0], elements_of(kernel));
}

/* Rotates pairs of features; sign -1 rotates back. As in rotary embeddings, the angle is the
 * token's number times a factor of the pair. */
static void rotate(const cs_kernel *kernel, const float *x, float *y, float sign)
{
    const cs_tensor_info *out = cs_kernel_out(kernel);
    int64_t columns = cs_tensor_columns(out), half = columns / 2;
    for (int64_t r = 0, n = elements_of(kernel) / columns; r < n; r++) {
        float token = (float)(r % cs_tensor_rows(out));
        for (int64_t c = 0; c < half; c++) {
            float angle = sign * token * exp2f(-13.287712f * (float)c / (float)half);
            float a = x[r * columns + c], b = x[r * columns + half + c];
            y[r * columns + c] = a * cosf(angle) - b * sinf(angle);
            y[r * columns + half + c] = a * sinf(angle) + b * cosf(angle);
        }
    }
}

void cs_cpu_rotary_forward(const cs_kernel *kernel, const cs_operands *at)
{
    rotate(kernel, at->in[0].data, at->out.data, 1);
}

void cs_cpu_rotary_input(const cs_kernel *kernel, const cs_operands *at)
{
    rotate(kernel, at->grad_out.data, at->grad_in[0].data, -1);
}

/* ---- concatenation along the first dimension ---- */

/* Concatenates; if there are parameters, they are a learned first row. */
void cs_cpu_concat_forward(const cs_kernel *kernel, const cs_operands *at)
{
    float *y = at->out.data;
    for (int64_t s = 0; s < kernel->batch; s++) {
        int64_t learned = kernel->op->weights;
        memcpy(y, at->parameters ? at->parameters : y, (size_t)learned * sizeof(*y));
        y += learned;
        for (uint32_t i = 0; i < kernel->op->n_inputs; i++) {
            int64_t n = cs_kernel_in(kernel, i)->elements;
            memcpy(y, (const float *)at->in[i].data + s * n, (size_t)n * sizeof(*y));
            y += n;
        }
    }
}

void cs_cpu_concat_input(const cs_kernel *kernel, const cs_operands *at)
{
    const float *g = at->grad_out.data;
    for (int64_t s = 0; s < kernel->batch; s++) {
        for (int64_t i = 0; i < kernel->op->weights; i++)
            ((float *)at->grad_parameters)[i] += g[i];
        g += kernel->op->weights;
        for (uint32_t i = 0; i < kernel->op->n_inputs; i++) {
            int64_t n = cs_kernel_in(kernel, i)->elements;
            if (at->grad_in[i].data)
                memcpy((float *)at->grad_in[i].data + s * n, g, (size_t)n * sizeof(*g));
            g += n;
        }
    }
}
