/* The part of a report that sweeps need (sim/study/sweep/sweep-figures.h). A full report of
 * thousands of devices, with each device and its closed forms, takes longer to write than the
 * run. */
#ifndef CS_PRINT_REPORT_DIGEST_H
#define CS_PRINT_REPORT_DIGEST_H

#include "sim/run/simulate.h"

#include <cjson/cJSON.h>

/* Adds "devices", with one element that has the largest values over all devices (of
 * "capacity_bytes" the smallest), and "closed_forms": for each metric, the n-th forms of all
 * devices are merged into one, with the largest "closed_form" and the "difference" farthest from 0;
 * it "applies" if all of them apply. "simulated_as" is null or missing. Keys are as in the
 * report. Returns false if memory runs out. */
bool cs_report_digest(cJSON *root, const cs_scenario *scenario, const cs_simulation *simulation);

#endif
