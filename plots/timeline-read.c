#include "plots/timeline.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Units: what is narrower is drawn together with its neighbours. */
static const double sliver = 0.5;

/* ---- tasks and waits ---- */

static cs_status read_tasks(cs_timeline_panel *panel, cs_error *error)
{
    CS_TRY(cs_reader_read_tasks(panel->reader, &panel->tasks, error));
    return panel->tasks.n_kinds > CS_TIMELINE_KINDS
               ? cs_error_add(error, CS_INVALID, "%s: tasks/kind: has more than %d meanings",
                              panel->reader->path, CS_TIMELINE_KINDS)
               : CS_OK;
}

/* Files of earlier versions have none. */
static cs_status read_waits(cs_timeline *t, cs_timeline_panel *panel, cs_error *error)
{
    const char *const *names, *const *causes;
    uint32_t n = 0, n_causes = 0;
    const cs_reader_column columns[] = {{"waits/device", CS_READER_UINT32, &panel->wait_device},
                                        {"waits/cause", CS_READER_UINT32, &panel->wait_cause},
                                        {"waits/start", CS_READER_INT64, &panel->wait_start},
                                        {"waits/end", CS_READER_INT64, &panel->wait_end}};
    CS_TRY(cs_reader_names(panel->reader, "/", "waits", &names, &n, error));
    if (n == 0)
        return CS_OK;
    CS_TRY(cs_reader_meanings(panel->reader, "waits/cause", &causes, &n_causes, error));
    if (n_causes > CS_TIMELINE_CAUSES)
        return cs_error_add(error, CS_INVALID, "%s: waits/cause: has more than %d meanings",
                            panel->reader->path, CS_TIMELINE_CAUSES);
    for (uint32_t i = 0; i < n_causes; i++)
        t->kinds[t->n_kinds + i] = causes[i];
    t->n_causes = n_causes;
    return cs_reader_read(panel->reader, columns, 4, &panel->n_waits, error);
}

/* The numbers of kinds are those of the first run; the others must count alike. */
static cs_status check_alike(const cs_timeline *t, cs_error *error)
{
    for (uint32_t p = 1; p < t->n_panels; p++) {
        const cs_timeline_panel *panel = &t->panels[p];
        bool alike = panel->tasks.n_kinds == t->n_kinds;
        for (uint32_t k = 0; alike && k < t->n_kinds; k++)
            alike = strcmp(panel->tasks.kinds[k], t->kinds[k]) == 0;
        if (!alike)
            return cs_error_add(error, CS_INVALID,
                                "%s: tasks/kind: not coded as in %s: of another version",
                                panel->reader->path, t->panels[0].reader->path);
    }
    return CS_OK;
}

static cs_status find_rows(cs_timeline *t, cs_error *error)
{
    t->n_rows = 0;
    for (uint32_t p = 0; p < t->n_panels; p++) {
        CS_TRY(cs_sheet_shown_devices(t->sheet, p, &t->panels[p].n_rows, error));
        t->panels[p].first_row = t->n_rows;
        t->n_rows += t->panels[p].n_rows;
    }
    return CS_OK;
}

static cs_status find_chunks(cs_timeline *t, cs_timeline_panel *panel, cs_error *error);

cs_status cs_timeline_read(cs_timeline *t, cs_error *error)
{
    const bool plain = t->named || t->sheet->options->plain;
    for (uint32_t p = 0; p < t->n_panels; p++) {
        t->panels[p].reader = t->sheet->readers[p];
        CS_TRY(read_tasks(&t->panels[p], error));
    }
    t->n_kinds = t->panels[0].tasks.n_kinds;
    for (uint32_t k = 0; k < t->n_kinds; k++)
        t->kinds[k] = t->panels[0].tasks.kinds[k];
    CS_TRY(check_alike(t, error));
    CS_TRY(find_rows(t, error));
    for (uint32_t p = 0; p < t->n_panels; p++) {
        CS_TRY(plain ? CS_OK : read_waits(t, &t->panels[p], error));
        CS_TRY(find_chunks(t, &t->panels[p], error));
    }
    return CS_OK;
}

void cs_timeline_finish(cs_timeline *t)
{
    free(t->boxes);
    for (uint32_t p = 0; p < t->n_panels; p++)
        free(t->panels[p].chunks.of);
}

/* ---- chunks ---- */

