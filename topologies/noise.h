/* Noise: what disturbs a platform in a run, and differs from run to run.
 *
 * A run is made from a seed; every use below draws from a stream of its own (sim/base/random.h), in
 * an order that nothing else has an influence on. So two runs with one seed are the same, and a run
 * without noise is what it was before there was any.
 *
 *   jitter        each link has lost a share of its bandwidth, for the whole run
 *   slow devices  each device takes 1 + x times as long for all that it computes in the run
 *   slow tasks    each computation takes 1 + x times as long
 *   traffic       messages of others: each source is silent for an exponentially distributed time
 *                 (Poisson arrivals while it is silent), sends a message, is silent again, ...
 *
 * Shares and x come from a spread. With (1 - probability) a value is 0; else it is, with mean m and
 * standard deviation d,
 *   constant     m
 *   uniform      between 0 and 2 m
 *   exponential  (the shifted exponential model of stragglers: Lee et al., IEEE Trans. Inf. Theory
 *                64(3), 2018, section III)
 *   lognormal    sigma^2 = ln(1 + d^2 / m^2), mu = ln m - sigma^2 / 2
 *   beta         a = m k, b = (1 - m) k, k = m (1 - m) / d^2 - 1
 * A share is CS_NOISE_MOST_SHARE at most, so that every link still passes something on.
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

/* Zeroed: always 0. */
typedef struct cs_spread {
    uint32_t kind; /* cs_spread_kind */
    double mean, deviation, probability;
} cs_spread;

typedef struct cs_pair {
    uint32_t source, target; /* devices */
} cs_pair;

/* Zeroed: no noise. */
typedef struct cs_noise {
    cs_spread jitter, slow_devices, slow_tasks;
    uint32_t n_sources; /* of traffic */
    cs_pair *pairs;     /* of each source; NULL: any two devices, drawn in each run */
    int64_t bytes;      /* of a message of theirs */
    cs_time gap;        /* mean silence of a source; 0: none */
} cs_noise;

/* For scenarios and their documentation. */
extern const cs_field cs_noise_spread_fields[]; /* of cs_spread */

/* CS_INVALID at `place` unless the spread gives shares, that is less than 1; or values >= 0. */
CS_MUST_CHECK cs_status cs_spread_check(const cs_spread *spread, bool shares,
                                        const cs_json_place *place, cs_error *error);

bool cs_noise_is_on(const cs_noise *noise);

/* The platform as it is in the run with that seed. It has devices and links of its own and all else
 * in common with `platform`, which must live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_noise_platform(const cs_noise *noise, const cs_platform *platform,
                                          uint64_t seed, cs_platform *disturbed, cs_error *error);

/* How many times as long each of n tasks takes, 1 or more; the caller frees them. NULL when no task
 * is slow. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_noise_tasks(const cs_noise *noise, uint64_t seed, uint32_t n,
                                       double **factors, cs_error *error);

/* The ends of each source of traffic in the run; the caller frees them. NULL when there is none.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_noise_pairs(const cs_noise *noise, const cs_platform *platform,
                                       uint64_t seed, cs_pair **pairs, cs_error *error);

#endif
