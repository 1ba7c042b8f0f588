/* Converts the notes of a replay into a trace of the same form as a simulation's, so that results
 * files, pictures and analyses work on both. */
#ifndef CS_REPLAY_NOTES_TRACE_H
#define CS_REPLAY_NOTES_TRACE_H

#include "sim/core/trace/trace.h"
#include "sim/run/replay/replay.h"

/* Per task of the graph; -1 for tasks of other devices. */
typedef struct cs_notes {
    /* s on the machine's clock; a message has two ends, and its later end counts */
    double *enter, *leave;
    /* bytes on a computation's device: after it, and the maximum since the previous computation,
     * including messages in between */
    double *live, *most;
} cs_notes;

/* Builds the trace from the combined notes of all processes. Memory is what they really held: bytes
 * resident from the start by their categories; everything else, which a process does not
 * distinguish, as activations; and bytes held only within a task as workspace. `resident` has
 * CS_N_CATEGORIES values per device. CS_FAILED: a task was not executed. */
CS_MUST_CHECK cs_status cs_measured_trace(const cs_replay *replay, const cs_notes *notes,
                                          const double *resident, cs_trace *trace, cs_error *error);

#endif
