/* Mixtures of experts, latent attention, windows, sinks and state spaces: shapes, costs and memory
 * by hand. */
#include "sim/model/backward-memory.h"
#include "sim/model/net-model.h"
#include "sim/model/zoo/decoder.h"
#include "sim/model/zoo/zoo.h"

#include "tests/expect.h"

static cs_error error;

static void begin(cs_net *net)
{
    cs_error_init(&error);
    cs_net_begin(net, "n", &error);
}

static void must_end(cs_net *net)
{
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

static cs_op_cost cost_of(const cs_net *net, const char *name, uint32_t batch)
{
    cs_op_cost cost = {0};
    bool found = false;
    for (uint32_t p = 0; p < net->n_ops; p++) {
        if (strcmp(net->ops[p].name + strlen("n."), name) != 0)
            continue;
        cs_op_cost_of(net, &net->ops[p], batch, CS_PRECISION_BF16, &cost);
        found = true;
    }
    if (!found)
        fail_msg("unknown operator %s", name);
    return cost;
}

static void expect_pass(const char *row, double flop, double bytes, uint32_t launches,
                        const cs_pass_cost *got)
{
    expect_double(row, flop, got->flop);
    expect_double(row, bytes, got->bytes);
    expect_int(row, launches, got->launches);
}

static cs_net_chain must_chain(const cs_net *net, cs_granularity granularity)
{
    cs_accelerator none;
    cs_net_chain chain;
    cs_accelerator_none(&none);
    const cs_net_options how = {.batch_size = 1,
                                .granularity = granularity,
                                .device = &none,
                                .source = "test",
                                .precision = CS_PRECISION_BF16};
    if (cs_net_chain_find(net, &how, &chain, &error) != CS_OK)
        fail_msg("%s", error.text);
    return chain;
}

/* ---- a mixture of experts ---- */

/* 4 tokens of 6 features go to 2 of 3 experts of 5 features each. The embedding is trained, so a
 * gradient of the tokens is required. */
static void build_mixture(cs_net *net, double capacity)
{
    begin(net);
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 4), 10, 6);
    cs_tensor logits = cs_net_linear(net, "router", x, &(cs_linear){.out = 3});
    cs_tensor routing = cs_net_top_k(net, "top_k", logits, 2);
    cs_tensor rows = cs_net_dispatch(net, "dispatch", x, routing, capacity);
    rows = cs_net_grouped_linear(net, "up", rows, &(cs_grouped_linear){5, 3, 2, true});
    rows = cs_net_grouped_linear(net, "down", rows, &(cs_grouped_linear){6, 3, 2, false});
    x = cs_net_add(net, "add", x, cs_net_combine(net, "combine", rows, routing));
    cs_net_squared_error(net, "loss", x);
    must_end(net);
}

/* Batch 7 in bf16 (2 bytes): 28 tokens, 84 logits, 56 routed rows.
 *   top_k     softmax 5 and selection 1 flop a logit, normalisation 2 per chosen: 504 + 112. Bytes:
 *             logits 168, probabilities written and read in float32 2 * 336, 56 chosen of 2 and
 *             their numbers of 8: 560. Backward 4 per logit, 2 per chosen; probabilities, the
 *             logits' gradient, chosen: 336 + 168 + 560. Kept: probabilities 336 and numbers 448.
 *   dispatch  tokens read 28 * 6 * 2 = 336, rows written 672, numbers 3 times 448; backward the
 *             rows
 *             are added, 336 additions, numbers once. x is read by router, dispatch and add: the
 *             gradient of add, the last, comes first, and the other two are added: 168
 *             additions, 3 times
 *             336 bytes, a kernel.
 *   up        56 rows by 6 x 5: 1680 multiply-accumulates; bytes of rows 672, of results 560, of
 *             all
 *             3 matrices 180, and biases 30 forward; the biases' gradient reads the results' 280.
 *   combine   336 elements of rows: 2 flop each forward, 3 backward; bytes rows 672, tokens 336, 56
 *             weights 112, numbers 448; backward the rows twice, the weights twice. */
