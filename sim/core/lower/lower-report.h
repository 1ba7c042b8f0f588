/* Counts for the summary of a lowering. `ways` has an entry per class of the graph, NULL for
 * classes that are not collectives. Internal to sim/core/lower. */
#ifndef CS_LOWER_LOWER_REPORT_H
#define CS_LOWER_LOWER_REPORT_H

#include "sim/core/lower/plan-collective.h"

/* Appends the name to report->algorithms unless it is there: "ring, direct". */
void cs_lower_note_algorithm(cs_lower_report *report, const char *name);

/* Counts collectives by NCCL's choice. */
void cs_lower_count_choices(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report);

/* Counts collectives by the origin of their delay's time. */
void cs_lower_count_measured(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report);

/* Counts bytes of messages by purpose; `ways` is NULL if the graph has no collectives.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_lower_count_moved(const cs_graph *graph, cs_way *const *ways,
                                             cs_lower_report *report, cs_error *error);

#endif
