/* The schedule `periodic`: the engine runs the pattern, start by start, and its peaks equal those
 * of a checker that unrolls it and looks at every picosecond. Patterns in plans' files. */
#include "schedules/plan/periodic-program.h"
#include "sim/base/random.h"
#include "sim/core/engine/engine.h"
#include "tests/expect.h"
#include "tests/listed-formula.h"
#include "tests/random-chain.h"
#include "tests/run-scenario.h"
#include "tests/slow-pattern.h"
#include "topologies/topology.h"

#include <stdalign.h>
#include <stdlib.h>

enum { N_CASES = 1000, PARAMS_BYTES = 64, MOST_STAGES = 5, MOST_LAYERS = 7, MOST_DEVICES = 4 };

/* ---- patterns by list scheduling ---- */

/* The operation of a device, or of the link between two, in [t, t + 1) of the period: 1 + the
 * operation, or 0; and whether an operation of zero time is at t. */
typedef struct moment {
    uint32_t op;
    bool instant;
} moment;

typedef struct table {
    cs_time period;
    moment *moments; /* [lower device][higher device][t] */
} table;

static moment *moments_of(const table *busy, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    return &busy->moments[(size_t)(low * MOST_DEVICES + high) * (size_t)busy->period];
}

/* Nothing else is done from `from` on; what takes no time is not within another. */
static bool is_free(const moment *moments, cs_time period, cs_time from, cs_time takes)
{
    uint32_t before = moments[(from + period - 1) % period].op;
    if (takes == 0)
        return before == 0 || before != moments[from % period].op;
    for (cs_time t = 0; t < takes; t++) {
        const moment *at = &moments[(from + t) % period];
        if (at->op > 0 || (at->instant && t > 0))
            return false;
    }
    return true;
}

/* Finds the first time from `ready` on when the operation's resource is free in every period. */
static bool place(const table *busy, const cs_chain *chain, const cs_plan *plan, uint32_t stage,
                  cs_pattern_kind kind, cs_pattern *pattern, cs_time *ready)
{
    if (!cs_pattern_has(plan, stage, kind))
        return true;
    bool message = kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
    uint32_t here = cs_plan_device(plan, stage);
    uint32_t there = message ? cs_plan_device(plan, stage + 1) : here;
    moment *moments = moments_of(busy, here, there);
    cs_time takes = cs_pattern_duration(chain, plan, stage, kind), at = *ready;
    if (takes > busy->period)
        return false;
    while (at < *ready + busy->period && !is_free(moments, busy->period, at, takes))
        at++;
    if (at == *ready + busy->period)
        return false;
    for (cs_time t = 0; t < takes; t++)
        moments[(at + t) % busy->period].op = 1 + stage * CS_PATTERN_KINDS + kind;
    moments[at % busy->period].instant |= takes == 0;
    pattern->ops[stage * CS_PATTERN_KINDS + kind] =
        (cs_pattern_op){at % busy->period, at / busy->period};
    *ready = at + takes;
    return true;
}

/* One operation after the other, each with a random delay; false when the period is too short. */
static bool place_all(const cs_chain *chain, const cs_plan *plan, gsl_rng *rng, cs_time period,
                      cs_pattern *pattern)
{
    size_t n = (size_t)period * MOST_DEVICES * MOST_DEVICES;
    table busy = {period, calloc(n, sizeof(*busy.moments))};
    assert_non_null(busy.moments);
    cs_time ready = random_up_to(rng, 5);
    bool fits = true;
    pattern->period = period;
    for (uint32_t i = 0; i < 4 * plan->n_stages && fits; i++) {
        bool down = i < 2 * plan->n_stages;
        uint32_t stage = down ? i / 2 : 2 * plan->n_stages - 1 - i / 2;
        cs_pattern_kind kind = down ? (i % 2 ? CS_PATTERN_SEND : CS_PATTERN_FORWARD)
                                    : (i % 2 ? CS_PATTERN_BACKWARD : CS_PATTERN_RETURN);
        fits = place(&busy, chain, plan, stage, kind, pattern, &ready);
        ready += random_up_to(rng, 2) > 0 ? 0 : random_up_to(rng, 4);
    }
    free(busy.moments);
    return fits;
}

static cs_pattern random_pattern(gsl_rng *rng, const cs_chain *chain, const cs_plan *plan)
{
    cs_pattern pattern;
    assert_int_equal(cs_pattern_create(plan->n_stages, &pattern, NULL), CS_OK);
    for (cs_time period = 3; !place_all(chain, plan, rng, period, &pattern); period++) {
    }
    return pattern;
}

/* ---- jobs ---- */

typedef struct params {
    alignas(max_align_t) char bytes[PARAMS_BYTES];
} params;

typedef struct setup {
    cs_model model;
    cs_platform platform;
    cs_chain chain;
    cs_plan plan;
    cs_pattern pattern;
    cs_layer_sum sums[MOST_STAGES];
    double speeds[MOST_DEVICES];
    cs_job job;
    params params;
    bool no_workspace;
    cs_graph graph;
    cs_trace trace;
    cs_analysis analysis;
    cs_forms forms;
} setup;

