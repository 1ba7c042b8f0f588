/* PipeDream's replicated stages: all plans of random chains, on one level and on two; the prefixes
 * of random graphs against all sets of nodes; measured profiles. */
#include "schedules/plan/replication.h"
#include "sim/base/random.h"
#include "sim/model/foreign/pipedream-prefixes.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_LAYERS = 6, MOST_DEVICES = 5, TRIALS = 300 };

/* ---- all plans ---- */

typedef struct instance {
    uint32_t n_layers, n_levels;
    cs_prefix prefixes[MOST_LAYERS];
    cs_replication_level levels[2];
    bool shares;
    cs_time shared[MOST_DEVICES][MOST_LAYERS + 1]; /* [q - 1]: sums over layers; where has_share */
    bool has_share[MOST_DEVICES];
    char text[100];
} instance;

/* Times of shares, unrelated to the times of the whole; some shares do not exist. */
static void draw_shares(gsl_rng *rng, instance *c)
{
    c->shares = true;
    for (uint32_t q = 1; q <= c->levels[0].n; q++) {
        c->has_share[q - 1] = q == 1 || gsl_rng_uniform_int(rng, 3) > 0;
        for (uint32_t l = 0; l < c->n_layers; l++)
            c->shared[q - 1][l + 1] =
                c->shared[q - 1][l] + (cs_time)gsl_rng_uniform_int(rng, 50) * 1000000 / q;
    }
}

static instance draw(gsl_rng *rng, unsigned int trial)
{
    instance c = {.n_layers = 1 + (uint32_t)gsl_rng_uniform_int(rng, MOST_LAYERS),
                  .n_levels = 1 + trial % 2};
    cs_prefix sum = {0};
    for (uint32_t l = 0; l < c.n_layers; l++) {
        sum.time += (cs_time)gsl_rng_uniform_int(rng, 50) * 1000000;
        sum.weight_bytes += (int64_t)gsl_rng_uniform_int(rng, 40);
        sum.activation_bytes += sum.crossing_bytes = (int64_t)gsl_rng_uniform_int(rng, 40);
        c.prefixes[l] = sum;
    }
    for (uint32_t level = 0; level < c.n_levels; level++) {
        c.levels[level].n = 1 + (uint32_t)gsl_rng_uniform_int(rng, c.n_levels == 1 ? 5 : 3);
        c.levels[level].bandwidth = 1e6 * (double)(1 + gsl_rng_uniform_int(rng, 3));
    }
    if (trial % 4 == 2)
        draw_shares(rng, &c);
    snprintf(c.text, sizeof(c.text), "trial %u: %u layers, levels of %u and %u", trial, c.n_layers,
             c.levels[0].n, c.levels[1].n);
    return c;
}

static double best_within(const instance *c, uint32_t level, uint32_t a, uint32_t b);

/* A stage of layers [a, b), as the header has it; in ps. */
static double stage_of(const instance *c, uint32_t level, uint32_t a, uint32_t b, uint32_t q,
                       bool first)
{
    double bandwidth = c->levels[level].bandwidth / 1e12; /* bytes per ps */
    cs_prefix before = a > 0 ? c->prefixes[a - 1] : (cs_prefix){0}, to = c->prefixes[b - 1];
    double time = level > 0 ? best_within(c, level - 1, a, b) : (double)(to.time - before.time);
    double reduce = 4.0 * (q - 1) * (double)(to.weight_bytes - before.weight_bytes) /
                    (bandwidth * q * (first && level > 0 ? c->levels[level - 1].n : 1));
    double most = (time + reduce) / q;
    if (c->shares)
        most = c->has_share[q - 1]
                   ? (double)(c->shared[q - 1][b] - c->shared[q - 1][a]) + reduce / q
                   : INFINITY;
    if (!first)
        most = fmax(most, 2 * (double)before.crossing_bytes / (bandwidth * q));
    if (!first && b < c->n_layers)
        most = fmax(most, 2 * (double)to.crossing_bytes / (bandwidth * q));
    return most;
}

/* Every way to cut [a, b) and to give `left` devices to the stages; the first stage is the
 * network's or the machine's. */
static double best_from(const instance *c, uint32_t level, uint32_t a, uint32_t b, uint32_t left,
                        bool first)
{
    double best = INFINITY;
    for (uint32_t end = a + 1; end <= b; end++) {
        for (uint32_t q = 1; q <= left; q++) {
            double rest = end == b ? (q == left ? 0 : INFINITY)
                                   : best_from(c, level, end, b, left - q, false);
            best = fmin(best, fmax(stage_of(c, level, a, end, q, first), rest));
        }
    }
    return best;
}

