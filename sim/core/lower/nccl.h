/* NCCL's choice of algorithm and protocol for a collective, and the time that it expects. This is
 * NCCL's own tuning model (NVIDIA/nccl at 5067397c, src/graph/tuning.cc, ncclTopoTuneModel and
 * ncclTopoGetAlgoTime) with its constants.
 *
 *   time = latency + bytes / (bus bandwidth * efficiency)
 *
 * The latency is a start plus all steps, within nodes and between them. The efficiency depends on
 * the algorithm (a ring, two trees, sums in NVSwitches and trees of these) and on the protocol: LL
 * sends a flag with every 4 bytes, LL128 with every 120 bytes, Simple synchronises by chunks. A
 * step between nodes has InfiniBand's latency. The plugin of another network adds its own latency
 * once, and once more with Simple, which has to flush.
 *
 * Sums in NVSwitches: each GPU sends and receives (n + 1) / n of the bytes at a measured fraction
 * of the wires' bandwidth, which is closer to measurements than NCCL's own expectation. Not
 * modelled: caps of single channels within a node, SHARP in InfiniBand switches, and PAT, which
 * NCCL uses only if each node has one GPU. Processors are assumed to be Intel's. */
#ifndef CS_LOWER_NCCL_H
#define CS_LOWER_NCCL_H

#include "sim/core/graph/graph.h"

typedef enum cs_nccl_generation {
    CS_NCCL_NONE,
    CS_NCCL_VOLTA,
    CS_NCCL_AMPERE,
    CS_NCCL_HOPPER,
    CS_NCCL_BLACKWELL
} cs_nccl_generation;

typedef enum cs_nccl_algorithm {
    CS_NCCL_TREE,
    CS_NCCL_RING,
    CS_NCCL_NVLS,
    CS_NCCL_NVLS_TREE,
    CS_NCCL_ALGORITHMS
} cs_nccl_algorithm;

typedef enum cs_nccl_protocol {
    CS_NCCL_LL,
    CS_NCCL_LL128,
    CS_NCCL_SIMPLE,
    CS_NCCL_PROTOCOLS
} cs_nccl_protocol;

/* "tree", "ring", "nvls", "nvls_tree"; "LL", "LL128", "Simple" */
extern const char *const cs_nccl_algorithm_names[CS_NCCL_ALGORITHMS];
extern const char *const cs_nccl_protocol_names[CS_NCCL_PROTOCOLS];

typedef struct cs_nccl_case {
    cs_kind kind; /* CS_ALL_REDUCE, CS_REDUCE_SCATTER or CS_ALL_GATHER */
    uint32_t ranks, nodes;
    cs_nccl_generation generation; /* generation of the GPUs; not CS_NCCL_NONE */
    bool nvlink;                   /* whether nodes have NVLink inside; else PCIe */
    bool nvls;                     /* whether the nodes' switches can sum */
    /* number of adapters of a node, with one ring through each; 0: unknown */
    uint32_t adapters;
    double network_latency; /* latency stated by the network's plugin, us */
    int64_t bytes;          /* as in cs_collective */
    /* bus bandwidth of a ring with the protocol Simple, bytes/s (busbw of nccl-tests) */
    double bus;
    double switched; /* bus bandwidth of such a ring within a node, bytes/s; with nvls */
} cs_nccl_case;

typedef struct cs_nccl_choice {
    cs_nccl_algorithm algorithm;
    cs_nccl_protocol protocol;
    double seconds;
} cs_nccl_choice;

/* Time of an all-to-all besides its bytes, s. NCCL sends messages to all peers at once: one step
 * between nodes, and one post for each peer in another node. */
double cs_nccl_messages(uint32_t remote_peers, double network_latency);

/* Returns the fastest choice. `only` restricts it to one algorithm (CS_NCCL_ALGORITHMS: no
 * restriction), or to a ring if that algorithm cannot do the collective. */
cs_nccl_choice cs_nccl_choose(const cs_nccl_case *of, cs_nccl_algorithm only);

#endif
