/* Effects of the keys of a description on its scenario. */
#ifndef CS_RECIPE_EFFECTS_H
#define CS_RECIPE_EFFECTS_H

#include "sim/run/recipe/recipe.h"

typedef enum cs_key_effect_kind {
    CS_KEY_UNDERSTOOD, /* `text`: the keys of the scenario that it decides */
    CS_KEY_NONE,       /* `text`: why the scenario is the same without it */
    CS_KEY_UNKNOWN,    /* `text`: the known key that is nearest, or "" */
} cs_key_effect_kind;

typedef struct cs_key_effect {
    cs_key_effect_kind kind;
    const char *key; /* key of the description: "/parallel/tp" */
    const char *text;
} cs_key_effect;

typedef struct cs_key_effects {
    cs_arena arena;
    uint32_t n, capacity;
    cs_key_effect *items; /* in the order of the description; unknown keys last */
} cs_key_effects;

/* Zeroed effects can be finished. */
void cs_effects_finish(cs_key_effects *effects);

/* Finds them by leaving each key out in turn, or by changing it where it is required, and comparing
 * the scenarios. `made` is made of the whole description. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_effects_find(const cs_description *run, const cs_recipe *made,
                                        cs_key_effects *effects, cs_error *error);

#endif
