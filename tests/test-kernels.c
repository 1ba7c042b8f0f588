/* Operators: gradients against finite differences of the loss, through whole networks; losses and
 * gradients of other backends (CS_TEST_BACKEND) against the CPU's. */
#include "calib/bench/cpu/cpu-backend.h"
#include "calib/bench/train/trainer.h"
#ifdef CS_TEST_BACKEND
#include "tests/host-device.h"
#else
#define CS_TEST_BACKEND cs_backend_cpu
#endif

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A network in training, with one micro-batch. */
typedef struct training {
    const cs_backend *backend;
    cs_net net;
    cs_net_chain chain;
    cs_accelerator none;
    cs_bench *bench;
    cs_block_pool pool;
    cs_trainer trainer;
    cs_part part;
    cs_activations at;
    cs_error error;
} training;

typedef void build(cs_net *net);

static void start(training *t, const cs_backend *backend, build *network, uint32_t batch,
                  cs_precision precision)
{
    memset(t, 0, sizeof(*t));
    t->backend = backend;
    cs_error_init(&t->error);
    cs_net_begin(&t->net, "test", &t->error);
    network(&t->net);
    assert_int_equal(cs_net_end(&t->net), CS_OK);
    cs_accelerator_none(&t->none);
    cs_net_options how = {.batch_size = batch,
                          .device = &t->none,
                          .precision = precision,
                          .source = "a test",
                          .date = "2026-01-01"};
    assert_int_equal(cs_net_chain_find(&t->net, &how, &t->chain, &t->error), CS_OK);
    assert_int_equal(backend->open(0, &t->bench, &t->error), CS_OK);
    cs_block_pool_init(&t->pool, backend, t->bench);
    t->trainer = (cs_trainer){.backend = backend,
                              .bench = t->bench,
                              .pool = &t->pool,
                              .net = &t->net,
                              .chain = &t->chain,
                              .batch = batch,
                              .precision = precision};
    assert_int_equal(cs_trainer_init(&t->trainer, &t->error), CS_OK);
    assert_int_equal(cs_part_open(&t->trainer, 0, t->chain.n_layers, &t->part, &t->error), CS_OK);
    assert_int_equal(cs_activations_open(&t->trainer, &t->at, &t->error), CS_OK);
}

/* Parameters of the size of the inputs, so that slopes are far above rounding. */
static void scale_parameters(training *t)
{
    float *w = t->part.parameters.data;
    for (int64_t i = 0; i < t->part.n_parameters; i++)
        w[i] *= 10;
}

static void stop(training *t)
{
    cs_activations_close(&t->trainer, &t->at);
    cs_part_close(&t->trainer, &t->part);
    cs_trainer_finish(&t->trainer);
    assert_int_equal(t->pool.live, 0);
    cs_block_pool_finish(&t->pool);
    t->backend->close(t->bench);
    cs_net_chain_finish(&t->chain);
    cs_net_finish(&t->net);
}

static double loss_of(training *t)
{
    assert_int_equal(
        cs_part_forward(&t->trainer, &t->part, t->part.parameters.data, &t->at, &t->error), CS_OK);
    cs_tensor out = t->net.ops[t->net.n_ops - 1].output;
    float loss = *(float *)t->at.data[cs_net_tensor(&t->net, out)->storage].data;
    return loss;
}

/* Backward gives back all memory of the micro-batch. */
static void back(training *t)
{
    assert_int_equal(
        cs_part_backward(&t->trainer, &t->part, t->part.parameters.data, &t->at, &t->error), CS_OK);
}

/* The derivative along a random direction d, by the gradient g . d and by (L(w + h d) - L(w - h d))
 * / 2 h. In float32 the difference of two losses near 2 has an error of 2e-7; over 2 h = 2e-3 that
 * is 1e-4. A wrong gradient is off by tens of percent, not by two. */
