/* Low-rank adapters: trained weights, costs, saved activations, and tensors without gradients. */
#include "sim/model/backward-memory.h"
#include "sim/model/net-adapters.h"
#include "sim/model/net-model.h"
#include "sim/model/zoo/decoder.h"
#include "sim/model/zoo/zoo.h"

#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cs_error error;
static const cs_json_place place = {.file = "l"};

/* Llama with adapters of this rank on queries and values, on frozen weights of this format. */
static cs_status build_on(const cs_decoder *decoder, cs_base_format base,
                          const char *const *targets, uint32_t n, uint32_t rank, cs_net *net)
{
    static const char *const wide[] = {"lm_head"};
    const cs_adapters adapters = {.rank = rank,
                                  .base = base,
                                  .base_wide = {.n = 1, .items = (void *)wide},
                                  .targets = {.n = n, .items = (void *)targets}};
    cs_error_init(&error);
    cs_net_begin(net, "llama", &error);
    const cs_zoo_entry *family = &cs_zoo_decoder;
    family->build(net, family->variant, decoder);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
    return cs_net_adapt(net, &adapters, &place, &error);
}

static cs_status build(const cs_decoder *decoder, const char *const *targets, uint32_t n,
                       uint32_t rank, cs_net *net)
{
    return build_on(decoder, CS_BASE_AS_MODEL, targets, n, rank, net);
}

static const char *const both[] = {"q_proj", "v_proj"};

static void must_build(const cs_decoder *decoder, uint32_t rank, cs_net *net)
{
    if (build(decoder, both, 2, rank, net) != CS_OK)
        fail_msg("%s", error.text);
}

/* What PEFT prints of Llama-3 8B with rank 16 on q_proj and v_proj: trainable params
 * 6,815,744, all params 8,037,076,992: 32 layers of 16 (4096 + 4096) and 16 (4096 + 1024). */
static void test_parameters(void **state)
{
    (void)state;
    const cs_decoder llama = {.layers = 32,
                              .hidden = 4096,
                              .heads = 32,
                              .kv_heads = 8,
                              .sequence = 64,
                              .vocabulary = 128256,
                              .intermediate = 14336};
    cs_net net;
    must_build(&llama, 16, &net);
    expect_int("trained", 32 * 16 * (4096 + 4096 + 4096 + 1024), 6815744);
    expect_int("trained", 6815744, cs_net_trained_parameters(&net));
    expect_int("all", INT64_C(8030261248) + 6815744, cs_net_parameters(&net));
    cs_net_finish(&net);
}

/* T tokens of H features, A heads, I inside the MLP, W words, rank R, two layers. */
enum { T = 12, H = 16, A = 2, I = 24, W = 40, R = 3 };

static cs_decoder small(bool tied)
{
    return (cs_decoder){.layers = 2,
                        .hidden = H,
                        .heads = A,
                        .kv_heads = A,
                        .sequence = T,
                        .vocabulary = W,
                        .intermediate = I,
                        .tied = tied};
}

static cs_model must_model(const cs_net *net)
{
    cs_accelerator none;
    cs_model model;
    cs_accelerator_none(&none);
    const cs_net_options how = {.batch_size = 1,
                                .granularity = CS_GRANULARITY_BLOCK,
                                .precision = CS_PRECISION_BF16,
                                .optimizer_states = 2,
                                .device = &none,
                                .source = "test"};
    if (cs_net_model(net, &how, &model, &error) != CS_OK)
        fail_msg("%s", error.text);
    return model;
}

/* Products with weights: forward (F), gradient of the input (D), gradient of the weights (G).
 * Nothing before the first adapters needs a gradient: inputs of the adapters and frozen layers of
 * the first block have none. */
static const struct {
    const char *name;
    bool input, weights;
} passes[] = {
    {"layers.0.self_attn.q_proj", false, false},
    {"layers.0.self_attn.q_proj.lora_A", false, true},
    {"layers.0.self_attn.q_proj.lora_B", true, true},
    {"layers.0.self_attn.k_proj", false, false},
    {"layers.0.self_attn.o_proj", true, false},
    {"layers.0.mlp.down_proj", true, false},
    {"layers.1.input_layernorm", true, false},
    {"layers.1.self_attn.q_proj", true, false},
    {"layers.1.self_attn.v_proj.lora_A", true, true},
    {"layers.1.self_attn.k_proj", true, false},
    {"head.lm_head", true, false},
};

