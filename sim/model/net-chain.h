/* The chain of a network that is divided already. For net-model.c; others use cs_net_chain_find. */
#ifndef CS_WORKLOAD_NET_CHAIN_H
#define CS_WORKLOAD_NET_CHAIN_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"

/* A network, and what is counted of it: all, or what one place has. */
typedef struct cs_divided_net {
    const cs_net *whole;
    const cs_net_local *local; /* NULL: it is not divided */
    const cs_net *net;
} cs_divided_net;

/* `local` is the caller's to finish, and has to live as long. Errors as of cs_net_chain_find. */
CS_MUST_CHECK cs_status cs_net_divide(const cs_net *net, const cs_net_options *how,
                                      cs_net_local *local, cs_divided_net *d, cs_error *error);

CS_MUST_CHECK cs_status cs_net_chain_of(const cs_divided_net *d, const cs_net_options *how,
                                        cs_net_chain *chain, cs_error *error);

#endif
