/* What the layers of a chain keep for backward, storage by storage: operators are visited one by
 * one, and what they keep is then summed up. For net-chain.c. */
#ifndef CS_WORKLOAD_NET_KEPT_H
#define CS_WORKLOAD_NET_KEPT_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"

/* A storage while it is looked for who keeps it. */
typedef struct cs_net_storage {
    int64_t bytes;   /* of the first tensor in it, which the others are views of */
    uint32_t layer;  /* the last that reads it, or else the one that writes it */
    uint32_t writer; /* op that writes it first, CS_NO_TENSOR of an input */
    bool used, kept;
    bool read_again; /* by operators that run again (recompute.h), of which its writer is none or
                      * in another layer; */
    bool kept_again; /* by others that run again */
    bool discarded;  /* others need it, for which it is made again */
    bool offloaded;  /* an operator that is offloaded keeps it */
} cs_net_storage;

/* Per operator, while layers are counted. */
typedef struct cs_net_counts {
    cs_net_storage *storages; /* per storage */
    int64_t *workspaces;      /* of the kernels */
    int64_t *steps;           /* see cs_backward */
    int64_t *peaks;           /* of gradients and workspace */
    uint32_t *weights_at;     /* whose backward makes the gradients of weights */
    cs_piece_seconds *seconds;
    uint32_t *runs; /* of operators that run again */
    bool *discards; /* whose results are not kept for others */
    bool *offloads; /* what they keep goes to the host */
    /* of a run, at its first operator: */
    uint32_t *needed; /* the last operator that needs one of those results */
    int64_t *held;    /* bytes while it runs backward */
} cs_net_counts;

/* Operator p of layer number `layer`, with its cost. Operators are visited in their order. False
 * for sizes beyond 64 bits, as below. */
bool cs_net_kept_visit(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t layer,
                       const cs_op_cost *cost, const cs_net_counts *of, cs_net_layer *to);

/* How far the operators of a layer run again for the backward of operator p: past it if it keeps
 * what it makes, up to it if it keeps what it reads or has weights, which autograd saves before a
 * kernel of PyTorch's own runs (torch/utils/checkpoint.py, _StopRecomputationError); 0 if it keeps
 * nothing. */
uint32_t cs_net_kept_reach(const cs_net *net, const cs_net_options *how, uint32_t p,
                           const cs_op_cost *cost);

/* Once all are visited: adds what is kept to the layers and the chain, and what is there only while
 * operators run backward to their workspaces. `local`: NULL where the network is not divided. */
bool cs_net_kept_sum(const cs_net *net, const cs_net_local *local, const cs_net_options *how,
                     cs_net_counts *of, cs_net_chain *chain);

#endif
