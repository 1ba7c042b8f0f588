#include "plots/drawn-run.h"
#include "plots/sheet.h"

#include "sim/base/sum.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Up to MAX_PANELS devices get one panel each; if there are more, each gets a bar, and only the
 * fullest one gets a panel. With several runs, each run has one panel, which shows its fullest
 * device. */
enum { MAX_PANELS = 8, MAX_CATEGORIES = 16 };

enum { PANEL_HEIGHT = 104, HEADING = 18, BARS_HEIGHT = 190, WORST_HEIGHT = 170 };

static const int64_t unlimited = INT64_MAX; /* value of a capacity without a limit */

/* A point of a panel: cumulative bytes of the categories from `time` on; each category is stacked
 * on the previous ones. */
typedef struct level {
    cs_time time;
    int64_t upto[MAX_CATEGORIES];
} level;

typedef struct memory {
    cs_sheet *sheet;
    cs_drawn_run drawn;
    /* run: index among the sheet's runs; n_shown: number of devices shown, from the sheet's
     * first_device on */
    uint32_t run, n_shown;
    const cs_byte_unit *unit;
    double highest; /* maximum of the vertical axes, in `unit` */
    double time_unit;
    bool used[MAX_CATEGORIES];
    uint32_t n_panels;
    bool bars;
} memory;

typedef struct shown_panel {
    const memory *of;
    uint32_t device;
} shown_panel;

/* ---- scale and legend ---- */

static bool is_shown(const memory *m, uint32_t device)
{
    return device >= m->sheet->first_device && device - m->sheet->first_device < m->n_shown &&
           device < m->drawn.n_rows;
}

/* Returns the maximum of the vertical axis, in bytes. A capacity far above all peaks would flatten
 * the curves, so only the headings state it. */
static double top_of(const memory *m)
{
    int64_t peak = 1, capacity = 0;
    for (uint32_t d = m->sheet->first_device; is_shown(m, d); d++) {
        peak = m->drawn.memory.peak[d] > peak ? m->drawn.memory.peak[d] : peak;
        if (m->drawn.memory.capacity[d] != unlimited && m->drawn.memory.capacity[d] > capacity)
            capacity = m->drawn.memory.capacity[d];
    }
    const double top = (double)peak * 1.15;
    return (double)capacity <= 2 * (double)peak ? fmax(top, (double)capacity * 1.08) : top;
}

/* Chooses one scale for all runs. */
static void choose_scale(memory *runs, uint32_t n)
{
    double top = 0;
    for (uint32_t r = 0; r < n; r++)
        top = fmax(top, top_of(&runs[r]));
    for (uint32_t r = 0; r < n; r++) {
        runs[r].unit = cs_byte_unit_of(top / 1.15);
        runs[r].highest = top / runs[r].unit->bytes;
    }
}

static bool capacities_are_drawn(const memory *m)
{
    for (uint32_t d = m->sheet->first_device; is_shown(m, d); d++)
        if (m->drawn.memory.capacity[d] != unlimited &&
            (double)m->drawn.memory.capacity[d] / m->unit->bytes <= m->highest)
            return true;
    return false;
}

/* Finds the categories that any run uses; the first run provides their names. */
static void find_used(memory *runs, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        const cs_drawn_memory *of = &runs[r].drawn.memory;
        for (uint32_t d = runs[r].sheet->first_device; is_shown(&runs[r], d); d++)
            for (uint32_t c = 0; c < of->n_categories; c++)
                if (c < runs[0].drawn.memory.n_categories)
                    runs[0].used[c] |= of->held[d * (uint64_t)of->n_categories + c];
    }
    for (uint32_t r = 1; r < n; r++)
        memcpy(runs[r].used, runs[0].used, sizeof(runs[r].used));
}

