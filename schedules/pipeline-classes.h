/* The classes of a pipeline's tasks: times, memory, messages, policies. Internal to pipeline.c. */
#ifndef CS_SCHEDULES_PIPELINE_CLASSES_H
#define CS_SCHEDULES_PIPELINE_CLASSES_H

#include "schedules/pipeline.h"

#include "schedules/ties.h"
#include "sim/base/arena.h"

/* Of one holder, by kind: CS_FORWARD ... CS_UPDATE. The backward is there whole and in halves;
 * CS_RECOMPUTE with the option only. */
typedef struct cs_holder_classes {
    uint32_t of[CS_UPDATE + 1];
} cs_holder_classes;

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

/* All-reduces of the gradients of weights that two stages share: one of holder i of either, for
 * each i, or a single one of all holders, those of the lender first. */
typedef struct cs_tied {
    cs_tie tie;
    uint32_t n_classes; /* 1, or as many as either stage has holders */
    uint32_t *classes;
} cs_tied;

typedef struct cs_pipeline_classes {
    uint32_t *slots;            /* per holder */
    cs_holder_classes *holders; /* likewise */
    cs_boundary *boundaries;    /* per stage but the last */
    uint32_t
        *reductions; /* per stage: all-reduce of its gradients, or CS_NONE when there is nothing
                           * to sum */
    uint32_t n_ties; /* 0 without a flush: then there is no point in time at which both stages have
                      * summed the same micro-batches */
    cs_tied *ties;
} cs_pipeline_classes;

/* Makes them all for n_micros micro-batches, in memory of the arena. */
CS_MUST_CHECK cs_status cs_pipeline_make_classes(const cs_job *job,
                                                 const cs_pipeline_options *options,
                                                 uint32_t n_micros, cs_builder *builder,
                                                 cs_arena *arena, cs_pipeline_classes *made,
                                                 cs_error *error);

#endif
