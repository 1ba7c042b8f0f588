/* Saved tensors of fused kernels, by hand; tapes compared with the model: after a forward they
 * keep as many bytes as the layers do, and after a backward nothing. */
#include "sim/model/net-model.h"
#include "sim/model/zoo/zoo.h"

#include "tests/expect.h"

#include <stdlib.h>

static cs_error error;

static cs_net_options options(uint32_t fused)
{
    static cs_accelerator none;
    cs_accelerator_none(&none);
    return (cs_net_options){.batch_size = 1,
                            .granularity = CS_GRANULARITY_BLOCK,
                            .precision = CS_PRECISION_BF16,
                            .kept = {.fused = fused},
                            .tapes = true,
                            .device = &none,
                            .source = "test"};
}

/* ---- by hand ---- */

/* 2 tokens of 4 features, a norm, a gated MLP of 6 features, 4 classes. */
static void build(cs_net *net)
{
    cs_error_init(&error);
    cs_net_begin(net, "gated", &error);
    cs_net_block(net, "all");
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 2), 8, 4);
    x = cs_net_rms_norm(net, "norm", x);
    cs_tensor gate = cs_net_linear(net, "gate", x, &(cs_linear){.out = 6});
    cs_tensor up = cs_net_linear(net, "up", x, &(cs_linear){.out = 6});
    x = cs_net_mul(net, "mul", cs_net_silu(net, "silu", gate), up);
    x = cs_net_linear(net, "down", x, &(cs_linear){.out = 4});
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

/* 2 bytes per element: ids 2 x 8; the embedding's rows 16, which the norm reads; 2 inverse roots
 * of 4 bytes, and normalised rows 16; the norm's result 16; gate, its activation and up 24 each;
 * their product 24; 8 logarithms of 4 bytes and 2 targets of 8. Fused, the norm recomputes the
 * normalised rows, the gated product recomputes the activation, and the loss keeps 8 logits of 2
 * bytes instead of the logarithms. */
static void keeps_less(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint32_t fused;
        int64_t kept;
    } rows[] = {
        {"none", 0, 16 + 16 + (8 + 16) + 16 + 3 * 24 + 24 + (32 + 16)},
        {"norm", 1u << CS_FUSED_NORM, 216 - 16},
        {"swiglu", 1u << CS_FUSED_SWIGLU, 216 - 24},
        {"cross_entropy", 1u << CS_FUSED_CROSS_ENTROPY, 216 - 32 + 16},
        {"all", 7, 216 - 16 - 24 - 32 + 16},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        cs_net_chain chain = {0};
        const cs_net_options how = options(rows[i].fused);
        build(&net);
        assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
        expect_int(rows[i].name, rows[i].kept, chain.kept_bytes);
        cs_net_chain_finish(&chain);
        cs_net_finish(&net);
    }
}

/* TransformerEngine's placeholders are as large as the matrices: gate and up 4 x 6, down 6 x 4, of
 * 2 bytes. The embedding has none. */
