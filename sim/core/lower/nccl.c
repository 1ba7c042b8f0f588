#include "sim/core/lower/nccl.h"

#include <math.h>

const char *const cs_nccl_algorithm_names[CS_NCCL_ALGORITHMS] = {"tree", "ring", "nvls",
                                                                 "nvls_tree"};
const char *const cs_nccl_protocol_names[CS_NCCL_PROTOCOLS] = {"LL", "LL128", "Simple"};

/* us: baseLatencies; hwLatencies of NVLink, PCIe and networks. */
static const double base[CS_NCCL_ALGORITHMS][CS_NCCL_PROTOCOLS] = {
    {6.8, 14, 8.4}, {6.6, 14, 8.4}, {0, 0, 0}, {0, 0, 0}};

enum { NVLINK, PCIE, NETWORK, N_WIRES };

static const double step[N_WIRES][CS_NCCL_ALGORITHMS][CS_NCCL_PROTOCOLS] = {
    {{0.6, 1.25, 4}, {0.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}},
    {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 0}, {0, 0, 0}},
    {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 18}, {0, 0, 20.9}},
};

/* Index of the tables below by number of nodes: 1, 2, more. */
enum { N_SPREADS = 3 };

static uint32_t spread_of(const cs_nccl_case *of)
{
    return of->nodes < N_SPREADS ? of->nodes - 1 : N_SPREADS - 1;
}

/* Maximum bytes/s of LL (llMaxBws): within a node by generation; between nodes for Intel's
 * processors. */
static const double least_latency_within[] = {INFINITY, 39e9, 87.7e9, 141e9, 282e9};
static const double least_latency_between[N_SPREADS] = {INFINITY, 39e9, 20.4e9};

/* Bytes/s of one channel that leaves a node, by generation and number of nodes: trees
 * (perChMaxTreeBws), trees with LL128 (perChMaxTreeLL128Bws), rings with LL128
 * (perChMaxRingLL128Bws), and NVLS trees (perChMaxNVLSTreeBws). */
static const double tree_channel[][N_SPREADS] = {{INFINITY, INFINITY, INFINITY},
                                                 {26.5e9, 18.5e9, 10e9},
                                                 {24e9, 23.6e9, 17.8e9},
                                                 {38.7e9, 41.4e9, 36e9},
                                                 {70e9, 42.8e9, 24e9}};
static const double tree_128_channel[][N_SPREADS] = {{INFINITY, INFINITY, INFINITY},
                                                     {20e9, 20e9, 20e9},
                                                     {20e9, 20e9, 20e9},
                                                     {36.7e9, 36.7e9, 29e9},
                                                     {55.6e9, 31.67e9, 20e9}};
static const double ring_128_channel[] = {INFINITY, 20e9, 20e9, 36.7e9, 40e9};
static const double switch_channel[][N_SPREADS] = {{INFINITY, INFINITY, INFINITY},
                                                   {26.5e9, 18.5e9, 10e9},
                                                   {24e9, 23.6e9, 17.8e9},
                                                   {INFINITY, 57.7e9, 45.5e9},
                                                   {INFINITY, 96e9, 80e9}};

/* Fraction of the wires' bandwidth that sums in NVSwitches reach, compared with rings: 460 GB/s on
 * seven and 473.1 on eight H200 where rings reach 365.7 and 365.6; 811.2 and 838 on B200 where
 * rings reach 680.5 and 682.2 (stas00/ml-engineering at 744d01e1, network/README.md, SHARP; bus
 * bandwidths). */
static const double switch_reached[] = {0, 0, 0, 0.835, 0.79};

/* Correction by size, per power of two from 64 bytes (treeCorrectionFactor). */
enum { CORRECTIONS = 23 };
static const double corrections[CS_NCCL_PROTOCOLS][CORRECTIONS] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

static bool does(const cs_nccl_case *of, cs_nccl_algorithm algorithm, cs_nccl_protocol protocol)
{
    if (algorithm == CS_NCCL_RING)
        return protocol != CS_NCCL_LL128 || of->nvlink;
    if (algorithm == CS_NCCL_TREE)
        return of->kind == CS_ALL_REDUCE && (protocol != CS_NCCL_LL128 || of->nvlink);
    return of->kind == CS_ALL_REDUCE && of->nvls && protocol == CS_NCCL_SIMPLE &&
           (of->nodes > 1) == (algorithm == CS_NCCL_NVLS_TREE);
}

/* Latency of a step between nodes, us. */
static double crossing(const cs_nccl_case *of, cs_nccl_algorithm algorithm,
                       cs_nccl_protocol protocol)
{
    /* no step within a node hides it */
    const bool bare = algorithm == CS_NCCL_RING && of->ranks == of->nodes;
    return step[NETWORK][bare ? CS_NCCL_TREE : algorithm][protocol] +
           of->network_latency * (protocol == CS_NCCL_SIMPLE ? 2 : 1);
}

