/* A model of PyTorch's caching allocator for GPU memory: which segments it requests from the
 * device, and which blocks of them it hands out.
 *
 * Source: PyTorch 2.x, c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h; keys of
 * PYTORCH_CUDA_ALLOC_CONF: https://pytorch.org/docs/stable/notes/cuda.html#memory-management.
 *
 *   - Sizes are rounded up to multiples of 512 bytes. Blocks of up to 1 MiB come from the small
 *     pool, whose segments have 2 MiB. Larger blocks come from the large pool, whose segments have
 *     20 MiB for blocks of up to 10 MiB, and above that the block's size rounded up to 2 MiB. Each
 *     stream has its own pools.
 *   - The smallest free block that is large enough is taken; among equal ones, the block with the
 *     lowest address. The rest becomes a new free block if it has at least 512 bytes (small pool)
 *     or more than 1 MiB (large pool). Blocks of at least `max_split_size` are never split: they go
 *     only to requests of at least that size, and only if less than 20 MiB would be wasted.
 *   - A block that is freed joins free neighbours in its segment. If another stream still uses it,
 *     it is only freed after that use.
 *   - If no block fits, a segment is requested from the device. If the device has no room, blocks
 *     of at least max_split_size are given back, and after that all completely free segments. If
 *     that does not help either, the allocation fails.
 *   - With expandable segments, each stream has one segment for small and one for large blocks. It
 *     grows at its end by units of 2 MiB and 20 MiB. Blocks are split if the rest has at least
 *     512 bytes. Units that are completely free are given back.
 *   - With a garbage collection threshold, free segments are given back before a segment is
 *     requested, if the segments use more than that share of the capacity. Segments that have been
 *     free for longer than the mean go first.
 *
 * Addresses are made up: segments follow each other in the order of their requests.
 * Memory that the device needs for a segment in addition to its size is not counted. */
#ifndef CS_ALLOCATOR_CACHING_ALLOCATOR_H
#define CS_ALLOCATOR_CACHING_ALLOCATOR_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { CS_NO_BLOCK = UINT32_MAX };

typedef struct cs_caching_options {
    int64_t capacity;       /* bytes that all segments together may have; INT64_MAX: no limit */
    int64_t max_split_size; /* bytes; INT64_MAX: all blocks may be split */
    double gc_threshold;    /* share of the capacity; 0: no garbage collection */
    bool expandable_segments;
} cs_caching_options;

/* Actions of the allocator, with their names in PyTorch's memory history. */
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

/* Names of the actions ("alloc", ...), NULL-terminated. */
extern const char *const cs_caching_action_names[];

typedef struct cs_caching_event {
    cs_caching_action action;
    int64_t address, size; /* for OOM: bytes left on the device; bytes requested */
    uint32_t stream;
    bool small; /* whether it is in the small pool */
} cs_caching_event;

typedef struct cs_caching_observer {
    void (*see)(void *context, const cs_caching_event *event);
    void *context;
} cs_caching_observer;

/* Counters as in torch.cuda.memory_stats; "allocated" counts rounded sizes. */
typedef struct cs_caching_stats {
    int64_t allocated, reserved; /* current bytes */
    /* bytes; max_memory_allocated and max_memory_reserved of PyTorch */
    int64_t peak_allocated, peak_reserved;
    int64_t requested;                  /* current bytes before rounding */
    uint64_t n_allocations, n_segments; /* number made so far */
    /* number of requests for segments that were repeated after others were given back */
    uint64_t n_retries;
    uint64_t n_failures; /* number of allocations that failed */
} cs_caching_stats;

typedef struct cs_caching_allocator cs_caching_allocator;

/* Creates an allocator; NULL if memory runs out. The observer may be NULL; its context must outlive
 * the allocator. */
cs_caching_allocator *cs_caching_create(const cs_caching_options *options,
                                        const cs_caching_observer *observer);
void cs_caching_destroy(cs_caching_allocator *allocator);

/* Allocates `bytes` > 0 for work on a stream. *block is CS_NO_BLOCK if the device has no room.
 * CS_NO_MEMORY if the simulator itself runs out of memory. */
CS_MUST_CHECK cs_status cs_caching_allocate(cs_caching_allocator *allocator, int64_t bytes,
                                            uint32_t stream, uint32_t *block, cs_error *error);

/* Frees a block that is allocated. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_caching_free(cs_caching_allocator *allocator, uint32_t block,
                                        cs_error *error);

/* Record that another stream begins to use an allocated block (record_stream), and that it is done
 * with the block. A freed block is handed out again only after all such uses. */
void cs_caching_record(cs_caching_allocator *allocator, uint32_t block);
CS_MUST_CHECK cs_status cs_caching_done(cs_caching_allocator *allocator, uint32_t block,
                                        cs_error *error);

/* Gives back all completely free segments (torch.cuda.empty_cache). CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_caching_empty(cs_caching_allocator *allocator, cs_error *error);

const cs_caching_stats *cs_caching_stats_of(const cs_caching_allocator *allocator);

/* ---- contents ---- */

typedef enum cs_block_state { CS_BLOCK_FREE, CS_BLOCK_ALLOCATED, CS_BLOCK_PENDING } cs_block_state;

typedef struct cs_block_view {
    int64_t address, size, requested; /* `requested` is 0 if the block is free */
    cs_block_state state;
    uint32_t id; /* id from cs_caching_allocate */
} cs_block_view;

typedef struct cs_segment_view {
    int64_t address, size; /* expandable segment: address and size of a contiguous mapped part */
    uint32_t stream;
    bool small, expandable;
    uint32_t n_blocks;
    /* blocks in the order of their addresses; valid only during the call */
    const cs_block_view *blocks;
} cs_segment_view;

/* Calls `visit` for each segment in the order of addresses, until it returns false.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_caching_visit(const cs_caching_allocator *allocator,
                                         bool (*visit)(void *context, const cs_segment_view *view),
                                         void *context, cs_error *error);

/* Finds a stream's free blocks in the pool that serves requests of `bytes`. *largest becomes the
 * size of the largest block, *all the size of all blocks together. */
void cs_caching_free_room(const cs_caching_allocator *allocator, int64_t bytes, uint32_t stream,
                          int64_t *largest, int64_t *all);

#endif
