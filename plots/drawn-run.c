#include "plots/drawn-run.h"

#include "plots/sheet.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

static cs_status read_tasks(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_tasks *tasks = &run->tasks;
    CS_TRY(cs_reader_read_tasks(run->reader, &tasks->is, error));
    if (tasks->is.n_kinds > CS_DRAWN_KINDS)
        return cs_error_add(error, CS_INVALID, "%s: tasks/kind: has more than %d meanings",
                            run->reader->path, CS_DRAWN_KINDS);
    for (uint32_t k = 0; k < tasks->is.n_kinds; k++)
        tasks->moves[k] = cs_style_of(tasks->is.kinds[k])->moves;
    return CS_OK;
}

static cs_status read_arguments(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_tasks *tasks = &run->tasks;
    const uint32_t *task, *version;
    uint64_t n = 0;
    const cs_reader_column bytes = {"tasks/bytes", CS_READER_INT64, &tasks->bytes};
    const cs_reader_column versions[] = {{"versions/task", CS_READER_UINT32, &task},
                                         {"versions/version", CS_READER_UINT32, &version}};
    CS_TRY(cs_reader_read(run->reader, &bytes, 1, &n, error));
    CS_TRY(cs_reader_read(run->reader, versions, 2, &n, error));
    tasks->version = malloc((tasks->is.n + 1) * sizeof(*tasks->version));
    if (!tasks->version)
        return cs_error_no_memory(error);
    memset(tasks->version, 0xFF, (tasks->is.n + 1) * sizeof(*tasks->version));
    for (uint64_t i = 0; i < n; i++)
        if (task[i] < tasks->is.n)
            tasks->version[task[i]] = version[i];
    return CS_OK;
}

static cs_status read_waits(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_waits *waits = &run->waits;
    const cs_reader_column columns[] = {{"waits/device", CS_READER_UINT32, &waits->row},
                                        {"waits/cause", CS_READER_UINT32, &waits->cause},
                                        {"waits/start", CS_READER_INT64, &waits->start},
                                        {"waits/end", CS_READER_INT64, &waits->end}};
    if (!cs_reader_has(run->reader, "waits"))
        return CS_OK;
    CS_TRY(cs_reader_meanings(run->reader, "waits/cause", &waits->causes, &waits->n_causes, error));
    return cs_reader_read(run->reader, columns, 4, &waits->n, error);
}

static cs_status read_path(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_path *path = &run->path;
    const cs_reader_column columns[] = {{"critical_path/task", CS_READER_UINT32, &path->task},
                                        {"critical_path/start", CS_READER_INT64, &path->start},
                                        {"critical_path/end", CS_READER_INT64, &path->end}};
    if (!cs_reader_has(run->reader, "critical_path"))
        return CS_OK;
    CS_TRY(cs_reader_read(run->reader, columns, 3, &path->n, error));
    return cs_reader_task_rows(run->reader, &path->row_of, error);
}

static cs_status read_times(cs_drawn_run *run, cs_error *error)
{
    static const char prefix[] = "compute_", *const waits[] = {"communication", "dependency",
                                                               "flush"};
    enum { N_WAITS = sizeof(waits) / sizeof(waits[0]) };
    const char *const *kinds = NULL;
    char names[CS_DRAWN_USES][80];
    cs_reader_column columns[CS_DRAWN_USES];
    uint32_t n = 0;
    CS_TRY(cs_reader_names(run->reader, "devices", prefix, &kinds, &n, error));
    if (n == 0 || n > CS_DRAWN_USES - N_WAITS)
        return cs_error_add(error, CS_INVALID,
                            "%s: devices: must have 1 to %d columns compute_<kind>; was the run "
                            "analysed?",
                            run->reader->path, CS_DRAWN_USES - N_WAITS);
    for (uint32_t i = 0; i < n + N_WAITS; i++) {
        const char *column = i < n ? kinds[i] : waits[i - n];
        run->uses[i].name = i < n ? column + strlen(prefix) : column;
        snprintf(names[i], sizeof(names[i]), "devices/%s", column);
        columns[i] = (cs_reader_column){names[i], CS_READER_INT64, &run->uses[i].times};
    }
    run->n_compute = n;
    run->n_uses = n + N_WAITS;
    return cs_reader_read(run->reader, columns, run->n_uses, &run->n_rows, error);
}

