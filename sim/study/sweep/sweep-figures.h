/* What a sweep keeps of the JSON object that a run reports (sim run --json): one number each, and
 * two texts.
 *
 *     every number and boolean at the top level           under its key; true is 1
 *     K_formula beside K                                  also difference_K, K minus K_formula
 *     devices[].peak_memory_bytes, peak_activation_bytes  the largest, under these keys
 *     devices[].capacity_bytes                            the smallest
 *     closed_forms[]                                      closed_form_K, difference_K: simulated
 *                                                         minus closed form, applies_K: whether its
 *                                                         assumptions hold, and promised_K: whether
 *                                                         both must be equal; K is its figure
 *     sharing, collectives.algorithms                     as texts: sharing, algorithms
 *
 * A second closed form for a figure is closed_form2_K, with difference2_K and so on.
 * Of one that is stated per device the largest counts, and the difference that is farthest from 0.
 * So sweeps also have what a later schedule adds to the report. Units come from the table of
 * figures (sim/run/figures.h); a figure that is not in it is a number.
 */
#ifndef CS_SWEEP_SWEEP_FIGURES_H
#define CS_SWEEP_SWEEP_FIGURES_H

#include "sim/base/json.h"
#include "sim/run/figures.h"

#include <stdbool.h>
#include <stdint.h>

/* The figures as an object of numbers, booleans, and nulls where a number is missing; NULL when
 * memory runs out. Texts are strings. */
cJSON *cs_figures_of(const cJSON *result);

/* Seconds of "makespan_s" and of "closed_form_makespan_s"; a number of what is not in the table. */
cs_unit cs_figure_unit(const char *key);

/* The figures of all points, as columns. */
typedef struct cs_figure_column {
    char *name;
    double *values; /* of each point; NaN where there is none */
    bool boolean;   /* 0 and 1 */
    bool number;    /* a point has a number, so the column contains only numbers */
    char **words;   /* of a column of texts, whose values are positions here; or NULL */
    uint32_t n_words, cap_words;
    uint32_t point, position; /* of its first appearance: what columns are sorted by */
} cs_figure_column;

typedef struct cs_figure_table {
    cs_figure_column *columns;
    uint32_t n_columns, capacity, n_points;
} cs_figure_table;

/* Zeroed tables can be finished. */
void cs_figure_table_finish(cs_figure_table *table);

/* Takes the figures of a point, in any order of points. CS_NO_MEMORY; CS_INVALID if
 * cs_figures_of cannot have made the object, or if a figure is a text at one point and a number at
 * another; nothing is taken then. */
CS_MUST_CHECK cs_status cs_figure_table_add(cs_figure_table *table, uint32_t point,
                                            const cJSON *figures, cs_error *error);

/* Puts the columns into an order that does not depend on the order of points. */
void cs_figure_table_sort(cs_figure_table *table);

/* The text of a point in a column of texts; NULL where there is none, and in other columns. */
const char *cs_figure_word(const cs_figure_column *column, uint32_t point);

const cs_figure_column *cs_figure_table_find(const cs_figure_table *table, const char *name);

#endif
