/* libclustersim through its public header only: metrics, columns, failures, and two threads at
 * once.
 *
 * The scenario: 4 layers of 1 ms forward and 2 ms backward on 2 devices, GPipe with 2
 * micro-batches, messages that take no time. A stage has 2 layers, F = 2 ms and B = 4 ms, so an
 * iteration takes (2 + 2 - 1) (F + B) = 18 ms, and each device computes for 2 (F + B) = 12 ms: the
 * bubble is 1/3. */
#include "sim/library/clustersim.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char scenario_text[] =
    "{\"schema_version\": 1, \"name\": \"library\","
    " \"model\": {\"batch_size\": 4, \"uniform\": {\"layers\": 4, \"forward\": \"1 ms\","
    "             \"backward\": \"2 ms\", \"activation\": 1000, \"weights\": 100}},"
    " \"platform\": {\"topology\": \"ideal\", \"devices\": 2},"
    " \"schedule\": {\"kind\": \"gpipe\", \"micro_batches\": 2}}";

static clustersim_scenario *read_scenario(const clustersim_change *changes, size_t n)
{
    clustersim_scenario *scenario = NULL;
    clustersim_error *error;
    const clustersim_status status =
        clustersim_scenario_parse("s.json", scenario_text, changes, n, &scenario, &error);
    if (status != CLUSTERSIM_OK)
        print_error("%s\n", error ? clustersim_error_message(error, 0).text : "no memory");
    assert_int_equal(status, CLUSTERSIM_OK);
    assert_null(error);
    return scenario;
}

/* The result outlives its scenario. */
static clustersim_result *run_scenario(const clustersim_change *changes, size_t n)
{
    clustersim_scenario *scenario = read_scenario(changes, n);
    clustersim_result *result = NULL;
    assert_int_equal(clustersim_run(scenario, NULL, &result, NULL), CLUSTERSIM_OK);
    clustersim_scenario_free(scenario);
    return result;
}

static void expect_figure(const clustersim_result *result, const char *key, const char *unit,
                          double expected)
{
    const clustersim_figure *figure = clustersim_result_figure(result, key);
    assert_non_null(figure);
    assert_string_equal(figure->unit, unit);
    assert_true(strlen(figure->label) > 0);
    if (!(fabs(figure->value - expected) <= 1e-12 * fabs(expected)))
        print_error("%s: expected %.17g, got %.17g\n", key, expected, figure->value);
    assert_true(fabs(figure->value - expected) <= 1e-12 * fabs(expected));
    assert_true(clustersim_result_value(result, key) == figure->value);
}

static void figures_are_those_of_the_run(void **state)
{
    (void)state;
    clustersim_result *result = run_scenario(NULL, 0);
    const clustersim_figure *figures;
    expect_figure(result, "makespan_s", "s", 18e-3);
    expect_figure(result, "iteration_time_s", "s", 18e-3);
    expect_figure(result, "throughput_samples_per_s", "samples/s", 4 / 18e-3);
    expect_figure(result, "bubble_fraction", "1", 1.0 / 3);
    expect_figure(result, "out_of_memory", "1", 0);
    assert_null(clustersim_result_figure(result, "period_s")); /* there is a flush */
    assert_true(isnan(clustersim_result_value(result, "no such key")));
    const size_t n = clustersim_result_figures(result, &figures);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(clustersim_result_figure(result, figures[i].key), &figures[i]);
    clustersim_result_free(result);
}

static void tasks_are_columns(void **state)
{
    (void)state;
    clustersim_result *result = run_scenario(NULL, 0);
    const clustersim_tasks tasks = clustersim_result_tasks(result);
    int64_t forward[2] = {0}, backward[2] = {0}, last = 0;
    for (size_t i = 0; i < tasks.n; i++) {
        const char *kind = clustersim_kind_name(tasks.kind[i]);
        assert_true(tasks.device[i] < 2 && tasks.micro_batch[i] < 2 && tasks.mini_batch[i] == 0);
        last = tasks.end[i] > last ? tasks.end[i] : last;
        if (strcmp(kind, "forward") == 0)
            forward[tasks.stage[i]] += tasks.end[i] - tasks.start[i];
        if (strcmp(kind, "backward") == 0)
            backward[tasks.device[i]] += tasks.end[i] - tasks.start[i];
        assert_true((strcmp(kind, "transfer") == 0) == (tasks.peer[i] != CLUSTERSIM_NONE));
    }
    for (uint32_t d = 0; d < 2; d++) {
        assert_int_equal(forward[d], 4000000000);
        assert_int_equal(backward[d], 8000000000);
    }
    assert_int_equal(last, 18000000000);
    assert_null(clustersim_kind_name(1000));
    clustersim_result_free(result);
}

