/* Messages that share links (count, max_min). A flow arrives at its links, waits until the message
 * before it in its stream has ended, and then shares the links with the other flows on them. All
 * that happens to flows at one instant is settled together, at the end of the instant. */
#include "sim/core/engine/network-state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_FLOWS = 8 };

static bool grow_flows(cs_network *network)
{
    const uint64_t capacity = network->cap_flows ? 2 * (uint64_t)network->cap_flows : FIRST_FLOWS;
    cs_flow *grown =
        capacity < UINT32_MAX ? aligned_alloc(CS_CACHE_LINE, capacity * sizeof(*grown)) : NULL;
    if (!grown)
        return false;
    if (network->n_flows > 0)
        memcpy(grown, network->flows, network->n_flows * sizeof(*grown));
    free(network->flows);
    network->flows = grown;
    network->cap_flows = (uint32_t)capacity;
    return true;
}

bool cs_flow_add(cs_network *network, uint32_t task, uint32_t cls, cs_time since, uint32_t *id)
{
    if (network->spare_flows.n == 0) {
        if ((network->n_flows == network->cap_flows && !grow_flows(network)) ||
            !cs_id_list_add(&network->spare_flows, network->n_flows))
            return false;
        network->flows[network->n_flows++] = (cs_flow){0};
    }
    *id = network->spare_flows.ids[--network->spare_flows.n];
    network->flows[*id] = (cs_flow){.task = task,
                                    .cls = cls,
                                    .slot = CS_NONE,
                                    .left = (double)network->classes[cls].bytes,
                                    .since = since,
                                    .end = -1,
                                    .next = CS_NONE};
    return true;
}

static cs_stream *stream_of(const cs_network *network, const cs_flow *flow)
{
    const uint32_t number = network->classes[flow->cls].stream;
    return number == CS_NONE ? NULL : &network->streams[number];
}

/* Makes room in the list of a link. */
static bool widen(cs_link_state *link)
{
    const bool few = link->flows == link->few;
    uint32_t *flows = few ? NULL : link->flows;
    if (!cs_vector_grow((void **)&flows, &link->capacity, link->n + UINT64_C(1), sizeof(*flows)))
        return false;
    if (few)
        memcpy(flows, link->few, sizeof(link->few));
    link->flows = flows;
    return true;
}

bool cs_flow_enter(cs_network *network, uint32_t id)
{
    uint32_t n;
    const cs_flow *flow = &network->flows[id];
    const uint32_t *links = cs_flow_links(network, flow, &n);
    network->n_on_links++;
    for (uint32_t i = 0; i < n; i++) {
        cs_link_state *link = &network->links[links[i]];
        if (link->n == link->capacity && !widen(link))
            return false;
        link->flows[link->n++] = id;
        link->load += cs_flow_weight(network, flow, i);
    }
    return true;
}

