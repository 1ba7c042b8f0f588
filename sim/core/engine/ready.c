#include "sim/core/engine/ready.h"

#include <stdlib.h>
#include <string.h>

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

/* Where a run of rising ids ends. */
static uint32_t end_of_run(const uint32_t *ids, uint32_t first, uint32_t n)
{
    uint32_t end = first;
    while (end < n && (end == first || ids[end - 1] <= ids[end]))
        end++;
    return end;
}

/* Merges runs in pairs until there is one: ids come as a few runs, mostly. */
bool cs_id_list_sort(cs_id_list *list)
{
    const uint32_t n = list->n;
    if (end_of_run(list->ids, 0, n) == n)
        return true;
    if (!cs_vector_reserve((void **)&list->ids, &list->capacity, 2 * (uint64_t)n,
                           sizeof(*list->ids)))
        return false;
    uint32_t *from = list->ids, *to = list->ids + n;
    for (uint32_t n_merged = 2; n_merged > 1;) {
        n_merged = 0;
        for (uint32_t first = 0, end; first < n; first = end, n_merged++) {
            const uint32_t middle = end_of_run(from, first, n);
            uint32_t left = first, right = middle;
            end = end_of_run(from, middle, n);
            for (uint32_t i = first; i < end; i++) {
                const bool is_left = right == end || (left < middle && from[left] <= from[right]);
                to[i] = from[is_left ? left++ : right++];
            }
        }
        uint32_t *merged = to;
        to = from;
        from = merged;
    }
    if (from != list->ids)
        memcpy(list->ids, from, n * sizeof(*from));
    return true;
}

void cs_id_list_finish(cs_id_list *list)
{
    free(list->ids);
    *list = (cs_id_list){0};
}
