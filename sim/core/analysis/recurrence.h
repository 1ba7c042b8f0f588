/* Detects whether a run without a flush has become periodic, and counts the mini-batches in flight.
 *
 * A mini-batch enters when its first computation starts, and is in flight until all its tasks and
 * all earlier mini-batches have ended. Only the run until the last mini-batch enters is
 * examined, since any longer run is the same up to then. It is periodic with p mini-batches if
 * every task that the mini-batches in flight have started by then corresponds to a task of the
 * mini-batch p before, which started one period earlier, and also ended one period earlier if it
 * has ended. Then the state is the same as one period before, so a longer run continues in the same
 * way and never needs more memory. (The state does not include the progress of transfers that share
 * a link, but that follows from their start times.) If the last mini-batch ends differently,
 * because there is no next one to receive its weights, only its started tasks are compared. */
#ifndef CS_ANALYSIS_RECURRENCE_H
#define CS_ANALYSIS_RECURRENCE_H

#include "sim/core/trace/trace.h"

typedef struct cs_recurrence {
    uint32_t n;     /* mini-batches per shortest period; 0: not periodic */
    cs_time period; /* length of the shortest period */
    uint32_t first; /* first mini-batch of the periodic part */
    uint32_t half,
        end; /* mini-batches in flight when mini-batch n_batches / 2, or the last one, enters,
              * including itself; 0: the run was stopped */
} cs_recurrence;

/* Finds periods of up to half of the mini-batches, and at most 256. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_recurrence_find(const cs_graph *graph, const cs_trace *trace,
                                           cs_recurrence *found, cs_error *error);

#endif