static double best_within(const instance *c, uint32_t level, uint32_t a, uint32_t b)
{
    return best_from(c, level, a, b, c->levels[level].n, true);
}

/* Whole, in order, and every device once. */
static void check_shape(const instance *c, const cs_plan *plan)
{
    uint32_t n_devices = c->levels[0].n * (c->n_levels > 1 ? c->levels[1].n : 1), at = 0;
    bool held[64] = {false};
    expect_int(c->text, n_devices, plan->n_devices);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        expect_int(c->text, at, plan->stages[s].first_layer);
        at = plan->stages[s].end_layer;
    }
    expect_int(c->text, c->n_layers, at);
    for (uint32_t d = 0; d < n_devices; d++) {
        assert_true(plan->devices[d] < n_devices && !held[plan->devices[d]]);
        held[plan->devices[d]] = true;
    }
}

/* Value of a plan on one level, given by its stages. */
static double value_of(const instance *c, const cs_plan *plan)
{
    double most = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *at = &plan->stages[s];
        most = fmax(most, stage_of(c, 0, at->first_layer, at->end_layer, at->n_devices, s == 0));
    }
    return most;
}

/* A double of 10^8 ps is good to 10^-7 ps, so the nearest picosecond is off by one at most, where
 * two are about as near. */
static void expect_near(const char *row, double expected, cs_time got)
{
    if (!(fabs(expected - (double)got) <= 0.51))
        fail_msg("%s: expected %.3f ps, got %" PRId64, row, expected, got);
}

static void test_all_plans(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(6, "replicas");
    uint32_t n_replicated = 0, n_cut = 0, n_shared = 0;
    for (unsigned int trial = 0; trial < TRIALS; trial++) {
        instance c = draw(rng, trial);
        cs_prefixes prefixes = {.n = c.n_layers, .all = c.prefixes};
        cs_replication replication = {&prefixes, c.levels, c.n_levels, INT64_MAX};
        const cs_time *shared[MOST_DEVICES];
        for (uint32_t q = 0; q < MOST_DEVICES; q++)
            shared[q] = c.has_share[q] ? c.shared[q] : NULL;
        replication.shared = c.shares ? shared : NULL;
        double expected = best_within(&c, c.n_levels - 1, 0, c.n_layers);
        cs_plan plan;
        cs_time period;
        cs_status status = cs_replication_plan(&replication, &plan, &period, NULL);
        expect_int(c.text, isinf(expected) ? CS_LIMIT : CS_OK, status);
        if (status != CS_OK)
            continue;
        n_shared += c.shares && plan.n_devices > plan.n_stages;
        expect_near(c.text, expected, period);
        check_shape(&c, &plan);
        if (c.n_levels == 1)
            expect_near(c.text, value_of(&c, &plan), period);
        n_cut += plan.n_stages > 1;
        n_replicated += plan.n_stages > 1 && plan.n_devices > plan.n_stages;
        cs_plan_finish(&plan);
    }
    assert_in_range(n_cut, TRIALS / 5, TRIALS);
    assert_in_range(n_replicated, TRIALS / 10, TRIALS);
    assert_in_range(n_shared, TRIALS / 10, TRIALS);
    gsl_rng_free(rng);
}

/* Two layers of 8 us, 2 bytes between them and 1 byte of weights in the second, on two machines of
 * two devices, 1 MB/s within and between them. Within a machine replicas take (16 + 4 * 1/2) / 2 =
 * 9 us and a cut 8, its messages only 2 * 2 = 4; so a machine takes 8. Two replicas of machines
 * take
 * (8 + 4 * 1/2 / 2) / 2 = 4.5, the all-reduce being divided by the machine's devices; a cut between
 * machines (8 + 2) / 2 = 5 for the second layer alone. So: two replicas of two stages, the first
 * layer on devices 0 and 2. */
static void test_two_levels(void **state)
{
    (void)state;
    cs_prefix all[] = {{8000000, 0, 2, 2}, {16000000, 1, 4, 2}};
    cs_prefixes prefixes = {.n = 2, .all = all};
    cs_replication_level levels[] = {{2, 1e6}, {2, 1e6}};
    cs_replication replication = {&prefixes, levels, 2, INT64_MAX};
    static const uint32_t devices[] = {0, 2, 1, 3};
    cs_plan plan;
    cs_time period;
    assert_int_equal(cs_replication_plan(&replication, &plan, &period, NULL), CS_OK);
    expect_int("period", 4500000, period);
    expect_int("stages", 2, plan.n_stages);
    for (uint32_t s = 0; s < 2; s++) {
        expect_int("first layer", s, plan.stages[s].first_layer);
        expect_int("replicas", 2, plan.stages[s].n_devices);
    }
    for (uint32_t d = 0; d < 4; d++)
        expect_int("device", devices[d], plan.devices[d]);
    cs_plan_finish(&plan);
}

