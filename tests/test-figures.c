/* The table of figures: keys are unique and end in their unit as CONTRIBUTING.md pins it, closed
 * forms are about figures of the table, and sweeps take units from it. */
#include "schedules/schedule.h"
#include "sim/core/trace/results-reader.h"
#include "sim/run/print/report.h"
#include "sim/run/store-run.h"
#include "sim/study/sweep/range.h"
#include "sim/study/sweep/sweep-figures.h"
#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Suffixes of keys and their units; the first match counts. */
static const struct {
    const char *end, *unit;
} endings[] = {
    {"_samples_per_s", "samples/s"},
    {"_tokens_per_s", "tokens/s"},
    {"_flop_per_sample", "flop"},
    {"_flop_per_s", "flop/s"},
    {"_bytes", "bytes"},
    {"_samples", "samples"},
    {"_parameters", "parameters"},
    {"_s", "s"},
    {"", "1"},
};

static const char *unit_that_ends(const char *key)
{
    size_t i = 0;
    for (;; i++) {
        const size_t end = strlen(endings[i].end), length = strlen(key);
        if (length >= end && strcmp(key + length - end, endings[i].end) == 0)
            return endings[i].unit;
    }
}

static void keys_end_in_their_units(void **state)
{
    (void)state;
    for (const cs_run_figure *row = cs_run_figures; row->key; row++)
        expect_text(row->key, unit_that_ends(row->key), cs_unit_word(row->unit));
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (const cs_run_figure *row = cs_run_figures; row->key; row++) {
        assert_ptr_equal(cs_run_figure_find(row->key), row); /* no earlier row has its key */
        assert_true(row->label && *row->label && row->get);
        assert_true(!row[1].key || row[1].scope >= row->scope);
        assert_true(!(row->shown & CS_SHOWN_MAIN) || !row->given);
        assert_true(!(row->shown & CS_SHOWN_JOINED) || row[-1].shown);
    }
    assert_null(cs_run_figure_find("makespan"));
}

/* Closed forms are about figures of the table, whose labels theirs begin with ("bubble fraction").
 * Versions are not in it: they are counted from the weights. */
static void closed_forms_are_about_figures(void **state)
{
    (void)state;
    for (cs_figure f = 0; f < CS_N_FIGURES; f++) {
        const cs_run_figure *row = cs_run_figure_find(cs_figure_key(f));
        const bool counts = f == CS_FIGURE_PEAK_VERSIONS || f == CS_FIGURE_VERSION_DIFFERENCE;
        assert_true(counts == (row == NULL));
        if (row)
            assert_memory_equal(cs_figure_label(f), row->label, strlen(row->label));
    }
}

static void sweeps_take_their_units(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"makespan_s", "s"},
        {"closed_form_makespan_s", "s"},
        {"difference12_peak_memory_bytes", "bytes"},
        {"closed_form2_bubble_fraction", "1"},
        {"applies_makespan_s", "1"}, /* a boolean */
        {"version_difference", "1"},
        {"no_figure_that_ends_in_s", "1"}, /* which its end does not tell */
        {"difference", "1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_text(rows[i][0], rows[i][1], cs_unit_word(cs_figure_unit(rows[i][0])));
}

