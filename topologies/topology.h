/* Topologies: how to build a platform from a few parameters. To add one: a file with a
 * `const cs_topology`, a line in registry.c, a scenario, a test. `ring.c` is the template. */
#ifndef CS_TOPOLOGIES_TOPOLOGY_H
#define CS_TOPOLOGIES_TOPOLOGY_H

#include "sim/base/field.h"
#include "topologies/platform.h"

typedef struct cs_topology {
    const char *name;
    const char *summary; /* one line, for `sim list` */
    const char *source;  /* paper or manual, or NULL */
    const cs_field *fields;
    size_t params_size; /* of the struct that `fields` fill */
    CS_MUST_CHECK cs_status (*build)(const void *params, uint32_t n_devices, cs_platform *platform,
                                     cs_error *error);
} cs_topology;

/* All topologies, ended by NULL. */
extern const cs_topology *const cs_topologies[];

/* The topology of that name, or NULL. */
const cs_topology *cs_topology_find(const char *name);

#endif
