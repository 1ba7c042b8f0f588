#include "sim/cli/compare-report.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 4 };

/* ---- scenarios ---- */

double cs_compare_median(double *values, uint32_t n)
{
    qsort(values, n, sizeof(*values), cs_number_compare);
    return n > 0 ? (values[(n - 1) / 2] + values[n / 2]) / 2 : (double)NAN;
}

static double larger_error(double a, double b)
{
    return !(fabs(b) <= fabs(a)) ? b : a;
}

/* Summarises pairs of one scenario. `values` has room for three numbers per pair. */
static void summarise(const cs_compared_run *pairs, uint32_t n_pairs, double *values,
                      cs_compared_scenario *to)
{
    double *predicted = values, *measured = values + n_pairs,
           *errors = values + 2 * (size_t)n_pairs;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_pairs; i++) {
        if (strcmp(pairs[i].name, to->name) != 0)
            continue;
        predicted[n] = pairs[i].iteration.first;
        measured[n] = pairs[i].iteration.second;
        errors[n++] = cs_compared_error(pairs[i].iteration);
        const cs_compared_run *pair = &pairs[i];
        for (uint32_t d = 0; d < pair->n_devices; d++)
            to->memory_error =
                larger_error(to->memory_error, cs_compared_error(pair->devices[d].peak));
    }
    to->n_rounds = n;
    to->predicted = cs_compare_median(predicted, n);
    to->measured = cs_compare_median(measured, n);
    to->error = cs_compare_median(errors, n);
    to->lowest = measured[0];
    to->highest = measured[n - 1];
    to->lowest_error = errors[0];
    to->highest_error = errors[n - 1];
}

static bool is_new(const cs_compared_run *pairs, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(pairs[k].name, pairs[i].name) == 0)
            return false;
    return true;
}

cs_status cs_compare_summarise(const cs_compared_run *pairs, uint32_t n_pairs,
                               cs_compared_scenario **scenarios, uint32_t *n, cs_error *error)
{
    cs_compared_scenario *made = calloc(n_pairs + UINT64_C(1), sizeof(*made));
    double *values = calloc(3 * (size_t)n_pairs + 1, sizeof(*values));
    *n = 0;
    for (uint32_t i = 0; made && values && i < n_pairs; i++) {
        if (!is_new(pairs, i))
            continue;
        made[*n].name = pairs[i].name;
        summarise(pairs, n_pairs, values, &made[(*n)++]);
    }
    free(values);
    if (!made || !values) {
        free(made);
        return cs_error_no_memory(error);
    }
    *scenarios = made;
    return CS_OK;
}

/* ---- table ---- */

typedef cs_units_value text;

static text number_text(double value, const char *format)
{
    text out = {"-"};
    if (isfinite(value))
        snprintf(out.s, sizeof(out.s), format, value);
    return out;
}

static text quantity_text(double value, cs_quantity quantity)
{
    return isfinite(value) ? cs_units_text(value, quantity, DIGITS) : (text){"-"};
}

/* Writes "+2.31 %", or "+2.31e+09 %" if it is large. */
static text error_text(double error)
{
    return number_text(100 * error, fabs(error) < 1e4 ? "%+.2f %%" : "%+.3g %%");
}

/* Names of the columns, and meaning of the last. */
typedef struct terms {
    const char *first, *second, *last;
    const char *short_first, *short_second; /* for columns of numbers */
    double (*share)(cs_compared figure);
    double sign; /* sign of first minus second */
} terms;

static const terms *terms_of(const cs_compared_run *pair)
{
    static const terms of_prediction = {"predicted", "measured",        "error", "pred.",
                                        "meas.",     cs_compared_error, 1};
    static const terms side_by_side = {"first", "second",           "change", "1st",
                                       "2nd",   cs_compared_change, -1};
    return pair->side_by_side ? &side_by_side : &of_prediction;
}

static void print_row(const char *label, text first, text second, text last, FILE *out)
{
    fprintf(out, "%-21s %12s %12s %12s\n", label, first.s, second.s, last.s);
}

/* Skipped for files without the text. */
static void print_texts(const char *label, cs_compared_text of, FILE *out)
{
    if (of.first || of.second)
        fprintf(out, "%-21s %12s %12s\n", label, of.first ? of.first : "-",
                of.second ? of.second : "-");
}

/* Escapes text, because files of others may contain anything. */
static void print_shown(const char *given, const char *behind, FILE *out)
{
    cs_text_puts(out, given);
    fputs(behind, out);
}

static void print_notes(const cs_compared_run *pair, FILE *out)
{
    for (uint32_t i = 0; i < pair->n_notes; i++) {
        fputs("  ", out);
        print_shown(pair->notes[i], "\n", out);
    }
}

