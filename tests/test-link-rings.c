/* Rings over the links of GPUs: how many there are, on machines and by an exhaustive search. */
#include "tests/expect.h"
#include "tests/run-scenario.h"
#include "topologies/link-rings.h"
#include "topologies/noise.h"
#include "topologies/route.h"
#include "topologies/topology.h"

#include <math.h>

enum { MOST = CS_LINK_RANKS_MAX };

/* Every ring passes every rank once, over links that have room for all that take them. */
static void check_rings(const char *name, uint32_t n, const double *widths,
                        const cs_link_rings *rings)
{
    uint32_t taken[MOST][MOST] = {{0}};
    expect_int(name, n, rings->n_ranks);
    for (uint32_t c = 0; c < rings->n_cycles; c++) {
        const uint8_t *cycle = rings->cycles[c];
        bool passed[MOST] = {false};
        expect_int(name, 0, cycle[0]);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t from = cycle[i], to = cycle[(i + 1) % n];
            assert_true(from < n && !passed[from]);
            passed[from] = true;
            taken[from][to]++;
            taken[to][from]++;
        }
    }
    expect_int(name, 2 * rings->n_cycles, rings->n_rings);
    for (uint32_t i = 0; i < n * n; i++)
        if (taken[i / n][i % n] * rings->bandwidth > widths[i] * (1 + 1e-9))
            fail_msg("%s: %" PRIu32 " rings of %g from %" PRIu32 " to %" PRIu32 " over %g", name,
                     taken[i / n][i % n], rings->bandwidth, i / n, i % n, widths[i]);
}

static double total(const char *name, uint32_t n, const double *widths)
{
    cs_link_rings rings;
    const bool any = cs_link_rings_find(n, widths, &rings);
    assert_int_equal(any, rings.n_rings > 0);
    if (!any)
        return 0;
    check_rings(name, n, widths, &rings);
    return rings.n_rings * rings.bandwidth;
}

