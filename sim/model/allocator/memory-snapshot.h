/* A snapshot of an allocator, for PyTorch's memory viewer (https://pytorch.org/memory_viz): the
 * pickle that torch.cuda.memory._dump_snapshot writes, with segments, their blocks, and the
 * allocator's history. Instead of Python stack frames it has labels given by the caller.
 *
 * Source: PyTorch 2.x, torch/cuda/_memory_viz.py, and torch/csrc/cuda/memory_snapshot.cpp. The
 * pickle has protocol 2 and uses only operations that the viewer reads. */
#ifndef CS_ALLOCATOR_MEMORY_SNAPSHOT_H
#define CS_ALLOCATOR_MEMORY_SNAPSHOT_H

#include "sim/model/allocator/caching-allocator.h"

#include <stdio.h>

/* An action of the allocator, with its time and purpose. */
typedef struct cs_history_entry {
    cs_caching_event event;
    int64_t time_us;
    /* purpose, for example "forward 3 of stage 0: activations"; must outlive the history */
    const char *label;
} cs_history_entry;

typedef struct cs_history {
    uint32_t n, capacity;
    cs_history_entry *entries;
} cs_history;

/* Frees the entries; allowed on a zeroed struct. */
void cs_history_finish(cs_history *history);

/* Adds a copy of the entry. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_history_add(cs_history *history, const cs_history_entry *entry,
                                       cs_error *error);

/* Writes a snapshot with the allocator's current state and its history. CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_snapshot_write(const char *path,
                                                 const cs_caching_allocator *allocator,
                                                 const cs_caching_options *options,
                                                 const cs_history *history, cs_error *error);

#endif
