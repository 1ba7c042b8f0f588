#include "sim/core/graph/fold-list.h"

#include <stdlib.h>

cs_status cs_fold_list_init(cs_fold_list *list, const cs_graph *graph, cs_error *error)
{
    const size_t n = graph->n_devices;
    *list = (cs_fold_list){.first = calloc(n + 2, sizeof(*list->first)),
                           .devices = malloc((n + 1) * sizeof(*list->devices))};
    if (!list->first || !list->devices) {
        cs_fold_list_finish(list);
        return cs_error_no_memory(error);
    }
    uint32_t *end = list->first + 1; /* becomes the first entry of the next device */
    for (uint32_t d = 0; d < n; d++)
        end[cs_graph_stand_in(graph, d) + 1]++;
    for (uint32_t d = 0; d < n; d++)
        end[d + 1] += end[d];
    for (uint32_t d = 0; d < n; d++)
        list->devices[end[cs_graph_stand_in(graph, d)]++] = d;
    return CS_OK;
}

void cs_fold_list_finish(cs_fold_list *list)
{
    free(list->first);
    free(list->devices);
    *list = (cs_fold_list){0};
}
