/* Use of time: small cases by hand, and random runs against an attribution that examines every
 * interval between two events. */
#include "sim/core/analysis/analysis.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"
#include "tests/random-graph.h"
#include "topologies/topology.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- random runs ---- */

typedef struct scene {
    const char *row;
    const cs_graph *graph;
    const cs_trace *trace;
    const cs_analysis *analysis;
    uint32_t *rank; /* per task, of cs_graph_order: which of those that took no time came first */
    cs_wait *waits;
} scene;

static scene open_scene(const char *row, const cs_graph *graph, const cs_trace *trace,
                        const cs_analysis *analysis)
{
    size_t n = (size_t)graph->n_tasks + 1;
    scene on = {row,
                graph,
                trace,
                analysis,
                calloc(3 * n, sizeof(*on.rank)),
                calloc(analysis->waits.n + 1, sizeof(*on.waits))};
    cs_wait_reader reader = {.of = &analysis->waits};
    uint64_t read = 0;
    assert_non_null(on.rank);
    assert_non_null(on.waits);
    while (cs_wait_next(&reader, &on.waits[read]))
        read++;
    expect_int(row, (int64_t)analysis->waits.n, (int64_t)read);
    cs_graph_order(graph, on.rank, on.rank + n, on.rank + 2 * n);
    return on;
}

static bool ran(const scene *on, uint32_t task)
{
    return on->trace->spans[task].start >= 0;
}

static bool is_compute(const scene *on, uint32_t task)
{
    return cs_kind_group_of(cs_graph_class(on->graph, task)->kind) == CS_GROUP_COMPUTE;
}

static bool occupies(const scene *on, uint32_t task, uint32_t device)
{
    const cs_class *cls = cs_graph_class(on->graph, task);
    if (is_compute(on, task))
        return cls->device == device;
    return cls->blocking && (cls->device == device || cls->peer == device);
}

static bool is_edge(const cs_graph *graph, uint32_t before, uint32_t after)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, before, &n);
    for (uint32_t s = 0; s < n; s++) {
        if (successors[s] == after)
            return true;
    }
    return false;
}

/* The predecessor that ended last, with the lowest id if equal. */
static uint32_t latest_before(const scene *on, uint32_t task)
{
    uint32_t latest = CS_NONE;
    for (uint32_t before = 0; before < on->graph->n_tasks; before++) {
        if (is_edge(on->graph, before, task) &&
            (latest == CS_NONE || on->trace->spans[before].end > on->trace->spans[latest].end))
            latest = before;
    }
    return latest;
}

/* When all compute of mini-batches 0 .. batch had ended. */
static cs_time batches_end(const scene *on, uint32_t batch)
{
    cs_time end = 0;
    for (uint32_t task = 0; task < on->graph->n_tasks; task++) {
        if (ran(on, task) && is_compute(on, task) &&
            cs_graph_mini_batch(on->graph, task) <= batch && on->trace->spans[task].end > end)
            end = on->trace->spans[task].end;
    }
    return end;
}

/* No work (updates apart) of a mini-batch after `batch` started before all work up to it ended. */
static bool is_flushed(const scene *on, uint32_t batch)
{
    cs_time end = 0, start = CS_TIME_MAX;
    for (uint32_t task = 0; task < on->graph->n_tasks; task++) {
        cs_span span = on->trace->spans[task];
        if (!ran(on, task) || !is_compute(on, task) ||
            cs_graph_class(on->graph, task)->kind == CS_UPDATE)
            continue;
        if (cs_graph_mini_batch(on->graph, task) <= batch)
            end = span.end > end ? span.end : end;
        else
            start = span.start < start ? span.start : start;
    }
    return end <= start;
}

/* The part of the device's use that the picosecond from `now` on belongs to. */
typedef struct instant {
    const scene *on;
    uint32_t device;
    cs_time now;
    uint32_t running;       /* occupies the device, or CS_NONE */
    uint32_t before, after; /* occupied it last, and next, or CS_NONE */
    uint32_t transfer;      /* that it is blocked by or waits for, or CS_NONE */
} instant;

/* Whether `a` occupies a device before `b`: by time; tasks without duration first. */
static bool is_earlier(const scene *on, uint32_t a, uint32_t b)
{
    cs_span left = on->trace->spans[a], right = on->trace->spans[b];
    if (left.start != right.start)
        return left.start < right.start;
    return left.end != right.end ? left.end < right.end : on->rank[a] < on->rank[b];
}

