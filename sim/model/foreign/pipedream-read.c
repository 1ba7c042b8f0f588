#include "sim/model/foreign/pipedream-graph.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- decimal numbers ---- */

/* Decimal numbers are read as exact integers in a smaller unit: "4.446" ms are 4446000000 ps, exact
 * to the last digit. A double would be rounded twice, and could not hold large sizes exactly. */

typedef enum cs_decimal_result {
    CS_DECIMAL_OK,
    CS_DECIMAL_NO_NUMBER, /* not a number in JSON's syntax; also nan, inf, +1, 0x1 */
    CS_DECIMAL_NEGATIVE,
    CS_DECIMAL_TOO_LARGE, /* does not fit into int64_t */
} cs_decimal_result;

typedef enum cs_decimal_rounding {
    CS_DECIMAL_NEAREST /* halves round up */,
    CS_DECIMAL_UP
} cs_decimal_rounding;

__extension__ typedef unsigned __int128 wide;

/* The number digits * 10^exponent; if `rest`, plus less than one unit of `digits`. */
typedef struct decimal {
    wide digits;
    int64_t exponent;
    bool rest;
} decimal;

/* Returns 10^36. A smaller number can take one more digit and still fits into 128 bits. These are
 * far more digits than an int64_t holds, so of all later digits it only matters whether one is not
 * zero. */
static wide full(void)
{
    return (wide)1000000000000000000 * 1000000000000000000;
}

static void add_digit(decimal *number, int digit, bool fraction)
{
    if (number->digits < full()) {
        number->digits = number->digits * 10 + (unsigned)digit;
        number->exponent -= fraction;
    } else {
        number->rest |= digit != 0;
        number->exponent += !fraction;
    }
}

/* Reads an exponent, limited to a large value: beyond it, a number is too large or rounds to
 * nothing. */
static int64_t read_exponent(const char *at, const char *end)
{
    const int64_t largest = INT64_C(1) << 40;
    bool negative = *at == '-';
    int64_t value = 0;
    for (at += *at == '-' || *at == '+'; at < end; at++)
        value = value < largest ? value * 10 + (*at - '0') : value;
    return negative ? -value : value;
}

/* Reads a decimal number that is well-formed and has no sign. */
static decimal read_decimal(const char *at, const char *end)
{
    decimal number = {0};
    bool fraction = false;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.')
            fraction = true;
        else
            add_digit(&number, *at - '0', fraction);
    }
    if (at < end)
        number.exponent += read_exponent(at + 1, end);
    return number;
}

static bool multiply(wide *value, int64_t exponent)
{
    for (; exponent > 0 && *value > 0 && *value <= INT64_MAX; exponent--)
        *value *= 10;
    return *value <= INT64_MAX;
}

/* Divides by 10^-exponent and rounds. If all digits are far below the point, the whole part is 0
 * and only the rest can round it up. */
static wide divide(const decimal *number, int64_t exponent, cs_decimal_rounding rounding)
{
    wide divisor = 1;
    for (; exponent < 0 && divisor <= full(); exponent++)
        divisor *= 10;
    wide whole = exponent < 0 ? 0 : number->digits / divisor;
    wide rest = exponent < 0 ? number->digits : number->digits % divisor;
    bool up = rounding == CS_DECIMAL_UP ? rest > 0 || number->rest
                                        : exponent == 0 && rest >= divisor - rest;
    return whole + up;
}

/* Reads the `length` bytes of `text`, a number >= 0, and multiplies it by 10^shift (-100 <= shift
 * <= 100); rounds once. On failure *out is untouched. */
