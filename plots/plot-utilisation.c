#include "plots/drawn-run.h"
#include "plots/sheet.h"

#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADING = 20,
    VALUE_WIDTH = 48,      /* room for "100.0 %" after a bar */
    LINK_ROW = 20,         /* minimum height of a link's row */
    LINK_NAME_WIDTH = 190, /* longer names are shortened */
    LEAST_LINKS_WIDTH = 160,
};

typedef struct link_use {
    uint32_t index;
    uint32_t n; /* number of links with the same bandwidth and the same utilisation */
    double share;
} link_use;

/* The devices of a run. */
typedef struct device_use {
    cs_drawn_run drawn;
    uint32_t n_shown; /* number of devices shown, from the sheet's first_device on */
    /* position of the run's first row; with several runs, below the run's heading */
    double first_row;
} device_use;

typedef struct utilisation {
    cs_sheet *sheet;
    device_use runs[CS_PLOT_INPUTS_MAX];
    double n_device_rows;      /* total of all runs, including headings */
    const cs_drawn_links *all; /* links of the first run */
    link_use *links;           /* sorted by utilisation, highest first */
    uint32_t n_rows;           /* number of groups of equally used links; each group has a row */
    uint32_t n_links;          /* number of these rows that are shown */
    bool below;                /* links are shown below the devices instead of next to them */
    double devices_bottom, links_top, links_bottom;
    double row_height, links_left, devices_right;
    bool one_place; /* all used links are in one node */
} utilisation;

static const double heading_rows = 0.9; /* height of a run's heading, in rows of devices */

/* ---- reading ---- */

static cs_status read_devices(utilisation *u, cs_error *error)
{
    const cs_sheet *sheet = u->sheet;
    const uint32_t parts = CS_DRAWN_TIMES | (sheet->n_readers == 1 ? CS_DRAWN_LINKS : 0);
    for (uint32_t r = 0; r < sheet->n_readers; r++) {
        device_use *run = &u->runs[r];
        CS_TRY(cs_drawn_run_read(sheet->readers[r], parts, &run->drawn, error));
        CS_TRY(cs_sheet_shown_devices(sheet, r, &run->n_shown, error));
        u->n_device_rows += sheet->n_readers > 1 ? heading_rows : 0;
        run->first_row = u->n_device_rows;
        u->n_device_rows += run->n_shown;
    }
    return CS_OK;
}

static int compare_links(const void *a, const void *b)
{
    const link_use *x = a, *y = b;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    CS_COMPARE(x->index, y->index);
    return 0;
}

/* Merges links with the same bandwidth and utilisation into one row, represented by the first. */
static void fold_links(utilisation *u)
{
    for (uint64_t i = 0; i < u->all->n; i++) {
        const link_use *next = &u->links[i];
        uint32_t k = u->n_rows;
        if (u->all->no_collectives && !(next->share > 0))
            continue;
        while (k > 0 && u->links[k - 1].share == next->share &&
               u->all->bandwidth[u->links[k - 1].index] != u->all->bandwidth[next->index])
            k--;
        if (k > 0 && u->links[k - 1].share == next->share)
            u->links[k - 1].n++;
        else
            u->links[u->n_rows++] = *next;
    }
}

/* Whether all used links stay within the node of the first link, e.g. "node0/". */
static bool is_one_place(const utilisation *u)
{
    const char *slash = u->all->n > 0 ? strchr(u->all->names[0], '/') : NULL;
    for (uint64_t i = 1; i < u->all->n && slash; i++) {
        const char *to = strstr(u->all->names[i], " to ");
        const size_t place = (size_t)(slash - u->all->names[0]) + 1;
        if (u->all->utilisation[i] > 0 &&
            (!to || strncmp(u->all->names[i], u->all->names[0], place) != 0 ||
             strncmp(to + 4, u->all->names[0], place) != 0))
            return false;
    }
    return slash != NULL;
}

static cs_status sort_links(utilisation *u, cs_error *error)
{
    u->links = calloc(u->all->n + 1, sizeof(*u->links));
    if (!u->links)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < u->all->n; i++) {
        const double share = u->all->utilisation[i];
        u->links[i] = (link_use){(uint32_t)i, 1, isfinite(share) ? share : 0};
    }
    u->one_place = is_one_place(u);
    qsort(u->links, u->all->n, sizeof(*u->links), compare_links);
    fold_links(u);
    return CS_OK;
}

