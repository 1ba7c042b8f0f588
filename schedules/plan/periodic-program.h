/* The second phase of MadPipe: the best periodic pattern of a given plan, by an integer program.
 *
 * HAL hal-03025305, section 4.3. One device may hold several stages, which 1F1B* cannot schedule.
 * Variables: 1 / T, to be made large; the time of every operation in units of T; and the laps of
 * every two operations of one device or link (pattern-order.h). All conditions are linear in these,
 * without large constants: the chain, exclusion, and memory at the start of every forward. A
 * construction like 1F1B* comes first, and a bound by loads and memory: CBC is asked only while
 * there is room between the two. Of CBC's answer only the laps are taken: period and times are
 * computed from them in whole numbers, and the pattern goes through cs_pattern_check. programs.md
 * has the formulas.
 *
 * CBC runs on one thread, prints nothing, and gives the same answer each time, unless it meets the
 * time limit. It is not reentrant: calls from several threads wait for each other.
 */
#ifndef CS_SCHEDULES_PERIODIC_PROGRAM_H
#define CS_SCHEDULES_PERIODIC_PROGRAM_H

#include "schedules/plan/pattern.h"

typedef struct cs_program_options {
    double time_limit; /* seconds of CBC; 0: none. Where it strikes depends on the machine; */
    int node_limit;    /* of CBC's search tree; where this one strikes does not. 0: none */
    cs_time below;     /* only a period below this one is of interest; CS_TIME_MAX: any */
} cs_program_options;

typedef enum cs_program_end {
    CS_PROGRAM_OPTIMAL,    /* no valid pattern of this plan has a period smaller by 1e-6 of it */
    CS_PROGRAM_FEASIBLE,   /* a valid pattern, a limit was met before a proof */
    CS_PROGRAM_INFEASIBLE, /* proven: none below `below`, or none smaller by 1e-6 of it */
    CS_PROGRAM_UNKNOWN     /* none was found in the time */
} cs_program_end;

/* `pattern` is written when there is one, else left. */
CS_MUST_CHECK cs_status cs_pattern_program(const cs_chain *chain, const cs_plan *plan,
                                           const cs_program_options *options, cs_pattern *pattern,
                                           cs_program_end *end, cs_error *error);

/* The smallest whole period for the order of a pattern's operations and for their shifts, exactly:
 * the largest ratio of time to laps over the cycles of the constraint graph. `pattern` holds the
 * order (by start) and the shifts; it gets the earliest starts with the first forward at start 0
 * and shift 0, and the new period. Memory is not looked at: it depends on order and shifts only.
 * CS_LIMIT when no period makes a valid pattern of them. */
CS_MUST_CHECK cs_status cs_pattern_tighten(const cs_chain *chain, const cs_plan *plan,
                                           cs_pattern *pattern, cs_error *error);

#endif
