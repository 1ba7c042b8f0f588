/* Noise: distributions, by their moments; slow tasks and background messages in the engine, by hand
 * and against the reference engine on a graph that contains those messages; repeated runs. */
#include "sim/base/random.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "sim/run/figures.h"
#include "sim/run/repeat.h"
#include "tests/expect.h"
#include "tests/reference-engine.h"
#include "tests/run-scenario.h"
#include "topologies/topology.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

/* 1 byte takes 1000 ps. */
#define SWITCH "{\"topology\":\"nvlink_switch\",\"bandwidth\":1e9}"

static void check(cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s", cs_status_name(status), error->text);
}

static cs_platform make_platform(const char *text, uint32_t n_devices, cs_sharing sharing)
{
    cs_platform platform;
    cs_error error;
    cs_error_init(&error);
    check(cs_topology_build_text("test", text, n_devices, &platform, &error), &error);
    platform.sharing = sharing;
    return platform;
}

/* ---- distributions ---- */

enum { N = 200000 };

/* Mean and standard deviation of N draws lie within six standard errors of the distribution's
 * values: mean +- 6 sd / sqrt(N); variance +- 6 sqrt((kurtosis - 1) / N) of itself. With
 * probability p, E = p m and E(x^2) = p (d^2 + m^2). Kurtosis of uniform 9/5, exponential 9, normal
 * 3 (lognormal with d = m / 2: w = 1.25, w^4 + 2 w^3 + 3 w^2 - 3 = 8.04); of a mixture it is
 * bounded by 40 here. */
static void test_moments(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_spread spread;
        double deviation; /* deviation of affected values */
    } rows[] = {
        {"constant", {CS_SPREAD_CONSTANT, 0.3, 0, 1}, 0},
        {"constant, some", {CS_SPREAD_CONSTANT, 2, 0, 0.25}, 0},
        {"uniform", {CS_SPREAD_UNIFORM, 0.3, 0, 1}, 0.3 / 1.7320508075688772},
        {"exponential", {CS_SPREAD_EXPONENTIAL, 0.3, 0, 1}, 0.3},
        {"exponential, some", {CS_SPREAD_EXPONENTIAL, 0.3, 0, 0.5}, 0.3},
        {"lognormal", {CS_SPREAD_LOGNORMAL, 0.3, 0.15, 1}, 0.15},
        {"lognormal, tiny", {CS_SPREAD_LOGNORMAL, 1e-200, 0.5e-200, 1}, 0.5e-200},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_spread *s = &rows[i].spread;
        const cs_noise noise = {.slow_tasks = *s};
        cs_error error;
        cs_error_init(&error);
        double *factors, sum = 0, squares = 0;
        check(cs_noise_tasks(&noise, 7, N, &factors, &error), &error);
        for (uint32_t k = 0; k < N; k++) {
            assert_true(factors[k] >= 1);
            sum += factors[k] - 1;
            squares += (factors[k] - 1) * (factors[k] - 1);
        }
        free(factors);
        const double mean = s->probability * s->mean;
        const double square =
            s->probability * (rows[i].deviation * rows[i].deviation + s->mean * s->mean);
        const double variance = square - mean * mean;
        const double got = sum / N, got_variance = squares / N - got * got;
        if (fabs(got - mean) > 6 * sqrt(variance / N) + 1e-9 ||
            fabs(got_variance - variance) > 6 * sqrt(40. / N) * variance + 1e-9)
            fail_msg("%s: mean %g, not %g; variance %g, not %g", rows[i].name, got, mean,
                     got_variance, variance);
    }
}

/* A ring of 50,000 devices has 100,000 links of 1e9: their losses, as above. Only the bandwidths
 * differ. */
