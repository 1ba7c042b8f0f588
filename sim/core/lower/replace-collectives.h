/* A graph whose collectives are replaced, by messages or by one delay each; lower.h says what they
 * wait for and who waits for them. Internal to sim/core/lower. */
#ifndef CS_LOWER_REPLACE_COLLECTIVES_H
#define CS_LOWER_REPLACE_COLLECTIVES_H

#include "sim/core/lower/plan-collective.h"

/* `ways` are per class of the graph, NULL for what is no collective; `delayed`: their costs are
 * known, and each becomes a delay. CS_NO_MEMORY, and the errors of cs_builder_finish. */
CS_MUST_CHECK cs_status cs_collectives_replace(const cs_graph *graph, cs_way *const *ways,
                                               bool delayed, cs_graph *lowered, cs_error *error);

#endif
