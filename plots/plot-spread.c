#include "plots/sheet.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/run/figures.h"

#include "plots/grid.h"

#include <math.h>
#include <stdlib.h>

/* Draws how a metric varies between repeated runs. Each results file has a row: a point per run, a
 * box from the lower to the upper quartile with a line at the median, and lines to the 5th and the
 * 95th percentile. */

enum { ROW = 44, HEADING = 16 };

typedef struct spread {
    cs_sheet *sheet;
    double *values[CS_PLOT_INPUTS_MAX]; /* in ascending order */
    uint64_t n[CS_PLOT_INPUTS_MAX];
    double lowest, highest;
    cs_grid_scale unit;
    const cs_run_figure *figure;
} spread;

static cs_status find_figure(spread *s, cs_error *error)
{
    const char *value = s->sheet->options->value;
    s->figure = cs_run_figure_find(value ? value : "iteration_time_s");
    for (uint32_t f = 0; cs_run_figure_main(f); f++)
        if (s->figure == cs_run_figure_main(f))
            return CS_OK;
    return cs_error_add(error, CS_USAGE,
                        "spread: --value must be iteration_time_s, throughput_samples_per_s, "
                        "makespan_s or bubble_fraction (got %s)",
                        value);
}

static cs_status read_run(spread *s, uint32_t r, cs_error *error)
{
    char name[96];
    const double *values;
    const char *const *groups;
    uint32_t n_groups = 0;
    cs_reader *reader = s->sheet->readers[r];
    const cs_reader_column column = {name, CS_READER_DOUBLE, &values};
    uint64_t n = 0;
    snprintf(name, sizeof(name), "runs/%.80s", s->figure->key);
    CS_TRY(cs_reader_names(reader, "/", "runs", &groups, &n_groups, error));
    if (n_groups == 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: runs: is not there; `sim run --runs N` makes several",
                            reader->path);
    CS_TRY(cs_reader_read(reader, &column, 1, &n, error));
    s->values[r] = malloc((n + 1) * sizeof(*s->values[r]));
    if (!s->values[r])
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            s->values[r][s->n[r]++] = values[i];
    if (s->n[r] == 0)
        return cs_error_add(error, CS_INVALID, "%s: %s: has no value", reader->path, name);
    qsort(s->values[r], s->n[r], sizeof(*s->values[r]), cs_number_compare);
    s->lowest = fmin(s->lowest, s->values[r][0]);
    s->highest = fmax(s->highest, s->values[r][s->n[r] - 1]);
    return CS_OK;
}

/* Interpolates linearly between the two nearest ranks, as `sim run --runs` does. */
static double percentile(const spread *s, uint32_t r, double share)
{
    const double place = share * (double)(s->n[r] - 1);
    const uint64_t below = (uint64_t)floor(place);
    const uint64_t above = below + 1 < s->n[r] ? below + 1 : below;
    const double *v = s->values[r];
    return v[below] + (place - (double)below) * (v[above] - v[below]);
}

/* Writes the points of each row at varying heights, so that neighbouring values do not overlap. */
static void write_points(const spread *s, FILE *out)
{
    enum { LEVELS = 7 };
    for (uint32_t r = 0; r < s->sheet->n_readers; r++)
        for (uint64_t i = 0; i < s->n[r]; i++)
            fprintf(out, "%.12g %.6g\n", s->values[r][i] / s->unit.unit,
                    r + 0.72 + 0.2 * (double)(i * 3 % LEVELS) / (LEVELS - 1));
}

/* Writes, per row: percentiles 5, 25, 50, 75 and 95, row number, name. */
static void write_boxes(const spread *s, FILE *out)
{
    static const double shares[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    for (uint32_t r = 0; r < s->sheet->n_readers; r++) {
        char name[128];
        for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
            fprintf(out, "%.12g ", percentile(s, r, shares[i]) / s->unit.unit);
        fprintf(out, "%u ", r);
        cs_sheet_quote(out, cs_sheet_run_name(s->sheet, r, name, sizeof(name)));
        fputc('\n', out);
    }
}

static void lay_out(spread *s)
{
    cs_sheet *sheet = s->sheet;
    char title[200], subtitle[200], name[128], axis[160];
    double widest = 0;
    uint64_t n = 0;
    for (uint32_t r = 0; r < sheet->n_readers; r++) {
        widest = fmax(widest, cs_sheet_text_width(cs_sheet_run_name(sheet, r, name, sizeof(name)),
                                                  CS_SHEET_FONT));
        n += s->n[r];
    }
    sheet->left = CS_SHEET_MARGIN + (sheet->n_readers > 1 ? widest + 8 : 4);
    cs_text_format(title, sizeof(title), "%.80s: %.80s of repeated runs", sheet->reader->name,
                   s->figure->label);
    snprintf(subtitle, sizeof(subtitle), "%llu runs", (unsigned long long)n);
    cs_sheet_title(sheet, title, subtitle);
    const cs_legend_entry entries[] = {{.text = "box: quartiles and median"},
                                       {.text = "line: 5th to 95th percentile"},
                                       {.text = "points: runs"}};
    cs_sheet_legend(sheet, entries, sizeof(entries) / sizeof(entries[0]));
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + sheet->bottom + sheet->n_readers * ROW);
    const double range = s->highest > s->lowest ? s->highest - s->lowest : fabs(s->highest) / 10;
    const double room = 0.04 * (range > 0 ? range : 1);
    cs_gnuplot_number(sheet->job, "first", (s->lowest - room) / s->unit.unit);
    cs_gnuplot_number(sheet->job, "last", (s->highest + room) / s->unit.unit);
    cs_gnuplot_number(sheet->job, "named", sheet->n_readers > 1);
    cs_gnuplot_number(sheet->job, "n_runs", sheet->n_readers);
    snprintf(axis, sizeof(axis), *s->unit.name ? "%s (%s)" : "%s%s", s->figure->label,
             s->unit.name);
    cs_sheet_axis_titles(sheet, axis, sheet->width - sheet->left, "", 100);
}

cs_status cs_plot_spread(cs_sheet *sheet, const char *output, cs_error *error)
{
    spread s = {.sheet = sheet, .lowest = INFINITY, .highest = -INFINITY};
    cs_status status = find_figure(&s, error);
    for (uint32_t r = 0; r < sheet->n_readers && status == CS_OK; r++)
        status = read_run(&s, r, error);
    if (status == CS_OK) {
        s.unit = cs_grid_scale_of(cs_unit_word(s.figure->unit), s.highest);
        lay_out(&s);
        write_points(&s, cs_gnuplot_file(sheet->job, "points.dat"));
        write_boxes(&s, cs_gnuplot_file(sheet->job, "boxes.dat"));
    }
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        free(s.values[r]);
    return status == CS_OK ? cs_sheet_draw(sheet, output, "spread.gp", error) : status;
}
