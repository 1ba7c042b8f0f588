/* Additional cost of attention in fp8 over the wide type, by hand (fused-attention.h). */
#include "sim/model/fused-attention.h"
#include "tests/attention-net.h"
#include "tests/expect.h"

#include <string.h>

/* 8 tokens of 2 heads of queries and 1 of keys and values, with 4 features each, and a window. */
static cs_op_cost cost_of(uint32_t window, cs_attention_kernel kernel, cs_runtime_kernels kernels)
{
    cs_net net = {0};
    const cs_attention attention = {
        .heads = 2, .kv_heads = 1, .kernel = kernel, .causal = true, .window = window};
    const cs_op *op = attention_net(&net, &attention);
    cs_op_cost cost;
    cs_op_cost_of(&net, op, 3, CS_PRECISION_BF16, &cost);
    cs_narrow_attention_cost(&kernels, &net, op, 3, CS_PRECISION_BF16, &cost);
    cs_net_finish(&net);
    return cost;
}

/* Of 3 samples. Queries and the result have 8 x 8, keys and values 8 x 4 elements: 192 in all; a
 * cast reads and writes 2 + 1 bytes of each: 1,728 bytes, by two additional kernels. Pairs of
 * tokens: 36 in the triangle, 8 + 7 = 15 with a window of 2. Forward 2 x 2 flop per pair and
 * feature (8), backward 5 products instead of two. Each of 8 queries meets an eighth of the pairs,
 * and the window ends them on a second side. */
static void adds_casts_and_forgets_windows(void **state)
{
    (void)state;
    static const cs_runtime_kernels narrow = {.given = true, .flash = CS_FLASH_CUDNN_FP8},
                                    wide = {.given = true, .flash = CS_FLASH_CUDNN}, none = {0};
    static const struct {
        const char *name;
        uint32_t window;
        cs_attention_kernel kernel;
        const cs_runtime_kernels *kernels;
        double forward_pairs, backward_pairs, cast; /* per sample; bytes */
        uint32_t launches;
    } rows[] = {
        {"in bf16", 0, CS_ATTENTION_FLASH, &wide, 36, 36, 0, 1},
        {"with a window", 2, CS_ATTENTION_FLASH, &wide, 15, 15, 0, 1},
        {"in fp8", 0, CS_ATTENTION_FLASH, &narrow, 36, 36, 1728, 3},
        {"with a window", 2, CS_ATTENTION_FLASH, &narrow, 15, 36, 1728, 3},
        {"without a runtime", 2, CS_ATTENTION_FLASH, &none, 15, 15, 0, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_op_cost got = cost_of(rows[i].window, rows[i].kernel, *rows[i].kernels);
        expect_double(rows[i].name, 3 * 2 * 2 * 8 * rows[i].forward_pairs, got.forward.flop);
        expect_double(rows[i].name, 3 * 2 * 5 * 8 * rows[i].backward_pairs,
                      got.backward_input.flop);
        expect_double(rows[i].name, rows[i].forward_pairs / 8, got.forward.columns);
        expect_double(rows[i].name, rows[i].backward_pairs / 8, got.backward_input.columns);
        expect_double(rows[i].name, 1 + (rows[i].forward_pairs < 36), got.forward.sides);
        expect_double(rows[i].name, 1 + (rows[i].backward_pairs < 36), got.backward_input.sides);
        expect_double(rows[i].name, rows[i].cast, got.forward.cast_bytes);
        expect_double(rows[i].name, rows[i].cast, got.backward_input.cast_bytes);
        expect_int(rows[i].name, rows[i].launches, got.forward.launches);
        expect_int(rows[i].name, rows[i].launches, got.backward_input.launches);
    }
}

/* Attention by math has no kernel in fp8. */
static void leaves_math_alone(void **state)
{
    (void)state;
    const cs_runtime_kernels narrow = {.given = true, .flash = CS_FLASH_CUDNN_FP8}, none = {0};
    const cs_op_cost got = cost_of(0, CS_ATTENTION_MATH, narrow);
    const cs_op_cost same = cost_of(0, CS_ATTENTION_MATH, none);
    assert_memory_equal(&got.forward, &same.forward, sizeof(same.forward));
    assert_memory_equal(&got.backward_input, &same.backward_input, sizeof(same.backward_input));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_casts_and_forgets_windows),
        cmocka_unit_test(leaves_math_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
