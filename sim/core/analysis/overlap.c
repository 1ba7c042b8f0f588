#include "sim/core/analysis/overlap.h"

#include "sim/base/vector.h"

#include <stdlib.h>

/* Kinds of spans: messages, computations, and collectives that are delays. */
enum { TRANSFERS, COMPUTATIONS, DELAYS, SORTS };

/* Tasks of each device and sort, in order of id: sort s of device d begins at first[SORTS * d +
 * s]. */
typedef struct tasks_of_devices {
    size_t *first;
    uint32_t *tasks;
} tasks_of_devices;

/* Time span of a task, and the purpose of a transfer. */
typedef struct use_span {
    cs_time start, end;
    cs_time before;  /* total time of the device's earlier computations */
    uint8_t purpose; /* cs_purpose */
} use_span;

/* Lists the simulated devices among the ranks of a collective that is one delay. */
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

/* Lists the devices whose time a task takes: at most two, or all ranks. */
static uint32_t devices_of(const cs_graph *graph, const cs_trace *trace, uint32_t task,
                           uint32_t *out, uint32_t *sort)
{
    const cs_class *cls = cs_graph_class(graph, task);
    const cs_span span = trace->spans[task];
    if (span.start < 0 || span.end <= span.start)
        return 0;
    const bool computes = cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE;
    *sort = computes ? COMPUTATIONS : cls->ranks > 0 ? DELAYS : TRANSFERS;
    if (cls->ranks > 0)
        return devices_of_ranks(graph, cls->ranks - 1, out);
    out[0] = cls->device;
    out[1] = cls->peer;
    return !computes && cls->peer != cls->device && cls->peer < graph->n_devices ? 2 : 1;
}

static int by_start(const void *left, const void *right)
{
    const use_span *a = left, *b = right;
    CS_COMPARE(a->start, b->start);
    CS_COMPARE(a->end, b->end);
    return 0;
}

enum { MOST_MOVES = 16 }; /* moves per span, on average */

/* Insertion sort, since tasks are mostly listed in order of time; falls back to
 * qsort. */
