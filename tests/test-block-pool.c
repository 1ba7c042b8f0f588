/* The pool of a device that has 1000 bytes. */
#include "calib/bench/train/block-pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROOM = 1000, PIECES = 8 };

struct cs_bench {
    struct {
        char *data;
        int64_t bytes;
    } pieces[PIECES];
    int64_t left;
    int asked; /* for memory */
};

static cs_status allocate(cs_bench *bench, int64_t bytes, void **data, cs_error *error)
{
    int i = 0;
    bench->asked++;
    if (bytes > bench->left)
        return cs_error_add(error, CS_NO_MEMORY, "%lld bytes, and %lld are free", (long long)bytes,
                            (long long)bench->left);
    while (bench->pieces[i].data)
        i++;
    assert_true(i < PIECES);
    bench->pieces[i].data = malloc((size_t)bytes);
    bench->pieces[i].bytes = bytes;
    bench->left -= bytes;
    *data = bench->pieces[i].data;
    return CS_OK;
}

static void release(cs_bench *bench, void *data)
{
    int i = 0;
    while (bench->pieces[i].data != data)
        i++;
    free(data);
    bench->pieces[i].data = NULL;
    bench->left += bench->pieces[i].bytes;
}

static const cs_backend full_device = {.allocate = allocate, .release = release};

/* 400 that are free and 300 that are not leave 300: 600 fit only without the free ones, 800 not
 * even then. */
static void test_full_device(void **state)
{
    cs_bench bench = {.left = ROOM};
    cs_block_pool pool;
    cs_block kept, given, block;
    cs_error error;
    (void)state;
    cs_error_init(&error);
    cs_block_pool_init(&pool, &full_device, &bench);
    assert_int_equal(cs_block_pool_take(&pool, 300, &kept, &error), CS_OK);
    assert_int_equal(cs_block_pool_take(&pool, 400, &given, &error), CS_OK);
    cs_block_pool_give(&pool, &given);
    assert_int_equal(bench.left, 300);

    assert_int_equal(cs_block_pool_take(&pool, 600, &block, &error), CS_OK);
    assert_int_equal(error.count, 0);
    assert_int_equal(pool.held, 900);
    assert_int_equal(pool.live, 900);
    cs_block_pool_give(&pool, &block);

    int asked = bench.asked;
    assert_int_equal(cs_block_pool_take(&pool, 600, &block, &error), CS_OK); /* is kept, as ever */
    assert_int_equal(bench.asked, asked);
    cs_block_pool_give(&pool, &block);

    assert_int_equal(cs_block_pool_take(&pool, 800, &block, &error), CS_NO_MEMORY);
    assert_null(block.data);
    assert_int_equal(error.count, 1);
    assert_string_equal(error.text, "800 bytes, and 700 are free");
    assert_int_equal(pool.live, 300);
    assert_int_equal(pool.peak, 900);
    cs_block_pool_give(&pool, &kept);
    cs_block_pool_finish(&pool);
    assert_int_equal(bench.left, ROOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_full_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
