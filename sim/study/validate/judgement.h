/* Everything that predictions of measured runs say about the predictions: errors, where steps lack
 * time, how layouts are ranked, trends, peers, and how often intervals hold. */
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
    uint32_t n_timed;                      /* runs whose errors of the step time count */
    uint32_t n_uses[CS_SOURCE_FITTED + 1]; /* counts by cs_source_use */
    cs_error_summary unfitted; /* errors of the step time of runs that no parameter was fitted to */
} cs_judgement;

/* Zeroed judgements can be finished. */
void cs_judgement_finish(cs_judgement *judgement);

/* The predictions must live as long. CS_NO_MEMORY, CS_INVALID of facts/left-out.json. */
CS_MUST_CHECK cs_status cs_judgement_make(const cs_predictions *predictions,
                                          cs_judgement *judgement, cs_error *error);

#endif
