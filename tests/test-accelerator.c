/* Devices, precisions and the times that follow from them. */
#include "sim/run/scenario/workload.h"

#include "tests/expect.h"

static void must_load(const char *name, cs_accelerator *device)
{
    cs_error error;
    cs_error_init(&error);
    if (cs_accelerator_load(name, NULL, device, &error) != CS_OK)
        fail_msg("%s: %s", name, error.text);
}

/* Peaks in Tflop/s and GB/s, as the data sheets have them. */
static const struct {
    const char *name;
    double fp32, tf32, fp16, bf16, bandwidth, memory;
    double fp8, mxfp8, nvfp4;
} devices[] = {
    {"v100", 15.7, 0, 125, 0, 900, 16},
    {"a100", 19.5, 156, 312, 312, 2039, 80},
    {"h100", 67, 494.7, 989.4, 989.4, 3350, 80, 1978.9},
    {"titan-rtx", 16.3, 0, 130.5, 0, 672, 24},
    {"rtx-2080-ti", 13.4, 0, 53.8, 0, 616, 11},
    {"t4", 8.1, 0, 65, 0, 320, 16},
    {"a100-40gb", 19.5, 156, 312, 312, 1555, 40},
    {"a100-40gb-pcie", 19.5, 156, 312, 312, 1555, 40},
    {"a100-80gb-pcie", 19.5, 156, 312, 312, 1935, 80},
    {"h200", 67, 494.7, 989.4, 989.4, 4800, 141, 1978.9},
    {"l40s", 91.6, 183, 362.05, 362.05, 864, 48, 733},
    {"rtx-4090", 82.6, 82.6, 165.2, 165.2, 1008, 24, 330.3},
    {"v100-pcie", 14, 0, 112, 0, 900, 16},
    {"p100-pcie", 9.3, 0, 18.7, 0, 732, 16},
    {"p4", 5.5, 0, 0, 0, 192, 8},
    {"l4", 30.3, 60, 121, 121, 300, 24, 242.5},
    {"b200", 75, 1125, 2250, 2250, 8000, 180, 4500, 4500, 9000},
    {"gb200", 80, 1250, 2500, 2500, 8000, 186, 5000, 5000, 10000},
    {"mi300x", 163.4, 653.7, 1307.4, 1307.4, 5300, 192, 2614.9},
    {"mi325x", 163.4, 653.7, 1307.4, 1307.4, 6000, 256, 2614.9},
    {"mi355x", 157.3, 0, 2516.6, 2516.6, 8000, 288, 5033.2, 5033.2},
    {"mi100", 46.1, 0, 184.6, 92.3, 1228.8, 32},
    {"mi210", 45.3, 0, 181, 181, 1638.4, 64},
    {"mi250", 45.25, 0, 181.05, 181.05, 1638.4, 64},
    {"p40", 11.76, 0, 0, 0, 346, 24},
    {"h100-96gb", 67, 494.7, 989.4, 989.4, 2400, 96, 1978.9},
    {"b300", 75, 1125, 2250, 2250, 8000, 270, 4500, 4500, 13500},
    {"gb300", 80, 1250, 2500, 2500, 8000, 278, 5000, 5000, 15000},
    {"a800", 19.5, 156, 312, 312, 2039, 80},
    {"h800", 67, 494.7, 989.4, 989.4, 3350, 80, 1978.9},
    {"h100-pcie", 51, 378, 756.5, 756.5, 2000, 80, 1513},
    {"h100-nvl", 60, 417.5, 835.5, 835.5, 3900, 94, 1670.5},
    {"h200-nvl", 60, 417.5, 835.5, 835.5, 4800, 141, 1670.5},
    {"h20", 44, 74, 148, 148, 4000, 96, 296},
    {"a10", 31.2, 62.5, 125, 125, 600, 24},
    {"a40", 37.4, 74.8, 149.7, 149.7, 696, 48},
    {"rtx-a6000", 38.7, 77.4, 154.8, 154.8, 768, 48},
    {"rtx-3090", 35.6, 35.6, 71, 71, 936, 24},
    {"rtx-6000-ada", 91.1, 182.1, 364.25, 364.25, 960, 48, 728.5},
    {"rtx-5090", 104.8, 104.8, 209.5, 209.5, 1792, 32, 838, 0, 1676},
    {"rtx-pro-6000", 126, 251.9, 503.8, 503.8, 1792, 96, 1007.6, 0, 2015},
    {"rtx-pro-6000-server", 120, 240, 480, 480, 1597, 96, 960, 0, 1920},
    {"rtx-pro-6000-max-q", 110, 220, 440, 440, 1792, 96, 880, 0, 1760},
    {"v100-32gb", 15.7, 0, 125, 0, 900, 32},
    {"gh200-144gb", 67, 494.7, 989.4, 989.4, 4900, 144, 1978.9},
    {"gh200", 67, 494.7, 989.4, 989.4, 4000, 96, 1978.9},
    {"l40", 90.5, 90.5, 181.05, 181.05, 864, 48, 362},
    {"a30", 10.3, 82, 165, 165, 933, 24},
    {"mi250x", 47.85, 0, 191.5, 191.5, 1638.4, 64},
    {"mi350x", 144.2, 0, 2306.9, 2306.9, 8000, 288, 4613.7, 4613.7},
    {"p100", 10.6, 0, 21.2, 0, 732, 16},
};