static cs_decimal_result parse_decimal(const char *text, size_t length, int shift,
                                       cs_decimal_rounding rounding, int64_t *out)
{
    if (length == 0 || cs_number_scan(text, length) != length)
        return CS_DECIMAL_NO_NUMBER;
    if (*text == '-')
        return CS_DECIMAL_NEGATIVE;
    decimal number = read_decimal(text, text + length);
    int64_t exponent = number.exponent + shift;
    wide value = exponent < 0 ? divide(&number, exponent, rounding) : number.digits;
    if (!multiply(&value, exponent))
        return CS_DECIMAL_TOO_LARGE;
    *out = (int64_t)value;
    return CS_DECIMAL_OK;
}

/* ---- graphs ---- */

typedef cs_pipedream_span span;

static const char separator[] = " -- ";

typedef struct reader {
    cs_pipedream_graph *graph;
    uint32_t line;
    cs_error *error;
} reader;

cs_status cs_pipedream_invalid(const char *file, uint32_t line, cs_error *error, const char *format,
                               ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return cs_error_add(error, CS_INVALID, "%s:%u: %s", file, line, message);
}

/* Copies text of the file to `out`, in a form fit for messages; `out` holds
 * CS_TEXT_QUOTED_BYTES. */
static const char *quote(span text, char *out)
{
    char copy[CS_TEXT_QUOTED_BYTES + 1];
    size_t length = text.length < CS_TEXT_QUOTED_BYTES ? text.length : CS_TEXT_QUOTED_BYTES;
    if (length > 0)
        memcpy(copy, text.start, length);
    copy[length] = '\0';
    return cs_text_quote(copy, out, CS_TEXT_QUOTED_BYTES);
}

/* ---- pieces of a line ---- */

static span skip(span text, size_t length)
{
    return (span){text.start + length, text.length - length};
}

static bool starts_with(span text, const char *word)
{
    size_t length = strlen(word);
    return text.length >= length && memcmp(text.start, word, length) == 0;
}

static bool take(span *text, const char *word)
{
    if (!starts_with(*text, word))
        return false;
    *text = skip(*text, strlen(word));
    return true;
}

/* Splits `text` at the first `word`; returns false if there is none. */
static bool part_first(span text, const char *word, span *before, span *after)
{
    for (size_t at = 0; at < text.length; at++) {
        if (!starts_with(skip(text, at), word))
            continue;
        *before = (span){text.start, at};
        *after = skip(text, at + strlen(word));
        return true;
    }
    return false;
}

