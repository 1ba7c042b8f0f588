/* Costs of a graph's collectives. Each is computed while the other groups of its family do the
 * same.
 *
 * Groups that are alike share one solution: a family of 2,048 groups takes as long as one
 * collective over all their devices. Rates do not depend on the bytes, so collectives that differ
 * only in bytes share the solutions of their rounds (cost.h).
 *
 * Every group of a family runs the same collective by the same algorithm, or by the default one if
 * that algorithm does not fit the group.
 *
 * Internal to sim/core/lower. */
#ifndef CS_LOWER_PRICES_H
#define CS_LOWER_PRICES_H

#include "sim/core/lower/algorithms.h"
#include "sim/core/lower/lower.h"

typedef struct cs_families cs_families;

typedef struct cs_prices {
    const cs_graph *graph;
    const cs_platform *platform; /* NULL if nothing is priced */
    /* copy of the platform with the sharing that collectives' messages use; owns nothing */
    cs_platform shared;
    const cs_lower_options *options;
    const cs_alpha_beta *levels; /* levels of the alpha-beta model, or NULL */
    cs_round *network;           /* solver; NULL until needed */
    cs_families *families;
    cs_link_memory *links;   /* cache of rings over direct links between devices */
    cs_price_memory *memory; /* cache of the options if it belongs to this platform; or NULL */
    uint64_t key;            /* hash of the options and levels that costs depend on */
} cs_prices;

/* CS_NO_MEMORY; `prices` is finished in that case. */
CS_MUST_CHECK cs_status cs_prices_init(cs_prices *prices, const cs_graph *graph,
                                       const cs_platform *platform, const cs_lower_options *options,
                                       cs_error *error);

/* Allowed on a zeroed struct. */
void cs_prices_finish(cs_prices *prices);

/* Finds the cost of a collective over a group with members, with ranks in the algorithm's order
 * (rank-order.h). Errors: as cs_collective_costs. */
CS_MUST_CHECK cs_status cs_prices_find(cs_prices *prices, uint32_t group,
                                       const cs_collective *collective,
                                       const cs_algorithm *algorithm, const uint32_t *devices,
                                       cs_time *cost, cs_error *error);

/* Whether the group's family has other groups. */
bool cs_prices_has_relatives(const cs_prices *prices, uint32_t group);

/* Groups of a family and the cost of the collective in each. Costs of groups without members are
 * computed in folded graphs only. */
typedef struct cs_relatives {
    uint32_t n; /* 0: the group has no family */
    const uint32_t *groups;
    const cs_time *costs;
} cs_relatives;

CS_MUST_CHECK cs_status cs_prices_family(cs_prices *prices, uint32_t group,
                                         const cs_collective *collective,
                                         const cs_algorithm *algorithm, cs_relatives *relatives,
                                         cs_error *error);

#endif
