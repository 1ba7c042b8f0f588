#include "sim/core/trace/pack.h"

#include "sim/base/hash.h"
#include "sim/core/trace/planes.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    /* level of zlib; higher levels take several times as long for a few percent */
    LEVEL = 1,
    /* bytes of a plane that are compressed to find out whether compression pays */
    SAMPLE = 1 << 13,
    STORED_MAX = 65535, /* maximum bytes of an uncompressed deflate block */
    STORED_HEAD = 5,
    FLUSHED = 64,     /* upper bound of the bytes that a flush adds to deflateBound */
    HASHED = 1 << 12, /* bytes of a plane that are hashed to find it again */
    PLANES = 32,      /* number of planes remembered */
    UNTRIED = 7,      /* blocks in which a plane that was noise is stored without trying */
    MOST_BYTES = 8,   /* maximum size of a value */
};

/* Maximum ratio of compressed to plain size of the sample for which compression pays. Deflate takes
 * longest where it gains little: at a ratio of one half, twenty times as long as copying. */
static const double pays_below = 1.0 / 3;

typedef struct buffer {
    unsigned char *bytes;
    size_t capacity;
} buffer;

/* Deflate blocks that end at a byte boundary and refer to nothing before them, and the bytes that
 * they represent. */
typedef struct piece {
    buffer plane; /* empty: one byte value n times */
    buffer blocks;
    size_t n, size; /* sizes of the plane and of the blocks */
    uint64_t hash;
    uLong sum;      /* Adler-32 of the plane */
    unsigned found; /* how many more times this piece was wanted than other planes for its slot */
} piece;

struct cs_packer {
    z_stream stream;
    bool streaming;
    buffer split[MOST_BYTES]; /* planes of the block of values */
    buffer *plane;            /* the current plane */
    buffer blocks, out;
    size_t size; /* bytes used in `out` */
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
    free(of->plane.bytes);
    free(of->blocks.bytes);
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
    for (size_t i = 0; i < MOST_BYTES; i++)
        free(packer->split[i].bytes);
    free(packer->blocks.bytes);
    free(packer->out.bytes);
    free(packer);
}

static bool reserve(buffer *of, size_t need)
{
    if (need <= of->capacity)
        return true;
    unsigned char *grown = realloc(of->bytes, need);
    if (!grown)
        return false;
    *of = (buffer){grown, need};
    return true;
}

static void swap(buffer *a, buffer *b)
{
    const buffer moved = *a;
    *a = *b;
    *b = moved;
}

/* Makes room at the end of the output. */
static bool reserve_out(cs_packer *p, size_t size)
{
    const size_t need = p->size + size;
    return need <= p->out.capacity || reserve(&p->out, need + need / 2);
}

/* ---- pieces ---- */

/* Compresses the next bytes of the plane into the blocks, which have room for them. */
static bool deflate_part(cs_packer *p, size_t from, size_t n)
{
    p->stream.next_in = p->plane->bytes + from;
    p->stream.avail_in = (uInt)n;
    return deflate(&p->stream, Z_SYNC_FLUSH) == Z_OK && p->stream.avail_in == 0 &&
           p->stream.avail_out > 0;
}

/* Makes the blocks of the current plane. Sets *noise if compression does not pay; nothing is made
 * in that case. */
static bool deflate_plane(cs_packer *p, size_t n, piece *made, bool *noise)
{
    const size_t sample = n < SAMPLE ? n : SAMPLE;
    const size_t bound = deflateBound(&p->stream, (uLong)n) + 2 * FLUSHED;
    if (!reserve(&p->blocks, bound) || deflateReset(&p->stream) != Z_OK)
        return false;
    p->stream.next_out = p->blocks.bytes;
    p->stream.avail_out = (uInt)p->blocks.capacity;
    if (!deflate_part(p, 0, sample))
        return false;
    *noise = (double)p->stream.total_out > pays_below * (double)sample;
    if (*noise)
        return true;
    if (n > sample && !deflate_part(p, sample, n - sample))
        return false;
    made->size = p->stream.total_out;
    made->sum = cs_planes_sum(p->plane->bytes, n);
    return true;
}

/* Remembers the new blocks and, with `plane`, the bytes they represent; the packer gets another
 * buffer for its plane. */
static bool keep(cs_packer *p, const piece *made, buffer *plane, piece *place)
{
    if (!reserve(&place->blocks, made->size))
        return false;
    memcpy(place->blocks.bytes, p->blocks.bytes, made->size);
    if (plane)
        swap(plane, &place->plane);
    place->n = made->n;
    place->size = made->size;
    place->hash = made->hash;
    place->sum = made->sum;
    place->found = 0;
    return true;
}

/* ---- a stream of them ---- */

static bool append(cs_packer *p, const void *bytes, size_t size)
{
    if (!reserve_out(p, size))
        return false;
    memcpy(p->out.bytes + p->size, bytes, size);
    p->size += size;
    return true;
}

