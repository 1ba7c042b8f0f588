/* PyTorch's caching allocator against an allocator that is written from its documentation in
 * another way, and slow: a segment is a list of chunks, and each search looks at all of them. */
#include "tests/expect.h"

#include "sim/model/allocator/memory-snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1024, MIB = 1024 * KIB };

/* ---- the slow one ---- */

typedef struct chunk {
    int64_t size;
    int id; /* id of the allocation, or 0: free */
    struct chunk *next;
} chunk;

typedef struct segment {
    int64_t size;
    uint32_t stream;
    bool small;
    chunk *chunks;
    struct segment *next; /* in the order of allocation: addresses rise */
} segment;

typedef struct slow {
    int64_t capacity, limit; /* limit: max_split_size */
    int64_t allocated, reserved;
    segment *segments;
} slow;

static int64_t up(int64_t bytes, int64_t unit)
{
    return bytes % unit ? bytes + unit - bytes % unit : bytes;
}

static chunk *slow_new_segment(slow *s, int64_t size, uint32_t stream)
{
    const int64_t bytes = size <= MIB ? 2 * MIB : size < 10 * MIB ? 20 * MIB : up(size, 2 * MIB);
    if (bytes > s->capacity - s->reserved)
        return NULL;
    segment **end = &s->segments;
    while (*end)
        end = &(*end)->next;
    *end = calloc(1, sizeof(**end));
    **end = (segment){bytes, stream, size <= MIB, calloc(1, sizeof(chunk)), NULL};
    (*end)->chunks->size = bytes;
    s->reserved += bytes;
    return (*end)->chunks;
}

static void slow_release(slow *s, bool (*wanted)(const slow *s, const segment *g))
{
    for (segment **at = &s->segments; *at;) {
        segment *g = *at;
        if (g->chunks->id == 0 && !g->chunks->next && wanted(s, g)) {
            *at = g->next;
            s->reserved -= g->size;
            free(g->chunks);
            free(g);
        } else {
            at = &g->next;
        }
    }
}

static bool any(const slow *s, const segment *g)
{
    (void)s;
    (void)g;
    return true;
}

/* The smallest free chunk that is large enough, of equal ones the first. */
static chunk *slow_find(const slow *s, int64_t size, uint32_t stream)
{
    chunk *best = NULL;
    for (segment *g = s->segments; g; g = g->next) {
        if (g->stream != stream || g->small != (size <= MIB))
            continue;
        for (chunk *c = g->chunks; c; c = c->next)
            if (c->id == 0 && c->size >= size && (!best || c->size < best->size))
                best = c;
    }
    if (best && size < s->limit && best->size >= s->limit)
        return NULL;
    if (best && size >= s->limit && best->size >= size + 20 * MIB)
        return NULL;
    return best;
}

/* The oversized free segment that is large enough and smallest goes; else the largest ones until
 * they are enough. */
static bool slow_release_large(slow *s, int64_t size, uint32_t stream)
{
    const int64_t need = size > s->limit ? size : s->limit;
    int64_t gained = 0;
    while (size > MIB && s->limit < INT64_MAX && gained < need) {
        segment *best = NULL;
        for (segment *g = s->segments; g; g = g->next) {
            if (g->stream != stream || g->small || g->chunks->id != 0 || g->chunks->next ||
                g->size < s->limit)
                continue;
            const bool enough = g->size >= need, has = best && best->size >= need;
            /* if equal: the last from above, the first from below */
            if (!best || (enough && (!has || g->size < best->size)) ||
                (!enough && !has && g->size >= best->size))
                best = g;
        }
        if (!best)
            return false;
        const int64_t bytes = best->size;
        for (segment **at = &s->segments; *at; at = &(*at)->next)
            if (*at == best) {
                *at = best->next;
                break;
            }
        s->reserved -= bytes;
        free(best->chunks);
        free(best);
        if (bytes >= need && gained == 0)
            return true;
        gained += bytes;
    }
    return gained >= need && size > MIB && s->limit < INT64_MAX;
}

