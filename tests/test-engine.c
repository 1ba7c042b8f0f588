/* The engine on small runs whose results are derived by hand in the comments. Every run is made by
 * the reference engine as well, so that it is checked by the same numbers.
 *
 * Unless said otherwise a link has 1e9 bytes/s: a byte takes 1000 ps.
 */
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"
#include "tests/reference-engine.h"
#include "topologies/topology.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_ENGINES = 2 };

static const struct {
    const char *name;
    cs_status (*run)(const cs_graph *, const cs_platform *, const cs_engine_options *, cs_trace *,
                     cs_error *);
} engines[N_ENGINES] = {{"engine", cs_engine_run}, {"reference", reference_run}};

typedef struct scene {
    cs_builder *builder;
    cs_graph graph;
    cs_platform platform;
    cs_engine_options options;
    cs_trace traces[N_ENGINES];
} scene;

static cs_platform make_platform(const char *name, uint32_t n_devices, double bandwidth,
                                 cs_time latency)
{
    _Alignas(max_align_t) char params[128] = {0};
    const cs_topology *topology = cs_topology_find(name);
    assert_true(topology->params_size <= sizeof(params));
    const cs_field *field = cs_field_find(topology->fields, "bandwidth");
    if (field)
        *(double *)(void *)(params + field->offset) = bandwidth;
    field = cs_field_find(topology->fields, "latency");
    if (field)
        *(cs_time *)(void *)(params + field->offset) = latency;
    cs_platform platform;
    assert_int_equal(topology->build(params, n_devices, &platform, NULL), CS_OK);
    return platform;
}

static scene open_scene(const char *topology, uint32_t n_devices, cs_time latency,
                        cs_sharing sharing)
{
    scene made = {.platform = make_platform(topology, n_devices, 1e9, latency),
                  .options = {.record_memory = true, .record_versions = true}};
    made.platform.sharing = sharing;
    made.builder = cs_builder_create(n_devices, 1, 1, 1);
    assert_non_null(made.builder);
    return made;
}

static uint32_t add_compute(scene *on, uint32_t device, cs_time duration)
{
    return cs_builder_task(
        on->builder, cs_builder_compute(on->builder, CS_FORWARD, 0, device, CS_NONE, duration), 0);
}

static uint32_t add_transfer(scene *on, uint32_t from, uint32_t to, int64_t bytes)
{
    return cs_builder_task(on->builder, cs_builder_transfer(on->builder, 0, from, to, bytes, false),
                           0);
}

static uint32_t add_blocking(scene *on, uint32_t from, uint32_t to, int64_t bytes)
{
    return cs_builder_task(on->builder, cs_builder_transfer(on->builder, 0, from, to, bytes, true),
                           0);
}

static void finish_graph(scene *on)
{
    cs_error error;
    cs_error_init(&error);
    if (cs_builder_finish(on->builder, &on->graph, &error) != CS_OK ||
        cs_graph_check(&on->graph, &error) != CS_OK)
        fail_msg("%s", error.text);
}

static void run_scene(scene *on)
{
    finish_graph(on);
    for (int i = 0; i < N_ENGINES; i++) {
        cs_error error;
        cs_error_init(&error);
        const cs_status status =
            engines[i].run(&on->graph, &on->platform, &on->options, &on->traces[i], &error);
        if (status != CS_OK)
            fail_msg("%s: %s", engines[i].name, error.text);
    }
}

static void expect_status(scene *on, cs_status expected)
{
    for (int i = 0; i < N_ENGINES; i++) {
        cs_error error;
        cs_error_init(&error);
        cs_trace trace = {.n_tasks = 77};
        const cs_status status =
            engines[i].run(&on->graph, &on->platform, &on->options, &trace, &error);
        if (status != expected)
            fail_msg("%s: %s, not %s: %s", engines[i].name, cs_status_name(status),
                     cs_status_name(expected), error.text);
        assert_int_equal(error.count, 1);
        assert_int_equal(trace.n_tasks, 77); /* written on success only */
    }
}

static void close_scene(scene *on)
{
    for (int i = 0; i < N_ENGINES; i++)
        cs_trace_finish(&on->traces[i]);
    cs_builder_destroy(on->builder);
    cs_graph_finish(&on->graph);
    cs_platform_finish(&on->platform);
}

/* One span per task, in order; the makespan is the latest end. */
static void expect_spans(const scene *on, const cs_span *spans, uint32_t n)
{
    for (int i = 0; i < N_ENGINES; i++) {
        const cs_trace *trace = &on->traces[i];
        cs_time latest = 0;
        assert_int_equal(trace->n_tasks, n);
        for (uint32_t task = 0; task < n; task++) {
            const cs_span got = trace->spans[task], want = spans[task];
            if (got.start != want.start || got.end != want.end)
                fail_msg("%s: task %" PRIu32 ": %" PRId64 " .. %" PRId64 ", not %" PRId64
                         " .. %" PRId64,
                         engines[i].name, task, got.start, got.end, want.start, want.end);
            latest = want.end > latest ? want.end : latest;
        }
        assert_int_equal(trace->makespan, latest);
    }
}

#define EXPECT_SPANS(scene, ...)                                                                   \
    expect_spans((scene), (const cs_span[]){__VA_ARGS__},                                          \
                 sizeof((const cs_span[]){__VA_ARGS__}) / sizeof(cs_span))

static void run_and_expect(scene *on, const cs_span *spans, uint32_t n)
{
    run_scene(on);
    expect_spans(on, spans, n);
    close_scene(on);
}

#define RUN_AND_EXPECT(scene, ...)                                                                 \
    run_and_expect((scene), (const cs_span[]){__VA_ARGS__},                                        \
                   sizeof((const cs_span[]){__VA_ARGS__}) / sizeof(cs_span))

/* ---- Compute ---- */

static void test_nothing_to_do(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    cs_builder_resident(on.builder, 0, CS_MEMORY_WEIGHTS, 7);
    run_scene(&on);
    for (int i = 0; i < N_ENGINES; i++) {
        assert_int_equal(on.traces[i].makespan, 0);
        assert_int_equal(on.traces[i].devices[0].peak, 7);
        assert_int_equal(on.traces[i].devices[0].peak_time, 0);
        assert_int_equal(cs_samples_count(on.traces[i].samples), 1);
    }
    close_scene(&on);
}

/* 3000 ps at speed 2 are 1500; 1000 at speed 3 are 333.3, to the nearest picosecond 333; 2000 at
 * speed 3 are 666.7, so 667. */
static void test_speeds(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    on.platform.devices[0].speed = 2;
    on.platform.devices[1].speed = 3;
    add_compute(&on, 0, 3000);
    add_compute(&on, 1, 1000);
    add_compute(&on, 1, 2000);
    RUN_AND_EXPECT(&on, {0, 1500}, {0, 333}, {333, 1000});
}

/* Program order holds although the second task is ready first. */
static void test_program_order(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    const uint32_t other = add_compute(&on, 1, 4000);
    const uint32_t first = add_compute(&on, 0, 1000);
    add_compute(&on, 0, 1000);
    cs_builder_edge(on.builder, other, first);
    RUN_AND_EXPECT(&on, {0, 4000}, {4000, 5000}, {5000, 6000});
}