/* The largest sum over categories after an instant, from the samples, is the device's peak. */
static void memory_adds_up_to_the_peak(void **state)
{
    (void)state;
    clustersim_result *result = run_scenario(NULL, 0);
    const clustersim_memory memory = clustersim_result_memory(result);
    double largest = 0;
    assert_int_equal(clustersim_result_devices(result), 2);
    for (uint32_t d = 0; d < 2; d++) {
        int64_t live[16] = {0}, peak = 0;
        for (size_t i = 0; i < memory.n; i++) {
            if (memory.device[i] == d)
                live[memory.category[i]] = memory.bytes[i];
            int64_t sum = 0;
            for (uint32_t c = 0; clustersim_category_name(c); c++)
                sum += live[c];
            if (i + 1 == memory.n || memory.time[i + 1] != memory.time[i])
                peak = sum > peak ? sum : peak;
        }
        assert_true(peak > 0);
        assert_int_equal(peak, clustersim_result_device_value(result, d, "peak_memory_bytes"));
        largest = fmax(largest, (double)peak);
    }
    expect_figure(result, "peak_memory_bytes", "bytes", largest);
    assert_true(isnan(clustersim_result_device_value(result, 2, "peak_memory_bytes")));
    assert_true(isnan(clustersim_result_device_value(result, 0, "makespan_s")));
    clustersim_result_free(result);
}

/* ---- failures ---- */

static void expect_failure(const char *pointer, const char *value, clustersim_status expected,
                           const char *file, const char *place, const char *text)
{
    const clustersim_change change = {pointer, value};
    clustersim_scenario *scenario = NULL;
    clustersim_error *error;
    assert_int_equal(
        clustersim_scenario_parse("s.json", scenario_text, &change, 1, &scenario, &error),
        expected);
    assert_null(scenario);
    assert_int_equal(clustersim_error_count(error), 1);
    const clustersim_message message = clustersim_error_message(error, 0);
    assert_string_equal(message.file ? message.file : "none", file);
    assert_string_equal(message.pointer ? message.pointer : "none", place);
    if (strncmp(message.text, text, strlen(text)) != 0)
        print_error("expected %s..., got %s\n", text, message.text);
    assert_memory_equal(message.text, text, strlen(text));
    clustersim_error_free(error);
    assert_int_equal(
        clustersim_scenario_parse("s.json", scenario_text, &change, 1, &scenario, NULL), expected);
}

static void failures_are_values(void **state)
{
    (void)state;
    clustersim_scenario *scenario = NULL;
    clustersim_error *error;
    expect_failure("/schedule/micro_batch", "2", CLUSTERSIM_INVALID, "s.json", "/schedule",
                   "unknown key \"micro_batch\"; did you mean \"micro_batches\"?");
    expect_failure("/schedule/micro_batches", "0", CLUSTERSIM_INVALID, "s.json",
                   "/schedule/micro_batches", "must be ");
    assert_int_equal(clustersim_scenario_load("/no/such.json", NULL, 0, &scenario, &error),
                     CLUSTERSIM_INVALID);
    assert_string_equal(clustersim_error_message(error, 0).file, "/no/such.json");
    clustersim_error_free(error);
    assert_int_equal(clustersim_scenario_parse("t", "{", NULL, 0, &scenario, &error),
                     CLUSTERSIM_INVALID);
    clustersim_error_free(error);
    assert_int_equal(clustersim_error_count(NULL), 0);
    clustersim_error_free(NULL);
    clustersim_scenario_free(NULL);
    clustersim_result_free(NULL);
}

static int stop(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)done, (void)total;
    ++*(int *)context;
    return 0;
}

static void runs_can_be_stopped(void **state)
{
    (void)state;
    int calls = 0;
    const clustersim_options options = {
        .size = sizeof(options), .progress = stop, .context = &calls};
    clustersim_scenario *scenario = read_scenario(NULL, 0);
    clustersim_result *result = NULL;
    clustersim_error *error;
    assert_int_equal(clustersim_run(scenario, &options, &result, &error), CLUSTERSIM_INTERRUPTED);
    assert_null(result);
    assert_int_equal(calls, 1);
    clustersim_error_free(error);
    clustersim_scenario_free(scenario);
}

