/* Operators that are recomputed although this frees nothing: that the scenario's warning says so of
 * these and of no others, and gives the right remedy. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

/* A block of Llama, of 2 x 32 tokens, 64 features, 128 in the middle and 4 heads, in bf16. Of the
 * MLP, PyTorch keeps the inputs of each operator: the gate for its activation ("act"), the
 * activated gate and the other half for their product ("mul"), the product for "down_proj". Each of
 * these is 64 x 128 x 2 bytes. Attention without a fused kernel keeps its weights, 4 x 32 x 32 per
 * sample, x 2 x 2 bytes. */
#define LLAMA                                                                                      \
    "{'schema_version': 1, 'name': 't', 'model': {'name': 'llama', 'parameters': {'layers': 1, "   \
    "'hidden': 64, 'heads': 4, 'kv_heads': 4, 'intermediate': 128, 'sequence': 32, 'vocabulary': " \
    "64, 'attention': 'math'}, 'device': 'h100', 'precision': 'bf16', 'batch_size': 2%s}, "        \
    "'platform': {'topology': 'ideal', 'devices': 1}, 'schedule': {'kind': 'sequential'}}"
enum { FEATURES = 64 * 128 * 2, WEIGHTS = 4 * 32 * 32 * 2 * 2 };

#define IDLE(name)                                                                                 \
    "test: /model/recompute_operators: recomputing \"" name "\" takes time and frees no memory"
#define KEPT                                                                                       \
    ", because its results are saved for other operators; add it to /model/discard_operators as "  \
    "well, or leave it out"

static const struct {
    const char *keys;
    int64_t freed; /* bytes */
    const char *warning;
} rows[] = {
    {"'recompute_operators': ['act']", 0, IDLE("act") KEPT},
    {"'recompute_operators': ['mul']", 0, IDLE("mul") KEPT},
    {"'recompute_operators': ['act'], 'discard_operators': ['act']", FEATURES, ""},
    /* neighbours: the activated gate is read by none but them */
    {"'recompute_operators': ['act', 'mul']", FEATURES, ""},
    {"'recompute_operators': ['act', 'mul'], 'discard_operators': ['mul']", 2 * FEATURES, ""},
    /* a name within another one repeats nothing more */
    {"'recompute_operators': ['mlp', 'layers.0.mlp.act']", 4 * FEATURES, ""},
    /* the addition after it keeps nothing of its result */
    {"'recompute_operators': ['down_proj']", 0, IDLE("down_proj") "; leave it out"},
    /* one of two */
    {"'recompute_operators': ['attention', 'mul']", WEIGHTS, IDLE("mul") KEPT},
    /* Megatron Core's recomputation of core attention */
    {"'recompute_operators': ['attention']", WEIGHTS, ""},
};

static int64_t kept_bytes(const cs_model *model)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        sum += model->layers[i].kept_bytes + model->layers[i].carried_bytes;
    return sum;
}

static void warned_where_nothing_is_freed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run without, with;
        char keys[200];
        cs_error error;
        cs_error_init(&error);
        snprintf(keys, sizeof(keys), ", %s", rows[i].keys);
        assert_int_equal(CS_OK, scenario_run_init(&without, &error, LLAMA, ""));
        if (scenario_run_init(&with, &error, LLAMA, keys) != CS_OK)
            fail_msg("%s: %s", rows[i].keys, error.text);
        expect_text(rows[i].keys, "", without.scenario.warnings.text);
        expect_text(rows[i].keys, rows[i].warning, with.scenario.warnings.text);
        expect_int(rows[i].keys, rows[i].freed,
                   kept_bytes(without.scenario.model) - kept_bytes(with.scenario.model));
        if (with.simulation.trace.makespan <= without.simulation.trace.makespan)
            fail_msg("%s: takes no time", rows[i].keys);
        scenario_run_finish(&without);
        scenario_run_finish(&with);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(warned_where_nothing_is_freed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
