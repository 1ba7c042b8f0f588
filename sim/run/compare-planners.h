/* Runs several planners on one scenario and compares their plans. */
#ifndef CS_RUN_COMPARE_PLANNERS_H
#define CS_RUN_COMPARE_PLANNERS_H

#include "sim/base/progress.h"
#include "sim/run/scenario/planning.h"

/* Result of one planner. */
typedef struct cs_planner_outcome {
    const cs_planner *planner;
    void *params;
    cs_status status; /* CS_OK; CS_LIMIT: no plan fits; CS_INVALID: the planner does not support the
                 * chain; see `error` */
    cs_error *error;
    cs_planned planned;
    cs_pattern_use *uses; /* per device, peaks include workspace; undefined without a pattern */
    double search_time;   /* wall-clock time, s */
} cs_planner_outcome;

typedef struct cs_comparison {
    cs_scenario scenario; /* unplanned */
    cs_chain_rules rules;
    cs_chain chain;
    cs_arena arena; /* owns the arrays, params and uses */
    cs_planner_outcome *outcomes;
    uint32_t n;
    uint32_t best; /* index of the shortest period, the first if equal; n: no planner found a
                    * plan */
    cs_time bound; /* lower bound of the period; CS_TIME_MAX: nothing fits */
} cs_comparison;

/* Accepts a zeroed value. */
void cs_comparison_finish(cs_comparison *comparison);

/* A planner to compare, with its parameters as an object. */
typedef struct cs_planner_choice {
    const cs_planner *planner;
    cJSON *params;
} cs_planner_choice;

typedef struct cs_comparison_request {
    const cJSON *document;   /* document of the scenario */
    const char *file;        /* path of its file */
    const char *params_file; /* place of the parameters, for messages */
    const cs_planner_choice *choices;
    uint32_t n;
    const cs_progress *progress;
} cs_comparison_request;

/* Runs the planners. It is not an error if none of them finds a plan. CS_USAGE: a wrong
 * parameter. */
CS_MUST_CHECK cs_status cs_comparison_make(const cs_comparison_request *request,
                                           cs_comparison *comparison, cs_error *error);

/* Returns CS_OK if a planner has found a plan, with every planner's message otherwise: CS_INVALID
 * if no planner supports the chain, else CS_LIMIT. */
CS_MUST_CHECK cs_status cs_comparison_verdict(const cs_comparison *comparison, cs_error *error);

/* Returns the plan as a file's document, with its pattern; NULL if memory runs out, or with a
 * message. */
cJSON *cs_comparison_plan_json(const cs_comparison *comparison, uint32_t i, cs_error *error);

#endif
