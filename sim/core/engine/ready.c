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

enum { FEW = 32, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

static void insert_one_by_one(uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t id = ids[i];
        uint32_t at = i;
        for (; at > 0 && ids[at - 1] > id; at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

/* By one digit; those that have the same one stay in order. */
static void sort_by_digit(const uint32_t *from, uint32_t *to, uint32_t n, uint32_t shift)
{
    uint32_t place[DIGITS] = {0}, first = 0;
    for (uint32_t i = 0; i < n; i++)
        place[from[i] >> shift & (DIGITS - 1)]++;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        const uint32_t count = place[digit];
        place[digit] = first;
        first += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[place[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* From the lowest digit up, but for those that all have in common; with room behind the list. */
static bool sort_by_digits(cs_id_list *list)
{
    const uint32_t n = list->n;
    uint32_t differ = 0;
    if (!cs_vector_reserve((void **)&list->ids, &list->capacity, 2ULL * n, sizeof(*list->ids)))
        return false;
    uint32_t *from = list->ids, *to = list->ids + n;
    for (uint32_t i = 1; i < n; i++)
        differ |= from[i] ^ from[0];
    for (uint32_t shift = 0; shift < 32; shift += DIGIT_BITS) {
        if ((differ >> shift & (DIGITS - 1)) == 0)
            continue;
        sort_by_digit(from, to, n, shift);
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != list->ids)
        memcpy(list->ids, from, n * sizeof(*from));
    return true;
}

bool cs_id_list_sort(cs_id_list *list)
{
    uint32_t i = 1;
    while (i < list->n && list->ids[i - 1] <= list->ids[i])
        i++;
    if (i >= list->n)
        return true;
    if (list->n > FEW)
        return sort_by_digits(list);
    insert_one_by_one(list->ids, list->n);
    return true;
}

void cs_id_list_finish(cs_id_list *list)
{
    free(list->ids);
    *list = (cs_id_list){0};
}
