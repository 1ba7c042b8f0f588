/* The planners exhaustive and best, and the bound, against all plans and all starts. */
#include "schedules/plan/planner.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-chain.h"
#include "tests/tiny-chain.h"

#include <stdlib.h>

/* ---- all plans ---- */

typedef struct everything {
    const cs_chain *chain;
    tiny_plan tiny;
    cs_time best; /* 0: none */
    bool gave_up;
} everything;

/* All assignments of all cuts, equal devices or not; a stage more begins at `layer`. */
static void try_all(everything *e, uint32_t layer)
{
    uint32_t n = e->tiny.plan.n_stages;
    if (layer == e->chain->n_layers) {
        cs_time period =
            tiny_best_period(e->chain, &e->tiny.plan, e->best > 0 ? e->best : CS_TIME_MAX, 50000);
        e->gave_up |= period < 0;
        if (period > 0)
            e->best = period;
        return;
    }
    e->tiny.plan.n_stages = e->tiny.plan.n_devices = n + 1;
    for (uint32_t end = layer + 1; end <= e->chain->n_layers; end++) {
        for (uint32_t d = 0; d < e->chain->n_devices; d++) {
            e->tiny.stages[n] = (cs_stage){layer, end, n, 1};
            e->tiny.devices[n] = d;
            try_all(e, end);
        }
    }
    e->tiny.plan.n_stages = e->tiny.plan.n_devices = n;
}

/* The smallest period of all plans; 0: none, -1: too many steps. */
static cs_time best_of_all(const cs_chain *chain)
{
    everything e = {.chain = chain};
    e.tiny.plan = (cs_plan){0, 0, e.tiny.stages, e.tiny.devices};
    try_all(&e, 0);
    return e.gave_up ? -1 : e.best;
}

/* ---- the planners ---- */

/* With its defaults, or of `best` with less effort where `tries` is not 0. The period of a valid
 * pattern, or 0 where nothing fits. */
static cs_time planned_with(const char *row, const cs_planner *planner, int tries,
                            const cs_chain *chain, cs_planned *planned)
{
    uint64_t params[32] = {0};
    const cs_field *tables[] = {planner->fields, NULL};
    void *outs[] = {params};
    cJSON *object = cJSON_CreateObject();
    cs_arena arena;
    cs_error error;
    cs_arena_init(&arena);
    cs_error_init(&error);
    *planned = (cs_planned){0};
    assert_true(planner->params_size <= sizeof(params));
    if (tries > 0) {
        assert_non_null(cJSON_AddNumberToObject(object, "tries", tries));
        assert_non_null(cJSON_AddNumberToObject(object, "programs", 1));
        assert_non_null(cJSON_AddNumberToObject(object, "nodes", 5));
    }
    cs_status status =
        cs_field_read(object, &(cs_json_place){.file = "params"}, tables, outs, &arena, &error);
    cJSON_Delete(object);
    expect_error(row, CS_OK, "", status, &error);
    status = planner->plan(chain, params, planned, &error);
    cs_arena_finish(&arena);
    if (status == CS_LIMIT)
        return 0;
    expect_error(row, CS_OK, "", status, &error);
    status = cs_pattern_check(chain, &planned->plan, &planned->pattern, NULL, &error);
    expect_error(row, CS_OK, "", status, &error);
    return planned->pattern.period;
}

static cs_time planned_by(const char *row, const cs_planner *planner, const cs_chain *chain,
                          cs_planned *planned)
{
    return planned_with(row, planner, 0, chain, planned);
}

/* Between what is too little for any plan and what is enough for all. */
static void draw_memory(gsl_rng *rng, cs_chain *chain)
{
    int64_t fixed = chain->sum_fixed[chain->n_layers], kept = chain->sum_kept[chain->n_layers];
    chain->memory =
        1 + fixed / chain->n_devices + (int64_t)random_up_to(rng, 2 * (uint32_t)kept + 50);
}

typedef struct tally {
    uint32_t possible, tight, contiguous_optimal;
} tally;

static void expect_planners(const char *row, const cs_chain *chain, cs_time best, tally *t)
{
    cs_planned exhaustive, contiguous, searched;
    cs_time bound = cs_planner_bound(chain);
    cs_time all = planned_by(row, &cs_planner_exhaustive, chain, &exhaustive);
    cs_time line = planned_by(row, &cs_planner_contiguous_optimal, chain, &contiguous);
    cs_time found = planned_by(row, &cs_planner_best, chain, &searched);
    expect_int(row, best, all);
    if (best > 0) {
        expect_int(row, 1, exhaustive.optimal);
        expect_int(row, bound, exhaustive.bound);
        if (bound > best)
            fail_msg("%s: bound %" PRId64 " over the optimum %" PRId64, row, bound, best);
    }
    expect_int(row, best, found);
    expect_int(row, best > 0, searched.optimal);
    t->possible += best > 0;
    t->tight += best > 0 && bound == best;
    t->contiguous_optimal += best > 0 && line == best;
    cs_planned_finish(&exhaustive);
    cs_planned_finish(&contiguous);
    cs_planned_finish(&searched);
}

static void planners_against_all_plans(void **state)
{
    (void)state;
    static const tiny_limits limits = {4, 3, 2, 1, 4, true};
    gsl_rng *rng = cs_random_stream(1, "all plans");
    tally t = {0};
    const uint32_t chains = cases_drawn(200);
    for (uint32_t i = 0; i < chains; i++) {
        char row[32];
        tiny_chain tiny;
        tiny_chain_make(rng, &limits, &tiny);
        cs_time best = best_of_all(&tiny.chain);
        snprintf(row, sizeof(row), "chain %" PRIu32, i);
        if (best >= 0)
            expect_planners(row, &tiny.chain, best, &t);
    }
    print_message("%u possible; contiguous_optimal is optimal for %u; bound reached %u\n",
                  t.possible, t.contiguous_optimal, t.tight);
    assert_true(t.possible > chains / 5);
    gsl_rng_free(rng);
}

