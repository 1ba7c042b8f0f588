/* What a run prints: a summary for people, or one JSON object. */
#ifndef CS_CLI_REPORT_H
#define CS_CLI_REPORT_H

#include "sim/run/simulate.h"

#include <stdio.h>

/* Figures side by side with their closed forms, then a line per device (one for equal ones that follow
 * each other; 16 at most), the critical path, and what ran out of memory. */
void cs_report_print(const cs_scenario *scenario, const cs_simulation *simulation, FILE *out);

/* Keys in SI base units that end in their unit (docs/reference/scenario.md lists them); NULL when memory
 * runs out. */
cJSON *cs_report_json(const cs_scenario *scenario, const cs_simulation *simulation);

#endif
