/* Plans: which devices hold which layers.
 *
 * A plan cuts a model's chain into stages, runs of layers, in order and without gaps. A stage is
 * held by one device, or by several that each have a replica. A plan is a value of its own: it can
 * be printed, saved, loaded and run with any schedule that its shape fits.
 */
#ifndef CS_SCHEDULES_PLAN_H
#define CS_SCHEDULES_PLAN_H

#include "sim/model/model.h"
#include "sim/model/split.h"

#include <stdbool.h>

enum { CS_PLAN_DEVICES = 1 << 24 }; /* device numbers are below */

typedef struct cs_stage {
    uint32_t first_layer, end_layer;  /* layers [first, end) */
    uint32_t first_device, n_devices; /* in plan.devices */
} cs_stage;

typedef struct cs_plan {
    uint32_t n_stages, n_devices; /* n_devices: length of `devices` */
    cs_stage *stages;
    uint32_t *devices;
    bool apart; /* stages on the same devices share nothing: each is on one of them at a time */
    const cs_grid *grid; /* the axes along which each stage is divided over its devices, which are
                          * the grid's places: each computes its part of every micro-batch, and
                          * hands it to the same place of the next stage. NULL: a stage's devices
                          * are replicas. Not owned */
} cs_plan;

/* Zeroed plans and NULL can be finished. */
void cs_plan_finish(cs_plan *plan);

CS_MUST_CHECK cs_status cs_plan_copy(const cs_plan *plan, cs_plan *copy, cs_error *error);

/* The device of a stage; of several, the first. */
static inline uint32_t cs_plan_device(const cs_plan *plan, uint32_t stage)
{
    return plan->devices[plan->stages[stage].first_device];
}

/* Stage s holds layers [cuts[s], cuts[s + 1]) on device s; cuts has n_stages + 1 entries, rising.
 */
CS_MUST_CHECK cs_status cs_plan_pipeline(const uint32_t *cuts, uint32_t n_stages, cs_plan *plan,
                                         cs_error *error);

/* One stage of all layers, on devices 0 .. n_devices - 1. */
CS_MUST_CHECK cs_status cs_plan_replicated(uint32_t n_layers, uint32_t n_devices, cs_plan *plan,
                                           cs_error *error);

/* Puts stage s on counts[s] devices, which stand in `devices` one stage after the other. */
CS_MUST_CHECK cs_status cs_plan_place(cs_plan *plan, const uint32_t *counts,
                                      const uint32_t *devices, cs_error *error);

/* What the planner `balanced` needs to know. */
typedef struct cs_balance {
    const cs_model *model;
    uint32_t n_stages;
    const double *speeds; /* per stage: of the device that will hold it; NULL: all 1 */
    bool communication;   /* count messages as well: */
    double bandwidth;     /* bytes/s between neighbouring stages */
    cs_time latency;
} cs_balance;

/* Cuts the chain so that the slowest stage (forward + backward) takes the least time; with
 * `communication` the slowest of all stages and of all boundaries, a boundary taking the time of
 * one activation forward and one gradient back (PipeDream, SOSP 2019, section 3.1). Among equal
 * optima the one whose last stage starts first; the stages before it are then cut by the same rule,
 * as if they were all, and so balanced among themselves. By dynamic programming over (stages,
 * layers), in time and memory (8 bytes each) of n_stages * (n_layers - n_stages + 1) entries.
 * CS_INVALID when there are more stages than layers. */
CS_MUST_CHECK cs_status cs_plan_balanced(const cs_balance *balance, cs_plan *plan, cs_error *error);

/* {"schema_version": 1, "model": name, "stages": [{"first_layer", "last_layer", "devices"}]}; NULL
 * when memory runs out. Layers are named and numbered in the file, numbers count. */
cJSON *cs_plan_json(const cs_plan *plan, const cs_model *model);

/* Reads what cs_plan_json wrote, and checks it against the model. A key "pattern" is left to
 * cs_pattern_read (pattern.h). */
CS_MUST_CHECK cs_status cs_plan_read(const cJSON *root, const cs_json_place *place,
                                     const cs_model *model, cs_plan *plan, cs_error *error);

/* A list of the first layers of stages 1, 2, ...: `[4, 9]` cuts into [0,4) [4,9) [9,n). */
CS_MUST_CHECK cs_status cs_plan_read_cuts(const cJSON *list, const cs_json_place *place,
                                          const cs_model *model, cs_plan *plan, cs_error *error);

#endif
