#include "sim/cli/validate-report.h"

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/scenario-option.h"
#include "sim/run/print/wrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 4, NAME_WIDTH = 36 };

static const struct measure {
    const char *title;
    cs_quantity quantity;
} measures[CS_N_MEASURES] = {
    [CS_MEASURE_TIME] = {"step time", CS_QUANTITY_TIME},
    [CS_MEASURE_ALLOCATED] = {"allocated memory", CS_QUANTITY_BYTES},
    [CS_MEASURE_LEAST] = {"allocated, emptiest rank", CS_QUANTITY_BYTES},
    [CS_MEASURE_RESERVED] = {"reserved memory", CS_QUANTITY_BYTES},
    [CS_MEASURE_DEVICE] = {"memory in use, or not stated", CS_QUANTITY_BYTES},
};

/* ---- the table ---- */

/* "6.31 %" or "+6.31 %", of large ones "+6.31e+09 %"; "-" of what is not known. */
static const char *percent(double share, bool sign, char text[32])
{
    static const char *const forms[2][2] = {{"%.2f %%", "%+.2f %%"}, {"%.3g %%", "%+.3g %%"}};
    if (!isfinite(share))
        return "-";
    snprintf(text, 32, forms[fabs(share) >= 1e4][sign], 100 * share);
    return text;
}

static void print_head(const char *title, FILE *out)
{
    fprintf(out, "\n%-*s %6s %8s %10s %10s %10s %10s\n", NAME_WIDTH + 2, title, "runs", "compared",
            "mean |e|", "median |e|", "largest e", "bias");
}

static void print_errors(const char *name, uint32_t n_points, const cs_error_summary *errors,
                         FILE *out)
{
    char mean[32], median[32], largest[32], bias[32], shown[256];
    cs_text_show(name, shown, sizeof(shown));
    fprintf(out, "  %-*.*s %6u %8u %10s %10s %10s %10s\n", NAME_WIDTH, NAME_WIDTH, shown, n_points,
            errors->n, percent(errors->mean, false, mean), percent(errors->median, false, median),
            percent(errors->largest, true, largest), percent(errors->bias, true, bias));
}

/* Prints the rows of one grouping that have errors. */
static void print_grouping(const cs_error_table *table, cs_grouping grouping, cs_measure measure,
                           const char *title, FILE *out)
{
    bool has_head = false;
    for (uint32_t i = 0; i < table->n; i++) {
        const cs_error_row *row = &table->rows[i];
        if (row->grouping != grouping || row->measures[measure].n == 0)
            continue;
        if (!has_head)
            print_head(title, out);
        has_head = true;
        print_errors(row->name, row->n_points, &row->measures[measure], out);
    }
}

/* The answer: how far step times are off, and whether that is left out of all fits. */
static void print_answer(const cs_judgement *judgement, FILE *out)
{
    const cs_error_summary *all = &judgement->table.rows[0].measures[CS_MEASURE_TIME];
    const cs_error_summary *unfitted = &judgement->unfitted;
    const uint32_t fitted = judgement->n_uses[CS_SOURCE_FITTED];
    char mean[32], median[32], bias[32];
    if (all->n == 0)
        return;
    fprintf(out, "step time: mean error %s, median %s, bias %s (%u runs)\n",
            percent(all->mean, false, mean), percent(all->median, false, median),
            percent(all->bias, true, bias), all->n);
    if (fitted == 0)
        fputs("  all of them left out: no parameter was fitted to their sources\n", out);
    else if (unfitted->n == 0)
        fputs("  none of them left out: parameters were fitted to their sources; an unseen run may "
              "be\n  further off (docs/reference/accuracy.md, --like)\n",
              out);
    else
        fprintf(out,
                "  of %u left-out runs, to whose sources no parameter was fitted: mean error %s, "
                "bias %s\n",
                unfitted->n, percent(unfitted->mean, false, mean),
                percent(unfitted->bias, true, bias));
}

