#include "sim/base/random.h"

#include "sim/base/hash.h"

#include <limits.h>
#include <string.h>

_Static_assert(ULONG_MAX == UINT64_MAX, "GSL returns unsigned long, which must have 64 bits");

typedef struct xoshiro {
    uint64_t s[4];
} xoshiro;

static uint64_t rotate_left(uint64_t x, unsigned int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* One step of splitmix64 (Steele, Lea, Flood 2014): a permutation of a counter, so four successive
 * outputs are never all zero, the one state that xoshiro must not have. */
static uint64_t splitmix(uint64_t *counter)
{
    uint64_t z = *counter += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void xoshiro_set(void *state, unsigned long seed)
{
    xoshiro *x = state;
    uint64_t counter = seed;
    for (int i = 0; i < 4; i++)
        x->s[i] = splitmix(&counter);
}

static unsigned long xoshiro_get(void *state)
{
    uint64_t *s = ((xoshiro *)state)->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Uses the upper 53 bits: every multiple of 2^-53 in [0, 1), all equally likely. */
static double xoshiro_get_double(void *state)
{
    return (double)(xoshiro_get(state) >> 11) * 0x1p-53;
}

static const gsl_rng_type xoshiro_type = {
    .name = "xoshiro256**",
    .max = ULONG_MAX,
    .min = 0,
    .size = sizeof(xoshiro),
    .set = xoshiro_set,
    .get = xoshiro_get,
    .get_double = xoshiro_get_double,
};

gsl_rng *cs_random_stream(uint64_t seed, const char *name)
{
    gsl_rng *stream = gsl_rng_alloc(&xoshiro_type);
    if (stream)
        gsl_rng_set(stream, cs_hash_bytes(name, strlen(name), seed));
    return stream;
}