/* As people read them: four digits, five of a rate; percent; a unit once, in a table in front. */
static void values_are_readable(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double value;
        const char *text, *heading, *cell;
    } rows[] = {
        {"iteration_time_s", 0.0012345678, "1.235 ms", "iteration time", "1.235 ms"},
        {"throughput_samples_per_s", 2000. / 3, "666.67 samples/s", "throughput, samples/s",
         "666.67"},
        {"bubble_fraction", 3. / 11, "27.27 %", "bubble fraction", "27.27 %"},
        {"peak_memory_bytes", 2e9, "2 GB", "peak memory", "2 GB"},
        {"device_model_flop_per_s", 1e12 / 3, "333.3 Gflop/s", "model flop", "333.3 Gflop/s"},
        {"tasks", 123456, "123456", "tasks", "123456"},
        {"model_parameters", 6738415616., "6.738 billion parameters", "model, parameters",
         "6.7384e+09"},
        {"model_parameters", 124439808, "124.4 million parameters", "model, parameters",
         "1.2444e+08"},
        {"active_parameters", 999, "999 parameters", "active, parameters", "999"},
        {"stopped", 1, "yes", "stopped", "yes"},
        {"throughput_tokens_per_s", NAN, "-", "throughput in tokens, tokens/s", "-"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const cs_run_figure *figure = cs_run_figure_find(rows[i].key);
        char text[CS_UNIT_TEXT_BYTES];
        expect_text(rows[i].key, rows[i].text,
                    cs_unit_format(figure->unit, rows[i].value, text, sizeof(text)));
        expect_text(rows[i].key, rows[i].heading,
                    cs_run_figure_heading(figure, text, sizeof(text)));
        expect_text(rows[i].key, rows[i].cell,
                    cs_run_figure_cell(figure, rows[i].value, text, sizeof(text)));
    }
}

/* A results file has every number of the run under its key, exactly. Two stages of 1 s and 2 s and
 * two micro-batches take 3 * 3 s: 2 samples in 9 s, idle 1/3. */
static void files_have_the_figures(void **state)
{
    (void)state;
    char path[] = "/tmp/test-figures-XXXXXX";
    scenario_run run;
    cs_reader reader;
    cs_h5_file *file = NULL;
    cs_error error;
    cs_error_init(&error);
    const int made = mkstemp(path);
    assert_true(made >= 0 && close(made) == 0);
    cs_status status = scenario_run_init(
        &run, &error,
        "{'schema_version': 1, 'platform': 'ideal', 'model': {'batch_size': 2, 'uniform':"
        " {'layers': 2, 'forward': '1 s', 'backward': '2 s', 'weights': '1 MB'}},"
        " 'schedule': {'kind': 'gpipe', 'micro_batches': 2}}");
    const cs_outcome outcome = {&run.scenario, &run.simulation};
    if (status == CS_OK)
        status = cs_h5_create(path, NULL, &file, &error);
    if (status == CS_OK)
        status = cs_simulation_store(file, &run.scenario, &run.simulation, NULL, &error);
    if (status == CS_OK)
        status = cs_h5_commit(file, &error);
    cs_h5_destroy(file);
    if (status == CS_OK)
        status = cs_reader_init(&reader, path, &error);
    expect_error("file", CS_OK, "", status, &error);
    expect_double("iteration time", 9, cs_reader_figure(&reader, "iteration_time_s"));
    expect_double("makespan", 9, cs_reader_figure(&reader, "makespan_s"));
    expect_double("throughput", 2. / 9, cs_reader_figure(&reader, "throughput_samples_per_s"));
    expect_double("bubble", 1. / 3, cs_reader_figure(&reader, "bubble_fraction"));
    for (const cs_run_figure *row = cs_run_figures; row->key; row++) {
        if (row->scope != CS_SCOPE_RUN || row->unit == CS_UNIT_BOOLEAN)
            continue;
        const double read = cs_reader_figure(&reader, row->key);
        if (cs_run_figure_given(row, &outcome) && !isnan(row->get(&outcome)))
            expect_double(row->key, row->get(&outcome), read);
        else
            assert_true(isnan(read));
    }
    cs_reader_finish(&reader);
    scenario_run_finish(&run);
    assert_int_equal(unlink(path), 0);
}

