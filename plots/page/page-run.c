#include "plots/page/page-run.h"

#include "plots/page/lanes.h"
#include "plots/page/page-segments.h"
#include "plots/sheet.h"
#include "sim/base/vector.h"
#include "sim/core/trace/results-reader.h"
#include "sim/run/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run that is being read. */
typedef struct made {
    cs_reader *reader;
    cs_page_part *run;
    cs_page_json *json;
    cs_reader_tasks tasks;
    const char *const *categories;
    uint64_t n_rows;
    uint32_t n_categories;
} made;

/* ---- figures ---- */

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

/* Those that the file knows. */
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

/* The columns of /devices whose names begin with `prefix`: one member each of the object `key` of
 * every row, named by the rest. */
static cs_status add_parts(made *m, cJSON *rows, const char *key, const char *prefix,
                           cs_error *error)
{
    const char *const *names;
    uint32_t n = 0;
    CS_TRY(cs_reader_names(m->reader, "devices", prefix, &names, &n, error));
    for (uint32_t i = 0; i < n; i++) {
        char name[160];
        const int64_t *values;
        uint64_t n_rows = 0;
        snprintf(name, sizeof(name), "devices/%.140s", names[i]);
        const cs_reader_column column = {name, CS_READER_INT64, &values};
        CS_TRY(cs_reader_read(m->reader, &column, 1, &n_rows, error));
        cJSON *row = rows->child;
        for (uint64_t r = 0; r < n_rows && row; r++, row = row->next) {
            cJSON *parts = cJSON_GetObjectItemCaseSensitive(row, key);
            if (!parts)
                parts = cJSON_AddObjectToObject(row, key);
            cs_page_add_number(m->json, parts, names[i] + strlen(prefix), (double)values[r]);
        }
    }
    return CS_OK;
}

typedef struct device_columns {
    const int64_t *capacity, *peak, *peak_time, *oom_time;
    const int64_t *communication, *collectives, *dependency, *flush;
    const uint32_t *out_of_memory;
} device_columns;

/* How many devices a row stands for. */
static uint32_t count_devices(const cs_reader *reader, uint64_t row)
{
    uint32_t n = 0;
    for (uint32_t d = 0; reader->row_of && d < reader->n_file_devices; d++)
        n += reader->stand_in_of[d] == row;
    return reader->row_of ? n : 1;
}

static void add_row(made *m, cJSON *rows, const device_columns *c, uint64_t r)
{
    char name[32];
    cJSON *row = cs_page_append_object(m->json, rows);
    snprintf(name, sizeof(name), "%" PRIu64, r);
    cs_page_add_text(m->json, row, "name", m->reader->row_of ? m->reader->kinds[r] : name);
    cs_page_add_number(m->json, row, "devices", count_devices(m->reader, r));
    cs_page_add_number(m->json, row, "capacity",
                       c->capacity[r] == INT64_MAX ? NAN : (double)c->capacity[r]);
    cs_page_add_number(m->json, row, "peak", (double)c->peak[r]);
    cs_page_add_number(m->json, row, "peak_time", (double)c->peak_time[r]);
    cs_page_add_number(m->json, row, "oom_time",
                       c->out_of_memory[r] ? (double)c->oom_time[r] : NAN);
    cs_page_add_number(m->json, row, "messages", (double)(c->communication[r] - c->collectives[r]));
    cs_page_add_number(m->json, row, "collectives", (double)c->collectives[r]);
    cs_page_add_number(m->json, row, "dependency", (double)c->dependency[r]);
    cs_page_add_number(m->json, row, "flush", (double)c->flush[r]);
}

static cs_status add_rows(made *m, cs_error *error)
{
    device_columns c;
    const cs_reader_column columns[] = {
        {"devices/capacity", CS_READER_INT64, &c.capacity},
        {"devices/peak", CS_READER_INT64, &c.peak},
        {"devices/peak_time", CS_READER_INT64, &c.peak_time},
        {"devices/oom_time", CS_READER_INT64, &c.oom_time},
        {"devices/communication", CS_READER_INT64, &c.communication},
        {"devices/exposed_collectives", CS_READER_INT64, &c.collectives},
        {"devices/dependency", CS_READER_INT64, &c.dependency},
        {"devices/flush", CS_READER_INT64, &c.flush},
        {"devices/out_of_memory", CS_READER_UINT32, &c.out_of_memory}};
    CS_TRY(cs_reader_read(m->reader, columns, sizeof(columns) / sizeof(columns[0]), &m->n_rows,
                          error));
    cJSON *rows = cs_page_add_list(m->json, m->json->root, "rows");
    int64_t peak = 0;
    for (uint64_t r = 0; r < m->n_rows; r++) {
        add_row(m, rows, &c, r);
        peak = c.peak[r] > peak ? c.peak[r] : peak;
    }
    if (m->json->failed)
        return cs_error_no_memory(error);
    add_figures(m, peak);
    CS_TRY(add_parts(m, rows, "at_peak", "at_peak_", error));
    return add_parts(m, rows, "compute", "compute_", error);
}

