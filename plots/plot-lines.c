#include "plots/grid.h"

#include "sim/base/number.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdlib.h>

enum {
    WIDTH = 480,
    HEIGHT = 320,
    LEAST_AREA = 160,  /* minimum height between the axes unless the options set a height */
    POINTS_SHOWN = 40, /* lines with more points have only about MARKED of them marked */
    MARKED = 8,
    LABELLED = 12, /* if the first key has at most this many numbers, all are labelled */
    LINES_MAX = 64,
    FEW = 7,
    LABEL_GAP = 6,
};

typedef struct lines {
    cs_sheet *sheet;
    cs_sheet_grid grid;
    uint32_t n; /* number of lines */
    int turn;   /* rotation of the labels below, in degrees */
    bool logarithmic;
    bool bars; /* the first key's values are names, so nothing lies between two of them */
    double left, right, low, high; /* ranges of the axes, in their units */
} lines;

/* Returns the colour of a line: a few lines get very different colours, many get shades in their
 * order. */
static uint32_t colour_of(const lines *l, uint32_t line)
{
    static const uint32_t few[FEW] = {0x0072B2, 0xE69F00, 0x009E73, 0xD55E00,
                                      0x56B4E9, 0xCC79A7, 0x101010};
    if (l->n <= FEW)
        return few[line];
    return cs_palette_sequential(0.95 * line / (l->n - 1));
}

/* Point types of a line, which distinguish lines in addition to colours. Hollow points ran out of
 * memory. */
typedef struct shape {
    int full, hollow; /* gnuplot's point types */
} shape;

static shape shape_of(const lines *l, uint32_t line)
{
    static const shape shapes[FEW] = {{7, 6}, {5, 4}, {9, 8}, {13, 12}, {11, 10}, {15, 14}, {7, 6}};
    return shapes[l->n <= FEW ? line : 0];
}

/* ---- axes ---- */

/* Returns the position of a value of the first key: a number's value, or a text's index. */
static double place_of(const lines *l, uint32_t i)
{
    const double *numbers = l->grid.axes[0].numbers;
    return numbers ? numbers[i] : i;
}

/* Whether the axis should be logarithmic: the ratios of neighbouring values vary less than their
 * differences. */
static bool is_geometric(const cs_grid_axis *axis, const double *sorted)
{
    double least_ratio = INFINITY, most_ratio = 0, least_step = INFINITY, most_step = 0;
    if (!axis->numbers || axis->n < 3 || sorted[0] <= 0)
        return false;
    for (uint32_t i = 1; i < axis->n; i++) {
        double ratio = log(sorted[i] / sorted[i - 1]), step = sorted[i] - sorted[i - 1];
        least_ratio = fmin(least_ratio, ratio);
        most_ratio = fmax(most_ratio, ratio);
        least_step = fmin(least_step, step);
        most_step = fmax(most_step, step);
    }
    return least_ratio * most_step > most_ratio * least_step * 1.5;
}

/* Returns the position half-way to the next value (`by` 0.5) or to the previous one (-0.5). */
static double across_of(const lines *l, uint32_t i, double by)
{
    const uint32_t n = l->grid.axes[0].n;
    const double own = place_of(l, i);
    if ((by < 0 && i == 0) || (by > 0 && i + 1 == n))
        return by < 0 ? l->left : l->right;
    const double other = place_of(l, by < 0 ? i - 1 : i + 1);
    return l->logarithmic ? sqrt(own * other) : (own + other) / 2;
}

