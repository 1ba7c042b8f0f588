/* Records PyTorch's caching allocator during a run (allocations.h), for the results file.
 *
 * /allocator  one row per device: peaks, and the first failed allocation
 * /reserved   reserved and allocated memory over time
 * /segments   segments taken from the device, with their lifetimes
 * /blocks     blocks in the segments at the first peak of reserved memory, and at the first failure
 *
 * The last three contain replayed devices, at most CS_SEGMENTS_DEVICES: those with the highest peak
 * of reserved memory, the first of equal ones. Runs are replayed twice: times from the makespan on
 * belong to the second round. */
#ifndef CS_RUN_SEGMENTS_H
#define CS_RUN_SEGMENTS_H

#include "sim/core/trace/h5.h"
#include "sim/run/allocations.h"

enum { CS_SEGMENTS_DEVICES = 16 };

/* Writes the tables if the scenario has an allocator. Replays the devices once more to fill them.
 * CS_NO_MEMORY, CS_OVERFLOW, CS_IO. */
CS_MUST_CHECK cs_status cs_segments_store(cs_h5_file *file, const cs_scenario *scenario,
                                          const cs_graph *graph, const cs_trace *trace,
                                          const cs_allocations *allocations, cs_error *error);

#endif