static void write_legend(const memory *runs, uint32_t n_runs)
{
    cs_legend_entry entries[MAX_CATEGORIES + 1];
    const memory *m = &runs[0];
    uint32_t n = 0;
    bool capacities = false;
    for (uint32_t c = 0; c < m->drawn.memory.n_categories; c++) {
        uint32_t colour = cs_style_of(m->drawn.memory.categories[c])->colour;
        if (m->used[c])
            entries[n++] = (cs_legend_entry){m->drawn.memory.categories[c], colour, colour};
    }
    for (uint32_t r = 0; r < n_runs; r++)
        capacities = capacities || capacities_are_drawn(&runs[r]);
    entries[n++] = (cs_legend_entry){.text = capacities ? "circle: peak; dashed line: capacity"
                                                        : "circle: peak"};
    cs_sheet_legend(m->sheet, entries, n);
}

/* ---- panels ---- */

/* Data files of a panel: one per category, with the corners of its steps. */
typedef struct layers {
    FILE *files[MAX_CATEGORIES];
    int64_t bytes[MAX_CATEGORIES]; /* bytes at the last corner */
    bool begun[MAX_CATEGORIES];
} layers;

static void write_corner(const memory *m, FILE *out, cs_time time, int64_t bytes)
{
    fprintf(out, "%.15g %.9g\n", (double)time / m->time_unit, (double)bytes / m->unit->bytes);
}

/* Writes corners only for categories that change: most samples change one category and the
 * categories stacked on it. */
static void write_level(const memory *m, layers *out, const level *at, cs_time time, bool last)
{
    for (uint32_t c = 0; c < m->drawn.memory.n_categories; c++) {
        if (!m->used[c] || (out->begun[c] && !last && out->bytes[c] == at->upto[c]))
            continue;
        if (out->begun[c])
            write_corner(m, out->files[c], time, out->bytes[c]);
        write_corner(m, out->files[c], time, at->upto[c]);
        out->bytes[c] = at->upto[c];
        out->begun[c] = true;
    }
}

static int64_t total_of(const memory *m, const level *at)
{
    return at->upto[m->drawn.memory.n_categories - 1];
}

/* Thins out levels that start within half a point: keeps only the first, the lowest, the highest
 * and the last. The picture looks the same, and millions of samples shrink to a few thousand. */
typedef struct thinner {
    level first, lowest, highest, last;
    int64_t cell;
    bool filling;
} thinner;

static void flush_cell(const memory *m, layers *out, thinner *t)
{
    if (!t->filling)
        return;
    const level *low = &t->lowest, *high = &t->highest;
    bool low_first = low->time <= high->time;
    write_level(m, out, &t->first, t->first.time, false);
    write_level(m, out, low_first ? low : high, low_first ? low->time : high->time, false);
    write_level(m, out, low_first ? high : low, low_first ? high->time : low->time, false);
    write_level(m, out, &t->last, t->last.time, false);
    t->filling = false;
}

static void add_level(const memory *m, layers *out, thinner *t, const level *at)
{
    const cs_sheet *sheet = m->sheet;
    double scale = 2 * (sheet->width - sheet->left - sheet->right);
    double place = (double)(at->time - sheet->from) / (double)(sheet->until - sheet->from);
    int64_t cell = (int64_t)(place * scale);
    if (t->filling && cell != t->cell)
        flush_cell(m, out, t);
    if (!t->filling) {
        *t = (thinner){*at, *at, *at, *at, cell, true};
        return;
    }
    if (total_of(m, at) < total_of(m, &t->lowest))
        t->lowest = *at;
    if (total_of(m, at) > total_of(m, &t->highest))
        t->highest = *at;
    t->last = *at;
}

/* Adds, limiting the sum to 2^63 - 1, as the file may contain any sizes. */
static int64_t add_bytes(int64_t sum, int64_t bytes)
{
    return cs_sum_add(&sum, bytes) ? sum : INT64_MAX;
}

static void stack(const memory *m, const int64_t *live, cs_time time, level *at)
{
    int64_t sum = 0;
    for (uint32_t c = 0; c < m->drawn.memory.n_categories; c++)
        at->upto[c] = sum = add_bytes(sum, live[c]);
    at->time = time < m->sheet->from ? m->sheet->from : time;
}

/* Returns the end of the run in the panel; a run may end before the other runs. */
static cs_time end_of(const memory *m)
{
    return m->drawn.reader->makespan < m->sheet->until ? m->drawn.reader->makespan
                                                       : m->sheet->until;
}

