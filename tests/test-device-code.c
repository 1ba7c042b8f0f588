/* Small kernels one by one: numbers of 2 bytes, windows, random numbers, updates. test-kernels.c
 * tests them in whole networks. */
#include "calib/bench/cuda/device-code.h"
#include "tests/host-device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void start(cs_body body, cs_precision precision, const cs_work *work, int64_t items)
{
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_launch(&cs_host_launcher, body, precision, work, items, &error), CS_OK);
}

/* bfloat16 has 7 bits after the point: 1 + 2^-7 is the next number after 1. Half of that step is a
 * tie, which goes to the even neighbour: 1 + 2^-8 to 1, 1 + 3 * 2^-8 to 1 + 2^-6. */
static void test_bf16(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t bits;
    } rows[] = {{0, 0},
                {1, 0x3f80},
                {-2, 0xc000},
                {1.00390625f, 0x3f80},
                {1.01171875f, 0x3f82},
                {1.00390637f, 0x3f81},
                {3.3895314e38f, 0x7f7f},
                {INFINITY, 0x7f80}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint16_t bits;
        cs_set(CS_PRECISION_BF16, &bits, 0, rows[i].value);
        if (bits != rows[i].bits)
            fail_msg("%.9g is %04x, must be %04x", rows[i].value, bits, rows[i].bits);
        float back = cs_get(CS_PRECISION_BF16, &rows[i].bits, 0);
        assert_true(!(fabsf(back - rows[i].value) > fabsf(rows[i].value) / 256));
    }
}

/* Input x is in the window of output o exactly when o is among the outputs of x. */
static void check_window(const cs_window_work *v)
{
    for (int32_t x = 0; x < v->in[0]; x++) {
        cs_span_1d outs = cs_window_out(v, 0, x);
        for (int32_t o = 0; o < v->out[0]; o++) {
            cs_span_1d ins = cs_window_in(v, 0, o);
            bool forward = ins.first <= x && x < ins.end;
            bool back = outs.first <= o && o < outs.end;
            if (forward != back)
                fail_msg("in %d, out %d, kernel %d, stride %d, pad %d%s: input %d, output %d",
                         v->in[0], v->out[0], v->kernel[0], v->stride[0], v->pad[0],
                         v->adaptive ? ", adaptive" : "", (int)x, (int)o);
        }
    }
}

static void test_windows(void **state)
{
    (void)state;
    for (int32_t in = 1; in <= 13; in++) {
        for (int32_t out = 1; out <= 13; out++)
            check_window(&(cs_window_work){.in = {in}, .out = {out}, .adaptive = 1});
        for (int32_t kernel = 1; kernel <= 4; kernel++)
            for (int32_t stride = 1; stride <= 4; stride++)
                for (int32_t pad = 0; 2 * pad <= kernel; pad++)
                    if (in + 2 * pad >= kernel)
                        check_window(
                            &(cs_window_work){.in = {in},
                                              .out = {(in + 2 * pad - kernel) / stride + 1},
                                              .kernel = {kernel},
                                              .stride = {stride},
                                              .pad = {pad}});
    }
}

/* Of n numbers uniform in (-1, 1) the mean has a standard deviation of sqrt(1 / 3 n), the mean
 * square, 1 / 3, a standard deviation of sqrt(4 / 45 n): six standard deviations are allowed. */
static void test_fill(void **state)
{
    enum { N = 100000 };
    (void)state;
    float *x = calloc(N, sizeof(*x));
    int64_t *ids = calloc(N, sizeof(*ids)), counts[7] = {0};
    double sum = 0, squares = 0;
    start(CS_BODY_fill_numbers, CS_PRECISION_FP32, &(cs_work){.y = x, .scale = 1}, N);
    start(CS_BODY_fill_ids, CS_PRECISION_FP32, &(cs_work){.y = ids, .n = 7}, N);
    for (int i = 0; i < N; i++) {
        assert_true(x[i] >= -1 && x[i] <= 1);
        assert_true(ids[i] >= 0 && ids[i] < 7);
        counts[ids[i]]++;
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    assert_true(fabs(sum / N) < 6 * sqrt(1 / (3.0 * N)));
    assert_true(fabs(squares / N - 1 / 3.0) < 6 * sqrt(4 / (45.0 * N)));
    for (int k = 0; k < 7; k++) /* binomial: n p (1 - p) */
        assert_true(fabs((double)counts[k] - N / 7.0) < 6 * sqrt(N * 6 / 49.0));
    free(x);
    free(ids);
}

/* Half are kept and doubled, and a gradient goes where they were. */
static void test_dropout(void **state)
{
    enum { N = 10000 };
    (void)state;
    static float x[N], y[N], dx[N];
    static uint8_t mask[N];
    int kept = 0;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i + 1);
    start(CS_BODY_dropout_forward, CS_PRECISION_FP32, &(cs_work){.a = x, .y = y, .s = mask}, N);
    start(CS_BODY_dropout_input, CS_PRECISION_FP32, &(cs_work){.g = x, .y = dx, .s = mask}, N);
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == 0 || y[i] == 2 * x[i]);
        assert_true(dx[i] == y[i]);
        kept += y[i] != 0;
    }
    assert_true(abs(kept - N / 2) < 300); /* six standard deviations, sqrt(n) / 2 each */
}