static bool part_last(span text, const char *word, span *before, span *after)
{
    for (size_t at = text.length; at-- > 0;) {
        if (!starts_with(skip(text, at), word))
            continue;
        *after = skip(text, at + strlen(word));
        *before = (span){text.start, at};
        return true;
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static span trim_end(span text)
{
    while (text.length > 0 && is_blank(text.start[text.length - 1]))
        text.length--;
    return text;
}

/* Whether the text is UTF-8 without control characters other than tabs. */
static bool is_text(span text)
{
    for (span before; part_first(text, "\t", &before, &text);)
        if (cs_text_has_control(before.start, before.length))
            return false;
    return !cs_text_has_control(text.start, text.length);
}

static bool is_id(span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (is_blank(text.start[i]))
            return false;
    return text.length > 0;
}

/* ---- node lines ---- */

typedef enum metric_unit { MILLISECONDS, BYTES } metric_unit;

/* The numbers of a node, in the order of the format. */
static const struct metric {
    const char *name;
    metric_unit unit;
    bool list; /* a list "[a; b]" is also allowed */
    size_t offset;
} metrics[] = {
    {"forward_compute_time", MILLISECONDS, false, offsetof(cs_pipedream_node, forward)},
    {"backward_compute_time", MILLISECONDS, false, offsetof(cs_pipedream_node, backward)},
    {"activation_size", BYTES, true, offsetof(cs_pipedream_node, output_bytes)},
    {"parameter_size", BYTES, false, offsetof(cs_pipedream_node, weight_bytes)},
};

enum {
    N_METRICS = sizeof(metrics) / sizeof(metrics[0]),
    MS_TO_PS = 9, /* exponent of the power of ten */
};

static cs_status bad_number(const reader *in, const struct metric *metric, span text,
                            cs_decimal_result result)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    if (result == CS_DECIMAL_TOO_LARGE)
        return cs_pipedream_invalid(in->graph->file, in->line, in->error,
                                    "%s is too large: must be below %s (got %s)", metric->name,
                                    metric->unit == BYTES ? "2^63 bytes" : "2^63 ps, 106 days",
                                    quote(text, quoted));
    return cs_pipedream_invalid(in->graph->file, in->line, in->error,
                                "%s must be a number >= 0 (got %s)", metric->name,
                                quote(text, quoted));
}

/* Reads a number. Times are rounded to the nearest picosecond, sizes up to whole bytes. */
static cs_status read_number(const reader *in, const struct metric *metric, span text, int64_t *out)
{
    bool bytes = metric->unit == BYTES;
    cs_decimal_result result = parse_decimal(text.start, text.length, bytes ? 0 : MS_TO_PS,
                                             bytes ? CS_DECIMAL_UP : CS_DECIMAL_NEAREST, out);
    return result == CS_DECIMAL_OK ? CS_OK : bad_number(in, metric, text, result);
}

/* Reads "[a; b; c]", the sizes of several outputs, and returns their sum in *out. */
static cs_status read_list(const reader *in, const struct metric *metric, span text, int64_t *out)
{
    span rest = {text.start + 1, text.length - 1};
    int64_t sum = 0, value;
    for (bool more = true; more;) {
        span item;
        more = part_first(rest, "; ", &item, &rest);
        if (!more && !part_first(rest, "]", &item, &rest))
            return bad_number(in, metric, text, CS_DECIMAL_NO_NUMBER);
        CS_TRY(read_number(in, metric, item, &value));
        if (__builtin_add_overflow(sum, value, &sum))
            return bad_number(in, metric, text, CS_DECIMAL_TOO_LARGE);
    }
    if (rest.length > 0)
        return bad_number(in, metric, text, CS_DECIMAL_NO_NUMBER);
    *out = sum;
    return CS_OK;
}

static cs_status read_metric(const reader *in, const struct metric *metric, span text,
                             cs_pipedream_node *node)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    int64_t *out = (int64_t *)((char *)node + metric->offset);
    if (!take(&text, metric->name) || !take(&text, "="))
        return cs_pipedream_invalid(in->graph->file, in->line, in->error,
                                    "missing %s=%s (got %s in its place)", metric->name,
                                    metric->unit == BYTES ? "BYTES" : "MS", quote(text, quoted));
    if (metric->list && starts_with(text, "["))
        return read_list(in, metric, text, out);
    return read_number(in, metric, text, out);
}

/* Reads the numbers of a node. Stops at the first error: a missing number would make all later
 * numbers look wrong. */
static cs_status read_metrics(const reader *in, span text, cs_pipedream_node *node)
{
    cs_status status = CS_OK;
    for (int i = 0; status == CS_OK && i < N_METRICS; i++) {
        span item = text, rest = skip(text, text.length);
        if (i < N_METRICS - 1)
            part_first(text, ", ", &item, &rest);
        status = read_metric(in, &metrics[i], item, node);
        text = rest;
    }
    return status;
}

/* Drops a last part "stage_id=K", which PipeDream's optimizer writes and this reader ignores.
 * Returns false if K is not a number. */
static bool drop_stage(span *line)
{
    span before, stage;
    if (!part_last(*line, separator, &before, &stage) || !take(&stage, "stage_id="))
        return true;
    *line = before;
    for (size_t i = 0; i < stage.length; i++)
        if (stage.start[i] < '0' || stage.start[i] > '9')
            return false;
    return stage.length > 0;
}

