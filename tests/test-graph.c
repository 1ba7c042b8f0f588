/* Task graphs: results of the builder, refusals of the checker, and how cycles are shown. */
#include "sim/core/graph/builder.h"
#include "tests/expect.h"
#include "tests/random-graph.h"

#include <stdlib.h>

static void finish(cs_builder *builder, cs_graph *graph)
{
    cs_error error;
    cs_error_init(&error);
    if (cs_builder_finish(builder, graph, &error) != CS_OK)
        fail_msg("%s", error.text);
    cs_builder_destroy(builder);
}

static uint32_t add_compute(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t item)
{
    uint32_t cls = cs_builder_compute(builder, kind, stage, stage, CS_NONE, 10);
    return cs_builder_task(builder, cls, item);
}

/* Two stages on two devices, one micro-batch of two, and an all-reduce at its end:
 *
 *     F 0 -> T 1 -> F 2 -> (program) B 3 -> T 4 -> B 5 -> A 6 -> U 8
 *                                     \------------------> A 7
 * Classes have the numbers of their tasks. Effects: 0 activations, +5 at F 0; 1 buffers, +3 at T 1;
 * 2 buffers, -3 at F 2; 3 activations, -5 at B 5. */
static void make_classes(cs_builder *builder)
{
    uint32_t slot = cs_builder_slot(builder, 0, 0, 70);
    uint32_t group = cs_builder_group(builder, (const uint32_t[]){0, 1}, 2);
    cs_builder_resident(builder, 0, CS_MEMORY_WEIGHTS, 70);
    cs_builder_compute(builder, CS_FORWARD, 0, 0, slot, 10);
    cs_builder_effect(builder, CS_MEMORY_ACTIVATIONS, 0, 5, false);
    cs_builder_transfer(builder, 0, 0, 1, 3, false);
    cs_builder_effect(builder, CS_MEMORY_BUFFERS, 1, 3, false);
    cs_builder_compute(builder, CS_FORWARD, 1, 1, CS_NONE, 20);
    cs_builder_effect(builder, CS_MEMORY_BUFFERS, 1, -3, false);
    cs_builder_compute(builder, CS_BACKWARD, 1, 1, CS_NONE, 30);
    cs_builder_transfer(builder, 1, 1, 0, 3, false);
    cs_builder_compute(builder, CS_BACKWARD, 0, 0, slot, 40);
    cs_builder_effect(builder, CS_MEMORY_ACTIVATIONS, 0, -5, true);
    cs_builder_collective(builder, CS_ALL_REDUCE, 0, group, 70);
    cs_builder_compute(builder, CS_UPDATE, 0, 0, slot, 5);
}

static cs_graph make_sample(void)
{
    static const uint32_t edges[][2] = {{0, 1}, {1, 2}, {3, 4}, {4, 5}, {5, 6}, {3, 7}, {6, 8}};
    cs_builder *builder = cs_builder_create(2, 2, 2, 1);
    assert_non_null(builder);
    make_classes(builder);
    for (uint32_t cls = 0; cls < 9; cls++) {
        if (cls == 6)
            expect_int("first member", 6, cs_builder_members(builder, 6, 1));
        else if (cls != 7)
            expect_int("task", cls, cs_builder_task(builder, cls, 1));
    }
    for (size_t e = 0; e < ROWS(edges); e++)
        cs_builder_edge(builder, edges[e][0], edges[e][1]);
    cs_builder_edge(builder, CS_NONE, 3); /* adds nothing */
    cs_graph graph;
    finish(builder, &graph);
    return graph;
}

/* ---- the builder ---- */

static void expect_successors(const char *row, const cs_graph *graph, uint32_t task,
                              const uint32_t *expected, uint32_t n_expected)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, task, &n);
    expect_int(row, n_expected, n);
    for (uint32_t s = 0; s < n; s++)
        expect_int(row, expected[s], successors[s]);
}

