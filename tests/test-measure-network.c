/* Measuring a network from one process, with made-up peers: measured groups, places of messages in
 * memory, refused input, and release of all resources after failures. */
#include "calib/bench/measure/measure-network.h"
#include "calib/bench/wire/host-memory.h"
#include "tests/fake-backend.h"

#include "expect.h"

#include <stdlib.h>

/* ---- the host ---- */

enum { CACHE = 2 << 20, FREE = 160 << 20 };

int64_t cs_host_cache_bytes(void)
{
    return CACHE;
}

int64_t cs_host_free_bytes(void)
{
    return FREE;
}

/* ---- the wire: this process is rank 0, its messages take no time ---- */

enum { RANKS_MAX = 8, CALLS_MAX = 1 << 16 };

typedef struct join {
    bool members[RANKS_MAX];
} join;

static struct {
    const void *sent[CALLS_MAX]; /* messages, in order */
    uint32_t n_sent, n_joins, largest_window;
    join joins[RANKS_MAX];
} seen;

static void forget(void)
{
    memset(&seen, 0, sizeof(seen));
}

cs_status cs_wire_barrier(const cs_wire *wire, cs_error *error)
{
    (void)wire;
    return cs_fake_turn(CS_FAKE_WIRE, "barrier", error);
}

cs_status cs_wire_largest(const cs_wire *wire, double *values, uint32_t n, cs_error *error)
{
    (void)wire;
    for (uint32_t i = 0; i < n; i++)
        values[i] = values[i] == 0 ? 1e-6 : values[i]; /* samples that only other processes take */
    return cs_fake_turn(CS_FAKE_WIRE, "largest", error);
}

cs_status cs_wire_send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes, cs_error *error)
{
    (void)wire, (void)to, (void)bytes;
    if (seen.n_sent < CALLS_MAX)
        seen.sent[seen.n_sent++] = data;
    return cs_fake_turn(CS_FAKE_WIRE, "send", error);
}

cs_status cs_wire_receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes, cs_error *error)
{
    (void)wire, (void)from, (void)data, (void)bytes;
    return cs_fake_turn(CS_FAKE_WIRE, "receive", error);
}

/* Places of a window must not overlap: two receptions would write to one. */
cs_status cs_wire_window(cs_wire *wire, bool sends, uint32_t peer, void *const *data, uint32_t n,
                         int64_t bytes, cs_error *error)
{
    (void)wire, (void)sends, (void)peer;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (llabs((char *)data[i] - (char *)data[k]) < bytes)
                fail_msg("%lld bytes: places %u and %u overlap", (long long)bytes, k, i);
    seen.largest_window = n > seen.largest_window ? n : seen.largest_window;
    return cs_fake_turn(CS_FAKE_WIRE, "window", error);
}

cs_status cs_wire_collective(cs_wire *wire, cs_cost_collective collective, const void *from,
                             void *to, int64_t bytes, cs_error *error)
{
    (void)wire, (void)collective, (void)from, (void)to, (void)bytes;
    return cs_fake_turn(CS_FAKE_WIRE, "collective", error);
}

cs_status cs_wire_join(const cs_wire *all, const bool *members, cs_wire *group, cs_error *error)
{
    *group = (cs_wire){0};
    memcpy(seen.joins[seen.n_joins++].members, members, all->size * sizeof(*members));
    if (members[all->rank]) {
        group->backend = all->backend;
        group->bench = all->bench;
        for (uint32_t i = 0; i < all->size; i++)
            group->size += members[i];
    }
    return cs_fake_turn(CS_FAKE_WIRE, "join", error);
}

cs_status cs_wire_leave(cs_wire *group, cs_status status, cs_error *error)
{
    (void)error;
    *group = (cs_wire){0};
    return status;
}

/* ---- measuring ---- */

#define ALL_KINDS ((UINT32_C(1) << CS_N_COST_COLLECTIVES) - 1)

static cs_status measure_for(double limit, const uint32_t *nodes, uint32_t ranks,
                             uint32_t collectives, int64_t from, int64_t to, cs_costs *costs,
                             cs_error *error)
{
    uint32_t copy[RANKS_MAX], n_nodes = 0;
    cs_wire wire = {.size = ranks, .nodes = copy, .backend = &cs_backend_fake};
    for (uint32_t i = 0; i < ranks; i++) {
        copy[i] = nodes[i];
        n_nodes = nodes[i] >= n_nodes ? nodes[i] + 1 : n_nodes;
    }
    wire.n_nodes = n_nodes;
    cs_error_init(error);
    cs_costs_init(costs);
    cs_status status = cs_backend_fake.open(0, &wire.bench, error);
    if (status != CS_OK)
        return status;
    const cs_network_options options = {.wire = &wire,
                                        .collectives = collectives,
                                        .min_bytes = from,
                                        .max_bytes = to,
                                        .time_limit = limit};
    status = cs_measure_network(&options, costs, error);
    cs_backend_fake.close(wire.bench);
    return status;
}

