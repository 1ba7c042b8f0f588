/* What `sim sweep` prints. */
#ifndef CS_SWEEP_SWEEP_REPORT_H
#define CS_SWEEP_SWEEP_REPORT_H

#include "sim/study/sweep/axis-values.h"
#include "sim/study/sweep/sweep.h"

#include <stdio.h>

enum { CS_SWEEP_LABEL_BYTES = 60 }; /* of a point, longer ones are cut */

/* A sweep as it is shown to people. */
typedef struct cs_sweep_shown {
    const cs_space *space;
    const cs_sweep_results *results;
    const cs_axis_values *axes; /* of the space's, in their order */
} cs_sweep_shown;

/* For people: the range of every figure and where its ends are, which points are out of memory, and
 * where closed forms hold. */
void cs_sweep_report_print(const cs_sweep_shown *shown, FILE *out);

/* "12.3 ms": a value of a figure with its unit, a fraction as a number; returns `text`. */
char *cs_sweep_figure_text(const cs_figure_column *column, double value, char *text, size_t size);

bool cs_sweep_out_of_memory(const cs_sweep_results *results, uint32_t point);

/* {"points": [{"set": {...}, "result": {...}} or {"set": {...}, "error": "..."}, ...], ...} */
CS_MUST_CHECK cs_status cs_sweep_report_json(const cs_space *space, const cs_journal *journal,
                                             const cs_sweep_results *results, FILE *out,
                                             cs_error *error);

/* ---- as a table: a row per point, of the varied keys and the chosen figures ----
 *
 * `figures` are names separated by commas; "main" stands for those that are CS_SHOWN_SWEEP.
 *
 * Aligned columns, values in units for people; points that failed or are out of memory say so at
 * the end of their row. CS_USAGE where no point has one of the figures. */
CS_MUST_CHECK cs_status cs_sweep_table_print(const cs_sweep_shown *shown, const char *figures,
                                             FILE *out, cs_error *error);

/* Comma-separated values (RFC 4180), into a file that appears whole or not at all: a line of names
 * (of keys their JSON pointers), then one per point, in SI base units, with "" where there is no
 * value; then `out_of_memory` (0, 1) and `error`. `figures` may be NULL: all of them. */
CS_MUST_CHECK cs_status cs_sweep_table_write(const cs_sweep_shown *shown, const char *figures,
                                             const char *path, cs_error *error);

#endif
