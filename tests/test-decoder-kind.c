/* The network "decoder", whose parts can be chosen, against a count of its own: parameters,
 * multiply-accumulates and kept bytes, over random choices. The count knows transformers, not the
 * network's operators. */
#include "sim/base/random.h"
#include "sim/model/net-model.h"
#include "sim/model/zoo/zoo.h"
#include "tests/expect.h"

#include <cjson/cJSON.h>
#include <stdio.h>

typedef struct choice {
    int64_t layers, hidden, heads, groups, head, tokens, words, inner;
    int64_t experts, top, expert_inner, shared_inner, dense, window;
    bool gate, layer_norms, learned, rotary, bias, tied, head_norms, sinks, router_bias;
    const char *activation, *pattern;
} choice;

static bool coin(gsl_rng *random)
{
    return gsl_rng_uniform_int(random, 2) == 1;
}

static int64_t from_to(gsl_rng *random, int64_t first, int64_t last)
{
    return first + (int64_t)gsl_rng_uniform_int(random, (unsigned long)(last - first + 1));
}

static choice draw(gsl_rng *random)
{
    static const char *const activations[] = {"swiglu", "geglu", "gelu", "squared_relu"};
    const unsigned long activation = gsl_rng_uniform_int(random, 4),
                        positions = gsl_rng_uniform_int(random, 3);
    const int64_t groups = from_to(random, 1, 3), shared = from_to(random, 0, 1);
    choice c = {.layers = from_to(random, 1, 4),
                .groups = groups,
                .heads = groups * from_to(random, 1, 3),
                .head = 2 * from_to(random, 2, 6),
                .tokens = from_to(random, 3, 20),
                .words = from_to(random, 5, 50),
                .inner = from_to(random, 1, 30),
                .gate = activation < 2,
                .layer_norms = coin(random),
                .learned = positions == 0,
                .rotary = positions == 1,
                .bias = coin(random),
                .tied = coin(random),
                .sinks = coin(random),
                .activation = activations[activation]};
    c.hidden = c.heads * from_to(random, 1, 5);
    c.head_norms = coin(random) && !c.layer_norms;
    c.window = coin(random) ? from_to(random, 1, 8) : 0;
    c.pattern = c.window > 0 ? "wf" : "";
    if (coin(random)) {
        c.experts = from_to(random, 2, 5);
        c.top = from_to(random, 1, c.experts);
        c.expert_inner = from_to(random, 1, 9);
        c.shared_inner = shared * from_to(random, 1, 9);
        c.dense = from_to(random, 0, c.layers);
        c.router_bias = coin(random);
    }
    return c;
}

static void build(const choice *c, cs_net *net)
{
    char text[1024];
    cs_error error;
    cs_error_init(&error);
    snprintf(
        text, sizeof(text),
        "{\"layers\": %d, \"hidden\": %d, \"heads\": %d, \"kv_heads\": %d, \"head\": %d, "
        "\"sequence\": %d, \"vocabulary\": %d, \"intermediate\": %d, \"activation\": \"%s\", "
        "\"norm\": \"%s\", \"positions\": \"%s\", \"bias\": %s, \"tied\": %s, "
        "\"head_norms\": %s, \"sinks\": %s, \"router_bias\": %s, \"window\": %d, "
        "\"experts\": %d, \"top_k\": %d, \"expert_intermediate\": %d, "
        "\"shared_intermediate\": %d, \"dense_layers\": %d%s%s%s}",
        (int)c->layers, (int)c->hidden, (int)c->heads, (int)c->groups, (int)c->head, (int)c->tokens,
        (int)c->words, (int)c->inner, c->activation, c->layer_norms ? "layernorm" : "rmsnorm",
        c->learned  ? "learned"
        : c->rotary ? "rotary"
                    : "none",
        c->bias ? "true" : "false", c->tied ? "true" : "false", c->head_norms ? "true" : "false",
        c->sinks ? "true" : "false", c->router_bias ? "true" : "false", (int)c->window,
        (int)c->experts, c->experts > 0 ? (int)c->top : 1,
        c->experts > 0 ? (int)c->expert_inner : 1, (int)c->shared_inner, (int)c->dense,
        *c->pattern ? ", \"pattern\": \"" : "", c->pattern, *c->pattern ? "\"" : "");
    cJSON *params = cJSON_Parse(text);
    assert_non_null(params);
    if (cs_zoo_build("decoder", NULL, params, &(cs_json_place){.file = "p"}, net, &error) != CS_OK)
        fail_msg("%s: %s", text, error.text);
    cJSON_Delete(params);
}

/* ---- parameters ---- */

/* A matrix, with a bias for each feature that it makes. */
static int64_t matrix(const choice *c, int64_t in, int64_t out)
{
    return in * out + (c->bias ? out : 0);
}

static int64_t mlp_parameters(const choice *c, int64_t inner)
{
    return (c->gate ? 2 : 1) * matrix(c, c->hidden, inner) + matrix(c, inner, c->hidden);
}

static int64_t norm_parameters(const choice *c)
{
    return c->layer_norms ? 2 * c->hidden : c->hidden;
}

static int64_t attention_parameters(const choice *c)
{
    const int64_t queries = c->heads * c->head, keys = c->groups * c->head;
    return matrix(c, c->hidden, queries) + 2 * matrix(c, c->hidden, keys) +
           matrix(c, queries, c->hidden) + (c->head_norms ? 2 * c->head : 0) +
           (c->sinks ? c->heads : 0);
}