static uint32_t add_with_priority(scene *on, int32_t priority)
{
    const cs_class cls = {.kind = CS_BACKWARD,
                          .origin = CS_BACKWARD,
                          .priority = priority,
                          .peer = CS_NONE,
                          .weights = CS_NONE,
                          .duration = 1000};
    return cs_builder_task(on->builder, cs_builder_class(on->builder, &cls), 0);
}

/* Ready at 0: 0 with priority -1, 1 and 2 with priority 1. 1 has the lower id; at its end 3 becomes
 * ready, whose priority of 2 is above task 2's; 0 comes last. */
static void test_priority_queue(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    cs_builder_queue(on.builder, 0, CS_QUEUE_PRIORITY);
    add_with_priority(&on, -1);
    const uint32_t first = add_with_priority(&on, 1);
    add_with_priority(&on, 1);
    cs_builder_edge(on.builder, first, add_with_priority(&on, 2));
    RUN_AND_EXPECT(&on, {3000, 4000}, {0, 1000}, {2000, 3000}, {1000, 2000});
}

/* No start before 2000 + 3000 * item. Item 0 of the class is ready at 0 and starts at 2000, item 1
 * at 5000, and the following tasks of the device's program wait with it, although they have no such
 * time. The message is ready at 3000, later than its own 2500, and starts at once; item 1's
 * message, at 6000, waits until 2500 + 5000 = 7500. A byte takes 1000. */
static void test_release_times(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_FIFO);
    cs_builder_destroy(on.builder);
    on.builder = cs_builder_create(2, 1, 1, 2);
    assert_non_null(on.builder);
    const cs_class compute = {.kind = CS_FORWARD,
                              .origin = CS_FORWARD,
                              .peer = CS_NONE,
                              .weights = CS_NONE,
                              .duration = 1000,
                              .release = 2000,
                              .interval = 3000};
    const cs_class message = {.kind = CS_TRANSFER,
                              .origin = CS_TRANSFER,
                              .peer = 1,
                              .weights = CS_NONE,
                              .bytes = 1,
                              .release = 2500,
                              .interval = 5000};
    const uint32_t classes[] = {cs_builder_class(on.builder, &compute),
                                cs_builder_class(on.builder, &message)};
    for (uint32_t item = 0; item < 2; item++) {
        const uint32_t before = cs_builder_task(on.builder, classes[0], item);
        cs_builder_edge(on.builder, before, cs_builder_task(on.builder, classes[1], item));
    }
    add_compute(&on, 0, 1000);
    RUN_AND_EXPECT(&on, {2000, 3000}, {3000, 4000}, {5000, 6000}, {7500, 8500}, {6000, 7000});
}

/* Everything after the first 1000 ps takes no time, across devices and through a message. */
static void test_chain_without_duration(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_COUNT);
    uint32_t last = add_compute(&on, 0, 1000);
    const uint32_t rest[] = {add_compute(&on, 0, 0), add_transfer(&on, 0, 1, 0),
                             add_compute(&on, 1, 0), add_blocking(&on, 1, 0, 0),
                             add_compute(&on, 0, 0)};
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        cs_builder_edge(on.builder, last, rest[i]);
        last = rest[i];
    }
    RUN_AND_EXPECT(&on, {0, 1000}, {1000, 1000}, {1000, 1000}, {1000, 1000}, {1000, 1000},
                   {1000, 1000});
}

/* Two messages without bytes, ready at 0, each holding 10 bytes of device 0 while it lasts. Both
 * start before either ends, as simultaneous ones do: 20 at once. */
static void test_messages_of_no_time_start_together(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
    const uint32_t cls = cs_builder_transfer(on.builder, 0, 0, 1, 0, false);
    cs_builder_effect(on.builder, CS_MEMORY_BUFFERS, 0, 10, false);
    cs_builder_effect(on.builder, CS_MEMORY_BUFFERS, 0, -10, true);
    cs_builder_task(on.builder, cls, 0);
    cs_builder_task(on.builder, cls, 0);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 0}, {0, 0});
    for (int i = 0; i < N_ENGINES; i++)
        assert_int_equal(on.traces[i].devices[0].peak, 20);
    close_scene(&on);
}

/* Device 0's task takes no time, and what it makes ready on device 1 has the higher priority there.
 * Yet both devices start before it ends: device 1 has its other task already. */
static void test_devices_start_together(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    cs_builder_queue(on.builder, 1, CS_QUEUE_PRIORITY);
    const uint32_t first = add_compute(&on, 0, 0);
    const uint32_t low = cs_builder_compute(on.builder, CS_FORWARD, 0, 1, CS_NONE, 1000);
    cs_builder_task(on.builder, low, 0);
    const cs_class high = {.kind = CS_BACKWARD,
                           .origin = CS_BACKWARD,
                           .priority = 1,
                           .device = 1,
                           .peer = CS_NONE,
                           .weights = CS_NONE,
                           .duration = 1000};
    const uint32_t urgent = cs_builder_task(on.builder, cs_builder_class(on.builder, &high), 0);
    cs_builder_edge(on.builder, first, urgent);
    RUN_AND_EXPECT(&on, {0, 0}, {0, 1000}, {1000, 2000});
}

/* ---- Transfers ---- */

/* 1000 of compute; then 200 of latency and 5 bytes of 1000: until 6200; then compute over there.
 * The second compute of device 0 overlaps with the message. */
static void test_message(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 200, CS_SHARING_NONE);
    const uint32_t before = add_compute(&on, 0, 1000);
    const uint32_t message = add_transfer(&on, 0, 1, 5);
    const uint32_t after = add_compute(&on, 1, 2000);
    add_compute(&on, 0, 3000);
    cs_builder_edge(on.builder, before, message);
    cs_builder_edge(on.builder, message, after);
    RUN_AND_EXPECT(&on, {0, 1000}, {1000, 6200}, {6200, 8200}, {1000, 4000});
}

/* Two links of 300 ps and, the second being slower, 4 bytes of 2000. Each link carries 4 bytes. */
static void test_route_of_two_links(void **state)
{
    (void)state;
    scene on = open_scene("ring", 4, 300, CS_SHARING_NONE);
    on.platform.links[1].bandwidth = 0.5e9;
    add_transfer(&on, 0, 2, 4);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 8600});
    for (int i = 0; i < N_ENGINES; i++)
        for (uint32_t link = 0; link < on.platform.n_links; link++)
            assert_int_equal(on.traces[i].links[link].bytes, link < 2 ? 4 : 0);
    close_scene(&on);
}

/* With `none` two messages on one link do not know of each other; the link carries both. */
static void test_none_ignores_others(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
    add_transfer(&on, 0, 1, 5);
    add_transfer(&on, 0, 1, 3);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 5000}, {0, 3000});
    for (int i = 0; i < N_ENGINES; i++)
        assert_int_equal(on.traces[i].links[0].bytes, 8);
    close_scene(&on);
}

/* An infinite link takes its latency only, whatever the sharing. */
static void test_infinite_links(void **state)
{
    (void)state;
    for (cs_sharing sharing = CS_SHARING_NONE; sharing <= CS_SHARING_MAX_MIN; sharing++) {
        scene on = open_scene("ring", 2, 70, sharing);
        on.platform.links[0].bandwidth = INFINITY;
        on.platform.phi = 2;
        add_transfer(&on, 0, 1, 1000000);
        add_transfer(&on, 0, 1, 1000000);
        RUN_AND_EXPECT(&on, {0, 70}, {0, 70});
    }
}