static void test_costs(void **state)
{
    (void)state;
    cs_net net;
    build_mixture(&net, 0);
    cs_op_cost c = cost_of(&net, "top_k", 7);
    expect_pass("top_k", 504 + 112, 168 + 2 * 336 + 560, 2, &c.forward);
    expect_pass("top_k, backward", 336 + 112, 336 + 168 + 560, 2, &c.backward_input);
    expect_int("top_k keeps", 336 + 448, c.extra_kept_bytes);
    assert_false(c.keeps_input || c.keeps_output);
    c = cost_of(&net, "dispatch", 7);
    expect_pass("dispatch", 0, 336 + 672 + 3 * 448, 2, &c.forward);
    expect_pass("dispatch, backward", 336 + 168, 336 + 672 + 448 + 3 * 336, 2, &c.backward_input);
    expect_pass("dispatch, of it sums", 168, 3 * 336, 1, &c.accumulate);
    expect_int("dispatch keeps", 448, c.extra_kept_bytes);
    assert_false(c.keeps_input || c.keeps_output);
    c = cost_of(&net, "up", 7);
    expect_double("up", 1680, c.macs);
    expect_pass("up", 3360, 672 + 560 + 180 + 30, 1, &c.forward);
    expect_pass("up, input", 3360, 672 + 560 + 180, 1, &c.backward_input);
    expect_pass("up, weights", 3360 + 280, 672 + 560 + 180 + 560, 2, &c.backward_weight);
    expect_int("up, parameters", 90 + 15, c.weights + c.biases);
    assert_true(c.keeps_input);
    c = cost_of(&net, "combine", 7);
    expect_pass("combine", 672, 672 + 336 + 112 + 448, 1, &c.forward);
    expect_pass("combine, backward", 1008, 2 * 672 + 336 + 2 * 112 + 448, 1, &c.backward_input);
    assert_true(c.keeps_input);
    cs_net_finish(&net);
}

/* Rows that leave the dispatch: 8 routed, of 3 experts; a capacity of c gives each ceil(8 c /
 * 3). */
static void test_capacity(void **state)
{
    (void)state;
    static const struct {
        double capacity;
        uint32_t rows;
    } cases[] = {{0, 8}, {0.5, 3 * 2}, {1, 3 * 3}, {1.25, 3 * 4}, {2, 3 * 6}};
    for (size_t i = 0; i < ROWS(cases); i++) {
        cs_net net;
        build_mixture(&net, cases[i].capacity);
        char row[32];
        snprintf(row, sizeof(row), "capacity %g", cases[i].capacity);
        expect_double(row, cases[i].rows * 30.0, cost_of(&net, "up", 1).macs);
        expect_double(row, cases[i].rows * 12.0, cost_of(&net, "combine", 1).forward.flop);
        cs_net_finish(&net);
    }
}

/* One expert that all tokens go to is a linear layer. */
static void test_one_expert(void **state)
{
    (void)state;
    cs_net net;
    begin(&net);
    cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 4), 10, 6);
    x = cs_net_linear(&net, "one", x, &(cs_linear){.out = 6, .bias = true});
    cs_net_grouped_linear(&net, "other", x, &(cs_grouped_linear){6, 1, 1, true});
    must_end(&net);
    const cs_op_cost a = cost_of(&net, "one", 3), b = cost_of(&net, "other", 3);
    expect_pass("forward", a.forward.flop, a.forward.bytes, a.forward.launches, &b.forward);
    expect_pass("input", a.backward_input.flop, a.backward_input.bytes, a.backward_input.launches,
                &b.backward_input);
    expect_pass("weights", a.backward_weight.flop, a.backward_weight.bytes,
                a.backward_weight.launches, &b.backward_weight);
    expect_int("parameters", a.weights + a.biases, b.weights + b.biases);
    cs_net_finish(&net);
}

/* Gradients of one sample in float32, from the last operator to the first. x is 4 x 6 (96 bytes),
 * the routed rows 8 x 6 (192), between the experts 8 x 5 (160), routing 4 x 2 (32), logits 4 x 3
 * (48).
 *   loss       the sum's, 96
 *   add        passes it to combine's result and to x: 96
 *   combine    adds the gradients of the rows, 192, and of the routing, 32: 320
 *   down       adds 160; combine's result and x still share the 96: 192 + 160 + 32 + 96 = 480
 *   up         192 for 160: 160 + 192 + 32 + 96 = 480
 *   dispatch   adds 96 of x, which already has one; none of the routing: 192 + 96 + 32 + 96 = 416
 *   top_k      48 for 32: 96 + 32 + 48 = 176
 *   router     adds 96 of x: 96 + 48 + 96 = 240
 *   embedding  96 */
