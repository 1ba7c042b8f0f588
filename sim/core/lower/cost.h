/* Time of a collective when nothing else runs, or only other collectives of its family at the same
 * time, from its messages and their routes.
 *
 * A round takes as long as its slowest message: the latencies of its route, and its bytes at the
 * rate that it gets among all messages of the round (round.h), including messages of simultaneous
 * collectives. The times of rounds add up. This is exact if all messages of a round have the same
 * length and travel time (then messages that share the narrowest link of a slowest message end
 * together with it) and no rank runs ahead of the others. Otherwise it is an estimate; for trees it
 * is a few percent off in either direction. Bytes that do not divide among the ranks are rounded
 * up. A round between the same senders and receivers as an earlier round is not solved again: a
 * ring needs one solution, not 2 (p - 1).
 *
 * ParaDL's closed forms (Kahira et al., HPDC 2021, section 4.4), where alpha is the latency and
 * beta the time per byte of the slowest hop:
 *   message                 alpha + m beta
 *   ring, all-reduce        2 (p - 1) (alpha + (m / p) beta)
 *   ring, all-gather        (p - 1) (alpha + (m / p) beta), where m is the gathered total
 *   two trees, all-reduce   2 (log2 p + k) (alpha + (m / (2 k)) beta)
 * The paper writes the all-gather both with m and with m / p. It means m / p with m the total: each
 * of the p - 1 steps passes on one rank's part.
 *
 * The form of the two trees cannot hold. With many chunks it approaches m beta, but no all-reduce
 * takes less than 2 (p - 1) / p m beta, because each rank has to send and receive that much
 * (Patarasuk and Yuan, JPDC 69(2), 2009). The form counts that both trees work at once. It does not
 * count that an inner rank of one tree receives from two children there and, as a leaf of the other
 * tree, from its parent. With m / k in place of m / (2 k) it is an upper estimate; the table is in
 * topologies/README.md.
 */
#ifndef CS_LOWER_COST_H
#define CS_LOWER_COST_H

#include "sim/core/lower/algorithms.h"
#include "sim/core/lower/round.h"

/* One of several collectives that begin together. */
typedef struct cs_side {
    cs_collective collective;
    const cs_algorithm *algorithm;
    const uint32_t *devices; /* device of each rank */
} cs_side;

/* Cache of solved rounds, valid for the same devices of the same sides, whatever collectives they
 * run. */
typedef struct cs_solutions cs_solutions;

/* NULL when memory runs out. */
cs_solutions *cs_solutions_create(void);
void cs_solutions_destroy(cs_solutions *solutions);

typedef struct cs_sides {
    uint32_t n;
    const cs_side *of;
    const bool *wanted;      /* sides whose costs are requested */
    cs_solutions *solutions; /* or NULL */
    cs_round *round;         /* solver for the same platform and levels; NULL: create one */
} cs_sides;

/* Computes the costs of the wanted sides. Round k of every side is on the links at the same time,
 * as happens if all sides are alike. With `levels` (CS_N_LEVELS values), uses the alpha-beta model:
 * a rank sends one message at a time and receives one at a time, and each message takes alpha + phi
 * m beta of its level (round.h), whatever else its collective has on the links. Errors:
 * CS_NO_MEMORY, CS_OVERFLOW, CS_FAILED if sides differ and have too many messages. */
CS_MUST_CHECK cs_status cs_collective_costs(const cs_sides *sides, const cs_platform *platform,
                                            const cs_alpha_beta *levels, cs_time *costs,
                                            cs_error *error);

#endif
