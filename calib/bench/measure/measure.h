/* Measures the times of the pieces of work of a network (op-shape.h): the whole network is trained
 * again and again, so that every operator finds caches and memory as in a real step, and the time
 * between two kernels is taken as that of the later one.
 *
 * A warm-up ends when steps are no longer faster than those before, on a device with a memory of
 * its own when they are as fast to 1 % (clocks fall as it gets warm), after 2 s at the earliest.
 * Then steps are repeated until every piece that takes a noticeable share of the step has a median
 * with a confidence interval of `share` to each side, or the time is up: with fewer samples then,
 * the step under way, one to warm up and one that counts at least. Pieces of the same key are
 * averaged within a step: a sample is what one of them takes in one step.
 */
#ifndef CS_CALIB_MEASURE_H
#define CS_CALIB_MEASURE_H

#include "calib/bench/train/trainer.h"
#include "sim/base/progress.h"

typedef struct cs_measure_options {
    const cs_backend *backend;
    cs_bench *bench;
    const cs_net *net;
    const cs_net_chain *chain;
    uint32_t batch, n_states; /* samples at once; values per parameter of the optimizer */
    cs_precision precision;
    double share;      /* of the median, half the width of its interval: 0.02 */
    double time_limit; /* s, of which the warm-up takes half at most */
    uint32_t source;   /* of the entries */
    const cs_progress *progress;
} cs_measure_options;

typedef struct cs_measure_report {
    uint32_t steps, warm_up;    /* repetitions that count, and those before them */
    uint32_t pieces, unsettled; /* distinct keys; passes that the time limit left wider, or with too
                                   few samples for an interval */
    cs_cost_timing step;        /* s, of all pieces of a step together */
    int64_t peak_bytes;         /* of live memory */
    int64_t held_bytes;         /* that the pool took from the device */
    int64_t outside_bytes;      /* in use on the device besides; 0: not known */
} cs_measure_report;

/* Adds an entry per key to `costs`. What was measured before an error is added all the same. */
CS_MUST_CHECK cs_status cs_measure_compute(const cs_measure_options *options, cs_costs *costs,
                                           cs_measure_report *report, cs_error *error);

/* Adds the bandwidths of copies: "device_read_write" (bytes read and written per second), and for a
 * device with a memory of its own "host_to_device" and "device_to_host" with host memory that is
 * held, and, where there is another such device, "peer_to_peer", or "peer_by_host" where one does
 * not reach the other's memory. Buffers hold random numbers, and are too large for a GPU's caches.
 */
CS_MUST_CHECK cs_status cs_measure_copies(const cs_backend *backend, cs_bench *bench,
                                          uint32_t source, const cs_progress *progress,
                                          cs_costs *costs, cs_error *error);

#endif