static void test_backward_memory(void **state)
{
    (void)state;
    static const int64_t expected[] = {96, 240, 176, 416, 480, 480, 320, 96, 96};
    int64_t peaks[9], none[9] = {0};
    cs_net net;
    build_mixture(&net, 0);
    expect_int("operators", 9, net.n_ops);
    const cs_backward backward = {
        .net = &net, .batch = 1, .rules = &(cs_kept_rules){0}, .workspaces = none};
    assert_int_equal(cs_backward_memory(&backward, peaks, &error), CS_OK);
    for (uint32_t p = 0; p < net.n_ops; p++)
        expect_int(net.ops[p].name, expected[p], peaks[p]);
    cs_net_finish(&net);
}

/* ---- attention ---- */

/* Pairs of a query and a key that it may attend to, one by one. */
static double count_pairs(uint32_t tokens, bool causal, uint32_t window)
{
    double pairs = 0;
    for (uint32_t i = 0; i < tokens; i++)
        for (uint32_t k = 0; k < tokens; k++)
            pairs += !causal || (k <= i && (window == 0 || i - k < window));
    return pairs;
}

static const struct {
    const char *row;
    uint32_t tokens, kv_heads, key, value, window; /* 4 heads; features of a head */
    bool causal, sinks;
    cs_attention_kernel kernel;
} attentions[] = {
    {"all", 9, 4, 8, 8, 0, false, false, CS_ATTENTION_FLASH},
    {"causal", 9, 4, 8, 8, 0, true, false, CS_ATTENTION_FLASH},
    {"narrow values", 9, 4, 12, 8, 0, true, false, CS_ATTENTION_FLASH},
    {"wide values", 9, 2, 3, 7, 0, true, false, CS_ATTENTION_FLASH},
    {"window", 9, 2, 8, 8, 4, true, false, CS_ATTENTION_FLASH},
    {"window of one", 9, 2, 8, 8, 1, true, false, CS_ATTENTION_FLASH},
    {"window of all", 9, 2, 8, 8, 9, true, false, CS_ATTENTION_FLASH},
    {"window beyond", 9, 2, 8, 8, 100, true, true, CS_ATTENTION_FLASH},
    {"matrix, which is made whole", 9, 2, 12, 8, 4, true, false, CS_ATTENTION_MATH},
};

/* Flop: queries and keys meet in products of `key` features, weights and values in products of
 * `value`; backward two of either, and with a fused kernel queries and keys once more. A sink has a
 * sum of 3 flop per row and head. */
static void test_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(attentions); i++) {
        const uint32_t t = attentions[i].tokens, key = attentions[i].key;
        const uint32_t value = attentions[i].value, kv_heads = attentions[i].kv_heads;
        const bool flash = attentions[i].kernel == CS_ATTENTION_FLASH;
        cs_net net;
        begin(&net);
        cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, t), 10, 6);
        const cs_tensor qkv[] = {
            cs_net_linear(&net, "q", x, &(cs_linear){.out = 4 * key}),
            cs_net_linear(&net, "k", x, &(cs_linear){.out = kv_heads * key}),
            cs_net_linear(&net, "v", x, &(cs_linear){.out = kv_heads * value})};
        x = cs_net_attention(&net, "attention", qkv,
                             &(cs_attention){.heads = 4,
                                             .kv_heads = kv_heads,
                                             .kernel = attentions[i].kernel,
                                             .causal = attentions[i].causal,
                                             .window = attentions[i].window,
                                             .sinks = attentions[i].sinks});
        must_end(&net);
        const char *row = attentions[i].row;
        const cs_op_cost c = cost_of(&net, "attention", 5);
        const double pairs =
            5 * 4 * (flash ? count_pairs(t, attentions[i].causal, attentions[i].window) : t * t);
        const double softmax = flash ? 0 : 5.0 * 4 * t * t;
        expect_int(row, 4 * value, cs_net_tensor(&net, x)->shape.dims[1]);
        expect_double(row, pairs * (key + value), c.macs);
        expect_double(row, 2 * pairs * (key + value) + 5 * softmax, c.forward.flop);
        expect_double(row, 2 * pairs * ((flash ? 3 : 2) * key + 2 * value) + 4 * softmax,
                      c.backward_input.flop);
        if (flash) /* each tensor once, and twice backward, 2 bytes an element */
            expect_double(row, 2.0 * 5 * t * (4 + kv_heads) * (key + value), c.forward.bytes);
        expect_double(row, attentions[i].sinks ? 3 * 5.0 * 4 * t : 0, c.backward_weight.flop);
        expect_int(row, attentions[i].sinks ? 4 : 0, c.weights);
        cs_net_finish(&net);
    }
}

