/* The zoo: networks known by name, each written down as its architecture.
 *
 * To add one: a file here with a table of parameters, a function that makes the calls of
 * sim/workload/net.h and a `const cs_zoo_entry`, and a line in registry.c. README.md in the
 * folder above has a complete example; vgg.c is the shortest one.
 */
#ifndef CS_WORKLOAD_ZOO_H
#define CS_WORKLOAD_ZOO_H

#include "sim/base/field.h"
#include "sim/workload/net.h"

typedef struct cs_zoo_entry {
    const char *name;
    const char *summary; /* one line */
    const char *source;  /* paper, and the implementation that is followed */
    const cs_field *fields;
    size_t params_size;  /* of the struct that `fields` fill */
    const void *variant; /* what tells it from others of its family, or NULL */
    void (*build)(cs_net *net, const void *variant, const void *params);
} cs_zoo_entry;

/* All networks, ended by NULL. */
extern const cs_zoo_entry *const cs_zoo[];

/* The entry of that name; CS_INVALID, with the known names, when there is none. `error` may be
 * NULL. */
CS_MUST_CHECK cs_status cs_zoo_find(const char *name, const cs_zoo_entry **entry, cs_error *error);

/* Builds a network with the parameters of a JSON object (NULL: all defaults). */
CS_MUST_CHECK cs_status cs_zoo_build(const cs_zoo_entry *entry, const cJSON *params,
                                     const cs_json_place *place, cs_net *net, cs_error *error);

#endif
