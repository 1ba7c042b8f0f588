/* What `sim sweep` prints. */
#ifndef CS_CLI_SWEEP_REPORT_H
#define CS_CLI_SWEEP_REPORT_H

#include "sim/sweep/sweep.h"

#include <stdio.h>

/* For people: the range of every figure and where its ends are, and where closed forms hold. */
void cs_sweep_report_print(const cs_space *space, const cs_sweep_results *results, FILE *out);

/* {"points": [{"set": {...}, "result": {...}} or {"set": {...}, "error": "..."}, ...], ...} */
CS_MUST_CHECK cs_status cs_sweep_report_json(const cs_space *space, const cs_journal *journal,
                                             const cs_sweep_results *results, FILE *out,
                                             cs_error *error);

#endif