static void test_builder(void **state)
{
    (void)state;
    cs_graph graph = make_sample();
    expect_int("tasks", 9, graph.n_tasks);
    expect_int("edges", 7, graph.n_edges);
    expect_int("classes", 9, graph.n_classes);
    expect_int("effects", 4, graph.n_effects);
    expect_int("residents", 1, graph.n_residents);
    expect_int("first of device 0", 0, graph.first_task[0]);
    expect_int("first of device 1", 2, graph.first_task[1]);
    static const uint32_t next[] = {5, CS_NONE, 3, CS_NONE, CS_NONE, 8, CS_NONE, CS_NONE, CS_NONE};
    static const uint32_t predecessors[] = {0, 1, 1, 0, 1, 1, 1, 1, 1};
    for (uint32_t task = 0; task < graph.n_tasks; task++) {
        char row[16];
        snprintf(row, sizeof(row), "task %" PRIu32, task);
        expect_int(row, task, graph.tasks[task].cls);
        expect_int(row, next[task], graph.tasks[task].next);
        expect_int(row, predecessors[task], graph.n_predecessors[task]);
        expect_int(row, 0, cs_graph_mini_batch(&graph, task));
        expect_int(row, 1, cs_graph_micro_batch(&graph, task));
    }
    expect_successors("none", &graph, 2, NULL, 0);
    expect_successors("one", &graph, 0, (const uint32_t[]){1}, 1);
    expect_successors("two", &graph, 3, (const uint32_t[]){4, 7}, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        expect_int("rank's device", rank, graph.classes[6 + rank].device);
        expect_int("rank's group", 0, graph.classes[6 + rank].peer);
        expect_int("rank's bytes", 70, graph.classes[6 + rank].bytes);
    }
    assert_int_equal(cs_graph_check(&graph, NULL), CS_OK);
    cs_graph_finish(&graph);
    cs_graph_finish(&graph); /* a finished value can be finished again */
}

/* Many successors of many tasks, in the order of the edges; one edge given twice counts twice. */
static void test_successors(void **state)
{
    (void)state;
    enum { N = 50 };
    cs_builder *builder = cs_builder_create(1, 1, 1, 1);
    assert_non_null(builder);
    cs_builder_queue(builder, 0, CS_QUEUE_PRIORITY);
    for (uint32_t i = 0; i < N; i++)
        add_compute(builder, CS_FORWARD, 0, 0);
    for (uint32_t after = N; after-- > 0;) { /* task t before all later ones, backwards */
        for (uint32_t before = 0; before < after; before++)
            cs_builder_edge(builder, before, after);
    }
    cs_builder_edge(builder, 0, 1);
    cs_graph graph;
    finish(builder, &graph);
    for (uint32_t task = 0; task < N; task++) {
        uint32_t expected[N], n = 0;
        for (uint32_t after = N; after-- > task + 1;)
            expected[n++] = after;
        if (task == 0)
            expected[n++] = 1;
        expect_successors("of many", &graph, task, expected, n);
        expect_int("predecessors", task + (task == 1), graph.n_predecessors[task]);
    }
    assert_int_equal(cs_graph_check(&graph, NULL), CS_OK);
    cs_graph_finish(&graph);
}

static void test_nothing_built(void **state)
{
    (void)state;
    cs_builder *builder = cs_builder_create(0, 0, 1, 0);
    assert_non_null(builder);
    cs_graph graph;
    finish(builder, &graph);
    assert_int_equal(cs_graph_check(&graph, NULL), CS_OK);
    cs_graph_finish(&graph);
    cs_builder_destroy(NULL);
    builder = cs_builder_create(1, 1, 1, 1); /* destroyed half-built */
    add_compute(builder, CS_FORWARD, 0, 0);
    cs_builder_destroy(builder);
}

