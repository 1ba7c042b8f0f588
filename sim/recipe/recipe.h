/* The scenario of a run description.
 *
 * The rules hold for all descriptions and are tables: facts/words. What a description does not state
 * is assumed as its framework and release have it, and said in `assumed`; so is what stands for
 * something that the simulator does not have. A run that needs more than the simulator has makes no
 * scenario: `missing` says why, the most important reason first. docs/reference/points.md has the
 * rules.
 */
#ifndef CS_RECIPE_RECIPE_H
#define CS_RECIPE_RECIPE_H

#include "sim/recipe/description.h"

enum { CS_RECIPE_NOTES = 16 };

typedef struct cs_recipe {
    cs_arena arena;
    cJSON *document;         /* the scenario; NULL if something is missing */
    cJSON *completed;        /* the description with all that was assumed */
    bool overlaps_reduction; /* gradients are reduced while the backward still runs */
    uint32_t n_missing, n_assumed;
    const char *missing[CS_RECIPE_NOTES]; /* "inference" */
    const char *assumed[CS_RECIPE_NOTES]; /* "attention is a fused kernel, where ..." */
} cs_recipe;

/* Zeroed recipes can be finished. */
void cs_recipe_finish(cs_recipe *recipe);

/* CS_OK also if something is missing. */
CS_MUST_CHECK cs_status cs_recipe_make(const cs_description *run, cs_recipe *recipe,
                                       cs_error *error);

#endif
