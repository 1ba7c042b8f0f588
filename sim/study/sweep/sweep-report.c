#include "sim/study/sweep/sweep-report.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/base/version.h"
#include "sim/run/print/print-json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char difference_word[] = "difference";

/* What a run says of its closed forms: what they assume holds; they are promised to be equal. */
enum { APPLIES, PROMISED, N_FLAGS };

static const char *const flag_words[N_FLAGS] = {"applies", "promised"};

/* Over all points that have the figure. */
typedef struct extent {
    uint32_t n, equal; /* points; of a difference: those where it is 0 */
    uint32_t flagged[N_FLAGS], equal_flagged[N_FLAGS]; /* of a closed form's difference */
    uint32_t lowest, highest, first;                   /* points; `first` that is not equal */
} extent;

/* Simulation and formula are exact in whole picoseconds and bytes; a share of them is a quotient of
 * doubles on both sides, which may differ in the last bits. */
static bool is_equal(double difference)
{
    return fabs(difference) <= 1e-12;
}

static extent extent_of(const cs_figure_column *column, uint32_t n_points)
{
    extent e = {.first = UINT32_MAX};
    for (uint32_t i = 0; i < n_points; i++) {
        double value = column->values[i];
        if (isnan(value))
            continue;
        if (e.n == 0 || value < column->values[e.lowest])
            e.lowest = i;
        if (e.n == 0 || value > column->values[e.highest])
            e.highest = i;
        e.n++;
        if (is_equal(value))
            e.equal++;
        else if (e.first == UINT32_MAX)
            e.first = i;
    }
    return e;
}

/* Behind "difference" of "difference_K" or "difference2_K": "_K", "2_K"; NULL for other columns. */
static const char *difference_of(const cs_figure_column *column)
{
    size_t length = sizeof(difference_word) - 1;
    if (strncmp(column->name, difference_word, length) != 0)
        return NULL;
    const char *rest = column->name + length;
    return rest[strspn(rest, "0123456789")] == '_' ? rest : NULL;
}

static bool is_of_forms(const cs_figure_column *column)
{
    bool flag = false;
    for (int i = 0; i < N_FLAGS; i++)
        flag |= strncmp(column->name, flag_words[i], strlen(flag_words[i])) == 0;
    return difference_of(column) || (column->boolean && flag);
}

/* "K", or "K (closed form 2)" */
static char *form_text(const cs_figure_column *column, char *text, size_t size)
{
    const char *rest = difference_of(column);
    int digits = (int)strcspn(rest, "_");
    if (digits == 0)
        snprintf(text, size, "%s", rest + 1);
    else
        snprintf(text, size, "%s (closed form %.*s)", rest + digits + 1, digits, rest);
    return text;
}

/* Adds where a closed form applies and where it is promised. A formula that the run reports beside
 * its figure says nothing of that: it applies everywhere, and is promised nowhere. */
static extent agreement_of(const cs_figure_table *figures, const cs_figure_column *column)
{
    extent e = extent_of(column, figures->n_points);
    for (int f = 0; f < N_FLAGS; f++) {
        char name[300];
        snprintf(name, sizeof(name), "%s%.250s", flag_words[f], difference_of(column));
        const cs_figure_column *flag = cs_figure_table_find(figures, name);
        for (uint32_t i = 0; i < figures->n_points; i++) {
            if (isnan(column->values[i]) || !(flag ? flag->values[i] > 0 : f == APPLIES))
                continue;
            e.flagged[f]++;
            e.equal_flagged[f] += is_equal(column->values[i]);
        }
    }
    return e;
}

/* ---- for people ---- */

char *cs_sweep_figure_text(const cs_figure_column *column, double value, char *text, size_t size)
{
    cs_unit unit = column->boolean ? CS_UNIT_BOOLEAN : cs_figure_unit(column->name);
    if (unit == CS_UNIT_FRACTION)
        unit = CS_UNIT_NUMBER;
    return cs_unit_format(unit, value, text, size);
}

bool cs_sweep_out_of_memory(const cs_sweep_results *results, uint32_t point)
{
    const cs_figure_column *column = cs_figure_table_find(&results->figures, "out_of_memory");
    return column && column->values[point] > 0;
}

/* "4, 8": the values of the point, in the order of the keys; "4, 8 *" of one out of memory. */
static char *point_text(const cs_sweep_shown *shown, uint32_t point, char *text, size_t size)
{
    const cs_space *space = shown->space;
    size_t used = 0;
    *text = '\0';
    for (uint32_t a = 0; a < space->n_axes && used < size; a++)
        used += (size_t)cs_text_format(text + used, size - used, "%s%s", a > 0 ? ", " : "",
                                       shown->axes[a].labels[cs_space_position(space, point, a)]);
    if (used < size && cs_sweep_out_of_memory(shown->results, point))
        snprintf(text + used, size - used, " *");
    return text;
}