static void has_placeholders(void **state)
{
    (void)state;
    cs_net net = {0};
    cs_model model = {0};
    cs_net_options how = options(0);
    how.kept.weight_gradients = CS_WEIGHT_GRADIENTS_PLACEHOLDERS;
    build(&net);
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    expect_int("placeholders", 3, model.layers[0].n_shared);
    for (uint32_t i = 0; i < model.layers[0].n_shared; i++)
        expect_int(model.layers[0].shared[i].name, 48, model.layers[0].shared[i].bytes);
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Matrices of 2 bytes an element: the embedding 8 x 4, a norm's 4 scales, gate and up 4 x 6, down
 * 6 x 4. Gate and up read the same; fused they are one. */
static void has_one_matrix(void **state)
{
    (void)state;
    static const int64_t apart[] = {64, 8, 48, 48, 48}, one[] = {64, 8, 96, 48};
    for (int fused = 0; fused < 2; fused++) {
        cs_net net = {0};
        cs_model model = {0};
        const cs_net_options how = options(fused ? 1u << CS_FUSED_LINEAR : 0);
        const int64_t *expected = fused ? one : apart;
        build(&net);
        assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
        expect_int("weights", fused ? 4 : 5, model.layers[0].n_parameters);
        for (uint32_t i = 0; i < model.layers[0].n_parameters; i++)
            expect_int("bytes", expected[i], model.layers[0].parameters[i]);
        cs_model_finish(&model);
        cs_net_finish(&net);
    }
}

/* 2 tokens of 4 features, one of two experts of 6 features each, with or without a gate. */
static void build_mixture(cs_net *net, bool gated)
{
    const cs_grouped_linear inner = {6, 2, 1, false}, outer = {4, 2, 1, false};
    cs_error_init(&error);
    cs_net_begin(net, "mixture", &error);
    cs_net_block(net, "all");
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 2), 8, 4);
    const cs_linear gate = {.out = 2, .wide = true};
    const cs_tensor routing = cs_net_top_k(net, "top_k", cs_net_linear(net, "router", x, &gate), 1);
    const cs_tensor rows = cs_net_dispatch(net, "dispatch", x, routing, 0);
    cs_tensor y = cs_net_grouped_linear(net, "up", rows, &inner);
    if (gated)
        y = cs_net_mul(net, "mul",
                       cs_net_silu(net, "silu", cs_net_grouped_linear(net, "gate", rows, &inner)),
                       y);
    else
        y = cs_net_gelu(net, "gelu", y);
    y = cs_net_grouped_linear(net, "down", y, &outer);
    cs_net_cross_entropy(net, "loss", cs_net_combine(net, "combine", y, routing));
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

/* Weights that multiply within the experts: what these make, 2 rows of 4 features of 2 bytes, is
 * not kept, 16 bytes less; the weighted features, 2 x 6 x 2 bytes, are kept besides the features
 * themselves, 24 more, unless a fused gate computes those again. */
static void weighs_features(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool gated;
        uint32_t fused;
        int64_t more;
    } rows[] = {
        {"gelu", false, 0, 24 - 16},
        {"gate", true, 0, 24 - 16},
        {"fused gate", true, 1u << CS_FUSED_SWIGLU, -16},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t kept[2];
        for (int features = 0; features < 2; features++) {
            cs_net net = {0};
            cs_net_chain chain = {0};
            cs_net_options how = options(rows[i].fused);
            how.kept.weighted_features = features > 0;
            build_mixture(&net, rows[i].gated);
            assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
            kept[features] = chain.kept_bytes;
            cs_net_chain_finish(&chain);
            cs_net_finish(&net);
        }
        expect_int(rows[i].name, rows[i].more, kept[1] - kept[0]);
    }
}

/* Attention over 3 tokens of 4 features, and its loss over 5 classes. */
static void build_attention(cs_net *net, cs_attention_kernel kernel)
{
    const cs_attention attention = {.heads = 2, .kv_heads = 2, .kernel = kernel};
    cs_error_init(&error);
    cs_net_begin(net, "attention", &error);
    cs_net_block(net, "all");
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 3), 8, 4);
    x = cs_net_attention(net, "attention", (const cs_tensor[]){x, x, x}, &attention);
    x = cs_net_linear(net, "head", x, &(cs_linear){.out = 5, .wide = true});
    cs_net_cross_entropy(net, "loss", x);
    assert_int_equal(cs_net_end(net), CS_OK);
}

/* 2 heads of a batch of 2 are 4 blocks, which 9 multiprocessors take in 3 waves: 3 sums of 2
 * sequences of 3 x 4 features of 4 bytes. Computed by math there are none. */
