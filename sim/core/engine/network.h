/* Link sharing: which transfers use the links, their rates, and their ends.
 *
 * For each class of transfers the engine asks whether it needs the network at all: a transfer that
 * no other transfer can slow down is a plain delay. Other transfers join the network after their
 * latency, or at their start. The network announces when a message will end, and may later change
 * that time.
 *
 * A transfer of a folded graph represents several messages (fold-list.h) that use their links at
 * the same time. With count and max_min it takes one share of a link for each of its messages
 * there. */
#ifndef CS_ENGINE_NETWORK_H
#define CS_ENGINE_NETWORK_H

#include "sim/core/trace/trace.h"
#include "topologies/noise.h"

typedef struct cs_network cs_network;

/* How a class of transfers spends its time. */
typedef struct cs_delivery {
    cs_time delay; /* latencies; for a plain delay, plus the time of the bytes */
    bool competes; /* whether it joins the network after the delay */
    bool at_start; /* whether it joins at its start; then the network adds the delay */
    /* if it is alone on its links: time from the announcement of its end to this end; 0: unknown */
    cs_time alone;
} cs_delivery;

/* Results in place of a flow, for a message without a flow: the message ends; it cannot start,
 * because its end does not fit 64 bits; or the network has to be settled. */
enum {
    CS_NETWORK_ENDS = UINT32_MAX,
    CS_NETWORK_OVERFLOWS = UINT32_MAX - 1,
    CS_NETWORK_DUE = UINT32_MAX - 2
};

/* Announces that the bytes of `flow`, of message `task`, have arrived at `time`, or reach its links
 * then. If *slot is CS_NONE, the call makes a new announcement and sets *slot; else it replaces the
 * announcement in *slot. Returns false if memory runs out. */
typedef bool cs_network_announce(void *context, uint32_t flow, uint32_t task, cs_time time,
                                 uint32_t *slot);

/* The transfers of a graph, and messages of other jobs between n_pairs pairs of devices, each of
 * pair_bytes. The classes of these messages are n_classes, n_classes + 1, ... */
typedef struct cs_network_load {
    const cs_graph *graph;
    const cs_pair *pairs;
    uint32_t n_pairs;
    int64_t pair_bytes;
    bool record_rates; /* whether to record rates, per task of the graph */
    bool every_event;  /* whether to simulate without shortcuts */
} cs_network_load;

/* Finds the routes of all classes, and fills `deliveries`, one per class. */
CS_MUST_CHECK cs_status cs_network_create(const cs_network_load *load, const cs_platform *platform,
                                          cs_network_announce *announce, void *context,
                                          cs_delivery *deliveries, cs_network **network,
                                          cs_error *error);
void cs_network_destroy(cs_network *network);

/* Adds a message: at its start if its class joins at the start, else after its delay. This function
 * and the next ones return CS_OK, CS_NO_MEMORY or CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_network_join(cs_network *network, uint32_t task, uint32_t cls,
                                        cs_time now);

/* Handles a flow at its announced time. If *ended is true, the flow has left its links; otherwise
 * it now reaches them, and its end will be announced. */
CS_MUST_CHECK cs_status cs_network_end(cs_network *network, uint32_t flow, cs_time now,
                                       bool *ended);

/* Sets the rates. Must be called after everything else that happens at `now`. */
CS_MUST_CHECK cs_status cs_network_settle(cs_network *network, cs_time now);

/* Announces when messages that joined at their start will end or reach their links. Must be called
 * before time moves on from `now`. */
CS_MUST_CHECK cs_status cs_network_leave(cs_network *network, cs_time now);

/* Returns the rate of a flow since the last settling, in bytes/s; for count and max_min only. */
double cs_network_rate(const cs_network *network, uint32_t flow);

/* Adds the bytes of `times` tasks of a class to the records of their links; in a folded graph, also
 * the bytes of the messages that they represent. Returns false if the bytes of a link exceed 64
 * bits; then `links` is invalid. */
CS_MUST_CHECK bool cs_network_count(cs_network *network, uint32_t cls, uint64_t times,
                                    cs_link_record *links);

/* Returns the *n rates recorded until a time; the caller frees them. */
cs_rate_sample *cs_network_take_rates(cs_network *network, cs_time until, uint32_t *n);

#endif