static cs_status choose_across(lines *l, cs_error *error)
{
    uint32_t n = l->grid.axes[0].n;
    double *sorted = malloc((n + 1ULL) * sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = place_of(l, i);
    qsort(sorted, n, sizeof(*sorted), cs_number_compare);
    l->logarithmic = is_geometric(&l->grid.axes[0], sorted);
    double first = sorted[0], last = sorted[n - 1], room = l->bars ? 0.55 : 0.03 * (last - first);
    free(sorted);
    if (first == last && !l->bars)
        room = first != 0 ? fabs(first) / 2 : 1;
    double ratio = l->logarithmic ? pow(last / first, 0.03) : 1;
    l->left = l->logarithmic ? first / ratio : first - room;
    l->right = l->logarithmic ? last * ratio : last + room;
    return CS_OK;
}

/* Extends the range to the capacity unless the capacity is far above all values. */
static void include_capacity(const lines *l, double *high)
{
    double capacity = 0;
    for (uint64_t i = 0; i < l->grid.n && l->grid.capacities; i++)
        if (isfinite(l->grid.capacities[i]))
            capacity = fmax(capacity, l->grid.capacities[i]);
    if (capacity > *high && capacity <= 2 * *high)
        *high = capacity;
}

/* Chooses the range of the vertical axis. Includes 0 if it is close, and always for bars, so that
 * their lengths can be compared. */
static void choose_upwards(lines *l)
{
    double low = l->grid.lowest, high = l->grid.highest;
    include_capacity(l, &high);
    if (low >= 0 && (low < 0.6 * high || l->bars))
        low = 0;
    if (high <= 0 && (high > 0.6 * low || l->bars))
        high = 0;
    double room = high > low ? 0.05 * (high - low) : fmax(fabs(high) / 2, 1);
    l->low = low == 0 && high > 0 ? 0 : low - room;
    l->high = high == 0 && low < 0 ? 0 : high + room;
}

/* ---- data ---- */

/* One point of a line; y is NaN before the first and after the last point. */
typedef struct point {
    double x, y;
    cs_grid_state state;
} point;

static point point_at(const lines *l, uint32_t line, int64_t i)
{
    if (i < 0 || i >= l->grid.axes[0].n)
        return (point){.y = NAN};
    const uint64_t at = (uint64_t)i * l->n + line;
    return (point){place_of(l, (uint32_t)i), l->grid.values[at], (cs_grid_state)l->grid.states[at]};
}

/* How two neighbouring points are connected. */
typedef enum link { LINK_NONE, LINK_DASHED, LINK_SOLID } link;

static link link_of(const lines *l, point a, point b)
{
    if (l->bars || !isfinite(a.y) || !isfinite(b.y))
        return LINK_NONE;
    return a.state == CS_GRID_FITS && b.state == CS_GRID_FITS ? LINK_SOLID : LINK_DASHED;
}

static void write_links(const lines *l, link wanted, FILE *out)
{
    for (uint32_t line = 0; line < l->n; line++) {
        fputs("NaN NaN\n", out); /* so that every line has a block */
        bool begun = false;
        for (int64_t i = 0; i < l->grid.axes[0].n; i++) {
            const point a = point_at(l, line, i), b = point_at(l, line, i + 1);
            const bool goes_on = link_of(l, a, b) == wanted;
            if (goes_on && !begun)
                fprintf(out, "\n%.12g %.12g\n", a.x, a.y);
            if (goes_on)
                fprintf(out, "%.12g %.12g\n", b.x, b.y);
            begun = goes_on;
        }
        fputs("\n\n", out);
    }
}

static void write_solid(const lines *l, FILE *out)
{
    write_links(l, LINK_SOLID, out);
}

static void write_dashed(const lines *l, FILE *out)
{
    write_links(l, LINK_DASHED, out);
}

/* Writes the marked points. If there are many points, marks only a few per line, which distinguish
 * the lines, and all points without a line segment of their own kind (solid if the point fits,
 * otherwise dashed). */
static void write_points(const lines *l, FILE *out)
{
    const uint32_t n = l->grid.axes[0].n, step = n <= POINTS_SHOWN ? 1 : n / MARKED;
    for (uint32_t line = 0; line < l->n; line++) {
        fputs("NaN NaN 0\n", out);
        for (int64_t i = 0; i < l->grid.axes[0].n; i++) {
            const point before = point_at(l, line, i - 1), at = point_at(l, line, i),
                        behind = point_at(l, line, i + 1);
            const link own = at.state == CS_GRID_FITS ? LINK_SOLID : LINK_DASHED;
            const bool marked = (uint64_t)i % step == line * step / l->n;
            if (isfinite(at.y) && !l->bars &&
                (marked || (link_of(l, before, at) != own && link_of(l, at, behind) != own)))
                fprintf(out, "%.12g %.12g %d\n", at.x, at.y, at.state);
        }
        fputs("\n\n", out);
    }
}

/* Returns the left edge of a bar in axis positions; bars of the same name stand next to each
 * other. */
static double bar_left(const lines *l, uint32_t i, uint32_t line)
{
    const double width = 0.8 / l->n;
    return place_of(l, i) - 0.4 + width * line + (l->n > 1 ? 0.04 * width : 0);
}

static double bar_right(const lines *l, uint32_t i, uint32_t line)
{
    return bar_left(l, i, line) + 0.8 / l->n * (l->n > 1 ? 0.92 : 1);
}

static void write_bars(const lines *l, FILE *out)
{
    fputs("NaN NaN NaN NaN 0 0 0\n", out);
    for (uint32_t i = 0; i < l->grid.axes[0].n && l->bars; i++)
        for (uint32_t line = 0; line < l->n; line++) {
            const point at = point_at(l, line, i);
            if (isfinite(at.y))
                fprintf(out, "%.12g %.12g %.12g %.12g %u %d %u\n", bar_left(l, i, line),
                        bar_right(l, i, line), fmin(at.y, 0), fmax(at.y, 0), colour_of(l, line),
                        at.state, line + 1);
        }
}

static double capacity_of(const lines *l, uint32_t i, uint32_t line)
{
    return l->grid.capacities[(uint64_t)i * l->n + line];
}

static bool same_capacity(const lines *l, uint32_t line, uint32_t other)
{
    for (uint32_t i = 0; i < l->grid.axes[0].n; i++)
        if (!(capacity_of(l, i, line) == capacity_of(l, i, other)))
            return false;
    return true;
}

static double capacity_end(const lines *l, uint32_t i, double by)
{
    return l->bars ? place_of(l, i) + by : across_of(l, i, by);
}

/* Writes the capacity as horizontal lines, one for each run of points with the same capacity. */
static void write_capacity(const lines *l, FILE *out)
{
    const uint32_t n = l->grid.axes[0].n;
    fputs("NaN NaN 0\n", out);
    for (uint32_t line = 0; line < l->n && l->grid.capacities; line++) {
        if (line > 0 && same_capacity(l, line, line - 1))
            continue;
        for (uint32_t i = 0, end; i < n; i = end) {
            const double capacity = capacity_of(l, i, line);
            for (end = i + 1; end < n && capacity_of(l, end, line) == capacity;)
                end++;
            const double first = capacity_end(l, i, -0.5), last = capacity_end(l, end - 1, 0.5);
            if (isfinite(capacity) && capacity <= l->high)
                fprintf(out, "%.12g %.12g %.12g\n", first, capacity, last - first);
        }
    }
}

/* Marks points that failed, or ran out of memory and have no value, at the foot of the plot; marks
 * of several lines are stacked. */
static void write_foot(const lines *l, FILE *out)
{
    enum { FIRST = 6, NEXT = 10 };
    const double height = l->sheet->height - l->sheet->top - l->sheet->bottom;
    const double unit = (l->high - l->low) / fmax(height, 1);
    for (uint32_t i = 0; i < l->grid.axes[0].n; i++) {
        uint32_t n = 0;
        for (uint32_t line = 0; line < l->n; line++) {
            const point at = point_at(l, line, i);
            if (isfinite(at.y) || at.state == CS_GRID_FITS)
                continue;
            const double above = fmin(FIRST + NEXT * (l->bars ? 0 : n++), height);
            cs_sheet_mark(out, l->bars ? (bar_left(l, i, line) + bar_right(l, i, line)) / 2 : at.x,
                          l->low + above * unit,
                          at.state == CS_GRID_FAILED ? CS_SIGN_CROSS : CS_SIGN_RING,
                          colour_of(l, line));
        }
    }
}

/* Whether labels are placed here: for texts, and for a few numbers. Otherwise gnuplot chooses
 * them. */
static bool labels_itself(const lines *l)
{
    const cs_grid_axis *x = &l->grid.axes[0];
    double room = (l->sheet->width - l->sheet->left - l->sheet->right) / x->n;
    return !x->numbers || (x->n <= LABELLED && (l->logarithmic || room > 2 * x->widest));
}

/* Returns the horizontal position of a value of the first key, in points. */
static double across(const lines *l, uint32_t i)
{
    const cs_sheet *sheet = l->sheet;
    double width = sheet->width - sheet->left - sheet->right;
    double at = l->logarithmic ? log(place_of(l, i) / l->left) / log(l->right / l->left)
                               : (place_of(l, i) - l->left) / (l->right - l->left);
    return sheet->left + at * width;
}

/* Writes the labels of the first key: of all texts, but only of numbers that have room. */
static void write_labels(const lines *l, FILE *out)
{
    const cs_sheet *sheet = l->sheet;
    const cs_grid_axis *x = &l->grid.axes[0];
    const double below = l->turn ? CS_SHEET_FONT / 4. : CS_SHEET_FONT / 2.;
    double before = -INFINITY;
    for (uint32_t i = 0; i < x->n; i++) {
        double place = across(l, i), half = cs_sheet_text_width(x->labels[i], CS_SHEET_FONT) / 2;
        if (x->numbers && place - half < before + LABEL_GAP)
            continue;
        before = place + half;
        fprintf(out, "%.2f %.2f ", place, sheet->height - sheet->bottom + LABEL_GAP + below);
        cs_sheet_quote(out, x->labels[i]);
        fputc('\n', out);
    }
}

static void write_looks(const lines *l)
{
    char colours[LINES_MAX * 12] = "", full[LINES_MAX * 4] = "", hollow[LINES_MAX * 4] = "";
    size_t used = 0, of_full = 0, of_hollow = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const shape own = shape_of(l, i);
        used += (size_t)snprintf(colours + used, sizeof(colours) - used, "%u ", colour_of(l, i));
        of_full += (size_t)snprintf(full + of_full, sizeof(full) - of_full, "%d ", own.full);
        of_hollow +=
            (size_t)snprintf(hollow + of_hollow, sizeof(hollow) - of_hollow, "%d ", own.hollow);
    }
    cs_gnuplot_text(l->sheet->job, "colours", colours);
    cs_gnuplot_text(l->sheet->job, "full", full);
    cs_gnuplot_text(l->sheet->job, "hollow", hollow);
}

