/* The planner madpipe: plans are valid, and found wherever they must be. */
#include "schedules/plan/madpipe-dp.h"
#include "schedules/plan/planner.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-chain.h"

enum { ROW_BYTES = 256, PARAMS_BYTES = 256 };

/* Default parameters, with the changes in `text`. */
static const void *read_params(const char *text, char params[PARAMS_BYTES])
{
    cs_arena arena;
    cs_error error;
    cJSON *object;
    cs_json_place place = {.file = "params"};
    cs_arena_init(&arena);
    cs_error_init(&error);
    assert_true(cs_planner_madpipe.params_size <= PARAMS_BYTES);
    expect_error(text, CS_OK, "", cs_json_parse("params", text, strlen(text), &object, &error),
                 &error);
    expect_error(text, CS_OK, "",
                 cs_field_read(object, &place,
                               (const cs_field *const[]){cs_planner_madpipe.fields, NULL},
                               (void *const[]){params}, &arena, &error),
                 &error);
    cJSON_Delete(object);
    cs_arena_finish(&arena);
    return params;
}

static cs_status plan(const cs_chain *chain, const char *text, cs_planned *planned, cs_error *error)
{
    char params[PARAMS_BYTES] __attribute__((aligned(16)));
    cs_error_init(error);
    return cs_planner_madpipe.plan(chain, read_params(text, params), planned, error);
}

static bool one_stage_each(const cs_plan *of)
{
    for (uint32_t s = 0; s < of->n_stages; s++)
        if (of->devices[s] != s)
            return false;
    return true;
}

/* The least period of a contiguous plan, or CS_TIME_MAX. */
static cs_time contiguous(const cs_chain *chain)
{
    cs_planned planned = {0};
    cs_time period = CS_TIME_MAX;
    cs_status status = cs_planner_contiguous_optimal.plan(chain, NULL, &planned, NULL);
    assert_true(status == CS_OK || status == CS_LIMIT);
    if (status == CS_OK)
        period = planned.pattern.period;
    cs_planned_finish(&planned);
    return period;
}

static const struct {
    const char *params;
    bool safe; /* its result for one stage per device is kept */
    bool none; /* no device with several stages */
} kinds[] = {
    {"{\"iterations\": 20, \"special\": \"none\", \"time_limit\": 5}", true, true},
    {"{\"iterations\": 20, \"special\": \"safe\", \"time_limit\": 5, \"node_limit\": 50}", true,
     false},
    {"{\"special\": \"optimistic\", \"time_limit\": 5, \"node_limit\": 50, \"scan\": 3}", false,
     false},
    {"{\"special\": \"safe\", \"rounding\": \"down\", \"time_limit\": 5, \"node_limit\": 50}",
     false, false},
};

static void check(const char *row, const cs_chain *chain, const cs_planned *planned, size_t kind)
{
    cs_pattern_use uses[8];
    cs_error error;
    cs_error_init(&error);
    expect_error(row, CS_OK, "",
                 cs_pattern_check(chain, &planned->plan, &planned->pattern, uses, &error), &error);
    cs_time all = cs_chain_load(chain, 0, chain->n_layers);
    assert_true(planned->pattern.period * chain->n_devices >= all);
    assert_true(planned->promised > 0);
    if (one_stage_each(&planned->plan))
        assert_true(planned->pattern.period >= contiguous(chain));
    else
        assert_false(kinds[kind].none);
    /* the first allocation is one that keeps its promise, and later ones are worse */
    if (kinds[kind].none)
        assert_true(planned->pattern.period <= planned->promised);
}

static cs_chain small_chain(gsl_rng *rng)
{
    static const random_chain_limits limits = {6, 3, 6, 3, 9};
    cs_chain chain = random_chain(rng, &limits);
    chain.memory = random_up_to(rng, 60 * chain.n_layers / chain.n_devices + 9);
    return chain;
}

/* Whatever fits contiguously has an allocation where g is not counted too low: with the target U +
 * sum of C, which 20 halvings of less than 200 ps reach, all is one group of one micro-batch. */
