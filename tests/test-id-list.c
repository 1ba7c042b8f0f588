/* Lists of ids, sorted as qsort does: of all lengths and of ids that differ in all digits. */
#include "sim/base/random.h"
#include "sim/core/engine/ready.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <stdlib.h>

enum { N_LISTS = 20000, MOST = 300 };

static int compare(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void test_sort(void **state)
{
    (void)state;
    uint32_t expected[MOST];
    cs_id_list list = {0};
    gsl_rng *random = cs_random_stream(1, "id list");
    assert_non_null(random);
    for (uint32_t row = 0; row < N_LISTS; row++) {
        const uint32_t n = (uint32_t)gsl_rng_uniform_int(random, MOST);
        const uint32_t bits = 1 + (uint32_t)gsl_rng_uniform_int(random, 32);
        list.n = 0;
        for (uint32_t i = 0; i < n; i++) {
            expected[i] = (uint32_t)gsl_rng_get(random) >> (32 - bits);
            assert_true(cs_id_list_add(&list, expected[i]));
        }
        qsort(expected, n, sizeof(*expected), compare);
        assert_true(cs_id_list_sort(&list));
        expect_int("length", n, list.n);
        for (uint32_t i = 0; i < n; i++)
            expect_int("id", expected[i], list.ids[i]);
    }
    cs_id_list_finish(&list);
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
