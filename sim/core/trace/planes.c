#include "sim/core/trace/planes.h"

#include <string.h>

/* Vector size that all processors have; compilers emit loops where it is missing. */
enum { LANES = 16 };

/* ---- planes ---- */

/* Splits the values from `done` on, byte by byte. */
static void split_one_by_one(const unsigned char *values, size_t done, size_t n, size_t size,
                             unsigned char *const *planes)
{
    for (size_t b = 0; b < size; b++)
        for (size_t i = done; i < n; i++)
            planes[b][i] = values[i * size + b];
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE 1
#endif
#endif

#ifdef HAS_SHUFFLE

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static inline lanes interleave_low(lanes a, lanes b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline lanes interleave_high(lanes a, lanes b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}

/* Four vectors named individually, so that compilers keep them in registers. */

static inline void load(const unsigned char *from, lanes *to)
{
    memcpy(&to[0], from, LANES);
    memcpy(&to[1], from + LANES, LANES);
    memcpy(&to[2], from + 2 * LANES, LANES);
    memcpy(&to[3], from + 3 * LANES, LANES);
}

static inline void store(const lanes *from, unsigned char *const *planes, size_t at)
{
    memcpy(planes[0] + at, &from[0], LANES);
    memcpy(planes[1] + at, &from[1], LANES);
    memcpy(planes[2] + at, &from[2], LANES);
    memcpy(planes[3] + at, &from[3], LANES);
}

/* Interleaves two halves, like a riffle shuffle of cards. */
static inline void shuffle(const lanes *half, const lanes *other, lanes *to)
{
    to[0] = interleave_low(half[0], other[0]);
    to[1] = interleave_high(half[0], other[0]);
    to[2] = interleave_low(half[1], other[1]);
    to[3] = interleave_high(half[1], other[1]);
}

static inline void shuffle_all(const lanes *from, lanes *to, size_t size)
{
    shuffle(from, from + size / 2, to);
    if (size == 8)
        shuffle(from + 2, from + 6, to + 4);
}

/* Splits sixteen values of 4 or 8 bytes (`size`) at a time. The position of a byte consists of four
 * bits for its value and log2(size) bits for the byte within the value. A shuffle rotates these
 * bits by one, so after four shuffles the value's bits come last. Returns the number of values
 * done. */
static inline size_t split_vectors(const unsigned char *values, size_t n, size_t size,
                                   unsigned char *const *planes)
{
    size_t done = 0;
    for (; done + LANES <= n; done += LANES, values += size * LANES) {
        lanes a[8], b[8];
        load(values, a);
        if (size == 8)
            load(values + 4 * LANES, a + 4);
        shuffle_all(a, b, size);
        shuffle_all(b, a, size);
        shuffle_all(a, b, size);
        shuffle_all(b, a, size);
        store(a, planes, done);
        if (size == 8)
            store(a + 4, planes + 4, done);
    }
    return done;
}

#else

static inline size_t split_vectors(const unsigned char *values, size_t n, size_t size,
                                   unsigned char *const *planes)
{
    (void)values, (void)n, (void)size, (void)planes;
    return 0;
}

#endif

void cs_planes_split(const unsigned char *values, size_t n, size_t size,
                     unsigned char *const *planes)
{
    size_t done = 0;
    if (size == 8)
        done = split_vectors(values, n, 8, planes);
    else if (size == 4)
        done = split_vectors(values, n, 4, planes);
    split_one_by_one(values, done, n, size, planes);
}

/* ---- the checksum ---- */

typedef uint16_t sums __attribute__((vector_size(LANES)));

enum {
    MODULUS = 65521,
    MOST_ROWS = 22,    /* largest n for which UINT8_MAX * (1 + 2 + ... + n) fits a lane */
    PAIRS = LANES / 2, /* two neighbouring bytes of a row share a lane of the two sums */
};

/* Adds `rows` rows of LANES bytes to the sums a and b of Adler-32. Each lane has the sum of its
 * bytes, and the sum over all rows in which bytes of the first row count as many times as there are
 * rows. */
static void add_rows(const unsigned char *bytes, size_t rows, uint32_t *a, uint32_t *b)
{
    sums even = {0}, odd = {0}, all_even = {0}, all_odd = {0};
    for (size_t r = 0; r < rows; r++) {
        sums row;
        memcpy(&row, bytes + r * LANES, sizeof(row));
        even += row & 0xff;
        odd += row >> 8;
        all_even += even;
        all_odd += odd;
    }
    uint32_t sum = 0, weighted = (uint32_t)rows * LANES * *a;
    for (uint32_t i = 0; i < PAIRS; i++) {
        const uint32_t pair = (uint32_t)even[i] + odd[i];
        sum += pair;
        weighted += LANES * ((uint32_t)all_even[i] + all_odd[i]) - 2 * i * pair - odd[i];
    }
    *a = (*a + sum) % MODULUS;
    *b = (*b + weighted) % MODULUS;
}

uint32_t cs_planes_sum(const unsigned char *bytes, size_t n)
{
    uint32_t a = 1, b = 0;
    for (; n >= LANES;) {
        const size_t rows = n / LANES < MOST_ROWS ? n / LANES : MOST_ROWS;
        add_rows(bytes, rows, &a, &b);
        bytes += rows * LANES;
        n -= rows * LANES;
    }
    for (; n > 0; n--) {
        a = (a + *bytes++) % MODULUS;
        b = (b + a) % MODULUS;
    }
    return b << 16 | a;
}
