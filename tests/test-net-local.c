/* Networks of one place of a grid: exchanges, memory, weights and work against counts from
 * definitions. */
#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"
#include "sim/model/recompute.h"
#include "sim/model/zoo/zoo.h"
#include "tests/expect.h"
#include "tests/largest-place.h"
#include "tests/random-net.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWN = 400, AXES_KINDS = CS_N_AXES * (CS_EXCHANGE_BROADCAST + 1) };

static void make_zoo(const char *name, const char *parameters, cs_net *net)
{
    cs_error error;
    cs_json_place at = {.file = "test"};
    cJSON *json = cJSON_Parse(parameters);
    cs_error_init(&error);
    assert_non_null(json);
    if (cs_zoo_build(name, NULL, json, &at, net, &error) != CS_OK)
        fail_msg("%s", error.text);
    cJSON_Delete(json);
}

static cs_net_options options_of(const cs_accelerator *device, const cs_split *split,
                                 uint32_t batch)
{
    return (cs_net_options){.batch_size = batch,
                            .precision = CS_PRECISION_FP16,
                            .optimizer_states = 2,
                            .granularity = CS_GRANULARITY_BLOCK,
                            .device = device,
                            .source = "test",
                            .split = split};
}

static void load_device(cs_accelerator *device)
{
    cs_error error;
    cs_error_init(&error);
    if (cs_accelerator_load("h100", NULL, device, &error) != CS_OK)
        fail_msg("%s", error.text);
}

static cs_model model_of(const cs_net *net, const cs_net_options *options)
{
    cs_model model = {0};
    cs_error error;
    cs_error_init(&error);
    if (cs_net_model(net, options, &model, &error) != CS_OK)
        fail_msg("%s", error.text);
    return model;
}

static const cs_layer *layer_named(const cs_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (strcmp(model->layers[i].name, name) == 0)
            return &model->layers[i];
    fail_msg("no layer %s", name);
    return NULL;
}

/* ---- what is exchanged ---- */

/* Bytes of exchanges over one axis, by kind and pass. */
typedef struct moved {
    int64_t bytes[CS_EXCHANGE_BROADCAST + 1][2];
} moved;

static moved moved_of(const cs_layer *layer, cs_axes_name axes)
{
    moved sum = {0};
    for (uint32_t i = 0; i < layer->n_exchanges; i++)
        if (layer->exchanges[i].axes == axes)
            sum.bytes[layer->exchanges[i].kind][layer->exchanges[i].backward] +=
                layer->exchanges[i].bytes;
    return sum;
}

static void expect_moved(const char *row, const moved *expected, const moved *got)
{
    char text[96];
    for (int kind = 0; kind <= CS_EXCHANGE_BROADCAST; kind++) {
        for (int pass = 0; pass < 2; pass++) {
            snprintf(text, sizeof(text), "%s, kind %d, %s", row, kind, pass ? "back" : "forward");
            expect_int(text, expected->bytes[kind][pass], got->bytes[kind][pass]);
        }
    }
}

/* ---- nothing divided ---- */

static const struct {
    const char *name, *parameters;
} shipped[] = {
    {"gpt", "{\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"sequence\": 32, \"vocabulary\": 101}"},
    {"bert", "{\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"sequence\": 32}"},
    {"llama", "{\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"kv_heads\": 2, \"sequence\": 32}"},
    {"vit_b16", "{}"},
    {"resnet50", "{}"},
    {"densenet121", "{}"},
};

static void expect_same_operators(const cs_net *net, const cs_split *split)
{
    cs_net_local local;
    cs_error error;
    cs_error_init(&error);
    if (cs_net_local_make(net, split, 0, NULL, &local, &error) != CS_OK)
        fail_msg("%s", error.text);
    expect_int(net->name, net->n_ops, local.net.n_ops);
    for (uint32_t p = 0; p < net->n_ops; p++)
        expect_int(net->ops[p].name, net->ops[p].kind, local.net.ops[p].kind);
    cs_net_local_finish(&local);
}

/* With axes of size 1 the model is bit-for-bit the single-device model, and nothing is exchanged;
 * splitting samples changes nothing either. */
static void test_undivided(void **state)
{
    (void)state;
    cs_accelerator device;
    load_device(&device);
    for (size_t i = 0; i < ROWS(shipped); i++) {
        cs_net net;
        cs_split split = cs_split_none();
        split.sequence_parallel = true;
        split.grid.data = i % 2 ? 4 : 1;
        make_zoo(shipped[i].name, shipped[i].parameters, &net);
        cs_net_options options = options_of(&device, NULL, 3);
        options.granularity = i % 2 ? CS_GRANULARITY_BLOCK : CS_GRANULARITY_LAYER;
        cs_model whole = model_of(&net, &options);
        options.split = &split;
        cs_model local = model_of(&net, &options);
        expect_same_operators(&net, &split);
        cJSON *expected = cs_model_json(&whole), *got = cs_model_json(&local);
        assert_true(cJSON_Compare(expected, got, true));
        for (uint32_t l = 0; l < local.n_layers; l++)
            expect_int(local.layers[l].name, 0,
                       local.layers[l].n_pieces + local.layers[l].n_exchanges +
                           local.layers[l].n_weight_parts);
        cJSON_Delete(expected);
        cJSON_Delete(got);
        cs_model_finish(&whole);
        cs_model_finish(&local);
        cs_net_finish(&net);
    }
    cs_accelerator_finish(&device);
}

/* ---- memory of a GPT block ---- */

/* Korthikanti et al., 2022, equation 2, for a block with s tokens, b samples, h features, a heads,
 * in 2 bytes: s b h (10 + 24 / t + 5 a s / (h t)); equation 4, with sequence parallelism:
 * s b h (34 + 5 a s / h) / t. Both leave out the mean and deviation per row that a layer norm
 * keeps in float32: 2 norms of 8 s b bytes; a place has its tokens' part. */
