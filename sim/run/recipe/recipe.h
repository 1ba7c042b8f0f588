/* From a run description to a scenario.
 *
 * The rules hold for all descriptions and are tables: facts/words. Keys that a description does not
 * state get the values of its framework and release; `assumed` lists them, and replacements for
 * features that the simulator lacks. If a run needs a feature without a replacement, it has no
 * scenario, and `missing` lists the reasons, the most important first. The rules:
 * docs/reference/points.md.
 */
#ifndef CS_RECIPE_RECIPE_H
#define CS_RECIPE_RECIPE_H

#include "sim/run/recipe/description.h"

enum { CS_RECIPE_NOTES = 16 };

typedef struct cs_recipe {
    cs_arena arena;
    cJSON *document;         /* the scenario; NULL if something is missing */
    cJSON *completed;        /* the description, with assumed values */
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
