/* The table of figures: keys are unique and end in their unit as CONTRIBUTING.md pins it, closed forms
 * are about figures of the table, and sweeps take units from it. */
#include "schedules/schedule.h"
#include "sim/run/figures.h"
#include "sim/run/repeat.h"
#include "sim/sweep/sweep-figures.h"
#include "tests/expect.h"

#include <stdio.h>
#include <string.h>

/* The end of a key, and the unit that it stands for; the first that fits counts. */
static const struct {
    const char *end, *unit;
} endings[] = {
    {"_samples_per_s", "samples/s"},
    {"_tokens_per_s", "tokens/s"},
    {"_flop_per_sample", "flop"},
    {"_flop_per_s", "flop/s"},
    {"_bytes", "bytes"},
    {"_samples", "samples"},
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
        expect_text(row->key, unit_that_ends(row->key), row->unit);
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (const cs_run_figure *row = cs_run_figures; row->key; row++) {
        assert_ptr_equal(cs_run_figure_find(row->key), row); /* no earlier row has its key */
        assert_true(row->label && *row->label && row->get);
        assert_true(!row[1].key || row[1].scope >= row->scope);
        assert_true(!row->boolean || strcmp(row->unit, "1") == 0);
    }
    assert_null(cs_run_figure_find("makespan"));
    for (uint32_t f = 0; f < CS_N_RUNS_FIGURES; f++)
        assert_non_null(cs_run_figure_find(cs_runs_keys[f]));
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
        expect_text(rows[i][0], rows[i][1], cs_figure_unit(rows[i][0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_end_in_their_units),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(closed_forms_are_about_figures),
        cmocka_unit_test(sweeps_take_their_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