static void print_memory(const cs_error_table *table, FILE *out)
{
    bool has_head = false;
    for (uint32_t m = CS_MEASURE_TIME + 1; m < CS_N_MEASURES; m++) {
        const cs_error_summary *errors = &table->rows[0].measures[m];
        if (errors->n == 0)
            continue;
        if (!has_head)
            print_head("peak memory", out);
        has_head = true;
        print_errors(measures[m].title, table->rows[0].n_points, errors, out);
    }
}

/* ---- ranking ---- */

static void print_rank(const char *name, const cs_ranking *from, cs_chooser chooser, FILE *out)
{
    char loss[32], near[32], shown[64];
    cs_text_show(name, shown, sizeof(shown));
    fprintf(out, "  %-26.26s %6.2f %10s %10.4s %%", shown, from->tau[chooser],
            percent(from->loss[chooser], false, loss),
            (snprintf(near, sizeof(near), "%.1f", 100 * from->near[chooser]), near));
}

static void print_ranking(const cs_layout_groups *groups, FILE *out)
{
    const cs_ranking *all = groups->rankings;
    if (groups->n_rankings == 0)
        return;
    fprintf(out,
            "\nranking of layouts: %u group%s of %u or more runs with equal model, GPUs, batch and "
            "precision\n  %-26s %6s %10s %12s\n",
            all->n_groups, all->n_groups == 1 ? "" : "s", CS_GROUP_LEAST, "", "tau", "loss",
            "within 5 %");
    print_rank("predicted", all, CS_CHOOSER_PREDICTION, out);
    fputc('\n', out);
    print_rank("rule of thumb", all, CS_CHOOSER_RULE, out);
    fputs("\n  tau: Kendall's; loss: measured time of the layout chosen over the best, less 1;\n"
          "  the rule: no recomputation, least tensor x pipeline, then largest micro-batch\n",
          out);
}

/* "tp 2 pp 4 dp 8 zero 1 micro 2 full": what tells layouts apart. */
static void print_layout(const cs_prediction *of, FILE *out)
{
    const cs_description *run = &of->point->run;
    const cs_description_parallel *p = run->parallel;
    const struct {
        const char *name;
        uint32_t size;
    } sizes[] = {{"tp", p->tp}, {"pp", p->pp}, {"vpp", p->vpp},
                 {"dp", p->dp}, {"cp", p->cp}, {"ep", p->ep}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i].size > 1)
            fprintf(out, "%s %u ", sizes[i].name, sizes[i].size);
    fprintf(out, "zero %u micro %u ", p->zero, run->batch->micro);
    cs_text_puts(out, run->recompute);
}

static void print_choice(const char *name, const cs_prediction *of, double loss, FILE *out)
{
    char time[CS_UNITS_TEXT_BYTES], loss_text[32];
    fprintf(out, "    %-14s %10s %8s  ", name,
            cs_units_format(of->measured[CS_MEASURE_TIME], CS_QUANTITY_TIME, DIGITS, time,
                            sizeof(time)),
            percent(loss, true, loss_text));
    print_layout(of, out);
    fputc('\n', out);
}

static void print_group(const cs_layout_group *group, FILE *out)
{
    const cs_point *point = group->best->point;
    fputs("  ", out);
    cs_text_puts(out, point->dataset);
    fputs(": ", out);
    cs_text_puts(out, point->run.model->name ? point->run.model->name : "model");
    fprintf(out, ", %u x ", point->run.hardware->gpus);
    cs_text_puts(out, point->run.hardware->gpu);
    fprintf(out, ", batch %u, ", point->run.batch->global);
    cs_text_puts(out, point->run.precision);
    fprintf(out, "; %u runs, tau %.2f (rule %.2f)\n", group->n, group->tau[CS_CHOOSER_PREDICTION],
            group->tau[CS_CHOOSER_RULE]);
    print_choice("best", group->best, 0, out);
    print_choice("predicted best", group->choice[CS_CHOOSER_PREDICTION],
                 group->loss[CS_CHOOSER_PREDICTION], out);
    print_choice("rule of thumb", group->choice[CS_CHOOSER_RULE], group->loss[CS_CHOOSER_RULE],
                 out);
}

