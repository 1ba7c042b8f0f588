/* Results files: the schema, by values derived by hand, by other programs, and by walking the
 * file. */
#include "sim/base/file.h"
#include "sim/core/trace/contents.h"
#include "sim/core/trace/results-reader.h"
#include "sim/core/trace/results.h"

#include "tests/expect.h"
#include "tests/synthetic-trace.h"

#include <hdf5.h>
#include <hdf5_hl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const cs_results_info info = {
    .name = "two_by_two",
    .topology = "chain",
    .schedule = "one_f_one_b",
    .scenario = "{\n  \"schema_version\": 1\n}\n",
    .program_version = "0.0.0",
    .seed = UINT64_MAX,
};

/* Two devices, two micro-batches; forward 10, backward 20, update 4, transfers 5 ps, 100 bytes:
 *   device 0: F0 0-10, F1 10-20, B0 50-70 (there at 50), B1 80-100 (there at 80), U 100-104
 *   device 1: F0 15-25 (there at 15), B0 25-45, F1 45-55 (there since 25), B1 55-75, U 75-79
 *   transfers: F0 10-15, F1 20-25, B0 45-50, B1 75-80 */
static const synthetic_options two_by_two = {
    .devices = 2,
    .micro_batches = 2,
    .mini_batches = 1,
    .forward = 10,
    .backward = 20,
    .update = 4,
    .transfer = 5,
    .weights = 1000,
    .activation = 100,
    .capacity = 3150,
};

static int make_name(void **state)
{
    char *path = strdup("/tmp/test-results-XXXXXX");
    int file = path ? mkstemp(path) : -1;
    *state = path;
    return file >= 0 ? close(file) : -1;
}

static int remove_name(void **state)
{
    unlink(*state);
    free(*state);
    return 0;
}

static void write_run(const char *path, const synthetic_run *run, bool analysed)
{
    cs_error error;
    cs_h5_file *file = NULL;
    cs_error_init(&error);
    cs_status status = cs_h5_create(path, NULL, &file, &error);
    if (status == CS_OK)
        status = cs_results_write(file, &info, &run->graph, &run->trace, &error);
    if (status == CS_OK && analysed)
        status = synthetic_run_store(file, run, &error);
    if (status == CS_OK)
        status = cs_h5_commit(file, &error);
    cs_h5_destroy(file);
    expect_error(path, CS_OK, "", status, &error);
}

static void write_synthetic(const char *path, const synthetic_options *options)
{
    synthetic_run run;
    assert_true(synthetic_run_init(&run, options));
    write_run(path, &run, true);
    synthetic_run_finish(&run);
}

static cs_reader open_reader(const char *path)
{
    cs_reader reader;
    cs_error error;
    cs_error_init(&error);
    expect_error(path, CS_OK, "", cs_reader_init(&reader, path, &error), &error);
    return reader;
}

static const int64_t *column(cs_reader *reader, const char *name, uint64_t n_expected)
{
    const int64_t *values;
    uint64_t n = 0;
    cs_error error;
    const cs_reader_column wanted = {name, CS_READER_INT64, &values};
    cs_error_init(&error);
    expect_error(name, CS_OK, "", cs_reader_read(reader, &wanted, 1, &n, &error), &error);
    expect_int(name, (int64_t)n_expected, (int64_t)n);
    return values;
}

static const double *real_column(cs_reader *reader, const char *name, uint64_t n_expected)
{
    const double *values;
    uint64_t n = 0;
    const cs_reader_column wanted = {name, CS_READER_DOUBLE, &values};
    assert_int_equal(cs_reader_read(reader, &wanted, 1, &n, NULL), CS_OK);
    expect_int(name, (int64_t)n_expected, (int64_t)n);
    return values;
}

