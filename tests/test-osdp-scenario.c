/* OSDP of scenarios: operators as the simulation has them, costs that it gives where the cost model
 * leaves nothing out, and plans that it runs. */
#include "sim/run/osdp.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>

enum { TEXT_BYTES = 4096 };

/* JSON in printf's format, with ' in place of ". */
static cJSON *parse(const char *format, ...) CS_PRINTF(1, 2);

static cJSON *parse(const char *format, ...)
{
    char text[TEXT_BYTES];
    cJSON *root;
    cs_error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cs_error_init(&error);
    expect_error("json", CS_OK, "", cs_json_parse("test.json", text, strlen(text), &root, &error),
                 &error);
    return root;
}

static const cs_osdp_slices four = {NULL, 4};
static const cs_osdp_options usual = {.slices = &four, .n_slices = 1, .most_batch = 64};

static void make(cJSON *root, const cs_osdp_options *how, cs_osdp_study *study)
{
    cs_error error;
    cs_error_init(&error);
    expect_error("study", CS_OK, "", cs_osdp_study_make(root, "test.json", how, study, &error),
                 &error);
}

/* Layers of 8 MB in float32 on four devices, at 1 MB/ms and 10 us; a sample a device. Adam's two
 * states: 8 + 8 + 16 MB. */
static cJSON *uniform(uint32_t layers)
{
    return parse(
        "{'schema_version': 1, 'model': {'uniform': {'layers': %u, 'forward': '3 ms',"
        " 'backward': '6 ms', 'weights': '8 MB', 'activation': '1 MB'}, 'optimizer': 'adam',"
        " 'batch_size': 4},"
        " 'platform': {'topology': 'ring', 'devices': 4, 'bandwidth': '1 GB/s',"
        " 'latency': '10 us', 'memory': '1 GB'},"
        " 'parallel': {}, 'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
        layers);
}

static void operators_are_the_layers(void **state)
{
    cJSON *root = uniform(3);
    cs_osdp_study study;
    (void)state;
    make(root, &usual, &study);
    const cs_osdp_model *m = &study.model;
    const cs_osdp_operator *op = &m->operators[1];
    expect_int("operators", 3, m->n);
    expect_int("with weights", 3, study.n_weighted);
    expect_int("devices", 4, m->devices);
    expect_int("samples", 1, m->samples);
    expect_int("gathers", 2, m->gathers);
    expect_int("latency", 10000000, m->latency);
    expect_double("bandwidth", 1e9, m->bandwidth);
    expect_int("weights", 8000000, op->weights);
    expect_int("gradients", 8000000, op->gradients);
    expect_int("states", 32000000, op->states);
    expect_int("kept", 1000000, op->kept);
    expect_int("compute", 9000000000, op->compute);
    expect_int("slices", 4, op->slices);
    cs_osdp_study_finish(&study);
    cJSON_Delete(root);
}

/* A measured gather among 4 devices takes 300 us and 2 ns per byte. It has 3 hops of 100 us, each
 * with a quarter of the bytes: 3/4 of the bytes take 2 ns per byte of the whole. A device with half
 * the speed takes 18 ms instead of 9 ms. */
static void a_measured_profile_is_taken(void **state)
{
    cJSON *
        root = uniform(3),
       *costs = parse(
           "{'inline': {'schema_version': 1, 'sources': [{'source': 'sim import nccl-tests',"
           " 'device': 'made up', 'driver': '', 'libraries': '', 'clock': '', 'date': '2026-11-21',"
           " 'notes': ''}], 'network': [{'collective': 'all_gather', 'level': 'node', 'ranks': 4,"
           " 'source': 0, 'regimes': ["
           "{'from_bytes': 0, 'alpha_s': {'value': 1e-3, 'low': 1e-3, 'high': 1e-3},"
           " 'beta_s_per_byte': {'value': 9e-9, 'low': 9e-9, 'high': 9e-9}, 'error': 0, 'points': "
           "2,"
           " 'outliers': 0},"
           "{'from_bytes': 1000000, 'alpha_s': {'value': 3e-4, 'low': 3e-4, 'high': 3e-4},"
           " 'beta_s_per_byte': {'value': 2e-9, 'low': 2e-9, 'high': 2e-9}, 'error': 0, 'points': "
           "2,"
           " 'outliers': 0}]}]}}");
    cs_osdp_study study;
    (void)state;
    assert_true(cJSON_AddItemToObject(root, "costs", costs));
    assert_non_null(cJSON_AddNumberToObject(cJSON_GetObjectItem(root, "platform"), "speed", 0.5));
    make(root, &usual, &study);
    expect_int("latency", 100000000, study.model.latency);
    expect_double("bandwidth", 3. / 4 / 2e-9, study.model.bandwidth);
    expect_int("compute", 18000000000, study.model.operators[1].compute);
    cs_osdp_study_finish(&study);
    cJSON_Delete(root);
}