static bool slow_allocate(slow *s, int64_t bytes, uint32_t stream, int id)
{
    const int64_t size = up(bytes, 512);
    chunk *c = slow_find(s, size, stream);
    if (!c)
        c = slow_new_segment(s, size, stream);
    if (!c && slow_release_large(s, size, stream))
        c = slow_new_segment(s, size, stream);
    if (!c) {
        slow_release(s, any);
        c = slow_new_segment(s, size, stream);
    }
    if (!c)
        return false;
    const int64_t rest = c->size - size;
    if (size <= MIB ? rest >= 512 : size < s->limit && rest > MIB) {
        chunk *behind = calloc(1, sizeof(*behind));
        *behind = (chunk){rest, 0, c->next};
        c->next = behind;
        c->size = size;
    }
    c->id = id;
    s->allocated += c->size;
    return true;
}

static void slow_free(slow *s, int id)
{
    for (segment *g = s->segments; g; g = g->next) {
        for (chunk *c = g->chunks; c; c = c->next) {
            if (c->id != id)
                continue;
            c->id = 0;
            s->allocated -= c->size;
        }
        for (chunk *c = g->chunks; c;) {
            if (c->next && c->id == 0 && c->next->id == 0) {
                chunk *gone = c->next;
                c->size += gone->size;
                c->next = gone->next;
                free(gone);
            } else {
                c = c->next;
            }
        }
    }
}

static void slow_finish(slow *s)
{
    for (segment *g = s->segments, *next; g; g = next) {
        next = g->next;
        for (chunk *c = g->chunks, *n; c; c = n) {
            n = c->next;
            free(c);
        }
        free(g);
    }
}

/* ---- random traces ---- */

typedef struct rule {
    const char *name;
    int64_t capacity, max_split_size;
} rule;

/* Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014. */
static uint64_t below(uint64_t *state, uint64_t n)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n;
}

/* Sizes of all classes: below 512 bytes to 64 MiB, with many that occur again, as tensors do. */
static int64_t draw_size(uint64_t *random)
{
    const uint64_t kind = below(random, 4);
    const int64_t usual[] = {8 * KIB, 3 * MIB, 12 * MIB, 33 * MIB};
    if (kind == 0)
        return 1 + (int64_t)below(random, 2 * MIB);
    if (kind == 1)
        return 1 + (int64_t)below(random, 64 * MIB);
    return usual[below(random, 4)];
}

static void compare(const char *name, int step, const slow *s, const cs_caching_allocator *a)
{
    const cs_caching_stats *stats = cs_caching_stats_of(a);
    if (s->allocated != stats->allocated || s->reserved != stats->reserved)
        fail_msg("%s, step %d: allocated %lld and reserved %lld, the slow one %lld and %lld", name,
                 step, (long long)stats->allocated, (long long)stats->reserved,
                 (long long)s->allocated, (long long)s->reserved);
}

static void play(const rule *r, uint64_t seed)
{
    enum { STEPS = 4000, LIVE = 64 };
    cs_error error;
    uint32_t blocks[LIVE], n = 0;
    int ids[LIVE];
    slow s = {.capacity = r->capacity, .limit = r->max_split_size};
    const cs_caching_options options = {.capacity = r->capacity,
                                        .max_split_size = r->max_split_size};
    cs_caching_allocator *a = cs_caching_create(&options, NULL);
    uint64_t random = seed;
    cs_error_init(&error);
    assert_non_null(a);
    for (int step = 1; step <= STEPS; step++) {
        if (n < LIVE && (n == 0 || below(&random, 100) < 55)) {
            const int64_t bytes = draw_size(&random);
            const uint32_t stream = (uint32_t)below(&random, 2);
            const bool made = slow_allocate(&s, bytes, stream, step);
            assert_int_equal(cs_caching_allocate(a, bytes, stream, &blocks[n], &error), CS_OK);
            if (made != (blocks[n] != CS_NO_BLOCK))
                fail_msg("%s, step %d: %lld bytes %s", r->name, step, (long long)bytes,
                         made ? "must fit" : "must not fit");
            ids[n] = step;
            n += made;
        } else {
            const uint64_t i = below(&random, n);
            slow_free(&s, ids[i]);
            assert_int_equal(cs_caching_free(a, blocks[i], &error), CS_OK);
            blocks[i] = blocks[--n];
            ids[i] = ids[n];
        }
        compare(r->name, step, &s, a);
    }
    slow_finish(&s);
    cs_caching_destroy(a);
}