static void print_file(const char *which, const cs_compared_file *file, FILE *out)
{
    fprintf(out, "%-7s ", which);
    print_shown(file->path, ": ", out);
    print_shown(file->name, ", ", out);
    print_shown(file->schedule, " on ", out);
    print_shown(file->topology, "", out);
    if (file->out_of_memory > 0)
        fprintf(out, "; OUT OF MEMORY on %u device%s", file->out_of_memory,
                file->out_of_memory == 1 ? "" : "s");
    fputc('\n', out);
}

static void print_tasks(const cs_compared_run *pair, FILE *out)
{
    const terms *with = terms_of(pair);
    fprintf(out, "\n%-16s %13s %33s %33s\n%-16s %6s %6s %11s %11s %9s %11s %11s %9s\n", "",
            "number of", "total time", "median time", "tasks", with->short_first,
            with->short_second, with->first, with->second, with->last, with->first, with->second,
            with->last);
    for (uint32_t k = 0; k < pair->n_kinds; k++) {
        const cs_compared_kind *kind = &pair->kinds[k];
        char words[32];
        cs_text_format(words, sizeof(words), "%.31s", kind->kind);
        for (char *at = words; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        fprintf(out, "%-16s %6.0f %6.0f %11s %11s %9s %11s %11s %9s\n", words, kind->number.first,
                kind->number.second, quantity_text(kind->total.first, CS_QUANTITY_TIME).s,
                quantity_text(kind->total.second, CS_QUANTITY_TIME).s,
                error_text(with->share(kind->total)).s,
                quantity_text(kind->median.first, CS_QUANTITY_TIME).s,
                quantity_text(kind->median.second, CS_QUANTITY_TIME).s,
                error_text(with->share(kind->median)).s);
    }
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Prints the peaks of devices; neighbours with equal peaks in both files share a line. */
static void print_peaks(const cs_compared_run *pair, FILE *out)
{
    for (uint32_t d = 0, end; d < pair->n_devices; d = end) {
        const cs_compared peak = pair->devices[d].peak;
        char label[48];
        for (end = d + 1; end < pair->n_devices; end++)
            if (!same_number(pair->devices[end].peak.first, peak.first) ||
                !same_number(pair->devices[end].peak.second, peak.second))
                break;
        if (end == d + 1)
            snprintf(label, sizeof(label), "peak memory, %u", d);
        else
            snprintf(label, sizeof(label), "peak memory, %u-%u", d, end - 1);
        const terms *with = terms_of(pair);
        print_row(label, quantity_text(peak.first, CS_QUANTITY_BYTES),
                  quantity_text(peak.second, CS_QUANTITY_BYTES), error_text(with->share(peak)),
                  out);
    }
}

void cs_compare_print(const cs_compared_run *pair, FILE *out)
{
    const terms *with = terms_of(pair);
    if (pair->side_by_side) {
        print_file(with->first, &pair->files[0], out);
        print_file(with->second, &pair->files[1], out);
        fputs("change: second / first - 1\n\n", out);
    }
    fprintf(out, "%-21.21s %12s %12s %12s\n", pair->side_by_side ? "" : pair->name, with->first,
            with->second, with->last);
    print_texts("link sharing", pair->sharing, out);
    print_texts("collectives by", pair->algorithms, out);
    for (uint32_t f = 0; f < pair->n_figures; f++) {
        /* Fractions differ in percentage points, other values in percent. */
        const cs_compared_figure *of = &pair->figures[f];
        const cs_compared value = of->value;
        char heading[CS_UNIT_TEXT_BYTES];
        text first, second, last = error_text(with->share(value));
        cs_run_figure_cell(of->figure, value.first, first.s, sizeof(first.s));
        cs_run_figure_cell(of->figure, value.second, second.s, sizeof(second.s));
        if (of->figure->unit == CS_UNIT_FRACTION)
            last = number_text(
                100 * (with->sign < 0 ? value.second - value.first : value.first - value.second),
                "%+.2f points");
        print_row(cs_run_figure_heading(of->figure, heading, sizeof(heading)), first, second, last,
                  out);
    }
    print_peaks(pair, out);
    print_tasks(pair, out);
    if (pair->n_notes > 0)
        fprintf(out, "\nthe scenarios differ:\n");
    print_notes(pair, out);
}

void cs_compare_print_differences(const cs_compared_run *pairs, uint32_t n_pairs, FILE *out)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        if (pairs[i].n_notes == 0)
            continue;
        fprintf(out, "\npair %u, ", i + 1);
        print_shown(pairs[i].name, ": the scenarios differ:\n", out);
        print_notes(&pairs[i], out);
    }
}

