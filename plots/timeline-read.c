#include "plots/timeline.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Width, in units, below which a box is drawn together with its neighbours. */
static const double sliver = 0.5;

/* ---- runs ---- */

/* Checks that all runs number the task kinds like the first run, whose names are used. */
static cs_status check_alike(const cs_timeline *t, cs_error *error)
{
    for (uint32_t p = 1; p < t->n_panels; p++) {
        const cs_timeline_panel *panel = &t->panels[p];
        const cs_reader_tasks *tasks = &panel->run.tasks.is;
        bool alike = tasks->n_kinds == t->n_kinds;
        for (uint32_t k = 0; alike && k < t->n_kinds; k++)
            alike = strcmp(tasks->kinds[k], t->kinds[k]) == 0;
        if (!alike)
            return cs_error_add(error, CS_INVALID,
                                "%s: tasks/kind: not coded as in %s: of another version",
                                t->sheet->readers[p]->path, t->sheet->readers[0]->path);
    }
    return CS_OK;
}

static cs_status find_chunks(cs_timeline *t, cs_timeline_panel *panel, cs_error *error);

cs_status cs_timeline_read(cs_timeline *t, cs_error *error)
{
    const bool plain = t->named || t->sheet->options->plain;
    const uint32_t parts = CS_DRAWN_TASKS | (plain ? 0 : CS_DRAWN_WAITS | CS_DRAWN_PATH);
    t->n_rows = 0;
    for (uint32_t p = 0; p < t->n_panels; p++) {
        cs_timeline_panel *panel = &t->panels[p];
        CS_TRY(cs_drawn_run_read(t->sheet->readers[p], parts, &panel->run, error));
        CS_TRY(cs_sheet_shown_devices(t->sheet, p, &panel->n_rows, error));
        panel->first_row = t->n_rows;
        t->n_rows += panel->n_rows;
    }
    const cs_reader_tasks *tasks = &t->panels[0].run.tasks.is;
    t->n_kinds = tasks->n_kinds;
    memcpy(t->kinds, tasks->kinds, t->n_kinds * sizeof(*t->kinds));
    CS_TRY(check_alike(t, error));
    for (uint32_t p = 0; p < t->n_panels; p++) {
        const cs_drawn_waits *waits = &t->panels[p].run.waits;
        if (waits->n_causes > CS_TIMELINE_CAUSES)
            return cs_error_add(error, CS_INVALID, "%s: waits/cause: has more than %d meanings",
                                t->sheet->readers[p]->path, CS_TIMELINE_CAUSES);
        if (waits->n_causes > 0)
            memcpy(t->kinds + t->n_kinds, waits->causes, waits->n_causes * sizeof(*t->kinds));
        t->n_causes = waits->n_causes > 0 ? waits->n_causes : t->n_causes;
        CS_TRY(find_chunks(t, &t->panels[p], error));
    }
    return CS_OK;
}

void cs_timeline_finish(cs_timeline *t)
{
    free(t->boxes);
    for (uint32_t p = 0; p < t->n_panels; p++) {
        free(t->panels[p].chunks.of);
        cs_drawn_run_finish(&t->panels[p].run);
    }
}

/* ---- chunks ---- */

/* Marks the stages that each device computes. */
static void mark_stages(const cs_drawn_tasks *of, uint32_t n_devices, cs_timeline_chunks *made)
{
    const cs_reader_tasks *tasks = &of->is;
    for (uint64_t i = 0; i < tasks->n; i++)
        if (!of->moves[tasks->kind[i]] && tasks->stage[i] < made->n_stages &&
            tasks->device[i] < n_devices)
            made->of[(size_t)tasks->device[i] * made->n_stages + tasks->stage[i]] = 1;
}

/* Numbers the marked stages of each device from 0. Returns the largest number of stages per
 * device. */
static uint32_t number_stages(uint32_t n_devices, uint32_t most_chunks, cs_timeline_chunks *made)
{
    uint32_t most = 0;
    for (uint32_t device = 0; device < n_devices; device++) {
        uint32_t count = 0;
        for (uint32_t s = 0; s < made->n_stages; s++) {
            uint8_t *at = &made->of[(size_t)device * made->n_stages + s];
            const uint32_t place = count;
            count += *at;
            *at = (uint8_t)(place < most_chunks ? place : 0);
        }
        most = count > most ? count : most;
    }
    return most;
}

