/* Measured runs similar to a scenario, by the traits that decide how well its time is predicted.
 * They answer the question "how far can I trust this prediction?". */
#ifndef CS_VALIDATE_POINT_LIKENESS_H
#define CS_VALIDATE_POINT_LIKENESS_H

#include "sim/run/scenario/scenario.h"
#include "sim/run/step-parts.h"
#include "sim/study/validate/points.h"

/* Traits, the most important first; cs_trait_names has their names. Similar runs always share the
 * first CS_N_REQUIRED_TRAITS. Runs are selected by the first CS_N_CHOOSING_TRAITS; intervals
 * (interval.h) use the others too. */
typedef enum cs_trait {
    CS_TRAIT_TIMES,   /* "estimated" for a device, or "given" */
    CS_TRAIT_NETWORK, /* "convolutions", "transformer", "experts"; "any" if times are given */
    CS_N_REQUIRED_TRAITS,
    CS_TRAIT_DEVICE = CS_N_REQUIRED_TRAITS,
    CS_TRAIT_PRECISION,
    CS_TRAIT_RUNTIME,
    CS_TRAIT_SHARDED, /* weights are sharded, by ZeRO 3 or FSDP: "yes" or "no", like the next two */
    CS_TRAIT_PIPELINE,
    CS_TRAIT_TENSOR,
    CS_N_CHOOSING_TRAITS,
    CS_TRAIT_GENERATION = CS_N_CHOOSING_TRAITS, /* generation of the device, such as "hopper" */
    CS_TRAIT_DEVICES, /* "1", "2 to 8", "more than 8"; "any": the scenario does not tell */
    CS_TRAIT_HOST,    /* the predicted step has launch gaps of 5 % or more: "yes" or "no" */
    CS_N_TRAITS
} cs_trait;

extern const char *const cs_trait_names[CS_N_TRAITS];

enum { CS_TRAIT_BYTES = 64, CS_LIKE_LEAST = 10 };

typedef char cs_traits[CS_N_TRAITS][CS_TRAIT_BYTES];

typedef struct cs_likeness {
    cs_traits traits;         /* traits of the scenario */
    bool shared[CS_N_TRAITS]; /* whether all selected points share the trait */
    uint32_t n;
    const cs_point **points; /* the selected points, in the given order */
} cs_likeness;

/* Sets the traits of a point whose scenario is `document` and whose predicted step has these parts.
 * `parts` is NULL if the step was not predicted; then CS_TRAIT_HOST is "". CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_likeness_of_point(const cs_point *point, const cJSON *document,
                                             const cs_step_parts *parts, cs_traits traits,
                                             cs_error *error);

/* Sets the trait CS_TRAIT_HOST from the parts of the step. */
void cs_likeness_set_host(const cs_step_parts *parts, cs_traits traits);

/* Allowed on a zeroed struct. */
void cs_likeness_finish(cs_likeness *likeness);

/* Selects points with a measured step time that share the required traits of a scenario, then its
 * device, then its precision, and so on; a trait that would leave fewer than CS_LIKE_LEAST points
 * is skipped. The scenario must have its `resolved` text. Errors: CS_USAGE if no point shares the
 * required traits; CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_likeness_find(const cs_scenario *scenario, const cs_point *const *points,
                                         uint32_t n, cs_likeness *likeness, cs_error *error);

#endif
