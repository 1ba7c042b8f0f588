/* Which algorithm and protocol NCCL picks for a collective, and what it expects that to take: the
 * model that decides (NVIDIA/nccl at 5067397c, src/graph/tuning.cc, ncclTopoTuneModel and
 * ncclTopoGetAlgoTime), whose constants are taken over.
 *
 *   time = latency + bytes / (bus bandwidth * efficiency)
 *
 * The latency counts a start and all steps, within nodes and between them. The efficiency depends
 * on the algorithm (a ring, two trees, sums within NVSwitches and trees of these) and on the
 * protocol: LL sends a flag with every 4 bytes, LL128 with every 120, Simple synchronises by
 * chunks. A step between nodes takes InfiniBand's latency, and the plugin of another network adds
 * its own: once, and once more with Simple, which has to flush.
 *
 * Sums within NVSwitches: each GPU sends and receives n + 1 n-ths of the bytes, at a measured part
 * of the wires' bandwidth. This is nearer to measurements than NCCL's own expectation. Left out are
 * caps of single channels within a node, SHARP in InfiniBand switches, and PAT, which NCCL uses
 * only where each node has one GPU. The processors are taken to be Intel's. */
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
    cs_nccl_generation generation; /* of the GPUs; not CS_NCCL_NONE */
    bool nvlink;                   /* within nodes; else PCIe */
    bool nvls;                     /* the nodes' switches sum */
    uint32_t adapters;             /* rings that leave a node, one by each; 0: not known */
    double network_latency;        /* us, that the network's plugin states */
    int64_t bytes;                 /* as cs_collective has them */
    double bus;      /* bytes/s, of a ring with the protocol Simple: what nccl-tests call busbw */
    double switched; /* bytes/s, of such a ring within a node, with nvls */
} cs_nccl_case;

typedef struct cs_nccl_choice {
    cs_nccl_algorithm algorithm;
    cs_nccl_protocol protocol;
    double seconds;
} cs_nccl_choice;

/* Seconds of an all-to-all without its bytes. NCCL sends messages to all peers at once: they take a
 * step between nodes, and a post for each peer in another node. */
double cs_nccl_messages(uint32_t remote_peers, double network_latency);

/* The fastest; of one algorithm where `only` is not CS_NCCL_ALGORITHMS, or of a ring where that
 * does not do the collective. */
cs_nccl_choice cs_nccl_choose(const cs_nccl_case *of, cs_nccl_algorithm only);

#endif