static cs_status read_peaks(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_memory *memory = &run->memory;
    const cs_reader_column columns[] = {
        {"devices/peak", CS_READER_INT64, &memory->peak},
        {"devices/peak_time", CS_READER_INT64, &memory->peak_time},
        {"devices/oom_time", CS_READER_INT64, &memory->oom_time},
        {"devices/out_of_memory", CS_READER_UINT32, &memory->out_of_memory}};
    CS_TRY(cs_reader_read(run->reader, columns, 4, &run->n_rows, error));
    memory->at_peak =
        cs_arena_alloc(&run->reader->arena, memory->n_categories + 1ULL, sizeof(*memory->at_peak));
    if (!memory->at_peak)
        return cs_error_no_memory(error);
    for (uint32_t c = 0; c < memory->n_categories; c++) {
        char name[160];
        snprintf(name, sizeof(name), "devices/at_peak_%.120s", memory->categories[c]);
        const cs_reader_column column = {name, CS_READER_INT64, &memory->at_peak[c]};
        CS_TRY(cs_reader_read(run->reader, &column, 1, &run->n_rows, error));
    }
    return CS_OK;
}

static cs_status read_links(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_links *links = &run->links;
    const cs_reader_column columns[] = {
        {"links/name", CS_READER_TEXT, &links->names},
        {"links/bandwidth", CS_READER_DOUBLE, &links->bandwidth},
        {"links/bytes", CS_READER_DOUBLE, &links->bytes},
        {"links/utilisation", CS_READER_DOUBLE, &links->utilisation}};
    const char *fidelity = run->reader->fidelity;
    links->no_collectives = fidelity && strcmp(fidelity, "flow") != 0;
    return cs_reader_read(run->reader, columns, 4, &links->n, error);
}

/* ---- rows ---- */

static cs_status make_rows(cs_drawn_run *run, cs_error *error)
{
    cs_reader *reader = run->reader;
    const cs_reader_column column = {"devices/capacity", CS_READER_INT64, &run->memory.capacity};
    CS_TRY(cs_reader_read(reader, &column, 1, &run->n_rows, error));
    run->rows = calloc(run->n_rows + 1, sizeof(*run->rows));
    if (!run->rows)
        return cs_error_no_memory(error);
    for (uint64_t r = 0; r < run->n_rows; r++) {
        run->rows[r].device = (uint32_t)r;
        run->rows[r].stands_for = reader->row_of ? 0 : 1;
    }
    for (uint32_t d = 0; reader->row_of && d < reader->n_file_devices; d++) {
        const uint32_t row = reader->stand_in_of[d];
        if (row >= run->n_rows)
            continue;
        if (reader->row_of[d] == row)
            run->rows[row].device = d;
        run->rows[row].stands_for++;
    }
    return CS_OK;
}

uint32_t cs_drawn_device(const cs_drawn_run *run, uint32_t row)
{
    return row < run->n_rows ? run->rows[row].device : UINT32_MAX;
}

char *cs_drawn_row_name(const cs_drawn_run *run, uint64_t row, char *text, size_t size)
{
    if (run->rows[row].stands_for > 1)
        snprintf(text, size, "devices %s", run->reader->kinds[row]);
    else
        snprintf(text, size, "device %u", run->rows[row].device);
    return text;
}

/* ---- memory ---- */

