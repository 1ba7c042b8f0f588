/* Periodic patterns: the checker against a slow one, 1F1B* against all patterns there are. */
#include "schedules/plan/pattern.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-chain.h"
#include "tests/slow-pattern.h"

#include <stdlib.h>

enum { MOST_STAGES = 8, MOST_DEVICES = 4, MOST_OPS = MOST_STAGES * CS_PATTERN_KINDS };

/* The operations of a micro-batch in the order in which it goes through them. */
typedef struct path {
    uint32_t n;
    struct {
        uint32_t stage;
        cs_pattern_kind kind;
        cs_time takes;
        uint32_t low, high; /* of its device or link */
    } ops[MOST_OPS];
} path;

static uint32_t on(const cs_plan *plan, uint32_t stage)
{
    return plan->devices[plan->stages[stage].first_device];
}

static void add_to_path(path *p, const cs_chain *chain, const cs_plan *plan, uint32_t stage,
                        cs_pattern_kind kind)
{
    if (!cs_pattern_has(plan, stage, kind))
        return;
    bool message = kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
    uint32_t a = on(plan, stage), b = message ? on(plan, stage + 1) : a;
    p->ops[p->n].stage = stage;
    p->ops[p->n].kind = kind;
    p->ops[p->n].takes = cs_pattern_duration(chain, plan, stage, kind);
    p->ops[p->n].low = a < b ? a : b;
    p->ops[p->n++].high = a < b ? b : a;
}

static path make_path(const cs_chain *chain, const cs_plan *plan)
{
    path p = {0};
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        add_to_path(&p, chain, plan, s, CS_PATTERN_FORWARD);
        add_to_path(&p, chain, plan, s, CS_PATTERN_SEND);
    }
    for (uint32_t s = plan->n_stages; s-- > 0;) {
        add_to_path(&p, chain, plan, s, CS_PATTERN_RETURN);
        add_to_path(&p, chain, plan, s, CS_PATTERN_BACKWARD);
    }
    return p;
}

/* Whether operation i, from `at` on, can share the period with operation j: no picosecond is taken
 * twice, and what takes no time does not stand within the other. */
static bool are_apart(const path *p, const cs_time *at, uint32_t i, uint32_t j, cs_time period)
{
    cs_time behind = (at[i] % period - at[j] % period + period) % period;
    cs_time mine = p->ops[i].takes, other = p->ops[j].takes;
    if (p->ops[i].low != p->ops[j].low || p->ops[i].high != p->ops[j].high)
        return true;
    if (behind == 0)
        return mine == 0 || other == 0;
    return other <= behind && behind + mine <= period;
}

static bool is_free(const path *p, const cs_time *at, uint32_t i, cs_time period)
{
    bool ok = p->ops[i].takes <= period;
    for (uint32_t j = 0; j < i; j++)
        ok &= are_apart(p, at, i, j, period);
    return ok;
}

/* ---- the checker ---- */

/* Each operation as soon as its device or link is free, sometimes later; where it never is, anyway. */
static void random_pattern(gsl_rng *rng, const cs_chain *chain, const cs_plan *plan,
                           cs_pattern *pattern)
{
    path p = make_path(chain, plan);
    cs_time at[MOST_OPS], ready = random_up_to(rng, 3);
    assert_int_equal(cs_pattern_create(plan->n_stages, pattern, NULL), CS_OK);
    pattern->period = 1 + random_up_to(rng, 17);
    for (uint32_t i = 0; i < p.n; i++) {
        at[i] = ready + (random_up_to(rng, 3) == 0 ? random_up_to(rng, 6) : 0);
        for (cs_time tried = 0; tried < pattern->period && !is_free(&p, at, i, pattern->period);
             tried++)
            at[i]++;
        ready = at[i] + p.ops[i].takes;
        pattern->ops[p.ops[i].stage * CS_PATTERN_KINDS + p.ops[i].kind] =
            (cs_pattern_op){at[i] % pattern->period, at[i] / pattern->period};
    }
}

