/* Narrow types of operands: types of products, transfers, casts and saved tensors. */
#include "sim/model/net-model.h"
#include "sim/model/op-shape.h"

#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <math.h>

static cs_error error;

/* 8 tokens of 32 features: a router that is wide, queries and keys of one input, experts,
 * attention. */
static void build(cs_net *net)
{
    cs_error_init(&error);
    cs_net_begin(net, "n", &error);
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 8), 100, 32);
    cs_tensor y = cs_net_rms_norm(net, "norm", x);
    cs_net_linear(net, "router", y, &(cs_linear){.out = 4, .wide = true});
    cs_tensor q = cs_net_linear(net, "q", y, &(cs_linear){.out = 64, .bias = true});
    cs_tensor k = cs_net_linear(net, "k", y, &(cs_linear){.out = 64});
    x = cs_net_attention(net, "attention", (const cs_tensor[]){q, k, k},
                         &(cs_attention){.heads = 2, .kv_heads = 2, .causal = true});
    x = cs_net_grouped_linear(net, "experts", x, &(cs_grouped_linear){16, 4, 1, false});
    x = cs_net_linear(net, "head", x, &(cs_linear){.out = 100, .wide = true});
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

static const cs_op *op_of(const cs_net *net, const char *name)
{
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (strcmp(net->ops[p].name + strlen("n."), name) == 0)
            return &net->ops[p];
    fail_msg("unknown operator %s", name);
    return NULL;
}

/* An element with its part of a scale: 1; 33 bytes for 32; 9 bytes for 16. */
static const struct {
    const char *row;
    cs_precision precision;
    double operand;
} types[] = {
    {"fp8", CS_PRECISION_FP8, 1},
    {"mxfp8", CS_PRECISION_MXFP8, 33.0 / 32},
    {"nvfp4", CS_PRECISION_NVFP4, 9.0 / 16},
};

static void expect_pass(const char *row, double flop, double bytes, double cast, uint32_t launches,
                        const cs_pass_cost *got)
{
    expect_double(row, flop, got->flop);
    expect_double(row, bytes, got->bytes);
    expect_double(row, cast, got->cast_bytes);
    expect_int(row, launches, got->launches);
}

/* q, batch 2: x has 512 elements, y 1024, W 2048 and 64 biases; t bytes an operand. Forward reads
 * x and W narrow and writes y in 2 bytes; before, x is read in 2 bytes and written twice, for this
 * product and for the gradient of the weights. Backward the gradient of y is read and written
 * twice, before the first of the two products; the biases' is the sum of it as it was. k reads
 * what q has cast. */
static void test_linear(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(types); i++) {
        const double t = types[i].operand, flop = 2.0 * 16 * 2048;
        cs_net net;
        cs_op_cost q, k;
        build(&net);
        cs_op_cost_of(&net, op_of(&net, "q"), 2, types[i].precision, &q);
        cs_op_cost_of(&net, op_of(&net, "k"), 2, types[i].precision, &k);
        const char *row = types[i].row;
        expect_pass(row, flop, t * (512 + 2048) + 2 * (1024 + 64), 512 * (2 + 2 * t), 2,
                    &q.forward);
        /* and the sum with the gradients of others that read the input, 512 additions of 3 x 2
         * bytes */
        expect_pass(row, flop + 512, t * (1024 + 2048) + 2 * 512 + 6 * 512, 1024 * (2 + 2 * t), 3,
                    &q.backward_input);
        expect_pass(row, flop + 1024, t * (512 + 1024) + 2 * (2048 + 1024), 0, 2,
                    &q.backward_weight);
        expect_int(row, (int64_t)ceil(t * 512), q.extra_kept_bytes);
        expect_int(row, (int64_t)ceil(2 * t * 2048), q.copy_bytes);
        assert_false(q.keeps_input || k.keeps_input);
        expect_double(row, 0, k.forward.cast_bytes);
        expect_int(row, 1, k.forward.launches);
        expect_int(row, 0, k.extra_kept_bytes);
        expect_double(row, 1024 * (2 + 2 * t), k.backward_input.cast_bytes);
        cs_net_finish(&net);
    }
}