static void expect_near(const char *row, double expected, double got)
{
    if (!(got >= expected * (1 - 1e-12) && got <= expected * (1 + 1e-12)))
        fail_msg("%s: expected %.17g, got %.17g", row, expected, got);
}

static void test_devices(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(devices); i++) {
        const double peaks[CS_N_PRECISIONS] = {devices[i].fp32, devices[i].tf32, devices[i].fp16,
                                               devices[i].bf16, devices[i].fp8,  devices[i].mxfp8,
                                               devices[i].nvfp4};
        cs_accelerator device;
        must_load(devices[i].name, &device);
        for (int p = 0; p < CS_N_PRECISIONS; p++)
            expect_near(devices[i].name, peaks[p] * 1e12, device.peaks[p]);
        expect_near(devices[i].name, devices[i].bandwidth * 1e9, device.bandwidth);
        expect_near(devices[i].name, devices[i].memory * 1024 * 1024 * 1024, (double)device.memory);
        for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
            assert_true(strlen(device.groups[g].source) > 0);
        cs_accelerator_finish(&device);
    }
}

/* A device of round numbers: 1 Tflop/s at half, convolutions at a quarter, 100 GB/s at half,
 * kernels of 1 us. */
static cs_accelerator round_device(void)
{
    cs_accelerator device;
    cs_accelerator_none(&device);
    device.bandwidth = 100e9;
    device.launch = CS_PS_PER_SEC / 1000000;
    device.peaks[CS_PRECISION_FP32] = 1e12;
    device.peaks[CS_PRECISION_FP16] = 4e12;
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        device.groups[g] = (cs_efficiency){0.5, 0.5, "test"};
    device.groups[CS_GROUP_CONV].compute = 0.25;
    device.groups[CS_GROUP_WINOGRAD].compute = 1;
    return device;
}

#define DEFINED 9437184
#define WINOGRAD                                                                                   \
    {                                                                                              \
        64, 32, 64, DEFINED, true                                                                  \
    }

/* 10^9 flop at 0.5 Tflop/s are 2 ms, at a quarter 4 ms, 10^8 bytes at 50 GB/s are 2 ms. Winograd's
 * kernel for 64 tiles, 32 channels and 64 filters (test-winograd.c) has 4,767,744 flop, which take
 * less than the 2 x 131,072 bytes of its filters, and a second kernel transforms these. */
