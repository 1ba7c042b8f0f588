/* Shares of links: hand-derived rates, and the certificate of max-min fairness at every instant. */
#include "sim/base/random.h"
#include "sim/core/engine/network.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"
#include "topologies/topology.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_FLOWS = 512, MOST_ROUTE = 64 };

/* A network that is driven by hand: the flows' announced ends are kept here. */
typedef struct scene {
    cs_platform platform;
    cs_graph graph;
    cs_network *network;
    uint32_t n_flows; /* class and task i are flow i, which has the number flow_of[i] */
    cs_time end[MOST_FLOWS];
    uint32_t flow_of[MOST_FLOWS];
    bool active[MOST_FLOWS];
} scene;

/* Flows and tasks have numbers of their own here: the slot is the task. */
static bool announce(void *context, uint32_t flow, uint32_t task, cs_time time, uint32_t *slot)
{
    scene *s = context;
    assert_true(*slot == CS_NONE || (*slot == task && s->flow_of[task] == flow));
    *slot = task;
    s->end[task] = time;
    s->flow_of[task] = flow;
    return true;
}

static void check(cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s", cs_status_name(status), error->text);
}

static void open_scene(scene *s, const char *platform, uint32_t n_devices, cs_sharing sharing,
                       const cs_class *flows, uint32_t n_flows)
{
    cs_error error;
    cs_error_init(&error);
    *s = (scene){.n_flows = n_flows};
    check(cs_topology_build_text("test", platform, n_devices, &s->platform, &error), &error);
    s->platform.sharing = sharing;
    s->platform.independent_messages = true; /* shares of arbitrary sets of flows */
    cs_builder *builder = cs_builder_create(n_devices, 1, 1, 1);
    for (uint32_t i = 0; i < n_flows; i++)
        cs_builder_task(
            builder,
            cs_builder_transfer(builder, 0, flows[i].device, flows[i].peer, flows[i].bytes, false),
            0);
    check(cs_builder_finish(builder, &s->graph, &error), &error);
    cs_builder_destroy(builder);
    cs_delivery deliveries[MOST_FLOWS];
    const cs_network_load load = {.graph = &s->graph, .every_event = true};
    check(cs_network_create(&load, &s->platform, announce, s, deliveries, &s->network, &error),
          &error);
    for (uint32_t i = 0; i < n_flows; i++) {
        s->active[i] = deliveries[i].competes;
        if (s->active[i])
            assert_int_equal(cs_network_join(s->network, i, i, 0), CS_OK);
    }
    assert_int_equal(cs_network_settle(s->network, 0), CS_OK);
}

static void close_scene(scene *s)
{
    cs_network_destroy(s->network);
    cs_graph_finish(&s->graph);
    cs_platform_finish(&s->platform);
}

static double rate(const scene *s, uint32_t i)
{
    return cs_network_rate(s->network, s->flow_of[i]);
}

/* Goes to the next end; false when there is none. */
static bool step(scene *s)
{
    cs_time now = CS_TIME_MAX;
    for (uint32_t i = 0; i < s->n_flows; i++)
        if (s->active[i] && s->end[i] < now)
            now = s->end[i];
    for (uint32_t i = 0; i < s->n_flows; i++) {
        if (!s->active[i] || s->end[i] != now)
            continue;
        bool ended;
        assert_int_equal(cs_network_end(s->network, s->flow_of[i], now, &ended), CS_OK);
        assert_true(ended);
        s->active[i] = false;
    }
    if (now == CS_TIME_MAX)
        return false;
    assert_int_equal(cs_network_settle(s->network, now), CS_OK);
    return true;
}

/* ---- by hand ---- */

#define FLOW(from, to, size)                                                                       \
    {                                                                                              \
        .device = (from), .peer = (to), .bytes = (size)                                            \
    }
/* Hosts 0 to 3 on leaf 0, 4 to 7 on leaf 1; 12 bytes/s per host link and one uplink of 12. */
#define ONE_UPLINK "{\"topology\":\"fat_tree\",\"down\":[4,2],\"up\":[1],\"bandwidth\":12}"
/* Three links one after the other, 0 -> 1 -> 2 -> 3, the middle one as wide as the others. */
#define LINE "{\"topology\":\"torus\",\"shape\":[8],\"bandwidth\":12}"

typedef struct rates_row {
    const char *name, *platform;
    uint32_t n_flows;
    cs_class flows[4];
    double max_min[4], count[4];
} rates_row;