static const cs_schedule *periodic(void)
{
    return cs_schedule_find("periodic");
}

static void set(setup *on, const char *name, const void *value, size_t size)
{
    const cs_field *field = cs_field_find(periodic()->fields, name);
    assert_true(field && field->offset + size <= PARAMS_BYTES);
    memcpy(on->params.bytes + field->offset, value, size);
}

#define SET(on, name, value) set((on), (name), &(value), sizeof(value))

/* Small whole times and sizes, zeros among them; a byte takes a picosecond of its link. */
static void make_model(setup *on, gsl_rng *rng, uint32_t n_layers)
{
    const cs_layer any = {.forward = 1};
    assert_int_equal(cs_model_uniform(n_layers, &any, &on->model, NULL), CS_OK);
    for (uint32_t l = 0; l < n_layers; l++) {
        cs_layer *layer = &on->model.layers[l];
        layer->forward = random_up_to(rng, 4);
        layer->backward_input = 2 + random_up_to(rng, 3); /* 1 ps at least, at any speed */
        layer->backward_weight = random_up_to(rng, 3);
        layer->update = random_up_to(rng, 3);
        layer->weight_bytes = random_up_to(rng, 9);
        layer->output_bytes = random_up_to(rng, 4);
        layer->kept_bytes = random_up_to(rng, 9);
        layer->workspace_bytes = random_up_to(rng, 5);
    }
}

static void make_platform(setup *on, gsl_rng *rng, uint32_t n_devices)
{
    static const cs_sharing sharings[] = {CS_SHARING_NONE, CS_SHARING_FIFO, CS_SHARING_COUNT,
                                          CS_SHARING_MAX_MIN};
    const char *text = "{\"topology\": \"nvlink_mesh\", \"links\": 1, \"link_bandwidth\": 1e12, "
                       "\"latency\": \"1 ps\"}";
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_topology_build_text("test", text, n_devices, &on->platform, &error);
    expect_error("platform", CS_OK, "", status, &error);
    on->platform.sharing = sharings[random_up_to(rng, 3)];
    double speed = random_up_to(rng, 1) ? 1 : 2.5;
    for (uint32_t d = 0; d < n_devices; d++)
        on->speeds[d] = on->platform.devices[d].speed = speed;
}

static void make_chain(setup *on, gsl_rng *rng)
{
    static const double copies[] = {3, 3, 1, 2, 4.5}, ratios[] = {0, 2, 0.3};
    uint32_t kept = random_up_to(rng, 1);
    bool count_update = random_up_to(rng, 1), count_workspace = random_up_to(rng, 1);
    cs_chain_options options = {.model = &on->model,
                                .n_devices = on->platform.n_devices,
                                .micro_samples = 1,
                                .speed = on->speeds[0],
                                .memory = INT64_MAX,
                                .bandwidth = 1e12,
                                .latency = 1,
                                .kept = (cs_kept)kept,
                                .weight_copies = copies[random_up_to(rng, 4)],
                                .optimizer_ratio = ratios[random_up_to(rng, 2)],
                                .count_update = count_update};
    assert_int_equal(cs_chain_make(&options, &on->chain, NULL), CS_OK);
    SET(on, "kept", kept);
    SET(on, "weight_copies", options.weight_copies);
    SET(on, "count_update", count_update);
    SET(on, "count_workspace", count_workspace);
    on->no_workspace = !count_workspace;
    on->job.optimizer_ratio = options.optimizer_ratio;
}

/* Everything but the pattern, whose micro-batches the others depend on. */
static void make_job(setup *on, gsl_rng *rng, bool anywhere)
{
    *on = (setup){0};
    uint32_t n_devices = 1 + random_up_to(rng, MOST_DEVICES - 1);
    make_model(on, rng, 1 + random_up_to(rng, MOST_LAYERS - 1));
    make_platform(on, rng, n_devices);
    make_chain(on, rng);
    on->plan = random_plan(rng, &on->chain, anywhere ? MOST_STAGES : n_devices, anywhere);
    on->job.model = &on->model;
    on->job.plan = &on->plan;
    on->job.stages = on->sums;
    on->job.n_devices = n_devices;
    on->job.speeds = on->speeds;
    on->job.micro_samples = 1;
    on->job.latency = 1;
    on->job.bandwidth = 1e12;
    on->job.own_links = true;
    on->job.memory = INT64_MAX;
    for (uint32_t s = 0; s < on->plan.n_stages; s++)
        assert_int_equal(cs_model_sum(&on->model, on->plan.stages[s].first_layer,
                                      on->plan.stages[s].end_layer, 1, &on->sums[s], NULL),
                         CS_OK);
}

static void set_micro_batches(setup *on, uint32_t micro_batches, uint32_t iterations)
{
    on->job.micro_batches = micro_batches;
    on->job.iterations = iterations;
    SET(on, "micro_batches", micro_batches);
}

static cs_status execute(setup *on, cs_error *error)
{
    const cs_engine_options options = {.record_versions = true};
    cs_status status = cs_schedule_graph(periodic(), &on->job, &on->params, &on->graph, error);
    if (status == CS_OK)
        status = cs_engine_run(&on->graph, &on->platform, &options, &on->trace, error);
    if (status == CS_OK)
        status = cs_analyse(&on->graph, &on->trace, 0, &on->analysis, error);
    return status == CS_OK ? periodic()->closed_forms(&on->job, &on->params, &on->forms, error)
                           : status;
}