static void test_tasks(void **state)
{
    static const struct {
        const char *name;
        cs_kind kind;
        int64_t device, peer, micro_batch, start, end, bytes;
    } rows[] = {
        {"F0 on 0", CS_FORWARD, 0, CS_NONE, 0, 0, 10, 0},
        {"F1 on 0", CS_FORWARD, 0, CS_NONE, 1, 10, 20, 0},
        {"B0 on 0", CS_BACKWARD, 0, CS_NONE, 0, 50, 70, 0},
        {"B1 on 0", CS_BACKWARD, 0, CS_NONE, 1, 80, 100, 0},
        {"U on 0", CS_UPDATE, 0, CS_NONE, 1, 100, 104, 0},
        {"F0 on 1", CS_FORWARD, 1, CS_NONE, 0, 15, 25, 0},
        {"B0 on 1", CS_BACKWARD, 1, CS_NONE, 0, 25, 45, 0},
        {"F1 on 1", CS_FORWARD, 1, CS_NONE, 1, 45, 55, 0},
        {"B1 on 1", CS_BACKWARD, 1, CS_NONE, 1, 55, 75, 0},
        {"U on 1", CS_UPDATE, 1, CS_NONE, 1, 75, 79, 0},
        {"F0 sent", CS_TRANSFER, 0, 1, 0, 10, 15, 100},
        {"F1 sent", CS_TRANSFER, 0, 1, 1, 20, 25, 100},
        {"B0 sent", CS_TRANSFER, 1, 0, 0, 45, 50, 100},
        {"B1 sent", CS_TRANSFER, 1, 0, 1, 75, 80, 100},
    };
    enum { N = ROWS(rows) };
    write_synthetic(*state, &two_by_two);
    cs_reader reader = open_reader(*state);
    const int64_t *kind = column(&reader, "tasks/kind", N);
    const int64_t *origin = column(&reader, "tasks/origin", N);
    const int64_t *device = column(&reader, "tasks/device", N);
    const int64_t *peer = column(&reader, "tasks/peer", N);
    const int64_t *stage = column(&reader, "tasks/stage", N);
    const int64_t *task = column(&reader, "tasks/task", N);
    const int64_t *mini = column(&reader, "tasks/mini_batch", N);
    const int64_t *micro = column(&reader, "tasks/micro_batch", N);
    const int64_t *start = column(&reader, "tasks/start", N);
    const int64_t *end = column(&reader, "tasks/end", N);
    const int64_t *bytes = column(&reader, "tasks/bytes", N);
    for (size_t r = 0; r < N; r++) {
        size_t at = 0;
        while (at < N && !(kind[at] == rows[r].kind && device[at] == rows[r].device &&
                           micro[at] == rows[r].micro_batch))
            at++;
        if (at == N)
            fail_msg("%s: not in the file", rows[r].name);
        expect_int(rows[r].name, (int64_t)at, task[at]);
        expect_int(rows[r].name, rows[r].kind, origin[at]);
        expect_int(rows[r].name, rows[r].peer, peer[at]);
        expect_int(rows[r].name, rows[r].device, stage[at]);
        expect_int(rows[r].name, 0, mini[at]);
        expect_int(rows[r].name, rows[r].start, start[at]);
        expect_int(rows[r].name, rows[r].end, end[at]);
        expect_int(rows[r].name, rows[r].bytes, bytes[at]);
    }
    cs_reader_finish(&reader);
}

/* Weights 1000 and optimizer states 2000 from the start. Device 0 holds two activations from 10 to
 * 70, the second above its capacity of 3150; device 1 holds one at a time, 15-45 and 45-75: at 45
 * nothing changes. */
