/* Meshes of 64 devices, every collective message by message: bytes sent, and lower bounds of the
 * time.
 *
 * In a collective over n ranks with m bytes (graph.h), all ranks together send, whatever the order
 * of its messages,
 *
 *     all-reduce 2 (n - 1) m,   all-gather, reduce-scatter, all-to-all (n - 1) m,   shift n m,
 *     halo (n - 1) (m + m back)
 *
 * for a ring all-reduce sends each of n parts 2 (n - 1) times, once per step and to the next rank,
 * and the others each part n - 1 times, or to n - 1 ranks; a message from stage to stage is sent
 * once. The devices hang on one switch, each by a link of B bytes/s that no two messages of a
 * device can use faster, so a run takes at least any device's computing time, and the time of its
 * messages on its link. ParaDL's filters and channels do not overlap exchanges, and in a ring each
 * link has one message at a time: then a run takes the sum of both. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <math.h>

static const double bandwidth = 25e9;

static const struct {
    const char *name, *model, *schedule, *parallel;
    bool blocks; /* nothing is computed while something is sent */
} rows[] = {
    {"tensor", "gpt", "'kind': 'sequential', 'micro_batches': 2", "'tensor': 64", false},
    {"sequences", "gpt", "'kind': 'sequential', 'micro_batches': 2",
     "'tensor': 8, 'sequence_parallel': true, 'data': 8", false},
    {"context", "gpt", "'kind': 'sequential', 'micro_batches': 2", "'context': 8, 'data': 8",
     false},
    {"zero 3", "gpt", "'kind': 'sequential', 'micro_batches': 2", "'zero': 3, 'data': 64", false},
    {"groups of zero 2", "gpt", "'kind': 'sequential', 'micro_batches': 2",
     "'zero': 2, 'accumulate': false, 'shard': 8, 'data': 64", false},
    {"pipeline", "gpt", "'kind': '1f1b', 'micro_batches': 4",
     "'tensor': 4, 'pipeline': 4, 'data': 4, 'zero': 1", false},
    {"filter", "vgg", "'kind': 'sequential', 'micro_batches': 1", "'filter': 64", true},
    {"channel", "vgg", "'kind': 'sequential', 'micro_batches': 1", "'channel': 8, 'data': 8", true},
    {"space", "vgg", "'kind': 'sequential', 'micro_batches': 1", "'space': [2], 'data': 32", false},
};

static const struct {
    const char *name, *text;
} models[] = {
    {"gpt",
     "'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 512, 'heads': 64, 'sequence': 128,"
     " 'vocabulary': 1024}, 'device': 'h100', 'precision': 'bf16', 'granularity': 'block'"},
    {"vgg", "'name': 'vgg16', 'parameters': {'image': 64, 'dense': 128, 'classes': 64}, "
            "'device': 'v100', 'granularity': 'block'"},
};

static const char *model_of(size_t r)
{
    return models[strcmp(rows[r].model, models[0].name) == 0 ? 0 : 1].text;
}

static void run(size_t r, const char *fidelity, const char *sharing, scenario_run *made)
{
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            made, &error,
            "{'schema_version': 1, 'model': {%s, 'batch_size': 512}, 'iterations': 1,"
            " 'platform': {'topology': 'nvlink_switch', 'devices': 64, 'bandwidth': '25 GB/s',"
            " 'latency': '0 s', 'memory': '80 GB', 'sharing': '%s'}, 'schedule': {%s},"
            " 'collectives': {'fidelity': '%s', 'algorithm': 'usual'},"
            " 'parallel': {%s, 'fold': 'no'}}",
            model_of(r), sharing, rows[r].schedule, fidelity, rows[r].parallel) != CS_OK)
        fail_msg("%s: %s", rows[r].name, error.text);
}

/* ---- what has to move ---- */

/* Bytes sent by all ranks of a collective, or by a message. */
static double sent_by(const cs_graph *graph, const cs_class *cls)
{
    const double m = (double)cls->bytes;
    const double n = cls->kind == CS_TRANSFER ? 1 : graph->groups[cls->peer].n;
    switch (cls->kind) {
    case CS_ALL_REDUCE:
        return 2 * (n - 1) * m;
    case CS_HALO:
        return (n - 1) * (m + (double)cls->bytes_back);
    case CS_SHIFT:
    case CS_TRANSFER:
        return n * m;
    default:
        return (n - 1) * m;
    }
}

