/* Fits: from timings to medians with intervals, and to alpha and beta by size regime.
 *
 * Medians. The interval between two order statistics contains the median of any distribution with
 * the same probability: a binomial one, for n tosses (Hettmansperger, Statistical Inference Based
 * on Ranks, 1984, section 1.8; Le Boudec, Performance Evaluation of Computer and Communication
 * Systems, 2010, theorem 2.1). The narrowest symmetric pair of ranks with at least 95 % is used;
 * with fewer than 6 samples there is no such pair, and the range of the samples is given.
 *
 * Regimes. A message of m bytes takes alpha + beta m, with different alpha and beta for short and
 * long messages (other protocols, other algorithms). Residuals are relative: every size has the
 * same weight, and an error of 1 us matters at 8 bytes, not at 1 GiB. The deviation of a point
 * combines the noise common to all points, estimated from the residuals of short runs, with the
 * known deviation of this point: the interval of its median, and r / sqrt(12) if it was rounded to
 * steps of r. Within a regime, alpha and beta >= 0 are found by weighted least squares, iterated
 * with Huber's weights and then Tukey's bisquare, so that outliers do not count (Holland and
 * Welsch, Communications in Statistics A6(9), 1977). Break points are found by dynamic programming
 * over all partitions into up to `most` runs of at least CS_FIT_RUN points (Bai and Perron,
 * Econometrica 66(1), 1998). The loss is the squared residual in units of the noise, truncated for
 * outliers; the number of regimes follows the criterion of Liu, Wu and Zidek, Statistica Sinica
 * 7(2), 1997. Sizes between the last size of a regime and the first of the next belong to the
 * former. O(n^3).
 *
 * An outlier in the middle is contradicted by sizes on both sides; the largest sizes are not: a
 * line through smaller sizes would overrule the only timings there are. So if all timings of the
 * largest sizes are outliers, and there are fewer than CS_FIT_RUN, they become a separate regime
 * (if it is a single size: proportional to the bytes), in addition to the `most` others. Nothing
 * confirms it: its number of points shows that, and printed fits warn of it (cs_costs_end_text).
 *
 * A timing that occurs twice, to the last digit, counts once: the log was read twice.
 *
 * Intervals are Student's t with Huber's covariance (Robust Statistics, 1981, section 7.6), 95 %
 * for each parameter alone, given the break points. Two points do not show their errors, so they
 * get no interval.
 */
#ifndef CS_CALIB_FIT_H
#define CS_CALIB_FIT_H

#include "calib/costs.h"

#include <stddef.h>

/* ---- medians ---- */

/* Sorts the samples and computes their median and its 95 % interval. n >= 1, all finite and >=
 * 0. */
void cs_fit_median(double *samples, uint32_t n, cs_cost_timing *timing);

/* Ranks (from 0) of the two order statistics that bound the interval. Returns false, with the first
 * and last rank, if n < CS_FIT_SAMPLES. */
bool cs_fit_median_ranks(uint32_t n, uint32_t *low, uint32_t *high);

/* Stopping rule of a measurement: whether there is an interval and each side is narrower than
 * `share` of the median (0.02). */
bool cs_fit_is_settled(const cs_cost_timing *timing, double share);

/* ---- alpha and beta ---- */

enum {
    CS_FIT_SAMPLES = 6,     /* fewest samples for an interval of a median */
    CS_FIT_RUN = 4,         /* fewest points of a regime */
    CS_FIT_REGIMES_MAX = 4, /* most regimes, not counting one of only the largest sizes */
    CS_FIT_POINTS_MAX = 1024,
};

typedef struct cs_fit {
    uint32_t n_regimes;
    cs_cost_regime regimes[CS_FIT_REGIMES_MAX + 1];
    double error; /* root mean square of the relative residuals, without outliers */
} cs_fit;

/* Fits 1 to `most` regimes, and possibly one for the largest sizes, to points (ascending in bytes,
 * duplicates allowed; seconds > 0; bytes >= 0), 2 <= n <= CS_FIT_POINTS_MAX. CS_INVALID: too few
 * different sizes, or not in order; CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_fit_regimes(const cs_cost_point *points, uint32_t n, uint32_t most,
                                       cs_fit *fit, cs_error *error);

#endif
