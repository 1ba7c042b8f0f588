#include "sim/model/foreign/pipedream.h"

#include "sim/base/file.h"
#include "sim/base/sum.h"
#include "sim/base/text.h"
#include "sim/model/foreign/pipedream-chain.h"
#include "sim/model/foreign/pipedream-graph.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ---- */

static bool add_node(cs_layer *layer, const cs_pipedream_node *node)
{
    cs_time weight = node->weight_bytes > 0 ? node->backward / 2 : 0;
    return cs_sum_add(&layer->forward, node->forward) &&
           cs_sum_add(&layer->backward_weight, weight) &&
           cs_sum_add(&layer->backward_input, node->backward - weight) &&
           cs_sum_add(&layer->weight_bytes, node->weight_bytes);
}

/* Adds the activation of `node` to the first layer that reads it, which saves it. Only the first
 * layer reads the activations of inputs, as all inputs are before the first articulation point. */
static bool add_activation(const cs_pipedream_chain *a, uint32_t node, cs_model *model)
{
    int64_t bytes = a->graph->nodes[node].output_bytes;
    uint32_t by = cs_pipedream_chain_reading_layer(a, node);
    if (by == CS_PIPEDREAM_NONE || bytes == 0)
        return true;
    return cs_sum_add(&model->layers[by].kept_bytes, bytes) &&
           (a->roles[node] != CS_PIPEDREAM_INPUT || cs_sum_add(&model->input_bytes, bytes));
}

static const cs_pipedream_node *first_node(const cs_pipedream_chain *a, uint32_t layer)
{
    return &a->graph->nodes[a->core[layer == 0 ? 0 : a->layer_end[layer - 1]]];
}

static const cs_pipedream_node *last_node(const cs_pipedream_chain *a, uint32_t layer)
{
    return &a->graph->nodes[a->core[a->layer_end[layer] - 1]];
}

/* Sets the outputs of layers. A layer outputs the activation of its last node, which is an
 * articulation point. Only the last layer may have several outputs, which are the outputs of the
 * network. */
static bool add_outputs(const cs_pipedream_chain *a, cs_model *model)
{
    for (uint32_t i = 0; i < a->n_layers; i++)
        model->layers[i].output_bytes = last_node(a, i)->output_bytes;
    int64_t *out = &model->layers[a->n_layers - 1].output_bytes;
    bool fits = true;
    for (uint32_t p = 0; fits && p + 1 < a->n_core; p++)
        if (cs_pipedream_chain_last_reader(a, a->core[p]) == a->n_core)
            fits = cs_sum_add(out, a->graph->nodes[a->core[p]].output_bytes);
    return fits;
}

static cs_status fill_layers(const cs_pipedream_chain *a, cs_model *model, cs_error *error)
{
    bool fits = true;
    for (uint32_t n = 0; fits && n < a->graph->n_nodes; n++) {
        fits = add_activation(a, n, model);
        if (fits && a->layer[n] != CS_PIPEDREAM_NONE)
            fits = add_node(&model->layers[a->layer[n]], &a->graph->nodes[n]);
    }
    if (!fits || !add_outputs(a, model))
        return cs_error_add(error, CS_OVERFLOW,
                            "%s: the times or sizes of one layer do not fit 64 bits",
                            a->graph->file);
    return CS_OK;
}

/* Names a node, for example "node2 Conv2d"; a group of nodes is named "node7 to node9 (3 nodes)".
 * Ids are unique and contain no spaces, and the name has no parenthesis from the description, so
 * names are unique too. */
static const char *name_node(const cs_pipedream_node *node, cs_arena *arena)
{
    size_t kind = 0, id = node->id.length;
    while (kind < node->description.length && node->description.start[kind] != '(')
        kind++;
    char *name = cs_arena_alloc(arena, id + 1 + kind + 1, 1);
    if (!name)
        return NULL;
    memcpy(name, node->id.start, id);
    if (kind > 0) {
        name[id] = ' ';
        memcpy(name + id + 1, node->description.start, kind);
    }
    for (char *tab = name; (tab = strchr(tab, '\t'));) /* names may not contain tabs */
        *tab = ' ';
    return name;
}

