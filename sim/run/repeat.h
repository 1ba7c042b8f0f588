/* Repeated runs: one scenario with several seeds, in threads, and the distributions of their
 * figures. Run i has the seed of the scenario plus i. The outcome does not depend on the number of
 * threads. */
#ifndef CS_RUN_REPEAT_H
#define CS_RUN_REPEAT_H

#include "sim/core/trace/h5.h"
#include "sim/run/simulate.h"

typedef struct cs_runs {
    uint32_t n; /* 0: there was only one run */
    uint64_t first_seed;
    uint32_t n_figures; /* cs_run_figure_main */
    double *values;     /* [figure][run]; NaN where a run was stopped */
    uint64_t *hashes;
} cs_runs;

enum { CS_N_QUANTILES = 7 };

/* Of n values: the mean, with the interval in which it is with 95 % confidence if the values are
 * normally distributed (Student's t), the sample's standard deviation, and quantiles, interpolated
 * between the values in order. */
typedef struct cs_summary {
    double mean, low, high, deviation;
    double quantiles[CS_N_QUANTILES]; /* in step with cs_summary_quantiles */
} cs_summary;

/* 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1 */
extern const double cs_summary_quantiles[CS_N_QUANTILES];

/* n >= 2 values; NaN all over where one of them is. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_summary_of(const double *values, uint32_t n, cs_summary *summary,
                                      cs_error *error);

/* Of main figure `f`, a value per run. */
const double *cs_runs_values(const cs_runs *runs, uint32_t f);

/* Zeroed runs can be finished. */
void cs_runs_finish(cs_runs *runs);

/* Runs 1 to n - 1 in `jobs` threads; run 0 is `first`. */
CS_MUST_CHECK cs_status cs_runs_make(const cs_scenario *scenario,
                                     const cs_simulation_options *options,
                                     const cs_simulation *first, uint32_t n, uint32_t jobs,
                                     cs_runs *runs, cs_error *error);

/* True when all runs have the same hash: nothing in the scenario is random. */
bool cs_runs_all_equal(const cs_runs *runs);

/* Adds the table /runs to a results file; without runs it does nothing. */
CS_MUST_CHECK cs_status cs_runs_store(cs_h5_file *file, const cs_runs *runs, cs_error *error);

#endif
