/* Output of `sim sweep`. */
#ifndef CS_SWEEP_SWEEP_REPORT_H
#define CS_SWEEP_SWEEP_REPORT_H

#include "sim/study/sweep/axis-values.h"
#include "sim/study/sweep/sweep.h"

#include <stdio.h>

enum { CS_SWEEP_LABEL_BYTES = 60 }; /* longest label of a point; longer ones are truncated */

/* A sweep, for printing. */
typedef struct cs_sweep_shown {
    const cs_space *space;
    const cs_sweep_results *results;
    const cs_axis_values *axes; /* values of the space's axes, in their order */
} cs_sweep_shown;

/* Prints, for users, the range of every metric and the points at its ends, which points are out of
 * memory, and where closed forms hold. */
void cs_sweep_report_print(const cs_sweep_shown *shown, FILE *out);

/* Writes a value of a metric with its unit, "12.3 ms"; a fraction as a number. Returns `text`. */
char *cs_sweep_figure_text(const cs_figure_column *column, double value, char *text, size_t size);

bool cs_sweep_out_of_memory(const cs_sweep_results *results, uint32_t point);

/* {"points": [{"set": {...}, "result": {...}} or {"set": {...}, "error": "..."}, ...], ...} */
CS_MUST_CHECK cs_status cs_sweep_report_json(const cs_space *space, const cs_journal *journal,
                                             const cs_sweep_results *results, FILE *out,
                                             cs_error *error);

/* ---- as a table: a row per point, with the varied keys and the chosen metrics ----
 *
 * `figures` are names separated by commas; "main" represents the metrics with CS_SHOWN_SWEEP.
 *
 * Prints aligned columns, values with units. Rows of points that failed or are out of memory say so
 * at their end. CS_USAGE: no point has one of the metrics. */
CS_MUST_CHECK cs_status cs_sweep_table_print(const cs_sweep_shown *shown, const char *figures,
                                             FILE *out, cs_error *error);

/* Writes comma-separated values (RFC 4180) into a file that appears complete or not at all: a line
 * of names (keys: their JSON pointers), then a line per point, in SI base units, with "" for
 * missing values; the last columns are `out_of_memory` (0, 1) and `error`. `figures` NULL: all of
 * them. */
CS_MUST_CHECK cs_status cs_sweep_table_write(const cs_sweep_shown *shown, const char *figures,
                                             const char *path, cs_error *error);

#endif
