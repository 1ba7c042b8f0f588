/* Measures the times of the pieces of a network (op-shape.h). The whole network is trained
 * repeatedly, so that the caches and memory of every operator are as in a real step. The time
 * between two kernels counts as the time of the later one.
 *
 * The warm-up ends when steps no longer get faster; on a device with its own memory, when
 * consecutive steps agree within 1 % (clocks fall as the device heats up); at the earliest after 2
 * s. Then steps are repeated until the median of every significant piece has a confidence interval
 * of `share` on each side. After the time limit, the current step is the last one; there are at
 * least one warm-up step and one step that counts. Pieces with the same key are averaged within a
 * step: one step gives one sample per key.
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
    uint32_t batch, n_states; /* samples per step; optimizer states per parameter */
    cs_precision precision;
    double share;      /* half width of an interval relative to its median, such as 0.02 */
    double time_limit; /* s; the warm-up takes at most half */
    uint32_t source;   /* source of the entries */
    const cs_progress *progress;
} cs_measure_options;

typedef struct cs_measure_report {
    uint32_t steps, warm_up; /* repetitions that count; repetitions of the warm-up */
    /* distinct keys; passes with too wide an interval, or too few samples for one */
    uint32_t pieces, unsettled;
    cs_cost_timing step;   /* s, sum of all pieces of a step */
    int64_t peak_bytes;    /* peak of live memory */
    int64_t held_bytes;    /* bytes that the pool took from the device */
    int64_t outside_bytes; /* bytes that others use on the device; 0: unknown */
} cs_measure_report;

/* Adds one entry per key to `costs`, including results before a failure. */
CS_MUST_CHECK cs_status cs_measure_compute(const cs_measure_options *options, cs_costs *costs,
                                           cs_measure_report *report, cs_error *error);

/* Adds the bandwidths of copies: "device_read_write" (bytes read plus written per second). A device
 * with its own memory also has "host_to_device" and "device_to_host", measured with pinned host
 * memory. If there is a second such device, it has "peer_to_peer", or "peer_by_host" if neither
 * reaches the other's memory. Buffers hold random numbers and exceed the caches of GPUs.
 */
CS_MUST_CHECK cs_status cs_measure_copies(const cs_backend *backend, cs_bench *bench,
                                          uint32_t source, const cs_progress *progress,
                                          cs_costs *costs, cs_error *error);

#endif