static void sums_queries(void **state)
{
    (void)state;
    static const struct {
        cs_attention_kernel kernel;
        uint32_t multiprocessors;
        int64_t bytes;
    } rows[] = {
        {CS_ATTENTION_FLASH, 9, 3LL * 2 * 3 * 4 * 4},
        {CS_ATTENTION_FLASH, 8, 2LL * 2 * 3 * 4 * 4},
        {CS_ATTENTION_FLASH, 0, 0},
        {CS_ATTENTION_MATH, 9, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        const cs_kept_rules rules = {.deterministic_multiprocessors = rows[i].multiprocessors};
        build_attention(&net, rows[i].kernel);
        for (uint32_t p = 0; p < net.n_ops; p++)
            expect_int(net.ops[p].name, net.ops[p].kind == CS_OP_ATTENTION ? rows[i].bytes : 0,
                       cs_kept_beside_backward(&net, &net.ops[p], &rules, 2));
        cs_net_finish(&net);
    }
}

/* In two orders of tokens the result, 3 x 4 features of 2 bytes for each sequence, is kept once
 * more; of one sequence there is one order, and attention by math has none of its own. */
static void keeps_two_orders(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_attention_kernel kernel;
        uint32_t batch;
        int64_t more;
    } rows[] = {
        {"one sequence", CS_ATTENTION_FLASH, 1, 0},
        {"three", CS_ATTENTION_FLASH, 3, 3 * 3 * 4 * 2},
        {"three, math", CS_ATTENTION_MATH, 3, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t kept[2];
        for (int copies = 0; copies < 2; copies++) {
            cs_net net = {0};
            cs_net_chain chain = {0};
            cs_net_options how = options(0);
            how.batch_size = rows[i].batch;
            how.kept.attention_copy = copies > 0;
            build_attention(&net, rows[i].kernel);
            assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
            kept[copies] = chain.kept_bytes;
            cs_net_chain_finish(&chain);
            cs_net_finish(&net);
        }
        expect_int(rows[i].name, rows[i].more, kept[1] - kept[0]);
    }
}

/* Keys and values, 3 x 4 features of 2 bytes each for each sequence, are kept in two places. */
static void keeps_copies_of_keys(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_attention_kernel kernel;
        uint32_t batch;
        int64_t more;
    } rows[] = {
        {"one sequence", CS_ATTENTION_FLASH, 1, 2 * 3 * 4 * 2},
        {"three", CS_ATTENTION_FLASH, 3, 3 * 2 * 3 * 4 * 2},
        {"math", CS_ATTENTION_MATH, 3, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t kept[2];
        for (int copies = 0; copies < 2; copies++) {
            cs_net net = {0};
            cs_net_chain chain = {0};
            cs_net_options how = options(0);
            how.batch_size = rows[i].batch;
            how.kept.keys_copied = copies > 0;
            build_attention(&net, rows[i].kernel);
            assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
            kept[copies] = chain.kept_bytes;
            cs_net_chain_finish(&chain);
            cs_net_finish(&net);
        }
        expect_int(rows[i].name, rows[i].more, kept[1] - kept[0]);
    }
}

/* For 2 sequences x 3 tokens x 5 classes, two copies in float32 are saved for the backward; for
 * logits in float32, one. */
static void keep_shifted_logits(cs_precision precision, int copies)
{
    int64_t kept[2];
    for (int shifted = 0; shifted < 2; shifted++) {
        cs_net net = {0};
        cs_net_chain chain = {0};
        cs_net_options how = options(0);
        how.batch_size = 2;
        how.precision = precision;
        how.kept.loss = shifted ? CS_LOSS_SHIFTED : CS_LOSS_EAGER;
        build_attention(&net, CS_ATTENTION_FLASH);
        assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
        kept[shifted] = chain.kept_bytes;
        cs_net_chain_finish(&chain);
        cs_net_finish(&net);
    }
    expect_int("copies", copies * (2 * 3 * 5 * 4), kept[1] - kept[0]);
}

static void keeps_shifted_logits(void **state)
{
    (void)state;
    keep_shifted_logits(CS_PRECISION_BF16, 2);
    keep_shifted_logits(CS_PRECISION_FP32, 1);
}

/* Gradients of weights that stay until the backward ends: all of 2 bytes, and nothing else. */
static void keeps_gradients_of_a_pass(void **state)
{
    (void)state;
    cs_net net = {0};
    cs_model model = {0};
    cs_net_options how = options(0);
    int64_t left = 0, weights = 0;
    how.kept.weight_gradients = CS_WEIGHT_GRADIENTS_APART;
    how.kept.pass_gradients = true;
    build_attention(&net, CS_ATTENTION_FLASH);
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    for (uint32_t l = 0; l < model.n_layers; l++) {
        const cs_layer *layer = &model.layers[l];
        weights += layer->weight_bytes;
        for (uint32_t i = 0; i < layer->n_backward_tape; i++) {
            const cs_tape_event *taken = &layer->backward_tape[i];
            bool given = taken->what != CS_TAPE_TAKE;
            for (uint32_t k = i; !given && k < layer->n_backward_tape; k++)
                given = layer->backward_tape[k].what == CS_TAPE_GIVE &&
                        layer->backward_tape[k].memory == taken->memory;
            left += given ? 0 : taken->bytes;
        }
    }
    expect_int("gradients that stay", weights, left);
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* Bytes that masks of padding add to the saved tensors. */
static int64_t more_kept(const cs_net *net, cs_net_options how)
{
    int64_t kept[2];
    for (int on = 0; on < 2; on++) {
        cs_net_chain chain = {0};
        how.kept.padding_masks = on > 0;
        assert_int_equal(cs_net_chain_find(net, &how, &chain, &error), CS_OK);
        kept[on] = chain.kept_bytes;
        cs_net_chain_finish(&chain);
    }
    return kept[1] - kept[0];
}

/* Attention over 3 tokens of 4 features, of one product for queries, keys and values each. */
static void build_products(cs_net *net, const cs_attention *attention)
{
    cs_error_init(&error);
    cs_net_begin(net, "products", &error);
    cs_net_block(net, "all");
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 3), 8, 4);
    const cs_tensor qkv[] = {cs_net_linear(net, "q", x, &(cs_linear){.out = 4}),
                             cs_net_linear(net, "k", x, &(cs_linear){.out = 4}),
                             cs_net_linear(net, "v", x, &(cs_linear){.out = 4})};
    x = cs_net_attention(net, "attention", qkv, attention);
    cs_net_cross_entropy(net, "loss", cs_net_linear(net, "head", x, &(cs_linear){.out = 5}));
    assert_int_equal(cs_net_end(net), CS_OK);
}

