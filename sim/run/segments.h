/* What PyTorch's caching allocator did in a run (allocations.h), for the results file.
 *
 * /allocator  one row per device: its peaks, and the first allocation that failed
 * /reserved   what was reserved and allocated over time
 * /segments   what was taken from the device, and when it was given back
 * /blocks     what the segments hold when the most is reserved for the first time, and when an
 *             allocation fails for the first time
 *
 * The last three are of the devices that were played, of at most CS_SEGMENTS_DEVICES of them: those
 * that reserve most, of equal ones the first. The run is played twice: times from the makespan on
 * are of the second round.
 */
#ifndef CS_RUN_SEGMENTS_H
#define CS_RUN_SEGMENTS_H

#include "sim/core/trace/h5.h"
#include "sim/run/allocations.h"

enum { CS_SEGMENTS_DEVICES = 16 };

/* Writes the tables, where the scenario has an allocator; plays the devices once more to fill them.
 * CS_NO_MEMORY, CS_OVERFLOW, CS_IO. */
CS_MUST_CHECK cs_status cs_segments_store(cs_h5_file *file, const cs_scenario *scenario,
                                          const cs_graph *graph, const cs_trace *trace,
                                          const cs_allocations *allocations, cs_error *error);

#endif