static void slices_are_bounded_by_name(void **state)
{
    static const cs_osdp_slices slices[] = {{NULL, 4}, {"layer1", 16}, {"*2", 1}};
    const cs_osdp_options how = {.slices = slices, .n_slices = 3, .most_batch = 1};
    cJSON *root = uniform(3);
    cs_osdp_study study;
    (void)state;
    make(root, &how, &study);
    expect_int("layer0", 4, study.model.operators[0].slices);
    expect_int("layer1", 16, study.model.operators[1].slices);
    expect_int("layer2", 1, study.model.operators[2].slices);
    cs_osdp_study_finish(&study);
    cJSON_Delete(root);
}

/* A single operator cannot overlap anything. A ring step is 10 us and 2 MB at 1 GB/s: c = 3 (0.01 +
 * 2) ms = 6.03 ms. Data parallel 2 c + 9 ms, sharded 3 c + 9 ms; all four devices together send 2
 * and 3 times (N - 1) 8 MB. Memory: 32 MB and an activation; or 8 MB of states, an activation, and
 * 8 MB each of gathered weights and gradients. */
static void one_operator_takes_what_the_simulation_says(void **state)
{
    static const struct {
        const char *name;
        cs_osdp_strategy row;
        double time;
        double moved;
        int64_t memory;
    } rows[] = {{"data parallel", CS_OSDP_ROW_DATA, 0.02106, 2 * 3 * 8e6, 33000000},
                {"sharded", CS_OSDP_ROW_FSDP, 0.02709, 3 * 3 * 8e6, 25000000}};
    cs_osdp_options how = usual;
    cJSON *root = uniform(1);
    cs_osdp_study study;
    (void)state;
    how.most_batch = 1;
    how.simulate = true;
    make(root, &how, &study);
    for (size_t r = 0; r < ROWS(rows); r++) {
        const cs_osdp_row *row = &study.rows[rows[r].row];
        cJSON *document = cs_osdp_document(&study, root, &row->plan);
        cs_scenario scenario;
        cs_simulation simulation;
        cs_error error;
        double moved = 0;
        cs_error_init(&error);
        assert_true(row->plan.found && row->fitted.found);
        expect_double(rows[r].name, rows[r].time, cs_time_seconds(row->plan.cost.time));
        expect_double(rows[r].name, rows[r].time, row->iteration_time);
        expect_int(rows[r].name, rows[r].memory, row->plan.cost.memory);
        expect_int(rows[r].name, rows[r].memory, row->peak);
        assert_int_equal(CS_OK, cs_scenario_read(document, "test.json", &scenario, &error));
        assert_int_equal(CS_OK,
                         cs_simulate(&scenario, &(cs_simulation_options){0}, &simulation, &error));
        for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
            moved += simulation.lowering.moved[p];
        expect_double(rows[r].name, rows[r].moved, moved);
        cs_simulation_finish(&simulation);
        cs_scenario_finish(&scenario);
        cJSON_Delete(document);
    }
    cs_osdp_study_finish(&study);
    cJSON_Delete(root);
}

/* Three such operators: sharded 3 (8 + 1) MB and 16 MB of surge, 43 MB; one data-parallel operator
 * takes 24 MB more, so with 80 MB one fits. In quarters the surge is 4 MB, so two fit: 27 + 2 * 24
 * + 4 MB. The saved scenario says so, and runs; the simulation gathers the whole sharded part at
 * once, 16 MB, and so does not choose it. */
static void what_is_saved_runs(void **state)
{
    cJSON *root = uniform(3);
    cs_osdp_options how = usual;
    cs_osdp_study study;
    cs_error error;
    (void)state;
    how.most_batch = 1;
    how.simulate = true;
    cs_error_init(&error);
    assert_int_equal(CS_OK, cs_json_set(root, "/platform/memory", "80 MB", "test", &error));
    make(root, &how, &study);
    const cs_osdp_row *base = &study.rows[CS_OSDP_ROW_BASE], *osdp = &study.rows[CS_OSDP_ROW_OSDP];
    expect_double("whole", 1. / 3, base->data_fraction);
    expect_int("whole", 67000000, base->plan.cost.memory);
    expect_double("in quarters", 2. / 3, osdp->data_fraction);
    expect_int("in quarters", 79000000, osdp->plan.cost.memory);
    assert_true(base->fitted.found && base->peak <= 80000000);
    assert_true(osdp->fitted.found && osdp->peak <= 80000000);
    assert_true(cs_osdp_simulated_throughput(&study, CS_OSDP_ROW_OSDP) >=
                cs_osdp_simulated_throughput(&study, CS_OSDP_ROW_FSDP));
    cJSON *document = cs_osdp_document(&study, root, &osdp->plan);
    const cJSON *parallel = cs_json_member(document, "parallel");
    cs_scenario scenario;
    double sharded = 0;
    const cJSON *rule;
    cJSON_ArrayForEach(rule, cs_json_member(parallel, "rules"))
    {
        const cJSON *layers = cs_json_member(rule, "layers");
        const double n = cJSON_GetArrayItem(layers, 1)->valuedouble -
                         cJSON_GetArrayItem(layers, 0)->valuedouble + 1;
        sharded += n * cs_json_member(rule, "sharded")->valuedouble;
    }
    expect_double("sharded layers", 1, sharded);
    expect_error("saved", CS_OK, "", cs_scenario_read(document, "test.json", &scenario, &error),
                 &error);
    expect_int("batch", 4, scenario.batch_size);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    cs_osdp_study_finish(&study);
    cJSON_Delete(root);
}