static void mutate(gsl_rng *rng, cs_pattern *pattern)
{
    cs_pattern_op *op = &pattern->ops[random_up_to(rng, pattern->n_stages * CS_PATTERN_KINDS - 1)];
    uint32_t how = random_up_to(rng, 5);
    if (how == 0)
        op->start++; /* sometimes up to the period, which is wrong */
    else if (how == 1 && op->start > 0)
        op->start--;
    else if (how == 2)
        op->shift++;
    else if (how == 3 && op->shift > 0)
        op->shift--;
    else if (how == 4 && pattern->period > 1)
        pattern->period--;
}

static void compare_uses(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                         const cs_pattern_use *expected, const cs_pattern_use *got,
                         const int64_t *active)
{
    for (uint32_t d = 0; d < chain->n_devices; d++) {
        expect_int("busy", expected[d].busy, got[d].busy);
        expect_int("fixed", expected[d].fixed, got[d].fixed);
        expect_int("peak", expected[d].peak, got[d].peak);
        expect_int("peak time", expected[d].peak_time, got[d].peak_time);
    }
    for (uint32_t s = 0; s < plan->n_stages; s++)
        expect_int("active", active[s], cs_pattern_active(chain, plan, pattern, s));
}

/* With unlimited memory, and with one byte too little for the device that holds most. */
static bool compare_checks(cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern)
{
    cs_pattern_use expected[MOST_DEVICES], got[MOST_DEVICES];
    int64_t active[MOST_STAGES], most = 0;
    cs_error error;
    cs_error_init(&error);
    bool valid = slow_pattern_check(chain, plan, pattern, expected, active);
    cs_status status = cs_pattern_check(chain, plan, pattern, got, &error);
    if (status != (valid ? CS_OK : CS_LIMIT))
        fail_msg("slow: %s, fast: %s", valid ? "valid" : "not valid", error.text);
    if (!valid) {
        assert_int_equal(error.count, 1);
        return false;
    }
    compare_uses(chain, plan, pattern, expected, got, active);
    for (uint32_t d = 0; d < chain->n_devices; d++)
        most = got[d].peak > most ? got[d].peak : most;
    chain->memory = most;
    assert_int_equal(cs_pattern_check(chain, plan, pattern, NULL, NULL), CS_OK);
    chain->memory = most - 1;
    assert_int_equal(cs_pattern_check(chain, plan, pattern, NULL, NULL), CS_LIMIT);
    chain->memory = INT64_MAX;
    return true;
}

static void test_checker(void **state)
{
    static const random_chain_limits limits = {6, MOST_DEVICES, 4, 3, 9};
    gsl_rng *rng = cs_random_stream(1, "patterns");
    uint32_t valid = 0, invalid = 0;
    (void)state;
    for (int i = 0; i < 6000; i++) {
        cs_chain chain = random_chain(rng, &limits);
        cs_plan plan = random_plan(rng, &chain, 5, true);
        cs_pattern pattern;
        random_pattern(rng, &chain, &plan, &pattern);
        for (int changes = 0; changes < 4; changes++) {
            bool good = compare_checks(&chain, &plan, &pattern);
            valid += good;
            invalid += !good;
            mutate(rng, &pattern);
        }
        cs_pattern_finish(&pattern);
        cs_plan_finish(&plan);
        cs_chain_finish(&chain);
    }
    print_message("%u valid and %u other patterns\n", valid, invalid);
    assert_true(valid > 3000 && invalid > 3000);
    gsl_rng_free(rng);
}

/* ---- 1F1B*, in the paper's words ---- */

static cs_time up(cs_time x, cs_time period)
{
    return (x + period - 1) / period;
}

/* x (+) y */
static cs_time plus(cs_time x, cs_time y, cs_time period)
{
    return up(x, period) == up(x + y, period) ? x + y : period * up(x, period) + y;
}

