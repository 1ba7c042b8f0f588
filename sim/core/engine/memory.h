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

/* What happens to its device's memory within a series, at a time after its start. */
typedef struct cs_memory_change {
    cs_time after;
    int64_t bytes, allocated; /* in all; and of that what is allocated */
} cs_memory_change;

typedef struct cs_memory_series {
    uint32_t first, n;  /* in cs_memory.changes */
    int64_t bytes, top; /* of all its changes; and the most after an allocation, INT64_MIN: none */
} cs_memory_series;

/* The series that a device is busy with. */
typedef struct cs_memory_running {
    uint32_t at, end;              /* changes that are still to come */
    const cs_memory_series *whole; /* none has been applied; or NULL */
    cs_time start;
    cs_time instant;  /* the latest one at which a change met another task's; */
    int64_t most;     /* no more bytes were there then, */
    int64_t doubtful; /* or at any such instant */
} cs_memory_running;

typedef struct cs_memory {
    cs_device_memory *pools;   /* per device */
    cs_device_record *records; /* per device; the trace's in the end */
    uint32_t n_devices;
    /* What becomes of live bytes, where that is recorded: */
    cs_memory_samples *samples; /* the trace's in the end; NULL: it is not */
    cs_time instant;            /* at which the latest changes were, */
    uint32_t *changed;          /* those of these devices and categories */
    uint32_t n_changed, cap_changed;
    bool over_capacity;  /* some allocation was beyond a capacity */
    uint32_t overflowed; /* a device whose bytes did not fit, or CS_NONE */
    /* Of a graph with series: */
    cs_memory_running *running; /* per device; NULL: there are none */
    cs_memory_series *series;
    cs_memory_change *changes;
    uint32_t n_changes, cap_changes;
} cs_memory;

/* Pools hold the graph's resident bytes. */
CS_MUST_CHECK cs_status cs_memory_init(cs_memory *memory, const cs_graph *graph,
                                       const cs_platform *platform, bool record, cs_error *error);
void cs_memory_finish(cs_memory *memory);

/* Applies n effects together; `task` is whose. CS_NO_MEMORY when memory for the samples runs out;
 * CS_OVERFLOW when a device's bytes do not fit. */
CS_MUST_CHECK cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n,
                                        uint32_t task, cs_time now);

/* Adds the next change of a series. False when memory runs out. */
CS_MUST_CHECK bool cs_memory_add_change(cs_memory *memory, uint32_t series,
                                        const cs_memory_change *change);

/* A series begins on a device, or is about to end. Its changes are applied when something else
 * happens to the device's memory later, or at its end. */
void cs_memory_begin_series(cs_memory *memory, uint32_t series, uint32_t device, cs_time now);
void cs_memory_end_series(cs_memory *memory, uint32_t device);

/* Whether the peak of a device may be another than that of the parts one by one: where a change
 * within a series met what another task did at the same instant, their order is not known. */
bool cs_memory_is_doubtful(const cs_memory *memory);

/* No more changes come at the latest instant: it gets its samples. False when memory runs out. */
CS_MUST_CHECK bool cs_memory_end_instant(cs_memory *memory);

#endif
