/* What the collectives of a graph cost: each while the other groups of its family do the same.
 *
 * Costs are the same for all groups that are alike, and solved once: a family of 2,048 groups
 * takes as long as one collective over all their devices. Rates do not depend on the bytes, so
 * that collectives that differ in these alone have their rounds solved once (cost.h).
 *
 * A group of the same family does the same collective by the same algorithm, or by the usual one
 * where that does not fit it.
 *
 * Internal to sim/core/lower. */
#ifndef CS_LOWER_PRICES_H
#define CS_LOWER_PRICES_H

#include "sim/core/lower/algorithms.h"
#include "sim/core/lower/lower.h"

typedef struct cs_families cs_families;

typedef struct cs_prices {
    const cs_graph *graph;
    const cs_platform *platform; /* NULL where nothing is priced */
    cs_platform shared; /* the same, with the sharing of messages of collectives; owns nothing */
    const cs_lower_options *options;
    const cs_alpha_beta *levels; /* of the alpha-beta model, or NULL */
    cs_round *network;           /* NULL while it was not needed */
    cs_families *families;
    cs_link_memory *links;   /* rings over the links of devices to each other */
    cs_price_memory *memory; /* the options', if it is of this platform; or NULL */
    uint64_t key;            /* hash of the options and levels that costs depend on */
} cs_prices;

/* CS_NO_MEMORY; `prices` is then finished already. */
CS_MUST_CHECK cs_status cs_prices_init(cs_prices *prices, const cs_graph *graph,
                                       const cs_platform *platform, const cs_lower_options *options,
                                       cs_error *error);

/* Zeroed ones can be finished. */
void cs_prices_finish(cs_prices *prices);

/* Of a collective over a group with members, its ranks in the algorithm's order (rank-order.h).
 * Errors as of cs_collective_costs. */
CS_MUST_CHECK cs_status cs_prices_find(cs_prices *prices, uint32_t group,
                                       const cs_collective *collective,
                                       const cs_algorithm *algorithm, const uint32_t *devices,
                                       cs_time *cost, cs_error *error);

/* Whether there are other groups in the family of a group. */
bool cs_prices_has_relatives(const cs_prices *prices, uint32_t group);

/* The groups of a family, and what each takes for that; of those without members in folded graphs
 * only. */
typedef struct cs_relatives {
    uint32_t n; /* 0: the group is alone */
    const uint32_t *groups;
    const cs_time *costs;
} cs_relatives;

CS_MUST_CHECK cs_status cs_prices_family(cs_prices *prices, uint32_t group,
                                         const cs_collective *collective,
                                         const cs_algorithm *algorithm, cs_relatives *relatives,
                                         cs_error *error);

#endif
