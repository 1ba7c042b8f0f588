/* Traffic of kernels around experts, and how the host waits for rows, by hand (expert-kernels.h);
 * traffic of a product that adds its gradient to the sum (runtime-kernels.h). */
#include "sim/model/expert-kernels.h"
#include "sim/model/net-model.h"
#include "tests/expect.h"
#include "tests/op-named.h"

#include <math.h>
#include <string.h>

static cs_error error;

/* 2 tokens of 4 features; 4 experts with a gate and 4 features, 2 experts per token: 4 rows, 16
 * elements in all. */
static void build(cs_net *net, double capacity, uint32_t tokens, uint32_t hidden, uint32_t inner,
                  bool bias)
{
    const cs_linear router = {.out = 4, .wide = true};
    cs_grouped_linear linear = {inner, 4, 2, bias};
    cs_error_init(&error);
    cs_net_begin(net, "n", &error);
    cs_net_block(net, "all");
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, tokens), 8, hidden);
    x = cs_net_linear(net, "front", x, &(cs_linear){.out = hidden});
    const cs_tensor routing =
        cs_net_top_k(net, "top_k", cs_net_linear(net, "router", x, &router), 2);
    const cs_tensor rows = cs_net_dispatch(net, "dispatch", x, routing, capacity);
    const cs_tensor gate =
        cs_net_silu(net, "silu", cs_net_grouped_linear(net, "gate", rows, &linear));
    const cs_tensor both =
        cs_net_mul(net, "mul", gate, cs_net_grouped_linear(net, "up", rows, &linear));
    linear.out = hidden;
    x = cs_net_combine(net, "combine", cs_net_grouped_linear(net, "down", both, &linear), routing);
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

static cs_op_cost cost_of(const char *name, cs_runtime_kernels kernels, uint32_t places,
                          cs_precision precision)
{
    cs_net net = {0};
    cs_op_cost cost;
    build(&net, 0, 2, 4, 4, true);
    const cs_op *op = op_named(&net, name);
    cs_op_cost_of(&net, op, 1, precision, &cost);
    cs_expert_kernels_cost(&kernels, &net, op, places, 1, precision, &cost);
    cs_net_finish(&net);
    return cost;
}

static const cs_runtime_kernels given = {.given = true}, none = {0},
                                loop = {.given = true, .expert_loop = true},
                                once = {.given = true, .tokens_once = true},
                                both = {.given = true, .expert_loop = true, .tokens_once = true},
                                fused = {.given = true, .fused_experts = true},
                                modules = {.given = true,
                                           .expert_loop = true,
                                           .expert_modules = true},
                                no_loop = {.given = true, .expert_modules = true};

/* 4 rows have 16 elements of 2 bytes: ordering them reads and writes 32 bytes. With one expert a
 * place they are in order. Sent once, of the 4 tokens of 2 places each reaches a place with
 * 1 - (1/2)^2 = 3/4: 3 tokens of 8 bytes are read where the place's own 2 were counted. */
static void rows_are_put_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const cs_runtime_kernels *kernels;
        uint32_t places;
        double more;
        int kernels_more;
    } rows[] = {
        {"one place", &given, 1, 0, 0},
        {"one expert a place", &given, 4, 0, 0},
        {"two experts a place", &given, 2, 64, 1},
        {"sent once", &once, 2, 8, 0},
        {"no runtime", &none, 2, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int back = 0; back < 2; back++) {
            const char *name = back ? "combine" : "dispatch";
            const cs_op_cost plain = cost_of(name, none, 1, CS_PRECISION_BF16);
            const cs_op_cost cost =
                cost_of(name, *rows[i].kernels, rows[i].places, CS_PRECISION_BF16);
            if (cost.forward.bytes - plain.forward.bytes != rows[i].more ||
                cost.backward_input.bytes - plain.backward_input.bytes != rows[i].more)
                fail_msg("%s, %s: expected %g more bytes, got %g and %g", rows[i].name, name,
                         rows[i].more, cost.forward.bytes - plain.forward.bytes,
                         cost.backward_input.bytes - plain.backward_input.bytes);
            assert_int_equal(cost.forward.launches - plain.forward.launches, rows[i].kernels_more);
            assert_int_equal(cost.backward_input.launches - plain.backward_input.launches,
                             rows[i].kernels_more);
        }
}

/* 31 kernels from the router to the dispatch, 17 where tokens are sent once. */
static void routers_have_their_kernels(void **state)
{
    (void)state;
    static const char *const names[] = {"router", "top_k", "dispatch"};
    for (int sent_once = 0; sent_once < 2; sent_once++) {
        uint32_t kernels = 0;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            kernels +=
                cost_of(names[i], sent_once ? both : loop, 1, CS_PRECISION_BF16).forward.launches;
        assert_int_equal(kernels, sent_once ? 17 : 31);
    }
}

/* The result of the last product has 16 elements: 28 bytes each forward, 40 backward, where the sum
 * of the gradient read 2. A product and 2 kernels forward; a product and 5 backward. Biases in
 * front of an activation are part of its kernel. */
