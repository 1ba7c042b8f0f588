/* Operators that selective recomputation recomputes if the scenario lists none: operators that cost
 * little time for the memory that they free, as in Megatron Core (--recompute-modules core_attn
 * layernorm moe_act; Korthikanti et al., 2022, section 5) and PaxML (SAVE_DOT_ONLY). These are
 * norms, activations, products of elements, and attention that stores its matrix; flash attention
 * stores no matrix, so recomputing it would free next to nothing. Their results are not kept for
 * other operators either, except the result of attention (Megatron Core: CheckpointWithoutOutput
 * around layernorm and moe_act, not around core_attn). Internal to sim/study/advise. */
#ifndef CS_ADVISE_SELECTIVE_H
#define CS_ADVISE_SELECTIVE_H

#include "sim/base/arena.h"
#include "sim/model/net.h"

typedef struct cs_selective {
    uint32_t n;
    const char **names; /* names as in "recompute_operators"; the arena owns them */
    uint32_t n_discards;
    const char **discards; /* names as in "discard_operators" */
} cs_selective;

/* Finds the operators; none in networks without attention. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_selective_find(const cs_net *net, cs_arena *arena,
                                          cs_selective *selective, cs_error *error);

#endif
