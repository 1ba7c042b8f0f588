/* Ready tasks: sets ordered by priority, and lists of ids. */
#ifndef CS_ENGINE_READY_H
#define CS_ENGINE_READY_H

#include "sim/base/vector.h"
#include "sim/core/graph/graph.h"

/* A set of ready tasks. The task with the smallest key comes first. */
typedef struct cs_ready_set {
    uint64_t *keys; /* keys, as a binary heap */
    uint32_t n, capacity;
} cs_ready_set;

/* Returns the key of a task: higher priority first, then the lower id. */
static inline uint64_t cs_ready_key(int32_t priority, uint32_t task)
{
    uint32_t inverted = UINT32_MAX - ((uint32_t)priority ^ UINT32_C(0x80000000));
    return (uint64_t)inverted << 32 | task;
}

/* Returns the first task; CS_NONE if the set is empty. */
static inline uint32_t cs_ready_first(const cs_ready_set *set)
{
    return set->n > 0 ? (uint32_t)set->keys[0] : CS_NONE;
}

/* Adds a key. Returns false if memory runs out. */
CS_MUST_CHECK bool cs_ready_add(cs_ready_set *set, uint64_t key);

/* Removes the first task from a set that is not empty. */
void cs_ready_take(cs_ready_set *set);

void cs_ready_finish(cs_ready_set *set);

/* A list of ids that is filled, processed and cleared repeatedly. */
typedef struct cs_id_list {
    uint32_t *ids, n, capacity;
} cs_id_list;

/* Appends an id. Returns false if memory runs out. */
CS_MUST_CHECK static inline bool cs_id_list_add(cs_id_list *list, uint32_t id)
{
    if (!cs_vector_reserve((void **)&list->ids, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->ids)))
        return false;
    list->ids[list->n++] = id;
    return true;
}

/* Sorts ids in ascending order; fast if they are already sorted. Returns false if memory runs
 * out. */
CS_MUST_CHECK bool cs_id_list_sort(cs_id_list *list);

void cs_id_list_finish(cs_id_list *list);

#endif
