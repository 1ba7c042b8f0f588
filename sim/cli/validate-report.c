#include "sim/cli/validate-report.h"

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/scenario-option.h"
#include "sim/print/wrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 4, NAME_WIDTH = 38 };

static const struct measure {
    const char *title, *key;
    cs_quantity quantity;
} measures[CS_N_MEASURES] = {
    [CS_MEASURE_TIME] = {"step time", "step_time", CS_QUANTITY_TIME},
    [CS_MEASURE_ALLOCATED] = {"peak memory, of max_memory_allocated", "allocated",
                              CS_QUANTITY_BYTES},
    [CS_MEASURE_LEAST] = {"peak memory, of max_memory_allocated of the emptiest rank",
                          "least_allocated", CS_QUANTITY_BYTES},
    [CS_MEASURE_RESERVED] = {"reserved memory, of max_memory_reserved", "reserved",
                             CS_QUANTITY_BYTES},
    [CS_MEASURE_DEVICE] = {"peak memory, of nvidia-smi or what the source does not say",
                           "device_memory", CS_QUANTITY_BYTES},
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

static void print_row(const cs_error_row *row, cs_measure measure, FILE *out)
{
    const cs_error_summary *errors = &row->measures[measure];
    char mean[32], median[32], largest[32], bias[32], name[256];
    cs_text_show(row->grouping == CS_GROUPING_ALL ? "all" : row->name, name, sizeof(name));
    fprintf(out, "  %-*s %6u %9u %8u %10s %10s %10s %10s\n", NAME_WIDTH, name, row->n_points,
            row->n_states[CS_PREDICTION_MADE], errors->n, percent(errors->mean, false, mean),
            percent(errors->median, false, median), percent(errors->largest, true, largest),
            percent(errors->bias, true, bias));
}

/* Whether some point of the group has such a measurement and prediction. */
static bool has_any(const cs_error_table *table, cs_measure measure)
{
    return table->n > 0 && table->rows[0].measures[measure].n > 0;
}

/* Of memory, groups without a measurement are left out. */
static void print_measure(const cs_error_table *table, cs_measure measure, FILE *out)
{
    fprintf(out, "\n%s\n", measures[measure].title);
    fprintf(out, "  %-*s %6s %9s %8s %10s %10s %10s %10s\n", NAME_WIDTH, "", "points", "predicted",
            "compared", "mean |e|", "median |e|", "largest e", "bias");
    cs_grouping last = CS_GROUPING_ALL;
    for (uint32_t i = 0; i < table->n; i++) {
        const cs_error_row *row = &table->rows[i];
        if (measure != CS_MEASURE_TIME && row->measures[measure].n == 0)
            continue;
        if (row->grouping != last)
            fprintf(out, "  by %s\n", cs_grouping_names[row->grouping]);
        last = row->grouping;
        print_row(row, measure, out);
    }
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

/* Runs by what was predicted of them and what they did. */
typedef struct verdicts {
    uint32_t n[2][2];    /* [ran out of memory][was predicted to] */
    uint32_t depends[2]; /* [ran out of memory]: the prediction depends on what is computed again */
} verdicts;

static verdicts count_verdicts(const cs_predictions *predictions, bool stated)
{
    verdicts counted = {0};
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cs_prediction *from = &predictions->items[i];
        if (cs_prediction_has_verdict(from) &&
            !(stated && strcmp(from->point->run.recompute, "unknown") == 0))
            (*(from->depends ? &counted.depends[from->was_out_of_memory]
                             : &counted.n[from->was_out_of_memory][from->out_of_memory]))++;
    }
    return counted;
}

static void print_right(const verdicts *of, const char *whose, FILE *out)
{
    const uint32_t right = of->n[0][0] + of->n[1][1], all = right + of->n[0][1] + of->n[1][0];
    if (all > 0)
        fprintf(out, "  right: %u of %u (%.1f %%)%s\n", right, all, 100.0 * right / all, whose);
}

/* Memory depends on what is computed again, which some points do not say: predictions that it turns
 * are neither right nor wrong. */
static void print_verdicts(const cs_predictions *predictions, FILE *out)
{
    const verdicts all = count_verdicts(predictions, false);
    const verdicts stated = count_verdicts(predictions, true);
    if (all.n[0][0] + all.n[0][1] + all.n[1][0] + all.n[1][1] + all.depends[0] + all.depends[1] ==
        0)
        return;
    fputs("\nout of memory or not\n", out);
    fprintf(out, "  %-18s %12s %22s %18s\n", "", "predicted to", "predicted to fit only",
            "predicted to run");
    fprintf(out, "  %-18s %12s %22s %18s\n", "", "fit", "if all is recomputed", "out of memory");
    for (int was = 0; was < 2; was++)
        fprintf(out, "  %-18s %12u %22u %18u\n", was ? "ran out of memory" : "ran", all.n[was][0],
                all.depends[was], all.n[was][1]);
    print_right(&all, "", out);
    print_right(&stated, " of those that say what is computed again", out);
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
        fprintf(out, "  %s %s, measured %s, %s", measures[measure].key,
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
    if (prediction->fits_probability > 0.005 && prediction->fits_probability < 0.995)
        fprintf(out, "  fits in %.0f of 100", 100 * prediction->fits_probability);
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
    fputs("\npoints whose scenario is refused or does not run\n", out);
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
    for (uint32_t t = 0; t < CS_N_TRAITS; t++) {
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
    const cs_error_summary *errors = &shown->table->rows[0].measures[measure];
    char mean[32], bias[32];
    if (errors->n > 0)
        fprintf(out, "%s: %u compared, mean error %s, bias %s\n", measures[measure].title,
                errors->n, percent(errors->mean, false, mean), percent(errors->bias, true, bias));
}

/* Prints the interval for an unseen run, and why it is wider than the errors of runs that were used
 * in the fit. */
static void print_interval(const cs_validation_shown *shown, FILE *out)
{
    const cs_interval *interval = &shown->interval;
    char within[32];
    if (isfinite(interval->within))
        fprintf(
            out,
            "expected of a run that no figure was fitted to: step time 9 of 10 within %s\n"
            "  from %u runs of %u sources, each predicted with its source left out of the fit\n",
            percent(interval->within, false, within), interval->n_runs, interval->n_sources);
    else
        fprintf(out,
                "expected of a run that no figure was fitted to: not known\n"
                "  only %u of the %u sources that an interval needs %s such runs\n",
                interval->n_sources, CS_INTERVAL_SOURCES,
                interval->n_sources == 1 ? "has" : "have");
    print_traits("  they share its ", shown->likeness, interval->shared, true, out);
    print_traits("  too few share its ", shown->likeness, interval->shared, false, out);
}

static void print_like(const cs_validation_shown *shown, bool decompose, FILE *out)
{
    const uint32_t n = shown->predictions->n;
    fprintf(out, n == 1 ? "%u measured run is like " : "%u measured runs are like ", n);
    cs_text_puts(out, shown->like);
    fputc('\n', out);
    print_traits("  they share its ", shown->likeness, shown->likeness->shared, true, out);
    print_traits("  too few share its ", shown->likeness, shown->likeness->shared, false, out);
    fputs("an error is predicted over measured, less 1\n\n", out);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        print_summary(shown, (cs_measure)m, out);
    print_interval(shown, out);
    if (decompose)
        print_parts(shown->parts, out);
    fputc('\n', out);
    for (uint32_t i = 0; i < n; i++)
        print_point(&shown->predictions->items[i], out);
}

void cs_validate_print(const cs_validation_shown *shown, bool each, bool decompose, FILE *out)
{
    const cs_predictions *predictions = shown->predictions;
    if (shown->like) {
        print_like(shown, decompose, out);
        return;
    }
    const uint32_t *n = predictions->n_states;
    for (uint32_t i = 0; each && i < predictions->n; i++)
        print_point(&predictions->items[i], out);
    fprintf(out, "%s%u point%s: %u predicted, %u that miss a feature, %u that fail\n",
            each ? "\n" : "", predictions->n, predictions->n == 1 ? "" : "s", n[CS_PREDICTION_MADE],
            n[CS_PREDICTION_MISSING], n[CS_PREDICTION_FAILED]);
    fputs("errors e are predicted over measured, less 1\n", out);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        if (m == CS_MEASURE_TIME || has_any(shown->table, (cs_measure)m))
            print_measure(shown->table, (cs_measure)m, out);
    if (decompose)
        print_parts(shown->parts, out);
    print_verdicts(predictions, out);
    print_counts("the feature that points miss (the first, where several are missing)",
                 &shown->missing, out);
    if (!each)
        print_failures(predictions, out);
    print_counts("assumed of the points that are predicted", &shown->assumed, out);
}

/* ---- JSON ---- */

static bool add_number(cJSON *object, const char *key, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, key, value) != NULL
                           : cJSON_AddNullToObject(object, key) != NULL;
}

static bool add_summary(cJSON *row, const char *key, const cs_error_summary *from)
{
    cJSON *object = cJSON_AddObjectToObject(row, key);
    return object && add_number(object, "points", from->n) &&
           add_number(object, "mean", from->mean) && add_number(object, "median", from->median) &&
           add_number(object, "largest", from->largest) && add_number(object, "bias", from->bias);
}

static bool fill_row(cJSON *object, const cs_error_row *row)
{
    bool done = cJSON_AddStringToObject(object, "grouping", cs_grouping_names[row->grouping]) &&
                cJSON_AddStringToObject(object, "name", row->name) &&
                add_number(object, "points", row->n_points);
    for (uint32_t s = 0; cs_prediction_states[s]; s++)
        done = done && add_number(object, cs_prediction_states[s], row->n_states[s]);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        done = done && add_summary(object, measures[m].key, &row->measures[m]);
    return done && add_number(object, "verdicts", row->n_verdicts) &&
           add_number(object, "verdicts_right", row->n_right);
}

static bool add_texts(cJSON *object, const char *key, const char *const *texts, uint32_t n)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *text = cJSON_CreateString(texts[i]);
        if (!cJSON_AddItemToArray(list, text)) {
            cJSON_Delete(text);
            return false;
        }
    }
    return list;
}

