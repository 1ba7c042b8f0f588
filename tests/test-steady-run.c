/* Long runs of which most is skipped against the same runs in full, over all schedules, sharings
 * and platforms of random scenarios; and runs that are nearly periodic, of which nothing may be
 * skipped.
 *
 * The full run is the independent answer: it looks at every task. */
#include "sim/print/report.h"
#include "sim/run/steady-run.h"
#include "tests/expect.h"
#include "tests/random-scenario.h"
#include "tests/run-scenario.h"

#include "sim/base/random.h"

#include <string.h>

enum { N_SCENARIOS = 160, ITERATIONS = 130 };

static void check(const char *text, cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s\n%s", cs_status_name(status), error->text, text);
}

/* All figures, of devices, links and stages too; but for the hash, and what is said of skipping. */
static char *figures(const cs_scenario *scenario, const cs_simulation *simulation)
{
    cJSON *root = cs_report_json(scenario, simulation);
    assert_non_null(root);
    cJSON_DeleteItemFromObjectCaseSensitive(root, "hash");
    cJSON_DeleteItemFromObjectCaseSensitive(root, "skipped");
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    assert_non_null(text);
    return text;
}

static void compare(const char *text, const cs_scenario *scenario, const cs_simulation *whole,
                    const cs_simulation *part)
{
    char *expected = figures(scenario, whole), *found = figures(scenario, part);
    expect_text(text, expected, found);
    expect_int(text, whole->trace.makespan, part->trace.makespan);
    expect_int(text, whole->analysis.middle, part->analysis.middle);
    for (uint32_t d = 0; d < whole->trace.n_devices; d++) {
        expect_int(text, whole->trace.devices[d].peak, part->trace.devices[d].peak);
        expect_int(text, whole->trace.devices[d].peak_time, part->trace.devices[d].peak_time);
    }
    assert_true(whole->analysis.iteration_time == part->analysis.iteration_time);
    assert_true(whole->analysis.bubble_fraction == part->analysis.bubble_fraction);
    cJSON_free(expected);
    cJSON_free(found);
}

/* Runs a scenario in both ways; returns whether mini-batches were skipped. */
static bool try_scenario(const char *text, uint32_t iterations)
{
    scenario_run run;
    cs_simulation whole = {0}, part = {0};
    cs_error error = {0};
    check(text, scenario_run_read(&run, &error, "%s", text), &error);
    run.scenario.job.iterations = iterations;
    const cs_simulation_options options = {0};
    check(text, cs_simulate(&run.scenario, &options, &whole, &error), &error);
    check(text, cs_simulate_steadily(&run.scenario, &options, &part, &error), &error);
    compare(text, &run.scenario, &whole, &part);
    const bool skipped = part.skipped.n > 0;
    if (skipped) {
        assert_true(part.graph.n_tasks < whole.graph.n_tasks);
        expect_int(text, whole.graph.n_tasks, (int64_t)part.skipped.n_tasks);
        expect_int(text, iterations, part.graph.n_batches + part.skipped.n);
    } else {
        assert_non_null(part.skipped.reason);
    }
    cs_simulation_finish(&whole);
    cs_simulation_finish(&part);
    scenario_run_finish(&run);
    return skipped;
}

/* nf1b without a limit of mini-batches in flight takes in more and more of them: no period. */
static bool may_grow(const char *schedule)
{
    return strcmp(schedule, "nf1b") == 0;
}

static void test_schedules(void **state)
{
    (void)state;
    const uint32_t n = fewer_sanitized(cases_drawn(N_SCENARIOS));
    for (uint32_t i = 0; cs_schedules[i]; i++) {
        const char *name = cs_schedules[i]->name;
        uint32_t n_skipped = 0;
        if (strcmp(name, "custom") == 0)
            continue; /* below */
        gsl_rng *random = cs_random_stream(1, name);
        assert_non_null(random);
        for (uint32_t k = 0; k < n; k++) {
            char text[RANDOM_SCENARIO_BYTES];
            random_scenario(random, name, text);
            n_skipped += try_scenario(text, ITERATIONS + k % 7);
        }
        gsl_rng_free(random);
        if (n_skipped < n / 3 && !may_grow(name))
            fail_msg("%s: of %u runs only %u skip mini-batches", name, n, n_skipped);
    }
}

