/* Measured times of whole collectives. They replace computed times if a collective becomes one
 * delay (fidelity analytic). A time is alpha + beta * bytes, by size regime, for a collective, a
 * number of ranks and a level. */
#ifndef CS_LOWER_MEASURED_H
#define CS_LOWER_MEASURED_H

#include "sim/core/graph/graph.h"

typedef struct cs_measured_regime {
    int64_t from;       /* first size of the regime, bytes; 0 in the first regime */
    double alpha, beta; /* s, s per byte */
} cs_measured_regime;

typedef struct cs_measured_collective {
    cs_kind kind;
    bool network; /* whether ranks are in several nodes */
    uint32_t ranks;
    int64_t largest;    /* largest measured size, bytes; 0: unknown */
    uint32_t n_regimes; /* >= 1, ascending in `from` */
    const cs_measured_regime *regimes;
} cs_measured_collective;

typedef struct cs_measured_collectives {
    uint32_t n;
    const cs_measured_collective *entries;
} cs_measured_collectives;

/* Returns NULL if there is no measurement; `measured` may be NULL. */
const cs_measured_collective *cs_measured_find(const cs_measured_collectives *measured,
                                               cs_kind kind, bool network, uint32_t ranks);

/* Time for `bytes`, to the nearest picosecond; CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_measured_time(const cs_measured_collective *entry, int64_t bytes,
                                         cs_time *time, cs_error *error);

#endif
