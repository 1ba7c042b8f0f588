/* Exchanges in whole graphs: effects on memory, purposes, folded graphs and families of groups, run
 * by the engine and by the reference engine. */
#include "sim/graph/builder.h"
#include "sim/lower/lower.h"
#include "tests/expect.h"
#include "tests/reference-engine.h"
#include "topologies/topology.h"

enum { MOST_RANKS = 4 };

/* 10 GB/s, so 100 ps per byte, and 1 us from device to device. */
#define SWITCH "{\"topology\":\"nvlink_switch\",\"bandwidth\":\"10 GB/s\",\"latency\":\"1 us\"}"

static const cs_time us = 1000000; /* ps */

static void check(const char *name, cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s: %s", name, cs_status_name(status), error->text);
}

static cs_platform make_platform(const char *text, uint32_t n_devices)
{
    cs_platform platform;
    cs_error error;
    cs_error_init(&error);
    check(text, cs_topology_preset("test", text, n_devices, &platform, &error), &error);
    platform.sharing = CS_SHARING_MAX_MIN;
    return platform;
}

/* A graph, lowered and run. */
typedef struct outcome {
    cs_graph graph;
    cs_trace trace;
    cs_lower_report report;
} outcome;

static void finish(outcome *of)
{
    cs_graph_finish(&of->graph);
    cs_trace_finish(&of->trace);
}

/* By both engines, which must agree. */
static void run_both(const char *name, const outcome *of, const cs_platform *platform,
                     cs_trace *trace)
{
    const cs_engine_options options = {.record_memory = true};
    cs_error error;
    cs_trace slow;
    cs_error_init(&error);
    check(name, cs_engine_run(&of->graph, platform, &options, trace, &error), &error);
    check(name, reference_run(&of->graph, platform, &options, &slow, &error), &error);
    expect_bits(name, cs_trace_hash(&slow), cs_trace_hash(trace));
    cs_trace_finish(&slow);
}

static outcome run(const char *name, cs_builder *builder, const cs_platform *platform,
                   const cs_lower_options *options)
{
    outcome of = {0};
    cs_error error;
    cs_graph graph = {0};
    cs_error_init(&error);
    check(name, cs_builder_finish(builder, &graph, &error), &error);
    cs_builder_destroy(builder);
    check(name, cs_graph_check(&graph, &error), &error);
    check(name, cs_lower_with(&graph, platform, options, &of.graph, &of.report, &error), &error);
    check(name, cs_graph_check(&of.graph, &error), &error);
    run_both(name, &of, platform, &of.trace);
    return of;
}

/* ---- effects ---- */

typedef struct effect_row {
    const char *name;
    cs_kind kind;
    int64_t bytes;
    uint32_t fidelity;
    cs_time entered[3], left[3]; /* us */
} effect_row;

/* Three ranks compute for 10, 20 and 30 us before they enter, and for 5 us afterwards.
 *
 * An all-gather of 30,000 bytes has messages of 1 us + 10,000 * 100 ps = 2 us. In the first round rank r
 * sends from 10 (r + 1) on; in the second when it has sent and received in the first. Rank 0 has
 * received at 32, from rank 2, and sends until 34; rank 1 has at 22 and sends until 24; rank 2
 * sends from 32 to 34. All have received when the message of rank 0 or 2 is there, at 34. The delay is
 * 2 rounds of 2 us from 30 on, until 34.
 *
 * A broadcast of 30,000 bytes in a chain: 4 us a message. Rank 0 sends from 10 to 14 and is through; rank
 * 1 sends from 20 to 24; rank 2 enters at 30, when all is there already, and leaves at once. The delay:
 * 2 * 4 us from 30 on.
 *
 * A halo of 10,000 bytes: rank 0 sends from 10 to 12. Rank 1 sends two messages at 20, each at half of
 * its bandwidth: 1 us + 2 us. Rank 2 sends from 30 to 32. Rank 0 leaves with the message of rank 1,
 * at 23; rank 1 with that of rank 2, at 32; and rank 2 then too. The delay is rank 1's 3 us.
 *
 * A shift of 10,000 bytes: rank r sends from 10 (r + 1) on, for 2 us, and leaves when that and the
 * message of the rank before it have arrived: 12 and 32; 22 and 12; 32 and 22. The delay is 2 us. */