static void test_memory_and_devices(void **state)
{
    static const struct {
        const char *name;
        int64_t device_0, device_1;
    } rows[] = {
        {"devices/device", 0, 1},
        {"devices/capacity", 3150, 3150},
        {"devices/peak", 3200, 3100},
        {"devices/peak_time", 10, 15},
        {"devices/at_peak_weights", 1000, 1000},
        {"devices/at_peak_optimizer_states", 2000, 2000},
        {"devices/at_peak_activations", 200, 100},
        {"devices/at_peak_workspace", 0, 0},
        {"devices/peak_activations", 200, 100},
        {"devices/out_of_memory", 1, 0},
        {"devices/oom_time", 10, -1},
        {"devices/oom_task", CS_NONE, CS_NONE},
        {"devices/at_oom_activations", 200, 0},
        {"devices/at_oom_weights", 1000, 0},
        {"devices/compute_forward", 20, 20},
        {"devices/compute_backward", 40, 40},
        {"devices/compute_update", 4, 4},
        {"devices/compute_recompute", 0, 0},
        {"devices/communication", 10, 5},
        {"devices/dependency", 30, 10},
        {"devices/flush", 0, 25},
    };
    static const struct {
        int64_t time, device, category, bytes;
    } samples[] = {
        {0, 0, CS_MEMORY_WEIGHTS, 1000},     {0, 0, CS_MEMORY_OPTIMIZER, 2000},
        {0, 1, CS_MEMORY_WEIGHTS, 1000},     {0, 1, CS_MEMORY_OPTIMIZER, 2000},
        {0, 0, CS_MEMORY_ACTIVATIONS, 100},  {10, 0, CS_MEMORY_ACTIVATIONS, 200},
        {15, 1, CS_MEMORY_ACTIVATIONS, 100}, {70, 0, CS_MEMORY_ACTIVATIONS, 100},
        {75, 1, CS_MEMORY_ACTIVATIONS, 0},   {100, 0, CS_MEMORY_ACTIVATIONS, 0},
    };
    write_synthetic(*state, &two_by_two);
    cs_reader reader = open_reader(*state);
    for (size_t r = 0; r < ROWS(rows); r++) {
        const int64_t *values = column(&reader, rows[r].name, 2);
        expect_int(rows[r].name, rows[r].device_0, values[0]);
        expect_int(rows[r].name, rows[r].device_1, values[1]);
    }
    const int64_t *time = column(&reader, "memory/time", ROWS(samples));
    const int64_t *device = column(&reader, "memory/device", ROWS(samples));
    const int64_t *category = column(&reader, "memory/category", ROWS(samples));
    const int64_t *bytes = column(&reader, "memory/bytes", ROWS(samples));
    for (size_t i = 0; i < ROWS(samples); i++) {
        expect_int("time", samples[i].time, time[i]);
        expect_int("device", samples[i].device, device[i]);
        expect_int("category", samples[i].category, category[i]);
        expect_int("bytes", samples[i].bytes, bytes[i]);
    }
    cs_reader_finish(&reader);
}

/* Two mini-batches: forwards and backwards of the second read version 1, its updates make version
 * 2. */
static void test_versions(void **state)
{
    synthetic_options options = two_by_two;
    options.mini_batches = 2;
    write_synthetic(*state, &options);
    cs_reader reader = open_reader(*state);
    const int64_t *kinds = column(&reader, "tasks/kind", 28);
    const int64_t *task = column(&reader, "versions/task", 20); /* all but the 8 transfers */
    const int64_t *version = column(&reader, "versions/version", 20);
    const int64_t *mini = column(&reader, "versions/mini_batch", 20);
    const int64_t *stage = column(&reader, "versions/stage", 20);
    const int64_t *device = column(&reader, "versions/device", 20);
    for (int i = 0; i < 20; i++) {
        expect_int("version", mini[i] + (kinds[task[i]] == CS_UPDATE), version[i]);
        expect_int("stage", device[i], stage[i]);
        assert_true(i == 0 || task[i] > task[i - 1]);
    }
    cs_reader_finish(&reader);
}

/* 100 bytes in 5 ps are 20e12 bytes/s; each link carries 200 bytes of the 2080 possible in 104
 * ps. */
static void test_links(void **state)
{
    const char *const *names;
    uint64_t n = 0;
    const cs_reader_column texts = {"links/name", CS_READER_TEXT, &names};
    synthetic_run run;
    assert_true(synthetic_run_init(&run, &two_by_two));
    run.trace.links[1].bandwidth = INFINITY;
    write_run(*state, &run, false);
    synthetic_run_finish(&run);
    cs_reader reader = open_reader(*state);
    assert_int_equal(cs_reader_read(&reader, &texts, 1, &n, NULL), CS_OK);
    expect_int("links", 2, (int64_t)n);
    expect_text("link 0", "gpu0 > gpu1", names[0]);
    expect_text("link 1", "gpu1 > gpu0", names[1]);
    expect_int("bytes", 200, column(&reader, "links/bytes", 2)[1]);
    const double *utilisation = real_column(&reader, "links/utilisation", 2);
    assert_true(fabs(utilisation[0] - 200. / 2080) < 1e-15); /* a few roundings */
    expect_double("of an infinite link", 0, utilisation[1]);
    assert_true(isinf(real_column(&reader, "links/bandwidth", 2)[1]));
    cs_reader_finish(&reader);
}