static cs_status bad_line(const reader *in)
{
    return cs_pipedream_invalid(
        in->graph->file, in->line, in->error,
        "must be a node (\"ID -- DESCRIPTION -- forward_compute_time=MS, backward_compute_time=MS, "
        "activation_size=BYTES, parameter_size=BYTES\") or an edge (a tab, then \"ID -- ID\")");
}

/* Reads a node. Its description may contain the separator, so the id ends at the first separator
 * and the numbers start after the last. */
static cs_status read_node(const reader *in, span line)
{
    cs_pipedream_graph *graph = in->graph;
    cs_pipedream_node node = {.line = in->line};
    span rest, numbers;
    if (!drop_stage(&line) || !part_first(line, separator, &node.id, &rest) || !is_id(node.id) ||
        !part_last(rest, separator, &node.description, &numbers))
        return bad_line(in);
    CS_TRY(read_metrics(in, numbers, &node));
    if (!cs_vector_reserve((void **)&graph->nodes, &graph->cap_nodes, graph->n_nodes + 1u,
                           sizeof(node)))
        return cs_error_no_memory(in->error);
    graph->nodes[graph->n_nodes++] = node;
    return CS_OK;
}

/* ---- edge lines ---- */

static cs_status read_edge(const reader *in, span line)
{
    cs_pipedream_graph *graph = in->graph;
    cs_pipedream_edge edge = {.line = in->line};
    if (!part_first(skip(line, 1), separator, &edge.ids[0], &edge.ids[1]) || !is_id(edge.ids[0]) ||
        !is_id(edge.ids[1]))
        return bad_line(in);
    if (!cs_vector_reserve((void **)&graph->edges, &graph->cap_edges, graph->n_edges + 1u,
                           sizeof(edge)))
        return cs_error_no_memory(in->error);
    graph->edges[graph->n_edges++] = edge;
    return CS_OK;
}

/* ---- lines ---- */

static cs_status read_line(const reader *in, span line)
{
    line = trim_end(line);
    if (line.length == 0)
        return CS_OK;
    if (!is_text(line))
        return cs_pipedream_invalid(in->graph->file, in->line, in->error,
                                    "must be UTF-8 text without control characters");
    return *line.start == '\t' ? read_edge(in, line) : read_node(in, line);
}

static cs_status read_lines(const char *text, size_t length, cs_pipedream_graph *graph,
                            cs_error *error)
{
    reader in = {graph, 1, error};
    cs_status status = CS_OK;
    span line, rest = {text, length};
    for (; rest.length > 0; in.line++) {
        const char *end = memchr(rest.start, '\n', rest.length);
        line = (span){rest.start, end ? (size_t)(end - rest.start) : rest.length};
        rest = skip(rest, end ? line.length + 1 : line.length);
        cs_status other = read_line(&in, line);
        if (other == CS_NO_MEMORY)
            return other;
        if (status == CS_OK)
            status = other;
    }
    return status;
}

/* ---- ids ---- */

/* An id and its node, in a sorted table for finding nodes by id. */
typedef struct entry {
    span id;
    uint32_t node;
} entry;