static const effect_row effect_rows[] = {
    {"all_gather, flows", CS_ALL_GATHER, 30000, CS_FIDELITY_FLOW, {10, 20, 30}, {34, 34, 34}},
    {"all_gather, delay", CS_ALL_GATHER, 30000, CS_FIDELITY_ANALYTIC, {10, 20, 30}, {34, 34, 34}},
    {"broadcast, flows", CS_BROADCAST, 30000, CS_FIDELITY_FLOW, {10, 20, 30}, {14, 24, 30}},
    {"broadcast, delay", CS_BROADCAST, 30000, CS_FIDELITY_ANALYTIC, {10, 20, 30}, {38, 38, 38}},
    {"halo, flows", CS_HALO, 10000, CS_FIDELITY_FLOW, {10, 20, 30}, {23, 32, 32}},
    {"halo, delay", CS_HALO, 10000, CS_FIDELITY_ANALYTIC, {10, 20, 30}, {33, 33, 33}},
    {"shift, flows", CS_SHIFT, 10000, CS_FIDELITY_FLOW, {10, 20, 30}, {32, 22, 32}},
    {"shift, delay", CS_SHIFT, 10000, CS_FIDELITY_ANALYTIC, {10, 20, 30}, {32, 32, 32}},
};

/* Each rank holds a buffer of 7 bytes while it is in the collective, which takes 3 bytes of
 * activations at its start and leaves 5 of gradients, until the computation afterwards frees them.
 * With effects at the start, at the end, or both; the effects of one moment are applied together. */
static cs_builder *effect_graph(const effect_row *row, bool starts, bool ends)
{
    const cs_effect effects[] = {{7, 0, CS_MEMORY_BUFFERS, !starts},
                                 {-7, 0, CS_MEMORY_BUFFERS, ends},
                                 {-3, 0, CS_MEMORY_ACTIVATIONS, !starts},
                                 {5, 0, CS_MEMORY_GRADIENTS, ends}};
    cs_builder *builder = cs_builder_create(3, 1, 1, 1);
    const uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1, 2}, 3);
    uint32_t before[3], after[3];
    for (uint32_t d = 0; d < 3; d++) {
        before[d] = cs_builder_compute(builder, CS_FORWARD, 0, d, CS_NONE, (d + 1) * 10 * us);
        cs_builder_effect(builder, CS_MEMORY_ACTIVATIONS, d, 3, false);
        after[d] = cs_builder_compute(builder, CS_BACKWARD, 0, d, CS_NONE, 5 * us);
        cs_builder_effect(builder, CS_MEMORY_GRADIENTS, d, -5, true);
    }
    const uint32_t exchange =
        cs_builder_exchange(builder, &(cs_exchange_class){.kind = row->kind,
                                                          .purpose = CS_PURPOSE_TENSOR,
                                                          .group = group,
                                                          .bytes = row->bytes,
                                                          .effects = effects,
                                                          .n_effects = ROWS(effects)});
    for (uint32_t d = 0; d < 3; d++)
        cs_builder_task(builder, before[d], 0);
    const uint32_t first = cs_builder_members(builder, exchange, 0);
    for (uint32_t d = 0; d < 3; d++) {
        cs_builder_edge(builder, d, first + d);
        cs_builder_edge(builder, first + d, cs_builder_task(builder, after[d], 0));
    }
    return builder;
}

/* The bytes of a category on a device when the instant `time` was over. */
static int64_t live_at(const cs_trace *trace, uint32_t device, uint32_t category, cs_time time)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < trace->n_samples; i++) {
        const cs_memory_sample *at = &trace->samples[i];
        if (at->device == device && at->category == category && at->time <= time)
            bytes = at->bytes;
    }
    return bytes;
}

/* A change of so many bytes at the time, and none at the picosecond before it. */
static void expect_change(const char *name, const cs_trace *trace, uint32_t device,
                          uint32_t category, cs_time time, int64_t before, int64_t after)
{
    expect_int(name, before, live_at(trace, device, category, time - 1));
    expect_int(name, after, live_at(trace, device, category, time));
}

static void expect_effects(const effect_row *row, const outcome *of, bool starts, bool ends)
{
    const char *name = row->name;
    for (uint32_t d = 0; d < 3; d++) {
        const cs_time from = row->entered[d] * us, to = row->left[d] * us;
        const bool buffered = starts && ends && from < to;
        expect_change(name, &of->trace, d, CS_MEMORY_ACTIVATIONS, starts ? from : to, 3, 0);
        expect_change(name, &of->trace, d, CS_MEMORY_GRADIENTS, ends ? to : from, 0, 5);
        expect_change(name, &of->trace, d, CS_MEMORY_BUFFERS, from, 0, buffered ? 7 : 0);
        expect_int(name, starts && ends ? 7 : 0,
                   of->trace.devices[d].category_peak[CS_MEMORY_BUFFERS]);
        expect_int(name, 0, live_at(&of->trace, d, CS_MEMORY_BUFFERS, to));
    }
}

/* Computations afterwards begin when their ranks have left. */
static void expect_left(const effect_row *row, const outcome *of)
{
    for (uint32_t task = 0; task < of->graph.n_tasks; task++) {
        const cs_class *cls = cs_graph_class(&of->graph, task);
        if (cls->kind == CS_BACKWARD)
            expect_int(row->name, row->left[cls->device] * us, of->trace.spans[task].start);
    }
}

