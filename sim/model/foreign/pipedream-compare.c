#include "sim/model/foreign/pipedream-compare.h"

#include "sim/base/file.h"
#include "sim/model/foreign/pipedream-graph.h"
#include "sim/model/ops/operator.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 64 << 20 };

/* Names of the kinds in profiles. If one name begins another, the longer name comes first. */
static const struct {
    const char *text;
    cs_op_kind kind;
} words[] = {
    {"Conv", CS_OP_CONV},
    {"Linear", CS_OP_LINEAR},
    {"BatchNorm", CS_OP_BATCH_NORM},
    {"LayerNorm", CS_OP_LAYER_NORM},
    {"ReLU", CS_OP_RELU},
    {"GELU", CS_OP_GELU},
    {"MaxPool", CS_OP_MAX_POOL},
    {"AvgPool", CS_OP_AVG_POOL},
    {"AdaptiveAvgPool", CS_OP_AVG_POOL},
    {"Dropout", CS_OP_DROPOUT},
    {"Add", CS_OP_ADD},
    {"Concat", CS_OP_CONCAT},
    {"Softmax", CS_OP_SOFTMAX},
    {"Embedding", CS_OP_EMBEDDING},
};

static bool kind_of(const cs_pipedream_span *text, cs_op_kind *kind)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i].text);
        if (text->length >= length && memcmp(text->start, words[i].text, length) == 0) {
            *kind = words[i].kind;
            return true;
        }
    }
    return false;
}

static void add_measured(const cs_pipedream_graph *graph, cs_compare_row *rows)
{
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        const cs_pipedream_node *node = &graph->nodes[n];
        cs_op_kind kind;
        if (!kind_of(&node->description, &kind))
            continue;
        rows[kind].n_measured++;
        rows[kind].measured[0] += cs_time_seconds(node->forward);
        rows[kind].measured[1] += cs_time_seconds(node->backward);
    }
}

static void add_estimated(const cs_net *net, const cs_net_options *how, cs_compare_row *rows)
{
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const cs_op *op = &net->ops[p];
        cs_op_kind kind = op->kind == CS_OP_ADAPTIVE_POOL ? CS_OP_AVG_POOL : op->kind;
        cs_op_cost cost;
        cs_op_cost_of(net, op, how->batch_size, how->precision, &cost);
        rows[kind].n_estimated++;
        rows[kind].estimated[0] +=
            cs_accelerator_seconds(how->device, op, &cost.forward, how->precision);
        rows[kind].estimated[1] +=
            cs_accelerator_seconds(how->device, op, &cost.backward_input, how->precision) +
            cs_accelerator_seconds(how->device, op, &cost.backward_weight, how->precision);
    }
}

static bool is_compared(cs_op_kind kind)
{
    return !cs_operator_of_kind(kind)->is_view && !cs_operator_of_kind(kind)->is_loss;
}

static void collect(const cs_compare_row *rows, cs_compare *out)
{
    *out = (cs_compare){.total = {.kind = "total"}};
    for (int k = 0; k < CS_N_OP_KINDS; k++) {
        cs_compare_row row = rows[k];
        if (!is_compared((cs_op_kind)k) || row.n_measured + row.n_estimated == 0)
            continue;
        row.kind = cs_op_kind_name((cs_op_kind)k);
        out->rows[out->n_rows++] = row;
        if (row.measured[0] + row.measured[1] <= 0 || row.n_estimated == 0) {
            out->n_untimed++;
            continue;
        }
        out->total.n_measured += row.n_measured;
        out->total.n_estimated += row.n_estimated;
        for (int i = 0; i < 2; i++) {
            out->total.measured[i] += row.measured[i];
            out->total.estimated[i] += row.estimated[i];
        }
    }
}

cs_status cs_compare_load(const char *path, const cs_net *net, const cs_net_options *options,
                          cs_compare *compare, cs_error *error)
{
    char *text;
    size_t length;
    cs_pipedream_graph graph = {0};
    cs_compare_row rows[CS_N_OP_KINDS] = {{0}};
    CS_TRY(cs_file_read(path, LARGEST_FILE, &text, &length, error));
    cs_status status = cs_pipedream_graph_read(path, text, length, &graph, error);
    if (status == CS_OK) {
        add_measured(&graph, rows);
        add_estimated(net, options, rows);
        collect(rows, compare);
    }
    cs_pipedream_graph_finish(&graph);
    free(text);
    return status;
}
