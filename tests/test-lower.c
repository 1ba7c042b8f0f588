/* Collectives as transfers. A lowered all-reduce is replayed with symbolic data: every chunk on
 * every rank is a set of the ranks that contributed to it, tasks start and end in a random order
 * that the dependencies allow, and in the end every rank must hold the complete sum, with one
 * contribution of each rank. */
#include "sim/core/lower/lower.h"

#include "sim/base/random.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <stdlib.h>

enum { MOST_RANKS = 9, MOST_RINGS = 3, N_DEVICES = 12 };

/* One all-reduce per mini-batch over these ranks; stage g of the graph represents ring g. */
typedef struct ring {
    uint32_t n;
    uint32_t devices[MOST_RANKS];
    int64_t bytes;
} ring;

typedef struct lower_row {
    const char *name;
    uint32_t n_rings, iterations;
    ring rings[MOST_RINGS];
} lower_row;

static const lower_row rows[] = {
    {"two ranks", 1, 1, {{2, {0, 1}, 10}}},
    {"two ranks, odd", 1, 2, {{2, {3, 1}, 11}}},
    {"three ranks", 1, 1, {{3, {0, 1, 2}, 12}}},
    {"one byte more than divides", 1, 1, {{4, {0, 1, 2, 3}, 41}}},
    {"one byte less than divides", 1, 1, {{4, {0, 1, 2, 3}, 43}}},
    {"one byte", 1, 1, {{5, {0, 1, 2, 3, 4}, 1}}},
    {"fewer bytes than ranks", 1, 3, {{8, {0, 1, 2, 3, 4, 5, 6, 7}, 5}}},
    {"no bytes", 1, 1, {{3, {0, 1, 2}, 0}}},
    {"devices in any order", 1, 2, {{5, {11, 2, 7, 0, 5}, 1003}}},
    {"nine ranks", 1, 2, {{9, {8, 7, 6, 5, 4, 3, 2, 1, 0}, 100}}},
    {"two groups apart", 2, 2, {{3, {0, 1, 2}, 10}, {4, {3, 4, 5, 6}, 7}}},
    {"one group, three buckets",
     3,
     2,
     {{4, {0, 1, 2, 3}, 10}, {4, {0, 1, 2, 3}, 3}, {4, {0, 1, 2, 3}, 16}}},
    {"groups that share a rank", 3, 3, {{3, {0, 1, 2}, 9}, {3, {2, 3, 4}, 8}, {2, {4, 0}, 5}}},
    {"more than 32 bits", 1, 1, {{3, {0, 1, 2}, INT64_C(1) << 40}}},
};

/* ---- the graph: per mini-batch and ring a producer, all-reduce and consumer per rank ---- */

typedef struct scene {
    const lower_row *row;
    cs_graph graph; /* lowered */
} scene;

static void add_ring_run(cs_builder *builder, const ring *of, uint32_t collective,
                         const uint32_t *producers, const uint32_t *consumers, uint32_t item)
{
    uint32_t before[MOST_RANKS];
    for (uint32_t r = 0; r < of->n; r++)
        before[r] = cs_builder_task(builder, producers[r], item);
    uint32_t first = cs_builder_members(builder, collective, item);
    for (uint32_t r = 0; r < of->n; r++)
        cs_builder_edge(builder, before[r], first + r);
    for (uint32_t r = 0; r < of->n; r++) {
        uint32_t after = cs_builder_task(builder, consumers[r], item);
        cs_builder_edge(builder, first + r, after);
    }
}

static void check_status(const char *row, cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s: %s", row, cs_status_name(status), error->text);
}

static void finish_lowered(const char *row, cs_builder *builder, cs_graph *lowered)
{
    cs_error error;
    cs_error_init(&error);
    cs_graph logical = {0};
    check_status(row, cs_builder_finish(builder, &logical, &error), &error);
    check_status(row, cs_graph_check(&logical, &error), &error);
    check_status(row, cs_lower(&logical, lowered, &error), &error);
    assert_null(logical.tasks);
    assert_int_equal(logical.n_tasks, 0);
    check_status(row, cs_graph_check(lowered, &error), &error);
    cs_builder_destroy(builder);
}

