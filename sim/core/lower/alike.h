/* Checks whether the devices that one device of a folded graph stands for do the same at the same
 * times on a platform. Internal to sim/core/lower. */
#ifndef CS_LOWER_ALIKE_H
#define CS_LOWER_ALIKE_H

#include "sim/core/lower/plan-collective.h"

enum { CS_UNLIKE_BYTES = sizeof(((cs_lower_report *)0)->unlike) };

/* Raises the cost of each collective to the cost of the slowest group that it stands for. Writes
 * the first difference found to `unlike`, or "": a collective takes longer in another group of its
 * family; messages between stages have different latencies or share links with a different number
 * of messages; messages queue for each other (fifo) while only one of them is simulated. `ways` has
 * an entry per class of the graph, NULL for classes that are not collectives; costs are known.
 * Errors: CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_alike_find(cs_prices *prices, cs_way *const *ways,
                                      char unlike[CS_UNLIKE_BYTES], cs_error *error);

#endif