static text range_text(double low, double high)
{
    text out = {"-"};
    if (isfinite(low) && isfinite(high))
        snprintf(out.s, sizeof(out.s), "%+.1f to %+.1f %%", 100 * low, 100 * high);
    return out;
}

/* Median of the absolute errors of iteration times, and the largest errors. */
typedef struct overall {
    double median, largest, memory;
} overall;

static overall overall_of(const cs_compared_scenario *scenarios, uint32_t n)
{
    overall all = {NAN, 0, 0};
    double *errors = calloc(n + UINT64_C(1), sizeof(*errors));
    for (uint32_t i = 0; i < n; i++) {
        all.largest = larger_error(all.largest, scenarios[i].error);
        all.memory = larger_error(all.memory, scenarios[i].memory_error);
        if (errors)
            errors[i] = fabs(scenarios[i].error);
    }
    if (errors)
        all.median = cs_compare_median(errors, n);
    free(errors);
    return all;
}

void cs_compare_print_summary(const cs_compared_scenario *scenarios, uint32_t n, FILE *out)
{
    fprintf(out, "%-24s %6s %11s %11s %9s %18s %10s %9s\n", "iteration time", "rounds", "predicted",
            "measured", "error", "error, from to", "spread", "memory");
    for (uint32_t i = 0; i < n; i++) {
        const cs_compared_scenario *at = &scenarios[i];
        fprintf(out, "%-24.24s %6u %11s %11s %9s %18s %10s %9s\n", at->name, at->n_rounds,
                quantity_text(at->predicted, CS_QUANTITY_TIME).s,
                quantity_text(at->measured, CS_QUANTITY_TIME).s, error_text(at->error).s,
                range_text(at->lowest_error, at->highest_error).s,
                number_text(100 * (at->highest / at->lowest - 1), "%.1f %%").s,
                error_text(at->memory_error).s);
    }
    overall all = overall_of(scenarios, n);
    fprintf(out,
            "\nmedian error of %u scenarios %s, largest %s; peak memory at most %s\n"
            "error: median of the rounds; spread: largest / smallest measured round - 1;\n"
            "memory: the largest error of a device's peak\n",
            n, number_text(100 * all.median, "%.2f %%").s, error_text(all.largest).s,
            error_text(all.memory).s);
}

/* ---- JSON ---- */

static bool add_part(cJSON *object, const char *word, const char *unit, double value)
{
    char key[64];
    snprintf(key, sizeof(key), "%s%s", word, unit);
    return cs_json_add_number(object, key, value);
}

/* Adds "KEY": {"predicted_UNIT": , "measured_UNIT": , "error_fraction": } or {"first_UNIT": ,
 * "second_UNIT": , "difference_UNIT": , "change_fraction": }. */
static bool add_figure(cJSON *object, const char *key, const char *unit, const cs_compared_run *of,
                       cs_compared figure)
{
    const terms *with = terms_of(of);
    cJSON *both = cJSON_AddObjectToObject(object, key);
    return both && add_part(both, with->first, unit, figure.first) &&
           add_part(both, with->second, unit, figure.second) &&
           (!of->side_by_side ||
            add_part(both, "difference", unit, figure.second - figure.first)) &&
           add_part(both, with->last, "_fraction", with->share(figure));
}

static bool add_kinds(cJSON *object, const cs_compared_run *pair)
{
    cJSON *list = cJSON_AddArrayToObject(object, "tasks");
    bool done = list != NULL;
    for (uint32_t k = 0; done && k < pair->n_kinds; k++) {
        const cs_compared_kind *kind = &pair->kinds[k];
        cJSON *one = cs_json_add_item(list);
        done = one && cJSON_AddStringToObject(one, "kind", kind->kind) &&
               add_figure(one, "number", "", pair, kind->number) &&
               add_figure(one, "total", "_s", pair, kind->total) &&
               add_figure(one, "median", "_s", pair, kind->median);
    }
    return done;
}

static bool add_devices(cJSON *object, const cs_compared_run *pair)
{
    cJSON *list = cJSON_AddArrayToObject(object, "devices");
    bool done = list != NULL;
    for (uint32_t d = 0; done && d < pair->n_devices; d++) {
        cJSON *one = cs_json_add_item(list);
        done = one && cs_json_add_number(one, "device", d) &&
               add_figure(one, "peak_memory", "_bytes", pair, pair->devices[d].peak);
        cJSON *parts = done ? cJSON_AddObjectToObject(one, "at_peak") : NULL;
        done = parts != NULL;
        for (uint32_t c = 0; done && c < pair->n_categories; c++)
            done =
                add_figure(parts, pair->categories[c], "_bytes", pair, pair->devices[d].at_peak[c]);
    }
    return done;
}

