#include "plots/page/page-run.h"

#include "plots/drawn-run.h"
#include "plots/page/page-segments.h"
#include "sim/run/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run that is being written to a page. */
typedef struct made {
    cs_reader *reader;
    cs_page_part *part;
    cs_page_json *json;
    cs_drawn_run drawn;
} made;

/* ---- metrics ---- */

static void add_figure(made *m, cJSON *list, const cs_run_figure *figure, double value)
{
    char text[CS_UNIT_TEXT_BYTES];
    cJSON *row = cs_page_append_object(m->json, list);
    cs_page_add_text(m->json, row, "key", figure->key);
    cs_page_add_text(m->json, row, "label", figure->label);
    cs_page_add_text(m->json, row, "meaning", figure->meaning);
    cs_page_add_text(m->json, row, "unit", cs_unit_word(figure->unit));
    cs_page_add_number(m->json, row, "value", value);
    cs_page_add_text(m->json, row, "text", cs_unit_format(figure->unit, value, text, sizeof(text)));
    cs_page_add_flag(m->json, row, "main", (figure->shown & CS_SHOWN_MAIN) != 0);
}

/* Adds the metrics that the file has. */
static void add_figures(made *m, int64_t peak)
{
    cJSON *list = cs_page_add_list(m->json, m->json->root, "figures");
    for (const cs_run_figure *figure = cs_run_figures; figure->key; figure++) {
        const bool is_peak = strcmp(figure->key, "peak_memory_bytes") == 0;
        const double value = is_peak ? (double)peak : cs_reader_figure(m->reader, figure->key);
        if (!isnan(value))
            add_figure(m, list, figure, value);
    }
}

static void add_names(made *m)
{
    cs_reader *reader = m->reader;
    cJSON *json = m->json->root;
    const char *slash = strrchr(reader->path, '/');
    cs_page_add_text(m->json, json, "file", slash ? slash + 1 : reader->path);
    cs_page_add_text(m->json, json, "name", reader->name);
    cs_page_add_text(m->json, json, "topology", reader->topology);
    cs_page_add_text(m->json, json, "schedule", reader->schedule);
    cs_page_add_text(m->json, json, "scenario", reader->scenario);
    cs_page_add_text(m->json, json, "came_from", reader->origin);
    cs_page_add_text(m->json, json, "sharing", reader->sharing);
    cs_page_add_text(m->json, json, "algorithms", reader->algorithms);
    cs_page_add_text(m->json, json, "fidelity", reader->fidelity);
    cs_page_add_text(m->json, json, "program", cs_reader_text(reader, "program_version"));
    cs_page_add_text(m->json, json, "hash", cs_reader_text(reader, "hash"));
    cs_page_add_text(m->json, json, "provenance", cs_reader_text(reader, "provenance"));
    cs_page_add_number(m->json, json, "makespan", (double)reader->makespan);
    cs_page_add_number(m->json, json, "devices",
                       reader->row_of ? (double)reader->n_file_devices : NAN);
    cs_page_add_number(m->json, json, "micro_batches", reader->micro_batches);
    cs_page_add_number(m->json, json, "mini_batches", cs_reader_figure(reader, "mini_batches"));
    cs_page_add_number(m->json, json, "stopped", cs_reader_figure(reader, "stopped"));
}

/* ---- rows of devices ---- */

