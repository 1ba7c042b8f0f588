/* Host memory used for offloading (schedules/offload.h). A tensor occupies it from the start of its
 * copy to the host to the end of its copy back. */
#ifndef CS_ANALYSIS_OFFLOADED_H
#define CS_ANALYSIS_OFFLOADED_H

#include "sim/core/trace/trace.h"

/* Finds the peak of host memory, in bytes, per device of the graph. The caller frees *peaks, which
 * is NULL if nothing is offloaded. Represented devices have the peak of their representative.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_offloaded_peaks(const cs_graph *graph, const cs_trace *trace,
                                           int64_t **peaks, cs_error *error);

#endif
