/* The tapes (tape.h) of a network's layers. */
#ifndef CS_WORKLOAD_NET_TAPE_H
#define CS_WORKLOAD_NET_TAPE_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"

/* Fills the tapes and parameters of `to`, in step with the chain's layers, in the arena. `local` is
 * what the network is local to, or NULL. Where operators by themselves run again (recompute_ops)
 * there are no tapes. CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_net_tape_make(const cs_net *net, const cs_net_local *local,
                                         const cs_net_options *how, const cs_net_chain *chain,
                                         cs_layer *to, cs_arena *arena, cs_error *error);

#endif