/* Reads the memory samples; skips samples of devices that another device represents. */
static cs_status read_memory(cs_drawn_run *run, cs_error *error)
{
    cs_drawn_memory *m = &run->memory;
    const cs_reader_column columns[] = {{"memory/time", CS_READER_INT64, &m->time},
                                        {"memory/bytes", CS_READER_INT64, &m->bytes},
                                        {"memory/device", CS_READER_UINT32, &m->row},
                                        {"memory/category", CS_READER_UINT32, &m->category}};
    CS_TRY(cs_reader_read(run->reader, columns, 4, &m->n, error));
    CS_TRY(cs_reader_meanings(run->reader, "memory/category", &m->categories, &m->n_categories,
                              error));
    m->by_row = malloc((m->n + 1) * sizeof(*m->by_row));
    m->held = calloc(run->n_rows * m->n_categories + 1, sizeof(*m->held));
    if (!m->by_row || !m->held)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < m->n; i++)
        if (m->row[i] < run->n_rows) {
            run->rows[m->row[i]].n_samples++;
            m->held[m->row[i] * (uint64_t)m->n_categories + m->category[i]] |= m->bytes[i] != 0;
        }
    for (uint64_t r = 0, sum = 0; r < run->n_rows; r++) {
        run->rows[r].first_sample = sum;
        sum += run->rows[r].n_samples;
        run->rows[r].n_samples = 0;
    }
    for (uint64_t i = 0; i < m->n; i++)
        if (m->row[i] < run->n_rows) {
            cs_drawn_row *row = &run->rows[m->row[i]];
            m->by_row[row->first_sample + row->n_samples++] = i;
            m->n_by_row++;
        }
    return CS_OK;
}

cs_status cs_drawn_run_need_memory(const cs_drawn_run *run, uint32_t most, cs_error *error)
{
    if (run->memory.n_categories > most)
        return cs_error_add(error, CS_INVALID, "%s: memory/category: has more than %u meanings",
                            run->reader->path, most);
    return run->memory.n == 0
               ? cs_error_add(error, CS_INVALID,
                              "%s: memory: has no samples: weights and activations have no size, "
                              "or the run did not record them",
                              run->reader->path)
               : CS_OK;
}

/* ---- slices ---- */

typedef struct entry {
    cs_time start;
    uint32_t task;
    uint8_t side;
} entry;

/* Adds a task that ran to the row of its device and, for transfers, to the row of its peer. If
 * `entries` is NULL, only counts. */
static void add_entries(cs_drawn_run *run, entry *entries)
{
    const cs_reader_tasks *tasks = &run->tasks.is;
    for (uint64_t i = 0; i < tasks->n; i++) {
        const bool moves = run->tasks.moves[tasks->kind[i]];
        const uint32_t on[] = {tasks->device[i], moves ? tasks->peer[i] : UINT32_MAX};
        if (tasks->start[i] < 0 || tasks->end[i] < tasks->start[i])
            continue;
        for (int side = 0; side < 2; side++) {
            if (on[side] >= run->n_rows)
                continue;
            cs_drawn_row *row = &run->rows[on[side]];
            if (entries)
                entries[row->first + row->n] = (entry){tasks->start[i], (uint32_t)i,
                                                       (uint8_t)(side    ? CS_DRAWN_RECEIVES
                                                                 : moves ? CS_DRAWN_SENDS
                                                                         : CS_DRAWN_COMPUTES)};
            row->n++;
        }
    }
}

/* Radix-sorts by start, 11 bits per pass from the lowest bits, in as many passes as `most` has
 * digits, so a million slices take few passes. `other` is scratch space of the same size. Returns
 * the array that holds the result. */
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

/* Orders slices that start at the same time: the shorter first, then the lower task id. An
 * insertion sort suffices, as few slices tie. */
static void order_ties(const cs_reader_tasks *tasks, entry *of, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        const entry own = of[i];
        uint64_t k = i;
        for (; k > 0 && of[k - 1].start == own.start &&
               (tasks->end[of[k - 1].task] > tasks->end[own.task] ||
                (tasks->end[of[k - 1].task] == tasks->end[own.task] && of[k - 1].task > own.task));
             k--)
            of[k] = of[k - 1];
        of[k] = own;
    }
}

/* Assigns each slice of a row to the first free lane of its side. Lanes are searched linearly, as a
 * row has few. Returns false if memory runs out or lanes exceed UINT16_MAX. */