/* Operators that are not narrow are the same as in bf16, to the byte. */
static void test_wide(void **state)
{
    (void)state;
    static const char *const names[] = {"embedding", "norm", "router", "attention", "head", "loss"};
    cs_net net;
    build(&net);
    for (size_t i = 0; i < ROWS(names); i++) {
        cs_op_cost narrow, wide;
        cs_op_cost_of(&net, op_of(&net, names[i]), 3, CS_PRECISION_NVFP4, &narrow);
        cs_op_cost_of(&net, op_of(&net, names[i]), 3, CS_PRECISION_BF16, &wide);
        assert_memory_equal(&narrow, &wide, sizeof(wide));
        expect_int(names[i], CS_PRECISION_BF16,
                   cs_op_precision(op_of(&net, names[i]), CS_PRECISION_NVFP4));
    }
    expect_int("experts", CS_PRECISION_NVFP4,
               cs_op_precision(op_of(&net, "experts"), CS_PRECISION_NVFP4));
    cs_net_finish(&net);
}

/* Peaks of 1 flop/s in fp32, 4 in bf16, 8 in fp8, reached by half; 2 bytes/s of memory, reached by
 * half, by elementwise operators by a quarter. 16 flop of a narrow product take 4 s, its casts of
 * 3 bytes 6 s more, whatever the product takes; 16 flop of a wide one 8 s. */
static void test_times(void **state)
{
    (void)state;
    static const cs_pass_cost pass = {16, 1, 2, 3};
    cs_accelerator device;
    cs_accelerator_none(&device);
    device.bandwidth = 2;
    device.peaks[CS_PRECISION_FP32] = 1;
    device.peaks[CS_PRECISION_BF16] = 4;
    device.peaks[CS_PRECISION_FP8] = 8;
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        device.groups[g] = (cs_efficiency){0.5, 0.5, "test"};
    device.groups[CS_GROUP_ELEMENTWISE].memory = 0.25;
    const cs_op narrow = {.kind = CS_OP_LINEAR}, wide = {.kind = CS_OP_LINEAR, .wide = true};
    const cs_op attention = {.kind = CS_OP_ATTENTION};
    expect_double("narrow", 4 + 6,
                  cs_accelerator_seconds(&device, &narrow, &pass, CS_PRECISION_FP8));
    expect_double(
        "wide", 8,
        cs_accelerator_seconds(&device, &wide, &(cs_pass_cost){16, 1, 1, 0}, CS_PRECISION_FP8));
    expect_double("attention", 8,
                  cs_accelerator_seconds(&device, &attention, &(cs_pass_cost){16, 1, 1, 0},
                                         CS_PRECISION_FP8));
}

/* Layers hold, besides weights of 2 bytes, two copies of those that are multiplied narrow: of q,
 * 2048, k,
 * 2048, and the experts, 4 x 64 x 16; and cast them after an update, each read and written once at
 * 1 byte/s. An update reads and writes 28 bytes a parameter with Adam. */
static void test_model(void **state)
{
    (void)state;
    cs_accelerator device;
    cs_net net;
    cs_model model;
    cs_layer_sum sum;
    cs_accelerator_none(&device);
    device.bandwidth = 1;
    build(&net);
    const cs_net_options how = {.batch_size = 1,
                                .precision = CS_PRECISION_MXFP8,
                                .optimizer_states = 2,
                                .device = &device,
                                .source = "test"};
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    assert_int_equal(cs_model_sum(&model, 0, model.n_layers, 1, &sum, &error), CS_OK);
    const int64_t narrow = 2 * 2048 + 4 * 64 * 16, copies = 2 * narrow * 33 / 32;
    const int64_t parameters = cs_net_parameters(&net);
    expect_int("copies", copies, sum.frozen_bytes);
    expect_int("weights", 2 * parameters, sum.weight_bytes);
    expect_int("gradients", 2 * parameters, sum.gradient_bytes);
    expect_int("update", CS_PS_PER_SEC * (28 * parameters + 2 * narrow + copies), sum.update);
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Measured times of operators that are not narrow are those of bf16. */
static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key;
    } cases[] = {
        {"q", "linear n=1 in=8x32 out=8x64 bias mxfp8"},
        {"router", "linear n=1 in=8x32 out=8x4 bf16"},
        {"norm", "rms_norm n=1 in=8x32 out=8x32 bf16"},
        {"experts", "grouped_linear n=1 in=8x64 out=8x16 experts=4 top_k=1 mxfp8"},
    };
    cs_net net;
    build(&net);
    for (size_t i = 0; i < ROWS(cases); i++) {
        cs_op_shape shapes[CS_OP_SHAPES_MAX];
        char key[CS_OP_KEY_BYTES];
        cs_op_shapes_of(&net, op_of(&net, cases[i].name), 1, CS_PRECISION_MXFP8, 0, shapes);
        expect_text(cases[i].name, cases[i].key, cs_op_shape_key(&shapes[0], key, sizeof(key)));
    }
    cs_net_finish(&net);
}