static void test_random(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(1, "madpipe");
    uint32_t found = 0, apart = 0;
    for (int i = 0; i < 300; i++) {
        cs_chain chain = small_chain(rng);
        for (size_t k = 0; k < ROWS(kinds); k++) {
            char row[ROW_BYTES];
            cs_planned planned = {0};
            cs_error error;
            snprintf(row, sizeof(row), "chain %d, kind %zu", i, k);
            cs_status status = plan(&chain, kinds[k].params, &planned, &error);
            if (status == CS_OK) {
                check(row, &chain, &planned, k);
                found++;
                apart += !one_stage_each(&planned.plan);
            } else if (status != CS_LIMIT) {
                fail_msg("%s: %s", row, error.text);
            } else if (kinds[k].safe && contiguous(&chain) < CS_TIME_MAX) {
                fail_msg("%s: there is a contiguous plan, but: %s", row, error.text);
            }
            cs_planned_finish(&planned);
        }
        cs_chain_finish(&chain);
    }
    print_message("%u plans, %u of them with several stages on a device\n", found, apart);
    assert_in_range(found, 600, 1150);
    assert_in_range(apart, 50, found);
    gsl_rng_free(rng);
}

/* Layers with so much forward and as much backward, that keep a byte each. */
static cs_chain make_chain(uint32_t n_layers, const cs_time *forward, uint32_t n_devices,
                           int64_t kept, int64_t memory)
{
    cs_chain chain = {.n_layers = n_layers, .n_devices = n_devices, .memory = memory};
    int64_t **const arrays[] = {&chain.sum_forward, &chain.sum_backward, &chain.sum_fixed,
                                &chain.sum_kept,    &chain.boundary,     &chain.message};
    for (size_t i = 0; i < ROWS(arrays); i++)
        assert_non_null(*arrays[i] = cs_arena_alloc(&chain.arena, n_layers + 1u, sizeof(int64_t)));
    for (uint32_t l = 0; l < n_layers; l++) {
        chain.sum_forward[l + 1] = chain.sum_forward[l] + forward[l];
        chain.sum_backward[l + 1] = chain.sum_backward[l] + forward[l];
        chain.sum_kept[l + 1] = chain.sum_kept[l] + kept;
    }
    return chain;
}

/* Layers of 2 + 2, 4 + 4, 2 + 2 on two devices, free messages. Contiguous: 12. Layers 0 and 2 on
 * one device have 8 each, and there is such a pattern: F0 at 0, F1 at 2, F2 at 6, B2 at 10, B1 at
 * 14, B0 at 20. Modulo 8 device 0 does F0 [0,2), B2 [2,4), B0 [4,6), F2 [6,8), device 1 F1 [2,6),
 * B1 [6,10). Layer 0 holds a micro-batch for 22 ps, so at most 3, layer 2 one of 6 ps: 4 bytes. */
static void test_apart(void **state)
{
    (void)state;
    static const cs_time forward[] = {2, 4, 2};
    cs_chain chain = make_chain(3, forward, 2, 1, 4);
    cs_planned planned = {0};
    cs_error error;
    expect_error("apart", CS_OK, "",
                 plan(&chain, "{\"loads\": 9, \"special\": \"safe\"}", &planned, &error), &error);
    expect_int("period", 8, planned.pattern.period);
    expect_int("promised", 8, planned.promised);
    expect_int("contiguous", 12, contiguous(&chain));
    cs_planned_finish(&planned);
    cs_chain_finish(&chain);
}

/* Section 5.1: 11 values between 0 and M for m_P, 51 between 0 and U(1, L) + sum of C for V, and
 * 101 between 0 and U(1, L) for t_P. (The parameters begin with the options of the search.) */
static void test_defaults(void **state)
{
    (void)state;
    char params[PARAMS_BYTES] __attribute__((aligned(16)));
    cs_madpipe_options options;
    memcpy(&options, read_params("{}", params), sizeof(options));
    expect_int("t_P", 101, options.loads);
    expect_int("m_P", 11, options.memories);
    expect_int("V", 51, options.delays);
    expect_int("K", 10, options.iterations);
}

/* A layer that keeps 10 bytes on a device of 5. Charged with g - 1 = 0 micro-batches it fits, with
 * an expected period of 2 ps, but no period schedules it; charged with g there is no allocation. */
static void test_too_small(void **state)
{
    (void)state;
    static const cs_time forward[] = {1};
    cs_chain chain = make_chain(1, forward, 1, 10, 5);
    cs_planned planned = {0};
    cs_error error;
    expect_error("optimistic", CS_LIMIT,
                 "no pattern that fits was found for any of the allocations (1, of them 0 not "
                 "decided in time): in the last, of 2e-12 s, device 0 would need 10 bytes for its "
                 "stages (1), and its memory is 5",
                 plan(&chain, "{\"special\": \"optimistic\"}", &planned, &error), &error);
    expect_error(
        "safe", CS_LIMIT,
        "no allocation of 1 layers to 1 devices fits: at best, device 0 needs 10 bytes for "
        "its stages (1), with the longest period, and its memory is 5",
        plan(&chain, "{}", &planned, &error), &error);
    cs_chain_finish(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
