/* What `sim plan --planner` prints. */
#ifndef CS_CLI_PLANNERS_REPORT_H
#define CS_CLI_PLANNERS_REPORT_H

#include "sim/run/compare-planners.h"

#include <stdio.h>

/* A table of the planners; of a single one its stages, devices and pattern too. */
CS_MUST_CHECK cs_status cs_comparison_print(const cs_comparison *comparison, FILE *out,
                                            cs_error *error);

/* Keys: docs/reference/json-output.md. NULL when memory runs out, or with a message. */
cJSON *cs_comparison_json(const cs_comparison *comparison, cs_error *error);

#endif
