#include "plots/timeline.h"

#include "sim/base/text.h"
#include "sim/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST_LABEL = 7, /* units */
    LABEL_ROOM = 1,     /* a box must be this many units wider than its label */
    HEADING = 20,       /* height of a run's heading if there are several runs, in units */
};

/* Boxes of at least this width, in units, get a white outline. */
static const double outlined = 3;

/* ---- lay-out ---- */

/* Returns the top of a row, in rows, including the headings of panels. */
static double row_top(const cs_timeline *t, uint32_t row)
{
    uint32_t p = t->n_panels - 1;
    while (p > 0 && row < t->panels[p].first_row)
        p--;
    return t->panels[p].top + (row - t->panels[p].first_row);
}

/* Few devices get tall rows; many get rows just tall enough for their number; hundreds share the
 * remaining height. */
static double choose_row_height(const cs_timeline *t)
{
    const double tallest = t->named ? 22 : 34, n = t->n_rows;
    const double height = fmin(tallest, fmax(13, 420. / n));
    return n * height > 2400 ? fmax(2400. / n, 2) : height;
}

static void label_of(const cs_timeline *t, const cs_timeline_box *b, char *text, size_t size)
{
    if (t->named)
        cs_text_format(text, size, "%s", b->name);
    else
        snprintf(text, size, "%u", b->number);
}

static bool has_room(const cs_timeline *t, const cs_timeline_box *b, const char *text)
{
    const double room = (double)(b->end - b->start) * t->scale;
    return b->lane == CS_LANE_COMPUTE && t->label_size > 0 && b->numbered &&
           cs_sheet_text_width(text, t->label_size) + LABEL_ROOM <= room;
}

/* Whether any box has room for its label. */
static bool shows_labels(const cs_timeline *t)
{
    char text[16];
    for (size_t i = 0; i < t->n_boxes; i++) {
        label_of(t, &t->boxes[i], text, sizeof(text));
        if (has_room(t, &t->boxes[i], text))
            return true;
    }
    return false;
}

/* Returns the largest font size that still fits every label that fits at SMALLEST_LABEL. */
static double size_that_fits(const cs_timeline *t)
{
    double size = CS_SHEET_FONT;
    for (size_t i = 0; i < t->n_boxes; i++) {
        const cs_timeline_box *b = &t->boxes[i];
        char text[16];
        const double room = (double)(b->end - b->start) * t->scale - LABEL_ROOM;
        if (b->lane != CS_LANE_COMPUTE || !b->numbered || room <= 0)
            continue;
        label_of(t, b, text, sizeof(text));
        const double fits = room / cs_sheet_text_width(text, 1);
        if (fits >= SMALLEST_LABEL)
            size = fmin(size, fits);
    }
    return size;
}

static void place_panels(cs_timeline *t, double height)
{
    const double heading = t->n_panels > 1 ? HEADING : 0;
    t->row_height = fmax((height - t->n_panels * heading) / t->n_rows, 1);
    double top = 0;
    for (uint32_t p = 0; p < t->n_panels; p++) {
        top += heading / t->row_height;
        t->panels[p].top = top;
        top += t->panels[p].n_rows;
    }
}

static void place_lanes(cs_timeline *t)
{
    const bool two_lanes = t->row_height >= 20;
    t->top[CS_LANE_COMPUTE] = 0.05;
    t->bottom[CS_LANE_COMPUTE] = t->transfers ? 0.69 : 0.92;
    t->top[CS_LANE_UP] = 0.72;
    t->bottom[CS_LANE_UP] = two_lanes ? 0.81 : 0.92;
    t->top[CS_LANE_DOWN] = two_lanes ? 0.83 : 0.72;
    t->bottom[CS_LANE_DOWN] = 0.92;
}

static void choose_labels(cs_timeline *t)
{
    double room = (t->bottom[CS_LANE_COMPUTE] - t->top[CS_LANE_COMPUTE]) * t->row_height;
    t->label_size = fmin(CS_SHEET_FONT, room * 0.85);
    if (t->label_size < 6)
        t->label_size = 0;
    if (t->label_size > SMALLEST_LABEL)
        t->label_size = fmax(SMALLEST_LABEL, fmin(t->label_size, size_that_fits(t)));
}

/* Places the rows twice, before and after writing the legend: the legend mentions labels only if
 * any fit, and it takes height away from the rows. */
