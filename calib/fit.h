/* Fits: from timings to medians with intervals, and to alpha and beta by size regime.
 *
 * Medians. The interval between two order statistics holds the median of the distribution with a
 * probability that does not depend on the distribution: that of the binomial of n tosses
 * (Hettmansperger, Statistical Inference Based on Ranks, 1984, section 1.8; Le Boudec, Performance
 * Evaluation of Computer and Communication Systems, 2010, theorem 2.1). The narrowest symmetric
 * pair of ranks with at least 95 % is taken; below 6 samples there is none, and the range of the
 * samples is given.
 *
 * Regimes. A message of m bytes takes alpha + beta m, with other alpha and beta for short than for
 * long messages (other protocols, other algorithms). Residuals are relative: every size counts the
 * same, and an error of 1 us matters at 8 bytes, not at 1 GiB. The deviation of a point is the
 * noise that all have, found from the residuals of short runs, together with what is known of this
 * point: the interval of its median, and r / sqrt(12) where it was rounded to steps of r. In a
 * regime alpha and beta >= 0 are found by weighted least squares, iterated with Huber's weights and
 * then Tukey's bisquare, so that outliers do not count (Holland and Welsch, Communications in
 * Statistics A6(9), 1977). Break points are found by dynamic programming over all divisions into up
 * to `most` runs of at least CS_FIT_RUN points (Bai and Perron, Econometrica 66(1), 1998), the loss
 * being squares in units of the noise, cut off where a point is an outlier; their number by the
 * criterion of Liu, Wu and Zidek, Statistica Sinica 7(2), 1997. What is between the last size of a
 * regime and the first of the next belongs to the former. O(n^3).
 *
 * An outlier between others is contradicted by sizes on both sides. The largest sizes are not: a
 * line through smaller ones would overrule the only timings that there are. So where all timings of
 * the largest sizes are outliers, fewer than CS_FIT_RUN, these are a regime of their own (of a
 * single size: in proportion to the bytes), in addition to the `most` others. Nothing confirms it:
 * its number of points shows that, and whoever prints the fit says so (cs_costs_end_text).
 *
 * A timing that is there twice, to the last digit, counts once: a log was read twice.
 *
 * Intervals are those of Student's t with Huber's covariance (Robust Statistics, 1981, section
 * 7.6), 95 % for each parameter alone, given the break points. Two points do not show how far they
 * are off: then there is no interval.
 */
#ifndef CS_CALIB_FIT_H
#define CS_CALIB_FIT_H

#include "calib/costs.h"

#include <stddef.h>

/* ---- medians ---- */

/* Sorts the samples and takes their median and its 95 % interval. n >= 1, all finite and >= 0. */
void cs_fit_median(double *samples, uint32_t n, cs_cost_timing *timing);

/* Ranks (from 0) of the two order statistics that bound the interval; false, with the first and the
 * last, where n is below CS_FIT_SAMPLES. */
bool cs_fit_median_ranks(uint32_t n, uint32_t *low, uint32_t *high);

/* The stopping rule of a measurement: there is an interval, and it is narrower than `share` of the
 * median to each side (0.02). */
bool cs_fit_is_settled(const cs_cost_timing *timing, double share);

/* ---- alpha and beta ---- */

enum {
    CS_FIT_SAMPLES = 6,     /* fewest for an interval of a median */
    CS_FIT_RUN = 4,         /* fewest points of a regime */
    CS_FIT_REGIMES_MAX = 4, /* most regimes, without one of the largest sizes alone */
    CS_FIT_POINTS_MAX = 1024,
};

typedef struct cs_fit {
    uint32_t n_regimes;
    cs_cost_regime regimes[CS_FIT_REGIMES_MAX + 1];
    double error; /* root mean square of the relative residuals, outliers left out */
} cs_fit;

/* Fits 1 to `most` regimes, and perhaps one to the largest sizes, to points (ascending in bytes,
 * equal ones allowed; seconds > 0; bytes >= 0), 2 <= n <= CS_FIT_POINTS_MAX. Errors: CS_INVALID
 * (too few different sizes, out of order), CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_fit_regimes(const cs_cost_point *points, uint32_t n, uint32_t most,
                                       cs_fit *fit, cs_error *error);

#endif
