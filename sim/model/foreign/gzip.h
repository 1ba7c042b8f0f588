/* Reads files that may be compressed with gzip. */
#ifndef CS_FOREIGN_GZIP_H
#define CS_FOREIGN_GZIP_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes begin like a gzip file. */
bool cs_gzip_is(const char *bytes, size_t length);

/* Unpacks all members into *text, which is NUL-terminated; the NUL is not counted in *unpacked. The
 * caller frees *text. Errors start with `name`. CS_INVALID: not a gzip file, cut off, or longer
 * than `limit` bytes when unpacked. */
CS_MUST_CHECK cs_status cs_gzip_unpack(const char *name, const char *bytes, size_t length,
                                       size_t limit, char **text, size_t *unpacked,
                                       cs_error *error);

#endif
