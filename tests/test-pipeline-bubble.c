/* The pipeline's own bubble versus exposed communication: two stages of GPipe and 1F1B, derived by
 * hand. Each stage is on two identical devices: together they are a group of a tensor or a data
 * axis, whose collectives are one delay. */
#include "sim/core/analysis/analysis.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"
#include "topologies/topology.h"

#include <string.h>

enum { P = 2, RANKS = 2, N_DEVICES = P * RANKS, MOST_ITEMS = 4 };

/* A forward or a backward: computes, sums over the group, computes, sums, and sends what it has. A
 * sum of no time is left out. */
typedef struct pass {
    cs_time first, sum, second, last_sum;
} pass;

typedef struct pipe_row {
    const char *name;
    uint32_t micro_batches, batches;
    const char *order[P]; /* order of a mini-batch: "FFBB" */
    pass forward[P], backward[P];
    cs_time message;           /* between stages */
    cs_time gradients, update; /* at the end of a mini-batch; 0: none */
    cs_time makespan;
    cs_time_use uses[P]; /* use of either device of a stage */
} pipe_row;

#define F CS_FORWARD
#define B CS_BACKWARD
#define U CS_UPDATE

static const pipe_row pipe_rows[] = {
    /* No communication. Stage 0: F 0-10, 10-20 | B 90-110, 130-150.
     * Stage 1: F 10-30, 30-50, B 50-90, 90-130. */
    {"gpipe, unequal stages",
     2,
     1,
     {"FFBB", "FFBB"},
     .forward = {{10, 0, 0, 0}, {20, 0, 0, 0}},
     .backward = {{20, 0, 0, 0}, {40, 0, 0, 0}},
     .makespan = 150,
     .uses = {{.compute = {[F] = 20, [B] = 40}, .dependency = 70 + 20},
              {.compute = {[F] = 40, [B] = 80}, .dependency = 10, .flush = 20}}},
    /* Stage 0: F 0-10, 10-20 | B 70-90, F 90-100 | B 130-150 | B 190-210.
     * Stage 1: F 10-30, B 30-70, F 70-90, B 90-130, F 130-150, B 150-190. */
    {"1f1b, unequal stages",
     3,
     1,
     {"FFBFBB", "FBFBFB"},
     .forward = {{10, 0, 0, 0}, {20, 0, 0, 0}},
     .backward = {{20, 0, 0, 0}, {40, 0, 0, 0}},
     .makespan = 210,
     .uses = {{.compute = {[F] = 30, [B] = 60}, .dependency = 50 + 30 + 40},
              {.compute = {[F] = 60, [B] = 120}, .dependency = 10, .flush = 20}}},
    /* Equal stages, messages of 5. Stage 0: F 0-10, 10-20, messages 10-15 and 20-25, B 60-80,
     * 80-100. Stage 1: F 15-25, 25-35, B 35-55, 55-75, messages 55-60 and 75-80. Of the gap 20-60
     * 55-60 is for a message; of 0-15, 10-15. Both gaps and the end are (f + b + 2c) = 40 of each
     * stage. */
    {"gpipe, messages",
     2,
     1,
     {"FFBB", "FFBB"},
     .forward = {{10, 0, 0, 0}, {10, 0, 0, 0}},
     .backward = {{20, 0, 0, 0}, {20, 0, 0, 0}},
     .message = 5,
     .makespan = 100,
     .uses =
         {{.compute = {[F] = 20, [B] = 40}, .communication = 5, .dependency = 35},
          {.compute = {[F] = 20, [B] = 40}, .communication = 5, .dependency = 10, .flush = 25}}},
    /* Equal stages, a sum of 3 within each forward of 4 + 3 + 3 and one of 6 within each backward
     * of 8 + 6 + 6: a stage takes 10 and 20 as without sums, and the run (M + P - 1)(f + b) = 90.
     * Stage 0: F 0-10, 10-20 | B 50-70, 70-90. Stage 1: F 10-20, 20-30, B 30-50, 50-70. The
     * pipeline's bubble is (P - 1)/(M + P - 1) = 30 of 90: that the other stage communicates, 14-17
     * and 38-44, is waiting for it like its computations. */
    {"gpipe, sums within stages",
     2,
     1,
     {"FFBB", "FFBB"},
     .forward = {{4, 3, 3, 0}, {4, 3, 3, 0}},
     .backward = {{8, 6, 6, 0}, {8, 6, 6, 0}},
     .makespan = 90,
     .uses =
         {{.compute = {[F] = 14, [B] = 28}, .communication = 18, .dependency = 30},
          {.compute = {[F] = 14, [B] = 28}, .communication = 18, .dependency = 10, .flush = 20}}},
    /* The same with another sum at the end of each pass, before it sends; the next pass of the
     * stage overlaps it. Computing and sums, in ps:
     *   stage 0  F 0-3 (3-5) 5-9 (9-10), F 9-12 (12-14) 14-18 (18-19) |
     *            B 40-46 (46-50) 50-58 (58-60) | B 68-74 (74-78) 78-86 (86-88)
     *   stage 1  F 10-13 (13-15) 15-19 (19-20), B 20-26 (26-30) 30-38 (38-40),
     *            F 38-41 (41-43) 43-47 (47-48), B 48-54 (54-58) 58-66 (66-68)
     * Stage 0 waits 18-40 and 58-68 for stage 1, the sums at 38-40 and 66-68 included, whose result
     * stage 1 sends on; and stage 1 0-10 for stage 0. But at 19-20 and 47-48 stage 1's backward
     * waits for its own sum. After the last computation, 86, both wait for the last sum. */
    {"1f1b, sums at the ends of stages",
     2,
     1,
     {"FFBB", "FBFB"},
     .forward = {{3, 2, 4, 1}, {3, 2, 4, 1}},
     .backward = {{6, 4, 8, 2}, {6, 4, 8, 2}},
     .makespan = 88,
     .uses = {{.compute = {[F] = 14, [B] = 28}, .communication = 4 + 8 + 2, .dependency = 22 + 10},
              {.compute = {[F] = 14, [B] = 28},
               .communication = 4 + 8 + 2 + 2,
               .dependency = 10,
               .flush = 20}}},
    /* The same with messages of 5, of one micro-batch:
     *   stage 0  F 0-3 (3-5) 5-9 (9-10), message 10-15 | B 50-56 (56-60) 60-68 (68-70)
     *   stage 1  F 15-18 (18-20) 20-24 (24-25), B 25-31 (31-35) 35-43 (43-45), message 45-50
     * Stage 1 waits 0-10 for stage 0, 10-15 for the message; stage 0 9-45 for stage 1, 45-50 for
     * the message. */
    {"1f1b, sums and messages",
     1,
     1,
     {"FB", "FB"},
     .forward = {{3, 2, 4, 1}, {3, 2, 4, 1}},
     .backward = {{6, 4, 8, 2}, {6, 4, 8, 2}},
     .message = 5,
     .makespan = 70,
     .uses = {{.compute = {[F] = 7, [B] = 14}, .communication = 2 + 4 + 2 + 5, .dependency = 36},
              {.compute = {[F] = 7, [B] = 14},
               .communication = 2 + 1 + 4 + 5 + 2,
               .dependency = 10,
               .flush = 25}}},
    /* Sums of gradients over replicas, 6, then the update, 4; two mini-batches, the second one 70
     * later. Stage 0: F 0-10 | B 40-60 (60-66) U 66-70. Stage 1: F 10-20, B 20-40 (40-46) U 46-50.
     * Each waits for its own sum; 50-70 stage 1 waits for the flush, 60-66 included, where stage 0
     * communicates. */
    {"gpipe, a flush with sums of gradients",
     1,
     2,
     {"FB", "FB"},
     .forward = {{10, 0, 0, 0}, {10, 0, 0, 0}},
     .backward = {{20, 0, 0, 0}, {20, 0, 0, 0}},
     .gradients = 6,
     .update = 4,
     .makespan = 140,
     .uses = {{.compute = {[F] = 20, [B] = 40, [U] = 8}, .communication = 12, .dependency = 60},
              {.compute = {[F] = 20, [B] = 40, [U] = 8},
               .communication = 12,
               .dependency = 20,
               .flush = 40}}},
};