/* Both reach the link at 100. The lower id has it until 3100, then the other for 2000. The one in
 * the other direction has a link of its own. */
static void test_fifo(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 100, CS_SHARING_FIFO);
    add_transfer(&on, 0, 1, 3);
    add_transfer(&on, 0, 1, 2);
    add_transfer(&on, 1, 0, 4);
    RUN_AND_EXPECT(&on, {0, 3100}, {0, 5100}, {0, 4100});
}

/* Message 0 holds link 0 -> 1 until 4000. Message 1 (0 -> 1 -> 2) waits for it, and being the
 * oldest on link 1 -> 2 makes message 2 wait there, although nothing moves on that link: 1 runs
 * 4000 .. 6000, and 2 6000 .. 7000. */
static void test_fifo_holds_all_links(void **state)
{
    (void)state;
    scene on = open_scene("ring", 4, 0, CS_SHARING_FIFO);
    add_transfer(&on, 0, 1, 4);
    add_transfer(&on, 0, 2, 2);
    add_transfer(&on, 1, 2, 1);
    RUN_AND_EXPECT(&on, {0, 4000}, {0, 6000}, {0, 7000});
}

/* At 4e12 bytes/s a byte takes a quarter of a picosecond, so none. Both reach the link at 0. Step 4
 * gives it to the first, which ends: back to 1 and on to 3, where device 0 has what follows the
 * first to do and starts it. Only then the second gets the link, too late for its higher priority.
 */
static void test_fifo_without_time(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_FIFO);
    on.platform.links[0].bandwidth = 4e12;
    cs_builder_queue(on.builder, 0, CS_QUEUE_PRIORITY);
    const uint32_t first = add_transfer(&on, 0, 1, 1);
    const uint32_t second = add_transfer(&on, 0, 1, 1);
    cs_builder_edge(on.builder, first, add_with_priority(&on, 0));
    cs_builder_edge(on.builder, second, add_with_priority(&on, 1));
    RUN_AND_EXPECT(&on, {0, 0}, {0, 0}, {0, 1000}, {1000, 2000});
}

/* Half the bandwidth, the full latency: 200 + 5 * 2000. Two at once do not add up. */
static void test_phi(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 200, CS_SHARING_PHI);
    on.platform.phi = 2;
    add_transfer(&on, 0, 1, 5);
    add_transfer(&on, 0, 1, 5);
    RUN_AND_EXPECT(&on, {0, 10200}, {0, 10200});
}

/* A: 10 bytes from 0. B: 4 bytes from 4000, when A has 6 left. From then on both have half: B needs
 * 8000 and ends at 12000, when A has 6 - 4 = 2 left, which then take 2000: 14000. */
static void joiner_in_the_middle(cs_sharing sharing)
{
    scene on = open_scene("ring", 2, 0, sharing);
    on.platform.independent_messages = true;
    add_transfer(&on, 0, 1, 10);
    const uint32_t delay = add_compute(&on, 0, 4000);
    cs_builder_edge(on.builder, delay, add_transfer(&on, 0, 1, 4));
    RUN_AND_EXPECT(&on, {0, 14000}, {0, 4000}, {4000, 12000});
}

static void test_count_with_a_joiner(void **state)
{
    (void)state;
    joiner_in_the_middle(CS_SHARING_COUNT);
}

/* On one link a fair share is an equal one. */
static void test_max_min_with_a_joiner(void **state)
{
    (void)state;
    joiner_in_the_middle(CS_SHARING_MAX_MIN);
}

/* Messages of one pair are sent in the order of the ends of their latencies of 100, however the
 * link is shared: 0 until 3100, 1 until 5100. Message 2 becomes ready at 1000, has passed its
 * latency at 1100 and is sent from 5100 to 6100. */
static void test_messages_in_order(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_FIFO, CS_SHARING_COUNT, CS_SHARING_MAX_MIN};
    for (size_t i = 0; i < ROWS(sharings); i++) {
        scene on = open_scene("ring", 2, 100, sharings[i]);
        add_transfer(&on, 0, 1, 3);
        add_transfer(&on, 0, 1, 2);
        const uint32_t delay = add_compute(&on, 0, 1000);
        cs_builder_edge(on.builder, delay, add_transfer(&on, 0, 1, 1));
        RUN_AND_EXPECT(&on, {0, 3100}, {0, 5100}, {0, 1000}, {1000, 6100});
    }
}

/* Two messages from 0 to 1 and one from 0 to 2, of 2 bytes each, all over the link out of device 0.
 * The second from 0 to 1 waits for the first, so that two share the link: each has half and ends at
 * 4000, when the second has it alone until 6000. Independent messages have a third each, until
 * 6000. */
static void test_pairs_share(void **state)
{
    (void)state;
    for (int independent = 0; independent < 2; independent++) {
        scene on = open_scene("nvlink_switch", 3, 0, CS_SHARING_MAX_MIN);
        on.platform.independent_messages = independent;
        add_transfer(&on, 0, 1, 2);
        add_transfer(&on, 0, 1, 2);
        add_transfer(&on, 0, 2, 2);
        if (independent)
            RUN_AND_EXPECT(&on, {0, 6000}, {0, 6000}, {0, 6000});
        else
            RUN_AND_EXPECT(&on, {0, 4000}, {0, 6000}, {0, 4000});
    }
}

/* A message that starts while nothing else is on its links, or on its way there, is alone on them
 * until a message starts that shares a link (sole-message.c). A: 4 bytes from 0 to 1, which reach
 * the links at 1000, after the latency, and end at 5000 if they stay alone. B: 3 bytes from 0 to 2,
 * after `delay`; both leave device 0. Both have half of that link while both are on it:
 *
 *   B starts at     0   both come at 1000; B needs 6000, until 7000, when A has 1 left: 8000
 *                 500   before A is at the links, B at 1500; A has 3.5 left. B until 7500, A 8000
 *                2000   B at 3000, A has 2 left, until 7000, when B has 1 left: 8000
 *                3999   B at 4999, A has 0.001 left: 2 ps, until 5001, when B has 2.999: 8000
 *                4000   B at 5000, when A ends
 *                4500   A is alone to its end, B from 5500
 *                5000   when A has ended: B from 6000 */
static void test_alone_until_another(void **state)
{
    (void)state;
    static const struct {
        cs_time delay, a, b;
    } rows[] = {{0, 8000, 7000},    {500, 8000, 7500},  {2000, 7000, 8000}, {3999, 5001, 8000},
                {4000, 5000, 8000}, {4500, 5000, 8500}, {5000, 5000, 9000}};
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        scene on = open_scene("nvlink_switch", 3, 1000, sharings[i % 2]);
        const cs_time delay = rows[i / 2].delay;
        add_transfer(&on, 0, 1, 4);
        const uint32_t before = add_compute(&on, 0, delay);
        cs_builder_edge(on.builder, before, add_transfer(&on, 0, 2, 3));
        RUN_AND_EXPECT(&on, {0, rows[i / 2].a}, {0, delay}, {delay, rows[i / 2].b});
    }
}

/* As above, and C of 4 bytes from 1 to 2, alone as A is: A's links and C's are not the same. B,
 * which starts at 2000, takes one of either, so from 3000 on all three have half. A and C have 2
 * bytes left and end at 7000, when B has 1 left: 8000. D, 1 byte from 1 to 0, starts when B ends:
 * its latency is over at 9000, and it ends at 10000. */
