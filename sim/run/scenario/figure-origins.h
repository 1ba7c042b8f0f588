/* Origins of a runtime's settings: whether each was given by the user, measured or assumed, and its
 * source. A scenario without the section "runtime" has none. */
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
    CS_ORIGIN_DEFAULT,  /* also assumed: the runtime has no convention for the key */
    CS_N_ORIGINS
} cs_origin;

/* "given", "measured", "assumed", "default" */
extern const char *const cs_origin_names[CS_N_ORIGINS];

/* A setting of a runtime, or a set of measurements. */
typedef struct cs_figure_source {
    const char *key;   /* JSON pointer */
    const char *value; /* JSON, or a description in words */
    cs_origin origin;
    const char *source; /* source of an assumed or measured value; else NULL */
} cs_figure_source;

/* Lives in the arena that it was made with. */
typedef struct cs_origins {
    const char *runtime; /* name of the runtime; NULL: the scenario has none */
    bool is_assumed;     /* the runtime was assumed, not named by the scenario */
    uint32_t n;
    cs_figure_source *figures; /* members in the order of cs_runtime_members, then the
                                * measurements */
} cs_origins;

/* All keys that runtimes can have conventions for; ended by {NULL}. */
typedef struct cs_runtime_member {
    const char *key; /* JSON pointer */
    bool network;    /* has an effect only on models that are built from operators */
} cs_runtime_member;

extern const cs_runtime_member cs_runtime_members[];

/* Returns the field of a member; NULL: runtimes have no convention for the key. */
const cs_field *cs_runtime_member_field(const char *key);

/* Returns the default of a key as a user would write it; "": no default. */
const char *cs_runtime_member_default(const char *key);

/* Names the usual runtime in a document that estimates the times of a device but names no runtime.
 * `list` selects an entry of facts/usual-runtime.json: "scenario", or "search" for plans other than
 * the document's. */
CS_MUST_CHECK cs_status cs_runtime_assume(cJSON *root, const char *path, const char *list,
                                          cs_error *error);

/* Expands the section "runtime" of the document and writes the conventions of its runtime into the
 * keys that are not given. Leaves a document without the section unchanged, unless a runtime is
 * assumed. `origins` gets the origin of each member. NULL: the run is one of many whose reports
 * nobody reads; its allocations are replayed only if the document itself asks for an allocator. */
CS_MUST_CHECK cs_status cs_runtime_apply(cJSON *root, const char *path, cs_arena *arena,
                                         cs_origins *origins, cs_error *error);

/* Writes the name under which runs with the document's runtime are grouped for comparisons:
 * "counts_as" of its description (may be inherited), else its own name. */
void cs_runtime_counts_as(const cJSON *document, const char *path, char *text, size_t size);

/* Returns {"name", "assumed", "figures": [{"key", "value", "is", "source"}]}; "is" is one of
 * cs_origin_names, "source" is null if there is none. NULL if memory runs out. */
cJSON *cs_origins_json(const cs_origins *origins);

#endif
