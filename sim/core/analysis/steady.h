/* The steady part of a run: the pipeline neither fills nor drains.
 *
 * The fill comprises the mini-batches whose work began before the work of the first one had ended,
 * and is over when the last of them ends. The drain begins with the work of the last mini-batch. A
 * mini-batch is steady if it ends after the fill, and before or when the drain begins. As
 * everywhere, a mini-batch ends with its last computation, including updates, and not before
 * earlier mini-batches; its work is its computations without updates. */
#ifndef CS_ANALYSIS_STEADY_H
#define CS_ANALYSIS_STEADY_H

#include "sim/core/trace/trace.h"

typedef struct cs_steady_part {
    uint32_t in_flight; /* mini-batches in the fill; 1: there is a flush, or only one mini-batch */
    uint32_t n;         /* steady mini-batches */
    double bubble;      /* share of all devices' time spent not computing, from the end of the fill
                         * to the end of the last steady mini-batch; NaN if n < 2 */
} cs_steady_part;

/* Finds the steady part; a stopped run has none. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_steady_find(const cs_graph *graph, const cs_trace *trace,
                                       cs_steady_part *part, cs_error *error);

#endif
