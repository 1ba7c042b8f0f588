/* The strict checker behind cs_json_parse: whether a text is JSON as sim/base/json.h requires, and
 * if not, where. One pass plus a sort of each object's keys; all memory is freed at the end.
 */
#ifndef CS_BASE_JSON_CHECK_H
#define CS_BASE_JSON_CHECK_H

#include "sim/base/error.h"

#include <stddef.h>

/* Messages read "name:line:column: error". */
CS_MUST_CHECK cs_status cs_json_check(const char *name, const char *text, size_t length,
                                      cs_error *error);

#endif
