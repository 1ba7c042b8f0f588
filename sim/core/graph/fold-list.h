/* The devices that each simulated device of a folded graph represents.
 *
 * These devices behave like the simulated device. If device A sends to device B and both are
 * simulated, the k-th device represented by A sends to the k-th device represented by B, in order
 * of device numbers. The check of graphs ensures that A and B represent equally many devices. */
#ifndef CS_GRAPH_FOLD_LIST_H
#define CS_GRAPH_FOLD_LIST_H

#include "sim/core/graph/graph.h"

typedef struct cs_fold_list {
    uint32_t *first; /* index of each device's first entry; n_devices + 1 elements */
    /* represented devices: device d represents entries first[d] to first[d + 1] - 1, itself
     * included */
    uint32_t *devices;
} cs_fold_list;

/* Lists the devices. Works for any graph: without folding, each device represents only itself.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_fold_list_init(cs_fold_list *list, const cs_graph *graph,
                                          cs_error *error);

/* Frees the lists; allowed on a zeroed struct. */
void cs_fold_list_finish(cs_fold_list *list);

static inline uint32_t cs_fold_count(const cs_fold_list *list, uint32_t device)
{
    return list->first[device + 1] - list->first[device];
}

#endif
