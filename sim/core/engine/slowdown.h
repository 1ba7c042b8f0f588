/* Computations that take longer because their device communicates meanwhile (engine.h says by how
 * much). Internal to sim/core/engine. */
#ifndef CS_ENGINE_SLOWDOWN_H
#define CS_ENGINE_SLOWDOWN_H

#include "sim/core/engine/event-queue.h"
#include "sim/core/graph/graph.h"

typedef struct cs_slowdown cs_slowdown;

/* `factors` as in cs_engine_options. The ends of computations are events of `events`.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_slowdown_create(const cs_graph *graph, const double *factors,
                                           cs_event_queue *events, cs_slowdown **slowdown,
                                           cs_error *error);
void cs_slowdown_destroy(cs_slowdown *slowdown);

/* Starts a computation that takes `duration` when alone, and at least `least`. Its end is the
 * event in `slot`. */
void cs_slowdown_begin(cs_slowdown *slowdown, const cs_class *cls, uint32_t slot, cs_time duration,
                       cs_time least, cs_time now);

/* It ends; returns by how much it took longer. */
cs_time cs_slowdown_end(cs_slowdown *slowdown, const cs_class *cls, cs_time now);

/* A transfer starts, or ends. */
void cs_slowdown_transfer(cs_slowdown *slowdown, const cs_class *cls, bool starts);

/* Once all that happens at `now` has happened: sets the ends again. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_slowdown_settle(cs_slowdown *slowdown, cs_time now);

#endif
