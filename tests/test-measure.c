/* Measurements on a device whose clock advances only by its work, so results are known. */
#include "calib/bench/device/driver-version.h"
#include "calib/bench/measure/measure.h"
#include "tests/fake-backend.h"

#include "expect.h"

#include <math.h>

static const double millisecond = 1e-3;

static double steady(double now)
{
    (void)now;
    return millisecond;
}

/* A GPU that gets warm: from 1 to 2 ms between 0.5 s and 1.5 s. */
static double slower(double now)
{
    return millisecond * (now < 0.5 ? 1 : now < 1.5 ? 0.5 + now : 2);
}

static double slow(double now)
{
    (void)now;
    return 1;
}

/* ---- networks ---- */

typedef struct subject {
    cs_net net;
    cs_net_chain chain;
    cs_accelerator none;
    cs_costs costs;
    cs_measure_report report;
} subject;

static void build(cs_net *net)
{
    cs_tensor x = cs_net_image(net, 2, (cs_extent){2, {4, 4}});
    x = cs_net_conv(net, "conv", x, &(cs_conv){.out = 4, .kernel = 3, .pad = 1});
    x = cs_net_tokens(net, "tokens", cs_net_relu(net, "relu", x));
    x = cs_net_linear(net, "fc", x, &(cs_linear){.out = 4, .bias = true});
    cs_net_cross_entropy(net, "loss", cs_net_take_first(net, "first", x));
}

static void measure(const cs_backend *backend, cs_fake_device *device, double limit, subject *s)
{
    cs_error error;
    cs_bench *bench;
    cs_error_init(&error);
    memset(s, 0, sizeof(*s));
    cs_net_begin(&s->net, "small", &error);
    build(&s->net);
    assert_int_equal(cs_net_end(&s->net), CS_OK);
    cs_accelerator_none(&s->none);
    cs_net_options how = {.batch_size = 1, .device = &s->none, .source = "a test"};
    assert_int_equal(cs_net_chain_find(&s->net, &how, &s->chain, &error), CS_OK);
    cs_costs_init(&s->costs);
    cs_measure_options options = {.backend = backend,
                                  .net = &s->net,
                                  .chain = &s->chain,
                                  .batch = 2,
                                  .n_states = 1,
                                  .share = 0.02,
                                  .time_limit = limit};
    cs_cost_source source = {"a test", "none", "", "", "", "2026-01-01", ""};
    assert_int_equal(cs_costs_add_source(&s->costs, &source, &options.source, &error), CS_OK);
    cs_fake_use(device);
    assert_int_equal(backend->open(0, &bench, &error), CS_OK);
    options.bench = bench;
    if (cs_measure_compute(&options, &s->costs, &s->report, &error) != CS_OK)
        fail_msg("%s", error.text);
    backend->close(bench);
    cs_fake_use(NULL);
    expect_int("given back", 0, cs_fake_held());
    assert_true(s->costs.n_compute >= 6); /* conv, relu, fc, loss, two updates */
}

static void finish(subject *s)
{
    cs_costs_finish(&s->costs);
    cs_net_chain_finish(&s->chain);
    cs_net_finish(&s->net);
}

/* Every pass of every piece takes what every kernel does. */
static void expect_all(const subject *s, double seconds)
{
    for (uint32_t i = 0; i < s->costs.n_compute; i++) {
        const cs_cost_compute *at = &s->costs.compute[i];
        for (int p = 0; p < CS_COST_PASSES; p++)
            if (at->passes[p].samples > 0 && (fabs(at->passes[p].median / seconds - 1) > 1e-6 ||
                                              fabs(at->passes[p].low / seconds - 1) > 1e-6))
                fail_msg("%s, %s: %g s (from %g), expected %g", at->op, cs_cost_passes[p],
                         at->passes[p].median, at->passes[p].low, seconds);
    }
}

/* The first kernel does not wait for the filling of its input: 1 s in every step. */
static void test_inputs(void **state)
{
    cs_fake_device device = {.kernel = steady, .fill = 1};
    subject s;
    (void)state;
    measure(&cs_backend_fake, &device, 1000, &s);
    expect_all(&s, millisecond);
    expect_int("settled", 0, s.report.unsettled);
    finish(&s);
}

/* Nothing of the first 1.5 s counts, and what counts is 1 s at least. */
static void test_slower(void **state)
{
    cs_fake_device device = {.kernel = slower, .left = 1 << 20, .all = 3 << 20};
    subject s;
    (void)state;
    measure(&cs_backend_fake_gpu, &device, 100, &s);
    expect_all(&s, 2 * millisecond);
    assert_true(s.report.steps * s.report.step.median >= 1);
    expect_int("outside", (2 << 20) - s.report.held_bytes, s.report.outside_bytes);
    finish(&s);
}

