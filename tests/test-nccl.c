/* NCCL's choice of algorithm and protocol, and what it expects that to take: by hand from
 * src/graph/tuning.cc, and held against what nccl-tests and others measured. */
#include "sim/lower/nccl.h"
#include "tests/expect.h"

#include <math.h>

enum { KIB = 1024, MIB = 1024 * KIB, GIB = 1024 * MIB };

static void expect_us(const char *row, double expected, double got)
{
    if (!(fabs(got - expected) <= 1e-9 * expected))
        fail_msg("%s: expected %.9g us, got %.9g us", row, expected, got);
}

/* Eight GPUs of a node, a bus of 240 GB/s (12 NVLinks of 20 GB/s), unless a row says otherwise.
 *
 *   LL on a ring, all-reduce     6.6 + 14 x 0.6 = 15 us; 240 / 4 = 60 GB/s x 8 / 14
 *   LL on trees                  6.8 + 2 x 7 x 0.6 = 15.2 us; 0.92 x 240 / 3.8 / 2, times 0.6 at 64 KiB
 *   LL128 on a ring              14 + 14 x 1.9 = 40.6 us; 0.92 x 240 x 8 / 14
 *   Simple on a ring             8.4 + 14 x 3.4 = 56 us; 240 x 8 / 14
 *   all-gather, Simple           8.4 + 7 x 3.4 = 32.2 us; 240 x 8 / 7
 *   all-gather, LL               6.6 + 7 x 0.6 = 10.8 us; 240 / 3 = 80 GB/s x 8 / 7
 *   NVLS, a bus of 360           23 us; 360 x 5 / 6
 *   two nodes, Simple on a ring  8.4 + (30 - 4) x max(3.4, 3) + 4 x 14 = 152.8 us, times 1.4; 240 x 16 / 30
 *   two nodes, LL on trees       6.8 + 2 (7 x 0.6 + 5) = 25.2 us; min(0.92 x 240 / 3.8, 39) = 39, half of
 *                                it, at 4 KiB times 0.7
 */
static const struct {
    const char *row;
    cs_kind kind;
    uint32_t ranks, nodes;
    cs_nccl_generation generation;
    bool nvls;
    double bus; /* GB/s */
    int64_t bytes;
    cs_nccl_algorithm only, algorithm;
    cs_nccl_protocol protocol;
    double start, rate; /* us, GB/s */
} rows[] = {
    {"small", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, false, 240, 8 * KIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_LL, 15, 60 * 8 / 14.0},
    {"trees", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, false, 240, 64 * KIB, CS_NCCL_TREE, CS_NCCL_TREE,
     CS_NCCL_LL, 15.2, 0.92 * 240 / 3.8 / 2 * 0.6},
    {"medium", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, false, 240, 4 * MIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_LL128, 40.6, 0.92 * 240 * 8 / 14},
    {"large", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, false, 240, GIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 56, 240 * 8 / 14.0},
    {"gather", CS_ALL_GATHER, 8, 1, CS_NCCL_AMPERE, false, 240, GIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 32.2, 240 * 8 / 7.0},
    {"a small gather", CS_ALL_GATHER, 8, 1, CS_NCCL_AMPERE, false, 240, 64 * KIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_RING, CS_NCCL_LL, 10.8, 80 * 8 / 7.0},
    {"gathers have no trees", CS_ALL_GATHER, 8, 1, CS_NCCL_AMPERE, false, 240, GIB, CS_NCCL_TREE,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 32.2, 240 * 8 / 7.0},
    {"switches", CS_ALL_REDUCE, 8, 1, CS_NCCL_HOPPER, true, 360, GIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_NVLS, CS_NCCL_SIMPLE, 23, 300},
    {"a ring in spite of them", CS_ALL_REDUCE, 8, 1, CS_NCCL_HOPPER, true, 360, GIB, CS_NCCL_RING,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 56, 360 * 8 / 14.0},
    {"two nodes", CS_ALL_REDUCE, 16, 2, CS_NCCL_AMPERE, false, 240, GIB, CS_NCCL_RING, CS_NCCL_RING,
     CS_NCCL_SIMPLE, 152.8 * 1.4, 240 * 16 / 30.0},
    {"two nodes, small", CS_ALL_REDUCE, 16, 2, CS_NCCL_AMPERE, false, 240, 4 * KIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_TREE, CS_NCCL_LL, 25.2, 39.0 / 2 * 0.7},
};

