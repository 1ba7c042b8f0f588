#include "plots/grid.h"
#include "plots/sheet.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 300, ROW = 200, NAMED = 7, GAP = 76 };

/* Colours of the strategies whose best plans are the fastest; the last colour is for all others. */
static const uint32_t colours[NAMED + 1] = {0x0072B2, 0xE69F00, 0x009E73, 0xD55E00,
                                            0x56B4E9, 0xCC79A7, 0x101010, 0xAAAAAA};

typedef struct strategy {
    const char *name;
    double best; /* s; step time of the fastest plan that fits */
} strategy;

typedef struct plans {
    cs_sheet *sheet;
    uint64_t n;
    const double *times, *peaks, *over, *throughputs; /* NaN: not simulated */
    const uint32_t *devices, *front;
    const char *const *names; /* per plan: name of its strategy */
    /* per plan: rank of its strategy, i.e. index in `strategies`; n_strategies: none of its plans
     * fits */
    uint32_t *of;
    strategy *strategies;
    uint32_t n_strategies;
    double most_throughput, least_time, most_time, most_memory;
    double capacity; /* bytes per device, if any plan shown does not fit; otherwise 0 */
    uint32_t least_devices, most_devices;
} plans;

static bool fits(const plans *p, uint64_t i)
{
    return isfinite(p->times[i]) && !(p->over[i] > 0);
}

/* Returns gnuplot's point type of a strategy, so that strategies differ not only by colour; hollow:
 * the plan does not fit. */
static int shape_of(uint32_t rank, bool fits)
{
    static const int full[NAMED + 1] = {7, 5, 9, 13, 11, 15, 7, 5};
    return full[rank < NAMED ? rank : NAMED] - !fits;
}

static uint32_t colour_of(uint32_t rank)
{
    return colours[rank < NAMED ? rank : NAMED];
}

/* ---- reading ---- */

static cs_status read_plans(plans *p, cs_error *error)
{
    const cs_reader_column columns[] = {
        {"plans/step_time", CS_READER_DOUBLE, &p->times},
        {"plans/peak_memory", CS_READER_DOUBLE, &p->peaks},
        {"plans/over_capacity", CS_READER_DOUBLE, &p->over},
        {"plans/throughput", CS_READER_DOUBLE, &p->throughputs},
        {"plans/devices", CS_READER_UINT32, &p->devices},
        {"plans/front", CS_READER_UINT32, &p->front},
        {"plans/strategy", CS_READER_TEXT, &p->names},
    };
    return cs_reader_read(p->sheet->reader, columns, sizeof(columns) / sizeof(columns[0]), &p->n,
                          error);
}

static int by_best(const void *left, const void *right)
{
    const strategy *a = left, *b = right;
    if (a->best < b->best || a->best > b->best)
        return a->best < b->best ? -1 : 1;
    return strcmp(a->name, b->name);
}

static uint32_t find_strategy(const plans *p, const char *name)
{
    uint32_t s = 0;
    while (s < p->n_strategies && strcmp(p->strategies[s].name, name) != 0)
        s++;
    return s;
}

static cs_status rank_strategies(plans *p, cs_error *error)
{
    p->strategies = calloc(p->n + 1, sizeof(*p->strategies));
    p->of = calloc(p->n + 1, sizeof(*p->of));
    if (!p->strategies || !p->of)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < p->n; i++) {
        if (!fits(p, i))
            continue;
        const uint32_t s = find_strategy(p, p->names[i]);
        if (s == p->n_strategies)
            p->strategies[p->n_strategies++] = (strategy){p->names[i], p->times[i]};
        else
            p->strategies[s].best = fmin(p->strategies[s].best, p->times[i]);
    }
    qsort(p->strategies, p->n_strategies, sizeof(*p->strategies), by_best);
    for (uint64_t i = 0; i < p->n; i++)
        p->of[i] = find_strategy(p, p->names[i]);
    return CS_OK;
}

/* Finds the ranges of the axes; times are shown up to three times the best. */
static void find_ranges(plans *p)
{
    p->least_time = INFINITY;
    p->least_devices = UINT32_MAX;
    for (uint64_t i = 0; i < p->n; i++) {
        if (!isfinite(p->times[i]))
            continue;
        if (fits(p, i)) {
            p->least_time = fmin(p->least_time, p->times[i]);
            p->most_throughput = fmax(p->most_throughput, p->throughputs[i]);
        }
        p->least_devices = p->devices[i] < p->least_devices ? p->devices[i] : p->least_devices;
        p->most_devices = p->devices[i] > p->most_devices ? p->devices[i] : p->most_devices;
    }
    for (uint64_t i = 0; i < p->n; i++)
        if (isfinite(p->times[i]) && p->times[i] <= 3 * p->least_time) {
            p->most_time = fmax(p->most_time, p->times[i]);
            p->most_memory = fmax(p->most_memory, p->peaks[i]);
            if (p->over[i] > 0)
                p->capacity = p->peaks[i] - p->over[i];
        }
}

