/* Makes a graph in which each collective is replaced by messages or by one delay; lower.h defines
 * their dependencies. Internal to sim/core/lower. */
#ifndef CS_LOWER_REPLACE_COLLECTIVES_H
#define CS_LOWER_REPLACE_COLLECTIVES_H

#include "sim/core/lower/plan-collective.h"

/* `ways` has an entry per class of the graph, NULL for classes that are not collectives. With
 * `delayed` each collective becomes a delay, and costs are known. Errors: CS_NO_MEMORY, and those
 * of cs_builder_finish. */
CS_MUST_CHECK cs_status cs_collectives_replace(const cs_graph *graph, cs_way *const *ways,
                                               bool delayed, cs_graph *lowered, cs_error *error);

#endif
