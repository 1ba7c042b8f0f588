#include "plots/sheet.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, LEFT = 70, GAP = 76, NARROW = 420, COLOURS = 7, SYMBOLS = 5 };

static const uint32_t colours[COLOURS] = {0x0072B2, 0xD55E00, 0x009E73, 0xE69F00,
                                          0xCC79A7, 0x56B4E9, 0x101010};

/* gnuplot's point types: circle, square, triangle, cross, saltire. */
static const int symbols[SYMBOLS] = {6, 4, 8, 1, 2};

/* A pair of columns that a panel compares: predicted and measured. */
typedef struct measure {
    const char *file;
    const double *predicted, *measured; /* s or bytes */
} measure;

enum { TIMES, ALLOCATED, RESERVED, MEASURES };

typedef struct dataset {
    const char *name;
    uint32_t n; /* number of points drawn */
} dataset;

typedef struct validation {
    cs_sheet *sheet;
    uint64_t n;
    const char *const *names; /* per point: name of its dataset */
    measure measures[MEASURES];
    dataset *datasets;
    uint32_t n_datasets, capacity;
    double least[2], most[2]; /* [0]: s; [1]: bytes */
    uint32_t drawn[2];        /* number of points: [0] times, [1] memory peaks */
} validation;

static bool is_drawn(const measure *of, uint64_t i)
{
    return of->predicted[i] > 0 && of->measured[i] > 0 && isfinite(of->predicted[i]) &&
           isfinite(of->measured[i]);
}

static cs_status read_points(validation *v, cs_error *error)
{
    measure *m = v->measures;
    const cs_reader_column columns[] = {
        {"points/dataset", CS_READER_TEXT, &v->names},
        {"points/predicted_step_time", CS_READER_DOUBLE, &m[TIMES].predicted},
        {"points/measured_step_time", CS_READER_DOUBLE, &m[TIMES].measured},
        {"points/predicted_peak_memory", CS_READER_DOUBLE, &m[ALLOCATED].predicted},
        {"points/measured_allocated", CS_READER_DOUBLE, &m[ALLOCATED].measured},
        {"points/predicted_reserved", CS_READER_DOUBLE, &m[RESERVED].predicted},
        {"points/measured_reserved", CS_READER_DOUBLE, &m[RESERVED].measured},
    };
    return cs_reader_read(v->sheet->reader, columns, sizeof(columns) / sizeof(columns[0]), &v->n,
                          error);
}

/* Counts a point of a dataset; datasets are kept in order of first occurrence. */
static cs_status count(validation *v, const char *name, cs_error *error)
{
    uint32_t d = 0;
    while (d < v->n_datasets && strcmp(v->datasets[d].name, name) != 0)
        d++;
    if (d == v->n_datasets) {
        if (!cs_vector_reserve((void **)&v->datasets, &v->capacity, d + UINT64_C(1),
                               sizeof(*v->datasets)))
            return cs_error_no_memory(error);
        v->datasets[v->n_datasets++] = (dataset){.name = name};
    }
    v->datasets[d].n++;
    return CS_OK;
}

static void widen(validation *v, uint32_t panel, const measure *of, uint64_t i)
{
    v->least[panel] = fmin(v->least[panel], fmin(of->predicted[i], of->measured[i]));
    v->most[panel] = fmax(v->most[panel], fmax(of->predicted[i], of->measured[i]));
    v->drawn[panel]++;
}

static cs_status find_datasets(validation *v, cs_error *error)
{
    v->least[0] = v->least[1] = INFINITY;
    for (uint64_t i = 0; i < v->n; i++) {
        bool any = false;
        for (uint32_t m = 0; m < MEASURES; m++) {
            if (!is_drawn(&v->measures[m], i))
                continue;
            any = true;
            widen(v, m != TIMES, &v->measures[m], i);
        }
        if (any)
            CS_TRY(count(v, v->names[i], error));
    }
    return v->n_datasets > 0 ? CS_OK
                             : cs_error_add(error, CS_INVALID,
                                            "%s: has no point with a prediction and a measurement",
                                            v->sheet->reader->path);
}

/* ---- data ---- */

static uint32_t dataset_of(const validation *v, uint64_t i)
{
    uint32_t d = 0;
    while (strcmp(v->datasets[d].name, v->names[i]) != 0)
        d++;
    return d;
}

static uint32_t colour_of(uint32_t d)
{
    return colours[d % COLOURS];
}

static int symbol_of(uint32_t d)
{
    return symbols[d / COLOURS % SYMBOLS];
}