/* A lead in every step but the two that show how long starting takes; no kernel's time has it. */
static void test_lead(void **state)
{
    cs_fake_device device = {.kernel = steady};
    subject s;
    (void)state;
    measure(&cs_backend_fake_gpu, &device, 100, &s);
    expect_all(&s, millisecond);
    expect_int("delays", s.report.warm_up + s.report.steps - 2, device.delays);
    assert_true(device.longest_delay > 0 && device.longest_delay <= 5e-3);
    finish(&s);
}

/* A step takes more than the limit: one warms up, one counts, and no interval is one. */
static void test_limit(void **state)
{
    cs_fake_device device = {.kernel = slow};
    subject s;
    (void)state;
    measure(&cs_backend_fake, &device, 3, &s);
    expect_int("warm-up", 1, s.report.warm_up);
    expect_int("steps", 1, s.report.steps);
    uint32_t passes = 0;
    for (uint32_t i = 0; i < s.costs.n_compute; i++)
        for (int p = 0; p < CS_COST_PASSES; p++)
            passes += s.costs.compute[i].passes[p].samples == 1;
    expect_int("not settled", passes, s.report.unsettled);
    finish(&s);
}

/* ---- copies ---- */

static void copy(const cs_backend *backend, cs_fake_device *device, cs_costs *costs)
{
    cs_cost_source source = {"a test", "none", "", "", "", "2026-01-01", ""};
    cs_error error;
    cs_bench *bench;
    uint32_t id;
    cs_error_init(&error);
    cs_costs_init(costs);
    assert_int_equal(cs_costs_add_source(costs, &source, &id, &error), CS_OK);
    cs_fake_use(device);
    assert_int_equal(backend->open(0, &bench, &error), CS_OK);
    if (cs_measure_copies(backend, bench, id, NULL, costs, &error) != CS_OK)
        fail_msg("%s", error.text);
    backend->close(bench);
    cs_fake_use(NULL);
    expect_int("given back", 0, cs_fake_held());
    expect_int("random numbers", false, device->same_numbers);
}

/* Times are differences of a clock's values: the last digits are lost. */
static void expect_rate(const char *row, double expected, double got)
{
    if (fabs(got - expected) > 1e-6 * expected)
        fail_msg("%s: expected %g, got %g bytes/s", row, expected, got);
}

static double rate_of(const cs_costs *costs, const char *kind)
{
    const cs_cost_bandwidth *at = cs_costs_bandwidth(costs, kind);
    return at ? at->bytes_per_s.value : 0;
}

/* Copies that wait for the host take 1 s here. A copy within a memory moves its bytes twice. */
static void test_copies(void **state)
{
    (void)state;
    for (int peer = 0; peer < 3; peer++) {
        cs_fake_device device = {.kernel = steady,
                                 .rates = {[CS_COPY_DEVICE] = 1e12,
                                           [CS_COPY_HELD_TO_DEVICE] = 25e9,
                                           [CS_COPY_HELD_FROM_DEVICE] = 20e9,
                                           [CS_COPY_TO_PEER] = 50e9},
                                 .left = 16 << 20,
                                 .all = 64 << 20,
                                 .peer = peer > 0,
                                 .direct = peer > 1};
        cs_costs costs;
        copy(&cs_backend_fake_gpu, &device, &costs);
        expect_int("a quarter of the free memory", 4 << 20, device.copied);
        expect_rate("memory", 2e12, rate_of(&costs, "device_read_write"));
        expect_rate("to the device", 25e9, rate_of(&costs, "host_to_device"));
        expect_rate("from the device", 20e9, rate_of(&costs, "device_to_host"));
        expect_rate("between devices", peer == 2 ? 50e9 : 0, rate_of(&costs, "peer_to_peer"));
        expect_rate("by the host", peer == 1 ? 50e9 : 0, rate_of(&costs, "peer_by_host"));
        cs_costs_finish(&costs);
    }
}

static void test_copies_of_host(void **state)
{
    cs_fake_device device = {.kernel = steady, .rates = {[CS_COPY_DEVICE] = 1e10}};
    cs_costs costs;
    (void)state;
    copy(&cs_backend_fake, &device, &costs);
    expect_rate("memory", 2e10, rate_of(&costs, "device_read_write"));
    expect_int("nothing else", 1, costs.n_bandwidths);
    cs_costs_finish(&costs);
}

/* ---- provenance ---- */

static void test_driver(void **state)
{
    static const char *const rows[][2] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC "
         "2023\n",
         "535.104.05"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  "
         "(root@host)\n",
         "580.65.06"},
        {"", ""},
        {"a 1. .2 3 x4.5", ""},
        {"123456789012345678901234567890.5", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[16];
        expect_text(rows[i][0], rows[i][1], cs_driver_version(rows[i][0], text, sizeof(text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs), cmocka_unit_test(test_slower),
        cmocka_unit_test(test_lead),   cmocka_unit_test(test_limit),
        cmocka_unit_test(test_copies), cmocka_unit_test(test_copies_of_host),
        cmocka_unit_test(test_driver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