/* Four messages of 100 bytes in 5 ps; the last takes no time, as where links are
 * infinite. Changes of rates stand as they were recorded. */
static void test_rates(void **state)
{
    synthetic_run run;
    assert_true(synthetic_run_init(&run, &two_by_two));
    const cs_rate_sample samples[] = {{10, 2e13, 10}, {15, 0, 10}};
    run.trace.rates = malloc(sizeof(samples));
    assert_non_null(run.trace.rates);
    memcpy(run.trace.rates, samples, sizeof(samples));
    run.trace.n_rates = ROWS(samples);
    uint32_t transfers[4], n = 0;
    for (uint32_t task = 0; task < run.graph.n_tasks; task++)
        if (cs_graph_class(&run.graph, task)->kind == CS_TRANSFER)
            transfers[n++] = task;
    assert_int_equal(n, 4);
    run.trace.spans[transfers[3]].end = run.trace.spans[transfers[3]].start;
    write_run(*state, &run, false);
    synthetic_run_finish(&run);
    cs_reader reader = open_reader(*state);
    for (uint32_t i = 0; i < 4; i++) {
        expect_int("task", transfers[i], column(&reader, "transfers/task", 4)[i]);
        const double rate = real_column(&reader, "transfers/rate", 4)[i];
        assert_true(i < 3 ? fabs(rate - 2e13) < 1 : isinf(rate));
    }
    for (uint32_t i = 0; i < 2; i++) {
        expect_int("time", samples[i].time, column(&reader, "rates/time", 2)[i]);
        expect_int("changed", samples[i].task, column(&reader, "rates/task", 2)[i]);
        expect_double("rate", samples[i].rate, real_column(&reader, "rates/rate", 2)[i]);
    }
    cs_reader_finish(&reader);
}

/* The last message, which would be through at 80 ps, is not when the run was stopped then. */
static void test_cut_off(void **state)
{
    synthetic_run run;
    assert_true(synthetic_run_init(&run, &two_by_two));
    run.trace.stopped = true;
    run.trace.makespan = 80;
    const uint32_t n_tasks = run.graph.n_tasks;
    for (uint32_t i = 0; i < n_tasks; i++) {
        cs_span *span = &run.trace.spans[i];
        *span = span->start > 80 ? (cs_span){-1, -1}
                                 : (cs_span){span->start, span->end < 80 ? span->end : 80};
    }
    write_run(*state, &run, false);
    synthetic_run_finish(&run);
    cs_reader reader = open_reader(*state);
    const int64_t *task = column(&reader, "transfers/task", 3);
    const int64_t *end = column(&reader, "tasks/end", n_tasks);
    static const int64_t ends[] = {15, 25, 50};
    for (uint32_t i = 0; i < 3; i++)
        expect_int("end", ends[i], end[task[i]]);
    cs_reader_finish(&reader);
}

/* Device 0's part: 4 waits and computations, see above. */
static void test_critical_path(void **state)
{
    static const int64_t times[] = {0, 10, 20, 50, 70, 80, 100, 104};
    write_synthetic(*state, &two_by_two);
    cs_reader reader = open_reader(*state);
    const int64_t *start = column(&reader, "critical_path/start", 7);
    const int64_t *end = column(&reader, "critical_path/end", 7);
    const int64_t *task = column(&reader, "critical_path/task", 7);
    for (int i = 0; i < 7; i++) {
        expect_int("start", times[i], start[i]);
        expect_int("end", times[i + 1], end[i]);
        expect_int("waiting", i == 2 || i == 4, task[i] == CS_NONE);
    }
    cs_reader_finish(&reader);
}