static void test_jitter(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_spread spread;
        double deviation;
    } rows[] = {
        {"constant", {CS_SPREAD_CONSTANT, 0.25, 0, 1}, 0},
        {"uniform", {CS_SPREAD_UNIFORM, 0.5, 0, 1}, 0.5 / 1.7320508075688772},
        {"beta", {CS_SPREAD_BETA, 0.1, 0.05, 1}, 0.05},
        {"beta, wide", {CS_SPREAD_BETA, 0.5, 0.4, 1}, 0.4},
        {"beta, narrowest", {CS_SPREAD_BETA, 0.5, 0.5e-6, 1}, 0.5e-6},
        {"beta, widest", {CS_SPREAD_BETA, 0.5, 0.4999994, 1}, 0.4999994},
    };
    cs_platform platform = make_platform(
        "{\"topology\":\"ring\",\"bandwidth\":1e9,\"latency\":\"1 us\"}", 50000, CS_SHARING_COUNT);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_noise noise = {.jitter = rows[i].spread};
        cs_platform made;
        cs_error error;
        cs_error_init(&error);
        check(cs_noise_platform(&noise, &platform, 3, &made, &error), &error);
        const double n = made.n_links;
        double sum = 0, squares = 0;
        for (uint32_t k = 0; k < made.n_links; k++) {
            const double lost = 1 - made.links[k].bandwidth / 1e9;
            assert_true(lost >= 0 && lost < 1);
            assert_int_equal(made.links[k].latency, platform.links[k].latency);
            sum += lost;
            squares += lost * lost;
        }
        const double mean = rows[i].spread.mean, variance = rows[i].deviation * rows[i].deviation;
        const double got = sum / n, got_variance = squares / n - got * got;
        if (fabs(got - mean) > 6 * rows[i].deviation / sqrt(n) + 1e-9 ||
            fabs(got_variance - variance) > 6 * sqrt(5 / n) * variance + 1e-9)
            fail_msg("%s: mean %g, not %g; variance %g, not %g", rows[i].name, got, mean,
                     got_variance, variance);
        assert_int_equal(made.sharing, CS_SHARING_COUNT);
        cs_platform_finish(&made);
    }
    cs_platform_finish(&platform);
}

/* One seed, one outcome; another seed, another one. Devices that are half as slow again. */
static void test_seeds(void **state)
{
    (void)state;
    const cs_noise noise = {.jitter = {CS_SPREAD_UNIFORM, 0.2, 0, 1},
                            .slow_devices = {CS_SPREAD_CONSTANT, 0.5, 0, 1},
                            .n_sources = 50};
    cs_platform platform = make_platform(SWITCH, 9, CS_SHARING_COUNT), made[3];
    cs_pair *pairs[3];
    cs_error error;
    cs_error_init(&error);
    for (uint32_t i = 0; i < 3; i++) {
        check(cs_noise_platform(&noise, &platform, i / 2, &made[i], &error), &error);
        check(cs_noise_pairs(&noise, &platform, i / 2, &pairs[i], &error), &error);
        expect_double("speed", 1 / 1.5, made[i].devices[3].speed);
    }
    for (uint32_t i = 0; i < 50; i++) {
        assert_true(pairs[0][i].source < 9 && pairs[0][i].target < 9);
        assert_int_not_equal(pairs[0][i].source, pairs[0][i].target);
    }
    assert_memory_equal(pairs[0], pairs[1], 50 * sizeof(cs_pair));
    assert_memory_not_equal(pairs[0], pairs[2], 50 * sizeof(cs_pair));
    expect_double("link", made[0].links[0].bandwidth, made[1].links[0].bandwidth);
    assert_true(fabs(made[0].links[0].bandwidth - made[2].links[0].bandwidth) > 1);
    for (uint32_t i = 0; i < 3; i++) {
        cs_platform_finish(&made[i]);
        free(pairs[i]);
    }
    cs_platform_finish(&platform);
}

/* ---- in the engine ---- */

typedef struct scene {
    cs_builder *builder;
    cs_platform platform;
    cs_graph graph;
} scene;

static scene open_scene(const char *platform, uint32_t n_devices, cs_sharing sharing)
{
    return (scene){.builder = cs_builder_create(n_devices, 1, 1, 1),
                   .platform = make_platform(platform, n_devices, sharing)};
}

static uint32_t add_compute(scene *s, uint32_t device, cs_time duration)
{
    return cs_builder_task(
        s->builder, cs_builder_compute(s->builder, CS_FORWARD, 0, device, CS_NONE, duration), 0);
}

