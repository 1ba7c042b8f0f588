/* Splits numbers into planes of bytes, and computes checksums, many bytes at a time. */
#ifndef CS_TRACE_PLANES_H
#define CS_TRACE_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* Makes planes[b] from the b-th bytes of n values of `size` bytes (1, 4 or 8). */
void cs_planes_split(const unsigned char *values, size_t n, size_t size,
                     unsigned char *const *planes);

/* Adler-32 of n bytes (RFC 1950); equals zlib's adler32(1, ...). */
uint32_t cs_planes_sum(const unsigned char *bytes, size_t n);

#endif