static const char *unit_suffix(cs_measure measure)
{
    return measure == CS_MEASURE_TIME ? "_s" : "_bytes";
}

static bool add_parts(cJSON *object, const char *key, const double *values)
{
    cJSON *parts = cJSON_AddObjectToObject(object, key);
    bool done = parts;
    for (uint32_t p = 0; done && p < CS_N_STEP_PARTS; p++)
        done = add_number(parts, cs_step_part_keys[p], values[p]);
    return done;
}

static bool fill_parts(cJSON *object, const cs_error_parts *row)
{
    return cJSON_AddStringToObject(object, "dataset", row->dataset) &&
           add_number(object, "points", row->n) && add_number(object, "missing", row->missing) &&
           add_parts(object, "predicted", row->predicted) &&
           add_parts(object, "lacking", row->lacking) && add_number(object, "rest", row->rest);
}

static bool fill_point(cJSON *object, const cs_prediction *from)
{
    char key[64];
    bool done = cJSON_AddStringToObject(object, "id", from->point->id) &&
                cJSON_AddStringToObject(object, "state", cs_prediction_states[from->state]);
    cs_traits traits = {0};
    if (from->made.document)
        cs_likeness_of_point(from->point, from->made.document, traits);
    cJSON *list = cJSON_AddArrayToObject(object, "traits");
    for (uint32_t t = 0; done && from->made.document && t < CS_N_TRAITS; t++)
        done = list && cJSON_AddItemToArray(list, cJSON_CreateString(traits[t]));
    for (uint32_t m = 0; m < CS_N_MEASURES; m++) {
        snprintf(key, sizeof(key), "predicted_%s%s", measures[m].key, unit_suffix((cs_measure)m));
        done = done && add_number(object, key, from->values[m]);
        snprintf(key, sizeof(key), "measured_%s%s", measures[m].key, unit_suffix((cs_measure)m));
        done = done && add_number(object, key, from->measured[m]);
        snprintf(key, sizeof(key), "%s_error", measures[m].key);
        done = done && add_number(object, key, cs_prediction_error(from, (cs_measure)m));
    }
    if (from->state == CS_PREDICTION_MADE)
        done = done && cJSON_AddBoolToObject(object, "out_of_memory", from->out_of_memory) &&
               cJSON_AddBoolToObject(object, "depends", from->depends) &&
               cs_json_add_number(object, "fits_probability", from->fits_probability) &&
               add_parts(object, "parts_s", from->parts.seconds);
    if (from->message)
        done = done && cJSON_AddStringToObject(object, "message", from->message);
    return done && add_texts(object, "missing", from->made.missing, from->made.n_missing) &&
           add_texts(object, "assumed", from->made.assumed, from->made.n_assumed);
}

