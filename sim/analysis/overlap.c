#include "sim/analysis/overlap.h"

#include "sim/base/vector.h"

#include <stdlib.h>

/* What a device does: computing, or sending or receiving a transfer. */
typedef struct interval {
    cs_time start, end;
    bool computes;
} interval;

/* The tasks of each device, one device after the other, in order: those of device d from first[d]
 * to first[d + 1]. */
typedef struct tasks_of_devices {
    size_t *first;
    uint32_t *tasks;
} tasks_of_devices;

/* Of the ranks of a collective that is one delay, the devices that are simulated. */
static uint32_t devices_of_ranks(const cs_graph *graph, uint32_t group, uint32_t *out)
{
    const cs_group *ranks = &graph->groups[group];
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < ranks->n; rank++) {
        const uint32_t device = graph->group_devices[ranks->first + rank];
        if (cs_graph_has(graph, device))
            out[n++] = device;
    }
    return n;
}

/* The devices that a task takes time of: at most two, or all. */
static uint32_t devices_of(const cs_graph *graph, const cs_trace *trace, uint32_t task,
                           uint32_t *out)
{
    const cs_class *cls = cs_graph_class(graph, task);
    const cs_span span = trace->spans[task];
    if (span.start < 0 || span.end <= span.start)
        return 0;
    if (cls->ranks > 0)
        return devices_of_ranks(graph, cls->ranks - 1, out);
    const bool computes = cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE;
    out[0] = cls->device;
    out[1] = cls->peer;
    return !computes && cls->peer != cls->device && cls->peer < graph->n_devices ? 2 : 1;
}

static int by_start(const void *left, const void *right)
{
    const interval *a = left, *b = right;
    CS_COMPARE(a->start, b->start);
    CS_COMPARE(a->end, b->end);
    return 0;
}

enum { MOST_MOVES = 16 }; /* of each interval, on average */

/* Tasks are mostly added in the order in which they run: few intervals are out of order, and not by
 * far. */
static void sort_intervals(interval *at, size_t n)
{
    for (size_t i = 1, moves = 0; i < n; i++) {
        const interval moved = at[i];
        size_t to = i;
        for (; to > 0 && by_start(&at[to - 1], &moved) > 0; to--)
            at[to] = at[to - 1];
        at[to] = moved;
        moves += i - to;
        if (moves > MOST_MOVES * n) {
            qsort(at, n, sizeof(*at), by_start);
            return;
        }
    }
}

/* One after the other in order of their starts: the latest end of each sort so far is all that must
 * be known of those before, as what comes adds only what lies behind it. Time in which both sorts
 * have begun and neither has ended is hidden; it is counted when the later of the two begins or
 * goes on. */
static void add_intervals(const interval *at, size_t n, cs_time_use *use)
{
    cs_time ends[2] = {0, 0}; /* transfers; computations */
    for (size_t i = 0; i < n; i++) {
        const uint32_t sort = at[i].computes;
        const cs_time from = at[i].start > ends[sort] ? at[i].start : ends[sort];
        if (at[i].end <= from)
            continue;
        const cs_time both = ends[!sort] < at[i].end ? ends[!sort] : at[i].end;
        use->active += at[i].computes ? 0 : at[i].end - from;
        use->hidden += both > from ? both - from : 0;
        ends[sort] = at[i].end;
    }
}

/* first[d + 1] becomes the end of device d as its tasks are listed. */
static bool list_tasks(const cs_graph *graph, const cs_trace *trace, uint32_t *devices,
                       tasks_of_devices *list)
{
    size_t *first = list->first;
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        for (uint32_t i = devices_of(graph, trace, task, devices); i-- > 0;)
            first[devices[i] + 2]++;
    for (uint32_t d = 0; d < graph->n_devices; d++)
        first[d + 2] += first[d + 1];
    list->tasks = malloc((first[graph->n_devices + 1] + 1) * sizeof(*list->tasks));
    for (uint32_t task = 0; list->tasks && task < graph->n_tasks; task++)
        for (uint32_t i = devices_of(graph, trace, task, devices); i-- > 0;)
            list->tasks[first[devices[i] + 1]++] = task;
    return list->tasks;
}

/* In place of all at once, one device's at a time: there may be several for each task. */
static bool add_devices(const cs_graph *graph, const cs_trace *trace, const tasks_of_devices *list,
                        cs_time_use *devices)
{
    size_t most = 0;
    for (uint32_t d = 0; d < graph->n_devices; d++) {
        const size_t n = list->first[d + 1] - list->first[d];
        most = n > most ? n : most;
    }
    interval *of = malloc((most + 1) * sizeof(*of));
    for (uint32_t d = 0; of && d < graph->n_devices; d++) {
        const uint32_t *tasks = list->tasks + list->first[d];
        const size_t n = list->first[d + 1] - list->first[d];
        for (size_t i = 0; i < n; i++) {
            const cs_class *cls = cs_graph_class(graph, tasks[i]);
            const cs_span span = trace->spans[tasks[i]];
            of[i] =
                (interval){span.start, span.end, cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE};
        }
        sort_intervals(of, n);
        add_intervals(of, n, &devices[d]);
    }
    const bool done = of;
    free(of);
    return done;
}

bool cs_overlap_find(const cs_graph *graph, const cs_trace *trace, cs_time_use *devices)
{
    tasks_of_devices list = {calloc((size_t)graph->n_devices + 2, sizeof(*list.first)), NULL};
    uint32_t *scratch = malloc(((size_t)graph->n_devices + 2) * sizeof(*scratch));
    const bool done = list.first && scratch && list_tasks(graph, trace, scratch, &list) &&
                      add_devices(graph, trace, &list, devices);
    free(scratch);
    free(list.first);
    free(list.tasks);
    return done;
}