static const struct {
    const char *row;
    cs_op_kind kind;
    uint32_t kernel;
    cs_precision precision;
    cs_pass_cost pass;
    double seconds;
} times[] = {
    {"computing", CS_OP_LINEAR, 0, CS_PRECISION_FP32, {1e9, 1e7, 1}, 2e-3 + 1e-6},
    {"moving", CS_OP_LINEAR, 0, CS_PRECISION_FP32, {1e8, 1e8, 1}, 2e-3 + 1e-6},
    {"two kernels", CS_OP_LINEAR, 0, CS_PRECISION_FP32, {1e9, 1e7, 2}, 2e-3 + 2e-6},
    {"in fp16", CS_OP_LINEAR, 0, CS_PRECISION_FP16, {1e9, 1e6, 1}, 0.5e-3 + 1e-6},
    {"no products", CS_OP_RELU, 0, CS_PRECISION_FP16, {1e9, 1e6, 1}, 2e-3 + 1e-6},
    {"a convolution", CS_OP_CONV, 5, CS_PRECISION_FP32, {1e9, 1e7, 1}, 4e-3 + 1e-6},
    {"of a pixel", CS_OP_CONV, 1, CS_PRECISION_FP32, {1e9, 1e7, 1}, 2e-3 + 1e-6},
    {"of a pixel in fp16", CS_OP_CONV, 1, CS_PRECISION_FP16, {1e9, 1e7, 1}, 1e-3 + 1e-6},
    {"winograd",
     CS_OP_CONV,
     3,
     CS_PRECISION_FP32,
     {DEFINED, 0, 1, .winograd = WINOGRAD},
     2 * 131072 / 50e9 + 2e-6},
    {"winograd in fp16",
     CS_OP_CONV,
     3,
     CS_PRECISION_FP16,
     {DEFINED, 0, 1, .winograd = WINOGRAD},
     DEFINED / 1e12 + 1e-6},
    {"nothing", CS_OP_VIEW, 0, CS_PRECISION_FP32, {0, 0, 0}, 0},
};

static void test_times(void **state)
{
    (void)state;
    cs_accelerator device = round_device();
    for (size_t i = 0; i < ROWS(times); i++) {
        const cs_op op = {.kind = times[i].kind,
                          .groups = 1,
                          .kernel = {2, {times[i].kernel, times[i].kernel}},
                          .stride = {2, {1, 1}},
                          .dilation = {2, {1, 1}}};
        double got = cs_accelerator_seconds(&device, &op, &times[i].pass, times[i].precision);
        expect_near(times[i].row, times[i].seconds, got);
    }
    device.groups[CS_GROUP_WINOGRAD] = (cs_efficiency){0}; /* a description without it */
    const cs_op conv = {.kind = CS_OP_CONV, .groups = 1, .kernel = {2, {3, 3}}};
    const cs_pass_cost pass = {DEFINED, 0, 1, .winograd = WINOGRAD};
    expect_near("directly", DEFINED / 0.25e12 + 1e-6,
                cs_accelerator_seconds(&device, &conv, &pass, CS_PRECISION_FP32));
}

/* Bytes per byte of weights, besides weights and gradients. In fp32 a state is as large as a
 * weight. Mixed with Adam: 4 + 4 + 4 bytes for a weight of 2 (ZeRO's 16 bytes per parameter, less 2
 * for the weight and 2 for its gradient). Updates read a gradient, and read and write the weight
 * and its states; the mixed ones write a copy of 2 bytes besides. With a kernel for each step of
 * the formula, in fp32: descent reads g and w and writes g', then reads w and g' and writes w, 24;
 * momentum 12 of decay, 8 of m s, 12 of s + g', 12 of w - r s, 44; Adam 8 of decay, 12 of lerp, 8
 * of v s, 12 of addcmul, 8 each of the root, its quotient and epsilon, 16 of addcdiv, 80. */
static const struct {
    const char *row;
    cs_precision precision;
    double states, ratio, update;
    int64_t gradients; /* bytes per byte of weights, in float32, which an update then reads */
    double update_of_float;
    double stepwise; /* besides, with a kernel for each step of the formula */
} optimizers[] = {
    {"fp32, sgd", CS_PRECISION_FP32, 0, 0, 12, 1, 12, 12},
    {"fp32, momentum", CS_PRECISION_FP32, 1, 1, 20, 1, 20, 24},
    {"fp32, adam", CS_PRECISION_FP32, 2, 2, 28, 1, 28, 52},
    {"tf32, adam", CS_PRECISION_TF32, 2, 2, 28, 1, 28, 52},
    {"fp16, sgd", CS_PRECISION_FP16, 0, 2, 12, 2, 14, 8},
    {"fp16, momentum", CS_PRECISION_FP16, 1, 4, 20, 2, 22, 20},
    {"bf16, adam", CS_PRECISION_BF16, 2, 6, 28, 2, 30, 50},
    {"nvfp4, adam", CS_PRECISION_NVFP4, 2, 6, 28, 2, 30, 50},
};

