/* Whether a run without a flush has become periodic, and how many mini-batches are in flight.
 *
 * A mini-batch is in flight from the start of its first computation, when it enters, until all its
 * tasks and those of earlier ones have ended. What counts is the run until the last mini-batch
 * enters: up to then every longer run is the same. It is periodic when all that the mini-batches in
 * flight have started by then was started by those p before them the same time earlier, and ended
 * so as far as it has ended. What is computed, on its way and still to be done is then what it was
 * a period before, so that a longer run continues in the same way and never needs more memory.
 * (What the state does not show is how far transfers are that share a link; that follows from when
 * they started.) Where the last mini-batch ends otherwise than the others, as it has none to hand
 * its weights to, only what it has started is compared.
 */
#ifndef CS_ANALYSIS_RECURRENCE_H
#define CS_ANALYSIS_RECURRENCE_H

#include "sim/core/trace/trace.h"

typedef struct cs_recurrence {
    uint32_t n;     /* mini-batches of the shortest period; 0: it is not periodic */
    cs_time period; /* that they take */
    uint32_t first; /* mini-batch from which on it is periodic */
    uint32_t half,
        end; /* in flight when mini-batch n_batches / 2 enters, and when the last one does;
                         * it is one of them. 0 of a run that was stopped */
} cs_recurrence;

/* Periods of up to half of the mini-batches, and 256 of them, are found. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_recurrence_find(const cs_graph *graph, const cs_trace *trace,
                                           cs_recurrence *found, cs_error *error);

#endif
