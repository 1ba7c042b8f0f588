/* Which algorithm and protocol NCCL picks for a collective, and what it expects that to take: the
 * model by which it decides (NVIDIA/nccl at b6475625, src/graph/tuning.cc, ncclTopoTuneModel and
 * ncclTopoGetAlgoTime), whose constants are taken over.
 *
 *   time = latency + bytes / (bus bandwidth * efficiency)
 *
 * The latency is that of a start and of all steps, within nodes and between them; the efficiency is
 * that of the algorithm (a ring, two trees, sums within NVSwitches) and of the protocol: LL sends a
 * flag with every 4 bytes, LL128 with every 120, Simple synchronises by chunks. Caps of single
 * channels, which many channels do not reach, are left out, and so are SHARP in InfiniBand switches
 * and the post overhead of AMD's processors. */
#ifndef CS_LOWER_NCCL_H
#define CS_LOWER_NCCL_H

#include "sim/graph/graph.h"

typedef enum cs_nccl_generation {
    CS_NCCL_NONE,
    CS_NCCL_VOLTA,
    CS_NCCL_AMPERE,
    CS_NCCL_HOPPER
} cs_nccl_generation;

typedef enum cs_nccl_algorithm {
    CS_NCCL_TREE,
    CS_NCCL_RING,
    CS_NCCL_NVLS,
    CS_NCCL_ALGORITHMS
} cs_nccl_algorithm;

typedef enum cs_nccl_protocol {
    CS_NCCL_LL,
    CS_NCCL_LL128,
    CS_NCCL_SIMPLE,
    CS_NCCL_PROTOCOLS
} cs_nccl_protocol;

/* "tree", "ring", "nvls"; "LL", "LL128", "Simple" */
extern const char *const cs_nccl_algorithm_names[CS_NCCL_ALGORITHMS];
extern const char *const cs_nccl_protocol_names[CS_NCCL_PROTOCOLS];

typedef struct cs_nccl_case {
    cs_kind kind; /* CS_ALL_REDUCE, CS_REDUCE_SCATTER or CS_ALL_GATHER */
    uint32_t ranks, nodes;
    cs_nccl_generation generation; /* of the GPUs; not CS_NCCL_NONE */
    bool nvlink;                   /* within nodes; else PCIe */
    bool nvls;                     /* the node's switches sum */
    int64_t bytes;                 /* as cs_collective has them */
    double bus; /* bytes/s, of a ring with the protocol Simple: what nccl-tests call busbw */
} cs_nccl_case;

typedef struct cs_nccl_choice {
    cs_nccl_algorithm algorithm;
    cs_nccl_protocol protocol;
    double seconds;
} cs_nccl_choice;

/* The fastest; of one algorithm where `only` is not CS_NCCL_ALGORITHMS, or of a ring where that
 * does not do the collective. */
cs_nccl_choice cs_nccl_choose(const cs_nccl_case *of, cs_nccl_algorithm only);

#endif
