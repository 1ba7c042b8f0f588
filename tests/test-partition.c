/* The partitioner of PipeDream against all partitions, by each reading of its memory test; the
 * planners `pipedream` and `balanced`. */
#include "schedules/plan/pipedream-partition.h"
#include "schedules/plan/planner.h"
#include "sim/base/random.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_LAYERS = 8, TRIALS = 400, PS_PER_BYTE = 1000 };

/* A chain as its layers are, without sums. */
typedef struct instance {
    uint32_t n_layers, n_devices;
    cs_time forward[MOST_LAYERS], backward[MOST_LAYERS];
    int64_t weights[MOST_LAYERS], kept[MOST_LAYERS], output[MOST_LAYERS];
    int64_t memory;
    char text[64];
} instance;

static instance draw(gsl_rng *rng, unsigned int trial)
{
    instance c = {.n_layers = 1 + (uint32_t)gsl_rng_uniform_int(rng, MOST_LAYERS),
                  .n_devices = 1 + (uint32_t)gsl_rng_uniform_int(rng, 6)};
    int64_t total = 0;
    for (uint32_t l = 0; l < c.n_layers; l++) {
        c.forward[l] = (cs_time)gsl_rng_uniform_int(rng, 12) * 1000; /* 0 too, and many ties */
        c.backward[l] = (cs_time)gsl_rng_uniform_int(rng, 20) * 1000;
        c.weights[l] = (int64_t)gsl_rng_uniform_int(rng, 10);
        c.kept[l] = (int64_t)gsl_rng_uniform_int(rng, 10);
        c.output[l] = (int64_t)gsl_rng_uniform_int(rng, trial % 2 ? 4 : 20);
        total += 3 * c.weights[l] + c.kept[l];
    }
    c.memory = 1 + (int64_t)gsl_rng_uniform_int(rng, 2 * (unsigned long)total + 2);
    snprintf(c.text, sizeof(c.text), "trial %u: %u layers, %u devices, %d bytes", trial, c.n_layers,
             c.n_devices, (int)c.memory);
    return c;
}

static cs_model model_of(const instance *c)
{
    static const cs_layer any = {0};
    cs_model model;
    assert_int_equal(cs_model_uniform(c->n_layers, &any, &model, NULL), CS_OK);
    for (uint32_t l = 0; l < c->n_layers; l++) {
        cs_layer *layer = &model.layers[l];
        layer->forward = c->forward[l];
        layer->backward_input = c->backward[l] / 3;
        layer->backward_weight = c->backward[l] - c->backward[l] / 3;
        layer->weight_bytes = c->weights[l];
        layer->kept_bytes = c->kept[l];
        layer->output_bytes = c->output[l];
    }
    return model;
}

static cs_chain chain_of(const instance *c)
{
    cs_model model = model_of(c);
    cs_chain chain = {0};
    cs_chain_options options = {.model = &model,
                                .n_devices = c->n_devices,
                                .micro_samples = 1,
                                .speed = 1,
                                .memory = c->memory,
                                .bandwidth = (double)CS_PS_PER_SEC / PS_PER_BYTE,
                                .weight_copies = 3};
    assert_int_equal(cs_chain_make(&options, &chain, NULL), CS_OK);
    cs_model_finish(&model);
    return chain;
}

/* ---- all partitions ---- */

typedef struct found {
    uint32_t n_stages, cuts[MOST_LAYERS + 1];
    int64_t value;
} found;

static int64_t output_of(const instance *c, uint32_t boundary)
{
    return boundary > 0 && boundary < c->n_layers ? c->output[boundary - 1] : 0;
}

/* Bytes by the rules (header of the partitioner), layer by layer. */
static int64_t bytes_of(const instance *c, cs_memory_rule rule, uint32_t n, uint32_t i,
                        uint32_t first, uint32_t end)
{
    int64_t bytes = 0;
    if (rule != CS_MEMORY_ORIGINAL)
        bytes = 2 * (output_of(c, first) + output_of(c, end));
    for (uint32_t l = first; l < end; l++) {
        if (rule == CS_MEMORY_ORIGINAL)
            bytes += (c->n_devices - (i + 1)) * (c->kept[l] + c->weights[l]);
        else
            bytes +=
                3 * c->weights[l] + c->kept[l] * (rule == CS_MEMORY_ALL ? c->n_devices : n - i);
    }
    return bytes;
}

