/* Measuring messages and collectives between processes, and fitting alpha and beta to them. */
#ifndef CS_CALIB_MEASURE_NETWORK_H
#define CS_CALIB_MEASURE_NETWORK_H

#include "calib/bench/wire.h"
#include "sim/base/progress.h"

typedef struct cs_network_options {
    cs_wire *wire;                /* connected */
    uint32_t collectives;         /* bit 1 << cs_cost_collective of each that is measured */
    int64_t min_bytes, max_bytes; /* sizes double from the first to the second */
    double time_limit;            /* s per size of each collective, roughly */
    uint32_t source;
    const cs_progress *progress;
} cs_network_options;

/* All ranks call this; rank 0 adds the entries. A message is timed there and back and halved; a
 * collective from a barrier to the end of its last rank; where devices work behind the caller's back,
 * eight in a row and an eighth of it, so that the start of one hides behind the one before. Each size is repeated until its median has
 * an interval of 2 % to each side, at least 15 times, or the time is up; the first tenth, in which
 * buffers and connections are made, does not count. */
CS_MUST_CHECK cs_status cs_measure_network(const cs_network_options *options, cs_costs *costs,
                                           cs_error *error);

#endif
