/* Where the figures of a scenario's runtime come from: for summaries. All write nothing of a
 * scenario without a runtime. */
#ifndef CS_PRINT_ORIGINS_REPORT_H
#define CS_PRINT_ORIGINS_REPORT_H

#include "sim/run/scenario/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* A line for those given, one for those measured, one for those assumed. */
void cs_origins_report_print(const cs_origins *origins, FILE *out);

/* A line for each member, with its value and its source. */
void cs_origins_report_table(const cs_origins *origins, FILE *out);

/* Adds "runtime" (cs_origins_json). False when memory runs out. */
bool cs_origins_report_json(const cs_origins *origins, cJSON *root);

#endif