/* 3 tokens, 4 heads of 5 features and of 2 that they share: the result has 4 * 7, and the gradient
 * of the shared part is a sum of 4 each, 3 additions of 6 elements. */
static void test_head_concat(void **state)
{
    (void)state;
    cs_net net;
    begin(&net);
    cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 3), 10, 6);
    const cs_tensor parts[] = {cs_net_linear(&net, "own", x, &(cs_linear){.out = 20}),
                               cs_net_linear(&net, "all", x, &(cs_linear){.out = 2})};
    x = cs_net_head_concat(&net, "concat", parts, 4, true);
    must_end(&net);
    const cs_op_cost c = cost_of(&net, "concat", 1);
    expect_int("features", 28, cs_net_tensor(&net, x)->shape.dims[1]);
    expect_pass("forward", 0, 2 * (60 + 6 + 84), 1, &c.forward);
    expect_pass("backward", 18, 2 * (60 + 6 + 84), 1, &c.backward_input);
    cs_net_finish(&net);
}

/* 3 tokens of 4 heads of 5 features: 5 scales, and per token and head a statistic, in addition to
 * the input. */
static void test_head_norm(void **state)
{
    (void)state;
    cs_net net;
    begin(&net);
    cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 3), 10, 20);
    cs_net_head_norm(&net, "norm", x, 4);
    must_end(&net);
    const cs_op_cost c = cost_of(&net, "norm", 2);
    expect_int("parameters", 5, c.weights + c.biases);
    expect_int("kept", 4 * 2 * 12 + 2 * 2 * 60, c.extra_kept_bytes);
    cs_net_finish(&net);
}

/* ---- state spaces ---- */

/* 5 tokens of 6 features, 3 samples in bf16, a kernel of 4: 8 flop for the convolution and 5 for
 * the SiLU; backward the convolution twice and 8. Tensors of 180 bytes, parameters of 24 + 6,
 * 60. */
static void test_causal_conv(void **state)
{
    (void)state;
    cs_net net;
    begin(&net);
    cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 5), 10, 6);
    cs_net_causal_conv(&net, "conv", x, 4, true);
    must_end(&net);
    const cs_op_cost c = cost_of(&net, "conv", 3);
    expect_int("parameters", 30, c.weights + c.biases);
    expect_pass("forward", 13 * 90, 2 * 180 + 60, 1, &c.forward);
    expect_pass("input", 24 * 90, 3 * 180 + 60, 1, &c.backward_input);
    expect_pass("weight", 8 * 90, 2 * 180 + 60, 1, &c.backward_weight);
    assert_true(c.keeps_input && !c.keeps_output && c.extra_kept_bytes == 0);
    cs_net_finish(&net);
}

/* Counts multiply-accumulates of a scan, product by product, chunk by chunk. */
static double count_scan(uint32_t tokens, const cs_scan *scan, uint32_t head)
{
    double macs = 0;
    for (uint32_t first = 0; first < tokens; first += scan->chunk) {
        const uint32_t n = tokens - first < scan->chunk ? tokens - first : scan->chunk;
        for (uint32_t g = 0; g < scan->groups; g++)
            macs += n * n * scan->state; /* C B' */
        for (uint32_t h = 0; h < scan->heads; h++)
            macs += n * n * head + 2 * n * head * scan->state; /* within, to the state, from it */
    }
    return macs;
}