/* Nothing is allocated by 0 bytes. */
static void test_no_bytes(void **state)
{
    (void)state;
    cs_builder *builder = cs_builder_create(1, 1, 1, 1);
    assert_non_null(builder);
    cs_builder_resident(builder, 0, CS_MEMORY_WEIGHTS, 0);
    add_compute(builder, CS_FORWARD, 0, 0);
    cs_builder_effect(builder, CS_MEMORY_WORKSPACE, 0, 0, false);
    cs_graph graph;
    finish(builder, &graph);
    expect_int("residents", 0, graph.n_residents);
    expect_int("effects", 0, graph.n_effects);
    expect_int("of the class", 0, graph.classes[0].n_effects);
    cs_graph_finish(&graph);
}

static void test_print(void **state)
{
    (void)state;
    static const char expected[] =
        "9 tasks, 7 edges, 2 devices\n"
        "0: F0.1 of stage 0 on device 0, 10 ps, 0 bytes, start +5 of activations on 0 -> 1\n"
        "1: T0.1 of stage 0 on device 0 to 1, 0 ps, 3 bytes, start +3 of communication_buffers on 1"
        " -> 2\n"
        "2: F0.1 of stage 1 on device 1, 20 ps, 0 bytes, start -3 of communication_buffers on 1\n"
        "3: B0.1 of stage 1 on device 1, 30 ps, 0 bytes -> 4 -> 7\n"
        "4: T0.1 of stage 1 on device 1 to 0, 0 ps, 3 bytes -> 5\n"
        "5: B0.1 of stage 0 on device 0, 40 ps, 0 bytes, end -5 of activations on 0 -> 6\n"
        "6: A0.1 of stage 0 on device 0, 0 ps, 70 bytes -> 8\n"
        "7: A0.1 of stage 0 on device 1, 0 ps, 70 bytes\n"
        "8: U0.1 of stage 0 on device 0, 5 ps, 0 bytes\n";
    cs_graph graph = make_sample();
    FILE *out = tmpfile();
    char text[2 * sizeof(expected)] = "";
    assert_non_null(out);
    assert_true(cs_graph_print(&graph, out));
    rewind(out);
    text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
    expect_text("print", expected, text);
    fclose(out);
    cs_graph_finish(&graph);
}

static void test_describe_cuts_off(void **state)
{
    (void)state;
    static const char whole[] = "T0.1 of stage 0 on device 0 to 1";
    cs_graph graph = make_sample();
    for (size_t size = 1; size <= sizeof(whole); size++) {
        char text[sizeof(whole) + 1], expected[sizeof(whole)];
        memset(text, '#', sizeof(text));
        snprintf(expected, size, "%s", whole);
        expect_text("cut off", expected, cs_graph_describe(&graph, 1, text, size));
        expect_int("after the end", '#', text[size]);
    }
    cs_graph_finish(&graph);
}

/* ---- what the checker refuses ---- */

#define RANGE(cls) "task class " cls ": a number is out of range"
#define MEMBERS(task)                                                                              \
    "task " task                                                                                   \
    ": the members of a collective must be alike and follow each other in order of rank"

/* `break_it` is what is wrong with the sample; the rest is right. */
#define BREAK(name, statement)                                                                     \
    static void break_##name(cs_graph *graph)                                                      \
    {                                                                                              \
        statement;                                                                                 \
    }

