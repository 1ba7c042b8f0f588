/* A device that fails at its first, second, third, ... call of each kind: everything is given back,
 * one message says what failed, and what was measured before is kept. */
#include "calib/bench/device/cores.h"
#include "calib/bench/measure/calibrate.h"
#include "calib/bench/measure/measure.h"
#include "calib/bench/replay/worker.h"
#include "sim/run/replay/notes-trace.h"
#include "tests/fake-backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct {
    const char *name;
    cs_fake_call call;
} kinds[] = {{"open", CS_FAKE_OPEN},     {"allocate", CS_FAKE_ALLOCATE}, {"kernel", CS_FAKE_KERNEL},
             {"memory", CS_FAKE_MEMORY}, {"mark", CS_FAKE_MARK},         {"plan", CS_FAKE_PLAN},
             {"wire", CS_FAKE_WIRE}};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Checks the state after every failure. */
static void check_failure(const char *what, const char *kind, uint32_t k, cs_status status,
                          const cs_error *error)
{
    if (cs_fake_held() != 0)
        fail_msg("%s, %s %u: %lld pieces were not given back", what, kind, k,
                 (long long)cs_fake_held());
    if (status == CS_OK || error->count != 1 || !strstr(error->text, "the fake device fails in "))
        fail_msg("%s, %s %u: status %d, %u messages: %s", what, kind, k, status, error->count,
                 error->text);
}

/* ---- measuring a network ---- */

static void encoder(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 2, (cs_extent){2, {4, 4}});
    x = cs_net_conv(net, "conv", x, &(cs_conv){.out = 4, .kernel = 3, .pad = 1});
    x = cs_net_tokens(net, "tokens", cs_net_relu(net, "relu", cs_net_batch_norm(net, "bn", x)));
    cs_tensor y = cs_net_linear(net, "fc", cs_net_layer_norm(net, "norm", x),
                                &(cs_linear){.out = 4, .bias = true});
    x = cs_net_take_first(net, "first", cs_net_add(net, "add", x, y));
    cs_net_cross_entropy(net, "loss", x);
}

typedef struct subject {
    cs_net net;
    cs_net_chain chain;
    cs_accelerator none;
} subject;

static void build(subject *s)
{
    cs_error error;
    cs_error_init(&error);
    memset(s, 0, sizeof(*s));
    cs_net_begin(&s->net, "encoder", &error);
    encoder(&s->net);
    assert_int_equal(cs_net_end(&s->net), CS_OK);
    cs_accelerator_none(&s->none);
    cs_net_options how = {.batch_size = 1, .device = &s->none, .source = "a test"};
    assert_int_equal(cs_net_chain_find(&s->net, &how, &s->chain, &error), CS_OK);
}

/* Returns whether it succeeded without the failure, i.e. k exceeds the number of calls. Steps that
 * counted have been shown, for all pieces of work. */
static bool measure_once(const subject *s, const char *kind, uint32_t k)
{
    cs_bench *bench;
    cs_costs costs;
    cs_error error;
    cs_measure_report report;
    cs_error_init(&error);
    cs_costs_init(&costs);
    cs_status status = cs_backend_fake.open(0, &bench, &error);
    if (status == CS_OK) {
        cs_cost_source source = {"a test", "none", "", "", "", "2026-01-01", ""};
        uint32_t id;
        assert_int_equal(cs_costs_add_source(&costs, &source, &id, &error), CS_OK);
        cs_measure_options options = {.backend = &cs_backend_fake,
                                      .bench = bench,
                                      .net = &s->net,
                                      .chain = &s->chain,
                                      .batch = 2,
                                      .n_states = 1,
                                      .share = 0.5,
                                      .time_limit = 1e-6,
                                      .source = id};
        status = cs_measure_compute(&options, &costs, &report, &error);
        assert_int_equal(costs.n_compute, report.steps > 0 ? report.pieces : 0);
        for (uint32_t i = 0; i < costs.n_compute; i++)
            assert_int_equal(costs.compute[i].passes[CS_PASS_FORWARD].samples > 0 ||
                                 costs.compute[i].passes[CS_PASS_UPDATE].samples > 0,
                             1);
        cs_backend_fake.close(bench);
    }
    cs_costs_finish(&costs);
    if (cs_fake_has_failed())
        check_failure("measuring", kind, k, status, &error);
    else
        assert_int_equal(status, CS_OK);
    return !cs_fake_has_failed();
}

