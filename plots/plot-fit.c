#include "plots/plot-fit.h"

#include "sim/base/text.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 560,
    HEIGHT = 420,
    SERIES_MAX = 7,
    SAMPLES = 24,    /* samples per regime of a fitted line, which is curved on logarithmic axes */
    RESIDUALS = 110, /* height of the lower panel */
    GAP = 26,
    LABEL = 56, /* width of a label such as "256 MiB", including the gap to the next one */
    /* residuals are shown up to this multiple of a regime's error; larger ones are drawn at the
     * edge */
    SHOWN = 4,
};

/* The most distinct of Okabe and Ito's colours. */
static const uint32_t colours[SERIES_MAX] = {0x0072B2, 0xE69F00, 0x009E73, 0xD55E00,
                                             0x56B4E9, 0xCC79A7, 0x101010};

typedef struct fit_plot {
    cs_sheet *sheet;
    const cs_costs *costs;
    const cs_cost_network *series[SERIES_MAX];
    uint32_t n;
    double least_bytes, most_bytes, least_seconds, most_seconds, most_residual;
} fit_plot;

static double residual(const cs_cost_network *of, int64_t bytes, double seconds)
{
    return 100 * (seconds / cs_cost_seconds(of, bytes) - 1);
}

static const cs_cost_regime *regime_of(const cs_cost_network *of, int64_t bytes)
{
    uint32_t r = 0;
    while (r + 1 < of->n_regimes && bytes >= of->regimes[r + 1].from)
        r++;
    return &of->regimes[r];
}

/* Whether a point is an outlier. The fit states how many points of each regime hardly counted; they
 * are the points farthest from the line. */
static bool is_outlier(const cs_cost_network *of, uint32_t point)
{
    const cs_cost_regime *regime = regime_of(of, of->points[point].bytes);
    const cs_cost_point *at = of->points;
    const double off = fabs(residual(of, at[point].bytes, at[point].seconds));
    uint32_t farther = 0;
    for (uint32_t i = 0; i < of->n_points && regime->outliers > 0; i++) {
        const double other = fabs(residual(of, at[i].bytes, at[i].seconds));
        farther += regime_of(of, of->points[i].bytes) == regime &&
                   (other > off || (other == off && i < point));
    }
    return farther < regime->outliers;
}

static void widen(fit_plot *p, const cs_cost_network *of)
{
    for (uint32_t i = 0; i < of->n_points; i++) {
        const double bytes = fmax((double)of->points[i].bytes, 1);
        p->least_bytes = fmin(p->least_bytes, bytes);
        p->most_bytes = fmax(p->most_bytes, bytes);
        p->least_seconds = fmin(p->least_seconds, of->points[i].seconds);
        p->most_seconds = fmax(p->most_seconds, of->points[i].seconds);
    }
    /* outliers are ignored: their residuals would flatten all others */
    for (uint32_t r = 0; r < of->n_regimes; r++)
        p->most_residual = fmax(p->most_residual, 100 * SHOWN * of->regimes[r].error);
}

/* Chooses the entries with points; if --value names a collective, only its entries. */
static cs_status choose(fit_plot *p, cs_error *error)
{
    const cs_plot_options *options = p->sheet->options;
    uint32_t n = 0;
    p->least_bytes = p->least_seconds = INFINITY;
    for (uint32_t i = 0; i < p->costs->n_network; i++) {
        const cs_cost_network *at = &p->costs->network[i];
        const char *name = cs_cost_collective_names[at->collective];
        if (at->n_points == 0 || (options->value && strcmp(options->value, name) != 0))
            continue;
        if (n++ < SERIES_MAX) {
            p->series[p->n++] = at;
            widen(p, at);
        }
    }
    p->most_residual = fmax(p->most_residual, 0.5);
    if (n > SERIES_MAX)
        return cs_error_add(error, CS_USAGE, "fit: %s has %u fits; name a collective with --value",
                            options->input, n);
    return n > 0 ? CS_OK
                 : cs_error_add(error, CS_INVALID, "%s: has no fits with their points%s%s",
                                options->input, options->value ? " of " : "",
                                options->value ? options->value : "");
}

/* ---- data ---- */

/* Writes the 95 % confidence interval of a median as residuals, clipped to the panel; "NaN NaN" if
 * it is unknown. */
static void write_interval(const fit_plot *p, const cs_cost_network *of, const cs_cost_point *point,
                           FILE *out)
{
    const double most = p->most_residual;
    const double low = residual(of, point->bytes, point->low);
    const double high = residual(of, point->bytes, point->high);
    if (point->samples > 0 && low <= most && high >= -most)
        fprintf(out, "%.12g %.12g\n", fmax(low, -most), fmin(high, most));
    else
        fputs("NaN NaN\n", out);
}

