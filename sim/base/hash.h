/* A 64-bit hash (XXH64) of a sequence of bytes; equal on all little-endian machines. Results
 * include it, so that changed answers are noticed. */
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed);

/* Hashes data piece by piece, with the same result as all at once. */
typedef struct cs_hash_state {
    uint64_t words[11];
} cs_hash_state;

void cs_hash_begin(cs_hash_state *state, uint64_t seed);
void cs_hash_add(cs_hash_state *state, const void *data, size_t length);
uint64_t cs_hash_end(const cs_hash_state *state);

/* Hashes the next `length` bytes of an open file, with seed 0. Returns false if the file has fewer
 * bytes, cannot be read, or memory runs out (errno is ENOMEM). */
bool cs_hash_file(int file, uint64_t length, uint64_t *hash);

#endif
