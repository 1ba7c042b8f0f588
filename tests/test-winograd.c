/* Winograd's minimal filtering: which convolutions, how much of it, and how long. */
#include "sim/model/accelerator.h"

#include <math.h>

#include "tests/expect.h"

static void expect_near(const char *row, double expected, double got)
{
    if (!(fabs(got - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%s: expected %.17g, got %.17g", row, expected, got);
}

/* ---- which ---- */

static const struct {
    const char *row;
    uint32_t rank, groups, kernel[3], stride[3], dilation[3], pad;
    bool winograd, pointwise;
} kinds[] = {
    {"3 x 3", 2, 1, {3, 3}, {1, 1}, {1, 1}, 1, true, false},
    {"3 x 3 without padding", 2, 1, {3, 3}, {1, 1}, {1, 1}, 0, true, false},
    {"3 x 1", 2, 1, {3, 1}, {1, 1}, {1, 1}, 1, false, false},
    {"1 x 3", 2, 1, {1, 3}, {1, 1}, {1, 1}, 1, false, false},
    {"5 x 5", 2, 1, {5, 5}, {1, 1}, {1, 1}, 1, false, false},
    {"strides down", 2, 1, {3, 3}, {2, 1}, {1, 1}, 1, false, false},
    {"strides across", 2, 1, {3, 3}, {1, 2}, {1, 1}, 1, false, false},
    {"dilation down", 2, 1, {3, 3}, {1, 1}, {2, 1}, 1, false, false},
    {"dilation across", 2, 1, {3, 3}, {1, 1}, {1, 2}, 1, false, false},
    {"depthwise", 2, 8, {3, 3}, {1, 1}, {1, 1}, 1, false, false},
    {"in space", 3, 1, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, false, false},
    {"a pixel", 2, 1, {1, 1}, {1, 1}, {1, 1}, 0, false, true},
    {"a pixel in space", 3, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, false, true},
    {"every other pixel", 2, 1, {1, 1}, {1, 2}, {1, 1}, 0, false, false},
    {"a pixel, padded", 2, 1, {1, 1}, {1, 1}, {1, 1}, 1, false, false},
    {"a pixel of groups", 2, 4, {1, 1}, {1, 1}, {1, 1}, 0, false, false},
};

static void test_kinds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(kinds); i++) {
        cs_op op = {.kind = CS_OP_CONV, .groups = kinds[i].groups};
        op.kernel.rank = op.stride.rank = op.dilation.rank = op.pad.rank = kinds[i].rank;
        for (uint32_t d = 0; d < kinds[i].rank; d++) {
            op.kernel.size[d] = kinds[i].kernel[d];
            op.stride.size[d] = kinds[i].stride[d];
            op.dilation.size[d] = kinds[i].dilation[d];
            op.pad.size[d] = kinds[i].pad;
        }
        expect_int(kinds[i].row, kinds[i].winograd, cs_winograd_computes(&op));
        expect_int(kinds[i].row, kinds[i].pointwise, cs_op_is_pointwise(&op));
        op.kind = CS_OP_LINEAR;
        assert_false(cs_winograd_computes(&op) || cs_op_is_pointwise(&op));
    }
}

/* ---- how much ---- */

/* Two images of 3 x 7 x 9 and 8 filters. Padded, results are 7 x 9: 4 x 5 tiles of 2 x 2; without
 * padding 5 x 7, 3 x 4 tiles, while the gradient of the input still has 4 x 5. The definition has
 * 9 x 3 multiplications with their additions for each of the 8 x 63, or 8 x 35, results. */
static const struct {
    const char *row;
    uint32_t pad;
    double made, read, flop;
} passes[] = {
    {"padded", 1, 2 * 20, 2 * 20, 2.0 * 2 * 27 * 8 * 63},
    {"not padded", 0, 2 * 12, 2 * 20, 2.0 * 2 * 27 * 8 * 35},
};

static void expect_pass(const char *row, const cs_winograd *expected, const cs_winograd *got)
{
    expect_double(row, expected->tiles, got->tiles);
    expect_double(row, expected->channels, got->channels);
    expect_double(row, expected->filters, got->filters);
    expect_double(row, expected->flop, got->flop);
    expect_int(row, expected->fused, got->fused);
}

static void test_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(passes); i++) {
        cs_net net;
        cs_error error;
        cs_op_cost cost;
        cs_error_init(&error);
        cs_net_begin(&net, "small", &error);
        cs_net_block(&net, "block");
        cs_tensor x = cs_net_image(&net, 3, (cs_extent){2, {7, 9}});
        x = cs_net_conv(&net, "before", x, &(cs_conv){.out = 3, .kernel = 1});
        x = cs_net_conv(&net, "conv", x, &(cs_conv){.out = 8, .kernel = 3, .pad = passes[i].pad});
        cs_net_conv(&net, "after", x, &(cs_conv){.out = 8, .kernel = 1});
        const double flop = passes[i].flop;
        cs_op_cost_of(&net, &net.ops[1], 2, CS_PRECISION_FP32, &cost);
        expect_pass(passes[i].row, &(cs_winograd){passes[i].made, 3, 8, flop, true},
                    &cost.forward.winograd);
        expect_pass(passes[i].row, &(cs_winograd){passes[i].read, 8, 3, flop, true},
                    &cost.backward_input.winograd);
        expect_pass(passes[i].row, &(cs_winograd){passes[i].made, 3, 8, flop, false},
                    &cost.backward_weight.winograd);
        expect_double(passes[i].row, flop, cost.forward.flop);
        cs_op_cost_of(&net, &net.ops[2], 2, CS_PRECISION_FP32, &cost);
        expect_pass("a pixel", &(cs_winograd){0}, &cost.forward.winograd);
        cs_net_finish(&net);
    }
}

