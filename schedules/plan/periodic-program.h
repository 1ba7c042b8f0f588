/* The second phase of MadPipe: the best periodic pattern of a given plan, by an integer program.
 *
 * HAL hal-03025305, section 4.3. One device may hold several stages, which 1F1B* cannot schedule.
 * Variables: 1 / T, to be maximised; the time of every operation in units of T; and the laps of
 * every two operations of one device or link (pattern-order.h). All constraints are linear in
 * these, without large constants: the chain, exclusion, and memory at the start of every forward. A
 * construction like 1F1B* comes first, and a bound from loads and memory; CBC is called only if
 * there is a gap between the two. Only the laps of CBC's answer are used: period and times are
 * computed from them in integers, and cs_pattern_check checks the pattern. programs.md has the
 * formulas.
 *
 * CBC runs on one thread, prints nothing, and always gives the same answer unless it reaches the
 * time limit. It is not reentrant: calls from several threads wait for each other.
 */
#ifndef CS_SCHEDULES_PERIODIC_PROGRAM_H
#define CS_SCHEDULES_PERIODIC_PROGRAM_H

#include "schedules/plan/pattern.h"

typedef struct cs_program_options {
    /* seconds for CBC; 0: no limit. Where the search stops depends on the machine */
    double time_limit;
    /* nodes of CBC's search tree; 0: no limit. Where the search stops does not depend on the
     * machine */
    int node_limit;
    cs_time below; /* only shorter periods are of interest; CS_TIME_MAX: any */
} cs_program_options;

typedef enum cs_program_end {
    /* a valid pattern; proven that no pattern of the plan has a period shorter by 1e-6 of it */
    CS_PROGRAM_OPTIMAL,
    CS_PROGRAM_FEASIBLE,   /* a valid pattern; a limit was reached before the proof */
    CS_PROGRAM_INFEASIBLE, /* proven: no period below `below`, or none shorter by 1e-6 of it */
    CS_PROGRAM_UNKNOWN     /* no pattern was found within the limits */
} cs_program_end;

/* Writes `pattern` if one is found; otherwise leaves it unchanged. */
CS_MUST_CHECK cs_status cs_pattern_program(const cs_chain *chain, const cs_plan *plan,
                                           const cs_program_options *options, cs_pattern *pattern,
                                           cs_program_end *end, cs_error *error);

/* Finds the smallest whole period for the order of a pattern's operations and their shifts,
 * exactly: the largest ratio of time to laps over the cycles of the constraint graph. `pattern` has
 * the order (by start) and the shifts; it gets the new period and the earliest starts, with the
 * first forward at start 0 and shift 0. The memory is not checked: it depends only on order and
 * shifts. CS_LIMIT if no period makes a valid pattern. */
CS_MUST_CHECK cs_status cs_pattern_tighten(const cs_chain *chain, const cs_plan *plan,
                                           cs_pattern *pattern, cs_error *error);

#endif