static void look_around(instant *at)
{
    const scene *on = at->on;
    at->running = at->before = at->after = CS_NONE;
    for (uint32_t task = 0; task < on->graph->n_tasks; task++) {
        cs_span span = on->trace->spans[task];
        if (!ran(on, task) || !occupies(on, task, at->device))
            continue;
        if (span.start <= at->now && at->now < span.end)
            at->running = task;
        else if (span.end <= at->now &&
                 (at->before == CS_NONE || !is_earlier(on, task, at->before)))
            at->before = task;
        else if (span.start > at->now && (at->after == CS_NONE || is_earlier(on, task, at->after)))
            at->after = task;
    }
}

static bool is_for_stages(const scene *on, uint32_t task)
{
    return cs_graph_class(on->graph, task)->purpose == CS_PURPOSE_STAGES;
}

/* The category of the device's waiting at this instant, given the cause that follows `task`: a
 * message, or else whatever a stage does before it sends to another stage. */
static cs_time *waiting_for(instant *at, uint32_t task, cs_time_use *use)
{
    const scene *on = at->on;
    uint32_t later = CS_NONE;
    while (task != CS_NONE && cs_graph_class(on->graph, task)->kind == CS_TRANSFER) {
        cs_span span = on->trace->spans[task];
        if (later != CS_NONE && is_for_stages(on, later) && !is_for_stages(on, task))
            break;
        later = task;
        if (at->now >= span.end)
            break; /* it is there, and the device does not start */
        if (at->now >= span.start) {
            at->transfer = task;
            return &use->communication;
        }
        task = latest_before(on, task);
    }
    return &use->dependency;
}

/* Returns the one with the lowest id if several ended last. */
static uint32_t ended_last(const scene *on)
{
    uint32_t last = CS_NONE;
    for (uint32_t task = on->graph->n_tasks; task-- > 0;)
        if (ran(on, task) && on->trace->spans[task].end == on->trace->makespan)
            last = task;
    return last;
}

static cs_time *part_of(instant *at, cs_time_use *use)
{
    const scene *on = at->on;
    at->transfer = CS_NONE;
    if (at->running != CS_NONE && is_compute(on, at->running))
        return &use->compute[cs_graph_class(on->graph, at->running)->kind];
    if (at->running != CS_NONE) {
        at->transfer = at->running;
        return &use->communication;
    }
    if (at->after == CS_NONE &&
        (on->trace->stopped || at->now < batches_end(on, on->graph->n_batches - 1)))
        return &use->flush;
    if (at->after == CS_NONE)
        return waiting_for(at, ended_last(on), use);
    uint32_t batch = cs_graph_mini_batch(on->graph, at->after);
    if (at->before != CS_NONE && cs_graph_mini_batch(on->graph, at->before) < batch &&
        is_flushed(on, batch - 1) && at->now < batches_end(on, batch - 1))
        return &use->flush;
    return waiting_for(at, latest_before(on, at->after), use);
}

