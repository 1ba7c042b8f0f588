/* Where the time of a plan goes, and what limits it.
 *
 * The limits are those of Kahira et al., HPDC 2021, table 6, as far as training has them, and the
 * bubble of pipelines. All are measured in the plan's own simulation, as means over its devices,
 * but for two that take another one: congestion is what the step takes longer than with links that
 * nobody shares; and redundancy what devices compute in all more than one device with all of the
 * model would, of the same micro-batches, be it twice or less efficiently.
 */
#ifndef CS_ADVISE_LIMITS_H
#define CS_ADVISE_LIMITS_H

#include "sim/run/simulate.h"

#define CS_LIMIT_MAP(X)                                                                            \
    X(GRADIENTS, "gradient exchange")   /* exposed: sums of gradients, gathered weights */         \
    X(LAYERS, "layer-wise collectives") /* exposed: over tensor, context and experts */            \
    X(HALO, "halo")                     /* exposed: over space */                                  \
    X(STAGES, "stage messages")         /* exposed: from stage to stage */                         \
    X(CONGESTION, "congestion")                                                                    \
    X(REDUNDANCY, "redundancy")                                                                    \
    X(UPDATE, "weight update")                                                                     \
    X(IMBALANCE, "imbalance") /* the busiest device's computing, over the mean */                  \
    X(BUBBLE, "bubbles")      /* waiting for others' computing, but for imbalance */

typedef enum cs_limit {
#define CS_LIMIT_ENUM(name, text) CS_LIMIT_OF_##name,
    CS_LIMIT_MAP(CS_LIMIT_ENUM)
#undef CS_LIMIT_ENUM
        CS_N_LIMITS
} cs_limit;

extern const char *const cs_limit_names[]; /* ended by NULL */

typedef struct cs_limits {
    double seconds[CS_N_LIMITS]; /* of the step; limits overlap, and do not add up to it */
    double computing;            /* forward and backward, a mean over devices; s */
    double exposed;              /* communication that nothing hides */
    double waiting;              /* bubbles, imbalance included */
    double update;
    cs_limit first; /* the largest of them */
    const char
        *axis; /* what does not grow any more: "heads", "layers", "samples"; NULL: all could */
    int64_t at_peak[CS_N_CATEGORIES];       /* of the fullest device; bytes */
    double throughput, tokens, utilisation; /* samples/s; tokens/s and a fraction, or NaN */
} cs_limits;

/* `undivided` is the computing time of the whole mini-batch on one device that has all of the
 * model, in s; NaN: not known. `alone` is the time of the step with links that nobody shares; s. */
void cs_limits_find(const cs_scenario *scenario, const cs_simulation *simulation, double undivided,
                    double alone, cs_limits *limits);

#endif
