#include "sim/cli/pattern-picture.h"

#include "plots/plot-rows.h"
#include "schedules/plan/pattern-rows.h"
#include "sim/base/units.h"

#include <inttypes.h>
#include <stdio.h>

static const cs_plot_look looks[CS_PATTERN_KINDS] = {
    [CS_PATTERN_FORWARD] = {"forward", "forward", false},
    [CS_PATTERN_BACKWARD] = {"backward", "backward", false},
    [CS_PATTERN_SEND] = {"output to the next stage", "transfer", false},
    [CS_PATTERN_RETURN] = {"gradient back", "communication_buffers", false},
};

typedef struct picture {
    const cs_chain *chain;
    const cs_pattern *pattern;
    const cs_pattern_use *uses;
    cs_arena arena;
    cs_plot_row *rows;
    cs_plot_row_box *boxes;
} picture;

static bool fill(picture *p, const cs_pattern_rows *rows)
{
    p->rows = cs_arena_alloc(&p->arena, rows->n_rows, sizeof(*p->rows));
    p->boxes = cs_arena_alloc(&p->arena, rows->n_boxes, sizeof(*p->boxes));
    if (!p->rows || !p->boxes)
        return false;
    for (uint32_t i = 0; i < rows->n_boxes; i++) {
        const cs_pattern_box *from = &rows->boxes[i];
        cs_plot_row_box box = {
            .row = from->row, .look = from->kind, .start = from->start, .end = from->end};
        snprintf(box.label, sizeof(box.label), "%s%u", from->continued ? "\u2026" : "",
                 from->stage);
        snprintf(box.below, sizeof(box.below), "%+" PRId64, from->shift);
        p->boxes[i] = box;
    }
    for (uint32_t i = 0; i < rows->n_rows; i++) {
        /* "75.0 % busy, 11.2 GB" */
        const cs_pattern_row *row = &rows->rows[i];
        cs_plot_row *out = &p->rows[i];
        char name[40], note[96] = "";
        if (row->low == row->high) {
            const cs_pattern_use *use = &p->uses[row->low];
            snprintf(name, sizeof(name), "device %u", row->low);
            snprintf(note, sizeof(note), "%.1f %% busy, %s",
                     100 * (double)use->busy / (double)p->pattern->period,
                     cs_units_text((double)use->peak, CS_QUANTITY_BYTES, 4).s);
        } else {
            snprintf(name, sizeof(name), "link %u-%u", row->low, row->high);
        }
        out->name = cs_arena_copy(&p->arena, name);
        out->note = cs_arena_copy(&p->arena, note);
        if (!(out->name && out->note))
            return false;
    }
    return true;
}

static cs_status draw(picture *p, const char *title, const cs_pattern_rows *rows,
                      const char *output, cs_error *error)
{
    const int64_t memory = p->chain->memory;
    char subtitle[200];
    if (!fill(p, rows))
        return cs_error_no_memory(error);
    snprintf(subtitle, sizeof(subtitle),
             "one period of %s: each stage does one micro-batch; memory for it %s per device",
             cs_units_text(cs_time_seconds(p->pattern->period), CS_QUANTITY_TIME, 6).s,
             memory < INT64_MAX ? cs_units_text((double)memory, CS_QUANTITY_BYTES, 4).s
                                : "unlimited");
    return cs_plot_rows_draw(
        &(cs_plot_rows){.title = title,
                        .subtitle = subtitle,
                        .remark = "stage, +h: micro-batch k - h in period k; \u2026: continued",
                        .until = p->pattern->period,
                        .n_rows = rows->n_rows,
                        .n_looks = CS_PATTERN_KINDS,
                        .n_boxes = rows->n_boxes,
                        .rows = p->rows,
                        .looks = looks,
                        .boxes = p->boxes},
        output, error);
}

cs_status cs_pattern_picture(const char *title, const cs_chain *chain, const cs_plan *plan,
                             const cs_pattern *pattern, const cs_pattern_use *uses,
                             const char *output, cs_error *error)
{
    cs_pattern_rows rows = {0};
    picture p = {.chain = chain, .pattern = pattern, .uses = uses};
    cs_arena_init(&p.arena);
    cs_status status = cs_pattern_rows_make(chain, plan, pattern, &rows, error);
    if (status == CS_OK)
        status = draw(&p, title, &rows, output, error);
    cs_pattern_rows_finish(&rows);
    cs_arena_finish(&p.arena);
    return status;
}
