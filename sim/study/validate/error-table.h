/* Errors of predictions, summed up: of all points, of each kind of run, layout, dataset, machine
 * and feature. The step times of points of quality C are left out (cs_point_is_exact). */
#ifndef CS_VALIDATE_ERROR_TABLE_H
#define CS_VALIDATE_ERROR_TABLE_H

#include "sim/study/validate/predict.h"

typedef enum cs_grouping {
    CS_GROUPING_ALL,
    CS_GROUPING_KIND,   /* network and number format, such as "dense, 16 bits" */
    CS_GROUPING_LAYOUT, /* how the GPUs share the work, such as "tensor parallel" */
    CS_GROUPING_DATASET,
    CS_GROUPING_GPU,
    CS_GROUPING_FEATURE, /* a point counts in each of its features */
    CS_N_GROUPINGS
} cs_grouping;

/* "all", "kind", "layout", "dataset", "gpu", "feature", ended by NULL. */
extern const char *const cs_grouping_names[];

/* Errors, predicted over measured less 1, of the points for which both are known. */
typedef struct cs_error_summary {
    uint32_t n;
    double mean, median; /* of the absolute errors; NaN without points, as all below */
    double largest;      /* by absolute value, with its sign */
    double bias;         /* mean of the errors */
} cs_error_summary;

/* Counts of runs by prediction and outcome. A prediction that depends on recomputation,
 * which the point does not state, is counted separately: it is neither right nor wrong. In recall,
 * precision and false alarms it counts as a prediction that the run fits. */
typedef struct cs_verdicts {
    uint32_t n[2][2];    /* [ran out of memory][was predicted to] */
    uint32_t depends[2]; /* [ran out of memory] */
} cs_verdicts;

/* Predicted fraction of the runs that ran out of memory. NaN: none did; likewise for the next
 * two. */
double cs_verdicts_recall(const cs_verdicts *verdicts);

/* The share of runs predicted to run out of memory that did. */
double cs_verdicts_precision(const cs_verdicts *verdicts);

/* The share of runs that fitted which was predicted to run out of memory. */
double cs_verdicts_false_alarms(const cs_verdicts *verdicts);

/* Sorts the errors by their absolute values. */
cs_error_summary cs_error_summarise(double *errors, uint32_t n);

typedef struct cs_error_row {
    cs_grouping grouping;
    const char *name; /* name of the dataset, ...; "" of all */
    uint32_t n_points, n_states[CS_PREDICTION_FAILED + 1];
    cs_error_summary measures[CS_N_MEASURES];
    cs_verdicts verdicts;
    uint32_t n_verdicts, n_right; /* predictions that decide, and those that are right */
} cs_error_row;

typedef struct cs_error_table {
    uint32_t n, capacity;
    cs_error_row *rows; /* by grouping, each in the order in which it first occurs */
} cs_error_table;

/* Zeroed tables can be finished. */
void cs_error_table_finish(cs_error_table *table);

/* The names are those of the points, which must live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_error_table_make(const cs_predictions *predictions,
                                            cs_error_table *table, cs_error *error);

/* A note of points, and how many have it. */
typedef struct cs_note_count {
    const char *text;
    uint32_t n;
} cs_note_count;

typedef struct cs_note_counts {
    uint32_t n, capacity;
    cs_note_count *items; /* the most frequent first */
} cs_note_counts;

void cs_note_counts_finish(cs_note_counts *counts);

/* Of points that are not expressed, the first thing that each misses; of those that are predicted,
 * all that is assumed. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_count_missing(const cs_predictions *predictions, cs_note_counts *counts,
                                         cs_error *error);
CS_MUST_CHECK cs_status cs_count_assumed(const cs_predictions *predictions, cs_note_counts *counts,
                                         cs_error *error);

#endif
