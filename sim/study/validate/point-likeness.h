/* Measured runs that are like a scenario in what decides how well a time is predicted: the answer
 * to "how far can I trust this one?". */
#ifndef CS_VALIDATE_POINT_LIKENESS_H
#define CS_VALIDATE_POINT_LIKENESS_H

#include "sim/run/scenario/scenario.h"
#include "sim/run/step-parts.h"
#include "sim/study/validate/points.h"

/* From the most important on; cs_trait_names has their names. All runs that are alike share the
 * first CS_N_REQUIRED_TRAITS. Runs are chosen by the first CS_N_CHOOSING_TRAITS; intervals
 * (interval.h) use the others too. */
typedef enum cs_trait {
    CS_TRAIT_TIMES,   /* "estimated" for a device, or "given" */
    CS_TRAIT_NETWORK, /* "convolutions", "transformer", "experts"; "any" of given times */
    CS_N_REQUIRED_TRAITS,
    CS_TRAIT_DEVICE = CS_N_REQUIRED_TRAITS,
    CS_TRAIT_PRECISION,
    CS_TRAIT_RUNTIME,
    CS_TRAIT_SHARDED, /* weights, by ZeRO 3 or FSDP: "yes" or "no", as the next two */
    CS_TRAIT_PIPELINE,
    CS_TRAIT_TENSOR,
    CS_N_CHOOSING_TRAITS,
    CS_TRAIT_GENERATION = CS_N_CHOOSING_TRAITS, /* the device's generation, such as "hopper" */
    CS_TRAIT_DEVICES, /* "1", "2 to 8", "more than 8"; "any": not stated by the scenario */
    CS_TRAIT_HOST,    /* the predicted step has launch gaps of 5 % or more: "yes" or "no" */
    CS_N_TRAITS
} cs_trait;

extern const char *const cs_trait_names[CS_N_TRAITS];

enum { CS_TRAIT_BYTES = 64, CS_LIKE_LEAST = 10 };

typedef char cs_traits[CS_N_TRAITS][CS_TRAIT_BYTES];

typedef struct cs_likeness {
    cs_traits traits;         /* traits of the scenario */
    bool shared[CS_N_TRAITS]; /* by all points that were found */
    uint32_t n;
    const cs_point **points; /* some of those asked about, in their order */
} cs_likeness;

/* The traits of a point whose scenario is `document`, and whose predicted step has these parts.
 * NULL: not predicted, and the trait CS_TRAIT_HOST is "". CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_likeness_of_point(const cs_point *point, const cJSON *document,
                                             const cs_step_parts *parts, cs_traits traits,
                                             cs_error *error);

/* Sets CS_TRAIT_HOST. */
void cs_likeness_set_host(const cs_step_parts *parts, cs_traits traits);

/* Zeroed ones can be finished. */
void cs_likeness_finish(cs_likeness *likeness);

/* Of `n` points with a measured time of a step, those that share the required traits of a scenario,
 * then those of them that share its device, then its precision, and so on; a trait that would leave
 * fewer than CS_LIKE_LEAST is not asked for. The scenario must have its `resolved` text.
 * CS_USAGE: no point shares the required traits. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_likeness_find(const cs_scenario *scenario, const cs_point *const *points,
                                         uint32_t n, cs_likeness *likeness, cs_error *error);

#endif
