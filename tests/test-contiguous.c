/* The planner contiguous_optimal against all contiguous plans. */
#include "schedules/plan/planner.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-chain.h"

#include <stdlib.h>

enum { MOST_LAYERS = 10 };

/* The paper's x (+) y. */
static cs_time up(cs_time x, cs_time period)
{
    return (x + period - 1) / period;
}

static cs_time plus(cs_time x, cs_time y, cs_time period)
{
    return up(x, period) == up(x + y, period) ? x + y : period * up(x, period) + y;
}

static bool is_possible(const cs_chain *chain, const uint32_t *cuts, uint32_t n_stages,
                        cs_time period)
{
    cs_time delay = 0;
    for (uint32_t s = n_stages; s-- > 0;) {
        cs_time load = cs_chain_load(chain, cuts[s], cuts[s + 1]);
        cs_time link = cs_chain_link(chain, cuts[s]);
        delay = plus(delay, load, period);
        int64_t active = up(delay, period) > 1 ? up(delay, period) : 1;
        delay = plus(delay, link, period);
        if (load > period || link > period ||
            cs_chain_bytes(chain, cuts[s], cuts[s + 1], active) > chain->memory)
            return false;
    }
    return true;
}

/* The smallest period below `below` of a plan with these cuts, each period tried; or `below`. */
static cs_time smallest(const cs_chain *chain, const uint32_t *cuts, uint32_t n_stages,
                        cs_time below)
{
    for (cs_time period = 1; period < below; period++) {
        if (is_possible(chain, cuts, n_stages, period))
            return period;
    }
    return below;
}

/* Best over all plans; CS_TIME_MAX: none. `n_stages`: smallest number of stages of a best plan. */
static cs_time brute_force(const cs_chain *chain, uint32_t *n_stages)
{
    cs_time most = 2, best;
    uint32_t cuts[MOST_LAYERS + 1];
    for (uint32_t l = 0; l < chain->n_layers; l++)
        most += cs_chain_load(chain, l, l + 1) + cs_chain_link(chain, l);
    best = most;
    *n_stages = 0;
    for (uint32_t n = 1; n <= chain->n_devices && n <= chain->n_layers; n++) {
        first_cuts(cuts, n, chain->n_layers);
        do {
            cs_time period = smallest(chain, cuts, n, best);
            *n_stages = period < best ? n : *n_stages;
            best = period;
        } while (next_cuts(cuts, n));
    }
    return best < most ? best : CS_TIME_MAX;
}

/* Memory of the best plan with one active micro-batch everywhere. */
static int64_t least_memory(const cs_chain *chain)
{
    uint32_t cuts[MOST_LAYERS + 1];
    int64_t least = INT64_MAX;
    for (uint32_t n = 1; n <= chain->n_devices && n <= chain->n_layers; n++) {
        first_cuts(cuts, n, chain->n_layers);
        do {
            int64_t most = 0;
            for (uint32_t s = 0; s < n; s++) {
                int64_t bytes = cs_chain_bytes(chain, cuts[s], cuts[s + 1], 1);
                most = bytes > most ? bytes : most;
            }
            least = most < least ? most : least;
        } while (next_cuts(cuts, n));
    }
    return least;
}

static void expect_best(const cs_chain *chain)
{
    uint32_t n_stages;
    cs_planned planned = {0};
    cs_error error;
    cs_error_init(&error);
    cs_time expected = brute_force(chain, &n_stages);
    cs_status status = cs_planner_contiguous_optimal.plan(chain, NULL, &planned, &error);
    if (status != (expected < CS_TIME_MAX ? CS_OK : CS_LIMIT))
        fail_msg("expected period %lld, got \"%s\"", (long long)expected, error.text);
    if (status == CS_OK) {
        expect_int("period", expected, planned.pattern.period);
        expect_int("stages", n_stages, planned.plan.n_stages);
        assert_true(planned.optimal);
        status = cs_pattern_check(chain, &planned.plan, &planned.pattern, NULL, &error);
        expect_error("valid", CS_OK, "", status, &error);
    } else {
        char needs[64];
        snprintf(needs, sizeof(needs), "needs %lld bytes", (long long)least_memory(chain));
        if (!strstr(error.text, needs))
            fail_msg("expected \"%s\" in \"%s\"", needs, error.text);
    }
    cs_planned_finish(&planned);
}

