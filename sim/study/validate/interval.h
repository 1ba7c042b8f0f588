/* Prediction interval of the step time: nine of ten runs of a new source are within it.
 *
 * The interval is made from the errors of left-out sources (facts/left-out.json): no source
 * contributed to the fitted parameters that predict its own runs. Runs of one source are alike (one
 * machine, one way to measure), so a new source is exchangeable with the known sources, not with
 * single runs. tests/left-out-errors.py computes the model, by conformal prediction:
 *
 * - y = log(measured / predicted) has, for each value of each trait, an expected centre and an
 *   expected spread; both are sums of effects, shrunk to 0 as if one source with no effect were
 *   added for each value.
 * - spread = exp(sum of effects) sqrt(1 + sum over the traits of 1 / (n + 1)), n the sources with
 *   the trait's value: the interval is wider where few sources share it.
 * - The quantile 0.9 (K + 1) / K of |y - centre| / spread over all K sources, each with the same
 *   weight and with a model that does not know it, is the factor q (Dunn, Wasserman and Ramdas,
 *   Distribution-free prediction sets for two-layer hierarchical models, JASA 2022, section 3.1).
 *
 * The interval is predicted x exp(centre - q spread) to predicted x exp(centre + q spread). With
 * fewer than CS_INTERVAL_SOURCES sources the quantile does not exist, and there is no interval.
 */
#ifndef CS_VALIDATE_INTERVAL_H
#define CS_VALIDATE_INTERVAL_H

#include "sim/study/validate/point-likeness.h"
#include "sim/study/validate/predict.h"

enum { CS_INTERVAL_SOURCES = 9 };

typedef struct cs_interval {
    uint32_t n_sources, n_runs;  /* sources and runs that the model uses */
    bool matters[CS_N_TRAITS];   /* whether the model uses the trait and the scenario has it */
    uint32_t alike[CS_N_TRAITS]; /* number of sources with the scenario's value of the trait */
    /* limits of measured / predicted for nine of ten runs; NaN: unknown */
    double low, high;
    /* larger of the two |predicted / measured - 1| at the limits: a symmetric interval */
    double within;
} cs_interval;

/* Errors of left-out sources, and the model. */
typedef struct cs_left_out {
    cJSON *document;
    const cJSON *effects; /* {"trait": {"value": {"sources": n, "centre": x, "spread": x}}} */
    double centre, spread, factor; /* factor NaN: there are too few sources */
    uint32_t n_sources, n_runs;
    double by_run, by_source; /* coverage of each source by a model without this source */
} cs_left_out;

/* Reads a text in the format of facts/left-out.json; NULL: reads that file. CS_INVALID if the
 * format differs; CS_NO_MEMORY. cs_left_out_finish is allowed on a zeroed struct. */
CS_MUST_CHECK cs_status cs_left_out_read(const char *text, cs_left_out *left_out, cs_error *error);
void cs_left_out_finish(cs_left_out *left_out);

cs_interval cs_interval_find(const cs_left_out *left_out, cs_traits traits);

/* Use of a dataset. If parameters were fitted to its runs, its errors in `sim validate` are not
 * left-out errors; if the intervals use it, their coverage is not a left-out coverage. */
typedef enum cs_source_use {
    CS_SOURCE_NEW,    /* the file does not contain it */
    CS_SOURCE_KNOWN,  /* the file contains its errors; no parameter was fitted to it */
    CS_SOURCE_FITTED, /* parameters were fitted to it */
} cs_source_use;

cs_source_use cs_left_out_use(const cs_left_out *left_out, const char *dataset);

/* How often intervals contain the measured time. */
typedef struct cs_coverage {
    uint32_t n_runs, n_sources; /* number of runs with a measured time, and of their datasets */
    /* share of runs within their interval; mean of the datasets' shares. NaN: no runs */
    double by_run, by_source;
    double width; /* median width of the intervals, (high - low) / 2 */
} cs_coverage;

/* Computes the coverage of the runs of quality A and B whose datasets are CS_SOURCE_NEW.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_coverage_find(const cs_predictions *predictions,
                                         const cs_left_out *left_out, cs_coverage *coverage,
                                         cs_error *error);

#endif