static void biases_are_added_apart(void **state)
{
    (void)state;
    const cs_op_cost plain = cost_of("down", given, 1, CS_PRECISION_BF16);
    const cs_op_cost cost = cost_of("down", loop, 1, CS_PRECISION_BF16);
    assert_true(cost.forward.cast_bytes == 28 * 16);
    assert_int_equal(cost.forward.launches, 3);
    assert_true(cost.backward_weight.cast_bytes == 40 * 16);
    assert_true(plain.backward_weight.bytes - cost.backward_weight.bytes == 2 * 16);
    assert_int_equal(cost.backward_weight.launches, 6);
    assert_true(cost_of("up", loop, 1, CS_PRECISION_BF16).forward.cast_bytes == 0);
}

/* A cast of 16 elements of 2 bytes reads 32 bytes less: the last product's input, and the gradients
 * of the first two. There is no kernel between them. */
static void experts_are_fused(void **state)
{
    (void)state;
    static const char *const between[] = {"silu", "mul"};
    for (int i = 0; i < 2; i++) {
        const cs_op_cost cost = cost_of(between[i], fused, 1, CS_PRECISION_MXFP8);
        assert_int_equal(cost.forward.launches + cost.backward_input.launches, 0);
        assert_true(cost.forward.bytes == 0 && cost.backward_input.bytes == 0);
    }
    const cs_op_cost plain = cost_of("down", given, 1, CS_PRECISION_MXFP8);
    const cs_op_cost down = cost_of("down", fused, 1, CS_PRECISION_MXFP8);
    assert_true(plain.forward.cast_bytes - down.forward.cast_bytes == 32);
    assert_int_equal(plain.forward.launches - down.forward.launches, 1);
    assert_true(plain.backward_input.cast_bytes == down.backward_input.cast_bytes);
    const cs_op_cost up = cost_of("up", fused, 1, CS_PRECISION_MXFP8);
    const cs_op_cost apart = cost_of("up", given, 1, CS_PRECISION_MXFP8);
    assert_true(apart.backward_input.cast_bytes - up.backward_input.cast_bytes == 32);
    assert_true(apart.forward.cast_bytes == up.forward.cast_bytes);
}

/* Each of 4 experts is a set of modules, with one product per module and a kernel for the operation
 * in between; the router is unchanged. 4 rows, 16 elements of 2 bytes, are concatenated after the
 * last product, and in the backward before the first one: 32 bytes read, 32 written. */
static void experts_are_modules(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t modules, times, more[2];
    } rows[] = {{"router", 0, 1, {0, 0}},   {"up", 4, 1, {0, 0}},   {"silu", 4, 4, {0, 0}},
                {"mul", 4, 4, {0, 0}},      {"down", 4, 1, {0, 0}}, {"combine", 0, 1, {1, 0}},
                {"dispatch", 0, 1, {0, 1}}, {"loss", 0, 1, {0, 0}}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const cs_op_cost plain = cost_of(rows[i].name, loop, 1, CS_PRECISION_BF16);
        const cs_op_cost cost = cost_of(rows[i].name, modules, 1, CS_PRECISION_BF16);
        expect_int(rows[i].name, rows[i].modules, cost.modules);
        expect_int(rows[i].name, rows[i].times * plain.forward.launches + rows[i].more[0],
                   cost.forward.launches);
        expect_int(rows[i].name, rows[i].times * plain.backward_input.launches + rows[i].more[1],
                   cost.backward_input.launches);
        expect_double(rows[i].name, 64 * rows[i].more[0], cost.forward.bytes - plain.forward.bytes);
        expect_double(rows[i].name, 64 * rows[i].more[1],
                      cost.backward_input.bytes - plain.backward_input.bytes);
        const cs_op_cost without = cost_of(rows[i].name, no_loop, 1, CS_PRECISION_BF16);
        expect_int("only with the loop", 0, without.modules);
    }
}

/* 4 experts of 4 x 4 weights: the gradient has 2 bytes a weight, its sum is read and written. */
static void sums_are_read_and_written(void **state)
{
    (void)state;
    const double weights = 4 * 4 * 4;
    static const struct {
        bool given;
        double sum_width, more;
    } rows[] = {{true, 4, 2 * 4 - 2}, {true, 2, 2 * 2 - 2}, {false, 4, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_net net = {0};
        cs_op_cost cost;
        const cs_runtime_kernels kernels = {.given = rows[i].given};
        build(&net, 0, 2, 4, 4, true);
        const cs_op *op = op_named(&net, "up");
        cs_op_cost_of(&net, op, 1, CS_PRECISION_BF16, &cost);
        const double before = cost.backward_weight.bytes;
        cs_runtime_kernels_add_up(&kernels, op, 2, rows[i].sum_width, &cost);
        assert_true(cost.backward_weight.bytes - before == rows[i].more * weights);
        cs_net_finish(&net);
    }
}

/* A gradient of 2 bytes a weight is read, its sum is read and written: of 64 weights and 16 biases
 * of the experts, unless these are frozen or there is one micro-batch. */
static void sums_apart_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        bool given, several;
        int64_t frozen;
        double sum_width, more;
    } rows[] = {{true, true, 0, 4, (2 + 2 * 4) * 80},
                {true, true, 0, 2, (2 + 2 * 2) * 80},
                {true, true, 80, 4, 0},
                {true, false, 0, 4, 0},
                {false, true, 0, 4, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const cs_runtime_kernels kernels = {.given = rows[i].given, .sums_apart = rows[i].several};
        cs_op_cost cost = {.weights = 64, .biases = 16, .frozen = rows[i].frozen};
        cs_runtime_kernels_add_apart(&kernels, 2, rows[i].sum_width, &cost);
        assert_true(cost.backward_weight.cast_bytes == rows[i].more);
    }
}