static void test_measure(void **state)
{
    subject s;
    (void)state;
    build(&s);
    for (int i = 0; i < N_KINDS; i++) {
        uint32_t k = 0;
        do
            cs_fake_fail(UINT32_C(1) << kinds[i].call, ++k);
        while (!measure_once(&s, kinds[i].name, k));
        /* kernels, marks, memory, plans and pieces are many; the wire is absent */
        assert_int_equal(k > 2, kinds[i].call != CS_FAKE_OPEN && kinds[i].call != CS_FAKE_WIRE);
    }
    cs_net_chain_finish(&s.chain);
    cs_net_finish(&s.net);
}

/* ---- a whole request: two batch sizes, and a file ---- */

static const char request_text[] =
    "{\"output\": \"%s\", \"command\": \"a test\", \"date\": \"2026-01-01\", \"time_limit\": "
    "\"1 us\", \"share\": 0.5, \"batches\": [1, 2], \"workload\": {\"name\": \"vit_b16\", "
    "\"parameters\": {\"image\": 16, \"patch\": 8, \"layers\": 1, \"hidden\": 8, \"heads\": 2, "
    "\"classes\": 4}}}";

static cs_status bench_once(const char *output, cs_error *error)
{
    cs_request request = {0};
    cs_arena arena;
    cJSON *root;
    char text[1024];
    snprintf(text, sizeof(text), request_text, output);
    cs_arena_init(&arena);
    assert_int_equal(cs_request_read("request", text, strlen(text), &request, &root, &arena, error),
                     CS_OK);
    cs_status status = cs_bench_compute(&cs_backend_fake, &request, NULL, error);
    cJSON_Delete(root);
    cs_arena_finish(&arena);
    return status;
}

/* Entries by batch size, of the file that is there; none without one. */
static void count_entries(const char *path, uint32_t counts[2])
{
    cs_costs costs;
    cs_error error;
    cs_error_init(&error);
    counts[0] = counts[1] = 0;
    if (access(path, F_OK) != 0)
        return;
    assert_int_equal(cs_costs_load(path, &costs, &error), CS_OK);
    for (uint32_t i = 0; i < costs.n_compute; i++) {
        counts[0] += strstr(costs.compute[i].op, " n=1 ") != NULL;
        counts[1] += strstr(costs.compute[i].op, " n=2 ") != NULL;
    }
    cs_costs_finish(&costs);
}

/* With the call number k of a kind: its entries by batch size. */
static void fail_request(const char *path, int kind, uint32_t k, uint32_t counts[2])
{
    cs_error error;
    cs_error_init(&error);
    cs_fake_fail(UINT32_C(1) << kinds[kind].call, k);
    cs_status status = bench_once(path, &error);
    if (cs_fake_has_failed())
        check_failure("a request", kinds[kind].name, k, status, &error);
    else
        assert_int_equal(status, CS_OK);
    count_entries(path, counts);
    unlink(path);
}

/* Memory is requested in the first step of a batch size, always equally often, and at the end twice
 * for copies, so the number of pieces tells where the failure occurs. The warm-up determines the
 * number of kernels. */
