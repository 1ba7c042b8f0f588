/* One process of a replay: does the tasks of its device, and notes when and with how much memory.
 */
#ifndef CS_CALIB_WORKER_H
#define CS_CALIB_WORKER_H

#include "calib/bench/replay/mesh-worker.h"
#include "calib/bench/train/trainer.h"
#include "calib/bench/wire/wire.h"
#include "sim/run/replay/notes-trace.h"

typedef struct cs_stage_state {
    cs_part part;
    bool open;
    cs_block *versions; /* weights by version, where they are there */
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
    cs_stage_state *stages;      /* per stage; open where the device holds it */
    cs_activations *activations; /* per stage and item */
    uint32_t *last_reader;  /* per stage and version: position in the order of its last reader */
    cs_wire_group **groups; /* per group of the graph: its processes; NULL where that is all, or not
                             * this one */
    int64_t resident[CS_N_CATEGORIES]; /* bytes that it holds before the first task */
    cs_grid_worker *grid;              /* NULL: the plan has none */
    uint32_t pass;                     /* the latest one on a grid */
    /* of the run: */
    cs_notes *notes;
    uint32_t n_marks;
    uint32_t *enter, *leave; /* per task: marks */
} cs_worker;

CS_MUST_CHECK cs_status cs_worker_open(const cs_replay *replay, const cs_backend *backend,
                                       cs_bench *bench, cs_wire *wire, cs_worker *worker,
                                       cs_error *error);
void cs_worker_close(cs_worker *worker);

/* Does all tasks once; a run leaves the worker as it found it, but for weights without a grid. */
CS_MUST_CHECK cs_status cs_worker_run(cs_worker *worker, cs_notes *notes, cs_error *error);

/* Notes that a task begins, and that it ends: when, and how much memory there is. */
CS_MUST_CHECK cs_status cs_worker_enter(cs_worker *worker, uint32_t task, cs_error *error);
CS_MUST_CHECK cs_status cs_worker_leave(cs_worker *worker, uint32_t task, cs_error *error);

#endif
