/* Summarises a scenario's mesh, and how much of it is simulated. */
#ifndef CS_PRINT_MESH_REPORT_H
#define CS_PRINT_MESH_REPORT_H

#include "sim/run/scenario/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Prints one or two lines. Without a mesh, only says how many devices are simulated, if not all. */
void cs_mesh_report_print(const cs_scenario *scenario, FILE *out);

/* Adds the object "mesh" if the scenario has one. Returns false if memory runs out. */
bool cs_mesh_report_json(const cs_scenario *scenario, cJSON *root);

#endif