/* ---- data ---- */

/* Returns the smallest number of devices > `than` among the strategy's plans that fit; `than`:
 * none. */
static uint32_t next_devices(const plans *p, uint32_t s, uint32_t than)
{
    uint32_t next = UINT32_MAX;
    for (uint64_t i = 0; i < p->n; i++)
        if (p->of[i] == s && fits(p, i) && p->devices[i] > than && p->devices[i] < next)
            next = p->devices[i];
    return next == UINT32_MAX ? than : next;
}

/* Writes, per strategy, the best throughput for each number of devices, in ascending order. */
static void write_best(const plans *p, FILE *out)
{
    for (uint32_t s = 0; s < p->n_strategies; s++) {
        for (uint32_t d = 0, next = next_devices(p, s, d); next > d;
             d = next, next = next_devices(p, s, d)) {
            double best = 0;
            for (uint64_t i = 0; i < p->n; i++)
                if (p->of[i] == s && p->devices[i] == next && fits(p, i))
                    best = fmax(best, p->throughputs[i]);
            fprintf(out, "%u %.12g %d %u\n", next, best, shape_of(s, true), colour_of(s));
        }
        fputs("\n", out);
    }
}

typedef struct units {
    double time, memory; /* units of the axes, in s and bytes */
    const char *time_name, *memory_name;
} units;

static units units_of(const plans *p)
{
    const cs_byte_unit *bytes = cs_byte_unit_of(p->most_memory);
    const bool seconds = p->least_time >= 1;
    return (units){seconds ? 1 : 1e-3, bytes->bytes, seconds ? "s" : "ms", bytes->name};
}

/* Writes the plans of the worst strategy first, so that good plans are drawn on top. */
static void write_plans(const plans *p, FILE *out)
{
    const units unit = units_of(p);
    for (uint32_t s = p->n_strategies + 1; s-- > 0;)
        for (uint64_t i = 0; i < p->n; i++)
            if (p->of[i] == s && isfinite(p->times[i]) && p->times[i] <= p->most_time)
                fprintf(out, "%.12g %.12g %d %u\n", p->peaks[i] / unit.memory,
                        p->times[i] / unit.time, shape_of(s, fits(p, i)), colour_of(s));
}

static void write_front(const plans *p, FILE *out)
{
    const units unit = units_of(p);
    double time = 0;
    for (;;) {
        uint64_t next = p->n;
        for (uint64_t i = 0; i < p->n; i++)
            if (p->front[i] && p->times[i] > time && (next == p->n || p->times[i] < p->times[next]))
                next = i;
        if (next == p->n)
            return;
        time = p->times[next];
        fprintf(out, "%.12g %.12g\n", p->peaks[next] / unit.memory, time / unit.time);
    }
}

static FILE *file_of(const plans *p, const char *name)
{
    FILE *out = cs_gnuplot_file(p->sheet->job, name);
    fputs("NaN NaN 0 2\n\n", out); /* so that no file is empty */
    return out;
}

/* ---- the sheet ---- */

static cs_sheet_sign sign_of(uint32_t rank)
{
    return (cs_sheet_sign)(CS_SIGN_POINT + shape_of(rank, true));
}

static void write_legend(const plans *p)
{
    cs_legend_entry entries[NAMED + 5];
    uint32_t n = 0;
    for (uint32_t s = 0; s < p->n_strategies && s < NAMED; s++)
        entries[n++] = (cs_legend_entry){.text = p->strategies[s].name,
                                         .colour = colour_of(s),
                                         .other = colour_of(s),
                                         .exact = true,
                                         .sign = sign_of(s)};
    if (p->n_strategies > NAMED)
        entries[n++] = (cs_legend_entry){.text = "others",
                                         .colour = colours[NAMED],
                                         .other = colours[NAMED],
                                         .exact = true,
                                         .sign = sign_of(NAMED)};
    if (p->capacity > 0)
        entries[n++] =
            (cs_legend_entry){"capacity", CS_COLOUR_TEXT, CS_COLOUR_TEXT, true, CS_SIGN_LINE};
    entries[n++] = (cs_legend_entry){
        p->capacity > 0 ? "hollow: does not fit; line: front" : "line: front", 0, 0, true};
    cs_sheet_legend(p->sheet, entries, n);
}

