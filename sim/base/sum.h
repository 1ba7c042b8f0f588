/* Sums of sizes, counts or times, each an int64_t, that never wrap around. */
#ifndef CS_BASE_SUM_H
#define CS_BASE_SUM_H

#include <stdbool.h>
#include <stdint.h>

/* Adds to *sum; false if that does not fit 64 bits: *sum must not be used then. */
static inline bool cs_sum_add(int64_t *sum, int64_t value)
{
    return !__builtin_add_overflow(*sum, value, sum);
}

#endif
