/* Series, which are tasks of several parts, run like their parts one by one, in time and in their
 * device's memory. */
#include "sim/base/random.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"
#include "topologies/topology.h"

#include <stdio.h>
#include <string.h>

/* On device 0: A computes for 1000 ps, then X runs for 500, in parallel with B, which takes 300;
 * then C takes 2000, so that A starts at 0, X and B at 1000, C at 1500. `bytes` are held by each
 * while it runs. Device 1 computes for `until`, and then sends device 0 a message that occupies 100
 * bytes there for longer than all of that. */
typedef struct row {
    const char *name;
    int64_t bytes[4];
    cs_time until;
    int64_t peak;
    bool doubtful;
} row;

static const row rows[] = {
    /* at 1200: X 30, B 7 and the message's 100 */
    {"within X and B", {10, 30, 7, 5}, 1200, 137, false},
    /* at 1400: of B nothing is left */
    {"behind B", {10, 30, 7, 5}, 1400, 130, false},
    /* at 500: A and the message; from 1000 on X, B and the message */
    {"within A", {10, 30, 7, 5}, 500, 137, false},
    /* at 2000: C and the message; without it X and B */
    {"within C", {10, 30, 7, 5}, 2000, 105, false},
    {"within C, without being the peak", {10, 300, 7, 5}, 2000, 307, false},
    /* at 1000 A has ended when the message starts, but that is known of single parts only: with A
     * there would be 147 */
    {"with the end of A", {10, 30, 7, 5}, 1000, 137, true},
    /* no order at 1000 leads to more than 147, and at 1500 there are 300 */
    {"with the end of A, without being the peak", {10, 30, 7, 200}, 1000, 300, false},
    /* at 3500 the series ends: ends come before starts */
    {"with its end", {10, 30, 7, 5}, 3500, 100, false},
};

/* Memory of the class added last, while it runs. */
static void hold(cs_builder *builder, int64_t bytes)
{
    cs_builder_effect(builder, CS_MEMORY_WORKSPACE, 0, bytes, false);
    cs_builder_effect(builder, CS_MEMORY_WORKSPACE, 0, -bytes, true);
}

static uint32_t add_compute(cs_builder *builder, cs_time duration, int64_t bytes)
{
    const uint32_t cls = cs_builder_compute(builder, CS_FORWARD, 0, 0, CS_NONE, duration);
    hold(builder, bytes);
    return cls;
}

static uint32_t add_delay(cs_builder *builder, cs_time duration, int64_t bytes)
{
    const uint32_t cls = cs_builder_class(builder, &(cs_class){.kind = CS_TRANSFER,
                                                               .origin = CS_ALL_REDUCE,
                                                               .weights = CS_NONE,
                                                               .duration = duration});
    hold(builder, bytes);
    return cls;
}

static void add_parts(cs_builder *builder, const row *of, bool together)
{
    const uint32_t classes[] = {
        add_compute(builder, 1000, of->bytes[0]), add_delay(builder, 500, of->bytes[1]),
        add_compute(builder, 300, of->bytes[2]), add_compute(builder, 2000, of->bytes[3])};
    const cs_series_part parts[] = {
        {classes[0], 0, {0}}, {classes[1], 1, {0}}, {classes[2], 0, {0}}, {classes[3], 1, {1}}};
    if (together) {
        cs_builder_task(builder, cs_builder_series(builder, parts, 4, 4), 0);
        return;
    }
    uint32_t tasks[4];
    for (uint32_t i = 0; i < 4; i++) {
        tasks[i] = cs_builder_task(builder, classes[i], 0);
        for (uint32_t w = 0; w < parts[i].n_waits; w++)
            cs_builder_edge(builder, tasks[parts[i].waits[w]], tasks[i]);
    }
}

static cs_platform make_platform(void)
{
    cs_platform platform;
    const cs_topology *topology = cs_topology_find("ideal");
    assert_int_equal(topology->build(NULL, 2, &platform, NULL), CS_OK);
    return platform;
}

/* The message starts before all that follows on device 0 in the order of ids. */
static cs_trace run(const row *of, bool together, uint32_t *n_tasks)
{
    cs_builder *builder = cs_builder_create(2, 1, 1, 1);
    cs_platform platform = make_platform();
    cs_graph graph = {0};
    cs_trace trace = {0};
    cs_error error;
    cs_error_init(&error);
    assert_non_null(builder);
    const uint32_t before = cs_builder_task(
        builder, cs_builder_compute(builder, CS_FORWARD, 0, 1, CS_NONE, of->until), 0);
    const uint32_t cls = cs_builder_class(builder, &(cs_class){.kind = CS_TRANSFER,
                                                               .origin = CS_TRANSFER,
                                                               .device = 1,
                                                               .peer = 0,
                                                               .weights = CS_NONE,
                                                               .duration = 9000});
    hold(builder, 100);
    cs_builder_edge(builder, before, cs_builder_task(builder, cls, 0));
    add_parts(builder, of, together);
    if (cs_builder_finish(builder, &graph, &error) != CS_OK ||
        cs_graph_check(&graph, &error) != CS_OK ||
        cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, &error) != CS_OK)
        fail_msg("%s: %s", of->name, error.text);
    *n_tasks = cs_graph_count_tasks(&graph);
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
    cs_builder_destroy(builder);
    return trace;
}

