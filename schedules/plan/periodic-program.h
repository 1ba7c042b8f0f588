/* The second phase of MadPipe: the best periodic pattern of a given plan, by an integer program.
 *
 * HAL hal-03025305, section 4.3. One device may hold several stages, which 1F1B* cannot schedule.
 * Variables: the period, the start and the index shift of every operation, and an order for every
 * two operations of one device or link; memory is held at the start of every forward. CBC solves
 * it; the times of its order and shifts are then computed again in whole picoseconds, and the
 * pattern goes through cs_pattern_check.
 */
#ifndef CS_SCHEDULES_PERIODIC_PROGRAM_H
#define CS_SCHEDULES_PERIODIC_PROGRAM_H

#include "schedules/plan/pattern.h"

typedef struct cs_program_options {
    double time_limit; /* seconds; > 0 */
    cs_time below;     /* only a period below this one is of interest; CS_TIME_MAX: any */
} cs_program_options;

typedef enum cs_program_end {
    CS_PROGRAM_OPTIMAL,    /* no valid pattern of this plan has a smaller period */
    CS_PROGRAM_FEASIBLE,   /* a valid pattern, time ran out before a proof */
    CS_PROGRAM_INFEASIBLE, /* proven: none below `below` */
    CS_PROGRAM_UNKNOWN     /* none was found in the time */
} cs_program_end;

/* `pattern` is written when there is one, else left. */
CS_MUST_CHECK cs_status cs_pattern_program(const cs_chain *chain, const cs_plan *plan,
                                           const cs_program_options *options, cs_pattern *pattern,
                                           cs_program_end *end, cs_error *error);

/* The smallest period for a given order and given shifts, and its starts, exactly: the largest ratio
 * of time to shifts over the cycles of the constraint graph. `pattern` holds the order (by start)
 * and the shifts, and gets the new starts and the new period. Memory is not looked at: it depends
 * on the order and the shifts only. */
CS_MUST_CHECK cs_status cs_pattern_tighten(const cs_chain *chain, const cs_plan *plan,
                                           cs_pattern *pattern, cs_error *error);

#endif