BREAK(kind, graph->classes[2].kind = CS_N_KINDS)
BREAK(origin, graph->classes[1].origin = CS_N_KINDS)
BREAK(device, graph->classes[0].device = 2)
BREAK(no_device, graph->classes[3].device = CS_NONE)
BREAK(receiver, graph->classes[1].peer = 2)
BREAK(no_receiver, graph->classes[4].peer = CS_NONE)
BREAK(no_group, graph->classes[7].peer = 1)
BREAK(stage, graph->classes[5].stage = 2)
BREAK(duration, graph->classes[8].duration = -1)
BREAK(bytes, graph->classes[1].bytes = -1)
BREAK(slot, graph->classes[0].weights = 1)
BREAK(first_effect, graph->classes[8].first_effect = 5)
BREAK(n_effects, graph->classes[5].n_effects = 2)
BREAK(many_effects, graph->classes[0].n_effects = UINT16_MAX + 1)
BREAK(blocking, graph->classes[0].blocking = true)
BREAK(cls, graph->tasks[3].cls = 9)
BREAK(item, graph->tasks[8].item = 2)
BREAK(successor, graph->tasks[0].successor = 9)
BREAK(listed, graph->listed[2] = 9)
BREAK(resident_device, graph->residents[0].device = 2)
BREAK(resident_category, graph->residents[0].category = CS_N_CATEGORIES)
BREAK(resident_bytes, graph->residents[0].bytes = -1)
BREAK(slot_device, graph->slots[0].device = 2)
BREAK(slot_stage, graph->slots[0].stage = 2)
BREAK(slot_bytes, graph->slots[0].bytes = -1)
BREAK(effect_device, graph->effects[1].device = 2)
BREAK(effect_category, graph->effects[3].category = CS_N_CATEGORIES)
BREAK(balance, graph->effects[3].bytes = -4)
BREAK(negative_balance, graph->effects[2].bytes = -9)
BREAK(category_balance, graph->effects[3].category = CS_MEMORY_WORKSPACE)
BREAK(device_balance, graph->effects[3].device = 1)
BREAK(total, graph->residents[0].bytes = INT64_MAX - 4)
BREAK(group_first, graph->groups[0].first = 3)
BREAK(group_n, graph->groups[0].n = 3)
BREAK(group_device, graph->group_devices[1] = 2)
BREAK(rank_order, graph->tasks[6].cls = 7; graph->tasks[7].cls = 6)
BREAK(twice_a_rank, graph->tasks[7].cls = 6)
BREAK(half_a_collective, graph->tasks[7].cls = 4)
BREAK(cut_off, graph->tasks[8].cls = 6)
BREAK(lone, graph->groups[0].n = 1)
BREAK(nobody, graph->groups[0].n = 0)
BREAK(other_item, graph->tasks[7].item = 0)
BREAK(other_bytes, graph->classes[7].bytes = 69)

