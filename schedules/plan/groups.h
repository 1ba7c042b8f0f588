/* Groups of 1F1B* (MadPipe, HAL hal-03025305, section 4.1), for cs_pattern_1f1b and the planner
 * contiguous_optimal.
 *
 * The stages of a contiguous plan and the links between them form a chain of resources S_1, C_1,
 * S_2, ..., S_n, each with a load U or C per micro-batch. Groups are formed from the last resource
 * to the first: a resource joins the current group if the group's sum stays within the period;
 * otherwise it opens the next group. The paper's V, the time from the end of a stage's last forward
 * to the start of its next backward, is V = (group - 1) T + used. Joining is the operation
 *     x (+) y = x + y if ceil(x / T) = ceil((x + y) / T), else T ceil(x / T) + y.
 * A stage has group = ceil(V / T) active micro-batches. Storing group and used separately avoids
 * divisions.
 */
#ifndef CS_SCHEDULES_GROUPS_H
#define CS_SCHEDULES_GROUPS_H

#include "sim/base/time.h"

typedef struct cs_load_group {
    cs_time used;  /* sum of the loads in the current group, <= period */
    int64_t group; /* number of the group, from 1 */
} cs_load_group;

static const cs_load_group cs_load_group_first = {0, 1};

/* Requires 0 <= load <= period. A load of 0 always joins. */
static inline cs_load_group cs_load_group_join(cs_load_group before, cs_time load, cs_time period)
{
    if (load <= period - before.used)
        return (cs_load_group){before.used + load, before.group};
    return (cs_load_group){load, before.group + 1};
}

/* Whether a is before b in the order of V. Joining preserves it: a <= b implies join(a, y) <=
 * join(b, y). In one group, b opens the next group whenever a does, or stays and has more, or opens
 * it alone. If a is in an earlier group, a reaches at most (y, a.group + 1), and b at least (b.used
 * + y, a.group + 1). */
static inline bool cs_load_group_less(cs_load_group a, cs_load_group b)
{
    return a.group != b.group ? a.group < b.group : a.used < b.used;
}

#endif
