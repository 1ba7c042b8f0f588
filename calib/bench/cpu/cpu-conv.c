#include "calib/bench/cpu/cpu-kernels.h"

#include <cblas.h>
#include <string.h>

/* A convolution with three dimensions of space; missing ones have size 1. */
typedef struct geometry {
    int64_t groups, in_channels, out_channels; /* channels per group */
    int64_t in[3], out[3], kernel[3], stride[3], pad[3];
    int64_t pixels_in, pixels_out, window;
    bool pointwise; /* the columns are the image itself */
} geometry;

static geometry geometry_of(const cs_kernel *kernel)
{
    const cs_op *op = kernel->op;
    const cs_shape *in = &cs_kernel_in(kernel, 0)->shape, *out = &cs_kernel_out(kernel)->shape;
    geometry g = {.groups = op->groups,
                  .in_channels = in->dims[0] / op->groups,
                  .out_channels = out->dims[0] / op->groups,
                  .pixels_in = 1,
                  .pixels_out = 1,
                  .window = 1,
                  .pointwise = true};
    uint32_t rank = op->kernel.rank;
    for (uint32_t i = 0; i < 3; i++) {
        bool has = i < rank;
        g.in[i] = has ? in->dims[1 + i] : 1;
        g.out[i] = has ? out->dims[1 + i] : 1;
        g.kernel[i] = has ? op->kernel.size[i] : 1;
        g.stride[i] = has ? op->stride.size[i] : 1;
        g.pad[i] = has ? op->pad.size[i] : 0;
        g.pixels_in *= g.in[i];
        g.pixels_out *= g.out[i];
        g.window *= g.kernel[i];
        g.pointwise &= g.kernel[i] == 1 && g.stride[i] == 1 && g.pad[i] == 0;
    }
    return g;
}

/* Finds the range of outputs whose window has position k of the kernel inside the image, along one
 * direction. */
static void inside(const geometry *g, int axis, int64_t k, int64_t *first, int64_t *end)
{
    int64_t shift = k - g->pad[axis], stride = g->stride[axis];
    *first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int64_t last = g->in[axis] - 1 - shift;
    *end = last < 0 ? 0 : last / stride + 1;
    *end = *end > g->out[axis] ? g->out[axis] : *end;
    *first = *first > *end ? *end : *first;
}

/* Copies one row of the columns: what position k of the kernel sees of a channel. `back` adds the
 * row to the channel instead. */
static void move_row(const geometry *g, const int64_t k[3], float *channel, float *row, bool back)
{
    int64_t first[3], end[3];
    for (int i = 0; i < 3; i++)
        inside(g, i, k[i], &first[i], &end[i]);
    if (!back)
        memset(row, 0, (size_t)g->pixels_out * sizeof(*row));
    for (int64_t a = first[0]; a < end[0]; a++) {
        for (int64_t b = first[1]; b < end[1]; b++) {
            int64_t ia = a * g->stride[0] + k[0] - g->pad[0];
            int64_t ib = b * g->stride[1] + k[1] - g->pad[1];
            float *in = channel + (ia * g->in[1] + ib) * g->in[2] + k[2] - g->pad[2];
            float *out = row + (a * g->out[1] + b) * g->out[2];
            int64_t step = g->stride[2];
            if (back)
                for (int64_t c = first[2]; c < end[2]; c++)
                    in[c * step] += out[c];
            else
                for (int64_t c = first[2]; c < end[2]; c++)
                    out[c] = in[c * step];
        }
    }
}

/* Runs im2col of one group of one sample; `back` runs its transpose. */
static void move_columns(const geometry *g, float *image, float *columns, bool back)
{
    for (int64_t c = 0; c < g->in_channels; c++) {
        float *channel = image + c * g->pixels_in;
        int64_t k[3];
        for (k[0] = 0; k[0] < g->kernel[0]; k[0]++)
            for (k[1] = 0; k[1] < g->kernel[1]; k[1]++)
                for (k[2] = 0; k[2] < g->kernel[2]; k[2]++) {
                    move_row(g, k, channel, columns, back);
                    columns += g->pixels_out;
                }
    }
}

/* Input, result and weights of one group of one sample. */
typedef struct part {
    float *image, *result, *weights;
} part;

static part part_of(const geometry *g, uint32_t sample, int64_t group, float *images,
                    float *results, float *weights)
{
    int64_t at = sample * g->groups + group;
    return (part){images + at * g->in_channels * g->pixels_in,
                  results + at * g->out_channels * g->pixels_out,
                  weights + group * g->out_channels * g->in_channels * g->window};
}

void cs_cpu_conv_forward(const cs_kernel *kernel, const cs_operands *at)
{
    geometry g = geometry_of(kernel);
    int m = (int)g.out_channels, n = (int)g.pixels_out, k = (int)(g.in_channels * g.window);
    for (uint32_t s = 0; s < kernel->batch; s++) {
        for (int64_t group = 0; group < g.groups; group++) {
            part p = part_of(&g, s, group, at->in[0].data, at->out.data, at->parameters);
            float *columns = g.pointwise ? p.image : at->workspace;
            if (!g.pointwise)
                move_columns(&g, p.image, columns, false);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, p.weights, k,
                        columns, n, 0, p.result, n);
        }
        if (kernel->op->biases > 0) {
            const float *biases = (const float *)at->parameters + kernel->op->weights;
            float *out = (float *)at->out.data + s * g.groups * g.out_channels * g.pixels_out;
            for (int64_t c = 0; c < g.groups * g.out_channels; c++)
                for (int64_t p = 0; p < g.pixels_out; p++)
                    out[c * g.pixels_out + p] += biases[c];
        }
    }
}

void cs_cpu_conv_input(const cs_kernel *kernel, const cs_operands *at)
{
    geometry g = geometry_of(kernel);
    int m = (int)(g.in_channels * g.window), n = (int)g.pixels_out, k = (int)g.out_channels;
    for (uint32_t s = 0; s < kernel->batch; s++) {
        for (int64_t group = 0; group < g.groups; group++) {
            part p = part_of(&g, s, group, at->grad_in[0].data, at->grad_out.data, at->parameters);
            float *columns = g.pointwise ? p.image : at->workspace;
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, p.weights, m, p.result,
                        n, 0, columns, n);
            if (g.pointwise)
                continue;
            memset(p.image, 0, (size_t)(g.in_channels * g.pixels_in) * sizeof(float));
            move_columns(&g, p.image, columns, true);
        }
    }
}

void cs_cpu_conv_weight(const cs_kernel *kernel, const cs_operands *at)
{
    geometry g = geometry_of(kernel);
    int m = (int)g.out_channels, n = (int)(g.in_channels * g.window), k = (int)g.pixels_out;
    for (uint32_t s = 0; s < kernel->batch; s++) {
        for (int64_t group = 0; group < g.groups; group++) {
            part p = part_of(&g, s, group, at->in[0].data, at->grad_out.data, at->grad_parameters);
            float *columns = g.pointwise ? p.image : at->workspace;
            if (!g.pointwise)
                move_columns(&g, p.image, columns, false);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, p.result, k, columns,
                        k, 1, p.weights, n);
        }
        if (kernel->op->biases > 0) {
            float *biases = (float *)at->grad_parameters + kernel->op->weights;
            const float *out =
                (const float *)at->grad_out.data + s * g.groups * g.out_channels * g.pixels_out;
            for (int64_t c = 0; c < g.groups * g.out_channels; c++) {
                float sum = 0;
                for (int64_t p = 0; p < g.pixels_out; p++)
                    sum += out[c * g.pixels_out + p];
                biases[c] += sum;
            }
        }
    }
}
