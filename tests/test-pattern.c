/* Periodic patterns: the checker against a slow one, 1F1B* against all patterns there are. */
#include "schedules/plan/pattern-rows.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-chain.h"
#include "tests/slow-pattern.h"

#include <stdlib.h>

enum { MOST_STAGES = 8, MOST_DEVICES = 4, MOST_OPS = MOST_STAGES * CS_PATTERN_KINDS };

/* The operations of a micro-batch, in order. */
typedef struct path {
    uint32_t n;
    struct {
        uint32_t stage;
        cs_pattern_kind kind;
        cs_time takes;
        uint32_t low, high; /* range on its device or link */
    } ops[MOST_OPS];
} path;

static void add_to_path(path *p, const cs_chain *chain, const cs_plan *plan, uint32_t stage,
                        cs_pattern_kind kind)
{
    if (!cs_pattern_has(plan, stage, kind))
        return;
    bool message = kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
    uint32_t a = cs_plan_device(plan, stage), b = message ? cs_plan_device(plan, stage + 1) : a;
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

/* Each operation as soon as its device or link is free, sometimes later; where it never is,
 * anyway. */
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

/* Tries any period up to the sum of all loads, not only periods where something changes. */
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
                   uses[cs_plan_device(plan, s)].peak);
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

/* Enumerates all starts and shifts of operation i and later ones. None waits for a period or more:
 * otherwise it and all later ones could start a period earlier with the same starts and no more
 * active micro-batches. With whole durations and a whole period, whole starts are enough
 * (constraints on differences). */
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

/* ---- by hand ---- */

#define MS INT64_C(1000000000)

/* Two layers on two devices, u_F = 1 ms and u_B = 2 ms, messages of 0.5 ms, a_1 = 50 bytes; 300
 * bytes of weights and copies, 20 bytes per active micro-batch. */
typedef struct example {
    cs_time forward[3], backward[3], message[3];
    int64_t fixed[3], kept[3], boundary[3];
    cs_chain chain;
    cs_plan plan;
    cs_pattern pattern;
} example;

/* With T = 4 ms stage 1 and the link make one group, U + C = 4 ms, stage 0 the next: F_0 at 0, the
 * message at 1, F_1 at 1.5, B_1 at 2.5, back at 4.5 = T + 0.5, and B_0 one period after F_0 has
 * ended, at 5 = T + 1. It ends at 7: ceil(7 / 4) = 2 active. */
static void make_example(example *e)
{
    static const uint32_t cuts[] = {0, 1, 2};
    *e = (example){.forward = {0, MS, 2 * MS},
                   .backward = {0, 2 * MS, 4 * MS},
                   .message = {0, MS / 2, 0},
                   .fixed = {0, 300, 600},
                   .kept = {0, 20, 40},
                   .boundary = {0, 50, 0}};
    e->chain = (cs_chain){.n_layers = 2,
                          .n_devices = 2,
                          .memory = 450,
                          .sum_forward = e->forward,
                          .sum_backward = e->backward,
                          .sum_fixed = e->fixed,
                          .sum_kept = e->kept,
                          .boundary = e->boundary,
                          .message = e->message};
    assert_int_equal(cs_plan_pipeline(cuts, 2, &e->plan, NULL), CS_OK);
    assert_int_equal(cs_pattern_1f1b(&e->chain, &e->plan, 4 * MS, &e->pattern, NULL), CS_OK);
}

static void finish_example(example *e)
{
    cs_pattern_finish(&e->pattern);
    cs_plan_finish(&e->plan);
}

/* 88 columns for 4 ms: 22 for one. Stage 0 holds 300 + 2 * 50 + 2 * 20 = 440 bytes while two are
 * active, from 0 (F_0) to 3 ms (end of B_0), stage 1 at most 420. */
static const char printed[] =
    "period 4 ms; what starts with shift +h in period k is of micro-batch k - h\n"
    "\n"
    "stage  device  layers     forward         message         gradient        backward        "
    "active\n"
    "    0       0  0-0        0 s +0          1 ms +0         500 us +1       1 ms +1         "
    "     2\n"
    "    1       1  1-1        1.5 ms +0       -               -               2.5 ms +0       "
    "     1\n"
    "\n"
    "device  busy                 peak memory   at          of which weights and buffers\n"
    "     0  3 ms         75.0 %  440 B         0 s         400 B\n"
    "     1  3 ms         75.0 %  420 B         0 s         400 B\n"
    "F2+3: forward of stage 2, shift 3; B: backward; >: its output to the next stage; <: the "
    "gradient back\n"
    "            0                                                                              "
    "      4 ms\n"
    "device 0    |F0+0=================|B0+1======================================="
    "                      :\n"
    "device 1    ===========                      |F1+0=================|B1+0============"
    "================:\n"
    "link 0-1               |<0+1======|>0+0======                                           "
    "            :\n";

static void test_print(void **state)
{
    example e;
    char text[4096] = "";
    cs_pattern_use uses[2];
    FILE *out = fmemopen(text, sizeof(text), "w");
    (void)state;
    assert_non_null(out);
    make_example(&e);
    assert_int_equal(cs_pattern_check(&e.chain, &e.plan, &e.pattern, uses, NULL), CS_OK);
    cs_pattern_print_table(&e.chain, &e.plan, &e.pattern, uses, out);
    assert_int_equal(cs_pattern_print_gantt(&e.chain, &e.plan, &e.pattern, out, NULL), CS_OK);
    assert_int_equal(fclose(out), 0);
    expect_text("printed", printed, text);
    finish_example(&e);
}