/* Two devices, each with stages at both ends of the model or in the middle; messages meet. */
#define CUSTOM                                                                                     \
    "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 ms', 'backward': "     \
    "'2 ms', 'weights': '100 MB', 'activation': '50 MB'}}, 'platform': {'topology': 'pcie', "      \
    "'bandwidth': '10 GB/s', 'latency': '3 us', 'sharing': 'max_min'}, 'schedule': {'kind': "      \
    "'custom', 'micro_batches': 2, 'stage_devices': [0, 1, 1, 0], 'device_tasks': "                \
    "['F0@0 F1@0 F0@3 B0@3 F1@3 B1@3 W0@3 B0@0 W1@3 B1@0', "                                       \
    "'F0@1 F0@2 F1@1 F1@2 B0@2 B0@1 B1@2 B1@1']}}"

/* No flush, and a message that another one slows down. */
#define PIPEDREAM                                                                                  \
    "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 ms', 'backward': "     \
    "'2 ms', 'weights': '100 MB', 'activation': '20 MB'}}, 'platform': {'topology': 'pcie', "      \
    "'bandwidth': '100 GB/s', 'latency': '3 us', 'devices': 4, 'sharing': '%s'}, 'schedule': "     \
    "{'kind': 'pipedream'}}"

/* A mesh has bytes for each purpose, which grow with the run. */
#define MESH                                                                                       \
    "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 ms', 'backward': "     \
    "'2 ms', 'weights': '1 MB', 'activation': '1 MB'}, 'optimizer': 'adam'}, 'platform': "         \
    "{'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '1 GB/s'}, 'parallel': {'data': 2, " \
    "'zero': 1}, 'schedule': {'kind': '1f1b', 'micro_batches': 4}}"

static void test_mesh(void **state)
{
    (void)state;
    assert_true(try_scenario(MESH, 999));
}

static void test_shared_links(void **state)
{
    (void)state;
    static const char *const sharings[] = {"none", "fifo", "max_min"};
    assert_true(try_scenario(CUSTOM, 1001));
    for (size_t i = 0; i < ROWS(sharings); i++) {
        char text[RANDOM_SCENARIO_BYTES];
        snprintf(text, sizeof(text), PIPEDREAM, sharings[i]);
        assert_true(try_scenario(text, 1003));
    }
}

/* ---- nearly periodic ---- */

enum { LONG = 64, LATE = 20 };

/* Of the scenario's graph, a watched run in which computations take `factors` times as long. */
static void watch_run(const scenario_run *run, const cs_simulation *simulation,
                      const double *factors, cs_watch *watch)
{
    cs_trace trace = {0};
    cs_error error = {0};
    const cs_engine_options options = {.task_factors = factors, .watch = watch};
    check("watched",
          cs_engine_run(&simulation->graph, &run->scenario.platform, &options, &trace, &error),
          &error);
    cs_trace_finish(&trace);
}

/* The run has a period of so many mini-batches, from before this one on. */
enum { PERIOD = 4, SETTLED = 8 };

/* How many mini-batches begin as those one and two periods before them did, at equal distances. */
static uint32_t count_repeats(const cs_watch *watch, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t b = first; b < end; b++) {
        const cs_watched *at = &watch->batches[b], *before = at - PERIOD;
        const cs_watched *earlier = before - PERIOD;
        n += cs_watch_equal(watch, b, b - PERIOD) &&
             cs_watch_equal(watch, b - PERIOD, b - 2 * PERIOD) &&
             at->time - before->time == before->time - earlier->time;
    }
    return n;
}