static void clear_results(setup *on)
{
    cs_forms_finish(&on->forms);
    cs_analysis_finish(&on->analysis);
    cs_trace_finish(&on->trace);
    cs_graph_finish(&on->graph);
}

static void close_run(setup *on)
{
    clear_results(on);
    cs_pattern_finish(&on->pattern);
    cs_plan_finish(&on->plan);
    cs_chain_finish(&on->chain);
    cs_platform_finish(&on->platform);
    cs_model_finish(&on->model);
}

/* ---- what is expected ---- */

static cs_pattern_kind kind_of(const cs_class *cls)
{
    switch (cls->kind) {
    case CS_FORWARD:
        return CS_PATTERN_FORWARD;
    case CS_BACKWARD:
        return CS_PATTERN_BACKWARD;
    default: /* a gradient is sent by the stage behind */
        return CS_PATTERN_KINDS;
    }
}

/* The operation of the pattern that a task is an instance of. A message belongs to the stage that
 * sends it: with a forward before it, it is that stage's output. */
static const cs_pattern_op *op_of(const setup *on, uint32_t task, const bool *after_backward,
                                  uint32_t *stage, cs_pattern_kind *kind)
{
    const cs_class *cls = cs_graph_class(&on->graph, task);
    *stage = cls->stage;
    *kind = kind_of(cls);
    if (*kind == CS_PATTERN_KINDS)
        *kind = after_backward[task] ? CS_PATTERN_RETURN : CS_PATTERN_SEND;
    if (*kind == CS_PATTERN_RETURN)
        (*stage)--;
    return &on->pattern.ops[*stage * CS_PATTERN_KINDS + *kind];
}

/* Per task: whether it is a message that waits for a backward. */
static bool *find_returns(const setup *on)
{
    bool *returns = calloc((size_t)on->graph.n_tasks + 1, sizeof(*returns));
    assert_non_null(returns);
    for (uint32_t task = 0; task < on->graph.n_tasks; task++) {
        uint32_t n;
        const uint32_t *after = cs_graph_successors(&on->graph, task, &n);
        for (uint32_t i = 0; i < n; i++)
            returns[after[i]] |= cs_graph_class(&on->graph, task)->kind == CS_BACKWARD &&
                                 cs_graph_class(&on->graph, after[i])->kind == CS_TRANSFER;
    }
    return returns;
}

/* Micro-batch i starts an operation at (i + shift) T + start, counted from the first forward of
 * all, and is done when the chain says. Every operation is there for every micro-batch, and nothing
 * else but updates. */
static void expect_spans(const char *row, const setup *on)
{
    const cs_pattern *pattern = &on->pattern;
    cs_time origin = pattern->ops[0].shift * pattern->period + pattern->ops[0].start;
    uint32_t n_items = on->job.micro_batches * on->job.iterations, n_ops = 0, n_seen = 0;
    bool *returns = find_returns(on);
    for (uint32_t task = 0; task < on->graph.n_tasks; task++) {
        uint32_t stage;
        cs_pattern_kind kind;
        if (cs_graph_class(&on->graph, task)->kind == CS_UPDATE)
            continue;
        const cs_pattern_op *op = op_of(on, task, returns, &stage, &kind);
        cs_time takes = cs_pattern_duration(&on->chain, &on->plan, stage, kind);
        cs_time start = (on->graph.tasks[task].item + op->shift) * pattern->period + op->start;
        expect_int(row, start - origin, on->trace.spans[task].start);
        expect_int(row, start - origin + takes, on->trace.spans[task].end);
        n_seen++;
    }
    for (uint32_t s = 0; s < on->plan.n_stages; s++) {
        for (int kind = 0; kind < CS_PATTERN_KINDS; kind++)
            n_ops += cs_pattern_has(&on->plan, s, kind);
    }
    expect_int(row, n_ops * n_items, n_seen);
    free(returns);
}

/* Mini-batch b reads version max(b - 1, 0), forward and backward; its update makes version
 * b + 1. */
static void expect_versions(const char *row, const setup *on)
{
    for (uint32_t task = 0; task < on->graph.n_tasks; task++) {
        uint32_t batch = on->graph.tasks[task].item / on->job.micro_batches;
        const cs_class *cls = cs_graph_class(&on->graph, task);
        if (cls->kind == CS_UPDATE)
            expect_int(row, batch + 1, on->trace.versions[task]);
        else if (cls->kind != CS_TRANSFER)
            expect_int(row, batch > 0 ? batch - 1 : 0, on->trace.versions[task]);
    }
}

/* The most that one layer of the device's stages needs while it computes: set aside, if at all. */
static int64_t workspace(const setup *on, uint32_t device)
{
    int64_t most = 0;
    for (uint32_t s = 0; s < on->plan.n_stages && !on->no_workspace; s++) {
        const cs_stage *stage = &on->plan.stages[s];
        for (uint32_t l = stage->first_layer; l < stage->end_layer; l++) {
            int64_t bytes = on->model.layers[l].workspace_bytes;
            if (on->plan.devices[stage->first_device] == device && bytes > most)
                most = bytes;
        }
    }
    return most;
}

