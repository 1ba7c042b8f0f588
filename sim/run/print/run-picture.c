#include "sim/run/print/run-picture.h"

#include "sim/base/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    NARROWEST = 40,
    WIDEST = 160,
    MOST_ROWS = 16,
    MOST_DEVICES = 4096, /* that are looked at */
    NAME = 12,           /* column of the devices' names */
    AMOUNT = 11,         /* " 12.34 GB" behind a bar of memory */
};

/* ---- looks ---- */

typedef enum use {
    USE_FORWARD,
    USE_BACKWARD,
    USE_BACKWARD_INPUT,
    USE_BACKWARD_WEIGHT,
    USE_RECOMPUTE,
    USE_UPDATE,
    USE_MESSAGES,
    USE_COLLECTIVES,
    USE_DEPENDENCY,
    USE_FLUSH,
    N_USES
} use;

typedef struct look {
    const char *unicode, *ascii;
    const char *colour; /* of ECMA-48: the foreground */
    const char *legend;
} look;

static const look looks[N_USES] = {
    {"░", "-", "36", "forward"},
    {"█", "#", "33", "backward"},
    {"▓", "o", "33", "backward input"},
    {"▚", "+", "32", "backward weight"},
    {"▒", "=", "35", "recompute"},
    {"▲", "^", "35", "update"},
    {"~", "~", "34", "waiting for messages"},
    {"≈", "%", "34", "waiting for collectives"},
    {"·", ".", "39", "waiting for others"},
    {" ", " ", "39", "blank: waiting for flush"},
};

typedef enum part { PART_ACTIVATIONS, PART_REST, PART_ROOM, PART_CAPACITY, N_PARTS } part;

static const look parts[N_PARTS] = {
    {"█", "#", "33", "activations"},
    {"▒", ":", "36", "all else"},
    {" ", " ", "39", ""},
    {"│", "|", "39", "capacity"},
};

static const use uses_of_kinds[CS_N_KINDS] = {
    [CS_FORWARD] = USE_FORWARD,
    [CS_BACKWARD] = USE_BACKWARD,
    [CS_BACKWARD_INPUT] = USE_BACKWARD_INPUT,
    [CS_BACKWARD_WEIGHT] = USE_BACKWARD_WEIGHT,
    [CS_RECOMPUTE] = USE_RECOMPUTE,
    [CS_UPDATE] = USE_UPDATE,
};

/* Characters of a row, each a position in a table of looks; of one colour they share an escape. */
static void print_cells(const cs_text_canvas *canvas, const look *table, const uint8_t *cells,
                        uint32_t n, FILE *out)
{
    const char *colour = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const look *own = &table[cells[i]];
        if (canvas->colour && (!colour || strcmp(colour, own->colour) != 0))
            fprintf(out, "\033[%sm", own->colour);
        colour = own->colour;
        fputs(canvas->unicode ? own->unicode : own->ascii, out);
    }
    if (canvas->colour)
        fputs("\033[0m", out);
}

static void print_legend(const cs_text_canvas *canvas, const look *table, const bool *shown,
                         uint32_t n, FILE *out)
{
    uint32_t used = NAME;
    bool begun = false;
    fprintf(out, "%*s", NAME, "");
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t width = (uint32_t)strlen(table[i].legend) + 4;
        const uint8_t cell = (uint8_t)i;
        if (!shown[i] || !*table[i].legend)
            continue;
        if (used + width > canvas->columns && begun) {
            fprintf(out, "\n%*s", NAME, "");
            used = NAME;
        } else if (begun) {
            fputs("  ", out);
        }
        if (*table[i].ascii != ' ') {
            print_cells(canvas, table, &cell, 1, out);
            fputc(' ', out);
        }
        fputs(table[i].legend, out);
        begun = true;
        used += width;
    }
    fputc('\n', out);
}

/* ---- the timeline ---- */

/* Per device and character the time of each use. */
typedef struct chart {
    const cs_simulation *simulation;
    uint32_t n_devices, n_cells;
    double *times;
    uint8_t *cells; /* the largest of each */
} chart;

