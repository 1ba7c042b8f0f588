/* The prefixes (prefixes.h) of the graph in a PipeDream profile (format: pipedream.h).
 *
 * Input nodes, dead ends and empty nodes (pipedream.h) are not counted. The order is by the number
 * of nodes; of prefixes with as many, those grown from an earlier one come first, and of those
 * grown from the same one, by the node that comes first in topological order. Where the network has
 * one node through which every path leads, its place does not depend on that.
 */
#ifndef CS_FOREIGN_PIPEDREAM_PREFIXES_H
#define CS_FOREIGN_PIPEDREAM_PREFIXES_H

#include "sim/base/error.h"
#include "sim/model/prefixes.h"

#include <stddef.h>

enum { CS_PIPEDREAM_PREFIXES = 1 << 13 }; /* at most; a network of many branches has a great many */

/* Errors as cs_pipedream_load has them; CS_LIMIT when there are too many prefixes, CS_OVERFLOW when
 * a sum does not fit. On failure `prefixes` is untouched. */
CS_MUST_CHECK cs_status cs_pipedream_prefixes_load(const char *path, cs_prefixes *prefixes,
                                                   cs_error *error);
CS_MUST_CHECK cs_status cs_pipedream_prefixes_parse(const char *name, const char *text,
                                                    size_t length, cs_prefixes *prefixes,
                                                    cs_error *error);

#endif