static void write_numbers(const lines *l)
{
    cs_gnuplot *job = l->sheet->job;
    /* each line is narrower than the one below, which therefore remains visible */
    double narrower = l->n > 1 && l->n <= FEW ? fmin(1.7, 6. / (l->n - 1)) : 0;
    cs_gnuplot_number(job, "n_lines", l->n);
    cs_gnuplot_number(job, "x_first", l->left);
    cs_gnuplot_number(job, "x_last", l->right);
    cs_gnuplot_number(job, "y_lowest", l->low);
    cs_gnuplot_number(job, "y_highest", l->high);
    cs_gnuplot_number(job, "logarithmic", l->logarithmic);
    cs_gnuplot_number(job, "own_labels", labels_itself(l));
    cs_gnuplot_number(job, "turn", l->turn);
    cs_gnuplot_number(job, "connected", !l->bars);
    cs_gnuplot_number(job, "broken", l->low > 0);
    cs_gnuplot_number(job, "has_capacity", l->grid.capacities != NULL);
    cs_gnuplot_number(job, "has_dashed", l->grid.out_of_memory > 0);
    cs_gnuplot_number(job, "has_foot", l->grid.out_of_memory + l->grid.failed > 0);
    cs_gnuplot_number(job, "widest", 1.3 + narrower * (l->n - 1));
    cs_gnuplot_number(job, "narrower", narrower);
    cs_gnuplot_number(job, "whole", l->grid.whole && l->high - l->low < 12);
    const cs_sheet *sheet = l->sheet;
    cs_sheet_axis_titles(l->sheet, l->grid.axes[0].title,
                         sheet->width - 2 * fmin(sheet->left, sheet->width / 4), l->grid.title,
                         sheet->height - sheet->top);
    write_looks(l);
}

