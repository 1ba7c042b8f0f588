/* Traffic of a loss's kernels, by hand (loss-kernels.h). */
#include "sim/model/loss-kernels.h"
#include "tests/expect.h"

#include <string.h>

/* 2 samples of 3 tokens with 5 logits each: 30 logits. */
static cs_op_cost cost_of(cs_runtime_kernels kernels, cs_precision precision)
{
    cs_net net = {0};
    cs_op_cost cost;
    cs_error error;
    cs_error_init(&error);
    cs_net_begin(&net, "n", &error);
    cs_net_block(&net, "all");
    const cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 3), 8, 5);
    cs_net_cross_entropy(&net, "loss", x);
    assert_int_equal(cs_net_end(&net), CS_OK);
    const cs_op *op = &net.ops[net.n_ops - 1];
    assert_int_equal(op->kind, CS_OP_CROSS_ENTROPY);
    cs_op_cost_of(&net, op, 2, precision, &cost);
    cs_loss_kernels_cost(&kernels, &net, op, 2, precision, &cost);
    cs_net_finish(&net);
    return cost;
}

/* Bytes per logit, in the order of reads (r) and writes (w) in the frameworks' code. bf16:
 *   stepwise  cast r2 w4, max r4, subtract r4 w4, exp r4 w4, sum r4, divide r4 w4: 38; backward
 *             multiply r4 w4, cast r4 w2: 14. Kernels: these 6; mask: 3; target: clone, subtract,
 *             fill; arange, index, clone, fill; of a row: log, subtract: 18. Backward: these 2;
 *             arange, cast, subtract; index, subtract, put: 8
 *   jitted    cast and max r2 w4, exp and sum r4 w4, divide r4 w4: 22; r4 w2: 6
 *   eager     cast r2 w4, logarithms r4 w4: 14, and the loss of the targets; zeros w4, softmax r4
 *             r4 w4, cast r4 w2: 22, and the gradient at the targets
 *   parallel  cast r2 w4, max r4, subtract r4 w4, exp r4 w4, sum r4, subtract r4 w4: 38; zeros w4,
 *             exp r4 w4, add r4 r4 w4, multiply r4 w4, cast r4 w2: 38
 * fp32 needs no casts, but the jitted kernel also contains the maximum, so it reads 4 and writes 4.
 * Fused, as without a runtime: logits and logarithms, and 8 bytes for each of 3 x 2 targets; in the
 * backward also the gradient. */
static void moves_logits(void **state)
{
    (void)state;
    enum { LOGITS = 2 * 3 * 5, TARGETS = 2 * 3 * 8 };
    static const struct {
        const char *name;
        uint32_t loss;
        cs_precision precision;
        double forward, backward;
        uint32_t kernels, backward_kernels;
    } rows[] = {
        {"stepwise", CS_LOSS_KERNELS_STEPWISE, CS_PRECISION_BF16, 38, 14, 18, 8},
        {"stepwise, fp32", CS_LOSS_KERNELS_STEPWISE, CS_PRECISION_FP32, 32, 8, 17, 7},
        {"jitted", CS_LOSS_KERNELS_JITTED, CS_PRECISION_BF16, 22, 6, 3, 1},
        {"jitted, fp32", CS_LOSS_KERNELS_JITTED, CS_PRECISION_FP32, 24, 8, 3, 1},
        {"eager", CS_LOSS_KERNELS_EAGER, CS_PRECISION_BF16, 14, 22, 3, 4},
        {"eager, fp32", CS_LOSS_KERNELS_EAGER, CS_PRECISION_FP32, 8, 16, 2, 3},
        {"parallel", CS_LOSS_KERNELS_PARALLEL, CS_PRECISION_BF16, 38, 38, 14, 12},
        {"parallel, fp32", CS_LOSS_KERNELS_PARALLEL, CS_PRECISION_FP32, 32, 32, 13, 11},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_runtime_kernels kernels = {.given = true, .loss = rows[i].loss};
        const cs_op_cost got = cost_of(kernels, rows[i].precision);
        expect_double(rows[i].name, LOGITS * rows[i].forward, got.forward.bytes);
        expect_double(rows[i].name, LOGITS * rows[i].backward, got.backward_input.bytes);
        expect_int(rows[i].name, rows[i].kernels, got.forward.launches);
        expect_int(rows[i].name, rows[i].backward_kernels, got.backward_input.launches);
    }
    const cs_op_cost fused = cost_of((cs_runtime_kernels){.given = true}, CS_PRECISION_BF16);
    const cs_op_cost none =
        cost_of((cs_runtime_kernels){.loss = CS_LOSS_KERNELS_STEPWISE}, CS_PRECISION_BF16);
    expect_double("fused", LOGITS * 6 + TARGETS, fused.forward.bytes);
    expect_double("fused", LOGITS * 8 + TARGETS, fused.backward_input.bytes);
    assert_memory_equal(&fused.forward, &none.forward, sizeof(none.forward));
    assert_memory_equal(&fused.backward_input, &none.backward_input, sizeof(none.backward_input));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(moves_logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
