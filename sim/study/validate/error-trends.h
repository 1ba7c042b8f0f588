/* How errors change along one axis: the mean change of log(predicted / measured) for each doubling
 * of a size, such as the tensor-parallel ranks, among runs that are equal in everything else. If
 * the simulator models the size correctly, a trend is 0 within its standard error.
 *
 * Runs of a dataset form a group if everything that their points state is equal, except the size
 * and the values that compensate for it:
 *
 *     axis             | values that may also differ
 *     tensor ranks     | data-parallel ranks, micro-batches, sequence parallelism
 *     pipeline ranks   | data-parallel ranks, micro-batches
 *     micro-batch      | their number
 *     GPUs             | data-parallel ranks and the global batch
 *
 * The trend is the slope of a least-squares line with a separate intercept per group: with x the
 * base-2 logarithm of the size, y = log(predicted / measured), and both minus their group's mean,
 * slope = sum x y / sum x^2. Its standard error is sqrt(sum (y - slope x)^2 / (runs - groups - 1) /
 * sum x^2). Groups with only one size are left out, and so are trends from fewer than
 * CS_TREND_LEAST runs. Runs of quality C are left out.
 */
#ifndef CS_VALIDATE_ERROR_TRENDS_H
#define CS_VALIDATE_ERROR_TRENDS_H

#include "sim/study/validate/predict.h"

enum { CS_TREND_LEAST = 8 };

typedef enum cs_trend_axis {
    CS_TREND_TENSOR,
    CS_TREND_PIPELINE,
    CS_TREND_MICRO_BATCH,
    CS_TREND_GPUS,
    CS_N_TRENDS
} cs_trend_axis;

/* Names of the axes: "tensor ranks", "pipeline ranks", "micro-batch", "GPUs". */
extern const char *const cs_trend_names[CS_N_TRENDS];

typedef struct cs_trend {
    cs_trend_axis axis;
    const char *dataset; /* name of the dataset; "": all datasets, whose groups stay separate */
    uint32_t n_groups, n_runs;
    double slope; /* change of log(predicted / measured) per doubling */
    double standard_error;
} cs_trend;

typedef struct cs_error_trends {
    uint32_t n, capacity;
    cs_trend *trends; /* sorted by axis; for each axis all datasets together, then each dataset */
} cs_error_trends;

/* Allowed on a zeroed struct. */
void cs_error_trends_finish(cs_error_trends *trends);

/* Computes the trends. The points must outlive the result. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_error_trends_make(const cs_predictions *predictions,
                                             cs_error_trends *trends, cs_error *error);

#endif
