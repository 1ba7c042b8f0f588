#include "sim/engine/ready.h"

#include <stdlib.h>

bool cs_ready_add(cs_ready_set *set, uint64_t key)
{
    if (!cs_vector_reserve((void **)&set->keys, &set->capacity, set->n + UINT64_C(1),
                           sizeof(*set->keys)))
        return false;
    uint32_t at = set->n++;
    for (; at > 0 && set->keys[(at - 1) / 2] > key; at = (at - 1) / 2)
        set->keys[at] = set->keys[(at - 1) / 2];
    set->keys[at] = key;
    return true;
}

void cs_ready_take(cs_ready_set *set)
{
    uint64_t key = set->keys[--set->n];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < set->n; at = child) {
        if (child + 1 < set->n && set->keys[child + 1] < set->keys[child])
            child++;
        if (set->keys[child] >= key)
            break;
        set->keys[at] = set->keys[child];
    }
    set->keys[at] = key;
}

void cs_ready_finish(cs_ready_set *set)
{
    free(set->keys);
    *set = (cs_ready_set){0};
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

void cs_id_list_sort(cs_id_list *list)
{
    for (uint32_t i = 1; i < list->n; i++) {
        if (list->ids[i] < list->ids[i - 1]) {
            qsort(list->ids, list->n, sizeof(*list->ids), compare_ids);
            return;
        }
    }
}

void cs_id_list_finish(cs_id_list *list)
{
    free(list->ids);
    *list = (cs_id_list){0};
}
