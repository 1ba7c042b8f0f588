/* Bodies of the small kernels (device-work.h), for the GPU and, to be tested, for the host.
 *
 * A body of elements gets the number of its element; one of rows the number of its row, and goes
 * through it by `lane`, `lane + lanes`, ...; on the host a row has one lane, and sums over a block
 * are what its only lane has. Numbers are read and written with the work's precision and computed in
 * float32. The precision is a parameter, so that a compiler that knows it removes the choice.
 */
#ifndef CS_CALIB_DEVICE_CODE_H
#define CS_CALIB_DEVICE_CODE_H

#include "calib/bench/device-work.h"
#include "sim/workload/net.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define CS_DEVICE static __device__ __forceinline__
#else
#define CS_DEVICE static inline
#endif

/* ---- numbers ---- */

#ifdef __CUDACC__

CS_DEVICE float cs_get(cs_precision p, const void *data, int64_t i)
{
    if (p == CS_PRECISION_BF16)
        return __bfloat162float(((const __nv_bfloat16 *)data)[i]);
    if (p == CS_PRECISION_FP16)
        return __half2float(((const __half *)data)[i]);
    return ((const float *)data)[i];
}

CS_DEVICE void cs_set(cs_precision p, void *data, int64_t i, float value)
{
    if (p == CS_PRECISION_BF16)
        ((__nv_bfloat16 *)data)[i] = __float2bfloat16_rn(value);
    else if (p == CS_PRECISION_FP16)
        ((__half *)data)[i] = __float2half_rn(value);
    else
        ((float *)data)[i] = value;
}

/* Adds where several threads may at once. */
CS_DEVICE void cs_add_to(cs_precision p, void *data, int64_t i, float value)
{
    if (p == CS_PRECISION_BF16)
        atomicAdd((__nv_bfloat16 *)data + i, __float2bfloat16_rn(value));
    else if (p == CS_PRECISION_FP16)
        atomicAdd((__half *)data + i, __float2half_rn(value));
    else
        atomicAdd((float *)data + i, value);
}

/* Over all threads of a block, which all get the result: at most 1024, whole warps. */
CS_DEVICE float cs_block_combine(float value, bool most)
{
    __shared__ float of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = most ? fmaxf(value, other) : value + other;
    }
    __syncthreads(); /* those of an earlier call have been read */
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    float all = of_warp[0];
    for (int i = 1; i < warps; i++)
        all = most ? fmaxf(all, of_warp[i]) : all + of_warp[i];
    return all;
}

#else

/* bfloat16: the upper half of a float, rounded to even. */
CS_DEVICE float cs_get(cs_precision p, const void *data, int64_t i)
{
    float value;
    if (p != CS_PRECISION_BF16)
        return ((const float *)data)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

CS_DEVICE void cs_set(cs_precision p, void *data, int64_t i, float value)
{
    uint32_t bits;
    if (p != CS_PRECISION_BF16) {
        ((float *)data)[i] = value;
        return;
    }
    memcpy(&bits, &value, sizeof(bits));
    ((uint16_t *)data)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

CS_DEVICE void cs_add_to(cs_precision p, void *data, int64_t i, float value)
{
    cs_set(p, data, i, cs_get(p, data, i) + value);
}

CS_DEVICE float cs_block_combine(float value, bool most)
{
    (void)most;
    return value;
}

#endif

/* A hash of a position: the mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
CS_DEVICE uint64_t cs_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* In [0, 1). */
CS_DEVICE double cs_fraction(uint64_t seed, int64_t i)
{
    return (double)(cs_mix(seed + (uint64_t)i) >> 11) * 0x1p-53;
}

/* ---- memory: y, by scale = limit ---- */

CS_DEVICE void fill_numbers(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, (float)(2 * cs_fraction(w->seed, i) - 1) * w->scale);
}

CS_DEVICE void fill_ids(cs_precision p, const cs_work *w, int64_t i)
{
    (void)p;
    ((int64_t *)w->y)[i] = (int64_t)(cs_fraction(w->seed, i) * (double)w->n);
}

/* y += a */
CS_DEVICE void accumulate(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, cs_get(p, w->y, i) + cs_get(p, w->a, i));
}

/* Between the numbers of the work and float32: y = a, and y += a. */
CS_DEVICE void widen(cs_precision p, const cs_work *w, int64_t i)
{
    ((float *)w->y)[i] = cs_get(p, w->a, i);
}

CS_DEVICE void accumulate_wide(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, cs_get(p, w->y, i) + ((const float *)w->a)[i]);
}