static cs_status measure(const uint32_t *nodes, uint32_t ranks, uint32_t collectives, int64_t from,
                         int64_t to, cs_costs *costs, cs_error *error)
{
    return measure_for(1e-4, nodes, ranks, collectives, from, to, costs, error);
}

/* ---- groups ---- */

/* "ab" are the first two of node a and b; of alike groups the first counts. */
static const struct {
    const char *name;
    uint32_t nodes[RANKS_MAX], ranks;
    const char *joins;   /* members by their rank; a group of all is not joined */
    const char *reduces; /* level and ranks of the all-reduces that are measured */
    const char *sends;
} groups[] = {
    {"pair", {0, 0}, 2, "", "node 2", "node 2"},
    {"node", {0, 0, 0, 0}, 4, "01", "node 2, node 4", "node 2"},
    {"two nodes of two",
     {0, 0, 1, 1},
     4,
     "01 02",
     "node 2, network 2, network 4",
     "node 2, network 2"},
    {"one of each", {0, 1}, 2, "", "network 2", "network 2"},
    {"three nodes of one", {0, 1, 2}, 3, "01", "network 2, network 3", "network 2"},
    {"uneven: the fullest node",
     {0, 0, 1, 1, 1},
     5,
     "23 02 234",
     "node 2, network 2, node 3, network 5",
     "node 2, network 2"},
    {"in turns", {0, 1, 0, 1}, 4, "02 01", "node 2, network 2, network 4", "node 2, network 2"},
};

static void list_entries(const cs_costs *costs, cs_cost_collective collective, char *text,
                         size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < costs->n_network; i++)
        if (costs->network[i].collective == collective)
            used += (size_t)snprintf(text + used, size - used, "%s%s %u", used ? ", " : "",
                                     cs_cost_level_names[costs->network[i].level],
                                     costs->network[i].ranks);
}

static void list_joins(uint32_t ranks, char *text)
{
    for (uint32_t j = 0; j < seen.n_joins; j++) {
        if (j > 0)
            *text++ = ' ';
        for (uint32_t i = 0; i < ranks; i++)
            if (seen.joins[j].members[i])
                *text++ = (char)('0' + i);
    }
    *text = '\0';
}

static void test_groups(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(groups); i++) {
        const uint32_t kinds = UINT32_C(1) << CS_COST_ALL_REDUCE | UINT32_C(1) << CS_COST_SEND;
        char text[200];
        cs_costs costs;
        cs_error error;
        forget();
        cs_fake_fail(0, 0);
        if (measure(groups[i].nodes, groups[i].ranks, kinds, 64, 256, &costs, &error) != CS_OK)
            fail_msg("%s: %s", groups[i].name, error.text);
        list_joins(groups[i].ranks, text);
        expect_text(groups[i].name, groups[i].joins, text);
        list_entries(&costs, CS_COST_ALL_REDUCE, text, sizeof(text));
        expect_text(groups[i].name, groups[i].reduces, text);
        list_entries(&costs, CS_COST_SEND, text, sizeof(text));
        expect_text(groups[i].name, groups[i].sends, text);
        cs_costs_finish(&costs);
    }
}

/* ---- places, windows, time ---- */

/* No place is touched again before twice the cache was: of messages of 512 KiB that lie side by
 * side, 8 others. With time enough there are 15 samples of each size, and with them messages, at
 * least. */
static void test_places(void **state)
{
    const int64_t bytes = 512 << 10;
    const uint32_t least = (uint32_t)(2 * CACHE / bytes);
    const uint32_t nodes[] = {0, 0};
    cs_costs costs;
    cs_error error;
    (void)state;
    forget();
    cs_fake_fail(0, 0);
    assert_int_equal(
        measure_for(60, nodes, 2, UINT32_C(1) << CS_COST_SEND, bytes / 2, bytes, &costs, &error),
        CS_OK);
    assert_true(costs.network[0].points[1].samples >= 2 * least - 1);
    if (seen.n_sent < costs.network[0].points[0].samples + 2 * least - 1)
        fail_msg("%u messages only", seen.n_sent);
    for (uint32_t i = seen.n_sent - least; i < seen.n_sent; i++)
        for (uint32_t k = i - least + 1; k < i; k++)
            if (llabs((const char *)seen.sent[k] - (const char *)seen.sent[i]) < bytes)
                fail_msg("messages %u and %u lie at one place", k, i);
    cs_costs_finish(&costs);
}

