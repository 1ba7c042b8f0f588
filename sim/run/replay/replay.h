/* A scenario's task graph, ready to be done for real by one process per device.
 *
 * Every process loads the scenario, simulates it, and keeps to the order that the simulation came
 * to: all tasks by the start of their spans, those of one instant as they depend on each other.
 * Each does its share of that one order, so messages, which occupy both ends, cannot lock each
 * other out. A graph with collectives, which were lowered for the simulation, is ordered by how
 * deep its tasks depend on each other; the members of a collective are then as deep as the deepest,
 * and together.
 *
 * On a grid each device is simulated and replayed, none in the place of others, and the tasks of a
 * pass (passes.h) stand together: all devices of a stage do one pass after the other, and what the
 * plan has beside a computation is done before or behind it.
 */
#ifndef CS_REPLAY_REPLAY_H
#define CS_REPLAY_REPLAY_H

#include "sim/core/engine/engine.h"
#include "sim/model/net-model.h"
#include "sim/run/replay/passes.h"
#include "sim/run/scenario/scenario.h"

typedef struct cs_replay {
    const cs_scenario *scenario;
    cs_graph graph;     /* not lowered */
    uint32_t *order;    /* all tasks */
    uint32_t *versions; /* per task: of the weights that it reads or makes, CS_NONE for none */
    uint32_t *readers;  /* per task: what it is a message for, CS_NONE for none */
    uint32_t *covers;   /* per task: micro-batches that a backward or a message is for */
    uint32_t n_states;  /* of the optimizer, per parameter */
    cs_job job;         /* of the scenario, unfolded */
    bool has_grid;
    cs_replay_passes passes; /* on a grid */
} cs_replay;

/* CS_INVALID with the scenario's place for what cannot be replayed (replayable.h). Needs no device:
 * `sim replay` asks before it starts processes. */
CS_MUST_CHECK cs_status cs_replay_make(const cs_scenario *scenario, const char *path,
                                       cs_replay *replay, cs_error *error);
void cs_replay_finish(cs_replay *replay);

/* Whether a device holds a stage. */
bool cs_replay_holds(const cs_plan *plan, uint32_t stage, uint32_t device);

/* An all-reduce is of the gradients of the stages from its class's on, as many as make up its
 * bytes: the end of them, or CS_NONE. */
uint32_t cs_replay_summed(const cs_replay *replay, uint32_t task);

/* The layers of the scenario's network, for its micro-batches; with a split those of the network of
 * a place. */
CS_MUST_CHECK cs_status cs_replay_chain(const cs_scenario *scenario, const cs_split *split,
                                        uint32_t place, cs_net_chain *chain, cs_error *error);

#endif