/* ---- weights ---- */

/* A Llama of 2 blocks, 64 features, 4 heads of 16, MLPs of 128 and 96 words: the products of
 * blocks have 2 (4 x 64^2 + 3 x 64 x 128) = 81,920 weights; table, last matrix and norms 2 x 96 x
 * 64 + 5 x 64 = 12,608, in bf16 always. fp8 takes a byte. At stage 3 each of two devices holds half
 * of the weights in bf16, or of one narrow copy, and casts gathered weights. */
static void test_weights(void **state)
{
    (void)state;
    enum { NARROW = 81920, WIDE = 12608 };
    static const struct {
        const char *row, *memory;
        int64_t bytes, divided;
    } cases[] = {
        {"copies", "", 2 * (NARROW + WIDE) + 2 * NARROW, NARROW + WIDE},
        {"one copy", "'narrow_copies': 1", 2 * (NARROW + WIDE) + NARROW, NARROW + WIDE},
        {"alone", "'narrow_weights': 'alone'", 2 * WIDE + 2 * NARROW, WIDE + NARROW / 2},
        {"alone, one copy", "'narrow_weights': 'alone', 'narrow_copies': 1", 2 * WIDE + NARROW,
         WIDE + NARROW / 2},
        {"cast", "'narrow_weights': 'cast'", 2 * (NARROW + WIDE), NARROW + WIDE},
    };
    for (size_t i = 0; i < ROWS(cases); i++) {
        for (uint32_t n = 1; n <= 2; n++) {
            scenario_run run;
            cs_error_init(&error);
            if (scenario_run_init(
                    &run, &error,
                    "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'llama', "
                    "'parameters': {'layers': 2, "
                    "'hidden': 64, 'heads': 4, 'kv_heads': 4, 'head': 16, 'intermediate': 128, "
                    "'vocabulary': 96, 'sequence': 16}, 'device': 'h100', 'precision': 'fp8', "
                    "'granularity': 'block', 'batch_size': %u}, 'platform': {'topology': "
                    "'nvlink_switch', 'bandwidth': '1 GB/s', 'devices': %u}, 'parallel': {'data': "
                    "%u, 'zero': %u}, 'schedule': {'kind': 'sequential', 'micro_batches': 1}, "
                    "'iterations': 1, 'memory': {%s}}",
                    n, n, n, n == 1 ? 0 : 3, cases[i].memory) != CS_OK)
                fail_msg("%s: %s", cases[i].row, error.text);
            const cs_graph *graph = &run.simulation.graph;
            int64_t weights = 0;
            for (uint32_t r = 0; r < graph->n_residents; r++)
                if (graph->residents[r].device == 0 &&
                    graph->residents[r].category == CS_MEMORY_WEIGHTS)
                    weights += graph->residents[r].bytes;
            expect_int(cases[i].row, n == 1 ? cases[i].bytes : cases[i].divided, weights);
            scenario_run_finish(&run);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear), cmocka_unit_test(test_wide), cmocka_unit_test(test_times),
        cmocka_unit_test(test_model),  cmocka_unit_test(test_keys), cmocka_unit_test(test_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
