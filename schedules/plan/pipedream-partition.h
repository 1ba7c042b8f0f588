/* PipeDream's partitioner as MadPipe compares itself with it (HAL hal-03025305, section 5): a
 * contiguous partition with one device per stage, which minimises the maximum of all stages' loads
 * U and all boundaries' C. A memory test decides which devices can hold which stages before there
 * is a schedule. The paper leaves this test open, so there are three readings. With S stages on P
 * devices, stage i (from 1) is tested with
 *   depth     S - i + 1 active micro-batches: as 1F1B keeps if every stage is a group of its
 *             own and messages take no time;
 *   all       P active micro-batches, the maximum of PipeDream's NUM_OPT_ACTIVE_MINIBATCHES;
 *   original  P - i copies of activations and weights, and nothing else, like the optimizer that
 *             the PipeDream project published (optimizer_graph_hierarchical.py) if it is asked to
 *             consider memory. The last of P stages is not tested at all.
 * depth and all count the bytes of cs_chain_bytes. No reading foresees the groups that
 * communication opens, so 1F1B* may need a longer period than the partitioner expects.
 *
 * Ties: the fewest stages; among those the shortest first stage, then the shortest second, ... */
#ifndef CS_SCHEDULES_PIPEDREAM_PARTITION_H
#define CS_SCHEDULES_PIPEDREAM_PARTITION_H

#include "schedules/plan/chain.h"
#include "schedules/plan/plan.h"

typedef enum cs_memory_rule {
    CS_MEMORY_DEPTH,
    CS_MEMORY_ALL,
    CS_MEMORY_ORIGINAL,
} cs_memory_rule;

/* Returns the bytes that a rule counts for stage `i` (from 0) of `n_stages`, with layers [first,
 * end); INT64_MAX if they overflow. */
int64_t cs_pipedream_bytes(const cs_chain *chain, cs_memory_rule rule, uint32_t n_stages,
                           uint32_t i, uint32_t first, uint32_t end);

/* Finds the partition, with at most one stage per device. `promised` is the largest U or C of the
 * plan. Dynamic programming over (stages, layers): O(P L^2), or P times that for `original`, whose
 * test depends on the number of earlier stages. CS_LIMIT if the search would take minutes, or if no
 * partition passes the test: the message names the device that lacks memory in the partition that
 * comes closest. */
CS_MUST_CHECK cs_status cs_pipedream_partition(const cs_chain *chain, cs_memory_rule rule,
                                               cs_plan *plan, cs_time *promised, cs_error *error);

#endif
