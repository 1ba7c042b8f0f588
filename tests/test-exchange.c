/* Exchanges in whole graphs: effects on memory, purposes, folded graphs and families of groups, run
 * by the engine and by the reference engine. */
#include "sim/core/analysis/analysis.h"
#include "sim/core/graph/builder.h"
#include "sim/core/lower/lower.h"
#include "sim/core/trace/results-reader.h"
#include "sim/core/trace/results.h"
#include "tests/expect.h"
#include "tests/reference-engine.h"
#include "topologies/topology.h"

#include <math.h>
#include <unistd.h>

enum { MOST_RANKS = 4 };

/* 10 GB/s, so 100 ps per byte, and 1 us from device to device. */
#define SWITCH "{\"topology\":\"nvlink_switch\",\"bandwidth\":\"10 GB/s\",\"latency\":\"1 us\"}"

/* Nodes of two GPUs that share a NIC of 10 GB/s, and no latency: 100 GB/s in a node. */
#define SHARED_NIC                                                                                 \
    "{\"topology\":\"cluster\",\"gpus_per_node\":2,\"node\":{\"topology\":\"nvlink_switch\","      \
    "\"bandwidth\":\"100 GB/s\"},\"nic_bandwidth\":\"100 GB/s\",\"network\":"                      \
    "{\"topology\":\"nvlink_switch\",\"bandwidth\":\"10 GB/s\"}}"

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
    check(text, cs_topology_build_text("test", text, n_devices, &platform, &error), &error);
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
 * An all-gather of 30,000 bytes has messages of 1 us + 10,000 * 100 ps = 2 us. In the first round
 * rank r sends from 10 (r + 1) on; in the second when it has sent and received in the first. Rank
 * 0 has received at 32, from rank 2, and sends until 34; rank 1 has at 22 and sends until 24; rank
 * 2 sends from 32 to 34. All have received when the message of rank 0 or 2 is there, at 34. The
 * delay is
 * 2 rounds of 2 us from 30 on, until 34.
 *
 * A broadcast of 30,000 bytes in a chain: 4 us a message. Rank 0 sends from 10 to 14 and is done;
 * rank 1 sends from 20 to 24; rank 2 enters at 30, when everything has arrived, and leaves at once.
 * The delay: 2 * 4 us from 30 on.
 *
 * A halo of 10,000 bytes: rank 0 sends from 10 to 12. Rank 1 sends two messages at 20, each at
 * half of its bandwidth: 1 us + 2 us. Rank 2 sends from 30 to 32. Rank 0 leaves with the message of
 * rank 1, at 23; rank 1 with the message of rank 2, at 32, and so does rank 2. The delay is rank
 * 1's 3 us.
 *
 * A shift of 10,000 bytes: rank r sends from 10 (r + 1) on, for 2 us, and leaves when that and the
 * message of the previous rank have arrived: 12 and 32; 22 and 12; 32 and 22. The delay is 2 us. */
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
 * With effects at the start, at the end, or both; the effects of one moment are applied
 * together. */
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
    const uint32_t exchange = cs_builder_exchange(
        builder, &(cs_exchange_class){.kind = row->kind,
                                      .purpose = CS_PURPOSE_TENSOR,
                                      .group = group,
                                      .bytes = row->bytes,
                                      .bytes_back = row->kind == CS_HALO ? row->bytes : 0,
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
    cs_memory_sample at;
    cs_samples_rewind(trace->samples);
    while (cs_samples_next(trace->samples, &at))
        if (at.device == device && at.category == category && at.time <= time)
            bytes = at.bytes;
    return bytes;
}

/* Expects a change of `bytes` at a time, and none at the previous picosecond. */
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

/* Three ranks gather 3,000, 6,000, ... 600,000 bytes, one after the other, twice, and free a byte
 * at the end of each: with n times 3,000 bytes two rounds of 1 us + n 1,000 * 100 ps. Messages of
 * the same size have one class, whatever other classes there are between them. */
static void test_several(void **state)
{
    (void)state;
    enum { SIZES = 200, TIMES = 2 };
    cs_platform platform = make_platform(SWITCH, 3);
    const cs_effect effect = {-1, 0, CS_MEMORY_BUFFERS, true};
    cs_builder *builder = cs_builder_create(3, 1, 1, 1);
    const uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1, 2}, 3);
    uint32_t before = 0;
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t compute = cs_builder_compute(builder, CS_FORWARD, 0, d, CS_NONE, 0);
        cs_builder_effect(builder, CS_MEMORY_BUFFERS, d, SIZES * TIMES, false);
        before = cs_builder_task(builder, compute, 0) - d;
    }
    for (uint32_t i = 0; i < SIZES * TIMES; i++) {
        const cs_exchange_class exchange = {.kind = CS_ALL_GATHER,
                                            .group = group,
                                            .bytes = 3000 * (i % SIZES + 1),
                                            .effects = &effect,
                                            .n_effects = 1};
        const uint32_t cls = cs_builder_exchange(builder, &exchange);
        const uint32_t first = cs_builder_members(builder, cls, 0);
        for (uint32_t d = 0; d < 3; d++)
            cs_builder_edge(builder, before + d, first + d);
        before = first;
    }
    const cs_lower_options options = {.algorithm = 1, .fidelity = CS_FIDELITY_FLOW};
    outcome of = run("several", builder, &platform, &options);
    cs_time end = 0;
    for (uint32_t i = 0; i < SIZES * TIMES; i++) {
        end += 2 * us + 2 * (i % SIZES + 1) * us / 10;
        for (uint32_t d = 0; d < 3; d++)
            expect_change("several", &of.trace, d, CS_MEMORY_BUFFERS, end, SIZES * TIMES - i,
                          SIZES * TIMES - i - 1);
    }
    finish(&of);
    cs_platform_finish(&platform);
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
 * and a transfer that is of no collective is for stages. A ring of two in an all-gather: 2
 * messages. */
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

/* ---- exposed communication ---- */

static uint32_t add_exchange(cs_builder *builder, cs_kind kind, cs_purpose purpose, uint32_t group)
{
    return cs_builder_members(
        builder,
        cs_builder_exchange(
            builder,
            &(cs_exchange_class){.kind = kind, .purpose = purpose, .group = group, .bytes = 20000}),
        0);
}

