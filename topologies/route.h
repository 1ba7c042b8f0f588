/* Routes summed up: what a lone message meets on its way, whether several messages are alike, and
 * whether they share a link.
 */
#ifndef CS_TOPOLOGIES_ROUTE_H
#define CS_TOPOLOGIES_ROUTE_H

#include "topologies/platform.h"

/* A lone transfer takes latency + bytes / bandwidth. */
typedef struct cs_route {
    uint32_t n;            /* links; 0 on a platform without any */
    const uint32_t *links; /* in order; NULL when nobody asked for them */
    cs_time latency;       /* the sum of the links' */
    double bandwidth;      /* of the narrowest link, bytes/s; infinite without any */
} cs_route;

/* The route between two devices. `links` is room for platform->longest_route numbers, or NULL when
 * they are not needed. CS_OVERFLOW, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_route_find(const cs_platform *platform, uint32_t source, uint32_t target,
                                      uint32_t *links, cs_route *route, cs_error *error);

/* Whether transfers slow each other down where they share a link. */
static inline bool cs_links_are_contended(const cs_platform *platform)
{
    return platform->sharing != CS_SHARING_NONE && platform->sharing != CS_SHARING_PHI;
}

/* Messages that are on their way at once, added one after the other. */
typedef struct cs_messages {
    const cs_platform *platform;
    cs_time latency;  /* of the first message; 0 without any */
    double bandwidth; /* of the first message; infinite without any */
    bool alike;       /* all have the same latency and bandwidth */
    bool apart;       /* no link carries messages of two users */
    uint32_t n;
    uint32_t *route; /* room for the links of one message */
    uint64_t *users; /* per link: 1 + its user, 0 while it has none */
} cs_messages;

CS_MUST_CHECK cs_status cs_messages_init(cs_messages *messages, const cs_platform *platform,
                                         cs_error *error);
void cs_messages_finish(cs_messages *messages);

/* With the messages from each of the first `n` devices to the next one, and from the last one to
 * the first. */
CS_MUST_CHECK cs_status cs_messages_init_ring(cs_messages *messages, const cs_platform *platform,
                                              uint32_t n, cs_error *error);

/* Adds a message. Those of one user, whatever its number, may share links. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_messages_add(cs_messages *messages, uint32_t source, uint32_t target,
                                        uint64_t user, cs_error *error);

/* Whether each takes as long as if it were alone, and all take the same time. */
bool cs_messages_are_equal(const cs_messages *messages);

/* Rings that run at the same time: n devices, by number, form groups of `size`, whose members are
 * `stride` apart, and each sends to the next member of its group, the last to the first. size *
 * stride divides n. */
typedef struct cs_rings {
    uint32_t n, size, stride;
    bool alone;              /* only the first one runs */
    const uint32_t *devices; /* of the numbers 0 .. n - 1; NULL: the same */
    bool over_links;         /* groups of GPUs with links to each other have as many rings as these
                              * have room for (link-rings.h), where all groups are such */
} cs_rings;

/* A message that takes as long as the slowest of them: the most latency, and the least bandwidth,
 * where a link on which k messages meet gives each a k-th (of sharing `phi`: a phi-th; of `none`,
 * all). It is what contention divides by, found by counting (Kahira et al., HPDC 2021, section
 * 4.3). With rings over links, what all of them give a message together. A size of 1 has no
 * messages: latency 0, infinite bandwidth. */
typedef struct cs_ring_hop {
    cs_time latency;
    double bandwidth; /* bytes/s */
} cs_ring_hop;

CS_MUST_CHECK cs_status cs_rings_slowest(const cs_platform *platform, const cs_rings *rings,
                                         cs_ring_hop *hop, cs_error *error);

#endif