static void open_scene(scene *on, const lower_row *row)
{
    *on = (scene){.row = row};
    cs_builder *builder = cs_builder_create(N_DEVICES, row->n_rings, 1, row->iterations);
    assert_non_null(builder);
    uint32_t collectives[MOST_RINGS], producers[MOST_RINGS][MOST_RANKS];
    uint32_t consumers[MOST_RINGS][MOST_RANKS];
    for (uint32_t g = 0; g < row->n_rings; g++) {
        const ring *of = &row->rings[g];
        for (uint32_t r = 0; r < of->n; r++) {
            producers[g][r] =
                cs_builder_compute(builder, CS_BACKWARD, g, of->devices[r], CS_NONE, 10);
            consumers[g][r] =
                cs_builder_compute(builder, CS_UPDATE, g, of->devices[r], CS_NONE, 10);
        }
    }
    for (uint32_t g = 0; g < row->n_rings; g++) {
        uint32_t group = cs_builder_group(builder, row->rings[g].devices, row->rings[g].n);
        collectives[g] =
            cs_builder_collective(builder, CS_ALL_REDUCE, g, group, row->rings[g].bytes);
    }
    for (uint32_t i = 0; i < row->iterations; i++) {
        for (uint32_t g = 0; g < row->n_rings; g++)
            add_ring_run(builder, &row->rings[g], collectives[g], producers[g], consumers[g], i);
    }
    finish_lowered(row->name, builder, &on->graph);
}

static void close_scene(scene *on)
{
    cs_graph_finish(&on->graph);
}

static uint32_t rank_of(const ring *of, uint32_t device)
{
    for (uint32_t r = 0; r < of->n; r++) {
        if (of->devices[r] == device)
            return r;
    }
    fail_msg("device %" PRIu32 " is in no ring", device);
    return 0;
}

/* Chunks 0 .. bytes % n - 1 are a byte larger. */
static int64_t chunk_bytes(const ring *of, uint32_t chunk)
{
    return of->bytes / of->n + (chunk < of->bytes % of->n);
}

/* ---- counts ---- */

/* Per ring and mini-batch: 2(n - 1) sends by each of n ranks, each to the next rank. Rank r sends
 * every chunk twice, except r + 1 once (the chunk that it completes, so no further reduction is
 * needed) and r + 2 once (the next rank completed that one). */
static void expect_counts(const scene *on, uint32_t iteration, uint32_t g)
{
    const cs_graph *graph = &on->graph;
    const ring *of = &on->row->rings[g];
    uint32_t n = of->n, flows = 0;
    int64_t sent[MOST_RANKS] = {0};
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind != CS_TRANSFER || cls->stage != g ||
            cs_graph_mini_batch(graph, task) != iteration)
            continue;
        uint32_t rank = rank_of(of, cls->device);
        expect_int(on->row->name, of->devices[(rank + 1) % n], cls->peer);
        expect_int(on->row->name, CS_ALL_REDUCE, cls->origin);
        expect_int(on->row->name, CS_NONE, cls->weights);
        assert_false(cls->blocking);
        sent[rank] += cls->bytes;
        flows++;
    }
    expect_int(on->row->name, 2 * (n - 1) * n, flows);
    for (uint32_t r = 0; r < n; r++)
        expect_int(on->row->name,
                   2 * of->bytes - chunk_bytes(of, (r + 1) % n) - chunk_bytes(of, (r + 2) % n),
                   sent[r]);
}

static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scene on;
        open_scene(&on, &rows[i]);
        for (uint32_t iteration = 0; iteration < rows[i].iterations; iteration++) {
            for (uint32_t g = 0; g < rows[i].n_rings; g++)
                expect_counts(&on, iteration, g);
        }
        close_scene(&on);
    }
}

/* ---- replay ---- */

/* One rank's part in one run of a ring. Sets of ranks are bits. */
typedef struct rank_state {
    bool produced;               /* its own contribution is there */
    uint32_t chunks[MOST_RANKS]; /* who contributed, apart from itself until it adds its own */
    uint32_t sends;              /* that it started */
    uint32_t sending;            /* that have not ended */
    bool consumed;
} rank_state;

typedef struct sending {
    uint32_t step, chunk, content;
} sending;

typedef struct replay {
    const scene *scene;
    rank_state *ranks; /* [mini-batch][ring][rank] */
    sending *sends;    /* per task */
    uint32_t *waiting; /* per task: predecessors that have not ended */
    uint32_t *pool;    /* tasks that can start, then those that run */
    uint32_t n_ready, n_running;
} replay;

static rank_state *rank_at(const replay *r, uint32_t task, uint32_t device)
{
    const cs_graph *graph = &r->scene->graph;
    uint32_t g = cs_graph_class(graph, task)->stage;
    uint32_t run = cs_graph_mini_batch(graph, task) * r->scene->row->n_rings + g;
    return &r->ranks[run * MOST_RANKS + rank_of(&r->scene->row->rings[g], device)];
}