/* ---- how long ---- */

/* 64 tiles, 32 channels, 64 filters; results of 2 x 2 x 64 x 64, which the definition computes with
 * 2 * 9 * 32 * 16,384 = 9,437,184 flop. Products: 2 * 16 * 64 * 32 * 64 = 4,194,304, 2.25 times
 * fewer.
 *
 * One kernel: pixels are transformed for either block of 32 filters, 2 * 64 * 32 * 32 * 2 = 262,144
 * flop, results 2 * 64 * 24 * 64 = 196,608, filters 2 * 28 * 32 * 64 = 114,688. It has 4 blocks.
 * On one multiprocessor two at once take two waves, on three all are one, of six. Filters are
 * 16 * 4 * 32 * 64 = 131,072 bytes, which are written and read.
 *
 * Products in memory: 16 * 4 * (64 * 32 + 64 * 64 + 32 * 64) = 524,288 bytes, which transforms move
 * besides the operator's own, and the products once more. */
enum { DEFINED = 9437184, PRODUCTS = 4194304, BLOCKS = 262144 + 196608, FILTERS = 114688 };

static const struct {
    const char *row;
    bool fused;
    uint32_t multiprocessors;
    double more_flop, bytes; /* by the definition */
    double fused_rate, products_rate, moved_rate;
    double seconds;
} times[] = {
    {"one kernel", true, 0, 0, 0, 1e9, 1, 1e12, (PRODUCTS + BLOCKS + FILTERS) / 1e9},
    {"whole waves", true, 1, 0, 0, 1e9, 1, 1e12, (PRODUCTS + BLOCKS + FILTERS) / 1e9},
    {"a wave with gaps", true, 3, 0, 0, 1e9, 1, 1e12, ((PRODUCTS + BLOCKS) * 1.5 + FILTERS) / 1e9},
    {"with the sum of a bias", true, 0, 1000, 0, 1e9, 1, 1e12,
     (PRODUCTS + BLOCKS + FILTERS + 1000) / 1e9},
    {"one kernel that moves", true, 0, 0, 1e6, 1e15, 1, 1e9, (1e6 + 2 * 131072) / 1e9},
    {"products", true, 0, 0, 1e6, 1, 1e9, 1e9, (1e6 + 524288 + PRODUCTS) / 1e9},
    {"products, with the sum of a bias", true, 0, 1000, 1e6, 1, 1e9, 1e9,
     (1e6 + 524288 + PRODUCTS + 1000) / 1e9},
    {"products that move", true, 0, 0, 1e6, 1, 1e15, 1e9, (1e6 + 2 * 524288) / 1e9},
    {"no such kernel", false, 0, 0, 1e6, 1e15, 1e9, 1e9, (1e6 + 524288 + PRODUCTS) / 1e9},
};

static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(times); i++) {
        const cs_winograd pass = {64, 32, 64, DEFINED, times[i].fused};
        cs_winograd_rates rates = {.fused = times[i].fused_rate,
                                   .products = times[i].products_rate,
                                   .moved = times[i].moved_rate,
                                   .multiprocessors = times[i].multiprocessors};
        const double flop = DEFINED + times[i].more_flop;
        expect_near(times[i].row, times[i].seconds,
                    cs_winograd_seconds(&pass, flop, times[i].bytes, &rates));
    }
    /* Kernels of 1 s: transforms of filters and the one kernel; three transforms and products. */
    const cs_winograd one = {64, 32, 64, DEFINED, true}, apart = {64, 32, 64, DEFINED, false};
    const cs_winograd_rates instant = {1e30, 1e30, 1e30, 1, 0};
    expect_near("two kernels", 2, cs_winograd_seconds(&one, DEFINED, 0, &instant));
    expect_near("four kernels", 4, cs_winograd_seconds(&apart, DEFINED, 0, &instant));
}

