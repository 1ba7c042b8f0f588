/* Shared by both readers of logs. Internal to calib. */
#ifndef CS_CALIB_IMPORT_TABLE_H
#define CS_CALIB_IMPORT_TABLE_H

#include "calib/import.h"
#include "calib/log-lines.h"
#include "calib/measurements.h"

enum { CS_IMPORT_BYTES = 256 };

/* State of a reader. */
typedef struct cs_import {
    cs_log_lines log;
    const cs_import_options *options;
    cs_measurements measurements;
    cs_import_report report;
    char device[CS_IMPORT_BYTES], libraries[CS_IMPORT_BYTES];
    cs_error *error;
} cs_import;

/* Apply the options; CS_USAGE: an unknown word. */
CS_MUST_CHECK cs_status cs_import_collective(const cs_import *import, cs_cost_collective *out);
CS_MUST_CHECK cs_status cs_import_level(const cs_import *import, cs_cost_level *out);

/* Returns CS_INVALID for a row without a newline, which may be incomplete. */
CS_MUST_CHECK cs_status cs_import_whole(const cs_import *import);

/* Adds a row, whose time is rounded to steps of `resolution` (us). CS_INVALID: a time that is not >
 * 0; rows of no bytes are skipped. */
CS_MUST_CHECK cs_status cs_import_row(cs_import *import, cs_cost_collective collective,
                                      cs_cost_level level, uint32_t ranks, int64_t bytes,
                                      double microseconds, double resolution);

/* Fits all tables and adds them to the costs, with `tool` and the file as source; CS_INVALID: there
 * are none. Always finishes the measurements. */
CS_MUST_CHECK cs_status cs_import_end(cs_import *import, cs_status status, const char *tool,
                                      cs_costs *costs, cs_import_report *report);

#endif
