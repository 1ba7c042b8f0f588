/* Time of fused attention by head size and keys per query, by hand and against published
 * measurements (fused-attention.h). */
#include "sim/model/fused-attention.h"
#include "tests/attention-net.h"
#include "tests/expect.h"

#include <math.h>
#include <string.h>

static void expect_near(const char *row, double expected, double got, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance * expected))
        fail_msg("%s: expected %.17g, got %.17g", row, expected, got);
}

/* A pass over `queries` of all heads with `keys` each, of heads of q features and v values. */
static cs_pass_cost pass_of(double queries, double keys, double q, double v, double sides,
                            cs_pass pass)
{
    const double flop = pass == CS_PASS_FORWARD ? 2 * (q + v) : 2 * (3 * q + 2 * v);
    return (cs_pass_cost){
        .flop = flop * queries * keys, .rows = queries, .columns = keys, .sides = sides};
}

/* A quarter of the time with 128 features is the softmax. A pair then takes 1/4 + 3/4 f / 128 of
 * it, so that by its flop, f / 128, it takes 3/4 + 1/4 x 128 / f: with 64 features 5/4, with 32
 * 7/4, with 96 13/12. With 192 by 128 it is products alone, 1. Backward of more than 192, 1 / 0.73.
 */
static void by_the_size_of_heads(void **state)
{
    (void)state;
    static const cs_flash_rate rate = {.forward = 0.5, .backward = 0.5, .softmax = 0.25},
                               none = {0};
    static const struct {
        const char *name;
        const cs_flash_rate *rate;
        double q, v, forward, backward;
    } rows[] = {
        {"128", &rate, 128, 128, 1, 1},
        {"64", &rate, 64, 64, 1.25, 1.25},
        {"32", &rate, 32, 32, 1.75, 1.75},
        {"96", &rate, 96, 96, 13.0 / 12, 13.0 / 12},
        {"192 by 128", &rate, 192, 128, 1, 1},
        {"192", &rate, 192, 192, 1, 1},
        {"256", &rate, 256, 256, 1, 1 / 0.73},
        {"64, not stated", &none, 64, 64, 1, 1},
        {"256, not stated", &none, 256, 256, 1, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_pass_cost forward = pass_of(7, 2048.5, rows[i].q, rows[i].v, 1, CS_PASS_FORWARD);
        const cs_pass_cost backward =
            pass_of(7, 2048.5, rows[i].q, rows[i].v, 1, CS_PASS_BACKWARD_INPUT);
        expect_near(rows[i].name, rows[i].forward,
                    cs_fused_attention_factor(rows[i].rate, &forward, CS_PASS_FORWARD), 1e-12);
        expect_near(rows[i].name, rows[i].backward,
                    cs_fused_attention_factor(rows[i].rate, &backward, CS_PASS_BACKWARD_INPUT),
                    1e-12);
    }
}

/* Tiles of 200 queries that take 300 keys' time more. Rates hold for 2,048.5 keys and the diagonal:
 * 2,448.5 keys' time for 2,048.5. Of 100 keys not causal, 400 for 100; with the diagonal, 500; in a
 * window 600. What says no keys takes what its flop do. */
static void by_the_keys_of_a_query(void **state)
{
    (void)state;
    static const cs_flash_rate rate = {.forward = 0.5, .backward = 0.5, .ramp = 300, .tile = 200};
    static const double stated = 2448.5 / 2048.5;
    static const struct {
        const char *name;
        double keys, sides, expected;
    } rows[] = {{"of the rate", 2048.5, 1, stated},
                {"not causal", 100, 0, 4},
                {"causal", 100, 1, 5},
                {"a window", 100, 2, 6},
                {"long", 1e9, 1, 1 + 400e-9}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_pass_cost cost =
            pass_of(3, rows[i].keys, 128, 128, rows[i].sides, CS_PASS_FORWARD);
        expect_near(rows[i].name, rows[i].expected / stated,
                    cs_fused_attention_factor(&rate, &cost, CS_PASS_FORWARD), 1e-12);
    }
    const cs_pass_cost unknown = {.flop = 1e9};
    expect_near("no keys", 1, cs_fused_attention_factor(&rate, &unknown, CS_PASS_FORWARD), 0);
}

/* Work of an operator: 3 samples of 8 tokens, 2 heads of 4 features. Causal 36 pairs,
 * 4.5 keys for each of 48 queries; with a window of 2, 15 pairs, and two sides. Without fusion
 * there is none. */
static cs_op_cost cost_of(bool causal, uint32_t window, cs_attention_kernel kernel)
{
    cs_net net = {0};
    const cs_attention attention = {
        .heads = 2, .kv_heads = 2, .kernel = kernel, .causal = causal, .window = window};
    const cs_op *op = attention_net(&net, &attention);
    cs_op_cost cost;
    cs_op_cost_of(&net, op, 3, CS_PRECISION_BF16, &cost);
    cs_net_finish(&net);
    return cost;
}

static void operators_say_their_keys(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool causal;
        uint32_t window;
        cs_attention_kernel kernel;
        double queries, keys, sides;
    } rows[] = {{"all", false, 0, CS_ATTENTION_FLASH, 48, 8, 0},
                {"causal", true, 0, CS_ATTENTION_FLASH, 48, 4.5, 1},
                {"a window", true, 2, CS_ATTENTION_FLASH, 48, 15.0 / 8, 2},
                {"a window of all", true, 8, CS_ATTENTION_FLASH, 48, 4.5, 1},
                {"by math", true, 0, CS_ATTENTION_MATH, 0, 0, 0}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_op_cost got = cost_of(rows[i].causal, rows[i].window, rows[i].kernel);
        const cs_pass_cost *passes[] = {&got.forward, &got.backward_input};
        for (size_t p = 0; p < ROWS(passes); p++) {
            expect_double(rows[i].name, rows[i].queries, passes[p]->rows);
            expect_double(rows[i].name, rows[i].keys, passes[p]->columns);
            expect_double(rows[i].name, rows[i].sides, passes[p]->sides);
        }
    }
}

