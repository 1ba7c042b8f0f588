/* Runs scenarios whose task graph does not fit into memory. Tasks are generated, run and dropped
 * (sim/core/engine/task-window.h), so a run takes 16 bytes per task, for its span, instead of 70.
 *
 * Such a run yields the times of the run and of its mini-batches, computing time and memory of
 * devices, traffic of links, and the hash of a run without recorded memory and versions. Everything
 * that requires individual tasks is missing: waiting times, overlap of communication, critical
 * path, staleness, the task that ran out of memory. All other metrics equal the results of
 * cs_simulate.
 *
 * Requires a synchronous schedule on unshared links, without collectives, noise, slowdown,
 * allocator and blocking messages. */
#ifndef CS_RUN_LOW_MEMORY_H
#define CS_RUN_LOW_MEMORY_H

#include "sim/run/simulate.h"

/* Like cs_simulate, with `without_tasks`. Uses the options every_event (makes the whole graph and
 * simulates every event) and progress. CS_USAGE, with the reason, if the scenario is not
 * supported. */
CS_MUST_CHECK cs_status cs_simulate_low_memory(const cs_scenario *scenario,
                                               const cs_simulation_options *options,
                                               cs_simulation *simulation, cs_error *error);

#endif