/* ---- columns ---- */

static cs_status pack(made *m, const char *name, cs_cell cell, const void *values, uint64_t n,
                      cs_error *error)
{
    return cs_packed_add(&m->run->packed, name, cell, values, n, error);
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
    const char *const *causes;
    uint32_t n = 0;
    CS_TRY(cs_page_part_pack(m->run, m->reader, always, error));
    if (!cs_reader_has(m->reader, "waits"))
        return CS_OK;
    CS_TRY(cs_reader_meanings(m->reader, "waits/cause", &causes, &n, error));
    cs_page_add_words(m->json, "causes", causes, n);
    return cs_page_part_pack(m->run, m->reader, waits, error);
}

/* ---- memory, device by device ---- */

typedef struct sample {
    double time, bytes;
    uint64_t at;
    uint32_t device, category;
} sample;

static int by_device(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    CS_COMPARE(x->device, y->device);
    CS_COMPARE(x->at, y->at);
    return 0;
}

static cs_status read_samples(made *m, sample **samples, uint64_t *n, cs_error *error)
{
    const double *time, *bytes;
    const uint32_t *device, *category;
    const cs_reader_column columns[] = {{"memory/time", CS_READER_DOUBLE, &time},
                                        {"memory/bytes", CS_READER_DOUBLE, &bytes},
                                        {"memory/device", CS_READER_UINT32, &device},
                                        {"memory/category", CS_READER_UINT32, &category}};
    CS_TRY(cs_reader_read(m->reader, columns, 4, n, error));
    *samples = malloc((*n + 1) * sizeof(**samples));
    if (!*samples)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < *n; i++)
        (*samples)[i] = (sample){time[i], bytes[i], i, device[i], category[i]};
    qsort(*samples, *n, sizeof(**samples), by_device);
    return CS_OK;
}

/* `cells` has room for the widest column. */
static cs_status pack_samples(made *m, const sample *samples, uint64_t n, void *cells,
                              cs_error *error)
{
    double *numbers = cells;
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = samples[i].time;
    CS_TRY(pack(m, "memory/time", CS_CELL_F64, numbers, n, error));
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = samples[i].bytes;
    CS_TRY(pack(m, "memory/bytes", CS_CELL_F64, numbers, n, error));
    uint32_t *ids = cells;
    for (uint64_t i = 0; i < n; i++)
        ids[i] = samples[i].device;
    CS_TRY(pack(m, "memory/device", CS_CELL_U32, ids, n, error));
    uint8_t *words = cells;
    for (uint64_t i = 0; i < n; i++)
        words[i] = (uint8_t)samples[i].category;
    return pack(m, "memory/category", CS_CELL_U8, words, n, error);
}

static cs_status pack_memory(made *m, cs_error *error)
{
    sample *samples = NULL;
    uint64_t n = 0;
    CS_TRY(read_samples(m, &samples, &n, error));
    double *cells = malloc((n + 1) * sizeof(*cells));
    const cs_status status =
        cells ? pack_samples(m, samples, n, cells, error) : cs_error_no_memory(error);
    free(cells);
    free(samples);
    return status;
}

/* ---- lanes ---- */

static void add_lane(made *m, cJSON *list, const cs_page_lane *lane)
{
    cJSON *object = cs_page_append_object(m->json, list);
    cs_page_add_number(m->json, object, "row", lane->row);
    cs_page_add_number(m->json, object, "sends", lane->lane == CS_PAGE_LANE_SEND);
    cs_page_add_number(m->json, object, "first", (double)lane->first);
    cs_page_add_number(m->json, object, "n", (double)lane->n);
    cs_page_add_number(m->json, object, "bin", (double)lane->bin);
    cs_page_add_number(m->json, object, "levels", lane->n_levels);
}

static cs_status pack_lanes(made *m, const bool *moves, cs_error *error)
{
    cs_page_lanes lanes;
    CS_TRY(cs_page_lanes_make(&m->tasks, moves, m->reader->makespan, &lanes, error));
    cJSON *list = cs_page_add_list(m->json, m->json->root, "lanes");
    cs_page_add_number(m->json, m->json->root, "lane_bins", CS_PAGE_LANE_BINS);
    cs_page_add_number(m->json, m->json->root, "lane_finer", CS_PAGE_LANE_FINER);
    for (uint32_t i = 0; i < lanes.n_lanes; i++)
        add_lane(m, list, &lanes.lanes[i]);
    cs_status status = pack(m, "lanes/order", CS_CELL_U32, lanes.order, lanes.n, error);
    if (status == CS_OK)
        status = pack(m, "lanes/kind", CS_CELL_U8, lanes.bin_kind, lanes.n_bins, error);
    if (status == CS_OK)
        status = pack(m, "lanes/share", CS_CELL_U8, lanes.bin_share, lanes.n_bins, error);
    cs_page_lanes_finish(&lanes);
    return status;
}

