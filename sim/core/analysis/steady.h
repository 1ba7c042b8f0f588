/* Where a run is steady: neither filling its pipeline nor draining it.
 *
 * The fill is over when the last of the mini-batches ends whose work began before the work of the
 * first one had ended; the drain begins when the work of the last mini-batch does. A mini-batch is
 * steady when it ends after the fill, but for the one that ends it, and no later than the drain
 * begins. A mini-batch ends, as everywhere, when its last computation does, updates included, and
 * no earlier than those before it; its work are its computations without the updates.
 */
#ifndef CS_ANALYSIS_STEADY_H
#define CS_ANALYSIS_STEADY_H

#include "sim/core/trace/trace.h"

typedef struct cs_steady_part {
    uint32_t in_flight; /* mini-batches of the fill; 1: there is a flush, or only one mini-batch */
    uint32_t n;         /* steady mini-batches */
    double bubble;      /* share of all devices' time in which they do not compute, from the end of
                         * the fill to the end of the last steady one; NaN where n < 2 */
} cs_steady_part;

/* Of a run that was stopped nothing is steady. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_steady_find(const cs_graph *graph, const cs_trace *trace,
                                       cs_steady_part *part, cs_error *error);

#endif
