/* A sweep as a table: a row per point, of the varied keys and chosen figures. */
#ifndef CS_CLI_SWEEP_TABLE_H
#define CS_CLI_SWEEP_TABLE_H

#include "sim/cli/sweep-report.h"

/* `figures` are names separated by commas; "main" stands for those that are CS_SHOWN_SWEEP. */

/* Aligned columns, values in units for people; points that failed or are out of memory say so at the
 * end of their row. CS_USAGE where no point has one of the figures. */
CS_MUST_CHECK cs_status cs_sweep_table_print(const cs_sweep_shown *shown, const char *figures,
                                             FILE *out, cs_error *error);

/* Comma-separated values (RFC 4180), into a file that appears whole or not at all: a line of names
 * (of keys their JSON pointers), then one per point, in SI base units, with "" where there is no
 * value; then `out_of_memory` (0, 1) and `error`. `figures` may be NULL: all of them. */
CS_MUST_CHECK cs_status cs_sweep_table_write(const cs_sweep_shown *shown, const char *figures,
                                             const char *path, cs_error *error);

#endif