static void add_row(made *m, cJSON *rows, const int64_t *collectives, uint64_t r)
{
    const cs_drawn_run *run = &m->drawn;
    const cs_drawn_memory *memory = &run->memory;
    const cs_drawn_use *waits = run->uses + run->n_compute; /* communication, dependency, flush */
    char name[32];
    cJSON *row = cs_page_append_object(m->json, rows);
    snprintf(name, sizeof(name), "%" PRIu64, r);
    cs_page_add_text(m->json, row, "name", m->reader->row_of ? m->reader->kinds[r] : name);
    cs_page_add_number(m->json, row, "devices", run->rows[r].stands_for);
    cs_page_add_number(m->json, row, "capacity",
                       memory->capacity[r] == INT64_MAX ? NAN : (double)memory->capacity[r]);
    cs_page_add_number(m->json, row, "peak", (double)memory->peak[r]);
    cs_page_add_number(m->json, row, "peak_time", (double)memory->peak_time[r]);
    cs_page_add_number(m->json, row, "oom_time",
                       memory->out_of_memory[r] ? (double)memory->oom_time[r] : NAN);
    cs_page_add_number(m->json, row, "messages", (double)(waits[0].times[r] - collectives[r]));
    cs_page_add_number(m->json, row, "collectives", (double)collectives[r]);
    cs_page_add_number(m->json, row, "dependency", (double)waits[1].times[r]);
    cs_page_add_number(m->json, row, "flush", (double)waits[2].times[r]);
    cJSON *at_peak = cJSON_AddObjectToObject(row, "at_peak");
    for (uint32_t c = 0; c < memory->n_categories; c++)
        cs_page_add_number(m->json, at_peak, memory->categories[c], (double)memory->at_peak[c][r]);
    cJSON *compute = cJSON_AddObjectToObject(row, "compute");
    for (uint32_t u = 0; u < run->n_compute; u++)
        cs_page_add_number(m->json, compute, run->uses[u].name, (double)run->uses[u].times[r]);
}

static cs_status add_rows(made *m, cs_error *error)
{
    const int64_t *collectives;
    uint64_t n = 0;
    const cs_reader_column column = {"devices/exposed_collectives", CS_READER_INT64, &collectives};
    CS_TRY(cs_reader_read(m->reader, &column, 1, &n, error));
    cJSON *rows = cs_page_add_list(m->json, m->json->root, "rows");
    int64_t peak = 0;
    for (uint64_t r = 0; r < m->drawn.n_rows; r++) {
        add_row(m, rows, collectives, r);
        peak = m->drawn.memory.peak[r] > peak ? m->drawn.memory.peak[r] : peak;
    }
    add_figures(m, peak);
    return m->json->failed ? cs_error_no_memory(error) : CS_OK;
}

/* ---- columns ---- */

static cs_status pack(made *m, const char *name, cs_cell cell, const void *values, uint64_t n,
                      cs_error *error)
{
    return cs_packed_add(&m->part->packed, name, cell, values, n, error);
}

static cs_status pack_tables(made *m, cs_error *error)
{
    static const cs_page_column always[] = {
        {"tasks/start", CS_CELL_F64},
        {"tasks/end", CS_CELL_F64},
        {"tasks/bytes", CS_CELL_F64},
        {"tasks/device", CS_CELL_U32},
        {"tasks/peer", CS_CELL_U32},
        {"tasks/stage", CS_CELL_U32},
        {"tasks/mini_batch", CS_CELL_U32},
        {"tasks/micro_batch", CS_CELL_U32},
        {"tasks/origin", CS_CELL_U8},
        {"critical_path/start", CS_CELL_F64},
        {"critical_path/end", CS_CELL_F64},
        {"critical_path/task", CS_CELL_U32},
        {"versions/task", CS_CELL_U32},
        {"versions/version", CS_CELL_U32},
        {NULL, CS_CELL_U8},
    };
    static const cs_page_column waits[] = {
        {"waits/start", CS_CELL_F64}, {"waits/end", CS_CELL_F64}, {"waits/device", CS_CELL_U32},
        {"waits/cause", CS_CELL_U8},  {NULL, CS_CELL_U8},
    };
    CS_TRY(cs_page_part_pack(m->part, m->reader, always, error));
    if (!cs_reader_has(m->reader, "waits"))
        return CS_OK;
    cs_page_add_words(m->json, "causes", m->drawn.waits.causes, m->drawn.waits.n_causes);
    return cs_page_part_pack(m->part, m->reader, waits, error);
}

