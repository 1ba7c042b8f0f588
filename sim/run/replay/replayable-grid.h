/* What of a mesh ("parallel") can be done for real. */
#ifndef CS_REPLAY_REPLAYABLE_GRID_H
#define CS_REPLAY_REPLAYABLE_GRID_H

#include "sim/run/scenario/scenario.h"

/* CS_INVALID with path and pointer. */
CS_MUST_CHECK cs_status cs_replayable_grid(const cs_scenario *scenario, const char *path,
                                           cs_error *error);

#endif