/* Counts the planned bytes, before lowering: a collective has a member for each of its ranks. */
static void count_planned(const cs_scenario *scenario, double moved[CS_N_PURPOSES])
{
    cs_graph graph;
    cs_error error;
    cs_error_init(&error);
    if (cs_schedule_graph(scenario->schedule, &scenario->job, scenario->params, &graph, &error) !=
        CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t t = 0; t < graph.n_tasks; t++) {
        const cs_class *cls = cs_graph_class(&graph, t);
        const cs_kind_group group = cs_kind_group_of((cs_kind)cls->kind);
        if (group == CS_GROUP_COLLECTIVE)
            moved[cls->purpose] += sent_by(&graph, cls) / graph.groups[cls->peer].n;
        else if (group == CS_GROUP_TRANSFER)
            moved[cls->purpose] += sent_by(&graph, cls);
    }
    cs_graph_finish(&graph);
}

/* ---- what a run did ---- */

typedef struct done {
    double moved[CS_N_PURPOSES];   /* bytes, by messages that were simulated */
    double sent[64], computed[64]; /* bytes and s of each device */
} done;

static void count_done(const scenario_run *of, done *d)
{
    const cs_graph *graph = &of->simulation.graph;
    const cs_trace *trace = &of->simulation.trace;
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(graph, t);
        const cs_span *span = &trace->spans[t];
        assert_true(span->start >= 0 && span->end >= span->start && span->end <= trace->makespan);
        if (cls->kind != CS_TRANSFER)
            d->computed[cls->device] += cs_time_seconds(span->end - span->start);
        else if (cls->device != cls->peer)
            d->moved[cls->purpose] += (double)cls->bytes;
        if (cls->kind == CS_TRANSFER && cls->device != cls->peer)
            d->sent[cls->device] += (double)cls->bytes;
    }
}

static void check_moved(size_t r, const scenario_run *flows, const done *d,
                        const scenario_run *delays)
{
    double planned[CS_N_PURPOSES] = {0};
    count_planned(&flows->scenario, planned);
    for (int p = 0; p < CS_N_PURPOSES; p++) {
        const double sum = d->moved[p];
        if (fabs(sum - planned[p]) > 1e-9 * planned[p] ||
            fabs(delays->simulation.lowering.moved[p] - planned[p]) > 1e-9 * planned[p])
            fail_msg("%s: %s: %.17g bytes planned, %.17g as messages, %.17g as delays",
                     rows[r].name, cs_purpose_name((cs_purpose)p), planned[p], sum,
                     delays->simulation.lowering.moved[p]);
    }
}

static void check_time(size_t r, const scenario_run *flows, const done *d)
{
    const double took = cs_time_seconds(flows->simulation.trace.makespan);
    for (uint32_t i = 0; i < 64; i++) {
        const double sending = d->sent[i] / bandwidth, computing = d->computed[i];
        const double least = rows[r].blocks ? sending + computing : fmax(sending, computing);
        const double over = took / least - 1;
        if (over < -1e-9 || (rows[r].blocks && over > 1e-9))
            fail_msg("%s: took %.17g s, %s %.17g s on device %u", rows[r].name, took,
                     rows[r].blocks ? "not" : "at least", least, i);
    }
}

static void test_meshes(void **state)
{
    static const char *const sharings[] = {"max_min", "fifo"};
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run delays;
        run(r, "analytic", "max_min", &delays);
        for (size_t s = 0; s < ROWS(sharings); s++) {
            scenario_run flows;
            done d = {0};
            run(r, "flow", sharings[s], &flows);
            assert_int_equal(CS_FIDELITY_FLOW, flows.simulation.lowering.fidelity);
            assert_int_equal(CS_FIDELITY_ANALYTIC, delays.simulation.lowering.fidelity);
            assert_null(flows.scenario.job.stands_for);
            count_done(&flows, &d);
            check_moved(r, &flows, &d, &delays);
            check_time(r, &flows, &d);
            scenario_run_finish(&flows);
        }
        scenario_run_finish(&delays);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meshes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
