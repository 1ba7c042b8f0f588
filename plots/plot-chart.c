#include "plots/plot-chart.h"

#include "plots/output.h"
#include "plots/sheet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 1000, ONE_HEIGHT = 250, GAP_ACROSS = 58, GAP_DOWN = 56, WORD = 9, X_TITLE = 10 };

static const uint32_t colours[CS_CHART_NAMES_MAX] = {0x0072B2, 0xD55E00, 0x009E73, 0xE69F00,
                                                     0xCC79A7, 0x56B4E9, 0x101010, 0x8C564B,
                                                     0x7F7F7F, 0xB8A900};

typedef struct drawing {
    const cs_chart *chart;
    cs_sheet *sheet;
    const char *names[CS_CHART_NAMES_MAX];
    uint32_t n_names;
    double lowest_x, highest_x, lowest_y, highest_y;
} drawing;

/* ---- names and ranges ---- */

static uint32_t find_name(const drawing *d, const char *name)
{
    uint32_t i = 0;
    while (i < d->n_names && strcmp(d->names[i], name) != 0)
        i++;
    return i;
}

static cs_status collect_names(drawing *d, cs_error *error)
{
    for (uint32_t p = 0; p < d->chart->n_panels; p++) {
        const cs_chart_panel *panel = &d->chart->panels[p];
        for (uint32_t s = 0; s < panel->n_series; s++) {
            const uint32_t found = find_name(d, panel->series[s].name);
            if (found == CS_CHART_NAMES_MAX)
                return cs_error_add(error, CS_USAGE, "a chart has at most %d names of series",
                                    CS_CHART_NAMES_MAX);
            if (found == d->n_names)
                d->names[d->n_names++] = panel->series[s].name;
        }
    }
    return CS_OK;
}

/* Extends a range to a value; a logarithmic axis shows only values above 0. */
static void extend(const drawing *d, double value, double *lowest, double *highest)
{
    if (!isfinite(value) || (d->chart->logarithmic && value <= 0))
        return;
    *lowest = fmin(*lowest, value);
    *highest = fmax(*highest, value);
}

static void find_ranges(drawing *d)
{
    d->lowest_x = d->lowest_y = INFINITY;
    d->highest_x = d->highest_y = -INFINITY;
    for (uint32_t p = 0; p < d->chart->n_panels; p++)
        for (uint32_t s = 0; s < d->chart->panels[p].n_series; s++) {
            const cs_chart_series *series = &d->chart->panels[p].series[s];
            for (uint32_t i = 0; i < series->n; i++) {
                extend(d, series->y[i], &d->lowest_y, &d->highest_y);
                if (!d->chart->bars)
                    extend(d, series->x[i], &d->lowest_x, &d->highest_x);
            }
        }
    if (d->chart->bars) {
        d->lowest_x = -0.6;
        d->highest_x = d->chart->n_names - 0.4;
    }
    if (!(d->lowest_x < d->highest_x))
        d->highest_x = (d->lowest_x = isfinite(d->lowest_x) ? d->lowest_x / 2 : 0) * 4 + 1;
    if (d->chart->logarithmic) {
        d->lowest_y = isfinite(d->lowest_y) ? d->lowest_y / 1.3 : 0.1;
        d->highest_y = isfinite(d->highest_y) ? d->highest_y * 1.3 : 1;
    } else {
        d->lowest_y = d->lowest_y < 0 ? 1.08 * d->lowest_y : 0;
        d->highest_y = d->highest_y > 0 ? 1.08 * d->highest_y : 1;
    }
}

/* ---- data ---- */

static FILE *file_of(const drawing *d, const char *name, uint32_t panel)
{
    char file[32];
    snprintf(file, sizeof(file), "%s-%u.dat", name, panel + 1);
    FILE *out = cs_gnuplot_file(d->sheet->job, file);
    fputs("NaN NaN NaN NaN 0\n\n", out); /* so that no file is empty */
    return out;
}

static void write_lines(const drawing *d, uint32_t p, bool dashed)
{
    const cs_chart_panel *panel = &d->chart->panels[p];
    FILE *out = file_of(d, dashed ? "dashed" : "solid", p);
    for (uint32_t s = 0; s < panel->n_series && !d->chart->bars; s++) {
        const cs_chart_series *series = &panel->series[s];
        for (uint32_t i = 0; i < series->n && series->dashed == dashed; i++)
            fprintf(out, isfinite(series->y[i]) ? "%.12g %.12g %u\n" : "\n", series->x[i],
                    series->y[i], colours[find_name(d, series->name)]);
        fputs("\n", out);
    }
}

/* Returns the left edge of a bar. The bars of a group stand next to each other in the order of the
 * legend. */
static double bar_left(const cs_chart_panel *panel, uint32_t s, uint32_t i)
{
    return i - 0.4 + 0.8 * s / panel->n_series;
}

static void write_bars(const drawing *d, uint32_t p)
{
    const cs_chart_panel *panel = &d->chart->panels[p];
    FILE *out = file_of(d, "bars", p);
    for (uint32_t s = 0; s < panel->n_series && d->chart->bars; s++) {
        const cs_chart_series *series = &panel->series[s];
        for (uint32_t i = 0; i < series->n; i++) {
            const double left = bar_left(panel, s, i);
            if (isfinite(series->y[i]))
                fprintf(out, "%.6g %.6g 0 %.12g %u\n", left, left + 0.8 / panel->n_series,
                        series->y[i], colours[find_name(d, series->name)]);
        }
    }
}