/* The largest U and C, and the largest number of bytes. */
static void weigh(const instance *c, cs_memory_rule rule, const found *cut, int64_t *time,
                  int64_t *bytes)
{
    *time = *bytes = 0;
    for (uint32_t i = 0; i < cut->n_stages; i++) {
        uint32_t first = cut->cuts[i], end = cut->cuts[i + 1];
        int64_t load = 0, link = 2 * PS_PER_BYTE * output_of(c, end);
        int64_t held = bytes_of(c, rule, cut->n_stages, i, first, end);
        for (uint32_t l = first; l < end; l++)
            load += c->forward[l] + c->backward[l];
        *time = load > *time ? load : *time;
        *time = link > *time ? link : *time;
        *bytes = held > *bytes ? held : *bytes;
    }
}

static bool is_better(const found *a, const found *b)
{
    if (b->n_stages == 0 || a->value != b->value)
        return b->n_stages == 0 || a->value < b->value;
    if (a->n_stages != b->n_stages)
        return a->n_stages < b->n_stages;
    for (uint32_t i = 0; i < a->n_stages; i++) {
        if (a->cuts[i] != b->cuts[i])
            return a->cuts[i] < b->cuts[i];
    }
    return false;
}

/* The best of those that fit; and the least bytes of the fullest device, of all. */
static found best_of_all(const instance *c, cs_memory_rule rule, int64_t *least_bytes)
{
    found best = {0};
    *least_bytes = INT64_MAX;
    for (uint32_t mask = 0; mask < 1u << (c->n_layers - 1); mask++) {
        found one = {.n_stages = 1};
        for (uint32_t l = 1; l < c->n_layers; l++) {
            if (mask >> (l - 1) & 1)
                one.cuts[one.n_stages++] = l;
        }
        one.cuts[one.n_stages] = c->n_layers;
        if (one.n_stages > c->n_devices)
            continue;
        int64_t bytes;
        weigh(c, rule, &one, &one.value, &bytes);
        *least_bytes = bytes < *least_bytes ? bytes : *least_bytes;
        if (bytes <= c->memory && is_better(&one, &best))
            best = one;
    }
    return best;
}

static void expect_plan(const char *row, const found *expected, const cs_plan *got)
{
    expect_int(row, expected->n_stages, got->n_stages);
    for (uint32_t i = 0; i < expected->n_stages; i++) {
        expect_int(row, expected->cuts[i], got->stages[i].first_layer);
        expect_int(row, expected->cuts[i + 1], got->stages[i].end_layer);
        expect_int(row, i, got->devices[got->stages[i].first_device]);
    }
}

static void check(const instance *c, cs_memory_rule rule, uint32_t *n_fit)
{
    int64_t least_bytes;
    found expected = best_of_all(c, rule, &least_bytes);
    cs_chain chain = chain_of(c);
    cs_plan plan = {0};
    cs_time promised = 0;
    cs_error error;
    char bytes[40];
    cs_error_init(&error);
    cs_status status = cs_pipedream_partition(&chain, rule, &plan, &promised, &error);
    expect_int(c->text, expected.n_stages > 0 ? CS_OK : CS_LIMIT, status);
    if (expected.n_stages > 0) {
        expect_plan(c->text, &expected, &plan);
        expect_int(c->text, expected.value, promised);
        ++*n_fit;
    } else {
        snprintf(bytes, sizeof(bytes), "needs %d bytes on device", (int)least_bytes);
        if (!strstr(error.text, bytes))
            fail_msg("%s: no \"%s\" in \"%s\"", c->text, bytes, error.text);
    }
    cs_plan_finish(&plan);
    cs_chain_finish(&chain);
}

