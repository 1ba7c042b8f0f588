/* OSDP's cost model against sums written out slice by slice, and its searches against each other
 * and against all plans. */
#include "schedules/osdp/osdp-search.h"

#include "sim/base/random.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

static const cs_osdp_search exactly = {0}, depth_first = {.depth_first = true};

/* ---- the cost model, slice by slice ---- */

static int64_t part(int64_t bytes, int64_t n)
{
    return (bytes + n - 1) / n;
}

/* (N - 1)(alpha + m/N beta), parts rounded up to bytes and the transfer to picoseconds */
static cs_time ring(const cs_osdp_model *model, int64_t bytes)
{
    cs_time transfer;
    if (bytes == 0)
        return 0;
    assert_true(cs_time_transfer((double)part(bytes, model->devices), model->bandwidth, &transfer));
    return (model->devices - 1) * (model->latency + transfer);
}

typedef struct slow_cost {
    cs_time time;
    int64_t memory, extra;
} slow_cost;

static slow_cost slow_operator(const cs_osdp_model *model, const cs_osdp_operator *op,
                               uint32_t batch, cs_osdp_choice choice)
{
    const int64_t k = choice.slices, weights = part(op->weights, k),
                  gradients = part(op->gradients, k);
    int64_t left = op->states, sharded = 0;
    slow_cost cost = {.time = part(op->compute * batch, model->samples),
                      .extra = part(op->workspace * batch, model->samples)};
    for (uint32_t slice = 0; slice < choice.slices; slice++) {
        if (slice >= choice.sharded) {
            cost.time += 2 * ring(model, gradients);
            continue;
        }
        const int64_t states = part(op->states, k) < left ? part(op->states, k) : left;
        cost.time += model->gathers * ring(model, weights) + ring(model, gradients);
        sharded += states;
        left -= states;
    }
    if (choice.sharded > 0)
        cost.extra += weights + gradients;
    cost.memory = left + part(sharded, model->devices) + part(op->kept * batch, model->samples);
    return cost;
}

static slow_cost slow_plan(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t batch,
                           const cs_osdp_choice *choices)
{
    slow_cost sum = {.memory = model->fixed_bytes};
    for (uint32_t i = 0; i < model->n; i++) {
        const slow_cost one = slow_operator(model, &model->operators[i], batch, choices[i]);
        sum.time += one.time;
        sum.memory += one.memory;
        if (rules->surge == CS_OSDP_SURGE_SUM)
            sum.extra += one.extra;
        else
            sum.extra = one.extra > sum.extra ? one.extra : sum.extra;
    }
    sum.memory += sum.extra;
    return sum;
}

/* ---- all plans ---- */

enum { MOST_OPERATORS = 16, MOST_CHOICES = 16 };

/* Choices for an operator: every k slices with z of them sharded, as far as the rules permit. */
static uint32_t list_choices(const cs_osdp_rules *rules, const cs_osdp_operator *op,
                             cs_osdp_choice *choices)
{
    uint32_t n = 0;
    for (uint32_t k = 1; k <= (rules->slices ? op->slices : 1); k++) {
        for (uint32_t z = 0; z <= k; z++) {
            const bool allowed = (z == k || (rules->modes & CS_OSDP_DATA)) &&
                                 (z == 0 || (rules->modes & CS_OSDP_SHARDED));
            if (op->weights == 0 ? k == 1 && z == 0 : allowed)
                choices[n++] = (cs_osdp_choice){k, z};
        }
    }
    assert_true(n <= MOST_CHOICES);
    return n;
}

/* The least time of all plans that keep the limit, CS_TIME_MAX without any; and their least memory.
 */