static void print_groups(const cs_layout_groups *groups, FILE *out)
{
    if (groups->n == 0) {
        fprintf(out, "\nno %d runs of a dataset differ in their layout alone\n", CS_GROUP_LEAST);
        return;
    }
    fputs("\nranking by dataset             predicted                         rule of thumb\n",
          out);
    fprintf(out, "  %-26s %6s %10s %12s %6s %10s %12s\n", "", "tau", "loss", "within 5 %", "tau",
            "loss", "within 5 %");
    for (uint32_t i = 1; i < groups->n_rankings; i++) {
        const cs_ranking *of = &groups->rankings[i];
        char loss[32];
        print_rank(of->dataset, of, CS_CHOOSER_PREDICTION, out);
        fprintf(out, " %6.2f %10s %10.1f %%\n", of->tau[CS_CHOOSER_RULE],
                percent(of->loss[CS_CHOOSER_RULE], false, loss), 100 * of->near[CS_CHOOSER_RULE]);
    }
    fputs("\ngroups: measured time of the best layout, of the predicted best and of the rule's\n",
          out);
    for (uint32_t i = 0; i < groups->n; i++)
        print_group(&groups->groups[i], out);
}

/* ---- trends ---- */

static void print_trends(const cs_error_trends *trends, FILE *out)
{
    fputs("\ntrends: change of predicted / measured per doubling, among runs that differ in it "
          "alone\n",
          out);
    for (uint32_t i = 0; i < trends->n; i++) {
        const cs_trend *of = &trends->trends[i];
        char change[32], error[32], shown[64];
        if (i == 0 || of->axis != trends->trends[i - 1].axis)
            fprintf(out, "  %-26s %10s %14s %7s %7s\n", cs_trend_names[of->axis], "change",
                    "std. error", "runs", "groups");
        cs_text_show(*of->dataset ? of->dataset : "all", shown, sizeof(shown));
        fprintf(out, "    %-24.24s %10s %14s %7u %7u\n", shown, percent(of->slope, true, change),
                percent(of->standard_error, false, error), of->n_runs, of->n_groups);
    }
    if (trends->n == 0)
        fprintf(out, "  none: fewer than %u runs differ in one size alone\n", CS_TREND_LEAST);
}

static void print_counts(const char *title, const cs_note_counts *counts, FILE *out)
{
    if (counts->n == 0)
        return;
    fprintf(out, "\n%s\n", title);
    for (uint32_t i = 0; i < counts->n; i++) {
        const int width = fprintf(out, "  %6u  ", counts->items[i].n);
        cs_wrap(out, (size_t)width, (size_t)width, CS_WRAP_REPORT, counts->items[i].text);
    }
}

/* Memory depends on recomputation, which some points do not state: predictions that depend on it
 * are neither right nor wrong. */
static void print_verdicts(const cs_verdicts *of, FILE *out)
{
    char recall[32], precision[32], alarms[32];
    const uint32_t out_of = of->n[1][0] + of->n[1][1] + of->depends[1];
    const uint32_t fitted = of->n[0][0] + of->n[0][1] + of->depends[0];
    if (out_of + fitted == 0)
        return;
    fputs("\nout of memory or not\n", out);
    fprintf(out, "  %-18s %12s %22s %18s\n", "", "predicted to", "predicted to fit only",
            "predicted to run");
    fprintf(out, "  %-18s %12s %22s %18s\n", "", "fit", "if all is recomputed", "out of memory");
    for (int was = 0; was < 2; was++)
        fprintf(out, "  %-18s %12u %22u %18u\n", was ? "ran out of memory" : "ran", of->n[was][0],
                of->depends[was], of->n[was][1]);
    if (out_of > 0)
        fprintf(out, "  caught %u of %u runs out of memory (recall %s), precision %s\n",
                of->n[1][1], out_of, percent(cs_verdicts_recall(of), false, recall),
                percent(cs_verdicts_precision(of), false, precision));
    if (fitted > 0)
        fprintf(out, "  false alarms: %u of %u runs that fitted (%s)\n", of->n[0][1], fitted,
                percent(cs_verdicts_false_alarms(of), false, alarms));
}

/* ---- intervals, and other tools ---- */

