/* The classes of a pipeline's tasks: times, memory, messages, policies. Internal to pipeline.c. */
#ifndef CS_SCHEDULES_PIPELINE_CLASSES_H
#define CS_SCHEDULES_PIPELINE_CLASSES_H

#include "schedules/pipeline.h"
#include "schedules/program.h"
#include "schedules/ties.h"
#include "sim/base/arena.h"

/* A step of a pass over a stage, on each of the stage's holders. */
typedef struct cs_stage_step {
    uint32_t flags; /* of program.h */
    uint32_t n_waits, waits[CS_STEP_WAITS];
    bool copies;       /* to the host, or from it */
    uint32_t n_runs;   /* of a collective: groups that have one of the holders; else 0 */
    uint32_t *classes; /* per holder, or per run the first one */
    uint32_t *members; /* of a collective, per holder: its number among the members of all runs */
} cs_stage_step;

static inline bool cs_stage_step_computes(const cs_stage_step *step)
{
    return step->n_runs == 0 && !step->copies;
}

typedef struct cs_stage_pass {
    uint32_t n;
    uint32_t computes; /* the last step that does */
    cs_stage_step *steps;
} cs_stage_pass;

/* Bits of variants of a pass; see cs_program_pass. */
enum {
    CS_PASS_GATHERED = 1, /* of a forward */
    CS_PASS_RELEASES = 1, /* of a backward, or its first half */
    CS_PASS_LAST = 2,     /* of a backward, or its second half */
    CS_PASS_ALONE = 4,    /* of what exchanges with experts: not paired, where others are */
    CS_N_PASS_VARIANTS = 8
};

/* Two replicas that send each other something of a micro-batch, one of the stage before a boundary
 * and one of that behind it. */
typedef struct cs_replica_pair {
    uint32_t lower, upper;
    int64_t bytes;
    uint32_t down, up; /* messages to the upper and to the lower one; CS_NONE on one device */
} cs_replica_pair;

/* Between stage s and s + 1. Where replicas share micro-batches, all pairs have their part of each;
 * where they take them in turn, pair m mod n has micro-batch m. */
typedef struct cs_boundary {
    uint32_t n;
    cs_replica_pair *pairs;
} cs_boundary;

/* All-reduces of the gradients of weights that stages share, the lender first: one of holder i of
 * each stage, for each i that is simulated (`paired`), or a single one of all holders, stage by
 * stage. */
typedef struct cs_tied {
    cs_tie tie; /* the first of those that it is for */
    uint32_t n_stages, *stages;
    bool paired;
    uint32_t n_classes;
    uint32_t *classes;
} cs_tied;

/* A holder is simulated, or another one at the same stage is in its place: only those that are
 * simulated are counted, in order of their devices in the plan, from plan->stages[s].first_device
 * on. */
typedef struct cs_pipeline_classes {
    uint32_t *n_holders;     /* per stage */
    uint32_t *devices;       /* per holder */
    uint32_t *slots;         /* likewise */
    cs_stage_pass *passes;   /* see cs_pipeline_pass */
    uint32_t variants;       /* the bits of variants that are told apart */
    uint32_t most_steps;     /* of a pass, */
    uint32_t most_holders;   /* and of a stage */
    cs_boundary *boundaries; /* per stage but the last */
    uint32_t *
        reductions; /* per stage with replicas: all-reduce of its gradients, or CS_NONE when there is
                           * nothing to sum. On a grid that is part of the backward */
    uint32_t n_ties; /* 0 without a flush: then there is no point in time at which all stages have
                      * summed the same micro-batches */
    cs_tied *ties;
} cs_pipeline_classes;

static inline cs_stage_pass *cs_pipeline_pass(const cs_pipeline_classes *classes, uint32_t stage,
                                              cs_kind kind, uint32_t variant)
{
    size_t row = (size_t)stage * (CS_UPDATE + 1) + kind;
    return &classes->passes[row * CS_N_PASS_VARIANTS + (variant & classes->variants)];
}

/* Makes them all for n_micros micro-batches, in memory of the arena. */
CS_MUST_CHECK cs_status cs_pipeline_make_classes(const cs_job *job,
                                                 const cs_pipeline_options *options,
                                                 uint32_t n_micros, cs_builder *builder,
                                                 cs_arena *arena, cs_pipeline_classes *made,
                                                 cs_error *error);

#endif
