/* NCCL's choice of algorithm and protocol, and what it expects that to take: by hand from
 * src/graph/tuning.cc, and held against what nccl-tests and others measured. */
#include "sim/core/lower/nccl.h"
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
 *   LL on a ring, all-reduce     6.6 + 14 x 0.6 = 15 us; min(240 / 2, 87.7) x 8 / 14
 *   LL on trees                  6.8 + 2 x 7 x 0.6 = 15.2 us; 0.92 x 240 / 3.8 / 2, times 0.6 at
 *                                64 KiB
 *   LL128 on a ring              14 + 14 x 1.9 = 40.6 us; 0.92 x 240 x 8 / 14
 *   Simple on a ring             8.4 + 14 x 3.4 = 56 us; 240 x 8 / 14
 *   all-gather, Simple           8.4 + 7 x 3.4 = 32.2 us; 240 x 8 / 7
 *   all-gather, LL               6.6 + 7 x 0.6 = 10.8 us; 87.7 x 8 / 7
 *   NVLS, a bus of 360           25 us; 360 x 0.835 x 8 / 9
 *   two nodes, Simple on a ring  8.4 + (30 - 2) x max(3.4, 3) + 2 x 14 = 131.6 us, times 1.4;
 *                                240 x 16 / 30
 *   two nodes, LL on trees       6.8 + 2 (7 x 0.6 + 5) = 25.2 us; min(0.92 x 240 / 3.8, 39)
 *                                = 39, half of it, at 4 KiB times 0.7
 *   two nodes, NVLS              25 + 2 x 20.9 = 66.8 us; the lesser of 360 x 0.835 x 8 / 9 = 267.2
 *                                within and min(2 x 384, 8 x 57.7) x 16 / 30 = 246.2 between
 *   eight nodes, a plugin of 75 us, all-gather, LL128
 *                                14 + (63 - 7) x 1.9 + 7 x (4 + 75) = 673.4 us; min(0.92 x 350, 8 x
 *                                36.7) x 64 / 63
 *   the same, Simple             8.4 + 56 x 3.4 + 7 x (14 + 2 x 75) = 1346.8 us; 350 x 64 / 63
 *   a GPU in each of four nodes  6.6 + 3 x 5 = 21.6 us (a step of trees); min(45 / 2, 20.4) x 4 / 3
 */