static int compare_times(const void *left, const void *right)
{
    const cs_time *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static bool is_of_collective(const scene *on, uint32_t task)
{
    return cs_graph_class(on->graph, task)->origin != CS_TRANSFER;
}

/* For a collective that is one delay. */
static bool is_rank(const cs_graph *graph, const cs_class *cls, uint32_t device)
{
    const cs_group *group = &graph->groups[cls->ranks - 1];
    bool found = false;
    for (uint32_t i = 0; i < group->n; i++)
        found |= graph->group_devices[group->first + i] == device;
    return found;
}

/* Returns how often an instant counts as communication for a purpose: once if messages are in
 * flight, and once for each collective that is a delay. Over all purposes, messages count once. */
static int count_active(const instant *at, int counts[CS_N_PURPOSES])
{
    bool messages[CS_N_PURPOSES] = {false}, any = false;
    int all = 0;
    for (uint32_t task = 0; task < at->on->graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(at->on->graph, task);
        const cs_span span = at->on->trace->spans[task];
        if (cls->kind != CS_TRANSFER || !ran(at->on, task) || span.start > at->now ||
            at->now >= span.end)
            continue;
        if (cls->ranks > 0) {
            const int times = is_rank(at->on->graph, cls, at->device);
            counts[cls->purpose] += times;
            all += times;
        } else if (cls->device == at->device || cls->peer == at->device) {
            messages[cls->purpose] = any = true;
        }
    }
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
        counts[p] += messages[p];
    return all + any;
}

/* Returns the cause that the list gives for [now, now + time), from the one interval that contains
 * it. */
static int listed_cause(const instant *at, cs_time time)
{
    int cause = -1;
    for (uint64_t i = 0; i < at->on->analysis->waits.n; i++) {
        const cs_wait *w = &at->on->waits[i];
        if (w->device != at->device || w->end <= at->now || w->start >= at->now + time)
            continue;
        if (cause >= 0 || w->start > at->now || w->end < at->now + time)
            fail_msg("%s: stretches of device %" PRIu32 " overlap at %" PRId64, at->on->row,
                     at->device, at->now);
        cause = (int)w->cause;
    }
    return cause;
}

static void add_instant(instant *at, cs_time time, cs_time_use *use)
{
    look_around(at);
    cs_time *part = part_of(at, use);
    *part += time;
    const bool collective = at->transfer != CS_NONE && is_of_collective(at->on, at->transfer);
    expect_int(at->on->row,
               part == &use->communication ? (collective ? CS_WAIT_COLLECTIVES : CS_WAIT_MESSAGES)
               : part == &use->dependency  ? CS_WAIT_DEPENDENCY
               : part == &use->flush       ? CS_WAIT_FLUSH
                                           : -1,
               listed_cause(at, time));
    if (at->transfer != CS_NONE && is_of_collective(at->on, at->transfer))
        use->collectives += time;
    int counts[CS_N_PURPOSES] = {0};
    const cs_time active = count_active(at, counts) * time;
    use->active += active;
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
        use->active_for[p] += counts[p] * time;
    use->hidden += at->running != CS_NONE && is_compute(at->on, at->running) ? active : 0;
}

/* Between two neighbouring starts or ends of any tasks nothing changes. */
static cs_time_use slow_use(const scene *on, uint32_t device)
{
    cs_time_use use = {{0}};
    uint32_t n = 0, n_tasks = on->graph->n_tasks;
    cs_time *times = calloc(2 * (size_t)n_tasks + 2, sizeof(*times));
    assert_non_null(times);
    times[n++] = 0;
    times[n++] = on->trace->makespan;
    for (uint32_t task = 0; task < n_tasks; task++) {
        if (ran(on, task)) {
            times[n++] = on->trace->spans[task].start;
            times[n++] = on->trace->spans[task].end;
        }
    }
    qsort(times, n, sizeof(*times), compare_times);
    for (uint32_t i = 0; i + 1 < n; i++) {
        instant at = {.on = on, .device = device, .now = times[i]};
        if (times[i] < times[i + 1])
            add_instant(&at, times[i + 1] - times[i], &use);
    }
    free(times);
    return use;
}

/* All parts of a use, in order, for comparing and summing. */
enum { N_PARTS = CS_N_KINDS + 3 };

static void list_parts(const cs_time_use *use, cs_time parts[N_PARTS])
{
    memcpy(parts, use->compute, sizeof(use->compute));
    parts[CS_N_KINDS] = use->communication;
    parts[CS_N_KINDS + 1] = use->dependency;
    parts[CS_N_KINDS + 2] = use->flush;
}

static cs_time sum_of(const cs_time_use *use)
{
    cs_time parts[N_PARTS], sum = 0;
    list_parts(use, parts);
    for (uint32_t i = 0; i < N_PARTS; i++)
        sum += parts[i];
    return sum;
}

static void expect_use(const char *row, uint32_t device, const cs_time_use *expected,
                       const cs_time_use *got)
{
    static const char *const names[] = {"communication", "dependency", "flush"};
    cs_time want[N_PARTS], have[N_PARTS];
    list_parts(expected, want);
    list_parts(got, have);
    for (uint32_t i = 0; i < N_PARTS; i++) {
        if (want[i] != have[i])
            fail_msg("%s: device %" PRIu32 ", %s: expected %" PRId64 ", got %" PRId64, row, device,
                     i < CS_N_KINDS ? cs_kind_name(i) : names[i - CS_N_KINDS], want[i], have[i]);
    }
}

static void expect_overlap(const char *row, uint32_t device, const cs_time_use *expected,
                           const cs_time_use *got)
{
    const struct {
        const char *name;
        cs_time expected, got;
    } rows[] = {{"collectives", expected->collectives, got->collectives},
                {"active", expected->active, got->active},
                {"hidden", expected->hidden, got->hidden}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].expected != rows[i].got)
            fail_msg("%s: device %" PRIu32 ", %s: expected %" PRId64 ", got %" PRId64, row, device,
                     rows[i].name, rows[i].expected, rows[i].got);
    }
}

static void expect_purposes(const char *row, uint32_t device, const cs_time_use *expected,
                            const cs_time_use *got)
{
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
        if (expected->active_for[p] != got->active_for[p])
            fail_msg("%s: device %" PRIu32 ", for %s: expected %" PRId64 ", got %" PRId64, row,
                     device, cs_purpose_name(p), expected->active_for[p], got->active_for[p]);
}

