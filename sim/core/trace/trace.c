#include "sim/core/trace/trace.h"

#include "sim/base/hash.h"

#include <stdlib.h>

void cs_trace_finish(cs_trace *trace)
{
    free(trace->spans);
    free(trace->versions);
    cs_samples_destroy(trace->samples);
    free(trace->rates);
    free(trace->devices);
    free(trace->links);
    free(trace->slots);
    *trace = (cs_trace){0};
}

static uint64_t hash_number(int64_t number, uint64_t hash)
{
    return cs_hash_bytes(&number, sizeof(number), hash);
}

/* Categories from this one on are hashed only if they occur, so runs without them keep the hashes
 * from before these categories existed. */
enum { FIRST_OPTIONAL = CS_MEMORY_GATHERED };

static uint64_t hash_categories(const int64_t *bytes, uint64_t hash)
{
    hash = cs_hash_bytes(bytes, FIRST_OPTIONAL * sizeof(*bytes), hash);
    for (uint32_t c = FIRST_OPTIONAL; c < CS_N_CATEGORIES; c++) {
        if (bytes[c] != 0)
            hash = hash_number(bytes[c], hash_number(c, hash));
    }
    return hash;
}

/* Hashes each member: the records have padding and pointers. */
static uint64_t hash_device(const cs_device_record *record, uint64_t hash)
{
    hash = hash_number(record->peak, hash);
    hash = hash_number(record->peak_time, hash);
    hash = hash_categories(record->at_peak, hash);
    hash = hash_categories(record->category_peak, hash);
    hash = hash_number(record->out_of_memory, hash);
    if (!record->out_of_memory)
        return hash;
    hash = hash_number(record->oom_time, hash);
    hash = hash_number(record->oom_task, hash);
    return hash_categories(record->at_oom, hash);
}

/* Hashes samples as they lie in memory, one after the other. */
static uint64_t hash_samples(cs_memory_samples *samples, uint64_t hash)
{
    enum { BLOCK = 256 };
    cs_memory_sample block[BLOCK];
    cs_hash_state state;
    cs_hash_begin(&state, hash);
    cs_samples_rewind(samples);
    for (size_t n; (n = cs_samples_read(samples, BLOCK, block)) > 0;)
        cs_hash_add(&state, block, n * sizeof(*block));
    return cs_hash_end(&state);
}

uint64_t cs_trace_hash(const cs_trace *trace)
{
    uint64_t hash = hash_number(trace->makespan, 0);
    hash = cs_hash_bytes(trace->spans, trace->n_tasks * sizeof(*trace->spans), hash);
    if (trace->versions)
        hash = cs_hash_bytes(trace->versions, trace->n_tasks * sizeof(*trace->versions), hash);
    hash = hash_samples(trace->samples, hash);
    for (uint32_t i = 0; i < trace->n_devices; i++)
        hash = hash_device(&trace->devices[i], hash);
    for (uint32_t i = 0; i < trace->n_links; i++)
        hash = hash_number(trace->links[i].bytes, hash);
    for (uint32_t i = 0; i < trace->n_slots; i++)
        hash = hash_number(trace->slots[i].peak_live, hash);
    return hash;
}