/* A new object at the end of a list; NULL when memory runs out. */
static cJSON *append(cJSON *list)
{
    cJSON *object = cJSON_CreateObject();
    if (cJSON_AddItemToArray(list, object))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool fill_like(cJSON *root, const cs_validation_shown *shown)
{
    cJSON *like = cJSON_AddObjectToObject(root, "like");
    cJSON *traits = cJSON_AddArrayToObject(like, "traits");
    const cs_likeness *from = shown->likeness;
    bool done = like && traits && cJSON_AddStringToObject(like, "scenario", shown->like);
    for (uint32_t t = 0; done && t < CS_N_TRAITS; t++) {
        cJSON *object = append(traits);
        done = object && cJSON_AddStringToObject(object, "name", cs_trait_names[t]) &&
               cJSON_AddStringToObject(object, "value", from->traits[t]) &&
               cJSON_AddBoolToObject(object, "shared", from->shared[t]) &&
               cJSON_AddBoolToObject(object, "shared_left_out", shown->interval.shared[t]);
    }
    cJSON *left_out = done ? cJSON_AddObjectToObject(like, "left_out") : NULL;
    return left_out && add_number(left_out, "sources", shown->interval.n_sources) &&
           add_number(left_out, "runs", shown->interval.n_runs) &&
           add_number(left_out, "step_time_9_of_10_within", shown->interval.within);
}

static bool fill(cJSON *root, const cs_validation_shown *shown)
{
    cJSON *rows = cJSON_AddArrayToObject(root, "errors");
    cJSON *parts = cJSON_AddArrayToObject(root, "decomposition");
    cJSON *points = cJSON_AddArrayToObject(root, "points");
    bool done = rows && parts && points && (!shown->like || fill_like(root, shown));
    for (uint32_t i = 0; done && i < shown->parts->n; i++) {
        cJSON *object = append(parts);
        done = object && fill_parts(object, &shown->parts->rows[i]);
    }
    for (uint32_t i = 0; done && i < shown->table->n; i++) {
        cJSON *object = append(rows);
        done = object && fill_row(object, &shown->table->rows[i]);
    }
    for (uint32_t i = 0; done && i < shown->predictions->n; i++) {
        cJSON *object = append(points);
        done = object && fill_point(object, &shown->predictions->items[i]);
    }
    return done;
}

cs_status cs_validate_print_json(const cs_validation_shown *shown, FILE *out, cs_error *error)
{
    cJSON *root = cJSON_CreateObject();
    if (!root || !fill(root, shown)) {
        cJSON_Delete(root);
        return cs_error_no_memory(error);
    }
    return cs_print_json(root, out, error);
}