/* y[sample * to_stride + j] = a[sample * from_stride + j], of `columns` numbers per sample. */
CS_DEVICE void copy_blocks(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t sample = i / w->columns, j = i % w->columns;
    cs_set(p, w->y, sample * w->to_stride + j, cs_get(p, w->a, sample * w->from_stride + j));
}

/* An optimizer with `kind` states, as backend.h has it: parameters a to y, states s, gradients t. */
CS_DEVICE void update(cs_precision p, const cs_work *w, int64_t i)
{
    const float rate = 1e-3f, decay = 0.9f, decay_squares = 0.999f, tiny = 1e-8f;
    bool mixed = p == CS_PRECISION_FP16 || p == CS_PRECISION_BF16;
    float *states = (float *)w->s, step = cs_get(p, w->t, i), g = step;
    int64_t m = i + (mixed ? w->n : 0), v = m + w->n;
    float value = mixed ? states[i] : cs_get(p, w->a, i);
    if (w->kind == 1)
        step = states[m] = decay * states[m] + g;
    if (w->kind == 2) {
        states[m] = decay * states[m] + (1 - decay) * g;
        states[v] = decay_squares * states[v] + (1 - decay_squares) * g * g;
        step = states[m] / (sqrtf(states[v]) + tiny);
    }
    value -= rate * step;
    if (mixed)
        states[i] = value;
    cs_set(p, w->y, i, value);
    cs_set(p, w->t, i, 0);
}

/* ---- functions of one element; kind: cs_op_kind ---- */

CS_DEVICE float cs_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* y = f(a) */
CS_DEVICE void map_forward(cs_precision p, const cs_work *w, int64_t i)
{
    float x = cs_get(p, w->a, i), y;
    if (w->kind == CS_OP_RELU)
        y = x > 0 ? x : 0;
    else if (w->kind == CS_OP_GELU)
        y = 0.5f * x * (1 + erff(x * 0.7071067811865476f));
    else if (w->kind == CS_OP_SILU)
        y = x * cs_sigmoid(x);
    else
        y = tanhf(x);
    cs_set(p, w->y, i, y);
}

/* y = g f'; a is the input of GELU and SiLU, the output of the others. */
CS_DEVICE void map_input(cs_precision p, const cs_work *w, int64_t i)
{
    float x = cs_get(p, w->a, i), slope;
    if (w->kind == CS_OP_RELU)
        slope = x > 0 ? 1 : 0;
    else if (w->kind == CS_OP_GELU)
        slope = 0.5f * (1 + erff(x * 0.7071067811865476f)) +
                x * 0.3989422804014327f * expf(-0.5f * x * x);
    else if (w->kind == CS_OP_SILU)
        slope = cs_sigmoid(x) * (1 + x * (1 - cs_sigmoid(x)));
    else
        slope = 1 - x * x;
    cs_set(p, w->y, i, cs_get(p, w->g, i) * slope);
}

/* y = a + b, b again after every n. */
CS_DEVICE void add(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, cs_get(p, w->a, i) + cs_get(p, w->b, i % w->n));
}

CS_DEVICE void mul(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, cs_get(p, w->a, i) * cs_get(p, w->b, i));
}

/* Half of the elements, whatever the probability: time does not depend on it. s: mask. */
CS_DEVICE void dropout_forward(cs_precision p, const cs_work *w, int64_t i)
{
    bool kept = cs_mix(w->seed + (uint64_t)i) >> 63;
    ((uint8_t *)w->s)[i] = kept;
    cs_set(p, w->y, i, kept ? 2 * cs_get(p, w->a, i) : 0);
}

CS_DEVICE void dropout_input(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, ((const uint8_t *)w->s)[i] ? 2 * cs_get(p, w->g, i) : 0);
}

/* Turns a pair of features: item (row, pair); rows: of a sample, columns: features, scale: 1 or -1
 * for back. Half as many items as elements. */
CS_DEVICE void rotate(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t half = w->columns / 2, row = i / half, c = i % half, at = row * w->columns + c;
    float angle = w->scale * (float)(row % w->rows) * exp2f(-13.287712f * (float)c / (float)half);
    float a = cs_get(p, w->a, at), b = cs_get(p, w->a, at + half);
    cs_set(p, w->y, at, a * cosf(angle) - b * sinf(angle));
    cs_set(p, w->y, at + half, a * sinf(angle) + b * cosf(angle));
}

/* ---- pooling; s: positions of maxima within their plane ---- */

