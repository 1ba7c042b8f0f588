/* What is counted for the summary of a lowering. `ways` are per class of the graph, NULL for what is
 * no collective. Internal to sim/core/lower. */
#ifndef CS_LOWER_LOWER_REPORT_H
#define CS_LOWER_LOWER_REPORT_H

#include "sim/core/lower/plan-collective.h"

/* Adds its name to the algorithms, once: "ring, direct". */
void cs_lower_note_algorithm(cs_lower_report *report, const char *name);

/* Each collective under what NCCL picked for it. */
void cs_lower_count_choices(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report);

/* Each collective under where the time of its delay comes from. */
void cs_lower_count_measured(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report);

/* Bytes of messages by purpose; `ways` is NULL where the graph has no collectives. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_lower_count_moved(const cs_graph *graph, cs_way *const *ways,
                                             cs_lower_report *report, cs_error *error);

#endif
