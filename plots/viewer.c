#include "plots/viewer.h"

#include "plots/sheet.h"
#include "sim/base/file.h"
#include "sim/base/vector.h"
#include "sim/trace/results-reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PS_PER_US = 1000000 };

typedef struct columns {
    uint64_t n_tasks, n_versions, n_samples, n_devices;
    cs_reader_tasks tasks;
    const int64_t *bytes;                   /* of tasks */
    const uint32_t *version_task, *version; /* which task read which */
    const uint32_t *memory_device, *category;
    const int64_t *memory_time, *memory_bytes;
    const uint32_t *devices;
    const char *const *categories;
    uint32_t n_categories;
} columns;

/* What ran, in the order in which it is written. */
typedef struct slice {
    cs_time start, end;
    uint32_t device, task;
    bool moves;
} slice;

typedef struct viewer {
    cs_reader *reader;
    columns c;
    slice *slices;
    uint64_t n_slices;
    uint32_t *read;     /* the version that each task read, or UINT32_MAX */
    int64_t *live;      /* by device and category */
    bool *held;         /* by device and category: whether it is ever not 0 */
    cs_time *lane_ends; /* of the device that is being written */
    FILE *out;
    bool begun; /* an event was written */
} viewer;

/* ---- reading ---- */

static cs_status read_columns(cs_reader *reader, columns *c, cs_error *error)
{
    const cs_reader_column tasks[] = {{"tasks/bytes", CS_READER_INT64, &c->bytes}};
    const cs_reader_column versions[] = {{"versions/task", CS_READER_UINT32, &c->version_task},
                                         {"versions/version", CS_READER_UINT32, &c->version}};
    const cs_reader_column memory[] = {{"memory/device", CS_READER_UINT32, &c->memory_device},
                                       {"memory/category", CS_READER_UINT32, &c->category},
                                       {"memory/time", CS_READER_INT64, &c->memory_time},
                                       {"memory/bytes", CS_READER_INT64, &c->memory_bytes}};
    const cs_reader_column devices[] = {{"devices/device", CS_READER_UINT32, &c->devices}};
    const struct {
        const cs_reader_column *columns;
        size_t n;
        uint64_t *rows;
    } groups[] = {{tasks, sizeof(tasks) / sizeof(tasks[0]), &c->n_tasks},
                  {versions, sizeof(versions) / sizeof(versions[0]), &c->n_versions},
                  {memory, sizeof(memory) / sizeof(memory[0]), &c->n_samples},
                  {devices, sizeof(devices) / sizeof(devices[0]), &c->n_devices}};
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
        CS_TRY(cs_reader_read(reader, groups[g].columns, groups[g].n, groups[g].rows, error));
    CS_TRY(cs_reader_read_tasks(reader, &c->tasks, error));
    return cs_reader_meanings(reader, "memory/category", &c->categories, &c->n_categories, error);
}

/* What is used as an index below must be one. */
static cs_status check_columns(const cs_reader *reader, const columns *c, cs_error *error)
{
    const struct {
        const char *name;
        const uint32_t *values;
        uint64_t n, limit;
    } rows[] = {
        {"tasks/device", c->tasks.device, c->n_tasks, c->n_devices},
        {"versions/task", c->version_task, c->n_versions, c->n_tasks},
        {"memory/device", c->memory_device, c->n_samples, c->n_devices},
        {"memory/category", c->category, c->n_samples, c->n_categories},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (uint64_t i = 0; i < rows[r].n; i++)
            if (rows[r].values[i] >= rows[r].limit)
                return cs_error_add(error, CS_INVALID,
                                    "%s: %s: must be below %" PRIu64 " (got %" PRIu32 ")",
                                    reader->path, rows[r].name, rows[r].limit, rows[r].values[i]);
    return CS_OK;
}

static int by_device_and_time(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    CS_COMPARE(x->device, y->device);
    CS_COMPARE(x->start, y->start);
    CS_COMPARE(x->end, y->end);
    CS_COMPARE(x->task, y->task);
    return 0;
}

static void collect_slices(viewer *v)
{
    const columns *c = &v->c;
    for (uint64_t i = 0; i < c->n_tasks; i++)
        if (c->tasks.start[i] >= 0 && c->tasks.end[i] >= c->tasks.start[i])
            v->slices[v->n_slices++] =
                (slice){c->tasks.start[i], c->tasks.end[i], c->tasks.device[i], (uint32_t)i,
                        cs_style_of(c->tasks.kinds[c->tasks.kind[i]])->moves};
    qsort(v->slices, v->n_slices, sizeof(*v->slices), by_device_and_time);
}

static cs_status prepare(viewer *v, cs_error *error)
{
    const columns *c = &v->c;
    const size_t cells = (size_t)(c->n_devices * c->n_categories) + 1;
    v->slices = malloc((c->n_tasks + 1) * sizeof(*v->slices));
    v->lane_ends = malloc((c->n_tasks + 1) * sizeof(*v->lane_ends));
    v->read = malloc((c->n_tasks + 1) * sizeof(*v->read));
    v->live = calloc(cells, sizeof(*v->live));
    v->held = calloc(cells, sizeof(*v->held));
    if (!v->slices || !v->lane_ends || !v->read || !v->live || !v->held)
        return cs_error_no_memory(error);
    memset(v->read, 0xFF, (c->n_tasks + 1) * sizeof(*v->read));
    for (uint64_t i = 0; i < c->n_versions; i++)
        v->read[c->version_task[i]] = c->version[i];
    for (uint64_t i = 0; i < c->n_samples; i++)
        v->held[c->memory_device[i] * (uint64_t)c->n_categories + c->category[i]] |=
            c->memory_bytes[i] != 0;
    collect_slices(v);
    return CS_OK;
}

/* ---- writing ---- */

/* A text of the results file behind `key`. */
static void write_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s\"", key);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < ' ')
            fprintf(out, "\\u%04x", *at);
        else
            fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    }
    fputc('"', out);
}

