/* Speeds of messages that are in flight at the same time: one round of collectives.
 *
 * A message first spends the latencies of its route. Its bytes then move at a rate that depends on
 * all messages of the round and the platform's sharing:
 *   none, phi   as if alone (divided by phi)
 *   fifo        a link carries one message at a time, so the busiest link of the route decides
 *   count       bandwidth of the link over the number of messages on it
 *   max_min     fair shares over whole routes (progressive filling), computed per component:
 *               messages not connected through shared links are independent
 * In the alpha-beta model a message has the latency and bandwidth of its level, over phi. Phi is
 * the platform's value if its sharing is phi, and 1 if its sharing is none. Otherwise phi is the
 * number of collectives with a message on the most crowded link of the route: a collective does not
 * slow itself down, because each of its ranks has one port (Kahira et al., HPDC 2021, section 4.4,
 * where phi is given).
 *
 * Internal to sim/core/lower. */
#ifndef CS_LOWER_ROUND_H
#define CS_LOWER_ROUND_H

#include "topologies/platform.h"

/* How near two devices are:
 *   gpu_pair  in one node, over NVLink or a similar link only
 *   node      in one node
 *   rack      in one rack: the message stays below the top level of the network
 *   system    anything else
 * A platform without nodes counts as one node, a platform without racks as one rack. */
typedef enum cs_level {
    CS_LEVEL_GPU_PAIR,
    CS_LEVEL_NODE,
    CS_LEVEL_RACK,
    CS_LEVEL_SYSTEM,
    CS_N_LEVELS
} cs_level;

/* Time of a message: alpha + bytes / bandwidth, where beta = 1 / bandwidth. With bandwidth 0 it is
 * the time of the message alone on its route. */
typedef struct cs_alpha_beta {
    cs_time alpha;
    double bandwidth; /* bytes/s */
} cs_alpha_beta;

typedef struct cs_sent {
    uint32_t from, to; /* devices */
    uint32_t side;     /* number of the collective; messages are sorted by it */
    int64_t bytes;
} cs_sent;

typedef struct cs_speed {
    cs_time latency;
    double rate; /* bytes/s */
} cs_speed;

typedef struct cs_round cs_round;

/* `levels` (CS_N_LEVELS values): use the alpha-beta model; else NULL. `reached` (CS_N_LEVELS
 * values): factor for the rate of a message by its level, whose inverse scales its latency; or
 * NULL. Returns NULL if memory runs out. */
cs_round *cs_round_create(const cs_platform *platform, const cs_alpha_beta *levels,
                          const double *reached);
void cs_round_destroy(cs_round *round);

/* Fills in the speeds of messages of the wanted sides; others may keep their old values. Errors:
 * CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_round_solve(cs_round *round, const cs_sent *sent, uint32_t n,
                                       const bool *wanted, cs_speed *speeds);

#endif
