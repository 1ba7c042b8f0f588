#include "calib/bench/crew.h"

#include "sim/lower/lower.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what can be replayed ---- */

static cs_status refuse(const char *path, const char *pointer, const char *what, cs_error *error)
{
    return cs_error_add(error, CS_INVALID, "%s: %s: %s", path, pointer, what);
}

static cs_status check_scenario(const cs_scenario *scenario, const char *path, cs_error *error)
{
    if (!scenario->net)
        return refuse(
            path, "/model",
            "must have a \"name\" to be replayed: only an architecture says which kernels "
            "to run",
            error);
    if (scenario->model.precision != CS_PRECISION_FP32)
        return refuse(path, "/model/precision", "must be fp32 to be replayed", error);
    for (uint32_t l = 0; l < scenario->model.n_layers; l++)
        if (scenario->model.layers[l].recompute)
            return refuse(path, "/model/recompute", "must be false to be replayed", error);
    for (uint32_t d = 0; d < scenario->platform.n_devices; d++)
        if (scenario->job.speeds[d] != 1)
            return refuse(path, "/platform/speed", "must be 1 to be replayed", error);
    return CS_OK;
}

static cs_status check_class(const cs_class *cls, const char *path, cs_error *error)
{
    switch (cls->kind) {
    case CS_FORWARD:
    case CS_BACKWARD:
    case CS_UPDATE:
    case CS_ALL_REDUCE:
        return CS_OK;
    case CS_TRANSFER:
        return cls->blocking
                   ? CS_OK
                   : refuse(path, "/platform/blocking",
                            "must be true to be replayed: processes that compute send and "
                            "receive by themselves",
                            error);
    default:
        return cs_error_add(error, CS_INVALID,
                            "%s: /schedule/kind: tasks of the kind \"%s\" cannot be replayed", path,
                            cs_kind_name((cs_kind)cls->kind));
    }
}

/* ---- the order ---- */

typedef struct place {
    cs_time start;
    uint32_t rank, task;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* `spans` are those of the graph's tasks, or NULL. */
static cs_status sort_tasks(cs_crew *crew, const cs_span *spans, cs_error *error)
{
    uint32_t n = crew->graph.n_tasks;
    place *places = calloc(n + UINT64_C(1), sizeof(*places));
    uint32_t *rank = calloc(3 * (size_t)n + 1, sizeof(*rank));
    cs_status status = places && rank ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        cs_graph_order(&crew->graph, rank, rank + n, rank + 2 * (size_t)n);
        for (uint32_t t = 0; t < n; t++)
            places[t] = (place){spans ? spans[t].start : 0, rank[t], t};
        qsort(places, n, sizeof(*places), by_place);
        for (uint32_t i = 0; i < n; i++)
            crew->order[i] = places[i].task;
    }
    free(places);
    free(rank);
    return status;
}

/* ---- what tasks are ---- */

/* Micro-batches of a stage's mini-batch, over its backwards: one of them may be for all. */
static cs_status count_covers(cs_crew *crew, cs_error *error)
{
    const cs_graph *graph = &crew->graph;
    size_t n = (size_t)graph->n_devices * graph->n_stages * graph->n_batches;
    uint32_t *counts = calloc(2 * n + 1, sizeof(*counts));
    if (!counts)
        return cs_error_no_memory(error);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t t = 0; t < graph->n_tasks; t++) {
            const cs_class *cls = cs_graph_class(graph, t);
            if (cls->kind != CS_FORWARD && cls->kind != CS_BACKWARD)
                continue;
            size_t at = ((size_t)cls->device * graph->n_stages + cls->stage) * graph->n_batches +
                        cs_graph_mini_batch(graph, t);
            if (!fill)
                counts[2 * at + (cls->kind == CS_BACKWARD)]++;
            else
                crew->covers[t] = cls->kind == CS_FORWARD ? 1 : counts[2 * at] / counts[2 * at + 1];
        }
    }
    free(counts);
    return CS_OK;
}