/* Divides a stretch among the characters that it touches. */
static void add_time(chart *c, uint32_t device, use what, cs_time start, cs_time end)
{
    const double cell = (double)c->simulation->trace.makespan / c->n_cells;
    if (device >= c->n_devices || start < 0 || end <= start)
        return;
    for (uint32_t i = (uint32_t)((double)start / cell); i < c->n_cells; i++) {
        const double from = i * cell > (double)start ? i * cell : (double)start;
        const double until = (i + 1) * cell < (double)end ? (i + 1) * cell : (double)end;
        if (until <= from && i * cell >= (double)end)
            return;
        if (until > from)
            c->times[((size_t)device * c->n_cells + i) * N_USES + what] += until - from;
    }
}

static void add_tasks(chart *c)
{
    const cs_graph *graph = &c->simulation->graph;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        const cs_span span = c->simulation->trace.spans[task];
        if (cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE)
            add_time(c, cls->device, uses_of_kinds[cls->kind], span.start, span.end);
    }
}

static void choose_cells(chart *c)
{
    for (size_t i = 0; i < (size_t)c->n_devices * c->n_cells; i++) {
        use most = USE_FLUSH;
        for (use u = 0; u < N_USES; u++)
            if (c->times[i * N_USES + u] > c->times[i * N_USES + most])
                most = u;
        c->cells[i] = (uint8_t)most;
    }
}

static cs_status fill(chart *c, cs_error *error)
{
    static const use causes[] = {[CS_WAIT_MESSAGES] = USE_MESSAGES,
                                 [CS_WAIT_COLLECTIVES] = USE_COLLECTIVES,
                                 [CS_WAIT_DEPENDENCY] = USE_DEPENDENCY,
                                 [CS_WAIT_FLUSH] = USE_FLUSH};
    const size_t n = (size_t)c->n_devices * c->n_cells;
    cs_wait_reader waits = {.of = &c->simulation->analysis.waits};
    cs_wait wait;
    c->times = calloc(n * N_USES + 1, sizeof(*c->times));
    c->cells = calloc(n + 1, 1);
    if (!c->times || !c->cells)
        return cs_error_no_memory(error);
    add_tasks(c);
    while (cs_wait_next(&waits, &wait))
        add_time(c, wait.device, causes[wait.cause], wait.start, wait.end);
    choose_cells(c);
    return CS_OK;
}

/* ---- memory ---- */

static const cs_device_record *record_of(const chart *c, uint32_t device)
{
    return &c->simulation->trace.devices[device];
}

/* The capacities are in the picture where they are not far above all peaks. */
static double scale_of(const chart *c)
{
    int64_t peak = 1, capacity = 0;
    for (uint32_t d = 0; d < c->n_devices; d++) {
        const cs_device_record *device = record_of(c, d);
        peak = device->peak > peak ? device->peak : peak;
        if (device->capacity != INT64_MAX && device->capacity > capacity)
            capacity = device->capacity;
    }
    return capacity > peak && capacity / 4 <= peak ? (double)capacity : (double)peak;
}

/* Activations, then all else that is there at the peak; the capacity is a mark. */
static void fill_bar(const cs_device_record *device, double scale, uint8_t *cells, uint32_t n)
{
    const double unit = n / scale;
    const uint32_t whole = (uint32_t)((double)device->peak * unit + 0.5);
    const uint32_t activations =
        (uint32_t)((double)device->at_peak[CS_MEMORY_ACTIVATIONS] * unit + 0.5);
    for (uint32_t i = 0; i < n; i++)
        cells[i] = i < activations ? PART_ACTIVATIONS : i < whole ? PART_REST : PART_ROOM;
    const double mark = (double)device->capacity * unit - 0.5;
    if (device->capacity != INT64_MAX && mark < n)
        cells[mark > 0 ? (uint32_t)mark : 0] = PART_CAPACITY;
}

/* ---- rows ---- */

/* Devices first to last look the same; of a folded run the others are those it stands for. */
typedef struct row {
    uint32_t device, last;
} row;

static bool look_alike(const chart *c, uint32_t a, uint32_t b)
{
    const cs_device_record *x = record_of(c, a), *y = record_of(c, b);
    return memcmp(c->cells + (size_t)a * c->n_cells, c->cells + (size_t)b * c->n_cells,
                  c->n_cells) == 0 &&
           x->peak == y->peak && x->capacity == y->capacity;
}

