/* Predictions held against measured points: for people, and as JSON. */
#ifndef CS_CLI_VALIDATE_REPORT_H
#define CS_CLI_VALIDATE_REPORT_H

#include "sim/study/validate/judgement.h"

#include <stdio.h>

/* What there is to show. */
typedef struct cs_validation_shown {
    const cs_predictions *predictions;
    const cs_judgement *judgement;
    const char *like; /* a scenario that they are like, by its file; or NULL */
    const cs_likeness *likeness;
    double step_time; /* predicted for `like`, s */
    cs_interval interval;
} cs_validation_shown;

/* Optional parts of the text. */
typedef struct cs_validation_options {
    bool points;    /* a line per run */
    bool tables;    /* errors by dataset, GPU and feature; assumptions */
    bool groups;    /* how layouts are ranked, by dataset and group */
    bool trends;    /* how errors change with sizes */
    bool decompose; /* parts of predicted steps, and what they lack */
} cs_validation_options;

/* Prints how far predictions are off, by kind of run; how layouts are ranked; verdicts on memory;
 * intervals; and errors of other tools. For runs that are like a scenario: the interval of its step
 * time, and a line per run. */
void cs_validate_print(const cs_validation_shown *shown, const cs_validation_options *options,
                       FILE *out);

/* The same, with everything. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_validate_print_json(const cs_validation_shown *shown, FILE *out,
                                               cs_error *error);

#endif