static uint32_t add_message(scene *s, cs_purpose purpose, uint32_t from, uint32_t to, int64_t bytes,
                            cs_time delay)
{
    return cs_builder_task(s->builder,
                           cs_builder_class(s->builder, &(cs_class){.kind = CS_TRANSFER,
                                                                    .origin = CS_TRANSFER,
                                                                    .purpose = (uint8_t)purpose,
                                                                    .device = from,
                                                                    .peer = to,
                                                                    .weights = CS_NONE,
                                                                    .bytes = bytes,
                                                                    .duration = delay}),
                           0);
}

static uint32_t add_transfer(scene *s, uint32_t from, uint32_t to, int64_t bytes, cs_time delay)
{
    return add_message(s, CS_PURPOSE_STAGES, from, to, bytes, delay);
}

static void finish_graph(scene *s)
{
    cs_error error;
    cs_error_init(&error);
    check(cs_builder_finish(s->builder, &s->graph, &error), &error);
    check(cs_graph_check(&s->graph, &error), &error);
}

static void close_scene(scene *s)
{
    cs_builder_destroy(s->builder);
    cs_graph_finish(&s->graph);
    cs_platform_finish(&s->platform);
}

static cs_trace run_engine(const scene *s, const cs_engine_options *options)
{
    cs_trace trace;
    cs_error error;
    cs_error_init(&error);
    check(cs_engine_run(&s->graph, &s->platform, options, &trace, &error), &error);
    return trace;
}

/* 100 ps twice as long and 50 ps three times, one after the other; a transfer is not a
 * computation. */
static void test_slow_tasks(void **state)
{
    (void)state;
    scene s = open_scene(SWITCH, 2, CS_SHARING_FIFO);
    const uint32_t a = add_compute(&s, 0, 100), message = add_transfer(&s, 0, 1, 1, 0);
    const uint32_t b = add_compute(&s, 1, 50);
    cs_builder_edge(s.builder, a, message);
    cs_builder_edge(s.builder, message, b);
    finish_graph(&s);
    const double factors[] = {2, 5, 3};
    const cs_engine_options options = {.task_factors = factors};
    cs_trace trace = run_engine(&s, &options), slow;
    cs_error error;
    cs_error_init(&error);
    check(reference_run(&s.graph, &s.platform, &options, &slow, &error), &error);
    expect_int("engine", 200 + 1000 + 150, trace.makespan);
    expect_int("reference", 200 + 1000 + 150, slow.makespan);
    cs_trace_finish(&trace);
    cs_trace_finish(&slow);
    close_scene(&s);
}

/* A message of 4000 bytes from 0 to 1 begins at 10 ps; others send 1000 bytes there from 1 ps on,
 * and again 1 ps after each is through. The link has 1e9 bytes/s, a byte takes 1000 ps.
 *
 * fifo: the first of the others has the link from 1 to 1,000,001 ps; then ours is the oldest, until
 * 5,000,001.
 *
 * count (and max_min: one bottleneck): the other's alone from 1 to 10 ps moves 0.009 bytes; the
 * rest,
 * 999.991, takes 1,999,982 ps at half the rate, until 1,999,992; we have 3000.009 left then. One ps
 * alone: 3000.008. The next until 3,999,993 (2,000,000 ps for 1000 bytes), we have 2000.008, after
 * a ps alone 2000.007, and so on: 1000.006 are left at 5,999,995, in half a link's time until the
 * next message would be through at 7,999,995: 0.006 are left, minus 0.001 in a ps alone, 0.005 at
 * half the rate: 10 ps. 7,999,995 + 1 + 10 = 8,000,006. */
