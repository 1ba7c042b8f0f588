/* Bodies of the small kernels (device-work.h), for the GPU and, in tests, for the host.
 *
 * The argument of a body is the number of its element, group or row. A row's body runs through its
 * groups by `lane`, `lane + lanes`, ...; on the host, a row has one lane, and the sum over a row is
 * its value. Numbers are stored in the work's precision and computed in float32. The precision is a
 * parameter, so that the compiler can remove branches on it.
 */
#ifndef CS_CALIB_DEVICE_CODE_H
#define CS_CALIB_DEVICE_CODE_H

#include "calib/bench/cuda/device-work.h"
#include "sim/model/net.h"

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

/* Adds atomically. */
CS_DEVICE void cs_add_to(cs_precision p, void *data, int64_t i, float value)
{
    if (p == CS_PRECISION_BF16)
        atomicAdd((__nv_bfloat16 *)data + i, __float2bfloat16_rn(value));
    else if (p == CS_PRECISION_FP16)
        atomicAdd((__half *)data + i, __float2half_rn(value));
    else
        atomicAdd((float *)data + i, value);
}

/* Combines the values of a row's `lanes` threads; all get the result. The threads are a power of
 * two up to 32, adjacent in a warp, or a whole block of warps. */
CS_DEVICE float cs_row_combine(float value, bool most, int lanes)
{
    __shared__ float of_warp[32];
    for (int step = (lanes < 32 ? lanes : 32) / 2; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = most ? fmaxf(value, other) : value + other;
    }
    if (lanes <= 32)
        return value;
    __syncthreads(); /* wait until all threads have read the values of an earlier call */
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    float all = of_warp[0];
    for (int i = 1; i < lanes / 32; i++)
        all = most ? fmaxf(all, of_warp[i]) : all + of_warp[i];
    return all;
}

#else

/* bfloat16: the upper half of a float32, rounded to even. */
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

CS_DEVICE float cs_row_combine(float value, bool most, int lanes)
{
    (void)most, (void)lanes;
    return value;
}

#endif

/* ---- groups: adjacent elements that one access reads or writes ---- */

enum {
    CS_ACCESS = 16, /* bytes; the most that one instruction moves */
    CS_GROUP_MOST = 8,
};

/* Elements first + [begin, end) of n adjacent ones; the ends of an array or row have incomplete
 * groups.
 */
typedef struct cs_device_group {
    int64_t first;
    int n, begin, end;
} cs_device_group;

CS_DEVICE int cs_width(cs_precision p)
{
    return p == CS_PRECISION_FP16 || p == CS_PRECISION_BF16 ? 2 : 4;
}

/* Returns the number of groups that contain elements [from, to). Groups begin at multiples of their
 * size, so groups of a row are aligned like its array, wherever the row begins. */
CS_DEVICE int64_t cs_groups(cs_precision p, int64_t from, int64_t to)
{
    int n = CS_ACCESS / cs_width(p);
    return (to + n - 1) / n - from / n;
}

CS_DEVICE cs_device_group cs_group_of(cs_precision p, int64_t from, int64_t to, int64_t i)
{
    int n = CS_ACCESS / cs_width(p);
    int64_t first = (from / n + i) * n;
    cs_device_group group = {first, n, from > first ? (int)(from - first) : 0,
                             to < first + n ? (int)(to - first) : n};
    return group;
}

/* Returns the same group in another array, which begins `by` elements earlier. */
CS_DEVICE cs_device_group cs_group_moved(cs_device_group group, int64_t by)
{
    group.first += by;
    return group;
}

CS_DEVICE bool cs_in_group(cs_device_group group, int k)
{
    return k >= group.begin && k < group.end;
}

/* Whether the group's numbers can be accessed `bytes` at a time. */
CS_DEVICE bool cs_at_once(const void *data, cs_device_group group, int width, int bytes)
{
    uintptr_t at = (uintptr_t)data + (uintptr_t)(group.first * width);
    return group.begin == 0 && group.end == group.n && at % (unsigned)bytes == 0;
}

/* Reads CS_ACCESS bytes from an aligned address. */
CS_DEVICE void cs_fetch(char numbers[CS_ACCESS], const char *from)
{
#ifdef __CUDACC__
    uint4 words = *(const uint4 *)from;
    memcpy(numbers, &words, CS_ACCESS);
#else
    memcpy(numbers, from, CS_ACCESS);
#endif
}

