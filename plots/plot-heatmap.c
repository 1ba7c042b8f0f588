#include "plots/grid.h"

#include "sim/base/text.h"

#include <math.h>
#include <string.h>

enum {
    BAR_WIDTH = 16,
    BAR_GAP = 18,
    /* number of bands of the colour bar, unless the values are few whole numbers */
    BANDS = 128,
    LEVELS_MAX = 12, /* maximum number of whole values that get a band each */
    NUMBER_FONT = 9,
    LABEL_GAP = 6,
    TITLE_HEIGHT = 20,
};

#define MISSING_COLOUR 0xD0D0D0u

/* Positions are in points; y points downwards. */
typedef struct heatmap {
    cs_sheet *sheet;
    cs_sheet_grid grid;
    double cell_width, cell_height;
    double right, bottom; /* edges of the cells */
    int turn;             /* rotation of the labels below, in degrees */
    double low, high;     /* range of the palette */
    bool diverging;
    FILE *cells, *across, *aligned, *numbers, *hatch, *patches;
} heatmap;

/* ---- colours ---- */

/* Chooses the palette and its range. Values of both signs and differences get a diverging palette,
 * symmetric about 0. */
static void choose_palette(heatmap *h)
{
    h->diverging = (h->grid.lowest < 0 && h->grid.highest > 0) ||
                   strncmp(h->grid.key, "difference", strlen("difference")) == 0;
    h->low = h->grid.lowest;
    h->high = h->grid.highest;
    if (h->diverging) {
        h->high = fmax(fabs(h->low), fabs(h->high));
        h->low = -h->high;
    }
}

static uint32_t colour_of(const heatmap *h, double value)
{
    double range = h->high - h->low;
    double at = range > 0 ? (value - h->low) / range : 0.5;
    return h->diverging ? cs_palette_diverging(at) : cs_palette_sequential(at);
}

/* ---- numbers ---- */

static char *number_text(const heatmap *h, double value, int digits, char *text, size_t size)
{
    if (h->grid.whole && fabs(value) < 1e6)
        snprintf(text, size, "%.0f", value + 0.0); /* + 0.0 turns -0 into 0 */
    else
        snprintf(text, size, "%.*g", digits, value);
    return text;
}

/* Returns the largest number of digits for which all numbers fit into the cells; 0: they never
 * fit. */
static int digits_that_fit(const heatmap *h)
{
    char text[64];
    if (h->cell_height < NUMBER_FONT + 3)
        return 0;
    for (int digits = 4; digits >= 2; digits--) {
        double widest = 0;
        for (uint64_t i = 0; i < h->grid.n; i++) {
            if (isfinite(h->grid.values[i]))
                widest = fmax(widest, cs_sheet_text_width(number_text(h, h->grid.values[i], digits,
                                                                      text, sizeof(text)),
                                                          NUMBER_FONT));
        }
        if (widest + 3 <= h->cell_width)
            return digits;
    }
    return 0;
}

/* ---- lay-out ---- */

static void write_title(heatmap *h)
{
    char title[300], subtitle[400];
    const cs_sheet_grid *grid = &h->grid;
    cs_text_format(title, sizeof(title), "%.80s: %.160s", h->sheet->reader->name, grid->title);
    cs_sheet_grid_summary(grid, subtitle, sizeof(subtitle));
    cs_sheet_title(h->sheet, title, subtitle);
}

/* Writes the legend, which lists only signs that occur in the picture. */
static void write_legend(heatmap *h)
{
    const uint32_t grey = MISSING_COLOUR, some = colour_of(h, (h->low + h->high) / 2);
    const struct {
        uint32_t n;
        const char *text;
        uint32_t colour;
        cs_sheet_sign sign;
    } rows[] = {
        {h->grid.out_of_memory, "hatched: out of memory", some, CS_SIGN_HATCHED},
        {h->grid.failed, "crossed: failed", grey, CS_SIGN_CROSSED},
        {h->grid.missing, "grey: without a value", grey, CS_SIGN_NONE},
    };
    enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };
    cs_legend_entry entries[N_ROWS];
    char texts[N_ROWS][64];
    uint32_t n = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].n == 0)
            continue;
        snprintf(texts[n], sizeof(texts[n]), "%s (%u)", rows[i].text, rows[i].n);
        entries[n] =
            (cs_legend_entry){texts[n], rows[i].colour, rows[i].colour, true, rows[i].sign};
        n++;
    }
    if (n == 0)
        return;
    h->sheet->top += 4;
    cs_sheet_legend(h->sheet, entries, n);
}

static double choose(double given, double wanted, double least, double most)
{
    return given > 0 ? given : fmin(fmax(wanted, least), most);
}

static double bar_labels_width(const heatmap *h)
{
    char low[64], high[64];
    snprintf(low, sizeof(low), "%.4g", h->low);
    snprintf(high, sizeof(high), "%.4g", h->high);
    return fmax(cs_sheet_text_width(low, CS_SHEET_FONT), cs_sheet_text_width(high, CS_SHEET_FONT)) +
           CS_SHEET_FONT;
}

