/* Whether a scenario can be executed for real; calib/bench/README.md has the list for users. All
 * functions return CS_INVALID with path and pointer if not. */
#ifndef CS_REPLAY_REPLAYABLE_H
#define CS_REPLAY_REPLAYABLE_H

#include "sim/run/replay/replay.h"

/* Checks the scenario: the model, its numbers, devices, replicas. */
CS_MUST_CHECK cs_status cs_replayable_scenario(const cs_scenario *scenario, const char *path,
                                               cs_error *error);

/* Checks the kinds of tasks in the replay's graph. */
CS_MUST_CHECK cs_status cs_replayable_kinds(const cs_replay *replay, const char *path,
                                            cs_error *error);

/* Checks the tasks; the replay's readers and covers are known. A device computes a stage for a
 * micro-batch forward once and backward once; it has made the inputs itself, or a message of
 * exactly their size brings them; an all-reduce sums all gradients of one or several stages. */
CS_MUST_CHECK cs_status cs_replayable_tasks(const cs_replay *replay, const char *path,
                                            cs_error *error);

#endif
