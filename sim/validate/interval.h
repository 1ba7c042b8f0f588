/* Prediction interval of the step time: nine of ten runs of a new source are within it.
 *
 * The errors are in facts/left-out.json. No source contributed to the fitted figures that predict
 * its own runs. Runs of one source have similar errors (one machine, one way to measure), so a new
 * source is exchangeable with the known sources, not with single runs, and each source has the same
 * weight. The interval is the quantile 0.9 (K + 1) / K of the errors of K sources (Dunn, Wasserman
 * and Ramdas, Distribution-free prediction sets for two-layer hierarchical models, JASA 2022,
 * section 3.1: pooled distribution functions; the factor (K + 1) / K counts the new source). Fewer
 * than nine sources give no interval: 0.9 (K + 1) > K.
 */
#ifndef CS_VALIDATE_INTERVAL_H
#define CS_VALIDATE_INTERVAL_H

#include "sim/validate/point-likeness.h"

enum {
    CS_INTERVAL_SOURCES = 9, /* fewer give no interval */
    CS_INTERVAL_ALIKE = 14   /* that have to share a trait for it to count */
};

typedef struct cs_interval {
    uint32_t n_sources, n_runs; /* sources and runs used for the interval */
    bool shared[CS_N_TRAITS];   /* traits of the scenario that all these runs share */
    double within; /* |predicted / measured - 1| of nine of ten runs; NaN: too few sources */
} cs_interval;

/* Uses the sources with runs whose times are estimated, or given, as the scenario's are. Then asks
 * for further traits (the network, the device, the precision, ...), each only if at least
 * CS_INTERVAL_ALIKE have runs that share it too: of fewer, the interval would be close to their
 * largest error. Predicted with its own source left out, a run of a source is within in 93 % of
 * cases (mean over 27 sources; with 9 or 20 in place of 14, 96 and 90 %).
 * `errors` is a text like facts/left-out.json; NULL: that file. CS_INVALID: it has another form.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_interval_find(const cs_likeness *likeness, const char *errors,
                                         cs_interval *interval, cs_error *error);

#endif
