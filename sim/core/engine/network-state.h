/* The network's state, shared by its files. Internal to sim/core/engine. Read them in this order:
 *
 *   network-routes.c  before the run: the links of each class of messages
 *   contention.c      before the run: which messages can meet others on their links
 *   network.c         what the engine calls
 *   fifo.c            links that serve one message at a time
 *   flows.c           messages that share links (count, max_min): how they come and go
 *   link-shares.c     their rates
 *   sole-message.c    shortcut: a message that finds its links idle
 *   repeated-round.c  shortcut: the same messages again and again
 */
#ifndef CS_ENGINE_NETWORK_STATE_H
#define CS_ENGINE_NETWORK_STATE_H

#include "sim/base/vector.h"
#include "sim/core/engine/fold-paths.h"
#include "sim/core/engine/network.h"
#include "sim/core/engine/ready.h"

#include <math.h>

enum { CS_CACHE_LINE = 64, CS_FEW_FLOWS = 4 };

/* A class of messages: one cache line. */
typedef struct cs_message_class {
    _Alignas(CS_CACHE_LINE) uint32_t first_link; /* in cs_network.route_links */
    uint32_t n_links;
    uint32_t n_finite; /* its first links, of finite bandwidth: only these can be contended */
    uint32_t n_shared; /* its first links that other classes or messages may use too */
    uint32_t stream;   /* whose messages go one at a time; or CS_NONE */
    cs_pair ends;      /* source and target */
    bool at_start;     /* it is served when it starts, or finds its links idle then */
    int64_t bytes;     /* per message */
    double sole_rate;  /* bytes/s of a message that has its links to itself */
    cs_time sole_time; /* its bytes take this long at that rate; -1: it does not fit */
    cs_time latency;   /* with at_start: from a message's start until it reaches its links */
} cs_message_class;

/* Messages from one device to another for one purpose, in the order of their arrival. */
typedef struct cs_stream {
    uint32_t first, last; /* flows: the one on its links, the last one that waits; or CS_NONE */
} cs_stream;

/* Where a flow is: on its links; on its way to them, where it arrives at `since`; or on its links
 * as part of a repeated round, which their lists of flows leave out. */
typedef enum cs_flow_place { CS_ON_LINKS, CS_ON_ITS_WAY, CS_IN_ROUND } cs_flow_place;

/* A message that shares its links with others, or may: one cache line. */
typedef struct cs_flow {
    _Alignas(CS_CACHE_LINE) uint32_t task;
    uint32_t cls;
    uint32_t mark; /* number of the latest walk that visited it */
    uint32_t slot; /* event of its announced end or arrival */
    double rate;   /* bytes/s since `since` */
    double left;   /* bytes, at `since` */
    double next_rate;
    cs_time since, end;
    uint32_t next; /* flow that follows in its stream, or CS_NONE */
    cs_flow_place place;
} cs_flow;

/* One cache line: most links have few flows, whose ids are in it. */
typedef struct cs_link_state {
    uint32_t *flows; /* `few` or allocated */
    uint32_t n, capacity;
    uint32_t load; /* messages that its flows represent; n, unless the graph is folded */
    uint32_t mark; /* number of the latest walk that visited it */
    double bandwidth;
    double spare;     /* max_min: bandwidth not yet given away */
    uint32_t unfixed; /* max_min: messages without a rate yet */
    uint32_t few[CS_FEW_FLOWS];
    bool changed; /* its flows have changed since the last settling */
} cs_link_state;

_Static_assert(sizeof(cs_message_class) == CS_CACHE_LINE, "one cache line");
_Static_assert(sizeof(cs_flow) == CS_CACHE_LINE, "one cache line");
_Static_assert(sizeof(cs_link_state) <= CS_CACHE_LINE, "one cache line");

/* A message that arrived at its links, or started; `what`: its flow, or its class without one. */
typedef struct cs_arrival {
    uint32_t task, what;
} cs_arrival;

typedef struct cs_arrival_list {
    cs_arrival *all;
    uint32_t n, capacity;
} cs_arrival_list;

/* The sole message on a link (sole-message.c). */
typedef struct cs_sole_message {
    cs_time since, end; /* on its links; `end` is later than now, or the link has none */
    uint32_t task, cls;
    uint32_t slot; /* event of its announced end */
} cs_sole_message;

