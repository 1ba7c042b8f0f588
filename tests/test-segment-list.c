/* Segments of an allocator that are given back, as a whole and in part. */
#include "sim/run/segment-list.h"
#include "tests/expect.h"

/* Three parts of 10 bytes each from 100 on, mapped at 1, 2 and 3; at 5, 14 bytes from 108 on are
 * given back: the last 2 of the first part, all of the second, the first 2 of the third. */
static void test_parts(void **state)
{
    cs_segment_list list = {0};
    (void)state;
    for (int64_t i = 0; i < 3; i++)
        assert_true(cs_segment_list_add(
            &list, &(cs_segment){.address = 100 + 10 * i, .bytes = 10, .start = 1 + i, .end = -1}));
    assert_true(cs_segment_list_end(&list, 0, 108, 14, 5));
    static const cs_segment expected[] = {
        {.address = 108, .bytes = 2, .start = 1, .end = 5},
        {.address = 110, .bytes = 10, .start = 2, .end = 5},
        {.address = 120, .bytes = 2, .start = 3, .end = 5},
        {.address = 100, .bytes = 8, .start = 1, .end = -1},
        {.address = 122, .bytes = 8, .start = 3, .end = -1},
    };
    assert_int_equal(list.n, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(list.items[i].address, expected[i].address);
        assert_int_equal(list.items[i].bytes, expected[i].bytes);
        assert_int_equal(list.items[i].start, expected[i].start);
        assert_int_equal(list.items[i].end, expected[i].end);
    }
    cs_segment_list_finish(&list);
}

/* Ended segments stay unchanged when their addresses are reused, and so do segments before `first`,
 * of another device. Within a part both ends stay. */
static void test_others(void **state)
{
    cs_segment_list list = {0};
    (void)state;
    for (int64_t i = 0; i < 2; i++)
        assert_true(
            cs_segment_list_add(&list, &(cs_segment){.address = 100, .bytes = 10, .end = -1}));
    assert_true(cs_segment_list_end(&list, 1, 100, 10, 3));
    assert_true(cs_segment_list_add(
        &list, &(cs_segment){.address = 100, .bytes = 10, .start = 4, .end = -1}));
    assert_true(cs_segment_list_end(&list, 1, 104, 2, 7));
    assert_int_equal(list.n, 5);
    assert_int_equal(list.items[0].end, -1);
    assert_int_equal(list.items[1].end, 3);
    assert_int_equal(list.items[1].bytes, 10);
    assert_int_equal(list.items[2].address, 104);
    assert_int_equal(list.items[2].bytes, 2);
    assert_int_equal(list.items[3].bytes, 4);
    assert_int_equal(list.items[4].address, 106);
    assert_int_equal(list.items[4].bytes, 4);
    cs_segment_list_finish(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