/* Two devices, in us:
 *   device 0   F 0-10                                        B 34-44                    U 48-53
 *   device 1                    F 20-30                      B 34-44                    U 48-53
 *   between    message 10-20          all_reduce 30-34               all_gather 44-46,
 *                                                                    reduce_scatter 46-48
 * The message has 90,000 bytes: 1 us + 9 us. The all-reduce of 20,000 bytes takes 2 rounds of 1 us
 * + 1 us, the others one; the all-gather, of weights, is followed by the reduce-scatter, of
 * gradients, and nothing in between. Device 0 waits from 10 to 30 for the forward of device 1;
 * device 1 until 10 for the forward of device 0, then for its message. Both are active for 10 + 4 +
 * 2 + 2 us.
 *
 * Bytes: of the all-reduce each rank sends 10,000 twice, of the others once. */
static void test_exposed(void **state)
{
    (void)state;
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    static const struct {
        cs_purpose purpose;
        cs_time exposed[2]; /* us */
        double moved;
    } purposes[] = {{CS_PURPOSE_STAGES, {0, 10}, 90000}, {CS_PURPOSE_TENSOR, {4, 4}, 40000},
                    {CS_PURPOSE_WEIGHTS, {2, 2}, 20000}, {CS_PURPOSE_GRADIENTS, {2, 2}, 20000},
                    {CS_PURPOSE_CONTEXT, {0, 0}, 0},     {CS_PURPOSE_EXPERT, {0, 0}, 0},
                    {CS_PURPOSE_SPACE, {0, 0}, 0}};
    cs_platform platform = make_platform(SWITCH, 2);
    cs_builder *builder = cs_builder_create(2, 1, 1, 1);
    const uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1}, 2);
    uint32_t task[2][3];
    for (uint32_t d = 0; d < 2; d++)
        task[d][0] = cs_builder_task(
            builder, cs_builder_compute(builder, CS_FORWARD, 0, d, CS_NONE, 10 * us), 0);
    const uint32_t message =
        cs_builder_task(builder, cs_builder_transfer(builder, 0, 0, 1, 90000, false), 0);
    cs_builder_edge(builder, task[0][0], message);
    cs_builder_edge(builder, message, task[1][0]);
    const uint32_t sum = add_exchange(builder, CS_ALL_REDUCE, CS_PURPOSE_TENSOR, group);
    const uint32_t gather = add_exchange(builder, CS_ALL_GATHER, CS_PURPOSE_WEIGHTS, group);
    const uint32_t scatter = add_exchange(builder, CS_REDUCE_SCATTER, CS_PURPOSE_GRADIENTS, group);
    for (uint32_t d = 0; d < 2; d++) {
        task[d][1] = cs_builder_task(
            builder, cs_builder_compute(builder, CS_BACKWARD, 0, d, CS_NONE, 10 * us), 0);
        task[d][2] = cs_builder_task(
            builder, cs_builder_compute(builder, CS_UPDATE, 0, d, CS_NONE, 5 * us), 0);
        cs_builder_edge(builder, task[d][0], sum + d);
        cs_builder_edge(builder, sum + d, task[d][1]);
        cs_builder_edge(builder, task[d][1], gather + d);
        cs_builder_edge(builder, gather + d, scatter + d);
        cs_builder_edge(builder, scatter + d, task[d][2]);
    }
    outcome of = run("exposed", builder, &platform, &options);
    cs_analysis analysis;
    cs_error error;
    cs_error_init(&error);
    check("exposed", cs_analyse(&of.graph, &of.trace, 1, &analysis, &error), &error);
    expect_int("makespan", 53 * us, of.trace.makespan);
    for (uint32_t d = 0; d < 2; d++) {
        const cs_time_use *use = &analysis.devices[d];
        for (size_t p = 0; p < ROWS(purposes); p++)
            expect_int(cs_purpose_name(purposes[p].purpose), purposes[p].exposed[d] * us,
                       use->exposed[purposes[p].purpose]);
        expect_int("exposed", (d == 0 ? 8 : 18) * us, use->communication);
        expect_int("waiting", (d == 0 ? 20 : 10) * us, use->dependency);
        expect_int("active", 18 * us, use->active);
        expect_int("hidden", 0, use->hidden);
    }
    for (size_t p = 0; p < ROWS(purposes); p++)
        expect_double("moved", purposes[p].moved, of.report.moved[purposes[p].purpose]);
    cs_analysis_finish(&analysis);
    finish(&of);
    cs_platform_finish(&platform);
}

/* ---- folded graphs ---- */

/* `tensor` x `data` places on each of `stages` pipeline ranks. Place i of stage p is device
 * p * places + i or, with the pipeline innermost, i * stages + p. */
typedef struct mesh {
    uint32_t tensor, data, stages, micro_batches;
    bool inner_pipeline;
} mesh;

static uint32_t places_of(const mesh *m)
{
    return m->tensor * m->data;
}

static uint32_t device_at(const mesh *m, uint32_t stage, uint32_t place)
{
    return m->inner_pipeline ? place * m->stages + stage : stage * places_of(m) + place;
}

typedef struct mesh_graph {
    const mesh *of;
    cs_builder *builder;
    bool folded;
    uint32_t forward[4][16], backward[4][16], update[4][16]; /* classes per stage and place */
    uint32_t tensor[4][16], data[4][16];                     /* exchanges per group */
    uint32_t last[4][16]; /* the task that the next one of the place waits for */
} mesh_graph;

static bool is_there(const mesh_graph *g, uint32_t place)
{
    return !g->folded || place == 0;
}