/* Writes the levels of a device. All samples at the same time make one level; samples before the
 * time range count at its start. */
static void write_levels(const memory *m, layers *out, uint32_t device)
{
    int64_t live[MAX_CATEGORIES] = {0};
    level at = {0};
    thinner t = {0};
    cs_time time = 0;
    const cs_drawn_memory *samples = &m->drawn.memory;
    const cs_drawn_row *row = &m->drawn.rows[device];
    for (uint64_t i = row->first_sample; i < row->first_sample + row->n_samples; i++) {
        const uint64_t sample = samples->by_row[i];
        if (samples->time[sample] > m->sheet->until)
            break;
        if (samples->time[sample] != time && samples->time[sample] > m->sheet->from) {
            stack(m, live, time, &at);
            add_level(m, out, &t, &at);
        }
        time = samples->time[sample];
        live[samples->category[sample]] = samples->bytes[sample];
    }
    stack(m, live, time, &at);
    add_level(m, out, &t, &at);
    flush_cell(m, out, &t);
    write_level(m, out, &at, end_of(m), true);
}

static void write_panel_data(const memory *m, uint32_t number, uint32_t device)
{
    layers out = {0};
    char name[32];
    uint32_t layer = 0;
    for (uint32_t c = 0; c < m->drawn.memory.n_categories; c++) {
        if (!m->used[c])
            continue;
        snprintf(name, sizeof(name), "panel-%u-%u.dat", number, ++layer);
        out.files[c] = cs_gnuplot_file(m->sheet->job, name);
    }
    write_levels(m, &out, device);
}

/* Appends a part if there is room for it. */
static void add_part(const memory *m, char *text, size_t size, const char *part)
{
    const double room = m->sheet->width - m->sheet->left - CS_SHEET_MARGIN;
    const size_t used = strlen(text);
    if (cs_sheet_text_width(text, CS_SHEET_FONT) + cs_sheet_text_width(part, CS_SHEET_FONT) <= room)
        snprintf(text + used, size - used, "%s", part);
}

/* Writes a heading: "device 3: peak 12.3 GB at 4.56 ms, capacity 16 GB". */
static void write_heading(const memory *m, uint32_t device, double y, const char *what)
{
    char text[320], part[128], bytes[64], time[64], name[64];
    cs_sheet_device_name(m->sheet, m->run, device, name, sizeof(name));
    snprintf(text, sizeof(text), "%sdevice%s %s: peak %s", what, strpbrk(name, "-(") ? "s" : "",
             name, cs_sheet_bytes(m->drawn.memory.peak[device], bytes, sizeof(bytes)));
    snprintf(part, sizeof(part), ", OUT OF MEMORY from %s on",
             cs_sheet_time(m->drawn.memory.oom_time[device], time, sizeof(time)));
    if (m->drawn.memory.out_of_memory[device])
        add_part(m, text, sizeof(text), part);
    snprintf(part, sizeof(part), " at %s",
             cs_sheet_time(m->drawn.memory.peak_time[device], time, sizeof(time)));
    if (!m->drawn.memory.out_of_memory[device])
        add_part(m, text, sizeof(text), part);
    snprintf(part, sizeof(part), ", capacity %s",
             cs_sheet_bytes(m->drawn.memory.capacity[device], bytes, sizeof(bytes)));
    if (m->drawn.memory.capacity[device] != unlimited)
        add_part(m, text, sizeof(text), part);
    cs_sheet_text(m->sheet, m->sheet->left, y,
                  m->drawn.memory.out_of_memory[device] ? CS_COLOUR_BAD : CS_COLOUR_TEXT, text);
}

static double in_bytes_unit(const memory *m, int64_t bytes)
{
    return (double)bytes / m->unit->bytes;
}

/* Writes one line for gnuplot: top and bottom edge of the panel, capacity (0: none), time and size
 * of the peak. */