CS_DEVICE void cs_put(char *to, const char numbers[CS_ACCESS])
{
#ifdef __CUDACC__
    uint4 words;
    memcpy(&words, numbers, CS_ACCESS);
    *(uint4 *)to = words;
#else
    memcpy(to, numbers, CS_ACCESS);
#endif
}

typedef union cs_numbers {
    char bytes[CS_ACCESS];
    float floats[CS_ACCESS / 4];
    uint16_t halves[CS_ACCESS / 2];
} cs_numbers;

/* Loads a group; elements outside it are 0. */
CS_DEVICE void cs_load(cs_precision p, const void *data, cs_device_group group, float *values)
{
    int width = cs_width(p), n = CS_ACCESS / width;
    cs_numbers numbers;
    if (cs_at_once(data, group, width, CS_ACCESS)) {
        for (int k = 0; k < group.n; k += n) {
            cs_fetch(numbers.bytes, (const char *)data + (group.first + k) * width);
            for (int i = 0; i < n; i++)
                values[k + i] = cs_get(p, numbers.bytes, i);
        }
        return;
    }
    for (int k = 0; k < group.n; k++)
        values[k] = cs_in_group(group, k) ? cs_get(p, data, group.first + k) : 0;
}

CS_DEVICE void cs_store(cs_precision p, void *data, cs_device_group group, const float *values)
{
    int width = cs_width(p), n = CS_ACCESS / width;
    cs_numbers numbers;
    if (cs_at_once(data, group, width, CS_ACCESS)) {
        for (int k = 0; k < group.n; k += n) {
            for (int i = 0; i < n; i++)
                cs_set(p, numbers.bytes, i, values[k + i]);
            cs_put((char *)data + (group.first + k) * width, numbers.bytes);
        }
        return;
    }
    for (int k = 0; k < group.n; k++)
        if (cs_in_group(group, k))
            cs_set(p, data, group.first + k, values[k]);
}

/* Hashes a position with the mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
CS_DEVICE uint64_t cs_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns a number in [0, 1). */
CS_DEVICE double cs_fraction(uint64_t seed, int64_t i)
{
    return (double)(cs_mix(seed + (uint64_t)i) >> 11) * 0x1p-53;
}

/* ---- memory: y; scale is the limit ---- */

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
CS_DEVICE void accumulate(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST], y[CS_GROUP_MOST];
    cs_load(p, w->a, group, a);
    cs_load(p, w->y, group, y);
    for (int k = 0; k < group.n; k++)
        y[k] += a[k];
    cs_store(p, w->y, group, y);
}

/* Convert between the work's precision and float32: y = a, and y += a. */
CS_DEVICE void widen(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST];
    cs_load(p, w->a, group, a);
    cs_store(CS_PRECISION_FP32, w->y, group, a);
}

CS_DEVICE void accumulate_wide(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST], y[CS_GROUP_MOST];
    cs_load(CS_PRECISION_FP32, w->a, group, a);
    cs_load(p, w->y, group, y);
    for (int k = 0; k < group.n; k++)
        y[k] += a[k];
    cs_store(p, w->y, group, y);
}

typedef struct cs_unit_16 {
    uint64_t words[2];
} __attribute__((aligned(16))) cs_unit_16;

/* y[row * to_stride + j] = a[from * from_stride + j] for `columns` units per row, each of `kind`
 * (16, 4 or 2) bytes. `from` is the row, or its id in b if b is not NULL. */
CS_DEVICE void copy_rows(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t row = i / w->columns, j = i % w->columns;
    int64_t id = w->b ? ((const int64_t *)w->b)[row] : row;
    int64_t from = id * w->from_stride + j, to = row * w->to_stride + j;
    (void)p;
    if (w->kind == 16)
        ((cs_unit_16 *)w->y)[to] = ((const cs_unit_16 *)w->a)[from];
    else if (w->kind == 4)
        ((uint32_t *)w->y)[to] = ((const uint32_t *)w->a)[from];
    else
        ((uint16_t *)w->y)[to] = ((const uint16_t *)w->a)[from];
}

/* Runs an optimizer with `kind` states, as in backend.h: a: parameters, y: updated ones, s: states,
 * t: gradients.
 */
