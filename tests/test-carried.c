/* A tensor that bypasses layers: T5's decoder reads the encoder's output. Bytes at every cut, saved
 * activations of a run of layers, and the model file. */
#include "sim/model/net-model.h"
#include "sim/model/zoo/zoo.h"

#include "tests/expect.h"

static cs_error error;

/* S tokens of the encoder, T of the decoder, H features, A heads of F, I inside the MLP, W
 * words. */
enum { S = 6, T = 9, H = 8, A = 2, F = 4, I = 12, W = 20, LAYERS = 2, BATCH = 3 };

static void build(cs_net *net, double dropout, uint32_t kernel)
{
    char text[400];
    snprintf(text, sizeof(text),
             "{\"layers\": %d, \"hidden\": %d, \"heads\": %d, \"head\": %d, \"intermediate\": %d, "
             "\"sequence\": %d, \"decoder_sequence\": %d, \"vocabulary\": %d, \"buckets\": 4, "
             "\"dropout\": %g, \"attention\": \"%s\"}",
             LAYERS, H, A, F, I, S, T, W, dropout, kernel == CS_ATTENTION_MATH ? "math" : "flash");
    cJSON *parameters = cJSON_Parse(text);
    const cs_json_place place = {.file = "p"};
    cs_error_init(&error);
    if (cs_zoo_build("t5", NULL, parameters, &place, net, &error) != CS_OK)
        fail_msg("%s", error.text);
    cJSON_Delete(parameters);
}

static cs_net_options options(cs_granularity granularity)
{
    static cs_accelerator none;
    cs_accelerator_none(&none);
    return (cs_net_options){.batch_size = BATCH,
                            .granularity = granularity,
                            .precision = CS_PRECISION_BF16,
                            .device = &none,
                            .source = "test"};
}

static bool is_read_from(const cs_net *net, cs_tensor tensor, uint32_t cut)
{
    bool is_read = false;
    for (uint32_t p = cut; p < net->n_ops; p++)
        for (uint32_t i = 0; i < net->ops[p].n_inputs; i++)
            is_read |= net->ops[p].inputs[i] == tensor;
    return is_read;
}

/* Sums all tensors that are written before a cut and read after it, 2 bytes per element. */
static int64_t crossing(const cs_net *net, uint32_t cut)
{
    int64_t bytes = 0;
    for (uint32_t p = 0; p < cut; p++)
        if (is_read_from(net, net->ops[p].output, cut))
            bytes += 2 * BATCH * cs_net_tensor(net, net->ops[p].output)->elements;
    return bytes;
}

/* Blocks of the encoder: 2 layers each, of the decoder 3, as additions end them; embedding and
 * dropout on both sides; norm and dropout after the encoder; norm, dropout, head, loss. */
static void test_cuts(void **state)
{
    (void)state;
    static const uint32_t expected[] = {2 + 2 * LAYERS + 2 + 2 + 3 * LAYERS + 4,
                                        1 + LAYERS + 1 + 1 + LAYERS + 1};
    for (cs_granularity g = CS_GRANULARITY_LAYER; g <= CS_GRANULARITY_BLOCK; g++) {
        const cs_net_options how = options(g);
        cs_net net;
        cs_net_chain chain;
        build(&net, 0.1, CS_ATTENTION_MATH);
        assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
        expect_int("layers", expected[g], chain.n_layers);
        for (uint32_t l = 0; l + 1 < chain.n_layers; l++)
            expect_int(chain.layers[l].name, crossing(&net, chain.layers[l].end),
                       chain.layers[l].written_bytes);
        cs_net_chain_finish(&chain);
        cs_net_finish(&net);
    }
}

/* The encoder's output has S H elements of 2 bytes: a run of layers keeps it once if it contains an
 * attention that reads it; everything else is a sum over layers. */