static const struct {
    const char *name;
    void (*break_it)(cs_graph *graph);
    cs_status status;
    const char *message;
} refused[] = {
    {"kind", break_kind, CS_INVALID, "task class 2: unknown kind 17"},
    {"origin", break_origin, CS_INVALID, RANGE("1 (transfer, stage 0, device 0)")},
    {"device", break_device, CS_INVALID, RANGE("0 (forward, stage 0, device 2)")},
    {"no device", break_no_device, CS_INVALID, RANGE("3 (backward, stage 1, device 4294967295)")},
    {"receiver", break_receiver, CS_INVALID, RANGE("1 (transfer, stage 0, device 0)")},
    {"no receiver", break_no_receiver, CS_INVALID, RANGE("4 (transfer, stage 1, device 1)")},
    {"no group", break_no_group, CS_INVALID, RANGE("7 (all_reduce, stage 0, device 1)")},
    {"stage", break_stage, CS_INVALID, RANGE("5 (backward, stage 2, device 0)")},
    {"duration", break_duration, CS_INVALID, RANGE("8 (update, stage 0, device 0)")},
    {"bytes", break_bytes, CS_INVALID, RANGE("1 (transfer, stage 0, device 0)")},
    {"slot", break_slot, CS_INVALID, RANGE("0 (forward, stage 0, device 0)")},
    {"first effect", break_first_effect, CS_INVALID, RANGE("8 (update, stage 0, device 0)")},
    {"effects", break_n_effects, CS_INVALID, RANGE("5 (backward, stage 0, device 0)")},
    {"many effects", break_many_effects, CS_INVALID, RANGE("0 (forward, stage 0, device 0)")},
    {"blocking compute", break_blocking, CS_INVALID, RANGE("0 (forward, stage 0, device 0)")},
    {"class of a task", break_cls, CS_INVALID, "task 3: class or micro-batch out of range"},
    {"item", break_item, CS_INVALID, "task 8: class or micro-batch out of range"},
    {"successor", break_successor, CS_INVALID, "an edge leads from task 0 to task 9, there are 9"},
    {"one of several successors", break_listed, CS_INVALID,
     "an edge leads from task 3 to task 9, there are 9"},
    {"resident's device", break_resident_device, CS_INVALID,
     "resident bytes 0: device, category or size out of range"},
    {"resident's category", break_resident_category, CS_INVALID,
     "resident bytes 0: device, category or size out of range"},
    {"resident's bytes", break_resident_bytes, CS_INVALID,
     "resident bytes 0: device, category or size out of range"},
    {"slot's device", break_slot_device, CS_INVALID,
     "weights slot 0: device, stage or size out of range"},
    {"slot's stage", break_slot_stage, CS_INVALID,
     "weights slot 0: device, stage or size out of range"},
    {"slot's bytes", break_slot_bytes, CS_INVALID,
     "weights slot 0: device, stage or size out of range"},
    {"effect's device", break_effect_device, CS_INVALID,
     "memory effect 1: device or category unknown"},
    {"effect's category", break_effect_category, CS_INVALID,
     "memory effect 3: device or category unknown"},
    {"frees too little", break_balance, CS_INVALID,
     "device 0: 1 bytes of activations remain after the last task"},
    {"frees too much", break_negative_balance, CS_INVALID,
     "device 1: -6 bytes of communication_buffers remain after the last task"},
    {"frees another category", break_category_balance, CS_INVALID,
     "device 0: 5 bytes of activations remain after the last task"},
    {"frees on another device", break_device_balance, CS_INVALID,
     "device 0: 5 bytes of activations remain after the last task"},
    {"too many bytes", break_total, CS_OVERFLOW, "device 0: more than 2^63 bytes"},
    {"group's first", break_group_first, CS_INVALID, "group 0: a device is out of range"},
    {"group's number", break_group_n, CS_INVALID, "group 0: a device is out of range"},
    {"group's device", break_group_device, CS_INVALID, "group 0: a device is out of range"},
    {"ranks out of order", break_rank_order, CS_INVALID, MEMBERS("6")},
    {"a rank twice", break_twice_a_rank, CS_INVALID, MEMBERS("7")},
    {"something in between", break_half_a_collective, CS_INVALID, MEMBERS("7")},
    {"cut off at the end", break_cut_off, CS_INVALID, MEMBERS("9")},
    {"a group of one", break_lone, CS_INVALID,
     "task 6: a collective needs 2 members at least (got 1)"},
    {"a group of none", break_nobody, CS_INVALID,
     "task 6: a collective needs 2 members at least (got 0)"},
    {"members of two micro-batches", break_other_item, CS_INVALID, MEMBERS("7")},
    {"members of two sizes", break_other_bytes, CS_INVALID, MEMBERS("7")},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(refused); r++) {
        cs_graph graph = make_sample();
        cs_error error;
        cs_error_init(&error);
        refused[r].break_it(&graph);
        cs_status status = cs_graph_check(&graph, &error);
        expect_error(refused[r].name, refused[r].status, refused[r].message, status, &error);
        cs_graph_finish(&graph);
    }
}

/* The largest total that fits, together with 5 bytes of activations. */
static void test_largest_total(void **state)
{
    (void)state;
    cs_graph graph = make_sample();
    graph.residents[0].bytes = INT64_MAX - 5;
    assert_int_equal(cs_graph_check(&graph, NULL), CS_OK);
    cs_graph_finish(&graph);
}