/* g of every stage, and whether loads and memory allow the period. */
static bool paper_groups(const cs_chain *chain, const cs_plan *plan, cs_time period,
                         int64_t *groups)
{
    cs_time delay = 0;
    bool ok = true;
    for (uint32_t s = plan->n_stages; s-- > 0;) {
        uint32_t first = plan->stages[s].first_layer, end = plan->stages[s].end_layer;
        cs_time load = cs_chain_load(chain, first, end), link = cs_chain_link(chain, first);
        delay = plus(delay, load, period);
        groups[s] = up(delay, period) > 1 ? up(delay, period) : 1;
        delay = plus(delay, link, period);
        ok &= load <= period && link <= period &&
              cs_chain_bytes(chain, first, end, groups[s]) <= chain->memory;
    }
    return ok;
}

/* Any period up to the sum of all loads, not only those at which something changes. */
static cs_time slow_fit(const cs_chain *chain, const cs_plan *plan)
{
    int64_t groups[MOST_STAGES];
    cs_time total = 1;
    for (uint32_t l = 0; l < chain->n_layers; l++)
        total += cs_chain_load(chain, l, l + 1) + cs_chain_link(chain, l);
    for (cs_time period = 1; period <= total; period++) {
        if (paper_groups(chain, plan, period, groups))
            return period;
    }
    return 0;
}

/* Every period that the loads allow gives a valid pattern with as many active micro-batches. */
static void expect_groups(const cs_chain *chain, const cs_plan *plan, cs_time period)
{
    cs_pattern_use uses[MOST_DEVICES * MOST_STAGES];
    int64_t groups[MOST_STAGES];
    cs_pattern pattern = {0};
    cs_error error;
    cs_error_init(&error);
    bool possible = paper_groups(chain, plan, period, groups);
    cs_status status = cs_pattern_1f1b(chain, plan, period, &pattern, &error);
    if (status != (possible ? CS_OK : CS_LIMIT))
        fail_msg("period %lld: %s", (long long)period, error.text);
    if (!possible)
        return;
    status = cs_pattern_check(chain, plan, &pattern, uses, &error);
    if (status != CS_OK)
        fail_msg("period %lld: %s", (long long)period, error.text);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *stage = &plan->stages[s];
        expect_int("group", groups[s], cs_pattern_active(chain, plan, &pattern, s));
        expect_int("bytes", cs_chain_bytes(chain, stage->first_layer, stage->end_layer, groups[s]),
                   uses[on(plan, s)].peak);
    }
    cs_pattern_finish(&pattern);
}

/* Unlimited, or between what the plan takes with one active micro-batch and with some more. */
static int64_t random_memory(gsl_rng *rng, const cs_chain *chain)
{
    int64_t all = cs_chain_bytes(chain, 0, chain->n_layers, 3);
    return random_up_to(rng, 5) == 0 ? INT64_MAX : random_up_to(rng, (uint32_t)all);
}

static void test_fit(void **state)
{
    static const random_chain_limits limits = {10, 1, 9, 4, 9};
    gsl_rng *rng = cs_random_stream(2, "1F1B*");
    int fitting = 0;
    (void)state;
    for (int i = 0; i < 4000; i++) {
        cs_chain chain = random_chain(rng, &limits);
        cs_plan plan = random_plan(rng, &chain, MOST_STAGES, false);
        cs_pattern pattern = {0};
        chain.n_devices = plan.n_stages;
        for (cs_time period = 1; period < 40; period++)
            expect_groups(&chain, &plan, period);
        chain.memory = random_memory(rng, &chain);
        cs_time expected = slow_fit(&chain, &plan);
        cs_status status = cs_pattern_1f1b_fit(&chain, &plan, &pattern, NULL);
        assert_int_equal(status, expected > 0 ? CS_OK : CS_LIMIT);
        expect_int("smallest period", expected, pattern.period);
        if (status == CS_OK)
            assert_int_equal(cs_pattern_check(&chain, &plan, &pattern, NULL, NULL), CS_OK);
        fitting += status == CS_OK;
        cs_pattern_finish(&pattern);
        cs_plan_finish(&plan);
        cs_chain_finish(&chain);
    }
    print_message("%d of 4000 fit\n", fitting);
    assert_true(fitting > 1000 && fitting < 3000);
    gsl_rng_free(rng);
}

