/* What an allocator took from its device, and until when. Internal to sim/run. */
#ifndef CS_RUN_SEGMENT_LIST_H
#define CS_RUN_SEGMENT_LIST_H

#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

/* A segment, or of an expandable one a part that was mapped at once. */
typedef struct cs_segment {
    int64_t address, bytes;
    cs_time start, end; /* -1: it is still there */
    uint32_t device, stream;
    bool small, expandable;
} cs_segment;

typedef struct cs_segment_list {
    uint32_t n, capacity;
    cs_segment *items;
} cs_segment_list;

/* Zeroed ones can be finished. */
void cs_segment_list_finish(cs_segment_list *list);

/* False when memory runs out. */
bool cs_segment_list_add(cs_segment_list *list, const cs_segment *segment);

/* Of the segments from `first` on, what lies in `bytes` from `address` on is given back. A part
 * that lies there only in part is divided: what stays becomes a part of its own, at the end of the
 * list, as old. False when memory runs out. */
bool cs_segment_list_end(cs_segment_list *list, uint32_t first, int64_t address, int64_t bytes,
                         cs_time time);

#endif