/* Groups of all stages, and the classes of their exchanges: over `size` places, `stride` apart. */
static void add_exchanges(mesh_graph *g, uint32_t size, uint32_t stride, cs_purpose purpose,
                          uint32_t out[4][16])
{
    static const cs_effect effects[] = {{11, 0, CS_MEMORY_BUFFERS, false},
                                        {-11, 0, CS_MEMORY_BUFFERS, true}};
    for (uint32_t p = 0; p < g->of->stages && size > 1; p++)
        for (uint32_t first = 0; first < places_of(g->of); first++) {
            uint32_t devices[16];
            if (first / stride % size != 0)
                continue;
            for (uint32_t i = 0; i < size; i++)
                devices[i] = device_at(g->of, p, first + i * stride);
            const cs_exchange_class exchange = {.kind = CS_ALL_REDUCE,
                                                .purpose = purpose,
                                                .stage = p,
                                                .group =
                                                    cs_builder_group(g->builder, devices, size),
                                                .bytes = 1000 * (p + 1),
                                                .effects = effects,
                                                .n_effects = ROWS(effects)};
            cs_builder_family(g->builder, exchange.group, 2 * p + (stride > 1));
            out[p][first] = cs_builder_exchange(g->builder, &exchange);
        }
}

static void add_classes(mesh_graph *g)
{
    for (uint32_t p = 0; p < g->of->stages; p++)
        for (uint32_t i = 0; i < places_of(g->of); i++) {
            const uint32_t d = device_at(g->of, p, i);
            if (!is_there(g, i))
                continue;
            cs_builder_resident(g->builder, d, CS_MEMORY_WEIGHTS, 100 + p);
            g->forward[p][i] = cs_builder_compute(g->builder, CS_FORWARD, p, d, CS_NONE, 7 + p);
            cs_builder_effect(g->builder, CS_MEMORY_ACTIVATIONS, d, 20 + p, false);
            g->backward[p][i] = cs_builder_compute(g->builder, CS_BACKWARD, p, d, CS_NONE, 15 + p);
            cs_builder_effect(g->builder, CS_MEMORY_ACTIVATIONS, d, -20 - (int64_t)p, true);
            g->update[p][i] = cs_builder_compute(g->builder, CS_UPDATE, p, d, CS_NONE, 3);
        }
}

/* Adds one more task for each place, after its last task. */
static void add_tasks(mesh_graph *g, uint32_t stage, uint32_t classes[4][16], uint32_t item)
{
    for (uint32_t i = 0; i < places_of(g->of); i++) {
        if (!is_there(g, i))
            continue;
        const uint32_t task = cs_builder_task(g->builder, classes[stage][i], item);
        cs_builder_edge(g->builder, g->last[stage][i], task);
        g->last[stage][i] = task;
    }
}

static void add_members(mesh_graph *g, uint32_t stage, uint32_t size, uint32_t stride,
                        uint32_t exchanges[4][16], uint32_t item)
{
    for (uint32_t first = 0; first < places_of(g->of) && size > 1; first++) {
        if (first / stride % size != 0 || (g->folded && first > 0))
            continue;
        const uint32_t member = cs_builder_members(g->builder, exchanges[stage][first], item);
        for (uint32_t i = 0; i < (g->folded ? 1 : size); i++) {
            cs_builder_edge(g->builder, g->last[stage][first + i * stride], member + i);
            g->last[stage][first + i * stride] = member + i;
        }
    }
}

static void hand_on(mesh_graph *g, uint32_t from, uint32_t to, uint32_t item)
{
    for (uint32_t i = 0; i < places_of(g->of); i++) {
        if (!is_there(g, i))
            continue;
        const uint32_t cls = cs_builder_transfer(g->builder, from, device_at(g->of, from, i),
                                                 device_at(g->of, to, i), 500, false);
        const uint32_t task = cs_builder_task(g->builder, cls, item);
        cs_builder_edge(g->builder, g->last[from][i], task);
        g->last[to][i] = task;
    }
}

/* All micro-batches forward, all backward, then gradients are summed and weights updated. */
static void add_pipeline(mesh_graph *g)
{
    const mesh *of = g->of;
    memset(g->last, 0xff, sizeof(g->last));
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t m = 0; m < of->micro_batches; m++)
            for (uint32_t k = 0; k < of->stages; k++) {
                const uint32_t p = pass == 0 ? k : of->stages - 1 - k;
                add_tasks(g, p, pass == 0 ? g->forward : g->backward, m);
                add_members(g, p, of->tensor, 1, g->tensor, m);
                if (k + 1 < of->stages)
                    hand_on(g, p, pass == 0 ? p + 1 : p - 1, m);
            }
    for (uint32_t p = 0; p < of->stages; p++) {
        add_members(g, p, of->data, of->tensor, g->data, 0);
        add_tasks(g, p, g->update, 0);
    }
}

/* Place 0 of each stage represents the stage, or nothing is folded. */
static cs_builder *mesh_builder(const mesh *of, bool folded)
{
    static mesh_graph g;
    uint32_t stands_for[64];
    const uint32_t n = of->stages * places_of(of);
    g = (mesh_graph){.of = of,
                     .builder = cs_builder_create(n, of->stages, of->micro_batches, 1),
                     .folded = folded};
    for (uint32_t p = 0; p < of->stages; p++)
        for (uint32_t i = 0; i < places_of(of); i++)
            stands_for[device_at(of, p, i)] = device_at(of, p, 0);
    if (folded)
        cs_builder_fold(g.builder, stands_for);
    add_classes(&g);
    add_exchanges(&g, of->tensor, 1, CS_PURPOSE_TENSOR, g.tensor);
    add_exchanges(&g, of->data, of->tensor, CS_PURPOSE_GRADIENTS, g.data);
    add_pipeline(&g);
    return g.builder;
}

