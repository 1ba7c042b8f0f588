#include "schedules/plan/planner.h"

#include <string.h>

const cs_planner *const cs_planners[] = {
    &cs_planner_balanced,
    &cs_planner_pipedream,
    &cs_planner_pipedream_replicated,
    &cs_planner_contiguous_optimal,
    &cs_planner_madpipe,
    &cs_planner_exhaustive,
    &cs_planner_best,
    NULL,
};

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

cs_status cs_planner_run(const cs_planner *planner, const cs_chain *chain, const void *params,
                         cs_planned *planned, cs_pattern_use *uses, cs_error *error)
{
    cs_planned made = {0};
    cs_status status = planner->plan(chain, params, &made, error);
    if (status == CS_OK && made.pattern.period > 0)
        status = cs_pattern_check(chain, &made.plan, &made.pattern, uses, error);
    if (status == CS_OK)
        *planned = made;
    else
        cs_planned_finish(&made);
    return status;
}
