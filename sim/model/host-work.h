/* Host time to start the kernels of a layer. Internal to net-chain.c. */
#ifndef CS_WORKLOAD_HOST_WORK_H
#define CS_WORKLOAD_HOST_WORK_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"

/* State while the operators of a layer are visited. */
typedef struct cs_host_work {
    /* host seconds for the forward of the experts, from the receipt of their rows to their sum */
    double experts;
    double experts_seconds; /* device seconds for the same operators */
    bool among_experts;     /* whether the current operator is one of these */
    bool in_graph;          /* whether the current operator is part of a CUDA graph */
} cs_host_work;

/* Whether weight gradients are made in separate memory before they are summed (kept.h). */
static inline bool cs_net_makes_apart(const cs_net_options *how)
{
    return how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_APART;
}

/* Fills in the host seconds of an operator; must be called for the operators in order. */
void cs_host_work_add(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                      cs_piece_seconds *seconds, cs_host_work *work);

/* Sums up the host seconds of a layer. If the host waits for each kernel (`takes_turns`), its time
 * is added to the kernels' time instead. If the host waits for the rows of the experts, it starts
 * their kernels only afterwards; unless the layer is cut into pieces there (`is_cut`), it takes
 * longer by the time that the device waits. */
void cs_host_work_end(const cs_host_work *work, bool takes_turns, bool is_cut,
                      cs_piece_seconds *seconds, cs_net_layer *layer);

#endif