static void lay_out(cs_timeline *t)
{
    cs_sheet *sheet = t->sheet;
    const double heading = t->n_panels > 1 ? HEADING : 0;
    const double rows = t->n_rows * choose_row_height(t) + t->n_panels * heading;
    place_panels(t, sheet->height > 0 ? sheet->height - sheet->top - sheet->bottom : rows);
    place_lanes(t);
    choose_labels(t);
    t->numbers = shows_labels(t);
    cs_timeline_legend(t);
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + sheet->bottom + rows);
    place_panels(t, fmax(sheet->height - sheet->top - sheet->bottom, 1));
    place_lanes(t);
    choose_labels(t);
}

/* Makes the left margin wide enough for the widest row name. */
static void make_room(cs_timeline *t)
{
    t->sheet->left = 0;
    for (uint32_t p = 0; p < t->n_panels; p++)
        t->sheet->left =
            fmax(t->sheet->left, cs_sheet_device_names_room(t->sheet, p, t->panels[p].n_rows));
}

/* Writes a run's heading: "gpipe: 903.5 ms", "1f1b: 889.3 ms (-1.6 %); OUT OF MEMORY on 1
 * device". */
static void write_heading(const cs_timeline *t, uint32_t p)
{
    static const char *const pair[] = {"predicted", "measured"};
    const cs_sheet *sheet = t->sheet;
    char text[256], name[128], time[64];
    const double first = cs_reader_figure(sheet->readers[0], "iteration_time_s");
    const double own = cs_reader_figure(sheet->readers[p], "iteration_time_s");
    const double base =
        sheet->side_by_side ? first : cs_reader_figure(sheet->readers[1], "iteration_time_s");
    size_t used = (size_t)cs_text_format(
        text, sizeof(text), "%s",
        sheet->side_by_side ? cs_sheet_run_name(sheet, p, name, sizeof(name)) : pair[p]);
    if (isfinite(own))
        used += (size_t)snprintf(text + used, sizeof(text) - used, ": iteration time %s",
                                 cs_units_format(own, CS_QUANTITY_TIME, 4, time, sizeof(time)));
    if (isfinite(own / base) && p != (sheet->side_by_side ? 0 : 1))
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 sheet->side_by_side ? " (%+.1f %%)" : " (error %+.1f %%)",
                                 100 * (own / base - 1));
    if (sheet->out_of_memory[p] > 0)
        snprintf(text + used, sizeof(text) - used, "; OUT OF MEMORY on %u device%s",
                 sheet->out_of_memory[p], sheet->out_of_memory[p] == 1 ? "" : "s");
    cs_sheet_shorten(text, CS_SHEET_FONT, sheet->width - sheet->left - sheet->right);
    cs_sheet_text(t->sheet, sheet->left,
                  sheet->top + t->row_height * t->panels[p].top - HEADING / 2.,
                  sheet->out_of_memory[p] > 0 ? CS_COLOUR_BAD : CS_COLOUR_TEXT, text);
}

static void write_headings(const cs_timeline *t)
{
    for (uint32_t p = 0; t->n_panels > 1 && p < t->n_panels; p++)
        write_heading(t, p);
}

/* ---- data ---- */

static double in_units(const cs_timeline *t, cs_time time)
{
    return (double)time / t->unit;
}

static FILE *file_for(const cs_timeline *t, const cs_timeline_box *b)
{
    if (b->gathered)
        return t->narrow;
    if (cs_timeline_waits(t, b))
        return t->waits;
    return (double)(b->end - b->start) * t->scale >= outlined ? t->wide : t->narrow;
}

/* Returns gnuplot's hatching pattern for a wait; 0: none. */
static int pattern_of(const cs_timeline *t, const cs_timeline_box *b)
{
    enum { SLANTED = 4, GRID = 2 }; /* pattern numbers of the cairo and SVG terminals */
    const char *cause = t->kinds[b->kind];
    return strcmp(cause, "messages") == 0 ? SLANTED : strcmp(cause, "collectives") == 0 ? GRID : 0;
}

static void write_rectangle(cs_timeline *t, const cs_timeline_box *b, double top, double bottom)
{
    FILE *out = file_for(t, b);
    const double row = row_top(t, b->row);
    fprintf(out, "%.15g %.15g %.6g %.6g %u", in_units(t, b->start), in_units(t, b->end), row + top,
            row + bottom, cs_timeline_colour(t, b));
    if (out == t->waits)
        fprintf(out, " %d", pattern_of(t, b));
    fputc('\n', out);
}