typedef struct cs_link_users {
    uint32_t n_flows; /* on their way to the link, on it, or waiting for their turn */
    cs_sole_message sole;
} cs_link_users;

/* A bound on the rate of flows, for progressive filling (link-shares.c): the share of a link with
 * several flows, or the least share of the links that `flow` has to itself. */
typedef struct cs_bound {
    double share; /* for a link with several flows: as last computed; it can only rise */
    uint32_t link;
    uint32_t flow; /* or CS_NONE: a link with several flows */
} cs_bound;

static inline bool cs_bound_is_tighter(cs_bound a, cs_bound b)
{
    return a.share < b.share || (a.share == b.share && a.link < b.link);
}

/* Rate and time of a flow of the last round that was solved (repeated-round.c). */
typedef struct cs_round_share {
    uint32_t cls;
    double rate;
    cs_time time; /* until all of its bytes are through */
} cs_round_share;

typedef struct cs_repeated_round {
    cs_round_share *shares; /* by task */
    uint32_t n, capacity;
    cs_id_list flows; /* in flight with these shares */
    cs_id_list ended; /* flows of the round that have ended */
} cs_repeated_round;

/* The flows and links that a change of rates reaches, and scratch of the solver. */
typedef struct cs_component {
    uint32_t mark; /* number of the current walk */
    cs_id_list links, flows;
    cs_bound *bounds; /* a heap: the least share, then the lowest link, first */
    uint32_t n_bounds, cap_bounds;
} cs_component;

/* A settling of an instant: the first one has round 0. */
typedef struct cs_fifo_moment {
    cs_time time;
    uint32_t round;
} cs_fifo_moment;

/* A message whose bytes take no time, and whose links are not idle yet. */
typedef struct cs_fifo_waiting {
    cs_fifo_moment start;
    uint32_t task;
} cs_fifo_waiting;

typedef struct cs_fifo {
    cs_fifo_moment now;        /* the latest settling */
    cs_fifo_moment *idle_from; /* per link */
    cs_fifo_waiting *waiting;
    uint32_t n_waiting, cap_waiting;
} cs_fifo;

struct cs_network {
    cs_sharing sharing;
    uint32_t n_tasks;   /* the graph's; later numbers are messages of other jobs */
    bool has_shortcuts; /* else every message is a flow, and solved again at every change */
    cs_network_announce *announce;
    void *context;

    cs_message_class *classes; /* within class_room, aligned to cache lines */
    void *class_room;
    uint32_t *route_links, n_route_links, cap_route_links;
    cs_bound *class_bounds; /* per class: the tightest of its links that are not shared */
    uint32_t *weights; /* folded graphs, per link of a route: messages on it that a flow represents;
                        * else NULL */
    uint32_t cap_weights;
    cs_fold_paths fold; /* folded graphs */

    cs_link_state *links;
    uint32_t n_links;
    cs_stream *streams;
    cs_flow *flows;
    uint32_t n_flows, cap_flows;
    cs_id_list spare_flows;
    uint32_t n_on_links;      /* flows in links' lists */
    cs_arrival_list arrivals; /* since the last settling: flows that arrived, or whose turn came;
                               * fifo: messages that arrived */
    cs_id_list changed;       /* links whose flows changed since then */
    cs_component component;

    cs_fifo fifo;
    cs_link_users *users;     /* per link, for sole messages */
    cs_arrival_list starting; /* at_start: messages that started at this instant */
    cs_repeated_round round;

    bool record_rates;
    cs_rate_sample *rates;
    uint32_t n_rates, cap_rates;
};

/* ---- network.c ---- */

/* By task; quick when they are in order already. */
void cs_arrivals_sort(cs_arrival_list *list);

/* Records a rate if rates are recorded. False when memory runs out. */
CS_MUST_CHECK bool cs_network_note_rate(cs_network *network, uint32_t task, double rate,
                                        cs_time now);

CS_MUST_CHECK static inline bool cs_network_record_rate(cs_network *network, uint32_t task,
                                                        double rate, cs_time now)
{
    return !network->record_rates || cs_network_note_rate(network, task, rate, now);
}

CS_MUST_CHECK static inline bool cs_arrival_add(cs_arrival_list *list, uint32_t task, uint32_t what)
{
    if (!cs_vector_reserve((void **)&list->all, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->all)))
        return false;
    list->all[list->n++] = (cs_arrival){task, what};
    return true;
}