/* Frees that wrap around 64 bits: 4 times 2^62 is 0 again, and would balance. */
static void test_frees_too_much(void **state)
{
    (void)state;
    cs_builder *builder = cs_builder_create(1, 1, 1, 1);
    assert_non_null(builder);
    uint32_t cls = cs_builder_compute(builder, CS_FORWARD, 0, 0, CS_NONE, 1);
    cs_builder_effect(builder, CS_MEMORY_WORKSPACE, 0, -(INT64_C(1) << 62), false);
    for (int i = 0; i < 4; i++)
        cs_builder_task(builder, cls, 0);
    cs_graph graph;
    cs_error error;
    cs_error_init(&error);
    finish(builder, &graph);
    cs_status status = cs_graph_check(&graph, &error);
    expect_error("frees too much", CS_OVERFLOW, "device 0: frees more than 2^63 bytes", status,
                 &error);
    cs_graph_finish(&graph);
}

/* ---- circles ---- */

enum { MOST_TASKS = 64, SHOWN = 12 };

/* Task t computes stage and micro-batch t, so that every description says which task it is. */
typedef struct circle_row {
    const char *name;
    uint32_t n_tasks, n_devices;
    uint32_t devices[MOST_TASKS];
    uint32_t n_edges;
    uint32_t edges[MOST_TASKS][2];
    uint32_t length; /* length of the circle */
} circle_row;

static cs_graph make_circle(const circle_row *row)
{
    cs_builder *builder = cs_builder_create(row->n_devices, row->n_tasks, row->n_tasks, 1);
    assert_non_null(builder);
    for (uint32_t task = 0; task < row->n_tasks; task++) {
        uint32_t cls =
            cs_builder_compute(builder, CS_FORWARD, task, row->devices[task], CS_NONE, 10);
        cs_builder_task(builder, cls, task);
    }
    for (uint32_t e = 0; e < row->n_edges; e++)
        cs_builder_edge(builder, row->edges[e][0], row->edges[e][1]);
    cs_graph graph;
    finish(builder, &graph);
    return graph;
}

static bool leads_to(const cs_graph *graph, uint32_t before, uint32_t after)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, before, &n);
    bool found = graph->tasks[before].next == after;
    for (uint32_t s = 0; s < n; s++)
        found |= successors[s] == after;
    return found;
}

/* Reads the message back: the right number of tasks, each waiting for the previous task, and the
 * first one again at the end. Tasks that are left out ("...") are not checked. */
static void expect_circle(const circle_row *row, const cs_graph *graph, char *message)
{
    char head[96];
    snprintf(head, sizeof(head),
             "deadlock: %" PRIu32 " tasks wait for each other in a circle: ", row->length);
    if (strncmp(message, head, strlen(head)) != 0)
        fail_msg("%s:\nexpected: %s...\n     got: %s", row->name, head, message);
    uint32_t first = CS_NONE, before = CS_NONE, last = CS_NONE, shown = 0, gaps = 0;
    for (char *at = message + strlen(head), *end; at; at = end ? end + 4 : NULL) {
        end = strstr(at, " -> ");
        if (end)
            *end = '\0';
        if (strcmp(at, "...") == 0) {
            before = CS_NONE;
            gaps++;
            continue;
        }
        unsigned int micro, stage, device;
        if (sscanf(at, "F0.%u of stage %u on device %u", &micro, &stage, &device) != 3 ||
            micro != stage || device != row->devices[micro])
            fail_msg("%s: \"%s\" is not a task", row->name, at);
        if (before != CS_NONE && !leads_to(graph, before, micro))
            fail_msg("%s: task %u does not wait for task %" PRIu32, row->name, micro, before);
        first = first == CS_NONE ? micro : first;
        before = last = micro;
        shown++;
    }
    expect_int(row->name, first, last);
    expect_int(row->name, (row->length < SHOWN ? row->length : SHOWN) + 1, shown);
    expect_int(row->name, row->length > SHOWN, gaps);
}