static char *text_attribute(hid_t object, const char *name)
{
    char *text = NULL;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        fail_msg("no attribute %s", name);
    hid_t type = H5Aget_type(attribute);
    assert_true(H5Tis_variable_str(type) > 0);
    assert_true(H5Aread(attribute, type, &text) >= 0);
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

static void test_attributes(void **state)
{
    char hash[17];
    uint64_t seed = 0;
    synthetic_run run;
    assert_true(synthetic_run_init(&run, &two_by_two));
    run.trace.stopped = true;
    snprintf(hash, sizeof(hash), "%016" PRIx64, cs_trace_hash(&run.trace));
    write_run(*state, &run, true);
    const struct {
        const char *name, *value;
    } texts[] = {
        {"format", "sim-results"},   {"name", info.name},
        {"topology", info.topology}, {"schedule", info.schedule},
        {"scenario", info.scenario}, {"program_version", info.program_version},
        {"origin", "simulated"},     {"hash", hash},
    };
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"schema_version", 1},
        {"makespan", 104},
        {"mini_batches", 1},
        {"micro_batches", 2},
        {"stopped", 1},
        {"makespan_s", 104e-12},
        {"iteration_time_s", NAN}, /* a stopped run */
        {"throughput_samples_per_s", NAN},
        {"bubble_fraction", run.analysis.bubble_fraction},
    };
    hid_t file = H5Fopen(*state, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (size_t i = 0; i < ROWS(texts); i++) {
        char *text = text_attribute(file, texts[i].name);
        expect_text(texts[i].name, texts[i].value, text);
        H5free_memory(text);
    }
    for (size_t i = 0; i < ROWS(numbers); i++) {
        double value = -1;
        H5LTget_attribute(file, "/", numbers[i].name, H5T_NATIVE_DOUBLE, &value);
        if (isnan(numbers[i].value))
            assert_true(isnan(value));
        else
            expect_double(numbers[i].name, numbers[i].value, value);
    }
    assert_true(H5LTget_attribute(file, "/", "seed", H5T_NATIVE_UINT64, &seed) >= 0);
    expect_bits("seed", info.seed, seed);
    H5Fclose(file);
    synthetic_run_finish(&run);
}

static herr_t check_object(hid_t file, const char *name, const H5O_info_t *object, void *count)
{
    if (object->type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    char *units = text_attribute(dataset, "units"), *meaning = text_attribute(dataset, "long_name");
    if (!*units || !*meaning)
        fail_msg("%s: units or long_name is empty", name);
    if (H5DSis_scale(dataset) <= 0 && H5DSget_num_scales(dataset, 0) != 1)
        fail_msg("%s: no dimension scale", name);
    if (object->mtime != 0)
        fail_msg("%s: has a time", name);
    H5free_memory(units);
    H5free_memory(meaning);
    H5Dclose(dataset);
    *(int *)count += 1;
    return 0;
}

static void test_every_dataset_is_described(void **state)
{
    int count = 0;
    write_synthetic(*state, &two_by_two);
    hid_t file = H5Fopen(*state, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, check_object, &count) >= 0);
    H5Fclose(file);
    /* tasks 12, memory 5, links 5, devices 4 + 3 * 8 + 3 + 6 kinds + 4 + 2 * 8 purposes, versions
     * 5, path 4, staleness 10, weights 5, mini_batches 4, transfers 2, rates 4, waits 5 */
    expect_int("datasets", 12 + 5 + 5 + 60 + 5 + 4 + 10 + 5 + 4 + 2 + 4 + 5, count);
}

/* ---- the page about the format ---- */

/* The part of the page about a table: from its heading to the next one, in `text`. */
static void find_section(const char *page, const char *table, char *text, size_t size)
{
    char heading[80];
    snprintf(heading, sizeof(heading), "### `/%s`", table);
    const char *begin = strstr(page, heading), *end = begin ? strstr(begin + 1, "\n### ") : NULL;
    size_t length = begin ? end ? (size_t)(end - begin) : strlen(begin) : 0;
    if (length == 0 || length >= size)
        fail_msg("results-file.md: no section for /%s, or one too long", table);
    memcpy(text, begin, length);
    text[length] = '\0';
}