static uint32_t everyone(const ring *of)
{
    return (UINT32_C(1) << of->n) - 1;
}

/* The k-th send of rank q carries chunk q - k. Up to step n - 2 it is a sum of k + 1 contributions,
 * including the sender's own; after that it is complete. */
static void start_send(replay *r, uint32_t task)
{
    const cs_class *cls = cs_graph_class(&r->scene->graph, task);
    const ring *of = &r->scene->row->rings[cls->stage];
    const char *name = r->scene->row->name;
    rank_state *sender = rank_at(r, task, cls->device);
    uint32_t rank = rank_of(of, cls->device), step = sender->sends++;
    uint32_t chunk = (rank + 2 * of->n - step) % of->n, content = sender->chunks[chunk];
    expect_int(name, chunk_bytes(of, chunk), cls->bytes);
    if (!sender->produced)
        fail_msg("%s: task %" PRIu32 ": rank %" PRIu32 " sends before it has anything", name, task,
                 rank);
    if (step < of->n - 1) {
        if (content & (UINT32_C(1) << rank))
            fail_msg("%s: task %" PRIu32 ": rank %" PRIu32 " contributes twice", name, task, rank);
        content |= UINT32_C(1) << rank;
        expect_int(name, step + 1, __builtin_popcount(content));
    } else {
        if (step == of->n - 1)
            content |= UINT32_C(1) << rank;
        expect_int(name, everyone(of), content);
    }
    sender->chunks[chunk] = content;
    sender->sending++;
    r->sends[task] = (sending){step, chunk, content};
}

static void end_send(replay *r, uint32_t task)
{
    const cs_class *cls = cs_graph_class(&r->scene->graph, task);
    const ring *of = &r->scene->row->rings[cls->stage];
    const sending *sent = &r->sends[task];
    rank_state *receiver = rank_at(r, task, cls->peer);
    if (sent->step < of->n - 1 && receiver->chunks[sent->chunk] != 0)
        fail_msg("%s: task %" PRIu32 ": chunk %" PRIu32 " comes twice", r->scene->row->name, task,
                 sent->chunk);
    if (receiver->consumed)
        fail_msg("%s: task %" PRIu32 ": comes after the result was used", r->scene->row->name,
                 task);
    receiver->chunks[sent->chunk] = sent->content;
    rank_at(r, task, cls->device)->sending--;
}

/* A rank may use the result: all of it is there, and nothing of its own is still being sent. */
static void start_consumer(replay *r, uint32_t task)
{
    const cs_class *cls = cs_graph_class(&r->scene->graph, task);
    const ring *of = &r->scene->row->rings[cls->stage];
    rank_state *rank = rank_at(r, task, cls->device);
    uint32_t own = rank_of(of, cls->device);
    for (uint32_t chunk = 0; chunk < of->n; chunk++) {
        if (rank->chunks[chunk] != everyone(of))
            fail_msg("%s: task %" PRIu32 ": rank %" PRIu32 " holds chunk %" PRIu32
                     " from 0x%" PRIx32 ", not from all",
                     r->scene->row->name, task, own, chunk, rank->chunks[chunk]);
    }
    expect_int(r->scene->row->name, 0, rank->sending);
    expect_int(r->scene->row->name, 2 * (of->n - 1), rank->sends);
    rank->consumed = true;
}

static void start_task(replay *r, uint32_t task)
{
    const cs_class *cls = cs_graph_class(&r->scene->graph, task);
    if (cls->kind == CS_TRANSFER)
        start_send(r, task);
    else if (cls->kind == CS_UPDATE)
        start_consumer(r, task);
}

static void release(replay *r, uint32_t task)
{
    if (--r->waiting[task] > 0)
        return;
    r->pool[r->n_ready + r->n_running] = r->pool[r->n_ready];
    r->pool[r->n_ready++] = task;
}

static void end_task(replay *r, uint32_t task)
{
    const cs_graph *graph = &r->scene->graph;
    const cs_class *cls = cs_graph_class(graph, task);
    if (cls->kind == CS_TRANSFER)
        end_send(r, task);
    else if (cls->kind == CS_BACKWARD)
        rank_at(r, task, cls->device)->produced = true;
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, task, &n);
    for (uint32_t s = 0; s < n; s++)
        release(r, successors[s]);
    if (graph->tasks[task].next != CS_NONE)
        release(r, graph->tasks[task].next);
}