static void does_as_the_slow_one(void **state)
{
    (void)state;
    const rule rules[] = {
        {"without a limit", INT64_MAX, INT64_MAX},
        {"600 MiB", 600 * MIB, INT64_MAX},
        {"blocks of 24 MiB are not split", INT64_MAX, 24 * MIB},
        {"the same in 700 MiB", 700 * MIB, 24 * MIB},
    };
    for (size_t i = 0; i < ROWS(rules); i++)
        for (uint64_t seed = 1; seed <= 8; seed++)
            play(&rules[i], seed);
}

/* ---- sequences by hand ---- */

static cs_caching_allocator *make(int64_t capacity, int64_t max_split_size, double gc, bool grows)
{
    const cs_caching_options options = {capacity, max_split_size, gc, grows};
    cs_caching_allocator *a = cs_caching_create(&options, NULL);
    assert_non_null(a);
    return a;
}

static uint32_t take(cs_caching_allocator *a, int64_t bytes, uint32_t stream)
{
    cs_error error;
    uint32_t block;
    cs_error_init(&error);
    assert_int_equal(cs_caching_allocate(a, bytes, stream, &block, &error), CS_OK);
    return block;
}

static void give(cs_caching_allocator *a, uint32_t block)
{
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_caching_free(a, block, &error), CS_OK);
}

static void expect(const char *name, const cs_caching_allocator *a, int64_t allocated,
                   int64_t reserved)
{
    expect_int(name, allocated, cs_caching_stats_of(a)->allocated);
    expect_int(name, reserved, cs_caching_stats_of(a)->reserved);
}

/* 1000 bytes are 1024 of a small segment of 2 MiB; 5 MiB are cut from one of 20 MiB; 17 MiB and a
 * byte do not fit in the 15 that are left, and take a segment of 18, whose rest of less than 1 MiB
 * is not cut off. 14 MiB take all of the 15, as the rest of 1 MiB is not more than 1 MiB. */
static void rounds(void **state)
{
    (void)state;
    cs_caching_allocator *a = make(INT64_MAX, INT64_MAX, 0, false);
    (void)take(a, 1000, 0);
    expect("small", a, 1024, 2 * MIB);
    (void)take(a, 5 * MIB, 0);
    expect("large", a, 1024 + 5 * MIB, 22 * MIB);
    (void)take(a, 17 * MIB + 1, 0);
    expect("own segment", a, 1024 + 23 * MIB, 40 * MIB);
    (void)take(a, 14 * MIB, 0);
    expect("the rest", a, 1024 + 38 * MIB, 40 * MIB);
    cs_caching_destroy(a);
}

/* Two segments of 20 MiB, each with 8 MiB free in front of 8 and 4 behind: 16 MiB are free, and 12
 * do not fit, neither there nor in the 5 MiB that the device has left. */
static void fails_for_fragments(void **state)
{
    (void)state;
    cs_error error;
    int64_t largest, all;
    uint32_t first[2];
    cs_error_init(&error);
    cs_caching_allocator *a = make(45 * MIB, INT64_MAX, 0, false);
    for (int i = 0; i < 2; i++) {
        first[i] = take(a, 8 * MIB, 0);
        (void)take(a, 8 * MIB, 0);
        (void)take(a, 4 * MIB, 0);
    }
    expect("full", a, 40 * MIB, 40 * MIB);
    give(a, first[0]);
    give(a, first[1]);
    assert_int_equal(take(a, 12 * MIB, 0), CS_NO_BLOCK);
    cs_caching_free_room(a, 12 * MIB, 0, &largest, &all);
    expect_int("largest", 8 * MIB, largest);
    expect_int("free", 16 * MIB, all);
    expect_int("failures", 1, (int64_t)cs_caching_stats_of(a)->n_failures);
    cs_caching_destroy(a);
}

