/* A 64-bit hash of everything fed to it, in order (XXH64); equal on every machine that stores
 * integers little-endian. Results carry it, so that a change of answers is seen. */
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed);

/* Of the next `length` bytes of an open file, with the seed 0. False when it has fewer, cannot
 * be read, or memory runs out (then errno is ENOMEM). */
bool cs_hash_file(int file, uint64_t length, uint64_t *hash);

#endif
