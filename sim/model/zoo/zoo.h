/* The zoo: networks known by name.
 *
 * A family is a description in facts/families, of the form in described.h. Only the general decoder
 * is written in C (decoder.c).
 *
 * A model is a family with other defaults: a file in facts/models, or a user's file of this form,
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
    const char *summary; /* one line */
    const char *source;  /* paper, and the implementation that is followed */
    const cs_field *fields;
    size_t params_size;  /* of the struct that `fields` fill */
    const void *variant; /* for `build` */
    void (*build)(cs_net *net, const void *variant, const void *params);
} cs_zoo_entry;

/* The general decoder. */
extern const cs_zoo_entry cs_zoo_decoder;

/* The name of family `i`; NULL after the last one. */
const char *cs_zoo_name(size_t i);

/* The files of facts/models, for cs_facts_load. */
extern const cs_facts_kind cs_model_kind;

/* The family of that name, in the arena (which the decoder needs none of); CS_INVALID, with the
 * nearest names, if there is none. `error` may be NULL. */
CS_MUST_CHECK cs_status cs_zoo_find(const char *name, cs_arena *arena, const cs_zoo_entry **family,
                                    cs_error *error);

/* Builds a family, or a model by its name, an alias or its FILE.json (relative to the file `from`,
 * which may be NULL), with the parameters of a JSON object at `place` (NULL: all defaults). */
CS_MUST_CHECK cs_status cs_zoo_build(const char *name, const char *from, const cJSON *params,
                                     const cs_json_place *place, cs_net *net, cs_error *error);

/* The keys of a family, in the arena, with the defaults that `parameters` (at `place`, or NULL)
 * states; CS_INVALID: a key is unknown, or a value wrong. */
CS_MUST_CHECK cs_status cs_zoo_defaults(const cs_zoo_entry *family, const cJSON *parameters,
                                        const cs_json_place *place, cs_arena *arena,
                                        const cs_field **fields, cs_error *error);

/* Whether a document is a model, and no network or config.json. */
bool cs_zoo_is_model(const cJSON *root);

#endif