/* Returns the minimum length of the cells along an axis. Texts are all labelled, so they need room
 * for every label; numbers are labelled only where there is room. */
static double least_cells(const cs_grid_axis *axis, double least)
{
    return axis->numbers ? least : fmax(least, axis->n * (CS_SHEET_FONT + 3.));
}

static void lay_out(heatmap *h)
{
    cs_sheet *sheet = h->sheet;
    const cs_grid_axis *x = &h->grid.axes[0], *y = &h->grid.axes[1];
    sheet->left = CS_SHEET_MARGIN + TITLE_HEIGHT + y->widest + LABEL_GAP;
    sheet->right =
        BAR_GAP + BAR_WIDTH + LABEL_GAP + bar_labels_width(h) + CS_SHEET_FONT + CS_SHEET_MARGIN;
    double margins = sheet->left + sheet->right;
    sheet->width = choose(sheet->asked_width, margins + x->n * 32, margins + 360,
                          margins + least_cells(x, 1000));
    const double place = fmax(sheet->width - margins, 1) / x->n;
    h->turn = x->numbers ? 0 : cs_grid_turn(x, place);
    const double reach = cs_grid_label_width(x, h->turn) - place / 2 + TITLE_HEIGHT - sheet->left;
    if (h->turn > 0 && reach > 0) {
        sheet->left += reach;
        sheet->width += sheet->asked_width > 0 ? 0 : reach;
    }
    sheet->bottom += cs_grid_label_height(x, h->turn) - CS_SHEET_FONT;
    write_title(h);
    write_legend(h);
    sheet->top += 10;
    margins = sheet->top + sheet->bottom;
    sheet->height = choose(sheet->asked_height, margins + y->n * 22, margins + 240,
                           margins + least_cells(y, 720));
    h->right = sheet->width - sheet->right;
    h->bottom = sheet->height - sheet->bottom;
    h->cell_width = fmax(h->right - sheet->left, 1) / x->n;
    h->cell_height = fmax(h->bottom - sheet->top, 1) / y->n;
}

/* ---- data ---- */

static void write_text(FILE *out, double x, double y, const char *text, uint32_t colour)
{
    fprintf(out, "%.2f %.2f ", x, y);
    cs_sheet_quote(out, text);
    fprintf(out, " %u\n", colour);
}

/* Clears the hatching around the number in a hatched cell. Returns false if too little hatching
 * would remain visible. */
static bool clear_for(const heatmap *h, double x, double y, const char *text, uint32_t colour)
{
    enum { HEIGHT = NUMBER_FONT + 3, SEEN = 8 };
    const double half = cs_sheet_text_width(text, NUMBER_FONT) / 2;
    if (h->cell_height < HEIGHT + SEEN)
        return false;
    fprintf(h->patches, "%.2f %.2f %.2f %.2f %u\n", x - half, x + half, y - HEIGHT / 2.,
            y + HEIGHT / 2., colour);
    return true;
}

/* Writes cell (i, j). The first axis runs to the right, the second upwards. */
static void write_cell(const heatmap *h, uint32_t i, uint32_t j, int digits)
{
    char text[64];
    const uint64_t at = (uint64_t)i * h->grid.axes[1].n + j;
    const cs_grid_state state = h->grid.states[at];
    double value = h->grid.values[at];
    double left = h->sheet->left + i * h->cell_width, bottom = h->bottom - j * h->cell_height;
    uint32_t colour = isfinite(value) ? colour_of(h, value) : MISSING_COLOUR;
    fprintf(h->cells, "%.2f %.2f %.2f %.2f %u\n", left, left + h->cell_width,
            bottom - h->cell_height, bottom, colour);
    if (state == CS_GRID_OUT_OF_MEMORY)
        cs_sheet_hatch(h->hatch, left, left + h->cell_width, bottom - h->cell_height, bottom,
                       cs_colour_on(colour));
    if (state == CS_GRID_FAILED)
        cs_sheet_cross(h->hatch, left, left + h->cell_width, bottom - h->cell_height, bottom,
                       CS_COLOUR_SUBTITLE);
    if (digits == 0 || !isfinite(value))
        return;
    const double x = left + h->cell_width / 2, y = bottom - h->cell_height / 2;
    number_text(h, value, digits, text, sizeof(text));
    if (state == CS_GRID_FITS || clear_for(h, x, y, text, colour))
        write_text(h->numbers, x, y, text, cs_colour_on(colour));
}

