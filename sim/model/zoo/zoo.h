/* The zoo: networks known by name.
 *
 * A family is described in a JSON file in facts/families (form: described.h). Only the general
 * decoder is written in C (decoder.c).
 *
 * A model is a family with other defaults: a file in facts/models, or a user's file of this form:
 *
 *     {"name": "llama3-8b", "family": "decoder", "parameters": {"layers": 32, ...}, "source": ...}
 */
#ifndef CS_WORKLOAD_ZOO_H
#define CS_WORKLOAD_ZOO_H

#include "sim/base/facts.h"
#include "sim/base/field.h"
#include "sim/model/net.h"

typedef struct cs_zoo_entry {
    const char *name;
    const char *summary; /* summary in one line */
    const char *source;  /* paper, and the implementation that the family follows */
    const cs_field *fields;
    size_t params_size;  /* bytes of the struct that `fields` fill */
    const void *variant; /* first argument of `build` after the network */
    void (*build)(cs_net *net, const void *variant, const void *params);
} cs_zoo_entry;

/* The family of general decoders, written in C. */
extern const cs_zoo_entry cs_zoo_decoder;

/* Returns the name of family `i`; NULL after the last one. */
const char *cs_zoo_name(size_t i);

/* The model files in facts/models, for cs_facts_load. */
extern const cs_facts_kind cs_model_kind;

/* Finds the family of that name and reads it into the arena, which the decoder does not use.
 * CS_INVALID if there is no such family; the message has the nearest names. `error` may be NULL. */
CS_MUST_CHECK cs_status cs_zoo_find(const char *name, cs_arena *arena, const cs_zoo_entry **family,
                                    cs_error *error);

/* Builds a family or a model. `name` is its name, an alias, or a FILE.json relative to the file
 * `from`, which may be NULL. `params` is a JSON object of parameters at `place`; NULL: all
 * defaults. */
CS_MUST_CHECK cs_status cs_zoo_build(const char *name, const char *from, const cJSON *params,
                                     const cs_json_place *place, cs_net *net, cs_error *error);

/* Copies a family's keys into the arena, with `parameters` (at `place`; NULL: none) as their
 * defaults. CS_INVALID: unknown key or wrong value. */
CS_MUST_CHECK cs_status cs_zoo_defaults(const cs_zoo_entry *family, const cJSON *parameters,
                                        const cs_json_place *place, cs_arena *arena,
                                        const cs_field **fields, cs_error *error);

/* Whether a document is a model, rather than a network or a config.json. */
bool cs_zoo_is_model(const cJSON *root);

#endif