/* Packs the memory samples, device by device. */
static cs_status pack_memory(made *m, cs_error *error)
{
    const cs_drawn_memory *memory = &m->drawn.memory;
    double *numbers = malloc((memory->n + 1) * sizeof(*numbers));
    uint32_t *ids = (uint32_t *)numbers;
    uint8_t *words = (uint8_t *)numbers;
    const uint64_t n = memory->n_by_row, *at = memory->by_row;
    if (!numbers)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = (double)memory->time[at[i]];
    cs_status status = pack(m, "memory/time", CS_CELL_F64, numbers, n, error);
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = (double)memory->bytes[at[i]];
    if (status == CS_OK)
        status = pack(m, "memory/bytes", CS_CELL_F64, numbers, n, error);
    for (uint64_t i = 0; i < n; i++)
        ids[i] = memory->row[at[i]];
    if (status == CS_OK)
        status = pack(m, "memory/device", CS_CELL_U32, ids, n, error);
    for (uint64_t i = 0; i < n; i++)
        words[i] = (uint8_t)memory->category[at[i]];
    if (status == CS_OK)
        status = pack(m, "memory/category", CS_CELL_U8, words, n, error);
    free(numbers);
    return status;
}

/* ---- lanes: one per row for computations, one for sends, with sums for overviews ---- */

/* Levels of a lane with more than PLAIN tasks: the run's time is split into BINS equal bins, then
 * into FINER times as many, and so on, up to about one bin per task. */
enum { PLAIN = 512, BINS = 1024, FINER = 4 };

typedef struct lane {
    uint32_t row;
    bool sends;
    uint64_t first, n; /* range in `order` */
    uint64_t bin;      /* first bin of the coarsest level; the finer levels follow it */
    uint32_t n_levels;
} lane;

typedef struct lanes {
    uint32_t *order; /* ids of the tasks that took time, sorted by lane, start, end and id */
    uint64_t n;
    lane *of; /* lanes that have tasks */
    uint32_t n_lanes;
    uint8_t *bin_kind; /* per bin: the origin (tasks/origin) that takes most of the bin's time */
    /* per bin: fraction of its time that tasks take, in 255ths; overlapping tasks add up, to at
     * most 255 */
    uint8_t *bin_share;
    uint64_t n_bins;
} lanes;

static uint64_t bins_of(uint32_t level)
{
    return (uint64_t)BINS << 2 * level;
}

/* Returns the number of levels, from coarse to fine; the finest has about one bin per task. */
static uint32_t levels_of(uint64_t n)
{
    if (n <= PLAIN)
        return 0;
    uint32_t levels = 1;
    while (bins_of(levels) <= n)
        levels++;
    return levels;
}

/* Lists the slices of a row on one side as a lane, unless there are none. Tasks that took no time
 * are skipped, as they are invisible. */
static void list_lane(const cs_drawn_run *run, uint32_t row, uint32_t side, lanes *all)
{
    const cs_drawn_row *of = &run->rows[row];
    lane one = {.row = row, .sends = side == CS_DRAWN_SENDS, .first = all->n, .bin = all->n_bins};
    for (uint64_t i = of->first; i < of->first + of->n; i++) {
        const cs_drawn_slice *slice = &run->slices[i];
        if (slice->side == side &&
            run->tasks.is.end[slice->task] > run->tasks.is.start[slice->task])
            all->order[all->n++] = slice->task;
    }
    one.n = all->n - one.first;
    if (one.n == 0)
        return;
    one.n_levels = levels_of(one.n);
    for (uint32_t level = 0; level < one.n_levels; level++)
        all->n_bins += bins_of(level);
    all->of[all->n_lanes++] = one;
}

/* Adds the time that a task takes in each bin; `start` and `end` are in bins. `sums` has n_kinds
 * elements per bin. */
static void add_task(double start, double end, uint64_t n_bins, uint32_t kind, uint32_t n_kinds,
                     float *sums)
{
    uint64_t bin = (uint64_t)start;
    for (double from = start; from < end && bin < n_bins; bin++) {
        const double until = fmin(end, (double)(bin + 1));
        sums[bin * n_kinds + kind] += (float)(until - from);
        from = until;
    }
}

