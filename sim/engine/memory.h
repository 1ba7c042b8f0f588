/* Memory pools of the devices: live bytes by category, peaks, and the first allocation beyond the
 * capacity. */
#ifndef CS_ENGINE_MEMORY_H
#define CS_ENGINE_MEMORY_H

#include "sim/trace/trace.h"
#include "topologies/platform.h"

typedef struct cs_device_memory {
    int64_t total;
    int64_t live[CS_N_CATEGORIES];
} cs_device_memory;

typedef struct cs_memory {
    cs_device_memory *pools;   /* per device */
    cs_device_record *records; /* per device; the trace's in the end */
    cs_memory_sample *samples; /* by time; one at most per instant, device and category */
    uint32_t *last_sample;     /* per device and category: its latest sample, or CS_NONE */
    uint32_t n_devices, n_samples, cap_samples;
    bool record;
    bool over_capacity;  /* some allocation was beyond a capacity */
    uint32_t overflowed; /* a device whose bytes did not fit, or CS_NONE */
} cs_memory;

/* Pools hold the graph's resident bytes. */
CS_MUST_CHECK cs_status cs_memory_init(cs_memory *memory, const cs_graph *graph,
                                       const cs_platform *platform, bool record, cs_error *error);
void cs_memory_finish(cs_memory *memory);

/* Applies n effects together; `task` is whose. CS_NO_MEMORY when memory for the samples runs out;
 * CS_OVERFLOW when a device's bytes do not fit. */
CS_MUST_CHECK cs_status cs_memory_apply(cs_memory *memory, const cs_effect *effects, uint32_t n,
                                        uint32_t task, cs_time now);

/* Orders the samples of each instant and drops those that repeat the value before: the samples are
 * then as cs_memory_sample says. False when memory runs out. */
CS_MUST_CHECK bool cs_memory_settle_samples(cs_memory *memory);

#endif