/* ---- title and legend ---- */

static uint32_t add_series(const lines *l, char *title, size_t size, cs_legend_entry *entries)
{
    uint32_t n = 0;
    if (l->grid.rank < 2)
        return 0;
    cs_text_format(title, size, "%.62s:", l->grid.axes[1].title);
    entries[n++] = (cs_legend_entry){.text = title, .exact = true};
    for (uint32_t i = 0; i < l->n; i++)
        entries[n++] = (cs_legend_entry){
            .text = l->grid.axes[1].labels[i],
            .colour = colour_of(l, i),
            .other = colour_of(l, i),
            .exact = true,
            .sign = l->bars ? CS_SIGN_NONE : CS_SIGN_POINT + (unsigned)shape_of(l, i).full};
    return n;
}

enum { HATCHED = 0xE0E0E0 }; /* background of the legend's hatched swatch */

static cs_legend_entry sign_entry(const char *what, uint32_t n, cs_sheet_sign sign, char text[64])
{
    snprintf(text, 64, "%s (%u)", what, n);
    const uint32_t colour = sign == CS_SIGN_HATCHED ? HATCHED : CS_COLOUR_TEXT;
    return (cs_legend_entry){text, colour, colour, true, sign};
}

static void write_legend(const lines *l)
{
    cs_legend_entry entries[LINES_MAX + 4];
    char title[64], out_of_memory[64], failed[64];
    uint32_t n = add_series(l, title, sizeof(title), entries);
    if (l->grid.out_of_memory > 0)
        entries[n++] = sign_entry(l->bars ? "hatched: out of memory" : "hollow: out of memory",
                                  l->grid.out_of_memory, l->bars ? CS_SIGN_HATCHED : CS_SIGN_RING,
                                  out_of_memory);
    if (l->grid.capacities)
        entries[n++] =
            (cs_legend_entry){"capacity", CS_COLOUR_TEXT, CS_COLOUR_TEXT, true, CS_SIGN_LINE};
    if (l->grid.failed > 0)
        entries[n++] =
            sign_entry("cross on the axis: failed", l->grid.failed, CS_SIGN_CROSS, failed);
    if (n == 0)
        return;
    l->sheet->top += 4;
    cs_sheet_legend(l->sheet, entries, n);
}