static const char *name_group(const cs_pipedream_group *group, cs_arena *arena)
{
    static const char format[] = "%s to %s (%u nodes)";
    size_t size = strlen(group->first) + strlen(group->last) + sizeof(format) + 10;
    char *name = cs_arena_alloc(arena, size, 1);
    if (name)
        snprintf(name, size, format, group->first, group->last, group->n_nodes);
    return name;
}

static bool find_ends(const cs_pipedream_chain *a, cs_pipedream_group *group, cs_arena *arena)
{
    const cs_pipedream_span *first = &first_node(a, group->layer)->id;
    const cs_pipedream_span *last = &last_node(a, group->layer)->id;
    group->first = cs_arena_copy_length(arena, first->start, first->length);
    group->last = cs_arena_copy_length(arena, last->start, last->length);
    return group->first && group->last;
}

/* Names a layer; NULL if memory runs out. A dead end or an empty node that joined a single node
 * does not change its name. */
static const char *name_layer(const cs_pipedream_chain *a, cs_pipedream_group *group,
                              cs_arena *arena)
{
    const cs_pipedream_node *last = last_node(a, group->layer);
    if (!find_ends(a, group, arena))
        return NULL;
    return first_node(a, group->layer) == last ? name_node(last, arena) : name_group(group, arena);
}

/* Names the layers, and lists the layers that consist of several nodes. */
static cs_status name_layers(const cs_pipedream_chain *a, cs_model *model,
                             cs_pipedream_report *report, cs_error *error)
{
    cs_pipedream_group *groups = cs_arena_alloc(&model->arena, a->n_layers, sizeof(*groups));
    if (!groups)
        return cs_error_no_memory(error);
    for (uint32_t n = 0; n < a->graph->n_nodes; n++)
        if (a->layer[n] != CS_PIPEDREAM_NONE)
            groups[a->layer[n]].n_nodes++;
    for (uint32_t i = 0; i < a->n_layers; i++) {
        cs_pipedream_group group = {.layer = i, .n_nodes = groups[i].n_nodes};
        model->layers[i].name = name_layer(a, &group, &model->arena);
        if (!model->layers[i].name)
            return cs_error_no_memory(error);
        if (group.n_nodes > 1)
            groups[report->n_groups++] = group;
    }
    report->groups = groups;
    return CS_OK;
}

static cs_status count(const cs_pipedream_chain *a, cs_pipedream_report *report, cs_error *error)
{
    report->n_nodes = a->graph->n_nodes;
    report->n_edges = a->graph->n_edges;
    report->n_layers = a->n_layers;
    for (uint32_t n = 0; n < a->graph->n_nodes; n++) {
        const cs_pipedream_node *node = &a->graph->nodes[n];
        if (a->roles[n] != CS_PIPEDREAM_INPUT)
            continue;
        report->n_inputs++;
        if (!cs_sum_add(&report->skipped, node->forward) ||
            !cs_sum_add(&report->skipped, node->backward))
            return cs_error_add(error, CS_OVERFLOW,
                                "%s: the times of the inputs do not fit 64 bits", a->graph->file);
    }
    return CS_OK;
}

/* ---- name and provenance ---- */

/* Returns the part of `path` from the last slash before `end` up to `end`. */
static cs_pipedream_span last_part(const char *path, const char *end)
{
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    return (cs_pipedream_span){start, (size_t)(end - start)};
}

/* Names the model after its file: "profiles/vgg16/graph.txt" -> "vgg16", "vgg16.txt" -> "vgg16".
 * Most profiles have the same file name and differ only in their folder. */
static const char *model_name(const char *path, cs_arena *arena)
{
    static const char extension[] = ".txt";
    cs_pipedream_span part = last_part(path, path + strlen(path));
    if (strcmp(part.start, "graph.txt") == 0 && part.start - path > 1) {
        cs_pipedream_span folder = last_part(path, part.start - 1);
        part = folder.length > 0 && folder.start[0] != '.' ? folder : part;
    }
    size_t cut = strlen(extension);
    if (part.length > cut && memcmp(part.start + part.length - cut, extension, cut) == 0)
        part.length -= cut;
    return part.length > 0 ? cs_arena_copy_length(arena, part.start, part.length)
                           : cs_arena_copy(arena, "pipedream");
}

