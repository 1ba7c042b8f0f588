/* Platforms: links, routes and paths of every topology, against values derived by hand. */
#include "tests/expect.h"
#include "topologies/route.h"
#include "topologies/topology.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ROUTE = 64 };

/* Parses {"topology": name, ...}; the arena owns what was read. */
static cs_status choose(const char *json, cs_arena *arena, cs_topology_choice *choice,
                        cs_error *error)
{
    cJSON *object = NULL;
    assert_int_equal(cs_json_parse("test.json", json, strlen(json), &object, error), CS_OK);
    const cs_json_place root = {.file = "test.json"};
    const cs_status status = cs_topology_choose(object, &root, arena, choice, error);
    cJSON_Delete(object);
    return status;
}

static cs_status try_build(const char *json, uint32_t n_devices, cs_platform *platform,
                           cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    cs_error_init(error);
    cs_topology_choice choice = {0};
    cs_status status = choose(json, &arena, &choice, error);
    if (status == CS_OK)
        status = cs_topology_build(choice.kind, choice.params, n_devices, platform, error);
    cs_arena_finish(&arena);
    return status;
}

static cs_platform build_json(const char *json, uint32_t n_devices)
{
    cs_error error;
    cs_platform platform;
    if (try_build(json, n_devices, &platform, &error) != CS_OK)
        fail_msg("%s", error.text);
    return platform;
}

/* Only links between the same two vertices are numbered, each direction separately, also inside a
 * preset's cluster; a node's link to itself keeps its name. Two hosts, a leaf each, 2 links to the
 * one spine. */
static void test_parallel_links(void **state)
{
    static const char *const names[] = {
        "gpu0 to leaf0",      "leaf0 to gpu0",      "gpu1 to leaf1",      "leaf1 to gpu1",
        "leaf0 to spine0 #1", "leaf0 to spine0 #2", "spine0 to leaf0 #1", "spine0 to leaf0 #2",
        "leaf1 to spine0 #1", "leaf1 to spine0 #2", "spine0 to leaf1 #1", "spine0 to leaf1 #2"};
    (void)state;
    cs_platform platform =
        build_json("{\"topology\":\"leaf_spine\",\"hosts_per_leaf\":1,\"spines\":1,"
                   "\"parallel\":2,\"bandwidth\":1}",
                   2);
    expect_int("links", ROWS(names), platform.n_links);
    for (size_t i = 0; i < ROWS(names); i++) {
        uint32_t found = 0;
        for (uint32_t link = 0; link < platform.n_links; link++)
            found += strcmp(platform.links[link].name, names[i]) == 0;
        expect_int(names[i], 1, found);
    }
    cs_platform_finish(&platform);
    platform = build_json("{\"topology\":\"dgx-a100\"}", 16);
    for (uint32_t link = 1; link < platform.n_links; link++)
        for (uint32_t other = 0; other < link; other++)
            assert_string_not_equal(platform.links[link].name, platform.links[other].name);
    cs_platform_finish(&platform);
    platform = build_json("{\"topology\":\"pcie\",\"bandwidth\":1}", 2);
    expect_text("host", "host bridge", platform.links[platform.n_links - 1].name);
    cs_platform_finish(&platform);
}

/* The params are an object's text. */
static const char *with_name(const char *name, const char *params, char *text, size_t size)
{
    const bool empty = strcmp(params, "{}") == 0;
    (void)snprintf(text, size, "{\"topology\": \"%s\"%s%s", name, empty ? "" : ", ", params + 1);
    return text;
}

static cs_platform build(const char *name, const char *params, uint32_t n_devices)
{
    char text[512];
    return build_json(with_name(name, params, text, sizeof(text)), n_devices);
}

