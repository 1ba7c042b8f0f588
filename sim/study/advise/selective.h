/* What selective recomputation computes again where the scenario lists no operators: what costs
 * little beside the memory that it frees, as in Megatron Core (--recompute-modules core_attn
 * layernorm moe_act; Korthikanti et al., 2022, section 5) and PaxML (SAVE_DOT_ONLY). These are
 * norms, activations and products of elements, and attention with its matrix in memory; flash
 * attention keeps no matrix, and to compute it again would free next to nothing. What they make is
 * kept for nobody else either, but for attention's result (Megatron Core: CheckpointWithoutOutput
 * around layernorm and moe_act, not around core_attn). Internal to sim/study/advise. */
#ifndef CS_ADVISE_SELECTIVE_H
#define CS_ADVISE_SELECTIVE_H

#include "sim/base/arena.h"
#include "sim/model/net.h"

typedef struct cs_selective {
    uint32_t n;
    const char **names; /* as "recompute_operators" has them; they live in the arena */
    uint32_t n_discards;
    const char **discards; /* those of "discard_operators" */
} cs_selective;

/* None in networks without attention. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_selective_find(const cs_net *net, cs_arena *arena,
                                          cs_selective *selective, cs_error *error);

#endif