static void write_time(FILE *out, const char *key, cs_time time)
{
    fprintf(out, ",\"%s\":%" PRId64 ".%06" PRId64, key, time / PS_PER_US, time % PS_PER_US);
}

static void begin_event(viewer *v, const char *phase, uint64_t device, uint32_t thread)
{
    fprintf(v->out, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu32, v->begun ? "," : "",
            phase, device, thread);
    v->begun = true;
}

/* A name of a process or a thread, and its place among the others. */
static void name_track(viewer *v, const char *track, uint64_t device, uint32_t thread,
                       const char *name, uint64_t position)
{
    begin_event(v, "M", device, thread);
    fprintf(v->out, ",\"name\":\"%s_name\",\"args\":{\"name\":\"%s\"}}", track, name);
    begin_event(v, "M", device, thread);
    fprintf(v->out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu64 "}}", track,
            position);
}

static void write_argument(viewer *v, const char *key, uint32_t value, const char **separator)
{
    if (value == UINT32_MAX)
        return;
    fprintf(v->out, "%s\"%s\":%" PRIu32, *separator, key, value);
    *separator = ",";
}

/* Named as in pictures: by the micro-batch, what belongs to none by the mini-batch. */
static void write_slice(viewer *v, const slice *s, uint32_t lane)
{
    const columns *c = &v->c;
    const uint32_t task = s->task;
    const char *word = c->tasks.kinds[s->moves ? c->tasks.origin[task] : c->tasks.kind[task]],
               *separator = "";
    const bool whole = v->reader->micro_batches <= 1 || strcmp(word, "update") == 0;
    char name[64];
    snprintf(name, sizeof(name), "%.40s %" PRIu32, word,
             whole ? c->tasks.mini_batch[task] : c->tasks.micro_batch[task]);
    begin_event(v, "X", s->device, lane);
    write_text(v->out, ",\"cat\":", word);
    write_text(v->out, ",\"name\":", name);
    write_time(v->out, "ts", s->start);
    write_time(v->out, "dur", s->end - s->start);
    fprintf(v->out, ",\"args\":{");
    write_argument(v, "task", task, &separator);
    write_argument(v, "stage", c->tasks.stage[task], &separator);
    write_argument(v, "mini_batch", c->tasks.mini_batch[task], &separator);
    write_argument(v, "micro_batch", c->tasks.micro_batch[task], &separator);
    write_argument(v, strcmp(word, "update") == 0 ? "version_made" : "version_read", v->read[task],
                   &separator);
    if (s->moves) {
        write_argument(v, "to_device", c->tasks.peer[task], &separator);
        fprintf(v->out, "%s\"bytes\":%" PRId64, separator, c->bytes[task]);
    }
    fprintf(v->out, "}}");
}

/* The first thread of transfers that is free, from 1; they are tried in turn, as devices have few.
 */
static uint32_t take_lane(viewer *v, const slice *s, uint32_t *n_lanes)
{
    uint32_t lane = 0;
    while (lane < *n_lanes && v->lane_ends[lane] > s->start)
        lane++;
    *n_lanes = lane == *n_lanes ? lane + 1 : *n_lanes;
    v->lane_ends[lane] = s->end;
    return lane + 1;
}