/* Factors: 1, but for a forward of mini-batch LATE on the first stage, which takes a millionth (1
 * ns) longer; or random ones, by as much. */
static void draw_factors(const cs_graph *graph, double *late, double *jitter)
{
    gsl_rng *source = cs_random_stream(1, "jitter");
    assert_non_null(source);
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        const bool is_late =
            cs_graph_mini_batch(graph, task) == LATE && cls->kind == CS_FORWARD && cls->stage == 0;
        late[task] = is_late ? 1 + 1e-6 : 1;
        jitter[task] = 1 + 1e-6 * gsl_rng_uniform(source);
    }
    gsl_rng_free(source);
}

/* The periodic run repeats everywhere but at its end, where it drains. The one with a late
 * computation does so before, and not while the period in which it is late is one of those
 * compared. The one with jitter never does. */
static void test_nearly_periodic(void **state)
{
    (void)state;
    scenario_run run;
    cs_simulation simulation = {0};
    cs_error error = {0};
    cs_watch periodic = {0}, late = {0}, jittered = {0};
    const uint32_t first = SETTLED + 2 * PERIOD, end = LONG - 2 * PERIOD;
    check("read", scenario_run_read(&run, &error, PIPEDREAM, "max_min"), &error);
    run.scenario.job.iterations = LONG;
    check("run", cs_simulate(&run.scenario, &(cs_simulation_options){0}, &simulation, &error),
          &error);
    double *of_late = malloc(simulation.graph.n_tasks * sizeof(*of_late));
    double *of_jitter = malloc(simulation.graph.n_tasks * sizeof(*of_jitter));
    assert_true(of_late && of_jitter);
    draw_factors(&simulation.graph, of_late, of_jitter);
    watch_run(&run, &simulation, NULL, &periodic);
    watch_run(&run, &simulation, of_late, &late);
    watch_run(&run, &simulation, of_jitter, &jittered);
    expect_int("periodic", end - first, count_repeats(&periodic, first, end));
    expect_int("before the late one", LATE - first, count_repeats(&late, first, LATE));
    expect_int("with the late one", 0, count_repeats(&late, LATE + 1, LATE + 1 + PERIOD));
    expect_int("jittered", 0, count_repeats(&jittered, 2 * PERIOD, LONG));
    cs_watch_finish(&periodic);
    cs_watch_finish(&late);
    cs_watch_finish(&jittered);
    free(of_late);
    free(of_jitter);
    cs_simulation_finish(&simulation);
    scenario_run_finish(&run);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *noise, *reason;
        uint32_t iterations;
    } rows[] = {
        {"jitter", "'platform': {'topology': 'ideal', 'devices': 2, 'jitter': {'mean': 1e-9}}",
         "the scenario has noise", 200},
        {"short", "'platform': {'topology': 'ideal', 'devices': 2}", "it has too few mini-batches",
         20},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run run;
        cs_simulation made = {0};
        cs_error error = {0};
        check(rows[r].name,
              scenario_run_read(&run, &error,
                                "{'schema_version': 1, 'model': {'uniform': {'layers': 2, "
                                "'forward': '1 ms', 'backward': '1 ms', 'weights': 100, "
                                "'activation': 100}}, 'schedule': {'kind': 'pipedream'}, %s}",
                                rows[r].noise),
              &error);
        run.scenario.job.iterations = rows[r].iterations;
        check(rows[r].name,
              cs_simulate_steadily(&run.scenario, &(cs_simulation_options){0}, &made, &error),
              &error);
        expect_int(rows[r].name, 0, made.skipped.n);
        expect_text(rows[r].name, rows[r].reason, made.skipped.reason);
        cs_simulation_finish(&made);
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules), cmocka_unit_test(test_shared_links),
        cmocka_unit_test(test_mesh), cmocka_unit_test(test_nearly_periodic),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
