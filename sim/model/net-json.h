/* A network and its chain as JSON, every figure that is computed from the architecture. */
#ifndef CS_WORKLOAD_NET_JSON_H
#define CS_WORKLOAD_NET_JSON_H

#include "sim/model/net-model.h"

#include <cjson/cJSON.h>

/* Totals, and per layer its operators: kind, shapes, parameters, flop of the three passes, bytes
 * moved, kept, workspace, seconds. Keys end in their unit. NULL when memory runs out. */
cJSON *cs_net_json(const cs_net *net, const cs_net_options *options, const cs_net_chain *chain);

#endif
