/* Long runs of which a part is simulated: once a run has become periodic, each further period is as
 * the one before it, and its mini-batches can be skipped.
 *
 * The proof. Three runs of the scenario are simulated, of n, n + q and n + 2 q mini-batches, q
 * being a multiple of the period p and of 4. In each the state of the event engine
 * (sim/engine/watch.h) when mini-batch b begins is, to the bit, that when b + p and when b + 2 p
 * begin, but for a shift of the time, of ids, of items and of versions. The tasks that anything is
 * known of until then are the same, shifted, with all their edges; and the graph of the longer run
 * is that of the shorter one with q mini-batches put in, all else being equal. So the engine does
 * in each period that is put in what it did in the one before, and the longer run is the shorter
 * one with whole periods put in. That the generator goes on in the same way for more mini-batches
 * is taken for granted, and tested for all schedules (tests/test-steady-run.c).
 *
 * What is skipped. All numbers of which figures are made are integers: sums of times, bytes and
 * counts, which grow by the same amount with each q mini-batches (the bounds of the middle half of
 * the run, n / 4 and n - 1 - n / 4, move by whole periods), and peaks, which do not grow. Each is
 * taken on from the three runs where they grow equally; where one does not, the whole run is
 * simulated. So it is where the critical path, which is walked back from the end and may take
 * several periods until it repeats, does not do so within q mini-batches; and where several
 * computations of a device take no time at one instant and ids do not order them. The figures then
 * follow by the same formulas as always, and are equal to the bit.
 *
 * Nothing is skipped where anything is random, where communication slows computations down, with an
 * allocator, and where rates are recorded or a run may end early. */
#ifndef CS_RUN_STEADY_RUN_H
#define CS_RUN_STEADY_RUN_H

#include "sim/run/simulate.h"

/* As cs_simulate; simulation->skipped says what was skipped, or why nothing was. With anything
 * skipped its hash is 0. */
CS_MUST_CHECK cs_status cs_simulate_steadily(const cs_scenario *scenario,
                                             const cs_simulation_options *options,
                                             cs_simulation *simulation, cs_error *error);

#endif