/* ---- lay-out ---- */

static bool is_used(const utilisation *u, const char *use)
{
    for (uint32_t r = 0; r < u->sheet->n_readers; r++) {
        const cs_drawn_run *run = &u->runs[r].drawn;
        for (uint32_t i = 0; i < run->n_uses; i++)
            for (uint32_t d = 0; d < u->runs[r].n_shown && strcmp(run->uses[i].name, use) == 0; d++)
                if (run->uses[i].times[u->sheet->first_device + d] > 0)
                    return true;
    }
    return false;
}

static void write_legend(const utilisation *u)
{
    static const char *const waits[] = {"waiting for messages", "for others", "for the flush"};
    cs_legend_entry entries[CS_DRAWN_USES];
    uint32_t n = 0;
    const cs_drawn_run *first = &u->runs[0].drawn;
    for (uint32_t i = 0; i < first->n_uses; i++) {
        const char *use = first->uses[i].name;
        const uint32_t colour = cs_style_of(use)->colour;
        if (is_used(u, use))
            entries[n++] = (cs_legend_entry){
                i < first->n_compute ? use : waits[i - first->n_compute], colour, colour};
    }
    cs_sheet_legend(u->sheet, entries, n);
}

static double choose_row_height(double n)
{
    double height = fmin(34, fmax(14, 420. / n));
    return n * height > 2400 ? fmax(2400. / n, 2) : height;
}

/* Shortens the name of a link: "node0/gpu7 to node0/plx3" becomes "node0/gpu7 to plx3", or "gpu7 to
 * plx3" if all links are in one node. If the name is still too long, cuts out its middle, as both
 * ends are needed. */
static void shown_name(const utilisation *u, const char *name, char *text, size_t size)
{
    const char *slash = strchr(name, '/'), *to = strstr(name, " to ");
    const size_t place = slash ? (size_t)(slash - name) + 1 : 0; /* length of "node0/" */
    const bool same = to && slash && slash < to && strncmp(to + 4, name, place) == 0;
    const char *from = u->one_place ? name + place : name;
    if (same)
        cs_text_format(text, size, "%.*s to %s", (int)(to - from), from, to + 4 + place);
    else
        cs_text_format(text, size, "%s", name);
    cs_sheet_shorten(text, CS_SHEET_FONT, LINK_NAME_WIDTH);
}

static void row_name(const utilisation *u, uint32_t i, char *text, size_t size)
{
    shown_name(u, u->all->names[u->links[i].index], text, size);
    const size_t used = strlen(text);
    if (u->links[i].n > 1)
        snprintf(text + used, size - used, " (x%u)", u->links[i].n);
}

static double names_width(const utilisation *u)
{
    char text[256];
    double widest = 0;
    for (uint32_t i = 0; i < u->n_links; i++) {
        row_name(u, i, text, sizeof(text));
        widest = fmax(widest, cs_sheet_text_width(text, CS_SHEET_FONT));
    }
    return widest;
}

static double links_left_beside(const utilisation *u)
{
    const cs_sheet *sheet = u->sheet;
    return sheet->width - sheet->right - fmax(LEAST_LINKS_WIDTH, 0.22 * sheet->width);
}

/* Returns the width of the devices' bars if the links are next to them. */
static double devices_width_beside(const utilisation *u)
{
    return links_left_beside(u) - names_width(u) - 16 - VALUE_WIDTH - u->sheet->left;
}

/* Places as many links as fit next to the devices. */
static void place_beside(utilisation *u, double bottom)
{
    const cs_sheet *sheet = u->sheet;
    const double right = sheet->width - sheet->right, fit = (bottom - sheet->top) / LINK_ROW;
    u->n_links = (uint32_t)fmin(u->n_rows, fmax(floor(fit), 1));
    u->devices_bottom = bottom;
    u->links_top = sheet->top;
    u->links_left = u->devices_right = right;
    if (u->n_links == 0)
        return;
    u->links_left = links_left_beside(u);
    u->devices_right = sheet->left + devices_width_beside(u);
}