static void add_sum(cs_packer *p, uLong sum, size_t n)
{
    p->sum = adler32_combine(p->sum, sum, (z_off_t)n);
}

static bool append_piece(cs_packer *p, const piece *of, const buffer *blocks)
{
    add_sum(p, of->sum, of->n);
    return append(p, blocks->bytes, of->size);
}

/* Adds the current plane in uncompressed blocks. */
static bool add_noise(cs_packer *p, size_t n)
{
    if (!reserve_out(p, n + STORED_HEAD * (n / STORED_MAX + 1)))
        return false;
    unsigned char *to = p->out.bytes + p->size;
    for (size_t at = 0; at < n; at += STORED_MAX) {
        const unsigned length = (unsigned)(n - at < STORED_MAX ? n - at : STORED_MAX);
        const unsigned head[STORED_HEAD] = {0, length & 0xff, length >> 8, ~length & 0xff,
                                            (~length >> 8) & 0xff};
        for (int i = 0; i < STORED_HEAD; i++)
            *to++ = (unsigned char)head[i];
        memcpy(to, p->plane->bytes + at, length);
        to += length;
    }
    p->size = (size_t)(to - p->out.bytes);
    add_sum(p, cs_planes_sum(p->plane->bytes, n), n);
    return true;
}

/* Adds one byte value n times. */
static bool add_constant(cs_packer *p, unsigned char byte, size_t n)
{
    piece *kept = &p->constants[byte];
    if (kept->n != n) {
        piece made = {.n = n};
        bool noise = false;
        memset(p->plane->bytes, byte, n);
        if (!deflate_plane(p, n, &made, &noise))
            return false;
        if (noise) /* happens if n is small */
            return add_noise(p, n);
        if (!keep(p, &made, NULL, kept))
            return false;
    }
    return append_piece(p, kept, &kept->blocks);
}

/* Adds the current plane. Its first bytes determine the slot where it is looked up. A plane that
 * was found again keeps its slot until as many others would have replaced it. */
static bool add_plane(cs_packer *p, size_t n, bool *noise)
{
    const unsigned char *plane = p->plane->bytes;
    piece made = {.n = n, .hash = cs_hash_bytes(plane, n < HASHED ? n : HASHED, 0)};
    piece *kept = &p->planes[made.hash % PLANES];
    *noise = false;
    if (kept->n == n && kept->hash == made.hash && memcmp(kept->plane.bytes, plane, n) == 0) {
        kept->found++;
        return append_piece(p, kept, &kept->blocks);
    }
    if (!deflate_plane(p, n, &made, noise))
        return false;
    if (*noise)
        return add_noise(p, n);
    if (!append_piece(p, &made, &p->blocks))
        return false;
    if (kept->found == 0)
        return keep(p, &made, p->plane, kept);
    kept->found--;
    return true;
}

/* An untried plane is not looked up either, so that other columns never change the output. */
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

/* Bits that differ among n words. */
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

/* Bits that differ among the values. Values of 4 and 1 bytes are compared 8 bytes at a time with
 * repetitions of the first value. */
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

static bool split(cs_packer *p, const unsigned char *values, size_t n, size_t size)
{
    unsigned char *planes[MOST_BYTES];
    for (size_t b = 0; b < size; b++) {
        if (!reserve(&p->split[b], n))
            return false;
        planes[b] = p->split[b].bytes;
    }
    cs_planes_split(values, n, size, planes);
    return true;
}

static bool add_planes(cs_packer *p, cs_pack_history *history, const unsigned char *values,
                       size_t n, size_t size)
{
    const uint64_t differ = differences(values, n, size);
    bool done = split(p, values, n, size);
    for (size_t b = 0; b < size && done; b++) {
        p->plane = &p->split[b];
        done = ((differ >> (CHAR_BIT * b)) & UCHAR_MAX) == 0 ? add_constant(p, values[b], n)
                                                             : add_next(p, n, &history->untried[b]);
    }
    return done;
}

bool cs_packer_pack(cs_packer *packer, cs_pack_history *history, const void *values, size_t n,
                    size_t size, const void **packed, size_t *packed_size)
{
    static const unsigned char head[] = {0x78, 0x01}, last[] = {0x03, 0x00};
    packer->size = 0;
    packer->sum = 1;
    if (!append(packer, head, sizeof(head)) || !add_planes(packer, history, values, n, size) ||
        !append(packer, last, sizeof(last)))
        return false;
    unsigned char sum[4];
    for (int i = 0; i < 4; i++)
        sum[i] = (unsigned char)(packer->sum >> (24 - CHAR_BIT * i));
    if (!append(packer, sum, sizeof(sum)))
        return false;
    *packed = packer->out.bytes;
    *packed_size = packer->size;
    return true;
}