/* Computing time of a device in one period in the middle of the run. */
static cs_time busy_in_period(const setup *on, uint32_t device)
{
    cs_time from = on->trace.makespan / 2, to = from + on->pattern.period, busy = 0;
    for (uint32_t task = 0; task < on->graph.n_tasks; task++) {
        const cs_class *cls = cs_graph_class(&on->graph, task);
        cs_span span = on->trace.spans[task];
        cs_time start = span.start > from ? span.start : from, end = span.end < to ? span.end : to;
        if (cls->kind != CS_TRANSFER && cls->device == device && start < end)
            busy += end - start;
    }
    return busy;
}

static void expect_peaks(const char *row, const setup *on, const cs_pattern_use *uses)
{
    for (uint32_t d = 0; d < on->job.n_devices; d++) {
        const cs_device_record *record = &on->trace.devices[d];
        expect_int(row, uses[d].peak + workspace(on, d), record->peak);
        expect_int(row, uses[d].peak - uses[d].fixed, record->category_peak[CS_MEMORY_ACTIVATIONS]);
    }
}

static double simulated(const setup *on, const cs_form *form)
{
    uint32_t versions = 0;
    switch (form->figure) {
    case CS_FIGURE_MAKESPAN:
        return (double)on->trace.makespan;
    case CS_FIGURE_ITERATION_TIME:
        return on->analysis.iteration_time * (double)CS_PS_PER_SEC;
    case CS_FIGURE_BUBBLE:
        return on->analysis.bubble_fraction;
    case CS_FIGURE_PEAK_ACTIVATIONS:
        return (double)on->trace.devices[form->device].category_peak[CS_MEMORY_ACTIVATIONS];
    case CS_FIGURE_PEAK_MEMORY:
        return (double)on->trace.devices[form->device].peak;
    case CS_FIGURE_PEAK_VERSIONS:
        for (uint32_t s = 0; s < on->graph.n_slots; s++) {
            if (on->graph.slots[s].device == form->device &&
                on->trace.slots[s].peak_live > versions)
                versions = on->trace.slots[s].peak_live;
        }
        return versions;
    default:
        return -1;
    }
}

/* The two quotients are rounded in their last digits, the rest is whole. Returns how many apply. */
static uint32_t expect_forms(const char *row, const setup *on)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < on->forms.n; f++) {
        const cs_form *form = &on->forms.forms[f];
        bool quotient =
            form->figure == CS_FIGURE_BUBBLE || form->figure == CS_FIGURE_ITERATION_TIME;
        double stated = form->figure == CS_FIGURE_BUBBLE ? form->fraction : (double)form->exact;
        double got = simulated(on, form), off = got > stated ? got - stated : stated - got;
        if (!lists_form(cs_schedule_find("periodic"), form))
            fail_msg("%s: %s is not listed", row, form->formula);
        if (!cs_form_is_promised(form))
            continue;
        n++;
        if (off > (quotient ? 1e-12 * (1 + stated) : 0))
            fail_msg("%s: %s: stated %.17g, simulated %.17g", row, cs_figure_key(form->figure),
                     stated, got);
    }
    return n;
}

/* ---- random patterns ---- */

typedef struct seen {
    uint32_t shared, idle, wrapped; /* devices with several stages, with none; shifts above 1 */
} seen;

static void note(const setup *on, seen *count)
{
    uint32_t holds[MOST_DEVICES] = {0};
    bool shared = false, idle = false, wrapped = false;
    for (uint32_t s = 0; s < on->plan.n_stages; s++) {
        shared |= holds[on->plan.devices[on->plan.stages[s].first_device]]++ > 0;
        wrapped |= on->pattern.ops[s * CS_PATTERN_KINDS + CS_PATTERN_BACKWARD].shift > 1;
    }
    for (uint32_t d = 0; d < on->job.n_devices; d++)
        idle |= holds[d] == 0;
    count->shared += shared;
    count->idle += idle;
    count->wrapped += wrapped;
}

/* Sets enough micro-batches for two versions to suffice, and enough mini-batches for a steady
 * state. Returns the largest number of active micro-batches. */
static int64_t set_enough(setup *on, const int64_t *active)
{
    int64_t most = 1;
    for (uint32_t s = 0; s < on->plan.n_stages; s++)
        most = active[s] > most ? active[s] : most;
    set_micro_batches(on, most > 2 ? (uint32_t)most - 1 : 1, 40);
    return most;
}

static void expect_run(const char *row, setup *on)
{
    cs_error error;
    cs_error_init(&error);
    cs_status status = execute(on, &error);
    expect_error(row, CS_OK, "", status, &error);
}

/* The order alone: nothing later than in the pattern, the same peaks and versions. */
static void expect_asap(const char *row, setup *on, const cs_pattern_use *uses)
{
    const uint32_t asap = 1;
    cs_time makespan = on->trace.makespan;
    clear_results(on);
    SET(on, "timing", asap);
    expect_run(row, on);
    assert_true(on->trace.makespan <= makespan);
    expect_peaks(row, on, uses);
    expect_versions(row, on);
    expect_forms(row, on);
}

