/* Drawn loads of experts against their distributions, and what a scenario makes of them. */
#include "sim/model/split.h"

#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <math.h>

enum { DRAWS = 4000 };

static const double pi = 3.14159265358979323846;

typedef struct moments {
    double mean, below; /* share of loads below a limit */
} moments;

static moments draw(cs_router router, double concentration, uint32_t experts, uint32_t places,
                    double rows, double limit)
{
    moments m = {0};
    for (uint32_t seed = 0; seed < DRAWS; seed++) {
        const cs_routing routing = {router, 1, concentration, seed};
        const double load = cs_routing_load(&routing, "mixture", experts, places, rows);
        assert_true(load >= 1 && load <= places);
        m.mean += load / DRAWS;
        m.below += load < limit ? 1.0 / DRAWS : 0;
    }
    return m;
}

static void expect_near(const char *row, double expected, double got, double error)
{
    if (!(fabs(got - expected) <= error))
        fail_msg("%s: expected %g +- %g, got %g", row, expected, error, got);
}

/* With two places of one expert each and a = 1, p is uniform on [0, 1]: with infinitely many rows
 * the load 2 max(p, 1 - p) is uniform on [1, 2]: its mean is 3/2, its deviation 1/sqrt(12), a
 * quarter is below 5/4. Two experts on each place with a = 1/2: the sum of two of four is Beta(1,
 * 1), the same. With p = 1/2, n is binomial, and the load 1 + |2 n/R - 1|: the mean of the latter
 * is sqrt(2/(pi R)) for many rows (a normal distribution's), and for R = 2 rows half of all draws
 * have both at one place: 3/2. Three standard errors are allowed, 3 x 0.29/sqrt(4000) of the mean
 * and 3 sqrt(3/16/4000) of the share. */
static void test_distributions(void **state)
{
    (void)state;
    const double error = 3 * sqrt(1.0 / 12 / DRAWS), share = 3 * sqrt(3.0 / 16 / DRAWS);
    const moments one = draw(CS_ROUTER_DIRICHLET, 1, 2, 2, 1e12, 1.25);
    const moments two = draw(CS_ROUTER_DIRICHLET, 0.5, 4, 2, 1e12, 1.25);
    const moments rows = draw(CS_ROUTER_DIRICHLET, 1, 2, 2, 1 << 20, 1.25);
    const moments few = draw(CS_ROUTER_UNIFORM, 1, 2, 2, 2, 1.25);
    const moments many = draw(CS_ROUTER_UNIFORM, 1, 2, 2, 10000, 1.25);
    expect_near("one expert each", 1.5, one.mean, error);
    expect_near("one expert each, quarter", 0.25, one.below, share);
    expect_near("two experts each", 1.5, two.mean, error);
    expect_near("two experts each, quarter", 0.25, two.below, share);
    expect_near("a million rows", 1.5, rows.mean, error);
    expect_near("two rows", 1.5, few.mean, 3 * 0.5 / sqrt(DRAWS));
    /* deviation of |N(0, 1/R)|: sqrt((1 - 2/pi)/R) */
    expect_near("even experts", 1 + sqrt(2 / (pi * 10000)), many.mean,
                3 * sqrt((1 - 2 / pi) / 10000 / DRAWS));
    expect_near("very even", 1, draw(CS_ROUTER_DIRICHLET, 1e6, 8, 4, 1e12, 2).mean, 0.01);
    /* all to one expert: the load is the number of places */
    expect_near("very uneven", 4, draw(CS_ROUTER_DIRICHLET, 0.001, 8, 4, 1e12, 2).mean, 0.1);
}

static void test_determinism(void **state)
{
    (void)state;
    const cs_routing a = {CS_ROUTER_DIRICHLET, 1, 1, 7}, b = {CS_ROUTER_DIRICHLET, 1, 1, 8};
    const cs_routing given = {CS_ROUTER_GIVEN, 1.5, 1, 7};
    const double load = cs_routing_load(&a, "x", 8, 4, 1000);
    expect_near("again", load, cs_routing_load(&a, "x", 8, 4, 1000), 0);
    assert_true(fabs(load - cs_routing_load(&a, "y", 8, 4, 1000)) > 0);
    assert_true(fabs(load - cs_routing_load(&b, "x", 8, 4, 1000)) > 0);
    expect_near("given", 1.5, cs_routing_load(&given, "x", 8, 4, 1000), 0);
    expect_near("one place", 1, cs_routing_load(&a, "x", 8, 1, 1000), 0);
}

