/* Stage programs: what a device of a stage holds, computes and sends in one pass.
 *
 * A pass is a forward, its repetition, a backward or a half of one, or an update. Its program is a
 * list of steps: computations, and collectives among the devices that hold the stage. All
 * generators take the durations and the memory of what they add from here.
 *
 * Memory of a stage on a device, per micro-batch:
 *   activations  what its layers keep, from the start of the forward to the end of the backward (split:
 *                of its second half); with recomputation only the stage's input, and the rest from the
 *                start of the recomputation on
 *   buffers      a message, at the sender while it is sent; at the receiver an activation until the
 *                forward that reads it starts (then it counts as kept), a gradient until the end of
 *                the backward that reads it (split: of both halves). Between two stages on one device
 *                there is no message, but the same buffer at the receiver
 *   workspace    what the largest layer needs while it computes, less the gradient that enters a
 *                backward, which is in its buffer
 */
#ifndef CS_SCHEDULES_PROGRAM_H
#define CS_SCHEDULES_PROGRAM_H

#include "schedules/schedule.h"

/* A pass over a stage, and what it has to do with the passes beside it. */
typedef struct cs_pass {
    cs_kind kind;    /* CS_FORWARD ... CS_UPDATE */
    bool recompute;  /* the stage keeps its input only until it is computed again */
    int64_t reads;   /* bytes of buffers that it frees */
    int64_t entered; /* backward: of them, bytes that the workspace of a layer has as well */
    int64_t leaves;  /* bytes of a buffer for the next stage on the same device, or 0 */
} cs_pass;

enum { CS_STEP_EFFECTS = 2 * CS_N_CATEGORIES };

/* One step, the same on each device. The devices of its effects are not looked at. */
typedef struct cs_program_step {
    cs_kind kind;
    cs_time duration; /* at speed 1 */
    uint32_t n_effects;
    cs_effect effects[CS_STEP_EFFECTS];
} cs_program_step;

/* The whole of a pass as one computation, of what a stage takes for it. A generator may change the
 * duration. */
cs_program_step cs_program_whole(const cs_layer_sum *stage, const cs_pass *pass);

/* Adds a class of the step on `like->device`, with its kind, duration and effects, and all else as
 * in `like`. */
uint32_t cs_program_class(cs_builder *builder, const cs_program_step *step, const cs_class *like);

/* A message behind `stage` in the direction in which it goes, without a class yet. */
cs_class cs_program_message(const cs_job *job, uint32_t stage, uint32_t from, uint32_t to,
                            int64_t bytes);

/* Adds its class. At the receiver it is a buffer until what reads it frees it; with `stored` only
 * until it is there. */
uint32_t cs_program_send(cs_builder *builder, const cs_class *message, bool stored);

#endif