static void expect_equal(const char *name, const outcome *all, const outcome *folded)
{
    cs_analysis a, b;
    cs_error error;
    const uint32_t n = all->trace.n_devices;
    cs_error_init(&error);
    expect_int(name, all->trace.makespan, folded->trace.makespan);
    expect_int(name, n, folded->trace.n_devices);
    for (uint32_t d = 0; d < n; d++) {
        const cs_device_record *x = &all->trace.devices[d], *y = &folded->trace.devices[d];
        expect_int(name, x->peak, y->peak);
        expect_int(name, x->peak_time, y->peak_time);
        for (uint32_t c = 0; c < CS_N_CATEGORIES; c++) {
            expect_int(name, x->at_peak[c], y->at_peak[c]);
            expect_int(name, x->category_peak[c], y->category_peak[c]);
        }
    }
    check(name, cs_analyse(&all->graph, &all->trace, 5, &a, &error), &error);
    check(name, cs_analyse(&folded->graph, &folded->trace, 5, &b, &error), &error);
    expect_double(name, a.bubble_fraction, b.bubble_fraction);
    expect_double(name, a.throughput, b.throughput);
    for (uint32_t d = 0; d < n; d++) {
        const cs_time_use *x = &a.devices[d], *y = &b.devices[d];
        expect_int(name, x->compute[CS_FORWARD], y->compute[CS_FORWARD]);
        expect_int(name, x->communication, y->communication);
        expect_int(name, x->dependency, y->dependency);
        expect_int(name, x->flush, y->flush);
        expect_int(name, x->collectives, y->collectives);
        expect_int(name, x->active, y->active);
        expect_int(name, x->hidden, y->hidden);
        for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
            expect_int(name, x->exposed[p], y->exposed[p]);
    }
    cs_analysis_finish(&a);
    cs_analysis_finish(&b);
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
        expect_double(name, all->report.moved[p], folded->report.moved[p]);
}

/* Results for every device of a mesh are bit-for-bit the same whether all are simulated or one
 * place of each stage, both if messages between stages have separate links and if they share links
 * with messages of other places. If lowering reports that places differ, all are as slow as the
 * slowest. */
static void test_folded(void **state)
{
    (void)state;
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    static const struct {
        const char *platform;
        cs_sharing sharing;
    } platforms[] = {
        {SWITCH, CS_SHARING_NONE},
        {SWITCH, CS_SHARING_MAX_MIN},
        {"{\"topology\":\"dgx-h100\"}", CS_SHARING_MAX_MIN},
        {SHARED_NIC, CS_SHARING_MAX_MIN},
    };
    uint32_t n_unlike[ROWS(platforms)] = {0};
    for (uint32_t i = 0; i < 54 * ROWS(platforms); i++) {
        const mesh m = {.tensor = 1 + i % 3,
                        .data = 1 + i / 3 % 3,
                        .stages = 1 + i / 9 % 3,
                        .micro_batches = 3,
                        .inner_pipeline = i / 27 % 2};
        char name[64];
        snprintf(name, sizeof(name), "mesh %" PRIu32, i);
        cs_platform platform = make_platform(platforms[i / 54].platform, m.stages * places_of(&m));
        platform.sharing = platforms[i / 54].sharing;
        outcome all = run(name, mesh_builder(&m, false), &platform, &options);
        outcome folded = run(name, mesh_builder(&m, true), &platform, &options);
        expect_text(name, "", all.report.unlike);
        if (*folded.report.unlike) {
            n_unlike[i / 54]++;
            assert_true(folded.trace.makespan >= all.trace.makespan);
        } else {
            expect_equal(name, &all, &folded);
        }
        finish(&all);
        finish(&folded);
        cs_platform_finish(&platform);
    }
    for (size_t i = 0; i < ROWS(platforms); i++)
        assert_true(i < 2 ? n_unlike[i] == 0 : n_unlike[i] > 0 && n_unlike[i] < 54 / 2);
}

/* Two nodes of DGX H100: GPU 8 is in the second one. Devices 0 to 2 and 3 to 5 have NVLinks, 6 to
 * 8 do not only. Stages of three places: 0 to 2 send to 3 to 5 in the node, but 3 to 5 to 6, 7 and
 * 8. Where two GPUs share a NIC and messages wait for each other, only one of two is first. */
static void test_unlike(void **state)
{
    (void)state;
    static const struct {
        const char *platform;
        cs_sharing sharing;
        mesh of;
        const char *start, *end;
    } rows[] = {
        {"{\"topology\":\"dgx-h100\"}",
         CS_SHARING_MAX_MIN,
         {.tensor = 3, .data = 3, .stages = 1, .micro_batches = 1},
         "the all_reduce of stage 0 takes ",
         " with device 6"},
        {"{\"topology\":\"dgx-h100\"}",
         CS_SHARING_NONE,
         {.tensor = 3, .data = 1, .stages = 3, .micro_batches = 1},
         "messages of stage 1 from device 3 to device 6 and from device 5 to device 8",
         " take different times"},
        {SHARED_NIC,
         CS_SHARING_FIFO,
         {.tensor = 2, .data = 1, .stages = 2, .micro_batches = 1},
         "messages of stage 0 from device 0 and from those that it stands for wait for each other",
         " (fifo)"},
        {SHARED_NIC,
         CS_SHARING_COUNT,
         {.tensor = 2, .data = 1, .stages = 2, .micro_batches = 1},
         "",
         ""},
    };
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform =
            make_platform(rows[i].platform, rows[i].of.stages * places_of(&rows[i].of));
        platform.sharing = rows[i].sharing;
        outcome of = run("unlike", mesh_builder(&rows[i].of, true), &platform, &options);
        const char *got = of.report.unlike;
        const size_t length = strlen(rows[i].end);
        if (strncmp(got, rows[i].start, strlen(rows[i].start)) != 0 || strlen(got) < length ||
            strcmp(got + strlen(got) - length, rows[i].end) != 0)
            fail_msg("expected %s ... %s, got %s", rows[i].start, rows[i].end, got);
        if (!*rows[i].start)
            expect_text("alike", "", got);
        finish(&of);
        cs_platform_finish(&platform);
    }
}

/* Links carry the bytes of all messages that a transfer represents: in each direction a NIC shared
 * by two GPUs, where one represents the other, has twice 500 bytes of each of 3 micro-batches. */
static void test_links_of_fold(void **state)
{
    (void)state;
    static const mesh m = {.tensor = 2, .data = 1, .stages = 2, .micro_batches = 3};
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    cs_platform platform = make_platform(SHARED_NIC, 4);
    outcome all = run("links", mesh_builder(&m, false), &platform, &options);
    outcome folded = run("links", mesh_builder(&m, true), &platform, &options);
    int64_t most = 0;
    for (uint32_t link = 0; link < platform.n_links; link++) {
        expect_int(platform.links[link].name, all.trace.links[link].bytes,
                   folded.trace.links[link].bytes);
        most = folded.trace.links[link].bytes > most ? folded.trace.links[link].bytes : most;
    }
    expect_int("NIC", 2 * 3 * 500, most);
    finish(&all);
    finish(&folded);
    cs_platform_finish(&platform);
}