static void write_words(const drawing *d, uint32_t p)
{
    const cs_chart_panel *panel = &d->chart->panels[p];
    FILE *out = file_of(d, "words", p);
    for (uint32_t s = 0; s < panel->n_series && d->chart->bars; s++) {
        const cs_chart_series *series = &panel->series[s];
        for (uint32_t i = 0; series->words && i < series->n; i++) {
            if (isfinite(series->y[i]) || !series->words[i])
                continue;
            fprintf(out, "%.6g %.6g ", bar_left(panel, s, i) + 0.4 / panel->n_series,
                    0.02 * d->highest_y);
            cs_sheet_quote(out, series->words[i]);
            fprintf(out, " %u\n", colours[find_name(d, series->name)]);
        }
    }
}

static void write_names(const drawing *d)
{
    FILE *out = cs_gnuplot_file(d->sheet->job, "names.dat");
    for (uint32_t i = 0; i < d->chart->n_names; i++) {
        fprintf(out, "%u ", i);
        cs_sheet_quote(out, d->chart->names[i]);
        fputs("\n", out);
    }
}

static void write_data(const drawing *d)
{
    for (uint32_t p = 0; p < d->chart->n_panels; p++) {
        write_lines(d, p, false);
        write_lines(d, p, true);
        write_bars(d, p);
        write_words(d, p);
    }
    write_names(d);
}

/* ---- the sheet ---- */

static void write_legend(const drawing *d)
{
    cs_legend_entry entries[CS_CHART_NAMES_MAX];
    for (uint32_t i = 0; i < d->n_names; i++)
        entries[i] = (cs_legend_entry){
            .text = d->names[i], .colour = colours[i], .other = colours[i], .exact = true};
    cs_sheet_legend(d->sheet, entries, d->n_names);
}

/* Decides whether the names below bars have to be upright because they would touch. Returns the
 * additional height that the longest name then takes. */
static double turn_names(const drawing *d, double width)
{
    double longest = 0;
    for (uint32_t i = 0; i < d->chart->n_names; i++)
        longest = fmax(longest, cs_sheet_text_width(d->chart->names[i], CS_SHEET_FONT));
    const bool turned = d->chart->bars && longest * d->chart->n_names > 0.95 * width;
    cs_gnuplot_number(d->sheet->job, "turned", turned);
    return turned ? fmax(longest - CS_SHEET_FONT, 0) : 0;
}

/* Places the panels. Passes the left, right, top and bottom edges of all panels to gnuplot as lists
 * of words. */
static void lay_out(const drawing *d)
{
    const cs_chart *chart = d->chart;
    cs_sheet *sheet = d->sheet;
    const uint32_t columns =
        chart->n_columns < chart->n_panels ? chart->n_columns : chart->n_panels;
    const uint32_t rows = (chart->n_panels + columns - 1) / columns;
    char lists[4][1024] = {"", "", "", ""};
    sheet->left = 70;
    sheet->top += 22;
    const double room = sheet->width - sheet->left - sheet->right;
    const double width = (room - GAP_ACROSS * (columns - 1.)) / columns;
    const double names = turn_names(d, width), high = rows > 1 ? 0.8 * ONE_HEIGHT : ONE_HEIGHT;
    sheet->bottom += names - (*chart->x_title ? 0 : X_TITLE);
    const double down = high + GAP_DOWN + names;
    sheet->height = ceil(sheet->top + rows * down - GAP_DOWN - names + sheet->bottom);
    for (uint32_t p = 0; p < chart->n_panels; p++) {
        const double left = sheet->left + (p % columns) * (width + GAP_ACROSS);
        const double top = sheet->top + floor(p / columns) * down;
        const double edges[4] = {left, left + width, top, top + high};
        for (int e = 0; e < 4; e++) {
            const size_t used = strlen(lists[e]);
            snprintf(lists[e] + used, sizeof(lists[e]) - used, "%.6g ", edges[e]);
        }
        cs_sheet_text(sheet, left, top - 10, CS_COLOUR_TEXT, chart->panels[p].title);
    }
    static const char *const words[4] = {"lefts", "rights", "tops", "bottoms"};
    for (int e = 0; e < 4; e++)
        cs_gnuplot_text(sheet->job, words[e], lists[e]);
    cs_gnuplot_number(sheet->job, "n_columns", columns);
}

static void write_parameters(const drawing *d)
{
    const cs_chart *chart = d->chart;
    cs_gnuplot *job = d->sheet->job;
    cs_gnuplot_text(job, "x_title", chart->x_title);
    cs_gnuplot_text(job, "y_title", chart->y_title);
    cs_gnuplot_number(job, "n_panels", chart->n_panels);
    cs_gnuplot_number(job, "bars", chart->bars);
    cs_gnuplot_number(job, "logarithmic", chart->logarithmic);
    cs_gnuplot_number(job, "x_lowest", d->lowest_x);
    cs_gnuplot_number(job, "x_highest", d->highest_x);
    cs_gnuplot_number(job, "y_lowest", d->lowest_y);
    cs_gnuplot_number(job, "y_highest", d->highest_y);
    cs_gnuplot_number(job, "word_size", WORD);
}

static cs_status draw_chart(const void *what, cs_gnuplot *job, const char *path, cs_error *error)
{
    static const cs_plot_options options = {.kind = "chart", .width = WIDTH};
    cs_sheet sheet;
    drawing d = {.chart = what, .sheet = &sheet};
    cs_sheet_init_plain(&sheet, &options, job);
    CS_TRY(collect_names(&d, error));
    cs_sheet_title(&sheet, d.chart->title, d.chart->subtitle);
    write_legend(&d);
    find_ranges(&d);
    lay_out(&d);
    write_parameters(&d);
    write_data(&d);
    return cs_sheet_draw(&sheet, path, "chart.gp", error);
}

cs_status cs_plot_chart_draw(const cs_chart *chart, const char *output, cs_error *error)
{
    return cs_plot_output(draw_chart, chart, output, error);
}
