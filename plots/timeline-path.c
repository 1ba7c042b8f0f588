#include "plots/timeline.h"

#include <math.h>

/* ---- the critical path: a line along the boxes of its steps ---- */

/* A corner is left out where it is nearer to the one before than can be seen. */
typedef struct pen {
    FILE *out;
    double x, y; /* units, of the last corner */
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
    *y =
        cs_timeline_row(t, t->panels[panel].first_row + (row - first)) + t->bottom[CS_LANE_COMPUTE];
    return true;
}

/* A step that computes is a line below its box; one that sends leads from device to device. */
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

/* Rows that the steps within what is shown lead across, all together. */
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

void cs_timeline_find_paths(cs_timeline *t)
{
    const double line = 4, most = 0.25; /* units; of the picture's area */
    const double width = fmax(t->sheet->width - t->sheet->left - t->sheet->right, 1);
    t->path = !t->named && !t->sheet->options->plain;
    for (uint32_t p = 0; p < t->n_panels && t->path; p++)
        t->path = t->panels[p].run.path.n > 0 &&
                  rows_crossed(t, p) / t->panels[p].n_rows * line / width <= most;
}

void cs_timeline_write_paths(cs_timeline *t)
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
