/* PipeDream and PipeDream-2BW: versions of the weights that live, and the smallest accumulation
 * with which two of them are enough, found by running what is too small. P stages of equal
 * times. */
#include "schedules/order-1f1b.h"
#include "schedules/pipeline.h"
#include "sim/core/engine/engine.h"
#include "sim/core/lower/lower.h"
#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <math.h>

static const char scenario[] =
    "{'schema_version': 1, 'iterations': %u,"
    " 'model': {'uniform': {'forward': '%u s', 'backward': '%u s', 'weights': '10 B'}},"
    " 'platform': {'topology': 'ideal', 'devices': %u, 'memory': '1 TB'},"
    " 'schedule': {'kind': %s}}";

static scenario_run simulate(const char *kind, uint32_t n_stages, uint32_t iterations,
                             uint32_t forward, uint32_t backward)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(&run, &error, scenario, iterations, forward, backward, n_stages, kind) !=
        CS_OK)
        fail_msg("%s, %u stages: %s", kind, n_stages, error.text);
    return run;
}

/* Flushed: no backward reads old weights. */
static void test_flush(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 4; P++) {
        scenario_run run = simulate("'1f1b', 'micro_batches': 6", P, 8, 1, 2);
        assert_true(cs_staleness_mean(&run.simulation.analysis.staleness, CS_NONE) == 0);
        scenario_run_finish(&run);
    }
}

/* ---- PipeDream ---- */

/* Stage s = 0 .. P-1 has P - s mini-batches in flight, each with its own version (the newest is
 * current); it stashes P - s versions, its gradients are P - 1 - s updates late. */
static void test_stashing(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 16; P++) {
        scenario_run run = simulate("'pipedream'", P, 4 * P, 1, 2);
        for (uint32_t s = 0; s < P; s++) {
            const cs_slot_staleness *slot = &run.simulation.analysis.staleness.slots[s];
            expect_int("versions alive", P - s, slot->peak_versions);
            expect_int("gradient delay", P - 1 - s, slot->gradient_delay.value);
            assert_true(slot->gradient_delay.steady);
            expect_int("bytes", 10 * (P - s - 1),
                       run.simulation.trace.devices[s].category_peak[CS_MEMORY_WEIGHT_VERSIONS]);
            assert_true(cs_staleness_mean_of_slot(slot) == P - 1 - s);
        }
        /* 0 + 1 + ... + (P - 1), over P */
        assert_true(cs_staleness_mean(&run.simulation.analysis.staleness, CS_NONE) ==
                    (P - 1) / 2.0);
        scenario_run_finish(&run);
    }
}

/* With vertical sync mini-batch b is computed with version b - P + 1 (0 for the first ones) on all
 * stages. So all gradients are P - 1 updates late. Stage 0 has P mini-batches in flight, each with
 * a version of its own. The last stage has but one; when it has made version b + 1, however, the
 * next one to arrive, b + 1, still wants version b - P + 2: it keeps P versions as well, as do
 * those in between. */
static void test_vertical_sync(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 16; P++) {
        scenario_run run = simulate("'pipedream', 'vertical_sync': true", P, 4 * P, 1, 2);
        const cs_staleness *found = &run.simulation.analysis.staleness;
        for (uint32_t s = 0; s < P; s++) {
            expect_int("gradient delay", P - 1, found->slots[s].gradient_delay.value);
            assert_true(found->slots[s].gradient_delay.steady);
            expect_int("versions alive", P, found->slots[s].peak_versions);
        }
        assert_true(cs_staleness_mean(found, CS_NONE) == P - 1);
        uint32_t n = 0;
        for (uint32_t f = 0; f < run.simulation.forms.n; f++) {
            const cs_form *form = &run.simulation.forms.forms[f];
            if (form->figure != CS_FIGURE_PEAK_VERSIONS)
                continue;
            expect_int("closed form", P, (int64_t)cs_form_value(form));
            assert_true(cs_form_is_promised(form));
            n++;
        }
        expect_int("closed forms", P, n);
        scenario_run_finish(&run);
    }
}

/* ---- PipeDream-2BW ---- */

/* As pipedream_2bw has them. */
static void two_versions(const cs_job *job, const void *params, cs_builder *builder,
                         const uint32_t *slots, uint32_t stage, cs_stage_policies *made)
{
    (void)job, (void)params;
    const cs_policy policy = {.read = CS_READ_LAG, .lag = 2, .writes = CS_NONE};
    made->forward = cs_builder_policy(builder, &policy);
    made->backward = made->forward;
    cs_builder_retain(builder, slots[stage], 2, slots[stage]);
}

/* The schedule for any accumulation, also one that is too small. */
static cs_status run_2bw(const cs_scenario *of, uint32_t micro_batches, cs_trace *trace,
                         cs_error *error)
{
    cs_job job = of->job;
    job.micro_batches = micro_batches;
    cs_graph logical = {0}, graph = {0};
    const cs_pipeline_options options = {
        .order = cs_order_1f1b, .continuous = true, .policies = two_versions};
    cs_builder *builder =
        cs_builder_create(job.n_devices, job.plan->n_stages, micro_batches, job.iterations);
    assert_non_null(builder);
    cs_status status = cs_pipeline_generate(&job, &options, builder, error);
    if (status == CS_OK)
        status = cs_builder_finish(builder, &logical, error);
    if (status == CS_OK)
        status = cs_graph_check(&logical, error);
    if (status == CS_OK)
        status = cs_lower(&logical, &graph, error);
    if (status == CS_OK)
        status = cs_engine_run(&graph, &of->platform, &(cs_engine_options){0}, trace, error);
    cs_builder_destroy(builder);
    cs_graph_finish(&logical);
    cs_graph_finish(&graph);
    return status;
}

