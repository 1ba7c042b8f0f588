/* PipeDream's partitioner as MadPipe compares itself with it (HAL hal-03025305, section 5): a
 * contiguous partition, a device per stage, that minimises the largest of all loads U of stages and
 * all C of boundaries between them. Which devices can hold their stages is a test of memory made
 * before there is a schedule; the paper leaves it open, so there are three readings. Of S stages on
 * P devices, stage i (from 1) is tested with
 *   depth     S - i + 1 active micro-batches: what 1F1B keeps when every stage is a group of its
 *             own and messages take no time;
 *   all       P active micro-batches, PipeDream's NUM_OPT_ACTIVE_MINIBATCHES at most;
 *   original  P - i copies of activations and weights, and nothing else: as the optimizer that the
 *             PipeDream project published (optimizer_graph_hierarchical.py) does when asked to look
 *             at memory. The last of P stages is not tested at all.
 * depth and all count the bytes of cs_chain_bytes. None of them foresees the groups that
 * communication opens, so 1F1B* may need a longer period than the partitioner believes in.
 *
 * Ties: the fewest stages; among those the shortest first stage, then the shortest second, ...
 */
#ifndef CS_SCHEDULES_PIPEDREAM_PARTITION_H
#define CS_SCHEDULES_PIPEDREAM_PARTITION_H

#include "schedules/plan/chain.h"
#include "schedules/plan/plan.h"

typedef enum cs_memory_rule {
    CS_MEMORY_DEPTH,
    CS_MEMORY_ALL,
    CS_MEMORY_ORIGINAL,
} cs_memory_rule;

/* Bytes that a rule counts for stage `i` (from 0) of `n_stages`, layers [first, end); INT64_MAX
 * when they do not fit. */
int64_t cs_pipedream_bytes(const cs_chain *chain, cs_memory_rule rule, uint32_t n_stages,
                           uint32_t i, uint32_t first, uint32_t end);

/* At most one stage per device. `promised` is the largest of the plan's U and C. By dynamic
 * programming over (stages, layers), O(P L^2); P times that with `original`, whose test depends on
 * how many stages there are before. CS_LIMIT when no partition passes the test: the message names
 * the device that is short of memory in the partition that comes closest; or when the search would
 * take minutes. */
CS_MUST_CHECK cs_status cs_pipedream_partition(const cs_chain *chain, cs_memory_rule rule,
                                               cs_plan *plan, cs_time *promised, cs_error *error);

#endif