/* ---- the graph ---- */

typedef struct pipe {
    const pipe_row *row;
    cs_builder *builder;
    uint32_t groups[P];
    uint32_t ends[P][2][MOST_ITEMS][RANKS]; /* per forward and backward: the last task so far */
} pipe;

static void add_edge(pipe *of, uint32_t before, uint32_t after)
{
    if (before != CS_NONE)
        cs_builder_edge(of->builder, before, after);
}

/* Adds a computation on each rank of a stage, after its dependency, which becomes the new task. */
static void add_compute(pipe *of, cs_kind kind, uint32_t stage, uint32_t item, cs_time time,
                        uint32_t waits[RANKS])
{
    for (uint32_t r = 0; r < RANKS && time > 0; r++) {
        const uint32_t cls =
            cs_builder_compute(of->builder, kind, stage, stage * RANKS + r, CS_NONE, time);
        const uint32_t task = cs_builder_task(of->builder, cls, item);
        add_edge(of, waits[r], task);
        waits[r] = task;
    }
}

/* A sum of all ranks, as one delay. */
static void add_sum(pipe *of, cs_purpose purpose, uint32_t stage, uint32_t item, cs_time time,
                    uint32_t waits[RANKS])
{
    const uint32_t device = stage * RANKS;
    const cs_class cls = {.kind = CS_TRANSFER,
                          .origin = CS_ALL_REDUCE,
                          .purpose = (uint8_t)purpose,
                          .stage = stage,
                          .device = device,
                          .peer = device,
                          .weights = CS_NONE,
                          .ranks = 1 + of->groups[stage],
                          .duration = time};
    if (time == 0)
        return;
    const uint32_t task = cs_builder_task(of->builder, cs_builder_class(of->builder, &cls), item);
    for (uint32_t r = 0; r < RANKS; r++) {
        add_edge(of, waits[r], task);
        waits[r] = task;
    }
}

