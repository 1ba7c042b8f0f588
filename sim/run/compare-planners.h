/* Runs planners on one scenario, and holds what they find side by side. */
#ifndef CS_RUN_COMPARE_PLANNERS_H
#define CS_RUN_COMPARE_PLANNERS_H

#include "sim/base/progress.h"
#include "sim/run/scenario/planning.h"

/* What became of one planner. */
typedef struct cs_planner_outcome {
    const cs_planner *planner;
    void *params;
    cs_status
        status; /* CS_OK; CS_LIMIT: no plan that fits was found; CS_INVALID: the chain is not for
                       * this planner; `error` says more */
    cs_error *error;
    cs_planned planned;
    cs_pattern_use *uses; /* per device, peaks with workspace; of no meaning without a pattern */
    double search_time;   /* s, of this machine */
} cs_planner_outcome;

typedef struct cs_comparison {
    cs_scenario scenario; /* unplanned */
    cs_chain_rules rules;
    cs_chain chain;
    cs_arena arena; /* owns the arrays, params and uses */
    cs_planner_outcome *outcomes;
    uint32_t n;
    uint32_t best; /* with the smallest period, the first of equals; n: none found a plan */
    cs_time bound; /* no plan has a smaller period; CS_TIME_MAX: nothing fits */
} cs_comparison;

/* Zeroed comparisons can be finished. */
void cs_comparison_finish(cs_comparison *comparison);

/* One planner to compare, and its parameters: an object. */
typedef struct cs_planner_choice {
    const cs_planner *planner;
    cJSON *params;
} cs_planner_choice;

typedef struct cs_comparison_request {
    const cJSON *document;   /* the scenario */
    const char *file;        /* that it was read from */
    const char *params_file; /* what messages call the place of the parameters */
    const cs_planner_choice *choices;
    uint32_t n;
    const cs_progress *progress;
} cs_comparison_request;

/* Runs the planners. That none of them finds a plan is a result too. CS_USAGE: a wrong parameter.
 */
CS_MUST_CHECK cs_status cs_comparison_make(const cs_comparison_request *request,
                                           cs_comparison *comparison, cs_error *error);

/* CS_OK when a planner has found a plan; else CS_LIMIT, or CS_INVALID where all say that, with
 * every planner's message. */
CS_MUST_CHECK cs_status cs_comparison_verdict(const cs_comparison *comparison, cs_error *error);

/* The plan as a file, with its pattern; NULL when memory runs out,
 * or with a message. */
cJSON *cs_comparison_plan_json(const cs_comparison *comparison, uint32_t i, cs_error *error);

#endif
