/* Whatever closed form a schedule promises is what is simulated, also in scenarios that break its
 * assumptions: there it must promise nothing. */
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-scenario.h"
#include "tests/uniform-run.h"

enum { N_SCENARIOS = 2500 };

/* How often forms of a figure were promised at least: a guard against tests that pass on nothing. A
 * figure without a row must not be there at all. */
static const struct {
    const char *kind;
    cs_figure figure;
    uint32_t least;
} least_counts[] = {
    {"sequential", CS_FIGURE_MAKESPAN, 800},
    {"sequential", CS_FIGURE_PIPELINE_BUBBLE, 500},
    {"sequential", CS_FIGURE_PEAK_ACTIVATIONS, 1200},
    {"dp", CS_FIGURE_MAKESPAN, 300},
    {"dp", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"gpipe", CS_FIGURE_MAKESPAN, 500},
    {"gpipe", CS_FIGURE_PIPELINE_BUBBLE, 150},
    {"gpipe", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"1f1b", CS_FIGURE_MAKESPAN, 500},
    {"1f1b", CS_FIGURE_PIPELINE_BUBBLE, 150},
    {"1f1b", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"pipedream", CS_FIGURE_ITERATION_TIME, 120},
    {"pipedream", CS_FIGURE_PEAK_VERSIONS, 1000},
    {"pipedream_2bw", CS_FIGURE_ITERATION_TIME, 100},
    {"pipedream_2bw", CS_FIGURE_PEAK_VERSIONS, 3000},
    {"nf1b", CS_FIGURE_ITERATION_TIME, 20},
    {"nf1b", CS_FIGURE_VERSION_DIFFERENCE, 10},
    {"interleaved_1f1b", CS_FIGURE_MAKESPAN, 150},
    {"interleaved_1f1b", CS_FIGURE_PIPELINE_BUBBLE, 100},
    {"interleaved_1f1b", CS_FIGURE_PEAK_ACTIVATIONS, 2000},
    {"zb_h1", CS_FIGURE_MAKESPAN, 60},
    {"zb_h1", CS_FIGURE_PIPELINE_BUBBLE, 50},
    {"zb_h1", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"zb_h2", CS_FIGURE_MAKESPAN, 20},
    {"zb_h2", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"zb_v", CS_FIGURE_MAKESPAN, 55},
    {"zb_v", CS_FIGURE_PIPELINE_BUBBLE, 5},
    {"zb_v", CS_FIGURE_PEAK_ACTIVATIONS, 1800},
    {"dualpipe_v", CS_FIGURE_MAKESPAN, 50},
    {"dualpipe_v", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"periodic", CS_FIGURE_MAKESPAN, 250},
    {"periodic", CS_FIGURE_BUBBLE, 250},
    {"periodic", CS_FIGURE_ITERATION_TIME, 200},
    {"periodic", CS_FIGURE_PEAK_ACTIVATIONS, 2500},
    {"periodic", CS_FIGURE_PEAK_MEMORY, 2500},
    {"periodic", CS_FIGURE_PEAK_VERSIONS, 3000},
    {"cdp_dp", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"cdp_v1", CS_FIGURE_ITERATION_TIME, 25},
    {"cdp_v1", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"cdp_v2", CS_FIGURE_ITERATION_TIME, 25},
    {"cdp_v2", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
    {"cdp_v2", CS_FIGURE_PEAK_VERSIONS, 1000},
    {"cdp_freshest", CS_FIGURE_ITERATION_TIME, 25},
    {"cdp_freshest", CS_FIGURE_PEAK_ACTIVATIONS, 3000},
};

/* At least once where the table has no row: 0 if the schedule does not state such a form. */
static uint32_t least_count(const cs_schedule *schedule, cs_figure figure)
{
    for (size_t i = 0; i < ROWS(least_counts); i++) {
        if (strcmp(least_counts[i].kind, schedule->name) == 0 && least_counts[i].figure == figure)
            return cases_drawn(least_counts[i].least);
    }
    for (const cs_formula *formula = schedule->formulas; formula && formula->text; formula++)
        if (formula->figure == figure && !formula->comparison)
            return 1;
    return 0;
}

static void count_promised(const cs_forms *forms, uint32_t *counts)
{
    for (uint32_t f = 0; f < forms->n; f++)
        counts[forms->forms[f].figure] += cs_form_is_promised(&forms->forms[f]);
}

static void check_schedule(const cs_schedule *schedule)
{
    uint32_t counts[CS_N_FIGURES] = {0};
    gsl_rng *random = cs_random_stream(1, schedule->name);
    assert_non_null(random);
    for (uint32_t i = 0; i < cases_drawn(N_SCENARIOS); i++) {
        char text[RANDOM_SCENARIO_BYTES];
        random_scenario(random, schedule->name, text);
        scenario_run run;
        cs_error error = {0};
        cs_status status = scenario_run_init(&run, &error, "%s", text);
        if (status != CS_OK)
            fail_msg("%s: %s\n%s", cs_status_name(status), error.text, text);
        (void)uniform_run_check_forms(text, &run);
        count_promised(&run.simulation.forms, counts);
        scenario_run_finish(&run);
    }
    gsl_rng_free(random);
    for (uint32_t figure = 0; figure < CS_N_FIGURES; figure++) {
        uint32_t least = least_count(schedule, figure);
        if (counts[figure] < least || (least == 0 && counts[figure] > 0))
            fail_msg("%s: %s: %" PRIu32 " forms promised, expected %" PRIu32 " at least",
                     schedule->name, cs_figure_key(figure), counts[figure], least);
    }
}

static void test_claims(void **state)
{
    (void)state;
    for (uint32_t i = 0; cs_schedules[i]; i++) {
        if (strcmp(cs_schedules[i]->name, "custom") != 0) /* states none */
            check_schedule(cs_schedules[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
