/* The pieces of a layer of a local network: the runs of operators between exchanges.
 *
 * Where backward sums the gradients of a tensor that several places read (`deferred` in
 * net-local.h), three pieces stand for the run of operators that read it: gradients of weights
 * alone, then the rest of those operators, then what follows in the run. Backward passes them in
 * the reverse order, so that the sum goes on beside the first piece, and what is gathered again for
 * the weights beside the second.
 */
#ifndef CS_WORKLOAD_NET_PIECES_H
#define CS_WORKLOAD_NET_PIECES_H

#include "sim/model/net-local.h"
#include "sim/model/net-model.h"

/* Seconds of the local operators, and which of them run again (recompute.h). */
typedef struct cs_op_timing {
    const cs_piece_seconds *seconds;
    const uint32_t *runs;
} cs_op_timing;

/* Fills the pieces and exchanges of a layer, and its shared and expert parameters; without an
 * exchange there are no pieces. *exchange is the first exchange of the network
 * that belongs to the layer; it becomes that of the next. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_net_pieces_find(const cs_net_local *local, const cs_net_options *how,
                                           const cs_op_timing *timing, uint32_t *exchange,
                                           cs_net_layer *layer, cs_arena *arena, cs_error *error);

#endif