/* Starts something that is ready or ends something that runs, until nothing is left. */
static uint32_t run_all(replay *r, gsl_rng *random)
{
    uint32_t ended = 0;
    while (r->n_ready + r->n_running > 0) {
        uint32_t at = (uint32_t)gsl_rng_uniform_int(random, r->n_ready + r->n_running);
        uint32_t task = r->pool[at];
        if (at < r->n_ready) { /* to the front of those that run */
            r->pool[at] = r->pool[--r->n_ready];
            r->pool[r->n_ready] = task;
            r->n_running++;
            start_task(r, task);
            continue;
        }
        r->pool[at] = r->pool[r->n_ready + --r->n_running];
        end_task(r, task);
        ended++;
    }
    return ended;
}

static void replay_once(const scene *on, gsl_rng *random)
{
    const cs_graph *graph = &on->graph;
    size_t n_runs = (size_t)on->row->iterations * on->row->n_rings;
    replay r = {.scene = on,
                .ranks = calloc(n_runs * MOST_RANKS, sizeof(*r.ranks)),
                .sends = calloc(graph->n_tasks, sizeof(*r.sends)),
                .waiting = calloc(graph->n_tasks, sizeof(*r.waiting)),
                .pool = calloc(graph->n_tasks + 1, sizeof(*r.pool))};
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        r.waiting[task] += graph->n_predecessors[task];
        if (graph->tasks[task].next != CS_NONE)
            r.waiting[graph->tasks[task].next]++;
    }
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (r.waiting[task] == 0)
            r.pool[r.n_ready++] = task;
    }
    expect_int(on->row->name, graph->n_tasks, run_all(&r, random));
    free(r.ranks);
    free(r.sends);
    free(r.waiting);
    free(r.pool);
}

static void test_data(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "orders of transfers");
    assert_non_null(random);
    for (size_t i = 0; i < ROWS(rows); i++) {
        scene on;
        open_scene(&on, &rows[i]);
        for (int order = 0; order < 200; order++)
            replay_once(&on, random);
        close_scene(&on);
    }
    gsl_rng_free(random);
}

/* ---- everything else stays ---- */

/* Two devices compute, sum, and one sends to the other; with the slot of the weights. */
static cs_builder *build_rest(uint32_t *slot)
{
    cs_builder *builder = cs_builder_create(2, 3, 2, 1);
    assert_non_null(builder);
    cs_builder_queue(builder, 1, CS_QUEUE_PRIORITY);
    cs_builder_resident(builder, 1, CS_MEMORY_WEIGHTS, 70);
    *slot = cs_builder_slot(builder, 2, 1, 70);
    uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1}, 2);
    uint32_t compute[2];
    for (uint32_t d = 0; d < 2; d++) {
        compute[d] = cs_builder_compute(builder, CS_BACKWARD, 2, d, d == 1 ? *slot : CS_NONE, 10);
        cs_builder_effect(builder, CS_MEMORY_ACTIVATIONS, d, 5, false);
        cs_builder_effect(builder, CS_MEMORY_ACTIVATIONS, d, -5, true);
    }
    uint32_t all_reduce = cs_builder_collective(builder, CS_ALL_REDUCE, 1, group, 7);
    uint32_t transfer = cs_builder_transfer(builder, 0, 0, 1, 33, true);
    cs_builder_task(builder, compute[0], 1);
    cs_builder_task(builder, compute[1], 1);
    uint32_t member = cs_builder_members(builder, all_reduce, 1);
    cs_builder_task(builder, compute[0], 1);
    cs_builder_task(builder, compute[1], 1);
    cs_builder_task(builder, transfer, 1);
    for (uint32_t d = 0; d < 2; d++) {
        cs_builder_edge(builder, d, member + d);
        cs_builder_edge(builder, member + d, 4 + d);
    }
    cs_builder_edge(builder, 4, 6);
    return builder;
}

static void check_tasks(const cs_graph *lowered)
{
    static const struct {
        const char *text;
        uint32_t successors[4], n;
    } tasks[] = {
        {"B0.1 of stage 2 on device 0", {2}, 1},
        {"B0.1 of stage 2 on device 1", {3}, 1},
        {"T0.1 of stage 1 on device 0 to 1", {4, 5}, 2},
        {"T0.1 of stage 1 on device 1 to 0", {4, 5}, 2},
        {"T0.1 of stage 1 on device 0 to 1", {6, 7}, 2},
        {"T0.1 of stage 1 on device 1 to 0", {6, 7}, 2},
        {"B0.1 of stage 2 on device 0", {8}, 1},
        {"B0.1 of stage 2 on device 1", {0}, 0},
        {"T0.1 of stage 0 on device 0 to 1", {0}, 0},
    };
    expect_int("tasks", ROWS(tasks), lowered->n_tasks);
    for (uint32_t task = 0; task < ROWS(tasks); task++) {
        char text[96];
        uint32_t n;
        bool found[4] = {false};
        const uint32_t *successors = cs_graph_successors(lowered, task, &n);
        expect_text("task", tasks[task].text, cs_graph_describe(lowered, task, text, sizeof(text)));
        expect_int(text, tasks[task].n, n);
        for (uint32_t s = 0; s < n; s++) {
            for (uint32_t want = 0; want < n; want++)
                found[want] |= successors[s] == tasks[task].successors[want];
        }
        for (uint32_t want = 0; want < n; want++)
            assert_true(found[want]);
    }
}