static void expect_devices(const scene *on)
{
    cs_time idle = 0, all = on->trace->makespan * on->graph->n_devices;
    cs_time exposed = 0, pipeline = 0, flush = 0;
    for (uint32_t device = 0; device < on->graph->n_devices; device++) {
        const cs_time_use *use = &on->analysis->devices[device];
        cs_time parts[N_PARTS];
        list_parts(use, parts);
        for (uint32_t i = 0; i < N_PARTS; i++)
            assert_true(parts[i] >= 0);
        expect_int(on->row, on->trace->makespan, sum_of(use));
        cs_time_use slow = slow_use(on, device);
        expect_use(on->row, device, &slow, use);
        expect_overlap(on->row, device, &slow, use);
        expect_purposes(on->row, device, &slow, use);
        for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
            idle -= use->compute[kind];
        idle += on->trace->makespan;
        exposed += slow.communication;
        pipeline += slow.dependency + slow.flush;
        flush += slow.flush;
    }
    const double whole = all > 0 ? (double)all : 1;
    expect_int(on->row, idle, exposed + pipeline);
    expect_double(on->row, (double)idle / whole, on->analysis->bubble_fraction);
    expect_double(on->row, (double)exposed / whole, on->analysis->exposed_communication_fraction);
    expect_double(on->row, (double)pipeline / whole, on->analysis->pipeline_bubble_fraction);
    expect_double(on->row, (double)flush / whole, on->analysis->flush_fraction);
}

/* A step follows from the previous one: by an edge, or on one device. */
static bool follows(const scene *on, uint32_t before, uint32_t after)
{
    if (is_edge(on->graph, before, after))
        return true;
    for (uint32_t device = 0; device < on->graph->n_devices; device++) {
        if (occupies(on, before, device) && occupies(on, after, device))
            return true;
    }
    return false;
}

static void expect_path(const scene *on)
{
    cs_time now = 0;
    uint32_t before = CS_NONE;
    cs_time_use sums = {{0}};
    for (uint32_t i = 0; i < on->analysis->n_steps; i++) {
        const cs_path_step *step = &on->analysis->steps[i];
        expect_int(on->row, now, step->start);
        assert_true(step->end >= step->start);
        now = step->end;
        if (step->task == CS_NONE) {
            sums.dependency += step->end - step->start;
            continue;
        }
        assert_true(step->task < on->graph->n_tasks);
        expect_int(on->row, on->trace->spans[step->task].start, step->start);
        expect_int(on->row, on->trace->spans[step->task].end, step->end);
        if (before != CS_NONE && !follows(on, before, step->task))
            fail_msg("%s: task %" PRIu32 " does not follow task %" PRIu32, on->row, step->task,
                     before);
        if (is_compute(on, step->task))
            sums.compute[cs_graph_class(on->graph, step->task)->kind] += step->end - step->start;
        else
            sums.communication += step->end - step->start;
        if (!is_compute(on, step->task) && is_of_collective(on, step->task))
            sums.collectives += step->end - step->start;
        before = step->task;
    }
    expect_int(on->row, on->trace->makespan, now);
    expect_int(on->row, on->trace->makespan, sum_of(&on->analysis->path));
    expect_use(on->row, CS_NONE, &sums, &on->analysis->path);
    expect_int(on->row, sums.collectives, on->analysis->path.collectives);
}

/* The mean time between ends of mini-batches, in s; for a single one the whole run, since
 * everything after its computations is done for each mini-batch. */
static void expect_rates(const scene *on)
{
    uint32_t n = on->graph->n_batches;
    double seconds = 0;
    const bool one = n == 1 && !on->trace->stopped;
    expect_int(on->row, one ? on->trace->makespan - batches_end(on, 0) : 0, on->analysis->behind);
    if (!on->trace->stopped)
        seconds = n == 1 ? cs_time_seconds(on->trace->makespan)
                         : cs_time_seconds(batches_end(on, n - 1) - batches_end(on, 0)) / (n - 1);
    expect_double(on->row, seconds, on->analysis->iteration_time);
    expect_double(on->row, seconds > 0 ? 7 / seconds : 0, on->analysis->throughput);
}

/* All that must hold of any run. */
static void expect_sound(const char *row, const cs_graph *graph, const cs_trace *trace,
                         const cs_analysis *analysis)
{
    scene on = open_scene(row, graph, trace, analysis);
    expect_int(row, trace->makespan, analysis->makespan);
    expect_int(row, graph->n_devices, analysis->n_devices);
    expect_devices(&on);
    expect_path(&on);
    expect_rates(&on);
    free(on.rank);
    free(on.waits);
}