CS_DEVICE void update(cs_precision p, const cs_work *w, cs_device_group group)
{
    const float rate = 1e-3f, decay = 0.9f, decay_squares = 0.999f, tiny = 1e-8f;
    const cs_precision wide = CS_PRECISION_FP32;
    bool mixed = cs_width(p) < 4;
    cs_device_group first = cs_group_moved(group, mixed ? w->n : 0),
                    second = cs_group_moved(first, w->n);
    float value[CS_GROUP_MOST], g[CS_GROUP_MOST];
    float mean[CS_GROUP_MOST] = {0}, square[CS_GROUP_MOST] = {0};
    cs_load(p, w->t, group, g);
    if (mixed)
        cs_load(wide, w->s, group, value);
    else
        cs_load(p, w->a, group, value);
    if (w->kind > 0)
        cs_load(wide, w->s, first, mean);
    if (w->kind > 1)
        cs_load(wide, w->s, second, square);
    for (int k = 0; k < group.n; k++) {
        float step = g[k];
        mean[k] = decay * mean[k] + (w->kind > 1 ? 1 - decay : 1) * g[k];
        square[k] = decay_squares * square[k] + (1 - decay_squares) * g[k] * g[k];
        if (w->kind > 0)
            step = w->kind > 1 ? mean[k] / (sqrtf(square[k]) + tiny) : mean[k];
        value[k] -= rate * step;
        g[k] = 0;
    }
    if (w->kind > 0)
        cs_store(wide, w->s, first, mean);
    if (w->kind > 1)
        cs_store(wide, w->s, second, square);
    if (mixed)
        cs_store(wide, w->s, group, value);
    cs_store(p, w->y, group, value);
    cs_store(p, w->t, group, g);
}

/* ---- functions of one element; kind: cs_op_kind ---- */

CS_DEVICE float cs_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

CS_DEVICE float cs_map(int32_t kind, float x)
{
    if (kind == CS_OP_RELU)
        return x > 0 ? x : 0;
    if (kind == CS_OP_GELU)
        return 0.5f * x * (1 + erff(x * 0.7071067811865476f));
    return kind == CS_OP_SILU ? x * cs_sigmoid(x) : tanhf(x);
}

/* Returns the derivative, as a function of the input for GELU and SiLU, and of the output for the
 * others. */
CS_DEVICE float cs_slope(int32_t kind, float x)
{
    if (kind == CS_OP_RELU)
        return x > 0 ? 1 : 0;
    if (kind == CS_OP_GELU)
        return 0.5f * (1 + erff(x * 0.7071067811865476f)) +
               x * 0.3989422804014327f * expf(-0.5f * x * x);
    return kind == CS_OP_SILU ? cs_sigmoid(x) * (1 + x * (1 - cs_sigmoid(x))) : 1 - x * x;
}

/* y = f(a) */
CS_DEVICE void map_forward(cs_precision p, const cs_work *w, cs_device_group group)
{
    float x[CS_GROUP_MOST];
    cs_load(p, w->a, group, x);
    for (int k = 0; k < group.n; k++)
        x[k] = cs_map(w->kind, x[k]);
    cs_store(p, w->y, group, x);
}

/* y = g f' */
CS_DEVICE void map_input(cs_precision p, const cs_work *w, cs_device_group group)
{
    float x[CS_GROUP_MOST], g[CS_GROUP_MOST];
    cs_load(p, w->a, group, x);
    cs_load(p, w->g, group, g);
    for (int k = 0; k < group.n; k++)
        g[k] *= cs_slope(w->kind, x[k]);
    cs_store(p, w->y, group, g);
}

/* y = a + b */
CS_DEVICE void add(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST], b[CS_GROUP_MOST];
    cs_load(p, w->a, group, a);
    cs_load(p, w->b, group, b);
    for (int k = 0; k < group.n; k++)
        a[k] += b[k];
    cs_store(p, w->y, group, a);
}

/* y = a + b, where b repeats after every n elements. */
CS_DEVICE void add_table(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST], b[CS_GROUP_MOST];
    int64_t at = group.first % w->n;
    cs_load(p, w->a, group, a);
    if (at + group.n <= w->n)
        cs_load(p, w->b, cs_group_moved(group, at - group.first), b);
    else
        for (int k = 0; k < group.n; k++)
            b[k] = cs_get(p, w->b, (at + k) % w->n);
    for (int k = 0; k < group.n; k++)
        a[k] += b[k];
    cs_store(p, w->y, group, a);
}

