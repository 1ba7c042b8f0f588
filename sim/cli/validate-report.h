/* Predictions held against measured points: for people, and as JSON. */
#ifndef CS_CLI_VALIDATE_REPORT_H
#define CS_CLI_VALIDATE_REPORT_H

#include "sim/validate/error-parts.h"
#include "sim/validate/error-table.h"
#include "sim/validate/interval.h"

#include <stdio.h>

/* What there is to show. */
typedef struct cs_validation_shown {
    const cs_predictions *predictions;
    const cs_error_table *table;
    const cs_error_parts_table *parts;
    cs_note_counts missing, assumed;
    const char *like; /* a scenario that they are like, by its file; or NULL */
    const cs_likeness *likeness;
    cs_interval interval; /* with `like` */
} cs_validation_shown;

/* How many points there are and what became of them; errors of step time and memory by dataset,
 * machine and feature; what is missing and assumed. With `each`, a line per point too; with
 * `decompose`, the parts of predicted steps by dataset, and what they lack. Of points that are like
 * a scenario a few lines, and a line per point. */
void cs_validate_print(const cs_validation_shown *shown, bool each, bool decompose, FILE *out);

/* The same, with all points. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_validate_print_json(const cs_validation_shown *shown, FILE *out,
                                               cs_error *error);

#endif
