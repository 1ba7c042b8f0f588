/* Judgement of predictions by measured runs: errors, missing time per part of the step, ranking of
 * layouts, trends, peers, and coverage of intervals. */
#ifndef CS_VALIDATE_JUDGEMENT_H
#define CS_VALIDATE_JUDGEMENT_H

#include "sim/study/validate/error-parts.h"
#include "sim/study/validate/error-table.h"
#include "sim/study/validate/error-trends.h"
#include "sim/study/validate/interval.h"
#include "sim/study/validate/layout-groups.h"
#include "sim/study/validate/peer-errors.h"

typedef struct cs_judgement {
    cs_error_table table;
    cs_error_parts_table parts;
    cs_layout_groups groups;
    cs_error_trends trends;
    cs_peer_table peers;
    cs_left_out left_out;
    cs_coverage coverage;
    cs_note_counts missing, assumed;
    uint32_t n_timed;                      /* number of runs whose errors of the step time count */
    uint32_t n_uses[CS_SOURCE_FITTED + 1]; /* number of runs per cs_source_use */
    cs_error_summary unfitted; /* errors of the step time of runs that no parameter was fitted to */
} cs_judgement;

/* Allowed on a zeroed struct. */
void cs_judgement_finish(cs_judgement *judgement);

/* Makes the judgement. The predictions must outlive it. CS_NO_MEMORY; CS_INVALID if
 * facts/left-out.json is invalid. */
CS_MUST_CHECK cs_status cs_judgement_make(const cs_predictions *predictions,
                                          cs_judgement *judgement, cs_error *error);

#endif
