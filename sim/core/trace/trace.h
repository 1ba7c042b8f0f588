/* What happened in a run: when each task ran, which weights it read, how memory and links were
 * used.
 *
 * Columns in the order of the graph's tasks; the graph says what the tasks are. All times in
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
    int64_t peak; /* largest sum over categories */
    cs_time peak_time;
    int64_t at_peak[CS_N_CATEGORIES];       /* what it was made of, at its first occurrence */
    int64_t category_peak[CS_N_CATEGORIES]; /* of each by itself */
    bool out_of_memory; /* peak > capacity; then, for the first allocation too many: */
    cs_time oom_time;
    uint32_t oom_task; /* CS_NONE: what is resident from the start */
    int64_t at_oom[CS_N_CATEGORIES];
    cs_time slowed; /* by how much communication beside them made computations that ended longer */
    cs_time waited; /* by how much late hosts made computations longer */
} cs_device_record;

/* Versions of one slot. */
typedef struct cs_slot_record {
    uint32_t made;      /* updates that ended, and messages that brought versions */
    uint32_t peak_live; /* most versions alive at once, the current one included */
} cs_slot_record;

typedef struct cs_link_record {
    const char *name; /* the platform's */
    double bandwidth;
    int64_t bytes; /* carried; bytes / (bandwidth * makespan) is the share of its capacity that was
                    * used, above 1 where the sharing `none` let transfers ignore each other */
} cs_link_record;

/* The rate of a transfer's bytes from `time` on, until its next sample; 0 when they are through. In
 * order of time; of several samples of a transfer at one instant the last one holds. */
typedef struct cs_rate_sample {
    cs_time time;
    double rate; /* bytes/s */
    uint32_t task;
} cs_rate_sample;

typedef struct cs_trace {
    uint32_t n_tasks, n_devices, n_links, n_slots, n_rates;
    cs_time makespan;   /* end of the last task */
    cs_span *spans;     /* per task */
    uint32_t *versions; /* per task with a slot: the version that it read; an update: that it made,
                         * CS_NONE if it did not end; NULL when not recorded */
    cs_memory_samples *samples; /* by time; NULL when not recorded. Hashing reads them */
    cs_rate_sample *rates;      /* of transfers that competed for links; NULL when not recorded */
    cs_device_record *devices;
    cs_link_record *links;
    cs_slot_record *slots;
    bool doubtful; /* peaks of a graph with series may be others (sim/core/engine/memory.h) */
    bool stopped;  /* at the first out-of-memory, as asked: some tasks did not run to their end */
} cs_trace;

/* Zeroed traces can be finished. */
void cs_trace_finish(cs_trace *trace);

/* Of spans, versions, samples, peaks and links: two runs with the same hash gave the same result.
 * Rates, and what was slowed, follow from the spans. */
uint64_t cs_trace_hash(const cs_trace *trace);

#endif