static void test_all_partitions(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(6, "partitions");
    for (cs_memory_rule rule = CS_MEMORY_DEPTH; rule <= CS_MEMORY_ORIGINAL; rule++) {
        uint32_t n_fit = 0;
        for (unsigned int trial = 0; trial < TRIALS; trial++) {
            instance c = draw(rng, trial);
            check(&c, rule, &n_fit);
        }
        print_message("  %s: %u of %d chains fit\n",
                      rule == CS_MEMORY_DEPTH ? "depth"
                      : rule == CS_MEMORY_ALL ? "all"
                                              : "original",
                      n_fit, TRIALS);
        assert_in_range(n_fit, TRIALS / 5, TRIALS - TRIALS / 20); /* both answers are looked at */
    }
    gsl_rng_free(rng);
}

/* ---- by hand ---- */

/* Three layers of u_F = 1 ns, u_B = 2 ns, a weight of 10 bytes, 4 bytes kept and 2 handed on, on
 * three devices. A byte takes 1 ns, so C = 4 ns; each stage alone takes 3 ns, and the fastest
 * partition has C = 4 as its maximum. By `depth` a stage needs 30 for weights, 4 per active
 * micro-batch and 4 for each boundary: 30 + 3 * 4 + 4 = 46, 30 + 2 * 4 + 8 = 46, 30 + 4 + 4 = 38.
 * By `all` 30 + 12 + 4 = 46, 50 and 46. By `original` 2 * 14 = 28, 14 and 0. */
static const struct {
    const char *name;
    cs_memory_rule rule;
    int64_t bytes[3];
} by_hand[] = {
    {"depth", CS_MEMORY_DEPTH, {46, 46, 38}},
    {"all", CS_MEMORY_ALL, {46, 50, 46}},
    {"original", CS_MEMORY_ORIGINAL, {28, 14, 0}},
};

static instance three_layers(int64_t memory)
{
    instance c = {.n_layers = 3, .n_devices = 3, .memory = memory, .text = "three layers"};
    for (uint32_t l = 0; l < 3; l++) {
        c.forward[l] = 1000;
        c.backward[l] = 2000;
        c.weights[l] = 10;
        c.kept[l] = 4;
        c.output[l] = 2;
    }
    return c;
}

static void test_by_hand(void **state)
{
    (void)state;
    instance c = three_layers(50);
    cs_chain chain = chain_of(&c);
    for (size_t i = 0; i < ROWS(by_hand); i++) {
        for (uint32_t s = 0; s < 3; s++)
            expect_int(by_hand[i].name, by_hand[i].bytes[s],
                       cs_pipedream_bytes(&chain, by_hand[i].rule, 3, s, s, s + 1));
        cs_plan plan;
        cs_time promised;
        assert_int_equal(cs_pipedream_partition(&chain, by_hand[i].rule, &plan, &promised, NULL),
                         CS_OK);
        expect_int(by_hand[i].name, 3, plan.n_stages);
        expect_int(by_hand[i].name, 4000, promised);
        cs_plan_finish(&plan);
    }
    cs_chain_finish(&chain);
}

/* With 45 bytes no rule of the two finds three stages; two are larger still. */
static void test_too_small(void **state)
{
    (void)state;
    instance c = three_layers(45);
    cs_chain chain = chain_of(&c);
    cs_plan plan;
    cs_time promised;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_pipedream_partition(&chain, CS_MEMORY_DEPTH, &plan, &promised, &error);
    expect_error("depth", CS_LIMIT,
                 "no partition fits by the memory rule \"depth\": the one that comes closest needs "
                 "46 bytes on device 0 (layers 0 to 0), which has 45 for them",
                 status, &error);
    cs_chain_finish(&chain);
}

/* ---- planners ---- */

