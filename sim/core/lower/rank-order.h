/* The ranks of a group in the order in which an algorithm takes them, and what it has to know of
 * their nodes. Internal to sim/core/lower. */
#ifndef CS_LOWER_RANK_ORDER_H
#define CS_LOWER_RANK_ORDER_H

#include "sim/core/lower/prices.h"

/* Whether a collective is between neighbours as they are given, so that no order may be chosen. */
bool cs_ranks_are_neighbours(cs_kind kind);

/* How many NICs the ranks of the first node, of which there are `ranks`, use; 0: not known. */
uint32_t cs_ranks_nics(const cs_platform *platform, const uint32_t *devices, uint32_t ranks);

/* Of a collective of the group: `of` has its kind and number of ranks, and gets what is known of
 * nodes. `order` (rank of the algorithm -> rank of the group) and `devices` (of the algorithm's
 * ranks) have room for all ranks. */
CS_MUST_CHECK cs_status cs_ranks_order(const cs_prices *prices, uint32_t group, cs_collective *of,
                                       uint32_t *order, uint32_t *devices, cs_error *error);

#endif