/* Wherever `exhaustive` tries all plans, which takes it a proof for each, `best` is as good. Times
 * are large enough for periods to differ, and memory is scarce. */
static void best_against_exhaustive(void **state)
{
    (void)state;
    static const random_chain_limits limits = {6, 3, 30, 12, 9};
    const uint32_t chains = cases_drawn(500);
    gsl_rng *rng = cs_random_stream(7, "best against exhaustive");
    uint32_t possible = 0, contiguous_optimal = 0;
    for (uint32_t i = 0; i < chains; i++) {
        char row[32];
        cs_planned all, found, line;
        cs_chain chain = random_chain(rng, &limits);
        snprintf(row, sizeof(row), "chain %" PRIu32, i);
        draw_memory(rng, &chain);
        cs_time best = planned_by(row, &cs_planner_exhaustive, &chain, &all);
        expect_int(row, best, planned_by(row, &cs_planner_best, &chain, &found));
        if (best > 0)
            expect_int(row, 1, all.optimal);
        cs_time contiguous = planned_by(row, &cs_planner_contiguous_optimal, &chain, &line);
        possible += best > 0;
        contiguous_optimal += best > 0 && contiguous == best;
        cs_planned_finish(&all);
        cs_planned_finish(&found);
        cs_planned_finish(&line);
        cs_chain_finish(&chain);
    }
    print_message("%u possible; contiguous_optimal is optimal for %u\n", possible,
                  contiguous_optimal);
    assert_in_range(possible, chains / 2, chains);
    assert_in_range(possible - contiguous_optimal, chains / 50, chains);
    gsl_rng_free(rng);
}

/* A plan that fits fits with more memory too, so a planner should not do worse with more. */
static void expect_monotone(const char *row, int tries, cs_chain *chain, gsl_rng *rng)
{
    cs_time before = 0;
    for (int i = 0; i < 8; i++) {
        cs_planned found, line;
        cs_time now = planned_with(row, &cs_planner_best, tries, chain, &found);
        cs_time contiguous = planned_by(row, &cs_planner_contiguous_optimal, chain, &line);
        if (before > 0 && (now == 0 || now > before))
            fail_msg("%s: %" PRId64 " ps with %" PRId64 " bytes, %" PRId64 " with less", row, now,
                     chain->memory, before);
        if (contiguous > 0 && (now == 0 || now > contiguous))
            fail_msg("%s: best %" PRId64 ", contiguous_optimal %" PRId64, row, now, contiguous);
        before = now;
        chain->memory += 1 + (int64_t)random_up_to(rng, (uint32_t)chain->memory / 4);
        cs_planned_finish(&found);
        cs_planned_finish(&line);
    }
}

static void best_is_monotone(void **state)
{
    (void)state;
    static const struct {
        random_chain_limits limits;
        uint32_t chains;
        int tries;
    } rows[] = {{{6, 3, 30, 12, 9}, 12, 0}, {{12, 4, 200, 90, 40}, 4, 300}};
    gsl_rng *rng = cs_random_stream(8, "best is monotone");
    for (size_t i = 0; i < ROWS(rows); i++) {
        for (uint32_t k = 0; k < cases_drawn(rows[i].chains); k++) {
            char row[32];
            cs_chain chain = random_chain_full(rng, &rows[i].limits);
            snprintf(row, sizeof(row), "row %zu, chain %" PRIu32, i, k);
            draw_memory(rng, &chain);
            expect_monotone(row, rows[i].tries, &chain, rng);
            cs_chain_finish(&chain);
        }
    }
    gsl_rng_free(rng);
}

/* Two layers, each with 3 bytes of weights, 4 kept and a buffer of 2 * 1 if alone: 9 on a device of
 * its own, 14 together. */
static void nothing_fits(void **state)
{
    (void)state;
    static const struct {
        const cs_planner *planner;
        int need;
    } rows[] = {{&cs_planner_exhaustive, 9}, {&cs_planner_best, 9}};
    cs_time forward[] = {0, 1, 2}, backward[] = {0, 1, 2}, message[] = {0, 1, 0};
    int64_t fixed[] = {0, 3, 6}, kept[] = {0, 4, 8}, boundary[] = {0, 1, 0};
    cs_chain chain = {.n_layers = 2,
                      .n_devices = 2,
                      .memory = 8,
                      .sum_forward = forward,
                      .sum_backward = backward,
                      .sum_fixed = fixed,
                      .sum_kept = kept,
                      .boundary = boundary,
                      .message = message};
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_planner *planner = rows[i].planner;
        uint64_t params[32] = {0};
        cs_planned planned = {0};
        const cs_field *tables[] = {planner->fields, NULL};
        char expected[256];
        cs_arena arena;
        cs_error error;
        cs_arena_init(&arena);
        cs_error_init(&error);
        cs_status status = cs_field_read(NULL, NULL, tables, (void *[]){params}, &arena, &error);
        expect_error(planner->name, CS_OK, "", status, &error);
        status = planner->plan(&chain, params, &planned, &error);
        cs_arena_finish(&arena);
        snprintf(
            expected, sizeof(expected),
            "no plan of 2 layers on 2 devices fits: of all that were tried, the one that needs "
            "the least has %d bytes on device 0 with one active micro-batch, and a device has "
            "8",
            rows[i].need);
        expect_error(planner->name, CS_LIMIT, expected, status, &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planners_against_all_plans),
        cmocka_unit_test(best_against_exhaustive),
        cmocka_unit_test(best_is_monotone),
        cmocka_unit_test(nothing_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
