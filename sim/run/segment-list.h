/* Segments that an allocator took from its device, with their lifetimes. Internal to sim/run. */
#ifndef CS_RUN_SEGMENT_LIST_H
#define CS_RUN_SEGMENT_LIST_H

#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

/* A segment, or a part of an expandable segment that was mapped at once. */
typedef struct cs_segment {
    int64_t address, bytes;
    cs_time start, end; /* end: -1 if not returned */
    uint32_t device, stream;
    bool small, expandable;
} cs_segment;

typedef struct cs_segment_list {
    uint32_t n, capacity;
    cs_segment *items;
} cs_segment_list;

/* Accepts a zeroed list. */
void cs_segment_list_finish(cs_segment_list *list);

/* Returns false if memory runs out. */
bool cs_segment_list_add(cs_segment_list *list, const cs_segment *segment);

/* Ends the segments, from index `first`, within `bytes` bytes at `address`. A segment that is only
 * partly inside is split: the rest becomes a new segment of the same start, at the end of the list.
 * Returns false if memory runs out. */
bool cs_segment_list_end(cs_segment_list *list, uint32_t first, int64_t address, int64_t bytes,
                         cs_time time);

#endif
