/* Judgement of predictions, on small cases by hand: ranking of layouts, trends, verdicts, other
 * tools. */
#include "sim/base/text-stream.h"
#include "sim/study/validate/judgement.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run of 8 GPUs, and what is predicted of it. */
typedef struct run {
    const char *dataset;
    unsigned tp, pp, micro, gpus, global;
    const char *recompute, *quality;
    double measured, predicted; /* s */
    bool ran_out, predicted_out, depends;
} run;

static void write_point(FILE *out, const run *from, unsigned i)
{
    fprintf(out,
            "%s{'id': '%s/%u', 'model': {'name': 'm', 'kind': 'decoder', 'layers': 4, 'hidden': "
            "64, 'seq': 128}, 'hardware': {'gpu': 'a100', 'gpus': %u}, 'parallel': {'tp': %u, "
            "'pp': %u, 'dp': %u}, 'batch': {'global': %u, 'micro': %u}, 'precision': 'bf16', "
            "'recompute': '%s', 'quality': '%s', 'options': {'new': 'x'}, 'peers': {'other': "
            "{'step_time_s': 2}}, 'measured': {",
            i > 0 ? ", " : "", from->dataset, i, from->gpus, from->tp, from->pp,
            from->gpus / from->tp / from->pp, from->global, from->micro, from->recompute,
            from->quality);
    if (from->ran_out)
        fputs("'oom': true}}", out);
    else
        fprintf(out, "'step_time_s': %.17g}}", from->measured);
}