CS_DEVICE void mul(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST], b[CS_GROUP_MOST];
    cs_load(p, w->a, group, a);
    cs_load(p, w->b, group, b);
    for (int k = 0; k < group.n; k++)
        a[k] *= b[k];
    cs_store(p, w->y, group, a);
}

/* Loads a mask of one byte per element as one word; element k is in bits 8 k to 8 k + 7. */
CS_DEVICE uint64_t cs_load_mask(const void *data, cs_device_group group)
{
    const uint8_t *bytes = (const uint8_t *)data + group.first;
    uint64_t mask = 0;
#ifdef __CUDACC__
    if (cs_at_once(data, group, 1, group.n))
        return group.n == 8 ? *(const uint64_t *)bytes : *(const uint32_t *)bytes;
#endif
    for (int k = 0; k < group.n; k++)
        mask |= cs_in_group(group, k) ? (uint64_t)bytes[k] << (8 * k) : 0;
    return mask;
}

CS_DEVICE void cs_store_mask(void *data, cs_device_group group, uint64_t mask)
{
    uint8_t *bytes = (uint8_t *)data + group.first;
#ifdef __CUDACC__
    if (cs_at_once(data, group, 1, group.n)) {
        if (group.n == 8)
            *(uint64_t *)bytes = mask;
        else
            *(uint32_t *)bytes = (uint32_t)mask;
        return;
    }
#endif
    for (int k = 0; k < group.n; k++)
        if (cs_in_group(group, k))
            bytes[k] = (uint8_t)(mask >> (8 * k));
}

CS_DEVICE void cs_drop(float *values, cs_device_group group, uint64_t mask)
{
    for (int k = 0; k < group.n; k++)
        values[k] = mask >> (8 * k) & 1 ? 2 * values[k] : 0;
}

/* Drops half of the elements, whatever the probability, because the time does not depend on it. s:
 * mask. */
CS_DEVICE void dropout_forward(cs_precision p, const cs_work *w, cs_device_group group)
{
    float x[CS_GROUP_MOST];
    uint64_t mask = 0;
    cs_load(p, w->a, group, x);
    for (int k = 0; k < group.n; k++)
        mask |= (cs_mix(w->seed + (uint64_t)(group.first + k)) >> 63) << (8 * k);
    cs_drop(x, group, mask);
    cs_store_mask(w->s, group, mask);
    cs_store(p, w->y, group, x);
}

CS_DEVICE void dropout_input(cs_precision p, const cs_work *w, cs_device_group group)
{
    float g[CS_GROUP_MOST];
    cs_load(p, w->g, group, g);
    cs_drop(g, group, cs_load_mask(w->s, group));
    cs_store(p, w->y, group, g);
}

/* Rotates a pair of features. Item (row, pair), half as many items as elements; rows: per sample;
 * columns: features; scale: 1, or -1 in backward. */
CS_DEVICE void rotate(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t half = w->columns / 2, row = i / half, c = i % half, at = row * w->columns + c;
    float angle = w->scale * (float)(row % w->rows) * exp2f(-13.287712f * (float)c / (float)half);
    float a = cs_get(p, w->a, at), b = cs_get(p, w->a, at + half);
    cs_set(p, w->y, at, a * cosf(angle) - b * sinf(angle));
    cs_set(p, w->y, at + half, a * sinf(angle) + b * cosf(angle));
}

/* ---- pooling; s: positions of maxima in their plane ---- */

typedef struct cs_span_1d {
    int32_t first, end;
} cs_span_1d;

/* Returns the inputs of an output, along one direction. */
CS_DEVICE cs_span_1d cs_window_in(const cs_window_work *v, int axis, int32_t o)
{
    int32_t n = v->in[axis], out = v->out[axis], first, end;
    if (v->adaptive) {
        first = (int32_t)((int64_t)o * n / out);
        end = (int32_t)(((o + INT64_C(1)) * n + out - 1) / out);
    } else {
        first = o * v->stride[axis] - v->pad[axis];
        end = first + v->kernel[axis];
    }
    cs_span_1d span = {first < 0 ? 0 : first, end > n ? n : end};
    return span;
}

/* Returns the outputs whose window has an input. For adaptive pooling: o n / out < x + 1 and (o +
 * 1) n / out > x. */