/* ---- Proposition 1 ---- */

typedef struct enumeration {
    const path *path;
    cs_time period;
    cs_time at[MOST_OPS];
    int64_t least[MOST_STAGES];
    uint64_t n_patterns;
} enumeration;

static void look_at(enumeration *e)
{
    cs_time forwards[MOST_STAGES] = {0};
    e->n_patterns++;
    for (uint32_t i = 0; i < e->path->n; i++) {
        uint32_t s = e->path->ops[i].stage;
        if (e->path->ops[i].kind == CS_PATTERN_FORWARD)
            forwards[s] = e->at[i];
        if (e->path->ops[i].kind != CS_PATTERN_BACKWARD)
            continue;
        int64_t active = up(e->at[i] + e->path->ops[i].takes - forwards[s], e->period);
        active = active > 1 ? active : 1;
        e->least[s] = active < e->least[s] ? active : e->least[s];
    }
}

/* All starts and shifts of operation i and those behind it. None waits for a period or more: where one
 * did, it and all behind it could come a period earlier with the same starts and no more active
 * micro-batches. With whole durations and a whole period, whole starts are enough (constraints on
 * differences). */
static void enumerate(enumeration *e, uint32_t i)
{
    if (i == e->path->n) {
        look_at(e);
        return;
    }
    cs_time ready = i > 0 ? e->at[i - 1] + e->path->ops[i - 1].takes : 0;
    cs_time choices = i > 0 ? e->period : 1; /* the first starts the period */
    for (e->at[i] = ready; e->at[i] < ready + choices; e->at[i]++) {
        cs_time at = e->at[i];
        if (is_free(e->path, e->at, i, e->period))
            enumerate(e, i + 1);
        e->at[i] = at;
    }
}

static uint64_t expect_least(const cs_chain *chain, const cs_plan *plan, cs_time period)
{
    path p = make_path(chain, plan);
    enumeration e = {.path = &p, .period = period};
    cs_pattern pattern = {0};
    for (uint32_t s = 0; s < plan->n_stages; s++)
        e.least[s] = INT64_MAX;
    cs_status status = cs_pattern_1f1b(chain, plan, period, &pattern, NULL);
    enumerate(&e, 0);
    assert_int_equal(status, e.n_patterns > 0 ? CS_OK : CS_LIMIT);
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++)
        expect_int("least active", e.least[s], cs_pattern_active(chain, plan, &pattern, s));
    cs_pattern_finish(&pattern);
    return e.n_patterns;
}

/* For every stage at once 1F1B* has the least number that any valid pattern of that period has. */
static void test_least_active(void **state)
{
    static const struct {
        uint32_t stages, time;
        cs_time periods;
        int chains;
    } rows[] = {{2, 2, 7, 150}, {3, 1, 5, 150}, {3, 2, 4, 100}, {4, 1, 3, 60}};
    gsl_rng *rng = cs_random_stream(3, "Proposition 1");
    uint64_t patterns = 0;
    (void)state;
    for (size_t row = 0; row < ROWS(rows); row++) {
        random_chain_limits limits = {rows[row].stages, 1, rows[row].time, 1, 1};
        for (int i = 0; i < rows[row].chains; i++) {
            cs_chain chain = random_chain(rng, &limits);
            cs_plan plan = random_plan(rng, &chain, rows[row].stages, false);
            chain.n_devices = plan.n_stages;
            for (cs_time period = 1; period <= rows[row].periods; period++)
                patterns += expect_least(&chain, &plan, period);
            cs_plan_finish(&plan);
            cs_chain_finish(&chain);
        }
    }
    print_message("%llu valid patterns\n", (unsigned long long)patterns);
    gsl_rng_free(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checker),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_least_active),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
