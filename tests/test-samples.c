/* Samples of memory come back as they were added, and hash as their array does. */
#include "sim/base/hash.h"
#include "sim/base/random.h"
#include "sim/core/trace/trace.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <stdlib.h>
#include <string.h>

/* Adds them, and reads them twice, the second time after the first was left in the middle. */
static void expect_same(const char *name, const cs_memory_sample *all, uint32_t n,
                        uint32_t n_devices)
{
    cs_trace trace = {.samples = cs_samples_create(n_devices)};
    cs_memory_sample read;
    assert_non_null(trace.samples);
    for (uint32_t i = 0; i < n; i++)
        assert_true(cs_samples_add(trace.samples, &all[i]));
    if (n > 0) /* a repeated value is not a sample */
        assert_true(cs_samples_note(trace.samples, CS_TIME_MAX,
                                    all[n - 1].device * CS_N_CATEGORIES + all[n - 1].category,
                                    all[n - 1].bytes));
    expect_int(name, n, (int64_t)cs_samples_count(trace.samples));
    for (uint32_t pass = 0; pass < 2; pass++) {
        const uint32_t until = pass == 0 ? n / 2 : n;
        cs_samples_rewind(trace.samples);
        for (uint32_t i = 0; i < until; i++) {
            assert_true(cs_samples_next(trace.samples, &read));
            expect_int(name, all[i].time, read.time);
            expect_int(name, all[i].bytes, read.bytes);
            expect_int(name, all[i].device, read.device);
            expect_int(name, all[i].category, read.category);
        }
    }
    assert_false(cs_samples_next(trace.samples, &read));
    /* a trace with nothing else hashes its makespan, 0, and the array of samples */
    const int64_t makespan = 0;
    const uint64_t before = cs_hash_bytes(NULL, 0, cs_hash_bytes(&makespan, sizeof(makespan), 0));
    expect_bits(name, cs_hash_bytes(all, n * sizeof(*all), before), cs_trace_hash(&trace));
    cs_trace_finish(&trace);
}

static void test_extremes(void **state)
{
    (void)state;
    const cs_memory_sample all[] = {
        {0, 0, 0, 0},
        {0, INT64_MAX, 0, 1},
        {0, INT64_MIN, 999999, CS_N_CATEGORIES - 1},
        {0, INT64_MAX, 999999, CS_N_CATEGORIES - 1}, /* a change of more than any value */
        {1, INT64_MIN, 0, 1},
        {127, -1, 0, 0},
        {255, 1, 0, 0},
        {CS_TIME_MAX, INT64_MIN, 0, 0},
        {CS_TIME_MAX, 0, 0, 0},
    };
    expect_same("extremes", all, sizeof(all) / sizeof(all[0]), 1000000);
    expect_same("none", all, 0, 1);
}

/* Changes that come back, of one, two, three and more sizes: those that are remembered, and
 * others. */
static void test_drawn(void **state)
{
    (void)state;
    enum { N = 20000, DEVICES = 70 };
    cs_memory_sample *all = malloc(N * sizeof(*all));
    assert_non_null(all);
    for (uint32_t sizes = 1; sizes <= 6; sizes++) {
        int64_t live[DEVICES][CS_N_CATEGORIES] = {{0}};
        gsl_rng *random = cs_random_stream(sizes, "samples");
        assert_non_null(random);
        cs_time time = 0;
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t device = (uint32_t)gsl_rng_uniform_int(random, DEVICES);
            const uint32_t category = (uint32_t)gsl_rng_uniform_int(random, CS_N_CATEGORIES);
            const int64_t size = 1 + 1000 * (int64_t)gsl_rng_uniform_int(random, sizes);
            time +=
                gsl_rng_uniform_int(random, 2) ? 0 : (cs_time)gsl_rng_uniform_int(random, 5000000);
            live[device][category] += gsl_rng_uniform_int(random, 2) ? size : -size;
            all[i] = (cs_memory_sample){time, live[device][category], device, category};
        }
        gsl_rng_free(random);
        expect_same("drawn", all, N, DEVICES);
    }
    free(all);
}

static void test_pieces_hash_as_a_whole(void **state)
{
    (void)state;
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(37 * i + 11);
    for (size_t n = 0; n <= sizeof(bytes); n += 7)
        for (size_t part = 1; part < 80; part += 13) {
            cs_hash_state hash;
            cs_hash_begin(&hash, n);
            for (size_t at = 0; at < n; at += part)
                cs_hash_add(&hash, bytes + at, n - at < part ? n - at : part);
            expect_bits("pieces", cs_hash_bytes(bytes, n, n), cs_hash_end(&hash));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_pieces_hash_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