/* Reports with every device, slot and form give the same metrics as reports with their summary. */
static void figures_need_no_report_of_each_device(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *platform;
    } cases[] = {
        {"'kind': 'sequential'", "{'topology': 'ideal', 'devices': 1}"},
        {"'kind': 'dp'", "{'topology': 'ring', 'devices': 4, 'bandwidth': '10 GB/s'}"},
        {"'kind': '1f1b', 'micro_batches': 8",
         "{'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '9 GB/s', 'memory': '3 GB'}"},
        {"'kind': 'gpipe', 'micro_batches': 4", "{'topology': 'ideal', 'devices': 4}"},
        {"'kind': 'pipedream', 'partition': [1, 2, 3]",
         "{'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '9 GB/s', 'memory': '64 GB'}"},
        {"'kind': 'nf1b', 'micro_batches': 3", "{'topology': 'ideal', 'devices': 4}"},
        {"'kind': 'cdp_v2', 'micro_batches': 4", "{'topology': 'ideal', 'devices': 4}"},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'name': 's', 'model': {'uniform': {'layers': 4, "
                "'forward': '1 s', 'backward': '2 s', 'weights': '1 GB', 'activation': "
                "'1 GB'}}, 'platform': %s, 'schedule': {%s}, 'iterations': 3}",
                cases[c].platform, cases[c].schedule) != CS_OK)
            fail_msg("%s: %s", cases[c].schedule, error.text);
        cJSON *whole = cs_report_json(&run.scenario, &run.simulation);
        cJSON *digest = cs_report_json_figures(&run.scenario, &run.simulation);
        cJSON *of_whole = cs_figures_of(whole), *of_digest = cs_figures_of(digest);
        char *texts[] = {cs_json_line(of_whole), cs_json_line(of_digest)};
        assert_non_null(texts[0]);
        assert_non_null(texts[1]);
        assert_string_equal(texts[0], texts[1]);
        for (size_t i = 0; i < 2; i++)
            free(texts[i]);
        cJSON_Delete(of_whole);
        cJSON_Delete(of_digest);
        cJSON_Delete(whole);
        cJSON_Delete(digest);
        scenario_run_finish(&run);
    }
}

/* Two layers of 1 s forward, 2 s backward and 1 GB of weights on two replicas that 1 GB/s joins,
 * whose states are sharded: 6 s of computation, half of 2 GB is sent in 1 s to scatter the sums of
 * gradients, and half in 1 s after the update to gather the weights, which the next mini-batch
 * needs. A step takes 8 s, whether one is simulated or several. An epoch of 10 samples is two and a
 * half steps. */
static void one_step_is_as_long_as_several(void **state)
{
    (void)state;
    for (int iterations = 1; iterations <= 5; iterations += 2)
        for (int zero = 0; zero <= 2; zero++) {
            scenario_run run;
            cs_error error;
            cs_error_init(&error);
            if (scenario_run_init(
                    &run, &error,
                    "{'schema_version': 1, 'name': 't', 'iterations': %d, 'dataset': 10, 'model': "
                    "{'uniform': {'layers': 2, 'forward': '1 s', 'backward': '2 s', 'weights': '1 "
                    "GB', "
                    "'activation': '1 B'}, 'batch_size': 4}, 'platform': {'topology': "
                    "'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s', 'latency': '0 s'}, "
                    "'parallel': {'data': 2, 'zero': %d, 'accumulate': %s, 'bucket': '2 GB'}, "
                    "'collectives': {'algorithm': 'ring'}, 'schedule': {'kind': 'sequential', "
                    "'micro_batches': 1}}",
                    iterations, zero, zero == 2 ? "true" : "false") != CS_OK)
                fail_msg("%s", error.text);
            const cs_outcome of = {.scenario = &run.scenario, .simulation = &run.simulation};
            expect_double("step", 8,
                          cs_run_figure_value(cs_run_figure_find("iteration_time_s"), &of));
            expect_double("throughput", 0.5,
                          cs_run_figure_value(cs_run_figure_find("throughput_samples_per_s"), &of));
            expect_double("mini-batches of an epoch", 2.5, run.simulation.epoch);
            expect_double("epoch", 20,
                          cs_run_figure_value(cs_run_figure_find("epoch_time_s"), &of));
            scenario_run_finish(&run);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_is_as_long_as_several),
        cmocka_unit_test(keys_end_in_their_units),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(closed_forms_are_about_figures),
        cmocka_unit_test(sweeps_take_their_units),
        cmocka_unit_test(values_are_readable),
        cmocka_unit_test(files_have_the_figures),
        cmocka_unit_test(figures_need_no_report_of_each_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