static void print_keys(const cs_sweep_shown *shown, FILE *out)
{
    const cs_space *space = shown->space;
    const cs_sweep_results *results = shown->results;
    fprintf(out, "%u point%s", results->n_points, results->n_points == 1 ? "" : "s");
    for (uint32_t a = 0; a < space->n_axes; a++) {
        const cs_axis_values *values = &shown->axes[a];
        fprintf(out, "%s%s", a > 0 ? ", " : " (", space->axes[a].pointer);
        if (space->form == CS_SPACE_GRID && values->n == 1)
            fprintf(out, ": %s", values->labels[0]);
        else if (space->form == CS_SPACE_GRID)
            fprintf(out, ": %u values from %s to %s", values->n, values->labels[0],
                    values->labels[values->n - 1]);
    }
    fprintf(out, "), %u failed\n", results->n_failed);
}

/* "sharing   max_min everywhere", or each text with the number of its points. */
static void print_words(const cs_figure_column *column, uint32_t n_points, FILE *out)
{
    const char *separator = "";
    fprintf(out, "%-34s ", column->name);
    for (uint32_t i = 0; i < n_points; i++) {
        uint32_t before = 0, n = 0;
        for (uint32_t k = 0; k < n_points; k++) {
            const bool same = column->values[k] == column->values[i];
            before += same && k < i;
            n += same;
        }
        if (n == 0 || before > 0) /* no text there, or told already */
            continue;
        if (n == n_points)
            fprintf(out, "%-18s everywhere", cs_figure_word(column, i));
        else
            fprintf(out, "%s%s (%u point%s)", separator, cs_figure_word(column, i), n,
                    n == 1 ? "" : "s");
        separator = ", ";
    }
    fputc('\n', out);
}

static void print_figure(const cs_sweep_shown *shown, const cs_figure_column *column,
                         const extent *e, FILE *out)
{
    char low[CS_UNITS_TEXT_BYTES], high[CS_UNITS_TEXT_BYTES], low_at[CS_SWEEP_LABEL_BYTES],
        high_at[CS_SWEEP_LABEL_BYTES];
    double lowest = column->values[e->lowest], highest = column->values[e->highest];
    cs_sweep_figure_text(column, lowest, low, sizeof(low));
    cs_sweep_figure_text(column, highest, high, sizeof(high));
    if (lowest == highest)
        fprintf(out, "%-34s %-18s everywhere\n", column->name, low);
    else
        fprintf(out, "%-34s %-18s %-18s %-18s %s\n", column->name, low,
                point_text(shown, e->lowest, low_at, sizeof(low_at)), high,
                point_text(shown, e->highest, high_at, sizeof(high_at)));
}

static void print_agreement(const cs_sweep_shown *shown, const cs_figure_column *column,
                            const extent *e, FILE *out)
{
    char low[CS_UNITS_TEXT_BYTES], high[CS_UNITS_TEXT_BYTES], at[CS_SWEEP_LABEL_BYTES], name[300];
    fprintf(out, "%s: closed form equal at %u of %u points", form_text(column, name, sizeof(name)),
            e->equal, e->n);
    if (e->flagged[APPLIES] < e->n)
        fprintf(out, ", at %u of the %u where it applies", e->equal_flagged[APPLIES],
                e->flagged[APPLIES]);
    if (e->flagged[PROMISED] == 0)
        fprintf(out, " (nowhere promised)");
    else if (e->flagged[PROMISED] < e->flagged[APPLIES] ||
             e->equal_flagged[PROMISED] < e->flagged[PROMISED])
        fprintf(out, ", at %u of the %u where it is promised", e->equal_flagged[PROMISED],
                e->flagged[PROMISED]);
    if (e->equal < e->n)
        fprintf(out, "; simulated minus closed form %s to %s; first at %s",
                cs_sweep_figure_text(column, column->values[e->lowest], low, sizeof(low)),
                cs_sweep_figure_text(column, column->values[e->highest], high, sizeof(high)),
                point_text(shown, e->first, at, sizeof(at)));
    fputc('\n', out);
}

/* A point that does not fit may be the fastest of all: it is marked, and the best one that fits is
 * told apart. */
