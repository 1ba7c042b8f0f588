/* Memory pools of the devices: live bytes by category, peaks, and the first allocation beyond the
 * capacity. */
#ifndef CS_ENGINE_MEMORY_H
#define CS_ENGINE_MEMORY_H

#include "sim/core/trace/trace.h"
#include "topologies/platform.h"

typedef struct cs_device_memory {
    int64_t total;
    int64_t live[CS_N_CATEGORIES];
} cs_device_memory;

/* A change of the device's memory during a series. */
typedef struct cs_memory_change {
    cs_time after;            /* time after the start of the series */
    int64_t bytes, allocated; /* bytes added in total; bytes allocated among them */
} cs_memory_change;

typedef struct cs_memory_series {
    uint32_t first, n; /* range in cs_memory.changes */
    /* sum of all changes; largest sum after an allocation (INT64_MIN: no allocation) */
    int64_t bytes, top;
} cs_memory_series;

/* The series that is running on a device. */
typedef struct cs_memory_running {
    uint32_t at, end; /* range of changes that are not yet applied */
    /* the series, until its first change is applied; NULL after that */
    const cs_memory_series *whole;
    cs_time start;
    cs_time instant;  /* latest instant with both a change and an effect of another task */
    int64_t most;     /* upper bound of the bytes at that instant */
    int64_t doubtful; /* largest such bound over all instants */
} cs_memory_running;

typedef struct cs_memory {
    cs_device_memory *pools;   /* per device: live bytes */
    cs_device_record *records; /* per device: its record; moved into the trace */
    uint32_t n_devices;
    /* samples of live bytes; moved into the trace; NULL: not recorded */
    cs_memory_samples *samples;
    cs_time instant; /* time of the latest changes */
    /* pools that changed at that time: device * CS_N_CATEGORIES + category */
    uint32_t *changed;
    uint32_t n_changed, cap_changed;
    bool over_capacity;         /* whether an allocation exceeded a capacity */
    uint32_t overflowed;        /* device whose bytes exceeded 64 bits; CS_NONE: none */
    cs_memory_running *running; /* per device: its running series; NULL: the graph has no series */
    cs_memory_series *series;
    cs_memory_change *changes;
    uint32_t n_changes, cap_changes;
} cs_memory;

/* Sets up the pools with the graph's resident bytes. */
CS_MUST_CHECK cs_status cs_memory_init(cs_memory *memory, const cs_graph *graph,
                                       const cs_platform *platform, bool record, cs_error *error);
void cs_memory_finish(cs_memory *memory);

/* Applies n effects of a task together. CS_NO_MEMORY if memory for the samples runs out;
 * CS_OVERFLOW if a device's bytes exceed 64 bits. */
CS_MUST_CHECK cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n,
                                        uint32_t task, cs_time now);

/* Adds the next change of a series. Returns false if memory runs out. */
CS_MUST_CHECK bool cs_memory_add_change(cs_memory *memory, uint32_t series,
                                        const cs_memory_change *change);

/* Begin a series on a device, and prepare for its end. The changes of a series are applied at its
 * end, or before another task changes the device's memory. */
void cs_memory_begin_series(cs_memory *memory, uint32_t series, uint32_t device, cs_time now);
void cs_memory_end_series(cs_memory *memory, uint32_t device);

/* Whether a device's peak may differ from its peak without series. If a change of a series and an
 * effect of another task happen at the same time, their order is unknown. */
bool cs_memory_is_doubtful(const cs_memory *memory);

/* Records the samples of the latest instant, after its last change. Returns false if memory runs
 * out. */
CS_MUST_CHECK bool cs_memory_end_instant(cs_memory *memory);

#endif