/* ---- network-routes.c, contention.c ---- */

CS_MUST_CHECK cs_status cs_network_find_routes(cs_network *network, const cs_network_load *load,
                                               const cs_platform *platform, cs_delivery *deliveries,
                                               cs_error *error);

/* Classes whose messages never meet others become delays, and some may be sole. False when memory
 * runs out. */
CS_MUST_CHECK bool cs_network_find_contention(cs_network *network, const cs_graph *graph,
                                              cs_delivery *deliveries);

/* ---- fifo.c ---- */

/* Serves a message that arrives now, or later than all messages served so far. False when memory
 * runs out. */
CS_MUST_CHECK bool cs_fifo_serve(cs_network *network, cs_arrival message, cs_fifo_moment arrival);

CS_MUST_CHECK cs_status cs_fifo_settle(cs_network *network, cs_time now);

/* ---- flows.c ---- */

/* False when memory runs out. */
CS_MUST_CHECK bool cs_flow_add(cs_network *network, uint32_t task, uint32_t cls, cs_time since,
                               uint32_t *id);

/* A flow reaches its links: it is let onto them at the end of the instant, when it is its turn. */
CS_MUST_CHECK static inline bool cs_flow_arrive(cs_network *network, uint32_t id)
{
    cs_flow *flow = &network->flows[id];
    flow->place = CS_ON_LINKS;
    flow->slot = CS_NONE;
    return cs_arrival_add(&network->arrivals, flow->task, id);
}

/* Puts a flow into the lists of its links, or takes it out. */
CS_MUST_CHECK bool cs_flow_enter(cs_network *network, uint32_t id);
CS_MUST_CHECK bool cs_flow_leave(cs_network *network, uint32_t id);

/* The announced time of a flow has come: its end, or, not `*ended`, its arrival at its links. */
CS_MUST_CHECK cs_status cs_flow_end(cs_network *network, uint32_t id, cs_time now, bool *ended);

/* Sets rates once all that happens at `now` has happened. */
CS_MUST_CHECK cs_status cs_flows_settle(cs_network *network, cs_time now);

static inline cs_status cs_flow_announce(cs_network *network, uint32_t id, cs_time time)
{
    cs_flow *flow = &network->flows[id];
    return network->announce(network->context, id, flow->task, time, &flow->slot) ? CS_OK
                                                                                  : CS_NO_MEMORY;
}

/* The links that list a flow: those that its class may share. */
static inline const uint32_t *cs_flow_links(const cs_network *network, const cs_flow *flow,
                                            uint32_t *n)
{
    const cs_message_class *cls = &network->classes[flow->cls];
    *n = cls->n_shared;
    return network->route_links + cls->first_link;
}

/* How many messages a flow represents on link i of its route. */
static inline uint32_t cs_flow_weight(const cs_network *network, const cs_flow *flow, uint32_t i)
{
    return network->weights ? network->weights[network->classes[flow->cls].first_link + i] : 1;
}

/* ---- link-shares.c ---- */

/* Collects the flows whose rates a change of a link's flows can reach, in component.flows, and
 * computes their next_rate. False when memory runs out. */
CS_MUST_CHECK bool cs_link_shares_solve(cs_network *network, uint32_t link);

/* ---- sole-message.c ---- */

CS_MUST_CHECK cs_status cs_sole_message_start(cs_network *network, cs_arrival message, cs_time now);

/* Adds to the flows that use the links of a class. */
void cs_sole_message_count(cs_network *network, uint32_t cls, int32_t more);

/* ---- repeated-round.c ---- */

/* Ends the round that is under way: something else happens. False when memory runs out. */
CS_MUST_CHECK bool cs_round_end(cs_network *network);

/* Whether the flows that arrived are a round: nothing else is on any link. */
bool cs_round_is(const cs_network *network);

/* Whether the arrivals, which are a round, repeat the kept round. */
bool cs_round_repeats(const cs_network *network);

/* Gives the arrivals the kept rates and ends. */
CS_MUST_CHECK cs_status cs_round_begin(cs_network *network, cs_time now);

/* Keeps what the arrivals got. False when memory runs out. */
CS_MUST_CHECK bool cs_round_keep(cs_network *network, cs_time now);

#endif