/* Each device runs its tasks in the order of ids. */
static const circle_row circles[] = {
    {"a task and itself", 1, 1, {0}, 1, {{0, 0}}, 1},
    {"two tasks", 2, 2, {0, 1}, 2, {{0, 1}, {1, 0}}, 2},
    {"against the program", 2, 1, {0, 0}, 1, {{1, 0}}, 2},
    {"far against the program", 4, 1, {0, 0, 0, 0}, 1, {{3, 0}}, 4},
    {"two programs", 4, 2, {0, 0, 1, 1}, 2, {{1, 2}, {3, 0}}, 4},
    {"with something before and behind",
     6,
     6,
     {0, 1, 2, 3, 4, 5},
     6,
     {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 5}},
     3},
    {"the first task after it", 3, 3, {0, 1, 2}, 3, {{1, 2}, {2, 1}, {2, 0}}, 2},
    {"as many as are shown", 12, 1, {0}, 1, {{11, 0}}, 12},
    {"one more than are shown", 13, 1, {0}, 1, {{12, 0}}, 13},
    {"many more than are shown", 64, 1, {0}, 1, {{63, 0}}, 64},
};

static void test_circles(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(circles); r++) {
        cs_graph graph = make_circle(&circles[r]);
        cs_error error;
        cs_error_init(&error);
        cs_status status = cs_graph_check(&graph, &error);
        expect_int(circles[r].name, CS_INVALID, status);
        expect_circle(&circles[r], &graph, error.text);
        cs_graph_finish(&graph);
    }
}

/* ---- order ---- */

static void expect_order(const char *row, const cs_graph *graph)
{
    uint32_t n = graph->n_tasks;
    uint32_t *rank = calloc(4 * (size_t)n + 1, sizeof(*rank));
    uint32_t *waiting = rank + n, *stack = rank + 2 * (size_t)n, *seen = rank + 3 * (size_t)n;
    assert_non_null(rank);
    expect_int(row, n, cs_graph_order(graph, rank, waiting, stack));
    for (uint32_t task = 0; task < n; task++) {
        uint32_t n_successors;
        const uint32_t *successors = cs_graph_successors(graph, task, &n_successors);
        uint32_t device = cs_graph_class(graph, task)->device, next = graph->tasks[task].next;
        assert_true(rank[task] < n);
        expect_int(row, 0, seen[rank[task]]++); /* each once */
        for (uint32_t s = 0; s < n_successors; s++)
            assert_true(rank[task] < rank[successors[s]]);
        if (next != CS_NONE && graph->queues[device] == CS_QUEUE_PROGRAM)
            assert_true(rank[task] < rank[next]);
    }
    free(rank);
}

static void test_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        char row[32];
        random_case given;
        snprintf(row, sizeof(row), "seed %" PRIu64, seed);
        assert_int_equal(random_case_init(&given, seed, NULL), CS_OK);
        expect_order(row, &given.graph);
        random_case_finish(&given);
    }
}

/* In 0 -> 1 -> (2 <-> 3) -> 4, with 5 alone, only the tasks 0, 1 and 5 have a place. */
static void test_order_with_a_circle(void **state)
{
    (void)state;
    static const circle_row row = {"a circle in the middle",
                                   6,
                                   6,
                                   {0, 1, 2, 3, 4, 5},
                                   5,
                                   {{0, 1}, {1, 2}, {2, 3}, {3, 2}, {3, 4}},
                                   2};
    cs_graph graph = make_circle(&row);
    uint32_t rank[6], waiting[6], stack[6];
    expect_int(row.name, 3, cs_graph_order(&graph, rank, waiting, stack));
    static const bool placed[] = {true, true, false, false, false, true};
    for (uint32_t task = 0; task < 6; task++)
        expect_int(row.name, placed[task], rank[task] != CS_NONE);
    assert_true(rank[0] < rank[1]);
    cs_graph_finish(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builder),        cmocka_unit_test(test_successors),
        cmocka_unit_test(test_nothing_built),  cmocka_unit_test(test_no_bytes),
        cmocka_unit_test(test_print),          cmocka_unit_test(test_describe_cuts_off),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_largest_total),
        cmocka_unit_test(test_frees_too_much), cmocka_unit_test(test_circles),
        cmocka_unit_test(test_order),          cmocka_unit_test(test_order_with_a_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
