#include "sim/base/hash.h"

#include <xxhash.h>

uint64_t cs_hash_bytes(const void *data, size_t length, uint64_t seed)
{
    return XXH64(data, length, seed);
}
