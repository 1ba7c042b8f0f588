/* Growable arrays, and sorting. An array is a pointer, a length and a capacity, kept next to each
 * other by the owner.
 *
 *     cs_task *tasks; uint32_t n_tasks, cap_tasks;
 *     if (!cs_vector_reserve((void **)&tasks, &cap_tasks, n_tasks + 1u, sizeof(*tasks)))
 *         return cs_error_no_memory(error);
 *     tasks[n_tasks++] = ...;
 */
#ifndef CS_BASE_VECTOR_H
#define CS_BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for `need` elements, growing at least by half. Returns false, with the array
 * unchanged, if memory runs out or `need` exceeds UINT32_MAX - 1 (ids have 32 bits; the last means
 * "none").
 */
bool cs_vector_grow(void **data, uint32_t *capacity, uint64_t need, size_t size);

static inline bool cs_vector_reserve(void **data, uint32_t *capacity, uint64_t need, size_t size)
{
    return need <= *capacity || cs_vector_grow(data, capacity, need, size);
}

/* Sorts like qsort; elements already in order only cost a comparison with their neighbours. */
void cs_vector_sort(void *data, size_t n, size_t size,
                    int (*compare)(const void *left, const void *right));

/* For comparison functions of qsort: returns if the members x and y differ; the smaller comes
 * first. */
#define CS_COMPARE(x, y)                                                                           \
    do {                                                                                           \
        if ((x) != (y))                                                                            \
            return (x) < (y) ? -1 : 1;                                                             \
    } while (0)

#endif
