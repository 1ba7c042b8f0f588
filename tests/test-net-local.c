/* Networks of one place of a grid: exchanges, memory, weights and work against counts from definitions. */
#include "sim/base/random.h"
#include "sim/workload/net-local.h"
#include "sim/workload/net-model.h"
#include "sim/workload/op-cost.h"
#include "sim/workload/zoo/zoo.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWN = 400, AXES_KINDS = CS_N_AXES * (CS_EXCHANGE_BROADCAST + 1) };

static void make_zoo(const char *name, const char *parameters, cs_net *net)
{
    const cs_zoo_entry *entry;
    cs_error error;
    cs_json_place at = {.file = "test"};
    cJSON *json = cJSON_Parse(parameters);
    cs_error_init(&error);
    assert_non_null(json);
    if (cs_zoo_find(name, &entry, &error) != CS_OK ||
        cs_zoo_build(entry, json, &at, net, &error) != CS_OK)
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

/* With axes of size 1 the model is that of one device, bit for bit, and nothing is exchanged; samples
 * that are divided change nothing either. */
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

/* Korthikanti et al., 2022, equation 2, of a block with s tokens, b samples, h features, a heads, in 2
 * bytes: s b h (10 + 24 / t + 5 a s / (h t)); equation 4, with sequence parallelism:
 * s b h (34 + 5 a s / h) / t. Both leave out the mean and deviation per row that a layer norm keeps in
 * float32: 2 norms of 8 s b bytes, of which a place has those of its tokens. */
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

/* ---- drawn transformers ---- */

/* A transformer: an embedding, blocks of attention and of a multilayer perceptron, norms in front or
 * behind, a last matrix. */
typedef struct shape {
    uint32_t layers, hidden, heads, kv_heads, head, inner, tokens, vocabulary;
    bool fused, gated, bias, layer_norm, norm_behind, rotary, dropout, positions, tied;
} shape;

static cs_tensor add_norm(cs_net *net, const shape *s, const char *name, cs_tensor x)
{
    return s->layer_norm ? cs_net_layer_norm(net, name, x) : cs_net_rms_norm(net, name, x);
}

static cs_tensor add_attention(cs_net *net, const shape *s, cs_tensor x)
{
    const uint32_t q = s->heads * s->head, k = s->kv_heads * s->head;
    cs_tensor qkv[3];
    if (s->fused) {
        x = cs_net_linear(net, "qkv", x, &(cs_linear){.out = q + 2 * k, .bias = s->bias});
        qkv[0] = cs_net_features(net, "q", x, q);
        qkv[1] = cs_net_features(net, "k", x, k);
        qkv[2] = cs_net_features(net, "v", x, k);
    } else {
        qkv[0] = cs_net_linear(net, "q", x, &(cs_linear){.out = q, .bias = s->bias});
        qkv[1] = cs_net_linear(net, "k", x, &(cs_linear){.out = k, .bias = s->bias});
        qkv[2] = cs_net_linear(net, "v", x, &(cs_linear){.out = k, .bias = s->bias});
    }
    for (int i = 0; i < 2 && s->rotary; i++)
        qkv[i] = cs_net_rotary(net, i ? "k_rotary" : "q_rotary", qkv[i]);
    x = cs_net_attention(
        net, "attention", qkv,
        &(cs_attention){s->heads, s->kv_heads, CS_ATTENTION_FLASH, .causal = true});
    return cs_net_linear(net, "o", x, &(cs_linear){.out = s->hidden, .bias = s->bias});
}

static cs_tensor add_mlp(cs_net *net, const shape *s, cs_tensor x)
{
    const cs_linear inner = {.out = s->inner, .bias = s->bias};
    cs_tensor y = cs_net_linear(net, "in", x, &inner);
    if (s->gated)
        y = cs_net_mul(net, "mul", cs_net_silu(net, "act", y), cs_net_linear(net, "up", x, &inner));
    else
        y = cs_net_gelu(net, "act", y);
    return cs_net_linear(net, "out", y, &(cs_linear){.out = s->hidden, .bias = s->bias});
}

static cs_tensor add_branch(cs_net *net, const shape *s, const char *name, cs_tensor x,
                            cs_tensor (*branch)(cs_net *, const shape *, cs_tensor))
{
    const uint32_t mark = cs_net_enter(net, name);
    cs_tensor y = branch(net, s, s->norm_behind ? x : add_norm(net, s, "norm", x));
    y = cs_net_add(net, "add", x, cs_net_dropout(net, "dropout", y, s->dropout ? 0.1 : 0));
    y = s->norm_behind ? add_norm(net, s, "norm", y) : y;
    cs_net_leave(net, mark);
    return y;
}

static void make_transformer(const shape *s, cs_net *net)
{
    cs_error error;
    cs_error_init(&error);
    cs_net_begin(net, "drawn", &error);
    cs_net_block(net, "embedding");
    cs_tensor x =
        cs_net_embedding(net, "tokens", cs_net_token_ids(net, s->tokens), s->vocabulary, s->hidden);
    if (s->positions)
        x = cs_net_add_table(net, "positions", x, (int64_t)s->tokens * s->hidden);
    for (uint32_t i = 0; i < s->layers; i++) {
        cs_net_block(net, "block%u", i);
        x = add_branch(net, s, "attention", x, add_attention);
        x = add_branch(net, s, "mlp", x, add_mlp);
    }
    cs_net_block(net, "head");
    x = add_norm(net, s, "norm", x);
    x = cs_net_linear(net, "logits", x, &(cs_linear){.out = s->vocabulary, .tied = s->tied});
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

static uint32_t draw(gsl_rng *random, uint32_t from, uint32_t to)
{
    return from + (uint32_t)gsl_rng_uniform_int(random, to - from + 1);
}

static shape draw_shape(gsl_rng *random, uint32_t tensor, uint32_t context)
{
    shape s = {.layers = draw(random, 1, 3), .head = 4 * draw(random, 1, 3)};
    const uint32_t groups = draw(random, 1, 3);
    s.kv_heads = tensor * draw(random, 1, 2);
    s.heads = s.kv_heads * groups;
    s.hidden = 8 * draw(random, 1, 6);
    s.inner = tensor * draw(random, 3, 30);
    s.tokens = 2 * context * tensor * draw(random, 1, 6);
    s.vocabulary = draw(random, 50, 200);
    bool *const flags[] = {&s.fused,  &s.gated,   &s.bias,      &s.layer_norm, &s.norm_behind,
                           &s.rotary, &s.dropout, &s.positions, &s.tied};
    for (size_t i = 0; i < ROWS(flags); i++)
        *flags[i] = draw(random, 0, 1);
    return s;
}

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

/* Shoeybi et al., figure 4: of rows x hidden, in 2 bytes, one all-reduce forward and one backward per
 * attention and per multilayer perceptron; one forward behind the embedding, one backward in front of the
 * last matrix; three of a float32 per row in the loss. With sequence parallelism (Korthikanti et al.,
 * figure 5) an all-reduce is a reduce-scatter on the side of the second matrix and an all-gather on that
 * of the first, in both passes, and what a first matrix read is gathered once more in backward. */
static void expect_pairs(const shape *s, const cs_model *model, uint32_t batch, bool divided)
{
    const int64_t rows = (int64_t)batch * s->tokens, x = 2 * rows * s->hidden;
    moved embedding = {0}, block = {0}, head = {0};
    if (divided) {
        embedding.bytes[CS_EXCHANGE_REDUCE_SCATTER][0] = x;
        embedding.bytes[CS_EXCHANGE_ALL_GATHER][1] = x;
        block.bytes[CS_EXCHANGE_ALL_GATHER][0] = 2 * x;
        block.bytes[CS_EXCHANGE_REDUCE_SCATTER][0] = 2 * x;
        block.bytes[CS_EXCHANGE_ALL_GATHER][1] = 4 * x;
        block.bytes[CS_EXCHANGE_REDUCE_SCATTER][1] = 2 * x;
        head.bytes[CS_EXCHANGE_ALL_GATHER][0] = x;
        head.bytes[CS_EXCHANGE_ALL_GATHER][1] = x;
        head.bytes[CS_EXCHANGE_REDUCE_SCATTER][1] = x;
    } else {
        embedding.bytes[CS_EXCHANGE_ALL_REDUCE][0] = x;
        block.bytes[CS_EXCHANGE_ALL_REDUCE][0] = 2 * x;
        block.bytes[CS_EXCHANGE_ALL_REDUCE][1] = 2 * x;
        head.bytes[CS_EXCHANGE_ALL_REDUCE][1] = x;
    }
    head.bytes[CS_EXCHANGE_ALL_REDUCE][0] = 3 * 4 * rows;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const moved got = moved_of(&model->layers[i], CS_AXES_TENSOR);
        const bool first = i == 0, last = i + 1 == model->n_layers;
        expect_moved(model->layers[i].name, first ? &embedding : last ? &head : &block, &got);
    }
}

/* Parameters that every place holds: norms, biases behind a sum, positions. */
static int64_t replicated(const shape *s)
{
    const int64_t norms = (2 * (int64_t)s->layers + 1) * s->hidden * (s->layer_norm ? 2 : 1);
    const int64_t biases = s->bias ? 2 * (int64_t)s->layers * s->hidden : 0;
    return norms + biases + (s->positions ? (int64_t)s->tokens * s->hidden : 0);
}

/* Over all places: each has its part of the weights and of the multiplications. */
static void expect_sums(const shape *s, const cs_net *net, const cs_split *split)
{
    const uint32_t places = cs_grid_places(&split->grid);
    int64_t parameters = 0, shared = 0;
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
        cs_net_local_finish(&local);
    }
    const int64_t alike = replicated(s);
    expect_int("parameters", cs_net_parameters(net) + (places - 1) * alike, parameters);
    expect_int("shared", split->sequence_parallel ? places * alike : 0, shared);
    expect_double("products", cs_net_macs(net), macs);
}

