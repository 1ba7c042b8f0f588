/* An arena: memory that is freed all at once.
 *
 * A scenario, a model and a platform each own many small arrays and names with the same lifetime.
 * Each has one arena; single allocations cannot be freed.
 */
#ifndef CS_BASE_ARENA_H
#define CS_BASE_ARENA_H

#include <stddef.h>

typedef struct cs_arena {
    struct cs_arena_block *blocks;
} cs_arena;

void cs_arena_init(cs_arena *arena);
void cs_arena_finish(cs_arena *arena);

/* Moves everything that `from` owns to `arena`. Pointers stay valid; `from` is empty afterwards. */
void cs_arena_adopt(cs_arena *arena, cs_arena *from);

/* Returns `count` zeroed elements of `size` bytes, aligned for any type; NULL if memory runs out or
 * count * size overflows. If count is 0, the pointer is valid but must not be dereferenced. */
void *cs_arena_alloc(cs_arena *arena, size_t count, size_t size);

/* Copies `text` (or its first `length` bytes) and appends a NUL. Returns NULL if memory runs
 * out. */
char *cs_arena_copy(cs_arena *arena, const char *text);
char *cs_arena_copy_length(cs_arena *arena, const char *text, size_t length);

#endif