/* A byte for each of 3 x 3 pairs of tokens of a sequence, for both heads together. */
static void keeps_masks_of_padding(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_attention attention;
        uint32_t batch;
        int64_t more;
    } rows[] = {
        {"math", {2, 2, CS_ATTENTION_MATH, .padded = true}, 1, 3 * 3},
        {"of four sequences", {2, 2, CS_ATTENTION_MATH, .padded = true}, 4, 4 * 3 * 3},
        {"without padding", {2, 2, CS_ATTENTION_MATH}, 4, 0},
        {"fused", {2, 2, CS_ATTENTION_FLASH, .padded = true}, 4, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        cs_net_options how = options(0);
        how.batch_size = rows[i].batch;
        build_products(&net, &rows[i].attention);
        expect_int(rows[i].name, rows[i].more, more_kept(&net, how));
        cs_net_finish(&net);
    }
}

/* Logits: 2 sequences x 3 tokens x 5 classes; in float32 4 bytes each. Inputs: 7 bytes a
 * sequence. */
static void holds_beside_loss(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_kept_rules rules;
        int64_t bytes;
    } rows[] = {
        {"in place", {.loss = CS_LOSS_IN_PLACE}, 0},
        {"copied", {.loss = CS_LOSS_COPIED}, 2 * 3 * 5 * 4},
        {"inputs", {.input_bytes = 7}, 2 * 7},
        {"both", {.loss = CS_LOSS_COPIED, .input_bytes = 7}, 2 * (3 * 5 * 4 + 7)},
        {"parallel", {.loss = CS_LOSS_PARALLEL}, 2 * 2 * 3 * 5 * 4},
        {"shifted", {.loss = CS_LOSS_SHIFTED}, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        build_attention(&net, CS_ATTENTION_FLASH);
        for (uint32_t p = 0; p < net.n_ops; p++)
            expect_int(
                rows[i].name, net.ops[p].kind == CS_OP_CROSS_ENTROPY ? rows[i].bytes : 0,
                cs_kept_beside_loss(&net, &net.ops[p], &rows[i].rules, 2, CS_PRECISION_BF16));
        cs_net_finish(&net);
    }
}

/* Backward, with everything in float32: the gradient of the logarithms, the gradient of the logits
 * before its cast, and, for a parallel loss, a third tensor of that size. */
