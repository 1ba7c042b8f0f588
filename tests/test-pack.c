/* zlib decompresses the packer's output, and the joined planes are the values. */
#include "sim/core/trace/pack.h"

#include "tests/expect.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST = 1 << 17 };

static uint64_t random_state = 1;

/* xorshift64: Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003. */
static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

typedef uint64_t column(uint64_t row);

static uint64_t zero(uint64_t row)
{
    (void)row;
    return 0;
}

static uint64_t none(uint64_t row)
{
    (void)row;
    return UINT64_MAX;
}

static uint64_t number(uint64_t row)
{
    return row;
}

static uint64_t noise(uint64_t row)
{
    (void)row;
    return draw();
}

/* Times in picoseconds, some milliseconds apart. */
static uint64_t time_of(uint64_t row)
{
    return row * UINT64_C(3000000000) + draw() % 1000000000;
}

/* The beginning is noise, the rest is not; and the other way round. */
static uint64_t noise_first(uint64_t row)
{
    return row < 20000 ? draw() : 7;
}

static uint64_t noise_last(uint64_t row)
{
    return row < 20000 ? 7 : draw();
}

/* One value differs, at the end. */
static uint64_t lone(uint64_t row)
{
    return row == 4096 ? 1 : 0;
}

static uint64_t slow(uint64_t row)
{
    return row / 1000;
}

static const struct {
    const char *name;
    column *value;
} columns[] = {{"zero", zero},     {"none", none},
               {"number", number}, {"noise", noise},
               {"time", time_of},  {"noise first", noise_first},
               {"lone", lone},     {"noise last", noise_last}};

static const size_t lengths[] = {1, 2, 4097, 65535, 65536, 65537, MOST};

/* Whether the packed bytes are the n values of `size` bytes, plane by plane. */
static bool unpacks_to(const void *packed, size_t packed_size, const unsigned char *values,
                       size_t n, size_t size)
{
    uLongf length = (uLongf)(n * size + 1);
    unsigned char *planes = malloc(length);
    bool equal = planes && uncompress(planes, &length, packed, (uLong)packed_size) == Z_OK &&
                 length == n * size;
    for (size_t i = 0; i < n && equal; i++)
        for (size_t b = 0; b < size && equal; b++)
            equal = planes[b * n + i] == values[i * size + b];
    free(planes);
    return equal;
}

static void fill(unsigned char *values, column *value, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t made = value(i);
        memcpy(values + i * size, &made, size);
    }
}

/* Packs each column after all others with the same packer: remembered planes must not be
 * confused. */
static void test_all(void **state)
{
    static const size_t sizes[] = {1, 4, 8};
    unsigned char *values = malloc(8 * (size_t)MOST);
    cs_packer *packer = cs_packer_create();
    (void)state;
    assert_non_null(values);
    assert_non_null(packer);
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
        for (size_t s = 0; s < 3; s++)
            for (size_t c = 0; c < 2 * sizeof(columns) / sizeof(columns[0]); c++) {
                const size_t of = c / 2, n = lengths[l];
                const void *packed;
                size_t packed_size;
                fill(values, columns[of].value, n, sizes[s]);
                assert_true(cs_packer_pack(packer, &(cs_pack_history){{0}}, values, n, sizes[s],
                                           &packed, &packed_size));
                if (!unpacks_to(packed, packed_size, values, n, sizes[s]))
                    fail_msg("%s: %zu values of %zu bytes", columns[of].name, n, sizes[s]);
            }
    cs_packer_destroy(packer);
    free(values);
}

/* The same bytes whatever was packed before: results files are equal byte by byte. */
static void test_history(void **state)
{
    enum { N = 65536 };
    unsigned char *values = malloc(8 * (size_t)N), *copy = NULL;
    cs_packer *packer = cs_packer_create();
    const void *packed;
    size_t first, again;
    (void)state;
    assert_non_null(values);
    assert_non_null(packer);
    fill(values, time_of, N, 8);
    assert_true(cs_packer_pack(packer, &(cs_pack_history){{0}}, values, N, 8, &packed, &first));
    copy = malloc(first);
    assert_non_null(copy);
    memcpy(copy, packed, first);
    for (int i = 0; i < 2; i++) {
        assert_true(cs_packer_pack(packer, &(cs_pack_history){{0}}, values, N, 8, &packed, &again));
        assert_int_equal(again, first);
        assert_memory_equal(packed, copy, first);
    }
    cs_packer_destroy(packer);
    free(copy);
    free(values);
}

/* Noise: 8 bytes a value, 5 for each stored block of up to 65,535, two of them a plane; a head of
 * 2, an end of 2 and the sum of 4. Zeros: 65,536 of them are 255 matches of up to 258 and a
 * literal; with codes made by zlib for two parts of a plane, or with fixed ones of 8 + 5 bits, 415
 * bytes at most, with two heads of 5 bytes a plane below 450. */
static void test_sizes(void **state)
{
    enum { N = 65536 };
    unsigned char *values = malloc(8 * (size_t)N);
    cs_packer *packer = cs_packer_create();
    const void *packed;
    size_t size;
    (void)state;
    assert_non_null(values);
    assert_non_null(packer);
    fill(values, noise, N, 8);
    assert_true(cs_packer_pack(packer, &(cs_pack_history){{0}}, values, N, 8, &packed, &size));
    assert_int_equal(size, 8 * (N + 2 * 5) + 8);
    fill(values, zero, N, 8);
    assert_true(cs_packer_pack(packer, &(cs_pack_history){{0}}, values, N, 8, &packed, &size));
    assert_in_range(size, 8, 8 * 450);
    cs_packer_destroy(packer);
    free(values);
}

/* A plane that was noise is stored in seven more blocks, whatever it is and whether it is known or
 * not, and tried in the eighth. 65,536 bytes of 66 runs take at most two bytes a match of 258, 512,
 * and far less than a stored block. */
static void test_untried(void **state)
{
    enum { N = 65536, STORED = N + 2 * 5 + 8 };
    unsigned char *values = malloc(N);
    cs_packer *packer = cs_packer_create();
    cs_pack_history history = {{0}};
    const void *packed;
    size_t size;
    (void)state;
    assert_non_null(values);
    assert_non_null(packer);
    fill(values, slow, N, 1);
    assert_true(cs_packer_pack(packer, &(cs_pack_history){{0}}, values, N, 1, &packed, &size));
    assert_in_range(size, 8, STORED / 20);
    fill(values, noise, N, 1);
    assert_true(cs_packer_pack(packer, &history, values, N, 1, &packed, &size));
    assert_int_equal(size, STORED);
    fill(values, slow, N, 1);
    for (int i = 1; i <= 8; i++) {
        assert_true(cs_packer_pack(packer, &history, values, N, 1, &packed, &size));
        assert_true(unpacks_to(packed, size, values, N, 1));
        if (i < 8)
            assert_int_equal(size, STORED);
        else
            assert_in_range(size, 8, STORED / 20);
    }
    cs_packer_destroy(packer);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_history),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_untried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