/* NVLinks between the GPUs of a DGX-1 with V100, as `nvidia-smi topo -m` has them. */
static const uint8_t dgx1[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                   {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                   {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                   {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

/* The first n GPUs of a DGX-1, in links of 25 GB/s. A ring and its reverse take two links of each
 * GPU, so at most half as many fit as a GPU has links to the others:
 *   2        one ring takes the link each way: no search is needed
 *   3        0 has two links: one ring both ways, 0 1 2
 *   4        0 has four links: 0 3 2 1 and 0 3 1 2, both ways
 *   5        all links of 4 go to 0: no ring
 *   6        every ring passes 4 between 0 and 5, and 4 has one link to 5: 0 4 5 1 2 3
 *   7        4 and 6 have four links each: 0 4 6 5 1 2 3 and 0 4 5 6 2 1 3
 *   8        all have six: 0 3 2 1 5 6 7 4 twice and 0 1 3 7 5 4 6 2
 * A P100 has one link to each neighbour, four in all: two rings both ways. */
static void test_dgx1(void **state)
{
    (void)state;
    static const uint32_t most[] = {0, 0, 0, 2, 4, 0, 2, 4, 6};
    for (uint32_t n = 2; n <= 8; n++) {
        double widths[64], halves[64];
        char name[32];
        snprintf(name, sizeof(name), "%" PRIu32 " of a DGX-1", n);
        for (uint32_t i = 0; i < n * n; i++) {
            widths[i] = 25e9 * dgx1[i / n][i % n];
            halves[i] = dgx1[i / n][i % n] > 0 ? 20e9 : 0;
        }
        expect_double(name, most[n] * 25e9, total(name, n, widths));
        if (n == 8)
            expect_double("P100", 4 * 20e9, total("P100", n, halves));
    }
}

/* With a link between each two of n ranks no rank has more than n - 1 of them, and that is what the
 * rings reach: where n is odd, (n - 1) / 2 of them take all links (Walecki); where it is even, n -
 * 1 of them take all halves of links. */
static void test_complete(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= MOST; n++) {
        double widths[MOST * MOST];
        char name[32];
        snprintf(name, sizeof(name), "%" PRIu32 " with all links", n);
        for (uint32_t i = 0; i < n * n; i++)
            widths[i] = i / n == i % n ? 0 : 64e9;
        expect_double(name, (n - 1) * 64e9, total(name, n, widths));
    }
}

/* ---- against all sets of rings ---- */

typedef struct slow {
    uint32_t n, n_cycles, room[MOST][MOST];
    uint8_t cycles[1024][8];
} slow;

static void list_cycles(slow *s, uint8_t *cycle, uint32_t length)
{
    if (length == s->n && cycle[1] < cycle[s->n - 1] && s->room[cycle[s->n - 1]][0] > 0)
        memcpy(s->cycles[s->n_cycles++], cycle, s->n);
    for (uint8_t to = 1; to < s->n && length < s->n; to++)
        if (!memchr(cycle, to, length) && s->room[cycle[length - 1]][to] > 0) {
            cycle[length] = to;
            list_cycles(s, cycle, length + 1);
        }
}

/* Takes the links of a ring, or gives them back; whether there was room. */
static bool change(slow *s, uint32_t cycle, int by)
{
    bool room = true;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint8_t a = s->cycles[cycle][i], b = s->cycles[cycle][(i + 1) % s->n];
        room &= (int)s->room[a][b] + by >= 0;
        s->room[a][b] += (uint32_t)by;
        s->room[b][a] = s->room[a][b];
    }
    return room;
}

static uint32_t most_with(slow *s, uint32_t from)
{
    uint32_t most = 0;
    for (uint32_t c = from; c < s->n_cycles; c++) {
        if (change(s, c, -1)) {
            const uint32_t with = 1 + most_with(s, c);
            most = with > most ? with : most;
        }
        (void)change(s, c, 1);
    }
    return most;
}

/* Sums the bandwidth u of each link and of its half, for the best of all sets of rings. */
static double slow_total(uint32_t n, const double *widths)
{
    double best = 0;
    for (uint32_t half = 0; half < 2 * n * n; half++) {
        const double u = widths[half / 2] / (1 + half % 2);
        slow s = {.n = n};
        uint8_t cycle[8] = {0};
        if (!(u > 0))
            continue;
        for (uint32_t i = 0; i < n * n; i++)
            s.room[i / n][i % n] = (uint32_t)(fmin(widths[i], widths[i % n * n + i / n]) / u);
        list_cycles(&s, cycle, 1);
        best = fmax(best, 2 * most_with(&s, 0) * u);
    }
    return best;
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % below;
}

/* 3 to 6 ranks with links of 0 to 3 shares, some wider one way than the other. */
static void test_exhaustively(void **state)
{
    (void)state;
    uint32_t seed = 7, with_rings = 0;
    for (uint32_t k = 0; k < cases_drawn(600); k++) {
        const uint32_t n = 3 + draw(&seed, 4);
        double widths[36];
        char name[32];
        snprintf(name, sizeof(name), "case %" PRIu32 ", %" PRIu32 " ranks", k, n);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j <= i; j++) {
                const uint32_t wide = i == j ? 0 : draw(&seed, n == 6 ? 3 : 4);
                widths[i * n + j] = 10e9 * wide;
                widths[j * n + i] = 10e9 * (wide + (wide > 0 && draw(&seed, 8) == 0));
            }
        const double found = total(name, n, widths);
        expect_double(name, slow_total(n, widths), found);
        with_rings += found > 0;
    }
    assert_true(with_rings > 50);
}

/* ---- what has none ---- */

static void test_none(void **state)
{
    (void)state;
    static const double two[] = {0, 1, 1, 0}, path[] = {0, 1, 0, 1, 0, 1, 0, 1, 0};
    static const double one_way[] = {0, 1, 0, 0, 0, 1, 1, 0, 0};
    static const double infinite[] = {0,        INFINITY, INFINITY, INFINITY, 0,
                                      INFINITY, INFINITY, INFINITY, 0};
    double many[17 * 17];
    cs_link_rings rings;
    for (uint32_t i = 0; i < 17 * 17; i++)
        many[i] = i / 17 == i % 17 ? 0 : 1;
    assert_false(cs_link_rings_find(2, two, &rings));
    assert_false(cs_link_rings_find(3, path, &rings));
    assert_false(cs_link_rings_find(3, one_way, &rings));
    assert_false(cs_link_rings_find(3, infinite, &rings));
    assert_false(cs_link_rings_find(17, many, &rings));
}

/* ---- on a platform ---- */

/* Links that have lost a part of their bandwidth have the rings that they had before; GPUs in two
 * nodes, or with a switch between them, have none; and the same links are searched once. */
static void test_platforms(void **state)
{
    (void)state;
    static const uint32_t devices[] = {8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint32_t square[] = {3, 2, 1, 0};
    cs_platform platform, noisy, crossbar;
    const cs_link_rings *rings, *again, *of_square, *disturbed;
    cs_link_memory *memory = cs_link_memory_create();
    const cs_noise noise = {.jitter = {.kind = CS_SPREAD_UNIFORM, .mean = 0.2, .probability = 1}};
    assert_non_null(memory);
    assert_int_equal(
        cs_topology_build_text("t", "{\"topology\":\"dgx1-v100\"}", 24, &platform, NULL), CS_OK);
    assert_int_equal(cs_topology_build_text("t", "{\"topology\":\"dgx-a100\"}", 8, &crossbar, NULL),
                     CS_OK);
    assert_int_equal(cs_noise_platform(&noise, &platform, 1, &noisy, NULL), CS_OK);
    assert_true(platform.linked_gpus && noisy.linked_gpus && !crossbar.linked_gpus);
    assert_int_equal(cs_link_memory_find(memory, &platform, devices, 8, &rings, NULL), CS_OK);
    assert_int_equal(cs_link_memory_find(memory, &platform, devices + 8, 1, &again, NULL), CS_OK);
    assert_null(again);
    assert_int_equal(cs_link_memory_find(memory, &platform, devices + 1, 8, &again, NULL), CS_OK);
    assert_null(again);
    assert_int_equal(cs_link_memory_find(memory, &platform, square, 4, &of_square, NULL), CS_OK);
    assert_int_equal(cs_link_memory_find(memory, &noisy, devices, 8, &disturbed, NULL), CS_OK);
    assert_int_equal(cs_link_memory_find(memory, &crossbar, square, 4, &again, NULL), CS_OK);
    assert_null(again);
    assert_non_null(rings);
    assert_ptr_equal(rings, disturbed);
    expect_int("rings of eight", 6, rings->n_rings);
    expect_double("bandwidth", 25e9, rings->bandwidth);
    expect_int("rings of four", 4, of_square->n_rings);
    cs_link_memory_destroy(memory);
    cs_platform_finish(&noisy);
    cs_platform_finish(&platform);
    cs_platform_finish(&crossbar);
}

/* Bandwidths that closed forms use for messages of rings: on a DGX-1 six rings of 25 GB/s over
 * eight GPUs, four over the first four; a pair has one ring over one link, and so have pairs in two
 * nodes, over a NIC of 12 GB/s. If not all groups have rings over links, as with five GPUs and
 * five, one ring is used: the links of GPU 4 lead to GPU 0, and on its way to it the message of 3
 * passes 0. */
static void test_hops(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_rings rings;
        double bandwidth;
    } rows[] = {
        {"eight", {.n = 16, .size = 8, .stride = 1, .over_links = true}, 150e9},
        {"eight, one ring", {.n = 16, .size = 8, .stride = 1}, 25e9},
        {"four", {.n = 4, .size = 4, .stride = 1, .over_links = true}, 100e9},
        {"pair", {.n = 2, .size = 2, .stride = 1, .over_links = true}, 25e9},
        {"nodes", {.n = 16, .size = 2, .stride = 8, .alone = true, .over_links = true}, 12e9},
        {"five", {.n = 5, .size = 5, .stride = 1, .over_links = true}, 25e9},
    };
    cs_platform platform;
    assert_int_equal(
        cs_topology_build_text("t", "{\"topology\":\"dgx1-v100\"}", 16, &platform, NULL), CS_OK);
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_ring_hop hop;
        assert_int_equal(cs_rings_slowest(&platform, &rows[i].rings, &hop, NULL), CS_OK);
        expect_double(rows[i].name, rows[i].bandwidth, hop.bandwidth);
    }
    cs_platform_finish(&platform);
}