static uint32_t find_rows(const chart *c, row rows[MOST_ROWS], uint32_t *left)
{
    const cs_graph *graph = &c->simulation->graph;
    uint32_t n = 0, d = 0;
    for (; d < c->n_devices; d++) {
        const uint32_t own = cs_graph_stand_in(graph, d);
        if (n > 0 && (own == rows[n - 1].device || look_alike(c, own, rows[n - 1].device))) {
            rows[n - 1].last = d;
            continue;
        }
        if (n == MOST_ROWS)
            break;
        rows[n++] = (row){own, d};
    }
    *left = graph->n_devices - d;
    return n;
}

static void print_name(const row *of, uint32_t first, FILE *out)
{
    char name[32];
    if (of->last > first)
        snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu32, first, of->last);
    else
        snprintf(name, sizeof(name), "%" PRIu32, of->last);
    fprintf(out, "%*s ", NAME - 1, name);
}

static uint32_t first_of(const row *rows, uint32_t i)
{
    return i == 0 ? 0 : rows[i - 1].last + 1;
}

/* ---- printing ---- */

static void print_timeline(const chart *c, const cs_text_canvas *canvas, const row *rows,
                           uint32_t n, FILE *out)
{
    bool shown[N_USES] = {false};
    char time[CS_UNITS_TEXT_BYTES];
    const double cell = cs_time_seconds(c->simulation->trace.makespan) / c->n_cells;
    fprintf(out, "\ntimeline    %s a character\n",
            cs_units_format(cell, CS_QUANTITY_TIME, 4, time, sizeof(time)));
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *cells = c->cells + (size_t)rows[i].device * c->n_cells;
        for (uint32_t k = 0; k < c->n_cells; k++)
            shown[cells[k]] = true;
        print_name(&rows[i], first_of(rows, i), out);
        print_cells(canvas, looks, cells, c->n_cells, out);
        fputc('\n', out);
    }
    cs_units_format(cs_time_seconds(c->simulation->trace.makespan), CS_QUANTITY_TIME, 4, time,
                    sizeof(time));
    fprintf(out, "%*s0%*s\n", NAME, "", (int)c->n_cells - 1, time);
    print_legend(canvas, looks, shown, N_USES, out);
}

static void print_memory(const chart *c, const cs_text_canvas *canvas, const row *rows, uint32_t n,
                         FILE *out)
{
    static const char over[] = " OUT OF MEMORY";
    bool shown[N_PARTS] = {false}, any = false;
    uint8_t cells[WIDEST];
    char bytes[CS_UNITS_TEXT_BYTES];
    for (uint32_t i = 0; i < n; i++)
        any = any || record_of(c, rows[i].device)->out_of_memory;
    const uint32_t width = c->n_cells - AMOUNT - (any ? (uint32_t)strlen(over) : 0);
    const double scale = scale_of(c);
    fprintf(out, "memory      at the peak of each device\n");
    for (uint32_t i = 0; i < n; i++) {
        const cs_device_record *device = record_of(c, rows[i].device);
        fill_bar(device, scale, cells, width);
        for (uint32_t k = 0; k < width; k++)
            shown[cells[k]] = true;
        print_name(&rows[i], first_of(rows, i), out);
        print_cells(canvas, parts, cells, width, out);
        fprintf(out, " %s%s\n",
                cs_units_format((double)device->peak, CS_QUANTITY_BYTES, 4, bytes, sizeof(bytes)),
                device->out_of_memory ? over : "");
    }
    print_legend(canvas, parts, shown, N_PARTS, out);
}

cs_status cs_run_picture(const cs_simulation *simulation, const cs_text_canvas *canvas, FILE *out,
                         cs_error *error)
{
    const uint32_t columns = canvas->columns < NARROWEST ? NARROWEST
                             : canvas->columns > WIDEST  ? WIDEST
                                                         : canvas->columns;
    const uint32_t all = simulation->graph.n_devices;
    chart c = {.simulation = simulation,
               .n_devices = all < MOST_DEVICES ? all : MOST_DEVICES,
               .n_cells = columns - NAME - 1};
    row rows[MOST_ROWS];
    uint32_t left = 0;
    if (simulation->trace.makespan <= 0)
        return CS_OK;
    const cs_status status = fill(&c, error);
    if (status == CS_OK) {
        const uint32_t n = find_rows(&c, rows, &left);
        print_timeline(&c, canvas, rows, n, out);
        print_memory(&c, canvas, rows, n, out);
        if (left > 0)
            fprintf(out, "%*s and %" PRIu32 " more devices\n", NAME - 1, "...", left);
    }
    free(c.times);
    free(c.cells);
    return status;
}