/* All runs in one file: the dataset of a point is its file's, so one file per dataset. */
static void read_points(const run *runs, unsigned n, cs_points *points)
{
    cs_arena_init(&points->arena);
    for (unsigned first = 0, end; first < n; first = end) {
        char *text;
        size_t length;
        cs_error error;
        FILE *out = cs_text_stream(&text, &length);
        assert_non_null(out);
        fprintf(out, "{'schema': 'truth/1', 'dataset': '%s', 'points': [", runs[first].dataset);
        for (end = first; end < n && strcmp(runs[end].dataset, runs[first].dataset) == 0; end++)
            write_point(out, &runs[end], end - first);
        fputs("]}", out);
        assert_int_equal(fclose(out), 0);
        for (char *at = text; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        cs_error_init(&error);
        if (cs_points_parse(runs[first].dataset, text, length, points, &error) != CS_OK)
            fail_msg("%s", error.text);
        free(text);
    }
}

/* The judgement of these runs, with the predictions that they state. */
static void judge(const run *runs, unsigned n, cs_points *points, cs_predictions *predictions,
                  cs_judgement *judgement)
{
    cs_error error;
    cs_error_init(&error);
    read_points(runs, n, points);
    predictions->items = calloc(n, sizeof(*predictions->items));
    assert_non_null(predictions->items);
    predictions->n = n;
    for (unsigned i = 0; i < n; i++) {
        cs_prediction *to = &predictions->items[i];
        to->point = &points->points[i];
        for (unsigned m = 0; m < CS_N_MEASURES; m++)
            to->values[m] = to->measured[m] = (double)NAN;
        to->values[CS_MEASURE_TIME] = runs[i].predicted;
        to->values[CS_MEASURE_ALLOCATED] = 1;
        to->measured[CS_MEASURE_TIME] = cs_point_step_time(to->point);
        to->was_out_of_memory = runs[i].ran_out;
        to->out_of_memory = runs[i].predicted_out;
        to->depends = runs[i].depends;
        to->knows_verdict = true;
    }
    if (cs_judgement_make(predictions, judgement, &error) != CS_OK)
        fail_msg("%s", error.text);
}

static void finish(cs_points *points, cs_predictions *predictions, cs_judgement *judgement)
{
    cs_judgement_finish(judgement);
    cs_predictions_finish(predictions);
    cs_points_finish(points);
}

/* Measured 1, 2, 3, 4 s, predicted 2, 1, 3, 3 s. Pairs that differ in both: all six but the last
 * two runs. (1,2) is in the wrong order, (1,3), (1,4), (2,3), (2,4) are right: tau = (4 - 1) / 5.
 * The predicted best is the second run: it loses 2 / 1 - 1 = 100 %.
 *
 * The rule of thumb: the third run recomputes nothing and has the least tensor x pipeline of those
 * (2, the fourth has 4); the first two recompute. Its order is 3, 4, then 2 (tensor x pipeline 1,
 * micro-batch 2) before 1 (micro-batch 1). Against 1 < 2 < 3 < 4: (3,4) is right, all five others
 * are wrong: (1,2), (1,3), (1,4), (2,3), (2,4). tau = (1 - 5) / 6; it loses 3 / 1 - 1 = 200 %. */
static const run ranked[] = {
    {"a", 1, 1, 1, 8, 16, "full", "B", 1, 2, 0, 0, 0},
    {"a", 1, 1, 2, 8, 16, "full", "B", 2, 1, 0, 0, 0},
    {"a", 2, 1, 1, 8, 16, "none", "B", 3, 3, 0, 0, 0},
    {"a", 2, 2, 1, 8, 16, "none", "C", 4, 3, 0, 0, 0},
    /* another batch: a group of one; another dataset: three are too few */
    {"a", 1, 1, 1, 8, 32, "none", "B", 1, 1, 0, 0, 0},
    {"b", 1, 1, 1, 8, 16, "none", "B", 1, 1, 0, 0, 0},
    {"b", 2, 1, 1, 8, 16, "none", "B", 2, 2, 0, 0, 0},
    {"b", 4, 1, 1, 8, 16, "none", "B", 3, 3, 0, 0, 0},
};

static void ranks_layouts(void **state)
{
    (void)state;
    cs_points points = {0};
    cs_predictions predictions = {0};
    cs_judgement judgement;
    judge(ranked, ROWS(ranked), &points, &predictions, &judgement);
    expect_int("groups", 1, judgement.groups.n);
    const cs_layout_group *group = &judgement.groups.groups[0];
    expect_int("runs", 4, group->n);
    expect_double("tau", 0.6, group->tau[CS_CHOOSER_PREDICTION]);
    expect_double("loss", 1, group->loss[CS_CHOOSER_PREDICTION]);
    expect_text("choice", "a/1", group->choice[CS_CHOOSER_PREDICTION]->point->id);
    expect_text("best", "a/0", group->best->point->id);
    expect_double("tau of the rule", -4.0 / 6, group->tau[CS_CHOOSER_RULE]);
    expect_double("loss of the rule", 2, group->loss[CS_CHOOSER_RULE]);
    expect_int("rankings", 2, judgement.groups.n_rankings); /* all, and a */
    expect_double("near", 0, judgement.groups.rankings[0].near[CS_CHOOSER_PREDICTION]);
    /* errors do without the run of quality C: +100 %, -50 %, and five of 0 */
    const cs_error_summary *errors = &judgement.table.rows[0].measures[CS_MEASURE_TIME];
    expect_int("compared", 7, errors->n);
    expect_double("mean", 1.5 / 7, errors->mean);
    expect_double("bias", 0.5 / 7, errors->bias);
    /* the other tool says 2 s: errors 1, 0, 1/3, and of the others 1, 1, 0, 1/3 */
    expect_int("tools", 1, judgement.peers.n);
    expect_int("equal runs", 7, judgement.peers.rows[0].n);
    expect_double("ours", 1.5 / 7, judgement.peers.rows[0].ours);
    expect_double("theirs", (1 + 0 + 1 / 3.0 + 1 + 1 + 0 + 1 / 3.0) / 7,
                  judgement.peers.rows[0].theirs);
    expect_int("closer", 4, judgement.peers.rows[0].n_closer);
    finish(&points, &predictions, &judgement);
}

/* Four groups of two runs, each with tensor 1 and 2 (x = -1/2 and 1/2 around the mean), where log
 * (predicted / measured) changes by 0.1, 0.1, 0.3 and 0.3. The slope is their mean, 0.2; residuals
 * are +-0.05 in all eight runs; sum x^2 = 8 / 4 = 2; 8 - 4 - 1 = 3 degrees of freedom: the standard
 * error is sqrt(8 x 0.0025 / 3 / 2). Groups differ in the number of GPUs, so the four with tensor 1
 * also differ in GPUs: 2, 4, 8, 16, and with tensor 2 as well: a trend in GPUs. There both groups
 * have x = -1.5, -0.5, 0.5, 1.5 and sum x^2 = 5 each. With tensor 1 y is 0; with tensor 2 it is
 * 0.1, 0.1, 0.3, 0.3: sum x y = -0.1 x 2 + 0.3 x 2 = 0.4. The slope is 0.4 / 10. */
static void finds_trends(void **state)
{
    (void)state;
    static const double changes[] = {0.1, 0.1, 0.3, 0.3};
    run runs[9];
    for (unsigned g = 0; g < 4; g++)
        for (unsigned k = 0; k < 2; k++)
            runs[2 * g + k] =
                (run){"t", 1 + k, 1, 1, 2U << g, 8U << g, "none", "B", 1, k ? exp(changes[g]) : 1,
                      0,   0,     0};
    runs[8] = runs[7]; /* the same of quality C does not count */
    runs[8].quality = "C";
    runs[8].predicted = 100;
    cs_points points = {0};
    cs_predictions predictions = {0};
    cs_judgement judgement;
    judge(runs, ROWS(runs), &points, &predictions, &judgement);
    const cs_trend *trends = judgement.trends.trends;
    expect_int("trends", 4, judgement.trends.n); /* two axes, all and the dataset */
    expect_int("axis", CS_TREND_TENSOR, trends[0].axis);
    expect_int("groups", 4, trends[0].n_groups);
    expect_int("runs", 8, trends[0].n_runs);
    assert_true(fabs(trends[0].slope - 0.2) < 1e-12);
    assert_true(fabs(trends[0].standard_error - sqrt(8 * 0.0025 / 3 / 2)) < 1e-12);
    expect_int("axis", CS_TREND_GPUS, trends[2].axis);
    expect_int("groups", 2, trends[2].n_groups);
    assert_true(fabs(trends[2].slope - 0.04) < 1e-12);
    expect_text("dataset", "t", trends[3].dataset);
    finish(&points, &predictions, &judgement);
}

/* Of four runs out of memory, two were predicted to be, one only without recomputation; of three
 * runs that fitted, one was predicted not to. */
static void counts_verdicts(void **state)
{
    (void)state;
    static const run runs[] = {
        {"v", 1, 1, 1, 8, 1, "none", "B", 0, 1, true, true, false},
        {"v", 1, 1, 1, 8, 2, "none", "B", 0, 1, true, true, false},
        {"v", 1, 1, 1, 8, 3, "none", "B", 0, 1, true, false, false},
        {"v", 1, 1, 1, 8, 4, "unknown", "B", 0, 1, true, true, true},
        {"v", 1, 1, 1, 8, 5, "none", "B", 1, 1, false, true, false},
        {"v", 1, 1, 1, 8, 6, "none", "B", 1, 1, false, false, false},
        {"v", 1, 1, 1, 8, 7, "unknown", "C", 1, 1, false, true, true},
    };
    cs_points points = {0};
    cs_predictions predictions = {0};
    cs_judgement judgement;
    judge(runs, ROWS(runs), &points, &predictions, &judgement);
    const cs_verdicts *verdicts = &judgement.table.rows[0].verdicts;
    expect_double("recall", 2.0 / 4, cs_verdicts_recall(verdicts));
    expect_double("precision", 2.0 / 3, cs_verdicts_precision(verdicts));
    expect_double("false alarms", 1.0 / 3, cs_verdicts_false_alarms(verdicts));
    expect_int("depend", 2, verdicts->depends[0] + verdicts->depends[1]);
    assert_true(isnan(cs_verdicts_recall(&(cs_verdicts){0})));
    finish(&points, &predictions, &judgement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_layouts),
                                       cmocka_unit_test(finds_trends),
                                       cmocka_unit_test(counts_verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