/* Checks that a planner's result is valid, and not faster than the load and the links allow. */
static void check_planner(const instance *c, const cs_planner *planner, const void *params,
                          uint32_t *n_fit)
{
    cs_chain chain = chain_of(c);
    cs_planned planned = {0};
    cs_error error;
    cs_error_init(&error);
    cs_status status = planner->plan(&chain, params, &planned, &error);
    if (status == CS_OK) {
        if (cs_pattern_check(&chain, &planned.plan, &planned.pattern, NULL, &error) != CS_OK)
            fail_msg("%s: %s", c->text, error.text);
        assert_true(planned.pattern.period >= planned.promised);
        ++*n_fit;
    } else {
        expect_int(c->text, CS_LIMIT, status);
        assert_non_null(strstr(error.text, "device"));
    }
    cs_planned_finish(&planned);
    cs_chain_finish(&chain);
}

/* The parameters of the planner "balanced". */
typedef struct balanced_params {
    bool communication;
    uint32_t stages;
} balanced_params;

static void test_planners(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(6, "planners");
    uint32_t n_fit = 0;
    for (unsigned int trial = 0; trial < TRIALS; trial++) {
        instance c = draw(rng, trial);
        uint32_t rule = trial % 3;
        const balanced_params balanced = {.communication = trial % 2};
        check_planner(&c, &cs_planner_pipedream, &rule, &n_fit);
        check_planner(&c, &cs_planner_balanced, &balanced, &n_fit);
    }
    assert_in_range(n_fit, TRIALS / 5, 2 * TRIALS);
    gsl_rng_free(rng);
}

/* Checks that stages are cut as by cs_plan_balanced, with equally many devices each, in order. */
static void check_stages(const instance *c, bool communication, uint32_t stages)
{
    const uint32_t n = stages > 0 ? stages : c->n_devices, replicas = c->n_devices / n;
    const balanced_params params = {communication, stages};
    cs_model model = model_of(c);
    cs_balance balance = {.model = &model,
                          .n_stages = n,
                          .communication = communication,
                          .bandwidth = (double)CS_PS_PER_SEC / PS_PER_BYTE};
    cs_plan expected;
    cs_planned got = {0};
    cs_chain chain = chain_of(c);
    assert_int_equal(cs_plan_balanced(&balance, &expected, NULL), CS_OK);
    cs_error error;
    cs_error_init(&error);
    if (cs_planner_balanced.plan(&chain, &params, &got, &error) != CS_OK)
        fail_msg("%s: %s", c->text, error.text);
    expect_int(c->text, n, got.plan.n_stages);
    expect_int(c->text, c->n_devices, got.plan.n_devices);
    assert_int_equal(got.pattern.period == 0, replicas > 1);
    for (uint32_t s = 0; s < n; s++) {
        const cs_stage *stage = &got.plan.stages[s];
        expect_int(c->text, expected.stages[s].end_layer, stage->end_layer);
        expect_int(c->text, replicas, stage->n_devices);
        for (uint32_t r = 0; r < replicas; r++)
            expect_int(c->text, s * replicas + r, got.plan.devices[stage->first_device + r]);
    }
    cs_plan_finish(&expected);
    cs_planned_finish(&got);
    cs_chain_finish(&chain);
    cs_model_finish(&model);
}

/* Finds the least bottleneck of the first `end` layers on `stages` stages by trying every start of
 * the last stage, and the first start that attains it (see plan.h). Stores no earlier results. */
static double slow_cut(const cs_balance *of, uint32_t stages, uint32_t end, uint32_t *start)
{
    double least = INFINITY;
    for (uint32_t first = stages - 1; first < (stages == 1 ? 1 : end); first++) {
        double time = 0;
        uint32_t ignored;
        for (uint32_t l = first; l < end; l++) {
            const cs_layer *layer = &of->model->layers[l];
            time += (double)(layer->forward + layer->backward_input + layer->backward_weight);
        }
        time /= of->speeds[stages - 1];
        if (first > 0 && of->communication)
            time = fmax(
                time, 2 * ((double)of->latency + (double)of->model->layers[first - 1].output_bytes *
                                                     (double)CS_PS_PER_SEC / of->bandwidth));
        if (stages > 1)
            time = fmax(time, slow_cut(of, stages - 1, first, &ignored));
        if (time < least) {
            least = time;
            *start = first;
        }
    }
    return least;
}

