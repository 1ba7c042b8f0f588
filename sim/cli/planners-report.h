/* Output of `sim plan --planner`. */
#ifndef CS_CLI_PLANNERS_REPORT_H
#define CS_CLI_PLANNERS_REPORT_H

#include "sim/run/compare-planners.h"

#include <stdio.h>

/* Prints a table of the planners; for a single planner also its stages, devices and pattern. */
CS_MUST_CHECK cs_status cs_comparison_print(const cs_comparison *comparison, FILE *out,
                                            cs_error *error);

/* Keys: docs/reference/json-output.md. NULL: no memory, or an error with a message. */
cJSON *cs_comparison_json(const cs_comparison *comparison, cs_error *error);

#endif