static void holds_beside_gradients(void **state)
{
    (void)state;
    enum { LOGITS = 2 * 3 * 5 * 4 };
    static const struct {
        cs_loss_steps loss;
        int64_t step, beside;
    } rows[] = {
        {CS_LOSS_IN_PLACE, 0, 0},     {CS_LOSS_COPIED, 0, 0},
        {CS_LOSS_EAGER, LOGITS, 0},   {CS_LOSS_PARALLEL, LOGITS, LOGITS},
        {CS_LOSS_SHIFTED, LOGITS, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        const cs_kept_rules rules = {.loss = rows[i].loss};
        build_attention(&net, CS_ATTENTION_FLASH);
        const cs_op *loss = &net.ops[net.n_ops - 1];
        expect_int("a step", rows[i].step, cs_kept_loss_step(&net, loss, &rules, 2));
        expect_int("besides it", rows[i].beside, cs_kept_beside_backward(&net, loss, &rules, 2));
        cs_net_finish(&net);
    }
}

/* ---- tapes ---- */

enum { MOST = 1 << 20 };

typedef struct memory {
    int64_t bytes; /* 0: it is not there */
    uint32_t keeps;
} memory;

static void play(const char *name, memory *all, const cs_tape_event *events, uint32_t n,
                 bool backward)
{
    for (uint32_t i = 0; i < n; i++) {
        memory *at = &all[events[i].memory];
        assert_true(events[i].memory < MOST);
        switch (events[i].what) {
        case CS_TAPE_TAKE:
        case CS_TAPE_READ:
            at->bytes = events[i].bytes;
            break;
        case CS_TAPE_KEEP:
            if (at->bytes == 0)
                fail_msg("%s: keeps what is not there", name);
            at->keeps++;
            break;
        case CS_TAPE_GIVE:
            at->keeps -= backward && at->keeps > 0;
            if (at->keeps == 0)
                at->bytes = 0;
            break;
        default:
            fail_msg("%s: no such event", name);
        }
    }
}

static int64_t sum(const memory *all, bool kept)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < MOST; i++)
        bytes += !kept || all[i].keeps > 0 ? all[i].bytes : 0;
    return bytes;
}

static void check_tapes(const char *name, const cs_net *net, uint32_t fused, memory *all)
{
    cs_net_chain chain = {0};
    cs_model model = {0};
    const cs_net_options how = options(fused);
    assert_int_equal(cs_net_chain_find(net, &how, &chain, &error), CS_OK);
    assert_int_equal(cs_net_model(net, &how, &model, &error), CS_OK);
    memset(all, 0, MOST * sizeof(*all));
    for (uint32_t l = 0; l < model.n_layers; l++)
        play(name, all, model.layers[l].forward_tape, model.layers[l].n_forward_tape, false);
    expect_int(name, chain.kept_bytes, sum(all, true));
    for (uint32_t l = model.n_layers; l-- > 0;)
        play(name, all, model.layers[l].backward_tape, model.layers[l].n_backward_tape, true);
    expect_int(name, 0, sum(all, true));
    cs_net_chain_finish(&chain);
    cs_model_finish(&model);
}

static void keep_what_layers_do(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt",         "llama", "bert",     "mixtral",
                                        "deepseek_v3", "t5",    "resnet50", "vgg16"};
    memory *all = calloc(MOST, sizeof(*all));
    const cs_json_place place = {.file = "test"};
    assert_non_null(all);
    cs_error_init(&error);
    for (size_t i = 0; i < ROWS(names); i++) {
        cs_net net = {0};
        assert_int_equal(cs_zoo_build(names[i], NULL, NULL, &place, &net, &error), CS_OK);
        check_tapes(names[i], &net, 0, all);
        check_tapes(names[i], &net, 7, all);
        cs_net_finish(&net);
    }
    free(all);
}

/* Counts the tensors of this size that a layer's forward allocates. */
static uint32_t count_takes(const cs_layer *layer, int64_t bytes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < layer->n_forward_tape; i++)
        n += layer->forward_tape[i].what == CS_TAPE_TAKE && layer->forward_tape[i].bytes == bytes;
    return n;
}

/* 2 sequences with 2 bytes per element: queries, keys and values are 2 x 3 x 4 elements, 48 bytes
 * each; where they are one product and attention by math reads them, a tensor of 144. So are the
 * embedding's rows and the attention's result, 48 each. By math, 2 heads have weights of 2 x 2 x 3
 * x 3 elements, 72 bytes: a workspace, the weights, and with dropout the weights after it, whose
 * mask has 36; the mask of padding has 18. A fused kernel keeps a logarithm of 4 bytes for each
 * head and token, 48 together. */