/* Parameters with which a topology accepts 1 to 9 devices; "{}" if all have defaults. */
static const char *common_params(const char *topology)
{
    static const struct {
        const char *topology, *params;
    } rows[] = {
        {"ring", "{\"bandwidth\": \"8 GB/s\", \"latency\": \"1 us\"}"},
        {"nvlink_switch", "{\"bandwidth\": \"8 GB/s\", \"latency\": \"1 us\"}"},
        {"pcie", "{\"bandwidth\": \"8 GB/s\", \"latency\": \"1 us\"}"},
        {"nvswitch", "{\"model\": \"dgx2\"}"},
        {"torus", "{\"shape\": [3, 2, 2], \"bandwidth\": 1e9}"},
        {"dragonfly", "{\"routers\": 2, \"hosts\": 1, \"global_links\": 2, \"bandwidth\": 1e9}"},
        {"leaf_spine", "{\"hosts_per_leaf\": 2, \"spines\": 2, \"bandwidth\": 1e9}"},
        {"fat_tree", "{\"levels\": 3, \"radix\": 4, \"bandwidth\": 1e9}"},
        {"cluster", "{\"gpus_per_node\": 2, \"node\": \"nvlink_mesh\", \"network\": {\"topology\": "
                    "\"ring\", \"bandwidth\": 1e9}}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(topology, rows[i].topology) == 0)
            return rows[i].params;
    return "{}";
}

/* Largest number of devices, for topologies of single nodes; the others accept any number. */
static uint32_t most_devices(const char *topology)
{
    return strcmp(topology, "dgx1") == 0 || strstr(topology, "-8gpu") ? 8 : 9;
}

/* Topologies, then machines. */
static const char *name_at(size_t i)
{
    size_t n = 0;
    while (cs_topologies[n] && n < i)
        n++;
    return cs_topologies[n] ? cs_topologies[n]->name : cs_facts_name(cs_machine_kind.folder, i - n);
}

/* "gpu0 to gpu1, gpu1 to gpu2" */
static void route_text(const cs_platform *platform, uint32_t source, uint32_t target, char *text,
                       size_t size)
{
    uint32_t links[MOST_ROUTE];
    assert_true(platform->longest_route <= MOST_ROUTE);
    const uint32_t n = platform->route(platform, source, target, links);
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 platform->links[links[i]].name);
}

/* ---- Routes by hand ---- */

typedef struct route_row {
    const char *topology;
    uint32_t n_devices, source, target;
    const char *links;
} route_row;

static const route_row route_rows[] = {
    {"ideal", 3, 0, 2, ""},
    {"ring", 1, 0, 0, ""},
    /* two devices: up is the only way there is */
    {"ring", 2, 0, 1, "gpu0 to gpu1"},
    {"ring", 2, 1, 0, "gpu1 to gpu0"},
    {"ring", 3, 0, 1, "gpu0 to gpu1"},
    {"ring", 3, 0, 2, "gpu0 to gpu2"},
    {"ring", 3, 2, 0, "gpu2 to gpu0"},
    /* opposite in a ring of four: a tie, so up, also around the end of the numbers */
    {"ring", 4, 0, 2, "gpu0 to gpu1, gpu1 to gpu2"},
    {"ring", 4, 2, 0, "gpu2 to gpu3, gpu3 to gpu0"},
    {"ring", 4, 3, 1, "gpu3 to gpu0, gpu0 to gpu1"},
    /* ring of five: two steps up, or two steps down instead of three up */
    {"ring", 5, 4, 1, "gpu4 to gpu0, gpu0 to gpu1"},
    {"ring", 5, 1, 4, "gpu1 to gpu0, gpu0 to gpu4"},
    {"ring", 5, 3, 3, ""},
    {"nvlink_switch", 4, 3, 1, "gpu3 to switch, switch to gpu1"},
    {"nvlink_switch", 4, 2, 2, ""},
    {"nvlink_switch", 1, 0, 0, ""},
    {"pcie", 4, 0, 3, "gpu0 to host, host bridge, host to gpu3"},
    {"pcie", 4, 1, 1, ""},
    {"pcie", 1, 0, 0, ""},
};

static void test_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(route_rows) / sizeof(route_rows[0]); i++) {
        const route_row *row = &route_rows[i];
        char text[256];
        cs_platform platform = build(row->topology, common_params(row->topology), row->n_devices);
        route_text(&platform, row->source, row->target, text, sizeof(text));
        if (strcmp(text, row->links) != 0)
            fail_msg("%s of %" PRIu32 ", %" PRIu32 " to %" PRIu32 ": got \"%s\", not \"%s\"",
                     row->topology, row->n_devices, row->source, row->target, text, row->links);
        cs_platform_finish(&platform);
    }
}

/* ---- Routes of all pairs ---- */

/* Every link begins where the last one ended. */
static void check_pair(const cs_platform *platform, uint32_t source, uint32_t target)
{
    uint32_t links[MOST_ROUTE], at = source;
    const uint32_t n = platform->route(platform, source, target, links);
    assert_true(n <= platform->longest_route);
    assert_true(source != target || n == 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(links[i] < platform->n_links);
        const cs_link *link = &platform->links[links[i]];
        if (link->from != at)
            fail_msg("%s, %" PRIu32 " to %" PRIu32 ": link \"%s\" does not start at %s",
                     platform->topology, source, target, link->name, platform->vertices[at].name);
        at = link->to;
    }
    if (platform->n_links > 0)
        assert_int_equal(at, target);
}