/* Runs that are too short for a steady state, and some that just reach it: forms that apply
 * hold. */
static void expect_short_runs(const char *row, setup *on, int64_t active)
{
    const uint32_t pattern = 0;
    SET(on, "timing", pattern);
    for (uint32_t n = 1; n <= 9; n++) {
        clear_results(on);
        set_micro_batches(on, active > 2 ? (uint32_t)active - 1 : 1, n);
        expect_run(row, on);
        expect_forms(row, on);
    }
}

/* One micro-batch too few for two versions is said, not run. */
static void expect_too_few(const char *row, setup *on, int64_t active)
{
    cs_error error;
    cs_error_init(&error);
    clear_results(on);
    set_micro_batches(on, (uint32_t)active - 2, 40);
    assert_int_equal(execute(on, &error), CS_INVALID);
    if (!strstr(error.text, "micro_batches must be at least"))
        fail_msg("%s: %s", row, error.text);
}

static void run_case(const char *row, gsl_rng *rng, bool anywhere, seen *count)
{
    setup on;
    cs_pattern_use uses[MOST_DEVICES];
    int64_t active[MOST_STAGES];
    make_job(&on, rng, anywhere);
    on.pattern = random_pattern(rng, &on.chain, &on.plan);
    on.job.pattern = &on.pattern;
    assert_true(slow_pattern_check(&on.chain, &on.plan, &on.pattern, uses, active));
    int64_t most = set_enough(&on, active);
    expect_run(row, &on);
    expect_spans(row, &on);
    expect_versions(row, &on);
    expect_peaks(row, &on, uses);
    for (uint32_t d = 0; d < on.job.n_devices; d++)
        expect_int(row, uses[d].busy, busy_in_period(&on, d));
    note(&on, count);
    uint32_t holding = 0;
    for (uint32_t f = 0; f < on.forms.n; f++)
        holding += on.forms.forms[f].figure == CS_FIGURE_PEAK_MEMORY;
    expect_int(row, 3 + 3 * holding, expect_forms(row, &on));
    expect_asap(row, &on, uses);
    expect_short_runs(row, &on, most);
    if (most > 2)
        expect_too_few(row, &on, most);
    close_run(&on);
}

static void test_random_patterns(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(1, "periodic");
    seen count = {0};
    for (uint32_t i = 0; i < N_CASES; i++) {
        char row[32];
        snprintf(row, sizeof(row), "case %" PRIu32, i);
        run_case(row, rng, i % 4 > 0, &count);
    }
    print_message("%d patterns: %u with several stages on a device, %u with idle devices, %u with "
                  "shifts above 1\n",
                  N_CASES, count.shared, count.idle, count.wrapped);
    assert_true(count.shared >= N_CASES / 4 && count.idle >= 20 && count.wrapped >= N_CASES / 4);
    gsl_rng_free(rng);
}

/* ---- as soon as possible ---- */

/* 840 is a multiple of all numbers up to 8: with "as soon as possible", a few operations repeat
 * after some of so few micro-batches. */
enum { REPEATS = 840, SETTLES = 400 };

/* When the last backward of a micro-batch of the first stage ends, that is when it is done. */
static cs_time done_at(const setup *on, uint32_t item)
{
    cs_time latest = 0;
    for (uint32_t task = 0; task < on->graph.n_tasks; task++) {
        if (on->graph.tasks[task].item == item &&
            cs_graph_class(&on->graph, task)->kind == CS_BACKWARD &&
            on->trace.spans[task].end > latest)
            latest = on->trace.spans[task].end;
    }
    return latest;
}

/* The order of a pattern has a smallest period, the largest ratio of time to shifts over the cycles
 * of dependencies. A run of the order alone reaches it in the long run, however much slack the
 * pattern has. */
static void test_asap_is_tight(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(1, "periodic, asap");
    const uint32_t asap = 1;
    uint32_t slack = 0;
    for (uint32_t i = 0; i < 100; i++) {
        char row[64];
        setup on;
        cs_pattern tight;
        snprintf(row, sizeof(row), "case %" PRIu32, i);
        make_job(&on, rng, i % 4 > 0);
        on.pattern = random_pattern(rng, &on.chain, &on.plan);
        on.job.pattern = &on.pattern;
        assert_int_equal(cs_pattern_create(on.plan.n_stages, &tight, NULL), CS_OK);
        memcpy(tight.ops, on.pattern.ops, on.plan.n_stages * CS_PATTERN_KINDS * sizeof(*tight.ops));
        tight.period = on.pattern.period;
        assert_int_equal(cs_pattern_tighten(&on.chain, &on.plan, &tight, NULL), CS_OK);
        SET(&on, "timing", asap);
        set_micro_batches(&on, 20, (REPEATS + SETTLES) / 20);
        expect_run(row, &on);
        cs_time took = done_at(&on, REPEATS + SETTLES - 1) - done_at(&on, SETTLES - 1);
        /* whole picoseconds: the smallest whole period that is not below the ratio */
        expect_int(row, tight.period, (took + REPEATS - 1) / REPEATS);
        slack += tight.period < on.pattern.period;
        cs_pattern_finish(&tight);
        close_run(&on);
    }
    print_message("%" PRIu32 " of 100 patterns had slack\n", slack);
    assert_true(slack >= 10 && slack <= 90);
    gsl_rng_free(rng);
}