/* Kernels measured by others, none of which was used to set a value. The ratio of two of their
 * rates is compared, so the device's speed does not matter. H100: Shah et al., 2024 (arXiv
 * 2407.08608), figures 5 and 6; A100: Dao-AILab/flash-attention, issue 307; GB200: cuDNN, the same
 * repository's pull request 2605. */
static const struct measured {
    const char *name, *device;
    cs_flash version;
    cs_pass pass;
    double features, tokens, tflops;                   /* one kernel */
    double other_features, other_tokens, other_tflops; /* and of another */
    double sides, tolerance;
} measured[] = {
    {"cuDNN backward", "h100", CS_FLASH_CUDNN, CS_PASS_BACKWARD_INPUT, 64, 512, 266, 64, 16384, 433,
     0, 0.08},
    {"FlashAttention-3 backward", "h100", CS_FLASH_3, CS_PASS_BACKWARD_INPUT, 64, 1024, 363, 64,
     16384, 474, 0, 0.05},
    {"FlashAttention-3", "h100", CS_FLASH_3, CS_PASS_FORWARD, 128, 2048, 521, 128, 16384, 616, 1,
     0.1},
    {"FlashAttention-2", "h100", CS_FLASH_2, CS_PASS_FORWARD, 64, 4096, 284, 128, 4096, 319, 1,
     0.03},
    {"cuDNN", "h100", CS_FLASH_CUDNN, CS_PASS_FORWARD, 64, 4096, 363, 128, 4096, 518, 1, 0.1},
    {"2,048 tokens", "a100", CS_FLASH_2, CS_PASS_FORWARD, 64, 2048, 150.1, 64, 16384, 182.1, 1,
     0.05},
    {"64 features", "a100", CS_FLASH_2, CS_PASS_FORWARD, 64, 4096, 168.8, 128, 4096, 197.8, 1,
     0.03},
    {"4,096 tokens", "gb200", CS_FLASH_CUDNN, CS_PASS_FORWARD, 64, 4096, 977, 64, 16384, 1120, 1,
     0.1},
    {"2,048 tokens", "gb200", CS_FLASH_CUDNN, CS_PASS_FORWARD, 64, 2048, 827, 64, 16384, 1120, 1,
     0.1},
};

/* By the stated rate. */
static double rate_of(const struct measured *m, const cs_accelerator *device, double features,
                      double tokens)
{
    const double keys = m->sides > 0 ? (tokens + 1) / 2 : tokens;
    const cs_pass_cost cost = pass_of(tokens, keys, features, features, m->sides, m->pass);
    return 1 / cs_fused_attention_factor(device->training.flash[m->version], &cost, m->pass);
}

static void agrees_with_other_measurements(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(measured); i++) {
        const struct measured *m = &measured[i];
        cs_error error;
        cs_accelerator device = {0};
        cs_error_init(&error);
        if (cs_accelerator_load(m->device, NULL, &device, &error) != CS_OK)
            fail_msg("%s", error.text);
        expect_near(m->name, m->tflops / m->other_tflops,
                    rate_of(m, &device, m->features, m->tokens) /
                        rate_of(m, &device, m->other_features, m->other_tokens),
                    m->tolerance);
        cs_accelerator_finish(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_the_size_of_heads),
                                       cmocka_unit_test(by_the_keys_of_a_query),
                                       cmocka_unit_test(operators_say_their_keys),
                                       cmocka_unit_test(agrees_with_other_measurements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