static void sort_spans(use_span *at, size_t n)
{
    for (size_t i = 1, moves = 0; i < n; i++) {
        const use_span moved = at[i];
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

/* Returns the sort with the next span to start. There is at least one left. */
static uint32_t next_sort(const use_span *const *next, const use_span *const *end)
{
    if (next[TRANSFERS] == end[TRANSFERS])
        return COMPUTATIONS;
    return next[COMPUTATIONS] < end[COMPUTATIONS] &&
                   by_start(next[COMPUTATIONS], next[TRANSFERS]) < 0
               ? COMPUTATIONS
               : TRANSFERS;
}

/* Sweeps over transfers and computations in order of starts. `at` holds the transfers, then the
 * computations, each sorted by start. Of the spans so far, only the latest end of each sort
 * matters, because a new span only adds the time beyond it. Time while both sorts are active is
 * overlapped; it is counted when the later of the two starts or is extended. */
static void add_spans(const use_span *at, size_t n_transfers, size_t n_computations,
                      cs_time_use *use)
{
    const use_span *next[] = {at, at + n_transfers};
    const use_span *const end[] = {at + n_transfers, at + n_transfers + n_computations};
    cs_time ends[] = {0, 0}, purpose_ends[CS_N_PURPOSES] = {0};
    while (next[TRANSFERS] < end[TRANSFERS] || next[COMPUTATIONS] < end[COMPUTATIONS]) {
        const uint32_t sort = next_sort(next, end);
        const use_span span = *next[sort]++;
        if (sort == TRANSFERS && span.end > purpose_ends[span.purpose]) {
            cs_time *last = &purpose_ends[span.purpose];
            use->active_for[span.purpose] += span.end - (span.start > *last ? span.start : *last);
            *last = span.end;
        }
        const cs_time from = span.start > ends[sort] ? span.start : ends[sort];
        if (span.end <= from)
            continue;
        const cs_time both = ends[!sort] < span.end ? ends[!sort] : span.end;
        use->active += sort == COMPUTATIONS ? 0 : span.end - from;
        use->hidden += both > from ? both - from : 0;
        ends[sort] = span.end;
    }
}

/* Lists the tasks; first[i + 1] becomes the end of entry i. */
static bool list_tasks(const cs_graph *graph, const cs_trace *trace, uint32_t *devices,
                       tasks_of_devices *list)
{
    const size_t n = (size_t)graph->n_devices * SORTS;
    size_t *first = list->first;
    uint32_t sort = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        for (uint32_t i = devices_of(graph, trace, task, devices, &sort); i-- > 0;)
            first[(size_t)devices[i] * SORTS + sort + 2]++;
    for (size_t i = 0; i < n; i++)
        first[i + 2] += first[i + 1];
    list->tasks = malloc((first[n + 1] + 1) * sizeof(*list->tasks));
    for (uint32_t task = 0; list->tasks && task < graph->n_tasks; task++)
        for (uint32_t i = devices_of(graph, trace, task, devices, &sort); i-- > 0;)
            list->tasks[first[(size_t)devices[i] * SORTS + sort + 1]++] = task;
    return list->tasks;
}

/* Returns how long a device has computed until `time`. `at`: its computations, in order. */
static cs_time computed_until(const use_span *at, size_t n, cs_time time)
{
    size_t low = 0, high = n; /* low becomes the first that begins at `time` or later */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (at[middle].start < time)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const use_span *last = &at[low - 1];
    return last->before + (last->end < time ? last->end : time) - last->start;
}

/* Handles one device at a time, to save memory: there may be several spans per task. */
static bool add_devices(const cs_graph *graph, const cs_trace *trace, const tasks_of_devices *list,
                        cs_time_use *devices)
{
    size_t most = 0;
    for (uint32_t d = 0; d < graph->n_devices; d++) {
        const size_t *first = list->first + (size_t)d * SORTS;
        most = first[SORTS] - first[0] > most ? first[SORTS] - first[0] : most;
    }
    use_span *of = malloc((most + 1) * sizeof(*of));
    for (uint32_t d = 0; of && d < graph->n_devices; d++) {
        const size_t *first = list->first + (size_t)d * SORTS;
        const size_t n[SORTS] = {first[1] - first[0], first[2] - first[1], first[3] - first[2]};
        for (size_t i = 0; i < first[SORTS] - first[0]; i++) {
            const uint32_t task = list->tasks[first[0] + i];
            const cs_span span = trace->spans[task];
            of[i] = (use_span){span.start, span.end, 0, cs_graph_class(graph, task)->purpose};
        }
        sort_spans(of, n[TRANSFERS]);
        sort_spans(of + n[TRANSFERS], n[COMPUTATIONS]);
        add_spans(of, n[TRANSFERS], n[COMPUTATIONS], &devices[d]);
        use_span *computed = of + n[TRANSFERS];
        /* Add delays. They do not slow each other down, so each counts in full; otherwise the
         * reported rate could exceed the bandwidth of the links. */
        const use_span *delays = computed + n[COMPUTATIONS];
        cs_time_use *use = &devices[d];
        for (size_t i = 1; i < n[COMPUTATIONS]; i++)
            computed[i].before =
                computed[i - 1].before + computed[i - 1].end - computed[i - 1].start;
        for (size_t i = 0; i < n[DELAYS]; i++) {
            const use_span *delay = &delays[i];
            use->active += delay->end - delay->start;
            use->active_for[delay->purpose] += delay->end - delay->start;
            use->hidden += computed_until(computed, n[COMPUTATIONS], delay->end) -
                           computed_until(computed, n[COMPUTATIONS], delay->start);
        }
    }
    const bool done = of;
    free(of);
    return done;
}

bool cs_overlap_find(const cs_graph *graph, const cs_trace *trace, cs_time_use *devices)
{
    tasks_of_devices list = {calloc((size_t)graph->n_devices * SORTS + 2, sizeof(*list.first)),
                             NULL};
    uint32_t *scratch = malloc(((size_t)graph->n_devices + 2) * sizeof(*scratch));
    const bool done = list.first && scratch && list_tasks(graph, trace, scratch, &list) &&
                      add_devices(graph, trace, &list, devices);
    if (done) {
        /* Add the time of collectives that was left out of their delays because it is
         * overlapped. */
        for (uint32_t task = 0; task < graph->n_tasks; task++) {
            const cs_class *cls = cs_graph_class(graph, task);
            const cs_span span = trace->spans[task];
            if (cls->hidden == 0 || span.start < 0 || span.end < span.start)
                continue;
            for (uint32_t i = devices_of_ranks(graph, cls->ranks - 1, scratch); i-- > 0;) {
                cs_time_use *use = &devices[scratch[i]];
                use->active += cls->hidden;
                use->active_for[cls->purpose] += cls->hidden;
                use->hidden += cls->hidden;
            }
        }
    }
    free(scratch);
    free(list.first);
    free(list.tasks);
    return done;
}