static void write_box(cs_timeline *t, const cs_timeline_box *b)
{
    write_rectangle(t, b, t->top[b->lane], t->bottom[b->lane]);
}

static void write_label(cs_timeline *t, const cs_timeline_box *b)
{
    char text[16];
    label_of(t, b, text, sizeof(text));
    if (!has_room(t, b, text))
        return;
    double middle = row_top(t, b->row) + (t->top[CS_LANE_COMPUTE] + t->bottom[CS_LANE_COMPUTE]) / 2;
    fprintf(t->labels, "%.15g %.6g \"%s\" %u\n",
            in_units(t, b->start) + in_units(t, b->end - b->start) / 2, middle, text,
            cs_colour_on(cs_timeline_colour(t, b)));
}

/* Consecutive slivers, i.e. boxes narrower than half a unit, that start in the same cell. They are
 * drawn as one box over the time they span; each kind is as high as its share of that time, so idle
 * time remains visible. This bounds the number of boxes drawn, even for millions of tasks. */
typedef struct gathering {
    /* time from the first box to the last so far; other members are from the first box */
    cs_timeline_box span;
    uint32_t n_boxes;
    /* ps, indexed by SHADES * kind + shade */
    double of_looks[CS_TIMELINE_SHADES * CS_TIMELINE_ALL];
} gathering;

static void write_shares(cs_timeline *t, const gathering *g)
{
    const uint32_t n_looks = CS_TIMELINE_SHADES * (t->n_kinds + t->n_causes);
    double bottom = t->bottom[g->span.lane];
    double height = bottom - t->top[g->span.lane], all = (double)(g->span.end - g->span.start);
    for (uint32_t i = 0; i < n_looks; i++)
        all = fmax(all, g->of_looks[i]); /* the sum may exceed the span, as transfers may overlap */
    for (uint32_t i = 0; i < n_looks; i++) {
        cs_timeline_box shown = g->span;
        double share = fmin(g->of_looks[i] / all * height, bottom - t->top[shown.lane]);
        if (share <= 0)
            continue;
        shown.kind = (uint16_t)(i / CS_TIMELINE_SHADES);
        shown.shade = (uint8_t)(i % CS_TIMELINE_SHADES);
        write_rectangle(t, &shown, bottom - share, bottom);
        bottom -= share;
    }
}

static void close_cell(cs_timeline *t, gathering *g)
{
    if (g->n_boxes == 1)
        write_box(t, &g->span);
    else if (g->n_boxes > 1)
        write_shares(t, g);
    g->n_boxes = 0;
}

static void add_sliver(cs_timeline *t, gathering *g, const cs_timeline_box *b)
{
    if (g->n_boxes > 0 && (cs_timeline_cell_of(t, b) != cs_timeline_cell_of(t, &g->span) ||
                           b->row != g->span.row || b->lane != g->span.lane))
        close_cell(t, g);
    if (g->n_boxes++ == 0) {
        g->span = *b;
        g->span.gathered = true;
        memset(g->of_looks, 0, sizeof(g->of_looks));
    }
    g->span.end = b->end > g->span.end ? b->end : g->span.end;
    g->of_looks[CS_TIMELINE_SHADES * b->kind + b->shade] += (double)(b->end - b->start);
}

static void write_boxes(cs_timeline *t)
{
    gathering g = {0};
    for (size_t i = 0; i < t->n_boxes; i++) {
        const cs_timeline_box *b = &t->boxes[i];
        if (cs_timeline_is_sliver(t, b)) {
            add_sliver(t, &g, b);
            continue;
        }
        close_cell(t, &g);
        write_box(t, b);
        write_label(t, b);
    }
    close_cell(t, &g);
}

/* Writes the rows of devices, which are the background of the boxes, with as many names as have
 * room. */
static void write_rows(const cs_timeline *t, FILE *out)
{
    const uint32_t step = (uint32_t)ceil((CS_SHEET_FONT + 1) / t->row_height);
    for (uint32_t p = 0; p < t->n_panels; p++)
        for (uint32_t row = 0; row < t->panels[p].n_rows; row++) {
            char name[64] = "";
            if (row % step == 0)
                cs_sheet_device_name(t->sheet, p, t->sheet->first_device + row, name, sizeof(name));
            fprintf(out, "%.9g ", t->panels[p].top + row);
            cs_sheet_quote(out, name);
            fputc('\n', out);
        }
}

