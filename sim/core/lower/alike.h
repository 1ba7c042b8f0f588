/* Whether what a device of a folded graph stands for does the same at the same times on a platform.
 * Internal to sim/core/lower. */
#ifndef CS_LOWER_ALIKE_H
#define CS_LOWER_ALIKE_H

#include "sim/core/lower/plan-collective.h"

enum { CS_UNLIKE_BYTES = sizeof(((cs_lower_report *)0)->unlike) };

/* Raises the costs of collectives to those of the slowest groups that are stood for, and writes
 * the first difference that is found, or "": a collective that takes another time in another group
 * of its family; messages between stages that have another latency, or meet more or fewer of the
 * messages that they stand for; messages that wait for each other (fifo), of which but one is
 * simulated. `ways` are per class of the graph, with costs, NULL for what is no collective.
 * CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_alike_find(cs_prices *prices, cs_way *const *ways,
                                      char unlike[CS_UNLIKE_BYTES], cs_error *error);

#endif
