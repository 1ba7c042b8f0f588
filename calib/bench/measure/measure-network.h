/* Measures messages and collectives between processes, and fits alpha and beta to them.
 *
 * Groups. Messages are measured between two processes on one node and between two on different
 * nodes; collectives also between all processes of a node, and between all processes. Groups that
 * do not exist are omitted; of equivalent groups (the same number of ranks on the same level), only
 * one is measured.
 *
 * Samples. For `send`, a message goes there and back, and half the time counts. `stream` sends a
 * window of messages at the same time, waits for an answer, and divides by their number, as osu_bw
 * does. A collective is timed from a barrier until its last rank ends. If devices work
 * asynchronously, up to eight collectives are started together, so that each starts while the
 * previous one runs. Long messages use smaller windows and fewer collectives, down to one.
 *
 * Caches. Each send, sum or receive uses different memory, untouched while the process went through
 * twice the bytes of the last-level cache of the host or device. So the costs include reading from
 * memory.
 *
 * Ends. Each size is repeated at least 15 times, until its median has an interval of 2 % on each
 * side, or until its time limit; at least two samples are taken. The first tenth, which creates
 * buffers and connections, does not count.
 */
#ifndef CS_CALIB_MEASURE_NETWORK_H
#define CS_CALIB_MEASURE_NETWORK_H

#include "calib/bench/wire/wire.h"
#include "sim/base/progress.h"

typedef struct cs_network_options {
    cs_wire *wire;        /* connects all processes */
    uint32_t collectives; /* bit 1 << cs_cost_collective of each one to measure */
    /* Sizes double from min_bytes to max_bytes, rounded up to one number per rank; max_bytes 0: 1
     * GiB, or as much as fits half the free memory of the fullest node. */
    int64_t min_bytes, max_bytes;
    double time_limit; /* s per size, for each collective and group */
    uint32_t source;
    const cs_progress *progress;
} cs_network_options;

enum { CS_NETWORK_PERCENT = 2 }; /* required half width of an interval, in percent */

/* All ranks call this function and add the same entries. CS_USAGE for fewer than two sizes;
 * CS_NO_MEMORY if a given max_bytes needs more memory than there is. */
CS_MUST_CHECK cs_status cs_measure_network(const cs_network_options *options, cs_costs *costs,
                                           cs_error *error);

#endif
