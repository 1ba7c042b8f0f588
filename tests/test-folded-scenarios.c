/* Scenarios with a mesh give the same bits whether alike devices are simulated once or each:
 * schedules, axes and states of weights, on two to four nodes. The unfolded run is the independent
 * answer. Where replicas meet on links, one that is as slow as the slowest is an upper bound in
 * these scenarios: one micro-batch, and so one kind of message at a time. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

static const struct {
    const char *name, *schedule, *parallel;
    uint32_t devices;
} rows[] = {
    {"data", "'kind': 'sequential', 'micro_batches': 4", "'data': 8", 8},
    {"zero 1", "'kind': 'sequential', 'micro_batches': 4", "'zero': 1", 8},
    {"zero 2", "'kind': 'sequential', 'micro_batches': 4", "'zero': 2, 'accumulate': false", 8},
    {"zero 3", "'kind': 'sequential', 'micro_batches': 4", "'zero': 3", 8},
    {"zero 3 in groups", "'kind': 'sequential', 'micro_batches': 4", "'zero': 3, 'shard': 4", 16},
    {"buckets", "'kind': 'sequential', 'micro_batches': 4", "'bucket': '1 MB'", 8},
    {"tensor", "'kind': 'sequential', 'micro_batches': 4", "'tensor': 4", 8},
    {"sequences", "'kind': 'sequential', 'micro_batches': 4",
     "'tensor': 4, 'sequence_parallel': true", 8},
    {"context", "'kind': 'sequential', 'micro_batches': 4", "'context': 4", 8},
    {"gpipe", "'kind': 'gpipe', 'micro_batches': 4", "'tensor': 2, 'pipeline': 4", 16},
    {"1f1b", "'kind': '1f1b', 'micro_batches': 4", "'tensor': 2, 'pipeline': 4, 'zero': 1", 16},
    {"recomputed", "'kind': '1f1b', 'micro_batches': 4, 'recompute': true",
     "'tensor': 2, 'pipeline': 2", 16},
    {"interleaved", "'kind': 'interleaved_1f1b', 'micro_batches': 4, 'stages_per_device': 2",
     "'tensor': 2, 'pipeline': 2, 'zero': 1", 16},
    {"zb_h1", "'kind': 'zb_h1', 'micro_batches': 4", "'tensor': 2, 'pipeline': 2", 8},
    {"all axes", "'kind': '1f1b', 'micro_batches': 2",
     "'tensor': 2, 'sequence_parallel': true, 'context': 2, 'pipeline': 4, 'zero': 2", 32},
    {"another order", "'kind': '1f1b', 'micro_batches': 2",
     "'tensor': 2, 'pipeline': 4, 'order': ['pipeline', 'tensor', 'data']", 32},
};

static cs_status run(size_t r, const char *fold, scenario_run *made, cs_error *error)
{
    return scenario_run_init(
        made, error,
        "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 6, 'hidden': 256,"
        " 'heads': 8, 'sequence': 128, 'vocabulary': 1024}, 'device': 'h100', 'precision': 'bf16',"
        " 'batch_size': 64, 'optimizer': 'adam'}, 'platform': {'topology': 'dgx-h100', 'devices': "
        "%u,"
        " 'routing': 'dmodk'}, 'schedule': {%s}, 'collectives': {'fidelity': 'analytic'},"
        " 'parallel': {%s, 'fold': '%s'}}",
        rows[r].devices, rows[r].schedule, rows[r].parallel, fold);
}

static void compare_devices(const char *name, const cs_trace *folded, const cs_trace *each)
{
    expect_int(name, each->n_devices, folded->n_devices);
    for (uint32_t d = 0; d < each->n_devices; d++) {
        expect_int(name, each->devices[d].peak, folded->devices[d].peak);
        expect_int(name, each->devices[d].peak_time, folded->devices[d].peak_time);
    }
}

static void test_folded(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run folded, each;
        cs_error error;
        cs_error_init(&error);
        if (run(r, "yes", &folded, &error) != CS_OK || run(r, "no", &each, &error) != CS_OK)
            fail_msg("%s: %s", rows[r].name, error.text);
        assert_true(folded.simulation.graph.n_tasks < each.simulation.graph.n_tasks);
        expect_text(rows[r].name, "", folded.simulation.lowering.unlike);
        expect_int(rows[r].name, each.simulation.trace.makespan, folded.simulation.trace.makespan);
        compare_devices(rows[r].name, &folded.simulation.trace, &each.simulation.trace);
        scenario_run_finish(&folded);
        scenario_run_finish(&each);
    }
}

static uint32_t count_simulated(const scenario_run *made)
{
    const cs_graph *graph = &made->simulation.graph;
    uint32_t n = 0;
    for (uint32_t d = 0; d < graph->n_devices; d++)
        n += cs_graph_has(graph, d);
    return n;
}

/* 4 leaves with 4 devices each: stages lie on two leaves each, and all messages between them cross
 * one of two spines; `routing` says which. */
static cs_time makespan_of(const char *routing, const char *fold, bool estimated)
{
    scenario_run made;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &made, &error,
            "{'schema_version': 1, 'model': {'uniform': {'layers': 2, 'forward': '1 ms', "
            "'backward': '2 ms', 'weights': '1 MB', 'activation': '10 MB'}}, 'platform': "
            "{'topology': 'leaf_spine', 'devices': 16, 'hosts_per_leaf': 4, 'spines': 4, "
            "'bandwidth': '10 GB/s', 'latency': '1 us', 'routing': '%s'}, 'schedule': {'kind': "
            "'gpipe', 'micro_batches': 1}, 'collectives': {'fidelity': 'analytic'}, 'parallel': "
            "{'pipeline': 2, 'fold': '%s'}}",
            routing, fold) != CS_OK)
        fail_msg("%s, %s: %s", routing, fold, error.text);
    const cs_time makespan = made.simulation.trace.makespan;
    assert_int_equal(estimated, made.scenario.estimated != NULL);
    expect_int(fold, strcmp(fold, "slowest") == 0 ? 2 : 16, count_simulated(&made));
    scenario_run_finish(&made);
    return makespan;
}

/* With dmodk each message has its links to itself. With ecmp, some of the four messages that leave
 * a leaf over four spines share a link: two of 10 MB on a link take 1 ms longer than one, in each
 * direction. */
static void test_slowest(void **state)
{
    (void)state;
    const cs_time millisecond = 1000000000; /* ps */
    const cs_time free = makespan_of("dmodk", "slowest", false);
    const cs_time each = makespan_of("ecmp", "no", false);
    const cs_time slowest = makespan_of("ecmp", "slowest", true);
    expect_int("alike", makespan_of("dmodk", "no", false), free);
    if (each < free + 2 * millisecond || slowest < each)
        fail_msg("free %lld, each %lld, slowest %lld", (long long)free, (long long)each,
                 (long long)slowest);
    expect_int("not folded", each, makespan_of("ecmp", "try", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folded),
                                       cmocka_unit_test(test_slowest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
