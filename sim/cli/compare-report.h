/* What `sim compare` prints: a table for people, or one JSON object (docs/reference/scenario.md).
 */
#ifndef CS_CLI_COMPARE_REPORT_H
#define CS_CLI_COMPARE_REPORT_H

#include "sim/base/json.h"
#include "sim/study/compare/compare-runs.h"

#include <stdio.h>

/* Pairs of files of one scenario are rounds of one measurement: figures are medians over them. */
typedef struct cs_compared_scenario {
    const char *name;
    uint32_t n_rounds;
    double predicted, measured; /* s, of an iteration */
    double error, lowest_error, highest_error;
    double lowest, highest; /* s, of the measured iterations */
    double memory_error;    /* of the device, in the round, where it is largest, with its sign */
} cs_compared_scenario;

/* In the order in which the scenarios first appear; *n of them, allocated. */
CS_MUST_CHECK cs_status cs_compare_summarise(const cs_compared_run *pairs, uint32_t n_pairs,
                                             cs_compared_scenario **scenarios, uint32_t *n,
                                             cs_error *error);

/* All figures of one pair. */
void cs_compare_print(const cs_compared_run *pair, FILE *out);

/* How the scenarios of each pair differ, of those where they do. */
void cs_compare_print_differences(const cs_compared_run *pairs, uint32_t n_pairs, FILE *out);

/* A line per scenario, and medians over all of them. */
void cs_compare_print_summary(const cs_compared_scenario *scenarios, uint32_t n, FILE *out);

/* {"pairs": [...], "scenarios": [...], ...}, of two files side by side only the first; NULL when
 * memory runs out. */
cJSON *cs_compare_json(const cs_compared_run *pairs, uint32_t n_pairs,
                       const cs_compared_scenario *scenarios, uint32_t n);

/* Of the absolute values; NaN counts as infinite. `values` are sorted. */
double cs_compare_median(double *values, uint32_t n);

#endif
