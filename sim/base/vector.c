#include "sim/base/vector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 8 };

static uint64_t next_capacity(uint64_t capacity, uint64_t need)
{
    uint64_t next = capacity + capacity / 2;
    if (next < FIRST_CAPACITY)
        next = FIRST_CAPACITY;
    if (next > UINT32_MAX - 1)
        next = UINT32_MAX - 1;
    return next < need ? need : next;
}

/* The owner's pointer has another type, so it is copied bytewise: strict aliasing lets the compiler
 * assume that a void ** does not point to a task *. */
bool cs_vector_grow(void **data, uint32_t *capacity, uint64_t need, size_t size)
{
    assert(size > 0);
    if (need > UINT32_MAX - 1)
        return false;
    uint64_t next = next_capacity(*capacity, need);
    size_t bytes;
    if (__builtin_mul_overflow(next, size, &bytes))
        return false;
    void *old;
    memcpy(&old, data, sizeof(old));
    void *grown = realloc(old, bytes);
    if (!grown)
        return false;
    memcpy(data, &grown, sizeof(grown));
    *capacity = (uint32_t)next;
    return true;
}

void cs_vector_sort(void *data, size_t n, size_t size,
                    int (*compare)(const void *left, const void *right))
{
    const char *bytes = data;
    for (size_t i = 1; i < n; i++) {
        if (compare(bytes + (i - 1) * size, bytes + i * size) > 0) {
            qsort(data, n, size, compare);
            return;
        }
    }
}
