/* Runs of scenarios whose task graph does not fit into memory: tasks are generated, run and dropped
 * (sim/core/engine/task-window.h), so that a run takes the 16 bytes per task of its spans instead of 70.
 *
 * What is known then: times of the run and of mini-batches, what devices compute and what memory
 * they need, what links carry, and the hash of a run whose memory and versions are not recorded.
 * What follows from single tasks is not: where devices wait, what communication is hidden, the
 * critical path, staleness, by which task memory was exceeded. Figures that are known are equal to
 * those of cs_simulate.
 *
 * It applies to synchronous schedules on unshared links, without collectives, noise, slowdown,
 * allocator and blocking messages. */
#ifndef CS_RUN_LOW_MEMORY_H
#define CS_RUN_LOW_MEMORY_H

#include "sim/run/simulate.h"

/* As cs_simulate, with `without_tasks`; of the options every_event, with which the whole graph is
 * made and run by events all the same, and progress. CS_USAGE, with the reason, where it does not
 * apply. */
CS_MUST_CHECK cs_status cs_simulate_low_memory(const cs_scenario *scenario,
                                               const cs_simulation_options *options,
                                               cs_simulation *simulation, cs_error *error);

#endif
