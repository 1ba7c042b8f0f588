#include "schedules/plan/pattern-rows.h"
#include "sim/base/units.h"

#include <inttypes.h>
#include <string.h>

enum { GANTT_COLUMNS = 88, CELL_BYTES = 48 };

/* ---- the table ---- */

static char *time_text(cs_time time, char text[CS_UNITS_TEXT_BYTES])
{
    return cs_units_format(cs_time_seconds(time), CS_QUANTITY_TIME, 4, text, CS_UNITS_TEXT_BYTES);
}

static char *bytes_text(int64_t bytes, char text[CS_UNITS_TEXT_BYTES])
{
    return cs_units_format((double)bytes, CS_QUANTITY_BYTES, 4, text, CS_UNITS_TEXT_BYTES);
}

/* Writes the start and shift of an operation: "12.5 ms +3", or "-". */
static char *op_text(const cs_plan *plan, const cs_pattern *pattern, uint32_t stage,
                     cs_pattern_kind kind, char text[CELL_BYTES])
{
    const cs_pattern_op *op = &pattern->ops[(size_t)stage * CS_PATTERN_KINDS + kind];
    char start[CS_UNITS_TEXT_BYTES];
    if (cs_pattern_has(plan, stage, kind))
        snprintf(text, CELL_BYTES, "%s %+" PRId64, time_text(op->start, start), op->shift);
    else
        snprintf(text, CELL_BYTES, "-");
    return text;
}

static void print_stages(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                         FILE *out)
{
    fprintf(out, "%5s  %6s  %-9s  %-14s  %-14s  %-14s  %-14s  %s\n", "stage", "device", "layers",
            "forward", "message", "gradient", "backward", "active");
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *stage = &plan->stages[s];
        char cells[CS_PATTERN_KINDS][CELL_BYTES], layers[32];
        for (int kind = 0; kind < CS_PATTERN_KINDS; kind++)
            op_text(plan, pattern, s, kind, cells[kind]);
        snprintf(layers, sizeof(layers), "%u-%u", stage->first_layer, stage->end_layer - 1);
        fprintf(out, "%5u  %6u  %-9s  %-14s  %-14s  %-14s  %-14s  %6" PRId64 "\n", s,
                plan->devices[stage->first_device], layers, cells[CS_PATTERN_FORWARD],
                cells[CS_PATTERN_SEND], cells[CS_PATTERN_RETURN], cells[CS_PATTERN_BACKWARD],
                cs_pattern_active(chain, plan, pattern, s));
    }
}

static void print_devices(const cs_chain *chain, const cs_pattern *pattern,
                          const cs_pattern_use *uses, FILE *out)
{
    fprintf(out, "%6s  %-10s  %7s  %-12s  %-10s  %s\n", "device", "busy", "", "peak memory", "at",
            "of which weights and buffers");
    for (uint32_t d = 0; d < chain->n_devices; d++) {
        char busy[CS_UNITS_TEXT_BYTES], peak[CS_UNITS_TEXT_BYTES], at[CS_UNITS_TEXT_BYTES],
            fixed[CS_UNITS_TEXT_BYTES];
        fprintf(out, "%6u  %-10s  %5.1f %%  %-12s  %-10s  %s\n", d, time_text(uses[d].busy, busy),
                100 * (double)uses[d].busy / (double)pattern->period,
                bytes_text(uses[d].peak, peak), time_text(uses[d].peak_time, at),
                bytes_text(uses[d].fixed, fixed));
    }
}

void cs_pattern_print_table(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                            const cs_pattern_use *uses, FILE *out)
{
    char period[CS_UNITS_TEXT_BYTES];
    fprintf(out, "period %s; what starts with shift +h in period k is of micro-batch k - h\n\n",
            time_text(pattern->period, period));
    print_stages(chain, plan, pattern, out);
    fputc('\n', out);
    print_devices(chain, pattern, uses, out);
}

/* ---- one period ---- */

static uint32_t column_of(cs_time time, cs_time period)
{
    return (uint32_t)((double)time / (double)period * GANTT_COLUMNS);
}

/* Draws a box as "|F2+3====": a bar at its start, then its label as far as it fits. */
static void draw_box(const cs_pattern_box *box, cs_time period, char line[GANTT_COLUMNS + 1])
{
    static const char letters[CS_PATTERN_KINDS] = {'F', 'B', '>', '<'};
    char label[CELL_BYTES];
    uint32_t from = column_of(box->start, period), to = column_of(box->end, period);
    from = from < GANTT_COLUMNS ? from : GANTT_COLUMNS - 1;
    to = to > from ? to : from + 1;
    snprintf(label, sizeof(label), "|%c%u%+" PRId64, letters[box->kind], box->stage, box->shift);
    memset(line + from, '=', to - from);
    size_t length = strlen(label);
    if (box->continued)
        return;
    line[from] = '|';
    if (length <= to - from)
        memcpy(line + from, label, length);
    else if (to - from > 1)
        line[from + 1] = label[1];
}

static void print_row(const cs_pattern_rows *rows, uint32_t row, cs_time period, FILE *out)
{
    char line[GANTT_COLUMNS + 1], name[40];
    const cs_pattern_row *of = &rows->rows[row];
    memset(line, ' ', GANTT_COLUMNS);
    line[GANTT_COLUMNS] = '\0';
    for (uint32_t i = 0; i < rows->n_boxes; i++) {
        if (rows->boxes[i].row == row)
            draw_box(&rows->boxes[i], period, line);
    }
    if (of->low == of->high)
        snprintf(name, sizeof(name), "device %u", of->low);
    else
        snprintf(name, sizeof(name), "link %u-%u", of->low, of->high);
    fprintf(out, "%-11s %s:\n", name, line);
}

cs_status cs_pattern_print_gantt(const cs_chain *chain, const cs_plan *plan,
                                 const cs_pattern *pattern, FILE *out, cs_error *error)
{
    cs_pattern_rows rows = {0};
    char period[CS_UNITS_TEXT_BYTES];
    CS_TRY(cs_pattern_rows_make(chain, plan, pattern, &rows, error));
    fprintf(out, "F2+3: forward of stage 2, shift 3; B: backward; >: its output to the next stage; "
                 "<: the gradient back\n");
    fprintf(out, "%-11s 0%*s\n", "", GANTT_COLUMNS, time_text(pattern->period, period));
    for (uint32_t row = 0; row < rows.n_rows; row++)
        print_row(&rows, row, pattern->period, out);
    cs_pattern_rows_finish(&rows);
    return CS_OK;
}