/* A message is for the computation that waits for it, on the other end. */
static void find_readers(cs_crew *crew)
{
    const cs_graph *graph = &crew->graph;
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(graph, t);
        uint32_t n, *reader = &crew->readers[t];
        const uint32_t *successors = cs_graph_successors(graph, t, &n);
        *reader = CS_NONE;
        for (uint32_t i = 0; cls->kind == CS_TRANSFER && i < n; i++) {
            const cs_class *next = cs_graph_class(graph, successors[i]);
            if (next->device == cls->peer &&
                (next->kind == CS_FORWARD || next->kind == CS_BACKWARD))
                *reader = successors[i];
        }
        if (*reader != CS_NONE)
            crew->covers[t] = crew->covers[*reader];
    }
}

/* ---- the simulation ---- */

/* A graph with collectives is simulated without this order being asked for; then versions are those
 * that each device's own program makes. */
static cs_status simulate(cs_crew *crew, const char *path, cs_error *error)
{
    cs_engine_options options = {.record_versions = true};
    cs_trace trace = {0};
    bool collectives = false;
    for (uint32_t t = 0; t < crew->graph.n_tasks; t++)
        collectives |=
            cs_kind_group_of((cs_kind)cs_graph_class(&crew->graph, t)->kind) == CS_GROUP_COLLECTIVE;
    for (uint32_t t = 0; t < crew->graph.n_tasks; t++)
        crew->versions[t] = CS_NONE;
    if (collectives && crew->graph.n_policies > 0)
        return refuse(path, "/schedule/kind",
                      "cannot be replayed: it has collectives and chooses versions of weights",
                      error);
    if (collectives)
        return sort_tasks(crew, NULL, error);
    cs_status status =
        cs_engine_run(&crew->graph, &crew->scenario->platform, &options, &trace, error);
    if (status == CS_OK)
        status = sort_tasks(crew, trace.spans, error);
    if (status == CS_OK && trace.versions)
        memcpy(crew->versions, trace.versions, crew->graph.n_tasks * sizeof(*crew->versions));
    cs_trace_finish(&trace);
    return status;
}

static cs_status make(cs_crew *crew, const char *path, cs_error *error)
{
    const cs_scenario *scenario = crew->scenario;
    cs_status status = check_scenario(scenario, path, error);
    if (status == CS_OK)
        status = cs_schedule_graph(scenario->schedule, &scenario->job, scenario->params,
                                   &crew->graph, error);
    for (uint32_t t = 0; t < crew->graph.n_tasks && status == CS_OK; t++)
        status = check_class(cs_graph_class(&crew->graph, t), path, error);
    if (status != CS_OK)
        return status;
    size_t n = crew->graph.n_tasks + UINT64_C(1);
    crew->order = calloc(n, sizeof(*crew->order));
    crew->versions = calloc(n, sizeof(*crew->versions));
    crew->readers = calloc(n, sizeof(*crew->readers));
    crew->covers = calloc(n, sizeof(*crew->covers));
    crew->n_states = (uint32_t)lround(scenario->job.optimizer_ratio);
    if (!crew->order || !crew->versions || !crew->readers || !crew->covers)
        return cs_error_no_memory(error);
    status = count_covers(crew, error);
    if (status != CS_OK)
        return status;
    find_readers(crew);
    return simulate(crew, path, error);
}

cs_status cs_crew_make(const cs_scenario *scenario, const char *path, cs_crew *crew,
                       cs_error *error)
{
    cs_crew made = {.scenario = scenario};
    cs_status status = make(&made, path, error);
    if (status == CS_OK)
        *crew = made;
    else
        cs_crew_finish(&made);
    return status;
}

void cs_crew_finish(cs_crew *crew)
{
    cs_graph_finish(&crew->graph);
    free(crew->order);
    free(crew->versions);
    free(crew->readers);
    free(crew->covers);
    *crew = (cs_crew){0};
}
