/* Files that may be compressed with gzip. */
#ifndef CS_FOREIGN_GZIP_H
#define CS_FOREIGN_GZIP_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* True when the bytes begin as a gzip file does. */
bool cs_gzip_is(const char *bytes, size_t length);

/* Unpacks all members into *text, NUL-terminated (not counted), which the caller frees. Errors name
 * `name`: CS_INVALID for bytes that are no gzip, cut off, or longer than `limit` when unpacked. */
CS_MUST_CHECK cs_status cs_gzip_unpack(const char *name, const char *bytes, size_t length,
                                       size_t limit, char **text, size_t *unpacked,
                                       cs_error *error);

#endif