static void test_memory(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        uint32_t n_alone, n_together;
        cs_trace alone = run(&rows[r], false, &n_alone),
                 together = run(&rows[r], true, &n_together);
        expect_int(rows[r].name, rows[r].peak, alone.devices[0].peak);
        if (!rows[r].doubtful)
            expect_int(rows[r].name, rows[r].peak, together.devices[0].peak);
        expect_int(rows[r].name, rows[r].doubtful, together.doubtful);
        expect_int(rows[r].name, alone.makespan, together.makespan);
        expect_int(rows[r].name, 6, n_alone);
        expect_int(rows[r].name, 6, n_together);
        /* the fourth one starts when X ends, and takes 2000 */
        expect_int(rows[r].name, 3500, together.spans[2].end);
        cs_trace_finish(&alone);
        cs_trace_finish(&together);
    }
}

enum { MOST_PARTS = 7 };

static cs_time up_to(gsl_rng *random, unsigned long most)
{
    return (cs_time)gsl_rng_uniform_int(random, most + 1);
}

/* A computation of a device whose host takes time, and may wait. */
static uint32_t add_hosted(cs_builder *builder, gsl_rng *random)
{
    const cs_class cls = {.kind = CS_FORWARD,
                          .origin = CS_FORWARD,
                          .waits = up_to(random, 4) == 0,
                          .waits_before = up_to(random, 4) == 0,
                          .peer = CS_NONE,
                          .weights = CS_NONE,
                          .duration = up_to(random, 3000),
                          .host = up_to(random, 3000)};
    return cs_builder_class(builder, &cls);
}

/* Random parts. Each waits for one before it, the last one for all delays. */
static uint32_t make_hosted(cs_builder *builder, gsl_rng *random, cs_series_part *parts)
{
    const uint32_t n = 3 + (uint32_t)up_to(random, MOST_PARTS - 3);
    cs_series_part *last = &parts[n - 1];
    memset(parts, 0, MOST_PARTS * sizeof(*parts));
    for (uint32_t i = 0; i < n; i++) {
        const bool delay = i > 0 && i + 1 < n && up_to(random, 1) == 0;
        parts[i].cls =
            delay ? add_delay(builder, up_to(random, 3000), 0) : add_hosted(builder, random);
        if (i > 0 && i + 1 < n)
            parts[i].waits[parts[i].n_waits++] = (uint32_t)up_to(random, i - 1);
        if (delay)
            last->waits[last->n_waits++] = i;
    }
    return n;
}

/* Twice the same parts, and a task between them and after them. */
static cs_trace run_hosted(uint64_t seed, bool together)
{
    gsl_rng *random = cs_random_stream(seed, "series");
    cs_builder *builder = cs_builder_create(1, 1, 1, 1);
    cs_platform platform = make_platform();
    cs_graph graph = {0};
    cs_trace trace = {0};
    cs_series_part parts[MOST_PARTS];
    uint32_t tasks[MOST_PARTS];
    cs_error error;
    cs_error_init(&error);
    assert_true(random && builder);
    const uint32_t n = make_hosted(builder, random, parts);
    const uint32_t between = add_hosted(builder, random);
    const uint32_t series = together ? cs_builder_series(builder, parts, n, n) : 0;
    for (uint32_t round = 0; round < 2; round++) {
        if (together)
            cs_builder_task(builder, series, 0);
        for (uint32_t i = 0; i < n && !together; i++) {
            tasks[i] = cs_builder_task(builder, parts[i].cls, 0);
            for (uint32_t w = 0; w < parts[i].n_waits; w++)
                cs_builder_edge(builder, tasks[parts[i].waits[w]], tasks[i]);
        }
        cs_builder_task(builder, between, 0);
    }
    if (cs_builder_finish(builder, &graph, &error) != CS_OK ||
        cs_graph_check(&graph, &error) != CS_OK ||
        cs_engine_run(&graph, &platform, &(cs_engine_options){.every_event = !together}, &trace,
                      &error) != CS_OK)
        fail_msg("seed %d: %s", (int)seed, error.text);
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
    cs_builder_destroy(builder);
    gsl_rng_free(random);
    return trace;
}

static void test_hosts(void **state)
{
    (void)state;
    char name[32];
    for (uint64_t seed = 0; seed < 500; seed++) {
        cs_trace alone = run_hosted(seed, false), together = run_hosted(seed, true);
        snprintf(name, sizeof(name), "seed %d", (int)seed);
        expect_int(name, alone.makespan, together.makespan);
        cs_trace_finish(&alone);
        cs_trace_finish(&together);
    }
}

/* Invalid series are reported. */
static void test_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t last_device;
        uint32_t waits;  /* dependency of the second part */
        bool ends_alone; /* the last part computes */
    } wrong[] = {{"a part on another device", 1, 0, true},
                 {"waits for a later part", 0, 2, true},
                 {"waits for itself", 0, 1, true},
                 {"ends with a delay", 0, 0, false}};
    for (size_t r = 0; r < ROWS(wrong); r++) {
        cs_builder *builder = cs_builder_create(2, 1, 1, 1);
        cs_graph graph = {0};
        cs_error error;
        cs_error_init(&error);
        const uint32_t first = add_compute(builder, 10, 0), delay = add_delay(builder, 10, 0);
        const uint32_t last =
            cs_builder_compute(builder, CS_FORWARD, 0, wrong[r].last_device, CS_NONE, 10);
        const cs_series_part parts[] = {
            {first, 0, {0}}, {delay, 1, {wrong[r].waits}}, {last, 1, {1}}};
        cs_builder_task(builder, cs_builder_series(builder, parts, wrong[r].ends_alone ? 3 : 2, 3),
                        0);
        assert_int_equal(cs_builder_finish(builder, &graph, &error), CS_OK);
        if (cs_graph_check(&graph, &error) != CS_INVALID || !strstr(error.text, "are no series"))
            fail_msg("%s: %s", wrong[r].name, error.text);
        cs_graph_finish(&graph);
        cs_builder_destroy(builder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory), cmocka_unit_test(test_hosts),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
