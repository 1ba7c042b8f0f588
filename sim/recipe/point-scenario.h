/* The scenario of a measured point, by rules that hold for all points: nothing here knows a single
 * one; the few figures that are fitted are fitted to all (tests/fit-figures.py).
 *
 * A rule that fills what a point does not state, or that stands for what the simulator does not
 * have, says so in `assumed`. A point that needs what the simulator does not have is not expressed;
 * `missing` names it, the most important first. The rules: docs/reference/points.md.
 */
#ifndef CS_VALIDATE_POINT_SCENARIO_H
#define CS_VALIDATE_POINT_SCENARIO_H

#include "sim/recipe/points.h"

enum { CS_SCENARIO_NOTES = 16 };

typedef struct cs_point_scenario {
    cs_arena arena;
    cJSON *document; /* the scenario; NULL where something is missing */
    uint32_t n_missing, n_assumed;
    const char *missing[CS_SCENARIO_NOTES]; /* "tensor parallelism" */
    const char *assumed[CS_SCENARIO_NOTES]; /* "no dropout, which the point does not state" */
} cs_point_scenario;

/* Zeroed ones can be finished. */
void cs_point_scenario_finish(cs_point_scenario *made);

/* CS_OK also where something is missing. */
CS_MUST_CHECK cs_status cs_point_scenario_make(const cs_point *point, cs_point_scenario *made,
                                               cs_error *error);

#endif