static uint64_t write_device(viewer *v, uint64_t device, uint64_t at)
{
    char name[48];
    uint32_t n_lanes = 0;
    snprintf(name, sizeof(name), "device %" PRIu64, device);
    name_track(v, "process", device, 0, name, device);
    name_track(v, "thread", device, 0, "compute", 0);
    for (; at < v->n_slices && v->slices[at].device == device; at++) {
        const slice *s = &v->slices[at];
        write_slice(v, s, s->moves ? take_lane(v, s, &n_lanes) : 0);
    }
    for (uint32_t lane = 1; lane <= n_lanes; lane++) {
        snprintf(name, sizeof(name), n_lanes == 1 ? "messages" : "messages %" PRIu32, lane);
        name_track(v, "thread", device, lane, name, lane);
    }
    return at;
}

/* All categories that the device ever has, so that viewers stack them. */
static void write_counter(viewer *v, uint32_t device, cs_time time)
{
    const uint64_t first = device * (uint64_t)v->c.n_categories;
    const char *separator = "";
    begin_event(v, "C", device, 0);
    fprintf(v->out, ",\"name\":\"memory (bytes)\"");
    write_time(v->out, "ts", time);
    fprintf(v->out, ",\"args\":{");
    for (uint32_t i = 0; i < v->c.n_categories; i++) {
        if (!v->held[first + i])
            continue;
        write_text(v->out, separator, v->c.categories[i]);
        fprintf(v->out, ":%" PRId64, v->live[first + i]);
        separator = ",";
    }
    fprintf(v->out, "}}");
}

/* Samples of one instant and device follow each other, and become one event. */
static void write_memory(viewer *v)
{
    const columns *c = &v->c;
    for (uint64_t i = 0; i < c->n_samples; i++) {
        const uint32_t device = c->memory_device[i];
        v->live[device * (uint64_t)c->n_categories + c->category[i]] = c->memory_bytes[i];
        if (i + 1 == c->n_samples || c->memory_device[i + 1] != device ||
            c->memory_time[i + 1] != c->memory_time[i])
            write_counter(v, device, c->memory_time[i]);
    }
}

static cs_status write_trace(viewer *v, const char *path, cs_error *error)
{
    const struct {
        const char *key, *value;
    } about[] = {{"\"name\":", v->reader->name},
                 {",\"topology\":", v->reader->topology},
                 {",\"schedule\":", v->reader->schedule}};
    fprintf(v->out, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{");
    for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++)
        write_text(v->out, about[i].key, about[i].value ? about[i].value : "");
    fprintf(v->out, "},\n\"traceEvents\":[");
    for (uint64_t device = 0, at = 0; device < v->c.n_devices; device++)
        at = write_device(v, device, at);
    write_memory(v);
    fprintf(v->out, "\n]}\n");
    return fflush(v->out) == 0 && !ferror(v->out)
               ? CS_OK
               : cs_error_add(error, CS_IO, "%s: cannot write: %s", path, strerror(errno));
}

static cs_status write_file(viewer *v, const char *output, cs_error *error)
{
    cs_file_draft draft;
    cs_status status = cs_file_draft_begin(&draft, output, error);
    if (status != CS_OK)
        return status;
    v->out = fopen(draft.temporary, "w");
    if (v->out)
        status = write_trace(v, output, error);
    if (!v->out || (fclose(v->out) != 0 && status == CS_OK))
        status = cs_error_add(error, CS_IO, "%s: cannot write: %s", output, strerror(errno));
    if (status == CS_OK)
        status = cs_file_draft_commit(&draft, error);
    cs_file_draft_drop(&draft);
    return status;
}

cs_status cs_viewer_write(const char *input, const char *output, FILE *out, cs_error *error)
{
    cs_reader reader;
    CS_TRY(cs_reader_init(&reader, input, error));
    viewer v = {.reader = &reader};
    cs_status status = read_columns(&reader, &v.c, error);
    if (status == CS_OK)
        status = check_columns(&reader, &v.c, error);
    if (status == CS_OK)
        status = prepare(&v, error);
    if (status == CS_OK && strcmp(output, "-") == 0) {
        v.out = out;
        status = write_trace(&v, "standard output", error);
    } else if (status == CS_OK) {
        status = write_file(&v, output, error);
    }
    free(v.slices);
    free(v.lane_ends);
    free(v.read);
    free(v.live);
    free(v.held);
    cs_reader_finish(&reader);
    return status;
}
