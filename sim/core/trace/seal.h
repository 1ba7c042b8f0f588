/* A results file ends with a checksum of everything before it, which HDF5 ignores. It detects
 * damage before the library parses the file, because some damage crashes the library. A file
 * without a checksum was written or changed by another program; it is read once in a separate
 * process with limited memory and time. */
#ifndef CS_TRACE_SEAL_H
#define CS_TRACE_SEAL_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_SEAL_BYTES = 24 }; /* a mark, the length, XXH64; little-endian */

void cs_seal(const void *image, size_t size, unsigned char seal[CS_SEAL_BYTES]);

/* Makes the seal for the first `size` bytes of an open file. Returns false, with errno, if they
 * cannot be read. */
bool cs_seal_file(int file, uint64_t size, unsigned char seal[CS_SEAL_BYTES]);

/* Checks that an HDF5 file can be read to its end. Errors: CS_INVALID if not; CS_FAILED if no
 * process can be started; CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_seal_check(const char *path, cs_error *error);

#endif