/* 4 heads of 3 features in 2 groups, a state of 5; 2 samples. With T tokens, bf16: inputs x 12 T,
 * steps
 * 4 T, B and C 10 T each, output 12 T; float32: the state after each chunk, 60, four times, C B'
 * of each group twice, sums of the steps 4 T thrice. */
static void test_scan(void **state)
{
    (void)state;
    static const uint32_t tokens[] = {1, 4, 8, 10, 11, 3};
    const cs_scan scan = {.heads = 4, .groups = 2, .state = 5, .chunk = 4};
    for (size_t i = 0; i < ROWS(tokens); i++) {
        const uint32_t t = tokens[i];
        cs_net net;
        begin(&net);
        cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, t), 10, 36);
        const cs_tensor inputs[] = {
            cs_net_features(&net, "x", x, 12), cs_net_features(&net, "dt", x, 4),
            cs_net_features(&net, "B", x, 10), cs_net_features(&net, "C", x, 10)};
        cs_net_scan(&net, "scan", inputs, &scan);
        must_end(&net);
        const cs_op_cost c = cost_of(&net, "scan", 2);
        double pairs = 0, states = 0;
        for (uint32_t first = 0; first < t; first += 4, states += 2 * 60)
            pairs += 2.0 * (t - first < 4 ? t - first : 4) * (t - first < 4 ? t - first : 4);
        const double bytes = 2 * 2.0 * 48 * t + 4 * (4 * states + 2 * 2 * pairs + 3 * 8.0 * t);
        expect_double("macs", 2 * count_scan(t, &scan, 3), c.macs);
        expect_pass("forward", 2 * c.macs + 2 * states, bytes, 5, &c.forward);
        /* each product twice, C B' and the states once more; states passed on twice */
        expect_double("backward", 4 * c.macs + 2 * (pairs * 2 * 5 + 2 * 12.0 * 5 * t) + 4 * states,
                      c.backward_input.flop);
        expect_int("parameters", 12, c.weights);
        expect_int("kept", 4 * 2 * 4 * t, c.extra_kept_bytes);
        assert_true(c.keeps_input && c.keeps_output);
        cs_net_finish(&net);
    }
}

static void build_decoder(cs_net *net, const cs_decoder *decoder)
{
    const cs_zoo_entry *entry = &cs_zoo_decoder;
    entry->build(net, entry->variant, decoder);
}

/* T tokens of H features, h heads of P in G groups, a state of N; I = h P, B = I + 2 G N. Kept, in
 * elements of 2 bytes and bytes: the first norm's input and normalised input with a float32 per
 * row; the input of in_proj; the whole result of in_proj, because the gate, the convolution and the
 * steps are views of it; the whole result of the convolution; the scan's result, with a float32 per
 * token and head; the gate after its SiLU; the norm's input, normalised, float32; its result. */
static void test_mixer_kept(void **state)
{
    (void)state;
    enum { t = 20, hidden = 16, heads = 8, head = 4, groups = 2, n = 5, words = 30 };
    enum { inner = heads * head, convolved = inner + 2 * groups * n };
    const cs_decoder decoder = {.layers = 1,
                                .hidden = hidden,
                                .heads = 1,
                                .kv_heads = 1,
                                .sequence = t,
                                .vocabulary = words,
                                .mixer = {heads, head, groups, n, 8, 4}};
    const int64_t mixer = 2 * t * (2 * hidden + hidden) + 4 * t +
                          2 * t * (inner + convolved + heads) + 2 * t * convolved + 2 * t * inner +
                          4 * t * heads + 2 * t * inner + 2 * t * 2 * inner + 4 * t + 2 * t * inner;
    const int64_t around = 8 * t + 2 * t * 3 * hidden + 4 * t + 4 * t * words + 8 * t;
    cs_net net;
    begin(&net);
    build_decoder(&net, &decoder);
    must_end(&net);
    cs_net_chain chain = must_chain(&net, CS_GRANULARITY_LAYER);
    int64_t kept = 0;
    for (uint32_t i = 0; i < chain.n_layers; i++)
        kept += chain.layers[i].kept_bytes;
    expect_int("kept", mixer + around, kept);
    cs_net_chain_finish(&chain);
    cs_net_finish(&net);
}

/* ---- decoders ---- */

