/* Rules from a run description to a scenario. Internal to sim/run/recipe.
 *
 * All rules read and write one document, the view. It holds the description under its own keys,
 * with assumed values; "is": facts that follow from the description; "device": the description of
 * the GPU; and "scenario": the new scenario. The files of facts/words hold lists of
 * conventions (sim/base/conventions.h) on keys of the view. Here a value that begins with "/" is
 * the value of that key; a convention whose key is not there does not apply. "note" is added to
 * what is assumed when the convention is used; {/key} in it is the value of a key.
 */
#ifndef CS_RECIPE_RULES_H
#define CS_RECIPE_RULES_H

#include "sim/model/accelerator.h"
#include "sim/run/recipe/recipe.h"

#include <stdio.h>

enum { CS_STAGES_MOST = 1024 };

/* Stages that a description states. */
typedef struct cs_stages {
    uint32_t n;                     /* 0: it states none */
    uint32_t first[CS_STAGES_MOST]; /* layers in front of each; layer 0 is the embedding */
} cs_stages;

typedef struct cs_rules {
    const cs_description *run; /* with assumed values */
    cs_recipe *made;
    cJSON *view;
    cJSON *defaults; /* values of keys that the description does not state; NULL: none */
    cJSON *tables;   /* files of facts/words that were read */
    cs_stages stages;
    cs_error *error;
    cs_status status; /* first failure */
} cs_rules;

/* Notes beyond CS_RECIPE_NOTES, and repeated ones, are dropped. */
void cs_rules_miss(cs_rules *rules, const char *format, ...) CS_PRINTF(2, 3);
void cs_rules_assume(cs_rules *rules, const char *format, ...) CS_PRINTF(2, 3);

/* Returns the value of a key of the view, or NULL. */
const cJSON *cs_rules_at(const cs_rules *rules, const char *key);

/* Whether the value of a key is this text, number (as text) or truth. */
bool cs_rules_is(const cs_rules *rules, const char *key, const char *text);

/* Gives a key of the view a value, which the function takes over; NULL: memory ran out. */
void cs_rules_put(cs_rules *rules, const char *key, cJSON *value);

/* Finds the description of a device, a machine or a runtime. Returns its name; `name` itself if it
 * names a file, FILE.json; NULL if there is no such description. */
const char *cs_rules_find(const cs_facts_kind *kind, const char *name);

/* Uses a list of conventions; or a list of a file of facts/words. */
void cs_rules_apply(cs_rules *rules, const cJSON *list);
void cs_rules_use(cs_rules *rules, const char *file, const char *list);

/* Adds the notes of a list of checks: {"missing" or "assumed": text, "with": conditions, "needs":
 * conditions}. A note is added if all of "with" hold, and not all of "needs". */
void cs_rules_check(cs_rules *rules, const char *file, const char *list);

/* Puts the operators that the words in `given` mean, by a list of operators.json, under a key of
 * the view; with `discards` those only that discard. Returns whether there are any. */
bool cs_rules_operators(cs_rules *rules, const char *list, const char *given, bool discards,
                        const char *key);

/* Whether a list of operators.json has one of the words in `given`. Unknown words in brackets are
 * noted as assumed; `note` takes a length and a text ("%.*s"). */
bool cs_rules_knows_words(cs_rules *rules, const char *list, const char *given, const char *note);

/* DualPipe on P ranks is two replicas of DualPipeV on P / 2 each: ranks r and P - 1 - r hold the
 * same two stages and run the same passes, of half the micro-batches each, and reduce their
 * gradients together. The only difference is one message in the middle, where a micro-batch goes on
 * to the other half, and stays on its device in DualPipeV. Converts the mesh and the batch of such
 * a run to DualPipeV. */
void cs_rules_halve(cs_rules *rules, cs_description_parallel *mesh, cs_description_batch *batch);

/* Reads the stated stages, and sets the number of stages per rank accordingly. */
void cs_rules_read_stages(cs_rules *rules, cs_description_parallel *mesh);

/* Returns the number of stages per rank: as stated, or two in a V. */
uint32_t cs_rules_chunks(const cs_description *run);

/* Writes /scenario/schedule/partition. */
void cs_rules_partition(cs_rules *rules);

/* Writes /scenario/platform. */
void cs_rules_platform(cs_rules *rules);

/* The device that the run's GPU is; "" where it is none. */
const char *cs_rules_gpu(const cs_description *run);

/* Whether NVLinks join the GPUs of several nodes, as in a rack. Needs "device" in the view. */
bool cs_rules_rack(cs_rules *rules, const cs_description *run);

/* The same device; NULL and noted as missing where it is none. */
const char *cs_rules_device(cs_rules *rules);

#endif