static void test_runs(void **state)
{
    (void)state;
    const cs_net_options how = options(CS_GRANULARITY_LAYER);
    cs_net net;
    cs_model model;
    build(&net, 0, CS_ATTENTION_FLASH);
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    for (uint32_t first = 0; first < model.n_layers; first++) {
        for (uint32_t end = first; end <= model.n_layers; end++) {
            cs_layer_sum sum;
            int64_t kept = 0;
            bool reads = false;
            for (uint32_t l = first; l < end; l++) {
                kept += model.layers[l].kept_bytes;
                reads |= strstr(model.layers[l].name, "EncDecAttention") != NULL;
            }
            assert_int_equal(cs_model_sum(&model, first, end, BATCH, &sum, &error), CS_OK);
            expect_int("run", kept + (reads ? 2 * BATCH * S * H : 0), sum.kept_bytes);
        }
    }
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Tensor by tensor for a sample, 2 bytes an element, with a fused kernel and no dropout:
 *   norm       its input and normalised input, a float32 per row
 *   attention  the norm's result, queries, keys, values, result, a float32 per row and head
 *   MLP        the norm's result, the ReLU's result (in place) and the token ids of 8 bytes, the
 *              input of the head, logarithms and targets. Results of norms that are attended to or
 *              multiplied
 *              are their readers' inputs. */
static int64_t norm_of(int64_t tokens)
{
    return 2 * 2 * tokens * H + 4 * tokens;
}

static int64_t attention_of(int64_t queries, int64_t keys)
{
    return norm_of(queries) + 2 * queries * H + 2 * A * F * (2 * queries + 2 * keys) +
           4 * A * queries;
}

static int64_t mlp_of(int64_t tokens)
{
    return norm_of(tokens) + 2 * tokens * H + 2 * tokens * I;
}

static void test_kept(void **state)
{
    (void)state;
    const int64_t encoder = 8 * S + LAYERS * (attention_of(S, S) + mlp_of(S)) + norm_of(S);
    const int64_t decoder =
        8 * T + LAYERS * (attention_of(T, T) + attention_of(T, S) + mlp_of(T)) + norm_of(T);
    const int64_t head = 2 * T * H + 4 * T * W + 8 * T, carried = 2 * S * H;
    const cs_net_options how = options(CS_GRANULARITY_BLOCK);
    cs_net net;
    cs_net_chain chain;
    build(&net, 0, CS_ATTENTION_FLASH);
    assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
    expect_int("kept", BATCH * (encoder + decoder + head + carried), chain.kept_bytes);
    cs_net_chain_finish(&chain);
    cs_net_finish(&net);
}

/* A chain of three layers that keep 7, 9 and 11 bytes, of inputs of 4, 6 and 6 bytes. The last two
 * read
 * 2 bytes that are handed past them. With recomputation they keep their inputs, those 2 once; and
 * the model file says it. */
static void test_model(void **state)
{
    (void)state;
    cs_layer layers[] = {{.name = "a", .output_bytes = 6, .kept_bytes = 7},
                         {.name = "b", .output_bytes = 6, .kept_bytes = 9, .carried_bytes = 2},
                         {.name = "c", .output_bytes = 1, .kept_bytes = 11, .carried_bytes = 2}};
    const cs_model model = {.name = "m",
                            .batch_size = 1,
                            .input_bytes = 4,
                            .n_layers = 3,
                            .layers = layers,
                            .provenance = {"test", "none", "2026-01-01", NULL}};
    const cs_json_place place = {.file = "m.json"};
    cs_model read;
    cs_layer_sum sum;
    cs_error_init(&error);
    cJSON *root = cs_model_json(&model);
    assert_int_equal(cs_model_read(root, &place, &read, &error), CS_OK);
    expect_int("read", 2, read.layers[2].carried_bytes);
    assert_int_equal(cs_model_sum(&read, 0, 3, 1, &sum, &error), CS_OK);
    expect_int("all", 7 + 9 + 11 + 2, sum.kept_bytes);
    assert_int_equal(cs_model_sum(&read, 0, 1, 1, &sum, &error), CS_OK);
    expect_int("none", 7, sum.kept_bytes);
    for (int l = 0; l < 3; l++)
        read.layers[l].recompute = true;
    assert_int_equal(cs_model_sum(&read, 0, 3, 1, &sum, &error), CS_OK);
    expect_int("recomputed", 4 + 4 + 4 + 2, sum.kept_bytes);
    expect_int("again", 7, sum.workspace_bytes);
    cs_model_finish(&read);
    layers[1].carried_bytes = 7;
    cJSON_Delete(root);
    root = cs_model_json(&model);
    expect_error("more than its input", CS_INVALID,
                 "m.json: /layers/1/carried: must be at most 6, the layer's input (got 7)",
                 cs_model_read(root, &place, &read, &error), &error);
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