/* DeepSeek-V3 made small: T tokens of H features, Q and C features of the latent vectors, A heads
 * of N features without positions, R with, V of values; F features of the dense MLP, in the first
 * layer; E experts of M features, K of them per token; W words. */
enum { T = 16, H = 32, Q = 12, C = 10, A = 4, N = 6, R = 2, V = 5, F = 40, E = 8, K = 2, M = 7 };
enum { W = 100 };

static cs_decoder small_decoder(uint32_t next_tokens)
{
    return (cs_decoder){.layers = 2,
                        .hidden = H,
                        .heads = A,
                        .sequence = T,
                        .vocabulary = W,
                        .intermediate = F,
                        .query_rank = Q,
                        .latent_rank = C,
                        .nope_head = N,
                        .rope_head = R,
                        .value_head = V,
                        .experts = E,
                        .top_k = K,
                        .expert_intermediate = M,
                        .shared_experts = 1,
                        .dense_layers = 1,
                        .next_tokens = next_tokens,
                        .router_bias = true};
}

/* Tensor by tensor, elements of 2 bytes and bytes:
 *   norms        their input and what it is normalised to, 2 of each, a float32 per row
 *   attention    input of the first projections (the norm's result) TH; latent vectors T(Q + C) as
 *                results of their norms; queries T A (N+R); what keys' and values' projection made,
 *                which the values are a view of, T A (N+V), and the keys T A (N+R); the result T A
 *                V, a float32 per row and head
 *   of the kv    latent vector and the common keys are one storage, T (C+R), which the norm keeps
 *   MLP          input TH, then inputs of SiLU, both of the product's, of the last matrix: 4 T F
 *   mixture      input TH, 8-byte numbers of T K rows (twice: the router's choice, the dispatch's),
 *                float32 probabilities T E, weights T K; rows T K H, inside 4 T K M, results T K
 *                H; the shared expert's 4 T M
 *   head         the norm's input (its own storage), twice, its float32, the head's input TH,
 *                float32 logarithms T W and targets of 8 bytes; the token ids 8 T */
static int64_t norm_kept(int64_t features)
{
    return 2 * (2 * T * features) + 4 * T;
}

static int64_t decoder_kept(void)
{
    const int64_t queries = norm_kept(Q) + 2 * T * Q;
    const int64_t latent = 2 * T * (C + R) + 2 * T * C + 4 * T + 2 * T * C;
    const int64_t attention =
        2 * T * H + queries + latent + 2 * T * A * (2 * (N + R) + (N + V) + V) + 4 * T * A;
    const int64_t mlp = 2 * T * H + 2 * 4 * T * F;
    const int64_t mixture = 2 * T * H + 8 * 2 * T * K + 4 * T * E + 2 * T * K +
                            2 * T * K * (2 * H + 4 * M) + 2 * 4 * T * M;
    const int64_t head = norm_kept(H) + 2 * T * H + 4 * T * W + 8 * T;
    return 2 * (2 * norm_kept(H) + attention) + mlp + mixture + head + 8 * T;
}

static void test_decoder_kept(void **state)
{
    (void)state;
    const cs_decoder decoder = small_decoder(0);
    cs_net net;
    begin(&net);
    build_decoder(&net, &decoder);
    must_end(&net);
    cs_net_chain chain = must_chain(&net, CS_GRANULARITY_LAYER);
    int64_t kept = 0;
    for (uint32_t i = 0; i < chain.n_layers; i++)
        kept += chain.layers[i].kept_bytes;
    expect_int("kept", decoder_kept(), kept);
    cs_net_chain_finish(&chain);
    cs_net_finish(&net);
}

/* Active: all but E - K experts of the one layer that has some. */
static void test_active(void **state)
{
    (void)state;
    const cs_decoder decoder = small_decoder(0);
    cs_net net;
    begin(&net);
    build_decoder(&net, &decoder);
    must_end(&net);
    expect_int("active", cs_net_parameters(&net) - (E - K) * 3 * H * M,
               cs_net_active_parameters(&net));
    cs_net_finish(&net);
}

/* A module of multi-token prediction adds a layer with its norms, 3 H, and 2 H H of its
 * projection. The embedding and the last matrix are the model's: their parameters are counted once,
 * and the products of the matrix for each head. It loads its own tokens, so the chain stays the
 * same except for the last layer, which contains it along with the head. */
