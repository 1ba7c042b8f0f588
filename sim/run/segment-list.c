#include "sim/run/segment-list.h"

#include "sim/base/vector.h"

#include <stdlib.h>

void cs_segment_list_finish(cs_segment_list *list)
{
    free(list->items);
    *list = (cs_segment_list){0};
}

bool cs_segment_list_add(cs_segment_list *list, const cs_segment *segment)
{
    if (!cs_vector_reserve((void **)&list->items, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->items)))
        return false;
    list->items[list->n++] = *segment;
    return true;
}

/* Adds the part of a segment from `from` to `until`, unless it is empty. */
static bool keep(cs_segment_list *list, cs_segment part, int64_t from, int64_t until)
{
    part.address = from;
    part.bytes = until - from;
    return until <= from || cs_segment_list_add(list, &part);
}

bool cs_segment_list_end(cs_segment_list *list, uint32_t first, int64_t address, int64_t bytes,
                         cs_time time)
{
    const int64_t until = address + bytes;
    const uint32_t n = list->n;
    for (uint32_t i = first; i < n; i++) {
        const cs_segment whole = list->items[i];
        const int64_t end = whole.address + whole.bytes;
        if (whole.end >= 0 || whole.address >= until || end <= address)
            continue;
        cs_segment *gone = &list->items[i];
        gone->address = address > whole.address ? address : whole.address;
        gone->bytes = (until < end ? until : end) - gone->address;
        gone->end = time;
        if (!keep(list, whole, whole.address, address) || !keep(list, whole, until, end))
            return false;
    }
    return true;
}