/* Columns of a kind, or of a category, have one row for all. */
static void expect_column(const char *section, const char *table, const char *column)
{
    static const struct {
        const char *prefix, *row;
    } families[] = {
        {"at_peak_", "`at_peak_<category>`"},      {"at_oom_", "`at_oom_<category>`"},
        {"compute_", "`compute_<kind>`"},          {"exposed_for_", "`exposed_for_<purpose>`"},
        {"active_for_", "`active_for_<purpose>`"}, {"peak_", "`peak_<category>`"}};
    char name[80];
    snprintf(name, sizeof(name), "`%s`", column);
    bool found = strstr(section, name) != NULL;
    for (size_t i = 0; i < ROWS(families) && !found; i++)
        found = strncmp(column, families[i].prefix, strlen(families[i].prefix)) == 0 &&
                strstr(section, families[i].row);
    if (!found)
        fail_msg("results-file.md: /%s: nothing about %s", table, name);
}

static void expect_meanings(const char *section, const char *table, hid_t dataset)
{
    if (H5Aexists(dataset, "flag_meanings") <= 0)
        return;
    char *meanings = text_attribute(dataset, "flag_meanings"), *rest = NULL;
    for (char *word = strtok_r(meanings, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char name[80];
        snprintf(name, sizeof(name), "`%s`", word);
        if (!strstr(section, name))
            fail_msg("results-file.md: /%s: nothing about %s", table, name);
    }
    H5free_memory(meanings);
}

static herr_t check_page(hid_t file, const char *name, const H5O_info_t *object, void *page)
{
    char section[4096], table[64];
    const char *column = strchr(name, '/');
    if (object->type != H5O_TYPE_DATASET)
        return 0;
    assert_true(column && (size_t)(column - name) < sizeof(table));
    snprintf(table, sizeof(table), "%.*s", (int)(column - name), name);
    find_section(page, table, section, sizeof(section));
    expect_column(section, table, column + 1);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    expect_meanings(section, table, dataset);
    H5Dclose(dataset);
    return 0;
}

static void test_documentation(void **state)
{
    char *page;
    size_t length;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_file_read(CS_SOURCE_ROOT "/docs/reference/results-file.md", 1 << 20,
                                    &page, &length, &error);
    expect_error("page", CS_OK, "", status, &error);
    write_synthetic(*state, &two_by_two);
    hid_t file = H5Fopen(*state, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, check_page, page) >= 0);
    H5Fclose(file);
    free(page);
}

/* A run without samples, versions, links or time still has all tables. */
static void test_empty_tables(void **state)
{
    synthetic_run run;
    cs_graph graph = {.micro_batches = 1};
    cs_trace trace = {0};
    run = (synthetic_run){.graph = graph, .trace = trace};
    write_run(*state, &run, true);
    cs_reader reader = open_reader(*state);
    static const char *const names[] = {"tasks/start",
                                        "memory/bytes",
                                        "links/bytes",
                                        "devices/peak",
                                        "versions/version",
                                        "critical_path/task",
                                        "staleness/made",
                                        "weights/peak_versions",
                                        "mini_batches/version_difference",
                                        "transfers/task",
                                        "rates/time"};
    for (size_t i = 0; i < ROWS(names); i++)
        column(&reader, names[i], 0);
    cs_reader_finish(&reader);
}

static void test_equal_runs_give_equal_files(void **state)
{
    char other[64], command[256];
    snprintf(other, sizeof(other), "%s-b", (const char *)*state);
    write_synthetic(*state, &two_by_two);
    write_synthetic(other, &two_by_two);
    snprintf(command, sizeof(command), "cmp %s %s", (const char *)*state, other);
    expect_int("cmp", 0, system(command));
    unlink(other);
}

