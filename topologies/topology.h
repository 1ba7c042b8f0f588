/* Topologies: how to build a platform from a few parameters. To add one: a file with a
 * `const cs_topology`, a line in registry.c, a scenario, a test. `ring.c` is the template;
 * README.md describes the existing ones and when to use which.
 *
 * A machine is a description in facts/machines, or in a user's file of the same form, whose
 * "platform" has the keys of a scenario's platform. A scenario names it like a topology:
 * {"topology": "dgx-h100"}, {"topology": "mine.json"}. */
#ifndef CS_TOPOLOGIES_TOPOLOGY_H
#define CS_TOPOLOGIES_TOPOLOGY_H

#include "sim/base/facts.h"
#include "sim/base/field.h"
#include "sim/base/text.h"
#include "topologies/platform.h"

typedef struct cs_topology {
    const char *name;
    const char *summary; /* one line, for `sim list` */
    const char *source;  /* paper or manual, or NULL */
    const cs_field *fields;
    size_t params_size;     /* of the struct that `fields` fill */
    bool unswitched;        /* links lead from device to device only: cs_topology_sharing */
    const char *stands_for; /* the "platform" of a machine, as JSON; else NULL. A machine has no
                             * functions below: its platform has them */
    const char *title; /* the name in a user's file, if this is a machine from one; else NULL */
    /* Checks parameters against each other and reads files that they name, once `fields` are read;
     * what it makes lives in the arena. NULL: nothing to check or read. */
    CS_MUST_CHECK cs_status (*read)(void *params, const cs_json_place *place, cs_arena *arena,
                                    cs_error *error);
    /* Its number of devices where that is fixed; NULL: it can have any number. */
    CS_MUST_CHECK cs_status (*devices)(const void *params, uint32_t *n, cs_error *error);
    CS_MUST_CHECK cs_status (*build)(const void *params, uint32_t n_devices, cs_platform *platform,
                                     cs_error *error);
} cs_topology;

/* All topologies except machines, ended by NULL. */
extern const cs_topology *const cs_topologies[];

/* The topology of that name, or NULL; no machine. */
const cs_topology *cs_topology_find(const char *name);

/* The files of facts/machines, for cs_facts_load. */
extern const cs_facts_kind cs_machine_kind;

/* Finds what a scenario names: a topology, or a machine by its name, an alias or its FILE.json,
 * which is relative to the file of `place`. A machine's topology is made in the arena. CS_INVALID:
 * the message names the closest one, and all known ones. */
CS_MUST_CHECK cs_status cs_topology_named(const char *name, const cs_json_place *place,
                                          cs_arena *arena, const cs_topology **kind,
                                          cs_error *error);

/* Adds the names of all topologies and machines; only topologies are listed as known. */
void cs_topology_guess(cs_guess *guess);

/* How links are shared where a scenario does not say: fairly (max_min) in what is switched or
 * routed, where packets of several senders take turns on a link; one message after the other (fifo)
 * on links without switches, on which only a device's own messages and those it passes on wait. */
cs_sharing cs_topology_sharing(const cs_topology *kind);

/* A topology with its parameters, in an arena. */
typedef struct cs_topology_choice {
    const cs_topology *kind;
    void *params;
} cs_topology_choice;

/* Reads {"topology": NAME, parameters}, or just NAME. */
CS_MUST_CHECK cs_status cs_topology_choose(const cJSON *value, const cs_json_place *place,
                                           cs_arena *arena, cs_topology_choice *choice,
                                           cs_error *error);

/* The same as a member of other parameters: {"node", CS_FIELD_VARIANT, offsetof(...),
 * CS_TOPOLOGY_CHOICE, .doc = ...}. */
extern const cs_field_kind cs_topology_choice_kind;
#define CS_TOPOLOGY_CHOICE .size = sizeof(cs_topology_choice), .kind = &cs_topology_choice_kind

/* Reads the parameters of a topology from `object`, in which the keys of the table `also` may stand
 * beside them. */
CS_MUST_CHECK cs_status cs_topology_params(const cs_topology *kind, const cJSON *object,
                                           const cs_json_place *place, const cs_field *also,
                                           void *also_out, cs_arena *arena, void **params,
                                           cs_error *error);

/* Builds a platform, with parallel links numbered ("leaf0 to spine0 #2"). */
CS_MUST_CHECK cs_status cs_topology_build(const cs_topology *kind, const void *params,
                                          uint32_t n_devices, cs_platform *platform,
                                          cs_error *error);

/* Builds what a text in JSON says, {"topology": ...}; messages and the platform call it `name`. */
CS_MUST_CHECK cs_status cs_topology_build_text(const char *name, const char *text,
                                               uint32_t n_devices, cs_platform *platform,
                                               cs_error *error);

/* Kinds of networks between nodes: values of a cluster's key "fabric". Ended by NULL. */
extern const char *const cs_fabric_names[];

#endif
