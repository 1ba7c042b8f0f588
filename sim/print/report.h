/* Output of a run: a summary for people, or one JSON object. */
#ifndef CS_PRINT_REPORT_H
#define CS_PRINT_REPORT_H

#include "sim/base/log.h"
#include "sim/run/repeat.h"
#include "sim/run/simulate.h"

#include <stdio.h>

/* Figures side by side with their closed forms, then a line per device (one for equal ones that
 * follow each other; 16 at most), the critical path, and what ran out of memory. */
void cs_report_print(const cs_scenario *scenario, const cs_simulation *simulation, FILE *out);

/* Keys in SI base units that end in their unit (docs/reference/output.md lists them); NULL when
 * memory runs out. */
cJSON *cs_report_json(const cs_scenario *scenario, const cs_simulation *simulation);

/* Only what the figures of a sweep are made of: what is said once, and of devices, weights and
 * closed forms what cs_report_digest adds. */
cJSON *cs_report_json_figures(const cs_scenario *scenario, const cs_simulation *simulation);

/* Add to both what --runs asks for; nothing where there was one run. */
CS_MUST_CHECK cs_status cs_runs_add_json(cJSON *report, const cs_runs *runs, cs_error *error);
CS_MUST_CHECK cs_status cs_runs_print(const cs_runs *runs, FILE *out, cs_error *error);

/* Writes messages about what the figures do not show by themselves: a ring that leaves NICs unused,
 * too few mini-batches for a schedule without a flush, or ever more of them in flight. */
void cs_notes_write(const cs_scenario *scenario, const cs_simulation *simulation,
                    const cs_log *log);

#endif