/* Four nodes of two GPUs at one NIC of 10 GB/s, the first GPU for both. Three messages of 10 MB go
 * into node 1, which is six: 10/6 GB/s each, 6 ms. One of them comes from node 0, where a fourth
 * message leaves too, for node 2: the two that it represents have 10 - 2 * 10/6 GB/s left, 10/3
 * each: 3 ms. By count they have a fourth of the NIC of node 0, 2.5 GB/s: 4 ms. */
static void test_shares_of_fold(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    static const cs_time ends[][4] = {{6000, 6000, 6000, 3000}, {6000, 6000, 6000, 4000}};
    static const uint32_t stands_for[] = {0, 0, 2, 2, 4, 4, 6, 6};
    static const uint32_t pairs[][2] = {{0, 2}, {4, 2}, {6, 2}, {0, 4}};
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    for (size_t s = 0; s < ROWS(sharings); s++) {
        cs_platform platform = make_platform(SHARED_NIC, 8);
        platform.sharing = sharings[s];
        cs_builder *builder = cs_builder_create(8, 1, 1, 1);
        cs_builder_fold(builder, stands_for);
        for (size_t i = 0; i < ROWS(pairs); i++)
            cs_builder_task(
                builder, cs_builder_transfer(builder, 0, pairs[i][0], pairs[i][1], 10000000, false),
                0);
        outcome of = run("shares", builder, &platform, &options);
        for (size_t i = 0; i < ROWS(pairs); i++)
            expect_int("end", ends[s][i] * us, of.trace.spans[i].end);
        finish(&of);
        cs_platform_finish(&platform);
    }
}

/* Results of folded runs have rows for all devices; a folded reader has rows of the simulated ones
 * only, and their row numbers. Two stages of two places: 0 and 1, 2 and 3; with the pipeline
 * innermost 0 and 2, 1 and 3. */
static void test_results_of_fold(void **state)
{
    (void)state;
    static const struct {
        mesh of;
        const char *kinds[2];
        uint32_t by[4];
    } rows[] = {{{2, 1, 2, 1, false}, {"0-1", "2-3"}, {0, 0, 2, 2}},
                {{2, 1, 2, 1, true}, {"0(x2)", "1(x2)"}, {0, 1, 0, 1}}};
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    static const cs_results_info info = {"fold", "switch", "mesh", "{}", "1", 0, NULL, NULL, NULL};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform = make_platform(SWITCH, 4);
        outcome of = run("file", mesh_builder(&rows[i].of, true), &platform, &options);
        char path[64];
        cs_error error;
        cs_h5_file *file;
        cs_reader reader;
        const uint32_t *by, *devices;
        const int64_t *peaks;
        uint64_t n = 0;
        cs_error_init(&error);
        snprintf(path, sizeof(path), "/tmp/test-exchange-%ld.h5", (long)getpid());
        check("file", cs_h5_create(path, NULL, &file, &error), &error);
        check("file", cs_results_write(file, &info, &of.graph, &of.trace, &error), &error);
        check("file", cs_h5_commit(file, &error), &error);
        cs_h5_destroy(file);
        check("file", cs_reader_init(&reader, path, &error), &error);
        const cs_reader_column all[] = {{"devices/simulated_as", CS_READER_UINT32, &by},
                                        {"devices/peak", CS_READER_INT64, &peaks}};
        check("file", cs_reader_read(&reader, all, 2, &n, &error), &error);
        expect_int("devices", 4, (int64_t)n);
        for (uint32_t d = 0; d < 4; d++) {
            expect_int("simulated as", rows[i].by[d], by[d]);
            expect_int("peak", of.trace.devices[rows[i].by[d]].peak, peaks[d]);
        }
        check("file", cs_reader_fold(&reader, &error), &error);
        check("file", cs_reader_read(&reader, all + 1, 1, &n, &error), &error);
        expect_int("kinds", 2, (int64_t)n);
        for (uint32_t k = 0; k < 2; k++) {
            expect_text("kind", rows[i].kinds[k], reader.kinds[k]);
            expect_int("peak", of.trace.devices[rows[i].by[3] * k].peak, peaks[k]);
        }
        const cs_reader_column device = {"tasks/device", CS_READER_UINT32, &devices};
        check("file", cs_reader_read(&reader, &device, 1, &n, &error), &error);
        for (uint32_t task = 0; task < of.graph.n_tasks; task++)
            expect_int("row", cs_graph_class(&of.graph, task)->device != 0, devices[task]);
        cs_reader_finish(&reader);
        unlink(path);
        finish(&of);
        cs_platform_finish(&platform);
    }
}

/* With flows, whose groups overlap: tensor groups, data groups across them and messages between
 * stages. Both engines agree, each purpose has the bytes that its algorithms send (per device of a
 * group of p, of an all-reduce of m bytes 2 (p - 1) / p m), and on a switch every byte is on two
 * links. */
