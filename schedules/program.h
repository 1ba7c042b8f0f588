/* Stage programs: the memory, computations and messages of one pass of a stage on a device.
 *
 * A pass is a forward, its repetition, a backward or a half of one, or an update. Its program is a
 * list of steps: computations, and collectives among the devices that hold the stage. All
 * generators take durations and memory from here.
 *
 * Memory of a stage on a device, per micro-batch:
 *   activations  saved activations of its layers, from the start of the forward to the end of the
 *                backward (split: of its second half). With recomputation only the stage's input;
 *                the rest exists from the start of the recomputation
 *   buffers      a message. At the sender while it is sent. At the receiver, an activation until
 *                the forward that reads it starts (then it counts as saved), a gradient until the
 *                end of the backward that reads it (split: of both halves). Between two stages on
 *                one device there is no message, but the same buffer at the receiver.
 *                stage-buffers.h has messages that stay longer
 *   workspace    temporary memory of the largest layer, minus the gradient that enters a backward,
 *                which is in its buffer
 *
 * A pass is one step unless the devices of a stage are places of a grid and exchange something
 * during the pass. Then it has one step per run of layers' pieces without an exchange in between,
 * and:
 *   - A step saves the activations of the layers that begin in it; in a backward it frees the
 *     activations of the layers that end in it.
 *   - A layer has its workspace from its first step to its last, including exchanges in between.
 *     Its kept_bytes and workspace_bytes include everything that its pieces read and write, and
 *     the data that an exchange gathers or reduces: an exchange that pieces wait for needs no extra
 *     memory. Data that arrives during a computation is in a buffer until the end of the next
 *     piece, which reads it.
 *   - A device runs one pass at a time: the first steps of a pass wait for the whole previous pass,
 *     and messages leave at the end of the pass. CS_BACKWARD_WEIGHT exchanges
 *     nothing within layers; the other half of the backward does.
 *   - Layers with `recompute` repeat their forward, with its exchanges, before their backward.
 *   - Sums of gradients follow the unit of layers (states.h) that they belong to, or that fills
 *     their bucket. They overlap with the rest of the backward, one after the other; an update
 *     waits for the last one. Gradients scattered after each micro-batch exist in full from the
 *     start of their unit's backward until then, in addition to the device's own share; a unit
 *     waits until the gradients of the last unit but one have been scattered.
 *   - At ZeRO stage 3 the weights of a unit are gathered before it computes, unit after unit, when
 *     the unit `prefetch` + 1 before it has ended, or the previous pass. They exist from then to
 *     the end of the unit, in addition to the device's own share (gathered_weights). With
 *     `keep_gathered`, a forward gathers them if no micro-batch is between forward and backward,
 *     and they stay until no micro-batch is any more. So do weights that a later layer of the stage
 *     uses as well (cs_states_borrows); their full gradients exist from that layer's backward.
 *   - At stages 1 and 2 the weights are gathered in place after the update; the next forward waits
 *     for this.
 *   - Copies to the host and back are steps that overlap with the others, one after the other in
 *     each direction (offload.h).
 */
#ifndef CS_SCHEDULES_PROGRAM_H
#define CS_SCHEDULES_PROGRAM_H

#include "schedules/offload.h"
#include "schedules/schedule.h"

/* A pass over a stage, and its relation to neighbouring passes. */
typedef struct cs_program_pass {
    cs_kind kind;    /* kind of the pass, CS_FORWARD to CS_UPDATE */
    bool recompute;  /* whether the stage keeps only its input until the forward is repeated */
    int64_t reads;   /* bytes of buffers that the pass frees */
    int64_t entered; /* backward: bytes of `reads` that are also part of a layer's workspace */
    int64_t leaves;  /* buffer for the next stage on the same device, bytes, or 0 */
    int64_t copied;  /* additional bytes of an update while it runs */
    int64_t results; /* on a grid: results that stay after the pass, bytes (stage-buffers.h) */
    /* On a grid: */
    bool gathered; /* weights that stay gathered are gathered already */
    bool releases; /* the gathered weights are not needed after this pass */
    bool last;     /* last pass of its kind in its mini-batch: completes the gradients */
} cs_program_pass;

/* Bits of cs_program_step.flags: dependencies on things other than steps. */
enum {
    CS_STEP_BEGINS = 1,   /* waits for the device's previous pass */
    CS_STEP_RECEIVES = 2, /* waits for the message that the pass reads */
    CS_STEP_ENDS = 4,     /* messages, and the device's next pass, wait for it */
    CS_STEP_SUMS = 8,     /* waits for the latest sum of the stage's gradients */
    CS_STEP_SUMMED = 16,  /* is the latest sum of the stage's gradients */
    CS_STEP_READS = 32,   /* waits until the updated weights are gathered */
    CS_STEP_READY = 64,   /* gathers the updated weights */
    /* is a copy to the host; waits for the device's latest copy in that direction */
    CS_STEP_TO_HOST = 128,
    /* is a copy from the host; waits for the latest one, and for the micro-batch's copies to the
     * host */
    CS_STEP_FROM_HOST = 256,
};