/* Many short messages at once, and few long ones: 16 MiB in all, two at least. The shortest size of
 * a measurement has the largest window. */
static void test_windows(void **state)
{
    static const struct {
        int64_t bytes;
        uint32_t window;
    } rows[] = {{8, 64}, {1 << 18, 64}, {1 << 20, 16}, {1 << 22, 4}, {1 << 23, 2}};
    const uint32_t nodes[] = {0, 0};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_costs costs;
        cs_error error;
        char row[40];
        forget();
        cs_fake_fail(0, 0);
        snprintf(row, sizeof(row), "%lld bytes", (long long)rows[i].bytes);
        assert_int_equal(measure(nodes, 2, UINT32_C(1) << CS_COST_STREAM, rows[i].bytes, 16 << 20,
                                 &costs, &error),
                         CS_OK);
        expect_int(row, rows[i].window, seen.largest_window);
        cs_costs_finish(&costs);
    }
}

/* ---- what is wrong ---- */

static const struct {
    const char *name;
    int64_t from, to;
    uint32_t ranks;
    const char *message;
} refused[] = {
    {"one size", 8, 8, 2, "--min-bytes 8 and --max-bytes 8 give only one size, 8 bytes"},
    {"one size of three ranks", 2, 12, 3, "give only one size, 12 bytes"},
    {"the wrong way", 64, 8, 2, "--min-bytes (64) exceeds --max-bytes (8)"},
};

static void test_refused(void **state)
{
    const uint32_t nodes[] = {0, 0, 0};
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        cs_costs costs;
        cs_error error;
        cs_fake_fail(0, 0);
        expect_int(refused[i].name, CS_USAGE,
                   measure(nodes, refused[i].ranks, ALL_KINDS, refused[i].from, refused[i].to,
                           &costs, &error));
        if (!strstr(error.text, refused[i].message))
            fail_msg("%s: %s", refused[i].name, error.text);
        cs_costs_finish(&costs);
    }
}

/* 160 MiB are free, and two processes may use half for two buffers each: 20 MiB per buffer. 4 MiB
 * for twice the cache and 16 MiB with the padding of a page are more, so the size is 8 MiB. More
 * than all of it is refused. */
static void test_memory(void **state)
{
    const uint32_t nodes[] = {0, 0};
    cs_costs costs;
    cs_error error;
    (void)state;
    forget();
    cs_fake_fail(0, 0);
    assert_int_equal(measure(nodes, 2, UINT32_C(1) << CS_COST_SEND, 1 << 20, 0, &costs, &error),
                     CS_OK);
    expect_int("longest", 8 << 20, costs.network[0].points[costs.network[0].n_points - 1].bytes);
    cs_costs_finish(&costs);
    cs_fake_fail(0, 0);
    assert_int_equal(measure(nodes, 2, ALL_KINDS, 8, 40 << 20, &costs, &error), CS_NO_MEMORY);
    if (!strstr(error.text, "lower --max-bytes"))
        fail_msg("%s", error.text);
    expect_int("held", 0, cs_fake_held());
    cs_costs_finish(&costs);
}

/* The first, second, ... call fails: one message, and nothing is kept. */
static void test_failures(void **state)
{
    const uint32_t nodes[] = {0, 0, 1};
    const uint32_t calls = UINT32_C(1) << CS_FAKE_ALLOCATE | UINT32_C(1) << CS_FAKE_MEMORY |
                           UINT32_C(1) << CS_FAKE_WIRE | UINT32_C(1) << CS_FAKE_MARK;
    (void)state;
    for (uint32_t k = 1; k <= 40; k++) {
        cs_costs costs;
        cs_error error;
        forget();
        cs_fake_fail(calls, k);
        const cs_status status = measure(nodes, 3, ALL_KINDS, 64, 256, &costs, &error);
        if (status == CS_OK || error.count != 1 || cs_fake_held() != 0)
            fail_msg("call %u: status %d, %u messages, %lld pieces held", k, status, error.count,
                     (long long)cs_fake_held());
        cs_costs_finish(&costs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),  cmocka_unit_test(test_places),
        cmocka_unit_test(test_windows), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
