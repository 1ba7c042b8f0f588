#include "sim/core/engine/memory.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

static void note_peak(cs_memory *memory, uint32_t device, uint32_t task, cs_time now)
{
    const cs_device_memory *pool = &memory->pools[device];
    cs_device_record *record = &memory->records[device];
    record->peak = pool->total;
    record->peak_time = now;
    memcpy(record->at_peak, pool->live, sizeof(pool->live));
    if (pool->total > record->capacity && !record->out_of_memory) {
        record->out_of_memory = true;
        record->oom_time = now;
        record->oom_task = task;
        memcpy(record->at_oom, pool->live, sizeof(pool->live));
        memory->over_capacity = true;
    }
}

/* Compares a pool with its record after an allocation. */
static inline void note_peaks(cs_memory *memory, uint32_t device, uint32_t category, uint32_t task,
                              cs_time now)
{
    const cs_device_memory *pool = &memory->pools[device];
    cs_device_record *record = &memory->records[device];
    if (pool->live[category] > record->category_peak[category])
        record->category_peak[category] = pool->live[category];
    if (pool->total > record->peak)
        note_peak(memory, device, task, now);
}

static inline bool note_change(cs_memory *memory, uint32_t device, uint32_t category)
{
    if (!cs_vector_reserve((void **)&memory->changed, &memory->cap_changed,
                           memory->n_changed + UINT64_C(1), sizeof(*memory->changed)))
        return false;
    memory->changed[memory->n_changed++] = device * CS_N_CATEGORIES + category;
    return true;
}

static bool apply_residents(cs_memory *memory, const cs_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_residents; i++) {
        const cs_resident *resident = &graph->residents[i];
        cs_device_memory *pool = &memory->pools[resident->device];
        pool->total += resident->bytes;
        pool->live[resident->category] += resident->bytes;
        if (memory->samples && !note_change(memory, resident->device, resident->category))
            return false;
    }
    for (uint32_t i = 0; i < graph->n_residents; i++)
        note_peaks(memory, graph->residents[i].device, graph->residents[i].category, CS_NONE, 0);
    return true;
}

static bool reserve_series(cs_memory *memory, const cs_graph *graph)
{
    if (graph->n_series == 0)
        return true;
    memory->running = calloc(graph->n_devices, sizeof(*memory->running));
    memory->series = calloc(graph->n_series, sizeof(*memory->series));
    for (uint32_t d = 0; memory->running && d < graph->n_devices; d++)
        memory->running[d].instant = memory->running[d].doubtful = -1;
    return memory->running && memory->series;
}

cs_status cs_memory_init(cs_memory *memory, const cs_graph *graph, const cs_platform *platform,
                         bool record, cs_error *error)
{
    size_t n = graph->n_devices;
    *memory = (cs_memory){.n_devices = graph->n_devices, .overflowed = CS_NONE};
    memory->pools = calloc(n + 1, sizeof(*memory->pools));
    memory->records = calloc(n + 1, sizeof(*memory->records));
    memory->samples = record ? cs_samples_create(graph->n_devices) : NULL;
    if (!memory->pools || !memory->records || (record && !memory->samples) ||
        !reserve_series(memory, graph))
        goto no_memory;
    for (size_t i = 0; i < n; i++) {
        memory->records[i].capacity = platform->devices[i].capacity;
        memory->records[i].oom_task = CS_NONE;
    }
    if (apply_residents(memory, graph))
        return CS_OK;
no_memory:
    cs_memory_finish(memory);
    return cs_error_no_memory(error);
}

void cs_memory_finish(cs_memory *memory)
{
    free(memory->pools);
    free(memory->records);
    cs_samples_destroy(memory->samples);
    free(memory->changed);
    free(memory->running);
    free(memory->series);
    free(memory->changes);
    *memory = (cs_memory){0};
}

/* ---- series ---- */

bool cs_memory_add_change(cs_memory *memory, uint32_t series, const cs_memory_change *change)
{
    cs_memory_series *of = &memory->series[series];
    if (!cs_vector_reserve((void **)&memory->changes, &memory->cap_changes,
                           memory->n_changes + UINT64_C(1), sizeof(*memory->changes)))
        return false;
    if (of->n++ == 0) {
        of->first = memory->n_changes;
        of->top = INT64_MIN;
    }
    of->bytes += change->bytes;
    if (change->allocated > 0 && of->bytes > of->top)
        of->top = of->bytes;
    memory->changes[memory->n_changes++] = *change;
    return true;
}

/* Peaks of categories, and when there was one, are not known of series. */
static void note_total(cs_memory *memory, uint32_t device, int64_t total)
{
    cs_device_record *record = &memory->records[device];
    record->peak = total > record->peak ? total : record->peak;
    record->out_of_memory |= record->peak > record->capacity;
    memory->over_capacity |= record->out_of_memory;
}

