/* The strict checker behind cs_json_parse: says whether text is JSON as sim/base/json.h requires,
 * and where it is not. One pass, and a sort of the keys of each object; nothing stays allocated.
 */
#ifndef CS_BASE_JSON_CHECK_H
#define CS_BASE_JSON_CHECK_H

#include "sim/base/error.h"

#include <stddef.h>

/* Messages call the file `name`: "name:line:column: what is wrong". */
CS_MUST_CHECK cs_status cs_json_check(const char *name, const char *text, size_t length,
                                      cs_error *error);

#endif