static void test_all_pairs_are_connected(void **state)
{
    (void)state;
    const char *name;
    for (size_t i = 0; (name = name_at(i)); i++)
        for (uint32_t n = 1; strcmp(name, "file") != 0 && n <= most_devices(name); n++) {
            cs_platform platform = build(name, common_params(name), n);
            assert_int_equal(platform.n_devices, n);
            assert_string_equal(platform.topology, name);
            const uint32_t terminals = n + platform.n_ports;
            for (uint32_t pair = 0; pair < terminals * terminals; pair++)
                check_pair(&platform, pair / terminals, pair % terminals);
            cs_platform_finish(&platform);
        }
}

/* No route of a ring is longer than the other way around, and the longest is as long as promised.
 */
static void test_ring_takes_the_shorter_way(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 9; n++) {
        cs_platform platform = build("ring", common_params("ring"), n);
        uint32_t links[MOST_ROUTE], longest = 0;
        for (uint32_t pair = 0; pair < n * n; pair++) {
            const uint32_t gap = abs((int)(pair / n) - (int)(pair % n));
            const uint32_t shorter = gap < n - gap ? gap : n - gap;
            const uint32_t length = platform.route(&platform, pair / n, pair % n, links);
            assert_int_equal(length, shorter);
            longest = length > longest ? length : longest;
        }
        assert_int_equal(platform.longest_route, longest);
        cs_platform_finish(&platform);
    }
}

typedef struct count_row {
    const char *topology;
    uint32_t n_devices, n_links;
} count_row;

static void test_number_of_links(void **state)
{
    (void)state;
    static const count_row rows[] = {
        {"ideal", 4, 0}, {"ring", 1, 0},          {"ring", 2, 2},
        {"ring", 3, 6},  {"nvlink_switch", 4, 8}, {"pcie", 4, 9},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_platform platform =
            build(rows[i].topology, common_params(rows[i].topology), rows[i].n_devices);
        assert_int_equal(platform.n_links, rows[i].n_links);
        for (uint32_t link = 0; link < platform.n_links; link++)
            assert_non_null(platform.links[link].name);
        cs_platform_finish(&platform);
    }
}

/* ---- Paths ---- */

typedef struct path_row {
    const char *topology, *params;
    uint32_t n_devices, source, target;
    cs_time latency;  /* ps */
    double bandwidth; /* bytes/s */
} path_row;

static const path_row path_rows[] = {
    {"ideal", "{}", 4, 0, 3, 0, INFINITY},
    /* every link of a ring adds its latency: two of 2 us */
    {"ring", "{\"bandwidth\": \"25 GB/s\", \"latency\": \"2 us\"}", 4, 0, 2, 4000000, 25e9},
    {"ring", "{\"bandwidth\": 1e9}", 4, 0, 1, 0, 1e9},
    {"ring", "{\"bandwidth\": 1e9}", 4, 2, 2, 0, INFINITY},
    /* a switch's latency applies to the whole route: 3 us once, not twice */
    {"nvlink_switch", "{\"bandwidth\": \"150 GB/s\", \"latency\": \"3 us\"}", 4, 1, 2, 3000000,
     150e9},
    {"pcie", "{\"bandwidth\": \"12 GB/s\", \"latency\": \"5 us\"}", 4, 1, 2, 5000000, 12e9},
    {"pcie", "{\"bandwidth\": \"12 GB/s\", \"host_bandwidth\": \"9 GB/s\"}", 4, 0, 1, 0, 9e9},
    {"pcie", "{\"bandwidth\": \"12 GB/s\", \"host_bandwidth\": \"48 GB/s\"}", 4, 0, 1, 0, 12e9},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(path_rows) / sizeof(path_rows[0]); i++) {
        const path_row *row = &path_rows[i];
        cs_platform platform = build(row->topology, row->params, row->n_devices);
        cs_route route;
        assert_int_equal(cs_route_find(&platform, row->source, row->target, NULL, &route, NULL),
                         CS_OK);
        if (route.latency != row->latency || route.bandwidth != row->bandwidth)
            fail_msg("row %zu, %s: got %" PRId64 " ps and %g bytes/s, not %" PRId64 " and %g", i,
                     row->topology, route.latency, route.bandwidth, row->latency, row->bandwidth);
        cs_platform_finish(&platform);
    }
}

