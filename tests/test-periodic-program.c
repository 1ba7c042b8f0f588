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
        cs_time best = tiny_best_period(&tiny.chain, &plan.plan, 100000);
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
    against_everything(&(tiny_limits){3, 2, 3, 1, 4, true}, "two devices", 4000, 100);
    against_everything(&(tiny_limits){4, 2, 2, 1, 4, true}, "four stages", 4000, 100);
    against_everything(&(tiny_limits){5, 3, 2, 0, 5, true}, "no messages", 4000, 100);
    against_everything(&(tiny_limits){4, 3, 2, 2, 5, true}, "three devices", 4000, 100);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_against_everything),
        cmocka_unit_test(program_against_1f1b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
