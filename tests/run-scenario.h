/* Scenarios given as text, run all the way to their figures: for tests of schedules. */
#ifndef CS_TESTS_RUN_SCENARIO_H
#define CS_TESTS_RUN_SCENARIO_H

#include "sim/run/simulate.h"

typedef struct scenario_run {
    cs_scenario scenario;
    cs_simulation simulation;
} scenario_run;

/* JSON in printf's format, with ' in place of ". On failure nothing is to be finished. */
CS_MUST_CHECK CS_PRINTF(3, 4) cs_status
    scenario_run_init(scenario_run *run, cs_error *error, const char *format, ...);
void scenario_run_finish(scenario_run *run);

/* Only up to the job: `simulation` stays empty. */
CS_MUST_CHECK CS_PRINTF(3, 4) cs_status
    scenario_run_read(scenario_run *run, cs_error *error, const char *format, ...);

#endif
