/* Between the sources that make operators; not for those that use them. */
#ifndef CS_WORKLOAD_NET_BUILD_H
#define CS_WORKLOAD_NET_BUILD_H

#include "sim/model/net.h"

/* Per sample and tensor. Beyond this, bytes of a batch of 2^20 samples could leave 63 bits. */
#define CS_MOST_ELEMENTS (INT64_C(1) << 36)

/* True while the network has no error and all inputs are tensors. */
bool cs_net_usable(const cs_net *net, const cs_tensor *inputs, uint32_t n_inputs);

/* An operator that reads these tensors. */
cs_op cs_net_op(cs_op_kind kind, const cs_tensor *inputs, uint32_t n_inputs);

/* Adds it with an output of that shape, and returns the output. */
cs_tensor cs_net_add_op(cs_net *net, const char *name, cs_op *op, const cs_shape *shape,
                        cs_element element);

#endif
