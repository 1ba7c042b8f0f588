/* Rings over the links of GPUs: how many there are, on machines and against an exhaustive search. */
#include "sim/lower/link-rings.h"
#include "tests/expect.h"
#include "topologies/noise.h"
#include "topologies/topology.h"

#include <math.h>

enum { MOST = CS_LINK_RANKS_MAX };

/* Every ring passes every rank once, over links that have room for all that take them. */
static void check_rings(const char *name, uint32_t n, const double *widths,
                        const cs_link_rings *rings)
{
    uint32_t taken[MOST][MOST] = {{0}}, shares = 0;
    expect_int(name, n, rings->n_ranks);
    for (uint32_t c = 0; c < rings->n_cycles; c++) {
        const cs_link_cycle *cycle = &rings->cycles[c];
        bool passed[MOST] = {false};
        expect_int(name, 0, cycle->ranks[0]);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t from = cycle->ranks[i], to = cycle->ranks[(i + 1) % n];
            assert_true(from < n && !passed[from]);
            passed[from] = true;
            taken[from][to] += cycle->times;
            taken[to][from] += cycle->times;
        }
        shares += 2 * cycle->times;
    }
    expect_int(name, shares, rings->n_rings);
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

/* The first n GPUs of a DGX-1, in links of 25 GB/s. A ring and the same backwards take two links of
 * each GPU, so no more fit than half of the links that a GPU has to the others:
 *   2        one ring takes the link each way: there is nothing to search for
 *   3        0 has two links: one ring both ways, 0 1 2
 *   4        0 has four links: 0 3 2 1 and 0 3 1 2, both ways
 *   5        all links of 4 go to 0: no ring
 *   6        every ring passes 4 between 0 and 5, to which it has one link: 0 4 5 1 2 3
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
 * rings reach: where n is odd, (n - 1) / 2 of them take all links (Walecki); where it is even, n - 1
 * of them take all halves of links. */
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

/* Of the bandwidth u of each link and of its half, with the most of all sets of rings. */
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
    assert_int_equal(cs_topology_preset("t", "{\"topology\":\"dgx1-v100\"}", 24, &platform, NULL),
                     CS_OK);
    assert_int_equal(cs_topology_preset("t", "{\"topology\":\"dgx-a100\"}", 8, &crossbar, NULL),
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dgx1), cmocka_unit_test(test_complete),
                                       cmocka_unit_test(test_exhaustively),
                                       cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_platforms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
