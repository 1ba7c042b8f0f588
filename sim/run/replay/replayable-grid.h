/* Whether a mesh ("parallel") can be executed for real. */
#ifndef CS_REPLAY_REPLAYABLE_GRID_H
#define CS_REPLAY_REPLAYABLE_GRID_H

#include "sim/run/scenario/scenario.h"

/* Returns CS_INVALID with path and pointer if not. */
CS_MUST_CHECK cs_status cs_replayable_grid(const cs_scenario *scenario, const char *path,
                                           cs_error *error);

#endif
