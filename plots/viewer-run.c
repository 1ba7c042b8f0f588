#include "plots/viewer-run.h"

#include "sim/base/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

typedef struct versions {
    const uint32_t *task, *version;
    uint64_t n;
} versions;

static cs_status read_columns(cs_viewer_run *run, versions *read, const int64_t **capacities,
                              cs_error *error)
{
    const uint32_t *devices;
    const cs_reader_column tasks[] = {{"tasks/bytes", CS_READER_INT64, &run->bytes}};
    const cs_reader_column of_versions[] = {{"versions/task", CS_READER_UINT32, &read->task},
                                            {"versions/version", CS_READER_UINT32, &read->version}};
    const cs_reader_column memory[] = {{"memory/device", CS_READER_UINT32, &run->memory_device},
                                       {"memory/category", CS_READER_UINT32, &run->category},
                                       {"memory/time", CS_READER_INT64, &run->memory_time},
                                       {"memory/bytes", CS_READER_INT64, &run->memory_bytes}};
    const cs_reader_column of_devices[] = {{"devices/device", CS_READER_UINT32, &devices},
                                           {"devices/capacity", CS_READER_INT64, capacities}};
    const struct {
        const cs_reader_column *columns;
        size_t n;
        uint64_t *rows;
    } groups[] = {{tasks, sizeof(tasks) / sizeof(tasks[0]), &run->n_tasks},
                  {of_versions, sizeof(of_versions) / sizeof(of_versions[0]), &read->n},
                  {memory, sizeof(memory) / sizeof(memory[0]), &run->n_samples},
                  {of_devices, sizeof(of_devices) / sizeof(of_devices[0]), &run->n_devices}};
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
        CS_TRY(cs_reader_read(run->reader, groups[g].columns, groups[g].n, groups[g].rows, error));
    CS_TRY(cs_reader_read_tasks(run->reader, &run->tasks, error));
    return cs_reader_meanings(run->reader, "memory/category", &run->categories, &run->n_categories,
                              error);
}

/* What is used as an index below must be one. */
static cs_status check_columns(const cs_viewer_run *run, const versions *read, cs_error *error)
{
    const struct {
        const char *name;
        const uint32_t *values;
        uint64_t n, limit;
    } rows[] = {
        {"tasks/device", run->tasks.device, run->n_tasks, run->n_devices},
        {"versions/task", read->task, read->n, run->n_tasks},
        {"memory/device", run->memory_device, run->n_samples, run->n_devices},
        {"memory/category", run->category, run->n_samples, run->n_categories},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (uint64_t i = 0; i < rows[r].n; i++)
            if (rows[r].values[i] >= rows[r].limit)
                return cs_error_add(
                    error, CS_INVALID, "%s: %s: must be below %" PRIu64 " (got %" PRIu32 ")",
                    run->reader->path, rows[r].name, rows[r].limit, rows[r].values[i]);
    return CS_OK;
}

bool cs_viewer_moves(const cs_viewer_run *run, uint32_t task)
{
    return run->tasks.peer[task] < run->n_devices;
}

static bool ran(const cs_viewer_run *run, uint64_t task)
{
    return run->tasks.start[task] >= 0 && run->tasks.end[task] >= run->tasks.start[task];
}

const char *cs_viewer_word(const cs_viewer_run *run, uint32_t task)
{
    return run->tasks
        .kinds[cs_viewer_moves(run, task) ? run->tasks.origin[task] : run->tasks.kind[task]];
}

bool cs_viewer_updates(const cs_viewer_run *run, uint32_t task)
{
    return strcmp(run->tasks.kinds[run->tasks.kind[task]], "update") == 0;
}

uint32_t cs_viewer_number(const cs_viewer_run *run, uint32_t task)
{
    const bool whole = run->reader->micro_batches <= 1 || cs_viewer_updates(run, task);
    return whole ? run->tasks.mini_batch[task] : run->tasks.micro_batch[task];
}

/* ---- slices by device and time ---- */

typedef struct entry {
    cs_time start;
    uint32_t task;
    uint8_t side;
} entry;

static void count_slices(cs_viewer_run *run)
{
    for (uint64_t i = 0; i < run->n_tasks; i++) {
        if (!ran(run, i))
            continue;
        run->devices[run->tasks.device[i]].n++;
        if (cs_viewer_moves(run, (uint32_t)i))
            run->devices[run->tasks.peer[i]].n++;
    }
    for (uint64_t d = 0; d < run->n_devices; d++) {
        run->devices[d].first = run->n_slices;
        run->n_slices += run->devices[d].n;
        run->devices[d].n = 0;
    }
}

static void add_entry(cs_viewer_run *run, entry *entries, uint32_t device, uint64_t task,
                      cs_slice_side side)
{
    cs_viewer_device *d = &run->devices[device];
    entries[d->first + d->n++] = (entry){run->tasks.start[task], (uint32_t)task, (uint8_t)side};
}

static void list_entries(cs_viewer_run *run, entry *entries)
{
    for (uint64_t i = 0; i < run->n_tasks; i++) {
        const bool moves = cs_viewer_moves(run, (uint32_t)i);
        if (!ran(run, i))
            continue;
        add_entry(run, entries, run->tasks.device[i], i,
                  moves ? CS_SLICE_SENDS : CS_SLICE_COMPUTES);
        if (moves)
            add_entry(run, entries, run->tasks.peer[i], i, CS_SLICE_RECEIVES);
    }
}

/* By start, 11 bits at a time from the lowest, as often as the longest has: a million slices in few
 * passes. `other` has as much room. Returns where the result is. */
static entry *sort_by_start(entry *entries, entry *other, uint64_t n, cs_time most)
{
    enum { BITS = 11, BUCKETS = 1 << BITS };
    uint64_t ends[BUCKETS];
    for (int shift = 0; shift < 63 && most >> shift > 0; shift += BITS) {
        memset(ends, 0, sizeof(ends));
        for (uint64_t i = 0; i < n; i++)
            ends[entries[i].start >> shift & (BUCKETS - 1)]++;
        for (uint64_t b = 0, sum = 0; b < BUCKETS; b++) {
            const uint64_t count = ends[b];
            ends[b] = sum;
            sum += count;
        }
        for (uint64_t i = 0; i < n; i++)
            other[ends[entries[i].start >> shift & (BUCKETS - 1)]++] = entries[i];
        entry *swap = entries;
        entries = other;
        other = swap;
    }
    return entries;
}

/* What begins together: the shorter first, then the lower id. There are few of them. */
static void order_ties(const cs_viewer_run *run, entry *of, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        const entry own = of[i];
        uint64_t k = i;
        for (; k > 0 && of[k - 1].start == own.start &&
               (run->tasks.end[of[k - 1].task] > run->tasks.end[own.task] ||
                (run->tasks.end[of[k - 1].task] == run->tasks.end[own.task] &&
                 of[k - 1].task > own.task));
             k--)
            of[k] = of[k - 1];
        of[k] = own;
    }
}

