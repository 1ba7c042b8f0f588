/* Who stands for whom in a folded graph.
 *
 * What a device does, the devices that it stands for do as well. Where it sends to another one,
 * the k-th device that it stands for sends to the k-th that the other one stands for, both in
 * order of their numbers; the check of graphs sees to it that these are as many.
 */
#ifndef CS_GRAPH_FOLD_LIST_H
#define CS_GRAPH_FOLD_LIST_H

#include "sim/core/graph/graph.h"

typedef struct cs_fold_list {
    uint32_t *first;   /* n_devices + 1 */
    uint32_t *devices; /* those that device d stands for, itself included: from first[d] on, up to
                        * first[d + 1] */
} cs_fold_list;

/* Of any graph: of one that is not folded each device stands for itself. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_fold_list_init(cs_fold_list *list, const cs_graph *graph,
                                          cs_error *error);

/* Zeroed lists can be finished. */
void cs_fold_list_finish(cs_fold_list *list);

static inline uint32_t cs_fold_count(const cs_fold_list *list, uint32_t device)
{
    return list->first[device + 1] - list->first[device];
}

#endif
