/* Planners: they choose which devices hold which layers, and a periodic pattern.
 *
 * To add one: a file with a `const cs_planner`, a line in planners.c, a test. A planner turns a
 * chain into a plan and a pattern for it; its caller checks the pattern with cs_pattern_check.
 */
#ifndef CS_SCHEDULES_PLANNER_H
#define CS_SCHEDULES_PLANNER_H

#include "schedules/plan/pattern.h"
#include "sim/base/field.h"

/* Result of a planner. */
typedef struct cs_planned {
    cs_plan plan;
    cs_pattern pattern; /* period 0: the plan has replicated stages, and so no pattern */
    /* period that the planner's search expected before it had a pattern (the paper's phase one,
     * dashed in its figures); 0: it has none */
    cs_time promised;
    cs_time bound; /* lower bound of the period of any plan; 0: unknown */
    /* proven optimal among the plans that the planner considers; no time limit was reached */
    bool optimal;
} cs_planned;

/* Allowed on a zeroed struct. */
void cs_planned_finish(cs_planned *planned);

typedef struct cs_planner {
    const char *name;
    const char *summary;    /* one line about the planner, for `sim list planners` */
    const char *source;     /* source of the method: paper and section */
    const cs_field *fields; /* fields of its parameters; ended by {0} */
    size_t params_size;
    bool replicates; /* whether its stages may have replicas */
    /* Makes a plan. CS_LIMIT if no plan fits: the message names the device and the bytes. */
    CS_MUST_CHECK cs_status (*plan)(const cs_chain *chain, const void *params, cs_planned *planned,
                                    cs_error *error);
} cs_planner;

/* All planners, NULL-terminated. */
extern const cs_planner *const cs_planners[];

/* Finds a planner by its name. NULL: there is none. */
const cs_planner *cs_planner_find(const char *name);

/* Runs a planner, and checks its pattern if present. `uses` has one entry per device of the chain,
 * meaningless without a pattern; may be NULL. */
CS_MUST_CHECK cs_status cs_planner_run(const cs_planner *planner, const cs_chain *chain,
                                       const void *params, cs_planned *planned,
                                       cs_pattern_use *uses, cs_error *error);

/* Returns a lower bound of the period of any plan and pattern, from the total load per device, the
 * largest layer, and the messages of layers that do not fit one device together. */
cs_time cs_planner_bound(const cs_chain *chain);

/* ---- the planners, for those that build on each other ---- */

extern const cs_planner cs_planner_balanced, cs_planner_pipedream, cs_planner_pipedream_replicated,
    cs_planner_contiguous_optimal, cs_planner_madpipe, cs_planner_exhaustive, cs_planner_best;

#endif