/* A file's contents, kept in memory, give the same file later, when the run no longer exists. */
static void test_contents_give_the_same_file(void **state)
{
    char path[64], *texts[2];
    size_t lengths[2];
    synthetic_run run;
    cs_contents contents;
    cs_h5_file *file = NULL;
    cs_error error;
    cs_error_init(&error);
    snprintf(path, sizeof(path), "%s-again", (const char *)*state);
    assert_true(synthetic_run_init(&run, &two_by_two));
    write_run(*state, &run, true);
    cs_contents_init(&contents);
    assert_int_equal(cs_contents_open(&contents, NULL, &file, &error), CS_OK);
    assert_int_equal(cs_results_write(file, &info, &run.graph, &run.trace, &error), CS_OK);
    assert_int_equal(synthetic_run_store(file, &run, &error), CS_OK);
    cs_h5_destroy(file);
    synthetic_run_finish(&run);
    assert_int_equal(cs_h5_create(path, NULL, &file, &error), CS_OK);
    assert_int_equal(cs_contents_write(&contents, file, &error), CS_OK);
    expect_error(path, CS_OK, "", cs_h5_commit(file, &error), &error);
    cs_h5_destroy(file);
    cs_contents_finish(&contents);
    assert_int_equal(cs_file_read(*state, 1 << 24, &texts[0], &lengths[0], &error), CS_OK);
    assert_int_equal(cs_file_read(path, 1 << 24, &texts[1], &lengths[1], &error), CS_OK);
    assert_int_equal(lengths[0], lengths[1]);
    assert_memory_equal(texts[0], texts[1], lengths[0]);
    free(texts[0]);
    free(texts[1]);
    unlink(path);
}

/* ---- other programs ---- */

static void need(const char *program_and_arguments)
{
    char command[256];
    snprintf(command, sizeof(command), "%s >/dev/null 2>&1", program_and_arguments);
    if (system(command) != 0) {
        print_message("skipped: this does not work here: %s\n", program_and_arguments);
        skip();
    }
}

static void test_h5dump(void **state)
{
    char command[256];
    need("h5dump --version");
    write_synthetic(*state, &two_by_two);
    snprintf(command, sizeof(command), "h5dump -H %s | grep -q 'DATASET \"critical_path\\|start\"'",
             (const char *)*state);
    expect_int("h5dump -H", 0, system(command));
}

/* The assertions repeat test_tasks and the schema's description. */
static const char script[] =
    "import h5py, sys\n"
    "with h5py.File(sys.argv[1], 'r') as f:\n"
    "    assert f.attrs['format'] == 'sim-results'\n"
    "    assert f.attrs['schema_version'] == 1\n"
    "    assert f.attrs['seed'] == 2**64 - 1\n"
    "    tasks = f['tasks']\n"
    "    kinds = tasks['kind'].attrs['flag_meanings'].split()\n"
    "    sent = tasks['kind'][:] == kinds.index('transfer')\n"
    "    assert sorted(tasks['start'][sent].tolist()) == [10, 20, 45, 75]\n"
    "    assert tasks['end'][:].max() == f.attrs['makespan'] == 104\n"
    "    assert tasks['end'].attrs['units'] == 'ps'\n"
    "    assert f['links/name'].asstr()[:].tolist() == ['gpu0 > gpu1', 'gpu1 > gpu0']\n"
    "    def check(name, item):\n"
    "        if isinstance(item, h5py.Dataset):\n"
    "            assert item.attrs['units'] and item.attrs['long_name'], name\n"
    "            if not h5py.h5ds.is_scale(item.id):\n"
    "                scale = item.dims[0][0]\n"
    "                assert scale.shape == item.shape and scale.parent == item.parent, name\n"
    "    f.visititems(check)\n";

static void test_h5py(void **state)
{
    char name[64], command[256];
    need("/usr/bin/python3 -c 'import h5py'");
    write_synthetic(*state, &two_by_two);
    snprintf(name, sizeof(name), "%s.py", (const char *)*state);
    FILE *out = fopen(name, "w");
    assert_non_null(out);
    fputs(script, out);
    fclose(out);
    snprintf(command, sizeof(command), "/usr/bin/python3 %s %s", name, (const char *)*state);
    int result = system(command);
    unlink(name);
    expect_int("h5py", 0, result);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_name, remove_name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tasks),
        TEST(test_memory_and_devices),
        TEST(test_versions),
        TEST(test_links),
        TEST(test_rates),
        TEST(test_critical_path),
        TEST(test_attributes),
        TEST(test_every_dataset_is_described),
        TEST(test_empty_tables),
        TEST(test_equal_runs_give_equal_files),
        TEST(test_contents_give_the_same_file),
        TEST(test_h5dump),
        TEST(test_h5py),
        TEST(test_cut_off),
        TEST(test_documentation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