static void test_two_that_were_alone(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    for (size_t i = 0; i < ROWS(sharings); i++) {
        scene on = open_scene("nvlink_switch", 3, 1000, sharings[i]);
        add_transfer(&on, 0, 1, 4);
        add_transfer(&on, 1, 2, 4);
        const uint32_t before = add_compute(&on, 0, 2000), b = add_transfer(&on, 0, 2, 3);
        cs_builder_edge(on.builder, before, b);
        cs_builder_edge(on.builder, b, add_transfer(&on, 1, 0, 1));
        RUN_AND_EXPECT(&on, {0, 7000}, {0, 7000}, {0, 2000}, {2000, 8000}, {8000, 10000});
    }
}

/* A, 8 bytes from 0 to 1, is alone until B, 1 byte from 0 to 2, comes at 2000. A has 7 left; both
 * have half, so B ends at 4000 and A has 6 left. C, 2 bytes from 0 to 2, which starts then, comes
 * at 5000: A has 5 left. C ends at 9000, when A has 3 left: 12000. D, 1 byte from 0 to 1 for
 * another purpose, starts at 5000, while these two are in flight, and arrives at 6000: A has 4.5
 * left and C 1.5. All have a third, D until 9000, when A has 3.5 left and C 0.5; C with half until
 * 10000, A, which has 3 left, 13000. */
static void test_started_beside_others(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    for (size_t i = 0; i < ROWS(sharings); i++) {
        scene three = open_scene("nvlink_switch", 3, 1000, sharings[i]);
        scene four = open_scene("nvlink_switch", 3, 1000, sharings[i]);
        scene *const scenes[] = {&three, &four};
        for (int k = 0; k < 2; k++) {
            scene *on = scenes[k];
            add_transfer(on, 0, 1, 8);
            const uint32_t before = add_compute(on, 0, 1000), b = add_transfer(on, 0, 2, 1);
            cs_builder_edge(on->builder, before, b);
            cs_builder_edge(on->builder, b, add_transfer(on, 0, 2, 2));
        }
        const cs_class weights = {.kind = CS_TRANSFER,
                                  .origin = CS_TRANSFER,
                                  .purpose = CS_PURPOSE_WEIGHTS,
                                  .peer = 1,
                                  .weights = CS_NONE,
                                  .bytes = 1};
        const uint32_t late = add_compute(&four, 1, 5000);
        cs_builder_edge(four.builder, late,
                        cs_builder_task(four.builder, cs_builder_class(four.builder, &weights), 0));
        RUN_AND_EXPECT(&three, {0, 12000}, {0, 1000}, {1000, 4000}, {4000, 9000});
        RUN_AND_EXPECT(&four, {0, 13000}, {0, 1000}, {1000, 4000}, {4000, 10000}, {0, 5000},
                       {5000, 9000});
    }
}

/* On a ring a message over two links has two latencies. A, 4 bytes from 0 to 2, comes at 2000. B, 3
 * bytes from 0 to 1, starts at 500 and comes at 1500, before A does, and has the link alone until
 * 2000, so 2.5 left. Both have half until B ends at 7000, when A has 1.5 left: 8500. */
static void test_overtaken_on_the_way(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    for (size_t i = 0; i < ROWS(sharings); i++) {
        scene on = open_scene("ring", 4, 1000, sharings[i]);
        add_transfer(&on, 0, 2, 4);
        const uint32_t before = add_compute(&on, 0, 500);
        cs_builder_edge(on.builder, before, add_transfer(&on, 0, 1, 3));
        RUN_AND_EXPECT(&on, {0, 8500}, {0, 500}, {500, 7000});
    }
}

/* Four rounds of the same messages of a collective, each round after the previous one: A and F, 1
 * byte each, and E, 3 bytes, from 0 to 1, B, 3 bytes from 0 to 2, and D, 5 bytes from 1 to 2. Four
 * share the link of 0, so that each has a quarter, and D, along with B, three quarters. After 4000
 * A and F are over; B, E and D have 2 left, and have half each: 8000.
 *
 * While the third round is under way, at 18000, G comes, 1 byte from 2 to 1, and has the quarter
 * that A, E and F leave; from 20000 on half, shared with E, for the remaining 0.5: 21000. */
static void test_rounds(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, to;
        int64_t bytes;
    } messages[] = {{0, 1, 1}, {0, 2, 3}, {0, 1, 3}, {0, 1, 1}, {1, 2, 5}, {2, 1, 1}};
    enum { ROUND = 5, GUEST = ROUND, N_ROUNDS = 4 };
    scene on = open_scene("nvlink_switch", 3, 0, CS_SHARING_MAX_MIN);
    uint32_t classes[ROUND + 1], tasks[N_ROUNDS][ROUND];
    for (uint32_t i = 0; i <= GUEST; i++)
        classes[i] = cs_builder_class(on.builder, &(cs_class){.kind = CS_TRANSFER,
                                                              .origin = CS_ALL_REDUCE,
                                                              .device = messages[i].from,
                                                              .peer = messages[i].to,
                                                              .weights = CS_NONE,
                                                              .bytes = messages[i].bytes});
    for (uint32_t r = 0; r < N_ROUNDS; r++)
        for (uint32_t i = 0; i < ROUND; i++) {
            tasks[r][i] = cs_builder_task(on.builder, classes[i], 0);
            for (uint32_t before = 0; r > 0 && before < ROUND; before++)
                cs_builder_edge(on.builder, tasks[r - 1][before], tasks[r][i]);
        }
    const uint32_t late = add_compute(&on, 2, 18000);
    cs_builder_edge(on.builder, late, cs_builder_task(on.builder, classes[GUEST], 0));
    RUN_AND_EXPECT(&on, {0, 4000}, {0, 8000}, {0, 8000}, {0, 4000}, {0, 8000}, {8000, 12000},
                   {8000, 16000}, {8000, 16000}, {8000, 12000}, {8000, 16000}, {16000, 20000},
                   {16000, 24000}, {16000, 24000}, {16000, 20000}, {16000, 24000}, {24000, 28000},
                   {24000, 32000}, {24000, 32000}, {24000, 28000}, {24000, 32000}, {0, 18000},
                   {18000, 21000});
}

/* Two messages of a byte share the link of 0 until 2000, then two of two bytes until 6000. */
static void test_rounds_that_differ(void **state)
{
    (void)state;
    scene on = open_scene("nvlink_switch", 3, 0, CS_SHARING_MAX_MIN);
    uint32_t tasks[2][2];
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t i = 0; i < 2; i++) {
            const cs_class cls = {.kind = CS_TRANSFER,
                                  .origin = CS_ALL_REDUCE,
                                  .peer = 1 + i,
                                  .weights = CS_NONE,
                                  .bytes = 1 + r};
            tasks[r][i] = cs_builder_task(on.builder, cs_builder_class(on.builder, &cls), 0);
            for (uint32_t before = 0; r > 0 && before < 2; before++)
                cs_builder_edge(on.builder, tasks[0][before], tasks[1][i]);
        }
    RUN_AND_EXPECT(&on, {0, 2000}, {0, 2000}, {2000, 6000}, {2000, 6000});
}

/* Messages of different direction, purpose or collective are separate streams. Four messages on the
 * link 0 -> 1 that do not wait have a quarter each, the fifth goes back alone. */
