/* Link sharing: which transfers are on the links, their rates, and their ends.
 *
 * Per class of transfers the engine asks whether the network is needed at all: a transfer that no
 * other can slow down is a plain delay. Other transfers join after their latency, or at their
 * start. The network announces when a message ends, and may announce another time later.
 *
 * A transfer of a folded graph represents several messages (fold-list.h) that are on their links at
 * the same time. With count and max_min it takes as many shares of a link as it has messages there.
 */
#ifndef CS_ENGINE_NETWORK_H
#define CS_ENGINE_NETWORK_H

#include "sim/core/trace/trace.h"
#include "topologies/noise.h"

typedef struct cs_network cs_network;

/* How a class of transfers spends its time. */
typedef struct cs_delivery {
    cs_time delay; /* latencies; for a plain delay also the time of the bytes */
    bool competes; /* joins the network after the delay */
    bool at_start; /* joins at its start: the network adds the delay */
    cs_time alone; /* if nothing else is on its links: from the announcement of its end to that
                    * end; 0: unknown */
} cs_delivery;

/* Instead of a flow, for a message without one: it ends; it cannot start, because its end does not
 * fit; or the network has to be settled. */
enum {
    CS_NETWORK_ENDS = UINT32_MAX,
    CS_NETWORK_OVERFLOWS = UINT32_MAX - 1,
    CS_NETWORK_DUE = UINT32_MAX - 2
};

/* Announces that the bytes of `flow`, of message `task`, are through at `time`, or reach its links
 * then. *slot is CS_NONE for a new announcement, and the call sets it; a set *slot replaces that
 * announcement. False when memory runs out. */
typedef bool cs_network_announce(void *context, uint32_t flow, uint32_t task, cs_time time,
                                 uint32_t *slot);

/* The transfers of a graph, and messages of other jobs between n_pairs pairs of devices, each of
 * pair_bytes. The classes of the latter are n_classes, n_classes + 1, ... */
typedef struct cs_network_load {
    const cs_graph *graph;
    const cs_pair *pairs;
    uint32_t n_pairs;
    int64_t pair_bytes;
    bool record_rates; /* per task of the graph */
    bool every_event;  /* without shortcuts */
} cs_network_load;

/* Finds the routes of all classes. `deliveries`, one per class, is filled. */
CS_MUST_CHECK cs_status cs_network_create(const cs_network_load *load, const cs_platform *platform,
                                          cs_network_announce *announce, void *context,
                                          cs_delivery *deliveries, cs_network **network,
                                          cs_error *error);
void cs_network_destroy(cs_network *network);

/* A message joins: at its start if its class does so, else after its delay. This function and the
 * next ones return CS_OK, CS_NO_MEMORY or CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_network_join(cs_network *network, uint32_t task, uint32_t cls,
                                        cs_time now);

/* The announced time of a flow has come. *ended: it leaves its links. Else it reaches them, and its
 * end will be announced. */
CS_MUST_CHECK cs_status cs_network_end(cs_network *network, uint32_t flow, cs_time now,
                                       bool *ended);

/* Once all that happens at `now` has happened: sets the rates. */
CS_MUST_CHECK cs_status cs_network_settle(cs_network *network, cs_time now);

/* To be called before time moves on from `now`: announces the later times when messages that joined
 * at their start end, or reach their links. */
CS_MUST_CHECK cs_status cs_network_leave(cs_network *network, cs_time now);

/* The rate of a flow since the last settling, bytes/s; count and max_min. */
double cs_network_rate(const cs_network *network, uint32_t flow);

/* Adds the bytes of `times` tasks of a class to the records of their links, in a folded graph also
 * those of the messages that they represent. False when the bytes of a link do not fit; `links` is
 * then invalid. */
CS_MUST_CHECK bool cs_network_count(cs_network *network, uint32_t cls, uint64_t times,
                                    cs_link_record *links);

/* The rates that were recorded up to a time become the caller's, *n of them. */
cs_rate_sample *cs_network_take_rates(cs_network *network, cs_time until, uint32_t *n);

#endif
