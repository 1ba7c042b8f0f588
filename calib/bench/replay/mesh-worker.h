/* Runs the passes of a device in a grid, step by step as in their programs
 * (sim/run/replay/passes.h): runs of operators, and exchanges with the other places of the stage.
 *
 * The operators are walked in order, and each exchange is checked against the steps of the program:
 * an unused step must have the same kind, axes and bytes, and at the end all steps must be used.
 * Steps that the plan runs in parallel to a computation run before or after it. Gathers ahead run
 * before it; sums of gradients run after their unit. If gradients are scattered, they run after the
 * next unit, so that the gradients of two units exist at the same time, as in the plan. */
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
    cs_store *stores; /* per stage; open if the device holds the stage */
    uint32_t n_stages;
    /* the current pass: */
    uint32_t pass;
    const cs_program *program;
    bool *done; /* per step: an exchange of the step has begun */
    uint32_t cap_done;
    uint32_t computing;  /* the step that computes, or the number of steps */
    bool computes;       /* whether the step has begun */
    bool worked;         /* whether it has run kernels since then */
    uint32_t exchanging; /* the current exchange */
    cs_activations *at;  /* activations of a backward */
    const cs_part *part; /* the part of the backward */
    uint32_t passed;     /* when the step ends, all layers from this operator on are finished */
    uint64_t sample;     /* the first sample of the micro-batch */
    /* sum and number of the losses per mini-batch: */
    double *losses;
    uint32_t *n_losses;
} cs_grid_worker;

/* Sets the trainer's network, chain and part; call before cs_trainer_init. Zeroed grid workers can
 * be closed. */
CS_MUST_CHECK cs_status cs_grid_open(cs_grid_worker *grid, struct cs_worker *worker,
                                     cs_error *error);
/* Call after the parts of the stages are opened. */
CS_MUST_CHECK cs_status cs_grid_open_stage(cs_grid_worker *grid, uint32_t stage, cs_error *error);
void cs_grid_close(cs_grid_worker *grid);

/* Restores the initial state for another run. */
CS_MUST_CHECK cs_status cs_grid_reset(cs_grid_worker *grid, cs_error *error);

/* Runs a pass and notes the times and memory of all its tasks; `at` NULL: an update. */
CS_MUST_CHECK cs_status cs_grid_pass(cs_grid_worker *grid, uint32_t pass, cs_activations *at,
                                     cs_error *error);

#endif