static void print_coverage(const cs_judgement *judgement, FILE *out)
{
    const cs_coverage *coverage = &judgement->coverage;
    const cs_left_out *model = &judgement->left_out;
    char by_run[32], by_source[32], width[32];
    if (judgement->n_timed == 0)
        return;
    fputs("\nintervals of --like, within which 9 of 10 runs should be\n", out);
    if (coverage->n_runs > 0)
        fprintf(out,
                "  %s of %u runs of %u dataset%s that they do not know are within, %s by dataset; "
                "+-%s\n",
                percent(coverage->by_run, false, by_run), coverage->n_runs, coverage->n_sources,
                coverage->n_sources == 1 ? "" : "s", percent(coverage->by_source, false, by_source),
                percent(coverage->width, false, width));
    if (isfinite(model->by_run))
        fprintf(out, "  %s of %u known runs are, each source left out; %s by source (%u sources)\n",
                percent(model->by_run, false, by_run), model->n_runs,
                percent(model->by_source, false, by_source), model->n_sources);
}

static void print_peers(const cs_peer_table *peers, FILE *out)
{
    if (peers->n == 0)
        return;
    fprintf(out, "\n%-36s %6s %12s %12s %12s\n", "mean errors of other tools, on equal runs",
            "runs", "sim", "the tool", "sim closer");
    for (uint32_t i = 0; i < peers->n; i++) {
        const cs_peer_errors *of = &peers->rows[i];
        char ours[32], theirs[32], name[64], shown[128];
        snprintf(name, sizeof(name), "%.32s, %s", of->tool, measures[of->measure].title);
        cs_text_show(name, shown, sizeof(shown));
        fprintf(out, "  %-39.39s %6u %12s %12s %12u\n", shown, of->n,
                percent(of->ours, false, ours), percent(of->theirs, false, theirs), of->n_closer);
    }
}

/* ---- parts of steps ---- */

static void print_parts_of(const cs_error_parts *row, FILE *out)
{
    char missing[32], rest[32];
    if (row->n == 0)
        return;
    fputs("  ", out);
    cs_text_puts(out, *row->dataset ? row->dataset : "all");
    fprintf(out, ", %u points: predicted %.2f %%, missing %s\n", row->n, 100 * (1 - row->missing),
            percent(row->missing, true, missing));
    for (uint32_t p = 0; p < CS_N_STEP_PARTS; p++) {
        char predicted[32], lacking[32];
        if (row->predicted[p] > 0)
            fprintf(out, "    %-18s %10s %10s\n", cs_step_part_names[p],
                    percent(row->predicted[p], false, predicted),
                    percent(row->lacking[p], true, lacking));
    }
    fprintf(out, "    %-18s %10s %10s\n", "rest", "", percent(row->rest, true, rest));
}

static void print_parts(const cs_error_parts_table *parts, FILE *out)
{
    fputs("\nwhere predicted steps go, and what they lack by least squares "
          "(docs/reference/points.md)\n"
          "means, in % of the measured step; what parts lack and the rest add up to what is "
          "missing\n",
          out);
    for (uint32_t r = 0; r < parts->n; r++)
        print_parts_of(&parts->rows[r], out);
}

/* ---- points ---- */

static void print_values(const cs_prediction *prediction, cs_measure measure, FILE *out)
{
    char predicted[CS_UNITS_TEXT_BYTES], measured[CS_UNITS_TEXT_BYTES], error[32];
    const double share = cs_prediction_error(prediction, measure);
    if (isfinite(share))
        fprintf(out, "  %s %s, measured %s, %s", cs_measure_keys[measure],
                cs_units_format(prediction->values[measure], measures[measure].quantity, DIGITS,
                                predicted, sizeof(predicted)),
                cs_units_format(prediction->measured[measure], measures[measure].quantity, DIGITS,
                                measured, sizeof(measured)),
                percent(share, true, error));
}

static void print_missing(const cs_prediction *prediction, FILE *out)
{
    fprintf(out, "  missing: %s", prediction->made.missing[0]);
    for (uint32_t i = 1; i < prediction->made.n_missing; i++)
        fprintf(out, "%s%s", i == 1 ? " (then " : ", ", prediction->made.missing[i]);
    fputs(prediction->made.n_missing > 1 ? ")" : "", out);
}