void cs_memory_begin_series(cs_memory *memory, uint32_t series, uint32_t device, cs_time now)
{
    const cs_memory_series *of = &memory->series[series];
    cs_memory_running *running = &memory->running[device];
    running->at = of->first;
    running->end = of->first + of->n;
    running->whole = of;
    running->start = now;
}

/* Applies the changes before `now`. */
static void catch_up(cs_memory *memory, uint32_t device, cs_time now)
{
    cs_memory_running *running = &memory->running[device];
    cs_device_memory *pool = &memory->pools[device];
    for (; running->at < running->end; running->at++) {
        const cs_memory_change *change = &memory->changes[running->at];
        if (now - running->start <= change->after)
            return;
        running->whole = NULL;
        pool->total += change->bytes;
        if (change->allocated > 0)
            note_total(memory, device, pool->total);
    }
}

void cs_memory_end_series(cs_memory *memory, uint32_t device)
{
    cs_memory_running *running = &memory->running[device];
    if (running->whole && running->whole->n > 0) {
        cs_device_memory *pool = &memory->pools[device];
        if (running->whole->top != INT64_MIN)
            note_total(memory, device, pool->total + running->whole->top);
        pool->total += running->whole->bytes;
        running->at = running->end;
    }
    catch_up(memory, device, INT64_MAX);
    running->whole = NULL;
}

/* Another task changes the device's memory while a series goes on. Whatever order changes have that
 * happen at the very instant, there are no more bytes than without what is freed. */
static void meet_series(cs_memory *memory, uint32_t device, int64_t bytes, cs_time now)
{
    cs_memory_running *running = &memory->running[device];
    if (running->at == running->end)
        return;
    catch_up(memory, device, now);
    const cs_time after = now - running->start;
    uint32_t i = running->at;
    if (i == running->end || memory->changes[i].after != after)
        return;
    if (running->instant != now)
        running->most = memory->pools[device].total;
    for (; running->instant != now && i < running->end && memory->changes[i].after == after; i++)
        running->most += memory->changes[i].allocated;
    running->instant = now;
    running->most += bytes > 0 ? bytes : 0;
    if (running->most > running->doubtful)
        running->doubtful = running->most;
}

bool cs_memory_is_doubtful(const cs_memory *memory)
{
    bool doubtful = false;
    for (uint32_t d = 0; memory->running && d < memory->n_devices; d++)
        doubtful |= memory->running[d].doubtful >= memory->records[d].peak;
    return doubtful;
}

/* Records peaks and changes after effects. */
static cs_status note_effects(cs_memory *memory, const cs_effect *effects, uint32_t n,
                              uint32_t task, cs_time now)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t device = effects[i].device, category = effects[i].category;
        if (effects[i].bytes > 0)
            note_peaks(memory, device, category, task, now);
        if (memory->samples && !note_change(memory, device, category))
            return CS_NO_MEMORY;
    }
    return CS_OK;
}

cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n, uint32_t task,
                          cs_time now)
{
    bool allocates = false;
    if (memory->samples && now != memory->instant && !cs_memory_end_instant(memory))
        return CS_NO_MEMORY;
    memory->instant = now;
    for (uint32_t i = 0; memory->running && i < n; i++)
        meet_series(memory, effects[i].device, effects[i].bytes, now);
    for (uint32_t i = 0; i < n; i++) {
        cs_device_memory *pool = &memory->pools[effects[i].device];
        if (__builtin_add_overflow(pool->total, effects[i].bytes, &pool->total)) {
            memory->overflowed = effects[i].device;
            return CS_OVERFLOW;
        }
        pool->live[effects[i].category] += effects[i].bytes;
        allocates |= effects[i].bytes > 0;
    }
    return allocates || memory->samples ? note_effects(memory, effects, n, task, now) : CS_OK;
}

static int compare_numbers(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    CS_COMPARE(a, b);
    return 0;
}

/* Most instants have few, or many devices that do the same, one after the other. */
static void sort_changed(uint32_t *changed, uint32_t n)
{
    enum { MOST_MOVES = 16 }; /* per element */
    uint64_t moves = 0;
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t moved = changed[i];
        uint32_t to = i;
        for (; to > 0 && changed[to - 1] > moved; to--)
            changed[to] = changed[to - 1];
        changed[to] = moved;
        moves += i - to;
        if (moves > MOST_MOVES * (uint64_t)n) {
            qsort(changed, n, sizeof(*changed), compare_numbers);
            return;
        }
    }
}

bool cs_memory_end_instant(cs_memory *memory)
{
    bool done = true;
    sort_changed(memory->changed, memory->n_changed);
    for (uint32_t i = 0; i < memory->n_changed && done; i++) {
        const uint32_t key = memory->changed[i];
        const cs_device_memory *pool = &memory->pools[key / CS_N_CATEGORIES];
        done = cs_samples_note(memory->samples, memory->instant, key,
                               pool->live[key % CS_N_CATEGORIES]);
    }
    memory->n_changed = 0;
    return done;
}
