/* Link sharing: which transfers' bytes are on the links, how fast each goes, when each ends.
 *
 * The engine asks per class of transfer whether it needs the network at all (a transfer that
 * nobody can slow down is a plain delay), lets the others join when their latency is over, and
 * takes them off when the end comes that the network announced last.
 *
 * A transfer of a folded graph stands for several messages (fold-list.h), which are on their links
 * at the same time: with count and max_min it takes as many shares of each link as there are of
 * them on it.
 */
#ifndef CS_ENGINE_NETWORK_H
#define CS_ENGINE_NETWORK_H

#include "sim/core/trace/trace.h"
#include "topologies/noise.h"

typedef struct cs_network cs_network;

/* How a class of transfers spends its time. */
typedef struct cs_delivery {
    cs_time delay; /* the latencies; for a plain delay also the bytes */
    bool competes; /* after the delay it joins the network */
    bool at_start; /* it joins when it starts already: the network counts its delay */
    cs_time alone; /* if nothing else is on its links: from the announcement of its end to that
                    * end; 0: unknown */
} cs_delivery;

/* In place of a flow: the message, which has none, ends; it cannot start at that time, because its
 * end does not fit; or nothing happens to it, but the network has to be settled. */
enum {
    CS_NETWORK_ENDS = UINT32_MAX,
    CS_NETWORK_OVERFLOWS = UINT32_MAX - 1,
    CS_NETWORK_DUE = UINT32_MAX - 2
};

/* Announces: the bytes of `flow`, which stand for `task`, are through at `time`, or come to its
 * links then. *slot is CS_NONE the first time, and what the call left there whenever another time,
 * or a flow in place of none, takes the place of what was announced before. False when memory runs
 * out. */
typedef bool cs_network_announce(void *context, uint32_t flow, uint32_t task, cs_time time,
                                 uint32_t *slot);

/* What the network carries: the transfers of a graph, and messages of `n_pairs` others, all of
 * `pair_bytes`. The classes of these are n_classes, n_classes + 1, ... */
typedef struct cs_network_load {
    const cs_graph *graph;
    const cs_pair *pairs;
    uint32_t n_pairs;
    int64_t pair_bytes;
    bool record_rates; /* of the graph's tasks */
    bool every_event;  /* each message takes the way of those that share links with others */
} cs_network_load;

/* Finds the routes of all classes. `deliveries`, one per class, is filled. */
CS_MUST_CHECK cs_status cs_network_create(const cs_network_load *load, const cs_platform *platform,
                                          cs_network_announce *announce, void *context,
                                          cs_delivery *deliveries, cs_network **network,
                                          cs_error *error);
void cs_network_destroy(cs_network *network);

/* A task of a class that joins at its start, or another one after its delay. Each of these returns
 * CS_OK, CS_NO_MEMORY or CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_network_join(cs_network *network, uint32_t task, uint32_t cls,
                                        cs_time now);

/* The announced time of a flow has come: takes it off its links. Not `*ended`: it has come to its
 * links only, and another time will be announced. */
CS_MUST_CHECK cs_status cs_network_end(cs_network *network, uint32_t flow, cs_time now,
                                       bool *ended);

/* Once all that happens at `now` has happened: sets the rates. */
CS_MUST_CHECK cs_status cs_network_settle(cs_network *network, cs_time now);

/* Due when time moves on from `now`: announces when the messages that joined at their start since
 * the last call end, or come to their links, all of it later. */
CS_MUST_CHECK cs_status cs_network_leave(cs_network *network, cs_time now);

/* The rate of a flow since the last settling, bytes/s; count and max_min. */
double cs_network_rate(const cs_network *network, uint32_t flow);

/* Adds the bytes that so many tasks of the class carry to their links, in a folded graph with
 * those of all that they stand for. False when the bytes of one
 * do not fit; `links` is then of no use. */
CS_MUST_CHECK bool cs_network_count(cs_network *network, uint32_t cls, uint64_t times,
                                    cs_link_record *links);

/* The rates that were recorded up to a time become the caller's, *n of them. */
cs_rate_sample *cs_network_take_rates(cs_network *network, cs_time until, uint32_t *n);

#endif