/* One thing wrong at a time. */
static const struct {
    const char *name;
    uint32_t stage;
    cs_pattern_kind kind;
    cs_pattern_op op;
    int64_t memory;
    cs_time period;
    const char *message;
} wrong[] = {
    {"start",
     1,
     CS_PATTERN_FORWARD,
     {4 * MS, 0},
     450,
     4 * MS,
     "pattern: forward of stage 1 starts at 4000000000 ps, which is not within the period of "
     "4000000000 ps"},
    {"shift",
     0,
     CS_PATTERN_BACKWARD,
     {MS, INT64_MAX},
     450,
     4 * MS,
     "pattern: backward of stage 0 has shift 9223372036854775807, more periods of 4000000000 "
     "ps "
     "than can be counted (2^61 ps)"},
    {"dependency",
     0,
     CS_PATTERN_RETURN,
     {MS / 2, 0},
     450,
     4 * MS,
     "pattern: message from stage 1 to stage 0 starts at 500000000 ps (micro-batch 0), before "
     "backward of stage 1 has ended at 4500000000 ps"},
    {"link",
     0,
     CS_PATTERN_RETURN,
     {3 * MS / 4, 1},
     450,
     4 * MS,
     "pattern: the link of devices 0 and 1: message from stage 1 to stage 0 ends at 1250000000 "
     "ps of the period of 4000000000 ps, after message from stage 0 to stage 1 has started at "
     "1000000000 ps"},
    {"device, over the end",
     0,
     CS_PATTERN_BACKWARD,
     {3 * MS, 1},
     450,
     4 * MS,
     "pattern: device 0: backward of stage 0 ends at 5000000000 ps of the period of 4000000000 "
     "ps, after forward of stage 0 has started at 0 ps of the next"},
    {"memory",
     1,
     CS_PATTERN_FORWARD,
     {3 * MS / 2, 0},
     439,
     4 * MS,
     "pattern: device 0 holds 440 bytes at 0 ps of the period, 400 of them weights and "
     "buffers, and its memory is 439"},
    {"no period",
     1,
     CS_PATTERN_FORWARD,
     {3 * MS / 2, 0},
     450,
     0,
     "pattern: the period must be > 0 (got 0 ps)"},
};

static void test_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong); i++) {
        example e;
        cs_error error;
        cs_error_init(&error);
        make_example(&e);
        e.pattern.ops[CS_PATTERN_BACKWARD].start += MS / 4; /* some slack after the message back */
        e.pattern.ops[wrong[i].stage * CS_PATTERN_KINDS + wrong[i].kind] = wrong[i].op;
        e.pattern.period = wrong[i].period;
        e.chain.memory = wrong[i].memory;
        cs_status status = cs_pattern_check(&e.chain, &e.plan, &e.pattern, NULL, &error);
        expect_error(wrong[i].name, CS_LIMIT, wrong[i].message, status, &error);
        finish_example(&e);
    }
}

/* 420 bytes hold one active micro-batch; stage 0 has one when all fits one group, 3 + 1 + 3 ms. */
static void test_fit_by_hand(void **state)
{
    static const struct {
        int64_t memory;
        cs_time period;
        const char *message;
    } rows[] = {
        {INT64_MAX, 3 * MS, ""}, /* groups: stage 1, link, stage 0; 3 active */
        {460, 3 * MS, ""},
        {459, 4 * MS, ""}, /* 2 active: stage 1 and the link */
        {439, 7 * MS, ""},
        {420, 7 * MS, ""},
        {419, 0,
         "device 1 needs 420 bytes for stage 1 with one active micro-batch, and its memory is 419"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        example e;
        cs_error error;
        cs_pattern pattern = {0};
        cs_error_init(&error);
        make_example(&e);
        e.chain.memory = rows[i].memory;
        cs_status status = cs_pattern_1f1b_fit(&e.chain, &e.plan, &pattern, &error);
        expect_error("fit", rows[i].period > 0 ? CS_OK : CS_LIMIT, rows[i].message, status, &error);
        expect_int("period", rows[i].period, pattern.period);
        cs_pattern_finish(&pattern);
        finish_example(&e);
    }
}

static void test_period_too_short(void **state)
{
    example e;
    cs_error error;
    cs_pattern pattern = {0};
    (void)state;
    make_example(&e);
    cs_error_init(&error);
    expect_error(
        "stage", CS_LIMIT,
        "1F1B*: forward and backward of stage 0 take 3000000000 ps per micro-batch, longer "
        "than the period of 2999999999 ps",
        cs_pattern_1f1b(&e.chain, &e.plan, 3 * MS - 1, &pattern, &error), &error);
    e.message[1] = 2 * MS;
    cs_error_init(&error);
    expect_error("link", CS_LIMIT,
                 "1F1B*: the messages behind stage 0 take 4000000000 ps per micro-batch, longer "
                 "than the period of 3000000000 ps",
                 cs_pattern_1f1b(&e.chain, &e.plan, 3 * MS, &pattern, &error), &error);
    assert_null(pattern.ops);
    finish_example(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checker),          cmocka_unit_test(test_fit),
        cmocka_unit_test(test_least_active),     cmocka_unit_test(test_print),
        cmocka_unit_test(test_messages),         cmocka_unit_test(test_fit_by_hand),
        cmocka_unit_test(test_period_too_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
