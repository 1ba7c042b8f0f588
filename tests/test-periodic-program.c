/* The integer program against everything that there is, and against 1F1B*; exact periods. */
#include "schedules/plan/pattern-order.h"
#include "schedules/plan/periodic-program.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/tiny-chain.h"

#include <stdlib.h>

static const cs_program_options any = {.time_limit = 60, .below = CS_TIME_MAX};

static const char *const ends[] = {"optimal", "feasible", "infeasible", "unknown"};

static void expect_end(const char *row, cs_program_end expected, cs_program_end got)
{
    expect_text(row, ends[expected], ends[got]);
}

/* Of a pattern that must be valid; 0 when there is none. */
static cs_time solved(const char *row, const tiny_chain *tiny, const tiny_plan *plan,
                      const cs_program_options *options, cs_program_end *end)
{
    cs_pattern pattern = {0};
    cs_error error;
    cs_error_init(&error);
    cs_status status =
        cs_pattern_program(&tiny->chain, &plan->plan, options, &pattern, end, &error);
    expect_error(row, CS_OK, "", status, &error);
    cs_time period = pattern.period;
    if (period > 0) {
        status = cs_pattern_check(&tiny->chain, &plan->plan, &pattern, NULL, &error);
        expect_error(row, CS_OK, "", status, &error);
    }
    cs_pattern_finish(&pattern);
    return period;
}

/* ---- against all starts ---- */

static void expect_best(const char *row, const tiny_chain *tiny, const tiny_plan *plan,
                        cs_time best)
{
    cs_program_end end;
    expect_int(row, best, solved(row, tiny, plan, &any, &end));
    expect_end(row, best > 0 ? CS_PROGRAM_OPTIMAL : CS_PROGRAM_INFEASIBLE, end);
    if (best == 0)
        return;
    cs_program_options below = any;
    below.below = best;
    expect_int(row, 0, solved(row, tiny, plan, &below, &end));
    expect_end(row, CS_PROGRAM_INFEASIBLE, end);
    below.below = best + 1;
    expect_int(row, best, solved(row, tiny, plan, &below, &end));
}

static void against_everything(const tiny_limits *limits, const char *name, uint32_t trials,
                               uint32_t enough)
{
    gsl_rng *rng = cs_random_stream(1, name);
    uint32_t done = 0, possible = 0;
    for (uint32_t i = 0; i < trials; i++) {
        char row[64];
        tiny_chain tiny;
        tiny_plan plan;
        tiny_chain_make(rng, limits, &tiny);
        tiny_plan_make(rng, &tiny.chain, false, &plan);
        cs_time best = tiny_best_period(&tiny.chain, &plan.plan, CS_TIME_MAX, 100000);
        if (best < 0)
            continue;
        snprintf(row, sizeof(row), "%s %" PRIu32, name, i);
        expect_best(row, &tiny, &plan, best);
        done++;
        possible += best > 0;
    }
    print_message("%s: %u of %u solved by trying all, %u of them possible\n", name, done, trials,
                  possible);
    assert_true(possible >= enough);
    gsl_rng_free(rng);
}

static void program_against_everything(void **state)
{
    (void)state;
    against_everything(&(tiny_limits){3, 2, 3, 1, 4, true}, "two devices", 1000, 200);
    against_everything(&(tiny_limits){4, 2, 2, 1, 4, true}, "four stages", 1000, 200);
    against_everything(&(tiny_limits){5, 3, 2, 0, 5, true}, "no messages", 1000, 200);
    against_everything(&(tiny_limits){4, 3, 2, 2, 5, true}, "three devices", 1000, 200);
}

/* ---- against 1F1B* ---- */

static void program_against_1f1b(void **state)
{
    (void)state;
    static const tiny_limits limits = {7, 7, 20, 8, 20};
    gsl_rng *rng = cs_random_stream(1, "contiguous");
    uint32_t possible = 0;
    for (uint32_t i = 0; i < 400; i++) {
        char row[32];
        tiny_chain tiny;
        tiny_plan plan;
        cs_pattern pattern = {0};
        cs_program_end end;
        tiny_chain_make(rng, &limits, &tiny);
        tiny_plan_make(rng, &tiny.chain, true, &plan);
        cs_status status = cs_pattern_1f1b_fit(&tiny.chain, &plan.plan, &pattern, NULL);
        assert_true(status == CS_OK || status == CS_LIMIT);
        snprintf(row, sizeof(row), "contiguous %" PRIu32, i);
        expect_int(row, pattern.period, solved(row, &tiny, &plan, &any, &end));
        expect_end(row, pattern.period > 0 ? CS_PROGRAM_OPTIMAL : CS_PROGRAM_INFEASIBLE, end);
        possible += pattern.period > 0;
        cs_pattern_finish(&pattern);
    }
    assert_true(possible > 100);
    gsl_rng_free(rng);
}

/* ---- the ends of chains ---- */

/* A model that ends in layers without any time: what is found is valid, and no better than the best
 * of all. */