CS_DEVICE cs_span_1d cs_window_out(const cs_window_work *v, int axis, int32_t x)
{
    int32_t n = v->in[axis], out = v->out[axis], first, end;
    if (v->adaptive) {
        first = (int32_t)((int64_t)x * out / n);
        end = (int32_t)(((x + INT64_C(1)) * out + n - 1) / n);
    } else {
        int32_t behind = x + v->pad[axis] - v->kernel[axis];
        first = behind < 0 ? 0 : behind / v->stride[axis] + 1;
        end = (x + v->pad[axis]) / v->stride[axis] + 1;
    }
    cs_span_1d span = {first, end > out ? out : end};
    return span;
}

/* Returns an element's plane and its position in each direction. Positions in a plane fit 32 bits,
 * which a GPU divides much faster than 64 bits. */
CS_DEVICE int64_t cs_window_place(const int32_t size[3], int64_t i, int32_t at[3])
{
    int32_t elements = size[0] * size[1] * size[2];
    int64_t plane = i / elements;
    int32_t place = (int32_t)(i - plane * elements), line = place / size[2];
    at[2] = place - line * size[2];
    at[1] = line % size[1];
    at[0] = line / size[1];
    return plane;
}

CS_DEVICE void pool_forward(cs_precision p, const cs_work *w, int64_t i)
{
    const cs_window_work *v = &w->window;
    int32_t o[3], place = 0, count = 0;
    int64_t plane = cs_window_place(v->out, i, o), base = plane * v->in[0] * v->in[1] * v->in[2];
    cs_span_1d x = cs_window_in(v, 0, o[0]), y = cs_window_in(v, 1, o[1]),
               z = cs_window_in(v, 2, o[2]);
    float value = v->most ? -FLT_MAX : 0;
    for (int32_t a = x.first; a < x.end; a++)
        for (int32_t b = y.first; b < y.end; b++)
            for (int32_t c = z.first; c < z.end; c++, count++) {
                int32_t at = (a * v->in[1] + b) * v->in[2] + c;
                float in = cs_get(p, w->a, base + at);
                place = in > value ? at : place;
                value = !v->most ? value + in : in > value ? in : value;
            }
    if (v->most)
        ((int64_t *)w->s)[i] = place;
    cs_set(p, w->y, i, v->most || count == 0 ? value : value / (float)count);
}

/* Returns the part of an output's gradient that belongs to an input of its window. */
CS_DEVICE float cs_pool_share(cs_precision p, const cs_work *w, int64_t out, const int32_t o[3],
                              int32_t place)
{
    const cs_window_work *v = &w->window;
    int32_t count = 1;
    if (v->most && ((const int64_t *)w->s)[out] != place)
        return 0;
    for (int axis = 0; axis < 3 && !v->most; axis++) {
        cs_span_1d in = cs_window_in(v, axis, o[axis]);
        count *= in.end - in.first;
    }
    return cs_get(p, w->g, out) / (float)count;
}

/* Sums, for one input, the gradients of all outputs that read it, so that no two threads write to
 * the same place. */
CS_DEVICE void pool_input(cs_precision p, const cs_work *w, int64_t i)
{
    const cs_window_work *v = &w->window;
    int32_t at[3], o[3];
    int64_t plane = cs_window_place(v->in, i, at), base = plane * v->out[0] * v->out[1] * v->out[2];
    int32_t place = (at[0] * v->in[1] + at[1]) * v->in[2] + at[2];
    cs_span_1d x = cs_window_out(v, 0, at[0]), y = cs_window_out(v, 1, at[1]),
               z = cs_window_out(v, 2, at[2]);
    float sum = 0;
    for (o[0] = x.first; o[0] < x.end; o[0]++)
        for (o[1] = y.first; o[1] < y.end; o[1]++)
            for (o[2] = z.first; o[2] < z.end; o[2]++) {
                int32_t out = (o[0] * v->out[1] + o[1]) * v->out[2] + o[2];
                sum += cs_pool_share(p, w, base + out, o, place);
            }
    cs_set(p, w->y, i, sum);
}

/* ---- embedding; a: ids, item (id, feature) ---- */

CS_DEVICE void embedding_weight(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t id = ((const int64_t *)w->a)[i / w->columns], c = i % w->columns;
    cs_add_to(p, w->y, id * w->columns + c, cs_get(p, w->g, i));
}

