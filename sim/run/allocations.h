/* What PyTorch's caching allocator makes of a run: the tensors of a finished run come and go in its
 * order of time, on each device by itself.
 *
 * Tensors. What is there from the start (weights, gradients, optimizer states, workspaces) is a
 * tensor for each stage and category. Passes over layers that were made from operators play their
 * tapes (sim/model/tape.h): that of a layer at once, with the task in which the layer begins by
 * its share of the pass's time; what a pass hands on is freed when it has ended. All else,
 * messages and gathered weights above all, and the passes of other models, of schedules that
 * compute the two halves of a backward apart, and of stages that compute their forward again as a
 * whole, is a tensor for each effect on memory (sim/core/graph/graph.h), and those that are freed are
 * the oldest of their size. Gathered weights are on a stream of their own.
 *
 * The run is played twice, as training repeats it, and between the two the optimizer's states are
 * made (resident-tensors.h): what is free then is laid out otherwise than what the device began
 * with.
 *
 * Of devices at the same rank of a pipeline that have the same part of the optimizer's states one
 * is played for all.
 *
 * Peaks are those of torch.cuda.max_memory_allocated and max_memory_reserved. They differ from the
 * peak of the trace (cs_device_record), which counts what a pass keeps from its start on, frees it
 * at its end, and has the largest workspace of its layers besides.
 */
#ifndef CS_RUN_ALLOCATIONS_H
#define CS_RUN_ALLOCATIONS_H

#include "sim/core/trace/trace.h"
#include "sim/model/allocator/memory-snapshot.h"
#include "sim/run/scenario/scenario.h"

/* The allocation that failed first, and what stood in its way. */
typedef struct cs_failed_allocation {
    bool failed;
    int64_t bytes;               /* that were asked for */
    int64_t allocated, reserved; /* then */
    int64_t free;    /* of what was reserved, in blocks that it could have had a part of */
    int64_t largest; /* of these blocks */
    cs_time time;
    uint32_t task; /* CS_NONE: what is there from the start */
} cs_failed_allocation;

typedef struct cs_device_allocations {
    cs_caching_stats stats;
    cs_failed_allocation failure;
    cs_time peak_time;  /* when the most memory was reserved for the first time; times from the
                         * makespan on, here and in the failure, are of the second round */
    uint64_t peak_at;   /* allocations that had been made then */
    uint32_t played_as; /* the device that was played for it, or itself */
} cs_device_allocations;

typedef struct cs_allocations {
    uint32_t n_devices;             /* 0: no allocator was asked for */
    cs_device_allocations *devices; /* also of those that others stand for */
} cs_allocations;

/* Zeroed ones can be finished. */
void cs_allocations_finish(cs_allocations *allocations);

/* Of each device, with the scenario's allocator; nothing, where it has none. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_allocations_make(const cs_scenario *scenario, const cs_graph *graph,
                                            const cs_trace *trace, cs_allocations *allocations,
                                            cs_error *error);

/* Writes how the allocator of one device is right after the allocation with which it has the most
 * reserved memory for the first time (memory-snapshot.h), with all that it did until then. CS_IO,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_allocations_snapshot(const cs_scenario *scenario, const cs_graph *graph,
                                                const cs_trace *trace,
                                                const cs_allocations *allocations, uint32_t device,
                                                const char *path, cs_error *error);

#endif