/* ---- in a scenario ---- */

static cs_status read(scenario_run *made, const char *parameters, const char *parallel,
                      cs_error *error)
{
    cs_error_init(error);
    return scenario_run_read(
        made, error,
        "{'schema_version': 1, 'seed': 5, 'model': {'name': 'mixtral', 'parameters': {'layers': 2, "
        "'hidden': 256, 'heads': 8, 'kv_heads': 4, 'expert_intermediate': 512, 'sequence': 128, "
        "'vocabulary': 1024 %s}, 'device': 'h100', 'granularity': 'block', 'precision': 'bf16', "
        "'batch_size': 64}, 'platform': {'topology': 'dgx-h100', 'devices': 8}, 'schedule': "
        "{'kind': 'sequential', 'micro_batches': 2}, 'parallel': {'expert': 4, %s}}",
        parameters, parallel);
}

/* Bytes of the first all-to-all of a layer: 64/8/2 = 4 samples of ceil(128 x 2 x load) rows of 256
 * features of 2 bytes; the load is for 4 x 4 x 256 rows over 8 experts on 4 places. */
static void expect_rows(const char *row, const scenario_run *made, const char *layer,
                        const char *mixture, const cs_routing *routing)
{
    const cs_model *model = made->scenario.model;
    const double load = cs_routing_load(routing, mixture, 8, 4, 4 * 4 * 256);
    const int64_t expected = 4 * (int64_t)ceil(256 * load) * 256 * 2;
    bool found = false;
    for (uint32_t l = 0; l < model->n_layers; l++)
        for (uint32_t i = 0; i < model->layers[l].n_exchanges; i++) {
            const cs_exchange *one = &model->layers[l].exchanges[i];
            if (strcmp(model->layers[l].name, layer) != 0 || one->kind != CS_EXCHANGE_ALL_TO_ALL)
                continue;
            expect_int(row, expected, one->bytes);
            found = true;
        }
    assert_true(found);
}

static void test_scenario(void **state)
{
    (void)state;
    static const struct {
        const char *name, *routing;
        cs_routing drawn;
    } rows[] = {
        {"dirichlet",
         "'drawn': 'dirichlet', 'concentration': 2, 'seed': 3",
         {CS_ROUTER_DIRICHLET, 1, 2, 3}},
        {"the scenario's seed", "'drawn': 'dirichlet'", {CS_ROUTER_DIRICHLET, 1, 1, 5}},
        {"uniform", "'drawn': 'uniform'", {CS_ROUTER_UNIFORM, 1, 1, 5}},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        char parallel[128];
        scenario_run made;
        cs_error error;
        snprintf(parallel, sizeof(parallel), "'expert_routing': {%s}", rows[r].routing);
        if (read(&made, "", parallel, &error) != CS_OK)
            fail_msg("%s: %s", rows[r].name, error.text);
        expect_rows(rows[r].name, &made, "layers.0", "layers.0.mlp.dispatch", &rows[r].drawn);
        expect_rows(rows[r].name, &made, "layers.1", "layers.1.mlp.dispatch", &rows[r].drawn);
        scenario_run_finish(&made);
    }
}

/* With a capacity of 1.25 all experts compute as many rows: 4 samples of 8 experts with
 * ceil(1.25 x 256/8) = 40 of them. */
static void test_capacity(void **state)
{
    (void)state;
    const cs_routing even = {CS_ROUTER_GIVEN, 320.0 / 256, 1, 0};
    scenario_run made;
    cs_error error;
    if (read(&made, ", 'capacity': 1.25", "'expert_routing': {'drawn': 'dirichlet'}", &error) !=
        CS_OK)
        fail_msg("%s", error.text);
    expect_rows("capacity", &made, "layers.1", "layers.1.mlp.dispatch", &even);
    scenario_run_finish(&made);
    expect_error(
        "both", CS_INVALID,
        "test: /parallel/expert_imbalance: must be left out with \"expert_routing\" (got "
        "1.5)",
        read(&made, "", "'expert_routing': {'drawn': 'uniform'}, 'expert_imbalance': 1.5", &error),
        &error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions), cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_scenario), cmocka_unit_test(test_capacity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
