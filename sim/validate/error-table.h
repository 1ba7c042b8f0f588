/* Errors of predictions, summed up: of all points, of each dataset, machine and feature. */
#ifndef CS_VALIDATE_ERROR_TABLE_H
#define CS_VALIDATE_ERROR_TABLE_H

#include "sim/validate/predict.h"

typedef enum cs_grouping {
    CS_GROUPING_ALL,
    CS_GROUPING_DATASET,
    CS_GROUPING_GPU,
    CS_GROUPING_FEATURE, /* a point counts in each of its features */
    CS_N_GROUPINGS
} cs_grouping;

/* "all", "dataset", "gpu", "feature", ended by NULL. */
extern const char *const cs_grouping_names[];

/* Errors, predicted over measured less 1, of the points for which both are known. */
typedef struct cs_error_summary {
    uint32_t n;
    double mean, median; /* of the absolute errors; NaN without points, as all below */
    double largest;      /* by absolute value, with its sign */
    double bias;         /* mean of the errors */
} cs_error_summary;

typedef struct cs_error_row {
    cs_grouping grouping;
    const char *name; /* of the dataset, ...; "" of all */
    uint32_t n_points, n_states[CS_PREDICTION_FAILED + 1];
    cs_error_summary measures[CS_N_MEASURES];
    uint32_t n_verdicts, n_right; /* whether the run is out of memory, where that is decided */
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