/* OSDP over FSDP is what modes, the batch and slices give, one after the other; and by modes no
 * more than the bound. */
static void factors_multiply(void **state)
{
    static const char *const limits[] = {"64 MB", "100 MB", "130 MB", "200 MB"};
    (void)state;
    for (size_t i = 0; i < ROWS(limits); i++) {
        cJSON *root = uniform(5);
        cs_osdp_study study;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(CS_OK, cs_json_set(root, "/platform/memory", limits[i], "test", &error));
        make(root, &usual, &study);
        const double all = cs_osdp_ratio(&study, CS_OSDP_ROW_OSDP, CS_OSDP_ROW_FSDP);
        const double modes = cs_osdp_ratio(&study, CS_OSDP_ROW_BASE_SAME, CS_OSDP_ROW_FSDP);
        const double batch = cs_osdp_ratio(&study, CS_OSDP_ROW_BASE, CS_OSDP_ROW_BASE_SAME);
        const double slices = cs_osdp_ratio(&study, CS_OSDP_ROW_OSDP, CS_OSDP_ROW_BASE);
        const double fraction = study.rows[CS_OSDP_ROW_BASE_SAME].data_fraction;
        assert_true(fabs(all - modes * batch * slices) < 1e-12);
        assert_true(modes >= 1 && batch >= 1 && slices >= 1);
        assert_true(modes <= cs_osdp_bound(&study.model, fraction) && modes <= 1.5);
        cs_osdp_study_finish(&study);
        cJSON_Delete(root);
    }
}

/* Four collectives in place of two: at most twice as fast. */
static void checkpointing_gathers_once_more(void **state)
{
    cJSON *root =
        parse("{'schema_version': 1, 'model': {'name': 'mingpt', 'parameters': {'layers': 2,"
              " 'hidden': 128, 'sequence': 64}, 'device': 'titan-rtx', 'precision': 'fp32',"
              " 'batch_size': 4, 'recompute': true}, 'platform': {'topology': 'ring',"
              " 'devices': 4, 'bandwidth': '1 GB/s'}, 'parallel': {},"
              " 'schedule': {'kind': 'sequential', 'micro_batches': 1}}");
    cs_osdp_study study;
    (void)state;
    make(root, &usual, &study);
    expect_int("gathers", 3, study.model.gathers);
    expect_double("bound", 2, cs_osdp_bound(&study.model, 1));
    cs_osdp_study_finish(&study);
    cJSON_Delete(root);
}

static void scenarios_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *name, *pointer, *value, *message;
    } rows[] = {
        {"micro-batches", "/schedule/micro_batches", "2",
         "test.json: /schedule/micro_batches: must be 1 for OSDP (got 2)"},
        {"stages", "/schedule/kind", "1f1b",
         "test.json: /schedule: must have one stage for OSDP, like \"sequential\" (got 4)"},
        {"gathered once", "/parallel", "{\"zero\": 3, \"gather_once\": true}",
         "test.json: /parallel/gather_once: must be false for OSDP, which frees weights after each "
         "layer"},
        {"kept", "/parallel", "{\"zero\": 3, \"keep_gathered\": true}",
         "test.json: /parallel/keep_gathered: must be false for OSDP, which frees weights after "
         "each layer"},
        {"groups", "/parallel", "{\"zero\": 3, \"shard\": 2}",
         "test.json: /parallel/shard: must be 0 for OSDP, which shards over all data-parallel "
         "devices (got 2)"},
    };
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        cJSON *root = uniform(4);
        cs_osdp_study study = {0};
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(CS_OK, cs_json_set(root, "/model/batch_size", "8", "test", &error));
        assert_int_equal(CS_OK, cs_json_set(root, rows[r].pointer, rows[r].value, "test", &error));
        expect_error(rows[r].name, CS_INVALID, rows[r].message,
                     cs_osdp_study_make(root, "test.json", &usual, &study, &error), &error);
        cs_osdp_study_finish(&study);
        cJSON_Delete(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_are_the_layers),
        cmocka_unit_test(a_measured_profile_is_taken),
        cmocka_unit_test(slices_are_bounded_by_name),
        cmocka_unit_test(one_operator_takes_what_the_simulation_says),
        cmocka_unit_test(what_is_saved_runs),
        cmocka_unit_test(factors_multiply),
        cmocka_unit_test(checkpointing_gathers_once_more),
        cmocka_unit_test(scenarios_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