static cs_status read_tasks(made *m, cs_error *error)
{
    bool moves[UINT8_MAX + 1] = {0};
    cs_reader_tasks *tasks = &m->tasks;
    CS_TRY(cs_reader_read_tasks(m->reader, tasks, error));
    if (tasks->n_kinds > UINT8_MAX)
        return cs_error_add(error, CS_INVALID, "%s: tasks/kind: has more than %d meanings",
                            m->reader->path, UINT8_MAX);
    for (uint64_t i = 0; i < tasks->n; i++)
        if (tasks->device[i] >= m->n_rows || tasks->kind[i] >= tasks->n_kinds ||
            tasks->origin[i] >= tasks->n_kinds)
            return cs_error_add(error, CS_INVALID,
                                "%s: tasks: row %" PRIu64 " has a device or kind that is not there",
                                m->reader->path, i);
    for (uint32_t k = 0; k < tasks->n_kinds; k++)
        moves[k] = cs_style_of(tasks->kinds[k])->moves;
    cs_page_add_words(m->json, "kinds", tasks->kinds, tasks->n_kinds);
    return pack_lanes(m, moves, error);
}

/* ---- links, and the ages of weights ---- */

static cs_status add_links(made *m, cs_error *error)
{
    const char *const *names;
    const double *bandwidth, *bytes, *utilisation;
    uint64_t n = 0;
    const cs_reader_column columns[] = {{"links/name", CS_READER_TEXT, &names},
                                        {"links/bandwidth", CS_READER_DOUBLE, &bandwidth},
                                        {"links/bytes", CS_READER_DOUBLE, &bytes},
                                        {"links/utilisation", CS_READER_DOUBLE, &utilisation}};
    CS_TRY(cs_reader_read(m->reader, columns, 4, &n, error));
    cJSON *list = cs_page_add_list(m->json, m->json->root, "links");
    for (uint64_t i = 0; i < n; i++) {
        cJSON *link = cs_page_append_object(m->json, list);
        cs_page_add_text(m->json, link, "name", names[i]);
        cs_page_add_number(m->json, link, "bandwidth", bandwidth[i]);
        cs_page_add_number(m->json, link, "bytes", bytes[i]);
        cs_page_add_number(m->json, link, "utilisation", utilisation[i]);
    }
    return CS_OK;
}

/* How busy the busiest of them were over time; files of earlier versions do not say. */
static cs_status pack_link_use(made *m, cs_error *error)
{
    static const cs_page_column columns[] = {
        {"link_use/start", CS_CELL_F64},       {"link_use/end", CS_CELL_F64},
        {"link_use/utilisation", CS_CELL_F64}, {"link_use/bytes", CS_CELL_F64},
        {"link_use/link", CS_CELL_U32},        {NULL, CS_CELL_U8},
    };
    return cs_reader_has(m->reader, "link_use")
               ? cs_page_part_pack(m->run, m->reader, columns, error)
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
    return cs_page_part_pack(m->run, m->reader, columns, error);
}

/* ---- all of it ---- */

static cs_status read_run(made *m, cs_error *error)
{
    m->json->root = cJSON_CreateObject();
    CS_TRY(cs_page_segments_read(m->reader, m->run, error));
    CS_TRY(cs_reader_fold(m->reader, error));
    add_names(m);
    CS_TRY(add_rows(m, error));
    CS_TRY(
        cs_reader_meanings(m->reader, "memory/category", &m->categories, &m->n_categories, error));
    cs_page_add_words(m->json, "categories", m->categories, m->n_categories);
    CS_TRY(read_tasks(m, error));
    CS_TRY(pack_tables(m, error));
    CS_TRY(pack_memory(m, error));
    CS_TRY(add_links(m, error));
    CS_TRY(pack_link_use(m, error));
    CS_TRY(pack_staleness(m, error));
    return cs_page_part_end(m->run, error);
}

cs_status cs_page_run_read(const char *path, cs_page_part *run, cs_error *error)
{
    cs_reader reader;
    *run = (cs_page_part){0};
    CS_TRY(cs_reader_init(&reader, path, error));
    made m = {.reader = &reader, .run = run, .json = &run->json};
    const cs_status status = read_run(&m, error);
    cs_reader_finish(&reader);
    return status;
}