/* Ties of layers without time, boundaries that cost more than stages, slow devices that should hold
 * little: a longer prefix can be faster than a shorter one. */
static void test_cuts(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(6, "cuts");
    for (unsigned int trial = 0; trial < TRIALS; trial++) {
        static const double choice[] = {0.25, 0.5, 1, 2, 3};
        const instance c = draw(rng, trial);
        double speeds[MOST_LAYERS];
        cs_model model = model_of(&c);
        cs_balance balance = {.model = &model,
                              .speeds = speeds,
                              .communication = trial % 2,
                              .latency = (cs_time)gsl_rng_uniform_int(rng, 3000),
                              .bandwidth = (double)CS_PS_PER_SEC /
                                           (double)(1 + gsl_rng_uniform_int(rng, 4000))};
        for (uint32_t s = 0; s < MOST_LAYERS; s++)
            speeds[s] = trial % 3 ? choice[gsl_rng_uniform_int(rng, ROWS(choice))] : 1;
        for (uint32_t stages = 1; stages <= c.n_layers; stages++) {
            cs_plan got;
            balance.n_stages = stages;
            assert_int_equal(cs_plan_balanced(&balance, &got, NULL), CS_OK);
            for (uint32_t s = stages, end = c.n_layers; s > 0; s--) {
                uint32_t start = 0;
                (void)slow_cut(&balance, s, end, &start);
                expect_int(c.text, start, got.stages[s - 1].first_layer);
                end = start;
            }
            cs_plan_finish(&got);
        }
        cs_model_finish(&model);
    }
    gsl_rng_free(rng);
}

static void expect_no_plan(const instance *c, uint32_t stages)
{
    const balanced_params params = {false, stages};
    cs_planned got = {0};
    cs_chain chain = chain_of(c);
    assert_int_equal(cs_planner_balanced.plan(&chain, &params, &got, NULL), CS_INVALID);
    cs_chain_finish(&chain);
}

/* The planner cuts as the scenario's "balanced" does. */
static void test_balanced(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(6, "balanced");
    for (unsigned int trial = 0; trial < TRIALS; trial++) {
        instance c = draw(rng, trial);
        c.memory = INT64_MAX;
        if (c.n_devices <= c.n_layers)
            check_stages(&c, trial % 2, 0);
        for (uint32_t stages = 1; stages <= c.n_devices + 1; stages++) {
            if (c.n_devices % stages == 0 && stages <= c.n_layers)
                check_stages(&c, trial % 2, stages);
            else
                expect_no_plan(&c, stages);
        }
    }
    gsl_rng_free(rng);
}

/* The largest workspace of the layers is set aside once: 7 bytes here. */
static void test_workspace(void **state)
{
    static const struct {
        int64_t memory, left; /* 0: does not fit */
        bool ignore;
    } rows[] = {
        {20, 13, false}, {20, 20, true}, {6, 6, true}, {6, 0, false}, {INT64_MAX, INT64_MAX, false},
    };
    static const cs_layer any = {0};
    cs_model model;
    (void)state;
    assert_int_equal(cs_model_uniform(3, &any, &model, NULL), CS_OK);
    model.layers[0].workspace_bytes = 4;
    model.layers[1].workspace_bytes = 7;
    model.layers[2].workspace_bytes = 5;
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        cs_chain chain = {0};
        cs_chain_options options = {.model = &model,
                                    .n_devices = 2,
                                    .micro_samples = 1,
                                    .speed = 1,
                                    .memory = rows[r].memory,
                                    .bandwidth = 1,
                                    .ignore_workspace = rows[r].ignore};
        assert_int_equal(cs_chain_make(&options, &chain, NULL), rows[r].left ? CS_OK : CS_LIMIT);
        assert_int_equal(chain.memory, rows[r].left);
        cs_chain_finish(&chain);
    }
    cs_model_finish(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_partitions), cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_too_small),      cmocka_unit_test(test_planners),
        cmocka_unit_test(test_balanced),       cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