static void test_effects(void **state)
{
    (void)state;
    cs_platform platform = make_platform(SWITCH, 3);
    for (size_t i = 0; i < ROWS(effect_rows); i++) {
        const effect_row *row = &effect_rows[i];
        /* all at the start, all at the end, or in this order */
        for (uint32_t which = 0; which < 3; which++) {
            const bool starts = which != 1, ends = which != 0;
            const cs_lower_options options = {
                .algorithm = 1, .chunks = 1, .fidelity = row->fidelity};
            outcome of = run(row->name, effect_graph(row, starts, ends), &platform, &options);
            expect_effects(row, &of, starts, ends);
            expect_left(row, &of);
            finish(&of);
        }
    }
    cs_platform_finish(&platform);
}

/* ---- purposes ---- */

/* Two exchanges of the same bytes between the same devices: the transfers of each have its purpose,
 * and a transfer that is of no collective is for stages. A ring of two in an all-gather: 2 messages. */
static void test_purposes(void **state)
{
    (void)state;
    static const uint32_t fidelities[] = {CS_FIDELITY_FLOW, CS_FIDELITY_ANALYTIC};
    cs_platform platform = make_platform(SWITCH, 2);
    for (size_t f = 0; f < ROWS(fidelities); f++) {
        const cs_lower_options options = {.algorithm = 1, .chunks = 1, .fidelity = fidelities[f]};
        const uint32_t times = fidelities[f] == CS_FIDELITY_FLOW ? 2 : 1;
        uint32_t n[CS_N_PURPOSES] = {0};
        cs_builder *builder = cs_builder_create(2, 1, 1, 1);
        const uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1}, 2);
        for (uint32_t purpose = CS_PURPOSE_GRADIENTS; purpose < CS_N_PURPOSES; purpose++)
            cs_builder_members(
                builder,
                cs_builder_exchange(builder, &(cs_exchange_class){.kind = CS_ALL_GATHER,
                                                                  .purpose = purpose,
                                                                  .group = group,
                                                                  .bytes = 10}),
                0);
        cs_builder_task(builder, cs_builder_transfer(builder, 0, 0, 1, 5, false), 0);
        outcome of = run("purposes", builder, &platform, &options);
        for (uint32_t task = 0; task < of.graph.n_tasks; task++)
            n[cs_graph_class(&of.graph, task)->purpose]++;
        for (uint32_t purpose = 0; purpose < CS_N_PURPOSES; purpose++)
            expect_int(cs_purpose_name(purpose), purpose == CS_PURPOSE_STAGES ? 1 : times,
                       n[purpose]);
        finish(&of);
    }
    cs_platform_finish(&platform);
}

/* ---- more effects than 16 bits count ---- */

/* 2,000 ranks with 40 effects each at their end: all 80,000 are of one delay. */
static void test_many_effects(void **state)
{
    (void)state;
    enum { RANKS = 2000, PAIRS = 40 };
    static uint32_t devices[RANKS];
    static cs_effect effects[2 * PAIRS];
    cs_platform platform = make_platform("{\"topology\":\"ideal\"}", RANKS);
    for (uint32_t d = 0; d < RANKS; d++)
        devices[d] = d;
    for (uint32_t e = 0; e < 2 * PAIRS; e++)
        effects[e] = (cs_effect){e < PAIRS ? 3 : -3, 0, CS_MEMORY_BUFFERS, e >= PAIRS};
    cs_builder *builder = cs_builder_create(RANKS, 1, 1, 1);
    const uint32_t group = cs_builder_group(builder, devices, RANKS);
    const uint32_t exchange =
        cs_builder_exchange(builder, &(cs_exchange_class){.kind = CS_ALL_GATHER,
                                                          .group = group,
                                                          .bytes = RANKS,
                                                          .effects = effects,
                                                          .n_effects = 2 * PAIRS});
    cs_builder_members(builder, exchange, 0);
    const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    cs_graph graph = {0}, lowered = {0};
    cs_lower_report report;
    cs_trace trace;
    cs_error error;
    cs_error_init(&error);
    check("many", cs_builder_finish(builder, &graph, &error), &error);
    cs_builder_destroy(builder);
    check("many", cs_lower_with(&graph, &platform, &options, &lowered, &report, &error), &error);
    check("many", cs_graph_check(&lowered, &error), &error);
    expect_int("effects of the delay", PAIRS * RANKS, cs_graph_class(&lowered, RANKS)->n_effects);
    check("many", cs_engine_run(&lowered, &platform, &(cs_engine_options){0}, &trace, &error),
          &error);
    for (uint32_t d = 0; d < RANKS; d++)
        expect_int("peak", 3 * PAIRS, trace.devices[d].category_peak[CS_MEMORY_BUFFERS]);
    cs_trace_finish(&trace);
    cs_graph_finish(&lowered);
    cs_platform_finish(&platform);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_purposes),
        cmocka_unit_test(test_many_effects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
