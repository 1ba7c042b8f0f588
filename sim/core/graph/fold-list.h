/* Which devices each simulated device stands for in a folded graph.
 *
 * Those devices do the same as the simulated device. If it sends to another simulated device, the
 * k-th device that it stands for sends to the k-th device that the other one stands for, in order
 * of their numbers. The check of graphs ensures that both stand for equally many.
 */
#ifndef CS_GRAPH_FOLD_LIST_H
#define CS_GRAPH_FOLD_LIST_H

#include "sim/core/graph/graph.h"

typedef struct cs_fold_list {
    uint32_t *first; /* n_devices + 1 entries */
    /* device d stands for entries first[d] to first[d + 1] - 1, itself included */
    uint32_t *devices;
} cs_fold_list;

/* Works for any graph: without folding each device stands for itself. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_fold_list_init(cs_fold_list *list, const cs_graph *graph,
                                          cs_error *error);

/* Allowed on a zeroed struct. */
void cs_fold_list_finish(cs_fold_list *list);

static inline uint32_t cs_fold_count(const cs_fold_list *list, uint32_t device)
{
    return list->first[device + 1] - list->first[device];
}

#endif
