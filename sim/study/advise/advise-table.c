#include "sim/study/advise/advise-table.h"

#include "sim/base/units.h"
#include "sim/run/print/wrap.h"

#include <string.h>

enum { TEXT = 32, LINE = 512 };

/* ---- what plans differ in ---- */

static void write_count(uint32_t value, char *text)
{
    if (value > 1)
        snprintf(text, TEXT, "%u", value);
}

#define COUNT(name, value)                                                                         \
    static void write_##name(const cs_candidate *c, char *text)                                    \
    {                                                                                              \
        write_count(value, text);                                                                  \
    }

COUNT(devices, c->devices)
COUNT(tensor, c->method == CS_BY_TENSOR ? c->layer : 1)
COUNT(filter, c->method == CS_BY_FILTER ? c->layer : 1)
COUNT(channel, c->method == CS_BY_CHANNEL ? c->layer : 1)
COUNT(space, c->space)
COUNT(context, c->context)
COUNT(pipeline, c->pipeline)
COUNT(data, c->data)
COUNT(expert, c->expert)
COUNT(stages, c->chunks)

static void write_zero(const cs_candidate *c, char *text)
{
    if (c->more)
        snprintf(text, TEXT, "OSDP");
    else
        snprintf(text, TEXT, "%u", c->zero);
}

static void write_schedule(const cs_candidate *c, char *text)
{
    snprintf(text, TEXT, "%s", cs_schedule_names[c->schedule]);
}

static void write_batches(const cs_candidate *c, char *text)
{
    snprintf(text, TEXT, "%ux%u", c->micro_batches, c->micro_samples);
}

static void write_recompute(const cs_candidate *c, char *text)
{
    if (c->recompute != CS_RECOMPUTE_NONE)
        snprintf(text, TEXT, "%s", cs_advise_recompute_names[c->recompute]);
}

static void write_inner(const cs_candidate *c, char *text)
{
    if (c->pipeline > 1 && c->data > 1)
        snprintf(text, TEXT, "%s", c->inner == CS_ORDER_DATA ? "dp" : "pp");
}

static void write_bucket(const cs_candidate *c, char *text)
{
    if (c->bucket > 0)
        snprintf(text, TEXT, "%.3g MB", (double)c->bucket / 1e6);
}

/* Columns of the table. `head` is the column's title, `words` introduces a value that all plans
 * share, and `write` leaves the text empty if the axis is not used. */
static const struct {
    const char *head, *words;
    void (*write)(const cs_candidate *candidate, char *text);
} columns[] = {
    {"devices", "%s devices", write_devices},
    {"tp", "tensor %s", write_tensor},
    {"filter", "filter %s", write_filter},
    {"channel", "channel %s", write_channel},
    {"space", "space %s", write_space},
    {"cp", "context %s", write_context},
    {"pp", "pipeline %s", write_pipeline},
    {"dp", "data %s", write_data},
    {"ep", "experts over %s", write_expert},
    {"zero", "zero %s", write_zero},
    {"schedule", "%s", write_schedule},
    {"batches", "%s micro-batches x samples", write_batches},
    {"stages", "%s stages a device", write_stages},
    {"recompute", "recomputing: %s", write_recompute},
    {"inner", "%s on neighbouring devices", write_inner},
    {"bucket", "buckets of %s", write_bucket},
};

enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void cell(const cs_advice *advice, uint32_t row, uint32_t column, char text[TEXT])
{
    text[0] = '\0';
    columns[column].write(&advice->candidates.items[advice->rows[row].candidate], text);
}

/* Returns the width of a column; 0: it has the same value in all rows. */
static int width_of(const cs_advice *advice, uint32_t column)
{
    size_t width = strlen(columns[column].head);
    bool differ = false;
    char first[TEXT], text[TEXT];
    cell(advice, 0, column, first);
    for (uint32_t r = 0; r < advice->n_rows; r++) {
        cell(advice, r, column, text);
        width = strlen(text) > width ? strlen(text) : width;
        differ |= strcmp(text, first) != 0;
    }
    return differ ? (int)width : 0;
}

/* ---- the table ---- */

static void print_common(const cs_advice *advice, const int widths[N_COLUMNS], FILE *out)
{
    char line[LINE] = "all of these:", text[TEXT];
    size_t used = strlen(line);
    const size_t before = used;
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        cell(advice, 0, c, text);
        if (widths[c] > 0 || !text[0] || (columns[c].write == write_devices) ||
            (columns[c].write == write_zero && strcmp(text, "0") == 0))
            continue;
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s ", used > before ? "," : "");
        used += (size_t)snprintf(line + used, sizeof(line) - used, columns[c].words, text);
    }
    if (used > before)
        cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* Prints a line of cells; cells beyond the page width go to a second line. */
static void print_line(const char *start, size_t gap, const char texts[N_COLUMNS][TEXT],
                       const int widths[N_COLUMNS], FILE *out)
{
    size_t at = strlen(start);
    size_t blanks = gap;
    fputs(start, out);
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        if (widths[c] == 0)
            continue;
        if (at + gap + (size_t)widths[c] > CS_WRAP_REPORT) {
            fprintf(out, "\n%*s", 8, "");
            at = 8;
            blanks = gap;
        }
        const char *text = texts[c][0] ? texts[c] : "-";
        fprintf(out, "%*s%s", (int)blanks, "", text);
        blanks = gap + (size_t)widths[c] - strlen(text);
        at += gap + (size_t)widths[c];
    }
    fputc('\n', out);
}

/* Returns the gap between columns: two blanks, or one if the page is too narrow. */
static size_t gap_of(size_t start, const int widths[N_COLUMNS])
{
    size_t width = start;
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        width += widths[c] > 0 ? 2 + (size_t)widths[c] : 0;
    return width > CS_WRAP_REPORT ? 1 : 2;
}

static void print_row(const cs_advice *advice, uint32_t r, size_t gap, const int widths[N_COLUMNS],
                      FILE *out)
{
    const cs_advice_row *row = &advice->rows[r];
    const cs_candidate_outcome *outcome = &advice->outcomes[row->candidate];
    char start[128], texts[N_COLUMNS][TEXT];
    snprintf(start, sizeof(start), "%4u%c%c %-9s %-9s", r + 1, outcome->front ? '*' : ' ',
             row->estimated ? '~' : ' ', cs_units_text(outcome->step.time, CS_QUANTITY_TIME, 4).s,
             cs_units_text((double)outcome->step.peak, CS_QUANTITY_BYTES, 4).s);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        cell(advice, r, c, texts[c]);
    print_line(start, gap, texts, widths, out);
}

void cs_advice_table_print(const cs_advice *advice, FILE *out)
{
    int widths[N_COLUMNS];
    char heads[N_COLUMNS][TEXT];
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        widths[c] = width_of(advice, c);
        snprintf(heads[c], TEXT, "%s", columns[c].head);
    }
    fputc('\n', out);
    print_common(advice, widths, out);
    static const char start[] = "rank   step      memory   ";
    const size_t gap = gap_of(strlen(start), widths);
    print_line(start, gap, heads, widths, out);
    for (uint32_t r = 0; r < advice->n_rows; r++)
        print_row(advice, r, gap, widths, out);
}
