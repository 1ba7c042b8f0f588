/* Topologies: functions that build a platform from a few parameters. To add one: a file with a
 * `const cs_topology`, a line in registry.c, a scenario, a test. `ring.c` is the template;
 * README.md describes the existing topologies and when to use which.
 *
 * A machine is a description in facts/machines, or in a user's file of the same form, whose
 * "platform" has the keys of a scenario's platform. Scenarios refer to it like to a topology:
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
    size_t params_size; /* bytes of the struct that `fields` fill */
    bool unswitched;    /* all links are between devices (see cs_topology_sharing) */
    /* machine: its "platform" as JSON, and no functions below; otherwise NULL */
    const char *stands_for;
    const char *title; /* machine from a user's file: its name; otherwise NULL */
    /* Checks parameters against each other and reads files that they name, after `fields` were
     * read; its allocations are in the arena. NULL: nothing to check or read. */
    CS_MUST_CHECK cs_status (*read)(void *params, const cs_json_place *place, cs_arena *arena,
                                    cs_error *error);
    /* Number of devices, if it is fixed; NULL: any number. */
    CS_MUST_CHECK cs_status (*devices)(const void *params, uint32_t *n, cs_error *error);
    CS_MUST_CHECK cs_status (*build)(const void *params, uint32_t n_devices, cs_platform *platform,
                                     cs_error *error);
} cs_topology;

/* All topologies except machines, NULL-terminated. */
extern const cs_topology *const cs_topologies[];

/* Returns the topology of that name, not a machine; or NULL. */
const cs_topology *cs_topology_find(const char *name);

/* The files of facts/machines, for cs_facts_load. */
extern const cs_facts_kind cs_machine_kind;

/* Finds what a scenario names: a topology, or a machine by its name, an alias or FILE.json
 * (relative to the file of `place`). The topology of a machine is created in the arena. CS_INVALID:
 * unknown; the message proposes the closest name and lists the known ones. */
CS_MUST_CHECK cs_status cs_topology_named(const char *name, const cs_json_place *place,
                                          cs_arena *arena, const cs_topology **kind,
                                          cs_error *error);

/* Adds the names of all topologies and machines to a guess; only topologies are listed as known. */
void cs_topology_guess(cs_guess *guess);

/* Default sharing of links: fair (max_min) in switched or routed networks, where packets of several
 * senders take turns on a link; one message after the other (fifo) on links without switches, where
 * only a device's own messages and those it forwards wait. */
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

/* A topology as a member of other parameters: {"node", CS_FIELD_VARIANT, offsetof(...),
 * CS_TOPOLOGY_CHOICE, .doc = ...}. */
extern const cs_field_kind cs_topology_choice_kind;
#define CS_TOPOLOGY_CHOICE .size = sizeof(cs_topology_choice), .kind = &cs_topology_choice_kind

/* Reads the parameters of a topology from `object`, which may also have the keys of the table
 * `also`. */
CS_MUST_CHECK cs_status cs_topology_params(const cs_topology *kind, const cJSON *object,
                                           const cs_json_place *place, const cs_field *also,
                                           void *also_out, cs_arena *arena, void **params,
                                           cs_error *error);

/* Builds a platform and numbers parallel links ("leaf0 to spine0 #2"). */
CS_MUST_CHECK cs_status cs_topology_build(const cs_topology *kind, const void *params,
                                          uint32_t n_devices, cs_platform *platform,
                                          cs_error *error);

/* Builds the platform of a JSON text, {"topology": ...}, which messages and the platform call
 * `name`. */
CS_MUST_CHECK cs_status cs_topology_build_text(const char *name, const char *text,
                                               uint32_t n_devices, cs_platform *platform,
                                               cs_error *error);

/* Kinds of networks between nodes: values of a cluster's key "fabric". NULL-terminated. */
extern const char *const cs_fabric_names[];

#endif
