/* Which operators are a layer of the chain; net-model.h says where layers end. For net-chain.c and
 * its neighbours: others find layers in the chain. */
#ifndef CS_WORKLOAD_NET_LAYERS_H
#define CS_WORKLOAD_NET_LAYERS_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"

/* Makes the layers of the chain: their names and operators, and nothing else. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_net_layers_make(const cs_net *net, cs_granularity granularity,
                                           cs_net_chain *chain, cs_error *error);

/* From operators of the whole network to those of the local one. */
void cs_net_layers_move(const cs_net_local *local, cs_net_chain *chain);

/* The block of the first operator from p on that is no view. */
uint32_t cs_net_block_from(const cs_net *net, uint32_t p);

static inline bool cs_net_is_carried(const cs_net *net, cs_tensor tensor)
{
    return net->carried > 0 && tensor == net->carried;
}

#endif