static void test_request(void **state)
{
    enum { ALLOCATE = 1, KERNEL = 2 };
    char path[] = "/tmp/sim-test-XXXXXX";
    uint32_t whole[2], counts[2];
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    unlink(path);
    fail_request(path, ALLOCATE, 0, whole);
    assert_true(whole[0] > 10 && whole[1] == whole[0]);
    uint32_t n = cs_fake_calls();
    const struct {
        uint32_t k;
        bool first, second;
    } rows[] = {{1, false, false}, {n - 2, true, false}, {n - 1, true, true}, {n, true, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fail_request(path, ALLOCATE, rows[i].k, counts);
        assert_int_equal(counts[0], rows[i].first ? whole[0] : 0);
        assert_int_equal(counts[1], rows[i].second ? whole[1] : 0);
    }
    for (uint32_t k = 1; k < 1000; k = 2 * k + 1) {
        fail_request(path, KERNEL, k, counts);
        assert_true(counts[0] == 0 || counts[0] == whole[0]);
        assert_true(counts[1] == 0 || (counts[0] == whole[0] && counts[1] == whole[1]));
    }
}

/* ---- cores ---- */

/* A process that computes on a GPU stays on all of its cores; notes say what is true. */
static void test_cores(void **state)
{
    char text[64], shared[64];
    (void)state;
    const uint32_t cores = cs_bench_count_cores();
    assert_true(cores > 0);
    cs_bench_cores before = cs_bench_pin(&cs_backend_fake_gpu, 0);
    assert_int_equal(cs_bench_count_cores(), cores);
    cs_bench_unpin(&before);
    assert_int_equal(cs_bench_count_cores(), cores);
    assert_string_equal(cs_bench_places(&cs_backend_fake, cores, text, sizeof(text)),
                        "each on a core of its own");
    snprintf(shared, sizeof(shared), "taking turns on %u core%s", cores, cores == 1 ? "" : "s");
    assert_string_equal(cs_bench_places(&cs_backend_fake, cores + 1, text, sizeof(text)), shared);
    assert_string_equal(cs_bench_places(&cs_backend_fake_gpu, 1, text, sizeof(text)),
                        "taking GPUs in turn");
    before = cs_bench_pin(&cs_backend_fake, 0);
    assert_int_equal(cs_bench_count_cores(), 1);
    cs_bench_unpin(&before);
    assert_int_equal(cs_bench_count_cores(), cores);
}

/* ---- a replay ---- */

static const char scenario_text[] =
    "{\"schema_version\": 1, \"model\": {\"name\": \"vit_b16\", \"parameters\": {\"image\": 16, "
    "\"patch\": 8, \"layers\": 2, \"hidden\": 8, \"heads\": 2, \"classes\": 4}, \"batch_size\": 4, "
    "\"device\": \"v100\", \"optimizer\": \"momentum\", \"granularity\": \"block\"}, "
    "\"platform\": {\"topology\": \"ring\", \"devices\": %u, \"bandwidth\": \"1 GB/s\", "
    "\"blocking\": true}, \"schedule\": %s, \"iterations\": 2}";

static bool replay_once(const cs_replay *replay, uint32_t rank, const char *kind, uint32_t k)
{
    uint32_t n = replay->graph.n_tasks;
    double *columns = calloc(4 * (size_t)n, sizeof(*columns));
    cs_notes notes = {columns, columns + n, columns + 2 * (size_t)n, columns + 3 * (size_t)n};
    cs_bench *bench;
    cs_worker worker;
    cs_error error;
    cs_wire wire = {.rank = rank, .size = 2, .backend = &cs_backend_fake};
    cs_error_init(&error);
    cs_status status = cs_backend_fake.open(0, &bench, &error);
    if (status == CS_OK) {
        wire.bench = bench;
        status = cs_worker_open(replay, &cs_backend_fake, bench, &wire, &worker, &error);
        if (status == CS_OK) {
            status = cs_worker_run(&worker, &notes, &error);
            int64_t resident = 0; /* as it was found */
            for (int c = 0; c < CS_N_CATEGORIES; c++)
                resident += worker.resident[c];
            assert_int_equal(worker.pool.live, resident);
            cs_worker_close(&worker);
        }
        cs_backend_fake.close(bench);
    }
    free(columns);
    if (cs_fake_has_failed())
        check_failure("a replay", kind, k, status, &error);
    else if (status != CS_OK)
        fail_msg("a replay: %s", error.text);
    return !cs_fake_has_failed();
}

static void make_replay(const char *schedule, uint32_t devices, cs_scenario *scenario,
                        cs_replay *replay)
{
    char path[] = "/tmp/sim-test-XXXXXX", text[2048];
    cs_error error;
    cs_error_init(&error);
    snprintf(text, sizeof(text), scenario_text, devices, schedule);
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    cs_status status = cs_scenario_load(path, NULL, 0, scenario, &error);
    if (status == CS_OK)
        status = cs_replay_make(scenario, path, replay, &error);
    unlink(path);
    if (status != CS_OK)
        fail_msg("%s: %s", schedule, error.text);
}

static void replay(const char *schedule, uint32_t devices)
{
    cs_scenario scenario = {0};
    cs_replay replay;
    make_replay(schedule, devices, &scenario, &replay);
    for (uint32_t rank = 0; rank < devices; rank++) {
        for (int i = 0; i < N_KINDS; i++) {
            uint32_t k = 0;
            do
                cs_fake_fail(UINT32_C(1) << kinds[i].call, ++k);
            while (!replay_once(&replay, rank, kinds[i].name, k));
            assert_int_equal(k > 2, kinds[i].call != CS_FAKE_OPEN &&
                                        (devices > 1 || kinds[i].call != CS_FAKE_WIRE));
        }
    }
    cs_replay_finish(&replay);
    cs_scenario_finish(&scenario);
}

static void test_replay(void **state)
{
    (void)state;
    replay("{\"kind\": \"gpipe\", \"micro_batches\": 2}", 2);
    replay("{\"kind\": \"pipedream\"}", 2); /* several versions of weights */
    replay("{\"kind\": \"cdp_v1\", \"setting\": \"single_gpu\", \"micro_batches\": 2}", 1);
    replay("{\"kind\": \"dp\"}", 2);
}

/* ---- what a replay held ---- */

/* Every task takes a second, and holds 70 bytes in addition to resident memory, 50 of them
 * afterwards. The file contains the memory that devices used, here 1000, 2000 and 3000 bytes and as
 * many more for each rank, whatever the prediction. */
static void test_measured_memory(void **state)
{
    (void)state;
    cs_scenario scenario = {0};
    cs_replay replay;
    cs_trace trace = {0};
    cs_error error;
    cs_error_init(&error);
    make_replay("{\"kind\": \"gpipe\", \"micro_batches\": 2}", 2, &scenario, &replay);
    const uint32_t n = replay.graph.n_tasks;
    double resident[2 * CS_N_CATEGORIES] = {0}, *columns = calloc(4 * (size_t)n, sizeof(*columns));
    assert_non_null(columns);
    const cs_notes notes = {columns, columns + n, columns + 2 * (size_t)n, columns + 3 * (size_t)n};
    for (int d = 0; d < 2; d++) {
        resident[d * CS_N_CATEGORIES + CS_MEMORY_WEIGHTS] = 1000 * (d + 1);
        resident[d * CS_N_CATEGORIES + CS_MEMORY_GRADIENTS] = 2000 * (d + 1);
        resident[d * CS_N_CATEGORIES + CS_MEMORY_OPTIMIZER] = 3000 * (d + 1);
    }
    for (uint32_t t = 0; t < n; t++) {
        const cs_class *cls = cs_graph_class(&replay.graph, t);
        const bool message = cls->kind == CS_TRANSFER;
        notes.enter[t] = t;
        notes.leave[t] = t + 1;
        notes.live[t] = message ? -1 : 6000.0 * (cls->device + 1) + 50;
        notes.most[t] = message ? -1 : 6000.0 * (cls->device + 1) + 70;
    }
    assert_int_equal(cs_measured_trace(&replay, &notes, resident, &trace, &error), CS_OK);
    for (int d = 0; d < 2; d++) {
        const cs_device_record *at = &trace.devices[d];
        assert_int_equal(at->peak, 6000 * (d + 1) + 70);
        assert_int_equal(at->at_peak[CS_MEMORY_WEIGHTS], 1000 * (d + 1));
        assert_int_equal(at->at_peak[CS_MEMORY_GRADIENTS], 2000 * (d + 1));
        assert_int_equal(at->at_peak[CS_MEMORY_OPTIMIZER], 3000 * (d + 1));
        assert_int_equal(at->at_peak[CS_MEMORY_ACTIVATIONS], 50);
        assert_int_equal(at->at_peak[CS_MEMORY_WORKSPACE], 20);
    }
    cs_trace_finish(&trace);
    cs_replay_finish(&replay);
    cs_scenario_finish(&scenario);
    free(columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_measure),
                                       cmocka_unit_test(test_request), cmocka_unit_test(test_cores),
                                       cmocka_unit_test(test_replay),
                                       cmocka_unit_test(test_measured_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