static void test_streams(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_MAX_MIN);
    const cs_class stages = {
        .kind = CS_TRANSFER, .origin = CS_TRANSFER, .peer = 1, .weights = CS_NONE, .bytes = 2};
    cs_class weights = stages, sum = stages, back = stages;
    weights.purpose = CS_PURPOSE_WEIGHTS;
    sum.origin = CS_ALL_REDUCE;
    back.device = 1;
    back.peer = 0;
    const cs_class classes[] = {stages, weights, sum, sum, back};
    for (size_t i = 0; i < ROWS(classes); i++)
        cs_builder_task(on.builder, cs_builder_class(on.builder, &classes[i]), 0);
    RUN_AND_EXPECT(&on, {0, 8000}, {0, 8000}, {0, 8000}, {0, 8000}, {0, 2000});
}

/* ---- computations during communication ---- */

static double slowdown_factors[CS_N_KINDS * CS_N_KINDS];

/* Factors of forwards during messages and during sums of gradients. */
static void slow_down(scene *on, double messages, double sums)
{
    for (size_t i = 0; i < ROWS(slowdown_factors); i++)
        slowdown_factors[i] = 1;
    slowdown_factors[CS_FORWARD * CS_N_KINDS + CS_TRANSFER] = messages;
    slowdown_factors[CS_FORWARD * CS_N_KINDS + CS_ALL_REDUCE] = sums;
    on->options.slowdown = slowdown_factors;
}

static void run_and_expect_slowed(scene *on, const cs_span *spans, const cs_time *slowed)
{
    run_scene(on);
    for (int i = 0; i < N_ENGINES; i++) {
        for (uint32_t task = 0; task < on->graph.n_tasks; task++) {
            expect_int(engines[i].name, spans[task].start, on->traces[i].spans[task].start);
            expect_int(engines[i].name, spans[task].end, on->traces[i].spans[task].end);
        }
        for (uint32_t d = 0; d < on->graph.n_devices; d++)
            expect_int(engines[i].name, slowed[d], on->traces[i].devices[d].slowed);
    }
    close_scene(on);
}

/* A sum of gradients over devices 0 and 1, as one delay of c, during a computation of d on device 0
 * that takes f times as long meanwhile. With d f <= c it ends at d f. Otherwise c / f of it are
 * done at c and the rest, d - c / f, follows at full speed: it ends at d + c (1 - 1 / f). */
static void test_slowed_by_collective(void **state)
{
    (void)state;
    static const struct {
        cs_time d, c, end;
        double f;
    } rows[] = {{6000, 3000, 7000, 1.5}, /* 6000 + 3000 / 3 */
                {2000, 3000, 3000, 1.5}, /* just as long as the sum */
                {1000, 3000, 1500, 1.5}, /* within it */
                {5000, 1000, 5500, 2},   /* 5000 + 1000 / 2 */
                {5000, 1000, 5000, 1}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        scene on = open_scene("ring", 3, 0, CS_SHARING_NONE);
        const uint32_t group = cs_builder_group(on.builder, (const uint32_t[]){0, 1}, 2);
        const cs_class sum = {.kind = CS_TRANSFER,
                              .origin = CS_ALL_REDUCE,
                              .purpose = CS_PURPOSE_GRADIENTS,
                              .device = 0,
                              .peer = 0,
                              .weights = CS_NONE,
                              .ranks = group + 1,
                              .duration = rows[i].c};
        slow_down(&on, 1, rows[i].f);
        add_compute(&on, 1, rows[i].d);
        add_compute(&on, 2, rows[i].d); /* no rank */
        cs_builder_task(on.builder, cs_builder_class(on.builder, &sum), 0);
        run_and_expect_slowed(&on,
                              (const cs_span[]){{0, rows[i].end}, {0, rows[i].d}, {0, rows[i].c}},
                              (const cs_time[]){0, rows[i].end - rows[i].d, 0});
    }
}

/* 10000 ps of work on device 1: during a first message (0 to 2000), 1000 are done; then 500 at full
 * speed, up to 2500, when a second message and a sum of gradients start. The sum counts, being
 * slower: until 6500, 1000 are done. Then only the message, until 10500: 2000. The other 5500 end
 * at 16000. So it took 16000 instead of 10000. Device 0 sends all of them and computes nothing. */
static void test_slowed_by_several(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
    const cs_class sum = {.kind = CS_TRANSFER,
                          .origin = CS_ALL_REDUCE,
                          .peer = 1,
                          .weights = CS_NONE,
                          .bytes = 4,
                          .release = 2500};
    const cs_class message = {.kind = CS_TRANSFER,
                              .origin = CS_TRANSFER,
                              .peer = 1,
                              .weights = CS_NONE,
                              .bytes = 8,
                              .release = 2500};
    slow_down(&on, 2, 4);
    add_compute(&on, 1, 10000);
    add_transfer(&on, 0, 1, 2);
    cs_builder_task(on.builder, cs_builder_class(on.builder, &sum), 0);
    cs_builder_task(on.builder, cs_builder_class(on.builder, &message), 0);
    run_and_expect_slowed(&on,
                          (const cs_span[]){{0, 16000}, {0, 2000}, {2500, 6500}, {2500, 10500}},
                          (const cs_time[]){0, 6000});
}

/* No slowdown by a message within the device, a message without bytes, and factors of other kinds.
 * The next computation of the device starts later by the delay of the previous one. */
static void test_not_slowed(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 5000, CS_SHARING_MAX_MIN);
    slow_down(&on, 2, 1);
    add_compute(&on, 0, 1000);
    cs_builder_task(on.builder, cs_builder_compute(on.builder, CS_BACKWARD, 0, 0, CS_NONE, 1000),
                    0);
    add_compute(&on, 0, 1000);
    const uint32_t late = add_compute(&on, 1, 1500);
    add_transfer(&on, 0, 0, 100);
    add_transfer(&on, 0, 1, 0);
    cs_builder_edge(on.builder, late, add_transfer(&on, 1, 0, 5)); /* 1500 to 11500 */
    run_and_expect_slowed(
        &on,
        (const cs_span[]){
            {0, 1000}, {1000, 2000}, {2000, 4000}, {0, 1500}, {0, 0}, {0, 5000}, {1500, 11500}},
        (const cs_time[]){1000, 0});
}

/* All links of a crossbar are infinite except three: the first from device 0 (1e9), the second to
 * device 2 (4e9), the third from device 3 (3e9).
 *     A: 0 -> 1 over the first
 *     B: 0 -> 2 over the first and the second
 *     C: 3 -> 2 over the third and the second
 */
static scene open_three_links(cs_sharing sharing)
{
    scene on = open_scene("nvlink_switch", 4, 0, sharing);
    for (uint32_t link = 0; link < on.platform.n_links; link++)
        on.platform.links[link].bandwidth = INFINITY;
    on.platform.links[2 * 0].bandwidth = 1e9;
    on.platform.links[2 * 2 + 1].bandwidth = 4e9;
    on.platform.links[2 * 3].bandwidth = 3e9;
    return on;
}

/* All grow to 0.5e9, where the first link is full: A and B stay. C goes on, not to the 3.5e9 that B
 * leaves on the second, but to the 3e9 of the third: its 6 bytes take 2000. Its end changes
 * nothing for A and B. A's 4 bytes take 8000; B has 6 - 4 = 2 left and is alone: 2000 more. */