/* Two ranks. Tasks: 0 and 1 compute, 2 and 3 are the members, 4 and 5 compute, 6 is a transfer from
 * device 0 to device 1 after task 4. Lowered: 0 and 1; sends 2 (rank 0) and 3 (rank 1) of step 0, 4
 * and 5 of step 1; then 6, 7 and the transfer 8. A send of step 1 waits for the other rank's and
 * for its own; so does what follows a member, for the last step. */
static void test_rest_of_the_graph(void **state)
{
    (void)state;
    uint32_t slot;
    cs_graph lowered;
    finish_lowered("rest", build_rest(&slot), &lowered);
    check_tasks(&lowered);
    expect_int("stages", 3, lowered.n_stages);
    expect_int("micro-batches", 2, lowered.micro_batches);
    expect_int("queue of 0", CS_QUEUE_PROGRAM, lowered.queues[0]);
    expect_int("queue of 1", CS_QUEUE_PRIORITY, lowered.queues[1]);
    expect_int("residents", 1, lowered.n_residents);
    expect_int("resident", 70, lowered.residents[0].bytes);
    expect_int("slots", 1, lowered.n_slots);
    expect_int("slot", slot, cs_graph_class(&lowered, 7)->weights);
    expect_int("effects", 4, lowered.n_effects);
    expect_int("duration", 10, cs_graph_class(&lowered, 0)->duration);
    assert_true(cs_graph_class(&lowered, 8)->blocking);
    expect_int("bytes", 33, cs_graph_class(&lowered, 8)->bytes);
    expect_int("first of device 0", 0, lowered.first_task[0]);
    expect_int("next on device 0", 6, lowered.tasks[0].next);
    cs_graph_finish(&lowered);
}

/* Members that wait for each other directly, as buckets do, and members that nothing comes before
 * or after. Replayed by the checker only: no circle, and all tasks are there. */
static void test_member_to_member(void **state)
{
    (void)state;
    cs_builder *builder = cs_builder_create(3, 1, 1, 1);
    assert_non_null(builder);
    uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1, 2}, 3);
    uint32_t all_reduce = cs_builder_collective(builder, CS_ALL_REDUCE, 0, group, 30);
    uint32_t first = cs_builder_members(builder, all_reduce, 0);
    uint32_t second = cs_builder_members(builder, all_reduce, 0);
    for (uint32_t r = 0; r < 3; r++)
        cs_builder_edge(builder, first + r, second + r);
    cs_graph lowered;
    finish_lowered("members", builder, &lowered);
    expect_int("tasks", 2 * 2 * 2 * 3, lowered.n_tasks);
    /* the first send of rank r in the second: after rank r's last send and what came to it last */
    for (uint32_t r = 0; r < 3; r++)
        expect_int("predecessors", 2, lowered.n_predecessors[12 + r]);
    cs_graph_finish(&lowered);
}

static void test_nothing_to_lower(void **state)
{
    (void)state;
    cs_builder *builder = cs_builder_create(1, 1, 1, 1);
    assert_non_null(builder);
    cs_builder_task(builder, cs_builder_compute(builder, CS_FORWARD, 0, 0, CS_NONE, 10), 0);
    cs_graph graph, lowered;
    cs_error error;
    cs_error_init(&error);
    check_status("build", cs_builder_finish(builder, &graph, &error), &error);
    cs_builder_destroy(builder);
    const cs_task *tasks = graph.tasks;
    check_status("lower", cs_lower(&graph, &lowered, &error), &error);
    assert_ptr_equal(tasks, lowered.tasks); /* moved, not copied */
    assert_null(graph.tasks);
    expect_int("tasks", 0, graph.n_tasks);
    cs_graph_finish(&graph);
    cs_graph_finish(&lowered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_rest_of_the_graph),
        cmocka_unit_test(test_member_to_member),
        cmocka_unit_test(test_nothing_to_lower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
