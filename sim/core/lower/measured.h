/* Measured times of whole collectives, which take the place of the computed ones where a collective
 * becomes one delay (fidelity analytic): alpha + beta * bytes by regime of sizes, for a collective,
 * a number of ranks and a level. Where they come from is no matter of this folder. */
#ifndef CS_LOWER_MEASURED_H
#define CS_LOWER_MEASURED_H

#include "sim/core/graph/graph.h"

typedef struct cs_measured_regime {
    int64_t from;       /* bytes that the regime begins with; 0 of the first */
    double alpha, beta; /* s, s per byte */
} cs_measured_regime;

typedef struct cs_measured_collective {
    cs_kind kind;
    bool network; /* ranks in several nodes, else all in one */
    uint32_t ranks;
    int64_t largest;    /* bytes that were measured; 0: not known */
    uint32_t n_regimes; /* >= 1, ascending in `from` */
    const cs_measured_regime *regimes;
} cs_measured_collective;

typedef struct cs_measured_collectives {
    uint32_t n;
    const cs_measured_collective *entries;
} cs_measured_collectives;

/* NULL when there is none; `measured` may be NULL. */
const cs_measured_collective *cs_measured_find(const cs_measured_collectives *measured,
                                               cs_kind kind, bool network, uint32_t ranks);

/* Of so many bytes, to the nearest picosecond; CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_measured_time(const cs_measured_collective *entry, int64_t bytes,
                                         cs_time *time, cs_error *error);

#endif
