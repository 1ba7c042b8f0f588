/* Memory of the host that offloading takes (schedules/offload.h): that of a tensor is there from
 * the start of its copy to the host to the end of its copy back. */
#ifndef CS_ANALYSIS_OFFLOADED_H
#define CS_ANALYSIS_OFFLOADED_H

#include "sim/core/trace/trace.h"

/* Per device of the graph, the most bytes that it has on its host at any time, for free(); *peaks
 * is NULL where nothing is offloaded. Of a device that another one stands for it is the other's.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_offloaded_peaks(const cs_graph *graph, const cs_trace *trace,
                                           int64_t **peaks, cs_error *error);

#endif