static void write_place(const memory *m, FILE *out, uint32_t device, double top, double bottom)
{
    double peak_time = (double)m->drawn.memory.peak_time[device] / m->time_unit;
    fprintf(out, "%.2f %.2f %.9g %.15g %.9g\n", top, bottom,
            m->drawn.memory.capacity[device] == unlimited
                ? 0
                : in_bytes_unit(m, m->drawn.memory.capacity[device]),
            peak_time, in_bytes_unit(m, m->drawn.memory.peak[device]));
}

/* Writes the text before the device in a heading: the name of the run, "the fullest one", or
 * nothing. */
static void name_panel(const memory *m, char *text, size_t size)
{
    char name[128];
    *text = '\0';
    if (m->sheet->n_readers > 1)
        cs_text_format(text, size, "%s, ", cs_sheet_run_name(m->sheet, m->run, name, sizeof(name)));
    else if (m->bars)
        snprintf(text, size, "the fullest one, ");
}

static void write_panels(const memory *m, const shown_panel *panels, double top, double bottom)
{
    FILE *out = cs_gnuplot_file(m->sheet->job, "panels.dat");
    double height = (bottom - top) / m->n_panels;
    for (uint32_t i = 0; i < m->n_panels; i++) {
        const memory *of = panels[i].of;
        char what[160];
        double upper = top + i * height;
        name_panel(of, what, sizeof(what));
        write_heading(of, panels[i].device, upper + HEADING / 2., what);
        write_place(of, out, panels[i].device, upper + HEADING, upper + height - 6);
        write_panel_data(of, i, panels[i].device);
    }
}

/* ---- bars ---- */

static void write_bar(const memory *m, FILE *out, uint32_t device)
{
    int64_t sum = 0;
    uint32_t x = device - m->sheet->first_device;
    for (uint32_t c = 0; c < m->drawn.memory.n_categories; c++) {
        int64_t bytes = m->drawn.memory.at_peak[c][device];
        if (bytes > 0)
            fprintf(out, "%.6g %.6g %.9g %.9g %u\n", x + 0.1, x + 0.9, in_bytes_unit(m, sum),
                    in_bytes_unit(m, add_bytes(sum, bytes)),
                    cs_style_of(m->drawn.memory.categories[c])->colour);
        sum = add_bytes(sum, bytes);
    }
}

static void write_bars(memory *m)
{
    FILE *bars = cs_gnuplot_file(m->sheet->job, "bars.dat");
    FILE *capacities = cs_gnuplot_file(m->sheet->job, "capacities.dat");
    for (uint32_t d = m->sheet->first_device; is_shown(m, d); d++) {
        write_bar(m, bars, d);
        if (m->drawn.memory.capacity[d] != unlimited)
            fprintf(capacities, "%u %.9g 1\n", d - m->sheet->first_device,
                    in_bytes_unit(m, m->drawn.memory.capacity[d]));
    }
}

/* Returns the device with the largest ratio of peak to capacity; if capacities are unlimited, the
 * largest peak. */
static uint32_t fullest(const memory *m)
{
    uint32_t best = m->sheet->first_device;
    double most = -1;
    for (uint32_t d = m->sheet->first_device; is_shown(m, d); d++) {
        double full = (double)m->drawn.memory.peak[d] / (double)m->drawn.memory.capacity[d];
        if (full > most) {
            most = full;
            best = d;
        }
    }
    return best;
}

/* ---- the plot ---- */