static void check_direction(training *t, const char *network, uint32_t p, unsigned seed)
{
    const double h = 1e-3;
    const cs_op *op = &t->net.ops[p];
    int64_t n = op->weights + op->biases, offset = t->part.offsets[p];
    float *w = (float *)t->part.parameters.data + offset;
    float *g = (float *)t->part.gradients.data + offset;
    double *d = calloc((size_t)n, sizeof(*d)), norm = 0, slope = 0, loss[2];
    float *kept = calloc((size_t)n, sizeof(*kept));
    srand(seed);
    for (int64_t i = 0; i < n; i++) {
        d[i] = g[i] + 1e-3 * ((double)rand() / RAND_MAX - 0.5); /* close to the steepest */
        norm += d[i] * d[i];
        kept[i] = w[i];
    }
    for (int64_t i = 0; i < n; i++) {
        d[i] /= sqrt(norm);
        slope += d[i] * g[i];
    }
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < n; i++)
            w[i] = kept[i] + (float)((side ? -h : h) * d[i]);
        loss[side] = loss_of(t);
        cs_activations_close(&t->trainer, &t->at);
        assert_int_equal(cs_activations_open(&t->trainer, &t->at, &t->error), CS_OK);
    }
    double found = (loss[0] - loss[1]) / (2 * h);
    memcpy(w, kept, (size_t)n * sizeof(*w));
    free(kept);
    free(d);
    if (!(fabs(found - slope) <= 0.02 * fabs(slope) + 2e-4))
        fail_msg("%s, %s: slope by the gradient %g, by differences %g", network, op->name, slope,
                 found);
}

static void check_network(const char *name, build *network, uint32_t batch)
{
    training t;
    start(&t, &CS_TEST_BACKEND, network, batch, CS_PRECISION_FP32);
    scale_parameters(&t);
    double loss = loss_of(&t);
    assert_true(isfinite(loss));
    back(&t);
    for (uint32_t p = 0; p < t.net.n_ops; p++)
        if (t.net.ops[p].weights + t.net.ops[p].biases > 0)
            check_direction(&t, name, p, p + 1);
    stop(&t);
}

/* ---- networks that together have every operator ---- */

static void convolutions(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 4, (cs_extent){2, {9, 7}});
    x = cs_net_conv(net, "wide", x,
                    &(cs_conv){.out = 6, .kernel = 3, .stride = 2, .pad = 1, .bias = true});
    x = cs_net_conv(net, "groups", x, &(cs_conv){.out = 6, .kernel = 3, .pad = 1, .groups = 3});
    x = cs_net_conv(net, "flat", x, &(cs_conv){.out = 5, .kernels = {1, 3}, .pads = {0, 1}});
    x = cs_net_conv(net, "point", x, &(cs_conv){.out = 8, .kernel = 1, .bias = true});
    x = cs_net_linear(net, "fc", cs_net_flatten(net, "flatten", x),
                      &(cs_linear){.out = 10, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

static void volume(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 2, (cs_extent){3, {6, 5, 4}});
    x = cs_net_conv(net, "conv", x, &(cs_conv){.out = 3, .kernel = 3, .pad = 1});
    x = cs_net_avg_pool(net, "pool", x, &(cs_window){.kernel = 2});
    x = cs_net_tanh(net, "tanh", x);
    x = cs_net_linear(net, "fc", cs_net_flatten(net, "flatten", x), &(cs_linear){.out = 4});
    cs_net_squared_error(net, "loss", x);
}

static void residual(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 3, (cs_extent){2, {8, 8}});
    x = cs_net_conv(net, "stem", x, &(cs_conv){.out = 8, .kernel = 3, .pad = 1});
    x = cs_net_relu(net, "stem_relu", cs_net_batch_norm(net, "stem_bn", x));
    x = cs_net_max_pool(net, "pool", x, &(cs_window){.kernel = 3, .stride = 2, .pad = 1});
    cs_tensor y = cs_net_conv(net, "a", x, &(cs_conv){.out = 8, .kernel = 3, .pad = 1});
    y = cs_net_relu(net, "a_relu", cs_net_batch_norm(net, "a_bn", y));
    y = cs_net_batch_norm(net, "b_bn",
                          cs_net_conv(net, "b", y, &(cs_conv){.out = 8, .kernel = 3, .pad = 1}));
    x = cs_net_relu(net, "out_relu", cs_net_add_to(net, "add", y, x));
    cs_tensor z = cs_net_conv(net, "left", x, &(cs_conv){.out = 4, .kernel = 1});
    cs_tensor w = cs_net_conv(net, "right", x, &(cs_conv){.out = 5, .kernel = 1});
    const cs_tensor parts[] = {z, w};
    x = cs_net_concat(net, "concat", parts, 2);
    x = cs_net_adaptive_pool(net, "mean", x, 2);
    x = cs_net_linear(net, "fc", cs_net_flatten(net, "flatten", x), &(cs_linear){.out = 6});
    cs_net_cross_entropy(net, "loss", x);
}

