/* Summarises where the settings of a scenario's runtime come from. Nothing is written without a
 * runtime. */
#ifndef CS_PRINT_ORIGINS_REPORT_H
#define CS_PRINT_ORIGINS_REPORT_H

#include "sim/run/scenario/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Prints one line each for given, measured and assumed settings. */
void cs_origins_report_print(const cs_origins *origins, FILE *out);

/* Prints one line per setting, with value and source. */
void cs_origins_report_table(const cs_origins *origins, FILE *out);

/* Adds "runtime" (cs_origins_json). Returns false if memory runs out. */
bool cs_origins_report_json(const cs_origins *origins, cJSON *root);

#endif
