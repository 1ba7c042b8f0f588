/* Output of `sim compare`: a table for users, or one JSON object (docs/reference/scenario.md). */
#ifndef CS_CLI_COMPARE_REPORT_H
#define CS_CLI_COMPARE_REPORT_H

#include "sim/base/json.h"
#include "sim/study/compare/compare-runs.h"

#include <stdio.h>

/* Pairs of files of one scenario are rounds of one measurement: values are medians over them. */
typedef struct cs_compared_scenario {
    const char *name;
    uint32_t n_rounds;
    double predicted, measured; /* iteration time, s */
    double error, lowest_error, highest_error;
    double lowest, highest; /* range of the measured iteration times, s */
    double memory_error;    /* largest error of a device in a round, with its sign */
} cs_compared_scenario;

/* Summarises the pairs by scenario, in order of first appearance, into *n allocated rows. */
CS_MUST_CHECK cs_status cs_compare_summarise(const cs_compared_run *pairs, uint32_t n_pairs,
                                             cs_compared_scenario **scenarios, uint32_t *n,
                                             cs_error *error);

/* Prints all metrics of one pair. */
void cs_compare_print(const cs_compared_run *pair, FILE *out);

/* Prints the differences between the scenarios of each pair, if any. */
void cs_compare_print_differences(const cs_compared_run *pairs, uint32_t n_pairs, FILE *out);

/* Prints a line per scenario, and medians over all of them. */
void cs_compare_print_summary(const cs_compared_scenario *scenarios, uint32_t n, FILE *out);

/* Returns {"pairs": [...], "scenarios": [...], ...}, for side-by-side files only the first; NULL if
 * memory runs out. */
cJSON *cs_compare_json(const cs_compared_run *pairs, uint32_t n_pairs,
                       const cs_compared_scenario *scenarios, uint32_t n);

/* Median of the absolute values; NaN counts as infinite. Sorts `values`. */
double cs_compare_median(double *values, uint32_t n);

#endif