static cs_tensor attend_shared(cs_net *net, cs_tensor x)
{
    x = cs_net_linear(net, "qkv", x, &(cs_linear){.out = 24});
    const cs_tensor q = cs_net_features(net, "q", x, 12);
    cs_tensor y = cs_net_linear(net, "kv", x, &(cs_linear){.out = 6, .bias = true});
    const cs_tensor qkv[] = {q, cs_net_copy(net, "k", y), y};
    return cs_net_attention(net, "attention", qkv,
                            &(cs_attention){4, 2, CS_ATTENTION_MATH, true, 0});
}

/* Dropout of attention's weights: kept with its mask, or made again from the same numbers. */
static void drop_weights(cs_net *net, cs_attention_kernel kernel)
{
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 5), 7, 8);
    x = cs_net_linear(net, "qkv", x, &(cs_linear){.out = 24, .bias = true});
    const cs_tensor qkv[] = {cs_net_features(net, "q", x, 8), cs_net_features(net, "k", x, 8),
                             cs_net_features(net, "v", x, 8)};
    x = cs_net_attention(net, "attention", qkv, &(cs_attention){2, 2, kernel, true, 0.1});
    x = cs_net_linear(net, "head", x, &(cs_linear){.out = 7});
    cs_net_cross_entropy(net, "loss", x);
}

static void drop_kept(cs_net *net)
{
    drop_weights(net, CS_ATTENTION_MATH);
}

static void drop_again(cs_net *net)
{
    drop_weights(net, CS_ATTENTION_FLASH);
}

/* The last matrix is the embedding's: one gradient for both. */
static void tied(cs_net *net)
{
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 6), 11, 8);
    x = cs_net_linear(net, "fc", x, &(cs_linear){.out = 8, .bias = true});
    x = cs_net_linear(net, "head", cs_net_tanh(net, "tanh", x),
                      &(cs_linear){.out = 11, .tied = true});
    cs_net_cross_entropy(net, "loss", x);
}

static cs_tensor attend(cs_net *net, cs_tensor x, cs_attention_kernel kernel, bool causal)
{
    x = cs_net_linear(net, "qkv", x, &(cs_linear){.out = 24, .bias = true});
    const cs_tensor qkv[] = {cs_net_features(net, "q", x, 8), cs_net_features(net, "k", x, 8),
                             cs_net_features(net, "v", x, 8)};
    return cs_net_attention(net, "attention", qkv, &(cs_attention){2, 2, kernel, causal, 0});
}

static void encoder(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 3, (cs_extent){2, {6, 6}});
    x = cs_net_conv(net, "patch", x, &(cs_conv){.out = 8, .kernel = 2, .stride = 2, .bias = true});
    x = cs_net_first_token(net, "token", cs_net_tokens(net, "tokens", x));
    x = cs_net_add_learned(net, "position", x);
    cs_tensor y = attend(net, cs_net_layer_norm(net, "ln_1", x), CS_ATTENTION_MATH, false);
    x = cs_net_add(net, "add_1", cs_net_copy(net, "copy", y), x);
    y = cs_net_linear(net, "up", cs_net_layer_norm(net, "ln_2", x),
                      &(cs_linear){.out = 16, .bias = true});
    y = cs_net_linear(net, "down", cs_net_gelu(net, "gelu", y), &(cs_linear){.out = 8});
    x = cs_net_add(net, "add_2", x, y);
    x = cs_net_take_first(net, "first", cs_net_layer_norm(net, "ln", x));
    x = cs_net_linear(net, "head", x, &(cs_linear){.out = 5, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

static void decoder(cs_net *net)
{
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 6), 11, 8);
    cs_tensor y = attend(net, cs_net_rms_norm(net, "norm_1", x), CS_ATTENTION_FLASH, true);
    x = cs_net_add(net, "add_1", x, y);
    y = cs_net_rms_norm(net, "norm_2", x);
    cs_tensor gate =
        cs_net_silu(net, "silu", cs_net_linear(net, "gate", y, &(cs_linear){.out = 12}));
    cs_tensor up =
        cs_net_rotary(net, "rotary", cs_net_linear(net, "up", y, &(cs_linear){.out = 12}));
    y = cs_net_linear(net, "down", cs_net_mul(net, "mul", gate, up), &(cs_linear){.out = 8});
    x = cs_net_add(net, "add_2", x, y);
    x = cs_net_softmax(net, "softmax", cs_net_linear(net, "head", x, &(cs_linear){.out = 11}));
    cs_net_cross_entropy(net, "loss", x);
}