enum { CS_STEP_EFFECTS = 2 * CS_N_CATEGORIES + 2, CS_STEP_WAITS = 6 };

/* One step, the same on each device. The devices in its effects are ignored. */
typedef struct cs_program_step {
    cs_kind kind; /* a computation, CS_TRANSFER (a copy to or from the host), or a collective */
    cs_axes_name axes;
    cs_purpose purpose;
    int64_t bytes, bytes_back; /* bytes of a collective or copy, as in cs_class */
    cs_time duration;          /* duration of a computation at speed 1, or of a copy */
    cs_time host;              /* work of the host, as in cs_class */
    bool syncs, syncs_before;  /* waits of the host: cs_class.waits, cs_class.waits_before */
    uint32_t flags;
    /* earlier steps that it waits for; program order is implied */
    uint32_t n_waits, waits[CS_STEP_WAITS];
    uint32_t n_effects;
    cs_effect effects[CS_STEP_EFFECTS];
} cs_program_step;

/* Data that all programs of a stage share. */
typedef struct cs_program_stage {
    const cs_job *job;
    uint32_t stage;
    /* On a grid, for cs_program_stage_finish: */
    /* per layer of the stage; kept_bytes without bytes that earlier layers keep already */
    cs_layer_sum *sums;
    struct cs_program_unit *units; /* units of layers, from the last to the first */
    uint32_t n_units;
    cs_stage_offload offload;
} cs_program_stage;

typedef struct cs_program {
    uint32_t n;
    cs_program_step *steps; /* steps; freed by cs_program_finish */
} cs_program;

static inline bool cs_step_computes(const cs_program_step *step)
{
    return cs_kind_group_of(step->kind) == CS_GROUP_COMPUTE;
}

static inline bool cs_step_copies(const cs_program_step *step)
{
    return step->kind == CS_TRANSFER;
}

/* Makes a whole pass as one computation with the stage's total time. A generator may change the
 * duration. */
cs_program_step cs_program_whole(const cs_layer_sum *stage, const cs_program_pass *pass);

/* Adds the host's work before a forward, fetching the micro-batch, to its first step. */
void cs_program_fetch(const cs_job *job, uint32_t stage, cs_program_step *step);

/* Prepares the data that all programs of a stage share. cs_program_stage_finish must be called,
 * even after failure. CS_INVALID if layers lack pieces for the job's number of samples. */
CS_MUST_CHECK cs_status cs_program_stage_init(const cs_job *job, uint32_t stage,
                                              cs_program_stage *made, cs_error *error);
void cs_program_stage_finish(cs_program_stage *stage);

/* Makes the program of a pass over a stage; cs_program_finish must be called, even after failure.
 * It has one step if replicas are not a grid. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_program_make(const cs_program_stage *stage, const cs_program_pass *pass,
                                        cs_program *program, cs_error *error);
void cs_program_finish(cs_program *program);

/* Adds the class of a computing step on `like->device`, with the step's kind, duration and effects;
 * everything else is as in `like`. */
uint32_t cs_program_class(cs_builder *builder, const cs_program_step *step, const cs_class *like);

/* Describes a message over the boundary after `stage`, in either direction, without adding its
 * class. */
cs_class cs_program_message(const cs_job *job, uint32_t stage, uint32_t from, uint32_t to,
                            int64_t bytes);

/* Adds the message's class. At the receiver it is a buffer until its reader frees it, or with
 * `stored` until it has arrived. */
uint32_t cs_program_send(cs_builder *builder, const cs_class *message, bool stored);

/* Adds a message that occupies `sent` bytes at the sender during the transfer and `arrives` bytes
 * at the receiver, summed over all receivers of parts. Either is 0 if it is in a permanent
 * buffer. */
uint32_t cs_program_send_between(cs_builder *builder, const cs_class *message, int64_t sent,
                                 int64_t arrives);

/* Internal to program*.c: add bytes to the effect of the same category and instant; prepare the
 * data that passes on a grid share; make the steps of one pass. Results that stay and offloaded
 * activations are tensors, so each is a separate effect, at most one per step. */
void cs_step_add_effect(cs_program_step *step, cs_category category, int64_t bytes, bool at_end);
void cs_step_add_results(cs_program_step *step, int64_t bytes);
void cs_step_add_offloaded(cs_program_step *step, int64_t bytes, bool at_end);
CS_MUST_CHECK cs_status cs_program_stage_init_grid(cs_program_stage *made, cs_error *error);
CS_MUST_CHECK cs_status cs_program_make_grid(const cs_program_stage *stage,
                                             const cs_program_pass *pass, cs_program *program,
                                             cs_error *error);

#endif
