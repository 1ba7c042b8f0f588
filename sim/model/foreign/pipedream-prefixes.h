/* The prefixes (prefixes.h) of the graph in a PipeDream profile (format: pipedream.h).
 *
 * Input nodes, dead ends and empty nodes (pipedream.h) are not counted. Prefixes are ordered by
 * their number of nodes. Among prefixes of equal size, those grown from an earlier prefix come
 * first; among those grown from the same prefix, the one whose new node is first in topological
 * order. A node through which every path of the network leads has a place that does not depend on
 * this order. */
#ifndef CS_FOREIGN_PIPEDREAM_PREFIXES_H
#define CS_FOREIGN_PIPEDREAM_PREFIXES_H

#include "sim/base/error.h"
#include "sim/model/prefixes.h"

#include <stddef.h>

/* most prefixes; a network with many branches has very many */
enum { CS_PIPEDREAM_PREFIXES = 1 << 13 };

/* Finds the prefixes. Errors: as cs_pipedream_load; CS_LIMIT: too many prefixes; CS_OVERFLOW: a sum
 * does not fit. On failure `prefixes` is untouched. */
CS_MUST_CHECK cs_status cs_pipedream_prefixes_load(const char *path, cs_prefixes *prefixes,
                                                   cs_error *error);
CS_MUST_CHECK cs_status cs_pipedream_prefixes_parse(const char *name, const char *text,
                                                    size_t length, cs_prefixes *prefixes,
                                                    cs_error *error);

#endif
