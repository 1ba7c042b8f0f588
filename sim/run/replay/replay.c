#include "sim/run/replay/replay.h"

#include "sim/run/replay/replayable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- stages ---- */

bool cs_replay_holds(const cs_plan *plan, uint32_t stage, uint32_t device)
{
    const cs_stage *at = &plan->stages[stage];
    for (uint32_t i = 0; i < at->n_devices; i++)
        if (plan->devices[at->first_device + i] == device)
            return true;
    return false;
}

uint32_t cs_replay_summed(const cs_replay *replay, uint32_t task)
{
    const cs_scenario *scenario = replay->scenario;
    const cs_class *cls = cs_graph_class(&replay->graph, task);
    int64_t bytes = 0;
    uint32_t s = cls->stage;
    while (s < scenario->plan->n_stages && bytes < cls->bytes &&
           cs_replay_holds(scenario->plan, s, cls->device))
        bytes += scenario->job.stages[s++].gradient_bytes;
    return bytes == cls->bytes ? s : CS_NONE;
}

cs_status cs_replay_chain(const cs_scenario *scenario, const cs_split *split, uint32_t place,
                          cs_net_chain *chain, cs_error *error)
{
    cs_accelerator none;
    cs_accelerator_none(&none);
    cs_net_options how = {.batch_size = scenario->job.micro_samples,
                          .granularity = (cs_granularity)scenario->granularity,
                          .device = &none,
                          .source = "none",
                          .split = split,
                          .place = place};
    return cs_net_chain_find(scenario->net, &how, chain, error);
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

static void sort_places(cs_replay *replay, place *places)
{
    uint32_t n = replay->graph.n_tasks;
    qsort(places, n, sizeof(*places), by_place);
    for (uint32_t i = 0; i < n; i++)
        replay->order[i] = places[i].task;
}

/* All of a pass to where its last computation is: messages that it waits for come before, and those
 * that wait for it behind. */
static void join_passes(const cs_replay *replay, place *places)
{
    const cs_replay_passes *passes = &replay->passes;
    for (uint32_t p = 0; p < passes->n; p++) {
        const uint32_t first = passes->all[p].first_task, n = passes->n_places;
        const cs_program *program = cs_replay_program(passes, p);
        const uint32_t last = first + cs_replay_last_computation(program) * n;
        cs_time depth = 0;
        for (uint32_t i = 0; i < n; i++)
            depth = places[last + i].start > depth ? places[last + i].start : depth;
        for (uint32_t t = first; t < first + program->n * n; t++)
            places[t].start = depth;
    }
}

/* As the simulation started them. */
static cs_status sort_by_time(cs_replay *replay, const cs_span *spans, cs_error *error)
{
    uint32_t n = replay->graph.n_tasks;
    place *places = calloc(n + UINT64_C(1), sizeof(*places));
    uint32_t *rank = calloc(3 * (size_t)n + 1, sizeof(*rank));
    cs_status status = places && rank ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        cs_graph_order(&replay->graph, rank, rank + n, rank + 2 * (size_t)n);
        for (uint32_t t = 0; t < n; t++)
            places[t] = (place){spans[t].start, rank[t], t};
        join_passes(replay, places);
        sort_places(replay, places);
    }
    free(places);
    free(rank);
    return status;
}

static bool deepen(place *at, cs_time depth)
{
    const bool raised = at->start < depth;
    at->start = raised ? depth : at->start;
    return raised;
}

/* Members of a collective, whose tasks stand together, to where the deepest is. */
static bool raise_collectives(const cs_graph *graph, place *places)
{
    bool raised = false;
    for (uint32_t t = 0, end; t < graph->n_tasks; t = end) {
        const cs_class *cls = cs_graph_class(graph, t);
        cs_time depth = 0;
        end = t + 1;
        if (cs_kind_group_of((cs_kind)cls->kind) == CS_GROUP_COLLECTIVE)
            end = t + graph->groups[cls->peer].n;
        for (uint32_t k = t; k < end; k++)
            depth = places[k].start > depth ? places[k].start : depth;
        for (uint32_t k = t; k < end; k++)
            raised |= deepen(&places[k], depth);
    }
    return raised;
}

/* What follows a task, to below it. */
static bool raise_successors(const cs_graph *graph, uint32_t task, place *places)
{
    const cs_time below = places[task].start + 1;
    const uint32_t next = graph->tasks[task].next;
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, task, &n);
    bool raised = false;
    for (uint32_t i = 0; i < n; i++)
        raised |= deepen(&places[successors[i]], below);
    if (next != CS_NONE && graph->queues[cs_graph_class(graph, task)->device] == CS_QUEUE_PROGRAM)
        raised |= deepen(&places[next], below);
    return raised;
}

/* By depth: one pass over an order that the tasks depend in, and one more for each collective that
 * this order has apart. No task is deeper than there are tasks, unless collectives wait for each
 * other. */
static cs_status find_depths(const cs_graph *graph, const uint32_t *order, place *places,
                             cs_error *error)
{
    bool raised = true;
    for (uint32_t pass = 0; raised && pass <= graph->n_tasks; pass++) {
        raised = raise_collectives(graph, places);
        for (uint32_t i = 0; i < graph->n_tasks; i++)
            raised |= raise_successors(graph, order[i], places);
    }
    return raised ? cs_error_add(error, CS_INVALID, "collectives wait for each other") : CS_OK;
}