static void sum_up(const float *sums, uint64_t n_bins, uint32_t n_kinds, uint8_t *kind,
                   uint8_t *share)
{
    for (uint64_t b = 0; b < n_bins; b++) {
        const float *of = sums + b * n_kinds;
        float all = 0;
        kind[b] = 0;
        for (uint32_t k = 0; k < n_kinds; k++) {
            all += of[k];
            if (of[k] > of[kind[b]])
                kind[b] = (uint8_t)k;
        }
        share[b] = (uint8_t)lroundf(255 * fminf(all, 1));
    }
}

static void fill_level(const cs_drawn_run *run, const lanes *all, const lane *of, uint32_t level,
                       float *sums)
{
    const cs_reader_tasks *tasks = &run->tasks.is;
    const uint64_t n_bins = bins_of(level);
    const double scale = (double)n_bins / (double)run->reader->makespan;
    uint64_t at = of->bin;
    for (uint32_t before = 0; before < level; before++)
        at += bins_of(before);
    memset(sums, 0, n_bins * tasks->n_kinds * sizeof(*sums));
    for (uint64_t i = of->first; i < of->first + of->n; i++) {
        const uint32_t task = all->order[i];
        add_task((double)tasks->start[task] * scale, (double)tasks->end[task] * scale, n_bins,
                 tasks->origin[task], tasks->n_kinds, sums);
    }
    sum_up(sums, n_bins, tasks->n_kinds, all->bin_kind + at, all->bin_share + at);
}

static void finish_lanes(lanes *all)
{
    free(all->order);
    free(all->of);
    free(all->bin_kind);
    free(all->bin_share);
    *all = (lanes){0};
}

static cs_status make_lanes(const cs_drawn_run *run, lanes *all, cs_error *error)
{
    uint32_t most = 0;
    *all = (lanes){.order = malloc((run->n_slices + 1) * sizeof(*all->order)),
                   .of = calloc(2 * run->n_rows + 1, sizeof(*all->of))};
    for (uint32_t row = 0; all->order && all->of && row < run->n_rows; row++) {
        list_lane(run, row, CS_DRAWN_COMPUTES, all);
        list_lane(run, row, CS_DRAWN_SENDS, all);
    }
    for (uint32_t l = 0; l < all->n_lanes; l++)
        most = all->of[l].n_levels > most ? all->of[l].n_levels : most;
    const uint64_t n_sums = most > 0 ? bins_of(most - 1) * run->tasks.is.n_kinds : 0;
    float *sums = malloc(n_sums * sizeof(*sums) + 1);
    all->bin_kind = malloc(all->n_bins + 1);
    all->bin_share = malloc(all->n_bins + 1);
    const bool room = all->order && all->of && sums && all->bin_kind && all->bin_share;
    for (uint32_t l = 0; room && l < all->n_lanes; l++)
        for (uint32_t level = 0; level < all->of[l].n_levels; level++)
            fill_level(run, all, &all->of[l], level, sums);
    free(sums);
    if (room)
        return CS_OK;
    finish_lanes(all);
    return cs_error_no_memory(error);
}

static void add_lane(made *m, cJSON *list, const lane *of)
{
    cJSON *object = cs_page_append_object(m->json, list);
    cs_page_add_number(m->json, object, "row", of->row);
    cs_page_add_number(m->json, object, "sends", of->sends);
    cs_page_add_number(m->json, object, "first", (double)of->first);
    cs_page_add_number(m->json, object, "n", (double)of->n);
    cs_page_add_number(m->json, object, "bin", (double)of->bin);
    cs_page_add_number(m->json, object, "levels", of->n_levels);
}

static cs_status pack_lanes(made *m, cs_error *error)
{
    lanes all;
    CS_TRY(make_lanes(&m->drawn, &all, error));
    cJSON *list = cs_page_add_list(m->json, m->json->root, "lanes");
    cs_page_add_number(m->json, m->json->root, "lane_bins", BINS);
    cs_page_add_number(m->json, m->json->root, "lane_finer", FINER);
    for (uint32_t i = 0; i < all.n_lanes; i++)
        add_lane(m, list, &all.of[i]);
    cs_status status = pack(m, "lanes/order", CS_CELL_U32, all.order, all.n, error);
    if (status == CS_OK)
        status = pack(m, "lanes/kind", CS_CELL_U8, all.bin_kind, all.n_bins, error);
    if (status == CS_OK)
        status = pack(m, "lanes/share", CS_CELL_U8, all.bin_share, all.n_bins, error);
    finish_lanes(&all);
    return status;
}