static void write_points(const fit_plot *p, FILE *out)
{
    for (uint32_t s = 0; s < p->n; s++) {
        const cs_cost_network *of = p->series[s];
        for (uint32_t i = 0; i < of->n_points; i++) {
            const cs_cost_point *point = &of->points[i];
            const double off = residual(of, point->bytes, point->seconds), most = p->most_residual;
            fprintf(out, "%.12g %.12g %.12g %d %d ", fmax((double)point->bytes, 1), point->seconds,
                    fmin(fmax(off, -most), most), fabs(off) > most, is_outlier(of, i));
            write_interval(p, of, point, out);
        }
        fputs("\n\n", out);
    }
}

/* Writes the fitted lines. An empty line separates regimes, as each ends where the next begins. */
static void write_lines(const fit_plot *p, FILE *out)
{
    for (uint32_t s = 0; s < p->n; s++) {
        const cs_cost_network *of = p->series[s];
        for (uint32_t r = 0; r < of->n_regimes; r++) {
            const cs_cost_regime *regime = &of->regimes[r];
            const double from = fmax((double)regime->from, p->least_bytes);
            const double to =
                r + 1 < of->n_regimes ? (double)of->regimes[r + 1].from : p->most_bytes;
            for (int i = 0; i <= SAMPLES && to >= from; i++) {
                const double bytes = from * pow(to / from, (double)i / SAMPLES);
                fprintf(out, "%.12g %.12g\n", bytes,
                        regime->alpha.value + regime->beta.value * bytes);
            }
            fputc('\n', out);
        }
        fputc('\n', out);
    }
}

/* ---- sheet ---- */

static void lay_out(const fit_plot *p)
{
    cs_sheet *sheet = p->sheet;
    cs_legend_entry entries[SERIES_MAX + 2];
    uint32_t outliers = 0;
    char labels[SERIES_MAX][80];
    sheet->width = sheet->asked_width > 0 ? sheet->asked_width : WIDTH;
    sheet->height = sheet->asked_height > 0 ? sheet->asked_height : HEIGHT;
    sheet->left = 84;
    for (uint32_t i = 0; i < p->n; i++) {
        const cs_cost_network *of = p->series[i];
        snprintf(labels[i], sizeof(labels[i]), "%s, %u ranks, %s, %u regime%s",
                 cs_cost_collective_names[of->collective], of->ranks,
                 cs_cost_level_names[of->level], of->n_regimes, of->n_regimes == 1 ? "" : "s");
        entries[i] = (cs_legend_entry){labels[i], colours[i], colours[i], true};
    }
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t r = 0; r < p->series[i]->n_regimes; r++)
            outliers += p->series[i]->regimes[r].outliers;
    uint32_t n = p->n;
    if (outliers > 0) {
        entries[n++] = (cs_legend_entry){.text = "circle: counts; cross: outlier, left out"};
        entries[n++] = (cs_legend_entry){.text = "triangle: beyond the edge"};
    }
    const cs_cost_source *source = &p->costs->sources[p->series[0]->source];
    char subtitle[300];
    cs_text_format(subtitle, sizeof(subtitle), "%.120s; %.80s; %.16s", source->device,
                   source->source, source->date);
    cs_sheet_title(sheet, "alpha + beta x bytes: timings, fits and residuals", subtitle);
    cs_sheet_legend(sheet, entries, n);
    sheet->top += 10;
}

static void write_numbers(const fit_plot *p)
{
    cs_gnuplot *job = p->sheet->job;
    const double middle = p->sheet->height - p->sheet->bottom - RESIDUALS;
    char text[SERIES_MAX * 12] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < p->n; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%u ", colours[i]);
    cs_gnuplot_number(job, "n_series", p->n);
    cs_gnuplot_number(job, "bytes_step",
                      fmax(2, 2 * ceil(LABEL * log2(p->most_bytes / p->least_bytes) /
                                       (p->sheet->width - p->sheet->left) / 2)));
    cs_gnuplot_number(job, "x_first", p->least_bytes / 1.4);
    cs_gnuplot_number(job, "x_last", p->most_bytes * 1.4);
    cs_gnuplot_number(job, "y_lowest", p->least_seconds / 1.5);
    cs_gnuplot_number(job, "y_highest", p->most_seconds * 1.5);
    cs_gnuplot_number(job, "residual_most", 1.15 * p->most_residual);
    cs_gnuplot_number(job, "middle", middle);
    cs_gnuplot_number(job, "upper_end", middle - GAP);
    cs_gnuplot_text(job, "colours", text);
    cs_sheet_axis_titles(p->sheet, "bytes", p->sheet->width, "time", p->sheet->height);
}

cs_status cs_plot_fit(cs_sheet *sheet, const cs_costs *costs, const char *output, cs_error *error)
{
    fit_plot p = {.sheet = sheet, .costs = costs};
    CS_TRY(choose(&p, error));
    lay_out(&p);
    write_numbers(&p);
    write_points(&p, cs_gnuplot_file(sheet->job, "points.dat"));
    write_lines(&p, cs_gnuplot_file(sheet->job, "fits.dat"));
    return cs_sheet_draw(sheet, output, "fit.gp", error);
}