static void test_optimizers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(optimizers); i++) {
        const cs_optimizer_storage usual = {0};
        double states = optimizers[i].states;
        expect_double(optimizers[i].row, optimizers[i].ratio,
                      cs_precision_state_ratio(optimizers[i].precision, states, usual));
        expect_double(optimizers[i].row, optimizers[i].update,
                      cs_precision_update_bytes(optimizers[i].precision, states, false, usual));
        expect_double(optimizers[i].row, optimizers[i].update_of_float,
                      cs_precision_update_bytes(optimizers[i].precision, states, true, usual));
        expect_double(optimizers[i].row, optimizers[i].stepwise,
                      cs_precision_stepwise_bytes(optimizers[i].precision, states, false, usual));
        expect_int(optimizers[i].row, 1,
                   cs_precision_gradient_ratio(optimizers[i].precision, false));
        expect_int(optimizers[i].row, optimizers[i].gradients,
                   cs_precision_gradient_ratio(optimizers[i].precision, true));
    }
}

/* Bytes per parameter in addition to weight and gradient, by storage types: main weights of 4 or
 * none, states of 4, 2 or 1 bytes. DeepSeek-V3 (arXiv 2412.19437, section 3.3.2) keeps main
 * weights and gradients in float32, and Adam's two states in bf16: 2 + 4 + 4 + 2 + 2. An update
 * reads the gradient, reads and writes the weight it has and the states, and writes the copy of a
 * main weight. */
static const struct {
    const char *row;
    cs_precision precision;
    double states;
    cs_optimizer_storage storage;
    double kept, update;
} stored[] = {
    {"all in float32", CS_PRECISION_BF16, 2, {4, false}, 4 + 8, 4 + (8 + 2) + 16},
    {"DeepSeek-V3", CS_PRECISION_BF16, 2, {2, false}, 4 + 4, 4 + (8 + 2) + 8},
    {"states of a byte", CS_PRECISION_FP8, 2, {1, false}, 4 + 2, 4 + (8 + 2) + 4},
    {"no main weights", CS_PRECISION_BF16, 2, {4, true}, 8, 4 + 4 + 16},
    {"only bf16", CS_PRECISION_BF16, 1, {2, true}, 2, 4 + 4 + 4},
    {"float32 is its own main weight", CS_PRECISION_FP32, 2, {2, true}, 4, 4 + 8 + 8},
};

static void test_storage(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(stored); i++) {
        expect_double(
            stored[i].row, stored[i].kept,
            cs_precision_bytes(stored[i].precision) *
                cs_precision_state_ratio(stored[i].precision, stored[i].states, stored[i].storage));
        expect_double(stored[i].row, stored[i].update,
                      cs_precision_update_bytes(stored[i].precision, stored[i].states, true,
                                                stored[i].storage));
    }
}

static const struct {
    const char *row, *name;
    const char *message;
} errors[] = {
    {"a typo", "v10",
     "unknown device \"v10\"; did you mean \"v100\"? known: `sim list devices` has them; or "
     "describe it in a file FILE.json (docs/how-to/own-device.md)"},
};

static void test_errors(void **state)
{
    (void)state;
    cs_accelerator device;
    cs_error error;
    cs_error_init(&error);
    expect_error(errors[0].row, CS_INVALID, errors[0].message,
                 cs_accelerator_load(errors[0].name, NULL, &device, &error), &error);
    must_load("v100", &device);
    cs_error_init(&error);
    expect_error("precision", CS_INVALID,
                 "device \"v100\" does not compute in tf32: must be one of fp32, fp16",
                 cs_accelerator_check(&device, CS_PRECISION_TF32, &error), &error);
    cs_accelerator_finish(&device);
    must_load("h200", &device);
    cs_error_init(&error);
    expect_error(
        "narrow precision", CS_INVALID,
        "device \"h200\" does not compute in mxfp8: must be one of fp32, tf32, fp16, bf16, fp8",
        cs_accelerator_check(&device, CS_PRECISION_MXFP8, &error), &error);
    cs_accelerator_finish(&device);
}

