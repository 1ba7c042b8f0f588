/* The time of a collective when nothing else runs, from its messages and their routes.
 *
 * A round takes as long as its slowest message: the latencies of the route, and the bytes at the
 * rate that the message gets among all messages of the round, under the platform's sharing:
 *   none, phi   as if alone (divided by phi)
 *   fifo        a link carries one message after the other: what its busiest link has to carry
 *   count       bandwidth over the messages on the link
 *   max_min     fair shares over whole routes
 * The rounds add up. Exact where all messages of a round are equally long and take equally long to
 * arrive (then a slowest message meets on its narrowest link only such that end with it), and no
 * rank runs ahead of the others; else an estimate, of trees some percent off to either side. Where
 * bytes do not divide among the ranks, they are rounded up. A round like the one before it is not
 * solved again, so that a ring costs one solution, not 2 (p - 1).
 *
 * The closed forms that ParaDL uses (Kahira et al., HPDC 2021, section 4.4), alpha being the latency
 * and beta the time per byte of the slowest hop:
 *   message                 alpha + m beta
 *   ring, all-reduce        2 (p - 1) (alpha + (m / p) beta)
 *   ring, all-gather        (p - 1) (alpha + (m / p) beta), m being all that is gathered
 *   two trees, all-reduce   2 (log2 p + k) (alpha + (m / (2 k)) beta)
 * The paper writes the all-gather with m and with m / p; m / p is meant, m being the total: each of
 * the p - 1 steps hands on one rank's part.
 *
 * The form of the two trees cannot hold. With many chunks it tends to m beta, and no all-reduce takes
 * less than 2 (p - 1) / p m beta, for each rank has to send and to receive so much (Patarasuk and
 * Yuan, JPDC 69(2), 2009). It counts that the trees work at once, but not that a rank which is an
 * inner one of the one tree receives from two children there and, as a leaf of the other, from its
 * parent. With m / k in place of m / (2 k) it is an estimate from above; the table is in
 * topologies/README.md.
 */
#ifndef CS_LOWER_COST_H
#define CS_LOWER_COST_H

#include "sim/lower/algorithms.h"
#include "topologies/platform.h"

/* How near two devices are:
 *   gpu_pair  in one node, over NVLinks and the like alone
 *   node      in one node
 *   rack      in one rack: the message stays below the top level of the network
 *   system    any others
 * A platform that does not know its nodes is one node; one that does not know its racks is one. */
typedef enum cs_level {
    CS_LEVEL_GPU_PAIR,
    CS_LEVEL_NODE,
    CS_LEVEL_RACK,
    CS_LEVEL_SYSTEM,
    CS_N_LEVELS
} cs_level;

/* What a message takes: alpha + bytes / bandwidth, beta being 1 / bandwidth. With a bandwidth of 0,
 * what it takes alone on its route. */
typedef struct cs_alpha_beta {
    cs_time alpha;
    double bandwidth; /* bytes/s */
} cs_alpha_beta;

/* Errors: CS_NO_MEMORY, CS_OVERFLOW. `devices` are those of the ranks. With `levels`, of length
 * CS_N_LEVELS, by the alpha-beta model: a rank sends one message at a time and receives one at a
 * time, and each takes the alpha + m beta of its level (under sharing phi alpha + phi m beta),
 * whatever else is on the links. */
CS_MUST_CHECK cs_status cs_collective_cost(const cs_collective *collective,
                                           const cs_algorithm *algorithm,
                                           const cs_platform *platform, const uint32_t *devices,
                                           const cs_alpha_beta *levels, cs_time *cost,
                                           cs_error *error);

/* The closed forms, in seconds. */
double cs_form_message(double alpha, double beta, double bytes);
double cs_form_ring_all_reduce(double alpha, double beta, uint32_t ranks, double bytes);
double cs_form_ring_all_gather(double alpha, double beta, uint32_t ranks, double gathered);
double cs_form_tree_all_reduce(double alpha, double beta, uint32_t ranks, uint32_t chunks,
                               double bytes);

#endif
