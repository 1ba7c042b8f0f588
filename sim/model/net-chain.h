/* How a chain is made of a network, step by step: layers, seconds, saved activations, pieces, tapes.
 * For net-chain.c, net-model.c and the files of the steps; others use cs_net_chain_find. */
#ifndef CS_WORKLOAD_NET_CHAIN_H
#define CS_WORKLOAD_NET_CHAIN_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"

/* A network, and the part of it that is counted: all, or the part of one place. */
typedef struct cs_divided_net {
    const cs_net *whole;
    const cs_net_local *local; /* NULL: it is not split */
    const cs_net *net;
} cs_divided_net;

/* The caller finishes `local`, which must outlive *d. Errors as cs_net_chain_find. */
CS_MUST_CHECK cs_status cs_net_divide(const cs_net *net, const cs_net_options *how,
                                      cs_net_local *local, cs_divided_net *d, cs_error *error);

CS_MUST_CHECK cs_status cs_net_chain_of(const cs_divided_net *d, const cs_net_options *how,
                                        cs_net_chain *chain, cs_error *error);

/* ---- layers: net-layers.c; net-model.h says where layers end ---- */

/* Makes the layers of the chain with their names and operators only. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_net_layers_make(const cs_net *net, cs_granularity granularity,
                                           cs_net_chain *chain, cs_error *error);

/* Replaces operators of the whole network by operators of the local one. */
void cs_net_layers_move(const cs_net_local *local, cs_net_chain *chain);

/* The block of the first operator from p on, views skipped. */
uint32_t cs_net_block_from(const cs_net *net, uint32_t p);

static inline bool cs_net_is_carried(const cs_net *net, cs_tensor tensor)
{
    return net->carried > 0 && tensor == net->carried;
}

/* Finds the articulation points of a graph in topological order: nodes that every path from the
 * inputs to the outputs passes. Between two of them everything is one layer, and no chain is finer.
 * `last_reader[p]` is the position of the last node that reads node p, or n for an output.
 * `last_fed` is the last position that reads an input. Writes into `ends`, which has room for n, one
 * past the last position of each layer, and returns their number. n >= 1. Linear in n. */
uint32_t cs_articulation_find(const uint32_t *last_reader, uint32_t n, uint32_t last_fed,
                              uint32_t *ends);

/* ---- seconds: op-seconds.c; measured, or by the kernels of a runtime or a roofline ---- */

/* Measured times of an operator's pieces of work. */
typedef struct cs_op_times {
    double operator[CS_PASS_UPDATE]; /* s; negative: not measured */
    double accumulate;               /* s, all inputs together; negative: not all measured */
    double update;                   /* s; negative: not measured */
    int64_t workspace;               /* bytes; negative: not known */
} cs_op_times;

/* Looks up the measured times. Adds to the layer's n_measured and n_estimated. */
cs_op_times cs_op_times_find(const cs_net *net, const cs_net_options *how, const cs_op *op,
                             cs_net_layer *layer);

/* Forward, gradients of the input, gradients of the weights. */
cs_piece_seconds cs_op_seconds_of(const cs_net_options *how, const cs_op *op,
                                  const cs_op_cost *cost, const cs_op_times *times);

/* After an update, trained weights are cast: read, and written as their copies. */
double cs_op_seconds_cast(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost);

/* The roofline of an update counts all parameters of a layer at once. */
double cs_op_seconds_update(const cs_net_options *how, int64_t parameters);

/* Counting the zeros in the gradients of `parameters` in `tensors`. */
double cs_op_seconds_count_zeros(const cs_net_options *how, int64_t parameters, uint32_t tensors);

/* ---- saved activations: net-kept.c; operators are visited one by one, then summed up ---- */

/* A storage, until the operators that keep it are known. */
typedef struct cs_net_storage {
    int64_t bytes;   /* bytes of the first tensor in it; the others are views */
    uint32_t layer;  /* last layer that reads it, or else the layer that writes it */
    uint32_t writer; /* first operator that writes it, CS_NO_TENSOR for an input */
    bool used, kept;
    bool read_again; /* operators that run again (recompute.h) read it, but its writer does not run
                      * again with them or is in another layer; */
    bool kept_again; /* other operators that run again keep it */
    bool discarded;  /* others need it, so it is made again */
    bool offloaded;  /* an operator that is offloaded keeps it */
} cs_net_storage;

/* Per operator, while layers are counted. */
typedef struct cs_net_counts {
    cs_net_storage *storages; /* per storage */
    int64_t *workspaces;      /* bytes of the kernels' workspaces */
    int64_t *steps;           /* see cs_backward */
    int64_t *peaks;           /* bytes of gradients and workspace */
    uint32_t *weights_at;     /* operator whose backward makes the gradients of its weights */
    cs_piece_seconds *seconds;
    uint32_t *runs; /* its run, if it runs again */
    bool *discards; /* results are not kept for others */
    bool *offloads; /* saved activations go to the host */
    /* per run, at its first operator: */
    uint32_t *needed; /* last operator that needs one of the run's results */
    int64_t *held;    /* bytes while the run is in its backward */
} cs_net_counts;

/* Visits operator p of layer number `layer`, with its cost, in the order of the operators. Returns
 * false for sizes beyond 64 bits, like cs_net_kept_sum. */
bool cs_net_kept_visit(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t layer,
                       const cs_op_cost *cost, const cs_net_counts *of, cs_net_layer *to);

/* How far the operators of a layer run again for the backward of operator p: past it if it keeps
 * its result, up to it if it keeps an input or has weights, which autograd saves before a kernel of
 * PyTorch's own runs (torch/utils/checkpoint.py, _StopRecomputationError); 0 if it keeps nothing. */
uint32_t cs_net_kept_reach(const cs_net *net, const cs_net_options *how, uint32_t p,
                           const cs_op_cost *cost);

/* After all visits: adds saved activations to the layers and the chain, and bytes that exist only
 * while operators run backward to their workspaces. `local`: NULL if the network is not split. */
bool cs_net_kept_sum(const cs_net *net, const cs_net_local *local, const cs_net_options *how,
                     cs_net_counts *of, cs_net_chain *chain);

/* ---- pieces of a layer: net-pieces.c; the runs of operators between exchanges ----
 *
 * If backward sums the gradients of a tensor that several places read (`deferred` in net-local.h),
 * the run of operators that read it becomes three pieces: gradients of weights alone, then the rest
 * of those operators, then the rest of the run. Backward passes them in the reverse order, so the
 * sum overlaps the first piece, and the second gather for the weights overlaps the second piece. */

/* Seconds of the local operators, and which of them run again (recompute.h). */
typedef struct cs_op_timing {
    const cs_piece_seconds *seconds;
    const uint32_t *runs;
} cs_op_timing;

/* Fills the pieces and exchanges of a layer, and its shared and expert parameters; without an
 * exchange there are no pieces. *exchange is the network's first exchange in this layer, and becomes
 * the first of the next layer. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_net_pieces_find(const cs_net_local *local, const cs_net_options *how,
                                           const cs_op_timing *timing, uint32_t *exchange,
                                           cs_net_layer *layer, cs_arena *arena, cs_error *error);

/* ---- tapes (tape.h): net-tape.c ---- */

/* Fills the tapes and parameters of `to`, in step with the chain's layers, in the arena. `local`:
 * NULL if the network is not split. With recompute_ops there are no tapes. CS_NO_MEMORY,
 * CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_net_tape_make(const cs_net *net, const cs_net_local *local,
                                         const cs_net_options *how, const cs_net_chain *chain,
                                         cs_layer *to, cs_arena *arena, cs_error *error);

#endif
