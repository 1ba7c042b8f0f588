#include "sim/engine/memory.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Compares a pool with its record after an allocation. */
static void note_peaks(cs_memory *memory, uint32_t device, uint32_t category, uint32_t task,
                       cs_time now)
{
    const cs_device_memory *pool = &memory->pools[device];
    cs_device_record *record = &memory->records[device];
    if (pool->live[category] > record->category_peak[category])
        record->category_peak[category] = pool->live[category];
    if (pool->total <= record->peak)
        return;
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

cs_status cs_memory_init(cs_memory *memory, const cs_graph *graph, const cs_platform *platform,
                         bool record, cs_error *error)
{
    size_t n = graph->n_devices;
    *memory = (cs_memory){.n_devices = graph->n_devices, .record = record, .overflowed = CS_NONE};
    memory->pools = calloc(n + 1, sizeof(*memory->pools));
    memory->records = calloc(n + 1, sizeof(*memory->records));
    size_t lasts = n * CS_N_CATEGORIES + 1;
    memory->last_sample = malloc(lasts * sizeof(*memory->last_sample));
    if (!memory->pools || !memory->records || !memory->last_sample)
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
    *memory = (cs_memory){0};
}

cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n, uint32_t task,
                          cs_time now)
{
    for (uint32_t i = 0; i < n; i++) {
        cs_device_memory *pool = &memory->pools[effects[i].device];
        if (__builtin_add_overflow(pool->total, effects[i].bytes, &pool->total)) {
            memory->overflowed = effects[i].device;
            return CS_OVERFLOW;
        }
        pool->live[effects[i].category] += effects[i].bytes;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t device = effects[i].device, category = effects[i].category;
        if (effects[i].bytes > 0)
            note_peaks(memory, device, category, task, now);
        if (memory->record && !note_sample(memory, device, category, now))
            return CS_NO_MEMORY;
    }
    return CS_OK;
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