/* Places some links in a separate panel below the devices, for narrow sheets. */
static void place_below(utilisation *u, double bottom)
{
    const cs_sheet *sheet = u->sheet;
    /* if the options set the height, devices get half of it */
    const double half = (bottom - sheet->top) / 2 - CS_SHEET_AXIS - HEADING;
    if (sheet->asked_height > 0)
        u->n_links = (uint32_t)fmin(u->n_links, fmax(floor(half / LINK_ROW), 0));
    const double links = u->n_links * LINK_ROW;
    u->devices_right = sheet->width - sheet->right;
    u->links_top = bottom - links;
    u->devices_bottom = u->n_links > 0 ? u->links_top - HEADING - CS_SHEET_AXIS : bottom;
    u->links_left = CS_SHEET_MARGIN + names_width(u) + 8;
}

/* Ends the drawing area at the devices; the links below them have their own bottom edge. */
static void end_at_devices(utilisation *u)
{
    u->links_bottom = u->sheet->height - u->sheet->bottom;
    u->sheet->bottom = u->sheet->height - u->devices_bottom;
}

static void lay_out(utilisation *u)
{
    enum { NARROW = 520, MOST_BELOW = 8, LEAST_DEVICES_WIDTH = 120 };
    cs_sheet *sheet = u->sheet;
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        sheet->left = fmax(sheet->left, cs_sheet_device_names_room(sheet, r, u->runs[r].n_shown));
    u->n_links = (uint32_t)fmin(u->n_rows, MOST_BELOW);
    sheet->top += HEADING;
    sheet->right = CS_SHEET_MARGIN + VALUE_WIDTH;
    u->below = sheet->width < NARROW || devices_width_beside(u) < LEAST_DEVICES_WIDTH;
    const double links = fmin(u->n_rows, MOST_BELOW) * LINK_ROW;
    const double rows = u->n_device_rows * choose_row_height(u->n_device_rows);
    const double both = rows + (links > 0 ? CS_SHEET_AXIS + HEADING + links : 0);
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + sheet->bottom + (u->below ? both : fmax(rows, links)));
    const double bottom = fmax(sheet->height - sheet->bottom, sheet->top + 1);
    if (u->below)
        place_below(u, bottom);
    else
        place_beside(u, bottom);
    end_at_devices(u);
    u->row_height = fmax(u->devices_bottom - sheet->top, 1) / u->n_device_rows;
}

static void write_headings(const utilisation *u)
{
    char text[128];
    double y = u->sheet->top - HEADING / 2.;
    cs_sheet_text(u->sheet, u->sheet->left, y, CS_COLOUR_TEXT,
                  "time of each device; numbers: computing");
    for (uint32_t r = 0; u->sheet->n_readers > 1 && r < u->sheet->n_readers; r++)
        cs_sheet_text(u->sheet, u->sheet->left,
                      u->sheet->top + (u->runs[r].first_row - heading_rows / 2) * u->row_height,
                      CS_COLOUR_TEXT, cs_sheet_run_name(u->sheet, r, text, sizeof(text)));
    if (u->n_links == 0)
        return;
    if (u->all->no_collectives)
        snprintf(text, sizeof(text), "links, collectives left out");
    else if (u->n_links < u->n_rows)
        snprintf(text, sizeof(text), "the most used of %" PRIu64 " links", u->all->n);
    else
        snprintf(text, sizeof(text), "links, the most used first");
    cs_sheet_text(u->sheet, u->below ? u->sheet->left : u->links_left, u->links_top - HEADING / 2.,
                  CS_COLOUR_TEXT, text);
}

/* Writes, below the title, which traffic the bars of links omit and how to include it. */
static void write_delays(const utilisation *u)
{
    char text[256];
    if (!u->all->no_collectives)
        return;
    cs_text_format(text, sizeof(text),
                   "links: without collectives, each of which is one delay (fidelity %.40s), "
                   "/collectives/fidelity=flow simulates their messages",
                   u->sheet->reader->fidelity);
    cs_sheet_title_more(u->sheet, text);
}

/* ---- data ---- */

static void write_device(const utilisation *u, const device_use *of, FILE *bars, FILE *values,
                         uint32_t row)
{
    const cs_drawn_run *run = &of->drawn;
    const uint32_t device = u->sheet->first_device + row;
    const double top = of->first_row + row;
    double whole = 0, sum = 0, compute = 0;
    for (uint32_t i = 0; i < run->n_uses; i++)
        whole += (double)run->uses[i].times[device];
    whole = whole > 0 ? whole : 1;
    for (uint32_t i = 0; i < run->n_uses; i++) {
        double share = 100 * (double)run->uses[i].times[device] / whole;
        if (share > 0)
            fprintf(bars, "%.9g %.9g %.6g %.6g %u\n", sum, sum + share, top + 0.08, top + 0.92,
                    cs_style_of(run->uses[i].name)->colour);
        sum += share;
        compute += i < run->n_compute ? share : 0;
    }
    if (u->row_height >= CS_SHEET_FONT + 1)
        fprintf(values, "100 %.6g \"%.1f %%\"\n", top + 0.5, compute);
}