/* Memory from slightly too little for any plan to enough for all. */
static void test_brute_force(void **state)
{
    static const random_chain_limits limits[] = {
        {MOST_LAYERS, 5, 9, 4, 9}, {MOST_LAYERS, 4, 3, 6, 3}, {5, 7, 9, 0, 9}, {6, 3, 0, 2, 4}};
    gsl_rng *rng = cs_random_stream(4, "contiguous");
    (void)state;
    for (int i = 0; i < 2000; i++) {
        cs_chain chain = random_chain(rng, &limits[i % ROWS(limits)]);
        int64_t least = least_memory(&chain);
        expect_best(&chain);
        chain.memory = least - 1;
        expect_best(&chain);
        for (int tried = 0; tried < 3; tried++) {
            chain.memory = least + random_up_to(rng, (uint32_t)least);
            expect_best(&chain);
        }
        chain.memory = least;
        expect_best(&chain);
        cs_chain_finish(&chain);
    }
    gsl_rng_free(rng);
}

/* Three layers of 1 ps forward and 1 backward, 10 bytes of weights and 1 per active micro-batch, no
 * messages, buffers of 2 * 2 bytes at either side of the middle layer. */
static void test_by_hand(void **state)
{
    static const struct {
        const char *name;
        uint32_t n_devices;
        int64_t memory;
        uint32_t n_stages;
        cs_time period;
        const char *message;
    } rows[] = {
        {"more devices than layers", 9, INT64_MAX, 3, 2, ""},
        {"three groups", 3, 20, 3, 2, ""}, /* 10 + 4 + 4 + 2 * 1 in the middle, 10 + 4 + 3 * 1 */
        {"two groups", 3, 19, 3, 4, ""},   /* the middle layer with one active, as the last */
        {"nothing", 3, 18, 0, 0,
         "no contiguous plan fits 3 devices: at best, device 1 needs 19 bytes for layers 1 to 1 "
         "with "
         "one active micro-batch, and its memory is 18"},
        {"one device", 1, 33, 1, 6, ""},
        {"one device, nothing", 1, 32, 0, 0,
         "no contiguous plan fits 1 device: at best, device 0 needs 33 bytes for layers 0 to 2 "
         "with "
         "one active micro-batch, and its memory is 32"},
    };
    cs_time forward[] = {0, 1, 2, 3}, message[] = {0, 0, 0, 0};
    int64_t fixed[] = {0, 10, 20, 30}, kept[] = {0, 1, 2, 3}, boundary[] = {0, 2, 2, 0};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_planned planned = {0};
        cs_error error;
        cs_chain chain = {.n_layers = 3,
                          .n_devices = rows[i].n_devices,
                          .memory = rows[i].memory,
                          .sum_forward = forward,
                          .sum_backward = forward,
                          .sum_fixed = fixed,
                          .sum_kept = kept,
                          .boundary = boundary,
                          .message = message};
        cs_error_init(&error);
        cs_status status = cs_planner_contiguous_optimal.plan(&chain, NULL, &planned, &error);
        expect_error(rows[i].name, rows[i].period > 0 ? CS_OK : CS_LIMIT, rows[i].message, status,
                     &error);
        expect_int(rows[i].name, rows[i].period, planned.pattern.period);
        expect_int(rows[i].name, rows[i].n_stages, planned.plan.n_stages);
        cs_planned_finish(&planned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_brute_force),
                                       cmocka_unit_test(test_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