static void resolved_scenarios_give_the_same_results(void **state)
{
    (void)state;
    const clustersim_change change = {"/iterations", "3"};
    clustersim_scenario *scenario = read_scenario(&change, 1), *again = NULL;
    clustersim_result *one = NULL, *two = NULL;
    assert_int_equal(clustersim_scenario_parse("r.json", clustersim_scenario_resolved(scenario),
                                               NULL, 0, &again, NULL),
                     CLUSTERSIM_OK);
    assert_int_equal(clustersim_run(scenario, NULL, &one, NULL), CLUSTERSIM_OK);
    assert_int_equal(clustersim_run(again, NULL, &two, NULL), CLUSTERSIM_OK);
    expect_figure(one, "makespan_s", "s", 3 * 18e-3);
    assert_true(clustersim_result_hash(one) == clustersim_result_hash(two));
    clustersim_result_free(one);
    clustersim_result_free(two);
    clustersim_scenario_free(scenario);
    clustersim_scenario_free(again);
}

/* ---- what results files have ---- */

static const clustersim_column *column_of(const clustersim_result *result, const char *table,
                                          const char *name)
{
    const clustersim_column *columns;
    const size_t n = clustersim_result_columns(result, &columns);
    for (size_t i = 0; i < n; i++)
        if (strcmp(columns[i].table, table) == 0 && strcmp(columns[i].name, name) == 0)
            return &columns[i];
    fail_msg("no column %s in %s", name, table);
    return NULL;
}

static const clustersim_attribute *attribute_of(const clustersim_result *result, const char *name)
{
    const clustersim_attribute *attributes;
    const size_t n = clustersim_result_attributes(result, &attributes);
    for (size_t i = 0; i < n; i++)
        if (strcmp(attributes[i].name, name) == 0)
            return &attributes[i];
    fail_msg("no attribute %s", name);
    return NULL;
}

static void columns_have_units_words_and_dimensions(void **state)
{
    (void)state;
    clustersim_result *result = run_scenario(NULL, 0);
    const clustersim_tasks tasks = clustersim_result_tasks(result);
    const clustersim_column *start = column_of(result, "tasks", "start");
    const clustersim_column *kind = column_of(result, "tasks", "kind");
    const clustersim_column *peer = column_of(result, "tasks", "peer");
    assert_true(start->type == CLUSTERSIM_INT64 && kind->type == CLUSTERSIM_UINT8);
    assert_string_equal(start->units, "ps");
    assert_string_equal(start->dimensions[0], "task");
    assert_null(start->dimensions[1]);
    assert_true(start->n == tasks.n && !start->words && peer->optional && !start->optional);
    assert_memory_equal(start->values, tasks.start, tasks.n * sizeof(int64_t));
    for (size_t i = 0; i < tasks.n; i++)
        assert_string_equal(kind->words[((const uint8_t *)kind->values)[i]],
                            clustersim_kind_name(tasks.kind[i]));
    /* 18 ms in picoseconds, and GPipe's two stages on two devices */
    assert_int_equal(attribute_of(result, "makespan")->value.int64, 18000000000);
    assert_string_equal(attribute_of(result, "schedule")->value.text, "gpipe");
    assert_int_equal(column_of(result, "devices", "peak")->n, 2);
    assert_non_null(strstr(clustersim_result_text(result), "18 ms"));
    assert_null(clustersim_result_json(result));
    clustersim_result_free(result);
}

static void figures_alone(void **state)
{
    (void)state;
    const clustersim_options options = {.size = sizeof(options), .figures_only = 1};
    const clustersim_column *columns;
    clustersim_scenario *scenario = read_scenario(NULL, 0);
    clustersim_result *result = NULL;
    clustersim_error *error;
    assert_int_equal(clustersim_run(scenario, &options, &result, NULL), CLUSTERSIM_OK);
    expect_figure(result, "makespan_s", "s", 18e-3);
    assert_int_equal(clustersim_result_columns(result, &columns), 0);
    assert_int_equal(clustersim_result_tasks(result).n, 0);
    assert_null(clustersim_result_text(result));
    assert_int_equal(clustersim_result_save(result, "never.h5", NULL, &error), CLUSTERSIM_INVALID);
    assert_string_equal(clustersim_error_message(error, 0).text,
                        "never.h5: cannot be written: the result has figures only");
    clustersim_error_free(error);
    clustersim_result_free(result);
    clustersim_scenario_free(scenario);
}