/* The pieces of a layer are all of its operators' work, to the picosecond that each piece is rounded. */
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
        assert_true(layer->n_pieces > 0);
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

static void test_pairs(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "transformers");
    cs_accelerator device;
    assert_non_null(random);
    load_device(&device);
    for (int i = 0; i < DRAWN; i++) {
        cs_split split = cs_split_none();
        cs_net net;
        split.grid.tensor = draw(random, 2, 8);
        split.sequence_parallel = i % 2;
        const shape s = draw_shape(random, split.grid.tensor, 1);
        const uint32_t batch = draw(random, 1, 3);
        make_transformer(&s, &net);
        const cs_net_options options = options_of(&device, &split, batch);
        cs_model model = model_of(&net, &options);
        expect_pairs(&s, &model, batch, split.sequence_parallel);
        expect_sums(&s, &net, &split);
        expect_pieces(&net, &options, &model);
        cs_model_finish(&model);
        cs_net_finish(&net);
    }
    cs_accelerator_finish(&device);
    gsl_rng_free(random);
}

/* ---- what does not divide ---- */

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
    {"features",
     "llama",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"kv_heads\": 12, \"intermediate\": 44}",
     {.grid.tensor = 3},
     "/parallel/tensor: must divide the 44 features of layers.0.mlp.gate_proj (got 3): 2 or 4 "
     "would"},
    {"tokens",
     "gpt",
     "{\"layers\": 1, \"hidden\": 96, \"heads\": 12, \"sequence\": 14}",
     {.grid.tensor = 4, .sequence_parallel = true},
     "/parallel/tensor: must divide the 14 tokens of embedding.wte with sequence_parallel (got 4): "
     "2 or 7 would"},
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
        split.grid = cs_grid_single();
        split.grid.tensor = wrong[i].split.grid.tensor;
        cs_error_init(&error);
        make_zoo(wrong[i].name, wrong[i].parameters, &net);
        snprintf(expected, sizeof(expected), "s.json: %s", wrong[i].message);
        const cs_status status = cs_net_split_check(&net, &split, &at, &error);
        expect_error(wrong[i].row, CS_INVALID, expected, status, &error);
        cs_net_finish(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undivided),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