static void test_flows(void **state)
{
    (void)state;
    static const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_FLOW};
    static const mesh meshes[] = {
        {2, 1, 2, 2, false}, {2, 2, 1, 2, false}, {2, 2, 2, 1, false}, {1, 3, 2, 2, true}};
    for (size_t i = 0; i < ROWS(meshes); i++) {
        const mesh *m = &meshes[i];
        const double places = places_of(m);
        double tensor = 0, data = 0, links = 0, sent[CS_N_PURPOSES] = {0};
        cs_platform platform = make_platform(SWITCH, m->stages * places_of(m));
        outcome of = run("flows", mesh_builder(m, false), &platform, &options);
        for (uint32_t p = 0; p < m->stages; p++) {
            tensor +=
                2 * m->micro_batches * places * 2 * (m->tensor - 1.0) / m->tensor * 1000 * (p + 1);
            data += places * 2 * (m->data - 1.0) / m->data * 1000 * (p + 1);
        }
        for (uint32_t task = 0; task < of.graph.n_tasks; task++)
            sent[cs_graph_class(&of.graph, task)->purpose] +=
                (double)cs_graph_class(&of.graph, task)->bytes;
        for (uint32_t link = 0; link < platform.n_links; link++)
            links += (double)of.trace.links[link].bytes;
        const double stages = 2 * 500 * places * (m->stages - 1) * m->micro_batches;
        expect_double("stages", stages, sent[CS_PURPOSE_STAGES]);
        expect_double("tensor", tensor, sent[CS_PURPOSE_TENSOR]);
        expect_double(
            "links",
            2 * (sent[CS_PURPOSE_STAGES] + sent[CS_PURPOSE_TENSOR] + sent[CS_PURPOSE_GRADIENTS]),
            links);
        assert_true(fabs(data - sent[CS_PURPOSE_GRADIENTS]) < 1e-6);
        for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
            expect_double("moved", sent[p], of.report.moved[p]);
        finish(&of);
        cs_platform_finish(&platform);
    }
}

/* 64 devices: tensor 4, data 4 and 4 stages, on eight nodes of DGX H100, each message a flow.
 * Delays ignore the few messages of others that share their links: messages of 500 bytes between
 * stages, and gradient sums of stages that finish earlier. */
static void test_many_flows(void **state)
{
    (void)state;
    static const mesh m = {4, 4, 4, 4, false};
    cs_platform platform = make_platform("{\"topology\":\"dgx-h100\"}", 64);
    const cs_lower_options flows = {.algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_FLOW};
    const cs_lower_options delays = {.algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC};
    const cs_lower_options *const all[] = {&flows, &delays};
    cs_time makespans[2];
    for (size_t i = 0; i < 2; i++) {
        cs_graph graph = {0}, lowered = {0};
        cs_lower_report report;
        cs_trace trace;
        cs_error error;
        cs_builder *builder = mesh_builder(&m, false);
        cs_error_init(&error);
        check("64", cs_builder_finish(builder, &graph, &error), &error);
        cs_builder_destroy(builder);
        check("64", cs_lower_with(&graph, &platform, all[i], &lowered, &report, &error), &error);
        check("64", cs_graph_check(&lowered, &error), &error);
        check("64", cs_engine_run(&lowered, &platform, &(cs_engine_options){0}, &trace, &error),
              &error);
        makespans[i] = trace.makespan;
        cs_trace_finish(&trace);
        cs_graph_finish(&lowered);
    }
    const double ratio = (double)makespans[1] / (double)makespans[0];
    if (!(fabs(ratio - 1) < 1e-3))
        fail_msg("%" PRId64 " ps of flows, %" PRId64 " ps of delays", makespans[0], makespans[1]);
    cs_platform_finish(&platform);
}

/* Two stages of two places, 0 and 1, 2 and 3; 0 represents 1, and 2 represents 3. */
#define BREAK(name, change)                                                                        \
    static void break_##name(cs_graph *graph)                                                      \
    {                                                                                              \
        change;                                                                                    \
    }
BREAK(nothing, (void)graph)
BREAK(chain, graph->stands_for[0] = 2)
BREAK(unknown, graph->stands_for[1] = 4)
BREAK(resident, graph->residents[0].device = 1)
BREAK(compute, graph->classes[0].device = 3)
BREAK(unequal, graph->stands_for[3] = 0)
BREAK(family, graph->groups[1].family = 0; graph->group_devices[2] = 1)
BREAK(all_members, graph->stands_for[1] = 1; graph->stands_for[3] = 3)

static const struct {
    const char *name;
    void (*break_it)(cs_graph *graph);
    const char *message; /* "" where nothing is wrong */
} unfoldable[] = {
    {"nothing", break_nothing, ""},
    {"a chain", break_chain,
     "device 1: device 0 is simulated in its place, which is not simulated itself"},
    {"an unknown device", break_unknown,
     "device 1: device 4 is simulated in its place, which is not simulated itself"},
    {"memory of nobody", break_resident,
     "resident bytes 0 is on device 1, for which device 0 stands"},
    {"work of nobody", break_compute, "task class 0 is on device 3, for which device 2 stands"},
    {"unequal ends", break_unequal,
     "task class 8: device 0, which stands for 3, sends to device 2, which stands for 1"},
    {"a device in two groups of a family", break_family,
     "groups 0 and 1 are of one family and share device 1"},
    {"one member of two", break_all_members,
     "task 2: the members of a collective must be alike and follow each other in order of rank"},
};

static void test_not_foldable(void **state)
{
    (void)state;
    static const mesh m = {.tensor = 2, .data = 1, .stages = 2, .micro_batches = 1};
    for (size_t i = 0; i < ROWS(unfoldable); i++) {
        cs_error error;
        cs_graph graph = {0};
        cs_builder *builder = mesh_builder(&m, true);
        cs_error_init(&error);
        check("build", cs_builder_finish(builder, &graph, &error), &error);
        cs_builder_destroy(builder);
        unfoldable[i].break_it(&graph);
        const char *message = unfoldable[i].message;
        const cs_status status = cs_graph_check(&graph, &error);
        expect_error(unfoldable[i].name, *message ? CS_INVALID : CS_OK, message, status, &error);
        cs_graph_finish(&graph);
    }
}