static void an_int_stops_all_calls(void **state)
{
    (void)state;
    static const clustersim_change keys[] = {{"/schedule/micro_batches", "1,2"}};
    const int one = 1;
    const clustersim_options options = {.size = sizeof(options), .stop = &one, .jobs = 1};
    const clustersim_source source = {.path = "s.json", .text = scenario_text};
    const clustersim_vary vary = {.keys = keys, .n = 1};
    clustersim_scenario *scenario = read_scenario(NULL, 0);
    clustersim_result *result = NULL;
    assert_int_equal(clustersim_run(scenario, &options, &result, NULL), CLUSTERSIM_INTERRUPTED);
    assert_int_equal(clustersim_sweep(&source, &vary, &options, &result, NULL),
                     CLUSTERSIM_INTERRUPTED);
    assert_int_equal(clustersim_advise(&source, NULL, &options, &result, NULL),
                     CLUSTERSIM_INTERRUPTED);
    assert_int_equal(clustersim_run(scenario, NULL, &result, NULL), CLUSTERSIM_OK);
    assert_int_equal(clustersim_result_save(result, "never.h5", &options, NULL),
                     CLUSTERSIM_INTERRUPTED);
    assert_int_not_equal(access("never.h5", F_OK), 0);
    clustersim_result_free(result);
    clustersim_scenario_free(scenario);
}

/* M micro-batches take (M + 2 - 1) (F + B), 12, 18 and 30 ms; 3 of them do not divide the batch of
 * 4. */
static void sweeps_have_a_row_per_point(void **state)
{
    (void)state;
    static const clustersim_change keys[] = {{"/schedule/micro_batches", "1,2,3,4"}};
    const clustersim_source source = {.path = "s.json", .text = scenario_text};
    clustersim_result *result = NULL;
    clustersim_error *error;
    assert_int_equal(clustersim_sweep(&source, &(clustersim_vary){keys, 1}, NULL, &result, &error),
                     CLUSTERSIM_OK);
    assert_null(error);
    const clustersim_column *makespan = column_of(result, "/", "makespan_s");
    const double *values = makespan->values;
    const char *const *failed = column_of(result, "/", "error")->values;
    assert_string_equal(makespan->dimensions[0], "schedule.micro_batches");
    assert_int_equal(makespan->n, 4);
    assert_float_equal(values[0], 12e-3, 1e-15);
    assert_float_equal(values[1], 18e-3, 1e-15);
    assert_float_equal(values[3], 30e-3, 1e-15);
    assert_true(isnan(values[2]) && !*failed[0] && strstr(failed[2], "/model/batch_size"));
    assert_int_equal(attribute_of(result, "failed")->value.int64, 1);
    assert_int_equal(clustersim_result_figures(result, &(const clustersim_figure *){NULL}), 0);
    clustersim_result_free(result);
}

static void sweeps_that_cannot_be(void **state)
{
    (void)state;
    const struct {
        clustersim_change key;
        clustersim_status expected;
        const char *text;
    } rows[] = {
        {{"/schedule/micro_batches", "3,5"},
         CLUSTERSIM_FAILED,
         "all of 2 points failed; the first"},
        {{"/schedule/micro_batch", "1,2"}, CLUSTERSIM_INVALID, "unknown key \"micro_batch\""},
        {{"/schedule/micro_batches", "1..x"}, CLUSTERSIM_INVALID, "vary: /schedule/micro_batches"},
    };
    const clustersim_source source = {.path = "s.json", .text = scenario_text};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        clustersim_result *result = NULL;
        clustersim_error *error;
        assert_int_equal(
            clustersim_sweep(&source, &(clustersim_vary){&rows[i].key, 1}, NULL, &result, &error),
            rows[i].expected);
        assert_null(result);
        if (!strstr(clustersim_error_message(error, 0).text, rows[i].text))
            print_error("expected %s, got %s\n", rows[i].text,
                        clustersim_error_message(error, 0).text);
        assert_non_null(strstr(clustersim_error_message(error, 0).text, rows[i].text));
        clustersim_error_free(error);
    }
}

/* ---- threads ---- */

enum { N_SEEDS = 40 };

typedef struct hashes {
    const clustersim_scenario *shared;
    uint64_t of[N_SEEDS];
    int failed;
} hashes;

/* Half of the runs are of a scenario of their own, with a failure on the way; the others share
 * one. */
