/* A 64-bit hash of everything fed to it, in order (XXH64); equal on every machine that stores
 * integers little-endian. Results carry it, so that a change of answers is seen. */
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed);

/* Of what comes piece by piece: the same as of all of it at once. */
typedef struct cs_hash_state {
    uint64_t words[11];
} cs_hash_state;

void cs_hash_begin(cs_hash_state *state, uint64_t seed);
void cs_hash_add(cs_hash_state *state, const void *data, size_t length);
uint64_t cs_hash_end(const cs_hash_state *state);

/* Of the next `length` bytes of an open file, with the seed 0. False when it has fewer, cannot
 * be read, or memory runs out (then errno is ENOMEM). */
bool cs_hash_file(int file, uint64_t length, uint64_t *hash);

#endif
