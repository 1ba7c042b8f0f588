#include "sim/core/analysis/steady.h"

#include <math.h>
#include <stdlib.h>

__extension__ typedef __int128 cs_device_time; /* ps, summed over all devices */

/* Start and end of a mini-batch's computations. */
typedef struct batch {
    cs_time start, end;
} batch;

static bool computes(const cs_graph *graph, const cs_trace *trace, uint32_t task)
{
    return cs_kind_group_of(cs_graph_class(graph, task)->kind) == CS_GROUP_COMPUTE &&
           trace->spans[task].start >= 0;
}

/* Fills `batches`, and returns the end of the first mini-batch's work. */
static cs_time find_batches(const cs_graph *graph, const cs_trace *trace, batch *batches)
{
    cs_time first_work = 0;
    for (uint32_t b = 0; b < graph->n_batches; b++)
        batches[b] = (batch){.start = CS_TIME_MAX};
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (!computes(graph, trace, task))
            continue;
        const cs_span span = trace->spans[task];
        const uint32_t b = cs_graph_mini_batch(graph, task);
        const bool work = cs_graph_class(graph, task)->kind != CS_UPDATE;
        batches[b].end = span.end > batches[b].end ? span.end : batches[b].end;
        if (work && span.start < batches[b].start)
            batches[b].start = span.start;
        if (work && b == 0 && span.end > first_work)
            first_work = span.end;
    }
    for (uint32_t b = 1; b < graph->n_batches; b++)
        if (batches[b].end < batches[b - 1].end)
            batches[b].end = batches[b - 1].end;
    return first_work;
}

/* Sums the computing time of all devices between two times. `times`: number of devices that each
 * one represents. */
static cs_device_time computed(const cs_graph *graph, const cs_trace *trace, const uint32_t *times,
                               cs_time from, cs_time to)
{
    cs_device_time sum = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (!computes(graph, trace, task))
            continue;
        const cs_span span = trace->spans[task];
        const cs_time start = span.start > from ? span.start : from;
        const cs_time end = span.end < to ? span.end : to;
        const cs_device_time n = times[cs_graph_class(graph, task)->device];
        sum += end > start ? n * (end - start) : 0;
    }
    return sum;
}

cs_status cs_steady_find(const cs_graph *graph, const cs_trace *trace, cs_steady_part *part,
                         cs_error *error)
{
    const uint32_t n = graph->n_batches;
    cs_steady_part found = {.in_flight = 1, .bubble = (double)NAN};
    batch *batches = malloc(((size_t)n + 1) * sizeof(*batches));
    uint32_t *times = malloc(((size_t)graph->n_devices + 1) * sizeof(*times));
    if (!batches || !times) {
        free(batches);
        free(times);
        return cs_error_no_memory(error);
    }
    cs_graph_count_devices(graph, times);
    const cs_time first_work = n > 0 ? find_batches(graph, trace, batches) : 0;
    while (found.in_flight < n && batches[found.in_flight].start < first_work)
        found.in_flight++;
    const uint32_t first = found.in_flight - 1;
    uint32_t last = first;
    while (!trace->stopped && last + 1 < n && batches[last + 1].end <= batches[n - 1].start)
        last++;
    found.n = last - first;
    if (found.n >= 2 && batches[last].end > batches[first].end) {
        const cs_time from = batches[first].end, to = batches[last].end;
        const cs_device_time all = (cs_device_time)(to - from) * graph->n_devices;
        found.bubble = (double)(all - computed(graph, trace, times, from, to)) / (double)all;
    }
    free(batches);
    free(times);
    *part = found;
    return CS_OK;
}