static bool check_seed(uint64_t seed)
{
    char row[32];
    snprintf(row, sizeof(row), "seed %" PRIu64, seed);
    random_case given;
    cs_trace trace = {0};
    cs_analysis analysis = {0};
    assert_int_equal(random_case_init(&given, seed, NULL), CS_OK);
    for (uint32_t c = 0; c < given.graph.n_classes; c += 2) /* as if lowered from collectives */
        if (given.graph.classes[c].kind == CS_TRANSFER)
            given.graph.classes[c].origin = CS_ALL_REDUCE;
    bool done = cs_engine_run(&given.graph, &given.platform, &given.options, &trace, NULL) == CS_OK;
    /* sums over devices are to fit as well */
    done = done && trace.makespan < CS_TIME_MAX / 16;
    if (done) {
        assert_int_equal(cs_analyse(&given.graph, &trace, 7, &analysis, NULL), CS_OK);
        expect_sound(row, &given.graph, &trace, &analysis);
    }
    cs_analysis_finish(&analysis);
    cs_trace_finish(&trace);
    random_case_finish(&given);
    return done;
}

static void test_random_runs(void **state)
{
    (void)state;
    enum { N_RUNS = 10000 };
    uint32_t done = 0;
    for (uint64_t seed = 1; seed <= N_RUNS; seed++)
        done += check_seed(seed);
    assert_true(done > N_RUNS * 9 / 10);
}

/* Computations and messages whose ids are lower than those of their predecessors: none is in order
 * of time. */
static void test_backward_ids(void **state)
{
    (void)state;
    enum { N = 100 };
    cs_graph graph;
    cs_trace trace;
    cs_analysis analysis;
    cs_platform platform;
    cs_builder *builder = cs_builder_create(2, 1, 1, 1);
    assert_int_equal(
        cs_topology_build_text("test", "{\"topology\": \"ideal\"}", 2, &platform, NULL), CS_OK);
    cs_builder_queue(builder, 0, CS_QUEUE_PRIORITY);
    const uint32_t compute = cs_builder_compute(builder, CS_FORWARD, 0, 0, CS_NONE, 1000);
    const uint32_t message = cs_builder_class(builder, &(cs_class){.kind = CS_TRANSFER,
                                                                   .origin = CS_TRANSFER,
                                                                   .peer = 1,
                                                                   .weights = CS_NONE,
                                                                   .duration = 1700});
    for (uint32_t i = 0; i < N; i++) {
        cs_builder_task(builder, compute, 0);
        cs_builder_task(builder, message, 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        cs_builder_edge(builder, 2 * i, 2 * i + 1);
        cs_builder_edge(builder, 2 * i + 2 < 2 * N ? 2 * i + 2 : CS_NONE, 2 * i);
    }
    assert_int_equal(cs_builder_finish(builder, &graph, NULL), CS_OK);
    assert_int_equal(cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, NULL),
                     CS_OK);
    assert_int_equal(cs_analyse(&graph, &trace, 7, &analysis, NULL), CS_OK);
    expect_int("hidden", (N - 1) * 1000, analysis.devices[0].hidden);
    expect_sound("backward ids", &graph, &trace, &analysis);
    cs_analysis_finish(&analysis);
    cs_trace_finish(&trace);
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
    cs_builder_destroy(builder);
}

/* ---- by hand ---- */

/* Tasks by device (of transfers: the sender), kind, mini-batch; a byte takes 1 ps, and 5 ps more
 * for the latency. */
typedef struct hand_task {
    cs_kind kind;
    uint32_t device, peer;
    uint32_t batch;
    int64_t amount;    /* ps, or bytes of a transfer */
    uint32_t after[2]; /* tasks, 1 for the first; 0: none */
    bool blocking;
} hand_task;

enum { MOST_TASKS = 16, MOST_DEVICES = 3 };

typedef struct hand_row {
    const char *name;
    uint32_t n_devices, n_batches, n_tasks;
    hand_task tasks[MOST_TASKS];
    cs_time makespan;
    cs_time_use uses[MOST_DEVICES];
    uint32_t n_steps;
    uint32_t path[MOST_TASKS]; /* tasks, 1 for the first; 0: waiting */
} hand_row;

#define F CS_FORWARD
#define B CS_BACKWARD
#define U CS_UPDATE
#define T CS_TRANSFER

