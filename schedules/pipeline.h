/* Pipelines with a fixed order: what gpipe, 1f1b and their kin share.
 *
 * Such a schedule is lists of steps, forwards and backwards of micro-batches on a stage, each list
 * run strictly in order; the rest follows: messages over the boundaries, recomputation before a
 * backward, updates, what each holds in memory. A list belongs to a stage, or to a device, which
 * may then hold several stages.
 *
 * A backward may be split in two steps: CS_BACKWARD_INPUT makes the gradient that the stage before
 * waits for, CS_BACKWARD_WEIGHT that of the weights, any time later.
 *
 * A stage may be held by several devices, its replicas, which either take micro-batches in turn
 * (each runs those steps of the stage's list that are its own) or each compute a share of every one
 * (cs_replicas), or as places of a grid their part of it, which they hand to the same place of the
 * next stage. Replica i of R hands the samples of its share on to those replicas of the next
 * stage whose shares overlap it. Before an update the gradients are summed by an all-reduce; a
 * device that waits for it computes nothing else. With CS_REPLICAS_ROUND_ROBIN and `continuous`
 * that is once for every R micro-batches, one of each replica, the last time perhaps for fewer.
 *
 * Where stages share weights (ties.h), the gradients of all copies are summed before the update as
 * well, after the all-reduces among replicas; not with `continuous`: each copy is then
 * updated by its own gradients, and who reads a scenario is warned.
 *
 * What a stage holds and computes in a pass is in program.h. Weights, gradients and optimizer
 * states are there all the time.
 */
#ifndef CS_SCHEDULES_PIPELINE_H
#define CS_SCHEDULES_PIPELINE_H

#include "schedules/schedule.h"

/* Rows of parameter tables that pipelines share. */
#define CS_PIPELINE_MICRO_BATCHES(params)                                                          \
    {                                                                                              \
        "micro_batches", CS_FIELD_COUNT, offsetof(params, micro_batches),                          \
            .min = 1, .max = 1 << 20, .doc = "micro-batches per mini-batch, M"                     \
    }
#define CS_PIPELINE_RECOMPUTE(params)                                                              \
    {                                                                                              \
        "recompute", CS_FIELD_BOOL, offsetof(params, recompute),                                   \
            .fallback = "false",                                                                   \
            .doc =                                                                                 \
                "keep only the input of a stage, and run its forward again before each backward"   \
    }

typedef struct cs_pipeline_step {
    cs_kind kind; /* CS_FORWARD, CS_BACKWARD, CS_BACKWARD_INPUT or CS_BACKWARD_WEIGHT */
    uint32_t stage, micro_batch;
} cs_pipeline_step;

typedef struct cs_pipeline_shape {
    const cs_job *job;
    uint32_t n_stages;
    uint32_t
        n_devices; /* of the job; on a grid, pipeline ranks: as many as stages are not on the same
                         * devices */
    uint32_t n_micros;  /* of one mini-batch, or of the whole run where they flow into each other */
    const void *params; /* of the schedule */
} cs_pipeline_shape;

/* The list that has the steps of a stage, where one may have several stages: below
 * shape->n_devices. */
typedef uint32_t cs_pipeline_list(const cs_pipeline_shape *shape, uint32_t stage);

/* Step k of a list; false after its last one. */
typedef bool cs_pipeline_order(const cs_pipeline_shape *shape, uint32_t list, uint32_t k,
                               cs_pipeline_step *step);

/* Forward and backward of each micro-batch in turn: for a single stage. */
bool cs_pipeline_in_turn(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                         cs_pipeline_step *step);

/* A holder is a device that holds a stage: holder h is plan->devices[h], on which there are
 * replicas of stage s for h from plan->stages[s].first_device on.
 *
 * Policies of one holder's classes, by which they choose the version of the weights that they read;
 * CS_NONE: the current one, as always in a backward that is split. */
typedef struct cs_stage_policies {
    uint32_t forward, backward;
} cs_stage_policies;

