#include "sim/trace/pack.h"

#include "sim/base/hash.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LEVEL = 1,          /* of zlib; higher ones cost several times the time for a few percent */
    SAMPLE = 1 << 13,   /* bytes of a plane that are compressed to see whether that pays */
    STORED_MAX = 65535, /* bytes of a block of deflate that is not compressed */
    STORED_HEAD = 5,
    FLUSHED = 64,     /* more than a flush adds to what deflateBound says */
    HASHED = 1 << 12, /* bytes of a plane that say where it is remembered */
    PLANES = 32,      /* that are remembered */
    UNTRIED = 7,      /* blocks in which a plane is stored that was noise */
};

/* Compressed over plain size of the sample. What deflate makes little smaller costs it most: where
 * half is left, twenty times as long as copying. */
static const double pays_below = 1.0 / 3;

/* Blocks of deflate that end at a byte and refer to nothing before them, and what they stand for. */
typedef struct piece {
    unsigned char *plane; /* NULL: the byte n times */
    unsigned char *bytes;
    size_t n, size; /* of the plane, of the blocks */
    uint64_t hash;
    uLong sum; /* Adler-32 of the plane */
} piece;

struct cs_packer {
    z_stream stream;
    bool streaming;
    unsigned char *plane, *blocks, *out;
    size_t cap_plane, cap_blocks, cap_out;
    size_t size; /* of what is in `out` */
    uLong sum;
    piece constants[UCHAR_MAX + 1];
    piece planes[PLANES];
};

