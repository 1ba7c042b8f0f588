/* A memory pool of a device: counts blocks and reuses them.
 *
 * As in frameworks, a freed block is kept for the next request of the same size, because allocating
 * is slow (and stops a GPU). All free blocks are returned to the device before it would run out of
 * memory. Live bytes are those handed out; the pool may hold more.
 */
#ifndef CS_CALIB_BLOCK_POOL_H
#define CS_CALIB_BLOCK_POOL_H

#include "calib/bench/device/backend.h"

typedef struct cs_block_pool_piece {
    void *data;
    int64_t bytes;
} cs_block_pool_piece;

typedef struct cs_block_pool {
    const cs_backend *backend;
    cs_bench *bench;
    cs_block_pool_piece *free_pieces;
    uint32_t n_free, cap_free;
    int64_t live, peak; /* bytes handed out: now, and the peak */
    int64_t held;       /* bytes taken from the backend, including free pieces */
} cs_block_pool;

/* A block of memory; zeroed: none. */
typedef struct cs_block {
    void *data;
    int64_t bytes; /* as requested */
} cs_block;

void cs_block_pool_init(cs_block_pool *pool, const cs_backend *backend, cs_bench *bench);
/* Returns all free blocks to the backend; all other blocks must have been freed. */
void cs_block_pool_finish(cs_block_pool *pool);

/* bytes >= 0; 0 gives no block. */
CS_MUST_CHECK cs_status cs_block_pool_take(cs_block_pool *pool, int64_t bytes, cs_block *block,
                                           cs_error *error);
/* Frees and clears the block; accepts cleared ones. */
void cs_block_pool_give(cs_block_pool *pool, cs_block *block);

#endif