/* ---- critical path: a line along the boxes of its steps ---- */

/* Draws the line; skips a corner that is too close to the previous corner to be seen. */
typedef struct pen {
    FILE *out;
    double x, y; /* last corner, in units */
    bool down;
} pen;

static void corner(cs_timeline *t, pen *p, cs_time time, double y)
{
    const double x = (double)(time - t->sheet->from) * t->scale, down = y * t->row_height;
    if (p->down && fabs(x - p->x) < 0.3 && fabs(down - p->y) < 0.3)
        return;
    fprintf(p->out, "%.15g %.6g\n", (double)time / t->unit, y);
    *p = (pen){p->out, x, down, true};
}

static void lift(pen *p)
{
    if (p->down)
        fputc('\n', p->out);
    p->down = false;
}

static bool find_place(const cs_timeline *t, uint32_t panel, uint32_t row, double *y)
{
    const uint32_t first = t->sheet->first_device;
    if (row < first || row - first >= t->panels[panel].n_rows)
        return false;
    *y = row_top(t, t->panels[panel].first_row + (row - first)) + t->bottom[CS_LANE_COMPUTE];
    return true;
}

/* Draws a step: a computation as a line below its box, a transfer as a line from device to
 * device. */
static void draw_step(cs_timeline *t, uint32_t panel, uint64_t i, pen *p)
{
    const cs_drawn_tasks *drawn = &t->panels[panel].run.tasks;
    const cs_drawn_path *s = &t->panels[panel].run.path;
    const cs_reader_tasks *tasks = &drawn->is;
    const uint32_t task = s->task[i];
    double from, to;
    if (s->end[i] <= t->sheet->from || s->start[i] >= t->sheet->until || task >= tasks->n ||
        !find_place(t, panel, s->row_of[task], &from)) {
        lift(p);
        return;
    }
    const bool sends = drawn->moves[tasks->kind[task]];
    if (!sends || !find_place(t, panel, tasks->peer[task], &to))
        to = from;
    const bool whole = s->start[i] >= t->sheet->from && s->end[i] <= t->sheet->until;
    corner(t, p, s->start[i] > t->sheet->from ? s->start[i] : t->sheet->from, from);
    corner(t, p, s->end[i] < t->sheet->until ? s->end[i] : t->sheet->until, whole ? to : from);
}

/* Returns the total number of rows that the path's steps cross within the time range shown. */
static double rows_crossed(const cs_timeline *t, uint32_t panel)
{
    const cs_reader_tasks *tasks = &t->panels[panel].run.tasks.is;
    const cs_drawn_path *s = &t->panels[panel].run.path;
    double rows = 0;
    for (uint64_t i = 1; i < s->n; i++) {
        const uint32_t task = s->task[i], before = s->task[i - 1];
        if (task < tasks->n && before < tasks->n && s->start[i] >= t->sheet->from &&
            s->start[i] < t->sheet->until)
            rows += fabs((double)s->row_of[task] - s->row_of[before]);
    }
    return rows;
}

/* Sets t->path: whether critical paths are drawn. Paths that constantly jump between many devices
 * would cover the picture, so they are omitted. */
static void find_paths(cs_timeline *t)
{
    const double line = 4, most = 0.25; /* line width in units; fraction of the picture's area */
    const double width = fmax(t->sheet->width - t->sheet->left - t->sheet->right, 1);
    t->path = !t->named && !t->sheet->options->plain;
    for (uint32_t p = 0; p < t->n_panels && t->path; p++)
        t->path = t->panels[p].run.path.n > 0 &&
                  rows_crossed(t, p) / t->panels[p].n_rows * line / width <= most;
}

static void write_paths(cs_timeline *t)
{
    FILE *out = cs_gnuplot_file(t->sheet->job, "path.dat");
    fputs("NaN NaN\n\n", out); /* so that it is not empty */
    for (uint32_t p = 0; p < t->n_panels && t->path; p++) {
        pen line = {.out = out};
        for (uint64_t i = 0; i < t->panels[p].run.path.n; i++)
            draw_step(t, p, i, &line);
        lift(&line);
    }
}