/* Adds the files of side-by-side comparisons; other pairs have one scenario. */
static bool add_files(cJSON *object, const cs_compared_run *pair)
{
    if (!pair->side_by_side)
        return true;
    cJSON *list = cJSON_AddArrayToObject(object, "files");
    bool done = list != NULL;
    for (int f = 0; done && f < 2; f++) {
        const cs_compared_file *file = &pair->files[f];
        cJSON *one = cs_json_add_item(list);
        done = one && cJSON_AddStringToObject(one, "file", file->path) &&
               cJSON_AddStringToObject(one, "name", file->name) &&
               cJSON_AddStringToObject(one, "schedule", file->schedule) &&
               cJSON_AddStringToObject(one, "topology", file->topology) &&
               cs_json_add_number(one, "devices_out_of_memory", file->out_of_memory);
    }
    return done;
}

/* Adds "KEY": {"predicted": , "measured": }, or "first" and "second". */
static bool add_texts(cJSON *object, const char *key, const cs_compared_run *pair,
                      cs_compared_text of)
{
    cJSON *both = cJSON_AddObjectToObject(object, key);
    const terms *with = terms_of(pair);
    return cs_json_add_text(both, with->first, of.first) &&
           cs_json_add_text(both, with->second, of.second);
}

static bool add_pair(cJSON *list, const cs_compared_run *pair)
{
    cJSON *one = cs_json_add_item(list);
    bool done = one && cJSON_AddStringToObject(one, "name", pair->name) && add_files(one, pair) &&
                add_texts(one, "sharing", pair, pair->sharing) &&
                add_texts(one, "algorithms", pair, pair->algorithms);
    for (uint32_t f = 0; done && f < pair->n_figures; f++) {
        /* The key has no unit, because the numbers have one. */
        const cs_compared_figure *of = &pair->figures[f];
        const char *key = of->figure->key, *unit = cs_unit_suffix(of->figure->unit);
        char name[CS_UNIT_TEXT_BYTES];
        const size_t all = strlen(key), end = strlen(unit);
        const bool ends = all > end && strcmp(key + all - end, unit) == 0;
        snprintf(name, sizeof(name), "%.*s", (int)(ends ? all - end : all), key);
        done = add_figure(one, name, unit, pair, of->value);
    }
    done = done && add_kinds(one, pair) && add_devices(one, pair);
    cJSON *notes = done ? cJSON_AddArrayToObject(one, "differences") : NULL;
    done = notes != NULL;
    for (uint32_t i = 0; done && i < pair->n_notes; i++)
        done = cJSON_AddItemToArray(notes, cJSON_CreateString(pair->notes[i]));
    return done;
}

cJSON *cs_compare_json(const cs_compared_run *pairs, uint32_t n_pairs,
                       const cs_compared_scenario *scenarios, uint32_t n)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *list = root ? cJSON_AddArrayToObject(root, "pairs") : NULL;
    bool done = list != NULL;
    for (uint32_t i = 0; done && i < n_pairs; i++)
        done = add_pair(list, &pairs[i]);
    if (done && n_pairs == 1 && pairs[0].side_by_side)
        return root;
    list = done ? cJSON_AddArrayToObject(root, "scenarios") : NULL;
    done = list != NULL;
    for (uint32_t i = 0; done && i < n; i++) {
        const cs_compared_scenario *of = &scenarios[i];
        cJSON *one = cs_json_add_item(list);
        done = one && cJSON_AddStringToObject(one, "name", of->name) &&
               cs_json_add_number(one, "rounds", of->n_rounds) &&
               cs_json_add_number(one, "predicted_iteration_time_s", of->predicted) &&
               cs_json_add_number(one, "measured_iteration_time_s", of->measured) &&
               cs_json_add_number(one, "error_fraction", of->error) &&
               cs_json_add_number(one, "lowest_error_fraction", of->lowest_error) &&
               cs_json_add_number(one, "highest_error_fraction", of->highest_error) &&
               cs_json_add_number(one, "lowest_measured_iteration_time_s", of->lowest) &&
               cs_json_add_number(one, "highest_measured_iteration_time_s", of->highest) &&
               cs_json_add_number(one, "largest_memory_error_fraction", of->memory_error);
    }
    overall all = overall_of(scenarios, n);
    if (done && cs_json_add_number(root, "median_absolute_error_fraction", all.median) &&
        cs_json_add_number(root, "largest_error_fraction", all.largest) &&
        cs_json_add_number(root, "largest_memory_error_fraction", all.memory))
        return root;
    cJSON_Delete(root);
    return NULL;
}
