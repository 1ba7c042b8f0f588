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

/* Period of a pattern, which must be valid; 0 if there is none. */
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
    const uint32_t n = fewer_sanitized(1000);
    against_everything(&(tiny_limits){3, 2, 3, 1, 4, true}, "two devices", n, n / 5);
    against_everything(&(tiny_limits){4, 2, 2, 1, 4, true}, "four stages", n, n / 5);
    against_everything(&(tiny_limits){5, 3, 2, 0, 5, true}, "no messages", n, n / 5);
    against_everything(&(tiny_limits){4, 3, 2, 2, 5, true}, "three devices", n, n / 5);
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

/* A model that ends in layers of zero time: the result is valid, and not better than the
 * optimum. */
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

/* In units of 10^12 + 39 ps (a prime, and a second) and of about a GB, periods are longer by these
 * factors: periods of cycles with several laps are rounded up only then. */
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

enum { MOST_OPS = TINY_LAYERS * CS_PATTERN_KINDS };

/* longest[u][v]: v starts at least so long after u, starts being those within the period. */
typedef struct bounds {
    int64_t longest[MOST_OPS][MOST_OPS];
} bounds;

static void at_least(bounds *b, uint32_t u, uint32_t v, int64_t time)
{
    if (time > b->longest[u][v])
        b->longest[u][v] = time;
}

/* Device or link of an operation. */
static uint32_t resource(const cs_plan *plan, uint32_t op)
{
    uint32_t stage = op / CS_PATTERN_KINDS, kind = op % CS_PATTERN_KINDS, a = plan->devices[stage];
    if (kind == CS_PATTERN_FORWARD || kind == CS_PATTERN_BACKWARD)
        return a;
    uint32_t b = plan->devices[stage + 1];
    return 100 + (a < b ? 10 * a + b : 10 * b + a);
}

static cs_time takes(const tiny_chain *tiny, const cs_plan *plan, uint32_t op)
{
    return cs_pattern_duration(&tiny->chain, plan, op / CS_PATTERN_KINDS, op % CS_PATTERN_KINDS);
}

/* Of two operations on the same resource, the later one starts after the earlier one, and ends
 * before the earlier one's next start. */
static void bound_orders(const tiny_chain *tiny, const cs_plan *plan, const cs_pattern *order,
                         const uint32_t *ops, uint32_t n, cs_time period, bounds *b)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            uint32_t u = ops[i], v = ops[j];
            if (resource(plan, u) == resource(plan, v) &&
                order->ops[u].start < order->ops[v].start) {
                at_least(b, u, v, takes(tiny, plan, u));
                at_least(b, v, u, takes(tiny, plan, v) - period);
            }
        }
    }
}

/* Whether starts exist for the order and the shifts of a pattern, by Floyd and Warshall: no cycle
 * of positive length. */
static bool has_starts(const tiny_chain *tiny, const cs_plan *plan, const cs_pattern *order,
                       cs_time period)
{
    static const cs_pattern_kind down[2] = {CS_PATTERN_FORWARD, CS_PATTERN_SEND};
    uint32_t ops[MOST_OPS], n = 0;
    bounds b;
    for (uint32_t i = 0; i < 2 * plan->n_stages; i++) {
        if (cs_pattern_has(plan, i / 2, down[i % 2]))
            ops[n++] = i / 2 * CS_PATTERN_KINDS + down[i % 2];
    }
    for (uint32_t i = n; i-- > 0;) /* and back, each forward's backward and send's return */
        ops[n + (n - 1 - i)] = ops[i] + (ops[i] % CS_PATTERN_KINDS == CS_PATTERN_FORWARD
                                             ? CS_PATTERN_BACKWARD - CS_PATTERN_FORWARD
                                             : CS_PATTERN_RETURN - CS_PATTERN_SEND);
    n *= 2;
    for (uint32_t u = 0; u < MOST_OPS * MOST_OPS; u++)
        b.longest[u / MOST_OPS][u % MOST_OPS] = -1000000;
    for (uint32_t i = 0; i + 1 < n; i++)
        at_least(&b, ops[i], ops[i + 1],
                 takes(tiny, plan, ops[i]) -
                     (order->ops[ops[i + 1]].shift - order->ops[ops[i]].shift) * period);
    bound_orders(tiny, plan, order, ops, n, period, &b);
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < n * n; i++)
            at_least(&b, ops[i / n], ops[i % n],
                     b.longest[ops[i / n]][ops[k]] + b.longest[ops[k]][ops[i % n]]);
    }
    bool found = true;
    for (uint32_t i = 0; i < n; i++)
        found = found && b.longest[ops[i]][ops[i]] <= 0 && takes(tiny, plan, ops[i]) <= period;
    return found;
}

/* Three times as slow, and each start later by 0 to 2: the same order and shifts. */
static void loosen(gsl_rng *rng, cs_pattern *pattern)
{
    pattern->period *= 3;
    for (uint32_t i = 0; i < pattern->n_stages * CS_PATTERN_KINDS; i++)
        pattern->ops[i].start = 3 * pattern->ops[i].start + (cs_time)gsl_rng_uniform_int(rng, 3);
}

