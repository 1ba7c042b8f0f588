/* How long the kernels of an operator take: as measured, or else by the kernels of a runtime or a
 * roofline. For net-chain.c. */
#ifndef CS_WORKLOAD_OP_SECONDS_H
#define CS_WORKLOAD_OP_SECONDS_H

#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"

/* The pieces of work of an operator, with what is known of their times. */
typedef struct cs_op_times {
    double operator[CS_PASS_UPDATE]; /* s; negative: not measured */
    double accumulate;               /* of all its inputs; negative: not all measured */
    double update;                   /* negative: not measured */
    int64_t workspace;               /* negative: not known */
} cs_op_times;

/* What is measured of an operator. Adds to the layer's n_measured and n_estimated. */
cs_op_times cs_op_times_find(const cs_net *net, const cs_net_options *how, const cs_op *op,
                             cs_net_layer *layer);

/* Forward, gradients of the input, gradients of the weights. */
cs_piece_seconds cs_op_seconds_of(const cs_net_options *how, const cs_op *op,
                                  const cs_op_cost *cost, const cs_op_times *times);

/* Weights that are trained are cast once they are updated: read, and written as their copies. */
double cs_op_seconds_cast(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost);

/* The roofline of an update is that of all parameters of a layer at once. */
double cs_op_seconds_update(const cs_net_options *how, int64_t parameters);

/* To count the zeros in the gradients of so many parameters in so many tensors. */
double cs_op_seconds_count_zeros(const cs_net_options *how, int64_t parameters, uint32_t tensors);

#endif
