/* Operators whose forward runs again (recompute.h) although less is not kept for it: what they make
 * is kept for operators that do not run again, or nothing of it is kept at all. */
#ifndef CS_WORKLOAD_IDLE_RECOMPUTE_H
#define CS_WORKLOAD_IDLE_RECOMPUTE_H

#include "sim/model/net-model.h"

typedef enum cs_recompute_effect {
    CS_RECOMPUTE_FREES,   /* without it more is kept; or it repeats nothing by itself */
    CS_RECOMPUTE_IDLE,    /* without it no more is kept, */
    CS_RECOMPUTE_DISCARD, /* and if its results were discarded as well, less would be */
} cs_recompute_effect;

/* What a name in options->recompute_ops, beside the others, does to the bytes that the layers keep.
 * Errors are those of cs_net_chain_find. */
CS_MUST_CHECK cs_status cs_recompute_effect_of(const cs_net *net, const cs_net_options *options,
                                               uint32_t name, cs_recompute_effect *effect,
                                               cs_error *error);

#endif
