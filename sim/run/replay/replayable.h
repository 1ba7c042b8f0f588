/* What of a scenario can be done for real; calib/bench/README.md has the list for users. */
#ifndef CS_REPLAY_REPLAYABLE_H
#define CS_REPLAY_REPLAYABLE_H

#include "sim/run/replay/replay.h"

/* Of what the scenario says: the model, its numbers, devices, replicas. CS_INVALID with path and
 * pointer, as all of these. */
CS_MUST_CHECK cs_status cs_replayable_scenario(const cs_scenario *scenario, const char *path,
                                               cs_error *error);

/* Of the kinds of tasks in the replay's graph. */
CS_MUST_CHECK cs_status cs_replayable_kinds(const cs_replay *replay, const char *path,
                                            cs_error *error);

/* Of the tasks themselves; the replay has its readers and covers. A device computes a stage for a
 * micro-batch forward once and backward once; what it needs for that it has made itself, or a
 * message of just these bytes brings it; an all-reduce is of all gradients of one stage or
 * several. */
CS_MUST_CHECK cs_status cs_replayable_tasks(const cs_replay *replay, const char *path,
                                            cs_error *error);

#endif