/* ---- gradients of parameters that all rows share: sums over columns, in two steps ---- */

/* Returns g or, with `flag`, g times the normalised a: (a - w) * b per row; w: means or NULL, b:
 * inverse deviations. */
CS_DEVICE float cs_sum_term(cs_precision p, const cs_work *w, int64_t row, int64_t c)
{
    const float *means = (const float *)w->w, *inverses = (const float *)w->b;
    float g = cs_get(p, w->g, row * w->from_stride + c);
    if (!w->flag)
        return g;
    return g * (cs_get(p, w->a, row * w->columns + c) - (means ? means[row] : 0)) * inverses[row];
}

/* Item (chunk of n, column). Sums the chunk's rows of g, from_stride apart, into s. Reads four
 * numbers before adding them, because waiting for each one would be slow. */
CS_DEVICE void sum_columns(cs_precision p, const cs_work *w, int64_t i)
{
    int64_t chunk = i / w->columns, c = i % w->columns, end = (chunk + 1) * w->rows / w->n;
    float sum = 0;
    for (int64_t row = chunk * w->rows / w->n; row < end; row += 4) {
        float terms[4];
        for (int k = 0; k < 4; k++)
            terms[k] = row + k < end ? cs_sum_term(p, w, row + k, c) : 0;
        for (int k = 0; k < 4; k++)
            sum += terms[k];
    }
    ((float *)w->s)[i] = sum;
}

/* Adds the sums of `columns` chunks to y, from_stride apart; `row` is the chunks' column. */
CS_DEVICE void add_partial_sums(cs_precision p, const cs_work *w, int64_t row, int lane, int lanes)
{
    float sum = 0;
    for (int64_t chunk = lane; chunk < w->columns; chunk += lanes)
        sum += ((const float *)w->s)[chunk * w->from_stride + row];
    sum = cs_row_combine(sum, false, lanes);
    if (lane == 0)
        cs_set(p, w->y, row, cs_get(p, w->y, row) + sum);
}

/* ---- rows: elements [at, end) of an array, in groups that the lanes share ---- */

typedef struct cs_row {
    int64_t at, end, groups;
} cs_row;

CS_DEVICE cs_row cs_row_of(cs_precision p, int64_t at, int64_t columns)
{
    cs_row row = {at, at + columns, cs_groups(p, at, at + columns)};
    return row;
}

CS_DEVICE float cs_row_most(cs_precision p, const void *data, cs_row row, int lane, int lanes)
{
    float most = -FLT_MAX, x[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, data, group, x);
        for (int k = 0; k < group.n; k++)
            most = cs_in_group(group, k) ? fmaxf(most, x[k]) : most;
    }
    return cs_row_combine(most, true, lanes);
}

/* Returns the sum of exp(x - shift). */
CS_DEVICE float cs_row_exponents(cs_precision p, const void *data, cs_row row, float shift,
                                 int lane, int lanes)
{
    float sum = 0, x[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, data, group, x);
        for (int k = 0; k < group.n; k++)
            sum += cs_in_group(group, k) ? expf(x[k] - shift) : 0;
    }
    return cs_row_combine(sum, false, lanes);
}

/* ---- layer norm (flag) and RMS norm; s: means and inverse deviations, or inverse deviations and
 * normalised input ---- */

CS_DEVICE float *cs_norm_inverses(const cs_work *w)
{
    return (float *)w->s + (w->flag ? w->rows : 0);
}

/* Return the mean, and the inverse deviation. */
CS_DEVICE float cs_norm_mean(cs_precision p, const cs_work *w, cs_row row, int lane, int lanes)
{
    float sum = 0, x[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, w->a, group, x);
        for (int k = 0; k < group.n; k++)
            sum += x[k];
    }
    return cs_row_combine(sum, false, lanes) / (float)w->columns;
}

CS_DEVICE float cs_norm_inverse(cs_precision p, const cs_work *w, cs_row row, float mean, int lane,
                                int lanes)
{
    float squares = 0, x[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, w->a, group, x);
        for (int k = 0; k < group.n; k++)
            squares += cs_in_group(group, k) ? (x[k] - mean) * (x[k] - mean) : 0;
    }
    squares = cs_row_combine(squares, false, lanes);
    return 1 / sqrtf(squares / (float)w->columns + 1e-5f);
}

