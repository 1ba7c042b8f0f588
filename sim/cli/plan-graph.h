/* `sim plan GRAPH.txt --devices N`: stages of a network with branches, as PipeDream's own optimizer
 * cuts it (schedules/plan/replication.h), from the profile that its project publishes. */
#ifndef CS_CLI_PLAN_GRAPH_H
#define CS_CLI_PLAN_GRAPH_H

#include "sim/cli/command.h"

/* Reads --devices, --bandwidth, --memory and --json. CS_USAGE for what is wrong with them. */
CS_MUST_CHECK cs_status cs_plan_graph(const cs_context *context, const cs_arguments *arguments,
                                      cs_error *error);

#endif
