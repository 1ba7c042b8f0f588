/* A results file ends in a checksum of all that stands before it, which HDF5 does not look at: a
 * damaged file is known before the library parses it, which some damage crashes. What has no
 * checksum was written by another program, or changed by one; it is read once in a process of its
 * own, with limits of memory and time. */
#ifndef CS_TRACE_SEAL_H
#define CS_TRACE_SEAL_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_SEAL_BYTES = 24 }; /* a mark, the length, XXH64: little-endian */

void cs_seal(const void *image, size_t size, unsigned char seal[CS_SEAL_BYTES]);

/* The same for the first `size` bytes of an open file, from which they are read. False, with errno,
 * where they cannot be. */
bool cs_seal_file(int file, uint64_t size, unsigned char seal[CS_SEAL_BYTES]);

/* That an HDF5 file can be read to its end. CS_INVALID otherwise, CS_FAILED when no process can be
 * had, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_seal_check(const char *path, cs_error *error);

#endif