/* w: scales, b: shifts or NULL. */
CS_DEVICE void norm_forward(cs_precision p, const cs_work *w, int64_t number, int lane, int lanes)
{
    cs_row row = cs_row_of(p, number * w->columns, w->columns);
    float mean = w->flag ? cs_norm_mean(p, w, row, lane, lanes) : 0;
    float inverse = cs_norm_inverse(p, w, row, mean, lane, lanes), *inverses = cs_norm_inverses(w);
    if (lane == 0 && w->flag)
        ((float *)w->s)[number] = mean;
    if (lane == 0)
        inverses[number] = inverse;
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i),
                        c = cs_group_moved(group, -row.at);
        float x[CS_GROUP_MOST], scale[CS_GROUP_MOST], shift[CS_GROUP_MOST] = {0};
        cs_load(p, w->a, group, x);
        cs_load(p, w->w, c, scale);
        if (w->b)
            cs_load(p, w->b, c, shift);
        for (int k = 0; k < group.n; k++)
            x[k] = (x[k] - mean) * inverse;
        if (!w->flag)
            cs_store(p, inverses + w->rows, group, x);
        for (int k = 0; k < group.n; k++)
            x[k] = x[k] * scale[k] + shift[k];
        cs_store(p, w->y, group, x);
    }
}

/* Computes the normalised input, and the gradient times the scale; both are 0 outside the row. */
CS_DEVICE void cs_norm_terms(cs_precision p, const cs_work *w, cs_row row, cs_device_group group,
                             float mean, float inverse, float *normal, float *scaled)
{
    float scale[CS_GROUP_MOST];
    cs_load(p, w->a, group, normal);
    cs_load(p, w->g, group, scaled);
    cs_load(p, w->w, cs_group_moved(group, -row.at), scale);
    for (int k = 0; k < group.n; k++) {
        normal[k] = (normal[k] - mean) * inverse;
        scaled[k] *= scale[k];
    }
}

CS_DEVICE void norm_input(cs_precision p, const cs_work *w, int64_t number, int lane, int lanes)
{
    cs_row row = cs_row_of(p, number * w->columns, w->columns);
    float mean = w->flag ? ((const float *)w->s)[number] : 0;
    float inverse = cs_norm_inverses(w)[number], sum = 0, product = 0;
    float normal[CS_GROUP_MOST], scaled[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_norm_terms(p, w, row, group, mean, inverse, normal, scaled);
        for (int k = 0; k < group.n; k++) {
            sum += scaled[k];
            product += scaled[k] * normal[k];
        }
    }
    sum = w->flag ? cs_row_combine(sum, false, lanes) / (float)w->columns : 0;
    product = cs_row_combine(product, false, lanes) / (float)w->columns;
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_norm_terms(p, w, row, group, mean, inverse, normal, scaled);
        for (int k = 0; k < group.n; k++)
            scaled[k] = inverse * (scaled[k] - sum - normal[k] * product);
        cs_store(p, w->y, group, scaled);
    }
}

/* ---- losses; y[row]: float32 sums, which sum_up adds ---- */

/* s: logarithms of the probabilities, float32; t: targets, int64. */
CS_DEVICE void entropy_forward(cs_precision p, const cs_work *w, int64_t number, int lane,
                               int lanes)
{
    cs_row row = cs_row_of(p, number * w->columns, w->columns);
    int64_t target = number % w->columns;
    float x[CS_GROUP_MOST], most = cs_row_most(p, w->a, row, lane, lanes);
    float shift = most + logf(cs_row_exponents(p, w->a, row, most, lane, lanes));
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, w->a, group, x);
        for (int k = 0; k < group.n; k++)
            x[k] -= shift;
        cs_store(CS_PRECISION_FP32, w->s, group, x);
    }
    if (lane > 0)
        return;
    ((int64_t *)w->t)[number] = target;
    ((float *)w->y)[number] = shift - cs_get(p, w->a, row.at + target);
}

/* scale: 1 / rows */
CS_DEVICE void entropy_input(cs_precision p, const cs_work *w, int64_t number, int lane, int lanes)
{
    cs_row row = cs_row_of(p, number * w->columns, w->columns);
    int64_t target = row.at + ((const int64_t *)w->t)[number];
    float x[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(CS_PRECISION_FP32, w->s, group, x);
        for (int k = 0; k < group.n; k++)
            x[k] = (expf(x[k]) - (group.first + k == target ? 1 : 0)) * w->scale;
        cs_store(p, w->y, group, x);
    }
}