static const char *provenance_source(const char *file, cs_arena *arena)
{
    static const char format[] = "PipeDream profile %s";
    size_t size = sizeof(format) + strlen(file);
    char *text = cs_arena_alloc(arena, size, 1);
    if (text)
        snprintf(text, size, format, file);
    return text;
}

static cs_status describe(const char *file, const cs_pipedream_options *options, cs_model *model,
                          cs_error *error)
{
    cs_arena *arena = &model->arena;
    model->batch_size = options->batch_size;
    model->name = options->name ? cs_arena_copy(arena, options->name) : model_name(file, arena);
    model->provenance = (cs_provenance){
        .source = provenance_source(file, arena),
        .hardware = cs_arena_copy(arena, options->hardware ? options->hardware : "not stated"),
        .date = cs_arena_copy(arena, options->date),
        .notes = "times of input nodes left out; backward of nodes with weights split in halves; "
                 "every node keeps what it reads",
    };
    if (!model->name || !model->provenance.source || !model->provenance.hardware ||
        !model->provenance.date)
        return cs_error_no_memory(error);
    return CS_OK;
}

static cs_status check_options(const cs_pipedream_options *options, cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    if (options->batch_size == 0)
        return cs_error_add(error, CS_USAGE,
                            "the batch size of a PipeDream profile must be >= 1 (got 0)");
    if (!options->date || !cs_text_is_date(options->date))
        return cs_error_add(
            error, CS_USAGE, "the date of a PipeDream profile must be a day as YYYY-MM-DD (got %s)",
            options->date ? cs_text_quote(options->date, quoted, sizeof(quoted)) : "none");
    return CS_OK;
}

static cs_status build(const cs_pipedream_chain *a, const cs_pipedream_options *options,
                       cs_model *model, cs_pipedream_report *report, cs_error *error)
{
    CS_TRY(describe(a->graph->file, options, model, error));
    model->n_layers = a->n_layers;
    model->layers = cs_arena_alloc(&model->arena, a->n_layers, sizeof(*model->layers));
    if (!model->layers)
        return cs_error_no_memory(error);
    cs_status status = fill_layers(a, model, error);
    if (status == CS_OK)
        status = name_layers(a, model, report, error);
    return status == CS_OK ? count(a, report, error) : status;
}

static cs_status linearise(const cs_pipedream_graph *graph, const cs_pipedream_options *options,
                           cs_model *model, cs_pipedream_report *report, cs_error *error)
{
    cs_pipedream_chain chain;
    cs_model made = {0};
    cs_pipedream_report told = {0};
    CS_TRY(cs_pipedream_chain_find(graph, &chain, error));
    cs_arena_init(&made.arena);
    cs_status status = build(&chain, options, &made, &told, error);
    cs_pipedream_chain_finish(&chain);
    if (status != CS_OK) {
        cs_model_finish(&made);
        return status;
    }
    *model = made;
    if (report)
        *report = told;
    return CS_OK;
}

cs_status cs_pipedream_parse(const char *name, const char *text, size_t length,
                             const cs_pipedream_options *options, cs_model *model,
                             cs_pipedream_report *report, cs_error *error)
{
    cs_pipedream_graph graph = {0};
    CS_TRY(check_options(options, error));
    CS_TRY(cs_pipedream_graph_read(name, text, length, &graph, error));
    cs_status status = linearise(&graph, options, model, report, error);
    cs_pipedream_graph_finish(&graph);
    return status;
}

cs_status cs_pipedream_load(const char *path, const cs_pipedream_options *options, cs_model *model,
                            cs_pipedream_report *report, cs_error *error)
{
    enum { LARGEST_FILE = 64 << 20 };
    char *text;
    size_t length;
    CS_TRY(cs_file_read(path, LARGEST_FILE, &text, &length, error));
    cs_status status = cs_pipedream_parse(path, text, length, options, model, report, error);
    free(text);
    return status;
}