static void add_messages(pipe *of, uint32_t from, uint32_t to, uint32_t item, uint32_t waits[RANKS])
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const uint32_t cls =
            cs_builder_transfer(of->builder, from, from * RANKS + r, to * RANKS + r, 0, false);
        const uint32_t task = cs_builder_task(of->builder, cls, item);
        add_edge(of, waits[r], task);
        waits[r] = task;
    }
}

/* Behind what it reads, which is in the graph; with the messages to the other stage. */
static void add_pass(pipe *of, bool backward, uint32_t stage, uint32_t item)
{
    const pass *times = backward ? &of->row->backward[stage] : &of->row->forward[stage];
    const cs_kind kind = backward ? CS_BACKWARD : CS_FORWARD;
    uint32_t *waits = of->ends[stage][backward][item];
    const uint32_t other = 1 - stage; /* there are two */
    for (uint32_t r = 0; r < RANKS; r++)
        waits[r] = CS_NONE;
    if (backward && stage == P - 1)
        memcpy(waits, of->ends[stage][false][item], RANKS * sizeof(*waits));
    else if (backward || stage > 0)
        memcpy(waits, of->ends[other][backward][item], RANKS * sizeof(*waits));
    add_compute(of, kind, stage, item, times->first, waits);
    add_sum(of, CS_PURPOSE_TENSOR, stage, item, times->sum, waits);
    add_compute(of, kind, stage, item, times->second, waits);
    add_sum(of, CS_PURPOSE_TENSOR, stage, item, times->last_sum, waits);
    if (stage == (backward ? 1 : 0))
        add_messages(of, stage, other, item, waits);
}

static void add_update(pipe *of, uint32_t stage, uint32_t batch)
{
    const uint32_t item = (batch + 1) * of->row->micro_batches - 1;
    uint32_t *waits = of->ends[stage][true][item];
    add_sum(of, CS_PURPOSE_GRADIENTS, stage, item, of->row->gradients, waits);
    add_compute(of, CS_UPDATE, stage, item, of->row->update, waits);
}

/* Whether what the next pass of a stage reads is in the graph. */
static bool is_ready(const uint32_t done[P][2], uint32_t stage, bool backward)
{
    const uint32_t item = done[stage][backward];
    if (backward)
        return stage == P - 1 ? done[stage][false] > item : done[stage + 1][true] > item;
    return stage == 0 || done[stage - 1][false] > item;
}

