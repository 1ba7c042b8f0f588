#include "sim/lower/nccl.h"

#include <math.h>

const char *const cs_nccl_algorithm_names[CS_NCCL_ALGORITHMS] = {"tree", "ring", "nvls"};
const char *const cs_nccl_protocol_names[CS_NCCL_PROTOCOLS] = {"LL", "LL128", "Simple"};

/* us: baseLat; hwLat of NVLink, PCIe and networks. */
static const double base[CS_NCCL_ALGORITHMS][CS_NCCL_PROTOCOLS] = {
    {6.8, 14, 0}, {6.6, 14, 8.4}, {0, 0, 0}};

enum { NVLINK, PCIE, NETWORK, N_WIRES };

static const double step[N_WIRES][CS_NCCL_ALGORITHMS][CS_NCCL_PROTOCOLS] = {
    {{0.6, 1.25, 28}, {0.6, 1.9, 3.4}, {0, 0, 23}},
    {{1, 1.9, 28}, {1, 2.5, 5.7}, {0, 0, 0}},
    {{5, 8.5, 28}, {2.7, 4, 14}, {0, 0, 18}},
};

/* bytes/s that LL reaches at most (llMaxBws): by generation within a node, else by the number of
 * nodes, 2 or more, with Intel's processors. */
static const double least_latency_within[] = {INFINITY, 39e9, 87.7e9, 87.7e9};
static const double least_latency_between[] = {39e9, 20.4e9};

/* By powers of two from 64 bytes on (treeCorrectionFactor). */
enum { CORRECTIONS = 23 };
static const double corrections[CS_NCCL_PROTOCOLS][CORRECTIONS] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

static bool does(const cs_nccl_case *of, cs_nccl_algorithm algorithm, cs_nccl_protocol protocol)
{
    if (protocol == CS_NCCL_LL128 && !of->nvlink)
        return false;
    if (algorithm == CS_NCCL_TREE)
        return of->kind == CS_ALL_REDUCE;
    if (algorithm == CS_NCCL_NVLS)
        return of->nvls && of->nodes == 1 && protocol == CS_NCCL_SIMPLE;
    return true;
}

/* Seconds until the first byte is through. */
static double latency(const cs_nccl_case *of, cs_nccl_algorithm algorithm,
                      cs_nccl_protocol protocol)
{
    const double overhead = of->nodes > 1 ? (protocol == CS_NCCL_SIMPLE ? 3 : 1) : 0;
    const double within = step[of->nvlink ? NVLINK : PCIE][algorithm][protocol];
    const double between = step[NETWORK][algorithm][protocol];
    const double rounds = of->kind == CS_ALL_REDUCE ? 2 : 1;
    double us = base[algorithm][protocol];
    if (algorithm == CS_NCCL_TREE) {
        us += 2 * ((of->ranks / of->nodes - 1) * within + floor(log2(of->nodes)) * between);
    } else if (algorithm == CS_NCCL_NVLS) {
        us += within;
    } else {
        const double crossing = of->nodes == 1              ? 0
                                : of->kind == CS_ALL_REDUCE ? 2.0 * of->nodes
                                                            : of->nodes - 1.0;
        us += (rounds * (of->ranks - 1) - crossing) * fmax(within, overhead) + crossing * between;
        if (protocol == CS_NCCL_SIMPLE && of->nodes > 1 && of->kind == CS_ALL_REDUCE &&
            of->bytes >= INT64_C(64) * of->ranks)
            us *= of->generation == CS_NCCL_VOLTA ? 1.9 : 1.4; /* plateau of rings */
    }
    return us * 1e-6;
}

static double least_latency_rate(const cs_nccl_case *of)
{
    return of->nodes == 1 ? least_latency_within[of->generation]
                          : least_latency_between[of->nodes > 2];
}

/* bytes/s of the whole vector. */
static double rate(const cs_nccl_case *of, cs_nccl_algorithm algorithm, cs_nccl_protocol protocol)
{
    const double rounds = of->kind == CS_ALL_REDUCE ? 2 : 1, n = of->ranks;
    double bus = of->bus;
    if (algorithm == CS_NCCL_NVLS)
        return bus * 5 / 6;
    if (algorithm == CS_NCCL_TREE) {
        bus *= 0.92;
        if (protocol == CS_NCCL_LL)
            bus = fmin(bus / 3.8, least_latency_rate(of));
        else if (protocol == CS_NCCL_LL128)
            bus *= of->nodes == 1 ? 7.0 / 9 : 120.0 / 128;
        const double at = floor(log2(fmax((double)of->bytes / 64, 1)));
        return bus / 2 * (at < CORRECTIONS ? corrections[protocol][(int)at] : 1);
    }
    if (protocol == CS_NCCL_LL)
        bus = fmin(bus / (of->nodes > 1 || of->kind == CS_ALL_REDUCE ? 4 : 3),
                   least_latency_rate(of));
    else if (protocol == CS_NCCL_LL128)
        bus *= of->ranks < 2 * of->nodes ? 0.7 : 0.92;
    return bus * n / (rounds * (n - 1));
}

cs_nccl_choice cs_nccl_choose(const cs_nccl_case *of, cs_nccl_algorithm only)
{
    cs_nccl_choice best = {CS_NCCL_RING, CS_NCCL_SIMPLE, INFINITY};
    const bool can = only < CS_NCCL_ALGORITHMS && does(of, only, CS_NCCL_SIMPLE);
    const cs_nccl_algorithm one = can || only == CS_NCCL_ALGORITHMS ? only : CS_NCCL_RING;
    for (cs_nccl_algorithm a = 0; a < CS_NCCL_ALGORITHMS; a++)
        for (cs_nccl_protocol p = 0; p < CS_NCCL_PROTOCOLS; p++) {
            if ((one != CS_NCCL_ALGORITHMS && a != one) || !does(of, a, p))
                continue;
            const double seconds = latency(of, a, p) + (double)of->bytes / rate(of, a, p);
            if (seconds < best.seconds)
                best = (cs_nccl_choice){a, p, seconds};
        }
    return best;
}