static void takes_tensors_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_attention attention;
        uint32_t fused, of_48, of_144, of_72, of_36, of_18;
    } rows[] = {
        {"three products", {2, 2, CS_ATTENTION_MATH}, 0, 5, 0, 2, 0, 0},
        {"one", {2, 2, CS_ATTENTION_MATH}, 1u << CS_FUSED_LINEAR, 2, 1, 2, 0, 0},
        {"dropout",
         {2, 2, CS_ATTENTION_MATH, .dropout = 0.1},
         1u << CS_FUSED_LINEAR,
         2,
         1,
         3,
         1,
         0},
        {"padding",
         {2, 2, CS_ATTENTION_MATH, .dropout = 0.1, .padded = true},
         1u << CS_FUSED_LINEAR,
         2,
         1,
         3,
         1,
         1},
        {"fused attention",
         {2, 2, CS_ATTENTION_FLASH, .padded = true},
         1u << CS_FUSED_LINEAR,
         6,
         0,
         0,
         0,
         0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        cs_model model = {0};
        cs_net_options how = options(rows[i].fused);
        how.batch_size = 2;
        how.kept.padding_masks = true;
        build_products(&net, &rows[i].attention);
        assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
        expect_int(rows[i].name, rows[i].of_48, count_takes(&model.layers[0], 48));
        expect_int(rows[i].name, rows[i].of_144, count_takes(&model.layers[0], 144));
        expect_int(rows[i].name, rows[i].of_72, count_takes(&model.layers[0], 72));
        expect_int(rows[i].name, rows[i].of_36, count_takes(&model.layers[0], 36));
        expect_int(rows[i].name, rows[i].of_18, count_takes(&model.layers[0], 18));
        cs_model_finish(&model);
        cs_net_finish(&net);
    }
}

/* The gated network with a fused loss keeps 200 bytes (keeps_less). The loss's backward frees
 * the targets, 2 x 8 bytes; the gradient of the logits takes the logits' 16, which the previous
 * product then reads, while it computes the gradient of its input, 2 x 6 x 2 bytes. */
static void keeps_logits_for_their_gradient(void **state)
{
    (void)state;
    cs_net net = {0};
    cs_model model = {0};
    const cs_net_options how = options(1u << CS_FUSED_CROSS_ENTROPY);
    memory *all = calloc(MOST, sizeof(*all));
    assert_non_null(all);
    build(&net);
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    const cs_layer *layer = &model.layers[0];
    play("forward", all, layer->forward_tape, layer->n_forward_tape, false);
    for (uint32_t i = 0; i < MOST; i++) /* tensors that are not saved are freed after a forward */
        all[i].bytes = all[i].keeps > 0 ? all[i].bytes : 0;
    expect_int("after the forward", 200, sum(all, false));
    uint32_t i = 0;
    while (layer->backward_tape[i].what != CS_TAPE_TAKE)
        play("loss", all, &layer->backward_tape[i++], 1, true);
    expect_int("the gradient of down's input", 24, layer->backward_tape[i].bytes);
    play("down", all, &layer->backward_tape[i], 1, true);
    expect_int("down", 200 - 16 + 24, sum(all, false));
    cs_model_finish(&model);
    cs_net_finish(&net);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_less),
        cmocka_unit_test(has_placeholders),
        cmocka_unit_test(has_one_matrix),
        cmocka_unit_test(weighs_features),
        cmocka_unit_test(sums_queries),
        cmocka_unit_test(keeps_two_orders),
        cmocka_unit_test(keeps_copies_of_keys),
        cmocka_unit_test(keeps_shifted_logits),
        cmocka_unit_test(keeps_gradients_of_a_pass),
        cmocka_unit_test(holds_beside_loss),
        cmocka_unit_test(holds_beside_gradients),
        cmocka_unit_test(keeps_masks_of_padding),
        cmocka_unit_test(takes_tensors_apart),
        cmocka_unit_test(keep_what_layers_do),
        cmocka_unit_test(keeps_logits_for_their_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