static bool place_slices(cs_drawn_run *run, cs_drawn_row *row, const entry *of)
{
    struct {
        cs_time *ends;
        uint32_t n, capacity;
    } sides[3] = {{0}}; /* time when each lane becomes free */
    bool done = true;
    for (uint64_t i = 0; i < row->n && done; i++) {
        const uint32_t task = of[i].task;
        const uint8_t side = of[i].side;
        uint32_t lane = 0;
        if (side != CS_DRAWN_COMPUTES) {
            while (lane < sides[side].n && sides[side].ends[lane] > of[i].start)
                lane++;
            done = lane <= UINT16_MAX &&
                   cs_vector_reserve((void **)&sides[side].ends, &sides[side].capacity, lane + 1ULL,
                                     sizeof(*sides[side].ends));
            if (done) {
                sides[side].n += lane == sides[side].n;
                sides[side].ends[lane] = run->tasks.is.end[task];
            }
        }
        run->slices[row->first + i] = (cs_drawn_slice){task, (uint16_t)lane, side};
    }
    row->sends = sides[CS_DRAWN_SENDS].n;
    row->receives = sides[CS_DRAWN_RECEIVES].n;
    for (int side = 0; side < 3; side++)
        free(sides[side].ends);
    return done;
}

static cs_status make_slices(cs_drawn_run *run, cs_error *error)
{
    add_entries(run, NULL);
    for (uint64_t r = 0; r < run->n_rows; r++) {
        run->rows[r].first = run->n_slices;
        run->n_slices += run->rows[r].n;
        run->rows[r].n = 0;
    }
    entry *entries = malloc((2 * run->n_slices + 2) * sizeof(*entries));
    run->slices = malloc((run->n_slices + 1) * sizeof(*run->slices));
    bool done = entries && run->slices;
    if (done)
        add_entries(run, entries);
    for (uint64_t r = 0; r < run->n_rows && done; r++) {
        cs_drawn_row *row = &run->rows[r];
        entry *of = sort_by_start(entries + row->first, entries + run->n_slices + row->first,
                                  row->n, run->reader->makespan);
        order_ties(&run->tasks.is, of, row->n);
        done = place_slices(run, row, of);
    }
    free(entries);
    return done ? CS_OK : cs_error_no_memory(error);
}

bool cs_drawn_updates(const cs_drawn_run *run, uint32_t task)
{
    return strcmp(run->tasks.is.kinds[run->tasks.is.kind[task]], "update") == 0;
}

uint32_t cs_drawn_number(const cs_drawn_run *run, uint32_t task)
{
    const bool whole = run->reader->micro_batches <= 1 || cs_drawn_updates(run, task);
    return whole ? run->tasks.is.mini_batch[task] : run->tasks.is.micro_batch[task];
}

/* ---- the run ---- */

cs_status cs_drawn_run_read(cs_reader *reader, uint32_t parts, cs_drawn_run *run, cs_error *error)
{
    static const struct {
        uint32_t part;
        cs_status (*read)(cs_drawn_run *run, cs_error *error);
    } all[] = {{CS_DRAWN_TASKS, read_tasks},  {CS_DRAWN_ARGUMENTS, read_arguments},
               {CS_DRAWN_WAITS, read_waits},  {CS_DRAWN_PATH, read_path},
               {CS_DRAWN_TIMES, read_times},  {CS_DRAWN_MEMORY, read_memory},
               {CS_DRAWN_PEAKS, read_peaks},  {CS_DRAWN_LINKS, read_links},
               {CS_DRAWN_SLICES, make_slices}};
    *run = (cs_drawn_run){.reader = reader};
    cs_status status = make_rows(run, error);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && status == CS_OK; i++)
        if (parts & all[i].part)
            status = all[i].read(run, error);
    if (status != CS_OK)
        cs_drawn_run_finish(run);
    return status;
}

void cs_drawn_run_finish(cs_drawn_run *run)
{
    free(run->rows);
    free(run->slices);
    free(run->tasks.version);
    free(run->memory.by_row);
    free(run->memory.held);
    *run = (cs_drawn_run){0};
}
