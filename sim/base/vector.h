/* Growable arrays and the order of their elements. An array is a pointer, a length and a capacity
 * that the owner keeps side by side.
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

/* Makes room for `need` elements, growing by half at least; false, with the array as it was, when
 * memory runs out or `need` exceeds UINT32_MAX - 1 (ids are 32 bits wide, the last one is "none").
 */
bool cs_vector_grow(void **data, uint32_t *capacity, uint64_t need, size_t size);

static inline bool cs_vector_reserve(void **data, uint32_t *capacity, uint64_t need, size_t size)
{
    return need <= *capacity || cs_vector_grow(data, capacity, need, size);
}

/* Sorts as qsort does. Elements that are in order already are compared with their neighbours
 * only. */
void cs_vector_sort(void *data, size_t n, size_t size,
                    int (*compare)(const void *left, const void *right));

/* In a comparison for qsort: returns where x and y, two members, differ; the smaller one first. */
#define CS_COMPARE(x, y)                                                                           \
    do {                                                                                           \
        if ((x) != (y))                                                                            \
            return (x) < (y) ? -1 : 1;                                                             \
    } while (0)

#endif
