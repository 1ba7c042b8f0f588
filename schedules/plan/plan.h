/* Plans: which devices hold which layers.
 *
 * A plan partitions a model's chain into stages: runs of layers, in order and without gaps. A stage
 * is on one device, or on several that each hold a replica. A plan is independent of schedules: it
 * can be printed, saved, loaded, and run with any schedule that supports its shape.
 */
#ifndef CS_SCHEDULES_PLAN_H
#define CS_SCHEDULES_PLAN_H

#include "sim/model/model.h"
#include "sim/model/split.h"

#include <stdbool.h>

enum { CS_PLAN_DEVICES = 1 << 24 }; /* limit: all device numbers are smaller */

typedef struct cs_stage {
    uint32_t first_layer, end_layer;  /* layers of the stage, [first, end) */
    uint32_t first_device, n_devices; /* devices of the stage: a range in plan.devices */
} cs_stage;

typedef struct cs_plan {
    uint32_t n_stages, n_devices; /* n_devices: length of `devices` */
    cs_stage *stages;
    uint32_t *devices;
    /* whether stages on the same devices share nothing, because each is on one of the devices at a
     * time */
    bool apart;
    /* axes along which each stage is split over its devices, which are the grid's places: each
     * computes its part of every micro-batch, and passes it to the same place of the next stage.
     * NULL: a stage's devices are replicas. Not owned */
    const cs_grid *grid;
} cs_plan;

/* Allowed on a zeroed struct and on NULL. */
void cs_plan_finish(cs_plan *plan);

CS_MUST_CHECK cs_status cs_plan_copy(const cs_plan *plan, cs_plan *copy, cs_error *error);

/* Returns the device of a stage, or the first of several. */
static inline uint32_t cs_plan_device(const cs_plan *plan, uint32_t stage)
{
    return plan->devices[plan->stages[stage].first_device];
}

/* Makes a plan where stage s holds layers [cuts[s], cuts[s + 1]) on device s; `cuts` has n_stages +
 * 1 entries in ascending order. */
CS_MUST_CHECK cs_status cs_plan_pipeline(const uint32_t *cuts, uint32_t n_stages, cs_plan *plan,
                                         cs_error *error);

/* Makes a plan with one stage of all layers, on devices 0 to n_devices - 1. */
CS_MUST_CHECK cs_status cs_plan_replicated(uint32_t n_layers, uint32_t n_devices, cs_plan *plan,
                                           cs_error *error);

/* Puts stage s on counts[s] devices; `devices` lists the devices of all stages, stage by stage. */
CS_MUST_CHECK cs_status cs_plan_place(cs_plan *plan, const uint32_t *counts,
                                      const uint32_t *devices, cs_error *error);

/* Input of cs_plan_balanced. */
typedef struct cs_balance {
    const cs_model *model;
    uint32_t n_stages;
    const double *speeds; /* per stage: speed of the device that will hold it; NULL: all are 1 */
    bool communication;   /* whether to count messages, with this bandwidth and latency: */
    double bandwidth;     /* bytes/s between neighbouring stages */
    cs_time latency;
} cs_balance;

/* Partitions the chain so that the slowest stage (forward + backward) takes the least time. With
 * `communication` boundaries count too; a boundary takes the time of one activation forward and one
 * gradient back (PipeDream, SOSP 2019, section 3.1). Among equal optima it takes the one whose last
 * stage starts first, and partitions the layers before that stage by the same rule, so that they
 * are balanced too. Dynamic programming over (stages, layers): time and memory (8 bytes each) for
 * n_stages * (n_layers - n_stages + 1) entries. CS_INVALID if there are more stages than layers. */
CS_MUST_CHECK cs_status cs_plan_balanced(const cs_balance *balance, cs_plan *plan, cs_error *error);

/* Makes {"schema_version": 1, "model": name, "stages": [{"first_layer", "last_layer", "devices"}]}.
 * Layers are given by name and by number; the reader uses the numbers. NULL if memory runs out. */
cJSON *cs_plan_json(const cs_plan *plan, const cs_model *model);

/* Reads the output of cs_plan_json, and checks it against the model. cs_pattern_read (pattern.h)
 * reads the key "pattern". */
CS_MUST_CHECK cs_status cs_plan_read(const cJSON *root, const cs_json_place *place,
                                     const cs_model *model, cs_plan *plan, cs_error *error);

/* Reads a list of the first layers of stages 1, 2, ...: `[4, 9]` makes stages [0,4) [4,9) [9,n). */
CS_MUST_CHECK cs_status cs_plan_read_cuts(const cJSON *list, const cs_json_place *place,
                                          const cs_model *model, cs_plan *plan, cs_error *error);

#endif