static void test_passes(void **state)
{
    (void)state;
    const cs_decoder decoder = small(false);
    cs_net net;
    must_build(&decoder, R, &net);
    for (size_t i = 0; i < ROWS(passes); i++) {
        cs_op_cost cost = {0};
        bool found = false;
        for (uint32_t p = 0; p < net.n_ops; p++) {
            if (strcmp(net.ops[p].name, passes[i].name) != 0)
                continue;
            found = true;
            cs_op_cost_of(&net, &net.ops[p], 1, CS_PRECISION_BF16, &cost);
        }
        expect_int(passes[i].name, true, found);
        expect_int(passes[i].name, passes[i].input, cost.backward_input.flop > 0);
        expect_int(passes[i].name, passes[i].weights, cost.backward_weight.flop > 0);
        expect_int(passes[i].name, passes[i].weights ? 0 : cost.weights, cost.frozen);
    }
    cs_net_finish(&net);
}

/* Flop of a step: 2 for a multiply-accumulate, times the passes above; of attention three times
 * forward, T (T + 1) / 2 pairs. */
static void test_work(void **state)
{
    (void)state;
    const cs_decoder decoder = small(false);
    const double square = 2.0 * T * H * H, mlp = 3 * 2.0 * T * H * I, head = 2.0 * T * H * W;
    const double attention = 3 * 2 * 2.0 * (T * (T + 1) / 2) * H, adapter = 2.0 * T * H * R;
    /* first block: q, k, v forward; o and the MLP with gradients; A without gradient of its
     * input */
    const double first = 3 * square + attention + 2 * square + 2 * mlp + 2 * (2 + 3) * adapter;
    const double second = 4 * 2 * square + attention + 2 * mlp + 2 * (3 + 3) * adapter;
    cs_net net;
    must_build(&decoder, R, &net);
    cs_model model = must_model(&net);
    expect_double("flop", first + second + 2 * head, model.work.flop_per_sample);
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Tensor by tensor, 2 bytes an element. A block keeps, of the attention, the input of A (the norm's
 * result), two inputs of B, queries, keys, values, result, a float32 per row and head; of the MLP
 * the second norm's input, normalised and statistics, the SiLU's input, and both inputs of the
 * product. Frozen matrices keep no input. The first norm of the second block keeps its input; the
 * first norm of the first block needs nothing, nor does the embedding. The head's norm, logarithms
 * and targets. */
static void test_kept(void **state)
{
    (void)state;
    const int64_t norm = 2 * 2 * T * H + 4 * T;
    const int64_t block = 2 * (T * H + 2 * T * R + 4 * T * H) + 4 * A * T + norm + 2 * 3 * T * I;
    const int64_t expected[] = {0, block, norm + block, norm + 4 * T * W + 8 * T};
    const cs_decoder decoder = small(false);
    cs_net net;
    must_build(&decoder, R, &net);
    cs_model model = must_model(&net);
    expect_int("layers", 4, model.n_layers);
    for (uint32_t l = 0; l < model.n_layers; l++)
        expect_int(model.layers[l].name, expected[l], model.layers[l].kept_bytes);
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Only adapters have gradients and updates. A last matrix that is the embedding's is held twice if
 * it is on another device, and nothing of it is summed. */
static void test_sums(void **state)
{
    (void)state;
    const cs_decoder decoder = small(true);
    const int64_t adapters = 2 * 2 * 2 * R * (H + H); /* bytes, of 2 layers with 2 */
    cs_net net;
    cs_layer_sum all, last;
    must_build(&decoder, R, &net);
    cs_model model = must_model(&net);
    assert_int_equal(cs_model_sum(&model, 0, 4, 1, &all, &error), CS_OK);
    expect_int("weights", adapters, all.weight_bytes);
    expect_int("gradients", adapters, all.gradient_bytes);
    expect_int("frozen", 2 * cs_net_parameters(&net) - adapters, all.frozen_bytes);
    assert_int_equal(cs_model_sum(&model, 3, 4, 1, &last, &error), CS_OK);
    expect_int("the last norm", 2 * H, last.frozen_bytes);
    assert_int_equal(cs_model_borrow(&model, 3, &last, &error), CS_OK);
    expect_int("with the matrix", 2 * (H + H * W), last.frozen_bytes);
    expect_int("no gradients", 0, last.gradient_bytes + cs_model_tied_gradients(&model, 3));
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Layers before the first adapter have no gradient in memory, nor do untrained keys: the backward
 * of the first attention ends with the gradients of queries and values, 2 T H bytes each, together
 * with the gradient of its result. */
static void test_backward(void **state)
{
    (void)state;
    const cs_decoder decoder = small(false);
    cs_net net;
    must_build(&decoder, R, &net);
    int64_t *peaks = calloc(net.n_ops, sizeof(*peaks)), *none = calloc(net.n_ops, sizeof(*none));
    const cs_backward backward = {.net = &net,
                                  .batch = 1,
                                  .precision = CS_PRECISION_BF16,
                                  .rules = &(cs_kept_rules){0},
                                  .workspaces = none};
    assert_int_equal(cs_backward_memory(&backward, peaks, &error), CS_OK);
    for (uint32_t p = 0; p < net.n_ops; p++) {
        const char *name = net.ops[p].name;
        if (strcmp(name, "embedding.embed_tokens") == 0 ||
            strcmp(name, "layers.0.input_layernorm") == 0)
            expect_int(name, 0, peaks[p]);
        if (strcmp(name, "layers.0.self_attn.attention") == 0)
            expect_int(name, 3 * 2 * T * H, peaks[p]);
    }
    free(peaks);
    free(none);
    cs_net_finish(&net);
}

static const cs_op *op_of(const cs_net *net, const char *name)
{
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (strcmp(net->ops[p].name, name) == 0)
            return &net->ops[p];
    fail_msg("no %s", name);
    return NULL;
}

/* Frozen linear layers of blocks in fewer bits: N weights take 4.5 bits each with scales of 32 bits
 * for 64 (Dettmers et al., 2023, section 3: 0.5 bits a weight), 4 + 8 / 64 + 32 / (64 256) with
 * scales that are quantised (0.127 bits), 8 and a scale for each of H or I features. Norms, the
 * embedding and the last matrix stay. Each pass reads them and writes them in 16 bits. */
static void test_quantised(void **state)
{
    (void)state;
    const struct {
        const char *row;
        cs_base_format base;
        double attention,
            mlp; /* bytes of a weight that reads H features, and of one that reads I */
    } rows[] = {{"nf4", CS_BASE_NF4, 4.5 / 8, 4.5 / 8},
                {"nf4_double", CS_BASE_NF4_DOUBLE, (4 + 0.125 + 32.0 / 16384) / 8,
                 (4 + 0.125 + 32.0 / 16384) / 8},
                {"int8", CS_BASE_INT8, 1 + 4.0 / H, 1 + 4.0 / I}};
    const cs_decoder decoder = small(false);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        cs_net net;
        if (build_on(&decoder, rows[r].base, both, 2, R, &net) != CS_OK)
            fail_msg("%s", error.text);
        cs_model model = must_model(&net);
        const double reads_h = 4 * H * H + 2 * H * I, reads_i = I * H; /* up, gate; down */
        const double block = reads_h * rows[r].attention + reads_i * rows[r].mlp + 2 * 2 * H;
        for (uint32_t l = 1; l <= 2; l++) /* a matrix may be rounded to a byte */
            assert_true(fabs(block - (double)cs_layer_besides(&model.layers[l])) < 8);
        expect_int("embedding", 2 * W * H, cs_layer_besides(&model.layers[0]));
        expect_int("head", 2 * (W * H + H), cs_layer_besides(&model.layers[3]));
        cs_op_cost cost;
        cs_op_cost_of(&net, op_of(&net, "layers.1.mlp.down_proj"), 1, CS_PRECISION_BF16, &cost);
        assert_true(fabs(I * H * (rows[r].mlp + 2) - cost.forward.cast_bytes) < 1e-6);
        assert_true(fabs(I * H * (rows[r].mlp + 2) - cost.backward_input.cast_bytes) < 1e-6);
        expect_int("16 bits, for a moment", 2 * I * H, cost.workspace_bytes);
        cs_op_cost_of(&net, op_of(&net, "layers.0.self_attn.k_proj"), 1, CS_PRECISION_BF16, &cost);
        expect_double("no backward", 0, cost.backward_input.cast_bytes);
        cs_model_finish(&model);
        cs_net_finish(&net);
    }
}

/* A layer that shall keep its precision, misspelt, would be quantised. */
static void test_wide_errors(void **state)
{
    (void)state;
    const char *const wide[] = {"lm_head", "down_prj"};
    const cs_adapters adapters = {.rank = R,
                                  .base = CS_BASE_NF4,
                                  .base_wide = {.n = 2, .items = (void *)wide},
                                  .targets = {.n = 2, .items = (void *)both}};
    const cs_decoder decoder = small(false);
    const cs_zoo_entry *family = &cs_zoo_decoder;
    cs_net net;
    cs_error_init(&error);
    cs_net_begin(&net, "llama", &error);
    family->build(&net, family->variant, &decoder);
    assert_int_equal(cs_net_end(&net), CS_OK);
    assert_int_equal(cs_net_adapt(&net, &adapters, &place, &error), CS_INVALID);
    assert_non_null(strstr(error.text, "l: /base_wide/1: must be the end of a linear layer's name: "
                                       "unknown \"down_prj\"; did you mean \"down_proj\"?"));
    cs_net_finish(&net);
}

/* The model file says it, and reads it again. */
static void test_file(void **state)
{
    (void)state;
    const cs_decoder decoder = small(true);
    cs_net net;
    cs_model again;
    must_build(&decoder, R, &net);
    cs_model model = must_model(&net);
    cJSON *root = cs_model_json(&model);
    if (cs_model_read(root, &place, &again, &error) != CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t l = 0; l < model.n_layers; l++) {
        expect_int("frozen", model.layers[l].frozen_bytes, again.layers[l].frozen_bytes);
        expect_int("weights", model.layers[l].weight_bytes, again.layers[l].weight_bytes);
        expect_int("tied", model.layers[l].tied_bytes, again.layers[l].tied_bytes);
    }
    cs_model_finish(&again);
    cs_model_finish(&model);
    cs_net_finish(&net);
    cJSON_Delete(root);
}

static const struct {
    const char *row, *target, *message;
} errors[] = {
    {"a typo", "q_prj",
     "l: /targets/0: must be the end of a linear layer's name: unknown \"q_prj\"; did you mean "
     "\"q_proj\"? known: q_proj, k_proj, v_proj, o_proj, gate, lm_head"},
    {"a part of a word", "proj",
     "l: /targets/0: must be the end of a linear layer's name: unknown \"proj\"; known: q_proj, "
     "k_proj, v_proj, o_proj, gate, lm_head"},
    {"experts", "up_proj",
     "l: /targets/0: must not be the name of experts, which can have no adapters (got "
     "layers.0.mlp.experts.up_proj)"},
    {"a norm", "input_layernorm",
     "l: /targets/0: must be the end of a linear layer's name: unknown \"input_layernorm\"; known: "
     "q_proj, k_proj, v_proj, o_proj, gate, lm_head"},
};

static void test_errors(void **state)
{
    (void)state;
    cs_decoder decoder = small(false);
    decoder.experts = 4;
    decoder.top_k = 2;
    decoder.expert_intermediate = 8;
    for (size_t i = 0; i < ROWS(errors); i++) {
        cs_net net;
        const cs_status status = build(&decoder, &errors[i].target, 1, R, &net);
        expect_error(errors[i].row, CS_INVALID, errors[i].message, status, &error);
        cs_net_finish(&net); /* it is as it was */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_passes),
        cmocka_unit_test(test_work),       cmocka_unit_test(test_kept),
        cmocka_unit_test(test_sums),       cmocka_unit_test(test_backward),
        cmocka_unit_test(test_quantised),  cmocka_unit_test(test_wide_errors),
        cmocka_unit_test(test_file),       cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
