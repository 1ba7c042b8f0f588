/* Unsigned integers in variable-length encoding (LEB128): seven bits per byte, the lowest first.
 * For millions of records that are read in order.
 */
#ifndef CS_BASE_COMPACT_H
#define CS_BASE_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cs_compact {
    unsigned char *bytes;
    size_t used, capacity;
} cs_compact;

enum { CS_COMPACT_MOST = 10 }; /* bytes of the longest encoding */

/* Accepts a zeroed struct. */
void cs_compact_finish(cs_compact *compact);

bool cs_compact_grow(cs_compact *compact, size_t numbers);

/* Makes room for `numbers` more numbers. Returns false if memory runs out. */
static inline bool cs_compact_reserve(cs_compact *compact, size_t numbers)
{
    return compact->capacity - compact->used >= CS_COMPACT_MOST * numbers ||
           cs_compact_grow(compact, numbers);
}

/* Appends a number; cs_compact_reserve has made room for it. */
static inline void cs_compact_put(cs_compact *compact, uint64_t number)
{
    unsigned char *to = compact->bytes + compact->used;
    for (; number >= 0x80; number >>= 7)
        *to++ = (unsigned char)(number | 0x80);
    *to++ = (unsigned char)number;
    compact->used = (size_t)(to - compact->bytes);
}

/* Reads the number that begins at byte *at and advances *at to the next one. */
static inline uint64_t cs_compact_get(const cs_compact *compact, size_t *at)
{
    const unsigned char *from = compact->bytes + *at;
    uint64_t number = *from & 0x7f;
    for (unsigned shift = 7; *from++ & 0x80; shift += 7)
        number |= (uint64_t)(*from & 0x7f) << shift;
    *at = (size_t)(from - compact->bytes);
    return number;
}

#endif