/* The same with expandable segments: 40 MiB are mapped as two units, the free pieces of 8 MiB do
 * not join either, and a third unit does not fit in 45 MiB. With 60 it does. */
static void grows(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        cs_caching_allocator *a = make(i == 0 ? 45 * MIB : 60 * MIB, INT64_MAX, 0, true);
        const uint32_t first = take(a, 8 * MIB, 0);
        (void)take(a, 8 * MIB, 0);
        const uint32_t third = take(a, 8 * MIB, 0);
        (void)take(a, 16 * MIB, 0);
        expect("40 MiB", a, 40 * MIB, 40 * MIB);
        give(a, first);
        give(a, third);
        assert_true((take(a, 12 * MIB, 0) != CS_NO_BLOCK) == (i == 1));
        expect("then", a, (i == 0 ? 24 : 36) * MIB, (i == 0 ? 40 : 60) * MIB);
        cs_caching_destroy(a);
    }
}

/* 30 MiB at the end of an expandable segment are freed: of the three units only those that are free
 * as a whole, from 20 MiB on, are given back. */
static void gives_units_back(void **state)
{
    (void)state;
    cs_error error;
    cs_error_init(&error);
    cs_caching_allocator *a = make(INT64_MAX, INT64_MAX, 0, true);
    (void)take(a, 15 * MIB, 0);
    const uint32_t rest = take(a, 30 * MIB, 0);
    expect("three units", a, 45 * MIB, 60 * MIB);
    give(a, rest);
    assert_int_equal(cs_caching_empty(a, &error), CS_OK);
    expect("one unit", a, 15 * MIB, 20 * MIB);
    (void)take(a, 30 * MIB, 0);
    expect("again", a, 45 * MIB, 60 * MIB);
    cs_caching_destroy(a);
}

/* A block of stream 0 is not for stream 1. One that stream 1 uses is not handed out before that has
 * ended, although it counts as freed. */
static void keeps_streams_apart(void **state)
{
    (void)state;
    cs_error error;
    cs_error_init(&error);
    cs_caching_allocator *a = make(INT64_MAX, INT64_MAX, 0, false);
    const uint32_t block = take(a, 20 * MIB, 0);
    cs_caching_record(a, block);
    give(a, block);
    expect("freed", a, 0, 20 * MIB);
    const uint32_t second = take(a, 20 * MIB, 0);
    expect("still used", a, 20 * MIB, 40 * MIB);
    assert_int_equal(cs_caching_done(a, block, &error), CS_OK);
    give(a, second);
    (void)take(a, 20 * MIB, 1);
    expect("another stream", a, 20 * MIB, 60 * MIB);
    (void)take(a, 20 * MIB, 0);
    expect("used no longer", a, 40 * MIB, 60 * MIB);
    cs_caching_destroy(a);
}

/* At 0.5 of 100 MiB: 60 MiB of free segments are reserved when 70 more are requested. The segment
 * of 40 was freed three searches ago, the other one just now; their mean age is 1.5, so the first
 * is released, which is enough: 20 and 70 MiB are left. */
static void collects_garbage(void **state)
{
    (void)state;
    cs_caching_allocator *a = make(100 * MIB, INT64_MAX, 0.5, false);
    const uint32_t old = take(a, 40 * MIB, 0);
    const uint32_t young = take(a, 20 * MIB, 0);
    give(a, old);
    give(a, take(a, 1, 0));
    give(a, take(a, 1, 0));
    give(a, young);
    (void)take(a, 70 * MIB, 0);
    expect("the old one is released", a, 70 * MIB, 92 * MIB);
    cs_caching_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_as_the_slow_one), cmocka_unit_test(rounds),
        cmocka_unit_test(fails_for_fragments),  cmocka_unit_test(grows),
        cmocka_unit_test(gives_units_back),     cmocka_unit_test(keeps_streams_apart),
        cmocka_unit_test(collects_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