static void test_others(void **state)
{
    (void)state;
    static const struct {
        cs_sharing sharing;
        cs_time makespan;
        int64_t carried; /* bytes carried by the link from 0 */
    } rows[] = {{CS_SHARING_FIFO, 5000001, 5000},
                {CS_SHARING_COUNT, 8000006, 8000},
                {CS_SHARING_MAX_MIN, 8000006, 8000},
                {CS_SHARING_NONE, 4000010, 4000}};
    const cs_pair pair = {0, 1};
    for (size_t i = 0; i < ROWS(rows); i++) {
        scene s = open_scene(SWITCH, 2, rows[i].sharing);
        const uint32_t first = add_compute(&s, 0, 10), message = add_transfer(&s, 0, 1, 4000, 0);
        cs_builder_edge(s.builder, first, message);
        finish_graph(&s);
        const cs_engine_options options = {.record_rates = true, .traffic = {&pair, 1, 1000, 0, 1}};
        cs_trace trace = run_engine(&s, &options);
        expect_int("makespan", rows[i].makespan, trace.makespan);
        expect_int("carried", rows[i].carried, trace.links[0].bytes);
        close_scene(&s);
        cs_trace_finish(&trace);
    }
}

static void expect_rates(cs_sharing sharing, const cs_rate_sample *wanted, uint32_t n)
{
    scene s = open_scene(SWITCH, 3, sharing);
    (void)add_transfer(&s, 0, 2, 1000, 0);
    (void)add_transfer(&s, 1, 2, 2000, 0);
    finish_graph(&s);
    const cs_engine_options options = {.record_rates = true};
    cs_trace trace = run_engine(&s, &options);
    assert_int_equal(trace.n_rates, n);
    for (uint32_t i = 0; i < n; i++) {
        expect_int("time", wanted[i].time, trace.rates[i].time);
        expect_int("task", wanted[i].task, trace.rates[i].task);
        expect_double("rate", wanted[i].rate, trace.rates[i].rate);
    }
    cs_trace_finish(&trace);
    close_scene(&s);
}

/* Two messages into device 2, whose link carries 1 GB/s. max_min: half each until the shorter one
 * is through at 2 us, then all. fifo: all for 1 us, then all for 2 us. */
static void test_rates(void **state)
{
    (void)state;
    static const cs_rate_sample shared[] = {
        {0, 5e8, 0}, {0, 5e8, 1}, {2000000, 0, 0}, {2000000, 1e9, 1}, {3000000, 0, 1}};
    static const cs_rate_sample in_turn[] = {
        {0, 1e9, 0}, {1000000, 0, 0}, {1000000, 1e9, 1}, {3000000, 0, 1}};
    expect_rates(CS_SHARING_MAX_MIN, shared, ROWS(shared));
    expect_rates(CS_SHARING_FIFO, in_turn, ROWS(in_turn));
}

/* A run that others outlast: without tasks it is over at 0, and one that cannot go on is found. */
static void test_only_others(void **state)
{
    (void)state;
    const cs_pair pair = {0, 1};
    const cs_engine_options options = {.traffic = {&pair, 1, 1000, 5, 1}};
    scene s = open_scene(SWITCH, 2, CS_SHARING_COUNT);
    finish_graph(&s);
    cs_trace trace = run_engine(&s, &options);
    expect_int("makespan", 0, trace.makespan);
    cs_trace_finish(&trace);
    close_scene(&s);

    s = open_scene(SWITCH, 2, CS_SHARING_COUNT);
    const uint32_t second = add_compute(&s, 0, 10), first = add_compute(&s, 0, 10);
    cs_builder_edge(s.builder, first, second); /* against program order */
    cs_error error;
    cs_error_init(&error);
    check(cs_builder_finish(s.builder, &s.graph, &error), &error);
    assert_int_equal(cs_engine_run(&s.graph, &s.platform, &options, &trace, &error), CS_FAILED);
    close_scene(&s);
}

/* Background messages do not keep the run going while a task waits for its release time: 10 ps from
 * 5 us on, and then, released at 9 us, from there. */
static void test_released_among_others(void **state)
{
    (void)state;
    const cs_pair pair = {0, 1};
    const cs_engine_options options = {.traffic = {&pair, 1, 1000, 5, 1}};
    scene s = open_scene(SWITCH, 2, CS_SHARING_COUNT);
    uint32_t tasks[2];
    for (uint32_t i = 0; i < 2; i++)
        tasks[i] = cs_builder_task(
            s.builder,
            cs_builder_class(s.builder, &(cs_class){.kind = CS_FORWARD,
                                                    .origin = CS_FORWARD,
                                                    .peer = CS_NONE,
                                                    .weights = CS_NONE,
                                                    .duration = 10,
                                                    .release = 5000000 + i * INT64_C(4000000)}),
            0);
    cs_builder_edge(s.builder, tasks[0], tasks[1]);
    finish_graph(&s);
    cs_trace trace = run_engine(&s, &options);
    expect_int("first", 5000000, trace.spans[tasks[0]].start);
    expect_int("makespan", 9000010, trace.makespan);
    cs_trace_finish(&trace);
    close_scene(&s);
}