/* Data parallelism, 10 ms of computing and 144 MB of gradients over a DGX-1 with 1 us:
 *   8 GPUs         14 steps of 18 MB at 150 GB/s and 1 us: 1.694 ms
 *   4              6 steps of 36 MB at 100 GB/s: 2.166 ms
 *   one ring       no form: its links have 25 and 50 GB/s
 *   a byte more    no form: shares are not equal, and what is sent over a wider link is ahead
 */
static void test_form(void **state)
{
    (void)state;
    static const struct {
        const char *name, *algorithm;
        uint32_t devices;
        int64_t weights;
        cs_time makespan; /* us, of a mini-batch; 0: no form holds */
    } rows[] = {
        {"eight", "usual", 8, 144000000, 11694},
        {"four", "ring_per_link", 4, 144000000, 12166},
        {"one ring", "ring", 4, 144000000, 0},
        {"a byte more", "usual", 8, 144000001, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        bool holds = false;
        cs_error_init(&error);
        expect_error(
            rows[i].name, CS_OK, "",
            scenario_run_init(&run, &error,
                              "{'schema_version': 1, 'iterations': 2, 'model': {'uniform': "
                              "{'layers': 1, 'forward': '4 ms', 'backward': '6 ms', 'weights': "
                              "%" PRId64 "}}, 'platform': {'topology': 'dgx1', 'latency': '1 us', "
                              "'devices': %" PRIu32 "}, 'collectives': {'algorithm': '%s'}, "
                              "'schedule': {'kind': 'dp', 'bucket': 0}}",
                              rows[i].weights, rows[i].devices, rows[i].algorithm),
            &error);
        const cs_simulation *simulation = &run.simulation;
        for (uint32_t f = 0; f < simulation->forms.n; f++) {
            const cs_form *form = &simulation->forms.forms[f];
            if (form->figure != CS_FIGURE_MAKESPAN || !form->applies)
                continue;
            holds = true;
            expect_int(rows[i].name, 2 * rows[i].makespan * INT64_C(1000000), (int64_t)form->exact);
        }
        assert_int_equal(holds, rows[i].makespan > 0);
        if (holds)
            expect_int(rows[i].name, 2 * rows[i].makespan * INT64_C(1000000),
                       simulation->trace.makespan);
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dgx1),         cmocka_unit_test(test_complete),
        cmocka_unit_test(test_exhaustively), cmocka_unit_test(test_none),
        cmocka_unit_test(test_platforms),    cmocka_unit_test(test_hops),
        cmocka_unit_test(test_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