static bool both_below(const plans *p)
{
    enum { NARROW = 480 };
    return p->sheet->width < NARROW && p->least_devices != p->most_devices;
}

static void lay_out(plans *p)
{
    cs_sheet *sheet = p->sheet;
    char title[200], subtitle[200];
    uint64_t simulated = 0;
    for (uint64_t i = 0; i < p->n; i++)
        simulated += isfinite(p->times[i]);
    sheet->width = sheet->asked_width > 0 ? sheet->asked_width : WIDTH;
    sheet->height = sheet->asked_height > 0 ? sheet->asked_height : HEIGHT;
    sheet->left = 64;
    cs_text_format(title, sizeof(title), "%.120s: plans", sheet->reader->name);
    snprintf(subtitle, sizeof(subtitle),
             "%llu of %llu plans were simulated, the best takes %s a step",
             (unsigned long long)simulated, (unsigned long long)p->n,
             cs_units_text(p->least_time, CS_QUANTITY_TIME, 4).s);
    cs_sheet_title(sheet, title, subtitle);
    write_legend(p);
    sheet->top += 10;
    if (both_below(p) && sheet->asked_height == 0)
        sheet->height += ROW;
}

/* Places the panels. Throughput against devices is on the left (on a narrow sheet: above), if plans
 * differ in the number of devices; time against memory is on the right (below). */
static void place_panels(const plans *p)
{
    const cs_sheet *sheet = p->sheet;
    const double right = sheet->width - sheet->right, bottom = sheet->height - sheet->bottom;
    const bool one = p->least_devices == p->most_devices, below = both_below(p);
    const double across = sheet->left + (right - sheet->left - GAP) / 2;
    const double down = sheet->top + (bottom - sheet->top - CS_SHEET_AXIS - 10) / 2;
    cs_gnuplot_number(sheet->job, "has_first", !one);
    cs_gnuplot_number(sheet->job, "first_right", below ? right : across);
    cs_gnuplot_number(sheet->job, "first_bottom", below ? down : bottom);
    cs_gnuplot_number(sheet->job, "second_left", below || one ? sheet->left : across + GAP);
    cs_gnuplot_number(sheet->job, "second_top", below ? down + CS_SHEET_AXIS + 10 : sheet->top);
}

static void write_numbers(const plans *p)
{
    const units unit = units_of(p);
    const cs_sheet *sheet = p->sheet;
    cs_gnuplot *job = sheet->job;
    const bool one = p->least_devices == p->most_devices;
    cs_gnuplot_number(job, "geometric", p->most_devices >= 4 * p->least_devices);
    cs_gnuplot_number(job, "least_devices", one ? 0 : p->least_devices / 1.1);
    cs_gnuplot_number(job, "most_devices", one ? 2 * p->most_devices : p->most_devices * 1.1);
    cs_gnuplot_number(job, "most_throughput", 1.08 * p->most_throughput);
    cs_gnuplot_number(job, "most_memory", 1.05 * p->most_memory / unit.memory);
    cs_gnuplot_number(job, "capacity", p->capacity / unit.memory);
    cs_gnuplot_number(job, "least_time", 0.9 * p->least_time / unit.time);
    cs_gnuplot_number(job, "most_time", 1.03 * p->most_time / unit.time);
    char memory[64], time[64];
    snprintf(memory, sizeof(memory), "peak memory of a device (%s)", unit.memory_name);
    snprintf(time, sizeof(time), "time of a step (%s)", unit.time_name);
    cs_sheet_axis_titles(p->sheet, memory, sheet->width, time, sheet->height);
    place_panels(p);
}

static cs_status draw(plans *p, const char *output, cs_error *error)
{
    CS_TRY(read_plans(p, error));
    CS_TRY(rank_strategies(p, error));
    if (p->n_strategies == 0)
        return cs_error_add(error, CS_INVALID, "%s: has no plan that fits", p->sheet->reader->path);
    find_ranges(p);
    lay_out(p);
    write_numbers(p);
    write_best(p, file_of(p, "best.dat"));
    write_plans(p, file_of(p, "plans.dat"));
    write_front(p, file_of(p, "front.dat"));
    return cs_sheet_draw(p->sheet, output, "plans.gp", error);
}

cs_status cs_plot_plans(cs_sheet *sheet, const char *output, cs_error *error)
{
    plans p = {.sheet = sheet};
    const cs_status status = draw(&p, output, error);
    free(p.strategies);
    free(p.of);
    return status;
}