static bool is_mixture(const choice *c, int64_t layer)
{
    return c->experts > 0 && layer >= c->dense;
}

static int64_t parameters_of(const choice *c)
{
    int64_t sum = c->words * c->hidden * (c->tied ? 1 : 2) + norm_parameters(c) +
                  (c->learned ? c->tokens * c->hidden : 0);
    for (int64_t l = 0; l < c->layers; l++) {
        sum += 2 * norm_parameters(c) + attention_parameters(c);
        if (!is_mixture(c, l)) {
            sum += mlp_parameters(c, c->inner);
            continue;
        }
        sum += c->experts * mlp_parameters(c, c->expert_inner) + c->hidden * c->experts +
               (c->router_bias ? c->experts : 0);
        sum += c->shared_inner > 0 ? mlp_parameters(c, c->shared_inner) : 0;
    }
    return sum;
}

/* ---- multiply-accumulates of a sample's forward ---- */

/* Pairs of a token and one that it attends to: itself and those before, within the window. */
static int64_t pairs(const choice *c, int64_t layer)
{
    int64_t sum = 0;
    const bool windowed = c->window > 0 && layer % 2 == 0;
    for (int64_t t = 0; t < c->tokens; t++)
        sum += windowed && t + 1 > c->window ? c->window : t + 1;
    return sum;
}

static int64_t macs_of(const choice *c)
{
    const int64_t matrices = c->gate ? 3 : 2;
    int64_t sum = c->tokens * c->hidden * c->words;
    for (int64_t l = 0; l < c->layers; l++) {
        sum += c->tokens * c->hidden * c->head * 2 * (c->heads + c->groups);
        sum += pairs(c, l) * c->heads * 2 * c->head;
        if (!is_mixture(c, l))
            sum += c->tokens * matrices * c->hidden * c->inner;
        else
            sum += c->tokens * c->hidden *
                   (c->experts + matrices * (c->top * c->expert_inner + c->shared_inner));
    }
    return sum;
}

static void counts_agree(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(16, "counts");
    assert_non_null(random);
    for (int i = 0; i < 400; i++) {
        const choice c = draw(random);
        char row[32];
        cs_net net;
        build(&c, &net);
        snprintf(row, sizeof(row), "case %d", i);
        expect_int(row, parameters_of(&c), cs_net_parameters(&net));
        expect_int(row, macs_of(&c), (int64_t)cs_net_macs(&net));
        cs_net_finish(&net);
    }
    gsl_rng_free(random);
}

/* ---- kept bytes, of models without experts ---- */

/* Bytes for `rows` rows: an RMS norm of PyTorch's operators saves its input, its normalised input,
 * and a float32 per row; a LayerNorm saves its input, and two float32 per row. */
static int64_t norm_kept(const choice *c, int64_t rows, int64_t features)
{
    return c->layer_norms ? 2 * rows * features + 8 * rows : 4 * rows * features + 4 * rows;
}

/* In 2 bytes an element. A norm and its result, which matrices read; queries, keys and values,
 * normalised by heads or not, their result and a float32 per row and head; the second norm and its
 * result; in the MLP the inputs of the activation, of the product with the gate, and of the last
 * matrix. Fused attention keeps no matrix of weights. */
static int64_t block_kept(const choice *c, int64_t rows)
{
    const int64_t queries = c->heads * c->head, keys = c->groups * c->head;
    int64_t kept = 2 * (norm_kept(c, rows, c->hidden) + 2 * rows * c->hidden);
    kept += 2 * rows * (2 * queries + 2 * keys) + 4 * rows * c->heads;
    if (c->head_norms)
        kept += norm_kept(c, rows * c->heads, c->head) + norm_kept(c, rows * c->groups, c->head);
    return kept + 2 * rows * c->inner * (c->gate ? 4 : 2);
}

/* Token numbers of 8 bytes; in front of the loss a norm, the last matrix's input, logarithms in
 * float32, and targets of 8 bytes. */
static int64_t kept_of(const choice *c, int64_t samples)
{
    const int64_t rows = samples * c->tokens;
    return 8 * rows + c->layers * block_kept(c, rows) + norm_kept(c, rows, c->hidden) +
           2 * rows * c->hidden + 4 * rows * c->words + 8 * rows;
}

static int64_t kept_by(const cs_net *net, uint32_t samples)
{
    cs_accelerator device;
    cs_net_chain chain;
    cs_error error;
    int64_t kept = 0;
    cs_error_init(&error);
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, &error), CS_OK);
    const cs_net_options how = {.batch_size = samples,
                                .granularity = CS_GRANULARITY_LAYER,
                                .precision = CS_PRECISION_BF16,
                                .device = &device,
                                .source = "test"};
    if (cs_net_chain_find(net, &how, &chain, &error) != CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t l = 0; l < chain.n_layers; l++)
        kept += chain.layers[l].kept_bytes;
    cs_net_chain_finish(&chain);
    cs_accelerator_finish(&device);
    return kept;
}

static void kept_agrees(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(17, "kept");
    assert_non_null(random);
    for (int i = 0; i < 200; i++) {
        choice c = draw(random);
        char row[32];
        cs_net net;
        c.experts = c.shared_inner = c.dense = 0;
        c.router_bias = c.learned = false;
        build(&c, &net);
        snprintf(row, sizeof(row), "case %d", i);
        expect_int(row, kept_of(&c, 3), kept_by(&net, 3));
        cs_net_finish(&net);
    }
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_agree),
        cmocka_unit_test(kept_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