/* Finds which stages each device computes, so that their boxes get different shades. Leaves the
 * panel unchanged if no device has two stages, or if there are too many stages to distinguish. */
static cs_status find_chunks(cs_timeline *t, cs_timeline_panel *panel, cs_error *error)
{
    enum { MOST_CHUNKS = 64, MOST_PLACES = 1 << 24 };
    const cs_reader_tasks *tasks = &panel->run.tasks.is;
    const uint32_t n = t->sheet->first_device + panel->n_rows;
    const uint32_t shades = t->named ? CS_TIMELINE_SHADES / 2 : CS_TIMELINE_SHADES;
    cs_timeline_chunks made = {0};
    for (uint64_t i = 0; i < tasks->n; i++)
        if (tasks->stage[i] < UINT32_MAX && tasks->stage[i] >= made.n_stages)
            made.n_stages = tasks->stage[i] + 1;
    if (made.n_stages < 2 || (uint64_t)made.n_stages * n > MOST_PLACES)
        return CS_OK;
    made.of = calloc((size_t)made.n_stages * n, 1);
    if (!made.of)
        return cs_error_no_memory(error);
    mark_stages(&panel->run.tasks, n, &made);
    const uint32_t most = number_stages(n, MOST_CHUNKS, &made);
    if (most < 2 || most > MOST_CHUNKS) {
        free(made.of);
        return CS_OK;
    }
    panel->chunks = made;
    t->n_chunks = most > t->n_chunks ? most : t->n_chunks;
    t->n_shades = t->n_chunks < shades ? t->n_chunks : shades;
    return CS_OK;
}

/* ---- boxes ---- */

/* Names a box by its mini-batch, counted from 0 as everywhere, and its micro-batch, counted from A
 * as in papers. */
static void name_box(const cs_timeline *t, const cs_reader_tasks *tasks, uint64_t i,
                     cs_timeline_box *made)
{
    uint32_t mini = tasks->mini_batch[i], micro = tasks->micro_batch[i];
    if (!t->divided[made->kind])
        snprintf(made->name, sizeof(made->name), "%u", mini);
    else if (micro < 26)
        snprintf(made->name, sizeof(made->name), "%u%c", mini, (char)('A' + micro));
    else
        snprintf(made->name, sizeof(made->name), "%u.%u", mini % 10000, micro % 100000);
}

static uint8_t chunk_of(const cs_timeline *t, uint32_t panel, uint32_t device, uint32_t stage)
{
    const cs_timeline_chunks *c = &t->panels[panel].chunks;
    if (!c->of || stage >= c->n_stages)
        return 0;
    return (uint8_t)(c->of[(uint64_t)device * c->n_stages + stage] * t->n_shades / t->n_chunks);
}

static uint8_t shade_of(const cs_timeline *t, uint32_t panel, uint32_t device, uint32_t stage,
                        uint32_t mini_batch)
{
    const uint8_t odd = mini_batch % 2, chunk = chunk_of(t, panel, device, stage);
    if (t->named)
        return (uint8_t)(odd + 2 * chunk);
    return t->n_chunks ? chunk : odd;
}

/* Finds the row of a device in the picture; returns false if the device is not shown. */
static bool find_row(const cs_timeline *t, uint32_t panel, uint32_t device, uint32_t *row)
{
    const uint32_t first = t->sheet->first_device;
    if (device < first || device - first >= t->panels[panel].n_rows)
        return false;
    *row = t->panels[panel].first_row + (device - first);
    return true;
}

static bool is_shown(const cs_timeline *t, cs_time start, cs_time end)
{
    return end > t->sheet->from && start < t->sheet->until && end > start && start >= 0;
}

