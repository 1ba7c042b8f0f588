/* Prints predictions compared with measured points, as text or as JSON. */
#ifndef CS_CLI_VALIDATE_REPORT_H
#define CS_CLI_VALIDATE_REPORT_H

#include "sim/study/validate/judgement.h"

#include <stdio.h>

/* Data to print. */
typedef struct cs_validation_shown {
    const cs_predictions *predictions;
    const cs_judgement *judgement;
    const char *like; /* file of the scenario for --like; or NULL */
    const cs_likeness *likeness;
    double step_time; /* predicted for `like`, s */
    cs_interval interval;
} cs_validation_shown;

/* Optional parts of the text. */
typedef struct cs_validation_options {
    bool points;    /* a line per run */
    bool tables;    /* errors by dataset, GPU and feature; assumptions */
    bool groups;    /* ranking of layouts, by dataset and group */
    bool trends;    /* change of errors with sizes */
    bool decompose; /* parts of predicted steps, and their deviations */
} cs_validation_options;

/* Prints errors of predictions by kind of run, ranking of layouts, verdicts on memory, intervals,
 * and errors of other tools. With --like: the interval of the scenario's step time, and a line per
 * run. */
void cs_validate_print(const cs_validation_shown *shown, const cs_validation_options *options,
                       FILE *out);

/* Prints everything as JSON. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_validate_print_json(const cs_validation_shown *shown, FILE *out,
                                               cs_error *error);

#endif