static void test_max_min(void **state)
{
    (void)state;
    scene on = open_three_links(CS_SHARING_MAX_MIN);
    add_transfer(&on, 0, 1, 4);
    add_transfer(&on, 0, 2, 6);
    add_transfer(&on, 3, 2, 6);
    RUN_AND_EXPECT(&on, {0, 8000}, {0, 10000}, {0, 2000});
}

/* The same by count: A and B have 1e9 / 2; C has the smaller of 4e9 / 2 and 3e9 / 1: 6 bytes at 2e9
 * take 3000. B leaves unused what it cannot take of the second link. */
static void test_count_on_three_links(void **state)
{
    (void)state;
    scene on = open_three_links(CS_SHARING_COUNT);
    add_transfer(&on, 0, 1, 4);
    add_transfer(&on, 0, 2, 6);
    add_transfer(&on, 3, 2, 6);
    RUN_AND_EXPECT(&on, {0, 8000}, {0, 10000}, {0, 3000});
}

/* Ready at 0, so it goes before the compute of both. */
static void test_blocking_goes_first(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
    add_compute(&on, 0, 1000);
    add_compute(&on, 1, 3000);
    add_blocking(&on, 0, 1, 2);
    RUN_AND_EXPECT(&on, {2000, 3000}, {2000, 5000}, {0, 2000});
}

/* Ready at 1000, but device 1 computes until 3000. Meanwhile device 0 starts nothing, although its
 * next task is ready. The span begins when the transfer does. */
static void test_blocking_waits_for_the_other_end(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
    const uint32_t before = add_compute(&on, 0, 1000);
    add_compute(&on, 1, 3000);
    cs_builder_edge(on.builder, before, add_blocking(&on, 0, 1, 2));
    add_compute(&on, 0, 1000);
    RUN_AND_EXPECT(&on, {0, 1000}, {0, 3000}, {3000, 5000}, {5000, 6000});
}

/* 0 -> 1, 1 -> 2 and 3 -> 2, all ready at 0. The first starts. The second waits for device 1, and
 * as it is the lowest at device 2, the third waits for it there: 0 .. 1000, 1000 .. 2000, 2000 ..
 * 3000, and device 3 computes nothing before that. */
static void test_blocking_in_order_of_id(void **state)
{
    (void)state;
    scene on = open_scene("nvlink_switch", 4, 0, CS_SHARING_NONE);
    add_blocking(&on, 0, 1, 1);
    add_blocking(&on, 1, 2, 1);
    add_blocking(&on, 3, 2, 1);
    add_compute(&on, 3, 500);
    RUN_AND_EXPECT(&on, {0, 1000}, {1000, 2000}, {2000, 3000}, {3000, 3500});
}

/* ---- Memory ---- */

static uint32_t add_holding(scene *on, uint32_t device, cs_time duration, int64_t bytes)
{
    const uint32_t cls = cs_builder_compute(on->builder, CS_FORWARD, 0, device, CS_NONE, duration);
    cs_builder_effect(on->builder, CS_MEMORY_ACTIVATIONS, device, bytes, false);
    cs_builder_effect(on->builder, CS_MEMORY_ACTIVATIONS, device, -bytes, true);
    return cs_builder_task(on->builder, cls, 0);
}

static void expect_sample(const scene *on, uint32_t i, cs_time time, uint32_t device,
                          int64_t activations)
{
    for (int e = 0; e < N_ENGINES; e++) {
        cs_memory_sample got;
        cs_samples_rewind(on->traces[e].samples);
        for (uint32_t before = 0; before <= i; before++)
            assert_true(cs_samples_next(on->traces[e].samples, &got));
        if (got.time != time || got.device != device || got.bytes != activations ||
            got.category != CS_MEMORY_ACTIVATIONS)
            fail_msg("%s: sample %" PRIu32 ": at %" PRId64 " device %" PRIu32 " has %" PRId64
                     ", not at %" PRId64 " device %" PRIu32 " %" PRId64,
                     engines[e].name, i, got.time, got.device, got.bytes, time, device,
                     activations);
    }
}

/* At 1000 the first frees 10 and the second allocates 10: never 20, and no sample as nothing is
 * different when that instant is over. The third wants 4 less. */
static void test_free_before_allocation(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    add_holding(&on, 0, 1000, 10);
    add_holding(&on, 0, 1000, 10);
    add_holding(&on, 0, 1000, 6);
    run_scene(&on);
    for (int i = 0; i < N_ENGINES; i++) {
        assert_int_equal(on.traces[i].devices[0].peak, 10);
        assert_int_equal(on.traces[i].devices[0].peak_time, 0);
        assert_int_equal(cs_samples_count(on.traces[i].samples), 3);
    }
    expect_sample(&on, 0, 0, 0, 10);
    expect_sample(&on, 1, 2000, 0, 6);
    expect_sample(&on, 2, 3000, 0, 0);
    close_scene(&on);
}

/* Device 0 frees at 1000 what stands on device 1, where another starts at 1000: all ends come
 * before all starts, whatever the device. */
static void test_free_by_another_device(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    const uint32_t cls = cs_builder_compute(on.builder, CS_FORWARD, 0, 1, CS_NONE, 1000);
    cs_builder_effect(on.builder, CS_MEMORY_ACTIVATIONS, 0, 10, false);
    cs_builder_effect(on.builder, CS_MEMORY_ACTIVATIONS, 0, -10, true);
    const uint32_t holder = cs_builder_task(on.builder, cls, 0);
    const uint32_t next = add_holding(&on, 0, 500, 8);
    cs_builder_edge(on.builder, holder, next);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 1000}, {1000, 1500});
    for (int i = 0; i < N_ENGINES; i++) {
        assert_int_equal(on.traces[i].devices[0].peak, 10);
        assert_int_equal(on.traces[i].devices[1].peak, 0);
    }
    close_scene(&on);
}

/* Both devices are idle from 1000 on, device 1 through task 0 and device 0 through task 1. Device 0
 * is the first to start all the same: it takes 6 of the 10 bytes that are resident on device 1, and
 * then device 1 adds 3. The peak stays 10; the other way around it were 13. */
static void test_devices_start_in_order_of_number(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    cs_builder_resident(on.builder, 1, CS_MEMORY_ACTIVATIONS, 10);
    add_compute(&on, 1, 1000);
    add_compute(&on, 0, 1000);
    add_holding(&on, 1, 1000, 3);
    const uint32_t cls = cs_builder_compute(on.builder, CS_FORWARD, 0, 0, CS_NONE, 2000);
    cs_builder_effect(on.builder, CS_MEMORY_ACTIVATIONS, 1, -6, false);
    cs_builder_effect(on.builder, CS_MEMORY_ACTIVATIONS, 1, 6, true);
    (void)cs_builder_task(on.builder, cls, 0);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 1000}, {0, 1000}, {1000, 2000}, {1000, 3000});
    for (int i = 0; i < N_ENGINES; i++) {
        assert_int_equal(on.traces[i].devices[1].peak, 10);
        assert_int_equal(on.traces[i].devices[1].peak_time, 0);
    }
    close_scene(&on);
}

/* Allocates `bytes` of activations at its start that the last task of the scene must free. */
static uint32_t add_keeping(scene *on, cs_time duration, int64_t bytes)
{
    const uint32_t cls = cs_builder_compute(on->builder, CS_FORWARD, 0, 0, CS_NONE, duration);
    cs_builder_effect(on->builder, CS_MEMORY_ACTIVATIONS, 0, bytes, false);
    return cs_builder_task(on->builder, cls, 0);
}