static void print_what_fits(const cs_sweep_shown *shown, FILE *out)
{
    static const char figure[] = "throughput_samples_per_s";
    char text[CS_UNITS_TEXT_BYTES], at[CS_SWEEP_LABEL_BYTES];
    const cs_figure_column *column = cs_figure_table_find(&shown->results->figures, figure);
    uint32_t n_out = 0, best = UINT32_MAX;
    for (uint32_t i = 0; i < shown->results->n_points; i++) {
        const bool out_of_memory = cs_sweep_out_of_memory(shown->results, i);
        n_out += out_of_memory;
        if (column && !out_of_memory && !isnan(column->values[i]) &&
            (best == UINT32_MAX || column->values[i] > column->values[best]))
            best = i;
    }
    if (n_out == 0)
        return;
    fprintf(out, "\n* out of memory, at %u of %u points; ", n_out,
            shown->results->n_points - shown->results->n_failed);
    if (best == UINT32_MAX)
        fprintf(out, "nothing fits\n");
    else
        fprintf(out, "of what fits, the highest %s is %s at %s\n", figure,
                cs_sweep_figure_text(column, column->values[best], text, sizeof(text)),
                point_text(shown, best, at, sizeof(at)));
}

void cs_sweep_report_print(const cs_sweep_shown *shown, FILE *out)
{
    const cs_figure_table *figures = &shown->results->figures;
    print_keys(shown, out);
    fprintf(out, "\n%-34s %-18s %-18s %-18s %s\n", "", "lowest", "at", "highest", "at");
    for (uint32_t c = 0; c < figures->n_columns; c++) {
        extent e = extent_of(&figures->columns[c], figures->n_points);
        if (figures->columns[c].n_words > 0)
            print_words(&figures->columns[c], figures->n_points, out);
        else if (e.n > 0 && !is_of_forms(&figures->columns[c]))
            print_figure(shown, &figures->columns[c], &e, out);
    }
    print_what_fits(shown, out);
    for (uint32_t c = 0, n = 0; c < figures->n_columns; c++) {
        if (!difference_of(&figures->columns[c]))
            continue;
        extent e = agreement_of(figures, &figures->columns[c]);
        if (e.n == 0)
            continue;
        if (n++ == 0)
            fputc('\n', out);
        print_agreement(shown, &figures->columns[c], &e, out);
    }
}

/* ---- JSON ---- */

static cs_status print_point(const cs_space *space, const cs_journal *journal,
                             const cs_sweep_results *results, uint32_t point, FILE *out,
                             cs_error *error)
{
    char *set = cs_space_describe(space, point), *text = NULL;
    cs_status status = set ? CS_OK : cs_error_no_memory(error);
    const char *message = results->errors[point];
    if (status == CS_OK && message) {
        cJSON *string = cJSON_CreateString(message);
        text = string ? cs_json_line(string) : NULL;
        cJSON_Delete(string);
        status = text ? CS_OK : cs_error_no_memory(error);
    } else if (status == CS_OK) {
        status = cs_sweep_report(journal, results, point, &text, error);
    }
    if (status == CS_OK)
        fprintf(out, "{\"set\": %s, \"%s\": %s}", set, message ? "error" : "result", text);
    free(text);
    free(set);
    return status;
}

static void print_number(FILE *out, const char *key, double value)
{
    char text[CS_NUMBER_TEXT_BYTES];
    fprintf(out, ", \"%s\": %s", key, cs_number_format(value, text, sizeof(text)));
}

static void print_agreements(const cs_sweep_results *results, FILE *out)
{
    const cs_figure_table *figures = &results->figures;
    const char *before = "";
    char name[300];
    fputs("\"closed_forms\": {", out);
    for (uint32_t c = 0; c < figures->n_columns; c++) {
        const cs_figure_column *column = &figures->columns[c];
        if (!difference_of(column))
            continue;
        extent e = agreement_of(figures, column);
        if (e.n == 0)
            continue;
        fprintf(out,
                "%s\n\"%s\": {\"points\": %u, \"equal\": %u, \"applies\": %u, "
                "\"equal_where_it_applies\": %u, \"promised\": %u, "
                "\"equal_where_it_is_promised\": %u",
                before, form_text(column, name, sizeof(name)), e.n, e.equal, e.flagged[APPLIES],
                e.equal_flagged[APPLIES], e.flagged[PROMISED], e.equal_flagged[PROMISED]);
        print_number(out, "smallest_difference", column->values[e.lowest]);
        print_number(out, "largest_difference", column->values[e.highest]);
        fputc('}', out);
        before = ",";
    }
    fputc('}', out);
}

cs_status cs_sweep_report_json(const cs_space *space, const cs_journal *journal,
                               const cs_sweep_results *results, FILE *out, cs_error *error)
{
    fprintf(out, "{\"schema_version\": %d, \"program_version\": \"%s\",\n\"points\": [",
            CS_PRINTED_SCHEMA_VERSION, SIM_VERSION);
    for (uint32_t i = 0; i < results->n_points; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        CS_TRY(print_point(space, journal, results, i, out, error));
    }
    fprintf(out, "],\n\"n_points\": %u, \"failed\": %u,\n", results->n_points, results->n_failed);
    print_agreements(results, out);
    fputs("}\n", out);
    return CS_OK;
}
