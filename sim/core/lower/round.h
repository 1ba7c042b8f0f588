/* What messages get that are on their way at the same time: one round of collectives.
 *
 * Each message spends the latencies of its route and then its bytes go at the rate that it gets
 * among all messages of the round, under the platform's sharing:
 *   none, phi   as if alone (divided by phi)
 *   fifo        a link carries one message after the other: what its busiest link has to carry
 *   count       bandwidth over the messages on the link
 *   max_min     fair shares over whole routes (progressive filling), component by component: messages
 *               that are connected by no link have nothing to do with each other
 * or, by the alpha-beta model, with the latency and the bandwidth of its level, over phi. Phi is
 * that of the platform where its sharing is phi; 1 where it is none; and else the number of
 * collectives that have a message on a link of its route, of the link where they are most: in the
 * alpha-beta model a collective does not get into its own way, for each of its ranks has one port
 * (Kahira et al., HPDC
 * 2021, section 4.4, where phi is given).
 *
 * Internal to sim/core/lower. */
#ifndef CS_LOWER_ROUND_H
#define CS_LOWER_ROUND_H

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

typedef struct cs_sent {
    uint32_t from, to; /* devices */
    uint32_t side;     /* number of the collective; they come in order of it */
    int64_t bytes;
} cs_sent;

typedef struct cs_speed {
    cs_time latency;
    double rate; /* bytes/s */
} cs_speed;

typedef struct cs_round cs_round;

/* `levels`, of length CS_N_LEVELS, for the alpha-beta model; else NULL. `reached`, of the same
 * length: by what a message of a level has its rate multiplied and its latency divided; or NULL.
 * NULL when memory runs out. */
cs_round *cs_round_create(const cs_platform *platform, const cs_alpha_beta *levels,
                          const double *reached);
void cs_round_destroy(cs_round *round);

/* Fills the speeds of the messages of those sides that are `wanted`; those of others may be left as
 * they are. CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_round_solve(cs_round *round, const cs_sent *sent, uint32_t n,
                                       const bool *wanted, cs_speed *speeds);

#endif