static void test_next_tokens(void **state)
{
    (void)state;
    cs_net nets[2];
    cs_net_chain chains[2];
    for (uint32_t n = 0; n < 2; n++) {
        const cs_decoder decoder = small_decoder(n);
        begin(&nets[n]);
        build_decoder(&nets[n], &decoder);
        must_end(&nets[n]);
        chains[n] = must_chain(&nets[n], CS_GRANULARITY_BLOCK);
    }
    const cs_net_layer *last = &chains[0].layers[2];
    expect_int("parameters", 2 * H * H + 3 * H + last->weights + last->biases,
               cs_net_parameters(&nets[1]) - cs_net_parameters(&nets[0]));
    expect_double("products", last->macs + T * 2 * H * H + T * H * W,
                  cs_net_macs(&nets[1]) - cs_net_macs(&nets[0]));
    expect_int("layers", 4, chains[0].n_layers);
    expect_int("layers", 4, chains[1].n_layers);
    for (uint32_t i = 0; i < 3; i++)
        expect_text("name", chains[0].layers[i].name, chains[1].layers[i].name);
    for (uint32_t p = 0; p < nets[1].n_ops; p++) {
        const cs_op *op = &nets[1].ops[p];
        if (op->tied)
            expect_text(op->name,
                        op->kind == CS_OP_EMBEDDING ? "embedding.embed_tokens" : "head.lm_head",
                        nets[1].ops[cs_net_lender(&nets[1], p)].name);
    }
    for (uint32_t n = 0; n < 2; n++) {
        cs_net_chain_finish(&chains[n]);
        cs_net_finish(&nets[n]);
    }
}

/* Work that a model counts as its own, 6 flop a multiply-accumulate: 30 each for the 8 routed rows
 * in each of two products, 18 per token in the router; padding to a capacity of 1.25 (12 rows) is
 * none, and what does not fit into one of 0.5 (6 rows) is not done. */
static void test_work(void **state)
{
    (void)state;
    static const double capacities[] = {0, 1.25, 0.5}, rows[] = {8, 8, 6};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net;
        cs_model model;
        cs_accelerator none;
        cs_accelerator_none(&none);
        const cs_net_options how = {.batch_size = 1, .device = &none, .source = "test"};
        build_mixture(&net, capacities[i]);
        assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
        expect_double("flop", 6 * (2 * 30 * rows[i] + 4 * 18), model.work.flop_per_sample);
        cs_model_finish(&model);
        cs_net_finish(&net);
    }
}

/* ---- keys of measured times ---- */

static void test_keys(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "top_k n=7 in=4x3 out=4x2 experts=3 top_k=2 bf16",
        "dispatch n=7 in=4x6,4x2 out=8x6 experts=3 top_k=2 bf16",
        "grouped_linear n=7 in=8x6 out=8x5 experts=3 top_k=2 bias bf16",
    };
    cs_net net;
    build_mixture(&net, 0);
    for (uint32_t p = 2; p < 5; p++) {
        cs_op_shape shapes[CS_OP_SHAPES_MAX];
        char key[CS_OP_KEY_BYTES];
        cs_op_shapes_of(&net, &net.ops[p], 7, CS_PRECISION_BF16, 0, shapes);
        expect_text(net.ops[p].name, expected[p - 2],
                    cs_op_shape_key(&shapes[0], key, sizeof(key)));
    }
    expect_error("no kernels", CS_INVALID,
                 "n: operator n.top_k (top_k) can be estimated, but no backend can run it",
                 cs_net_check_runnable(&net, &error), &error);
    cs_net_finish(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_one_expert),   cmocka_unit_test(test_backward_memory),
        cmocka_unit_test(test_attention),    cmocka_unit_test(test_head_concat),
        cmocka_unit_test(test_head_norm),    cmocka_unit_test(test_causal_conv),
        cmocka_unit_test(test_scan),         cmocka_unit_test(test_mixer_kept),
        cmocka_unit_test(test_decoder_kept), cmocka_unit_test(test_active),
        cmocka_unit_test(test_next_tokens),  cmocka_unit_test(test_work),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