static cs_time try_all(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t batch,
                       int64_t *least)
{
    cs_osdp_choice lists[MOST_OPERATORS][MOST_CHOICES], choices[MOST_OPERATORS];
    uint32_t n[MOST_OPERATORS], at[MOST_OPERATORS] = {0}, i = 0;
    cs_time best = CS_TIME_MAX;
    *least = INT64_MAX;
    for (uint32_t op = 0; op < model->n; op++) {
        n[op] = list_choices(rules, &model->operators[op], lists[op]);
        choices[op] = lists[op][0];
    }
    while (i < model->n) {
        const slow_cost cost = slow_plan(model, rules, batch, choices);
        *least = cost.memory < *least ? cost.memory : *least;
        if (cost.memory <= rules->limit && cost.time < best)
            best = cost.time;
        for (i = 0; i < model->n; i++) { /* counts up */
            at[i] = (at[i] + 1) % n[i];
            choices[i] = lists[i][at[i]];
            if (at[i] > 0)
                break;
        }
    }
    return best;
}

/* ---- random models ---- */

static uint32_t below(gsl_rng *rng, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(rng, n);
}

/* Some operators are equal to others, some have no weights, some gradients are wider than weights.
 */
static void draw(gsl_rng *rng, uint32_t most, uint32_t slices, cs_osdp_operator *operators,
                 cs_osdp_model *model)
{
    const uint32_t n = 1 + below(rng, most), ratio = 1 + below(rng, 2);
    for (uint32_t i = 0; i < n; i++) {
        cs_osdp_operator *op = &operators[i];
        if (i > 0 && below(rng, 3) == 0) {
            *op = operators[below(rng, i)];
            continue;
        }
        const int64_t weights = below(rng, 8) == 0 ? 0 : 1 + below(rng, 1000);
        *op = (cs_osdp_operator){.weights = weights,
                                 .gradients = ratio * weights,
                                 .states = (3 + ratio) * weights,
                                 .kept = below(rng, 300),
                                 .workspace = below(rng, 300),
                                 .compute = below(rng, 100000),
                                 .slices = 1 + below(rng, slices)};
    }
    *model = (cs_osdp_model){.n = n,
                             .operators = operators,
                             .samples = 1 + below(rng, 3),
                             .fixed_bytes = below(rng, 100),
                             .devices = 1 + below(rng, 9),
                             .latency = below(rng, 3) * 100,
                             .bandwidth = 1e9 * (1 + below(rng, 5)),
                             .gathers = 2 + below(rng, 2)};
}

static void compare(const char *row, const cs_osdp_model *model, const cs_osdp_rules *rules,
                    uint32_t batch, const cs_osdp_search *search, cs_time best)
{
    cs_arena arena;
    cs_osdp_plan plan;
    cs_error error;
    cs_error_init(&error);
    cs_arena_init(&arena);
    expect_error(row, CS_OK, "",
                 cs_osdp_find_at(model, rules, batch, search, &arena, &plan, &error), &error);
    assert_true(plan.complete);
    expect_int(row, best < CS_TIME_MAX, plan.found);
    if (plan.found) {
        const slow_cost cost = slow_plan(model, rules, batch, plan.choices);
        expect_int(row, best, plan.cost.time);
        expect_int(row, cost.time, plan.cost.time);
        expect_int(row, cost.memory, plan.cost.memory);
        assert_true(cost.memory <= rules->limit);
    }
    cs_arena_finish(&arena);
}

/* Limits between what no plan fits and what each does. */
static void try_limits(gsl_rng *rng, const char *row, const cs_osdp_model *model,
                       cs_osdp_rules *rules)
{
    const uint32_t batch = 1 + below(rng, 4);
    int64_t least, most = model->fixed_bytes;
    rules->limit = INT64_MAX;
    (void)try_all(model, rules, batch, &least);
    for (uint32_t i = 0; i < model->n; i++)
        most += slow_operator(model, &model->operators[i], batch, (cs_osdp_choice){1, 0}).memory;
    for (uint32_t step = 0; step < 4; step++) {
        int64_t unused;
        const int64_t span = most > least ? most - least : 1;
        rules->limit = step == 0   ? least
                       : step == 1 ? least - 1
                                   : least + (int64_t)below(rng, (uint32_t)span);
        const cs_time best = try_all(model, rules, batch, &unused);
        compare(row, model, rules, batch, &exactly, best);
        compare(row, model, rules, batch, &depth_first, best);
    }
}