/* The model of a network holds what the chain says: half the bytes in fp16, times of all passes. */
static void test_model(void **state)
{
    (void)state;
    cs_workload workload = {
        .name = "vgg16", .device = "v100", .batch_size = 4, .optimizer_states = 1};
    static const cs_json_place place = {.file = "p"};
    cs_net net;
    cs_model full, half;
    cs_layer_sum sums[2];
    assert_int_equal(cs_workload_network(&workload, &place, &net, NULL), CS_OK);
    assert_int_equal(cs_workload_model(&workload, &net, &full, NULL), CS_OK);
    workload.precision = CS_PRECISION_FP16;
    assert_int_equal(cs_workload_model(&workload, &net, &half, NULL), CS_OK);
    assert_int_equal(cs_model_sum(&full, 0, full.n_layers, 4, &sums[0], NULL), CS_OK);
    assert_int_equal(cs_model_sum(&half, 0, half.n_layers, 4, &sums[1], NULL), CS_OK);
    expect_int("weights", 4 * 138357544ll, sums[0].weight_bytes);
    expect_int("weights in fp16", 2 * 138357544ll, sums[1].weight_bytes);
    expect_int("input in fp16", 4 * 3 * 224 * 224 * 2, sums[1].input_bytes);
    assert_true(sums[1].forward < sums[0].forward);
    assert_true(sums[0].backward_weight > 0 && sums[0].update > 0);
    expect_int("precision", CS_PRECISION_FP16, half.precision);
    cs_model_finish(&full);
    cs_model_finish(&half);
    cs_net_finish(&net);
}

/* Measured layers replace estimates by name, scaled from 2 samples to 4; the rest stays. */
static void test_measured(void **state)
{
    (void)state;
    cs_layer measured_layer = {.name = "b", .forward = 10, .backward_input = 20, .weight_bytes = 8};
    cs_layer layers[] = {{.name = "a", .forward = 1, .timing = "estimated"},
                         {.name = "b", .forward = 2, .timing = "estimated"}};
    const cs_model measured = {
        .name = "m", .batch_size = 2, .n_layers = 1, .layers = &measured_layer};
    cs_model model = {.name = "n", .batch_size = 4, .n_layers = 2, .layers = layers};
    uint32_t n;
    model.provenance.notes = "notes";
    cs_arena_init(&model.arena);
    assert_int_equal(cs_model_take_times(&model, &measured, "m.json", &n, NULL), CS_OK);
    expect_int("layers", 1, n);
    expect_int("estimated", 1, layers[0].forward);
    expect_int("measured", 20, layers[1].forward);
    expect_int("measured", 40, layers[1].backward_input);
    expect_text("timing", "estimated", layers[0].timing);
    expect_text("timing", "measured", layers[1].timing);
    expect_text("notes", "notes; times of 1 of 2 layers measured: m.json", model.provenance.notes);
    cs_arena_finish(&model.arena);
}

/* With recomputation a layer of 7 kept bytes, 4 of them its input, keeps the 4, has the other 3 in
 * its workspace, and runs its forward again. */
static void test_recompute(void **state)
{
    (void)state;
    cs_layer layers[] = {{.name = "a", .forward = 5, .backward_input = 6, .output_bytes = 4},
                         {.name = "b",
                          .forward = 10,
                          .backward_input = 20,
                          .kept_bytes = 7,
                          .workspace_bytes = 1,
                          .recompute = true}};
    const cs_model model = {.name = "m", .batch_size = 1, .n_layers = 2, .layers = layers};
    cs_layer_sum sum;
    assert_int_equal(cs_model_sum(&model, 0, 2, 1, &sum, NULL), CS_OK);
    expect_int("forward", 15, sum.forward);
    expect_int("backward", 36, sum.backward_input);
    expect_int("kept", 4, sum.kept_bytes);
    expect_int("workspace", 4, sum.workspace_bytes);
    layers[1].skipped = 3; /* more than its backward needs */
    assert_int_equal(cs_model_sum(&model, 0, 2, 1, &sum, NULL), CS_OK);
    expect_int("forward", 15, sum.forward);
    expect_int("backward", 33, sum.backward_input);
    expect_int("kept", 4, sum.kept_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),    cmocka_unit_test(test_times),
        cmocka_unit_test(test_optimizers), cmocka_unit_test(test_storage),
        cmocka_unit_test(test_errors),     cmocka_unit_test(test_model),
        cmocka_unit_test(test_measured),   cmocka_unit_test(test_recompute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
