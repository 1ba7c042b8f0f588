#include "sim/core/analysis/offloaded.h"

#include "sim/base/vector.h"

#include <stdlib.h>

/* Allocation of host memory; `bytes` is negative if memory is freed. */
typedef struct change {
    uint32_t device;
    cs_time time;
    int64_t bytes;
} change;

/* Frees come before allocations of the same instant. */
static int compare_changes(const void *left, const void *right)
{
    const change *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static uint32_t list_changes(const cs_graph *graph, const cs_trace *trace, change *all)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(graph, t);
        if (!(cls->kind == CS_TRANSFER && cls->purpose == CS_PURPOSE_HOST))
            continue;
        if (all && (cls->n_effects > 0 && graph->effects[cls->first_effect].bytes < 0))
            all[n] = (change){cls->device, trace->spans[t].start, cls->bytes};
        else if (all)
            all[n] = (change){cls->device, trace->spans[t].end, -cls->bytes};
        n++;
    }
    return n;
}

cs_status cs_offloaded_peaks(const cs_graph *graph, const cs_trace *trace, int64_t **peaks,
                             cs_error *error)
{
    const uint32_t n = list_changes(graph, trace, NULL);
    *peaks = NULL;
    if (n == 0)
        return CS_OK;
    change *all = malloc(n * sizeof(*all));
    int64_t *made = calloc(graph->n_devices, sizeof(*made));
    if (!all || !made) {
        free(all);
        free(made);
        return cs_error_no_memory(error);
    }
    (void)list_changes(graph, trace, all);
    cs_vector_sort(all, n, sizeof(*all), compare_changes);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t *peak = &made[all[i].device];
        bytes = (i > 0 && all[i - 1].device != all[i].device ? 0 : bytes) + all[i].bytes;
        *peak = bytes > *peak ? bytes : *peak;
    }
    for (uint32_t d = 0; d < graph->n_devices; d++)
        made[d] = made[cs_graph_stand_in(graph, d)];
    free(all);
    *peaks = made;
    return CS_OK;
}
