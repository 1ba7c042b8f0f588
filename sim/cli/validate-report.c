#include "sim/cli/validate-report.h"

#include "sim/base/units.h"
#include "sim/cli/scenario-option.h"
#include "sim/print/wrap.h"

#include <math.h>
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

/* "6.31 %" or "+6.31 %"; "-" of what is not known. */
static const char *percent(double share, bool sign, char text[32])
{
    if (!isfinite(share))
        return "-";
    snprintf(text, 32, sign ? "%+.2f %%" : "%.2f %%", 100 * share);
    return text;
}

static void print_row(const cs_error_row *row, cs_measure measure, FILE *out)
{
    const cs_error_summary *errors = &row->measures[measure];
    char mean[32], median[32], largest[32], bias[32];
    fprintf(out, "  %-*s %6u %9u %8u %10s %10s %10s %10s\n", NAME_WIDTH,
            row->grouping == CS_GROUPING_ALL ? "all" : row->name, row->n_points,
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

static void print_verdicts(const cs_error_row *all, FILE *out)
{
    if (all->n_verdicts > 0)
        fprintf(out, "\nout of memory or not: %u of %u verdicts right (%.1f %%)\n", all->n_right,
                all->n_verdicts, 100.0 * all->n_right / all->n_verdicts);
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

static void print_point(const cs_prediction *prediction, FILE *out)
{
    fputs(prediction->point->id, out);
    if (prediction->state == CS_PREDICTION_MISSING)
        print_missing(prediction, out);
    else if (prediction->state == CS_PREDICTION_FAILED)
        fprintf(out, "  failed: %s", prediction->message);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        print_values(prediction, (cs_measure)m, out);
    if (prediction->state == CS_PREDICTION_MADE && prediction->out_of_memory)
        fprintf(out, "  out of memory%s",
                prediction->knows_verdict && !prediction->was_out_of_memory ? ", measured: not"
                                                                            : "");
    fputc('\n', out);
}

static void print_failures(const cs_predictions *predictions, FILE *out)
{
    if (predictions->n_states[CS_PREDICTION_FAILED] == 0)
        return;
    fputs("\npoints whose scenario is refused or does not run\n", out);
    for (uint32_t i = 0; i < predictions->n; i++)
        if (predictions->items[i].state == CS_PREDICTION_FAILED)
            fprintf(out, "  %s: %s\n", predictions->items[i].point->id,
                    predictions->items[i].message);
}

void cs_validate_print(const cs_validation_shown *shown, bool each, FILE *out)
{
    const cs_predictions *predictions = shown->predictions;
    const uint32_t *n = predictions->n_states;
    for (uint32_t i = 0; each && i < predictions->n; i++)
        print_point(&predictions->items[i], out);
    fprintf(out, "%s%u points: %u predicted, %u that miss a feature, %u that fail\n",
            each ? "\n" : "", predictions->n, n[CS_PREDICTION_MADE], n[CS_PREDICTION_MISSING],
            n[CS_PREDICTION_FAILED]);
    fputs("errors e are predicted over measured, less 1\n", out);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        if (m == CS_MEASURE_TIME || has_any(shown->table, (cs_measure)m))
            print_measure(shown->table, (cs_measure)m, out);
    print_verdicts(&shown->table->rows[0], out);
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

static bool fill_point(cJSON *object, const cs_prediction *from)
{
    char key[64];
    bool done = cJSON_AddStringToObject(object, "id", from->point->id) &&
                cJSON_AddStringToObject(object, "state", cs_prediction_states[from->state]);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++) {
        snprintf(key, sizeof(key), "predicted_%s%s", measures[m].key, unit_suffix((cs_measure)m));
        done = done && add_number(object, key, from->values[m]);
        snprintf(key, sizeof(key), "measured_%s%s", measures[m].key, unit_suffix((cs_measure)m));
        done = done && add_number(object, key, from->measured[m]);
        snprintf(key, sizeof(key), "%s_error", measures[m].key);
        done = done && add_number(object, key, cs_prediction_error(from, (cs_measure)m));
    }
    if (from->state == CS_PREDICTION_MADE)
        done = done && cJSON_AddBoolToObject(object, "out_of_memory", from->out_of_memory);
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

static bool fill(cJSON *root, const cs_validation_shown *shown)
{
    cJSON *rows = cJSON_AddArrayToObject(root, "errors");
    cJSON *points = cJSON_AddArrayToObject(root, "points");
    bool done = rows && points;
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