static void print_message(const char *before, const char *message, FILE *out)
{
    fputs(before, out);
    cs_text_puts(out, message);
}

static void print_point(const cs_prediction *prediction, FILE *out)
{
    cs_text_puts(out, prediction->point->id);
    if (prediction->state == CS_PREDICTION_MISSING)
        print_missing(prediction, out);
    else if (prediction->state == CS_PREDICTION_FAILED)
        print_message("  failed: ", prediction->message, out);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        print_values(prediction, (cs_measure)m, out);
    if (prediction->state == CS_PREDICTION_MADE && prediction->out_of_memory)
        fprintf(
            out, "  out of memory%s%s", prediction->depends ? " (not if all is recomputed)" : "",
            prediction->knows_verdict && !prediction->was_out_of_memory ? ", measured: not" : "");
    fputc('\n', out);
}

static void print_failure(const cs_prediction *prediction, FILE *out)
{
    print_message("  ", prediction->point->id, out);
    print_message(": ", prediction->message, out);
    fputc('\n', out);
}

static void print_failures(const cs_predictions *predictions, FILE *out)
{
    if (predictions->n_states[CS_PREDICTION_FAILED] == 0)
        return;
    fputs("\nruns whose scenario is refused or fails\n", out);
    for (uint32_t i = 0; i < predictions->n; i++)
        if (predictions->items[i].state == CS_PREDICTION_FAILED)
            print_failure(&predictions->items[i], out);
}

/* ---- like a scenario ---- */

/* "device (h100), precision (bf16)": traits that the points share, or do not. */
static void print_traits(const char *before, const cs_likeness *likeness, const bool *has,
                         bool shared, FILE *out)
{
    const char *separator = before;
    for (uint32_t t = 0; t < CS_N_CHOOSING_TRAITS; t++) {
        if (has[t] != shared || strcmp(likeness->traits[t], "any") == 0)
            continue;
        fprintf(out, "%s%s (", separator, cs_trait_names[t]);
        cs_text_puts(out, likeness->traits[t]);
        fputc(')', out);
        separator = ", ";
    }
    fputs(separator == before ? "" : "\n", out);
}

static void print_summary(const cs_validation_shown *shown, cs_measure measure, FILE *out)
{
    const cs_error_summary *errors = &shown->judgement->table.rows[0].measures[measure];
    char mean[32], bias[32];
    if (errors->n > 0)
        fprintf(out, "%s: %u compared, mean error %s, bias %s\n", measures[measure].title,
                errors->n, percent(errors->mean, false, mean), percent(errors->bias, true, bias));
}

/* Prints the interval of an unseen run like the scenario, and how many sources it uses. */
static void print_interval(const cs_validation_shown *shown, FILE *out)
{
    const cs_interval *interval = &shown->interval;
    char predicted[CS_UNITS_TEXT_BYTES], low[CS_UNITS_TEXT_BYTES], high[CS_UNITS_TEXT_BYTES];
    char below[32], above[32];
    fprintf(
        out, "predicted step time %s\n",
        cs_units_format(shown->step_time, CS_QUANTITY_TIME, DIGITS, predicted, sizeof(predicted)));
    if (isfinite(interval->low))
        fprintf(
            out,
            "  9 of 10 unseen runs like it take %s to %s (%s to %s)\n"
            "  from %u runs of %u sources, each predicted with its source left out of the fit\n",
            cs_units_format(shown->step_time * interval->low, CS_QUANTITY_TIME, DIGITS, low,
                            sizeof(low)),
            cs_units_format(shown->step_time * interval->high, CS_QUANTITY_TIME, DIGITS, high,
                            sizeof(high)),
            percent(interval->low - 1, true, below), percent(interval->high - 1, true, above),
            interval->n_runs, interval->n_sources);
    else
        fprintf(out, "  no interval: it needs left-out runs of %u sources, and there are %u\n",
                CS_INTERVAL_SOURCES, interval->n_sources);
    const char *separator = "  sources alike in ";
    for (uint32_t t = 0; t < CS_N_TRAITS; t++)
        if (interval->matters[t]) {
            fprintf(out, "%s%s (", separator, cs_trait_names[t]);
            cs_text_puts(out, shown->likeness->traits[t]);
            fprintf(out, ") %u", interval->alike[t]);
            separator = t % 4 == 3 ? ",\n    " : ", ";
        }
    fputc('\n', out);
}

