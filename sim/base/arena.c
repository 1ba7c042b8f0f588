#include "sim/base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* calloc zeroes a whole block, so the first block of an arena, which often holds little, is
 * small. */
enum { FIRST_BLOCK_BYTES = 2 << 10, BLOCK_BYTES = 64 << 10 };

struct cs_arena_block {
    struct cs_arena_block *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) unsigned char bytes[];
};

void cs_arena_init(cs_arena *arena)
{
    arena->blocks = NULL;
}

void cs_arena_finish(cs_arena *arena)
{
    if (!arena)
        return;
    struct cs_arena_block *block = arena->blocks;
    while (block) {
        struct cs_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}

void cs_arena_adopt(cs_arena *arena, cs_arena *from)
{
    struct cs_arena_block **end = &arena->blocks;
    while (*end)
        end = &(*end)->next;
    *end = from->blocks;
    from->blocks = NULL;
}

/* Capacity of a shared block with room for `bytes`: twice the previous block's, up to
 * BLOCK_BYTES. */
static size_t next_capacity(const cs_arena *arena, size_t bytes)
{
    size_t capacity = arena->blocks ? arena->blocks->capacity : FIRST_BLOCK_BYTES / 2;
    do {
        capacity *= 2;
    } while (capacity < 4 * bytes);
    return capacity < BLOCK_BYTES ? capacity : BLOCK_BYTES;
}

/* Adds a block. Small allocations are served from the first block in the list; a block for a single
 * large allocation is inserted after it, so that the room left in the first stays in use. */
static struct cs_arena_block *add_block(cs_arena *arena, size_t bytes)
{
    const bool large = bytes > BLOCK_BYTES / 4;
    const size_t capacity = large ? bytes : next_capacity(arena, bytes);
    if (capacity > SIZE_MAX - sizeof(struct cs_arena_block))
        return NULL;
    struct cs_arena_block *block = calloc(1, sizeof(*block) + capacity);
    if (!block)
        return NULL;
    block->capacity = capacity;
    struct cs_arena_block **place = &arena->blocks;
    if (large && *place)
        place = &(*place)->next;
    block->next = *place;
    *place = block;
    return block;
}

void *cs_arena_alloc(cs_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - alignof(max_align_t))
        return NULL;
    bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct cs_arena_block *block = arena->blocks;
    if (!block || block->capacity - block->used < bytes)
        block = add_block(arena, bytes);
    if (!block)
        return NULL;
    void *piece = block->bytes + block->used;
    block->used += bytes;
    return piece;
}

char *cs_arena_copy(cs_arena *arena, const char *text)
{
    return cs_arena_copy_length(arena, text, strlen(text));
}

char *cs_arena_copy_length(cs_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = cs_arena_alloc(arena, length + 1, 1);
    if (copy && length > 0)
        memcpy(copy, text, length);
    return copy;
}