/* Four heads of queries, two of keys; a table of positions; gaps between rows. */
static void shared_keys(cs_net *net)
{
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 5), 7, 8);
    x = cs_net_add_table(net, "position", x, 48);
    x = cs_net_linear(net, "out", attend_shared(net, cs_net_layer_norm(net, "norm", x)),
                      &(cs_linear){.out = 8});
    x = cs_net_linear(net, "head", cs_net_tanh(net, "tanh", x), &(cs_linear){.out = 3});
    cs_net_squared_error(net, "loss", x);
}

/* Poolings that overlap, have edges, and do not divide evenly. */
static void poolings(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 2, (cs_extent){2, {11, 9}});
    x = cs_net_conv(net, "conv", x, &(cs_conv){.out = 3, .kernel = 1});
    x = cs_net_max_pool(net, "most", x, &(cs_window){.kernel = 3, .stride = 2, .pad = 1});
    x = cs_net_avg_pool(net, "mean", x, &(cs_window){.kernel = 2, .stride = 1, .pad = 1});
    x = cs_net_adaptive_pool(net, "adaptive", x, 3);
    cs_net_squared_error(net, "loss", cs_net_flatten(net, "flatten", x));
}

static void dropping(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 3, (cs_extent){2, {4, 4}});
    x = cs_net_linear(net, "fc", cs_net_flatten(net, "flatten", x), &(cs_linear){.out = 24});
    x = cs_net_linear(net, "head", cs_net_dropout(net, "dropout", x, 0.5), &(cs_linear){.out = 6});
    cs_net_cross_entropy(net, "loss", x);
}

/* Sums in another order: some units in the last of 24 bits, of terms that may be larger than their
 * sum. */
static void compare(const char *network, const training *a, const training *b)
{
    const float *x = a->part.gradients.data, *y = b->part.gradients.data;
    double most = 0;
    for (int64_t i = 0; i < a->part.n_places; i++)
        most = fmax(most, fabs(x[i]));
    for (int64_t i = 0; i < a->part.n_places; i++)
        if (!(fabs((double)x[i] - y[i]) <= 1e-5 * most))
            fail_msg("%s: gradient %lld is %g on the CPU and %g on %s", network, (long long)i, x[i],
                     y[i], b->backend->name);
}

/* One step of training, and the loss after it. */
static void check_same(const char *name, build *network, uint32_t batch, cs_precision precision)
{
    const cs_backend *backends[] = {&cs_backend_cpu, &CS_TEST_BACKEND};
    training t[2];
    double loss[2][2];
    for (int i = 0; i < 2; i++) {
        start(&t[i], backends[i], network, batch, i == 0 ? CS_PRECISION_FP32 : precision);
        scale_parameters(&t[i]);
        loss[i][0] = loss_of(&t[i]);
        back(&t[i]);
    }
    compare(name, &t[0], &t[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            cs_part_update(&t[i].trainer, &t[i].part, t[i].part.parameters.data, &t[i].error),
            CS_OK);
        loss[i][1] = loss_of(&t[i]);
        stop(&t[i]);
    }
    for (int step = 0; step < 2; step++)
        if (!(fabs(loss[0][step] - loss[1][step]) <= 1e-5 * fabs(loss[0][step])))
            fail_msg("%s: loss %d is %.9g on the CPU and %.9g on %s", name, step, loss[0][step],
                     loss[1][step], CS_TEST_BACKEND.name);
}