/* Flows need all devices, and a device stands only for such as are like it. */
static void test_fold_on_platform(void **state)
{
    (void)state;
    static const mesh m = {.tensor = 2, .data = 1, .stages = 2, .micro_batches = 1};
    static const struct {
        uint32_t fidelity;
        double speed;
        int64_t capacity;
        const char *message;
    } rows[] = {
        {CS_FIDELITY_ANALYTIC, 1, INT64_MAX, ""},
        {CS_FIDELITY_AUTO, 1, INT64_MAX, ""},
        {CS_FIDELITY_FLOW, 1, INT64_MAX,
         "the fidelity flow needs all devices of the platform in the graph, not one in place of "
         "several: use analytic or alpha_beta"},
        {CS_FIDELITY_ANALYTIC, 2, INT64_MAX,
         "device 2 cannot stand for device 3, which has another speed or memory"},
        {CS_FIDELITY_ANALYTIC, 1, 1000,
         "device 2 cannot stand for device 3, which has another speed or memory"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_lower_options options = {
            .algorithm = 1, .chunks = 1, .fidelity = rows[i].fidelity, .most_flows = 1000};
        cs_platform platform = make_platform(SWITCH, 4);
        cs_error error;
        cs_graph graph = {0}, lowered = {0};
        cs_lower_report report;
        cs_builder *builder = mesh_builder(&m, true);
        platform.devices[3].speed = rows[i].speed;
        platform.devices[3].capacity = rows[i].capacity;
        cs_error_init(&error);
        check("build", cs_builder_finish(builder, &graph, &error), &error);
        cs_builder_destroy(builder);
        const char *message = rows[i].message;
        const cs_status status =
            cs_lower_with(&graph, &platform, &options, &lowered, &report, &error);
        expect_error("fold", *message ? CS_INVALID : CS_OK, message, status, &error);
        if (status == CS_OK)
            expect_int("fidelity", CS_FIDELITY_ANALYTIC, report.fidelity);
        cs_graph_finish(&graph);
        cs_graph_finish(&lowered);
        cs_platform_finish(&platform);
    }
}

/* ---- families of groups ---- */

/* `n_groups` groups of `size` ranks over the first devices: rank k of the group that begins with
 * device f is f + k * stride. */
typedef struct family_row {
    const char *name, *platform;
    cs_sharing sharing;
    uint32_t n_devices, size, stride;
    cs_kind kind;
    int64_t bytes;
    const char *algorithm;
} family_row;

enum { FAMILY_DEVICES = 64 };

static uint32_t algorithm_number(const char *name)
{
    for (uint32_t i = 0; cs_algorithms[i]; i++)
        if (strcmp(cs_algorithms[i]->name, name) == 0)
            return i + 2;
    return 1;
}

/* All groups at once; when each has ended, into `ends`. Returns how many there are. */
static uint32_t run_family(const family_row *row, uint32_t fidelity, bool relatives, cs_time *ends)
{
    uint32_t n_groups = 0, of_device[FAMILY_DEVICES];
    cs_platform platform = make_platform(row->platform, row->n_devices);
    platform.sharing = row->sharing;
    const cs_lower_options options = {.algorithm = algorithm_number(row->algorithm),
                                      .chunks = 1,
                                      .order = CS_ORDER_AUTO,
                                      .fidelity = fidelity};
    cs_builder *builder = cs_builder_create(row->n_devices, 1, 1, 1);
    for (uint32_t first = 0; first < row->n_devices; first++) {
        uint32_t devices[FAMILY_DEVICES];
        if (first / row->stride % row->size != 0)
            continue;
        for (uint32_t k = 0; k < row->size; k++) {
            devices[k] = first + k * row->stride;
            of_device[devices[k]] = n_groups;
        }
        const uint32_t group = cs_builder_group(builder, devices, row->size);
        if (relatives)
            cs_builder_family(builder, group, 7);
        cs_builder_members(builder, cs_builder_collective(builder, row->kind, 0, group, row->bytes),
                           0);
        ends[n_groups++] = 0;
    }
    cs_graph graph = {0}, lowered = {0};
    cs_lower_report report;
    cs_trace trace;
    cs_error error;
    cs_error_init(&error);
    check(row->name, cs_builder_finish(builder, &graph, &error), &error);
    cs_builder_destroy(builder);
    check(row->name, cs_graph_check(&graph, &error), &error);
    check(row->name, cs_lower_with(&graph, &platform, &options, &lowered, &report, &error), &error);
    check(row->name, cs_engine_run(&lowered, &platform, &(cs_engine_options){0}, &trace, &error),
          &error);
    for (uint32_t task = 0; task < lowered.n_tasks; task++) {
        cs_time *end = &ends[of_device[cs_graph_class(&lowered, task)->device]];
        *end = trace.spans[task].end > *end ? trace.spans[task].end : *end;
    }
    cs_trace_finish(&trace);
    cs_graph_finish(&lowered);
    cs_platform_finish(&platform);
    return n_groups;
}

/* Two GPUs of each of four nodes, the GPUs of one place of all nodes a group: an all-reduce of 8
 * MB by a ring takes 6 steps of 2 MB. A NIC carries both groups' messages, 5 GB/s for each: 6 *
 * 400 us, by all sharings, for phi is 2; alone 6 * 200 us. Groups that are the two GPUs of a node
 * have no link in common: 2 steps of 4 MB at 100 GB/s. A NIC of its own for each GPU: as alone. */
static void test_contention(void **state)
{
    (void)state;
    static const char own_nic[] =
        "{\"topology\":\"cluster\",\"gpus_per_node\":2,\"nics_per_node\":2,\"node\":{\"topology\":"
        "\"nvlink_switch\",\"bandwidth\":\"100 GB/s\"},\"nic_bandwidth\":\"100 GB/s\",\"network\":"
        "{\"topology\":\"nvlink_switch\",\"bandwidth\":\"10 GB/s\"}}";
    static const struct {
        const char *name, *platform;
        uint32_t size, stride;
        cs_time time; /* us */
    } rows[] = {
        {"one NIC", SHARED_NIC, 4, 2, 2400},
        {"a NIC each", own_nic, 4, 2, 1200},
        {"in nodes", SHARED_NIC, 2, 1, 80},
    };
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT, CS_SHARING_FIFO};
    for (size_t i = 0; i < ROWS(rows); i++)
        for (size_t s = 0; s < ROWS(sharings); s++) {
            cs_time ends[FAMILY_DEVICES];
            const family_row row = {rows[i].name, rows[i].platform, sharings[s],   8,
                                    rows[i].size, rows[i].stride,   CS_ALL_REDUCE, 8000000,
                                    "ring"};
            const uint32_t n = run_family(&row, CS_FIDELITY_ANALYTIC, true, ends);
            for (uint32_t g = 0; g < n; g++)
                expect_int(row.name, rows[i].time * us, ends[g]);
            run_family(&row, CS_FIDELITY_ALPHA_BETA, true, ends);
            expect_int(row.name, rows[i].time * us, ends[0]);
            run_family(&row, CS_FIDELITY_ANALYTIC, false, ends);
            expect_int(row.name, rows[i].stride == 2 ? 1200 * us : 80 * us, ends[0]);
        }
}

