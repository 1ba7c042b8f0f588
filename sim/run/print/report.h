/* Output of a run: a summary for people, or one JSON object. */
#ifndef CS_PRINT_REPORT_H
#define CS_PRINT_REPORT_H

#include "sim/base/log.h"
#include "sim/run/repeat.h"
#include "sim/run/simulate.h"

#include <stdio.h>

/* Prints the metrics with their closed forms, a line per device (adjacent equal devices share one;
 * at most 16 lines), the critical path, and out-of-memory errors. */
void cs_report_print(const cs_scenario *scenario, const cs_simulation *simulation, FILE *out);

/* Returns the report. Values are in SI base units, and keys end in their unit
 * (docs/reference/output.md lists them). NULL if memory runs out. */
cJSON *cs_report_json(const cs_scenario *scenario, const cs_simulation *simulation);

/* Returns only the part that sweeps need: values of the whole run, and for devices, weights and
 * closed forms the summary of cs_report_digest. */
cJSON *cs_report_json_figures(const cs_scenario *scenario, const cs_simulation *simulation);

/* Add the statistics of --runs to both reports, if there were several runs. */
CS_MUST_CHECK cs_status cs_runs_add_json(cJSON *report, const cs_runs *runs, cs_error *error);
CS_MUST_CHECK cs_status cs_runs_print(const cs_runs *runs, FILE *out, cs_error *error);

/* Writes notes about problems that metrics do not show: a ring that leaves NICs unused, too few
 * mini-batches for a schedule without a flush, or a growing number of mini-batches in flight. */
void cs_notes_write(const cs_scenario *scenario, const cs_simulation *simulation,
                    const cs_log *log);

#endif