cs_packer *cs_packer_create(void)
{
    cs_packer *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->streaming =
        deflateInit2(&made->stream, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (made->streaming)
        return made;
    free(made);
    return NULL;
}

static void forget(piece *of)
{
    free(of->plane);
    free(of->bytes);
    *of = (piece){0};
}

void cs_packer_destroy(cs_packer *packer)
{
    if (!packer)
        return;
    if (packer->streaming)
        deflateEnd(&packer->stream);
    for (size_t i = 0; i <= UCHAR_MAX; i++)
        forget(&packer->constants[i]);
    for (size_t i = 0; i < PLANES; i++)
        forget(&packer->planes[i]);
    free(packer->plane);
    free(packer->blocks);
    free(packer->out);
    free(packer);
}

static bool reserve(unsigned char **buffer, size_t *capacity, size_t need)
{
    if (need <= *capacity)
        return true;
    unsigned char *grown = realloc(*buffer, need);
    if (!grown)
        return false;
    *buffer = grown;
    *capacity = need;
    return true;
}

/* ---- pieces ---- */

static size_t stored_bound(size_t n)
{
    return n + STORED_HEAD * (n / STORED_MAX + 1);
}

/* As blocks that are not compressed. */
static void store_plane(cs_packer *p, size_t n, piece *made)
{
    unsigned char *to = p->blocks;
    for (size_t at = 0; at < n; at += STORED_MAX) {
        const unsigned length = (unsigned)(n - at < STORED_MAX ? n - at : STORED_MAX);
        const unsigned head[STORED_HEAD] = {0, length & 0xff, length >> 8, ~length & 0xff,
                                            (~length >> 8) & 0xff};
        for (int i = 0; i < STORED_HEAD; i++)
            *to++ = (unsigned char)head[i];
        memcpy(to, p->plane + at, length);
        to += length;
    }
    made->size = (size_t)(to - p->blocks);
}

/* Adds the next bytes of the plane to the blocks; there is room for them. */
static bool deflate_part(cs_packer *p, size_t from, size_t n)
{
    p->stream.next_in = p->plane + from;
    p->stream.avail_in = (uInt)n;
    return deflate(&p->stream, Z_SYNC_FLUSH) == Z_OK && p->stream.avail_in == 0 &&
           p->stream.avail_out > 0;
}

/* *noise: it is not worth it, and nothing was made; so said by the caller, it is not tried. */
static bool deflate_plane(cs_packer *p, size_t n, piece *made, bool *noise)
{
    const size_t sample = n < SAMPLE ? n : SAMPLE;
    if (*noise)
        return true;
    if (deflateReset(&p->stream) != Z_OK)
        return false;
    p->stream.next_out = p->blocks;
    p->stream.avail_out = (uInt)p->cap_blocks;
    if (!deflate_part(p, 0, sample))
        return false;
    *noise = (double)p->stream.total_out > pays_below * (double)sample;
    if (*noise)
        return true;
    if (n > sample && !deflate_part(p, sample, n - sample))
        return false;
    made->size = p->stream.total_out;
    return true;
}

/* The blocks of the packer's plane. */
static bool pack_plane(cs_packer *p, size_t n, piece *made, bool *noise)
{
    const size_t bound = deflateBound(&p->stream, (uLong)n) + 2 * FLUSHED;
    const size_t stored = stored_bound(n);
    if (!reserve(&p->blocks, &p->cap_blocks, bound > stored ? bound : stored) ||
        !deflate_plane(p, n, made, noise))
        return false;
    if (*noise)
        store_plane(p, n, made);
    made->sum = adler32_z(1, p->plane, n);
    return true;
}

/* Remembers the blocks that were just made. */
static bool keep(const cs_packer *p, const piece *made, bool with_plane, piece *place)
{
    forget(place);
    place->bytes = malloc(made->size);
    place->plane = with_plane ? malloc(made->n) : NULL;
    if (!place->bytes || (with_plane && !place->plane)) {
        forget(place);
        return false;
    }
    memcpy(place->bytes, p->blocks, made->size);
    if (with_plane)
        memcpy(place->plane, p->plane, made->n);
    place->n = made->n;
    place->size = made->size;
    place->hash = made->hash;
    place->sum = made->sum;
    return true;
}

/* ---- a stream of them ---- */

static bool append(cs_packer *p, const void *bytes, size_t size)
{
    const size_t need = p->size + size;
    if (need > p->cap_out && !reserve(&p->out, &p->cap_out, need + need / 2))
        return false;
    memcpy(p->out + p->size, bytes, size);
    p->size = need;
    return true;
}

static bool append_piece(cs_packer *p, const piece *of, const unsigned char *bytes)
{
    p->sum = adler32_combine(p->sum, of->sum, (z_off_t)of->n);
    return append(p, bytes, of->size);
}

/* The same byte n times. */
static bool add_constant(cs_packer *p, unsigned char byte, size_t n)
{
    piece *kept = &p->constants[byte];
    if (kept->n != n) {
        piece made = {.n = n};
        bool noise = false;
        memset(p->plane, byte, n);
        if (!pack_plane(p, n, &made, &noise) || !keep(p, &made, false, kept))
            return false;
    }
    return append_piece(p, kept, kept->bytes);
}

/* The plane of the packer, untried. */
static bool add_noise(cs_packer *p, size_t n)
{
    piece made = {.n = n};
    bool noise = true;
    return pack_plane(p, n, &made, &noise) && append_piece(p, &made, p->blocks);
}

/* The plane of the packer. Its beginning says where to look for it. */
static bool add_plane(cs_packer *p, size_t n, bool *noise)
{
    piece made = {.n = n, .hash = cs_hash_bytes(p->plane, n < HASHED ? n : HASHED, 0)};
    piece *kept = &p->planes[made.hash % PLANES];
    *noise = false;
    if (kept->n == n && kept->hash == made.hash && memcmp(kept->plane, p->plane, n) == 0)
        return append_piece(p, kept, kept->bytes);
    if (!pack_plane(p, n, &made, noise))
        return false;
    return append_piece(p, &made, p->blocks) && (*noise || keep(p, &made, true, kept));
}

/* What other columns had must not change what is made: an untried plane is not looked for either. */
static bool add_next(cs_packer *p, size_t n, unsigned char *untried)
{
    bool noise;
    if (*untried > 0) {
        --*untried;
        return add_noise(p, n);
    }
    if (!add_plane(p, n, &noise))
        return false;
    *untried = noise ? UNTRIED : 0;
    return true;
}

enum { UNROLLED = 8 };

/* Which bits differ among n words. */
static uint64_t differing_words(const unsigned char *values, size_t n)
{
    uint64_t first, differ = 0, words[UNROLLED];
    size_t i = 0;
    memcpy(&first, values, sizeof(first));
    for (; i + UNROLLED <= n; i += UNROLLED) {
        memcpy(words, values + i * sizeof(first), sizeof(words));
        differ |= (words[0] ^ first) | (words[1] ^ first) | (words[2] ^ first) |
                  (words[3] ^ first) | (words[4] ^ first) | (words[5] ^ first) |
                  (words[6] ^ first) | (words[7] ^ first);
    }
    for (; i < n; i++) {
        memcpy(words, values + i * sizeof(first), sizeof(first));
        differ |= words[0] ^ first;
    }
    return differ;
}

/* Which bits differ among the values: those of 4 and of 1 bytes are compared 8 bytes at a time,
 * with the first one as often. */
static uint64_t differences(const unsigned char *values, size_t n, size_t size)
{
    const size_t n_words = n * size / sizeof(uint64_t);
    unsigned char differ[sizeof(uint64_t)] = {0};
    uint64_t found = n_words > 0 ? differing_words(values, n_words) : 0;
    memcpy(differ, &found, sizeof(found));
    for (size_t b = 0; b < sizeof(uint64_t); b++) {
        if (n_words > 0)
            differ[b] |= values[b] ^ values[b % size];
        if (b >= size)
            differ[b % size] |= differ[b];
    }
    for (size_t at = n_words * sizeof(uint64_t); at < n * size; at++)
        differ[at % size] |= values[at] ^ values[at % size];
    memcpy(&found, differ, sizeof(found));
    return found;
}

/* The first bytes of all values. */
static void gather_plane(const unsigned char *values, size_t n, size_t size, unsigned char *plane)
{
    size_t i = 0;
    for (; i + UNROLLED <= n; i += UNROLLED, values += UNROLLED * size) {
        plane[i] = values[0];
        plane[i + 1] = values[size];
        plane[i + 2] = values[2 * size];
        plane[i + 3] = values[3 * size];
        plane[i + 4] = values[4 * size];
        plane[i + 5] = values[5 * size];
        plane[i + 6] = values[6 * size];
        plane[i + 7] = values[7 * size];
    }
    for (; i < n; i++, values += size)
        plane[i] = values[0];
}

static bool add_planes(cs_packer *p, cs_pack_history *history, const unsigned char *values,
                       size_t n, size_t size)
{
    const uint64_t differ = differences(values, n, size);
    bool done = true;
    for (size_t b = 0; b < size && done; b++) {
        if (((differ >> (CHAR_BIT * b)) & UCHAR_MAX) == 0) {
            done = add_constant(p, values[b], n);
            continue;
        }
        gather_plane(values + b, n, size, p->plane);
        done = add_next(p, n, &history->untried[b]);
    }
    return done;
}

bool cs_packer_pack(cs_packer *packer, cs_pack_history *history, const void *values, size_t n,
                    size_t size, const void **packed, size_t *packed_size)
{
    static const unsigned char head[] = {0x78, 0x01}, last[] = {0x03, 0x00};
    packer->size = 0;
    packer->sum = 1;
    if (!reserve(&packer->plane, &packer->cap_plane, n) || !append(packer, head, sizeof(head)) ||
        !add_planes(packer, history, values, n, size) || !append(packer, last, sizeof(last)))
        return false;
    unsigned char sum[4];
    for (int i = 0; i < 4; i++)
        sum[i] = (unsigned char)(packer->sum >> (24 - CHAR_BIT * i));
    if (!append(packer, sum, sizeof(sum)))
        return false;
    *packed = packer->out;
    *packed_size = packer->size;
    return true;
}
