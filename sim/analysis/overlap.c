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
        if (out)
            out[n] = of;
        n++;
    }
    return n;
}

/* How many intervals a task has; into `out` where there is room. */
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
    if (out) {
        out[0] = own;
        if (two)
            out[1] = (interval){span.start, span.end, cls->peer, false};
    }
    return two ? 2 : 1;
}

static int by_device_and_start(const void *left, const void *right)
{
    const interval *a = left, *b = right;
    CS_COMPARE(a->device, b->device);
    CS_COMPARE(a->start, b->start);
    CS_COMPARE(a->end, b->end);
    return 0;
}

/* One after the other in order of their starts: the latest end of each sort so far is all that must
 * be known of those before, as what comes adds only what lies behind it. Time in which both sorts
 * have begun and neither has ended is hidden; it is counted when the later of the two begins or
 * goes on. */
static void add_intervals(const interval *at, size_t n, cs_time_use *devices)
{
    cs_time ends[2] = {0, 0}; /* transfers; computations */
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || at[i].device != at[i - 1].device)
            ends[0] = ends[1] = 0;
        cs_time_use *use = &devices[at[i].device];
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

bool cs_overlap_find(const cs_graph *graph, const cs_trace *trace, cs_time_use *devices)
{
    size_t n = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        n += intervals_of(graph, trace, task, NULL);
    interval *all = malloc((n + 1) * sizeof(*all));
    if (!all)
        return false;
    n = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        n += intervals_of(graph, trace, task, all + n);
    qsort(all, n, sizeof(*all), by_device_and_start);
    add_intervals(all, n, devices);
    free(all);
    return true;
}
