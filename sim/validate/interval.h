/* How far a predicted step time may be from a measured one: an interval that nine of ten runs of a
 * source that nobody has seen are within.
 *
 * It comes from points/left-out.json: errors of predictions for which the fitted figures were fitted
 * to all other sources, or which no figure was fitted to at all. Errors of one source are alike (one
 * machine, one way to measure), so sources count, not runs: each source has the same weight, and
 * sources are what a new run is exchangeable with. The interval is the quantile 0.9 (K + 1) / K of the
 * errors of K sources (Dunn, Wasserman and Ramdas, Distribution-free prediction sets for two-layer
 * hierarchical models, JASA 2022, section 3.1: pooled distribution functions; the factor (K + 1) / K
 * counts the new source). Fewer than nine sources give no interval: 0.9 (K + 1) > K.
 */
#ifndef CS_VALIDATE_INTERVAL_H
#define CS_VALIDATE_INTERVAL_H

#include "sim/validate/point-likeness.h"

enum { CS_INTERVAL_SOURCES = 9 };

typedef struct cs_interval {
    uint32_t n_sources, n_runs; /* that it comes from */
    bool shared[CS_N_TRAITS];   /* traits of the scenario that all these runs share */
    double within; /* largest |predicted / measured - 1| of nine of ten; NaN: too few sources */
} cs_interval;

/* Of the sources whose runs share the required traits of a scenario; then, as long as at least CS_INTERVAL_SOURCES
 * remain, of those with runs that share the device, the precision, and so on. `errors` is a text as
 * points/left-out.json; NULL: that file. CS_INVALID: it has another form. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_interval_find(const cs_likeness *likeness, const char *errors,
                                         cs_interval *interval, cs_error *error);

#endif