/* Mixed precision: the float32 copy moves by a step that bfloat16 cannot see. Weights of 1,
 * gradients of 0.5: plain descent at a rate of 1e-3 leaves 1 - 5e-4 in float32; the nearest
 * bfloat16, with steps of 2^-8 below 1, is 1. After 8 steps it is 0.996: 0.99609375. */
static void test_mixed_update(void **state)
{
    (void)state;
    enum { N = 3 };
    uint16_t weights[N], gradients[N];
    float copies[N] = {1, 1, 1};
    cs_error error;
    cs_error_init(&error);
    cs_update update = {.to = weights,
                        .from = weights,
                        .gradients = gradients,
                        .states = copies,
                        .parameters = N,
                        .precision = CS_PRECISION_BF16};
    for (int i = 0; i < N; i++)
        cs_set(CS_PRECISION_BF16, weights, i, 1);
    for (int step = 1; step <= 8; step++) {
        for (int i = 0; i < N; i++)
            cs_set(CS_PRECISION_BF16, gradients, i, 0.5f);
        assert_int_equal(cs_device_update(&cs_host_launcher, &update, &error), CS_OK);
        for (int i = 0; i < N; i++) {
            assert_true(fabs(copies[i] - (1 - 5e-4 * step)) < 1e-6);
            assert_int_equal(gradients[i], 0);
        }
        if (step == 1)
            assert_true(cs_get(CS_PRECISION_BF16, weights, 0) == 1);
    }
    assert_true(cs_get(CS_PRECISION_BF16, weights, N - 1) == 0.99609375f);
}

/* Sums over rows, with gaps between them, of more columns than a chunk has and of fewer; bfloat16
 * holds integers up to 256. */
static void test_sum_rows(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, columns, stride;
    } cases[] = {{1, 5, 5}, {7, 3, 4}, {100, 2, 2}, {2, 300000, 300000}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        int64_t rows = cases[k].rows, columns = cases[k].columns, stride = cases[k].stride;
        uint16_t *from = calloc((size_t)(rows * stride), 2), *to = calloc((size_t)columns, 2);
        void *workspace = malloc((size_t)cs_device_sums_bytes(rows, columns));
        cs_error error;
        cs_error_init(&error);
        for (int64_t i = 0; i < rows * stride; i++)
            cs_set(CS_PRECISION_BF16, from, i, i % stride < columns ? (float)(i % stride % 3) : 99);
        for (int64_t c = 0; c < columns; c++)
            cs_set(CS_PRECISION_BF16, to, c, 1);
        assert_int_equal(cs_device_sum_rows(&cs_host_launcher, CS_PRECISION_BF16, from, stride,
                                            rows, columns, to, workspace, &error),
                         CS_OK);
        for (int64_t c = 0; c < columns; c++)
            assert_true(cs_get(CS_PRECISION_BF16, to, c) ==
                        1 + (float)rows * (float)(c % stride % 3));
        free(from);
        free(to);
        free(workspace);
    }
}

/* ---- groups: what begins and ends anywhere is all done, and nothing besides ---- */

enum { ROOM = 64 };

/* Below 64: every precision holds them, and sums of two, exactly. */
static float number(int64_t i)
{
    return (float)(i * 37 % 64);
}