static const struct {
    const char *row;
    cs_kind kind;
    uint32_t ranks, nodes;
    cs_nccl_generation generation;
    uint32_t adapters;
    double latency;       /* us, of the network's plugin */
    double switched, bus; /* GB/s; 0: no sums in switches */
    int64_t bytes;
    cs_nccl_algorithm only, algorithm;
    cs_nccl_protocol protocol;
    double start, rate; /* us, GB/s */
} rows[] = {
    {"small", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, 8 * KIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_LL, 15, 87.7 * 8 / 14.0},
    {"trees", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, 64 * KIB, CS_NCCL_TREE,
     CS_NCCL_TREE, CS_NCCL_LL, 15.2, 0.92 * 240 / 3.8 / 2 * 0.6},
    {"medium", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, 4 * MIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_LL128, 40.6, 0.92 * 240 * 8 / 14},
    {"large", CS_ALL_REDUCE, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, GIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 56, 240 * 8 / 14.0},
    {"gather", CS_ALL_GATHER, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, GIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 32.2, 240 * 8 / 7.0},
    {"a small gather", CS_ALL_GATHER, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, 64 * KIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_RING, CS_NCCL_LL, 10.8, 87.7 * 8 / 7.0},
    {"gathers have no trees", CS_ALL_GATHER, 8, 1, CS_NCCL_AMPERE, 0, 0, 0, 240, GIB, CS_NCCL_TREE,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 32.2, 240 * 8 / 7.0},
    {"switches", CS_ALL_REDUCE, 8, 1, CS_NCCL_HOPPER, 0, 0, 360, 360, GIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_NVLS, CS_NCCL_SIMPLE, 25, 360 * 0.835 * 8 / 9},
    {"a ring in spite of them", CS_ALL_REDUCE, 8, 1, CS_NCCL_HOPPER, 0, 0, 360, 360, GIB,
     CS_NCCL_RING, CS_NCCL_RING, CS_NCCL_SIMPLE, 56, 360 * 8 / 14.0},
    {"they do not gather", CS_ALL_GATHER, 8, 1, CS_NCCL_HOPPER, 0, 0, 360, 360, GIB, CS_NCCL_NVLS,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 32.2, 360 * 8 / 7.0},
    {"two nodes", CS_ALL_REDUCE, 16, 2, CS_NCCL_AMPERE, 0, 0, 0, 240, GIB, CS_NCCL_RING,
     CS_NCCL_RING, CS_NCCL_SIMPLE, 131.6 * 1.4, 240 * 16 / 30.0},
    {"two nodes, small", CS_ALL_REDUCE, 16, 2, CS_NCCL_AMPERE, 0, 0, 0, 240, 4 * KIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_TREE, CS_NCCL_LL, 25.2, 39.0 / 2 * 0.7},
    {"two nodes with switches", CS_ALL_REDUCE, 16, 2, CS_NCCL_HOPPER, 8, 0, 360, 384, GIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_NVLS_TREE, CS_NCCL_SIMPLE, 66.8, 8 * 57.7 * 16 / 30},
    {"a plugin", CS_ALL_GATHER, 64, 8, CS_NCCL_HOPPER, 8, 75, 0, 350, 32 * MIB, CS_NCCL_ALGORITHMS,
     CS_NCCL_RING, CS_NCCL_LL128, 673.4, 8 * 36.7 * 64 / 63},
    {"a plugin, large", CS_ALL_GATHER, 64, 8, CS_NCCL_HOPPER, 8, 75, 0, 350, 16 * (int64_t)GIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_RING, CS_NCCL_SIMPLE, 1346.8, 350.0 * 64 / 63},
    {"one GPU in a node", CS_ALL_GATHER, 4, 4, CS_NCCL_HOPPER, 1, 0, 0, 45, 8 * KIB,
     CS_NCCL_ALGORITHMS, CS_NCCL_RING, CS_NCCL_LL, 21.6, 20.4 * 4 / 3},
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
                                 .nvls = rows[i].switched > 0,
                                 .adapters = rows[i].adapters,
                                 .network_latency = rows[i].latency,
                                 .bytes = rows[i].bytes,
                                 .bus = rows[i].bus * 1e9,
                                 .switched = rows[i].switched * 1e9};
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

/* The errors are listed in docs/reference/collectives.md. Bounds were set from known errors: they
 * detect changes, and do not judge the prediction. */

/* Algorithm bandwidths as measured, GB/s: bytes over time.
 *
 *   A100   all-reduces on 2, 4 and 8 GPUs of a DGX A100 (VIA-Research/vTrain at f8dda847,
 *          trace/a100); a ring of 12 x 20 GB/s, as NCCL expects (src/graph/topo.h)
 *   H200   all-reduces on eight of a node (stas00/ml-engineering at 744d01e1, network/README.md,
 *          with NCCL 2.27.7; bus bandwidths over 1.75), a ring of 367.61 GB/s without NVLS
 *   B200   all-reduces on one and on four p6-b200.48xlarge (the same page, Inter-node speed depends
 *          on intra-node speed; bus bandwidths over 1.75 and 1.9375); rings of 682.2 and 382 GB/s
 *   p5     all-gathers and all-reduces on 2 to 32 p5.48xlarge
 *          (crazyguitar/aws-gpu-communication-benchmark at fd167f97, data); rings of 367 and 350
 *          GB/s
 *
 * The plugin of AWS states 75 us for p5 and 35 us for p6 (aws/aws-ofi-nccl at 2daf7d30,
 * src/platform-aws.cpp). NCCL expects what a kernel takes that has begun; 25 us are added for its
 * start, as runtimes have it (SimuMax's figure for DGX B200). */
