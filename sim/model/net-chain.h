/* How a network becomes a chain, step by step: layers, seconds, saved activations, pieces, tapes.
 * For net-chain.c, net-model.c and the files of the steps; all other files use
 * cs_net_chain_find. */
#ifndef CS_WORKLOAD_NET_CHAIN_H
#define CS_WORKLOAD_NET_CHAIN_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"

/* A network, and the part of it that is counted: all of it, or the part of one place. */
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

/* Changes the ranges of the layers from operators of the whole network to operators of the local
 * network. */
void cs_net_layers_move(const cs_net_local *local, cs_net_chain *chain);

/* The block of the first operator from p on that is not a view. */
uint32_t cs_net_block_from(const cs_net *net, uint32_t p);

static inline bool cs_net_is_carried(const cs_net *net, cs_tensor tensor)
{
    return net->carried > 0 && tensor == net->carried;
}

/* Finds the articulation points of a graph in topological order: nodes that lie on every path from
 * the inputs to the outputs. All nodes between two of them are one layer, and no chain is finer.
 * `last_reader[p]` is the position of the last node that reads node p, or n for an output.
 * `last_fed` is the last position that reads an input. Writes one past the last position of each
 * layer to `ends`, which needs room for n, and returns the number of layers. n >= 1. Linear in
 * n. */
uint32_t cs_articulation_find(const uint32_t *last_reader, uint32_t n, uint32_t last_fed,
                              uint32_t *ends);

/* ---- seconds: op-seconds.c; measured, or computed from a runtime's kernels or a roofline ---- */

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

/* Seconds of an operator's forward, gradients of the inputs and gradients of the weights. */
cs_piece_seconds cs_op_seconds_of(const cs_net_options *how, const cs_op *op,
                                  const cs_op_cost *cost, const cs_op_times *times);

/* Seconds to cast trained weights after an update: reads the weights and writes their narrow
 * copies. */
double cs_op_seconds_cast(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost);

/* Estimated seconds of an update. All parameters of a layer are updated by one roofline kernel. */
double cs_op_seconds_update(const cs_net_options *how, int64_t parameters);

/* Seconds to count the zeros in the gradients of `parameters` parameters in `tensors` tensors. */
double cs_op_seconds_count_zeros(const cs_net_options *how, int64_t parameters, uint32_t tensors);

/* ---- saved activations: net-kept.c; operators are visited one by one, then summed up ---- */

/* A storage, until the operators that keep it are known. */
typedef struct cs_net_storage {
    int64_t bytes;   /* bytes of the first tensor in it; the others are views */
    uint32_t layer;  /* last layer that reads it, or else the layer that writes it */
    uint32_t writer; /* first operator that writes it; CS_NO_TENSOR: an input */
    bool used, kept;
    /* whether a recomputed operator (recompute.h) reads it whose writer is in another layer, or is
     * not recomputed itself */
    bool read_again;
    bool kept_again; /* whether other recomputed operators keep it */
    /* whether it is recomputed for operators that are not, because its result is discarded */
    bool discarded;
    bool offloaded; /* whether an operator whose saved activations are offloaded keeps it */
} cs_net_storage;

/* Values per operator, while layers are counted. */
typedef struct cs_net_counts {
    cs_net_storage *storages; /* per storage */
    int64_t *workspaces;      /* bytes of the kernels' workspaces */
    int64_t *steps;           /* see cs_backward */
    int64_t *peaks;           /* bytes of gradients and workspace */
    uint32_t *weights_at;     /* operator whose backward makes the gradients of its weights */
    cs_piece_seconds *seconds;
    uint32_t *runs; /* first operator of its run, + 1, if it is recomputed; else 0 */
    bool *discards; /* whether its result is not saved for other operators */
    bool *offloads; /* whether its saved activations go to the host */
    /* per run, at its first operator: */
    uint32_t *needed; /* last operator that needs one of the run's results */
    int64_t *held;    /* bytes that the run holds during its backward */
} cs_net_counts;

/* Visits operator p of layer number `layer`, with its cost; operators are visited in order. Returns
 * false if sizes exceed 64 bits, as cs_net_kept_sum does. */
bool cs_net_kept_visit(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t layer,
                       const cs_op_cost *cost, const cs_net_counts *of, cs_net_layer *to);

/* How far the operators of a layer are recomputed for the backward of operator p: past p if p keeps
 * its result; up to p if p keeps an input or has weights, because autograd saves these before a
 * kernel of PyTorch's own runs (torch/utils/checkpoint.py, _StopRecomputationError); 0 if p keeps
 * nothing. */
uint32_t cs_net_kept_reach(const cs_net *net, const cs_net_options *how, uint32_t p,
                           const cs_op_cost *cost);

/* Sums up after all visits: adds saved activations to the layers and the chain, and bytes that
 * exist only while operators run backward to the operators' workspaces. `local`: NULL if the
 * network is not split. */
bool cs_net_kept_sum(const cs_net *net, const cs_net_local *local, const cs_net_options *how,
                     cs_net_counts *of, cs_net_chain *chain);

/* ---- pieces of a layer: net-pieces.c; the runs of operators between exchanges ----
 *
 * If backward sums the gradients of a tensor that several places read (`deferred` in net-local.h),
 * the run of operators that read it becomes three pieces: gradients of weights alone, then the rest
 * of those operators, then the rest of the run. Backward passes them in the reverse order, so the
 * sum overlaps the first piece, and the second gather for the weights overlaps the second piece. */

/* Seconds of the local operators, and which of them are recomputed (recompute.h). */
typedef struct cs_op_timing {
    const cs_piece_seconds *seconds;
    const uint32_t *runs;
} cs_op_timing;

/* Fills the pieces and exchanges of a layer, and the numbers of its shared, copied and expert
 * parameters. A layer without exchanges has no pieces. *exchange is the network's first exchange in
 * this layer, and is moved to the first exchange of the next layer. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_net_pieces_find(const cs_net_local *local, const cs_net_options *how,
                                           const cs_op_timing *timing, uint32_t *exchange,
                                           cs_net_layer *layer, cs_arena *arena, cs_error *error);

/* ---- tapes (tape.h): net-tape.c ---- */

/* Fills the tapes and the parameters of the layers `to`, one per layer of the chain, in the arena.
 * `local`: NULL if the network is not split. With recompute_ops or offload there are no tapes.
 * CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_net_tape_make(const cs_net *net, const cs_net_local *local,
                                         const cs_net_options *how, const cs_net_chain *chain,
                                         cs_layer *to, cs_arena *arena, cs_error *error);

#endif
