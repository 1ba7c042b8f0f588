/* What a figure of a paper is computed from: a scenario with its section "sweep", and a function
 * that makes numbers of each of its points.
 *
 * Points that are done stand in a journal (sim/study/sweep/journal.h), which stays: a study whose inputs
 * are the same is read, not computed again. Inputs are the scenario, what it varies and the
 * program.
 */
#ifndef CS_FIGURES_STUDY_H
#define CS_FIGURES_STUDY_H

#include "sim/run/simulate.h"
#include "sim/study/sweep/sweep.h"

typedef struct cs_study_source {
    const char *scenario;   /* in the folder of scenarios: "papers/cdp-fig4.json" */
    cs_sweep_function *run; /* its context is the path of the scenario; its report has what the
                             * figure shows. NULL: cs_study_simulate */
} cs_study_source;

typedef struct cs_study {
    char *path;
    cJSON *base; /* without its "sweep" */
    cs_space space;
    cs_sweep_results results;
    cJSON **reports;   /* of each point; NULL where it failed */
    uint64_t identity; /* hash of all inputs */
} cs_study;

/* Where studies are kept, and how they are run. */
typedef struct cs_study_place {
    const char *scenarios; /* folder */
    const char *journals;  /* folder */
    const char *program;   /* which program it is: another one computes anew */
    uint32_t jobs;
    const cs_progress *progress;
} cs_study_place;

/* Zeroed studies can be finished. */
void cs_study_finish(cs_study *study);

/* Computes what is not there yet. A point that fails is no failure. */
CS_MUST_CHECK cs_status cs_study_make(const cs_study_source *source, const cs_study_place *place,
                                      cs_study *study, cs_error *error);

/* Simulates, and reports all figures of the run by their keys, of a device's figures the largest.
 */
cs_sweep_function cs_study_simulate;

/* The same, and what `measure` adds to the report. */
typedef cs_status cs_study_measure(const cs_scenario *scenario, const cs_simulation *simulation,
                                   cJSON *report, cs_error *error);
CS_MUST_CHECK cs_status cs_study_run(const char *path, const cJSON *document,
                                     cs_study_measure *measure, const cs_progress *progress,
                                     cJSON **result, cs_error *error);

/* The point at which axis i, in the order of the section "sweep", has its value number at[i]; of a
 * list, whose axes go together, at[0] is the point. */
uint32_t cs_study_point(const cs_study *study, const uint32_t *at);

/* How many values the axis has, and one of them: a text without quotes, else JSON. */
uint32_t cs_study_length(const cs_study *study, uint32_t axis);
double cs_study_axis_number(const cs_study *study, uint32_t axis, uint32_t i);
void cs_study_axis_text(const cs_study *study, uint32_t axis, uint32_t i, char *text, size_t size);

/* A number of a point's report; NaN where it is not there or the point failed. */
double cs_study_number(const cs_study *study, uint32_t point, const char *key);
const cJSON *cs_study_member(const cs_study *study, uint32_t point, const char *key);

/* CS_FAILED with the message of the first point that failed, for figures that need all. */
CS_MUST_CHECK cs_status cs_study_all_done(const cs_study *study, cs_error *error);

/* The scenario at a point; the caller's. */
CS_MUST_CHECK cs_status cs_study_document(const cs_study *study, uint32_t point, cJSON **document,
                                          cs_error *error);

#endif
