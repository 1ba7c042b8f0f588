/* Stage programs: what a device of a stage holds, computes and sends in one pass.
 *
 * A pass is a forward, its repetition, a backward or a half of one, or an update. Its program is a
 * list of steps: computations, and collectives among the devices that hold the stage. All
 * generators take the durations and the memory of what they add from here.
 *
 * Memory of a stage on a device, per micro-batch:
 *   activations  what its layers keep, from the start of the forward to the end of the backward
 *                (split: of its second half); with recomputation only the stage's input, and the
 *                rest from the start of the recomputation on
 *   buffers      a message, at the sender while it is sent; at the receiver an activation until the
 *                forward that reads it starts (then it counts as kept), a gradient until the end of
 *                the backward that reads it (split: of both halves). Between two stages on one
 *                device there is no message, but the same buffer at the receiver
 *                What stages keep of messages besides is in stage-buffers.h
 *   workspace    what the largest layer needs while it computes, less the gradient that enters a
 *                backward, which is in its buffer
 *
 * A pass is one step, unless the devices of a stage are places of a grid and have something to
 * exchange within it. Then it is a step per run of layers' pieces without an exchange in between,
 * and:
 *   - A step keeps, and in a backward frees, what the layers do that begin, or end, in it.
 *   - A layer has its workspace from its first step to its last, exchanges in between included. Its
 *     kept_bytes and workspace_bytes have all that its pieces read and write, what an exchange
 *     gathers or reduces as well: an exchange that pieces wait for needs no memory of its own.
 *     What comes in beside a computation is a buffer until the end of the next piece, which reads
 *     it.
 *   - A device does one pass at a time: what stands first in a pass waits for all of the pass
 *     before, and messages leave when the pass has ended. Of the gradient of the weights
 *     (CS_BACKWARD_WEIGHT) nothing is exchanged within layers; the other half does it all.
 *   - Layers with `recompute` repeat their forward, with its exchanges, in front of their backward.
 *   - Sums of gradients follow the unit of layers (states.h) that they are of, or that fills their
 *     bucket, and run beside the rest of the backward, one behind the other; an update waits for
 *     the last one. Gradients that
 *     are scattered after each micro-batch are there whole from the start of their unit's backward
 *     until then, besides the share that rests; a unit waits until those of the unit before the
 *     last are scattered.
 *   - At ZeRO stage 3 the weights of a unit are gathered before it computes, one unit after the
 *     other, when the unit `prefetch` + 1 before it has ended, or the pass before: they are there
 *     from then to the end of the unit, besides the share that rests (gathered_weights). With
 *     `keep_gathered` they are gathered by a forward with which no micro-batch was between forward
 *     and backward, and there until the backward after which none is; and so are those that a later
 *     layer of the stage uses as well (cs_states_borrows), whose whole gradients are there from
 *     that layer's backward on.
 *   - At stages 1 and 2 the weights are gathered, in place, after the update; the next forward
 *     waits for it.
 *   - Copies to the host and back are steps beside the others, one behind the other in each
 *     direction (offload.h).
 */
#ifndef CS_SCHEDULES_PROGRAM_H
#define CS_SCHEDULES_PROGRAM_H

#include "schedules/offload.h"
#include "schedules/schedule.h"

/* A pass over a stage, and what it has to do with the passes beside it. */
typedef struct cs_program_pass {
    cs_kind kind;    /* CS_FORWARD ... CS_UPDATE */
    bool recompute;  /* the stage keeps its input only until it is computed again */
    int64_t reads;   /* bytes of buffers that it frees */
    int64_t entered; /* backward: of them, bytes that the workspace of a layer has as well */
    int64_t leaves;  /* bytes of a buffer for the next stage on the same device, or 0 */
    int64_t copied;  /* bytes that an update has besides while it runs */
    int64_t results; /* of a grid: bytes of results that stay behind it, see stage-buffers.h */
    /* On a grid: */
    bool gathered; /* weights that stay gathered are whole already */
    bool releases; /* kept weights are no longer needed behind it */
    bool last;     /* of its kind in its mini-batch: gradients are complete after it */
} cs_program_pass;

/* Bits of cs_program_step.flags: what it waits for besides steps, and what waits for it. */
enum {
    CS_STEP_BEGINS = 1,    /* what the device did in the pass before */
    CS_STEP_RECEIVES = 2,  /* the message that the pass reads */
    CS_STEP_ENDS = 4,      /* messages wait for it, and what the device does next */
    CS_STEP_SUMS = 8,      /* waits for the latest sum of gradients of the stage, */
    CS_STEP_SUMMED = 16,   /* is it */
    CS_STEP_READS = 32,    /* waits until the weights are gathered after their update, */
    CS_STEP_READY = 64,    /* has gathered them */
    CS_STEP_TO_HOST = 128, /* waits for the device's latest copy in its direction, and is it: to */
    CS_STEP_FROM_HOST = 256, /* the host, or from it, when the micro-batch's copies to it ended */
};

