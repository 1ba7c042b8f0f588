/* The classes of a pipeline's tasks: times, memory, messages, policies. Internal to pipeline.c. */
#ifndef CS_SCHEDULES_PIPELINE_CLASSES_H
#define CS_SCHEDULES_PIPELINE_CLASSES_H

#include "schedules/pipeline.h"
#include "schedules/program.h"
#include "schedules/ties.h"
#include "sim/base/arena.h"

/* A step of a pass over a stage, on each of the stage's holders. */
typedef struct cs_stage_step {
    uint32_t flags; /* flags of the step, see program.h */
    uint32_t n_waits, waits[CS_STEP_WAITS];
    bool copies;     /* whether it is a copy to or from the host */
    uint32_t n_runs; /* collectives: number of groups that contain a holder; otherwise 0 */
    /* classes per holder; for collectives, the first class per group that contains a holder */
    uint32_t *classes;
    /* collectives, per holder: its number among the members of all these groups */
    uint32_t *members;
} cs_stage_step;

static inline bool cs_stage_step_computes(const cs_stage_step *step)
{
    return step->n_runs == 0 && !step->copies;
}

typedef struct cs_stage_pass {
    uint32_t n;
    uint32_t computes; /* number of the last step that computes */
    cs_stage_step *steps;
} cs_stage_pass;

/* Bits of variants of a pass; see cs_program_pass. */
enum {
    CS_PASS_GATHERED = 1, /* for forwards: weights are gathered already */
    CS_PASS_RELEASES = 1, /* for backwards, or their first halves: gathered weights are released */
    CS_PASS_LAST = 2,     /* for backwards, or their second halves: last pass of its mini-batch */
    /* passes that exchange data with experts: this one is not paired, others are */
    CS_PASS_ALONE = 4,
    CS_N_PASS_VARIANTS = 8
};

/* Two replicas that send each other parts of a micro-batch, one on each side of a boundary. */
typedef struct cs_replica_pair {
    uint32_t lower, upper;
    int64_t bytes;
    /* messages to the upper and to the lower replica; CS_NONE if both are one device */
    uint32_t down, up;
} cs_replica_pair;

/* The boundary between stages s and s + 1. If replicas share each micro-batch, all pairs exchange a
 * part of each; if they take micro-batches in turn, pair m mod n exchanges micro-batch m. */
typedef struct cs_boundary {
    uint32_t n;
    cs_replica_pair *pairs;
} cs_boundary;

/* All-reduces of the gradients of weights that stages share. `stages` begins with the lender.
 * `paired`: one all-reduce per simulated i, among holder i of each stage; otherwise one among all
 * holders, stage by stage. */
typedef struct cs_tied {
    cs_tie tie; /* first of the ties that this all-reduce serves */
    uint32_t n_stages, *stages;
    bool paired;
    uint32_t n_classes;
    uint32_t *classes;
} cs_tied;

/* A holder is a device that holds a stage. Devices that another one at the same stage represents
 * are not counted. The holders of stage s are in the order of the plan, from
 * plan->stages[s].first_device on. */
typedef struct cs_pipeline_classes {
    uint32_t *n_holders;     /* number of holders per stage */
    uint32_t *devices;       /* device of each holder */
    uint32_t *slots;         /* slot of each holder's weights */
    cs_stage_pass *passes;   /* passes; use cs_pipeline_pass */
    uint32_t variants;       /* bits of variants that make a difference */
    uint32_t most_steps;     /* largest number of steps of a pass */
    uint32_t most_holders;   /* largest number of holders of a stage */
    cs_boundary *boundaries; /* boundary after each stage except the last */
    /* per stage with replicas: all-reduce of its gradients; CS_NONE if there is nothing to sum. On
     * a grid this is part of the backward */
    uint32_t *reductions;
    /* 0 without a flush, because then stages never have summed the same micro-batches */
    uint32_t n_ties;
    cs_tied *ties;
} cs_pipeline_classes;

static inline cs_stage_pass *cs_pipeline_pass(const cs_pipeline_classes *classes, uint32_t stage,
                                              cs_kind kind, uint32_t variant)
{
    size_t row = (size_t)stage * (CS_UPDATE + 1) + kind;
    return &classes->passes[row * CS_N_PASS_VARIANTS + (variant & classes->variants)];
}

/* Makes all classes for n_micros micro-batches, in the arena's memory. */
CS_MUST_CHECK cs_status cs_pipeline_make_classes(const cs_job *job,
                                                 const cs_pipeline_options *options,
                                                 uint32_t n_micros, cs_builder *builder,
                                                 cs_arena *arena, cs_pipeline_classes *made,
                                                 cs_error *error);

#endif
