/* Planners: which devices hold which layers, and with which periodic pattern.
 *
 * To add one: a file with a `const cs_planner`, a line in planners.c, a test. A planner turns a
 * chain into a plan and a pattern for it; whoever calls it checks the pattern with
 * cs_pattern_check.
 */
#ifndef CS_SCHEDULES_PLANNER_H
#define CS_SCHEDULES_PLANNER_H

#include "schedules/plan/pattern.h"
#include "sim/base/field.h"

/* What a planner found. */
typedef struct cs_planned {
    cs_plan plan;
    cs_pattern pattern; /* period 0: a plan with replicated stages, which has no pattern */
    cs_time promised; /* the period that the planner's search believed in before there was a pattern
                         * (the paper's phase one, dashed in its figures); 0: it has none */
    cs_time bound;    /* no plan has a smaller period; 0: unknown */
    bool optimal;     /* within the planner's own space, and proven: no time limit was met */
} cs_planned;

/* Zeroed ones can be finished. */
void cs_planned_finish(cs_planned *planned);

typedef struct cs_planner {
    const char *name;
    const char *summary;    /* one line, for `sim list planners` */
    const char *source;     /* paper, section */
    const cs_field *fields; /* of its parameters; ended by {0} */
    size_t params_size;
    bool replicates; /* its stages may have replicas */
    /* CS_LIMIT when it finds no plan that fits: the message names device and bytes. */
    CS_MUST_CHECK cs_status (*plan)(const cs_chain *chain, const void *params, cs_planned *planned,
                                    cs_error *error);
} cs_planner;

/* All planners, ended by NULL. */
extern const cs_planner *const cs_planners[];

/* The planner of that name, or NULL. */
const cs_planner *cs_planner_find(const char *name);

/* Runs a planner and checks its pattern, if there is one; `uses`, an entry per device of the chain
 * and of no meaning where there is no pattern, may be NULL. */
CS_MUST_CHECK cs_status cs_planner_run(const cs_planner *planner, const cs_chain *chain,
                                       const void *params, cs_planned *planned,
                                       cs_pattern_use *uses, cs_error *error);

/* Lower bound of the period of any plan and pattern: the layers' load over the devices, the largest
 * layer, and what the memory forces onto several devices and so onto their links. */
cs_time cs_planner_bound(const cs_chain *chain);

/* ---- the planners, for those that build on each other ---- */

extern const cs_planner cs_planner_balanced, cs_planner_pipedream, cs_planner_pipedream_replicated,
    cs_planner_contiguous_optimal, cs_planner_madpipe, cs_planner_exhaustive, cs_planner_best;

#endif
