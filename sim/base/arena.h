/* An arena: memory that is given back all at once.
 *
 * A scenario, a model, a platform own many small arrays and names that live and die together.
 * They come from one arena each; single pieces cannot be freed.
 */
#ifndef CS_BASE_ARENA_H
#define CS_BASE_ARENA_H

#include <stddef.h>

typedef struct cs_arena {
    struct cs_arena_block *blocks;
} cs_arena;

void cs_arena_init(cs_arena *arena);
void cs_arena_finish(cs_arena *arena);

/* Moves all that `from` owns to `arena`; pointers to it stay. `from` is empty afterwards. */
void cs_arena_adopt(cs_arena *arena, cs_arena *from);

/* `count` elements of `size` bytes, zeroed, aligned for any type; NULL when memory runs out or
 * count * size overflows. A count of 0 gives a valid pointer to nothing. */
void *cs_arena_alloc(cs_arena *arena, size_t count, size_t size);

/* A copy of `text` (or of its first `length` bytes), NUL-terminated; NULL when memory runs out. */
char *cs_arena_copy(cs_arena *arena, const char *text);
char *cs_arena_copy_length(cs_arena *arena, const char *text, size_t length);

#endif
