/* Pipelines with a fixed order: what gpipe, 1f1b and their kin share.
 *
 * Such a schedule is, per stage, a list of forwards and backwards of micro-batches; the rest
 * follows: messages over the boundaries, recomputation before a backward, an update at the end of
 * the mini-batch, what each holds in memory.
 *
 * Memory of stage s, per micro-batch: what its layers keep, from the start of the forward to
 * the end of the backward; with recomputation only its input, and the rest from the start of the
 * recomputation on. An activation on its way is a buffer at the sender until it is sent and at the
 * receiver until the forward that reads it starts (then it counts as kept); a gradient, until the
 * backward that reads it ends. Weights, gradients and optimizer states are there all the time.
 */
#ifndef CS_SCHEDULES_PIPELINE_H
#define CS_SCHEDULES_PIPELINE_H

#include "schedules/schedule.h"

typedef struct cs_pipeline_step {
    bool backward;
    uint32_t micro_batch;
} cs_pipeline_step;

/* Step k = 0 .. 2M-1 of stage s = 0 .. P-1, over M micro-batches: those of one mini-batch, or of the
 * whole run where mini-batches flow into each other. */
typedef cs_pipeline_step cs_pipeline_order(uint32_t n_stages, uint32_t n_micros, uint32_t stage,
                                           uint32_t k);

/* Policies of one stage's classes, by which they choose the version of the weights that they read;
 * CS_NONE: the current one. */
typedef struct cs_stage_policies {
    uint32_t forward, backward;
} cs_stage_policies;

typedef struct cs_pipeline_options {
    cs_pipeline_order *order;
    bool
        recompute; /* keep the stage's input only, and run the forward again before each backward */
    bool continuous; /* no flush: `order` runs over all micro-batches; updates come after every
                      * micro_batches-th backward of a stage all the same */
    /* Makes the policies of a stage, or is NULL. slots[s] holds the weights of stage s, and slots
     * are numbered in order of stages. */
    void (*policies)(const cs_job *job, const void *params, cs_builder *builder,
                     const uint32_t *slots, uint32_t stage, cs_stage_policies *made);
    const void *params; /* of the schedule, for `policies` */
} cs_pipeline_options;

/* Adds all tasks, in the order in which they would run if all took equal time. An order that
 * deadlocks is CS_INVALID. */
CS_MUST_CHECK cs_status cs_pipeline_generate(const cs_job *job, const cs_pipeline_options *options,
                                             cs_builder *builder, cs_error *error);

/* The slowest stage's times, and what is known about the messages. */
typedef struct cs_pipeline_times {
    cs_time forward, backward, update;
    cs_time step;        /* forward + backward */
    bool equal;          /* all stages take these times */
    bool neighbours;     /* every message goes between neighbouring devices and so is the job's */
    bool free_messages;  /* no message takes time */
    bool only_latency;   /* the bytes of messages take no time */
    bool short_messages; /* nor longer than their sender computes before it sends the next one */
} cs_pipeline_times;

/* The time that work of `time` at speed 1 takes on the device of a stage; CS_TIME_MAX when it does
 * not fit. */
cs_time cs_pipeline_time(const cs_job *job, uint32_t stage, cs_time time);

/* The time that the bytes of a message over the boundary behind a stage take; CS_TIME_MAX when it
 * does not fit. */
cs_time cs_pipeline_bytes_time(const cs_job *job, uint32_t stage);

void cs_pipeline_times_of(const cs_job *job, cs_pipeline_times *times);

/* a + b, or CS_TIME_MAX: a closed form that does not fit is no error of the run. */
cs_time cs_pipeline_add(cs_time a, cs_time b);

/* Adds the figures that GPipe and 1F1B share: makespan (M + P - 1)(f + b) per mini-batch and bubble
 * fraction (P - 1)/(M + P - 1). */
CS_MUST_CHECK cs_status cs_pipeline_add_forms(const cs_job *job, const cs_pipeline_times *times,
                                              const char *source, cs_forms *forms, cs_error *error);

/* Adds the peak of kept activations of every stage, at_once(P, M, s) micro-batches of them. */
CS_MUST_CHECK cs_status cs_pipeline_add_peaks(const cs_job *job,
                                              uint32_t (*at_once)(uint32_t, uint32_t, uint32_t),
                                              const char *formula, const char *source,
                                              cs_forms *forms, cs_error *error);

#endif