static void searches_find_the_best_of_all_plans(void **state)
{
    static const struct {
        const char *name;
        uint32_t operators, slices, models;
    } rows[] = {{"whole operators", 16, 1, 60}, {"up to four slices", 5, 4, 60}};
    gsl_rng *rng = cs_random_stream(1, "osdp");
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        for (uint32_t i = 0; i < rows[r].models; i++) {
            cs_osdp_operator operators[MOST_OPERATORS];
            cs_osdp_model model;
            cs_osdp_rules rules = {.surge = below(rng, 2), .slices = rows[r].slices > 1};
            rules.modes = below(rng, 5) == 0 ? 1 + below(rng, 2) : CS_OSDP_ANY;
            draw(rng, rows[r].operators, rows[r].slices, operators, &model);
            try_limits(rng, rows[r].name, &model, &rules);
        }
    }
    gsl_rng_free(rng);
}

/* ---- batches ---- */

/* The most samples per second of all batches and plans, and the least that no plan fits. */
static void batches_are_the_best_of_all(void **state)
{
    gsl_rng *rng = cs_random_stream(2, "osdp batches");
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        cs_osdp_operator operators[MOST_OPERATORS];
        cs_osdp_model model;
        cs_osdp_rules rules = {.surge = below(rng, 2), .modes = CS_OSDP_ANY, .slices = true};
        double best = 0;
        cs_arena arena;
        cs_error error;
        draw(rng, 4, 3, operators, &model);
        operators[0].kept = 1 + below(rng, 1000); /* so that memory ends the batches */
        rules.limit = 500 + below(rng, 20000);
        for (uint32_t batch = 1;; batch++) {
            int64_t least;
            const cs_time time = try_all(&model, &rules, batch, &least);
            if (time == CS_TIME_MAX)
                break;
            const double rate = batch / (double)time;
            best = rate > best ? rate : best;
        }
        cs_error_init(&error);
        cs_arena_init(&arena);
        for (uint32_t s = 0; s < 2; s++) {
            cs_osdp_plan plan;
            assert_int_equal(CS_OK, cs_osdp_find_batch(&model, &rules, 1 << 16,
                                                       s ? &depth_first : &exactly, &arena, &plan,
                                                       &error));
            assert_true(plan.complete);
            expect_double("rate", best, plan.found ? plan.batch / (double)plan.cost.time : 0);
        }
        cs_arena_finish(&arena);
    }
    gsl_rng_free(rng);
}

/* ---- volumes and bounds ---- */

/* Two operators of 800 and 1600 bytes, whose N-th parts are whole, at 1 byte a picosecond and
 * without latency: times are the bytes that a device sends. Data parallel 2 (N - 1)/N of 2400,
 * sharded 3 (N - 1)/N of it, with checkpointing 4 (N - 1)/N (Rajbhandari et al., ZeRO, SC 2020,
 * section 7; OSDP, section 2.3). */