static const hand_row hand_rows[] = {
    /* F 0-10 | T 10-15 | F 15-35, B 35-65 | T 65-70 | B 70-110. Device 0 waits 10-70, the last
     * 65-70 for a message in flight; device 1 waits 0-15, the last 10-15 for a message. */
    {"two stages with latency",
     2,
     1,
     6,
     {{F, 0, 0, 0, 10, {0}, false},
      {T, 0, 1, 0, 0, {1}, false},
      {F, 1, 0, 0, 20, {2}, false},
      {B, 1, 0, 0, 30, {3}, false},
      {T, 1, 0, 0, 0, {4}, false},
      {B, 0, 0, 0, 40, {5}, false}},
     110,
     {{.compute = {[F] = 10, [B] = 40}, .communication = 5, .dependency = 55, .active = 10},
      {.compute = {[F] = 20, [B] = 30},
       .communication = 5,
       .dependency = 10,
       .flush = 45,
       .active = 10}},
     6,
     {1, 2, 3, 4, 5, 6}},
    /* Device 1 computes 0-30 during the message 10-18, so it is overlapped, and then continues at
     * once. */
    {"a hidden message",
     2,
     1,
     4,
     {{F, 0, 0, 0, 10, {0}, false},
      {F, 1, 0, 0, 30, {0}, false},
      {T, 0, 1, 0, 3, {1}, false},
      {B, 1, 0, 0, 10, {3}, false}},
     40,
     {{.compute = {[F] = 10}, .flush = 30, .active = 8},
      {.compute = {[F] = 30, [B] = 10}, .active = 8, .hidden = 8}},
     2,
     {2, 4}},
    /* The message takes 10-18; until 12 device 1 computes: 6 of 8 are exposed. */
    {"a message hidden in part",
     2,
     1,
     4,
     {{F, 0, 0, 0, 10, {0}, false},
      {F, 1, 0, 0, 12, {0}, false},
      {T, 0, 1, 0, 3, {1}, false},
      {B, 1, 0, 0, 10, {3}, false}},
     28,
     {{.compute = {[F] = 10}, .flush = 18, .active = 8},
      {.compute = {[F] = 12, [B] = 10}, .communication = 6, .active = 8, .hidden = 2}},
     3,
     {1, 3, 4}},
    /* Two messages after each other, 10-15 to device 1, which only hands on, and 15-20 to 2. Device
     * 1 has nothing to do at all. */
    {"a message handed on",
     3,
     1,
     4,
     {{F, 0, 0, 0, 10, {0}, false},
      {T, 0, 1, 0, 0, {1}, false},
      {T, 1, 2, 0, 0, {2}, false},
      {F, 2, 0, 0, 10, {3}, false}},
     30,
     {{.compute = {[F] = 10}, .flush = 20, .active = 5},
      {.flush = 30, .active = 10},
      {.compute = {[F] = 10}, .communication = 10, .dependency = 10, .active = 5}},
     4,
     {1, 2, 3, 4}},
    /* Two stages without messages, mini-batch 1 after the updates of mini-batch 0:
     *   device 0  F 0-10, B 40-60, U 60-65 | F 65-75, B 105-125, U 125-130
     *   device 1  F 10-20, B 20-40, U 40-45 | F 75-85, B 85-105, U 105-110
     * Device 1 waits 45-65 for device 0 to end mini-batch 0, and 65-75 for its forward. */
    {"a flush",
     2,
     2,
     12,
     {{F, 0, 0, 0, 10, {0}, false},
      {F, 1, 0, 0, 10, {1}, false},
      {B, 1, 0, 0, 20, {2}, false},
      {B, 0, 0, 0, 20, {3}, false},
      {U, 1, 0, 0, 5, {3}, false},
      {U, 0, 0, 0, 5, {4}, false},
      {F, 0, 0, 1, 10, {6}, false},
      {F, 1, 0, 1, 10, {7}, false},
      {B, 1, 0, 1, 20, {8}, false},
      {B, 0, 0, 1, 20, {9}, false},
      {U, 1, 0, 1, 5, {9}, false},
      {U, 0, 0, 1, 5, {10}, false}},
     130,
     {{.compute = {[F] = 20, [B] = 40, [U] = 10}, .dependency = 60},
      {.compute = {[F] = 20, [B] = 40, [U] = 10}, .dependency = 20, .flush = 40}},
     10,
     {1, 2, 3, 4, 6, 7, 8, 9, 10, 12}},
    /* Device 0 goes on with mini-batch 1 while device 1 has not ended mini-batch 0: no flush.
     *   device 0  F(0) 0-10, F(1) 10-20          device 1  B(0) 10-40, B(1) 40-50
     * Then device 0 has B(1) at 50 after B(1) of device 1: it waits 20-50. */
    {"no flush",
     2,
     2,
     5,
     {{F, 0, 0, 0, 10, {0}, false},
      {F, 0, 0, 1, 10, {0}, false},
      {B, 1, 0, 0, 30, {1}, false},
      {B, 1, 0, 1, 10, {2}, false},
      {B, 0, 0, 1, 10, {4}, false}},
     60,
     {{.compute = {[F] = 20, [B] = 10}, .dependency = 30},
      {.compute = {[B] = 40}, .dependency = 10, .flush = 10}},
     4,
     {1, 3, 4, 5}},
    /* The transfer is ready at 10 and starts at 20, when device 1 is free; it occupies both until
     * 28. Device 0 waits 10-20 for device 1, not for a message. */
    {"a blocking transfer",
     2,
     1,
     4,
     {{F, 0, 0, 0, 10, {0}, false},
      {F, 1, 0, 0, 20, {0}, false},
      {T, 0, 1, 0, 3, {1}, true},
      {B, 1, 0, 0, 10, {3}, false}},
     38,
     {{.compute = {[F] = 10}, .communication = 8, .dependency = 10, .flush = 10, .active = 8},
      {.compute = {[F] = 20, [B] = 10}, .communication = 8, .active = 8}},
     3,
     {2, 3, 4}},
    /* Device 1 has what B needs at 5, but starts nothing while the blocking transfer from device 0
     * is ready (from 10 on) and device 0 is busy, until 40. Before it comes to B, its own F takes
     * 0-20. */
    {"held back by a blocking transfer",
     2,
     1,
     5,
     {{F, 1, 0, 0, 20, {0}, false},
      {F, 0, 0, 0, 10, {0}, false},
      {B, 0, 0, 0, 30, {0}, false},
      {T, 1, 0, 0, 0, {1}, true},
      {B, 1, 0, 0, 10, {0}, false}},
     55,
     {{.compute = {[F] = 10, [B] = 30}, .communication = 5, .flush = 10, .active = 5},
      {.compute = {[F] = 20, [B] = 10}, .communication = 5, .dependency = 20, .active = 5}},
     4,
     {2, 3, 4, 5}},
    /* All in no time: the path is to the first of the tasks that ended last. */
    {"nothing takes time",
     1,
     1,
     2,
     {{F, 0, 0, 0, 0, {0}, false}, {B, 0, 0, 0, 0, {1}, false}},
     0,
     {{.flush = 0}},
     1,
     {1}},
    /* A message is what ends last: all computations have ended at 10. */
    {"a message at the end",
     2,
     1,
     2,
     {{F, 0, 0, 0, 10, {0}, false}, {T, 0, 1, 0, 3, {1}, false}},
     18,
     {{.compute = {[F] = 10}, .communication = 8, .active = 8},
      {.communication = 8, .flush = 10, .active = 8}},
     2,
     {1, 2}},
};

