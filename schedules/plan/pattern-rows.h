/* Rows of boxes for drawing a pattern (the paper's figures 2, 3, 5): one row per device that holds
 * a stage, then one per link that carries messages. The boxes of a row show one period. */
#ifndef CS_SCHEDULES_PATTERN_ROWS_H
#define CS_SCHEDULES_PATTERN_ROWS_H

#include "schedules/plan/pattern.h"

#include <stdio.h>

typedef struct cs_pattern_row {
    uint32_t low, high; /* equal for a device; otherwise the two devices of a link */
} cs_pattern_row;

/* A box of the drawing. An operation that crosses the end of the period has two boxes; one that
 * takes no time has none. */
typedef struct cs_pattern_box {
    uint32_t row, stage;
    cs_pattern_kind kind;
    cs_time start, end; /* times of the box: 0 <= start < end <= period */
    int64_t shift;      /* shift of the box's operation */
    bool continued;     /* whether the operation began in the previous period */
} cs_pattern_box;

typedef struct cs_pattern_rows {
    uint32_t n_rows, n_boxes;
    cs_pattern_row *rows;  /* devices in ascending order, then links in ascending order */
    cs_pattern_box *boxes; /* boxes, sorted by row, then by start */
} cs_pattern_rows;

/* Allowed on a zeroed struct. */
void cs_pattern_rows_finish(cs_pattern_rows *rows);

/* Makes the rows of a pattern, which must be valid. */
CS_MUST_CHECK cs_status cs_pattern_rows_make(const cs_chain *chain, const cs_plan *plan,
                                             const cs_pattern *pattern, cs_pattern_rows *rows,
                                             cs_error *error);

/* ---- as text ---- */

/* Prints the start and shift of each operation, and the time and memory that each device uses.
 * `uses` is the result of cs_pattern_check. */
void cs_pattern_print_table(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                            const cs_pattern_use *uses, FILE *out);

/* Prints one period, one line per row. Boxes narrower than a column may be hidden by their
 * neighbours. */
CS_MUST_CHECK cs_status cs_pattern_print_gantt(const cs_chain *chain, const cs_plan *plan,
                                               const cs_pattern *pattern, FILE *out,
                                               cs_error *error);

#endif
