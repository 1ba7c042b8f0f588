/* PyTorch's caching allocator of GPU memory: which segments it asks the device for, and which of
 * their blocks it hands out.
 *
 * Source: PyTorch 2.x, c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h; keys of
 * PYTORCH_CUDA_ALLOC_CONF: https://pytorch.org/docs/stable/notes/cuda.html#memory-management.
 *
 *   - Sizes are rounded up to multiples of 512 bytes. Up to 1 MiB they come from the small pool, whose
 *     segments have 2 MiB; larger ones from the large pool, whose segments have 20 MiB for up to
 *     10 MiB, and above that the size rounded up to 2 MiB. Both pools are apart for each stream.
 *   - Of the free blocks that are large enough the smallest is taken, of equal ones that with the
 *     lowest address. What is left over becomes a free block of its own: in the small pool from
 *     512 bytes on, in the large pool above 1 MiB, but for blocks of `max_split_size` and more, which
 *     are never split, go to requests of that size only, and to none that is 20 MiB or more smaller.
 *   - A block that is freed joins free neighbours in its segment. One that another stream still uses
 *     waits for that.
 *   - When no block fits, a segment is taken from the device. If there is no room: blocks of
 *     max_split_size and more are given back, then all segments that are free as a whole; and if that
 *     does not help the allocation fails.
 *   - With expandable segments, each stream has one for small and one for large blocks, that grows at
 *     its end by units of 2 MiB and 20 MiB; blocks split from 512 bytes on. What is given back are units
 *     that are free as a whole.
 *   - With a garbage collection threshold, before a segment is taken while more than that share of the
 *     capacity is held, free segments are given back, those first that have been free for longer
 *     than the mean.
 *
 * Addresses are made up: segments lie one behind the other, in the order in which they were taken.
 * What a segment of the device takes besides its size is not counted.
 */
#ifndef CS_ALLOCATOR_CACHING_ALLOCATOR_H
#define CS_ALLOCATOR_CACHING_ALLOCATOR_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { CS_NO_BLOCK = UINT32_MAX };

typedef struct cs_caching_options {
    int64_t capacity;       /* bytes that segments may have together; INT64_MAX: without limit */
    int64_t max_split_size; /* bytes; INT64_MAX: all blocks are split */
    double gc_threshold;    /* share of the capacity; 0: no garbage collection */
    bool expandable_segments;
} cs_caching_options;

/* What the allocator did, in the terms of PyTorch's memory history. */
#define CS_CACHING_ACTION_MAP(X)                                                                   \
    X(ALLOC, "alloc")                                                                              \
    X(FREE_REQUESTED, "free_requested")                                                            \
    X(FREE_COMPLETED, "free_completed")                                                            \
    X(SEGMENT_ALLOC, "segment_alloc")                                                              \
    X(SEGMENT_FREE, "segment_free")                                                                \
    X(SEGMENT_MAP, "segment_map")                                                                  \
    X(SEGMENT_UNMAP, "segment_unmap")                                                              \
    X(OOM, "oom")

typedef enum cs_caching_action {
#define CS_CACHING_ACTION_ENUM(name, text) CS_CACHING_##name,
    CS_CACHING_ACTION_MAP(CS_CACHING_ACTION_ENUM)
#undef CS_CACHING_ACTION_ENUM
        CS_N_CACHING_ACTIONS
} cs_caching_action;

/* "alloc", ..., ended by NULL. */
extern const char *const cs_caching_action_names[];

typedef struct cs_caching_event {
    cs_caching_action action;
    int64_t address, size; /* of OOM: bytes that the device had left, and that were asked for */
    uint32_t stream;
    bool small; /* the pool */
} cs_caching_event;

typedef struct cs_caching_observer {
    void (*see)(void *context, const cs_caching_event *event);
    void *context;
} cs_caching_observer;

/* torch.cuda.memory_stats: "allocated" counts rounded sizes. */
typedef struct cs_caching_stats {
    int64_t allocated, reserved;           /* bytes now */
    int64_t peak_allocated, peak_reserved; /* max_memory_allocated, max_memory_reserved */
    int64_t requested;                     /* bytes now, before they were rounded */
    uint64_t n_allocations, n_segments;    /* made so far */
    uint64_t n_retries;  /* segments asked for again, after others were given back */
    uint64_t n_failures; /* allocations that failed */
} cs_caching_stats;

typedef struct cs_caching_allocator cs_caching_allocator;

/* NULL when memory runs out. The observer's context must live as long; NULL: nobody looks. */
cs_caching_allocator *cs_caching_create(const cs_caching_options *options,
                                        const cs_caching_observer *observer);
void cs_caching_destroy(cs_caching_allocator *allocator);

/* Allocates `bytes` > 0 for work on a stream. *block is CS_NO_BLOCK when the device has no room.
 * CS_NO_MEMORY when the simulator has none. */
CS_MUST_CHECK cs_status cs_caching_allocate(cs_caching_allocator *allocator, int64_t bytes,
                                            uint32_t stream, uint32_t *block, cs_error *error);

/* Frees a block that is allocated. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_caching_free(cs_caching_allocator *allocator, uint32_t block,
                                        cs_error *error);

/* Another stream begins to use an allocated block (record_stream), and is done with it: only then
 * is a freed block handed out again. */
void cs_caching_record(cs_caching_allocator *allocator, uint32_t block);
CS_MUST_CHECK cs_status cs_caching_done(cs_caching_allocator *allocator, uint32_t block,
                                        cs_error *error);

/* Gives all segments back that are free as a whole (torch.cuda.empty_cache). CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_caching_empty(cs_caching_allocator *allocator, cs_error *error);

const cs_caching_stats *cs_caching_stats_of(const cs_caching_allocator *allocator);

/* ---- what there is ---- */

typedef enum cs_block_state { CS_BLOCK_FREE, CS_BLOCK_ALLOCATED, CS_BLOCK_PENDING } cs_block_state;

typedef struct cs_block_view {
    int64_t address, size, requested; /* requested: 0 of free ones */
    cs_block_state state;
    uint32_t id; /* as cs_caching_allocate gave it */
} cs_block_view;

typedef struct cs_segment_view {
    int64_t address, size; /* of an expandable one: what is mapped, without a gap */
    uint32_t stream;
    bool small, expandable;
    uint32_t n_blocks;
    const cs_block_view *blocks; /* by address; valid during the call */
} cs_segment_view;

/* Calls `visit` for each segment, by address, until it returns false. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_caching_visit(const cs_caching_allocator *allocator,
                                         bool (*visit)(void *context, const cs_segment_view *view),
                                         void *context, cs_error *error);

/* The largest free block of a stream from which `bytes` could have come, had it been large enough;
 * and the bytes of all such blocks. */
void cs_caching_free_room(const cs_caching_allocator *allocator, int64_t bytes, uint32_t stream,
                          int64_t *largest, int64_t *all);

#endif