/* All but dropout, whose masks come from another generator. tf32 is computed in float32 here, by
 * the calls that a GPU would get. */
static void test_same(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        build *network;
    } cases[] = {{"convolutions", convolutions}, {"volume", volume},
                 {"residual", residual},         {"encoder", encoder},
                 {"decoder", decoder},           {"shared keys", shared_keys},
                 {"poolings", poolings},         {"tied weights", tied}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t batch = 1; batch <= 3; batch += 2)
            for (int p = CS_PRECISION_FP32; p <= CS_PRECISION_TF32; p++)
                if (CS_TEST_BACKEND.precisions & 1 << p)
                    check_same(cases[i].name, cases[i].network, batch, (cs_precision)p);
}

/* ---- mixed precision ---- */

/* Own kernels only; some operators have weights whose size is not a multiple of 16 bytes. */
static void narrow(cs_net *net)
{
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 5), 7, 9);
    x = cs_net_add_table(net, "position", x, 6 * 9);
    x = cs_net_gelu(net, "gelu", cs_net_layer_norm(net, "norm", x));
    cs_net_squared_error(net, "loss", cs_net_rms_norm(net, "norm_2", x));
}

static float wide_of(const uint16_t *bf16, int64_t i)
{
    uint32_t bits = (uint32_t)bf16[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* A step of plain descent moves a weight by 1e-3 of its gradient. The optimizer's own float32 copy
 * has that step, up to the last of its 24 bits; bfloat16, with 8 bits in all, is off by at most
 * 2^-8 of the weight, which may not get lost. */
static void test_mixed_step(void **state)
{
    training t;
    (void)state;
    if (!(CS_TEST_BACKEND.precisions & 1 << CS_PRECISION_BF16))
        skip();
    start(&t, &CS_TEST_BACKEND, narrow, 3, CS_PRECISION_BF16);
    size_t bytes = (size_t)t.part.n_places * sizeof(uint16_t);
    uint16_t *w = t.part.parameters.data, *before = malloc(bytes), *g = malloc(bytes);
    memcpy(before, w, bytes);
    assert_true(isfinite(loss_of(&t)));
    back(&t);
    memcpy(g, t.part.gradients.data, bytes);
    assert_int_equal(cs_part_update(&t.trainer, &t.part, w, &t.error), CS_OK);
    const float *masters = t.part.states.data; /* the only states */
    int64_t with_gradient = 0;
    for (uint32_t p = 0; p < t.net.n_ops; p++) {
        int64_t at = t.part.offsets[p], n = t.net.ops[p].weights + t.net.ops[p].biases;
        for (int64_t i = at; i < at + n; i++) {
            double from = wide_of(before, i), to = wide_of(w, i), step = 1e-3 * wide_of(g, i);
            if (!(fabs(masters[i] - (from - step)) <= 1.2e-7 * fabs(from)) ||
                !(fabs(to - masters[i]) <= fabs(to) / 256))
                fail_msg("%s: weight %lld goes from %g to %g and %g by a step of %g",
                         t.net.ops[p].name, (long long)(i - at), from, masters[i], to, -step);
            with_gradient += g[i] != 0;
        }
    }
    assert_true(with_gradient > 100);
    free(before);
    free(g);
    stop(&t);
}

static void test_gradients(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        build *network;
    } cases[] = {{"convolutions", convolutions}, {"volume", volume},
                 {"residual", residual},         {"encoder", encoder},
                 {"decoder", decoder},           {"shared keys", shared_keys},
                 {"poolings", poolings},         {"dropout", dropping},
                 {"dropped weights", drop_kept}, {"dropped weights, fused", drop_again},
                 {"tied weights", tied}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t batch = 1; batch <= 3; batch += 2)
            check_network(cases[i].name, cases[i].network, batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_same),
                                       cmocka_unit_test(test_mixed_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
