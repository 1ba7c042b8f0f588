/* A slow checker of patterns: unrolls many micro-batches over time and looks at every picosecond. */
#ifndef CS_TESTS_SLOW_PATTERN_H
#define CS_TESTS_SLOW_PATTERN_H

#include "schedules/plan/pattern.h"

/* The same answers as cs_pattern_check, for small times: whether the pattern is valid, and if its
 * order and exclusion are, `uses` per device of the chain and `active` per stage. */
bool slow_pattern_check(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                        cs_pattern_use *uses, int64_t *active);

#endif