/* The shifts of a pattern that need not be valid: each moved by -1 .. 1, now and then. */
static void disturb(gsl_rng *rng, cs_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->n_stages * CS_PATTERN_KINDS; i++) {
        if (gsl_rng_uniform_int(rng, 8) == 0)
            pattern->ops[i].shift += (int64_t)gsl_rng_uniform_int(rng, 3) - 1;
    }
}

static bool expect_tight(const char *row, const tiny_chain *tiny, const cs_plan *plan,
                         cs_pattern *pattern)
{
    cs_time longest = 4 * (tiny->forward[tiny->chain.n_layers] + 100), expected = 1;
    while (expected < longest && !has_starts(tiny, plan, pattern, expected))
        expected++;
    cs_status status = cs_pattern_tighten(&tiny->chain, plan, pattern, NULL);
    expect_int(row, expected < longest ? CS_OK : CS_LIMIT, status);
    if (status == CS_OK) {
        expect_int(row, expected, pattern->period);
        cs_chain roomy = tiny->chain;
        cs_error error;
        roomy.memory = INT64_MAX;
        cs_error_init(&error);
        status = cs_pattern_check(&roomy, plan, pattern, NULL, &error);
        expect_error(row, CS_OK, "", status, &error);
    }
    return status == CS_OK;
}

static void tighten_to_the_least_period(void **state)
{
    (void)state;
    static const tiny_limits limits = {6, 3, 5, 3, 5, true};
    gsl_rng *rng = cs_random_stream(1, "tighten");
    uint32_t tight = 0, none = 0;
    for (uint32_t i = 0; i < 600; i++) {
        char row[32];
        tiny_chain tiny;
        tiny_plan plan;
        cs_pattern pattern = {0};
        cs_program_end end;
        tiny_chain_make(rng, &limits, &tiny);
        for (uint32_t l = 1; l <= tiny.chain.n_layers; l++) { /* everything takes time */
            tiny.forward[l] += l;
            tiny.backward[l] += l;
            tiny.message[l] += l < tiny.chain.n_layers;
        }
        tiny_plan_make(rng, &tiny.chain, false, &plan);
        snprintf(row, sizeof(row), "tighten %" PRIu32, i);
        assert_int_equal(cs_pattern_program(&tiny.chain, &plan.plan, &any, &pattern, &end, NULL),
                         CS_OK);
        if (pattern.period > 0) {
            loosen(rng, &pattern);
            if (i % 2 == 1)
                disturb(rng, &pattern);
            if (expect_tight(row, &tiny, &plan.plan, &pattern))
                tight++;
            else
                none++;
        }
        cs_pattern_finish(&pattern);
    }
    print_message("tighten: %u with a period, %u with none\n", tight, none);
    assert_true(tight > 100 && none > 20);
    gsl_rng_free(rng);
}

/* ---- what cannot be ---- */

static void impossible(void **state)
{
    (void)state;
    tiny_chain tiny = {.forward = {0, 1, 2},
                       .backward = {0, 1, 2},
                       .kept = {0, 5, 10},
                       .fixed = {0, 2, 4},
                       .boundary = {0, 1, 0}};
    tiny_plan plan = {.stages = {{0, 1, 0, 1}, {1, 2, 1, 1}}, .devices = {0, 0}};
    cs_program_end end;
    tiny.chain = (cs_chain){.n_layers = 2,
                            .n_devices = 2,
                            .memory = 14,
                            .sum_forward = tiny.forward,
                            .sum_backward = tiny.backward,
                            .sum_fixed = tiny.fixed,
                            .sum_kept = tiny.kept,
                            .boundary = tiny.boundary,
                            .message = tiny.message};
    plan.plan = (cs_plan){2, 2, plan.stages, plan.devices};
    /* one device: 4 of weights and 5 for each of two stages: 14, and a period of 4 */
    expect_int("fits", 4, solved("fits", &tiny, &plan, &any, &end));
    tiny.chain.memory = 13;
    expect_int("a byte less", 0, solved("a byte less", &tiny, &plan, &any, &end));
    expect_end("a byte less", CS_PROGRAM_INFEASIBLE, end);
    /* two devices: 2 of weights, 2 of buffers, 5 for a micro-batch; a period of 4 as stage 0 waits
     * for stage 1, and of 2 when there is room for two micro-batches on device 0 */
    plan.devices[1] = 1;
    tiny.chain.memory = 9;
    expect_int("two devices", 4, solved("two devices", &tiny, &plan, &any, &end));
    tiny.chain.memory = 14;
    expect_int("room for two", 2, solved("room for two", &tiny, &plan, &any, &end));
    tiny.chain.memory = 8;
    expect_int("no room", 0, solved("no room", &tiny, &plan, &any, &end));
    plan.stages[1].n_devices = 2;
    cs_error error;
    cs_pattern pattern = {0};
    cs_error_init(&error);
    cs_status status = cs_pattern_program(&tiny.chain, &plan.plan, &any, &pattern, &end, &error);
    expect_error("replicas", CS_INVALID,
                 "stage 1 is on 2 devices: a periodic pattern has one per stage", status, &error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_against_everything),      cmocka_unit_test(program_against_1f1b),
        cmocka_unit_test(program_without_time_at_the_end), cmocka_unit_test(program_in_large_units),
        cmocka_unit_test(tighten_to_the_least_period),     cmocka_unit_test(impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
