/* The strict checker behind cs_json_parse: says whether text is JSON as sim/base/json.h wants it,
 * and where not. One pass, and a sort of the keys of each object; nothing of it outlives the call.
 */
#ifndef CS_BASE_JSON_CHECK_H
#define CS_BASE_JSON_CHECK_H

#include "sim/base/error.h"

#include <stddef.h>

/* `name` stands for the file in the message "name:line:column: what is wrong". */
CS_MUST_CHECK cs_status cs_json_check(const char *name, const char *text, size_t length,
                                      cs_error *error);

#endif
