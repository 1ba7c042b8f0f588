/* Rules of the section "parallel" that hold for some layers only. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

static cs_status run(scenario_run *made, const char *schedule, const char *parallel,
                     cs_error *error)
{
    cs_error_init(error);
    return scenario_run_init(
        made, error,
        "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'mixtral', 'parameters': "
        "{'layers': 4, 'hidden': "
        "256, 'heads': 8, 'kv_heads': 4, 'expert_intermediate': 512, 'sequence': 128, "
        "'vocabulary': "
        "1024}, 'device': 'h100', 'granularity': 'block', 'precision': 'bf16', 'batch_size': 64, "
        "'optimizer': 'adam'}, 'platform': {'topology': 'dgx-h100', 'devices': 16}, 'schedule': "
        "{%s}, 'parallel': {%s}}",
        schedule, parallel);
}

static uint64_t hash_of(const char *row, const char *schedule, const char *parallel)
{
    scenario_run made;
    cs_error error;
    if (run(&made, schedule, parallel, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
    const uint64_t hash = cs_trace_hash(&made.simulation.trace);
    scenario_run_finish(&made);
    return hash;
}

/* The same stage for all layers by a rule as by "zero", whatever "zero" is. */
static void test_rules_for_all_layers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *schedule, *with;
    } jobs[] = {
        {"sequential", "'kind': 'sequential', 'micro_batches': 2", ""},
        {"experts", "'kind': 'sequential', 'micro_batches': 2", "'expert': 4, "},
        {"scattered", "'kind': 'sequential', 'micro_batches': 2",
         "'accumulate': false, 'bucket': '2 MB', "},
        {"in groups", "'kind': 'gpipe', 'micro_batches': 2",
         "'pipeline': 2, 'shard': 4, 'keep_gathered': true, 'prefetch': 2, "},
        {"1f1b", "'kind': '1f1b', 'micro_batches': 4",
         "'pipeline': 4, 'tensor': 2, 'sequence_parallel': true, "},
    };
    static const char *const rules[] = {
        "{'layers': '*', 'zero': %u}", "{'layers': [0, 5], 'zero': %u}",
        ("{'layers': '*', 'zero': 1}, {'layers': 'layers.?', 'zero': %u, 'sharded': 1}, "
         "{'layers': [0, 0], 'zero': %u}, {'layers': [5, 5], 'zero': %u}")};
    for (size_t j = 0; j < ROWS(jobs); j++)
        for (uint32_t zero = 0; zero < 4; zero++) {
            char parallel[512], rule[256], row[64];
            snprintf(parallel, sizeof(parallel), "%s'zero': %u", jobs[j].with, zero);
            const uint64_t expected = hash_of(jobs[j].name, jobs[j].schedule, parallel);
            for (size_t r = 0; r < ROWS(rules); r++) {
                snprintf(row, sizeof(row), "%s, zero %u, rule %zu", jobs[j].name, zero, r);
                snprintf(rule, sizeof(rule), rules[r], zero, zero, zero);
                snprintf(parallel, sizeof(parallel), "%s'zero': %u, 'rules': [%s]", jobs[j].with,
                         3 - zero, rule);
                expect_bits(row, expected, hash_of(row, jobs[j].schedule, parallel));
            }
        }
}

/* "sharded" alone is a part of stage 3; nothing, or all of it, is as no part. A rule without a
 * stage leaves what was there. */
static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *one, *other;
    } rows[] = {
        {"nothing", "'zero': 0", "'rules': [{'layers': '*', 'sharded': 0}]"},
        {"nothing of stage 2", "'zero': 0", "'rules': [{'layers': '*', 'zero': 2, 'sharded': 0}]"},
        {"all", "'zero': 3", "'rules': [{'layers': '*', 'sharded': 1}]"},
        {"stage 3 is meant", "'rules': [{'layers': '*', 'zero': 3, 'sharded': 0.25}]",
         "'rules': [{'layers': '*', 'sharded': 0.25}]"},
        {"the last rule", "'zero': 3",
         "'rules': [{'layers': '*', 'sharded': 0.25}, "
         "{'layers': '*', 'zero': 3}, {'layers': 'layers.1'}]"},
    };
    const char *schedule = "'kind': 'sequential', 'micro_batches': 2";
    for (size_t r = 0; r < ROWS(rows); r++)
        expect_bits(rows[r].name, hash_of(rows[r].name, schedule, rows[r].one),
                    hash_of(rows[r].name, schedule, rows[r].other));
}