static void volumes_and_bounds_are_the_papers(void **state)
{
    const cs_osdp_operator operators[] = {
        {.weights = 800, .gradients = 800, .states = 3200, .slices = 4},
        {.weights = 1600, .gradients = 1600, .states = 6400, .slices = 4}};
    static const struct {
        const char *name;
        uint32_t gathers;
        cs_osdp_choice choices[2];
        cs_time time;
        double fraction, bound;
    } rows[] = {
        {"data parallel", 2, {{1, 0}, {1, 0}}, 2 * 7 * 300, 1, 3. / 2},
        {"sharded", 2, {{1, 1}, {1, 1}}, 3 * 7 * 300, 0, 1},
        {"a third of them data parallel", 2, {{1, 0}, {1, 1}}, 7 * (200 + 600), 1. / 3, 9. / 8},
        {"half of each", 2, {{2, 1}, {4, 2}}, 5 * 7 * 150, 1. / 2, 6. / 5},
        {"checkpointing", 3, {{1, 1}, {1, 1}}, 4 * 7 * 300, 0, 1},
        {"checkpointing, data parallel", 3, {{1, 0}, {1, 0}}, 2 * 7 * 300, 1, 2},
    };
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        const cs_osdp_model model = {2, operators, 1, 0, 8, 0, 1e12, rows[r].gathers};
        const cs_osdp_rules rules = {INT64_MAX, 0, CS_OSDP_ANY, true};
        cs_arena arena;
        cs_osdp_menu menu;
        cs_error error;
        cs_error_init(&error);
        cs_arena_init(&arena);
        assert_int_equal(CS_OK, cs_osdp_menu_make(&model, &rules, 1, &arena, &menu, &error));
        expect_int(rows[r].name, rows[r].time, cs_osdp_cost_of(&menu, rows[r].choices).time);
        const double f = cs_osdp_data_fraction(&model, rows[r].choices);
        expect_double(rows[r].name, rows[r].fraction, f);
        assert_true(fabs(cs_osdp_bound(&model, f) - rows[r].bound) < 1e-15);
        cs_arena_finish(&arena);
    }
}

/* Messages alone, at the same batch and without slices: no plan is faster than with all sharded by
 * more than the bound, and by exactly as much without latency and with parts that are whole. */
static void no_plan_beats_the_bound(void **state)
{
    gsl_rng *rng = cs_random_stream(3, "osdp bound");
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        cs_osdp_operator operators[8];
        cs_osdp_choice sharded[8], drawn[8];
        cs_osdp_model model = {8, operators, 1, 0, 2 + below(rng, 7), 0, 1e12, 2 + below(rng, 2)};
        const cs_osdp_rules rules = {INT64_MAX, 0, CS_OSDP_ANY, false};
        cs_arena arena;
        cs_osdp_menu menu;
        cs_error error;
        for (uint32_t o = 0; o < 8; o++) {
            const int64_t bytes = (1 + below(rng, 1000)) * (int64_t)model.devices;
            operators[o] = (cs_osdp_operator){
                .weights = bytes, .gradients = bytes, .states = 4 * bytes, .slices = 1};
            sharded[o] = (cs_osdp_choice){1, 1};
            drawn[o] = (cs_osdp_choice){1, below(rng, 2)};
        }
        cs_error_init(&error);
        cs_arena_init(&arena);
        assert_int_equal(CS_OK, cs_osdp_menu_make(&model, &rules, 1, &arena, &menu, &error));
        const double ratio = (double)cs_osdp_cost_of(&menu, sharded).time /
                             (double)cs_osdp_cost_of(&menu, drawn).time;
        const double bound = cs_osdp_bound(&model, cs_osdp_data_fraction(&model, drawn));
        assert_true(fabs(ratio - bound) < 1e-12);
        assert_true(ratio <= (model.gathers + 1) / 2.0 + 1e-12);
        cs_arena_finish(&arena);
    }
    gsl_rng_free(rng);
}

/* ---- GPT ---- */

enum { LAYERS = 48, HIDDEN = 1536, GPT = 2 * LAYERS + 2 };

static const int64_t vocabulary = 50257;

/* Numbers of four bytes: weights, gradients, two of Adam's. 576 tokens, 8 devices over 4.5 GB/s. */
static cs_osdp_model gpt_model(cs_osdp_operator operators[GPT], uint32_t slices)
{
    const int64_t h = HIDDEN;
    for (uint32_t i = 0; i < GPT; i++) {
        const bool ends = i == 0 || i == GPT - 1, attention = i % 2 == 1;
        const int64_t parameters = ends ? vocabulary * h : (attention ? 4 : 8) * h * h + 8 * h;
        operators[i] =
            (cs_osdp_operator){.weights = 4 * parameters,
                               .gradients = 4 * parameters,
                               .states = 16 * parameters,
                               .kept = ends ? 4 * 576 * h : 4 * 576 * h * (attention ? 6 : 10),
                               .workspace = 4 * 576 * h,
                               .compute = 6 * 576 * parameters / 14, /* ps at 14 Tflop/s */
                               .slices = slices};
    }
    return (cs_osdp_model){GPT, operators, 1, 0, 8, 10000000, 4.5e9, 2};
}

