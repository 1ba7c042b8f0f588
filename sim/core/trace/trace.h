/* Trace of a run: when each task ran, which weights it read, how memory and links were used.
 *
 * Columns are in the order of the graph's tasks; the graph describes the tasks. All times are in
 * picoseconds, all sizes in bytes.
 */
#ifndef CS_TRACE_TRACE_H
#define CS_TRACE_TRACE_H

#include "sim/core/graph/graph.h"
#include "sim/core/trace/samples.h"

typedef struct cs_span {
    cs_time start, end;
} cs_span;

typedef struct cs_device_record {
    int64_t capacity;
    int64_t peak; /* largest sum over all categories */
    cs_time peak_time;
    /* bytes by category at the first occurrence of the peak */
    int64_t at_peak[CS_N_CATEGORIES];
    int64_t category_peak[CS_N_CATEGORIES]; /* peak of each category alone */
    /* peak > capacity; the members below describe the first allocation that failed */
    bool out_of_memory;
    cs_time oom_time;
    uint32_t oom_task; /* CS_NONE: memory that is resident from the start */
    int64_t at_oom[CS_N_CATEGORIES];
    /* total time by which overlapping communication prolonged computations that ended */
    cs_time slowed;
    cs_time waited; /* total time by which a late host prolonged computations */
} cs_device_record;

/* Versions of one slot. */
typedef struct cs_slot_record {
    uint32_t made;      /* updates that ended, plus messages that brought versions */
    uint32_t peak_live; /* most versions alive at once, including the current one */
} cs_slot_record;

typedef struct cs_link_record {
    const char *name; /* owned by the platform */
    double bandwidth;
    /* bytes carried; bytes / (bandwidth * makespan) is the utilisation, which exceeds 1 if the
     * sharing `none` lets transfers ignore each other */
    int64_t bytes;
} cs_link_record;

/* Rate of a transfer's bytes from `time` until its next sample; 0 at the end. Ordered by time; the
 * last of several samples of a transfer at one instant holds. */
typedef struct cs_rate_sample {
    cs_time time;
    double rate; /* bytes/s */
    uint32_t task;
} cs_rate_sample;

typedef struct cs_trace {
    uint32_t n_tasks, n_devices, n_links, n_slots, n_rates;
    cs_time makespan; /* end of the last task */
    cs_span *spans;   /* per task */
    /* per task with a slot: version that it read; for an update: version that it made, CS_NONE if
     * it did not end; NULL: not recorded */
    uint32_t *versions;
    /* ordered by time; NULL: not recorded. Hashing moves their reader */
    cs_memory_samples *samples;
    cs_rate_sample *rates; /* transfers that competed for links; NULL: not recorded */
    cs_device_record *devices;
    cs_link_record *links;
    cs_slot_record *slots;
    /* whether peaks may be wrong because the graph has series (sim/core/engine/memory.h) */
    bool doubtful;
    /* whether the run stopped at the first out-of-memory, as requested, so some tasks did not
     * finish */
    bool stopped;
} cs_trace;

/* Allowed on a zeroed struct. */
void cs_trace_finish(cs_trace *trace);

/* Hash of spans, versions, samples, peaks and links: runs with equal hashes have equal results.
 * Rates, and `slowed`, follow from the spans. */
uint64_t cs_trace_hash(const cs_trace *trace);

#endif
