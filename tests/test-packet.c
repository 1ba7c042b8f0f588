/* Messages between processes of a team, and the order in which points are started. */
#include "sim/base/json.h"
#include "sim/study/team/packet.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cs_pool_item *round_trip(const cs_pool_item *item, uint32_t round)
{
    size_t bytes;
    cs_packet packet;
    void *data = cs_packet_of_item(item, round, &bytes);
    assert_non_null(data);
    assert_true(cs_packet_unpack(data, bytes, &packet));
    assert_int_equal(packet.kind, CS_PACKET_ITEM);
    assert_int_equal(packet.round, round);
    cs_pool_item *copy = cs_packet_item(&packet);
    assert_non_null(copy);
    free(data);
    return copy;
}

/* Doubles that texts of few digits lose. */
static void test_item(void **state)
{
    static const double values[] = {0.1, 1.0 / 3, 4503599627370497.5, 5e-324,
                                    1.7976931348623157e308};
    cs_pool_item *item = cs_pool_item_create(7);
    (void)state;
    item->figures = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char key[] = {(char)('a' + i), '\0'};
        assert_non_null(cJSON_AddNumberToObject(item->figures, key, values[i]));
    }
    assert_non_null(cJSON_AddNumberToObject(item->figures, "nan", (double)NAN));
    item->record = strdup("{\"point\": 7}");
    item->value_bytes = 3;
    item->value = malloc(3);
    memcpy(item->value, "a\0b", 3);
    cs_pool_item *copy = round_trip(item, 9);
    assert_int_equal(copy->point, 7);
    assert_int_equal(copy->status, CS_OK);
    assert_string_equal(copy->record, item->record);
    assert_int_equal(copy->value_bytes, 3);
    assert_memory_equal(copy->value, "a\0b", 3);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char key[] = {(char)('a' + i), '\0'};
        const double value = cs_json_member(copy->figures, key)->valuedouble;
        assert_memory_equal(&value, &values[i], sizeof(value));
    }
    assert_true(cJSON_IsNull(cs_json_member(copy->figures, "nan"))); /* as pool.h has it */
    cs_pool_item_destroy(copy);
    cs_pool_item_destroy(item);
}

static void test_failed_item(void **state)
{
    cs_pool_item *item = cs_pool_item_create(3);
    (void)state;
    item->error = malloc(sizeof(*item->error));
    cs_error_init(item->error);
    item->status = cs_error_add(item->error, CS_INVALID, "s.json: /a: is wrong");
    cs_error_set_kind(item->error, CS_ERROR_UNKNOWN_KEY, "/a");
    cs_pool_item *copy = round_trip(item, 1);
    cs_error_message message;
    assert_int_equal(copy->status, CS_INVALID);
    assert_string_equal(copy->error->text, "s.json: /a: is wrong");
    assert_true(cs_error_message_at(copy->error, 0, &message));
    assert_string_equal(message.subject, "/a");
    assert_null(copy->figures);
    assert_null(copy->record);
    assert_null(copy->value);
    cs_pool_item_destroy(copy);
    cs_pool_item_destroy(item);
}

/* A message that was cut, or says that it is longer, is refused. */
static void test_cut_packet(void **state)
{
    cs_packet packet = {.kind = CS_PACKET_WORK}, read;
    size_t bytes;
    (void)state;
    packet.parts[CS_PACKET_VALUE].data = "12345678";
    packet.parts[CS_PACKET_VALUE].bytes = 8;
    char *data = cs_packet_pack(&packet, &bytes);
    assert_true(cs_packet_unpack(data, bytes, &read));
    assert_memory_equal(read.parts[CS_PACKET_VALUE].data, "12345678", 8);
    for (size_t cut = 0; cut < bytes; cut++)
        assert_false(cs_packet_unpack(data, cut, &read));
    ((cs_packet *)(void *)data)->parts[CS_PACKET_FIGURES].bytes = UINT64_MAX;
    assert_false(cs_packet_unpack(data, bytes, &read));
    ((cs_packet *)(void *)data)->parts[CS_PACKET_FIGURES].bytes = 0;
    ((cs_packet *)(void *)data)->kind = CS_N_PACKET_KINDS;
    assert_false(cs_packet_unpack(data, bytes, &read));
    free(data);
}

static double cost_of(const void *context, uint32_t point)
{
    return ((const double *)context)[point];
}

typedef struct shown {
    uint64_t done[8];
    uint32_t n;
} shown;

static bool show(void *context, const char *what, uint64_t done, uint64_t total)
{
    shown *s = context;
    (void)what;
    assert_int_equal(total, 4);
    s->done[s->n++] = done;
    return true;
}

/* The dearest first, equals as they are given; progress by cost: of 10 in all, of 4 points, 6 + 2 +
 * 2 + 0 are 2.4, 3.2, 4 and, all done, 4. */
static void test_order(void **state)
{
    static const double costs[] = {2, 0, 6, 2};
    static const uint32_t points[] = {3, 1, 0, 2}, expected[] = {2, 3, 0, 1};
    static const uint64_t steps[] = {2, 3, 4, 4};
    const cs_pool pool = {.work_context = costs, .cost = cost_of, .points = points, .n_points = 4};
    cs_error error;
    uint32_t *ordered;
    cs_pool_gauge gauge;
    shown seen = {.n = 0};
    const cs_progress progress = {show, &seen};
    (void)state;
    cs_error_init(&error);
    assert_int_equal(cs_pool_order(&pool, &ordered, &error), CS_OK);
    assert_memory_equal(ordered, expected, sizeof(expected));
    cs_pool_gauge_init(&gauge, &pool);
    for (uint32_t i = 0; i < 4; i++) {
        cs_pool_gauge_add(&gauge, ordered[i]);
        assert_true(cs_pool_gauge_step(&gauge, &progress));
    }
    assert_memory_equal(seen.done, steps, sizeof(steps));
    free(ordered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_item),
        cmocka_unit_test(test_failed_item),
        cmocka_unit_test(test_cut_packet),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
