/* Pipelines with a fixed order, such as gpipe and 1f1b.
 *
 * Such a schedule consists of lists of steps (forwards and backwards of micro-batches on a stage),
 * each run strictly in order. Everything else is derived: messages over the boundaries,
 * recomputation before a backward, updates, memory. A list belongs to a stage, or to a device,
 * which may then hold several stages.
 *
 * A backward may be split into two steps: CS_BACKWARD_INPUT computes the gradient that the previous
 * stage waits for, CS_BACKWARD_WEIGHT the gradient of the weights, at any later time.
 *
 * A stage may be held by several devices, its replicas. They take micro-batches in turn (each runs
 * its own steps of the stage's list), or each computes a share of every micro-batch (cs_replicas),
 * or they are places of a grid and each sends its part to the same place of the next stage.
 * Replica i of R sends its samples to the replicas of the next stage whose shares overlap its own.
 * Before an update an all-reduce sums the gradients; a device that waits for it computes nothing
 * else. With CS_REPLICAS_ROUND_ROBIN and `continuous` this happens once every R micro-batches, one
 * per replica; the last time may have fewer.
 *
 * If stages share weights (ties.h), the gradients of all copies are also summed before the update,
 * after the all-reduces among replicas. With `continuous` they are not: each copy is updated with
 * its own gradients, and readers of the scenario are warned.
 *
 * program.h describes what a stage holds and computes in a pass. Weights, gradients and optimizer
 * states exist throughout.
 */
#ifndef CS_SCHEDULES_PIPELINE_H
#define CS_SCHEDULES_PIPELINE_H

#include "schedules/schedule.h"

/* Rows of parameter tables shared by pipelines. */
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
    /* whether the next or previous step in the list belongs to another micro-batch, and the layers
     * of each step hide the other's messages to experts */
    bool paired;
} cs_pipeline_step;

typedef struct cs_pipeline_shape {
    const cs_job *job;
    uint32_t n_stages;
    uint32_t n_devices; /* devices of the job; on a grid, pipeline ranks */
    /* micro-batches of one mini-batch, or of the whole run if mini-batches overlap */
    uint32_t n_micros;
    const void *params; /* parameters of the schedule */
} cs_pipeline_shape;

/* Returns the list with the steps of a stage, if one list may have several stages: <
 * shape->n_devices. */
typedef uint32_t cs_pipeline_list(const cs_pipeline_shape *shape, uint32_t stage);

/* Gets step k of a list. Returns false after the last one. */
typedef bool cs_pipeline_order(const cs_pipeline_shape *shape, uint32_t list, uint32_t k,
                               cs_pipeline_step *step);

/* Alternates forward and backward of each micro-batch, for a single stage. */
bool cs_pipeline_in_turn(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                         cs_pipeline_step *step);

/* Policies of a holder's forwards and backwards for choosing the version of the weights that they
 * read; CS_NONE: the current version, as always if backwards are split.
 *
 * A holder is a device that holds a stage: holder h is plan->devices[h]. The holders of stage s
 * start at plan->stages[s].first_device. */
typedef struct cs_stage_policies {
    uint32_t forward, backward;
} cs_stage_policies;

typedef struct cs_pipeline_options {
    cs_pipeline_order *order;
    cs_pipeline_list *list_of; /* returns a stage's list; NULL: one list per stage */
    bool recompute; /* keep only the stage's input, and repeat its forward before the backward */
    bool splits;    /* whether `order` contains halves of backwards */
    /* whether `order` contains paired steps; if not, hidden time is hidden in all steps */
    bool pairs;
    /* no flush: `order` runs over all micro-batches, with an update after every micro_batches-th
     * backward of a holder; else an update at the end of the list */
    bool continuous;
    /* Makes the policies of a holder; may be NULL. slots[h] has its weights; slots are numbered in
     * order of holders. */
    void (*policies)(const cs_job *job, const void *params, cs_builder *builder,
                     const uint32_t *slots, uint32_t holder, cs_stage_policies *made);
    const void *params; /* parameters of the schedule, for `order` and `policies` */
} cs_pipeline_options;

/* Returns the number of devices or, on a grid, of pipeline ranks: a stage adds a rank unless an
 * earlier stage is on its devices. */
uint32_t cs_pipeline_ranks(const cs_job *job);

/* Adds all tasks, in the order of a run where all take equal time. Every list must have each step
 * of its stages once. CS_INVALID if the order deadlocks; the message shows which step waits for
 * which. */
CS_MUST_CHECK cs_status cs_pipeline_generate(const cs_job *job, const cs_pipeline_options *options,
                                             cs_builder *builder, cs_error *error);

/* Times of the slowest stage, and properties of the messages. */
typedef struct cs_pipeline_times {
    cs_time forward, backward, update;
    cs_time input, weight; /* times of the halves of a split backward */
    cs_time step;          /* time of a forward and a backward together */
    bool equal;            /* whether all stages have these times, ... */
    bool equal_halves;     /* ... including the times of the halves */
    /* whether every message goes between neighbouring devices, and so has the job's bandwidth and
     * latency; no stage is replicated or shares weights with another stage */
    bool neighbours;
    bool free_messages; /* whether messages take no time */
    /* whether messages take only their latency: even all their bytes together take no time */
    bool only_latency;
    bool short_messages; /* whether a message arrives before its sender has computed the next one */
} cs_pipeline_times;

/* Returns the time on the device of a stage for work that takes `time` at speed 1; CS_TIME_MAX on
 * overflow. */
cs_time cs_pipeline_time(const cs_job *job, uint32_t stage, cs_time time);

/* Returns the transfer time of the bytes of a message over the boundary after a stage; CS_TIME_MAX
 * on overflow. */
cs_time cs_pipeline_bytes_time(const cs_job *job, uint32_t stage);

void cs_pipeline_times_of(const cs_job *job, cs_pipeline_times *times);

/* Checks a job for schedules that keep versions of the weights: reports states that are sharded in
 * a way that makes older versions unavailable. `place` is the schedule's place in the file. */
CS_MUST_CHECK cs_status cs_pipeline_check_versions(const cs_job *job, const cs_json_place *place,
                                                   cs_error *error);

/* Whether some stage has several devices. */
bool cs_pipeline_replicated(const cs_job *job);

/* Whether messages between any two devices take no time. */
bool cs_pipeline_no_network(const cs_job *job);

/* Returns a + b, or CS_TIME_MAX on overflow: a closed form that overflows is not an error of the
 * run. */
cs_time cs_pipeline_add(cs_time a, cs_time b);

/* Adds the closed forms that GPipe and 1F1B share: makespan (M + P - 1)(f + b) per mini-batch and
 * bubble fraction (P - 1)/(M + P - 1). */
CS_MUST_CHECK cs_status cs_pipeline_add_forms(const cs_job *job, const cs_pipeline_times *times,
                                              const char *source, cs_forms *forms, cs_error *error);

/* Adds the peak of saved activations for every device: the bytes of at_once(job, s, replica)
 * micro-batches. */
typedef uint32_t cs_pipeline_count(const cs_job *job, uint32_t stage, uint32_t replica);
CS_MUST_CHECK cs_status cs_pipeline_add_peaks(const cs_job *job, cs_pipeline_count *at_once,
                                              const char *formula, const char *source,
                                              cs_forms *forms, cs_error *error);

#endif