/* A row is one of `rows` parts of the n elements; s: the target, zeros. */
CS_DEVICE void squares_forward(cs_precision p, const cs_work *w, int64_t number, int lane,
                               int lanes)
{
    int64_t at = number * w->n / w->rows, end = (number + 1) * w->n / w->rows;
    cs_row row = cs_row_of(p, at, end - at);
    float sum = 0, x[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, w->a, group, x);
        for (int k = 0; k < group.n; k++) {
            sum += x[k] * x[k];
            x[k] = 0;
        }
        cs_store(p, w->s, group, x);
    }
    sum = cs_row_combine(sum, false, lanes);
    if (lane == 0)
        ((float *)w->y)[number] = sum;
}

/* scale: 2 / n */
CS_DEVICE void squares_input(cs_precision p, const cs_work *w, cs_device_group group)
{
    float a[CS_GROUP_MOST], target[CS_GROUP_MOST];
    cs_load(p, w->a, group, a);
    cs_load(p, w->s, group, target);
    for (int k = 0; k < group.n; k++)
        a[k] = (a[k] - target[k]) * w->scale;
    cs_store(p, w->y, group, a);
}

/* y = scale * sum of a, n float32 numbers. */
CS_DEVICE void sum_up(cs_precision p, const cs_work *w, int64_t number, int lane, int lanes)
{
    float sum = 0;
    (void)p, (void)number;
    for (int64_t i = lane; i < w->n; i += lanes)
        sum += ((const float *)w->a)[i];
    sum = cs_row_combine(sum, false, lanes);
    if (lane == 0)
        *(float *)w->y = sum * w->scale;
}

/* ---- attention: matrices of columns x columns, one per sample and head; rows to_stride apart,
 * in a second array from_stride apart ---- */

/* y = softmax(y) of a row; with `flag`, token r reads only tokens up to itself. Also written to t,
 * from_stride apart, if t is not NULL. */
CS_DEVICE void weigh_forward(cs_precision p, const cs_work *w, int64_t number, int lane, int lanes)
{
    int64_t at = number * w->to_stride, seen = w->flag ? number % w->columns + 1 : w->columns;
    cs_row row = cs_row_of(p, at, seen), whole = cs_row_of(p, at, w->columns);
    float x[CS_GROUP_MOST], most = cs_row_most(p, w->y, row, lane, lanes);
    float sum = cs_row_exponents(p, w->y, row, most, lane, lanes);
    for (int64_t i = lane; i < whole.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, whole.at, whole.end, i);
        cs_load(p, w->y, group, x);
        for (int k = 0; k < group.n; k++)
            x[k] = group.first + k < row.end ? expf(x[k] - most) / sum : 0;
        cs_store(p, w->y, group, x);
        if (w->t)
            cs_store(p, w->t, cs_group_moved(group, number * w->from_stride - at), x);
    }
}

/* Turns the gradient of the weights (a, from_stride apart) into the gradient of the scores (y). */
CS_DEVICE void weigh_input(cs_precision p, const cs_work *w, int64_t number, int lane, int lanes)
{
    cs_row row = cs_row_of(p, number * w->to_stride, w->columns);
    int64_t apart = number * w->from_stride - row.at;
    float sum = 0, a[CS_GROUP_MOST], y[CS_GROUP_MOST];
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, w->a, cs_group_moved(group, apart), a);
        cs_load(p, w->y, group, y);
        for (int k = 0; k < group.n; k++)
            sum += a[k] * y[k];
    }
    sum = cs_row_combine(sum, false, lanes);
    for (int64_t i = lane; i < row.groups; i += lanes) {
        cs_device_group group = cs_group_of(p, row.at, row.end, i);
        cs_load(p, w->a, cs_group_moved(group, apart), a);
        cs_load(p, w->y, group, y);
        for (int k = 0; k < group.n; k++)
            y[k] = a[k] * (y[k] - sum) * w->scale;
        cs_store(p, w->y, group, y);
    }
}

/* y: lists of pointers to matrices, in the order (index in the heads that share keys, sample, head
 * of keys), so that equal indices are adjacent. Item (list, pointer). */
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