static void print_like(const cs_validation_shown *shown, bool decompose, FILE *out)
{
    const uint32_t n = shown->predictions->n;
    print_interval(shown, out);
    fputc('\n', out);
    fprintf(out, n == 1 ? "%u measured run is like " : "%u measured runs are like ", n);
    cs_text_puts(out, shown->like);
    fputc('\n', out);
    print_traits("  they share its ", shown->likeness, shown->likeness->shared, true, out);
    print_traits("  too few share its ", shown->likeness, shown->likeness->shared, false, out);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        print_summary(shown, (cs_measure)m, out);
    if (shown->judgement->n_uses[CS_SOURCE_FITTED] > 0)
        fprintf(out, "%u of them are not left out: parameters were fitted to their sources\n",
                shown->judgement->n_uses[CS_SOURCE_FITTED]);
    if (decompose)
        print_parts(&shown->judgement->parts, out);
    fputc('\n', out);
    for (uint32_t i = 0; i < n; i++)
        print_point(&shown->predictions->items[i], out);
}

/* ---- all ---- */

static void print_tables(const cs_judgement *judgement, FILE *out)
{
    static const struct {
        cs_grouping grouping;
        const char *title;
    } groupings[] = {{CS_GROUPING_DATASET, "by dataset"},
                     {CS_GROUPING_GPU, "by GPU"},
                     {CS_GROUPING_FEATURE, "by feature"}};
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        for (size_t g = 0; g < sizeof(groupings) / sizeof(groupings[0]); g++) {
            char title[128];
            snprintf(title, sizeof(title), "%s, %s", measures[m].title, groupings[g].title);
            print_grouping(&judgement->table, groupings[g].grouping, (cs_measure)m, title, out);
        }
    print_counts("assumed for runs that are predicted", &judgement->assumed, out);
}

void cs_validate_print(const cs_validation_shown *shown, const cs_validation_options *options,
                       FILE *out)
{
    const cs_predictions *predictions = shown->predictions;
    const cs_judgement *judgement = shown->judgement;
    if (shown->like) {
        print_like(shown, options->decompose, out);
        return;
    }
    const uint32_t *n = predictions->n_states;
    for (uint32_t i = 0; options->points && i < predictions->n; i++)
        print_point(&predictions->items[i], out);
    fputs(options->points ? "\n" : "", out);
    print_answer(judgement, out);
    fprintf(out, "%u run%s: %u predicted, %u unsupported, %u failed\n", predictions->n,
            predictions->n == 1 ? "" : "s", n[CS_PREDICTION_MADE], n[CS_PREDICTION_MISSING],
            n[CS_PREDICTION_FAILED]);
    fputs("an error e is predicted / measured - 1; times of quality C are not compared\n", out);
    print_grouping(&judgement->table, CS_GROUPING_KIND, CS_MEASURE_TIME, "step time, by kind", out);
    print_grouping(&judgement->table, CS_GROUPING_LAYOUT, CS_MEASURE_TIME, "step time, by layout",
                   out);
    print_ranking(&judgement->groups, out);
    print_memory(&judgement->table, out);
    print_verdicts(&judgement->table.rows[0].verdicts, out);
    print_coverage(judgement, out);
    print_peers(&judgement->peers, out);
    if (options->groups)
        print_groups(&judgement->groups, out);
    if (options->trends)
        print_trends(&judgement->trends, out);
    if (options->decompose)
        print_parts(&judgement->parts, out);
    if (options->tables)
        print_tables(judgement, out);
    print_counts("unsupported, by the first missing feature", &judgement->missing, out);
    if (!options->points)
        print_failures(predictions, out);
    if (!options->tables && judgement->assumed.n > 0)
        fprintf(out,
                "\n%u kinds of assumptions, and errors by dataset, GPU and feature: --tables\n",
                judgement->assumed.n);
}
