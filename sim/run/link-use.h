/* Utilisation of links over time, for the results file: group /link_use.
 *
 * The time until the makespan is divided into CS_LINK_USE_PARTS equal intervals. A message counts
 * on each link of its route with its mean rate, bytes / (end - start), including latency and the
 * time spent waiting for links. So the total bytes of a link are exact, but if messages wait for
 * each other, they are spread too evenly, and an interval may show more than the bandwidth.
 * Background traffic is left out. */
#ifndef CS_RUN_LINK_USE_H
#define CS_RUN_LINK_USE_H

#include "sim/core/trace/h5.h"
#include "sim/core/trace/trace.h"
#include "topologies/route.h"

enum {
    CS_LINK_USE_PARTS = 200, /* intervals of time */
    CS_LINK_USE_LINKS = 32,  /* links with the most traffic */
};

/* Writes the table: a row per interval and link with traffic. It is empty if some devices represent
 * others, since not all messages are simulated then. CS_OVERFLOW, CS_NO_MEMORY, CS_IO. */
CS_MUST_CHECK cs_status cs_link_use_store(cs_h5_file *file, const cs_platform *platform,
                                          const cs_graph *graph, const cs_trace *trace,
                                          cs_error *error);

#endif
