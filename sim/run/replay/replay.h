/* A scenario's task graph, ready to be executed by one process per device.
 *
 * Every process loads the scenario, simulates it, and follows the simulated order: all tasks by
 * start time, at the same instant by their dependences. Each process executes its tasks of that one
 * order, so messages, which occupy both ends, cannot deadlock. A graph with collectives, which were
 * lowered for the simulation, is ordered by depth of dependences; all members of a collective get
 * the depth of the deepest and are adjacent.
 *
 * On a grid every device is simulated and replayed (no folding), and the tasks of a pass (passes.h)
 * are adjacent: all devices of a stage execute one pass after the other, and tasks that the plan
 * overlaps with a computation are executed before or after it.
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
    uint32_t *order;    /* all tasks, in order of execution */
    uint32_t *versions; /* per task: version of the weights that it reads or makes; CS_NONE: none */
    uint32_t *readers;  /* per task: for a message, its reader; CS_NONE: none */
    uint32_t *covers;   /* per task: number of micro-batches of a backward or a message */
    uint32_t n_states;  /* optimizer states per parameter */
    cs_job job;         /* the scenario's, unfolded */
    bool has_grid;
    cs_replay_passes passes; /* with a grid */
} cs_replay;

/* Prepares a replay. CS_INVALID, with the scenario's place: it cannot be replayed (replayable.h).
 * Needs no device: `sim replay` calls it before it starts processes. */
CS_MUST_CHECK cs_status cs_replay_make(const cs_scenario *scenario, const char *path,
                                       cs_replay *replay, cs_error *error);
void cs_replay_finish(cs_replay *replay);

/* Whether a device holds a stage. */
bool cs_replay_holds(const cs_plan *plan, uint32_t stage, uint32_t device);

/* An all-reduce sums the gradients of consecutive stages, from its class's stage until their total
 * is its size. Returns the end of these stages, or CS_NONE. */
uint32_t cs_replay_summed(const cs_replay *replay, uint32_t task);

/* Finds the layers of the scenario's network, for its micro-batches; with a split, the layers of
 * the network at a place. */
CS_MUST_CHECK cs_status cs_replay_chain(const cs_scenario *scenario, const cs_split *split,
                                        uint32_t place, cs_net_chain *chain, cs_error *error);

#endif