static cs_time later(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

static cs_time earlier(cs_time a, cs_time b)
{
    return a < b ? a : b;
}

/* Transfers are shown on the sender's row: one lane for transfers to higher device numbers, one for
 * lower. Transfers of a collective have the collective's colour. */
bool cs_timeline_box_of(const cs_timeline *t, uint32_t panel, uint64_t i, cs_timeline_box *made)
{
    const cs_drawn_run *run = &t->panels[panel].run;
    const cs_reader_tasks *tasks = &run->tasks.is;
    const uint32_t kind = tasks->kind[i], device = tasks->device[i];
    const bool moves = run->tasks.moves[kind];
    uint32_t row;
    if (!is_shown(t, tasks->start[i], tasks->end[i]) || !find_row(t, panel, device, &row) ||
        (moves && t->named))
        return false;
    *made = (cs_timeline_box){
        .start = later(tasks->start[i], t->sheet->from),
        .end = earlier(tasks->end[i], t->sheet->until),
        .row = row,
        .number = cs_drawn_number(run, (uint32_t)i),
        .lane = !moves                    ? CS_LANE_COMPUTE
                : tasks->peer[i] > device ? CS_LANE_DOWN
                                          : CS_LANE_UP,
        .kind = (uint16_t)(moves ? tasks->origin[i] : kind),
        .shade = moves ? 0 : shade_of(t, panel, device, tasks->stage[i], tasks->mini_batch[i]),
        .numbered = run->reader->micro_batches == 1 || !cs_drawn_updates(run, (uint32_t)i),
    };
    if (t->named)
        name_box(t, tasks, i, made);
    return true;
}

static bool wait_of(const cs_timeline *t, uint32_t panel, uint64_t i, cs_timeline_box *made)
{
    const cs_drawn_waits *waits = &t->panels[panel].run.waits;
    uint32_t row;
    if (!is_shown(t, waits->start[i], waits->end[i]) || !find_row(t, panel, waits->row[i], &row))
        return false;
    *made = (cs_timeline_box){.start = later(waits->start[i], t->sheet->from),
                              .end = earlier(waits->end[i], t->sheet->until),
                              .row = row,
                              .lane = CS_LANE_COMPUTE,
                              .kind = (uint16_t)(t->n_kinds + waits->cause[i])};
    return true;
}

bool cs_timeline_waits(const cs_timeline *t, const cs_timeline_box *b)
{
    return b->kind >= t->n_kinds;
}

bool cs_timeline_is_sliver(const cs_timeline *t, const cs_timeline_box *b)
{
    return (double)(b->end - b->start) * t->scale < sliver;
}

/* The sheet is split into cells a few units wide; slivers of the same cell are drawn together. */
int64_t cs_timeline_cell_of(const cs_timeline *t, const cs_timeline_box *b)
{
    return (int64_t)((double)(b->start - t->sheet->from) * t->scale / t->cell);
}

static bool share_cell(const cs_timeline *t, const cs_timeline_box *a, const cs_timeline_box *b)
{
    return cs_timeline_is_sliver(t, a) && cs_timeline_is_sliver(t, b) && a->row == b->row &&
           a->lane == b->lane && cs_timeline_cell_of(t, a) == cs_timeline_cell_of(t, b);
}

static int compare_boxes(const void *a, const void *b)
{
    const cs_timeline_box *x = a, *y = b;
    CS_COMPARE(x->row, y->row);
    CS_COMPARE(x->lane, y->lane);
    CS_COMPARE(x->start, y->start);
    CS_COMPARE(x->end, y->end);
    return 0;
}

static void note_box(cs_timeline *t, const cs_timeline_box *made)
{
    t->boxes[t->n_boxes++] = *made;
    t->shown[made->kind] = true;
    t->transfers = t->transfers || made->lane != CS_LANE_COMPUTE;
    t->odd_batches = t->odd_batches || (t->named && made->shade % 2 == 1);
    t->several_batches = t->several_batches || (t->n_chunks == 0 && made->shade == 1);
}

static void collect_panel(cs_timeline *t, uint32_t panel)
{
    cs_timeline_box made;
    for (uint64_t i = 0; i < t->panels[panel].run.tasks.is.n; i++)
        if (cs_timeline_box_of(t, panel, i, &made))
            note_box(t, &made);
    for (uint64_t i = 0; i < t->panels[panel].run.waits.n; i++)
        if (wait_of(t, panel, i, &made))
            note_box(t, &made);
}

cs_status cs_timeline_collect(cs_timeline *t, cs_error *error)
{
    size_t most = 0;
    for (uint32_t p = 0; p < t->n_panels; p++)
        most += t->panels[p].run.tasks.is.n + t->panels[p].run.waits.n;
    t->boxes = malloc((most + 1) * sizeof(*t->boxes));
    if (!t->boxes)
        return cs_error_no_memory(error);
    for (uint32_t p = 0; p < t->n_panels; p++)
        collect_panel(t, p);
    qsort(t->boxes, t->n_boxes, sizeof(*t->boxes), compare_boxes);
    for (size_t i = 1; i < t->n_boxes && !t->dense; i++)
        t->dense = share_cell(t, &t->boxes[i - 1], &t->boxes[i]);
    return CS_OK;
}