static cs_osdp_plan plan_gpt(const cs_osdp_rules *rules, uint32_t most, cs_arena *arena)
{
    cs_osdp_operator operators[GPT];
    const cs_osdp_model model = gpt_model(operators, 4);
    cs_osdp_plan plan;
    cs_error error;
    cs_error_init(&error);
    expect_error("gpt", CS_OK, "",
                 cs_osdp_find_batch(&model, rules, most, &exactly, arena, &plan, &error), &error);
    return plan;
}

/* 1.51e9 parameters of 4 bytes. Sharded over 8 they need 3 GB; summed over all operators the
 * gathered weights and gradients need 12 GB more, in quarters 3 GB, and a sample keeps 2.8 GB. */
static void a_deep_gpt_takes_less_than_a_second(void **state)
{
    static const int64_t limits[] = {8000000000, 16000000000};
    cs_arena arena;
    (void)state;
    cs_arena_init(&arena);
    for (uint32_t i = 0; i < 8; i++) {
        const cs_osdp_rules rules = {limits[i % 2], i / 2 % 2 ? CS_OSDP_SURGE_SUM : 0, CS_OSDP_ANY,
                                     i >= 4};
        const double start = cs_clock_seconds();
        const cs_osdp_plan plan = plan_gpt(&rules, 1 << 16, &arena);
        const double took = cs_clock_seconds() - start;
        assert_true(plan.complete);
        const bool summed = rules.surge == CS_OSDP_SURGE_SUM;
        assert_int_equal(plan.found, !summed || (rules.slices && rules.limit > 8000000000));
        if (took >= 1)
            fail_msg("limit %" PRId64 ", slices %d: %g s", rules.limit, rules.slices, took);
    }
    cs_arena_finish(&arena);
}

static bool all_are(const cs_osdp_plan *plan, bool sharded)
{
    for (uint32_t i = 0; i < GPT; i++) {
        if (plan->choices[i].sharded != (sharded ? plan->choices[i].slices : 0))
            return false;
    }
    return true;
}

static void memory_decides_between_the_extremes(void **state)
{
    cs_osdp_operator operators[GPT];
    const cs_osdp_model model = gpt_model(operators, 4);
    cs_arena arena;
    cs_osdp_menu menu;
    cs_error error;
    (void)state;
    cs_error_init(&error);
    cs_arena_init(&arena);
    for (uint32_t slices = 0; slices < 2; slices++) {
        cs_osdp_rules rules = {.limit = INT64_MAX, .modes = CS_OSDP_ANY, .slices = slices > 0};
        cs_osdp_plan plan = plan_gpt(&rules, 64, &arena);
        assert_int_equal(64, plan.batch);
        assert_true(all_are(&plan, false));
        assert_int_equal(CS_OK, cs_osdp_menu_make(&model, &rules, 1, &arena, &menu, &error));
        rules.limit = cs_osdp_least_memory(&menu);
        plan = plan_gpt(&rules, 64, &arena);
        assert_int_equal(1, plan.batch);
        assert_true(all_are(&plan, true));
        assert_int_equal(rules.limit, plan.cost.memory);
        rules.limit--;
        assert_false(plan_gpt(&rules, 64, &arena).found);
    }
    cs_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_find_the_best_of_all_plans),
        cmocka_unit_test(batches_are_the_best_of_all),
        cmocka_unit_test(volumes_and_bounds_are_the_papers),
        cmocka_unit_test(no_plan_beats_the_bound),
        cmocka_unit_test(a_deep_gpt_takes_less_than_a_second),
        cmocka_unit_test(memory_decides_between_the_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
