/* The mesh of a scenario, and how much of it is simulated: for summaries. */
#ifndef CS_PRINT_MESH_REPORT_H
#define CS_PRINT_MESH_REPORT_H

#include "sim/run/scenario/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* One line, or two; of a scenario without a mesh only how many devices are simulated, where that
 * is not all. */
void cs_mesh_report_print(const cs_scenario *scenario, FILE *out);

/* Adds "mesh", an object, to those with the section. False when memory runs out. */
bool cs_mesh_report_json(const cs_scenario *scenario, cJSON *root);

#endif
