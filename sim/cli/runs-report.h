/* What `sim run --runs` prints of repeated runs; without runs it prints nothing. */
#ifndef CS_CLI_RUNS_REPORT_H
#define CS_CLI_RUNS_REPORT_H

#include "sim/run/repeat.h"

#include <stdio.h>

/* Adds the member "runs" to a report. */
CS_MUST_CHECK cs_status cs_runs_add_json(cJSON *report, const cs_runs *runs, cs_error *error);

CS_MUST_CHECK cs_status cs_runs_print(const cs_runs *runs, FILE *out, cs_error *error);

#endif
