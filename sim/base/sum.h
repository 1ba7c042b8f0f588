/* Sums of int64_t sizes, counts or times that never wrap around. */
#ifndef CS_BASE_SUM_H
#define CS_BASE_SUM_H

#include <stdbool.h>
#include <stdint.h>

/* Adds to *sum. Returns false if the result does not fit; *sum is then invalid. */
static inline bool cs_sum_add(int64_t *sum, int64_t value)
{
    return !__builtin_add_overflow(*sum, value, sum);
}

#endif
