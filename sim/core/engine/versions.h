/* Versions of the weights: which one a task reads, which ones live (sim/core/graph/graph.h). */
#ifndef CS_ENGINE_VERSIONS_H
#define CS_ENGINE_VERSIONS_H

#include "sim/core/engine/memory.h"

typedef struct cs_versions cs_versions;

/* `memory` gets the bytes of versions besides the current ones. */
CS_MUST_CHECK cs_status cs_versions_create(const cs_graph *graph, cs_memory *memory,
                                           cs_versions **versions, cs_error *error);
void cs_versions_destroy(cs_versions *versions);

/* The current version of every slot, for tasks without a policy, which read it and hold nothing. */
const uint32_t *cs_versions_current(const cs_versions *versions);

/* A task with a policy starts: chooses the version that it reads, notes it in a register, takes
 * holds. CS_FAILED when it asks for a version that is not there: not made yet, a register not
 * written, or no longer alive. */
CS_MUST_CHECK cs_status cs_versions_read(cs_versions *versions, uint32_t task, cs_time now,
                                         uint32_t *version, cs_error *error);

/* A task with a policy, which read `version`, ends: drops its hold. */
CS_MUST_CHECK cs_status cs_versions_drop(cs_versions *versions, uint32_t task, uint32_t version,
                                         cs_time now);

/* An update of the slot ends; returns the version that it made. */
CS_MUST_CHECK cs_status cs_versions_update(cs_versions *versions, uint32_t slot, uint32_t task,
                                           cs_time now, uint32_t *version);

/* Moves the records of the slots out. */
cs_slot_record *cs_versions_take_records(cs_versions *versions);

#endif
