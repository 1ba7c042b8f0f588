#include "sim/study/validate/judgement.h"

#include <math.h>
#include <stdlib.h>

void cs_judgement_finish(cs_judgement *judgement)
{
    cs_error_table_finish(&judgement->table);
    cs_error_parts_finish(&judgement->parts);
    cs_layout_groups_finish(&judgement->groups);
    cs_error_trends_finish(&judgement->trends);
    cs_peer_table_finish(&judgement->peers);
    cs_left_out_finish(&judgement->left_out);
    cs_note_counts_finish(&judgement->missing);
    cs_note_counts_finish(&judgement->assumed);
    *judgement = (cs_judgement){0};
}

/* Summarises the errors of runs whose sources were not used in a fit. */
static cs_status sum_unfitted(const cs_predictions *predictions, cs_judgement *made,
                              cs_error *error)
{
    double *errors = malloc((predictions->n + 1ULL) * sizeof(*errors));
    uint32_t n = 0;
    if (!errors)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cs_prediction *from = &predictions->items[i];
        const double error_of = cs_prediction_error(from, CS_MEASURE_TIME);
        if (!isfinite(error_of) || !cs_point_is_exact(from->point))
            continue;
        const cs_source_use use = cs_left_out_use(&made->left_out, from->point->dataset);
        made->n_timed++;
        made->n_uses[use]++;
        if (use != CS_SOURCE_FITTED)
            errors[n++] = error_of;
    }
    made->unfitted = cs_error_summarise(errors, n);
    free(errors);
    return CS_OK;
}

cs_status cs_judgement_make(const cs_predictions *predictions, cs_judgement *judgement,
                            cs_error *error)
{
    cs_judgement made = {0};
    cs_status status = cs_left_out_read(NULL, &made.left_out, error);
    if (status == CS_OK)
        status = cs_error_table_make(predictions, &made.table, error);
    if (status == CS_OK)
        status = cs_error_parts_make(predictions, &made.parts, error);
    if (status == CS_OK)
        status = cs_layout_groups_make(predictions, &made.groups, error);
    if (status == CS_OK)
        status = cs_error_trends_make(predictions, &made.trends, error);
    if (status == CS_OK)
        status = cs_peer_table_make(predictions, &made.peers, error);
    if (status == CS_OK)
        status = cs_coverage_find(predictions, &made.left_out, &made.coverage, error);
    if (status == CS_OK)
        status = cs_count_missing(predictions, &made.missing, error);
    if (status == CS_OK)
        status = cs_count_assumed(predictions, &made.assumed, error);
    if (status == CS_OK)
        status = sum_unfitted(predictions, &made, error);
    if (status != CS_OK)
        cs_judgement_finish(&made);
    *judgement = made;
    return status;
}
