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

/* A change of the device's memory within a series. */
typedef struct cs_memory_change {
    cs_time after;            /* the start of the series */
    int64_t bytes, allocated; /* total; and the allocations among them */
} cs_memory_change;

typedef struct cs_memory_series {
    uint32_t first, n;  /* in cs_memory.changes */
    int64_t bytes, top; /* sum of its changes; largest sum after an allocation, INT64_MIN: none */
} cs_memory_series;

/* The series that runs on a device. */
typedef struct cs_memory_running {
    uint32_t at, end;              /* changes not applied yet */
    const cs_memory_series *whole; /* the series, until one of its changes is applied; else NULL */
    cs_time start;
    cs_time instant;  /* latest instant that had a change and an effect of another task */
    int64_t most;     /* upper bound of the bytes at that instant */
    int64_t doubtful; /* largest such bound of all instants */
} cs_memory_running;

typedef struct cs_memory {
    cs_device_memory *pools;   /* per device */
    cs_device_record *records; /* per device; moved into the trace */
    uint32_t n_devices;
    cs_memory_samples *samples; /* of live bytes; moved into the trace; NULL: not recorded */
    cs_time instant;            /* time of the latest changes */
    uint32_t *changed;          /* device * CS_N_CATEGORIES + category, changed at that time */
    uint32_t n_changed, cap_changed;
    bool over_capacity;         /* an allocation exceeded a capacity */
    uint32_t overflowed;        /* a device whose bytes did not fit, or CS_NONE */
    cs_memory_running *running; /* per device; NULL: the graph has no series */
    cs_memory_series *series;
    cs_memory_change *changes;
    uint32_t n_changes, cap_changes;
} cs_memory;

/* Pools hold the graph's resident bytes. */
CS_MUST_CHECK cs_status cs_memory_init(cs_memory *memory, const cs_graph *graph,
                                       const cs_platform *platform, bool record, cs_error *error);
void cs_memory_finish(cs_memory *memory);

/* Applies n effects of a task together. CS_NO_MEMORY when memory for the samples runs out;
 * CS_OVERFLOW when a device's bytes do not fit. */
CS_MUST_CHECK cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n,
                                        uint32_t task, cs_time now);

/* Adds the next change of a series. False when memory runs out. */
CS_MUST_CHECK bool cs_memory_add_change(cs_memory *memory, uint32_t series,
                                        const cs_memory_change *change);

/* A series begins on a device, or is about to end. Its changes are applied at its end, or before
 * another task changes the device's memory. */
void cs_memory_begin_series(cs_memory *memory, uint32_t series, uint32_t device, cs_time now);
void cs_memory_end_series(cs_memory *memory, uint32_t device);

/* Whether the peak of a device may differ from the peak without series: the order is unknown if a
 * change within a series and an effect of another task have the same time. */
bool cs_memory_is_doubtful(const cs_memory *memory);

/* Records the samples of the latest instant, which has no more changes. False when memory runs out.
 */
CS_MUST_CHECK bool cs_memory_end_instant(cs_memory *memory);

#endif
