/* Summaries of routes: latency and bandwidth of a single message, whether several messages are
 * alike, and whether they share a link.
 */
#ifndef CS_TOPOLOGIES_ROUTE_H
#define CS_TOPOLOGIES_ROUTE_H

#include "topologies/platform.h"

/* A single transfer takes latency + bytes / bandwidth. */
typedef struct cs_route {
    uint32_t n;            /* links; 0: a platform without links */
    const uint32_t *links; /* in order; NULL: not requested */
    cs_time latency;       /* total of the links */
    double bandwidth;      /* bandwidth of the narrowest link, bytes/s; infinite without links */
} cs_route;

/* Finds the route between two devices. `links` has room for platform->longest_route numbers; NULL:
 * not needed. CS_OVERFLOW, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_route_find(const cs_platform *platform, uint32_t source, uint32_t target,
                                      uint32_t *links, cs_route *route, cs_error *error);

/* Whether transfers that share a link slow each other down. */
static inline bool cs_links_are_contended(const cs_platform *platform)
{
    return platform->sharing != CS_SHARING_NONE && platform->sharing != CS_SHARING_PHI;
}

/* Messages in flight at the same time, added one by one. */
typedef struct cs_messages {
    const cs_platform *platform;
    cs_time latency;  /* latency of the first message; 0: no messages */
    double bandwidth; /* bandwidth of the first message; infinite: no messages */
    bool alike;       /* all have the same latency and bandwidth */
    bool apart;       /* no link carries messages of two users */
    uint32_t n;
    uint32_t *route; /* room for the links of one message */
    uint64_t *users; /* per link: 1 + its user; 0: none */
} cs_messages;

CS_MUST_CHECK cs_status cs_messages_init(cs_messages *messages, const cs_platform *platform,
                                         cs_error *error);
void cs_messages_finish(cs_messages *messages);

/* Initialises and adds the messages from each of the first `n` devices to the next, and from the
 * last to the first. */
CS_MUST_CHECK cs_status cs_messages_init_ring(cs_messages *messages, const cs_platform *platform,
                                              uint32_t n, cs_error *error);

/* Adds a message. Messages of one user (an arbitrary number) may share links. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_messages_add(cs_messages *messages, uint32_t source, uint32_t target,
                                        uint64_t user, cs_error *error);

/* Whether each message takes as long as if it were alone, and all take the same time. */
bool cs_messages_are_equal(const cs_messages *messages);

/* Rings that run at the same time: n devices, by number, form groups of `size` members that are
 * `stride` apart; each member sends to the next of its group, the last to the first. size * stride
 * divides n. */
typedef struct cs_rings {
    uint32_t n, size, stride;
    bool alone;              /* only the first ring runs */
    const uint32_t *devices; /* devices by number, 0 .. n - 1; NULL: identical */
    /* groups of directly linked GPUs use all rings that their links have room for (link-rings.h),
     * if all groups can */
    bool over_links;
} cs_rings;

/* Time of the slowest message: the highest latency and the lowest bandwidth, where k messages that
 * share a link get 1/k of it each (with sharing `phi`: 1/phi; with `none`: all). This is the
 * division by contention, found by counting (Kahira et al., HPDC 2021, section 4.3). With rings
 * over links, the bandwidth is the total of all rings. Rings of size 1 have no messages: latency 0,
 * infinite bandwidth. */
typedef struct cs_ring_hop {
    cs_time latency;
    double bandwidth; /* bytes/s */
} cs_ring_hop;

CS_MUST_CHECK cs_status cs_rings_slowest(const cs_platform *platform, const cs_rings *rings,
                                         cs_ring_hop *hop, cs_error *error);

#endif
