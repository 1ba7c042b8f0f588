/* Metrics that a sweep keeps from a run's JSON report (sim run --json): numbers, and two texts.
 *
 *     every number and boolean at the top level           under its key; true is 1
 *     K_formula next to K                                 also difference_K, K minus K_formula
 *     devices[].peak_memory_bytes, peak_activation_bytes  the largest, under these keys
 *     devices[].capacity_bytes                            the smallest
 *     closed_forms[]                                      closed_form_K, difference_K (simulated
 *                                                         minus closed form), applies_K (its
 *                                                         assumptions hold) and promised_K (both
 *                                                         must be equal); K is its metric
 *     sharing, collectives.algorithms                     as texts: sharing, algorithms
 *
 * A second closed form for a metric is closed_form2_K, with difference2_K and so on. If a form is
 * stated per device, the largest value counts, and the difference farthest from 0. Metrics that a
 * new schedule adds to the report are included automatically. Units come from the table of metrics
 * (sim/run/figures.h); a metric that is not in it is a number.
 */
#ifndef CS_SWEEP_SWEEP_FIGURES_H
#define CS_SWEEP_SWEEP_FIGURES_H

#include "sim/base/json.h"
#include "sim/run/figures.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the metrics as an object of numbers, booleans, strings, and nulls for missing numbers;
 * NULL if memory runs out. */
cJSON *cs_figures_of(const cJSON *result);

/* Unit of a metric: seconds for "makespan_s" and "closed_form_makespan_s"; a number if it is not in
 * the table. */
cs_unit cs_figure_unit(const char *key);

/* The metrics of all points, as columns. */
typedef struct cs_figure_column {
    char *name;
    double *values; /* per point; NaN: missing */
    bool boolean;   /* values are 0 and 1 */
    bool number;    /* a point has a number, so the column contains only numbers */
    char **words;   /* texts, which the values index; NULL: a column of numbers */
    uint32_t n_words, cap_words;
    uint32_t point, position; /* first appearance; columns are sorted by it */
} cs_figure_column;

typedef struct cs_figure_table {
    cs_figure_column *columns;
    uint32_t n_columns, capacity, n_points;
} cs_figure_table;

/* Accepts a zeroed table. */
void cs_figure_table_finish(cs_figure_table *table);

/* Adds the metrics of a point; points may come in any order. CS_NO_MEMORY; CS_INVALID if
 * cs_figures_of cannot have made the object, or a metric is a text at one point and a number at
 * another; the table is then unchanged. */
CS_MUST_CHECK cs_status cs_figure_table_add(cs_figure_table *table, uint32_t point,
                                            const cJSON *figures, cs_error *error);

/* Puts the columns into an order that does not depend on the order of points. */
void cs_figure_table_sort(cs_figure_table *table);

/* Returns the text of a point; NULL: missing, or a column of numbers. */
const char *cs_figure_word(const cs_figure_column *column, uint32_t point);

const cs_figure_column *cs_figure_table_find(const cs_figure_table *table, const char *name);

#endif