/* ---- links and staleness of weights ---- */

static void add_links(made *m)
{
    const cs_drawn_links *links = &m->drawn.links;
    cJSON *list = cs_page_add_list(m->json, m->json->root, "links");
    for (uint64_t i = 0; i < links->n; i++) {
        cJSON *link = cs_page_append_object(m->json, list);
        cs_page_add_text(m->json, link, "name", links->names[i]);
        cs_page_add_number(m->json, link, "bandwidth", links->bandwidth[i]);
        cs_page_add_number(m->json, link, "bytes", links->bytes[i]);
        cs_page_add_number(m->json, link, "utilisation", links->utilisation[i]);
    }
}

/* Packs the utilisation of the busiest links over time; files of earlier versions lack it. */
static cs_status pack_link_use(made *m, cs_error *error)
{
    static const cs_page_column columns[] = {
        {"link_use/start", CS_CELL_F64},       {"link_use/end", CS_CELL_F64},
        {"link_use/utilisation", CS_CELL_F64}, {"link_use/bytes", CS_CELL_F64},
        {"link_use/link", CS_CELL_U32},        {NULL, CS_CELL_U8},
    };
    return cs_reader_has(m->reader, "link_use")
               ? cs_page_part_pack(m->part, m->reader, columns, error)
               : CS_OK;
}

static cs_status pack_staleness(made *m, cs_error *error)
{
    static const cs_page_column columns[] = {
        {"staleness/mini_batch", CS_CELL_U32},
        {"staleness/slot", CS_CELL_U32},
        {"staleness/stage", CS_CELL_U32},
        {"staleness/device", CS_CELL_U32},
        {"staleness/made", CS_CELL_U32},
        {"staleness/forward_oldest", CS_CELL_U32},
        {"staleness/backward_oldest", CS_CELL_U32},
        {"weights/stage", CS_CELL_U32},
        {"weights/device", CS_CELL_U32},
        {"weights/versions_made", CS_CELL_U32},
        {"weights/peak_versions", CS_CELL_U32},
        {NULL, CS_CELL_U8},
    };
    return cs_page_part_pack(m->part, m->reader, columns, error);
}

/* ---- the whole run ---- */

static cs_status write_run(made *m, cs_error *error)
{
    const uint32_t parts = CS_DRAWN_TASKS | CS_DRAWN_SLICES | CS_DRAWN_WAITS | CS_DRAWN_TIMES |
                           CS_DRAWN_MEMORY | CS_DRAWN_PEAKS | CS_DRAWN_LINKS;
    const cs_drawn_run *run = &m->drawn;
    m->json->root = cJSON_CreateObject();
    CS_TRY(cs_page_segments_read(m->reader, m->part, error));
    CS_TRY(cs_reader_fold(m->reader, error));
    CS_TRY(cs_drawn_run_read(m->reader, parts, &m->drawn, error));
    add_names(m);
    CS_TRY(add_rows(m, error));
    cs_page_add_words(m->json, "categories", run->memory.categories, run->memory.n_categories);
    cs_page_add_words(m->json, "kinds", run->tasks.is.kinds, run->tasks.is.n_kinds);
    CS_TRY(pack_lanes(m, error));
    CS_TRY(pack_tables(m, error));
    CS_TRY(pack_memory(m, error));
    add_links(m);
    CS_TRY(pack_link_use(m, error));
    CS_TRY(pack_staleness(m, error));
    return cs_page_part_end(m->part, error);
}

cs_status cs_page_run_read(const char *path, cs_page_part *part, cs_error *error)
{
    cs_reader reader;
    *part = (cs_page_part){0};
    CS_TRY(cs_reader_init(&reader, path, error));
    made m = {.reader = &reader, .part = part, .json = &part->json};
    const cs_status status = write_run(&m, error);
    cs_drawn_run_finish(&m.drawn);
    cs_reader_finish(&reader);
    return status;
}
