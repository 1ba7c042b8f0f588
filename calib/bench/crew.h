/* A scenario's task graph, ready to be done for real by one process per device.
 *
 * Every process loads the scenario, simulates it, and keeps to the order that the simulation came
 * to: all tasks by the start of their spans, those of one instant as they depend on each other. Each
 * does its share of that one order, so messages, which occupy both ends, cannot lock each other out.
 * Where collectives were lowered for the simulation, the order is that of the graph before.
 */
#ifndef CS_CALIB_CREW_H
#define CS_CALIB_CREW_H

#include "sim/engine/engine.h"
#include "sim/scenario/scenario.h"

typedef struct cs_crew {
    const cs_scenario *scenario;
    cs_graph graph;     /* not lowered */
    uint32_t *order;    /* all tasks */
    uint32_t *versions; /* per task: of the weights that it reads or makes, CS_NONE for none */
    uint32_t *readers;  /* per task: what it is a message for, CS_NONE for none */
    uint32_t *covers;   /* per task: micro-batches that a backward or a message is for */
    uint32_t n_states;  /* of the optimizer, per parameter */
} cs_crew;

/* CS_INVALID with the scenario's place for what cannot be replayed: a model without an architecture,
 * other numbers than float32, messages that do not occupy both ends, kinds of tasks other than
 * forward, backward, update, message and all-reduce. */
CS_MUST_CHECK cs_status cs_crew_make(const cs_scenario *scenario, const char *path, cs_crew *crew,
                                     cs_error *error);
void cs_crew_finish(cs_crew *crew);

#endif