enum { SOURCES = 3, MESSAGES = 120, STEPS = 12, DEVICES = 8 };

/* Each device computes and sends in turn. */
static void add_work(scene *s, const gsl_rng *random)
{
    for (uint32_t device = 0; device < DEVICES; device++) {
        uint32_t before = CS_NONE;
        for (uint32_t step = 0; step < STEPS; step++) {
            const uint32_t compute =
                add_compute(s, device, (cs_time)gsl_rng_uniform_int(random, 200000));
            const uint32_t to = (device + 1 + (uint32_t)gsl_rng_uniform_int(random, DEVICES - 1));
            const uint32_t message = add_transfer(s, device, to % DEVICES,
                                                  1 + (int64_t)gsl_rng_uniform_int(random, 500), 0);
            if (before != CS_NONE)
                cs_builder_edge(s->builder, before, compute);
            cs_builder_edge(s->builder, compute, message);
            before = message;
        }
    }
}

/* Sources as tasks: a silence is a transfer of no bytes that takes as long. Their messages have a
 * separate purpose, so the work's messages do not wait for them. */
static void add_messages(scene *s, const cs_traffic *traffic)
{
    for (uint32_t i = 0; i < traffic->n_sources; i++) {
        char name[32];
        snprintf(name, sizeof(name), "traffic %" PRIu32, i);
        gsl_rng *stream = cs_random_stream(traffic->seed, name);
        uint32_t before = CS_NONE;
        for (uint32_t k = 0; k < MESSAGES; k++) {
            cs_time silence;
            assert_true(cs_time_from_seconds(
                gsl_ran_exponential(stream, cs_time_seconds(traffic->gap)), &silence));
            const cs_pair ends = traffic->pairs[i];
            const uint32_t wait =
                add_transfer(s, ends.source, ends.source, 0, silence > 0 ? silence : 1);
            const uint32_t message =
                add_message(s, CS_PURPOSE_WEIGHTS, ends.source, ends.target, traffic->bytes, 0);
            if (before != CS_NONE)
                cs_builder_edge(s->builder, before, wait);
            cs_builder_edge(s->builder, wait, message);
            before = message;
        }
        gsl_rng_free(stream);
    }
}

/* The engine with messages of others, and the reference engine on a graph that has them as tasks:
 * the work has the same spans. There are more of these tasks than the work lasts. */
static void test_against_reference(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_FIFO, CS_SHARING_COUNT, CS_SHARING_MAX_MIN};
    static const char tree[] = "{\"topology\":\"fat_tree\",\"down\":[4,2],\"up\":[1],"
                               "\"bandwidth\":1e9,\"latency\":\"20 ns\"}";
    static const cs_pair pairs[SOURCES] = {{0, 5}, {6, 1}, {2, 3}};
    for (uint32_t seed = 0; seed < 6; seed++) {
        scene own = open_scene(tree, DEVICES, sharings[seed % 3]);
        scene all = open_scene(tree, DEVICES, sharings[seed % 3]);
        const cs_traffic traffic = {pairs, SOURCES, 300, 400000, seed};
        scene *const scenes[] = {&own, &all};
        for (uint32_t i = 0; i < 2; i++) {
            gsl_rng *random = cs_random_stream(seed, "work");
            add_work(scenes[i], random);
            gsl_rng_free(random);
            if (i == 1)
                add_messages(&all, &traffic);
            finish_graph(scenes[i]);
        }
        cs_trace trace = run_engine(&own, &(cs_engine_options){.traffic = traffic}), slow;
        cs_error error;
        cs_error_init(&error);
        check(reference_run(&all.graph, &all.platform, &(cs_engine_options){0}, &slow, &error),
              &error);
        assert_true(slow.makespan > trace.makespan);
        for (uint32_t task = 0; task < own.graph.n_tasks; task++)
            if (memcmp(&trace.spans[task], &slow.spans[task], sizeof(cs_span)) != 0)
                fail_msg("seed %" PRIu32 ", task %" PRIu32 ": ends at %" PRId64 ", not %" PRId64,
                         seed, task, trace.spans[task].end, slow.spans[task].end);
        cs_trace_finish(&trace);
        cs_trace_finish(&slow);
        close_scene(&own);
        close_scene(&all);
    }
}

