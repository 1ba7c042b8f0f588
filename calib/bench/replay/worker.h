/* One process of a replay: runs the tasks of its device, and notes their times and memory. */
#ifndef CS_CALIB_WORKER_H
#define CS_CALIB_WORKER_H

#include "calib/bench/replay/mesh-worker.h"
#include "calib/bench/train/trainer.h"
#include "calib/bench/wire/wire.h"
#include "sim/run/replay/notes-trace.h"

typedef struct cs_stage_state {
    cs_part part;
    bool open;
    cs_block *versions; /* weights by version, if allocated */
    uint32_t n_versions, current;
} cs_stage_state;

typedef struct cs_worker {
    const cs_replay *replay;
    const cs_backend *backend;
    cs_bench *bench;
    cs_wire *wire;
    cs_net_chain chain;
    cs_block_pool pool;
    cs_trainer trainer;
    uint32_t device, n_items;
    cs_stage_state *stages;      /* per stage; open if the device holds the stage */
    cs_activations *activations; /* per stage and item */
    uint32_t *last_reader; /* per stage and version: position of the last reader in the order */
    /* per group of the graph: its processes; NULL for a group of all processes, or one without this
     * process */
    cs_wire_group **groups;
    int64_t resident[CS_N_CATEGORIES]; /* bytes held before the first task */
    cs_grid_worker *grid;              /* NULL: a plan without a grid */
    uint32_t pass;                     /* the latest pass of the grid */
    /* per run: */
    cs_notes *notes;
    uint32_t n_marks;
    uint32_t *enter, *leave; /* per task: marks of its start and end */
} cs_worker;

CS_MUST_CHECK cs_status cs_worker_open(const cs_replay *replay, const cs_backend *backend,
                                       cs_bench *bench, cs_wire *wire, cs_worker *worker,
                                       cs_error *error);
void cs_worker_close(cs_worker *worker);

/* Runs all tasks once. Afterwards the worker is as before, except for weights without a grid. */
CS_MUST_CHECK cs_status cs_worker_run(cs_worker *worker, cs_notes *notes, cs_error *error);

/* Notes the time and memory at the start, or at the end, of a task. */
CS_MUST_CHECK cs_status cs_worker_enter(cs_worker *worker, uint32_t task, cs_error *error);
CS_MUST_CHECK cs_status cs_worker_leave(cs_worker *worker, uint32_t task, cs_error *error);

#endif
