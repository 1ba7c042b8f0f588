/* Low-rank adapters (LoRA; Hu et al., ICLR 2022): a network whose weights are frozen, and beside
 * some of its linear layers a pair of small ones that are trained, y = W x + B A x, with A of
 * (rank, features of x) and B of (features of y, rank). The factor alpha / rank is taken to be
 * part of B.
 */
#ifndef CS_WORKLOAD_NET_ADAPTERS_H
#define CS_WORKLOAD_NET_ADAPTERS_H

#include "sim/base/field.h"
#include "sim/workload/net.h"

typedef struct cs_adapters {
    uint32_t rank;
    cs_list
        targets; /* const char *: names of linear layers, or ends of them: "q_proj", "mlp.up_proj" */
} cs_adapters;

/* rank, targets; ended by {0}. */
extern const cs_field cs_adapter_fields[];

/* Gives a network its adapters. CS_INVALID, with the place of the target, when it is the name of no
 * linear layer, or of experts'; the network is then as it was. */
CS_MUST_CHECK cs_status cs_net_adapt(cs_net *net, const cs_adapters *adapters,
                                     const cs_json_place *place, cs_error *error);

#endif
