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

/* Of all plans; CS_TIME_MAX: there is none. `n_stages`: the least of a best one. */
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

/* What the best plan takes with one active micro-batch everywhere. */
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

/* Memory from what is just not enough for any plan to what none misses. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