static void write_axes(const heatmap *h)
{
    const cs_sheet *sheet = h->sheet;
    const cs_grid_axis *x = &h->grid.axes[0], *y = &h->grid.axes[1];
    uint32_t step = x->numbers ? (uint32_t)ceil((x->widest + 6) / h->cell_width) : 1;
    double below = h->turn ? CS_SHEET_FONT / 4. : CS_SHEET_FONT / 2.;
    for (uint32_t i = 0; i < x->n; i += step)
        write_text(h->across, sheet->left + (i + 0.5) * h->cell_width,
                   h->bottom + LABEL_GAP + below, x->labels[i], CS_COLOUR_TEXT);
    step = y->numbers ? (uint32_t)ceil((CS_SHEET_FONT + 2) / h->cell_height) : 1;
    for (uint32_t j = 0; j < y->n; j += step)
        write_text(h->aligned, sheet->left - LABEL_GAP, h->bottom - (j + 0.5) * h->cell_height,
                   y->labels[j], CS_COLOUR_TEXT);
    const double middle = (sheet->left + h->right) / 2;
    const double height = (sheet->top + h->bottom) / 2;
    char value[sizeof(h->grid.title)];
    cs_sheet_axis_titles(h->sheet, x->title, 2 * fmin(middle, sheet->width - middle), y->title,
                         2 * fmin(height, sheet->height - height));
    cs_text_format(value, sizeof(value), "%s", h->grid.title);
    cs_sheet_shorten(value, CS_SHEET_FONT, 2 * fmin(height, sheet->height - height));
    cs_gnuplot_text(sheet->job, "value_title", value);
    cs_gnuplot_number(sheet->job, "turn", h->turn);
}

/* Writes the bands of the colour bar. A few whole values get a band each, labelled in its
 * middle. */
static void write_bands(const heatmap *h, double left, double top, double height)
{
    bool levels = h->grid.whole && h->high - h->low < LEVELS_MAX;
    uint32_t n = levels ? (uint32_t)(h->high - h->low) + 1 : BANDS;
    for (uint32_t i = 0; i < n; i++) {
        char text[64];
        double value = levels ? h->low + i : h->low + (h->high - h->low) * (i + 0.5) / BANDS;
        double below = top + height * (1 - (double)i / n),
               above = top + height * (1 - (i + 1.) / n);
        /* bands overlap slightly, so that no background shows through */
        cs_sheet_box(h->sheet, left, left + BAR_WIDTH, above, i > 0 ? below + 0.7 : below,
                     colour_of(h, value));
        snprintf(text, sizeof(text), "%.0f", value + 0.0);
        if (levels)
            cs_sheet_text(h->sheet, left + BAR_WIDTH + LABEL_GAP, (above + below) / 2,
                          CS_COLOUR_TEXT, text);
    }
    const double range = h->high - h->low, step = cs_sheet_tick_step(range, height);
    for (double k = ceil(h->low / step); k <= floor(h->high / step) && !levels; k++) {
        char text[64];
        snprintf(text, sizeof(text), "%.6g", k * step + 0.0);
        cs_sheet_text(h->sheet, left + BAR_WIDTH + LABEL_GAP,
                      top + height * (1 - (k * step - h->low) / range), CS_COLOUR_TEXT, text);
    }
}

static void write_bar(const heatmap *h)
{
    double room = h->bottom - h->sheet->top, height = fmin(room, 320);
    double left = h->right + BAR_GAP, top = h->sheet->top;
    if (h->high > h->low) {
        write_bands(h, left, top, height);
        return;
    }
    char text[64];
    cs_sheet_box(h->sheet, left, left + BAR_WIDTH, top, top + BAR_WIDTH, colour_of(h, h->low));
    snprintf(text, sizeof(text), "%.4g", h->low + 0.0);
    cs_sheet_text(h->sheet, left + BAR_WIDTH + LABEL_GAP, top + BAR_WIDTH / 2., CS_COLOUR_TEXT,
                  text);
}

static void write_data(const heatmap *h)
{
    int digits = digits_that_fit(h);
    for (uint32_t i = 0; i < h->grid.axes[0].n; i++) {
        for (uint32_t j = 0; j < h->grid.axes[1].n; j++)
            write_cell(h, i, j, digits);
    }
    write_axes(h);
    write_bar(h);
    cs_gnuplot_number(h->sheet->job, "number_font", NUMBER_FONT);
    cs_gnuplot_number(h->sheet->job, "has_numbers", digits > 0);
    cs_gnuplot_number(h->sheet->job, "has_hatch", h->grid.out_of_memory + h->grid.failed > 0);
    cs_gnuplot_number(h->sheet->job, "gap_width",
                      fmin(h->cell_width, h->cell_height) >= 9 ? 0.7 : 0);
}

cs_status cs_plot_heatmap(cs_sheet *sheet, const char *output, cs_error *error)
{
    heatmap h = {.sheet = sheet};
    CS_TRY(cs_sheet_grid_read(sheet, &h.grid, error));
    if (h.grid.rank != 2)
        return cs_error_add(error, CS_USAGE,
                            "heatmap: %s must be a grid of 2 keys; lines draws one key",
                            sheet->reader->path);
    choose_palette(&h);
    lay_out(&h);
    h.cells = cs_gnuplot_file(sheet->job, "cells.dat");
    h.across = cs_gnuplot_file(sheet->job, "across.dat");
    h.aligned = cs_gnuplot_file(sheet->job, "aligned.dat");
    h.numbers = cs_gnuplot_file(sheet->job, "numbers.dat");
    h.hatch = cs_gnuplot_file(sheet->job, "hatch.dat");
    h.patches = cs_gnuplot_file(sheet->job, "patches.dat");
    write_data(&h);
    return cs_sheet_draw(sheet, output, "heatmap.gp", error);
}
