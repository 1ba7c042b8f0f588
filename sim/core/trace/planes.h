/* Bytes of many numbers at once: in planes, and their checksum. */
#ifndef CS_TRACE_PLANES_H
#define CS_TRACE_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* The b-th bytes of n values of `size` bytes, 1, 4 or 8, become planes[b]. */
void cs_planes_split(const unsigned char *values, size_t n, size_t size,
                     unsigned char *const *planes);

/* The Adler-32 of n bytes (RFC 1950), which is zlib's adler32(1, ...). */
uint32_t cs_planes_sum(const unsigned char *bytes, size_t n);

#endif
