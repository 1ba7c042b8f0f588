#include "sim/engine/memory.h"

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

/* A second change within an instant replaces the first. */
static bool note_sample(cs_memory *memory, uint32_t device, uint32_t category, cs_time now)
{
    int64_t live = memory->pools[device].live[category];
    uint32_t *last = &memory->last_sample[(size_t)device * CS_N_CATEGORIES + category];
    if (*last != CS_NONE && memory->samples[*last].time == now) {
        memory->samples[*last].bytes = live;
        return true;
    }
    if (!cs_vector_reserve((void **)&memory->samples, &memory->cap_samples,
                           memory->n_samples + UINT64_C(1), sizeof(*memory->samples)))
        return false;
    *last = memory->n_samples;
    memory->samples[memory->n_samples++] = (cs_memory_sample){now, live, device, category};
    return true;
}

static bool apply_residents(cs_memory *memory, const cs_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_residents; i++) {
        const cs_resident *resident = &graph->residents[i];
        cs_device_memory *pool = &memory->pools[resident->device];
        pool->total += resident->bytes;
        pool->live[resident->category] += resident->bytes;
        if (memory->record && !note_sample(memory, resident->device, resident->category, 0))
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
    *memory = (cs_memory){.n_devices = graph->n_devices, .record = record, .overflowed = CS_NONE};
    memory->pools = calloc(n + 1, sizeof(*memory->pools));
    memory->records = calloc(n + 1, sizeof(*memory->records));
    size_t lasts = n * CS_N_CATEGORIES + 1;
    memory->last_sample = malloc(lasts * sizeof(*memory->last_sample));
    if (!memory->pools || !memory->records || !memory->last_sample ||
        !reserve_series(memory, graph))
        goto no_memory;
    memset(memory->last_sample, 0xff, lasts * sizeof(*memory->last_sample));
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
    free(memory->samples);
    free(memory->last_sample);
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

/* What has to be noted of effects that were applied. */
static cs_status note_effects(cs_memory *memory, const cs_effect *effects, uint32_t n,
                              uint32_t task, cs_time now)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t device = effects[i].device, category = effects[i].category;
        if (effects[i].bytes > 0)
            note_peaks(memory, device, category, task, now);
        if (memory->record && !note_sample(memory, device, category, now))
            return CS_NO_MEMORY;
    }
    return CS_OK;
}

cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n, uint32_t task,
                          cs_time now)
{
    bool allocates = false;
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
    return allocates || memory->record ? note_effects(memory, effects, n, task, now) : CS_OK;
}

static int compare_samples(const void *left, const void *right)
{
    const cs_memory_sample *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->category != b->category)
        return a->category < b->category ? -1 : 1;
    return 0;
}

/* Most instants have few samples, in order already. */
static void sort_instant(cs_memory_sample *samples, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (compare_samples(&samples[i - 1], &samples[i]) > 0) {
            qsort(samples, n, sizeof(*samples), compare_samples);
            return;
        }
    }
}

bool cs_memory_settle_samples(cs_memory *memory)
{
    cs_memory_sample *samples = memory->samples;
    int64_t *before = calloc((size_t)memory->n_devices * CS_N_CATEGORIES + 1, sizeof(*before));
    if (!before)
        return false;
    uint32_t kept = 0;
    for (uint32_t first = 0, end; first < memory->n_samples; first = end) {
        for (end = first + 1; end < memory->n_samples && samples[end].time == samples[first].time;)
            end++;
        sort_instant(samples + first, end - first);
        for (uint32_t i = first; i < end; i++) {
            int64_t *value = &before[samples[i].device * CS_N_CATEGORIES + samples[i].category];
            if (samples[i].bytes == *value)
                continue;
            *value = samples[i].bytes;
            samples[kept++] = samples[i];
        }
    }
    memory->n_samples = kept;
    free(before);
    return true;
}