/* Two links of 2^62 ps make 2^63, one more than fits. */
static void test_path_overflow(void **state)
{
    (void)state;
    cs_platform platform = build("ring", "{\"bandwidth\": 1}", 4);
    for (uint32_t link = 0; link < platform.n_links; link++)
        platform.links[link].latency = INT64_C(1) << 62;
    cs_error error;
    cs_error_init(&error);
    cs_route route;
    assert_int_equal(cs_route_find(&platform, 0, 1, NULL, &route, &error), CS_OK);
    assert_int_equal(route.latency, INT64_C(1) << 62);
    route.latency = -1;
    assert_int_equal(cs_route_find(&platform, 0, 2, NULL, &route, &error), CS_OVERFLOW);
    assert_int_equal(route.latency, -1);
    assert_non_null(strstr(error.text, "link \"gpu1 to gpu2\""));
    cs_platform_finish(&platform);
}

/* Messages at once on a ring of four, each link of 1 us: a message of two hops takes two of the
 * links d to d + 1, up. Equal are those that are alike and share no link, or whose links are not
 * shared out.
 */
static void test_messages(void **state)
{
    (void)state;
    static const struct messages_row {
        const char *name;
        uint32_t n;
        struct {
            uint32_t source, target;
            uint64_t user;
        } messages[4];
        bool alike, apart, equal_if_free, equal_if_shared;
    } rows[] = {
        {"none", 0, {{0}}, true, true, true, true},
        {"around the ring",
         4,
         {{0, 1, 0}, {1, 2, 1}, {2, 3, 2}, {3, 0, 3}},
         true,
         true,
         true,
         true},
        {"both ways", 2, {{0, 1, 7}, {1, 0, 8}}, true, true, true, true},
        {"two hops, both over 1 to 2", 2, {{0, 2, 0}, {1, 3, 1}}, true, false, true, false},
        {"the same of one user", 2, {{0, 2, 5}, {1, 3, 5}}, true, true, true, true},
        {"two hops and one hop apart", 2, {{0, 2, 0}, {2, 3, 1}}, false, true, false, false},
        {"two hops and one hop of them", 2, {{0, 2, 0}, {1, 2, 1}}, false, false, false, false},
    };
    cs_platform platform = build("ring", "{\"bandwidth\": 1e9, \"latency\": 1e-6}", 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct messages_row *row = &rows[i];
        cs_messages all;
        assert_int_equal(cs_messages_init(&all, &platform, NULL), CS_OK);
        for (uint32_t m = 0; m < row->n; m++)
            assert_int_equal(cs_messages_add(&all, row->messages[m].source, row->messages[m].target,
                                             row->messages[m].user, NULL),
                             CS_OK);
        expect_int(row->name, row->alike, all.alike);
        expect_int(row->name, row->apart, all.apart);
        platform.sharing = CS_SHARING_NONE;
        expect_int(row->name, row->equal_if_free, cs_messages_are_equal(&all));
        platform.sharing = CS_SHARING_MAX_MIN;
        expect_int(row->name, row->equal_if_shared, cs_messages_are_equal(&all));
        cs_messages_finish(&all);
    }
    cs_platform_finish(&platform);
}

/* A message to the next device takes 1 us and a link of its own, whatever the size of the ring. */
static void test_messages_in_a_ring(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 5; n++) {
        cs_platform platform = build("ring", "{\"bandwidth\": 1e9, \"latency\": 1e-6}", n);
        cs_messages all;
        platform.sharing = CS_SHARING_MAX_MIN;
        assert_int_equal(cs_messages_init_ring(&all, &platform, n, NULL), CS_OK);
        expect_int("messages", n, all.n);
        expect_int("latency", 1000000, all.latency);
        expect_double("bandwidth", 1e9, all.bandwidth);
        assert_true(cs_messages_are_equal(&all));
        cs_messages_finish(&all);
        cs_platform_finish(&platform);
    }
}

/* ---- Errors ---- */

static void test_defaults_of_a_platform(void **state)
{
    (void)state;
    cs_platform platform = build("nvlink_switch", "{\"bandwidth\": 1}", 2);
    assert_int_equal(platform.sharing, CS_SHARING_NONE);
    assert_true(platform.phi == 1);
    assert_true(platform.devices[1].speed == 1);
    assert_true(platform.devices[1].capacity == INT64_MAX);
    cs_platform_finish(&platform);
    assert_null(platform.devices);
    cs_platform_finish(&platform); /* zeroed: nothing to do */
    cs_platform_finish(NULL);
}