/* ---- without a pattern ---- */

/* One stage per device gets 1F1B*: the run follows the pattern that cs_pattern_1f1b_fit finds. */
static void test_without_pattern(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(1, "periodic, 1F1B*");
    for (uint32_t i = 0; i < N_CASES; i++) {
        char row[32];
        setup on;
        snprintf(row, sizeof(row), "case %" PRIu32, i);
        make_job(&on, rng, false);
        assert_int_equal(cs_pattern_1f1b_fit(&on.chain, &on.plan, &on.pattern, NULL), CS_OK);
        set_micro_batches(&on, 12, 6);
        expect_run(row, &on);
        expect_spans(row, &on);
        expect_versions(row, &on);
        expect_forms(row, &on);
        close_run(&on);
    }
    gsl_rng_free(rng);
}

/* ---- the scenario that is in the documentation ---- */

/* Loads of 3, 6, 6 and 3 ms; the first and the last block on device 0, so that each of the three
 * devices has 6 ms to do, and a period of 6 ms leaves none of them idle. Contiguous plans need 9.
 *
 * Micro-batch 0 comes to stage 0 at 0, to stage 1 at 1.4, to stage 2 at 3.8 and to stage 3 at 7,
 * and leaves them at 30, 25.4, 15.8 and 10: 30/6 = 5, 24/6 = 4, 12/6 = 2 and 3/6 -> 1 are active.
 * With M = 4 = 5 - 1 per mini-batch an iteration takes 24 ms, and 48 micro-batches 47 * 6 + 30 =
 * 312 ms. Device 0 holds 3 * 200 MB of weights, 2 * 20 MB for each of two boundaries and 5 * 40 +
 * 40 of activations; device 1 300 + 80 + 4 * 80; device 2 300 + 80 + 2 * 80. */
static void expect_scenario(const cs_simulation *simulation)
{
    static const int64_t peaks[] = {920000000, 700000000, 540000000};
    expect_int("makespan", 312 * INT64_C(1000000000), simulation->trace.makespan);
    for (uint32_t d = 0; d < 3; d++)
        expect_int("peak", peaks[d], simulation->trace.devices[d].peak);
    if (simulation->analysis.iteration_time < 0.024 * (1 - 1e-12) ||
        simulation->analysis.iteration_time > 0.024 * (1 + 1e-12))
        fail_msg("iteration time %.17g", simulation->analysis.iteration_time);
}

static uint32_t n_applying(const cs_simulation *simulation)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < simulation->forms.n; f++)
        n += simulation->forms.forms[f].applies;
    return n;
}

static void load_and_run(const cs_override *override, scenario_run *out)
{
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_scenario_load(CS_SOURCE_ROOT "/scenarios/periodic.json", override,
                                        override ? 1 : 0, &out->scenario, &error);
    expect_error("load", CS_OK, "", status, &error);
    status = cs_simulate(&out->scenario, &(cs_simulation_options){0}, &out->simulation, &error);
    expect_error("run", CS_OK, "", status, &error);
}

/* The resolved scenario, without the plan's file, gives the same results. */
static void test_scenario(void **state)
{
    (void)state;
    scenario_run first, again;
    cs_error error;
    cJSON *root;
    cs_error_init(&error);
    load_and_run(NULL, &first);
    expect_scenario(&first.simulation);
    expect_int("forms", 3 + 3 * 3, n_applying(&first.simulation));
    const char *resolved = first.scenario.resolved;
    assert_int_equal(cs_json_parse("r", resolved, strlen(resolved), &root, &error), CS_OK);
    cs_status status = cs_scenario_read(root, "r", &again.scenario, &error);
    expect_error("resolved", CS_OK, "", status, &error);
    expect_text("resolved again", resolved, again.scenario.resolved);
    cJSON_Delete(root);
    cs_scenario_finish(&again.scenario);
    scenario_run_finish(&first);
}

/* Behind a switch two pairs of devices share each port: nothing is promised of times, although here
 * no messages meet and the pattern holds. Peaks depend on the order alone. */
static void test_shared_links(void **state)
{
    (void)state;
    const cs_override platform = {
        "/platform",
        "{\"topology\": \"nvlink_switch\", \"devices\": 3, \"bandwidth\": \"50 GB/s\"}"};
    scenario_run run;
    load_and_run(&platform, &run);
    expect_scenario(&run.simulation);
    expect_int("forms", 3 * 3, n_applying(&run.simulation));
    scenario_run_finish(&run);
}

/* With links of a quarter of the bandwidth a message takes 1.6 ms, and 0.4 in the pattern: it still
 * runs, keeps its order and so its peaks, but not its period. */