typedef struct cs_span_1d {
    int64_t first, end;
} cs_span_1d;

/* Inputs of an output, along one direction. */
CS_DEVICE cs_span_1d cs_window_in(const cs_window_work *v, int axis, int64_t o)
{
    int64_t n = v->in[axis], first, end;
    if (v->adaptive) {
        first = o * n / v->out[axis];
        end = ((o + 1) * n + v->out[axis] - 1) / v->out[axis];
    } else {
        first = o * v->stride[axis] - v->pad[axis];
        end = first + v->kernel[axis];
    }
    cs_span_1d span = {first < 0 ? 0 : first, end > n ? n : end};
    return span;
}

/* Outputs whose window has an input: of evenly divided ones those with o n / out < x + 1 and
 * (o + 1) n / out > x. */
CS_DEVICE cs_span_1d cs_window_out(const cs_window_work *v, int axis, int64_t x)
{
    int64_t n = v->in[axis], out = v->out[axis], first, end;
    if (v->adaptive) {
        first = x * out / n;
        end = ((x + 1) * out + n - 1) / n;
    } else {
        int64_t behind = x + v->pad[axis] - v->kernel[axis];
        first = behind < 0 ? 0 : behind / v->stride[axis] + 1;
        end = (x + v->pad[axis]) / v->stride[axis] + 1;
    }
    cs_span_1d span = {first, end > out ? out : end};
    return span;
}

/* An element's plane and its place in each direction. */
CS_DEVICE int64_t cs_window_place(const int32_t size[3], int64_t i, int64_t at[3])
{
    at[2] = i % size[2];
    at[1] = i / size[2] % size[1];
    at[0] = i / ((int64_t)size[2] * size[1]) % size[0];
    return i / ((int64_t)size[2] * size[1] * size[0]);
}

CS_DEVICE void pool_forward(cs_precision p, const cs_work *w, int64_t i)
{
    const cs_window_work *v = &w->window;
    int64_t o[3], plane = cs_window_place(v->out, i, o), place = 0, count = 0;
    int64_t base = plane * v->in[0] * v->in[1] * v->in[2];
    cs_span_1d x = cs_window_in(v, 0, o[0]), y = cs_window_in(v, 1, o[1]),
               z = cs_window_in(v, 2, o[2]);
    float value = v->most ? -FLT_MAX : 0;
    for (int64_t a = x.first; a < x.end; a++)
        for (int64_t b = y.first; b < y.end; b++)
            for (int64_t c = z.first; c < z.end; c++, count++) {
                int64_t at = (a * v->in[1] + b) * v->in[2] + c;
                float in = cs_get(p, w->a, base + at);
                place = in > value ? at : place;
                value = !v->most ? value + in : in > value ? in : value;
            }
    if (v->most)
        ((int64_t *)w->s)[i] = place;
    cs_set(p, w->y, i, v->most || count == 0 ? value : value / (float)count);
}

/* What an output's gradient adds to an input of its window. */
CS_DEVICE float cs_pool_share(cs_precision p, const cs_work *w, int64_t out, const int64_t o[3],
                              int64_t place)
{
    const cs_window_work *v = &w->window;
    float g = cs_get(p, w->g, out);
    int64_t count = 1;
    if (v->most)
        return ((const int64_t *)w->s)[out] == place ? g : 0;
    for (int axis = 0; axis < 3; axis++) {
        cs_span_1d in = cs_window_in(v, axis, o[axis]);
        count *= in.end - in.first;
    }
    return g / (float)count;
}

/* An input takes from the outputs that saw it, so that no two threads write one place. */
CS_DEVICE void pool_input(cs_precision p, const cs_work *w, int64_t i)
{
    const cs_window_work *v = &w->window;
    int64_t at[3], plane = cs_window_place(v->in, i, at), o[3];
    int64_t place = (at[0] * v->in[1] + at[1]) * v->in[2] + at[2];
    cs_span_1d x = cs_window_out(v, 0, at[0]), y = cs_window_out(v, 1, at[1]),
               z = cs_window_out(v, 2, at[2]);
    float sum = 0;
    for (o[0] = x.first; o[0] < x.end; o[0]++)
        for (o[1] = y.first; o[1] < y.end; o[1]++)
            for (o[2] = z.first; o[2] < z.end; o[2]++) {
                int64_t out = ((plane * v->out[0] + o[0]) * v->out[1] + o[1]) * v->out[2] + o[2];
                sum += cs_pool_share(p, w, out, o, place);
            }
    cs_set(p, w->y, i, sum);
}

