#include "sim/core/graph/graph.h"

#include <inttypes.h>
#include <stdlib.h>

void cs_graph_finish(cs_graph *graph)
{
    free(graph->tasks);
    free(graph->n_predecessors);
    free(graph->listed);
    free(graph->first_task);
    free(graph->queues);
    free(graph->classes);
    free(graph->effects);
    free(graph->residents);
    free(graph->slots);
    free(graph->policies);
    free(graph->groups);
    free(graph->group_devices);
    free(graph->stands_for);
    free(graph->series);
    free(graph->parts);
    *graph = (cs_graph){0};
}

static const struct {
    const char *name, *symbol;
} kinds[] = {
#define CS_KIND_ROW(name, text, symbol, group) {text, symbol},
    CS_KIND_MAP(CS_KIND_ROW)
#undef CS_KIND_ROW
};

const char *cs_kind_name(cs_kind kind)
{
    return kinds[kind].name;
}

const char *cs_kind_symbol(cs_kind kind)
{
    return kinds[kind].symbol;
}

uint32_t cs_graph_count_tasks(const cs_graph *graph)
{
    uint32_t n = graph->n_tasks;
    for (uint32_t task = 0; graph->n_series > 0 && task < graph->n_tasks; task++) {
        const uint32_t series = cs_graph_class(graph, task)->series;
        n += series > 0 ? graph->series[series - 1].n_tasks - 1 : 0;
    }
    return n;
}

static const char *const categories[] = {
#define CS_CATEGORY_ROW(name, text) text,
    CS_CATEGORY_MAP(CS_CATEGORY_ROW)
#undef CS_CATEGORY_ROW
};

const char *cs_category_name(cs_category category)
{
    return categories[category];
}

const char *cs_purpose_name(cs_purpose purpose)
{
    static const char *const purposes[] = {
#define CS_PURPOSE_ROW(name, text) text,
        CS_PURPOSE_MAP(CS_PURPOSE_ROW)
#undef CS_PURPOSE_ROW
    };
    return purposes[purpose];
}

void cs_graph_count_devices(const cs_graph *graph, uint32_t *times)
{
    for (uint32_t d = 0; d < graph->n_devices; d++)
        times[d] = 0;
    for (uint32_t d = 0; d < graph->n_devices; d++)
        times[cs_graph_stand_in(graph, d)]++;
}

uint32_t cs_graph_count_members(const cs_graph *graph, uint32_t group)
{
    const cs_group *of = &graph->groups[group];
    uint32_t n = 0;
    if (!graph->stands_for)
        return of->n;
    for (uint32_t rank = 0; rank < of->n; rank++)
        n += cs_graph_has(graph, graph->group_devices[of->first + rank]);
    return n;
}

char *cs_graph_describe(const cs_graph *graph, uint32_t task, char *text, size_t size)
{
    const cs_class *cls = cs_graph_class(graph, task);
    int used = snprintf(text, size, "%s%u.%u of stage %u on device %u", cs_kind_symbol(cls->kind),
                        cs_graph_mini_batch(graph, task), cs_graph_micro_batch(graph, task),
                        cls->stage, cls->device);
    if (cls->kind == CS_TRANSFER && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, " to %u", cls->peer);
    return text;
}

static bool print_task(const cs_graph *graph, uint32_t task, FILE *out)
{
    char text[96];
    const cs_class *cls = cs_graph_class(graph, task);
    fprintf(out, "%u: %s, %" PRId64 " ps, %" PRId64 " bytes", task,
            cs_graph_describe(graph, task, text, sizeof(text)), cls->duration, cls->bytes);
    if (cls->release > 0 || cls->interval > 0)
        fprintf(out, ", not before %" PRId64 " ps",
                cls->release + cls->interval * graph->tasks[task].item);
    for (uint32_t e = 0; e < cls->n_effects; e++) {
        const cs_effect *effect = &graph->effects[cls->first_effect + e];
        fprintf(out, ", %s %+" PRId64 " of %s on %u", effect->at_end ? "end" : "start",
                effect->bytes, cs_category_name(effect->category), effect->device);
    }
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, task, &n);
    for (uint32_t s = 0; s < n; s++)
        fprintf(out, " -> %u", successors[s]);
    return fputc('\n', out) != EOF;
}

bool cs_graph_print(const cs_graph *graph, FILE *out)
{
    fprintf(out, "%u tasks, %u edges, %u devices\n", graph->n_tasks, graph->n_edges,
            graph->n_devices);
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (!print_task(graph, task, out))
            return false;
    }
    return !ferror(out);
}
