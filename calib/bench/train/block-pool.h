/* A device's memory in pieces that are used again and again, and counted.
 *
 * As frameworks do it: what is given back is kept for the next request of the same size, because
 * asking the system takes long (and a GPU has to stop for it); all that is kept goes back when the
 * device would otherwise be out of memory. Live bytes are those handed out; the
 * pool may hold more.
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
    int64_t live, peak; /* bytes handed out, now and at most */
    int64_t held;       /* from the backend, with free pieces */
} cs_block_pool;

/* A piece of memory; zeroed: none. */
typedef struct cs_block {
    void *data;
    int64_t bytes; /* as asked for */
} cs_block;

void cs_block_pool_init(cs_block_pool *pool, const cs_backend *backend, cs_bench *bench);
/* Gives all free pieces back; what is handed out must have been freed. */
void cs_block_pool_finish(cs_block_pool *pool);

/* bytes >= 0; none for 0. */
CS_MUST_CHECK cs_status cs_block_pool_take(cs_block_pool *pool, int64_t bytes, cs_block *block,
                                           cs_error *error);
/* Clears the block; takes cleared ones. */
void cs_block_pool_give(cs_block_pool *pool, cs_block *block);

#endif
