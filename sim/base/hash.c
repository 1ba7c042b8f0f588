#include "sim/base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL /* fixes the size of a state */
#include <xxhash.h>

_Static_assert(sizeof(XXH64_state_t) <= sizeof(cs_hash_state),
               "an XXH64 state must fit into cs_hash_state");

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed)
{
    return XXH64(data, length, seed);
}

void cs_hash_begin(cs_hash_state *state, uint64_t seed)
{
    XXH64_state_t made;
    (void)XXH64_reset(&made, seed);
    memcpy(state, &made, sizeof(made));
}

void cs_hash_add(cs_hash_state *state, const void *data, size_t length)
{
    XXH64_state_t now;
    memcpy(&now, state, sizeof(now));
    (void)XXH64_update(&now, data, length);
    memcpy(state, &now, sizeof(now));
}

uint64_t cs_hash_end(const cs_hash_state *state)
{
    XXH64_state_t now;
    memcpy(&now, state, sizeof(now));
    return XXH64_digest(&now);
}

bool cs_hash_file(int file, uint64_t length, uint64_t *hash)
{
    enum { BLOCK = 1 << 18 };
    cs_hash_state state;
    unsigned char *block = malloc(BLOCK);
    ssize_t got = block ? 0 : -1;
    cs_hash_begin(&state, 0);
    while (got >= 0 && length > 0) {
        got = read(file, block, length < BLOCK ? (size_t)length : (size_t)BLOCK);
        if (got > 0) {
            cs_hash_add(&state, block, (size_t)got);
            length -= (uint64_t)got;
        } else {
            got = -1;
        }
    }
    const int code = block ? 0 : ENOMEM;
    *hash = got >= 0 ? cs_hash_end(&state) : 0;
    free(block);
    errno = code;
    return got >= 0;
}
