/* A pattern as rows of boxes, for those who draw it: one row per device that holds a stage, then
 * one per link that takes messages, and in each what happens in one period (the paper's figures 2,
 * 3, 5).
 */
#ifndef CS_SCHEDULES_PATTERN_ROWS_H
#define CS_SCHEDULES_PATTERN_ROWS_H

#include "schedules/plan/pattern.h"

#include <stdio.h>

typedef struct cs_pattern_row {
    uint32_t low, high; /* equal: a device; else the link between the two */
} cs_pattern_row;

/* An operation that goes over the end of the period makes two boxes. One that takes no time makes
 * none. */
typedef struct cs_pattern_box {
    uint32_t row, stage;
    cs_pattern_kind kind;
    cs_time start, end; /* 0 <= start < end <= period */
    int64_t shift;      /* of the operation */
    bool continued;     /* began in the period before */
} cs_pattern_box;

typedef struct cs_pattern_rows {
    uint32_t n_rows, n_boxes;
    cs_pattern_row *rows;  /* devices rising, then links rising */
    cs_pattern_box *boxes; /* by row, then by start */
} cs_pattern_rows;

/* Zeroed ones can be finished. */
void cs_pattern_rows_finish(cs_pattern_rows *rows);

/* `pattern` is valid. */
CS_MUST_CHECK cs_status cs_pattern_rows_make(const cs_chain *chain, const cs_plan *plan,
                                             const cs_pattern *pattern, cs_pattern_rows *rows,
                                             cs_error *error);

/* ---- as text ---- */

/* Where every operation starts, with its shift, and what every device does and holds. `uses` is
 * what cs_pattern_check wrote. */
void cs_pattern_print_table(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                            const cs_pattern_use *uses, FILE *out);

/* One period, a line per row; what is narrower than a column may hide behind its neighbour. */
CS_MUST_CHECK cs_status cs_pattern_print_gantt(const cs_chain *chain, const cs_plan *plan,
                                               const cs_pattern *pattern, FILE *out,
                                               cs_error *error);

#endif
