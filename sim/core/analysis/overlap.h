/* Overlap of communication with computation. */
#ifndef CS_ANALYSIS_OVERLAP_H
#define CS_ANALYSIS_OVERLAP_H

#include "sim/core/analysis/analysis.h"

/* Fills `active`, `active_for` and `hidden` of each device's use. Returns false if memory runs out.
 * Takes O(n log n). */
CS_MUST_CHECK bool cs_overlap_find(const cs_graph *graph, const cs_trace *trace,
                                   cs_time_use *devices);

#endif
