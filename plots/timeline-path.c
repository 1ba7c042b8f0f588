#include "plots/timeline.h"

#include <math.h>

/* ---- the critical path: a line along the boxes of its steps ---- */

typedef struct steps {
    const uint32_t *task, *row_of;
    const int64_t *start, *end;
    uint64_t n;
} steps;

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
static void draw_step(cs_timeline *t, uint32_t panel, const steps *s, uint64_t i, pen *p)
{
    const cs_reader_tasks *tasks = &t->panels[panel].tasks;
    const uint32_t task = s->task[i];
    double from, to;
    if (s->end[i] <= t->sheet->from || s->start[i] >= t->sheet->until || task >= tasks->n ||
        !find_place(t, panel, s->row_of[task], &from)) {
        lift(p);
        return;
    }
    const bool sends = cs_style_of(tasks->kinds[tasks->kind[task]])->moves;
    if (!sends || !find_place(t, panel, tasks->peer[task], &to))
        to = from;
    const bool whole = s->start[i] >= t->sheet->from && s->end[i] <= t->sheet->until;
    corner(t, p, s->start[i] > t->sheet->from ? s->start[i] : t->sheet->from, from);
    corner(t, p, s->end[i] < t->sheet->until ? s->end[i] : t->sheet->until, whole ? to : from);
}

/* Files of earlier versions may have none: then there are no steps. */
static cs_status read_steps(cs_reader *reader, steps *s, cs_error *error)
{
    const char *const *names;
    uint32_t n = 0;
    const cs_reader_column columns[] = {{"critical_path/task", CS_READER_UINT32, &s->task},
                                        {"critical_path/start", CS_READER_INT64, &s->start},
                                        {"critical_path/end", CS_READER_INT64, &s->end}};
    *s = (steps){0};
    CS_TRY(cs_reader_names(reader, "/", "critical_path", &names, &n, error));
    if (n == 0)
        return CS_OK;
    CS_TRY(cs_reader_read(reader, columns, 3, &s->n, error));
    return cs_reader_task_rows(reader, &s->row_of, error);
}

/* Rows that the steps within what is shown lead across, all together. */
static double rows_crossed(const cs_timeline *t, uint32_t panel, const steps *s)
{
    const cs_reader_tasks *tasks = &t->panels[panel].tasks;
    double rows = 0;
    for (uint64_t i = 1; i < s->n; i++) {
        const uint32_t task = s->task[i], before = s->task[i - 1];
        if (task < tasks->n && before < tasks->n && s->start[i] >= t->sheet->from &&
            s->start[i] < t->sheet->until)
            rows += fabs((double)s->row_of[task] - s->row_of[before]);
    }
    return rows;
}

cs_status cs_timeline_find_paths(cs_timeline *t, cs_error *error)
{
    const double line = 4, most = 0.25; /* units; of the picture's area */
    const double width = fmax(t->sheet->width - t->sheet->left - t->sheet->right, 1);
    t->path = !t->named && !t->sheet->options->plain;
    for (uint32_t p = 0; p < t->n_panels && t->path; p++) {
        steps s;
        CS_TRY(read_steps(t->panels[p].reader, &s, error));
        t->path = s.n > 0 && rows_crossed(t, p, &s) / t->panels[p].n_rows * line / width <= most;
    }
    return CS_OK;
}

static cs_status draw_path(cs_timeline *t, uint32_t panel, FILE *out, cs_error *error)
{
    steps s;
    pen p = {.out = out};
    CS_TRY(read_steps(t->panels[panel].reader, &s, error));
    for (uint64_t i = 0; i < s.n; i++)
        draw_step(t, panel, &s, i, &p);
    lift(&p);
    return CS_OK;
}

cs_status cs_timeline_write_paths(cs_timeline *t, cs_error *error)
{
    FILE *out;
    CS_TRY(cs_gnuplot_open(t->sheet->job, "path.dat", &out, error));
    fputs("NaN NaN\n\n", out); /* so that it is not empty */
    cs_status status = CS_OK;
    for (uint32_t p = 0; p < t->n_panels && t->path && status == CS_OK; p++)
        status = draw_path(t, p, out, error);
    const cs_status closed = cs_gnuplot_close(out, "path.dat", error);
    return status == CS_OK ? closed : status;
}
