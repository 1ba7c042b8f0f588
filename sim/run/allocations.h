/* Replays a run's allocations on a model of PyTorch's caching allocator: the tensors of a finished
 * run are allocated and freed in order of time, on each device separately.
 *
 * Tensors. Everything resident (weights, gradients, optimizer states, workspaces) is a tensor per
 * stage and category. Passes over layers that were built from operators replay tapes
 * (sim/model/tape.h). The tape of a layer is replayed at once, with the task that contains the
 * beginning of the layer, according to its share of the pass's time; the output of a pass is freed
 * when the pass has ended. Everything else is a tensor per effect on memory
 * (sim/core/graph/graph.h): messages, gathered weights, and passes of other models, of schedules
 * that split the backward in two, and of stages that recompute their whole forward. Of these
 * tensors, the oldest of a size is freed first. Gathered weights are on a separate stream.
 *
 * The run is replayed twice, because training repeats it. Between the two rounds the optimizer's
 * states are allocated (resident-tensors.h), so the free memory of the second round has a different
 * layout.
 *
 * Among devices at the same pipeline rank with the same part of the optimizer's states, one is
 * replayed for all.
 *
 * Peaks correspond to torch.cuda.max_memory_allocated and max_memory_reserved. They differ from the
 * peak in the trace (cs_device_record), which counts the saved activations of a pass from its start
 * to its end, plus the largest workspace of its layers. */
#ifndef CS_RUN_ALLOCATIONS_H
#define CS_RUN_ALLOCATIONS_H

#include "sim/core/trace/trace.h"
#include "sim/model/allocator/memory-snapshot.h"
#include "sim/run/scenario/scenario.h"

/* The first failed allocation, and the state of the allocator at that time. */
typedef struct cs_failed_allocation {
    bool failed;
    int64_t bytes;               /* bytes requested */
    int64_t allocated, reserved; /* bytes allocated and reserved at that time */
    int64_t free;    /* bytes in free blocks that the allocator could have split for it */
    int64_t largest; /* size of the largest of these blocks */
    cs_time time;
    uint32_t task; /* CS_NONE: a resident tensor */
} cs_failed_allocation;

typedef struct cs_device_allocations {
    cs_caching_stats stats;
    cs_failed_allocation failure;
    cs_time peak_time;  /* first time when reserved memory is at its peak; like the failure's
                         * time, it is in the second round if >= makespan */
    uint64_t peak_at;   /* number of allocations before the peak */
    uint32_t played_as; /* device that was replayed on behalf of this one, or itself */
} cs_device_allocations;

typedef struct cs_allocations {
    uint32_t n_devices;             /* 0: the scenario has no allocator */
    cs_device_allocations *devices; /* includes devices that are represented by others */
} cs_allocations;

/* Accepts a zeroed value. */
void cs_allocations_finish(cs_allocations *allocations);

/* Replays all devices on the scenario's allocator; does nothing if it has none. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_allocations_make(const cs_scenario *scenario, const cs_graph *graph,
                                            const cs_trace *trace, cs_allocations *allocations,
                                            cs_error *error);

/* Writes a snapshot of a device's allocator (memory-snapshot.h), taken right after reserved memory
 * reaches its peak for the first time, with the history up to then. CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_allocations_snapshot(const cs_scenario *scenario, const cs_graph *graph,
                                                const cs_trace *trace,
                                                const cs_allocations *allocations, uint32_t device,
                                                const char *path, cs_error *error);

#endif