typedef struct cs_pipeline_options {
    cs_pipeline_order *order;
    cs_pipeline_list *list_of; /* NULL: a list per stage */
    bool recompute; /* keep the stage's input only, and run its forward again before the backward */
    bool splits;    /* `order` has halves of backwards */
    bool continuous; /* no flush: `order` runs over all micro-batches, and an update comes after
                      * every micro_batches-th backward of a holder; else at the end of the list */
    /* Makes the policies of a holder, or is NULL. slots[h] has its weights, and slots are numbered
     * in order of holders. */
    void (*policies)(const cs_job *job, const void *params, cs_builder *builder,
                     const uint32_t *slots, uint32_t holder, cs_stage_policies *made);
    const void *params; /* of the schedule, for `order` and `policies` */
} cs_pipeline_options;

/* Devices, or on a grid pipeline ranks: stages that are not on the devices of one before them. */
uint32_t cs_pipeline_ranks(const cs_job *job);

/* Adds all tasks, in the order in which they would run if all took equal time. Every list must have
 * each step of its stages once. An order that deadlocks is CS_INVALID; the message shows which step
 * waits for which. */
CS_MUST_CHECK cs_status cs_pipeline_generate(const cs_job *job, const cs_pipeline_options *options,
                                             cs_builder *builder, cs_error *error);

/* The slowest stage's times, and what is known about the messages. */
typedef struct cs_pipeline_times {
    cs_time forward, backward, update;
    cs_time input, weight; /* the halves of a backward that is split */
    cs_time step;          /* forward + backward */
    bool equal;            /* all stages take these times, ... */
    bool equal_halves;     /* ... also those of the halves */
    bool neighbours;     /* every message goes between neighbouring devices and so is the job's; no
                          * stage is replicated, and none shares weights with another */
    bool free_messages;  /* no message takes time */
    bool only_latency;   /* the bytes of messages take no time, not even together */
    bool short_messages; /* nor longer than their sender computes before it sends the next one */
} cs_pipeline_times;

/* The time that work of `time` at speed 1 takes on the device of a stage; CS_TIME_MAX when it does
 * not fit. */
cs_time cs_pipeline_time(const cs_job *job, uint32_t stage, cs_time time);

/* The time that the bytes of a message over the boundary behind a stage take; CS_TIME_MAX when it
 * does not fit. */
cs_time cs_pipeline_bytes_time(const cs_job *job, uint32_t stage);

void cs_pipeline_times_of(const cs_job *job, cs_pipeline_times *times);

/* For schedules that keep versions of the weights: refuses states that are divided so that older
 * versions cannot be had. `place` is that of the schedule. */
CS_MUST_CHECK cs_status cs_pipeline_check_versions(const cs_job *job, const cs_json_place *place,
                                                   cs_error *error);

/* Some stage has several devices. */
bool cs_pipeline_replicated(const cs_job *job);

/* No message between any two devices takes time. */
bool cs_pipeline_no_network(const cs_job *job);

/* a + b, or CS_TIME_MAX: a closed form that does not fit is no error of the run. */
cs_time cs_pipeline_add(cs_time a, cs_time b);

/* Adds the figures that GPipe and 1F1B share: makespan (M + P - 1)(f + b) per mini-batch and bubble
 * fraction (P - 1)/(M + P - 1). */
CS_MUST_CHECK cs_status cs_pipeline_add_forms(const cs_job *job, const cs_pipeline_times *times,
                                              const char *source, cs_forms *forms, cs_error *error);

/* Adds the peak of kept activations of every device, at_once(job, s, replica) micro-batches of
 * them. */
typedef uint32_t cs_pipeline_count(const cs_job *job, uint32_t stage, uint32_t replica);
CS_MUST_CHECK cs_status cs_pipeline_add_peaks(const cs_job *job, cs_pipeline_count *at_once,
                                              const char *formula, const char *source,
                                              cs_forms *forms, cs_error *error);

#endif