/* ---- lanes ---- */

/* When the lanes of one side of a device are free. */
typedef struct lanes {
    cs_time *ends;
    uint32_t n, capacity;
} lanes;

/* The first lane that is free; they are tried in turn, as devices have few. UINT32_MAX when memory
 * runs out, or the lanes' numbers. */
static uint32_t take_lane(lanes *of, cs_time start, cs_time end)
{
    uint32_t lane = 0;
    while (lane < of->n && of->ends[lane] > start)
        lane++;
    if (lane == of->n) {
        if (lane > UINT16_MAX ||
            !cs_vector_reserve((void **)&of->ends, &of->capacity, lane + 1ULL, sizeof(*of->ends)))
            return UINT32_MAX;
        of->n++;
    }
    of->ends[lane] = end;
    return lane;
}

static bool place_slices(cs_viewer_run *run, cs_viewer_device *device, const entry *of)
{
    lanes sides[3] = {{0}};
    bool done = true;
    for (uint64_t i = 0; i < device->n && done; i++) {
        const uint32_t task = of[i].task;
        uint32_t lane = 0;
        if (of[i].side != CS_SLICE_COMPUTES)
            lane = take_lane(&sides[of[i].side], of[i].start, run->tasks.end[task]);
        done = lane <= UINT16_MAX;
        run->slices[device->first + i] = (cs_viewer_slice){task, (uint16_t)lane, of[i].side};
    }
    device->sends = sides[CS_SLICE_SENDS].n;
    device->receives = sides[CS_SLICE_RECEIVES].n;
    for (int side = 0; side < 3; side++)
        free(sides[side].ends);
    return done;
}

static cs_status collect_slices(cs_viewer_run *run, cs_error *error)
{
    count_slices(run);
    entry *entries = malloc((2 * run->n_slices + 2) * sizeof(*entries));
    run->slices = malloc((run->n_slices + 1) * sizeof(*run->slices));
    bool done = entries && run->slices;
    if (done)
        list_entries(run, entries);
    for (uint64_t d = 0; d < run->n_devices && done; d++) {
        cs_viewer_device *device = &run->devices[d];
        entry *of = sort_by_start(entries + device->first, entries + run->n_slices + device->first,
                                  device->n, run->reader->makespan);
        order_ties(run, of, device->n);
        done = place_slices(run, device, of);
    }
    free(entries);
    return done ? CS_OK : cs_error_no_memory(error);
}

/* ---- the run ---- */

static cs_status prepare(cs_viewer_run *run, const versions *read, const int64_t *capacities,
                         cs_error *error)
{
    const size_t cells = (size_t)(run->n_devices * run->n_categories) + 1;
    run->devices = calloc(run->n_devices + 1, sizeof(*run->devices));
    run->read = malloc((run->n_tasks + 1) * sizeof(*run->read));
    run->held = calloc(cells, sizeof(*run->held));
    if (!run->devices || !run->read || !run->held)
        return cs_error_no_memory(error);
    memset(run->read, 0xFF, (run->n_tasks + 1) * sizeof(*run->read));
    for (uint64_t i = 0; i < read->n; i++)
        run->read[read->task[i]] = read->version[i];
    for (uint64_t i = 0; i < run->n_samples; i++)
        run->held[run->memory_device[i] * (uint64_t)run->n_categories + run->category[i]] |=
            run->memory_bytes[i] != 0;
    for (uint64_t d = 0; d < run->n_devices; d++)
        run->devices[d].capacity = capacities[d];
    return collect_slices(run, error);
}

cs_status cs_viewer_run_read(cs_reader *reader, cs_viewer_run *run, cs_error *error)
{
    versions read = {0};
    const int64_t *capacities = NULL;
    *run = (cs_viewer_run){.reader = reader};
    CS_TRY(read_columns(run, &read, &capacities, error));
    CS_TRY(check_columns(run, &read, error));
    const cs_status status = prepare(run, &read, capacities, error);
    if (status != CS_OK)
        cs_viewer_run_finish(run);
    return status;
}

void cs_viewer_run_finish(cs_viewer_run *run)
{
    free(run->devices);
    free(run->slices);
    free(run->read);
    free(run->held);
    *run = (cs_viewer_run){0};
}