/* 5 of 25 bytes are resident. 0: +10 makes 15. 1: +12 at 1000 makes 27: too many. 2: +20 at 2000
 * makes 47, the peak. 3 frees all at its end, 4000. Meanwhile 4 runs on device 1 from 0 to 5000.
 */
static scene open_too_much(void)
{
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    on.platform.devices[0].capacity = 25;
    cs_builder_resident(on.builder, 0, CS_MEMORY_WEIGHTS, 5);
    add_keeping(&on, 1000, 10);
    add_keeping(&on, 1000, 12);
    add_keeping(&on, 1000, 20);
    const uint32_t cls = cs_builder_compute(on.builder, CS_BACKWARD, 0, 0, CS_NONE, 1000);
    cs_builder_effect(on.builder, CS_MEMORY_ACTIVATIONS, 0, -42, true);
    (void)cs_builder_task(on.builder, cls, 0);
    add_compute(&on, 1, 5000);
    return on;
}

static void expect_too_much(const cs_trace *trace)
{
    const cs_device_record *device = &trace->devices[0];
    assert_true(device->out_of_memory);
    assert_int_equal(device->capacity, 25);
    assert_int_equal(device->oom_time, 1000);
    assert_int_equal(device->oom_task, 1);
    assert_int_equal(device->at_oom[CS_MEMORY_WEIGHTS], 5);
    assert_int_equal(device->at_oom[CS_MEMORY_ACTIVATIONS], 22);
    assert_false(trace->devices[1].out_of_memory);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    scene on = open_too_much();
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 1000}, {1000, 2000}, {2000, 3000}, {3000, 4000}, {0, 5000});
    for (int i = 0; i < N_ENGINES; i++) {
        const cs_device_record *device = &on.traces[i].devices[0];
        expect_too_much(&on.traces[i]);
        assert_false(on.traces[i].stopped);
        assert_int_equal(device->peak, 47);
        assert_int_equal(device->peak_time, 2000);
        assert_int_equal(device->at_peak[CS_MEMORY_WEIGHTS], 5);
        assert_int_equal(device->at_peak[CS_MEMORY_ACTIVATIONS], 42);
        assert_int_equal(device->category_peak[CS_MEMORY_GRADIENTS], 0);
        assert_int_equal(device->category_peak[CS_MEMORY_ACTIVATIONS], 42);
    }
    close_scene(&on);
}

/* The same, ended at 1000: 1 and 4 are cut off there, 2 and 3 never start. */
static void test_stop_when_out_of_memory(void **state)
{
    (void)state;
    scene on = open_too_much();
    on.options.stop_on_oom = true;
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 1000}, {1000, 1000}, {-1, -1}, {-1, -1}, {0, 1000});
    for (int i = 0; i < N_ENGINES; i++) {
        expect_too_much(&on.traces[i]);
        assert_true(on.traces[i].stopped);
        assert_int_equal(on.traces[i].devices[0].peak, 27);
    }
    close_scene(&on);
}

/* 30 bytes of weights do not fit into 25 to begin with: time 0, and no task to blame. */
static void test_residents_out_of_memory(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    on.platform.devices[0].capacity = 25;
    cs_builder_resident(on.builder, 0, CS_MEMORY_WEIGHTS, 20);
    cs_builder_resident(on.builder, 0, CS_MEMORY_WEIGHTS, 10);
    add_compute(&on, 0, 1000);
    run_scene(&on);
    for (int i = 0; i < N_ENGINES; i++) {
        const cs_device_record *device = &on.traces[i].devices[0];
        assert_true(device->out_of_memory);
        assert_int_equal(device->oom_time, 0);
        assert_int_equal(device->oom_task, CS_NONE);
        assert_int_equal(device->at_oom[CS_MEMORY_WEIGHTS], 30);
    }
    close_scene(&on);
}

/* ---- Versions ---- */

static uint32_t add_on_slot(scene *on, cs_kind kind, uint32_t device, uint32_t slot,
                            cs_time duration)
{
    return cs_builder_task(on->builder,
                           cs_builder_compute(on->builder, kind, 0, device, slot, duration), 0);
}

/* The slot is updated by device 1 from 0 to 1000. Device 0 reads it at 0 (version 0), at 1000, when
 * the update is just over (1), and device 1's second update makes 2. A task without a slot has
 * none. */
static void test_versions(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    const uint32_t slot = cs_builder_slot(on.builder, 0, 0, 100);
    add_on_slot(&on, CS_FORWARD, 0, slot, 1000);
    add_on_slot(&on, CS_BACKWARD, 0, slot, 1000);
    add_on_slot(&on, CS_UPDATE, 1, slot, 1000);
    add_on_slot(&on, CS_UPDATE, 1, slot, 1000);
    add_compute(&on, 0, 1000);
    run_scene(&on);
    static const uint32_t versions[] = {0, 1, 1, 2, CS_NONE};
    for (int i = 0; i < N_ENGINES; i++)
        for (uint32_t task = 0; task < 5; task++)
            assert_int_equal(on.traces[i].versions[task], versions[task]);
    close_scene(&on);
}

/* Two updates of one slot overlap. The one that ends first makes version 1, the other 2, whichever
 * started first: a version counts the updates that ended. */
static void test_overlapping_updates(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    const uint32_t slot = cs_builder_slot(on.builder, 0, 0, 100);
    add_on_slot(&on, CS_UPDATE, 0, slot, 3000);
    add_compute(&on, 1, 1000);
    add_on_slot(&on, CS_UPDATE, 1, slot, 1000);
    run_scene(&on);
    for (int i = 0; i < N_ENGINES; i++) {
        assert_int_equal(on.traces[i].versions[0], 2);
        assert_int_equal(on.traces[i].versions[2], 1);
    }
    close_scene(&on);
}

/* An update that the end of the run cuts off has made nothing. */
static void test_update_that_was_cut_off(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 2, 0, CS_SHARING_NONE);
    on.platform.devices[0].capacity = 5;
    on.options.stop_on_oom = true;
    const uint32_t slot = cs_builder_slot(on.builder, 0, 1, 100);
    add_on_slot(&on, CS_UPDATE, 1, slot, 3000);
    add_compute(&on, 0, 1000);
    add_holding(&on, 0, 1000, 10);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 1000}, {0, 1000}, {1000, 1000});
    for (int i = 0; i < N_ENGINES; i++)
        assert_int_equal(on.traces[i].versions[0], CS_NONE);
    close_scene(&on);
}

/* A message of weights records the version that it carries: 0 is updated to 1 before. */
static void test_version_of_a_transfer(void **state)
{
    (void)state;
    scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
    const uint32_t slot = cs_builder_slot(on.builder, 0, 0, 100);
    const uint32_t update = add_on_slot(&on, CS_UPDATE, 0, slot, 1000);
    const cs_class cls = {
        .kind = CS_TRANSFER, .origin = CS_TRANSFER, .peer = 1, .weights = slot, .bytes = 100};
    const uint32_t message = cs_builder_task(on.builder, cs_builder_class(on.builder, &cls), 0);
    cs_builder_edge(on.builder, update, message);
    run_scene(&on);
    EXPECT_SPANS(&on, {0, 1000}, {1000, 101000});
    for (int i = 0; i < N_ENGINES; i++)
        assert_int_equal(on.traces[i].versions[message], 1);
    close_scene(&on);
}