static cs_graph make_graph(const hand_row *row)
{
    cs_builder *builder = cs_builder_create(row->n_devices, 1, 1, row->n_batches);
    assert_non_null(builder);
    for (uint32_t t = 0; t < row->n_tasks; t++) {
        const hand_task *task = &row->tasks[t];
        uint32_t cls = task->kind == T ? cs_builder_transfer(builder, 0, task->device, task->peer,
                                                             task->amount, task->blocking)
                                       : cs_builder_compute(builder, task->kind, 0, task->device,
                                                            CS_NONE, task->amount);
        cs_builder_task(builder, cls, task->batch);
        for (uint32_t a = 0; a < 2 && task->after[a] > 0; a++)
            cs_builder_edge(builder, task->after[a] - 1, t);
    }
    cs_graph graph;
    assert_int_equal(cs_builder_finish(builder, &graph, NULL), CS_OK);
    cs_builder_destroy(builder);
    assert_int_equal(cs_graph_check(&graph, NULL), CS_OK);
    return graph;
}

static cs_platform make_platform(uint32_t n_devices)
{
    struct {
        double bandwidth;
        cs_time latency;
    } params = {1e12, 5};
    const cs_topology *topology = cs_topology_find("nvlink_switch");
    assert_int_equal(cs_field_find(topology->fields, "bandwidth")->offset, 0);
    assert_int_equal(cs_field_find(topology->fields, "latency")->offset, sizeof(double));
    cs_platform platform;
    assert_int_equal(topology->build(&params, n_devices, &platform, NULL), CS_OK);
    platform.sharing = CS_SHARING_FIFO;
    return platform;
}

static void expect_steps(const hand_row *row, const cs_analysis *analysis)
{
    expect_int(row->name, row->n_steps, analysis->n_steps);
    for (uint32_t i = 0; i < row->n_steps; i++)
        expect_int(row->name, row->path[i],
                   analysis->steps[i].task == CS_NONE ? 0 : analysis->steps[i].task + INT64_C(1));
}

