/* PipeDream's own partitioner: stages that several devices hold, each a replica.
 *
 * The dynamic program that the PipeDream project published (SOSP 2019, section 3.1;
 * optimizer_graph_hierarchical.py), over the prefixes of a network (prefixes.h). Devices come in
 * levels: machines[0].n devices are a machine, machines[1].n of these a group, ... With bandwidth B
 * at a level, T and W the time and the weights between two cuts and O what crosses the one cut,
 *   stage of q replicas       (T + 4 (q - 1) W / (B q)) / q
 *   boundary before it        2 O / (B q)
 *   boundary behind it        2 O / (B q), unless it is the first stage or the last one
 * and the largest of all is made least; T of a higher level is the best that all devices of a
 * machine below reach. All devices are used.
 *
 * As published, including what is odd in it: an all-reduce is counted with 4 (q - 1) / q weights
 * rather than 2, then divided by q as if it was done once per q mini-batches; at a higher level it
 * is divided by machines[level - 1].n too where a stage is the first one, not elsewhere; latencies
 * are not counted. The memory test is that of cs_memory_rule `original` (pipedream-partition.h):
 * ceil((P - u) / q) copies of activations and weights, u being the devices of this stage and those
 * before it.
 *
 * Replicas take micro-batches in turn, so that q of them have T for each q. Where they share every
 * micro-batch instead, which the published optimizer does not know, T / q is replaced by what a
 * q-th of the samples takes; a q that does not divide them is not used.
 *
 * Ties: no cut rather than one; then the last cut as early as possible, with the fewest replicas
 * behind it; then the same for what is before it.
 */
#ifndef CS_SCHEDULES_REPLICATION_H
#define CS_SCHEDULES_REPLICATION_H

#include "schedules/plan/plan.h"
#include "sim/model/prefixes.h"

typedef struct cs_replication_level {
    uint32_t n;       /* > 0 */
    double bandwidth; /* bytes/s, > 0 */
} cs_replication_level;

typedef struct cs_replication {
    const cs_prefixes *prefixes;
    const cs_replication_level *levels; /* from the innermost one */
    uint32_t n_levels;                  /* > 0 */
    int64_t memory;                     /* INT64_MAX: not looked at */
    const cs_time *const *shared;       /* of a chain on one level: sum_shared (chain.h); or NULL */
} cs_replication;

/* A stage's "layers" [a, b) are what stands between prefix a - 1 and prefix b - 1: in a chain the
 * layers of that number. The replicas of a stage are on neighbouring devices, machine by machine.
 * `period` is that of a mini-batch, to the nearest picosecond. O(prefixes^2 devices^2) with one
 * level, times `prefixes` with more; CS_LIMIT when that takes minutes. */
CS_MUST_CHECK cs_status cs_replication_plan(const cs_replication *replication, cs_plan *plan,
                                            cs_time *period, cs_error *error);

#endif
