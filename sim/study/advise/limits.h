/* How a plan spends its time, and what limits it.
 *
 * The limits are pipeline bubbles, and the limits in table 6 of Kahira et al., HPDC 2021, that
 * concern training. All are measured in the plan's own simulation, as means over its devices,
 * except two that need another run: congestion is the additional time of the step compared with
 * links that are not shared; redundancy is the additional computing of all devices together
 * compared with one device that has the whole model and the same micro-batches, because work is
 * done twice or less efficiently.
 */
#ifndef CS_ADVISE_LIMITS_H
#define CS_ADVISE_LIMITS_H

#include "sim/run/simulate.h"

#define CS_LIMIT_MAP(X)                                                                            \
    X(GRADIENTS, "gradient exchange")   /* exposed: sums of gradients, gathers of weights */       \
    X(LAYERS, "layer-wise collectives") /* exposed: over tensor, context and experts */            \
    X(HALO, "halo")                     /* exposed: exchanges over space */                        \
    X(STAGES, "stage messages")         /* exposed: between stages */                              \
    X(CONGESTION, "congestion")                                                                    \
    X(REDUNDANCY, "redundancy")                                                                    \
    X(UPDATE, "weight update")                                                                     \
    X(IMBALANCE, "imbalance") /* computing of the busiest device, minus the mean */                \
    X(BUBBLE, "bubbles")      /* waiting for other devices' computing, except imbalance */

typedef enum cs_limit {
#define CS_LIMIT_ENUM(name, text) CS_LIMIT_OF_##name,
    CS_LIMIT_MAP(CS_LIMIT_ENUM)
#undef CS_LIMIT_ENUM
        CS_N_LIMITS
} cs_limit;

extern const char *const cs_limit_names[]; /* names of the limits, NULL-terminated */

typedef struct cs_limits {
    /* seconds of the step per limit; limits overlap, so they do not add up to it */
    double seconds[CS_N_LIMITS];
    double computing; /* forward and backward, mean over devices, s */
    double exposed;   /* exposed communication, s */
    double waiting;   /* bubbles, including imbalance, s */
    double update;
    cs_limit first; /* the largest limit */
    /* axis that cannot grow any more: "heads", "layers", "samples"; NULL: all could */
    const char *axis;
    int64_t at_peak[CS_N_CATEGORIES];       /* bytes per category on the fullest device */
    double throughput, tokens, utilisation; /* samples/s; tokens/s and a fraction, or NaN */
} cs_limits;

/* Finds the limits of a simulated plan. `undivided` is the computing time of the whole mini-batch
 * on one device with the whole model, in s; NaN: unknown. `alone` is the time of the step in s if
 * no links are shared. */
void cs_limits_find(const cs_scenario *scenario, const cs_simulation *simulation, double undivided,
                    double alone, cs_limits *limits);

#endif