static void test_by_hand(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(hand_rows); r++) {
        const hand_row *row = &hand_rows[r];
        cs_graph graph = make_graph(row);
        cs_platform platform = make_platform(row->n_devices);
        cs_trace trace;
        cs_analysis analysis;
        assert_int_equal(cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, NULL),
                         CS_OK);
        assert_int_equal(cs_analyse(&graph, &trace, 7, &analysis, NULL), CS_OK);
        expect_int(row->name, row->makespan, trace.makespan);
        for (uint32_t device = 0; device < row->n_devices; device++)
            expect_use(row->name, device, &row->uses[device], &analysis.devices[device]);
        for (uint32_t device = 0; device < row->n_devices; device++)
            expect_overlap(row->name, device, &row->uses[device], &analysis.devices[device]);
        expect_steps(row, &analysis);
        expect_sound(row->name, &graph, &trace, &analysis);
        cs_analysis_finish(&analysis);
        cs_analysis_finish(&analysis); /* a finished value can be finished again */
        cs_trace_finish(&trace);
        cs_platform_finish(&platform);
        cs_graph_finish(&graph);
    }
}

/* A measured run where a message is sent before its receiver is ready: the sender sends at 10, and
 * continues at once, until 22; the receiver is ready at 20. The task after the message starts
 * before it, and on the device the message is after that task: the path must not loop between
 * them. */
static void test_measured_overlap(void **state)
{
    (void)state;
    enum { END = 25 };
    static const hand_row row = {.name = "a measured message",
                                 .n_devices = 2,
                                 .n_batches = 1,
                                 .n_tasks = 3,
                                 .tasks = {{F, 0, 0, 0, 10, {0}, false},
                                           {T, 0, 1, 0, 0, {1}, true},
                                           {F, 0, 0, 0, 12, {2}, false}},
                                 .n_steps = 3,
                                 .path = {1, 3, 2}};
    static const cs_span measured[] = {{0, 10}, {20, END}, {10, 22}};
    static const cs_span expected[] = {{0, 10}, {10, 20}, {20, END}};
    cs_graph graph = make_graph(&row);
    cs_platform platform = make_platform(row.n_devices);
    cs_trace trace;
    cs_analysis analysis;
    assert_int_equal(cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, NULL),
                     CS_OK);
    memcpy(trace.spans, measured, sizeof(measured));
    trace.makespan = END;
    alarm(20);
    assert_int_equal(cs_analyse(&graph, &trace, 1, &analysis, NULL), CS_OK);
    alarm(0);
    expect_steps(&row, &analysis);
    for (uint32_t i = 0; i < row.n_steps; i++) {
        expect_int(row.name, expected[i].start, analysis.steps[i].start);
        expect_int(row.name, expected[i].end, analysis.steps[i].end);
    }
    cs_analysis_finish(&analysis);
    cs_trace_finish(&trace);
    cs_platform_finish(&platform);
    cs_graph_finish(&graph);
}

/* Mini-batches that end at 65 and 130 ps: one every 65 ps, of 4 samples. One that ends at 110: 110.
 * With no samples known there is no throughput. One that ends at 10, and its message at 18: 18. */
static void test_rates(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t row, batch_size;
        double iteration_time, throughput;
    } rows[] = {{"two mini-batches", 4, 4, 65e-12, 4 / 65e-12},
                {"one mini-batch", 0, 4, 110e-12, 4 / 110e-12},
                {"unknown size", 0, 0, 110e-12, 0},
                {"no time", 8, 4, 0, 0},
                {"a message at the end", ROWS(hand_rows) - 1, 9, 18e-12, 9 / 18e-12}};
    for (size_t r = 0; r < ROWS(rows); r++) {
        const hand_row *row = &hand_rows[rows[r].row];
        cs_graph graph = make_graph(row);
        cs_platform platform = make_platform(row->n_devices);
        cs_trace trace;
        cs_analysis analysis;
        assert_int_equal(cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, NULL),
                         CS_OK);
        assert_int_equal(cs_analyse(&graph, &trace, rows[r].batch_size, &analysis, NULL), CS_OK);
        expect_double(rows[r].name, rows[r].iteration_time, analysis.iteration_time);
        expect_double(rows[r].name, rows[r].throughput, analysis.throughput);
        cs_analysis_finish(&analysis);
        cs_trace_finish(&trace);
        cs_platform_finish(&platform);
        cs_graph_finish(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),      cmocka_unit_test(test_measured_overlap),
        cmocka_unit_test(test_rates),        cmocka_unit_test(test_random_runs),
        cmocka_unit_test(test_backward_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
