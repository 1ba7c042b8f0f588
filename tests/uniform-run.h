/* Runs of a uniform model, whose scenario is the same in all tests except for a few members. */
#ifndef CS_TESTS_UNIFORM_RUN_H
#define CS_TESTS_UNIFORM_RUN_H

#include "tests/run-scenario.h"

/* A chain of `layers` equal layers on an ideal network: forward 1 s, both halves of the backward
 * 1 s, weights and activations of 1 GB each, unless the model is another one. `schedule` is the
 * object in JSON. */
typedef struct uniform_text {
    uint32_t layers, devices, iterations;
    const char *schedule;
    const char *uniform;  /* members of the uniform model in addition to its layers; NULL: as
                           * above */
    const char *platform; /* members of the platform in addition to its devices; NULL: "ideal" */
} uniform_text;

/* A run that failed can be finished as well. */
CS_MUST_CHECK cs_status uniform_run_init(scenario_run *run, const uniform_text *text,
                                         cs_error *error);

/* Fails the test that it is in, with the error's text. */
void uniform_run_expect(scenario_run *run, const uniform_text *text);

/* Every closed form that is promised is what was simulated. Returns how many there were. */
uint32_t uniform_run_check_forms(const char *row, const scenario_run *run);

/* The task of that kind, stage and item, or CS_NONE. */
uint32_t uniform_run_find(const scenario_run *run, cs_kind kind, uint32_t stage, uint32_t item);

#endif