static void test_slow_links(void **state)
{
    (void)state;
    const cs_override platform = {"/platform",
                                  "{\"topology\": \"nvlink_mesh\", \"devices\": 3, \"links\": 1, "
                                  "\"link_bandwidth\": \"12.5 GB/s\"}"};
    scenario_run run;
    load_and_run(&platform, &run);
    assert_true(run.simulation.trace.makespan > 312 * INT64_C(1000000000));
    expect_int("peak", 920000000, run.simulation.trace.devices[0].peak);
    expect_int("forms", 0, n_applying(&run.simulation));
    scenario_run_finish(&run);
}

/* ---- files ---- */

static cs_status read_pattern(const char *text, const cs_model *model, cs_plan *plan,
                              cs_pattern *pattern, cs_error *error)
{
    cJSON *root;
    const cs_json_place place = {.file = "p.json"};
    cs_error_init(error);
    assert_int_equal(cs_json_parse("p.json", text, strlen(text), &root, error), CS_OK);
    cs_status status = cs_plan_read(root, &place, model, plan, error);
    expect_error(text, CS_OK, "", status, error);
    status = cs_pattern_read(root, &place, plan, pattern, error);
    cJSON_Delete(root);
    return status;
}

static void expect_same(const char *row, const cs_pattern *expected, const cs_pattern *got)
{
    expect_int(row, expected->period, got->period);
    expect_int(row, expected->n_stages, got->n_stages);
    for (uint32_t i = 0; i < expected->n_stages * CS_PATTERN_KINDS; i++) {
        expect_int(row, expected->ops[i].start, got->ops[i].start);
        expect_int(row, expected->ops[i].shift, got->ops[i].shift);
    }
}

/* Also periods around and far beyond 2^53 ps, where doubles are not exact; shifts to both sides. */
static void test_round_trip(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(1, "periodic, files");
    for (uint32_t i = 0; i < 300; i++) {
        setup on;
        cs_plan plan;
        cs_pattern read;
        cs_error error;
        make_job(&on, rng, true);
        on.pattern = random_pattern(rng, &on.chain, &on.plan);
        if (i % 3 == 0) {
            on.pattern.period = i % 2 == 0   ? (INT64_C(1) << 53) + (int64_t)(i / 6) - 5
                                : i % 4 == 1 ? INT64_C(36028797018963971)
                                             : INT64_MAX;
            on.pattern.ops[0] = (cs_pattern_op){on.pattern.period - 1, -CS_PATTERN_SHIFTS};
        }
        cJSON *json = cs_plan_json(&on.plan, &on.model);
        assert_int_equal(cs_pattern_add_json(json, &on.plan, &on.pattern, NULL), CS_OK);
        char *text = cs_json_print(json);
        expect_error(text, CS_OK, "", read_pattern(text, &on.model, &plan, &read, &error), &error);
        expect_same(text, &on.pattern, &read);
        free(text);
        cJSON_Delete(json);
        cs_pattern_finish(&read);
        cs_plan_finish(&plan);
        close_run(&on);
    }
    gsl_rng_free(rng);
}

/* A model with three layers: stages 0 and 1 on device 0, stage 2 on device 1. */
#define OP(kind, stage, start, shift)                                                              \
    "{\"operation\": \"" kind "\", \"stage\": " stage ", \"start_ps\": " start                     \
    ", \"shift\": " shift "}"
#define PATTERN(period, ops) "{\"period_ps\": " period ", \"operations\": " ops "}"
#define COMPUTE                                                                                    \
    OP("forward", "0", "0", "0")                                                                   \
    "," OP("backward", "0", "5", "2") "," OP("forward", "1", "1", "0") "," OP(                     \
        "backward", "1", "3", "1") "," OP("forward", "2", "4", "0") "," OP("backward", "2", "5",   \
                                                                           "0")
#define LIST(more) PATTERN("9", "[" COMPUTE more "]")
#define SEND       "," OP("send", "1", "2", "0")
#define RETURN     "," OP("return", "1", "8", "0")

static const struct {
    const char *name, *pattern, *message; /* without "p.json: /pattern" */
} refused[] = {
    {"complete", LIST(SEND RETURN), NULL},
    {"number", "3", ": must be an object (got 3)"},
    {"unknown key", "{\"period\": 1}",
     ": unknown key \"period\"; did you mean \"period_ps\"? known: period_ps, operations\n"
     "p.json: /pattern: missing key \"period_ps\": must be a whole number >= 1\n"
     "p.json: /pattern: missing key \"operations\": must be [{operation}, ...]"},
    {"no period", PATTERN("0", "[]"), "/period_ps: must be >= 1 (got 0)"},
    {"part of a picosecond", PATTERN("1.5", "[]"),
     "/period_ps: must be a whole number >= 1 (got 1.5)"},
    {"not exact", PATTERN("9007199254740993", "[]"),
     "/period_ps: must be <= 9007199254740991, or a text of digits (got 9007199254740992)"},
    {"text", PATTERN("\"1 ms\"", "[]"), "/period_ps: must be a whole number >= 1 (got \"1 ms\")"},
    {"no list", PATTERN("9", "{}"),
     "/operations: must be a list, such as [{operation}, ...] (got an object)"},
    {"no operation", PATTERN("9", "[]"), "/operations: must have the forward of stage 0 as well"},
    {"no return", LIST(SEND), "/operations: must have the return of stage 1 as well"},
    {"twice", LIST(SEND RETURN SEND), "/operations/8: must list the send of stage 1 once only"},
    {"same device", LIST("," OP("send", "0", "1", "0")),
     "/operations/6: stage 0 has no \"send\": the next stage is not on another device"},
    {"last stage", LIST("," OP("return", "2", "1", "0")),
     "/operations/6: stage 2 has no \"return\": the next stage is not on another device"},
    {"no such stage", LIST("," OP("send", "3", "1", "0")),
     "/operations/6: stage must be below 3, as the plan has (got 3)"},
    {"start", LIST("," OP("send", "1", "9", "0")),
     "/operations/6/start_ps: must be from 0 to 8, below the period (got 9)"},
    {"shift", LIST("," OP("send", "1", "9", "70000")),
     "/operations/6/shift: must be from -65536 to 65536 (got 70000)"},
};