static void write_parameters(memory *m, double bars_bottom)
{
    const cs_sheet *sheet = m->sheet;
    double top = m->bars ? bars_bottom + CS_SHEET_AXIS : sheet->top;
    double panel = (sheet->height - sheet->bottom - top) / m->n_panels - HEADING;
    double place = m->sheet->width - m->sheet->left - m->sheet->right;
    char colours[MAX_CATEGORIES * 9 + 1] = "";
    uint32_t n = 0;
    for (uint32_t c = 0; c < m->drawn.memory.n_categories; c++) {
        if (m->used[c])
            snprintf(colours + 9 * n++, 10, "0x%06X ",
                     cs_style_of(m->drawn.memory.categories[c])->colour);
    }
    cs_gnuplot_text(m->sheet->job, "colours", colours);
    char name[64];
    snprintf(name, sizeof(name), "memory (%s)", m->unit->name);
    cs_sheet_time_axis(m->sheet, name);
    cs_gnuplot_number(m->sheet->job, "from", (double)m->sheet->from / m->time_unit);
    cs_gnuplot_number(m->sheet->job, "until", (double)m->sheet->until / m->time_unit);
    cs_gnuplot_number(m->sheet->job, "highest", m->highest);
    cs_gnuplot_number(m->sheet->job, "n_layers", n);
    cs_gnuplot_number(m->sheet->job, "n_panels", m->n_panels);
    cs_gnuplot_number(m->sheet->job, "bars_bottom", bars_bottom);
    cs_gnuplot_number(m->sheet->job, "bars_step",
                      cs_sheet_tick_step(m->highest, bars_bottom - sheet->top));
    cs_gnuplot_number(m->sheet->job, "panel_step", cs_sheet_tick_step(m->highest, panel));
    cs_gnuplot_number(m->sheet->job, "tick_step", ceil(24. * m->sheet->n_devices / place));
}

/* Lays out the plot. A few devices: panels below each other. Many devices: bars above, one panel
 * below. Several runs: one panel per run. */
static void lay_out(memory *runs, double *bars_bottom)
{
    memory *m = &runs[0];
    cs_sheet *sheet = m->sheet;
    shown_panel panels[MAX_PANELS];
    const bool several = sheet->n_readers > 1;
    m->bars = !several && sheet->n_devices > MAX_PANELS;
    m->n_panels = several ? sheet->n_readers : m->bars ? 1 : sheet->n_devices;
    double content = m->bars ? BARS_HEIGHT + WORST_HEIGHT : m->n_panels * PANEL_HEIGHT;
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + content + sheet->bottom);
    double bottom = sheet->height - sheet->bottom, top = sheet->top;
    *bars_bottom = 0;
    if (m->bars) {
        double below = sheet->top + (bottom - sheet->top) * BARS_HEIGHT / content;
        *bars_bottom = below - CS_SHEET_AXIS;
        top = below;
    }
    for (uint32_t i = 0; i < m->n_panels; i++)
        panels[i] = several   ? (shown_panel){&runs[i], fullest(&runs[i])}
                    : m->bars ? (shown_panel){m, fullest(m)}
                              : (shown_panel){m, sheet->first_device + i};
    if (m->bars)
        write_bars(m);
    write_panels(m, panels, top, bottom);
}

static cs_status draw(memory *runs, const char *output, cs_error *error)
{
    cs_sheet *sheet = runs[0].sheet;
    const uint32_t n = sheet->n_readers;
    double bars_bottom = 0;
    for (uint32_t r = 0; r < n; r++) {
        memory *m = &runs[r];
        m->sheet = sheet;
        m->run = r;
        CS_TRY(cs_sheet_shown_devices(sheet, r, &m->n_shown, error));
        CS_TRY(cs_drawn_run_read(sheet->readers[r], CS_DRAWN_MEMORY | CS_DRAWN_PEAKS, &m->drawn,
                                 error));
        CS_TRY(cs_drawn_run_need_memory(&m->drawn, MAX_CATEGORIES, error));
        if (m->n_shown == 0)
            return cs_error_add(error, CS_USAGE, "%s: has no device %u", sheet->readers[r]->path,
                                sheet->first_device);
    }
    const double time_unit = cs_sheet_time_unit(sheet);
    for (uint32_t r = 0; r < n; r++)
        runs[r].time_unit = time_unit;
    choose_scale(runs, n);
    find_used(runs, n);
    cs_sheet_run_title(sheet);
    write_legend(runs, n);
    lay_out(runs, &bars_bottom);
    write_parameters(&runs[0], bars_bottom);
    return cs_sheet_draw(sheet, output, "memory.gp", error);
}

cs_status cs_plot_memory(cs_sheet *sheet, const char *output, cs_error *error)
{
    memory runs[CS_PLOT_INPUTS_MAX] = {{.sheet = sheet}};
    const cs_status status = draw(runs, output, error);
    for (uint32_t r = 0; r < sheet->n_readers; r++)
        cs_drawn_run_finish(&runs[r].drawn);
    return status;
}
