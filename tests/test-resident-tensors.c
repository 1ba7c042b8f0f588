/* The tensors that weights and optimizer states are, of each device of a mesh, against sums by
 * hand. */
#include "sim/run/resident-tensors.h"

#include "tests/expect.h"
#include "tests/run-scenario.h"

typedef struct sizes {
    uint32_t n;
    int64_t sum, largest;
} sizes;

static cs_status count(void *context, int64_t bytes, cs_error *error)
{
    sizes *to = context;
    (void)error;
    to->n++;
    to->sum += bytes;
    to->largest = bytes > to->largest ? bytes : to->largest;
    return CS_OK;
}

/* A mixture of 4 experts on 4 replicas with expert parallelism 2: each device has 2 experts of
 * each of 2 layers, up 16 x 64 and down 64 x 16 weights, 4096 per layer; and everything else. With
 * zero 1, states of experts are sharded over the 2 devices with the same experts, all other states
 * over 4 devices. */
static const char mixture[] =
    "{'schema_version': 1, 'name': 't', 'model': {'name': 'decoder', 'parameters': {'layers': 2, "
    "'hidden': 16, 'heads': 2, 'kv_heads': 2, 'head': 8, 'sequence': 8, 'vocabulary': 40, "
    "'intermediate': 64, 'experts': 4, "
    "'top_k': 1, 'expert_intermediate': 64, 'activation': 'gelu'}, 'device': 'a100', 'precision': "
    "'bf16', 'batch_size': 4, 'optimizer': 'adam'}, 'platform': {'topology': 'dgx-a100', "
    "'devices': "
    "4}, 'parallel': {'data': 4, 'expert': 2, 'zero': %d}, 'memory': {'allocator': 'pytorch'}, "
    "'schedule': {'kind': 'sequential', 'micro_batches': 1}}";

enum { EXPERT_WEIGHTS = 2 * 2 * 2 * 16 * 64, LARGEST_EXPERT = 16 * 64 };

/* Bytes of weights of the stage, of 2 each. */
static int64_t weights_of(const scenario_run *run, bool experts)
{
    int64_t sum = 0;
    for (uint32_t l = 0; l < run->scenario.model->n_layers; l++) {
        const cs_layer *layer = &run->scenario.model->layers[l];
        const uint32_t dense = layer->n_parameters - layer->n_expert_parameters;
        for (uint32_t i = 0; i < layer->n_parameters; i++)
            sum += (i >= dense) == experts ? layer->parameters[i] : 0;
    }
    return sum;
}

static void check(int zero)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_read(&run, &error, mixture, zero) != CS_OK)
        fail_msg("%s", error.text);
    const int64_t experts = weights_of(&run, true), dense = weights_of(&run, false);
    sizes all = {0};
    expect_int("experts", 2 * EXPERT_WEIGHTS, experts);
    assert_int_equal(cs_weight_tensors(&run.scenario, 0, count, &all, &error), CS_OK);
    expect_int("weights", experts + dense, all.sum);
    /* a weight of 2 bytes has a copy of 4 and two states of 4 */
    const int64_t held = zero ? dense / 4 + experts / 2 : dense + experts;
    for (uint32_t d = 0; d < 4; d++) {
        sizes copies = {0}, late = {0};
        int64_t added;
        assert_int_equal(cs_optimizer_tensors(&run.scenario, 0, d, false, 6 * held, &added, count,
                                              &copies, &error),
                         CS_OK);
        expect_int("added", copies.sum, added);
        assert_int_equal(
            cs_optimizer_tensors(&run.scenario, 0, d, true, 6 * held, &added, count, &late, &error),
            CS_OK);
        expect_int("copies", 2 * held, copies.sum);
        expect_int("states", 4 * held, late.sum);
        expect_int("two of each", 2 * copies.n, late.n);
        if (zero) /* the largest that is left whole */
            expect_int("a matrix of an expert", 4 * LARGEST_EXPERT, copies.largest);
    }
    scenario_run_finish(&run);
}

static void divides_experts_by_themselves(void **state)
{
    (void)state;
    check(0);
    check(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(divides_experts_by_themselves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
