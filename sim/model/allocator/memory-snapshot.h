/* A snapshot of an allocator as PyTorch's memory viewer (https://pytorch.org/memory_viz) opens it:
 * the pickle that torch.cuda.memory._dump_snapshot writes, with segments, their blocks, and what
 * the allocator did. Frames are the labels that the caller gives in place of Python's stack.
 *
 * Source: PyTorch 2.x, torch/cuda/_memory_viz.py, and torch/csrc/cuda/memory_snapshot.cpp. Pickle
 * of protocol 2, in the operations that the viewer reads.
 */
#ifndef CS_ALLOCATOR_MEMORY_SNAPSHOT_H
#define CS_ALLOCATOR_MEMORY_SNAPSHOT_H

#include "sim/model/allocator/caching-allocator.h"

#include <stdio.h>

/* What the allocator did at a time, and for what. */
typedef struct cs_history_entry {
    cs_caching_event event;
    int64_t time_us;
    const char *label; /* "forward 3 of stage 0: activations"; lives as long */
} cs_history_entry;

typedef struct cs_history {
    uint32_t n, capacity;
    cs_history_entry *entries;
} cs_history;

/* Zeroed ones can be finished. */
void cs_history_finish(cs_history *history);

/* CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_history_add(cs_history *history, const cs_history_entry *entry,
                                       cs_error *error);

/* Writes the file: the allocator as it is, and its history. CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_snapshot_write(const char *path,
                                                 const cs_caching_allocator *allocator,
                                                 const cs_caching_options *options,
                                                 const cs_history *history, cs_error *error);

#endif
