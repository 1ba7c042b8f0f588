#include "sim/base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed)
{
    return XXH64(data, length, seed);
}

bool cs_hash_file(int file, uint64_t length, uint64_t *hash)
{
    enum { BLOCK = 1 << 18 };
    XXH64_state_t *state = XXH64_createState();
    unsigned char *block = malloc(BLOCK);
    ssize_t got = state && block && XXH64_reset(state, 0) == XXH_OK ? 0 : -1;
    while (got >= 0 && length > 0) {
        got = read(file, block, length < BLOCK ? (size_t)length : (size_t)BLOCK);
        if (got <= 0 || XXH64_update(state, block, (size_t)got) != XXH_OK)
            got = -1;
        else
            length -= (uint64_t)got;
    }
    const int code = state && block ? 0 : ENOMEM;
    *hash = got >= 0 ? XXH64_digest(state) : 0;
    XXH64_freeState(state);
    free(block);
    errno = code;
    return got >= 0;
}
