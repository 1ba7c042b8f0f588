/* How busy links are over time, for the results file: group /link_use.
 *
 * The time until the makespan is divided into CS_LINK_USE_PARTS equal stretches. A message counts
 * on each link of its route with its mean rate, bytes / (end - start): its latencies, and the time
 * in which it waits for links, are parts of that. So a link's bytes are exact in all; where
 * messages wait for each other they are spread too evenly, and a stretch may show more than the
 * bandwidth. Messages of others (background) are not messages of the run, and left out.
 */
#ifndef CS_RUN_LINK_USE_H
#define CS_RUN_LINK_USE_H

#include "sim/core/trace/h5.h"
#include "sim/core/trace/trace.h"
#include "topologies/route.h"

enum {
    CS_LINK_USE_PARTS = 200, /* stretches of time */
    CS_LINK_USE_LINKS = 32,  /* those that carried most */
};

/* Writes the table: a row for each stretch in which one of these links carries something; none
 * where some devices stand for others, as not all messages are simulated. CS_OVERFLOW,
 * CS_NO_MEMORY, CS_IO. */
CS_MUST_CHECK cs_status cs_link_use_store(cs_h5_file *file, const cs_platform *platform,
                                          const cs_graph *graph, const cs_trace *trace,
                                          cs_error *error);

#endif
