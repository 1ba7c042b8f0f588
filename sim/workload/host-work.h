/* What the host does to start the kernels of a layer, and how long the device waits for it. For
 * net-chain.c. */
#ifndef CS_WORKLOAD_HOST_WORK_H
#define CS_WORKLOAD_HOST_WORK_H

#include "sim/workload/net-local.h"
#include "sim/workload/net-model.h"
#include "sim/workload/op-cost.h"

/* What the host does for a layer. */
typedef struct cs_host_work {
    cs_host_seconds all;
    double experts;         /* s of the forward, from the rows of experts on to their sum */
    double experts_seconds; /* what that takes on the device */
    bool among_experts;     /* the operator is part of it */
    bool in_graph;          /* and starts from a graph */
} cs_host_work;

/* Whether gradients of weights are made apart from their sums (kept.h). */
static inline bool cs_net_makes_apart(const cs_net_options *how)
{
    return how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_APART;
}

/* Adds the starts of an operator's kernels; operators come in their order. */
void cs_host_work_add(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                      const cs_piece_seconds *seconds, cs_host_work *host);

/* Adds those of a layer's messages. `local`: NULL where the network is not divided. */
void cs_host_work_add_messages(const cs_net_local *local, const cs_net_options *how,
                               const cs_net_layer *layer, cs_host_seconds *host);

/* The host starts all kernels of a pass over a layer, one after the other, while the device
 * computes; a layer takes as long as the slower of the two. Where the host waits for the rows of
 * experts it has started no kernel behind that point, and the device waits for it if the experts'
 * kernels take less than to start them; the time is lost, whatever the host gains later. Where it
 * waits for each kernel, the two take turns. Adds the time lost to the seconds of the layer and of
 * its operators. */
void cs_host_work_wait(const cs_host_work *work, bool takes_turns, cs_piece_seconds *seconds,
                       cs_net_layer *layer);

#endif
