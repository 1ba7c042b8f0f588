#include "sim/base/compact.h"

#include <stdlib.h>

void cs_compact_finish(cs_compact *compact)
{
    free(compact->bytes);
    *compact = (cs_compact){0};
}

bool cs_compact_grow(cs_compact *compact, size_t numbers)
{
    enum { FIRST = 4096 };
    const size_t need = compact->used + CS_COMPACT_MOST * numbers;
    const size_t half = compact->capacity + compact->capacity / 2;
    const size_t capacity = need + FIRST > half ? need + FIRST : half;
    unsigned char *grown = realloc(compact->bytes, capacity);
    if (!grown)
        return false;
    compact->bytes = grown;
    compact->capacity = capacity;
    return true;
}
