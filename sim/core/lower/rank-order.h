/* Puts the ranks of a group in the order that an algorithm uses, and finds what it needs to know
 * about their nodes. Internal to sim/core/lower. */
#ifndef CS_LOWER_RANK_ORDER_H
#define CS_LOWER_RANK_ORDER_H

#include "sim/core/lower/prices.h"

/* Whether the collective is defined between neighbours in the given order, so that ranks must not
 * be reordered. */
bool cs_ranks_are_neighbours(cs_kind kind);

/* Number of NICs that the first `ranks` ranks, which form the first node, use; 0: unknown. */
uint32_t cs_ranks_nics(const cs_platform *platform, const uint32_t *devices, uint32_t ranks);

/* Orders the ranks of a group for a collective. `of` has its kind and number of ranks and receives
 * facts about the nodes. `order` (algorithm's rank -> rank of the group) and `devices` (per
 * algorithm's rank) have room for all ranks. */
CS_MUST_CHECK cs_status cs_ranks_order(const cs_prices *prices, uint32_t group, cs_collective *of,
                                       uint32_t *order, uint32_t *devices, cs_error *error);

#endif