/* ---- the picture ---- */

static void write_data(cs_timeline *t)
{
    cs_gnuplot *job = t->sheet->job;
    t->wide = cs_gnuplot_file(job, "wide.dat");
    t->narrow = cs_gnuplot_file(job, "narrow.dat");
    t->waits = cs_gnuplot_file(job, "waits.dat");
    t->labels = cs_gnuplot_file(job, "labels.dat");
    fputs("NaN NaN NaN NaN 0 0\n", t->waits); /* so that it is not empty */
    write_boxes(t);
    write_rows(t, cs_gnuplot_file(job, "rows.dat"));
    write_paths(t);
}

static void write_parameters(cs_timeline *t)
{
    cs_gnuplot_number(t->sheet->job, "from", in_units(t, t->sheet->from));
    cs_gnuplot_number(t->sheet->job, "until", in_units(t, t->sheet->until));
    cs_gnuplot_number(t->sheet->job, "lane_top", t->top[CS_LANE_COMPUTE]);
    cs_gnuplot_number(t->sheet->job, "lane_bottom", t->bottom[CS_LANE_COMPUTE]);
    cs_gnuplot_number(t->sheet->job, "label_size", t->label_size);
    cs_gnuplot_number(t->sheet->job, "idle_colour", CS_COLOUR_IDLE);
    cs_gnuplot_number(t->sheet->job, "n_rows",
                      (t->sheet->height - t->sheet->top - t->sheet->bottom) / t->row_height);
    cs_gnuplot_number(t->sheet->job, "has_path", t->path);
    cs_sheet_time_axis(t->sheet, "device");
}

/* Chooses the width such that the name of the shortest box fits, within limits. */
static void prepare_names(cs_timeline *t)
{
    enum { NARROWEST = 320, WIDEST = 1300 };
    const cs_reader_tasks *tasks = &t->panels[0].run.tasks.is;
    cs_sheet *sheet = t->sheet;
    cs_timeline_box made;
    double shown = (double)(sheet->until - sheet->from), margins = sheet->left + sheet->right,
           wanted = 0;
    for (uint64_t i = 0; i < tasks->n; i++) {
        if (tasks->micro_batch[i] > 0 && tasks->kind[i] < CS_TIMELINE_KINDS)
            t->divided[tasks->kind[i]] = true;
    }
    for (uint64_t i = 0; i < tasks->n; i++) {
        if (cs_timeline_box_of(t, 0, i, &made))
            wanted = fmax(wanted, (cs_sheet_text_width(made.name, CS_SHEET_FONT) + 3) /
                                      (double)(tasks->end[i] - tasks->start[i]));
    }
    if (sheet->asked_width == 0)
        sheet->width = fmin(fmax(wanted * shown + margins, NARROWEST), WIDEST);
}

static cs_status prepare(cs_timeline *t, cs_error *error)
{
    cs_sheet *sheet = t->sheet;
    CS_TRY(cs_timeline_read(t, error));
    make_room(t);
    if (t->named)
        prepare_names(t);
    cs_sheet_run_title(sheet);
    t->scale =
        fmax(sheet->width - sheet->left - sheet->right, 1) / (double)(sheet->until - sheet->from);
    t->cell = fmax(2, t->n_rows / 12.);
    find_paths(t);
    CS_TRY(cs_timeline_collect(t, error));
    t->unit = cs_sheet_time_unit(sheet);
    lay_out(t);
    write_headings(t);
    write_data(t);
    return CS_OK;
}

static cs_status draw(cs_sheet *sheet, bool named, const char *output, cs_error *error)
{
    cs_timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return cs_error_no_memory(error);
    *t = (cs_timeline){.sheet = sheet, .named = named, .n_panels = sheet->n_readers};
    const cs_status status = prepare(t, error);
    if (status == CS_OK)
        write_parameters(t);
    cs_timeline_finish(t);
    free(t);
    return status == CS_OK ? cs_sheet_draw(sheet, output, "timeline.gp", error) : status;
}

cs_status cs_plot_timeline(cs_sheet *sheet, const char *output, cs_error *error)
{
    return draw(sheet, false, output, error);
}

cs_status cs_plot_boxes(cs_sheet *sheet, const char *output, cs_error *error)
{
    return draw(sheet, true, output, error);
}