/* A device computes in the order of insertion. */
static void add_batch(pipe *of, uint32_t batch)
{
    const uint32_t n = 2 * of->row->micro_batches, first = batch * of->row->micro_batches;
    uint32_t at[P] = {0}, done[P][2] = {{0}}, left = P * n;
    for (uint32_t turns = 0, stage = 0; left > 0; stage = (stage + 1) % P, turns++) {
        const bool backward = of->row->order[stage][at[stage]] == 'B';
        assert_true(turns < P * P * n); /* else an order that no run can follow */
        if (at[stage] == n || !is_ready(done, stage, backward))
            continue;
        add_pass(of, backward, stage, first + done[stage][backward]++);
        at[stage]++;
        left--;
    }
    for (uint32_t stage = 0; stage < P && of->row->update > 0; stage++)
        add_update(of, stage, batch);
}

static cs_graph make_graph(const pipe_row *row)
{
    pipe of = {.row = row,
               .builder = cs_builder_create(N_DEVICES, P, row->micro_batches, row->batches)};
    cs_graph graph;
    assert_non_null(of.builder);
    for (uint32_t s = 0; s < P; s++)
        of.groups[s] =
            cs_builder_group(of.builder, (const uint32_t[]){s * RANKS, s * RANKS + 1}, RANKS);
    for (uint32_t batch = 0; batch < row->batches; batch++)
        add_batch(&of, batch);
    assert_int_equal(cs_builder_finish(of.builder, &graph, NULL), CS_OK);
    cs_builder_destroy(of.builder);
    assert_int_equal(cs_graph_check(&graph, NULL), CS_OK);
    return graph;
}

static cs_platform make_platform(cs_time latency)
{
    const struct {
        double bandwidth;
        cs_time latency;
    } params = {1e12, latency};
    const cs_topology *topology = cs_topology_find("nvlink_switch");
    cs_platform platform;
    assert_int_equal(cs_field_find(topology->fields, "bandwidth")->offset, 0);
    assert_int_equal(cs_field_find(topology->fields, "latency")->offset, sizeof(double));
    assert_int_equal(topology->build(&params, N_DEVICES, &platform, NULL), CS_OK);
    return platform;
}

/* ---- what is found ---- */

static void expect_use(const char *row, const cs_time_use *expected, const cs_time_use *got)
{
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
        expect_int(row, expected->compute[kind], got->compute[kind]);
    expect_int(row, expected->communication, got->communication);
    expect_int(row, expected->dependency, got->dependency);
    expect_int(row, expected->flush, got->flush);
}

/* Shares of all devices' time. */
static void expect_fractions(const pipe_row *row, const cs_analysis *got)
{
    const double all = (double)(P * row->makespan);
    cs_time exposed = 0, flush = 0, waiting = 0;
    for (uint32_t s = 0; s < P; s++) {
        exposed += row->uses[s].communication;
        flush += row->uses[s].flush;
        waiting += row->uses[s].dependency + row->uses[s].flush;
    }
    expect_double(row->name, (double)exposed / all, got->exposed_communication_fraction);
    expect_double(row->name, (double)waiting / all, got->pipeline_bubble_fraction);
    expect_double(row->name, (double)flush / all, got->flush_fraction);
    expect_double(row->name, (double)(exposed + waiting) / all, got->bubble_fraction);
}

static void test_by_hand(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(pipe_rows); r++) {
        const pipe_row *row = &pipe_rows[r];
        cs_graph graph = make_graph(row);
        cs_platform platform = make_platform(row->message);
        cs_trace trace;
        cs_analysis analysis;
        assert_int_equal(cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, NULL),
                         CS_OK);
        assert_int_equal(cs_analyse(&graph, &trace, 1, &analysis, NULL), CS_OK);
        expect_int(row->name, row->makespan, trace.makespan);
        for (uint32_t device = 0; device < N_DEVICES; device++)
            expect_use(row->name, &row->uses[device / RANKS], &analysis.devices[device]);
        expect_fractions(row, &analysis);
        cs_analysis_finish(&analysis);
        cs_trace_finish(&trace);
        cs_platform_finish(&platform);
        cs_graph_finish(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