static void write_measure(const validation *v, const measure *of, double unit, FILE *out)
{
    for (uint64_t i = 0; i < v->n; i++)
        if (is_drawn(of, i)) {
            const uint32_t d = dataset_of(v, i);
            fprintf(out, "%.9g %.9g %d %u\n", of->measured[i] / unit, of->predicted[i] / unit,
                    symbol_of(d), colour_of(d));
        }
}

static void write_points(const validation *v)
{
    FILE *memory = cs_gnuplot_file(v->sheet->job, "memory.dat");
    write_measure(v, &v->measures[TIMES], 1, cs_gnuplot_file(v->sheet->job, "times.dat"));
    write_measure(v, &v->measures[ALLOCATED], 1e9, memory);
    write_measure(v, &v->measures[RESERVED], 1e9, memory);
}

/* ---- the sheet ---- */

static cs_status write_legend(const validation *v, cs_error *error)
{
    cs_legend_entry *entries = calloc(v->n_datasets + (size_t)1, sizeof(*entries));
    if (!entries)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < v->n_datasets; d++)
        entries[d] = (cs_legend_entry){.text = v->datasets[d].name,
                                       .colour = colour_of(d),
                                       .other = colour_of(d),
                                       .exact = true,
                                       .sign = CS_SIGN_POINT + (cs_sheet_sign)symbol_of(d)};
    entries[v->n_datasets] = (cs_legend_entry){"bands: 5 and 10 %", 0, 0, true};
    cs_sheet_legend(v->sheet, entries, v->n_datasets + 1);
    free(entries);
    return CS_OK;
}

/* Places the panels: squares next to each other, or below each other on a narrow sheet. */
static void place_panels(validation *v)
{
    static const char *const names[2][4] = {{"left_1", "right_1", "top_1", "bottom_1"},
                                            {"left_2", "right_2", "top_2", "bottom_2"}};
    cs_sheet *sheet = v->sheet;
    const uint32_t panels = (v->drawn[0] > 0) + (v->drawn[1] > 0);
    const bool below = sheet->width < NARROW;
    const double inner = sheet->width - sheet->left - sheet->right;
    const double side = panels > 1 && !below ? (inner - GAP) / 2 : inner;
    const uint32_t rows = below ? panels : 1;
    sheet->height =
        sheet->asked_height > 0 ? sheet->asked_height : sheet->top + rows * (side + CS_SHEET_AXIS);
    const double high = (sheet->height - sheet->top) / rows;
    for (uint32_t p = 0; p < 2; p++) {
        const double left = sheet->left + (below ? 0 : p * (side + GAP));
        const double top = sheet->top + (below ? p * high : 0);
        cs_gnuplot_number(sheet->job, names[p][0], left);
        cs_gnuplot_number(sheet->job, names[p][1], left + side);
        cs_gnuplot_number(sheet->job, names[p][2], top + (p > 0 && below ? 8 : 0));
        cs_gnuplot_number(sheet->job, names[p][3], top + high - CS_SHEET_AXIS);
    }
    cs_gnuplot_number(sheet->job, "panels", panels);
    cs_gnuplot_number(sheet->job, "times", v->drawn[0]);
}

static cs_status lay_out(validation *v, cs_error *error)
{
    cs_sheet *sheet = v->sheet;
    char subtitle[160];
    sheet->width = sheet->asked_width > 0 ? sheet->asked_width : WIDTH;
    sheet->left = LEFT;
    snprintf(subtitle, sizeof(subtitle), "%u times of steps, %u peaks of memory", v->drawn[0],
             v->drawn[1]);
    cs_sheet_title(sheet, "predicted against measured", subtitle);
    CS_TRY(write_legend(v, error));
    sheet->top += 10;
    place_panels(v);
    return CS_OK;
}

static void write_ranges(const validation *v)
{
    cs_gnuplot *job = v->sheet->job;
    const bool times = v->drawn[0] > 0, memory = v->drawn[1] > 0;
    cs_gnuplot_number(job, "least_time", times ? v->least[0] / 1.2 : 1);
    cs_gnuplot_number(job, "most_time", times ? v->most[0] * 1.2 : 2);
    cs_gnuplot_number(job, "least_memory", memory ? v->least[1] / 1.2e9 : 1);
    cs_gnuplot_number(job, "most_memory", memory ? v->most[1] * 1.2e-9 : 2);
}

static cs_status draw(validation *v, const char *output, cs_error *error)
{
    CS_TRY(read_points(v, error));
    CS_TRY(find_datasets(v, error));
    CS_TRY(lay_out(v, error));
    write_ranges(v);
    write_points(v);
    return cs_sheet_draw(v->sheet, output, "validation.gp", error);
}

cs_status cs_plot_validation(cs_sheet *sheet, const char *output, cs_error *error)
{
    validation v = {.sheet = sheet};
    const cs_status status = draw(&v, output, error);
    free(v.datasets);
    return status;
}
