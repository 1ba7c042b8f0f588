/* Measuring messages and collectives between processes, and fitting alpha and beta to them.
 *
 * Groups. Messages are measured between two processes of a node and between two of different nodes;
 * collectives between these, all processes of a node, and all there are. What is not there is left
 * out, and groups that are alike (as many ranks on the same level) are measured once.
 *
 * Samples. A message is timed there and back and halved; `stream` is a window of messages that are
 * all under way at once, and an answer, over their number, as osu_bw has it; a collective is timed
 * from a barrier to the end of its last rank. Where devices work behind the caller's back, up to
 * eight are started in a row, so that the start of one hides behind the one before. Windows and
 * rows are shorter for long messages, down to one.
 *
 * Caches. Whatever is sent, summed or received is at another place every time, which has not been
 * touched since the process went through twice as many bytes as the last cache holds, of the host
 * or of the device: the costs are those of data that comes from memory.
 *
 * Ends. Each size is repeated until its median has an interval of 2 % to each side, at least 15
 * times, or until its time is up on the clock; two samples are taken in any case. The first tenth,
 * in which buffers and connections are made, does not count.
 */
#ifndef CS_CALIB_MEASURE_NETWORK_H
#define CS_CALIB_MEASURE_NETWORK_H

#include "calib/bench/wire/wire.h"
#include "sim/base/progress.h"

typedef struct cs_network_options {
    cs_wire *wire;        /* of all processes, connected */
    uint32_t collectives; /* bit 1 << cs_cost_collective of each that is measured */
    /* Sizes double from the first to the second, rounded up to a number for each rank; max_bytes 0:
     * to 1 GiB, or as far as half the free memory of the fullest node goes. */
    int64_t min_bytes, max_bytes;
    double time_limit; /* s per size of each collective and group */
    uint32_t source;
    const cs_progress *progress;
} cs_network_options;

enum { CS_NETWORK_PERCENT = 2 }; /* half the width of a settled interval, in percent */

/* All ranks call this, and all add the same entries. CS_USAGE where there are fewer than two sizes,
 * CS_NO_MEMORY where a given max_bytes needs more than there is. */
CS_MUST_CHECK cs_status cs_measure_network(const cs_network_options *options, cs_costs *costs,
                                           cs_error *error);

#endif
