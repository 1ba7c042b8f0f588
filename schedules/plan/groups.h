/* Groups of 1F1B* (MadPipe, HAL hal-03025305, section 4.1): what cs_pattern_1f1b and the planner
 * contiguous_optimal count in.
 *
 * The stages of a contiguous plan and the links between them are a chain of resources S_1, C_1,
 * S_2, ..., S_n, each with a load U or C per micro-batch. From the last one on they are put into
 * groups: a resource joins the present group while the group's sum stays within the period, else it
 * opens the next one. In the paper's V, the time from the end of a stage's last forward to the
 * start of the next backward, (group, used) is V = (group - 1) T + used, and joining is the
 * operation
 *     x (+) y = x + y when ceil(x / T) = ceil((x + y) / T), else T ceil(x / T) + y;
 * so group = ceil(V / T), which a stage has as many active micro-batches of. Kept apart, the two
 * numbers need no division.
 */
#ifndef CS_SCHEDULES_GROUPS_H
#define CS_SCHEDULES_GROUPS_H

#include "sim/base/time.h"

typedef struct cs_load_group {
    cs_time used;  /* sum of the loads in the present group, <= period */
    int64_t group; /* from 1 */
} cs_load_group;

static const cs_load_group cs_load_group_first = {0, 1};

/* The resource must fit: 0 <= load <= period. A load of 0 always joins. */
static inline cs_load_group cs_load_group_join(cs_load_group before, cs_time load, cs_time period)
{
    if (load <= period - before.used)
        return (cs_load_group){before.used + load, before.group};
    return (cs_load_group){load, before.group + 1};
}

/* The order of V. Joining keeps it: from a <= b follows join(a, y) <= join(b, y). For in one group
 * b opens the next when a does, or stays and has more, or opens it alone; and where a's group is an
 * earlier one, a comes at most to (y, a.group + 1) and b at least to (b.used + y, a.group + 1). */
static inline bool cs_load_group_less(cs_load_group a, cs_load_group b)
{
    return a.group != b.group ? a.group < b.group : a.used < b.used;
}

#endif
