/* Time of the host to start the kernels of a layer. For net-chain.c. */
#ifndef CS_WORKLOAD_HOST_WORK_H
#define CS_WORKLOAD_HOST_WORK_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"

/* The state while the operators of a layer are visited. */
typedef struct cs_host_work {
    double experts;         /* host: s of the forward, from the rows of experts to their sum */
    double experts_seconds; /* s that the device computes for them */
    bool among_experts;     /* the operator is one of them */
    bool in_graph;          /* the operator is part of a CUDA graph */
} cs_host_work;

/* Whether gradients of weights are made apart from their sums (kept.h). */
static inline bool cs_net_makes_apart(const cs_net_options *how)
{
    return how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_APART;
}

/* Fills the host's part of an operator's seconds; operators come in their order. */
void cs_host_work_add(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                      cs_piece_seconds *seconds, cs_host_work *work);

/* Sums up the host's seconds of a layer. Where the host waits for each kernel, its time is added to
 * the kernels' time instead. Where it waits for the rows of experts, it starts none of their
 * kernels before. A layer that is not cut into pieces there (`is_cut`) takes longer by the time
 * that the device waits. */
void cs_host_work_end(const cs_host_work *work, bool takes_turns, bool is_cut,
                      cs_piece_seconds *seconds, cs_net_layer *layer);

#endif