/* The same of a device of 1e9 flop/s and 1e9 bytes/s, whose one kernel reaches half of both,
 * products of matrices an eighth of the former; computed directly it takes longer. On three
 * multiprocessors the blocks take 1.5 times as long. */
static void test_device(void **state)
{
    (void)state;
    cs_tiling tiling = {.multiprocessors = 3};
    cs_accelerator device = {.bandwidth = 1e9, .training.tiling = &tiling};
    const cs_efficiency product = {.compute = 1.0 / 8, .memory = 1};
    const cs_op op = {.kind = CS_OP_CONV, .groups = 1, .kernel = {2, {3, 3}}};
    const cs_winograd one = {64, 32, 64, DEFINED, true}, apart = {64, 32, 64, DEFINED, false};
    cs_pass_cost pass = {.flop = DEFINED, .bytes = 1e6, .winograd = one};
    device.peaks[CS_PRECISION_FP32] = 1e9;
    device.groups[CS_GROUP_WINOGRAD] = (cs_efficiency){.compute = 0.5, .memory = 0.5};
    device.groups[CS_GROUP_CONV] = (cs_efficiency){.compute = 1e-3, .memory = 1};
    expect_near("one kernel", ((PRODUCTS + BLOCKS) * 1.5 + FILTERS) / 0.5e9,
                cs_accelerator_conv_seconds(&device, &op, &pass, CS_PRECISION_FP32, &product));
    pass.winograd = apart;
    expect_near("products", (1e6 + 524288) / 0.5e9 + PRODUCTS * 8 / 1e9,
                cs_accelerator_conv_seconds(&device, &op, &pass, CS_PRECISION_FP32, &product));
    device.groups[CS_GROUP_WINOGRAD] = (cs_efficiency){0};
    expect_near("directly", DEFINED / 1e6,
                cs_accelerator_conv_seconds(&device, &op, &pass, CS_PRECISION_FP32, &product));
}

/* ---- what is published ---- */

/* Lavin and Gray (CVPR 2016, arXiv 1509.09308), tables 3 and 5: the convolutions of VGG E forward,
 * in Tflop/s of the definition, on a Titan X of 6.96 Tflop/s, 24 multiprocessors and 336.5 GB/s
 * (NVIDIA). Shipped devices have one figure for all rows; that few images take longer comes from
 * waves. */
static const struct {
    uint32_t depth;
    double channels, size, filters;
} vgg[] = {
    {1, 3, 224, 64},   {1, 64, 224, 64},  {1, 64, 112, 128}, {1, 128, 112, 128}, {1, 128, 56, 256},
    {3, 256, 56, 256}, {1, 256, 28, 512}, {3, 512, 28, 512}, {4, 512, 14, 512},
};

static const struct {
    double images, tflops;
} published[] = {{1, 7.03}, {2, 7.89}, {4, 8.81}, {8, 9.43}, {16, 9.49}, {32, 9.43}, {64, 9.37}};

static void test_published(void **state)
{
    (void)state;
    cs_accelerator v100;
    assert_int_equal(cs_accelerator_load("v100", NULL, &v100, NULL), CS_OK);
    const cs_efficiency *reached = &v100.groups[CS_GROUP_WINOGRAD];
    const cs_winograd_rates titan = {.fused = 6.96e12 * reached->compute,
                                     .products = 1, /* are not used */
                                     .moved = 336.5e9 * reached->memory,
                                     .multiprocessors = 24};
    print_message("images  published  here, Tflop/s\n");
    for (size_t i = 0; i < ROWS(published); i++) {
        const double n = published[i].images;
        double seconds = 0, flop = 0;
        for (size_t l = 0; l < ROWS(vgg); l++) {
            const double pixels = n * vgg[l].size * vgg[l].size;
            const double c = vgg[l].channels, k = vgg[l].filters;
            const cs_winograd pass = {pixels / 4, c, k, 2 * 9 * pixels * c * k, true};
            const double bytes = 4 * (pixels * (c + k) + 9 * c * k);
            seconds += vgg[l].depth * cs_winograd_seconds(&pass, pass.flop, bytes, &titan);
            flop += vgg[l].depth * pass.flop;
        }
        const double got = flop / seconds / 1e12;
        print_message("%6.0f %10.2f %6.2f\n", n, published[i].tflops, got);
        if (fabs(got / published[i].tflops - 1) > 0.03)
            fail_msg("%.0f images: published %.2f Tflop/s, got %.2f", n, published[i].tflops, got);
    }
    cs_accelerator_finish(&v100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),     cmocka_unit_test(test_passes),
        cmocka_unit_test(test_times),     cmocka_unit_test(test_device),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
