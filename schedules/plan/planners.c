#include "schedules/plan/planner.h"

#include <string.h>

const cs_planner *const cs_planners[] = {&cs_planner_contiguous_optimal, &cs_planner_madpipe, NULL};

const cs_planner *cs_planner_find(const char *name)
{
    for (size_t i = 0; cs_planners[i]; i++) {
        if (strcmp(cs_planners[i]->name, name) == 0)
            return cs_planners[i];
    }
    return NULL;
}

void cs_planned_finish(cs_planned *planned)
{
    cs_plan_finish(&planned->plan);
    cs_pattern_finish(&planned->pattern);
    *planned = (cs_planned){0};
}