/* ---- repeated runs ---- */

/* 1 to 5: mean 3, deviation sqrt(10 / 4); t(0.975, 4) = 2.776445 (any table), half the interval
 * 2.776445 sqrt(2.5 / 5) = 1.963243. Quantile q stands at 4 q: 5 % at 1.2, 95 % at 4.8. */
static void test_summary(void **state)
{
    (void)state;
    const double values[] = {5, 1, 4, 2, 3};
    static const double quantiles[] = {1, 1.2, 2, 3, 4, 4.8, 5};
    cs_summary of;
    assert_int_equal(cs_summary_of(values, 5, &of, NULL), CS_OK);
    assert_true(fabs(of.mean - 3) < 1e-15 && fabs(of.deviation - sqrt(2.5)) < 1e-15);
    assert_true(fabs(of.high - 3 - 1.963243) < 1e-6 && fabs(3 - of.low - 1.963243) < 1e-6);
    for (size_t q = 0; q < ROWS(quantiles); q++)
        assert_true(fabs(of.quantiles[q] - quantiles[q]) < 1e-12);
    const double none[] = {1, NAN};
    assert_int_equal(cs_summary_of(none, 2, &of, NULL), CS_OK);
    assert_true(isnan(of.mean) && isnan(of.high) && isnan(of.quantiles[3]));
}

/* The runs are those that a scenario with their seed makes, in any number of threads. */
static void test_runs(void **state)
{
    (void)state;
    static const char text[] =
        "{'schema_version': 1, 'model': {'uniform': {'forward': '1 ms', 'backward': '2 ms',"
        " 'layers': 4, 'weights': '1 MB'}}, 'platform': {'topology': 'ring', 'devices': 4,"
        " 'bandwidth': '1 GB/s', 'jitter': {'mean': 0.2}, 'stragglers': {'tasks': {'mean': 0.1}},"
        " 'background': {'flows': 2, 'bytes': '100 kB', 'gap': '1 ms'}},"
        " 'schedule': {'kind': 'dp'}, 'seed': %d}";
    enum { RUNS = 6 };
    uint32_t makespan = 0;
    scenario_run first;
    cs_runs runs[2] = {0};
    cs_error error;
    cs_error_init(&error);
    check(scenario_run_init(&first, &error, text, 11), &error);
    for (uint32_t i = 0; i < 2; i++)
        check(cs_runs_make(&first.scenario, &(cs_simulation_options){0}, &first.simulation, RUNS,
                           1 + 3 * i, &runs[i], &error),
              &error);
    while (cs_run_figure_main(makespan) != cs_run_figure_find("makespan_s"))
        makespan++;
    for (uint32_t i = 0; i < RUNS; i++) {
        scenario_run one;
        check(scenario_run_init(&one, &error, text, 11 + (int)i), &error);
        expect_bits("one thread", one.simulation.hash, runs[0].hashes[i]);
        expect_bits("four threads", one.simulation.hash, runs[1].hashes[i]);
        expect_double("makespan", cs_time_seconds(one.simulation.trace.makespan),
                      cs_runs_values(&runs[1], makespan)[i]);
        assert_true(i == 0 || runs[0].hashes[i] != runs[0].hashes[i - 1]);
        for (uint32_t f = 0; f < one.simulation.forms.n; f++)
            assert_false(one.simulation.forms.forms[f].applies);
        scenario_run_finish(&one);
    }
    cs_runs_finish(&runs[0]);
    cs_runs_finish(&runs[1]);
    scenario_run_finish(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_slow_tasks),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_only_others),
        cmocka_unit_test(test_released_among_others),
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