static void expect_flows(const family_row *row)
{
    cs_time flows[FAMILY_DEVICES], delays[FAMILY_DEVICES];
    const uint32_t n = run_family(row, CS_FIDELITY_FLOW, true, flows);
    run_family(row, CS_FIDELITY_ANALYTIC, true, delays);
    for (uint32_t g = 0; g < n; g++)
        if (flows[g] != delays[g])
            fail_msg("%s by %s, groups of %" PRIu32 " with stride %" PRIu32 " on %s, sharing %d: "
                     "%" PRId64 " ps of flows, %" PRId64 " ps of a delay",
                     cs_kind_name(row->kind), row->algorithm, row->size, row->stride, row->platform,
                     (int)row->sharing, flows[g], delays[g]);
}

/* The delays of all groups of a family are what their flows take when all are simulated at once:
 * to the picosecond where the messages of a round are alike, or wait for the same slowest one.
 * They are not where in one round some ranks talk to their node and others to other nodes
 * (halving, direct and halos, in nodes of eight GPUs); there a delay is an estimate. The bytes can
 * be divided by 8 ranks and by the 6 rings over their links. */
static void test_family_as_flows(void **state)
{
    (void)state;
    static const struct {
        const char *platform;
        uint32_t n_devices;
        bool alike;
    } platforms[] = {
        {SHARED_NIC, 32, true},
        {"{\"topology\":\"abci\"}", 32, true},
        {"{\"topology\":\"fat_tree\",\"down\":[4,4],\"up\":[2],\"bandwidth\":\"10 GB/s\"}", 16,
         true},
        {"{\"topology\":\"dgx1-v100\"}", 32, false},
        {"{\"topology\":\"dgx-a100\"}", 32, false},
        {"{\"topology\":\"dgx-h100\"}", 64, false},
    };
    static const struct {
        cs_kind kind;
        const char *algorithm;
        bool alike; /* only where messages are */
    } what[] = {
        {CS_ALL_REDUCE, "ring", false},  {CS_ALL_REDUCE, "usual", false},
        {CS_ALL_GATHER, "usual", false}, {CS_REDUCE_SCATTER, "ring", false},
        {CS_SHIFT, "usual", false},      {CS_ALL_REDUCE, "halving", true},
        {CS_ALL_TO_ALL, "usual", true},  {CS_HALO, "usual", true},
    };
    static const cs_sharing sharings[] = {CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    for (size_t p = 0; p < ROWS(platforms); p++)
        for (size_t w = 0; w < ROWS(what); w++)
            for (uint32_t size = 2; size <= 8; size *= 2)
                for (uint32_t stride = 1; size * stride <= platforms[p].n_devices; stride *= 2)
                    for (size_t s = 0; s < ROWS(sharings); s++)
                        if (platforms[p].alike || !what[w].alike)
                            expect_flows(&(family_row){"family", platforms[p].platform, sharings[s],
                                                       platforms[p].n_devices, size, stride,
                                                       what[w].kind, 3 << 22, what[w].algorithm});
}

/* Unlike collectives side by side, round by round, on nodes of two GPUs that share a NIC. A: GPU 0
 * of four nodes; B: GPU 1 of the first two; all-reduces of 8 MB. B by a ring has 2 rounds of 4 MB,
 * which share the NICs with A's first two: 2 * 800 us. A by a ring has 6 rounds of 2 MB, the first
 * two at half of the bandwidth: 2 * 400 us + 4 * 200 us; by halving 4 MB and 2 MB with B, 2 MB and
 * 4 MB alone: 800 us +
 * 400 us + 200 us + 400 us. The unwanted results are computed nevertheless. */
static void test_unlike_sides(void **state)
{
    (void)state;
    static const uint32_t a[] = {0, 2, 4, 6}, b[] = {1, 3};
    static const struct {
        const char *algorithm;
        cs_time times[2]; /* us */
    } rows[] = {{"ring", {1600, 1600}}, {"halving", {1800, 1600}}};
    cs_platform platform = make_platform(SHARED_NIC, 8);
    for (size_t i = 0; i < ROWS(rows); i++)
        for (uint32_t which = 1; which < 4; which++) {
            const bool wanted[] = {which & 1, which & 2};
            const cs_side sides[] = {
                {{.kind = CS_ALL_REDUCE, .n = 4, .bytes = 8000000, .chunks = 1},
                 cs_algorithm_find(rows[i].algorithm),
                 a},
                {{.kind = CS_ALL_REDUCE, .n = 2, .bytes = 8000000, .chunks = 1},
                 cs_algorithm_find("ring"),
                 b}};
            cs_time costs[2];
            cs_error error;
            cs_error_init(&error);
            check("sides",
                  cs_collective_costs(&(cs_sides){.n = 2, .of = sides, .wanted = wanted}, &platform,
                                      NULL, costs, &error),
                  &error);
            for (uint32_t s = 0; s < 2; s++)
                if (wanted[s])
                    expect_int(rows[i].algorithm, rows[i].times[s] * us, costs[s]);
        }
    cs_platform_finish(&platform);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effects),        cmocka_unit_test(test_purposes),
        cmocka_unit_test(test_many_effects),   cmocka_unit_test(test_exposed),
        cmocka_unit_test(test_folded),         cmocka_unit_test(test_results_of_fold),
        cmocka_unit_test(test_shares_of_fold), cmocka_unit_test(test_flows),
        cmocka_unit_test(test_many_flows),     cmocka_unit_test(test_not_foldable),
        cmocka_unit_test(test_unlike),         cmocka_unit_test(test_several),
        cmocka_unit_test(test_links_of_fold),  cmocka_unit_test(test_fold_on_platform),
        cmocka_unit_test(test_contention),     cmocka_unit_test(test_family_as_flows),
        cmocka_unit_test(test_unlike_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