static void *run_seeds(void *context)
{
    static const clustersim_change changes[] = {
        {"/platform/stragglers", "{\"tasks\": {\"mean\": 0.1}}"}, {"/iterations", "20"}};
    static const clustersim_change wrong = {"/schedule/kind", "gpip"};
    hashes *h = context;
    for (uint64_t i = 0; i < N_SEEDS && !h->failed; i++) {
        const clustersim_options options = {.size = sizeof(options), .seed_offset = i};
        clustersim_scenario *own = NULL, *none = NULL;
        clustersim_result *result = NULL;
        clustersim_error *error = NULL;
        if (clustersim_scenario_parse("w", scenario_text, &wrong, 1, &none, &error) ==
                CLUSTERSIM_OK ||
            clustersim_scenario_parse("s", scenario_text, changes, 2, &own, NULL) !=
                CLUSTERSIM_OK ||
            clustersim_run(i % 2 ? own : h->shared, &options, &result, NULL) != CLUSTERSIM_OK)
            h->failed = 1;
        else
            h->of[i] = clustersim_result_hash(result);
        clustersim_error_free(error);
        clustersim_scenario_free(own);
        clustersim_result_free(result);
    }
    return NULL;
}

static void two_threads_give_what_one_gives(void **state)
{
    (void)state;
    static const clustersim_change changes[] = {
        {"/platform/stragglers", "{\"tasks\": {\"mean\": 0.1}}"}, {"/iterations", "20"}};
    clustersim_scenario *shared = read_scenario(changes, 2);
    hashes alone = {.shared = shared}, at_once[2] = {{.shared = shared}, {.shared = shared}};
    pthread_t threads[2];
    run_seeds(&alone);
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, run_seeds, &at_once[t]), 0);
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_false(alone.failed || at_once[0].failed || at_once[1].failed);
    for (int t = 0; t < 2; t++)
        assert_memory_equal(alone.of, at_once[t].of, sizeof(alone.of));
    for (int i = 1; i < N_SEEDS; i++)
        assert_true(alone.of[i] != alone.of[0]); /* the seeds differ, and so do the runs */
    clustersim_scenario_free(shared);
}

static int count_null_messages(clustersim_status status, clustersim_error **error)
{
    int right = status == CLUSTERSIM_INVALID && clustersim_error_count(*error) == 1 &&
                strstr(clustersim_error_message(*error, 0).text, "NULL") != NULL;
    clustersim_error_free(*error);
    *error = NULL;
    return right;
}

/* Passes NULL for each required argument in turn. */
static void null_is_refused(void **state)
{
    (void)state;
    clustersim_scenario *scenario = read_scenario(NULL, 0), *none = NULL;
    clustersim_result *result = run_scenario(NULL, 0), *no_result = NULL;
    clustersim_error *error = NULL;
    const clustersim_change changes[] = {{NULL, "1"}, {"/seed", NULL}};
    const clustersim_source source = {"s.json", scenario_text, NULL, 0};
    const clustersim_source empty = {NULL, NULL, NULL, 0},
                            no_list = {"s.json", scenario_text, NULL, 1};
    const clustersim_vary keys = {.keys = NULL, .n = 1},
                          halves[] = {{.keys = &changes[0], .n = 1}, {.keys = &changes[1], .n = 1}};
    const struct {
        const char *what;
        clustersim_status status;
    } rows[] = {
        {"load", clustersim_scenario_load("s.json", NULL, 0, NULL, NULL)},
        {"parse", clustersim_scenario_parse("s.json", scenario_text, NULL, 0, NULL, NULL)},
        {"read", clustersim_scenario_read(NULL, NULL, &none, NULL)},
        {"path", clustersim_scenario_load(NULL, NULL, 0, &none, NULL)},
        {"text", clustersim_scenario_parse(NULL, NULL, NULL, 0, &none, NULL)},
        {"run", clustersim_run(scenario, NULL, NULL, NULL)},
        {"sweep", clustersim_sweep(&source, &halves[0], NULL, &no_result, NULL)},
        {"advise", clustersim_advise(&source, NULL, NULL, NULL, NULL)},
        {"save", clustersim_result_save(result, NULL, NULL, NULL)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status != CLUSTERSIM_INVALID)
            print_error("%s: %d\n", rows[i].what, (int)rows[i].status);
        assert_int_equal(rows[i].status, CLUSTERSIM_INVALID);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_true(count_null_messages(
            clustersim_scenario_parse("s.json", scenario_text, &changes[i], 1, &none, &error),
            &error));
        assert_true(count_null_messages(
            clustersim_sweep(&source, &halves[i], NULL, &no_result, &error), &error));
    }
    assert_true(
        count_null_messages(clustersim_scenario_read(&no_list, NULL, &none, &error), &error));
    assert_true(count_null_messages(clustersim_run(NULL, NULL, &no_result, &error), &error));
    assert_true(
        count_null_messages(clustersim_sweep(NULL, &keys, NULL, &no_result, &error), &error));
    assert_true(
        count_null_messages(clustersim_sweep(&source, &keys, NULL, &no_result, &error), &error));
    assert_true(
        count_null_messages(clustersim_advise(NULL, NULL, NULL, &no_result, &error), &error));
    assert_true(count_null_messages(clustersim_result_save(NULL, "x.h5", NULL, &error), &error));
    assert_int_equal(clustersim_advise(&empty, NULL, NULL, &no_result, &error), CLUSTERSIM_INVALID);
    clustersim_error_free(error);
    assert_null(none);
    assert_null(no_result);
    clustersim_scenario_free(scenario);
    clustersim_result_free(result);
}