/* Makes room for the labels below; the first and the last may extend beyond the axis. */
static void make_room(lines *l)
{
    cs_sheet *sheet = l->sheet;
    const cs_grid_axis *x = &l->grid.axes[0];
    const uint32_t last = x->n - 1;
    const double half = cs_sheet_text_width(x->labels[last], CS_SHEET_FONT) / 2;
    if (!x->numbers)
        l->turn = cs_grid_turn(x, x->n > 1 ? across(l, 1) - across(l, 0) : sheet->width / 2);
    if (l->turn == 0)
        sheet->right = fmax(sheet->right, half + 4);
    if (!x->numbers)
        sheet->left = fmax(sheet->left, cs_grid_label_width(x, l->turn) + 4);
    sheet->bottom += cs_grid_label_height(x, l->turn) - CS_SHEET_FONT;
}

static void lay_out(lines *l)
{
    char title[300], subtitle[400];
    const cs_sheet_grid *grid = &l->grid;
    cs_sheet *sheet = l->sheet;
    sheet->width = sheet->asked_width > 0 ? sheet->asked_width : WIDTH;
    sheet->height = sheet->asked_height > 0 ? sheet->asked_height : HEIGHT;
    sheet->left = 64;
    cs_text_format(title, sizeof(title), "%.80s: %.160s", sheet->reader->name, grid->title);
    cs_sheet_grid_summary(grid, subtitle, sizeof(subtitle));
    cs_sheet_title(sheet, title, subtitle);
    write_legend(l);
    sheet->top += 10;
    make_room(l);
    if (sheet->asked_height <= 0)
        sheet->height = fmax(HEIGHT, ceil(sheet->top + LEAST_AREA + sheet->bottom));
}

cs_status cs_plot_lines(cs_sheet *sheet, const char *output, cs_error *error)
{
    lines l = {.sheet = sheet};
    cs_status status = cs_sheet_grid_read(sheet, &l.grid, error);
    l.n = l.grid.rank > 1 ? l.grid.axes[1].n : 1;
    l.bars = status == CS_OK && !l.grid.axes[0].numbers;
    if (status == CS_OK && l.n > LINES_MAX)
        status = cs_error_add(error, CS_USAGE,
                              "lines: the second key has %u values; must be at most %d; heatmap "
                              "draws more",
                              l.n, LINES_MAX);
    if (status == CS_OK)
        status = choose_across(&l, error);
    if (status != CS_OK)
        return status;
    choose_upwards(&l);
    lay_out(&l);
    write_numbers(&l);
    write_solid(&l, cs_gnuplot_file(sheet->job, "solid.dat"));
    write_dashed(&l, cs_gnuplot_file(sheet->job, "dashed.dat"));
    write_points(&l, cs_gnuplot_file(sheet->job, "points.dat"));
    write_bars(&l, cs_gnuplot_file(sheet->job, "bars.dat"));
    write_capacity(&l, cs_gnuplot_file(sheet->job, "capacity.dat"));
    write_foot(&l, cs_gnuplot_file(sheet->job, "foot.dat"));
    write_labels(&l, cs_gnuplot_file(sheet->job, "labels.dat"));
    return cs_sheet_draw(sheet, output, "lines.gp", error);
}