static void test_wrong_numbers_of_devices(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, (1 << 24) + 1, UINT32_MAX};
    const char *name;
    for (size_t t = 0; (name = name_at(t)); t++)
        for (size_t i = 0; strcmp(name, "file") != 0 && i < 3; i++) {
            cs_error error;
            cs_platform platform;
            char text[512];
            with_name(name, common_params(name), text, sizeof(text));
            assert_int_equal(try_build(text, wrong[i], &platform, &error), CS_INVALID);
            if (!strstr(error.text, "number of devices must be from 1 to 16777216"))
                fail_msg("%s: %s", name, error.text);
        }
}

typedef struct params_row {
    const char *topology, *params, *message; /* a part of it */
} params_row;

static void test_wrong_params(void **state)
{
    (void)state;
    static const params_row rows[] = {
        {"ring", "{}", "bandwidth"},
        {"ring", "{\"bandwidth\": 0}", "/bandwidth"},
        {"ring", "{\"bandwidth\": -1}", "/bandwidth"},
        {"ring", "{\"bandwidth\": 1, \"latency\": -1}", "/latency"},
        {"ring", "{\"bandwidth\": \"1 us\"}", "/bandwidth"},
        {"nvlink_switch", "{\"bandwidth\": 0}", "/bandwidth"},
        {"pcie", "{\"bandwidth\": 0}", "/bandwidth"},
        {"pcie", "{\"bandwidth\": 1, \"host_bandwidth\": -1}", "/host_bandwidth"},
        {"ideal", "{\"bandwidth\": 1}", "bandwidth"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_error error;
        cs_platform platform = {0};
        char text[512];
        const cs_status status = try_build(
            with_name(rows[i].topology, rows[i].params, text, sizeof(text)), 4, &platform, &error);
        if (status != CS_INVALID || !strstr(error.text, rows[i].message))
            fail_msg("%s %s: %s, \"%s\"", rows[i].topology, rows[i].params, cs_status_name(status),
                     error.text);
    }
}

/* Links that no scenario can specify, but a file of foreign measurements may. */
static void test_wrong_links(void **state)
{
    (void)state;
    static const struct {
        double bandwidth;
        cs_time latency;
        const char *message;
    } rows[] = {
        {0, 0, "link \"gpu0 to a 7\": bandwidth must be > 0 bytes/s (got 0)"},
        {-2, 0, "link \"gpu0 to a 7\": bandwidth must be > 0 bytes/s (got -2)"},
        {NAN, 0, "link \"gpu0 to a 7\": bandwidth must be > 0 bytes/s (got "},
        {1, -5, "link \"gpu0 to a 7\": latency must be >= 0 (got -5 ps)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_platform platform;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(cs_platform_init(&platform, "test", 1, 1, 1, &error), CS_OK);
        assert_int_equal(cs_platform_vertex(&platform, 1, CS_VERTEX_SWITCH, &error, "a %d", 7),
                         CS_OK);
        assert_int_equal(
            cs_platform_link(&platform, 0, 0, 1, rows[i].bandwidth, rows[i].latency, &error),
            CS_INVALID);
        if (!strstr(error.text, rows[i].message))
            fail_msg("got \"%s\", not \"%s\"", error.text, rows[i].message);
        cs_platform_finish(&platform);
    }
}

/* ---- Registry ---- */

static void test_registry(void **state)
{
    (void)state;
    static const char *const names[] = {"ideal", "ring", "nvlink_switch", "pcie"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const cs_topology *topology = cs_topology_find(names[i]);
        assert_non_null(topology);
        assert_string_equal(topology->name, names[i]);
    }
    assert_null(cs_topology_find("Ring"));
    assert_null(cs_topology_find(""));
    for (const cs_topology *const *topology = cs_topologies; *topology; topology++) {
        assert_ptr_equal(cs_topology_find((*topology)->name), *topology);
        assert_non_null((*topology)->summary);
        for (const cs_field *field = (*topology)->fields; field->name; field++) {
            assert_non_null(field->doc);
            assert_true(field->offset < (*topology)->params_size);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel_links),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_all_pairs_are_connected),
        cmocka_unit_test(test_ring_takes_the_shorter_way),
        cmocka_unit_test(test_number_of_links),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_path_overflow),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_messages_in_a_ring),
        cmocka_unit_test(test_defaults_of_a_platform),
        cmocka_unit_test(test_wrong_numbers_of_devices),
        cmocka_unit_test(test_wrong_params),
        cmocka_unit_test(test_wrong_links),
        cmocka_unit_test(test_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
