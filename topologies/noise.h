/* Noise: random disturbances of a platform that differ between runs.
 *
 * A run has a seed; every use below draws from its own stream (sim/base/random.h), in an order that
 * nothing else affects. So two runs with the same seed are identical, and a run without noise is
 * the same as if noise did not exist.
 *
 *   jitter        each link loses a share of its bandwidth, for the whole run
 *   slow devices  each device takes 1 + x times as long for all its computations
 *   slow tasks    each computation takes 1 + x times as long
 *   traffic       messages of other jobs: each source is silent for an exponentially distributed
 *                 time (Poisson arrivals while it is silent), sends a message, is silent again, ...
 *
 * Shares and x are drawn from a spread. With probability (1 - probability) the value is 0;
 * otherwise, with mean m and standard deviation d, it is
 *   constant     m
 *   uniform      between 0 and 2 m
 *   exponential  (the shifted exponential model of stragglers: Lee et al., IEEE Trans. Inf. Theory
 *                64(3), 2018, section III)
 *   lognormal    sigma^2 = ln(1 + d^2 / m^2), mu = ln m - sigma^2 / 2
 *   beta         a = m k, b = (1 - m) k, k = m (1 - m) / d^2 - 1
 * A share is at most CS_NOISE_MOST_SHARE, so every link keeps some bandwidth.
 */
#ifndef CS_TOPOLOGIES_NOISE_H
#define CS_TOPOLOGIES_NOISE_H

#include "sim/base/field.h"
#include "topologies/platform.h"

#define CS_NOISE_MOST_SHARE 0.999

typedef enum cs_spread_kind {
    CS_SPREAD_CONSTANT,
    CS_SPREAD_UNIFORM,
    CS_SPREAD_EXPONENTIAL,
    CS_SPREAD_LOGNORMAL,
    CS_SPREAD_BETA,
} cs_spread_kind;

/* Zeroed: always 0 */
typedef struct cs_spread {
    uint32_t kind; /* cs_spread_kind */
    double mean, deviation, probability;
} cs_spread;

typedef struct cs_pair {
    uint32_t source, target; /* devices */
} cs_pair;

/* Zeroed: no noise */
typedef struct cs_noise {
    cs_spread jitter, slow_devices, slow_tasks;
    uint32_t n_sources; /* number of traffic sources */
    cs_pair *pairs;     /* per source; NULL: any two devices, drawn in each run */
    int64_t bytes;      /* size of a traffic message */
    cs_time gap;        /* mean silence of a source; 0: none */
} cs_noise;

/* For scenarios and their documentation. */
extern const cs_field cs_noise_spread_fields[]; /* fields of cs_spread */

/* Returns CS_INVALID at `place` unless the spread gives shares (< 1) or, if not `shares`, values >=
 * 0. */
CS_MUST_CHECK cs_status cs_spread_check(const cs_spread *spread, bool shares,
                                        const cs_json_place *place, cs_error *error);

bool cs_noise_is_on(const cs_noise *noise);

/* Returns the platform as it is in the run with this seed. It has its own devices and links and
 * shares everything else with `platform`, which must outlive it. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_noise_platform(const cs_noise *noise, const cs_platform *platform,
                                          uint64_t seed, cs_platform *disturbed, cs_error *error);

/* Returns the slowdown factor (>= 1) of each of n tasks; the caller frees the array. NULL: no
 * task is slow. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_noise_tasks(const cs_noise *noise, uint64_t seed, uint32_t n,
                                       double **factors, cs_error *error);

/* Returns the source and target of each traffic source in the run; the caller frees them. NULL: no
 * traffic. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_noise_pairs(const cs_noise *noise, const cs_platform *platform,
                                       uint64_t seed, cs_pair **pairs, cs_error *error);

#endif