static const rates_row rate_rows[] = {
    /* one bottleneck each: three share the uplink, 12 / 3; the fourth stays on its leaf, alone */
    {"one bottleneck",
     ONE_UPLINK,
     4,
     {FLOW(0, 4, 100), FLOW(1, 5, 100), FLOW(2, 6, 100), FLOW(3, 2, 100)},
     {4, 4, 4, 12},
     {4, 4, 4, 12}},
    /* Link a = 0 -> 1 has x and y, link b = 1 -> 2 has x, z and w. Filling all alike: b is full at
     * 12 / 3 = 4, so x = z = w = 4; a has 12 - 4 = 8 left for y. Counting does not see that x
     * leaves room: y = 12 / 2 = 6. */
    {"room that others leave",
     LINE,
     4,
     {FLOW(0, 2, 100), FLOW(0, 1, 100), FLOW(1, 2, 100), FLOW(1, 2, 100)},
     {4, 8, 4, 4},
     {4, 6, 4, 4}},
    /* A long flow and a short one on each of its links: all get half (the "parking lot" with one
     * car per exit). */
    {"parking lot",
     LINE,
     4,
     {FLOW(0, 3, 100), FLOW(0, 1, 100), FLOW(1, 2, 100), FLOW(2, 3, 100)},
     {6, 6, 6, 6},
     {6, 6, 6, 6}},
    /* Two long ones and two short ones on one link: that link gives 3 to each of its four, the long
     * ones leave 12 - 6 = 6 elsewhere to nobody. */
    {"two and two",
     LINE,
     4,
     {FLOW(0, 3, 100), FLOW(0, 3, 100), FLOW(1, 2, 100), FLOW(1, 2, 100)},
     {3, 3, 3, 3},
     {3, 3, 3, 3}},
};

static void test_rates(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rate_rows); i++) {
        const rates_row *row = &rate_rows[i];
        for (uint32_t counting = 0; counting < 2; counting++) {
            scene s;
            open_scene(&s, row->platform, 8, counting ? CS_SHARING_COUNT : CS_SHARING_MAX_MIN,
                       row->flows, row->n_flows);
            for (uint32_t f = 0; f < row->n_flows; f++)
                expect_double(row->name, (counting ? row->count : row->max_min)[f], rate(&s, f));
            close_scene(&s);
        }
    }
}

/* ---- the certificate ---- */

static void expect_certificate(const scene *s, const char *name, uint64_t seed)
{
    static double load[1 << 14], largest[1 << 14];
    uint32_t links[MOST_ROUTE];
    const double slack = 1e-9;
    assert_true(s->platform.n_links <= 1 << 14);
    for (uint32_t l = 0; l < s->platform.n_links; l++)
        load[l] = largest[l] = 0;
    for (uint32_t i = 0; i < s->n_flows; i++) {
        const cs_class *cls = &s->graph.classes[i];
        const uint32_t n = s->platform.route(&s->platform, cls->device, cls->peer, links);
        for (uint32_t k = 0; k < n && s->active[i]; k++) {
            load[links[k]] += rate(s, i);
            largest[links[k]] = fmax(largest[links[k]], rate(s, i));
        }
    }
    for (uint32_t l = 0; l < s->platform.n_links; l++)
        if (load[l] > s->platform.links[l].bandwidth * (1 + slack))
            fail_msg("%s, seed %" PRIu64 ": link \"%s\" carries %.17g", name, seed,
                     s->platform.links[l].name, load[l]);
    for (uint32_t i = 0; i < s->n_flows; i++) {
        const cs_class *cls = &s->graph.classes[i];
        const uint32_t n = s->platform.route(&s->platform, cls->device, cls->peer, links);
        bool bottleneck = !s->active[i];
        for (uint32_t k = 0; k < n; k++)
            bottleneck |= load[links[k]] >= s->platform.links[links[k]].bandwidth * (1 - slack) &&
                          rate(s, i) >= largest[links[k]] * (1 - slack);
        if (!bottleneck)
            fail_msg("%s, seed %" PRIu64 ": flow %" PRIu32 " at %.17g is held up by no link", name,
                     seed, i, rate(s, i));
    }
}

/* Each flow is among the fastest of a link that is full: that holds for max-min shares alone
 * (Bertsekas and Gallager, 6.5.2). Looked at after every change of random flows. */
static void test_certificates(void **state)
{
    (void)state;
    static const struct {
        const char *platform;
        uint32_t n_devices;
    } platforms[] = {
        {"{\"topology\":\"fat_tree\",\"levels\":3,\"radix\":8,\"oversubscription\":[3,1],"
         "\"bandwidth\":1e9}",
         64},
        {"{\"topology\":\"abci\"}", 48},
        {"{\"topology\":\"torus\",\"shape\":[4,4,2],\"bandwidth\":3e9}", 32},
        {"{\"topology\":\"dragonfly\",\"routers\":4,\"hosts\":2,\"global_links\":2,"
         "\"bandwidth\":1e10,\"global_bandwidth\":7e9}",
         64},
        {"{\"topology\":\"dgx1-v100\"}", 32},
    };
    for (uint64_t seed = 0; seed < 10 * ROWS(platforms); seed++) {
        const size_t p = seed % ROWS(platforms);
        const uint32_t n = platforms[p].n_devices, n_flows = 16u << seed % 4;
        gsl_rng *random = cs_random_stream(seed, "certificate");
        cs_class flows[MOST_FLOWS];
        for (uint32_t i = 0; i < n_flows; i++) {
            const uint32_t from = (uint32_t)gsl_rng_uniform_int(random, n);
            flows[i] = (cs_class)FLOW(from, (uint32_t)gsl_rng_uniform_int(random, n),
                                      1 + (int64_t)gsl_rng_uniform_int(random, 1000000));
        }
        gsl_rng_free(random);
        static scene s;
        open_scene(&s, platforms[p].platform, n, CS_SHARING_MAX_MIN, flows, n_flows);
        do
            expect_certificate(&s, platforms[p].platform, seed);
        while (step(&s));
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_certificates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