/* A text needs no name; functions that cannot fail take NULL. */
static void null_is_nothing(void **state)
{
    (void)state;
    clustersim_scenario *scenario = NULL;
    clustersim_error *error = NULL;
    clustersim_result *result = run_scenario(NULL, 0);
    const clustersim_figure *figures;
    const clustersim_column *columns;
    const clustersim_attribute *attributes;
    assert_int_equal(clustersim_scenario_parse(NULL, scenario_text, NULL, 0, &scenario, NULL),
                     CLUSTERSIM_OK);
    clustersim_scenario_free(scenario);
    assert_int_equal(clustersim_scenario_parse(NULL, "{", NULL, 0, &scenario, &error),
                     CLUSTERSIM_INVALID);
    assert_string_equal(clustersim_error_message(error, 0).file, "scenario");
    assert_null(clustersim_error_message(error, 1).text);
    assert_null(clustersim_error_message(NULL, 0).text);
    clustersim_error_free(error);
    clustersim_error_free(NULL);
    clustersim_scenario_free(NULL);
    clustersim_result_free(NULL);
    assert_null(clustersim_scenario_resolved(NULL));
    assert_null(clustersim_scenario_warnings(NULL));
    assert_true(clustersim_result_hash(NULL) == 0);
    assert_int_equal(clustersim_result_figures(NULL, &figures), 0);
    assert_null(figures);
    assert_int_equal(clustersim_result_columns(NULL, &columns), 0);
    assert_null(columns);
    assert_int_equal(clustersim_result_attributes(NULL, &attributes), 0);
    assert_null(attributes);
    assert_true(clustersim_result_figures(result, NULL) > 0);
    assert_true(clustersim_result_columns(result, NULL) > 0);
    assert_true(clustersim_result_attributes(result, NULL) > 0);
    assert_null(clustersim_result_figure(NULL, "makespan_s"));
    assert_null(clustersim_result_figure(result, NULL));
    assert_true(isnan(clustersim_result_value(NULL, "makespan_s")));
    assert_true(isnan(clustersim_result_value(result, NULL)));
    assert_true(isnan(clustersim_result_device_value(NULL, 0, "peak_memory_bytes")));
    assert_true(isnan(clustersim_result_device_value(result, 0, NULL)));
    assert_int_equal(clustersim_result_devices(NULL), 0);
    assert_int_equal(clustersim_result_tasks(NULL).n, 0);
    assert_int_equal(clustersim_result_memory(NULL).n, 0);
    assert_null(clustersim_result_text(NULL));
    assert_null(clustersim_result_json(NULL));
    clustersim_result_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(null_is_nothing),
        cmocka_unit_test(figures_are_those_of_the_run),
        cmocka_unit_test(tasks_are_columns),
        cmocka_unit_test(memory_adds_up_to_the_peak),
        cmocka_unit_test(failures_are_values),
        cmocka_unit_test(runs_can_be_stopped),
        cmocka_unit_test(resolved_scenarios_give_the_same_results),
        cmocka_unit_test(columns_have_units_words_and_dimensions),
        cmocka_unit_test(figures_alone),
        cmocka_unit_test(an_int_stops_all_calls),
        cmocka_unit_test(sweeps_have_a_row_per_point),
        cmocka_unit_test(sweeps_that_cannot_be),
        cmocka_unit_test(two_threads_give_what_one_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
