/* The time of a collective when nothing else runs, or nothing but others of its kind beside it,
 * from its messages and their routes.
 *
 * A round takes as long as its slowest message: the latencies of the route, and the bytes at the
 * rate that the message gets among all messages of the round (round.h), those of the collectives
 * beside it included. The rounds add up. Exact where all messages of a round are equally long and
 * take equally long to arrive (then a slowest message meets on its narrowest link only such that
 * end with it), and no rank runs ahead of the others; else an estimate, of trees some percent off
 * to either side. Where bytes do not divide among the ranks, they are rounded up. A round whose
 * messages have the ends of one before is not solved again, so that a ring costs one solution, not
 * 2 (p - 1).
 *
 * The closed forms that ParaDL uses (Kahira et al., HPDC 2021, section 4.4), alpha being the
 * latency and beta the time per byte of the slowest hop:
 *   message                 alpha + m beta
 *   ring, all-reduce        2 (p - 1) (alpha + (m / p) beta)
 *   ring, all-gather        (p - 1) (alpha + (m / p) beta), m being all that is gathered
 *   two trees, all-reduce   2 (log2 p + k) (alpha + (m / (2 k)) beta)
 * The paper writes the all-gather with m and with m / p; m / p is meant, m being the total: each of
 * the p - 1 steps hands on one rank's part.
 *
 * The form of the two trees cannot hold. With many chunks it tends to m beta, and no all-reduce
 * takes less than 2 (p - 1) / p m beta, for each rank has to send and to receive so much
 * (Patarasuk and Yuan, JPDC 69(2), 2009). It counts that the trees work at once, but not that a
 * rank which is an inner one of the one tree receives from two children there and, as a leaf of
 * the other, from its parent. With m / k in place of m / (2 k) it is an estimate from above; the
 * table is in topologies/README.md.
 */
#ifndef CS_LOWER_COST_H
#define CS_LOWER_COST_H

#include "sim/core/lower/algorithms.h"
#include "sim/core/lower/round.h"

/* A collective, one of several that begin together. */
typedef struct cs_side {
    cs_collective collective;
    const cs_algorithm *algorithm;
    const uint32_t *devices; /* of the ranks */
} cs_side;

/* Remembers solutions of rounds: for the same sides' devices whatever they do. */
typedef struct cs_solutions cs_solutions;

/* NULL when memory runs out. */
cs_solutions *cs_solutions_create(void);
void cs_solutions_destroy(cs_solutions *solutions);

typedef struct cs_sides {
    uint32_t n;
    const cs_side *of;
    const bool *wanted;      /* those whose costs are asked for */
    cs_solutions *solutions; /* or NULL */
    cs_round *round;         /* to compute with, of the same platform and levels; or NULL */
} cs_sides;

/* The costs of those that are wanted. Round k of each is on the links together with round k of the
 * others, as it is where all are alike. Errors: CS_NO_MEMORY, CS_OVERFLOW, CS_FAILED where unlike
 * sides have too many messages. With `levels`, of length CS_N_LEVELS, by the alpha-beta model: a
 * rank sends one message at a time and receives one at a time, and each takes the alpha + phi m
 * beta of its level (round.h), whatever else its collective has on the links. */
CS_MUST_CHECK cs_status cs_collective_costs(const cs_sides *sides, const cs_platform *platform,
                                            const cs_alpha_beta *levels, cs_time *costs,
                                            cs_error *error);

#endif