enum { CS_STEP_EFFECTS = 2 * CS_N_CATEGORIES + 2, CS_STEP_WAITS = 6 };

/* One step, the same on each device. The devices of its effects are not looked at. */
typedef struct cs_program_step {
    cs_kind kind; /* what is computed, CS_TRANSFER: a copy to the host or back, or a collective: */
    cs_axes_name axes;
    cs_purpose purpose;
    int64_t bytes, bytes_back; /* see cs_class */
    cs_time duration;          /* of a computation, at speed 1; of a copy */
    cs_time host;              /* see cs_class */
    bool syncs, syncs_before;  /* cs_class.waits, cs_class.waits_before */
    uint32_t flags;
    uint32_t n_waits, waits[CS_STEP_WAITS]; /* steps in front of it; program order is implied */
    uint32_t n_effects;
    cs_effect effects[CS_STEP_EFFECTS];
} cs_program_step;

/* What all programs of a stage have in common. */
typedef struct cs_program_stage {
    const cs_job *job;
    uint32_t stage;
    /* Of a stage on a grid, for cs_program_stage_finish: */
    cs_layer_sum *sums; /* per layer of the stage; kept_bytes without what those before keep
                                    * already */
    struct cs_program_unit *units; /* from the last layers to the first */
    uint32_t n_units;
    cs_stage_offload offload;
} cs_program_stage;

typedef struct cs_program {
    uint32_t n;
    cs_program_step *steps; /* for cs_program_finish */
} cs_program;

static inline bool cs_step_computes(const cs_program_step *step)
{
    return cs_kind_group_of(step->kind) == CS_GROUP_COMPUTE;
}

static inline bool cs_step_copies(const cs_program_step *step)
{
    return step->kind == CS_TRANSFER;
}

/* The whole of a pass as one computation, of what a stage takes for it. A generator may change the
 * duration. */
cs_program_step cs_program_whole(const cs_layer_sum *stage, const cs_program_pass *pass);

/* Adds to the first step of a forward what the host does before: it fetches the micro-batch. */
void cs_program_fetch(const cs_job *job, uint32_t stage, cs_program_step *step);

/* For cs_program_stage_finish, also when it failed. CS_INVALID when layers with pieces are not
 * there for the job's samples. */
CS_MUST_CHECK cs_status cs_program_stage_init(const cs_job *job, uint32_t stage,
                                              cs_program_stage *made, cs_error *error);
void cs_program_stage_finish(cs_program_stage *stage);

/* The program of a pass over a stage, for cs_program_finish, also when it failed. With replicas
 * that are no grid it is one step. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_program_make(const cs_program_stage *stage, const cs_program_pass *pass,
                                        cs_program *program, cs_error *error);
void cs_program_finish(cs_program *program);

/* Adds a class of a computing step on `like->device`, with its kind, duration and effects, and all
 * else as in `like`. */
uint32_t cs_program_class(cs_builder *builder, const cs_program_step *step, const cs_class *like);

/* A message behind `stage` in the direction in which it goes, without a class yet. */
cs_class cs_program_message(const cs_job *job, uint32_t stage, uint32_t from, uint32_t to,
                            int64_t bytes);

/* Adds its class. At the receiver it is a buffer until what reads it frees it; with `stored` only
 * until it is there. */
uint32_t cs_program_send(cs_builder *builder, const cs_class *message, bool stored);

/* The same of a message that is `sent` bytes at the sender while it is sent, and `arrives` bytes at
 * the receiver: of all who receive parts together; either is 0 where it is in a buffer that
 * stays. */
uint32_t cs_program_send_between(cs_builder *builder, const cs_class *message, int64_t sent,
                                 int64_t arrives);

/* Internal to program*.c: adds bytes to those of the same category and instant; what passes on a
 * grid have in common; and the steps of one. Results that stay, and what is offloaded of a layer,
 * are an effect of their own, one of a step: they are a tensor. */
void cs_step_add_effect(cs_program_step *step, cs_category category, int64_t bytes, bool at_end);
void cs_step_add_results(cs_program_step *step, int64_t bytes);
void cs_step_add_offloaded(cs_program_step *step, int64_t bytes, bool at_end);
CS_MUST_CHECK cs_status cs_program_stage_init_grid(cs_program_stage *made, cs_error *error);
CS_MUST_CHECK cs_status cs_program_make_grid(const cs_program_stage *stage,
                                             const cs_program_pass *pass, cs_program *program,
                                             cs_error *error);

#endif
