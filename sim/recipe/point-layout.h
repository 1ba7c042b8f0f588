/* Which blocks make the stages: by the options stage_layers, stages_with_parts and last_stage_layers,
 * numbers of blocks per stage, or by Megatron Core's argument pipeline-model-parallel-layout (NVIDIA/
 * Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py): a letter for each part
 * of the network, E for the embedding, t for a block, m for a module of multi-token prediction, L
 * for the loss with the matrix in front of it, and | between stages. "t*3" stands for three letters,
 * "(tt|)*6" for six groups; commas and blanks mean nothing. Stage s is on rank s mod P. Internal to
 * sim/recipe.
 */
#ifndef CS_VALIDATE_POINT_LAYOUT_H
#define CS_VALIDATE_POINT_LAYOUT_H

#include "sim/recipe/point-rules.h"

enum { CS_LAYOUT_STAGES = 1024 };

typedef struct cs_point_layout {
    uint32_t n_stages;                /* 0: the point does not state its stages */
    uint32_t first[CS_LAYOUT_STAGES]; /* layers in front of each; layer 0 is the embedding */
} cs_point_layout;

/* What a layout says of a network and its ranks that it does not fit to; NULL: it fits. */
const char *cs_point_layout_of(const cs_point *point, cs_point_layout *layout);

/* Changes the point's stages a rank, of which rules->point has a copy, to those of the layout;
 * misses what does not fit. */
void cs_point_rules_layout(cs_point_rules *rules, cs_point_parallel *mesh);

#endif