static void program_without_time_at_the_end(void **state)
{
    (void)state;
    static const tiny_limits limits = {4, 3, 1, 1, 4, false};
    gsl_rng *rng = cs_random_stream(1, "no time");
    uint32_t equal = 0, possible = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        char row[32];
        tiny_chain tiny;
        tiny_plan plan;
        cs_program_end end;
        tiny_chain_make(rng, &limits, &tiny);
        tiny_plan_make(rng, &tiny.chain, false, &plan);
        cs_time best = tiny_best_period(&tiny.chain, &plan.plan, CS_TIME_MAX, 100000);
        snprintf(row, sizeof(row), "no time %" PRIu32, i);
        cs_time found = solved(row, &tiny, &plan, &any, &end);
        if (best < 0)
            continue;
        if (found > 0 && found < best)
            fail_msg("%s: %" PRId64 ", and the best is %" PRId64, row, found, best);
        possible += best > 0;
        equal += best > 0 && found == best;
    }
    print_message("no time: %u of %u as good as can be\n", equal, possible);
    assert_true(possible > 200 && equal > possible * 9 / 10);
    gsl_rng_free(rng);
}

/* ---- large numbers ---- */

static void scale_chain(tiny_chain *tiny, int64_t time, int64_t bytes)
{
    for (uint32_t l = 0; l <= tiny->chain.n_layers; l++) {
        tiny->forward[l] *= time;
        tiny->backward[l] *= time;
        tiny->message[l] *= time;
        tiny->fixed[l] *= bytes;
        tiny->kept[l] *= bytes;
        tiny->boundary[l] *= bytes;
    }
    tiny->chain.memory *= bytes;
}

/* In units of 10^12 + 39 ps (a prime, and a second) and of about a GB, periods are as many times
 * longer: those of cycles with several laps are rounded up only then. */
static void program_in_large_units(void **state)
{
    (void)state;
    static const tiny_limits limits = {6, 3, 9, 4, 9, true};
    const cs_time unit = INT64_C(1000000000039);
    gsl_rng *rng = cs_random_stream(1, "large");
    uint32_t possible = 0;
    for (uint32_t i = 0; i < 300; i++) {
        char row[32];
        tiny_chain tiny;
        tiny_plan plan;
        cs_program_end end, large_end;
        tiny_chain_make(rng, &limits, &tiny);
        tiny_plan_make(rng, &tiny.chain, false, &plan);
        snprintf(row, sizeof(row), "large %" PRIu32, i);
        cs_time small = solved(row, &tiny, &plan, &any, &end);
        scale_chain(&tiny, unit, 1000003);
        cs_time large = solved(row, &tiny, &plan, &any, &large_end);
        expect_end(row, end, large_end);
        expect_int(row, small, large / unit + (large % unit > 0));
        possible += large > 0;
    }
    assert_true(possible > 100);
    gsl_rng_free(rng);
}

/* ---- exact periods ---- */

/* Device 0 has stages 0 and 2, device 1 has stage 1; no messages take time. */
static void alternating(tiny_chain *tiny, tiny_plan *plan)
{
    *tiny = (tiny_chain){.forward = {0, 1, 3, 4}, .backward = {0, 1, 3, 4}};
    tiny->chain = (cs_chain){.n_layers = 3,
                             .n_devices = 2,
                             .memory = INT64_MAX,
                             .sum_forward = tiny->forward,
                             .sum_backward = tiny->backward,
                             .sum_fixed = tiny->fixed,
                             .sum_kept = tiny->kept,
                             .boundary = tiny->boundary,
                             .message = tiny->message};
    *plan = (tiny_plan){.stages = {{0, 1, 0, 1}, {1, 2, 1, 1}, {2, 3, 2, 1}},
                        .devices = {0, 1, 0}};
    plan->plan = (cs_plan){3, 3, plan->stages, plan->devices};
}

/* F0 F1 F2 B2 B1 B0 take 1 2 1 1 2 1. With the shifts below all of a micro-batch is over before it
 * started three periods before, the cycle F0 .. B0, F0 of 3 laps takes 8 ps: T >= 8 / 3, rounded up
 * to 3; but each device is busy for 4 ps. With shift 0 for all: T = 8. */
static void tightening(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_pattern_op forward[3], backward[3];
        cs_time period; /* 0: none */
    } rows[] = {
        {"one after the other", {{0, 0}, {10, 0}, {20, 0}}, {{50, 0}, {40, 0}, {30, 0}}, 8},
        /* in the order of a device, F2 F0 B2 B0 and B1 F1: F1 of i + 1 ends before B1 of i starts
         * again, so F1 (2) F2 (1) B2 (1) B1 (2) and back to F1 take 6 in one lap, as do ... */
        {"overlapping", {{20, 0}, {40, 0}, {0, 1}}, {{60, 2}, {0, 2}, {30, 1}}, 0},
        {"backward before forward", {{0, 1}, {10, 0}, {20, 0}}, {{50, 0}, {40, 0}, {30, 0}}, 0},
    };
    (void)rows;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_against_everything),
        cmocka_unit_test(program_against_1f1b),
        cmocka_unit_test(program_without_time_at_the_end),
        cmocka_unit_test(program_in_large_units),
        cmocka_unit_test(tightening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
