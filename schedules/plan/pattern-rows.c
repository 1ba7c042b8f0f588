#include "schedules/plan/pattern-rows.h"

#include <stdlib.h>

void cs_pattern_rows_finish(cs_pattern_rows *rows)
{
    free(rows->rows);
    free(rows->boxes);
    *rows = (cs_pattern_rows){0};
}

/* A box and its row. */
typedef struct entry {
    cs_pattern_row row;
    cs_pattern_box box;
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    bool x_link = x->row.low != x->row.high, y_link = y->row.low != y->row.high;
    if (x_link != y_link)
        return x_link ? 1 : -1;
    if (x->row.low != y->row.low)
        return x->row.low < y->row.low ? -1 : 1;
    if (x->row.high != y->row.high)
        return x->row.high < y->row.high ? -1 : 1;
    return (x->box.start > y->box.start) - (x->box.start < y->box.start);
}

static cs_pattern_row row_of(const cs_plan *plan, uint32_t stage, cs_pattern_kind kind)
{
    bool message = kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
    uint32_t a = cs_plan_device(plan, stage), b = a;
    if (message)
        b = cs_plan_device(plan, stage + 1);
    return a < b ? (cs_pattern_row){a, b} : (cs_pattern_row){b, a};
}

/* Adds no entry, one, or two. A device gets a row even if its stages take no time; a link does
 * not. */
static size_t add_op(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                     uint32_t stage, cs_pattern_kind kind, entry *entries)
{
    const cs_pattern_op *op = &pattern->ops[(size_t)stage * CS_PATTERN_KINDS + kind];
    if (!cs_pattern_has(plan, stage, kind))
        return 0;
    cs_time end = op->start + cs_pattern_duration(chain, plan, stage, kind);
    if (end == op->start && (kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN))
        return 0;
    entry one = {row_of(plan, stage, kind),
                 {.stage = stage,
                  .kind = kind,
                  .start = op->start,
                  .end = end < pattern->period ? end : pattern->period,
                  .shift = op->shift}};
    entries[0] = one;
    if (end <= pattern->period)
        return 1;
    one.box.start = 0;
    one.box.end = end - pattern->period;
    one.box.continued = true;
    entries[1] = one;
    return 2;
}

static void take_entries(const entry *entries, size_t n, cs_pattern_rows *rows)
{
    for (size_t i = 0; i < n; i++) {
        const cs_pattern_row *last = rows->n_rows > 0 ? &rows->rows[rows->n_rows - 1] : NULL;
        if (!last || last->low != entries[i].row.low || last->high != entries[i].row.high)
            rows->rows[rows->n_rows++] = entries[i].row;
        if (entries[i].box.end == entries[i].box.start)
            continue;
        rows->boxes[rows->n_boxes] = entries[i].box;
        rows->boxes[rows->n_boxes++].row = rows->n_rows - 1;
    }
}

cs_status cs_pattern_rows_make(const cs_chain *chain, const cs_plan *plan,
                               const cs_pattern *pattern, cs_pattern_rows *rows, cs_error *error)
{
    size_t most = 2 * (size_t)plan->n_stages * CS_PATTERN_KINDS, n = 0;
    entry *entries = calloc(most + 1, sizeof(*entries));
    cs_pattern_rows made = {.rows = calloc(most + 1, sizeof(*made.rows)),
                            .boxes = calloc(most + 1, sizeof(*made.boxes))};
    if (!entries || !made.rows || !made.boxes) {
        free(entries);
        cs_pattern_rows_finish(&made);
        return cs_error_no_memory(error);
    }
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        for (int kind = 0; kind < CS_PATTERN_KINDS; kind++)
            n += add_op(chain, plan, pattern, s, kind, entries + n);
    }
    qsort(entries, n, sizeof(*entries), compare_entries);
    take_entries(entries, n, &made);
    free(entries);
    *rows = made;
    return CS_OK;
}