/* ---- embedding: a ids, w table, item (id, feature) ---- */

CS_DEVICE void embedding_forward(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t id = ((const int64_t *)w->a)[i / w->columns], c = i % w->columns;
    cs_set(p, w->y, i, cs_get(p, w->w, id * w->columns + c));
}

CS_DEVICE void embedding_weight(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t id = ((const int64_t *)w->a)[i / w->columns], c = i % w->columns;
    cs_add_to(p, w->y, id * w->columns + c, cs_get(p, w->g, i));
}

/* ---- gradients of parameters that all rows share: sums over columns, in two steps ---- */

/* Item (chunk of n, column): s gets the sum over the chunk's rows of g, from_stride apart; with
 * `flag` of g times the normalised a: minus w (means, or NULL), times b (inverses), per row. */
CS_DEVICE void sum_columns(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t chunk = i / w->columns, c = i % w->columns;
    const float *means = (const float *)w->w, *inverses = (const float *)w->b;
    float sum = 0;
    for (int64_t r = chunk * w->rows / w->n; r < (chunk + 1) * w->rows / w->n; r++) {
        float g = cs_get(p, w->g, r * w->from_stride + c);
        if (w->flag)
            g *= (cs_get(p, w->a, r * w->columns + c) - (means ? means[r] : 0)) * inverses[r];
        sum += g;
    }
    ((float *)w->s)[i] = sum;
}

/* y += the chunks' sums; item: column. */
CS_DEVICE void add_partial_sums(cs_precision p, const cs_work *w, int64_t i)
{
    float sum = 0;
    for (int64_t chunk = 0; chunk < w->n; chunk++)
        sum += ((const float *)w->s)[chunk * w->columns + i];
    cs_set(p, w->y, i, cs_get(p, w->y, i) + sum);
}

/* ---- layer norm (flag) and RMS norm; s: means, inverses, or inverses, normalised input ---- */

CS_DEVICE float *cs_norm_inverses(const cs_work *w)
{
    return (float *)w->s + (w->flag ? w->rows : 0);
}

/* w: scales, b: shifts or NULL. */
CS_DEVICE void norm_forward(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    float sum = 0, squares = 0, *inverses = cs_norm_inverses(w);
    int64_t at = row * w->columns;
    for (int64_t c = lane; w->flag && c < w->columns; c += lanes)
        sum += cs_get(p, w->a, at + c);
    float mean = cs_block_combine(sum, false) / (float)w->columns;
    for (int64_t c = lane; c < w->columns; c += lanes) {
        float x = cs_get(p, w->a, at + c) - mean;
        squares += x * x;
    }
    squares = cs_block_combine(squares, false);
    float inverse = 1 / sqrtf(squares / (float)w->columns + 1e-5f);
    if (lane == 0 && w->flag)
        ((float *)w->s)[row] = mean;
    if (lane == 0)
        inverses[row] = inverse;
    for (int64_t c = lane; c < w->columns; c += lanes) {
        float normal = (cs_get(p, w->a, at + c) - mean) * inverse;
        if (!w->flag)
            cs_set(p, inverses + w->rows, at + c, normal);
        cs_set(p, w->y, at + c, normal * cs_get(p, w->w, c) + (w->b ? cs_get(p, w->b, c) : 0));
    }
}

CS_DEVICE void norm_input(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    float mean = w->flag ? ((const float *)w->s)[row] : 0, inverse = cs_norm_inverses(w)[row];
    float sum = 0, product = 0;
    int64_t at = row * w->columns;
    for (int64_t c = lane; c < w->columns; c += lanes) {
        float scaled = cs_get(p, w->g, at + c) * cs_get(p, w->w, c);
        sum += scaled;
        product += scaled * (cs_get(p, w->a, at + c) - mean) * inverse;
    }
    sum = cs_block_combine(sum, false) / (float)w->columns;
    product = cs_block_combine(product, false) / (float)w->columns;
    sum = w->flag ? sum : 0;
    for (int64_t c = lane; c < w->columns; c += lanes) {
        float scaled = cs_get(p, w->g, at + c) * cs_get(p, w->w, c);
        float normal = (cs_get(p, w->a, at + c) - mean) * inverse;
        cs_set(p, w->y, at + c, inverse * (scaled - sum - normal * product));
    }
}

/* ---- losses; y[row]: float32 sums, which sum_up makes one of ---- */

