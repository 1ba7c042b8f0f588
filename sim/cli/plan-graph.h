/* `sim plan GRAPH.txt --devices N`: cuts a network with branches into stages like PipeDream's own
 * optimizer (schedules/plan/replication.h), from a profile that its project publishes. */
#ifndef CS_CLI_PLAN_GRAPH_H
#define CS_CLI_PLAN_GRAPH_H

#include "sim/cli/command.h"

/* Reads --devices, --bandwidth, --memory and --json. CS_USAGE: wrong values. */
CS_MUST_CHECK cs_status cs_plan_graph(const cs_context *context, const cs_arguments *arguments,
                                      cs_error *error);

#endif
