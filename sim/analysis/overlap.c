#include "sim/analysis/overlap.h"

#include "sim/base/vector.h"

#include <stdlib.h>

/* What a device does: computing, or sending or receiving a transfer. */
typedef struct interval {
    cs_time start, end;
    uint32_t device;
    bool computes;
} interval;

/* Of the ranks of a collective that is one delay, those that are simulated. */
static uint32_t ranks_of(const cs_graph *graph, uint32_t group, interval of, interval *out)
{
    const cs_group *ranks = &graph->groups[group];
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < ranks->n; rank++) {
        of.device = graph->group_devices[ranks->first + rank];
        if (!cs_graph_has(graph, of.device))
            continue;
        out[n++] = of;
    }
    return n;
}

/* How many intervals a task has: at most two, or one for each device. */
static uint32_t intervals_of(const cs_graph *graph, const cs_trace *trace, uint32_t task,
                             interval *out)
{
    const cs_class *cls = cs_graph_class(graph, task);
    const cs_span span = trace->spans[task];
    const bool computes = cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE;
    if (span.start < 0 || span.end <= span.start)
        return 0;
    const interval own = {span.start, span.end, cls->device, computes};
    if (cls->ranks > 0)
        return ranks_of(graph, cls->ranks - 1, own, out);
    const bool two = !computes && cls->peer != cls->device && cls->peer < graph->n_devices;
    out[0] = own;
    out[1] = (interval){span.start, span.end, cls->peer, false};
    return two ? 2 : 1;
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

/* Lists the intervals device by device, in order of task: first[d + 1] becomes the end of device d.
 * */
static interval *gather_intervals(const cs_graph *graph, const cs_trace *trace, interval *scratch,
                                  size_t *first)
{
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        for (uint32_t i = intervals_of(graph, trace, task, scratch); i-- > 0;)
            first[scratch[i].device + 2]++;
    for (uint32_t d = 0; d < graph->n_devices; d++)
        first[d + 2] += first[d + 1];
    interval *all = malloc((first[graph->n_devices + 1] + 1) * sizeof(*all));
    for (uint32_t task = 0; all && task < graph->n_tasks; task++)
        for (uint32_t i = intervals_of(graph, trace, task, scratch); i-- > 0;)
            all[first[scratch[i].device + 1]++] = scratch[i];
    return all;
}

bool cs_overlap_find(const cs_graph *graph, const cs_trace *trace, cs_time_use *devices)
{
    interval *scratch = malloc(((size_t)graph->n_devices + 2) * sizeof(*scratch));
    size_t *first = calloc((size_t)graph->n_devices + 2, sizeof(*first));
    interval *all = scratch && first ? gather_intervals(graph, trace, scratch, first) : NULL;
    for (uint32_t d = 0; all && d < graph->n_devices; d++) {
        sort_intervals(all + first[d], first[d + 1] - first[d]);
        add_intervals(all + first[d], first[d + 1] - first[d], &devices[d]);
    }
    const bool done = all != NULL;
    free(scratch);
    free(first);
    free(all);
    return done;
}
