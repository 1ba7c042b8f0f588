/* What a replay noted, as a trace: the same form as a simulation's, so that results files, pictures
 * and analyses work on both. */
#ifndef CS_REPLAY_NOTES_TRACE_H
#define CS_REPLAY_NOTES_TRACE_H

#include "sim/core/trace/trace.h"
#include "sim/run/replay/replay.h"

/* Per task of the graph; what is another device's is -1. */
typedef struct cs_notes {
    double *enter, *leave; /* s on the machine's clock; a message has two ends, and ends last */
    double *live, *most;   /* bytes of a computation's device: behind it, and most since the one
                            * before it, messages in between included */
} cs_notes;

/* `notes` are those of all processes together. Memory is what they really held: what is resident
 * from the start by its categories; all else, which a process does not tell apart, as activations,
 * and what is there only within a task as workspace. `resident` has the bytes of each device,
 * CS_N_CATEGORIES for each. CS_FAILED when a task was not done. */
CS_MUST_CHECK cs_status cs_measured_trace(const cs_replay *replay, const cs_notes *notes,
                                          const double *resident, cs_trace *trace, cs_error *error);

#endif
