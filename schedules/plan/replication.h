/* PipeDream's own partitioner: stages that several devices hold as replicas.
 *
 * The dynamic program that the PipeDream project published (SOSP 2019, section 3.1;
 * optimizer_graph_hierarchical.py), over the prefixes of a network (prefixes.h). Devices are
 * grouped in levels: levels[0].n devices are a machine, levels[1].n machines are a group, ... With
 * bandwidth B of a level, T and W the time and the weights between two cuts, and O the bytes that
 * cross a cut,
 *   stage of q replicas       (T + 4 (q - 1) W / (B q)) / q
 *   boundary before it        2 O / (B q)
 *   boundary after it         2 O / (B q), unless it is the first stage or the last one
 * and the maximum of all of them is minimised. At a higher level, T is the best time of all devices
 * of one machine of the level below. All devices are used.
 *
 * The program follows the publication, including its peculiarities: an all-reduce counts 4 (q - 1)
 * / q weights instead of 2, then is divided by q as if it were done once per q mini-batches; at a
 * higher level it is also divided by levels[level - 1].n if the stage is the first one, but not
 * otherwise; latencies are not counted. The memory test is cs_memory_rule `original`
 * (pipedream-partition.h): ceil((P - u) / q) copies of activations and weights, where u is the
 * number of devices of this stage and the earlier ones.
 *
 * Replicas take micro-batches in turn, so q of them have time T for q micro-batches. If replicas
 * share every micro-batch instead, which the published optimizer does not support, T / q is
 * replaced by the time of a q-th of the samples; a q that does not divide their number is not used.
 *
 * Ties: no cut before a cut; then the earliest last cut, with the fewest replicas after it; then
 * the same for the stages before it. */
#ifndef CS_SCHEDULES_REPLICATION_H
#define CS_SCHEDULES_REPLICATION_H

#include "schedules/plan/plan.h"
#include "sim/model/prefixes.h"

typedef struct cs_replication_level {
    uint32_t n;       /* number of devices or machines, > 0 */
    double bandwidth; /* bandwidth, bytes/s, > 0 */
} cs_replication_level;

typedef struct cs_replication {
    const cs_prefixes *prefixes;
    const cs_replication_level *levels; /* levels, from the innermost one */
    uint32_t n_levels;                  /* number of levels, > 0 */
    int64_t memory;                     /* bytes per device; INT64_MAX: not checked */
    /* sum_shared of a chain on one level (chain.h); may be NULL */
    const cs_time *const *shared;
} cs_replication;

/* Makes the plan. The "layers" [a, b) of a stage are the network between prefix a - 1 and prefix b
 * - 1: in a chain, the layers with these numbers. The replicas of a stage are on neighbouring
 * devices, machine by machine. `period` is the period of a mini-batch, rounded to picoseconds.
 * O(prefixes^2 devices^2) with one level, times `prefixes` with more levels; CS_LIMIT if this would
 * take minutes. */
CS_MUST_CHECK cs_status cs_replication_plan(const cs_replication *replication, cs_plan *plan,
                                            cs_time *period, cs_error *error);

#endif