/* Marks the stages that each device computes. */
static void mark_stages(const cs_timeline *t, const cs_reader_tasks *tasks, uint32_t n_devices,
                        cs_timeline_chunks *made)
{
    for (uint64_t i = 0; i < tasks->n; i++) {
        const bool computes =
            tasks->kind[i] < t->n_kinds && !cs_style_of(t->kinds[tasks->kind[i]])->moves;
        if (computes && tasks->stage[i] < made->n_stages && tasks->device[i] < n_devices)
            made->of[(size_t)tasks->device[i] * made->n_stages + tasks->stage[i]] = 1;
    }
}

/* Numbers the marked ones of each device. Returns the most of a device. */
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

/* Which of its stages a device computes, so that their boxes can be told apart; without a change
 * where none has two, or where there are too many to tell. */
static cs_status find_chunks(cs_timeline *t, cs_timeline_panel *panel, cs_error *error)
{
    enum { MOST_CHUNKS = 64, MOST_PLACES = 1 << 24 };
    const cs_reader_tasks *tasks = &panel->tasks;
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
    mark_stages(t, tasks, n, &made);
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

/* Mini-batches from 0, as everywhere, and micro-batches from A, as papers have them. */
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

/* The row of a device in the picture; false where it has none. */
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

/* Transfers are shown at their sender, in one lane towards higher device numbers and one towards
 * lower ones; those of a collective in its colour. */
bool cs_timeline_box_of(const cs_timeline *t, uint32_t panel, uint64_t i, cs_timeline_box *made)
{
    const cs_reader_tasks *tasks = &t->panels[panel].tasks;
    const cs_reader *reader = t->panels[panel].reader;
    const cs_sheet *sheet = t->sheet;
    uint32_t kind = tasks->kind[i], device = tasks->device[i], row;
    if (!is_shown(t, tasks->start[i], tasks->end[i]) || !find_row(t, panel, device, &row) ||
        kind >= tasks->n_kinds || tasks->origin[i] >= tasks->n_kinds)
        return false;
    bool moves = cs_style_of(tasks->kinds[kind])->moves;
    if (moves && t->named)
        return false;
    *made = (cs_timeline_box){
        .start = later(tasks->start[i], sheet->from),
        .end = earlier(tasks->end[i], sheet->until),
        .row = row,
        .number = reader->micro_batches > 1 ? tasks->micro_batch[i] : tasks->mini_batch[i],
        .lane = !moves                    ? CS_LANE_COMPUTE
                : tasks->peer[i] > device ? CS_LANE_DOWN
                                          : CS_LANE_UP,
        .kind = (uint16_t)(moves ? tasks->origin[i] : kind),
        .shade = moves ? 0 : shade_of(t, panel, device, tasks->stage[i], tasks->mini_batch[i]),
        .numbered = reader->micro_batches == 1 || strcmp(tasks->kinds[kind], "update") != 0,
    };
    if (t->named)
        name_box(t, tasks, i, made);
    return true;
}

static bool wait_of(const cs_timeline *t, uint32_t panel, uint64_t i, cs_timeline_box *made)
{
    const cs_timeline_panel *from = &t->panels[panel];
    uint32_t row;
    if (!is_shown(t, from->wait_start[i], from->wait_end[i]) ||
        !find_row(t, panel, from->wait_device[i], &row) || from->wait_cause[i] >= t->n_causes)
        return false;
    *made = (cs_timeline_box){.start = later(from->wait_start[i], t->sheet->from),
                              .end = earlier(from->wait_end[i], t->sheet->until),
                              .row = row,
                              .lane = CS_LANE_COMPUTE,
                              .kind = (uint16_t)(t->n_kinds + from->wait_cause[i])};
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

/* The sheet is divided into cells of a few units, in which slivers are drawn together. */
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
    for (uint64_t i = 0; i < t->panels[panel].tasks.n; i++)
        if (cs_timeline_box_of(t, panel, i, &made))
            note_box(t, &made);
    for (uint64_t i = 0; i < t->panels[panel].n_waits; i++)
        if (wait_of(t, panel, i, &made))
            note_box(t, &made);
}

cs_status cs_timeline_collect(cs_timeline *t, cs_error *error)
{
    size_t most = 0;
    for (uint32_t p = 0; p < t->n_panels; p++)
        most += t->panels[p].tasks.n + t->panels[p].n_waits;
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