static void test_refused_files(void **state)
{
    (void)state;
    const cs_layer layer = {.forward = 1};
    cs_model model;
    assert_int_equal(cs_model_uniform(3, &layer, &model, NULL), CS_OK);
    for (size_t i = 0; i < ROWS(refused); i++) {
        char text[2048], message[512] = "";
        cs_plan plan;
        cs_pattern pattern = {0};
        cs_error error;
        snprintf(text, sizeof(text),
                 "{\"schema_version\": 1, \"stages\": ["
                 "{\"first_layer\": 0, \"last_layer\": 0, \"devices\": [0]}, "
                 "{\"first_layer\": 1, \"last_layer\": 1, \"devices\": [0]}, "
                 "{\"first_layer\": 2, \"last_layer\": 2, \"devices\": [1]}], \"pattern\": %s}",
                 refused[i].pattern);
        if (refused[i].message)
            snprintf(message, sizeof(message), "p.json: /pattern%s", refused[i].message);
        cs_status status = read_pattern(text, &model, &plan, &pattern, &error);
        expect_error(refused[i].name, refused[i].message ? CS_INVALID : CS_OK, message, status,
                     &error);
        cs_pattern_finish(&pattern);
        cs_plan_finish(&plan);
    }
    cs_model_finish(&model);
}

/* ---- jobs that cannot be run ---- */

#define SCENARIO(plan)                                                                             \
    "{'schema_version': 1, 'model': {'uniform': {'layers': 3, 'forward': '1 ms', 'backward': '1 "  \
    "ms'}}, 'platform': {'topology': 'ideal', 'devices': 2}, 'schedule': {'kind': 'periodic', "    \
    "'micro_batches': 1, 'partition': " plan "}}"
#define INLINE(last, more)                                                                         \
    SCENARIO("{'inline': {'schema_version': 1, 'stages': [{'first_layer': 0, 'last_layer': 1, "    \
             "'devices': [0]}, {'first_layer': 2, 'last_layer': 2, 'devices': [" last "]}]" more   \
             "}}")
#define CONTRADICTION                                                                              \
    ", 'pattern': {'period_ps': 9, 'operations': ["                                                \
    "{'operation': 'forward', 'stage': 0, 'start_ps': 0, 'shift': 0}, "                            \
    "{'operation': 'backward', 'stage': 0, 'start_ps': 5, 'shift': 0}, "                           \
    "{'operation': 'forward', 'stage': 1, 'start_ps': 4, 'shift': 0}, "                            \
    "{'operation': 'backward', 'stage': 1, 'start_ps': 3, 'shift': 0}]}"

static const struct {
    const char *name, *text, *message;
} impossible[] = {
    {"no such device", INLINE("2", ""),
     "test: /schedule/partition: must put stage 1 on one device below 2"},
    {"replicas", INLINE("0, 1", ""),
     "test: /schedule/partition: must put stage 1 on one device below 2"},
    {"backward before forward", INLINE("0", CONTRADICTION),
     "test: /schedule: the plan's pattern starts the backward of stage 1 of a micro-batch no later "
     "than "
     "what it waits for, the forward of stage 1"},
};

static void test_impossible_jobs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(impossible); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        cs_status status = scenario_run_init(&run, &error, "%s", impossible[i].text);
        expect_error(impossible[i].name, CS_INVALID, impossible[i].message, status, &error);
    }
}

/* A plan of fewer stages than devices leaves the others idle. */
static void test_idle_device(void **state)
{
    (void)state;
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    cs_status status = scenario_run_init(&run, &error, "%s", SCENARIO("[]"));
    expect_error("one stage", CS_OK, "", status, &error);
    expect_int("makespan", INT64_C(6000000000), run.simulation.trace.makespan);
    expect_int("idle", 0, run.simulation.trace.devices[1].peak);
    scenario_run_finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_patterns), cmocka_unit_test(test_asap_is_tight),
        cmocka_unit_test(test_without_pattern), cmocka_unit_test(test_scenario),
        cmocka_unit_test(test_shared_links),    cmocka_unit_test(test_slow_links),
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_impossible_jobs), cmocka_unit_test(test_idle_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