/* Latency of the whole collective, s: time until the first byte has arrived everywhere. */
static double latency(const cs_nccl_case *of, cs_nccl_algorithm algorithm,
                      cs_nccl_protocol protocol)
{
    const double within = step[of->nvlink ? NVLINK : PCIE][algorithm][protocol];
    const double between = of->nodes > 1 ? crossing(of, algorithm, protocol) : 0;
    const double rounds = of->kind == CS_ALL_REDUCE ? 2 : 1;
    const double levels = floor(log2(of->nodes));
    double us = base[algorithm][protocol];
    if (algorithm == CS_NCCL_TREE) {
        us += 2 * ((of->ranks / of->nodes - 1) * within + levels * between);
    } else if (algorithm == CS_NCCL_RING) {
        const double posts = of->nodes > 1 ? (protocol == CS_NCCL_SIMPLE ? 3 : 1) : 0;
        const double crossings = rounds * (of->nodes - 1.0);
        us += (rounds * (of->ranks - 1) - crossings) * fmax(within, posts) + crossings * between;
        if (protocol == CS_NCCL_SIMPLE && of->nodes > 1 && of->kind == CS_ALL_REDUCE &&
            of->bytes >= INT64_C(64) * of->ranks)
            us *= of->generation == CS_NCCL_VOLTA ? 1.9 : 1.4; /* the plateau of rings */
    } else {
        us += within + 2 * levels * between;
    }
    return us * 1e-6;
}

/* Limits a bandwidth to the sum over the channels that leave a node. */
static double by_channels(const cs_nccl_case *of, double bandwidth, double channel)
{
    return of->nodes > 1 && of->adapters > 0 ? fmin(bandwidth, of->adapters * channel) : bandwidth;
}

static double tree_rate(const cs_nccl_case *of, cs_nccl_protocol protocol)
{
    const uint32_t spread = spread_of(of);
    const double at = floor(log2(fmax((double)of->bytes / 64, 1)));
    double bus = by_channels(of, of->bus * 0.92, tree_channel[of->generation][spread]);
    if (protocol == CS_NCCL_LL)
        bus = fmin(bus / 3.8, of->nodes == 1 ? least_latency_within[of->generation]
                                             : least_latency_between[spread]);
    else if (protocol == CS_NCCL_LL128)
        bus = by_channels(of, bus * (of->nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                          tree_128_channel[of->generation][spread]);
    return bus / 2 * (at < CORRECTIONS ? corrections[protocol][(int)at] : 1);
}

static double ring_rate(const cs_nccl_case *of, cs_nccl_protocol protocol)
{
    const double rounds = of->kind == CS_ALL_REDUCE ? 2 : 1, n = of->ranks;
    double bus = of->bus;
    if (protocol == CS_NCCL_LL)
        bus = fmin(bus / 2, of->nodes == 1 ? least_latency_within[of->generation]
                                           : least_latency_between[spread_of(of)]);
    else if (protocol == CS_NCCL_LL128)
        bus = by_channels(of, bus * 0.92, ring_128_channel[of->generation]);
    return bus * n / (rounds * (n - 1));
}

/* Bandwidth of sums in NVSwitches within nodes, and of trees of them. Two nodes only send to each
 * other. */
static double switch_rate(const cs_nccl_case *of)
{
    const double n = of->ranks, each = n / of->nodes;
    const double within = (of->switched > 0 ? of->switched : of->bus) *
                          switch_reached[of->generation] * each / (each + 1);
    const double between = by_channels(of, of->bus * (of->nodes == 2 ? 2 : 1),
                                       switch_channel[of->generation][spread_of(of)]);
    return of->nodes == 1 ? within : fmin(within, between * n / (2 * (n - 1)));
}

/* Bytes/s, for the whole vector. */
static double rate(const cs_nccl_case *of, cs_nccl_algorithm algorithm, cs_nccl_protocol protocol)
{
    if (algorithm == CS_NCCL_TREE)
        return tree_rate(of, protocol);
    return algorithm == CS_NCCL_RING ? ring_rate(of, protocol) : switch_rate(of);
}

/* Time to post one message, us. All-to-alls of 32 MiB on 2, 4, 8, 16 and 32 p5.48xlarge take 0.32,
 * 0.36, 0.45, 0.58 and 0.92 ms longer than their bytes at 43.7 GB/s
 * (crazyguitar/aws-gpu-communication-benchmark at fd167f97, data/nccl_alltoall.csv): 2.6 us for
 * each of 8, 24, 56, 120 and 248 peers, by least squares. NCCL itself expects 1 to 2 us
 * (getNetOverhead). */
static const double post = 2.6;

double cs_nccl_messages(uint32_t remote_peers, double network_latency)
{
    return (step[NETWORK][CS_NCCL_RING][CS_NCCL_SIMPLE] + 2 * network_latency +
            post * remote_peers) *
           1e-6;
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