static void test_kept(void **state)
{
    (void)state;
    static const char parameters[] =
        "{\"layers\": 2, \"hidden\": 64, \"heads\": 8, \"sequence\": 48, \"vocabulary\": 101, "
        "\"attention\": \"math\"}";
    const int64_t s = 48, b = 3, h = 64, a = 8;
    cs_accelerator device;
    cs_net net;
    load_device(&device);
    make_zoo("gpt", parameters, &net);
    for (uint32_t t = 1; t <= 8; t *= 2) {
        for (int sequence_parallel = 0; sequence_parallel < 2; sequence_parallel++) {
            cs_split split = cs_split_none();
            split.grid.tensor = t;
            split.sequence_parallel = sequence_parallel;
            const cs_net_options options = options_of(&device, &split, (uint32_t)b);
            cs_model model = model_of(&net, &options);
            const int64_t statistics = 16 * s * b;
            const int64_t expected = sequence_parallel
                                         ? (s * b * (34 * h + 5 * a * s) + statistics) / t
                                         : s * b * (10 * h + (24 * h + 5 * a * s) / t) + statistics;
            expect_int("kept", expected, layer_named(&model, "h.0")->kept_bytes);
            expect_int("kept", expected, layer_named(&model, "h.1")->kept_bytes);
            cs_model_finish(&model);
        }
    }
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* ---- recomputation ---- */

static void expect_recomputed(const cs_layer *plain, const cs_layer *layer, int64_t kept,
                              double seconds)
{
    const double more = (double)(layer->backward_input - plain->backward_input);
    expect_int("kept", kept, layer->kept_bytes);
    expect_int("forward", plain->forward, layer->forward);
    expect_int("weights", plain->backward_weight, layer->backward_weight);
    if (fabs(more - seconds * 1e12) > plain->n_pieces + 1)
        fail_msg("expected %.0f ps more, got %.0f", seconds * 1e12, more);
    assert_true(layer->workspace_bytes >= plain->workspace_bytes);
}

/* Forward exchanges once more in backward; a gather that backward repeated anyway it does once. */
static void expect_repeated(const cs_layer *plain, const cs_layer *layer)
{
    moved expected = moved_of(plain, CS_AXES_TENSOR);
    const moved got = moved_of(layer, CS_AXES_TENSOR);
    expected.bytes[CS_EXCHANGE_ALL_REDUCE][1] += expected.bytes[CS_EXCHANGE_ALL_REDUCE][0];
    expected.bytes[CS_EXCHANGE_REDUCE_SCATTER][1] += expected.bytes[CS_EXCHANGE_REDUCE_SCATTER][0];
    expect_moved("repeated", &expected, &got);
}

/* Sums the operators of this name in the first block. */
static double seconds_of(const cs_net *net, const cs_net_options *options, const char *name)
{
    cs_net_local local;
    cs_error error;
    double seconds = 0;
    cs_error_init(&error);
    if (cs_net_local_make(net, options->split, 0, NULL, &local, &error) != CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t p = 0; p < local.net.n_ops; p++) {
        const cs_op *op = &local.net.ops[p];
        cs_op_cost cost;
        cs_op_cost_of(&local.net, op, options->batch_size, options->precision, &cost);
        if (cs_recompute_means(name, op->name) && cs_recompute_means("h.0", op->name))
            seconds +=
                cs_accelerator_seconds(options->device, op, &cost.forward, options->precision);
    }
    cs_net_local_finish(&local);
    return seconds;
}

/* Without the matrices of attention, Korthikanti et al. (section 5): s b h (10 + 24 / t), and with
 * sequence parallelism 34 s b h / t; without the masks of two dropouts, of s b h bytes each, but
 * with their inputs, twice as large, s b h * 2 more than without recomputation; with full
 * recomputation of a block, its input: 2 s b h, or the place's part of it. */
static void test_recomputed(void **state)
{
    (void)state;
    static const char parameters[] =
        "{\"layers\": 2, \"hidden\": 64, \"heads\": 8, \"sequence\": 48, \"vocabulary\": 101, "
        "\"attention\": \"math\"}";
    static const char *const attention[] = {"attention"}, *const blocks[] = {"h.0", "h.1"};
    static const char *const dropout[] = {"dropout"};
    const int64_t s = 48, b = 3, h = 64, statistics = 16 * s * b;
    cs_accelerator device;
    cs_net net;
    load_device(&device);
    make_zoo("gpt", parameters, &net);
    for (uint32_t t = 1; t <= 8; t *= 2) {
        for (int sequence_parallel = 0; sequence_parallel < 2; sequence_parallel++) {
            cs_split split = cs_split_none();
            split.grid.tensor = t;
            split.sequence_parallel = sequence_parallel;
            cs_net_options options = options_of(&device, &split, (uint32_t)b);
            cs_model plain = model_of(&net, &options);
            options.recompute_ops = attention;
            options.n_recompute_ops = 1;
            cs_model without = model_of(&net, &options);
            options.recompute_ops = dropout;
            cs_model inputs = model_of(&net, &options);
            options.recompute_ops = blocks;
            options.n_recompute_ops = 2;
            cs_model none = model_of(&net, &options);
            const cs_layer *block = layer_named(&plain, "h.0");
            expect_recomputed(block, layer_named(&without, "h.0"),
                              sequence_parallel ? (s * b * 34 * h + statistics) / t
                                                : s * b * (10 * h + 24 * h / t) + statistics,
                              seconds_of(&net, &options, "attention"));
            expect_recomputed(block, layer_named(&inputs, "h.0"),
                              block->kept_bytes + 2 * s * b * h / (sequence_parallel ? t : 1),
                              seconds_of(&net, &options, "dropout"));
            expect_recomputed(block, layer_named(&none, "h.0"),
                              2 * s * b * h / (sequence_parallel ? t : 1),
                              (double)block->forward * 1e-12);
            expect_int("a block behind one that runs again keeps its input",
                       2 * s * b * h / (sequence_parallel ? t : 1),
                       layer_named(&none, "h.1")->kept_bytes);
            expect_repeated(block, layer_named(&none, "h.0"));
            cs_model_finish(&plain);
            cs_model_finish(&without);
            cs_model_finish(&inputs);
            cs_model_finish(&none);
        }
    }
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* With full recomputation blocks keep 2 s b h, their input, and the head runs once: torch.utils.
 * checkpoint.checkpoint_sequential and Megatron-LM's TransformerBlock leave it out. */
static void test_recomputed_in_full(void **state)
{
    (void)state;
    static const char parameters[] =
        "{\"layers\": 2, \"hidden\": 64, \"heads\": 8, \"sequence\": 48, \"vocabulary\": 101}";
    cs_accelerator device;
    cs_net net;
    load_device(&device);
    make_zoo("gpt", parameters, &net);
    const cs_split split = cs_split_none();
    for (cs_granularity g = CS_GRANULARITY_LAYER; g <= CS_GRANULARITY_BLOCK; g++) {
        cs_net_options options = options_of(&device, &split, 3);
        options.granularity = g;
        cs_model plain = model_of(&net, &options);
        options.recompute = true;
        cs_model full = model_of(&net, &options);
        assert_int_equal(plain.n_layers, full.n_layers);
        for (uint32_t i = 0; i < full.n_layers; i++) {
            const bool head = strncmp(full.layers[i].name, "head", strlen("head")) == 0;
            cs_layer_sum once, again;
            assert_int_equal(cs_model_sum(&plain, i, i + 1, 3, &once, NULL), CS_OK);
            assert_int_equal(cs_model_sum(&full, i, i + 1, 3, &again, NULL), CS_OK);
            expect_int(full.layers[i].name, once.backward_input + (head ? 0 : once.forward),
                       again.backward_input);
            expect_int(full.layers[i].name, head ? once.kept_bytes : once.input_bytes,
                       again.kept_bytes);
            if (strcmp(full.layers[i].name, "h.0") == 0)
                expect_int("h.0", 2 * 48 * 3 * 64, again.kept_bytes);
        }
        cs_model_finish(&plain);
        cs_model_finish(&full);
    }
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* A view that ends a block belongs to the layer after it, even if that is the head. */
static void test_recomputed_up_to_a_view(void **state)
{
    (void)state;
    enum { R = 64, H = 256 };
    const cs_shape shape = {.rank = 2, .dims = {R, H}};
    cs_accelerator device;
    cs_error error;
    cs_net net;
    load_device(&device);
    cs_error_init(&error);
    cs_net_begin(&net, "viewed", &error);
    cs_net_block(&net, "body");
    cs_tensor x = cs_net_embedding(&net, "table", cs_net_token_ids(&net, R), R, H);
    x = cs_net_linear(&net, "in", x, &(cs_linear){.out = H});
    x = cs_net_view(&net, "view", x, &shape);
    cs_net_block(&net, "head");
    x = cs_net_linear(&net, "out", x, &(cs_linear){.out = R});
    cs_net_cross_entropy(&net, "loss", x);
    assert_int_equal(cs_net_end(&net), CS_OK);
    cs_net_options options = options_of(&device, NULL, 1);
    options.recompute = true;
    cs_model model = model_of(&net, &options);
    expect_int("layers", 2, model.n_layers);
    assert_true(layer_named(&model, "body")->recompute);
    assert_false(layer_named(&model, "head")->recompute);
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* A network without blocks is one, as a whole in a checkpoint. */
static void test_recomputed_as_a_whole(void **state)
{
    (void)state;
    cs_accelerator device;
    cs_error error;
    cs_net net;
    load_device(&device);
    cs_error_init(&error);
    cs_net_begin(&net, "whole", &error);
    cs_tensor x = cs_net_embedding(&net, "table", cs_net_token_ids(&net, 8), 8, 16);
    cs_net_cross_entropy(&net, "loss", cs_net_linear(&net, "out", x, &(cs_linear){.out = 8}));
    assert_int_equal(cs_net_end(&net), CS_OK);
    cs_net_options options = options_of(&device, NULL, 1);
    options.recompute = true;
    cs_model model = model_of(&net, &options);
    for (uint32_t i = 0; i < model.n_layers; i++)
        assert_true(model.layers[i].recompute);
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* Names select operators by name, or by parts of names. */
static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *op;
        bool means;
    } rows[] = {
        {"layers.3.mlp.act", "layers.3.mlp.act", true}, {"mlp", "layers.3.mlp.act", true},
        {"layers.3", "layers.3.mlp.act", true},         {"3.mlp", "layers.3.mlp.act", true},
        {"layers.3", "layers.31.mlp.act", false},       {"ayers", "layers.3.mlp.act", false},
        {"act", "layers.3.mlp.activation", false},      {"", "layers.3", false},
    };
    static const char *const unknown[] = {"act", "mlpp"};
    cs_accelerator device;
    cs_net net;
    cs_error error;
    cs_model model;
    for (size_t i = 0; i < ROWS(rows); i++)
        expect_int(rows[i].name, rows[i].means, cs_recompute_means(rows[i].name, rows[i].op));
    load_device(&device);
    make_zoo("gpt", "{\"layers\": 1}", &net);
    cs_net_options options = options_of(&device, NULL, 1);
    options.recompute_ops = unknown;
    options.n_recompute_ops = 2;
    cs_error_init(&error);
    expect_error("unknown", CS_INVALID,
                 "gpt: has no operator \"mlpp\" to recompute; its first is \"embedding.wte\"",
                 cs_net_model(&net, &options, &model, &error), &error);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* ---- drawn transformers ---- */

/* Checks an embedding, blocks and a head. */
static void expect_layers(const cs_model *model, cs_axes_name axes, const moved *embedding,
                          const moved *block, const moved *head)
{
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const moved got = moved_of(&model->layers[i], axes);
        const bool is_first = i == 0, is_last = i + 1 == model->n_layers;
        expect_moved(model->layers[i].name, is_first ? embedding : is_last ? head : block, &got);
    }
}

/* Shoeybi et al., figure 4: rows x hidden, in 2 bytes, one all-reduce forward and one backward per
 * attention and per multilayer perceptron; one forward after the embedding, one backward before the
 * last matrix; three of a float32 per row in the loss. With sequence parallelism (Korthikanti et
 * al., figure 5) an all-reduce is a reduce-scatter on the side of the second matrix and an
 * all-gather on the side of the first, in both passes, and the input of a first matrix is gathered
 * once more in the backward. */
static void expect_pairs(const transformer_shape *s, const cs_model *model, uint32_t batch,
                         const cs_split *split)
{
    const int64_t rows = (int64_t)batch * s->tokens / split->grid.context;
    const int64_t x = 2 * rows * s->hidden, pairs = s->experts > 0 ? 1 : 2;
    moved embedding = {0}, block = {0}, head = {0};
    if (split->sequence_parallel) {
        embedding.bytes[CS_EXCHANGE_REDUCE_SCATTER][0] = x;
        embedding.bytes[CS_EXCHANGE_ALL_GATHER][1] = x;
        block.bytes[CS_EXCHANGE_ALL_GATHER][0] = pairs * x;
        block.bytes[CS_EXCHANGE_REDUCE_SCATTER][0] = pairs * x;
        block.bytes[CS_EXCHANGE_ALL_GATHER][1] = 2 * pairs * x;
        block.bytes[CS_EXCHANGE_REDUCE_SCATTER][1] = pairs * x;
        head.bytes[CS_EXCHANGE_ALL_GATHER][0] = x;
        head.bytes[CS_EXCHANGE_ALL_GATHER][1] = x;
        head.bytes[CS_EXCHANGE_REDUCE_SCATTER][1] = x;
    } else {
        embedding.bytes[CS_EXCHANGE_ALL_REDUCE][0] = x;
        block.bytes[CS_EXCHANGE_ALL_REDUCE][0] = pairs * x;
        block.bytes[CS_EXCHANGE_ALL_REDUCE][1] = pairs * x;
        head.bytes[CS_EXCHANGE_ALL_REDUCE][1] = x;
    }
    head.bytes[CS_EXCHANGE_ALL_REDUCE][0] = 3 * 4 * rows;
    if (split->grid.tensor == 1)
        embedding = block = head = (moved){0};
    expect_layers(model, CS_AXES_TENSOR, &embedding, &block, &head);
}

/* Places of the tensor axis that have the same head of keys and values. */
static int64_t copies_of(const transformer_shape *s, const cs_split *split)
{
    const uint32_t tensor = split->grid.tensor;
    return tensor > s->kv_heads ? tensor / s->kv_heads : 1;
}

/* Rows of keys and values of a place, R k, k being the features of a place's heads of both:
 *   ring        C - 1 shifts of them forward; backward as many, and as many of their gradients
 *   all-gather  all C R of them forward, and again backward, where their gradients are scattered
 *   all-to-all  them and the queries, and the results, which are as large as these; backward the
 *               same */
static void expect_context(const transformer_shape *s, const cs_model *model, uint32_t batch,
                           const cs_split *split)
{
    const int64_t c = split->grid.context, rows = (int64_t)batch * s->tokens / c;
    const int64_t keys =
        2 * 2 * rows * s->kv_heads * copies_of(s, split) * s->head / split->grid.tensor;
    const int64_t queries = 2 * rows * s->heads * s->head / split->grid.tensor;
    const moved none = {0};
    moved block = {0};
    switch (split->context_method) {
    case CS_CONTEXT_RING:
        block.bytes[CS_EXCHANGE_SHIFT][0] = (c - 1) * keys;
        block.bytes[CS_EXCHANGE_SHIFT][1] = 2 * (c - 1) * keys;
        break;
    case CS_CONTEXT_ALL_GATHER:
        block.bytes[CS_EXCHANGE_ALL_GATHER][0] = c * keys;
        block.bytes[CS_EXCHANGE_ALL_GATHER][1] = c * keys;
        block.bytes[CS_EXCHANGE_REDUCE_SCATTER][1] = c * keys;
        break;
    case CS_CONTEXT_ALL_TO_ALL:
        block.bytes[CS_EXCHANGE_ALL_TO_ALL][0] = 2 * queries + keys;
        block.bytes[CS_EXCHANGE_ALL_TO_ALL][1] = 2 * queries + keys;
        break;
    }
    if (c == 1)
        block = none;
    expect_layers(model, CS_AXES_CONTEXT, &none, &block, &none);
}

/* A place routes its tokens, each to k experts. Twice in each pass rows are exchanged, more at the
 * busiest place by the imbalance; with several places per expert they gather the rows and sum, or
 * backward sum and gather, their common data. */
static void expect_experts(const transformer_shape *s, const cs_model *model, uint32_t batch,
                           const cs_split *split)
{
    const cs_grid *grid = &split->grid;
    const uint32_t routed = s->tokens / grid->context / grid->tensor * s->top_k;
    const uint32_t busiest =
        grid->expert > 1 ? (uint32_t)ceil(routed * split->routing.imbalance) : routed;
    const int64_t rows = 2 * (int64_t)batch * busiest * s->hidden;
    const moved none = {0};
    moved between = {0}, within = {0};
    for (int pass = 0; pass < 2 && s->experts > 0; pass++) {
        if (grid->expert > 1)
            between.bytes[CS_EXCHANGE_ALL_TO_ALL][pass] = 2 * rows;
        if (grid->expert_tensor == 1)
            continue;
        within.bytes[CS_EXCHANGE_ALL_GATHER][pass] = grid->expert_tensor * rows;
        within.bytes[CS_EXCHANGE_REDUCE_SCATTER][pass] = grid->expert_tensor * rows;
    }
    expect_layers(model, CS_AXES_EXPERT, &none, &between, &none);
    expect_layers(model, CS_AXES_EXPERT_TENSOR, &none, &within, &none);
}

/* Parameters of all experts. */
static int64_t of_experts(const transformer_shape *s)
{
    return (int64_t)s->layers * s->experts * s->hidden * s->expert_inner * (s->gated ? 3 : 2);
}

/* Parameters that every place holds: norms, biases behind a sum, positions, routers. */
static int64_t replicated(const transformer_shape *s)
{
    const int64_t norms = (2 * (int64_t)s->layers + 1) * s->hidden * (s->layer_norm ? 2 : 1);
    const int64_t biases = s->bias ? (s->experts > 0 ? 1 : 2) * (int64_t)s->layers * s->hidden : 0;
    return norms + biases + (s->positions ? (int64_t)s->tokens * s->hidden : 0) +
           (int64_t)s->layers * s->hidden * s->experts;
}

/* Parameters of all matrices of keys and values; and their products with the tokens of a sample. */
static int64_t of_keys(const transformer_shape *s)
{
    return (int64_t)s->layers * 2 * s->kv_heads * s->head * (s->hidden + s->bias);
}

static double products_of_keys(const transformer_shape *s)
{
    return (double)s->tokens * s->layers * 2 * s->kv_heads * s->head * s->hidden;
}

/* Over all places: each has its part of the weights and of the multiplications. Places with other
 * tokens have the same weights, and places with the same keys and values have the same weights for
 * these. */
static void expect_sums(const transformer_shape *s, const cs_net *net, const cs_split *split)
{
    const cs_grid *grid = &split->grid;
    const uint32_t places = cs_grid_places(grid), alike_places = grid->context * grid->data;
    const int64_t more = copies_of(s, split) - 1;
    int64_t parameters = 0, shared = 0, experts = 0, copied = 0;
    double macs = 0;
    cs_error error;
    cs_error_init(&error);
    for (uint32_t place = 0; place < places; place++) {
        cs_net_local local;
        if (cs_net_local_make(net, split, place, NULL, &local, &error) != CS_OK)
            fail_msg("%s", error.text);
        parameters += cs_net_parameters(&local.net);
        macs += cs_net_macs(&local.net);
        for (uint32_t p = 0; p < local.net.n_ops; p++)
            if (local.ops[p].weight_axes == CS_AXES_TENSOR)
                shared += local.net.ops[p].weights + local.net.ops[p].biases;
            else if (local.ops[p].weight_axes == CS_AXES_COPIES)
                copied += local.net.ops[p].weights + local.net.ops[p].biases;
            else if (local.net.ops[p].kind == CS_OP_GROUPED_LINEAR)
                experts += local.net.ops[p].weights;
        cs_net_local_finish(&local);
    }
    const int64_t alike = replicated(s), dense = cs_net_parameters(net) - of_experts(s);
    expect_int("experts", places / (grid->expert * grid->expert_tensor) * of_experts(s), experts);
    expect_int("parameters",
               alike_places * (dense + more * of_keys(s)) + (places - alike_places) * alike,
               parameters - experts);
    expect_int("copied", more > 0 ? alike_places * (more + 1) * of_keys(s) : 0, copied);
    expect_int("shared", split->sequence_parallel && grid->tensor > 1 ? places * alike : 0, shared);
    if (split->routing.imbalance > 1)
        return; /* the busiest place has more than its part */
    expect_double("products", grid->data * (cs_net_macs(net) + (double)more * products_of_keys(s)),
                  macs);
}

/* The pieces of a layer are all of its operators' work, to the picosecond that each piece is
 * rounded. */
static void expect_pieces(const cs_net *net, const cs_net_options *options, const cs_model *model)
{
    cs_net_chain chain;
    cs_error error;
    cs_error_init(&error);
    if (cs_net_chain_find(net, options, &chain, &error) != CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const cs_layer *layer = &model->layers[l];
        const cs_net_layer *of = &chain.layers[l];
        cs_layer_piece sum = {0};
        for (uint32_t i = 0; i < layer->n_pieces; i++) {
            sum.forward += layer->pieces[i].forward;
            sum.backward_input += layer->pieces[i].backward_input;
            sum.backward_weight += layer->pieces[i].backward_weight;
        }
        for (uint32_t i = 0; i < layer->n_exchanges; i++)
            assert_true(layer->exchanges[i].gap <= layer->n_pieces);
        assert_true(layer->n_exchanges == 0 || layer->n_pieces > 0);
        if (layer->n_pieces == 0)
            continue;
        assert_true(fabs((double)sum.forward - of->forward * 1e12) <= layer->n_pieces);
        assert_true(fabs((double)sum.backward_input - of->backward_input * 1e12) <=
                    layer->n_pieces);
        assert_true(fabs((double)sum.backward_weight - of->backward_weight * 1e12) <=
                    layer->n_pieces);
        expect_int(layer->name, sum.forward, layer->forward);
        expect_int(layer->name, sum.backward_input, layer->backward_input);
        expect_int(layer->name, sum.backward_weight, layer->backward_weight);
    }
    cs_net_chain_finish(&chain);
}

/* Splits of all kinds of axes and methods, of a transformer that they divide. */
static void test_drawn(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "transformers");
    cs_accelerator device;
    assert_non_null(random);
    load_device(&device);
    for (int i = 0; i < DRAWN; i++) {
        const cs_split split = random_transformer_split(random, i % 3 == 0);
        cs_net net;
        const transformer_shape s = random_transformer_shape(random, &split, i % 3 == 0);
        const uint32_t batch = random_from_to(random, 1, 3);
        random_net_transformer(&s, &net);
        const cs_net_options options = options_of(&device, &split, batch);
        cs_model model = model_of(&net, &options);
        expect_pairs(&s, &model, batch, &split);
        expect_context(&s, &model, batch, &split);
        expect_experts(&s, &model, batch, &split);
        expect_sums(&s, &net, &split);
        expect_pieces(&net, &options, &model);
        cs_net_options elsewhere = options;
        elsewhere.place = random_from_to(random, 0, cs_grid_places(&split.grid) - 1);
        expect_largest("drawn", &net, &elsewhere);
        cs_model_finish(&model);
        cs_net_finish(&net);
    }
    cs_accelerator_finish(&device);
    gsl_rng_free(random);
}

/* ---- more places than heads of keys and values ---- */

static void expect_weights(const cs_net_local *local, const char *name, int64_t weights,
                           cs_axes_name axes)
{
    for (uint32_t p = 0; p < local->net.n_ops; p++) {
        const cs_op *op = &local->net.ops[p];
        if (op->kind == CS_OP_LINEAR && cs_recompute_means(name, op->name)) {
            expect_int(name, weights, op->weights);
            expect_int(name, axes, local->ops[p].weight_axes);
        }
    }
}

/* 8 places, 8 heads of 4 features, 2 of keys and values: each place has a head of queries, 32 x 4
 * weights, and the head of keys that 3 others also have; it computes the gradients due to its own
 * queries, which are summed over these four places only. */
static void test_copies(void **state)
{
    (void)state;
    cs_net net;
    cs_error error;
    cs_split split = cs_split_none();
    split.grid.tensor = 8;
    make_zoo("llama",
             "{\"layers\": 1, \"hidden\": 32, \"heads\": 8, \"kv_heads\": 2, \"sequence\": 16, "
             "\"intermediate\": 64}",
             &net);
    cs_error_init(&error);
    split.grid.copies = cs_split_copies(&net, 8);
    expect_int("copies", 4, split.grid.copies);
    expect_int("copies of 2 places", 1, cs_split_copies(&net, 2));
    for (uint32_t place = 0; place < 8; place++) {
        cs_net_local local;
        if (cs_net_local_make(&net, &split, place, NULL, &local, &error) != CS_OK)
            fail_msg("%s", error.text);
        expect_weights(&local, "q_proj", 32 * 4, CS_AXES_GRADIENT);
        expect_weights(&local, "k_proj", 32 * 4, CS_AXES_COPIES);
        expect_weights(&local, "v_proj", 32 * 4, CS_AXES_COPIES);
        expect_weights(&local, "o_proj", 4 * 32, CS_AXES_GRADIENT);
        for (uint32_t p = 0; p < local.net.n_ops; p++)
            if (local.net.ops[p].kind == CS_OP_ATTENTION)
                expect_int("heads", 1, local.net.ops[p].attention.kv_heads);
        cs_net_local_finish(&local);
    }
    cs_net_finish(&net);
}

/* ---- a ring ---- */

/* Pairs of queries and keys that meet in step `step` on place `place`, token by token: a place has
 * the chunks c and 2 C - 1 - c of 2 C, and in step s reads the chunks of place c - s. */
static int64_t count_pairs(uint32_t tokens, uint32_t places, uint32_t place, uint32_t step)
{
    const uint32_t chunk = tokens / (2 * places), other = (place + places - step) % places;
    int64_t pairs = 0;
    for (uint32_t i = 0; i < tokens; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            const uint32_t a = i / chunk, b = j / chunk;
            pairs += (a == place || a == 2 * places - 1 - place) &&
                     (b == other || b == 2 * places - 1 - other);
        }
    }
    return pairs;
}

static bool is_beside(const cs_layer *layer, uint32_t gap)
{
    uint32_t shifts = 0;
    bool beside = true;
    for (uint32_t i = 0; i < layer->n_exchanges; i++) {
        shifts += layer->exchanges[i].gap == gap;
        beside &= layer->exchanges[i].gap != gap || layer->exchanges[i].beside;
    }
    return beside && shifts > 0;
}

/* Each step of causal attention takes a share of its time proportional to its pairs, equal on all
 * places, and the next keys and values arrive meanwhile. A block is: norm to values, C steps, the
 * rest. */
static void test_ring(void **state)
{
    (void)state;
    enum { TOKENS = 48, C = 4 };
    cs_accelerator device;
    cs_net net;
    cs_split split = cs_split_none();
    split.grid.context = C;
    load_device(&device);
    make_zoo("gpt",
             "{\"layers\": 1, \"hidden\": 64, \"heads\": 4, \"sequence\": 48, \"dropout\": 0}",
             &net);
    const cs_net_options options = options_of(&device, &split, 2);
    cs_model model = model_of(&net, &options);
    const cs_layer *block = layer_named(&model, "h.0");
    const double seconds = seconds_of(&net, &options, "attention");
    int64_t all = 0;
    for (uint32_t step = 0; step < C; step++)
        all += count_pairs(TOKENS, C, 0, step);
    expect_int("pairs", (int64_t)TOKENS * (TOKENS + 1) / 2, all * C);
    expect_int("pieces", C + 2, block->n_pieces);
    for (uint32_t step = 0; step < C; step++) {
        const int64_t pairs = count_pairs(TOKENS, C, 0, step);
        const double expected = seconds * 1e12 * (double)pairs / (double)all;
        for (uint32_t place = 1; place < C; place++)
            expect_int("pairs", pairs, count_pairs(TOKENS, C, place, step));
        if (fabs((double)block->pieces[1 + step].forward - expected) > 1)
            fail_msg("step %u: expected %.1f ps, got %" PRId64, step, expected,
                     block->pieces[1 + step].forward);
        assert_true(is_beside(block, 1 + step));
    }
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* ---- state spaces ---- */

/* A mixer of Mamba-2 is a pair around a scan of heads; its norm is over the features of all
 * places, whose squares are summed, a float32 per row forward and backward. All of its parameters
 * are divided. */
static void test_scan(void **state)
{
    (void)state;
    enum { TOKENS = 64, HIDDEN = 32, BATCH = 2, T = 4 };
    cs_net net;
    cs_error error;
    cs_accelerator device;
    cs_split split = cs_split_none();
    double macs = 0;
    int64_t scan = 0;
    split.grid.tensor = T;
    load_device(&device);
    make_zoo("mamba2",
             "{\"layers\": 1, \"hidden\": 32, \"state_heads\": 8, \"state_head\": 8, "
             "\"state_groups\": 4, \"state\": 16, \"sequence\": 64}",
             &net);
    cs_error_init(&error);
    for (uint32_t place = 0; place < T; place++) {
        cs_net_local local;
        if (cs_net_local_make(&net, &split, place, NULL, &local, &error) != CS_OK)
            fail_msg("%s", error.text);
        macs += cs_net_macs(&local.net);
        for (uint32_t p = 0; p < local.net.n_ops; p++)
            scan += cs_recompute_means("mixer", local.net.ops[p].name)
                        ? local.net.ops[p].weights + local.net.ops[p].biases
                        : 0;
        cs_net_local_finish(&local);
    }
    expect_double("products", cs_net_macs(&net), macs);
    for (uint32_t p = 0; p < net.n_ops; p++)
        scan -= cs_recompute_means("mixer", net.ops[p].name)
                    ? net.ops[p].weights + net.ops[p].biases
                    : 0;
    expect_int("parameters", 0, scan);
    const cs_net_options options = options_of(&device, &split, BATCH);
    cs_model model = model_of(&net, &options);
    moved expected = {0};
    for (int pass = 0; pass < 2; pass++)
        expected.bytes[CS_EXCHANGE_ALL_REDUCE][pass] = BATCH * TOKENS * (2 * HIDDEN + 4);
    const moved got = moved_of(layer_named(&model, "layers.0"), CS_AXES_TENSOR);
    expect_moved("mixer", &expected, &got);
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* ---- a pair ---- */

/* The second of two matrices reads what the first made: of r rows, h features, f between, a place
 * of t multiplies r x h by h x f / t and r x f / t by f / t x h, in both passes, and what each
 * place then has is summed, r x h forward (second) and backward (first). */
static void test_pair(void **state)
{
    (void)state;
    enum { R = 64, H = 4096, F = 8192, T = 4 };
    const double gemm = 2.0 * R * H * F / T, width = 2;
    const double moved_bytes = width * (R * H + R * F / T + (double)H * F / T);
    cs_accelerator device;
    cs_error error;
    cs_net net;
    cs_split split = cs_split_none();
    split.grid.tensor = T;
    load_device(&device);
    cs_error_init(&error);
    cs_net_begin(&net, "two", &error);
    cs_tensor x = cs_net_embedding(&net, "table", cs_net_token_ids(&net, R), T, H);
    x = cs_net_layer_norm(&net, "norm", x);
    cs_net_block(&net, "pair");
    x = cs_net_linear(&net, "in", x, &(cs_linear){.out = F});
    x = cs_net_linear(&net, "out", x, &(cs_linear){.out = H});
    cs_net_block(&net, "loss");
    cs_net_squared_error(&net, "loss", x);
    assert_int_equal(cs_net_end(&net), CS_OK);
    const cs_net_options options = options_of(&device, &split, 1);
    cs_model model = model_of(&net, &options);
    const cs_layer *pair = layer_named(&model, "pair");
    const cs_op product = {.kind = CS_OP_LINEAR};
    const cs_pass_cost pass = {gemm, moved_bytes, 1};
    cs_time one;
    assert_true(cs_time_from_seconds(
        cs_accelerator_seconds(&device, &product, &pass, CS_PRECISION_FP16), &one));
    const cs_time times[] = {pair->forward, pair->backward_input, pair->backward_weight};
    for (size_t i = 0; i < ROWS(times); i++)
        if (llabs((long long)(times[i] - 2 * one)) > 2)
            fail_msg("pass %zu: expected 2 x %" PRId64 ", got %" PRId64, i, one, times[i]);
    moved expected = {0};
    expected.bytes[CS_EXCHANGE_ALL_REDUCE][0] = 2 * R * H;
    expected.bytes[CS_EXCHANGE_ALL_REDUCE][1] = 2 * R * H;
    const moved got = moved_of(pair, CS_AXES_TENSOR);
    expect_moved("pair", &expected, &got);
    expect_int("weights", 2 * 2 * H * F / T, pair->weight_bytes);
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

/* ---- what does not divide ---- */

/* Named are numbers that all operators take: of 14 tokens two places have 7 each, which do not make
 * two chunks; and 7 places divide them, but not 12 heads. */

static const struct {
    const char *row, *name, *parameters;
    cs_split split;
    const char *message;
} wrong[] = {
    {"heads",
     "llama",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 32, \"kv_heads\": 32, \"head\": 6, "
     "\"intermediate\": 96}",
     {.grid.tensor = 6},
     "/parallel/tensor: must divide the 32 heads of layers.0.self_attn.attention (got 6): 4 or 8 "
     "would"},
    {"keys",
     "llama",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"kv_heads\": 4, \"head\": 6, "
     "\"intermediate\": 96}",
     {.grid.tensor = 3},
     "/parallel/tensor: must divide the 4 heads of keys and values of "
     "layers.0.self_attn.attention (got 3): 2 or 4 would"},
    {"multiple of keys",
     "llama",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"kv_heads\": 4, \"head\": 8, "
     "\"intermediate\": 96}",
     {.grid.tensor = 6},
     "/parallel/tensor: must divide the 12 heads of layers.0.self_attn.attention, and its 4 heads "
     "of "
     "keys and values or be a multiple of these (got 6): 4 or 12 would"},
    {"features",
     "llama",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"kv_heads\": 12, \"intermediate\": 44}",
     {.grid.tensor = 3},
     "/parallel/tensor: must divide the 44 features of layers.0.mlp.gate_proj (got 3): 2 or 4 "
     "would"},
    {"experts",
     "mixtral",
     "{\"layers\": 1, \"hidden\": 64, \"heads\": 4, \"kv_heads\": 4}",
     {.grid = {.expert = 3, .data = 3}},
     "/parallel/expert: must divide the 8 experts of layers.0.mlp.dispatch (got 3): 2 or 4 would"},
    {"no experts",
     "gpt",
     "{\"layers\": 1}",
     {.grid = {.expert = 2, .data = 4}},
     "/parallel/expert: must be 1 for a network without experts (got 2)"},
    {"own tokens",
     "mixtral",
     "{\"layers\": 1, \"hidden\": 64, \"heads\": 4, \"kv_heads\": 4}",
     {.grid = {.tensor = 2}},
     "/parallel/sequence_parallel: must be true with \"tensor\" 2 and the experts of "
     "layers.0.mlp.dispatch: a device routes its own tokens (got false)"},
    {"context",
     "gpt",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"sequence\": 14}",
     {.grid = {.context = 4}},
     "/parallel/context: must divide the 14 tokens of a sample (got 4): 1 or 7 would"},
    {"chunks",
     "gpt",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"sequence\": 60}",
     {.grid = {.context = 4}},
     "/parallel/context: must divide the 60 tokens of h.0.attn.attention into two equal chunks per "
     "device (got 4): 3 or 5 would"},
    {"scan",
     "mamba2",
     "{\"layers\": 1, \"sequence\": 64}",
     {.grid = {.context = 2}},
     "/parallel/context: must be 1 with layers.0.mixer.conv1d, which goes from token to token (got "
     "2)"},
    {"groups",
     "mamba2",
     "{\"layers\": 1, \"state_heads\": 12, \"state_groups\": 6, \"sequence\": 64}",
     {.grid = {.tensor = 4}},
     "/parallel/tensor: must divide the 6 groups of layers.0.mixer.scan (got 4): 3 or 6 would"},
    {"no tokens",
     "resnet50",
     "{}",
     {.grid = {.context = 2}},
     "/parallel/context: must be 1 for a network that reads no tokens (got 2)"},
    {"heads all to all",
     "gpt",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 6, \"sequence\": 60}",
     {.grid = {.context = 4}, .context_method = CS_CONTEXT_ALL_TO_ALL},
     "/parallel/context: must divide the 6 heads that a device has of h.0.attn.attention (got 4): "
     "3 "
     "or 6 would"},
    {"tokens",
     "gpt",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"sequence\": 14}",
     {.grid.tensor = 4, .sequence_parallel = true},
     "/parallel/tensor: must divide the 14 tokens of embedding.wte with sequence_parallel (got 4): "
     "2 would"},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong); i++) {
        cs_net net;
        cs_error error;
        const cs_json_place root = {.file = "s.json"}, at = {.up = &root, .key = "parallel"};
        char expected[512];
        cs_split split = wrong[i].split;
        uint32_t *const sizes[] = {&split.grid.tensor,   &split.grid.space[0],
                                   &split.grid.space[1], &split.grid.space[2],
                                   &split.grid.context,  &split.grid.data,
                                   &split.grid.expert,   &split.grid.expert_tensor};
        for (size_t k = 0; k < ROWS(sizes); k++)
            *sizes[k] += *sizes[k] == 0; /* left out: 1 */
        cs_error_init(&error);
        make_zoo(wrong[i].name, wrong[i].parameters, &net);
        snprintf(expected, sizeof(expected), "s.json: %s", wrong[i].message);
        const cs_status status = cs_net_split_check(&net, &split, &at, &error);
        uint32_t at_proposal = 0, proposals = 0;
        cs_error_proposal proposal;
        while (cs_error_next_proposal(&error, &at_proposal, &proposal)) {
            if (!proposal.first)
                continue;
            cs_error_append(&error, proposals++ == 0 ? ": " : " or ");
            cs_error_append(&error, proposal.value);
        }
        cs_error_append(&error, proposals > 0 ? " would" : "");
        expect_error(wrong[i].row, CS_INVALID, expected, status, &error);
        cs_net_finish(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undivided),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_recomputed),
        cmocka_unit_test(test_recomputed_in_full),
        cmocka_unit_test(test_recomputed_up_to_a_view),
        cmocka_unit_test(test_recomputed_as_a_whole),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