static int compare_ids(span a, span b)
{
    int order = memcmp(a.start, b.start, a.length < b.length ? a.length : b.length);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_entries(const void *a, const void *b)
{
    const entry *left = a, *right = b;
    int order = compare_ids(left->id, right->id);
    return order != 0 ? order : (left->node > right->node) - (left->node < right->node);
}

static int find_entry(const void *key, const void *element)
{
    return compare_ids(*(const span *)key, ((const entry *)element)->id);
}

static cs_status check_nodes(const cs_pipedream_graph *graph, const entry *entries, cs_error *error)
{
    cs_status status = CS_OK;
    char quoted[CS_TEXT_QUOTED_BYTES];
    for (uint32_t i = 1; i < graph->n_nodes; i++) {
        if (compare_ids(entries[i].id, entries[i - 1].id) == 0)
            status =
                cs_pipedream_invalid(graph->file, graph->nodes[entries[i].node].line, error,
                                     "node %s is already on line %u", quote(entries[i].id, quoted),
                                     graph->nodes[entries[i - 1].node].line);
    }
    return status;
}

static cs_status resolve_end(const cs_pipedream_graph *graph, const entry *entries,
                             const cs_pipedream_edge *edge, int end, uint32_t *node,
                             cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    const entry *found =
        bsearch(&edge->ids[end], entries, graph->n_nodes, sizeof(*entries), find_entry);
    if (!found)
        return cs_pipedream_invalid(graph->file, edge->line, error, "no node is called %s",
                                    quote(edge->ids[end], quoted));
    *node = found->node;
    return CS_OK;
}

static cs_status resolve_edge(const cs_pipedream_graph *graph, const entry *entries,
                              cs_pipedream_edge *edge, cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    cs_status from = resolve_end(graph, entries, edge, 0, &edge->from, error);
    cs_status to = resolve_end(graph, entries, edge, 1, &edge->to, error);
    if (from != CS_OK || to != CS_OK)
        return CS_INVALID;
    if (edge->from == edge->to)
        return cs_pipedream_invalid(graph->file, edge->line, error,
                                    "node %s must not read its own output",
                                    quote(edge->ids[0], quoted));
    return CS_OK;
}

static cs_status resolve(cs_pipedream_graph *graph, const entry *entries, cs_error *error)
{
    cs_status status = check_nodes(graph, entries, error);
    for (uint32_t i = 0; i < graph->n_edges; i++) {
        cs_status other = resolve_edge(graph, entries, &graph->edges[i], error);
        if (status == CS_OK)
            status = other;
    }
    return status;
}

static cs_status resolve_edges(cs_pipedream_graph *graph, cs_error *error)
{
    entry *entries = calloc(graph->n_nodes, sizeof(*entries));
    if (!entries)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        entries[i] = (entry){graph->nodes[i].id, i};
    qsort(entries, graph->n_nodes, sizeof(*entries), compare_entries);
    cs_status status = resolve(graph, entries, error);
    free(entries);
    return status;
}

static int compare_edges(const void *a, const void *b)
{
    const cs_pipedream_edge *left = a, *right = b;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    return left->line < right->line ? -1 : left->line > right->line;
}

static cs_status sort_edges(cs_pipedream_graph *graph, cs_error *error)
{
    cs_status status = CS_OK;
    const cs_pipedream_edge *edges = graph->edges;
    if (graph->n_edges > 0)
        qsort(graph->edges, graph->n_edges, sizeof(*edges), compare_edges);
    for (uint32_t i = 1; i < graph->n_edges; i++) {
        if (edges[i].from == edges[i - 1].from && edges[i].to == edges[i - 1].to)
            status = cs_pipedream_invalid(graph->file, edges[i].line, error,
                                          "this edge is already on line %u", edges[i - 1].line);
    }
    return status;
}

static cs_status read_graph(const char *text, size_t length, cs_pipedream_graph *graph,
                            cs_error *error)
{
    CS_TRY(read_lines(text, length, graph, error));
    if (graph->n_nodes == 0)
        return cs_pipedream_invalid(graph->file, 1, error, "no nodes: must have at least one");
    CS_TRY(resolve_edges(graph, error));
    return sort_edges(graph, error);
}

cs_status cs_pipedream_graph_read(const char *file, const char *text, size_t length,
                                  cs_pipedream_graph *graph, cs_error *error)
{
    cs_pipedream_graph made = {.file = file};
    cs_status status = read_graph(text, length, &made, error);
    if (status != CS_OK) {
        cs_pipedream_graph_finish(&made);
        return status;
    }
    *graph = made;
    return CS_OK;
}

void cs_pipedream_graph_finish(cs_pipedream_graph *graph)
{
    if (!graph)
        return;
    free(graph->nodes);
    free(graph->edges);
    *graph = (cs_pipedream_graph){0};
}