/* M = P - 1 micro-batches run with two versions at most, M = P - 2 ask for one that is not there,
 * however long forwards and backwards take. */
static void test_smallest_accumulation(void **state)
{
    (void)state;
    static const uint32_t times[][2] = {{1, 1}, {1, 2}, {3, 1}};
    for (uint32_t i = 0; i < 3 * 15; i++) {
        const uint32_t P = 2 + i / 3;
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(scenario_run_read(&run, &error, scenario, 16u, times[i % 3][0],
                                           times[i % 3][1], P, "'pipedream'"),
                         CS_OK);
        cs_trace trace = {0};
        for (uint32_t M = P > 2 ? P - 2 : 1; M < P; M++) {
            const cs_status expected = M >= P - 1 ? CS_OK : CS_FAILED;
            const cs_status status = run_2bw(&run.scenario, M, &trace, &error);
            if (status != expected)
                fail_msg("P %u, M %u: %s: %s", P, M, cs_status_name(status), error.text);
        }
        for (uint32_t s = 0; s < P; s++)
            expect_int("versions alive", 2, trace.slots[s].peak_live);
        cs_trace_finish(&trace);
        scenario_run_finish(&run);
    }
}

static void test_refusal(void **state)
{
    (void)state;
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    const cs_status status = scenario_run_init(&run, &error, scenario, 4u, 1u, 1u, 6u,
                                               "'pipedream_2bw', 'micro_batches': 4");
    expect_error("2BW", CS_INVALID,
                 "test: /schedule/micro_batches: must be at least 5 for 6 stages, so that two "
                 "versions of the weights are enough (got 4)",
                 status, &error);
}

/* Every gradient is one update late. */
static void test_delay_of_2bw(void **state)
{
    (void)state;
    scenario_run run = simulate("'pipedream_2bw', 'micro_batches': 4", 4, 16, 1, 2);
    for (uint32_t s = 0; s < 4; s++) {
        const cs_slot_staleness *slot = &run.simulation.analysis.staleness.slots[s];
        assert_true(slot->gradient_delay.steady);
        expect_int("gradient delay", 1, slot->gradient_delay.value);
        expect_int("versions alive", 2, slot->peak_versions);
    }
    assert_true(cs_staleness_mean(&run.simulation.analysis.staleness, CS_NONE) == 1);
    scenario_run_finish(&run);
}

/* ---- the steady part ---- */

/* Stage 0 begins P mini-batches before the first backward returns: they are the fill. From then on
 * it begins mini-batch b when b - P ends, so the last of n begins when n - 1 - P ends: P .. n - 1 -
 * P are steady, n - 2 P of them, and equal stages never wait then. */
static void test_steady(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 8; P++) {
        for (uint32_t n = 1; n <= 4 * P; n++) {
            scenario_run run = simulate("'pipedream'", P, n, 1, 2);
            const cs_steady_part *steady = &run.simulation.analysis.steady;
            expect_int("fill", n < P ? n : P, steady->in_flight);
            expect_int("steady", n > 2 * P ? n - 2 * P : 0, steady->n);
            if (n >= 2 * P + 2)
                expect_double("bubble", 0, steady->bubble);
            else
                assert_true(isnan(steady->bubble));
            scenario_run_finish(&run);
        }
    }
}

/* Two layers on device 0 and one on device 1, forward 1 s and backward 2 s each: device 0 computes
 * 6 s of every 6 s, device 1 half of them. With 8 mini-batches, b ends at 9 + 6 b s and begins at 6
 * b - 3 s from the third on: the fill ends at 15 s, the drain begins at 39 s. */
static void test_steady_of_unequal_stages(void **state)
{
    (void)state;
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error, "%s",
            "{'schema_version': 1, 'iterations': 8, 'model': {'uniform': {'layers': 3, 'forward': "
            "'1 s', 'backward': '2 s'}}, 'platform': {'topology': 'ideal', 'devices': 2}, "
            "'schedule': {'kind': 'pipedream', 'partition': [2]}}") != CS_OK)
        fail_msg("%s", error.text);
    expect_int("fill", 2, run.simulation.analysis.steady.in_flight);
    expect_int("steady", 4, run.simulation.analysis.steady.n);
    expect_double("bubble", 0.25, run.simulation.analysis.steady.bubble);
    scenario_run_finish(&run);
}

/* With a flush every mini-batch is like the others, (P - 1) of (M + P - 1) idle, and of n all but
 * the first and the last are steady. */
static void test_steady_of_a_flush(void **state)
{
    (void)state;
    scenario_run run = simulate("'1f1b', 'micro_batches': 4", 3, 4, 1, 2);
    expect_int("fill", 1, run.simulation.analysis.steady.in_flight);
    expect_int("steady", 2, run.simulation.analysis.steady.n);
    expect_double("bubble", 2.0 / 6, run.simulation.analysis.steady.bubble);
    scenario_run_finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_stashing),
        cmocka_unit_test(test_vertical_sync),
        cmocka_unit_test(test_smallest_accumulation),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_delay_of_2bw),
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_steady_of_unequal_stages),
        cmocka_unit_test(test_steady_of_a_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
