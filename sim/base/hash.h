/* A 64-bit hash of everything fed to it, in order (XXH64); equal on every machine that stores
 * integers little-endian. Results carry it, so that a change of answers is seen. */
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed);

#endif
