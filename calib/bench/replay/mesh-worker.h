/* The passes of a device that is a place of a grid, step by step as their programs have them
 * (sim/run/replay/passes.h): runs of operators, and exchanges with the other places of the stage.
 *
 * The operators are walked through one after the other, and each exchange is held against the steps
 * of the program: it must be one that is left, of its kind, its axes and its bytes, and in the end
 * none may be left. What the plan has beside a computation is done in front of it or behind it: the
 * gathers ahead in front, sums of gradients behind their unit, or where they are scattered behind
 * the next one, so that the gradients of two units are there at a time, as in the plan. */
#ifndef CS_CALIB_MESH_WORKER_H
#define CS_CALIB_MESH_WORKER_H

#include "calib/bench/replay/weight-store.h"
#include "sim/run/replay/replay.h"

struct cs_worker;

typedef struct cs_grid_worker {
    struct cs_worker *worker;
    const cs_job *job;
    const cs_split *split;
    uint32_t place;
    cs_net_local local;
    cs_store *stores; /* per stage; open where the device holds it */
    uint32_t n_stages;
    /* the pass that is done: */
    uint32_t pass;
    const cs_program *program;
    bool *done; /* per step: an exchange of it has begun */
    uint32_t cap_done;
    uint32_t computing;  /* the step that computes, or n of the program, */
    bool computes;       /* whether it does now, */
    bool worked;         /* and whether kernels have run since it does */
    uint32_t exchanging; /* the step that is exchanged */
    cs_activations *at;  /* of a backward, */
    const cs_part *part; /* and the part, of which */
    uint32_t passed;     /* the layers from this operator on are done with when the step ends */
    uint64_t sample;     /* the first of its micro-batch */
    /* per mini-batch: the sum of the losses, and how many */
    double *losses;
    uint32_t *n_losses;
} cs_grid_worker;

/* Sets the trainer's network, chain and part before it is initialised; zeroed ones can be closed. */
CS_MUST_CHECK cs_status cs_grid_open(cs_grid_worker *grid, struct cs_worker *worker,
                                     cs_error *error);
/* Behind the parts of the stages. */
CS_MUST_CHECK cs_status cs_grid_open_stage(cs_grid_worker *grid, uint32_t stage, cs_error *error);
void cs_grid_close(cs_grid_worker *grid);

/* As at the start, for another run. */
CS_MUST_CHECK cs_status cs_grid_reset(cs_grid_worker *grid, cs_error *error);

/* A pass, with the times and memory of all its tasks; `at` NULL: an update. */
CS_MUST_CHECK cs_status cs_grid_pass(cs_grid_worker *grid, uint32_t pass, cs_activations *at,
                                     cs_error *error);

#endif