static void picks_as_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_nccl_case of = {.kind = rows[i].kind,
                                 .ranks = rows[i].ranks,
                                 .nodes = rows[i].nodes,
                                 .generation = rows[i].generation,
                                 .nvlink = true,
                                 .nvls = rows[i].nvls,
                                 .bytes = rows[i].bytes,
                                 .bus = rows[i].bus * 1e9};
        const cs_nccl_choice got = cs_nccl_choose(&of, rows[i].only);
        expect_text(rows[i].row, cs_nccl_algorithm_names[rows[i].algorithm],
                    cs_nccl_algorithm_names[got.algorithm]);
        expect_text(rows[i].row, cs_nccl_protocol_names[rows[i].protocol],
                    cs_nccl_protocol_names[got.protocol]);
        expect_us(rows[i].row, rows[i].start + (double)rows[i].bytes / (rows[i].rate * 1e3),
                  got.seconds * 1e6);
    }
}

/* ---- logs ---- */

/* The errors stand in docs/reference/collectives.md. Bounds were set when these were known: they
 * notice a change, and say nothing of how right the prediction is. */

/* Bus bandwidths of an all-reduce on eight H200 of a node as measured, GB/s, 2 (n - 1) / n bytes /
 * time: stas00/ml-engineering at c53741b8, network/benchmarks/results/all-reduce-8xH200.md, with
 * NCCL 2.27.7, a ring of 367.61 GB/s without NVLS.
 *
 * NCCL expects what a kernel takes that has begun; 25 us are added for its start, as runtimes have
 * it (SimuMax's figure for DGX B200). Up to 2 MiB that is it; NVLS reaches its bandwidth later than
 * NCCL expects, and 0.75 of a ring's instead of 5/6. */
static const struct {
    const char *source;
    bool nvls;
    double bus; /* of a ring, GB/s */
    int64_t bytes;
    double measured, low, high; /* GB/s; between which errors the prediction is */
} logs[] = {
    {"H200", true, 367.61, 32 * KIB, 1.44, -0.05, 0.05},
    {"H200", true, 367.61, 256 * KIB, 11.74, -0.15, 0},
    {"H200", true, 367.61, MIB, 39.93, -0.15, 0},
    {"H200", true, 367.61, 2 * (int64_t)MIB, 64.53, 0, 0.05},
    {"H200", true, 367.61, 32 * (int64_t)MIB, 275.84, 0, 0.4},
    {"H200", true, 367.61, 128 * (int64_t)MIB, 401.93, 0, 0.25},
    {"H200", true, 367.61, 512 * (int64_t)MIB, 450.29, 0, 0.2},
    {"H200", true, 367.61, 16 * (int64_t)GIB, 482.26, 0, 0.12},
    {"H200 without NVLS", false, 367.61, 16 * (int64_t)GIB, 367.61, -0.01, 0.01},
};

static void predicts_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(logs); i++) {
        const double n = 8, start = 25e-6;
        const cs_nccl_case of = {.kind = CS_ALL_REDUCE,
                                 .ranks = 8,
                                 .nodes = 1,
                                 .generation = CS_NCCL_HOPPER,
                                 .nvlink = true,
                                 .nvls = logs[i].nvls,
                                 .bytes = logs[i].bytes,
                                 .bus = logs[i].bus * 1e9};
        const cs_nccl_choice got = cs_nccl_choose(&of, CS_NCCL_ALGORITHMS);
        const double bus = 2 * (n - 1) / n * (double)logs[i].bytes / (start + got.seconds) / 1e9;
        const double error = bus / logs[i].measured - 1;
        printf("%-18s %9.0f KiB  %s %-6s  %6.2f GB/s, measured %6.2f, %+5.1f %%\n", logs[i].source,
               (double)logs[i].bytes / KIB, cs_nccl_algorithm_names[got.algorithm],
               cs_nccl_protocol_names[got.protocol], bus, logs[i].measured, 100 * error);
        if (error < logs[i].low || error > logs[i].high)
            fail_msg("%s: %g GB/s, measured %g GB/s", logs[i].source, bus, logs[i].measured);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_as_by_hand),
        cmocka_unit_test(predicts_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