/* Two layers of 10 us that make 3 bytes, the first with 1 kB of weights, on 2 devices at 1 GB/s:
 * two stages take 10 us, two replicas (20 + 4 * 1/2) / 2 = 11. Of the two stages the first must
 * hold
 * (2 - 1) / 1 copies of 1003 bytes; two replicas are not tested. */
static void test_memory(void **state)
{
    (void)state;
    cs_prefix all[] = {{10000000, 1000, 3, 3}, {20000000, 1000, 6, 3}};
    cs_prefixes prefixes = {.n = 2, .all = all};
    cs_replication_level level = {2, 1e9};
    const struct {
        int64_t memory;
        uint32_t n_stages;
        cs_time period;
    } rows[] = {{INT64_MAX, 2, 10000000}, {1003, 2, 10000000}, {1002, 1, 11000000}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_replication replication = {&prefixes, &level, 1, rows[i].memory};
        cs_plan plan;
        cs_time period;
        assert_int_equal(cs_replication_plan(&replication, &plan, &period, NULL), CS_OK);
        expect_int("stages", rows[i].n_stages, plan.n_stages);
        expect_int("period", rows[i].period, period);
        cs_plan_finish(&plan);
    }
}

static void test_too_long(void **state)
{
    (void)state;
    cs_prefix all[1] = {{0}};
    cs_prefixes prefixes = {.n = 1, .all = all};
    cs_replication_level level = {1 << 20, 1e9};
    cs_replication replication = {&prefixes, &level, 1, INT64_MAX};
    cs_plan plan;
    cs_time period;
    cs_error error;
    cs_error_init(&error);
    expect_error("2^20 devices", CS_LIMIT,
                 "cutting 1 layers for 1048576 devices with replicas takes too long",
                 cs_replication_plan(&replication, &plan, &period, &error), &error);
}

/* ---- prefixes ---- */

enum { MOST_NODES = 10, TEXT_BYTES = 4096 };

/* Node i takes 2^i ns, so that a prefix's time is its set of nodes; it makes 1 byte. */
static void write_graph(uint32_t n, bool edge[MOST_NODES][MOST_NODES], char *text)
{
    size_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        end += (size_t)snprintf(text + end, TEXT_BYTES - end,
                                "n%u -- Work -- forward_compute_time=%ue-6, "
                                "backward_compute_time=0, activation_size=1, parameter_size=2\n",
                                i, 1u << i);
        for (uint32_t k = 0; k < i; k++) {
            if (edge[k][i])
                end += (size_t)snprintf(text + end, TEXT_BYTES - end, "\tn%u -- n%u\n", k, i);
        }
    }
}

/* Nodes of the set that a node outside reads, or that none reads. */
static uint32_t crossing_of(uint32_t set, uint32_t n, bool edge[MOST_NODES][MOST_NODES])
{
    uint32_t crossing = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool read = false, out = false;
        for (uint32_t k = 0; k < n; k++) {
            read |= edge[i][k];
            out |= edge[i][k] && !(set >> k & 1);
        }
        crossing += (set >> i & 1) && (out || !read);
    }
    return crossing;
}

static bool is_prefix(uint32_t set, uint32_t n, bool edge[MOST_NODES][MOST_NODES])
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (edge[i][k] && (set >> k & 1) && !(set >> i & 1))
                return false;
        }
    }
    return set != 0;
}

/* All sets of nodes: those that are prefixes are found, once each, in an order that keeps them. */
static void check_prefixes(const char *text, uint32_t n, bool edge[MOST_NODES][MOST_NODES])
{
    cs_prefixes got;
    uint32_t n_found = 0;
    cs_error error;
    cs_error_init(&error);
    if (cs_pipedream_prefixes_parse("g", text, strlen(text), &got, &error) != CS_OK)
        fail_msg("%s\n%s", error.text, text);
    for (uint32_t set = 1; set < 1u << n; set++)
        n_found += is_prefix(set, n, edge);
    expect_int(text, n_found, got.n);
    for (uint32_t i = 0; i < got.n; i++) {
        uint32_t set = (uint32_t)(got.all[i].time / 1000);
        assert_true(is_prefix(set, n, edge));
        expect_int(text, __builtin_popcount(set), got.all[i].activation_bytes);
        expect_int(text, 2 * __builtin_popcount(set), got.all[i].weight_bytes);
        expect_int(text, crossing_of(set, n, edge), got.all[i].crossing_bytes);
        for (uint32_t k = 0; k < got.n; k++) {
            uint32_t other = (uint32_t)(got.all[k].time / 1000);
            bool within = k != i && (other & set) == other;
            assert_true(within == cs_prefixes_within(&got, k, i));
            assert_true(k == i || other != set);
        }
    }
    cs_prefixes_finish(&got);
}