/* The front layer's input and the gradient of its result have 8 elements each, of 2 bytes, which
 * are read once more before they are cast to fp8, by a kernel before the kernel that computes the
 * scale; blocks of mxfp8 have their own scales. */
static void scales_are_looked_for(void **state)
{
    (void)state;
    for (int current = 0; current < 2; current++)
        for (int blocks = 0; blocks < 2; blocks++) {
            cs_net net = {0};
            cs_op_cost cost;
            const cs_precision precision = blocks ? CS_PRECISION_MXFP8 : CS_PRECISION_FP8;
            const cs_runtime_kernels kernels = {.given = true, .current_scaling = current > 0};
            build(&net, 0, 2, 4, 4, true);
            const cs_op *op = op_named(&net, "front");
            cs_op_cost_of(&net, op, 1, precision, &cost);
            const cs_op_cost before = cost;
            cs_runtime_kernels_scale(&kernels, &net, op, 1, precision, &cost);
            const double more = current && !blocks ? 2 * 8 : 0;
            assert_true(cost.forward.cast_bytes - before.forward.cast_bytes == more);
            assert_true(cost.backward_input.cast_bytes - before.backward_input.cast_bytes == more);
            assert_true(cost.backward_weight.cast_bytes == 0);
            assert_int_equal(cost.forward.launches - before.forward.launches, more > 0 ? 2 : 0);
            cs_net_finish(&net);
        }
}

/* ---- the host ---- */

static double forward_of(cs_runtime_kernels kernels, double capacity)
{
    cs_net net = {0};
    cs_model model = {0};
    cs_accelerator device;
    build(&net, capacity, 8192, 8192, 8, false);
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, &error), CS_OK);
    device.training.host = NULL;
    const cs_net_options how = {.batch_size = 1,
                                .granularity = CS_GRANULARITY_BLOCK,
                                .precision = CS_PRECISION_BF16,
                                .kernels = kernels,
                                .device = &device,
                                .source = "test"};
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    const cs_layer *layer = &model.layers[0];
    const double seconds = cs_time_seconds(
        layer->forward > layer->host.forward ? layer->forward : layer->host.forward);
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
    return seconds;
}

/* The front layer, 8192 x 8192 of 8192 tokens, is 1.1 Tflop: 4 to 10 ms of an A100. A graph starts
 * all kernels except dispatch (2), the 4 experts (3 products each) and the sum (1), each a
 * millisecond of the host, which starts the last 13 when the rows are known: the device's earlier
 * work is added. After that point it moves 16,384 rows of 8,192 features three times, and once more
 * with the tokens, 1.2 GB, which takes 0.7 to 2 ms of 1.6 TB/s. With a capacity the graph starts
 * these as well. Without a graph the host is the slower one all along: a layer takes a millisecond
 * for each kernel, 48 up to the sum and one or two for the loss. */
static void the_host_waits_for_rows(void **state)
{
    (void)state;
    cs_runtime_kernels kernels = {.given = true, .graphs = true, .expert_loop = true};
    const double device = forward_of(kernels, 0), with_capacity = forward_of(kernels, 1);
    kernels.host_kernel = INT64_C(1000000000);
    const double waits = forward_of(kernels, 0);
    assert_true(device > 4e-3 && device < 14e-3);
    assert_true(waits > device + 13e-3 - 2e-3 && waits < device + 13e-3 - 0.7e-3);
    assert_true(forward_of(kernels, 1) == with_capacity);
    kernels.graphs = false;
    const double ahead = forward_of(kernels, 1);
    assert_true(fabs(ahead - round(ahead * 1e3) / 1e3) < 1e-9 && ahead > 48.5e-3 &&
                ahead < 50.5e-3);
    assert_true(forward_of(kernels, 0) ==
                ahead); /* the 35 before take longer than the front layer */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_put_in_order),
        cmocka_unit_test(routers_have_their_kernels),
        cmocka_unit_test(biases_are_added_apart),
        cmocka_unit_test(experts_are_fused),
        cmocka_unit_test(sums_are_read_and_written),
        cmocka_unit_test(the_host_waits_for_rows),
        cmocka_unit_test(scales_are_looked_for),
        cmocka_unit_test(experts_are_modules),
        cmocka_unit_test(sums_apart_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