/* Weights, and states of 12 bytes for each 2 of them, of all layers but one are divided by 16. */
static void test_memory(void **state)
{
    (void)state;
    scenario_run made;
    cs_error error;
    if (run(&made, "'kind': 'sequential', 'micro_batches': 1",
            "'zero': 3, 'rules': [{'layers': 'layers.2', 'zero': 1}, {'layers': '*head*', "
            "'sharded': 0.5}]",
            &error) != CS_OK)
        fail_msg("%s", error.text);
    const cs_model *model = made.scenario.model;
    int64_t weights = 0, states = 0, whole = 0, divided = 0, updated = 0;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const int64_t all = model->layers[l].weight_bytes;
        const bool head = strstr(model->layers[l].name, "head") != NULL;
        const bool one = strcmp(model->layers[l].name, "layers.2") == 0;
        whole += one ? all : head ? all / 2 : 0;
        divided += one ? 0 : head ? all / 2 : all;
        updated += one ? all : 0;
    }
    weights = whole + (divided + 15) / 16;
    states = 6 * (whole - updated + (updated + divided + 15) / 16);
    const cs_device_record *device = &made.simulation.trace.devices[3];
    expect_int("weights", weights, device->category_peak[CS_MEMORY_WEIGHTS]);
    expect_int("states", states, device->category_peak[CS_MEMORY_OPTIMIZER]);
    scenario_run_finish(&made);
}

static const char sequential[] = "'kind': 'sequential', 'micro_batches': 1";

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *rules, *message;
    } rows[] = {
        {sequential, "{'layers': 'layer.1', 'zero': 3}",
         "test: /parallel/rules/0/layers: must be the name of a layer of \"mixtral\": unknown "
         "\"layer.1\"; did you mean \"layers.1\"? known: embedding, layers.0, layers.1, layers.2, "
         "layers.3, head"},
        {sequential, "{'layers': '*', 'zero': 3}, {'layers': 'fc*', 'zero': 3}",
         "test: /parallel/rules/1/layers: must be the name of a layer of \"mixtral\": unknown "
         "\"fc*\"; known: embedding, layers.0, layers.1, layers.2, layers.3, head"},
        {sequential, "{'layers': [2, 6], 'zero': 3}",
         "test: /parallel/rules/0/layers/1: must be at most 5, the last layer of \"mixtral\" (got "
         "6)"},
        {sequential, "{'layers': [8, 9], 'zero': 3}",
         "test: /parallel/rules/0/layers/0: must be at most 5, the last layer of \"mixtral\" (got "
         "8)"},
        {sequential, "{'layers': [2, 1], 'zero': 3}",
         "test: /parallel/rules/0/layers/1: must be the name of layers, or the first and the last "
         "one, as whole numbers in rising order (got 1)"},
        {sequential, "{'layers': [2], 'zero': 3}",
         "test: /parallel/rules/0/layers: must be the name of layers, or the first and the last "
         "one, as whole numbers in rising order (got 1 numbers)"},
        {sequential, "{'layers': 2, 'zero': 3}",
         "test: /parallel/rules/0/layers: must be the name of layers, or the first and the last "
         "one (got 2)"},
        {sequential, "{'layers': '*', 'zero': 4}",
         "test: /parallel/rules/0/zero: must be from 0 to 3 (got 4)"},
        {sequential, "{'layers': '*', 'sharded': 1.5}",
         "test: /parallel/rules/0/sharded: must be from 0 to 1 (got 1.5)"},
        {sequential, "{'zero': 3}",
         "test: /parallel/rules/0: missing key \"layers\": must be \"pattern\" or [first, last]"},
        {"'kind': 'pipedream'", "{'layers': '*', 'zero': 1}, {'layers': '*', 'sharded': 0.5}",
         "test: /parallel/rules/1/zero: must be at most 2 for the schedule \"pipedream\", whose "
         "backwards use older weights, which cannot be gathered again (got 3); use "
         "/schedule={\"kind\": \"sequential\", \"micro_batches\": 1}"},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run made;
        cs_error error;
        char parallel[256];
        snprintf(parallel, sizeof(parallel), "'rules': [%s]", rows[r].rules);
        expect_error(rows[r].rules, CS_INVALID, rows[r].message,
                     run(&made, rows[r].schedule, parallel, &error), &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules_for_all_layers),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