static void test_groups(void **state)
{
    static const cs_precision precisions[] = {CS_PRECISION_FP32, CS_PRECISION_BF16};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        cs_precision p = precisions[k];
        _Alignas(16) char a[4 * ROOM], b[4 * ROOM], y[4 * ROOM];
        int64_t width = p == CS_PRECISION_FP32 ? 4 : 2;
        for (int64_t at = 0; at < 9; at++)
            for (int64_t n = 1; n <= 20; n++) {
                for (int64_t i = 0; i < ROOM; i++) {
                    cs_set(p, a, i, number(i));
                    cs_set(p, b, i, number(i + 1));
                    cs_set(p, y, i, -1);
                }
                start(CS_BODY_add, p,
                      &(cs_work){.a = a + at * width, .b = b + at * width, .y = y + at * width}, n);
                for (int64_t i = 0; i < ROOM; i++) {
                    bool inside = i >= at && i < at + n;
                    float right = inside ? number(i) + number(i + 1) : -1;
                    if (cs_get(p, y, i) != right)
                        fail_msg("%d numbers at %d: number %d is %g, not %g", (int)n, (int)at,
                                 (int)i, (double)cs_get(p, y, i), (double)right);
                }
            }
    }
}

/* Every size, distance and place of rows, by units of 16, 4 and 2 bytes, in order and by ids. */
static void test_copy_rows(void **state)
{
    enum { ROWS = 3 };
    static const int64_t ids[ROWS] = {2, 0, 2};
    (void)state;
    for (int64_t columns = 1; columns <= 17; columns++)
        for (int64_t gap = 0; gap < 9; gap++)
            for (int64_t at = 0; at < 9; at++)
                for (int by_id = 0; by_id < 2; by_id++) {
                    _Alignas(16) uint16_t from[ROWS * 32 + 16], to[ROWS * 32 + 16];
                    cs_rows rows = {
                        from + at, to,     by_id ? ids : NULL, columns + gap, columns + gap,
                        ROWS,      columns};
                    cs_error error;
                    cs_error_init(&error);
                    for (int i = 0; i < ROWS * 32 + 16; i++) {
                        from[i] = (uint16_t)(i + 1);
                        to[i] = 0;
                    }
                    assert_int_equal(
                        cs_device_copy_rows(&cs_host_launcher, CS_PRECISION_BF16, &rows, &error),
                        CS_OK);
                    for (int64_t i = 0; i < ROWS * 32; i++) {
                        int64_t row = i / (columns + gap), c = i % (columns + gap);
                        int64_t source = row >= ROWS ? 0 : by_id ? ids[row] : row;
                        bool inside = row < ROWS && c < columns;
                        assert_int_equal(to[i], inside ? at + source * (columns + gap) + c + 1 : 0);
                    }
                }
}

/* Rows of 5 in room for 8, and once more without gaps: softmax of the logarithms of 1, 2, 3, ... is
 * these numbers over their sum. Invisible tokens get 0, and gaps are unchanged. */
static void test_softmax_rows(void **state)
{
    enum { T = 5, STRIDE = 8 };
    _Alignas(16) float y[T * STRIDE], kept[T * T];
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        for (int i = 0; i < T * STRIDE; i++)
            y[i] = i % STRIDE < T ? logf((float)(1 + (i / STRIDE + i % STRIDE) % T)) : 99;
        start(CS_BODY_weigh_forward, CS_PRECISION_FP32,
              &(cs_work){.y = y,
                         .t = kept,
                         .columns = T,
                         .to_stride = STRIDE,
                         .from_stride = T,
                         .flag = causal},
              T);
        for (int row = 0; row < T; row++) {
            float sum = 0;
            for (int c = 0; c < T; c++)
                sum += c <= row || !causal ? (float)(1 + (row + c) % T) : 0;
            for (int c = 0; c < STRIDE; c++) {
                bool seen = c <= row || !causal;
                float right = c >= T ? 99 : seen ? (float)(1 + (row + c) % T) / sum : 0;
                assert_true(fabsf(y[row * STRIDE + c] - right) < 1e-6f);
                assert_true(c >= T || kept[row * T + c] == y[row * STRIDE + c]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16),         cmocka_unit_test(test_windows),
        cmocka_unit_test(test_fill),         cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_mixed_update), cmocka_unit_test(test_sum_rows),
        cmocka_unit_test(test_groups),       cmocka_unit_test(test_copy_rows),
        cmocka_unit_test(test_softmax_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
