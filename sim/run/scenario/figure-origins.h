/* Where the figures of a runtime come from: whether each is the user's, was measured, or is
 * assumed, and on whose word. A scenario without the section "runtime" has none. */
#ifndef CS_SCENARIO_FIGURE_ORIGINS_H
#define CS_SCENARIO_FIGURE_ORIGINS_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/field.h"

#include <cjson/cJSON.h>
#include <stdint.h>

typedef enum cs_origin {
    CS_ORIGIN_GIVEN,    /* by the scenario */
    CS_ORIGIN_MEASURED, /* by a cost file */
    CS_ORIGIN_ASSUMED,  /* by the runtime */
    CS_ORIGIN_DEFAULT,  /* assumed too: the runtime says nothing of it */
    CS_N_ORIGINS
} cs_origin;

/* "given", "measured", "assumed", "default" */
extern const char *const cs_origin_names[CS_N_ORIGINS];

/* A member of a runtime, or what its figures stand on. */
typedef struct cs_figure_source {
    const char *key;   /* JSON pointer */
    const char *value; /* JSON, or words of what cannot be written in one value */
    cs_origin origin;
    const char *source; /* of an assumed one or a measured one; else NULL */
} cs_figure_source;

/* In the arena that it was made with. */
typedef struct cs_origins {
    const char *runtime; /* its name; NULL: the scenario has none */
    bool is_assumed;     /* the scenario does not name it */
    uint32_t n;
    cs_figure_source *figures; /* members in the order of cs_runtime_members, then what was
                                * measured */
} cs_origins;

/* Keys that runtimes have conventions for, all that there are, ended by {NULL}. */
typedef struct cs_runtime_member {
    const char *key; /* JSON pointer */
    bool network;    /* without a model that is built from operators it has no effect */
} cs_runtime_member;

extern const cs_runtime_member cs_runtime_members[];

/* The field of a member; NULL: runtimes have no convention for the key. */
const cs_field *cs_runtime_member_field(const char *key);

/* The default of a key, as a user would write it; "" where it has none. */
const char *cs_runtime_member_default(const char *key);

/* Names the usual runtime in a document that estimates the times of a device and names none. `list`
 * of facts/usual-runtime.json: "scenario", or "search" for plans other than the document's. */
CS_MUST_CHECK cs_status cs_runtime_assume(cJSON *root, const char *path, const char *list,
                                          cs_error *error);

/* Writes the conventions of the runtime that the document names into it, where their keys are not
 * given, and the section in its long form. A document without the section stays as it is,
 * unless a runtime is assumed.
 * `origins` gets where each member is from; NULL: the run is one of many that nobody looks at, for
 * which the allocator is played only where the document says so. */
CS_MUST_CHECK cs_status cs_runtime_apply(cJSON *root, const char *path, cs_arena *arena,
                                         cs_origins *origins, cs_error *error);

/* Writes the name under which runs with the document's runtime are compared with others:
 * "counts_as" of its description, which runtimes that are like it inherit; else its own name. */
void cs_runtime_counts_as(const cJSON *document, const char *path, char *text, size_t size);

/* {"name", "assumed", "figures": [{"key", "value", "is", "source"}]}; `is` as the origins are called, the
 * source null where there is none. NULL when memory runs out. */
cJSON *cs_origins_json(const cs_origins *origins);

#endif