static void test_nothing_recorded(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    on.options = (cs_engine_options){0};
    add_holding(&on, 0, 1000, 10);
    run_scene(&on);
    for (int i = 0; i < N_ENGINES; i++) {
        assert_null(on.traces[i].versions);
        assert_null(on.traces[i].samples);
        assert_int_equal(on.traces[i].devices[0].peak, 10); /* always */
    }
    close_scene(&on);
}

/* ---- Errors ---- */

/* The first ends at the last picosecond there is; the second would end one later. */
static void test_time_overflow(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    add_compute(&on, 0, CS_TIME_MAX);
    add_compute(&on, 0, 1);
    finish_graph(&on);
    expect_status(&on, CS_OVERFLOW);
    close_scene(&on);
}

static void test_last_picosecond(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    add_compute(&on, 0, CS_TIME_MAX);
    RUN_AND_EXPECT(&on, {0, CS_TIME_MAX});
}

/* 2^62 bytes at 1e5 bytes/s: 4.6e13 s, where 2^63 ps are 9.2e6 s. */
static void test_transfer_overflow(void **state)
{
    (void)state;
    for (cs_sharing sharing = CS_SHARING_NONE; sharing <= CS_SHARING_MAX_MIN; sharing++) {
        scene on = open_scene("ring", 2, 0, sharing);
        on.platform.links[0].bandwidth = 1e5;
        add_transfer(&on, 0, 1, INT64_C(1) << 62);
        finish_graph(&on);
        expect_status(&on, CS_OVERFLOW);
        close_scene(&on);
    }
}

/* The reference engine adds up without looking: the fast one alone. */
static void expect_bytes_overflow(scene *on, const char *message)
{
    cs_error error;
    cs_error_init(&error);
    cs_trace trace = {.n_tasks = 77};
    finish_graph(on);
    const cs_status status = cs_engine_run(&on->graph, &on->platform, &on->options, &trace, &error);
    expect_error(message, CS_OVERFLOW, message, status, &error);
    assert_int_equal(trace.n_tasks, 77);
    close_scene(on);
}

/* Two transfers of 2^62 bytes are 2^63 on the link, one by one or as one class. */
static void test_link_overflow(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        scene on = open_scene("ring", 2, 0, CS_SHARING_NONE);
        on.platform.links[0].bandwidth = INFINITY;
        const int64_t bytes = INT64_C(1) << 62;
        const uint32_t cls = cs_builder_transfer(on.builder, 0, 0, 1, bytes, false);
        cs_builder_task(on.builder, cls, 0);
        if (together)
            cs_builder_task(on.builder, cls, 0);
        else
            add_transfer(&on, 0, 1, bytes);
        expect_bytes_overflow(&on, "a link carries 2^63 bytes or more");
    }
}

/* Two old versions of 2^62 bytes, and the current one. */
static void test_versions_overflow(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    const uint32_t slot = cs_builder_slot(on.builder, 0, 0, INT64_C(1) << 62);
    cs_builder_retain(on.builder, slot, 3, slot);
    for (int i = 0; i < 2; i++)
        add_on_slot(&on, CS_UPDATE, 0, slot, 1000);
    expect_bytes_overflow(&on, "device 0: more than 2^63 bytes");
}

/* Device 0 is to run the forward first, which waits for the backward, which comes second. The
 * checker shows the circle; engines that are given the graph nevertheless find that nothing can
 * start. */
static void test_program_order_against_edges(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    const uint32_t forward = add_on_slot(&on, CS_FORWARD, 0, CS_NONE, 1000);
    const uint32_t backward = add_on_slot(&on, CS_BACKWARD, 0, CS_NONE, 1000);
    cs_builder_edge(on.builder, backward, forward);
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_builder_finish(on.builder, &on.graph, &error), CS_OK);
    assert_int_equal(cs_graph_check(&on.graph, &error), CS_INVALID);
    assert_non_null(strstr(error.text, "F0.0"));
    assert_non_null(strstr(error.text, "B0.0"));
    assert_non_null(strstr(error.text, " -> "));
    expect_status(&on, CS_FAILED);
    close_scene(&on);
}

/* The same edge is allowed if the device may choose. */
static void test_priority_order_follows_edges(void **state)
{
    (void)state;
    scene on = open_scene("ideal", 1, 0, CS_SHARING_NONE);
    cs_builder_queue(on.builder, 0, CS_QUEUE_PRIORITY);
    const uint32_t forward = add_on_slot(&on, CS_FORWARD, 0, CS_NONE, 1000);
    const uint32_t backward = add_on_slot(&on, CS_BACKWARD, 0, CS_NONE, 1000);
    cs_builder_edge(on.builder, backward, forward);
    RUN_AND_EXPECT(&on, {1000, 2000}, {0, 1000});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_speeds),
        cmocka_unit_test(test_program_order),
        cmocka_unit_test(test_release_times),
        cmocka_unit_test(test_priority_queue),
        cmocka_unit_test(test_chain_without_duration),
        cmocka_unit_test(test_messages_of_no_time_start_together),
        cmocka_unit_test(test_devices_start_together),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_route_of_two_links),
        cmocka_unit_test(test_none_ignores_others),
        cmocka_unit_test(test_infinite_links),
        cmocka_unit_test(test_fifo),
        cmocka_unit_test(test_fifo_holds_all_links),
        cmocka_unit_test(test_fifo_without_time),
        cmocka_unit_test(test_phi),
        cmocka_unit_test(test_count_with_a_joiner),
        cmocka_unit_test(test_max_min_with_a_joiner),
        cmocka_unit_test(test_messages_in_order),
        cmocka_unit_test(test_pairs_share),
        cmocka_unit_test(test_alone_until_another),
        cmocka_unit_test(test_two_that_were_alone),
        cmocka_unit_test(test_started_beside_others),
        cmocka_unit_test(test_overtaken_on_the_way),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_rounds_that_differ),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_slowed_by_collective),
        cmocka_unit_test(test_slowed_by_several),
        cmocka_unit_test(test_not_slowed),
        cmocka_unit_test(test_max_min),
        cmocka_unit_test(test_count_on_three_links),
        cmocka_unit_test(test_blocking_goes_first),
        cmocka_unit_test(test_blocking_waits_for_the_other_end),
        cmocka_unit_test(test_blocking_in_order_of_id),
        cmocka_unit_test(test_free_before_allocation),
        cmocka_unit_test(test_free_by_another_device),
        cmocka_unit_test(test_devices_start_in_order_of_number),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_stop_when_out_of_memory),
        cmocka_unit_test(test_residents_out_of_memory),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_overlapping_updates),
        cmocka_unit_test(test_update_that_was_cut_off),
        cmocka_unit_test(test_version_of_a_transfer),
        cmocka_unit_test(test_nothing_recorded),
        cmocka_unit_test(test_time_overflow),
        cmocka_unit_test(test_last_picosecond),
        cmocka_unit_test(test_transfer_overflow),
        cmocka_unit_test(test_link_overflow),
        cmocka_unit_test(test_versions_overflow),
        cmocka_unit_test(test_program_order_against_edges),
        cmocka_unit_test(test_priority_order_follows_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
