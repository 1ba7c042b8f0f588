/* Halos against a slow walk over all pairs of an output row and an input row, and against the
 * closed form for the inside of an image. */
#include "sim/model/halo.h"

#include "tests/expect.h"

#include <stdlib.h>

enum { MOST_ROWS = 96 };

/* Which part has a row, by search. */
static uint32_t owner(uint32_t rows, uint32_t parts, uint32_t row)
{
    for (uint32_t i = 0; i < parts; i++) {
        const cs_row_range own = cs_rows_of(rows, parts, i);
        if (row >= own.first && row < own.end)
            return i;
    }
    fail_msg("row %" PRIu32 " of %" PRIu32 " is in none of %" PRIu32 " parts", row, rows, parts);
    return 0;
}

/* Whether an output row reads an input row. */
static bool reads(const cs_sliding *s, uint32_t out, uint32_t in)
{
    for (uint32_t k = 0; k < s->kernel; k++)
        if ((int64_t)out * s->stride - s->pad + (int64_t)k * s->dilation == in)
            return true;
    return false;
}

/* From a mark per row that part i needs: the rows from the first to the last one that others
 * have. */
static cs_halo count(const bool *needed, uint32_t rows, uint32_t parts, uint32_t i)
{
    uint32_t first = rows, last = 0;
    cs_halo halo = {0, 0};
    for (uint32_t r = 0; r < rows; r++) {
        if (!needed[r])
            continue;
        first = r < first ? r : first;
        last = r;
    }
    for (uint32_t r = first; r < rows && r <= last; r++) {
        halo.before += owner(rows, parts, r) < i;
        halo.behind += owner(rows, parts, r) > i;
    }
    return halo;
}

static void slow(const cs_sliding *s, uint32_t parts, uint32_t i, cs_halo *input, cs_halo *gradient)
{
    bool in[MOST_ROWS] = {false}, out[MOST_ROWS] = {false};
    for (uint32_t o = 0; o < s->out; o++) {
        for (uint32_t x = 0; x < s->in; x++) {
            if (!reads(s, o, x))
                continue;
            in[x] |= owner(s->out, parts, o) == i;
            out[o] |= owner(s->in, parts, x) == i;
        }
    }
    *input = count(in, s->in, parts, i);
    *gradient = count(out, s->out, parts, i);
}

static void expect_halo(const char *row, cs_halo expected, cs_halo got)
{
    if (expected.before != got.before || expected.behind != got.behind)
        fail_msg("%s: expected %" PRIu32 " before and %" PRIu32 " behind, got %" PRIu32
                 " and %" PRIu32,
                 row, expected.before, expected.behind, got.before, got.behind);
}

static void compare(const cs_sliding *s, uint32_t parts)
{
    for (uint32_t i = 0; i < parts; i++) {
        char row[160];
        cs_halo input, gradient;
        snprintf(row, sizeof(row),
                 "%" PRIu32 " rows, kernel %" PRIu32 ", stride %" PRIu32 ", padding %" PRIu32
                 ", dilation %" PRIu32 ", part %" PRIu32 " of %" PRIu32,
                 s->in, s->kernel, s->stride, s->pad, s->dilation, i, parts);
        slow(s, parts, i, &input, &gradient);
        expect_halo(row, input, cs_halo_of_input(s, parts, i));
        strcat(row, ", gradient");
        expect_halo(row, gradient, cs_halo_of_gradient(s, parts, i));
    }
}

/* All kernels up to 7, strides up to 4, dilations up to 3, with any useful padding, over numbers of
 * rows that divide and such that do not, and parts down to less than one row. */
static void test_walk(void **state)
{
    (void)state;
    static const uint32_t rows[] = {1, 5, 7, 14, 24, 56};
    static const uint32_t parts[] = {1, 2, 3, 4, 7, 8};
    uint32_t n = 0;
    for (uint32_t c = 0; c < ROWS(rows) * ROWS(parts) * 7 * 4 * 3; c++) {
        cs_sliding s = {.in = rows[c % ROWS(rows)],
                        .kernel = 1 + c / 36 % 7,
                        .stride = 1 + c / 252 % 4,
                        .dilation = 1 + c / 1008 % 3};
        const uint32_t reach = s.dilation * (s.kernel - 1);
        for (s.pad = 0; s.pad <= reach; s.pad++) {
            if (s.in + 2 * s.pad < reach + 1)
                continue;
            s.out = (s.in + 2 * s.pad - reach - 1) / s.stride + 1;
            compare(&s, parts[c / ROWS(rows) % ROWS(parts)]);
            n++;
        }
    }
    print_message("  %" PRIu32 " convolutions\n", n);
    if (n < 10000)
        fail_msg("only %" PRIu32 " convolutions were compared", n);
}

/* The middle one of three parts, each of whose outputs lie s x on its inputs: input a before and
 * d (K - 1) + 1 - a - s behind, gradients floor((d (K - 1) - a) / s) and floor((a - 1) / s) + 1. */
static const struct {
    const char *name;
    cs_sliding sliding;
    cs_halo input, gradient;
} inside[] = {
    {"3 x 3", {24, 24, 3, 1, 1, 1}, {1, 1}, {1, 1}},
    {"5 x 5", {24, 24, 5, 1, 2, 1}, {2, 2}, {2, 2}},
    {"3 x 3, dilation 2", {24, 24, 3, 1, 2, 2}, {2, 2}, {2, 2}},
    {"1 x 1", {24, 24, 1, 1, 0, 1}, {0, 0}, {0, 0}},
    {"1 x 1, stride 2", {24, 12, 1, 2, 0, 1}, {0, 0}, {0, 0}},
    {"3 x 3, stride 2", {24, 12, 3, 2, 1, 1}, {1, 0}, {0, 1}},
    {"7 x 7, stride 2: ResNet's first", {24, 12, 7, 2, 3, 1}, {3, 2}, {1, 2}},
    {"pooling 2 x 2", {24, 12, 2, 2, 0, 1}, {0, 0}, {0, 0}},
};

static void test_inside(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(inside); i++) {
        expect_halo(inside[i].name, inside[i].input, cs_halo_of_input(&inside[i].sliding, 3, 1));
        expect_halo(inside[i].name, inside[i].gradient,
                    cs_halo_of_gradient(&inside[i].sliding, 3, 1));
    }
}

/* 7 rows over 4 parts are 2, 2, 2, 1: a 5 x 5 kernel reads two rows each way, and the third part
 * needs two of the last one, which has one; the other is padding. With 7 parts of one row each it
 * needs rows of those behind its neighbours. 112 rows and the 56 behind a stride of 2 lie one on
 * the other in 16 parts of
 * 7 and of 4 or 3 rows. */
static void test_near(void **state)
{
    (void)state;
    const cs_sliding wide = {7, 7, 5, 1, 2, 1};
    expect_int("7 over 3", true, cs_halo_is_near(&wide, 3));
    expect_int("7 over 4", true, cs_halo_is_near(&wide, 4));
    expect_int("7 over 7", false, cs_halo_is_near(&wide, 7));
    expect_int("112 over 16", true, cs_halo_is_near(&(cs_sliding){112, 56, 3, 2, 1, 1}, 16));
    expect_int("most rows", 2, cs_rows_most(7, 4));
    const cs_halo most = cs_halo_most_of_input(&wide, 3);
    expect_int("most before", 2, most.before);
    expect_int("most behind", 2, most.behind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_near),
    };
    return cmocka_run_group_tests_name("halo", tests, NULL, NULL);
}