typedef struct log {
    const char *source;
    cs_kind kind;
    uint32_t ranks, nodes;
    cs_nccl_generation generation;
    double latency, switched, bus;
    int64_t bytes;
    double measured, low, high; /* GB/s; between which errors of the time the prediction is */
} log_row;

#define A100(ranks, mib, measured, low, high)                                                      \
    {                                                                                              \
        "A100", CS_ALL_REDUCE, ranks, 1, CS_NCCL_AMPERE, 0, 0, 240, (mib) * (int64_t)MIB,          \
            measured, low, high                                                                    \
    }
#define H200(kib, bus, low, high)                                                                  \
    {                                                                                              \
        "H200", CS_ALL_REDUCE, 8, 1, CS_NCCL_HOPPER, 0, 367.61, 367.61, (kib) * (int64_t)KIB,      \
            (bus) / 1.75, low, high                                                                \
    }
#define B200(nodes, mib, bus, low, high)                                                           \
    {                                                                                              \
        "B200", CS_ALL_REDUCE, 8 * (nodes), nodes, CS_NCCL_BLACKWELL, 35, 682.2,                   \
            (nodes) == 1 ? 682.2 : 382, (mib) * (int64_t)MIB,                                      \
            (bus) / ((nodes) == 1 ? 1.75 : 1.9375), low, high                                      \
    }
#define P5(kind, nodes, mib, measured, low, high)                                                  \
    {                                                                                              \
        "p5", kind, 8 * (nodes), nodes, CS_NCCL_HOPPER, 75, 367, 350, (mib) * (int64_t)MIB,        \
            measured, low, high                                                                    \
    }

static const log_row logs[] = {
    A100(2, 1, 23.72, -0.01, 0.03),
    A100(2, 1024, 197.28, -0.19, -0.15),
    A100(4, 16, 93.41, -0.14, -0.10),
    A100(8, 1, 11.30, -0.36, -0.32),
    A100(8, 4, 43.78, 0.01, 0.05),
    A100(8, 16, 72.19, -0.17, -0.13),
    A100(8, 1024, 131.06, -0.05, -0.01),
    H200(32, 1.44, -0.01, 0.03),
    H200(1024, 39.93, 0.13, 0.17),
    H200(2048, 64.53, -0.01, 0.03),
    H200(32 * KIB, 275.84, -0.21, -0.17),
    H200(512 * KIB, 450.29, -0.05, -0.01),
    H200(16 * MIB, 482.26, -0.01, 0.03),
    B200(1, 1, 36.06, -0.11, -0.07),
    B200(1, 32, 325.97, -0.35, -0.31),
    B200(1, 16384, 845.67, -0.01, 0.03),
    B200(4, 1, 5.37, -0.35, -0.31),
    B200(4, 16, 64.43, -0.10, -0.06),
    B200(4, 256, 229.09, -0.24, -0.20),
    B200(4, 16384, 381.80, -0.02, 0.02),
    P5(CS_ALL_GATHER, 2, 32, 140.06, 0.03, 0.07),
    P5(CS_ALL_GATHER, 8, 32, 47.03, 0.12, 0.16),
    P5(CS_ALL_GATHER, 8, 512, 265.41, 0.22, 0.26),
    P5(CS_ALL_GATHER, 32, 32, 12.43, 0.10, 0.14),
    P5(CS_ALL_GATHER, 32, 512, 146.96, 0.28, 0.32),
    P5(CS_ALL_GATHER, 32, 2048, 263.80, 0.23, 0.27),
    P5(CS_ALL_REDUCE, 2, 32, 78.57, 0.07, 0.11),
    P5(CS_ALL_REDUCE, 2, 8192, 254.78, 0.03, 0.07),
    P5(CS_ALL_REDUCE, 8, 32, 44.06, 0.13, 0.17),
    P5(CS_ALL_REDUCE, 8, 8192, 180.50, 0.02, 0.06),
    P5(CS_ALL_REDUCE, 32, 32, 33.30, 0.18, 0.22),
    P5(CS_ALL_REDUCE, 32, 512, 78.73, -0.31, -0.27),
    P5(CS_ALL_REDUCE, 32, 8192, 161.18, -0.07, -0.03),
};