static void test_prefixes(void **state)
{
    (void)state;
    gsl_rng *rng = cs_random_stream(6, "prefixes");
    char text[TEXT_BYTES];
    for (int trial = 0; trial < TRIALS; trial++) {
        bool edge[MOST_NODES][MOST_NODES] = {{false}};
        uint32_t n = 1 + (uint32_t)gsl_rng_uniform_int(rng, 8);
        uint32_t odds = 1 + (uint32_t)gsl_rng_uniform_int(rng, 5);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = i + 1; k < n; k++)
                edge[i][k] = gsl_rng_uniform_int(rng, 5) < odds;
        }
        write_graph(n, edge, text);
        check_prefixes(text, n, edge);
    }
    gsl_rng_free(rng);
}

/* 14 nodes without inputs and one that reads them all have 2^14 prefixes, excluding the empty one,
 * plus the whole. */
static void test_too_many(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    size_t end = 0;
    for (uint32_t i = 0; i < 15; i++)
        end += (size_t)snprintf(text + end, sizeof(text) - end,
                                "n%u -- W -- forward_compute_time=1, backward_compute_time=0, "
                                "activation_size=1, parameter_size=0\n",
                                i);
    for (uint32_t i = 0; i < 14; i++)
        end += (size_t)snprintf(text + end, sizeof(text) - end, "\tn%u -- n14\n", i);
    cs_prefixes prefixes;
    cs_error error;
    cs_error_init(&error);
    expect_error("a wide graph", CS_LIMIT,
                 "g: the network can be cut in more than 8192 ways: too many branches, or nodes",
                 cs_pipedream_prefixes_parse("g", text, end, &prefixes, &error), &error);
}

/* ---- measured profiles ---- */

/* Output of the published optimizer for 4 devices at 10^9 bytes/s, one level, with messages counted
 * (its option for compressed activations at 1); the number of prefixes is the end of its last
 * stage. */
static const struct {
    const char *name;
    uint32_t n, cut, replicas[2];
    cs_time period;
} published[] = {
    {"vgg16", 40, 17, {3, 1}, INT64_C(205520896000)},
    {"resnet50", 240, 142, {2, 2}, INT64_C(162880924000)},
};

static void check_published(size_t i, const cs_prefixes *prefixes)
{
    cs_replication_level level = {4, 1e9};
    cs_replication replication = {prefixes, &level, 1, INT64_MAX};
    cs_plan plan;
    cs_time period;
    const char *row = published[i].name;
    expect_int(row, published[i].n, prefixes->n);
    assert_int_equal(cs_replication_plan(&replication, &plan, &period, NULL), CS_OK);
    expect_int(row, published[i].period, period);
    expect_int(row, 2, plan.n_stages);
    expect_int(row, 0, plan.stages[0].first_layer);
    expect_int(row, published[i].cut, plan.stages[0].end_layer);
    expect_int(row, published[i].cut, plan.stages[1].first_layer);
    expect_int(row, published[i].n, plan.stages[1].end_layer);
    for (uint32_t s = 0; s < 2; s++)
        expect_int(row, published[i].replicas[s], plan.stages[s].n_devices);
    cs_plan_finish(&plan);
}

static void test_published(void **state)
{
    (void)state;
    const char *folder = CS_SOURCE_ROOT "/../shared/profiles/pipedream";
    if (access(folder, R_OK) != 0) {
        print_message("  skipped: no measured profiles in %s\n", folder);
        skip();
    }
    for (size_t i = 0; i < ROWS(published); i++) {
        char path[256];
        cs_prefixes prefixes;
        cs_error error;
        cs_error_init(&error);
        snprintf(path, sizeof(path), "%s/%s/graph.txt", folder, published[i].name);
        if (cs_pipedream_prefixes_load(path, &prefixes, &error) != CS_OK)
            fail_msg("%s", error.text);
        check_published(i, &prefixes);
        cs_prefixes_finish(&prefixes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_plans), cmocka_unit_test(test_two_levels),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_prefixes),  cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
