#include "calib/bench/train/block-pool.h"

#include "sim/base/vector.h"

#include <stdlib.h>

void cs_block_pool_init(cs_block_pool *pool, const cs_backend *backend, cs_bench *bench)
{
    *pool = (cs_block_pool){.backend = backend, .bench = bench};
}

static void release_free(cs_block_pool *pool)
{
    for (uint32_t i = 0; i < pool->n_free; i++) {
        pool->backend->release(pool->bench, pool->free_pieces[i].data);
        pool->held -= pool->free_pieces[i].bytes;
    }
    pool->n_free = 0;
}

void cs_block_pool_finish(cs_block_pool *pool)
{
    release_free(pool);
    free(pool->free_pieces);
    *pool = (cs_block_pool){0};
}

/* Reuses the most recently freed piece, which is most likely in caches. */
static bool reuse(cs_block_pool *pool, int64_t bytes, cs_block *block)
{
    for (uint32_t i = pool->n_free; i-- > 0;) {
        cs_block_pool_piece *piece = &pool->free_pieces[i];
        if (piece->bytes != bytes)
            continue;
        *block = (cs_block){piece->data, bytes};
        for (uint32_t k = i + 1; k < pool->n_free; k++)
            pool->free_pieces[k - 1] = pool->free_pieces[k];
        pool->n_free--;
        return true;
    }
    return false;
}

cs_status cs_block_pool_take(cs_block_pool *pool, int64_t bytes, cs_block *block, cs_error *error)
{
    *block = (cs_block){0};
    if (bytes == 0)
        return CS_OK;
    if (!reuse(pool, bytes, block)) {
        /* If the device is full, return the free pieces to it and try again. The device waits for
         * their users (backend.h). */
        void *data;
        const cs_error before = *error;
        cs_status status = pool->backend->allocate(pool->bench, bytes, &data, error);
        if (status == CS_NO_MEMORY && pool->n_free > 0) {
            *error = before;
            release_free(pool);
            status = pool->backend->allocate(pool->bench, bytes, &data, error);
        }
        if (status != CS_OK)
            return status;
        *block = (cs_block){data, bytes};
        pool->held += bytes;
    }
    pool->live += bytes;
    pool->peak = pool->live > pool->peak ? pool->live : pool->peak;
    return CS_OK;
}

/* Frees a piece to the system if the list of free pieces cannot grow. */
void cs_block_pool_give(cs_block_pool *pool, cs_block *block)
{
    if (!block->data)
        return;
    pool->live -= block->bytes;
    if (cs_vector_reserve((void **)&pool->free_pieces, &pool->cap_free, pool->n_free + UINT64_C(1),
                          sizeof(*pool->free_pieces))) {
        pool->free_pieces[pool->n_free++] = (cs_block_pool_piece){block->data, block->bytes};
    } else {
        pool->backend->release(pool->bench, block->data);
        pool->held -= block->bytes;
    }
    *block = (cs_block){0};
}