static void predicts_logs(void **state)
{
    (void)state;
    printf(
        "               GPUs       MiB  measured, us     picked          error  the same without "
        "the model\n");
    for (size_t i = 0; i < ROWS(logs); i++) {
        const log_row *log = &logs[i];
        const double start = 25, n = log->ranks, rounds = log->kind == CS_ALL_REDUCE ? 2 : 1;
        const cs_nccl_case of = {.kind = log->kind,
                                 .ranks = log->ranks,
                                 .nodes = log->nodes,
                                 .generation = log->generation,
                                 .nvlink = true,
                                 .nvls = log->switched > 0 && log->ranks > 2,
                                 .adapters = log->nodes > 1 ? 8 : 0,
                                 .network_latency = log->latency,
                                 .bytes = log->bytes,
                                 .bus = log->bus * 1e9,
                                 .switched = log->switched * 1e9};
        const cs_nccl_choice got = cs_nccl_choose(&of, CS_NCCL_ALGORITHMS);
        const double measured = (double)log->bytes / log->measured / 1e3;
        const double plain = rounds * (n - 1) / n * (double)log->bytes / log->bus / 1e3;
        const double error = (start + got.seconds * 1e6) / measured - 1;
        printf("%-4s %-10s %4u %9.3f  %12.1f  %9s %-6s  %+5.0f %%  %+5.0f %%\n", log->source,
               log->kind == CS_ALL_REDUCE ? "all-reduce" : "all-gather", log->ranks,
               (double)log->bytes / MIB, measured, cs_nccl_algorithm_names[got.algorithm],
               cs_nccl_protocol_names[got.protocol], 100 * error,
               100 * ((start + plain) / measured - 1));
        if (error < log->low || error > log->high)
            fail_msg("%s: %g us, measured %g us", log->source, start + got.seconds * 1e6, measured);
    }
}

/* All-to-alls on p5.48xlarge (crazyguitar/aws-gpu-communication-benchmark at fd167f97,
 * data/nccl_alltoall.csv; GB/s of the bytes of a rank). A GPU sends to other nodes at 0.91 of 48
 * GB/s, begins after 25 us, crosses once, 14 + 2 x 75 us, and posts a message to each remote
 * peer. */
static const struct {
    uint32_t nodes;
    int64_t mib;
    double measured;
} exchanges[] = {{2, 32, 47.78},   {4, 32, 35.56},   {8, 32, 29.13},   {16, 32, 24.83},
                 {32, 32, 19.79},  {2, 256, 79.21},  {8, 256, 45.11},  {32, 256, 30.32},
                 {2, 2048, 84.53}, {8, 2048, 50.41}, {32, 2048, 40.94}};

static void messages_take_a_step_and_posts(void **state)
{
    (void)state;
    assert_true(fabs(cs_nccl_messages(24, 75) - (14 + 2 * 75 + 24 * 2.6) * 1e-6) < 1e-12);
    for (size_t i = 0; i < ROWS(exchanges); i++) {
        const uint32_t nodes = exchanges[i].nodes;
        const double bytes = (double)exchanges[i].mib * MIB, remote = 8.0 * (nodes - 1);
        const double got = 25e-6 + cs_nccl_messages((uint32_t)remote, 75) +
                           bytes * remote / (8.0 * nodes) / (0.91 * 48e9);
        const double error = got / (bytes / (exchanges[i].measured * 1e9)) - 1;
        printf("all-to-all  %3u GPUs %5.0f MiB  %+5.0f %%\n", 8 * nodes, bytes / MIB, 100 * error);
        if (fabs(error) > 0.25)
            fail_msg("%u nodes, %g MiB: %g us", nodes, bytes / MIB, got * 1e6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_as_by_hand),
        cmocka_unit_test(predicts_logs),
        cmocka_unit_test(messages_take_a_step_and_posts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