static cs_status sort_by_depth(cs_replay *replay, cs_error *error)
{
    uint32_t n = replay->graph.n_tasks;
    place *places = calloc(n + UINT64_C(1), sizeof(*places));
    uint32_t *rank = calloc(3 * (size_t)n + 1, sizeof(*rank)), *order = rank ? rank + n : NULL;
    cs_status status = places && rank ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        cs_graph_order(&replay->graph, rank, rank + n, rank + 2 * (size_t)n);
        for (uint32_t t = 0; t < n; t++) {
            places[t] = (place){0, t, t};
            order[rank[t]] = t;
        }
        status = find_depths(&replay->graph, order, places, error);
    }
    if (status == CS_OK) {
        join_passes(replay, places);
        sort_places(replay, places);
    }
    free(places);
    free(rank);
    return status;
}

/* ---- what tasks are ---- */

/* Micro-batches of a stage's mini-batch, over its backwards: one of them may be for all. A pass on
 * a grid is for one. */
static cs_status count_covers(cs_replay *replay, cs_error *error)
{
    const cs_graph *graph = &replay->graph;
    for (uint32_t t = 0; replay->has_grid && t < graph->n_tasks; t++)
        replay->covers[t] = 1;
    if (replay->has_grid)
        return CS_OK;
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
                replay->covers[t] =
                    cls->kind == CS_FORWARD ? 1 : counts[2 * at] / counts[2 * at + 1];
        }
    }
    free(counts);
    return CS_OK;
}

/* The computation with which the pass of a task ends on a device. */
static uint32_t computation_of(const cs_replay *replay, uint32_t task, uint32_t device)
{
    const uint32_t pass = replay->passes.pass_of[task];
    const uint32_t last = cs_replay_last_computation(cs_replay_program(&replay->passes, pass));
    return cs_replay_step_task(&replay->passes, &replay->graph, pass, last, device);
}

/* A message is for the computation that waits for it, on the other end; on a grid, for the pass. */
static void find_readers(cs_replay *replay)
{
    const cs_graph *graph = &replay->graph;
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(graph, t);
        uint32_t n, *reader = &replay->readers[t];
        const uint32_t *successors = cs_graph_successors(graph, t, &n);
        *reader = CS_NONE;
        for (uint32_t i = 0; cls->kind == CS_TRANSFER && i < n; i++) {
            const cs_class *next = cs_graph_class(graph, successors[i]);
            if (replay->has_grid && next->device == cls->peer)
                *reader = computation_of(replay, successors[i], cls->peer);
            else if (next->device == cls->peer &&
                     (next->kind == CS_FORWARD || next->kind == CS_BACKWARD))
                *reader = successors[i];
        }
        if (*reader != CS_NONE)
            replay->covers[t] = replay->covers[*reader];
    }
}

/* ---- the simulation ---- */

/* A graph with collectives is simulated without this order being asked for; then versions are those
 * that each device's own program makes. */
static cs_status simulate(cs_replay *replay, const char *path, cs_error *error)
{
    cs_engine_options options = {.record_versions = true};
    cs_trace trace = {0};
    bool collectives = false;
    for (uint32_t t = 0; t < replay->graph.n_tasks; t++)
        collectives |= cs_kind_group_of((cs_kind)cs_graph_class(&replay->graph, t)->kind) ==
                       CS_GROUP_COLLECTIVE;
    for (uint32_t t = 0; t < replay->graph.n_tasks; t++)
        replay->versions[t] = CS_NONE;
    if ((collectives || replay->has_grid) && replay->graph.n_policies > 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: /schedule: cannot be replayed: it has %s and chooses "
                            "versions of weights",
                            path, replay->has_grid ? "\"parallel\"" : "collectives");
    if (collectives)
        return sort_by_depth(replay, error);
    cs_status status =
        cs_engine_run(&replay->graph, &replay->scenario->platform, &options, &trace, error);
    if (status == CS_OK)
        status = sort_by_time(replay, trace.spans, error);
    if (status == CS_OK && trace.versions)
        memcpy(replay->versions, trace.versions, replay->graph.n_tasks * sizeof(*replay->versions));
    cs_trace_finish(&trace);
    return status;
}

static cs_status make(cs_replay *replay, const char *path, cs_error *error)
{
    const cs_scenario *scenario = replay->scenario;
    replay->job = scenario->job;
    replay->job.stands_for = NULL;
    replay->has_grid = scenario->parallel != NULL;
    CS_TRY(cs_replayable_scenario(scenario, path, error));
    CS_TRY(cs_schedule_graph(scenario->schedule, &replay->job, scenario->params, &replay->graph,
                             error));
    CS_TRY(cs_replayable_kinds(replay, path, error));
    if (replay->has_grid)
        CS_TRY(cs_replay_passes_find(&replay->job, &replay->graph, &replay->passes, error));
    size_t n = replay->graph.n_tasks + UINT64_C(1);
    replay->order = calloc(n, sizeof(*replay->order));
    replay->versions = calloc(n, sizeof(*replay->versions));
    replay->readers = calloc(n, sizeof(*replay->readers));
    replay->covers = calloc(n, sizeof(*replay->covers));
    replay->n_states = (uint32_t)lround(scenario->job.optimizer_ratio);
    if (!replay->order || !replay->versions || !replay->readers || !replay->covers)
        return cs_error_no_memory(error);
    CS_TRY(count_covers(replay, error));
    find_readers(replay);
    CS_TRY(cs_replayable_tasks(replay, path, error));
    return simulate(replay, path, error);
}

cs_status cs_replay_make(const cs_scenario *scenario, const char *path, cs_replay *replay,
                         cs_error *error)
{
    cs_replay made = {.scenario = scenario};
    cs_status status = make(&made, path, error);
    if (status == CS_OK)
        *replay = made;
    else
        cs_replay_finish(&made);
    return status;
}

void cs_replay_finish(cs_replay *replay)
{
    cs_replay_passes_finish(&replay->passes);
    cs_graph_finish(&replay->graph);
    free(replay->order);
    free(replay->versions);
    free(replay->readers);
    free(replay->covers);
    *replay = (cs_replay){0};
}