/* s: logarithms of the probabilities, float32; t: targets, int64. */
CS_DEVICE void entropy_forward(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    float most = -FLT_MAX, sum = 0, *logarithms = (float *)w->s + row * w->columns;
    int64_t at = row * w->columns, target = row % w->columns;
    for (int64_t c = lane; c < w->columns; c += lanes)
        most = fmaxf(most, cs_get(p, w->a, at + c));
    most = cs_block_combine(most, true);
    for (int64_t c = lane; c < w->columns; c += lanes)
        sum += expf(cs_get(p, w->a, at + c) - most);
    float shift = most + logf(cs_block_combine(sum, false));
    for (int64_t c = lane; c < w->columns; c += lanes)
        logarithms[c] = cs_get(p, w->a, at + c) - shift;
    if (lane > 0)
        return;
    ((int64_t *)w->t)[row] = target;
    ((float *)w->y)[row] = shift - cs_get(p, w->a, at + target);
}

/* scale: 1 / rows */
CS_DEVICE void entropy_input(cs_precision p, const cs_work *w, int64_t i)
{
    bool target = ((const int64_t *)w->t)[i / w->columns] == i % w->columns;
    cs_set(p, w->y, i, (expf(((const float *)w->s)[i]) - (target ? 1 : 0)) * w->scale);
}

/* A row is one of `rows` shares of the n elements; s: the target, zeros. */
CS_DEVICE void squares_forward(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    float sum = 0;
    for (int64_t i = row * w->n / w->rows + lane; i < (row + 1) * w->n / w->rows; i += lanes) {
        float x = cs_get(p, w->a, i);
        cs_set(p, w->s, i, 0);
        sum += x * x;
    }
    sum = cs_block_combine(sum, false);
    if (lane == 0)
        ((float *)w->y)[row] = sum;
}

/* scale: 2 / n */
CS_DEVICE void squares_input(cs_precision p, const cs_work *w, int64_t i)
{
    cs_set(p, w->y, i, (cs_get(p, w->a, i) - cs_get(p, w->s, i)) * w->scale);
}

/* y = scale * sum of a: n float32 into one. */
CS_DEVICE void sum_up(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    float sum = 0;
    (void)p, (void)row;
    for (int64_t i = lane; i < w->n; i += lanes)
        sum += ((const float *)w->a)[i];
    sum = cs_block_combine(sum, false);
    if (lane == 0)
        *(float *)w->y = sum * w->scale;
}

/* ---- attention: matrices of columns x columns, one per sample and head ---- */

/* y = softmax(y) of a row; with `flag` token r sees tokens up to itself only. */
CS_DEVICE void weigh_forward(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    int64_t at = row * w->columns, seen = w->flag ? row % w->columns + 1 : w->columns;
    float most = -FLT_MAX, sum = 0;
    for (int64_t c = lane; c < seen; c += lanes)
        most = fmaxf(most, cs_get(p, w->y, at + c));
    most = cs_block_combine(most, true);
    for (int64_t c = lane; c < seen; c += lanes)
        sum += expf(cs_get(p, w->y, at + c) - most);
    sum = cs_block_combine(sum, false);
    for (int64_t c = lane; c < w->columns; c += lanes)
        cs_set(p, w->y, at + c, c < seen ? expf(cs_get(p, w->y, at + c) - most) / sum : 0);
}

/* y: from the gradient of the weights a to that of the scores. */
CS_DEVICE void weigh_input(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    int64_t at = row * w->columns;
    float sum = 0;
    for (int64_t c = lane; c < w->columns; c += lanes)
        sum += cs_get(p, w->a, at + c) * cs_get(p, w->y, at + c);
    sum = cs_block_combine(sum, false);
    for (int64_t c = lane; c < w->columns; c += lanes)
        cs_set(p, w->y, at + c,
               cs_get(p, w->a, at + c) * (cs_get(p, w->y, at + c) - sum) * w->scale);
}

/* y: lists of pointers to matrices, in the order (place among the heads that share keys, sample, head
 * of keys), so that those of one place follow each other. Item (list, pointer). */
CS_DEVICE void point(cs_precision p, const cs_work *w, int64_t i)
{
    const cs_point_work *v = &w->point;
    int64_t n = v->samples * v->keys * v->shared, at = i % n;
    (void)p;
    const cs_point_list *list = &v->lists[i / n];
    int64_t place = at / (v->samples * v->keys), sample = at / v->keys % v->samples;
    int64_t key = at % v->keys, head = list->per_key ? key : key * v->shared + place;
    ((char **)w->y)[i] =
        list->base ? list->base + sample * list->sample_stride + head * list->head_stride : NULL;
}

#endif
