/* Summaries of the errors of predictions: for all points together, and for each kind of run,
 * layout, dataset, machine and feature. The step times of points of quality C are left out
 * (cs_point_is_exact). */
#ifndef CS_VALIDATE_ERROR_TABLE_H
#define CS_VALIDATE_ERROR_TABLE_H

#include "sim/study/validate/predict.h"

typedef enum cs_grouping {
    CS_GROUPING_ALL,
    CS_GROUPING_KIND,   /* network and number format, such as "dense, 16 bits" */
    CS_GROUPING_LAYOUT, /* division of the work among GPUs, such as "tensor parallel" */
    CS_GROUPING_DATASET,
    CS_GROUPING_GPU,
    CS_GROUPING_FEATURE, /* features of a point; a point counts in each of its features */
    CS_N_GROUPINGS
} cs_grouping;

/* Names of the groupings, NULL-terminated: "all", "kind", "layout", "dataset", "gpu", "feature". */
extern const char *const cs_grouping_names[];

/* Errors, predicted / measured - 1, of the points with both values. */
typedef struct cs_error_summary {
    uint32_t n;
    double mean, median; /* mean absolute error; NaN without points, like all members below */
    double largest;      /* error with the largest absolute value, with its sign */
    double bias;         /* mean error */
} cs_error_summary;

/* Counts of runs by prediction and outcome. A prediction that depends on recomputation,
 * which the point does not state, is counted separately: it is neither right nor wrong. In recall,
 * precision and false alarms it counts as a prediction that the run fits. */
typedef struct cs_verdicts {
    uint32_t n[2][2];    /* [ran out of memory][was predicted to] */
    uint32_t depends[2]; /* number of runs, indexed by [ran out of memory] */
} cs_verdicts;

/* Returns the fraction of runs out of memory that were predicted to be. NaN if no run was out of
 * memory; the next two functions return NaN likewise. */
double cs_verdicts_recall(const cs_verdicts *verdicts);

/* Returns, among the runs predicted to be out of memory, the fraction that really was. */
double cs_verdicts_precision(const cs_verdicts *verdicts);

/* Returns the fraction of runs that fit but were predicted to be out of memory. */
double cs_verdicts_false_alarms(const cs_verdicts *verdicts);

/* Summarises errors; sorts them by their absolute values. */
cs_error_summary cs_error_summarise(double *errors, uint32_t n);

typedef struct cs_error_row {
    cs_grouping grouping;
    const char *name; /* name of the group, such as a dataset; "" for all points */
    uint32_t n_points, n_states[CS_PREDICTION_FAILED + 1];
    cs_error_summary measures[CS_N_MEASURES];
    cs_verdicts verdicts;
    uint32_t n_verdicts, n_right; /* number of predictions that decide, and number of right ones */
} cs_error_row;

typedef struct cs_error_table {
    uint32_t n, capacity;
    cs_error_row *rows; /* sorted by grouping, then by first occurrence */
} cs_error_table;

/* Allowed on a zeroed struct. */
void cs_error_table_finish(cs_error_table *table);

/* Names are borrowed from the points, which must outlive the table. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_error_table_make(const cs_predictions *predictions,
                                            cs_error_table *table, cs_error *error);

/* A note that points have, and the number of these points. */
typedef struct cs_note_count {
    const char *text;
    uint32_t n;
} cs_note_count;

typedef struct cs_note_counts {
    uint32_t n, capacity;
    cs_note_count *items; /* counts, the most frequent first */
} cs_note_counts;

void cs_note_counts_finish(cs_note_counts *counts);

/* Count reasons: the first unsupported feature of each point without a scenario, and all
 * assumptions of predicted points. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_count_missing(const cs_predictions *predictions, cs_note_counts *counts,
                                         cs_error *error);
CS_MUST_CHECK cs_status cs_count_assumed(const cs_predictions *predictions, cs_note_counts *counts,
                                         cs_error *error);

#endif