/* Writes the names of as many rows as there is room for. */
static void write_names(const utilisation *u, uint32_t r, FILE *names)
{
    const uint32_t step = (uint32_t)ceil((CS_SHEET_FONT + 1) / u->row_height);
    char name[64];
    for (uint32_t row = 0; row < u->runs[r].n_shown; row += step) {
        fprintf(names, "%.6g ", u->runs[r].first_row + row + 0.5);
        cs_sheet_quote(names, cs_sheet_device_name(u->sheet, r, u->sheet->first_device + row, name,
                                                   sizeof(name)));
        fputc('\n', names);
    }
}

static void write_devices(const utilisation *u)
{
    FILE *bars = cs_gnuplot_file(u->sheet->job, "bars.dat");
    FILE *values = cs_gnuplot_file(u->sheet->job, "values.dat");
    FILE *names = cs_gnuplot_file(u->sheet->job, "names.dat");
    for (uint32_t r = 0; r < u->sheet->n_readers; r++) {
        for (uint32_t row = 0; row < u->runs[r].n_shown; row++)
            write_device(u, &u->runs[r], bars, values, row);
        write_names(u, r, names);
    }
}

static void write_links(const utilisation *u)
{
    FILE *out = cs_gnuplot_file(u->sheet->job, "links.dat");
    double height = u->links_bottom - u->links_top;
    double row = fmin(height / u->n_links, 2 * LINK_ROW);
    for (uint32_t i = 0; i < u->n_links; i++) {
        char name[256];
        double share = 100 * u->links[i].share;
        row_name(u, i, name, sizeof(name));
        fprintf(out, "%.9g %.6g %.6g \"%.3g %%\" ", share, i * row / height,
                (i + 0.8) * row / height, share);
        cs_sheet_quote(out, name);
        fputc('\n', out);
    }
}

static void write_data(const utilisation *u)
{
    double most = u->n_links > 0 ? 100 * u->links[0].share : 0;
    cs_gnuplot_number(u->sheet->job, "n_rows", u->n_device_rows);
    cs_gnuplot_number(u->sheet->job, "devices_right", u->devices_right);
    cs_gnuplot_number(u->sheet->job, "links_bottom", u->links_bottom);
    cs_gnuplot_number(u->sheet->job, "links_left", u->links_left);
    cs_gnuplot_number(u->sheet->job, "links_top", u->links_top);
    cs_gnuplot_number(u->sheet->job, "links_right", u->sheet->width - u->sheet->right);
    cs_gnuplot_number(u->sheet->job, "n_links", u->n_links);
    cs_gnuplot_number(u->sheet->job, "highest", fmax(100, most));
    cs_gnuplot_number(u->sheet->job, "bar_colour", cs_style_of("transfer")->colour);
    write_headings(u);
    cs_sheet_axis_titles(u->sheet, "share of the time (%)", u->devices_right - u->sheet->left,
                         "device", u->sheet->height - u->sheet->top - u->sheet->bottom);
    write_devices(u);
    if (u->n_links > 0)
        write_links(u);
}

cs_status cs_plot_utilisation(cs_sheet *sheet, const char *output, cs_error *error)
{
    utilisation u = {.sheet = sheet};
    const cs_plot_options *options = sheet->options;
    if (options->from > 0 || options->until > 0 || options->n_mini_batches > 0)
        return cs_error_add(error, CS_USAGE,
                            "utilisation: is of the whole run; takes no time range and no "
                            "mini-batches");
    u.all = &u.runs[0].drawn.links;
    cs_status status = read_devices(&u, error);
    if (status == CS_OK)
        status = sort_links(&u, error);
    if (status == CS_OK) {
        cs_sheet_run_title(sheet);
        write_delays(&u);
        write_legend(&u);
        lay_out(&u);
        write_data(&u);
    }
    free(u.links);
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        cs_drawn_run_finish(&u.runs[r].drawn);
    return status == CS_OK ? cs_sheet_draw(sheet, output, "utilisation.gp", error) : status;
}