/* Links that still have flows are noted as changed. */
bool cs_flow_leave(cs_network *network, uint32_t id)
{
    uint32_t n;
    const cs_flow *flow = &network->flows[id];
    const uint32_t *links = cs_flow_links(network, flow, &n);
    cs_id_list *changed = &network->changed;
    network->n_on_links--;
    if (!cs_vector_reserve((void **)&changed->ids, &changed->capacity, changed->n + (uint64_t)n,
                           sizeof(*changed->ids)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        cs_link_state *link = &network->links[links[i]];
        uint32_t at = 0;
        while (link->flows[at] != id)
            at++;
        link->flows[at] = link->flows[--link->n];
        link->load -= cs_flow_weight(network, flow, i);
        if (link->n == 0 || link->changed)
            continue;
        changed->ids[changed->n++] = links[i];
        link->changed = true;
    }
    return true;
}

cs_status cs_flow_end(cs_network *network, uint32_t id, cs_time now, bool *ended)
{
    const cs_flow *flow = &network->flows[id];
    *ended = flow->place != CS_ON_ITS_WAY;
    if (!*ended)
        return cs_flow_arrive(network, id) ? CS_OK : CS_NO_MEMORY;
    assert(flow->end == now);
    if (flow->place == CS_IN_ROUND)
        return cs_id_list_add(&network->round.ended, id) ? CS_OK : CS_NO_MEMORY;
    if (!cs_id_list_add(&network->spare_flows, id) ||
        !cs_network_record_rate(network, flow->task, 0, now) || !cs_flow_leave(network, id))
        return CS_NO_MEMORY;
    if (network->classes[flow->cls].at_start)
        cs_sole_message_count(network, flow->cls, -1);
    cs_stream *stream = stream_of(network, flow);
    if (!stream)
        return CS_OK;
    stream->first = flow->next;
    return stream->first == CS_NONE || cs_flow_arrive(network, stream->first) ? CS_OK
                                                                              : CS_NO_MEMORY;
}

/* Whether it is a flow's turn in its stream; else it waits. */
static bool take_turn(cs_network *network, uint32_t id)
{
    cs_stream *stream = stream_of(network, &network->flows[id]);
    if (!stream || stream->first == id)
        return true;
    const bool first = stream->first == CS_NONE;
    if (first)
        stream->first = id;
    else
        network->flows[stream->last].next = id;
    stream->last = id;
    return first;
}

/* The bytes that are left get another rate, and the flow another end. */
static cs_status set_rate(cs_network *network, uint32_t id, double rate, cs_time now)
{
    cs_flow *flow = &network->flows[id];
    cs_time rest;
    if (rate == flow->rate)
        return CS_OK;
    if (flow->rate > 0) {
        const double left = flow->left - flow->rate * cs_time_seconds(now - flow->since);
        flow->left = left > 0 ? left : 0;
    }
    flow->since = now;
    flow->rate = rate;
    if (!cs_network_record_rate(network, flow->task, rate, now))
        return CS_NO_MEMORY;
    if (!cs_time_transfer(flow->left, rate, &rest) || !cs_time_add(now, rest, &flow->end))
        return CS_OVERFLOW;
    return cs_flow_announce(network, id, flow->end);
}

/* Shortcut: a flow that is alone on its links shares with nobody, and its class knows its rate.
 * Gain: 8 % of the instructions of a ring all-reduce in random order (bench-network ring 1024
 * random). */
static bool is_sole_user(const cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = cs_flow_links(network, &network->flows[id], &n);
    bool sole = network->has_shortcuts;
    for (uint32_t i = 0; i < n && sole; i++)
        sole = network->links[links[i]].n == 1;
    return sole;
}

static cs_status set_sole_rate(cs_network *network, uint32_t id, cs_time now)
{
    return set_rate(network, id, network->classes[network->flows[id].cls].sole_rate, now);
}

/* Notes the links of a flow that arrived as changed. */
static bool note_change(cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = cs_flow_links(network, &network->flows[id], &n);
    for (uint32_t i = 0; i < n; i++) {
        cs_link_state *link = &network->links[links[i]];
        if (!link->changed && !cs_id_list_add(&network->changed, links[i]))
            return false;
        link->changed = true;
    }
    return true;
}

/* Lets the flows that arrived onto their links, as far as it is their turn, and gives new rates to
 * all flows that a change of a link's flows can reach. */
static cs_status settle_changes(cs_network *network, cs_time now)
{
    cs_arrival_list *arrivals = &network->arrivals;
    uint32_t n = 0;
    for (uint32_t i = 0; i < arrivals->n; i++) {
        if (!take_turn(network, arrivals->all[i].what))
            continue;
        if (!cs_flow_enter(network, arrivals->all[i].what))
            return CS_NO_MEMORY;
        arrivals->all[n++] = arrivals->all[i];
    }
    arrivals->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = arrivals->all[i].what;
        if (is_sole_user(network, id))
            CS_TRY(set_sole_rate(network, id, now));
        else if (!note_change(network, id))
            return CS_NO_MEMORY;
    }
    network->component.mark++;
    for (uint32_t i = 0; i < network->changed.n; i++) {
        const uint32_t id = network->changed.ids[i];
        cs_link_state *link = &network->links[id];
        link->changed = false;
        if (link->n == 0 || link->mark == network->component.mark)
            continue; /* in no component, or in one that has its rates already */
        if (link->n == 1 && is_sole_user(network, link->flows[0])) {
            CS_TRY(set_sole_rate(network, link->flows[0], now));
            continue;
        }
        if (!cs_link_shares_solve(network, id))
            return CS_NO_MEMORY;
        const cs_id_list *flows = &network->component.flows;
        for (uint32_t f = 0; f < flows->n; f++)
            CS_TRY(set_rate(network, flows->ids[f], network->flows[flows->ids[f]].next_rate, now));
    }
    network->changed.n = 0;
    return CS_OK;
}

cs_status cs_flows_settle(cs_network *network, cs_time now)
{
    if (network->arrivals.n == 0 && network->changed.n == 0 && network->round.ended.n == 0)
        return CS_OK;
    cs_arrivals_sort(&network->arrivals);
    if (network->round.flows.n > 0 && !cs_round_end(network))
        return CS_NO_MEMORY;
    const bool round = cs_round_is(network);
    cs_status status;
    if (round && cs_round_repeats(network)) {
        status = cs_round_begin(network, now);
    } else {
        status = settle_changes(network, now);
        if (status == CS_OK && round && !cs_round_keep(network, now))
            status = CS_NO_MEMORY;
    }
    network->arrivals.n = 0;
    return status;
}
