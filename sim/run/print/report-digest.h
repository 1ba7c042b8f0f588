/* Of a report what the figures of a sweep are made of (sim/study/sweep/sweep-figures.h): what is said of
 * each device and of each closed form over thousands of devices takes longer to write than the
 * run. */
#ifndef CS_PRINT_REPORT_DIGEST_H
#define CS_PRINT_REPORT_DIGEST_H

#include "sim/run/simulate.h"

#include <cjson/cJSON.h>

/* Adds "devices", of one element, which has the largest values of all (of "capacity_bytes" the
 * smallest), and "closed_forms": of those about one figure, the n-th that is stated for each device
 * becomes one, with the largest "closed_form" and the "difference" that is farthest from 0; it
 * "applies" where all do. "simulated_as" is null, or left out. Keys as in the
 * report. False when memory runs out. */
bool cs_report_digest(cJSON *root, const cs_scenario *scenario, const cs_simulation *simulation);

#endif
