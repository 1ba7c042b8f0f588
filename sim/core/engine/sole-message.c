/* Shortcut: a message that starts while its links are idle, with nothing on its way to them, has
 * them to itself. Its end is then known at its start: one event instead of two, no flow, no shares.
 * Its links are reserved for it. If a message that uses one of them starts before that end, it
 * becomes the flow that it would have been.
 *
 * This is exact because such a message has a latency above 0 (contention.c): it reaches its links
 * in a later instant, so every message that can meet it there starts, and is seen, before that.
 *
 * Gain, in instructions of whole runs: 6 % of `sim run` for zb-v and 10 % for interleaved 1F1B,
 * with max_min and 256 micro-batches. */
#include "sim/core/engine/network-state.h"

void cs_sole_message_count(cs_network *network, uint32_t cls, int32_t more)
{
    const cs_message_class *of = &network->classes[cls];
    for (uint32_t i = 0; i < of->n_finite; i++)
        network->users[network->route_links[of->first_link + i]].n_flows += (uint32_t)more;
}

static inline bool links_idle(const cs_network *network, const cs_message_class *cls, cs_time now)
{
    bool idle = true;
    for (uint32_t i = 0; i < cls->n_finite; i++) {
        const cs_link_users *users = &network->users[network->route_links[cls->first_link + i]];
        idle &= users->n_flows == 0 && users->sole.end <= now;
    }
    return idle;
}

/* Reserves all links of a message until its end. */
static inline void reserve_links(cs_network *network, cs_sole_message message)
{
    const cs_message_class *cls = &network->classes[message.cls];
    for (uint32_t i = 0; i < cls->n_finite; i++)
        network->users[network->route_links[cls->first_link + i]].sole = message;
}

/* A sole message gets company, or may get some: it goes on as a flow. */
static cs_status convert_to_flow(cs_network *network, cs_sole_message message, cs_time now)
{
    const cs_message_class *cls = &network->classes[message.cls];
    uint32_t id;
    if (!cs_flow_add(network, message.task, message.cls, message.since, &id))
        return CS_NO_MEMORY;
    cs_flow *flow = &network->flows[id];
    flow->slot = message.slot;
    cs_sole_message_count(network, message.cls, 1);
    const cs_time end = message.end;
    message.end = 0;
    reserve_links(network, message); /* until 0: not any more */
    if (message.since > now) {
        flow->place = CS_ON_ITS_WAY;
        return cs_flow_announce(network, id, message.since);
    }
    flow->rate = cls->sole_rate;
    flow->end = end;
    if (cls->stream != CS_NONE)
        network->streams[cls->stream] = (cs_stream){id, id};
    CS_TRY(cs_flow_announce(network, id, end));
    return cs_flow_enter(network, id) ? CS_OK : CS_NO_MEMORY;
}

cs_status cs_sole_message_start(cs_network *network, cs_arrival message, cs_time now)
{
    const uint32_t task = message.task, number = message.what;
    const cs_message_class *cls = &network->classes[number];
    cs_time since, end;
    if (!cs_time_add(now, cls->latency, &since))
        return CS_OVERFLOW;
    if (links_idle(network, cls, now) && cs_time_add(since, cls->sole_time, &end)) {
        uint32_t slot = CS_NONE;
        if (!network->announce(network->context, CS_NETWORK_ENDS, task, end, &slot))
            return CS_NO_MEMORY;
        reserve_links(network, (cs_sole_message){since, end, task, number, slot});
        return CS_OK;
    }
    for (uint32_t i = 0; i < cls->n_finite; i++) {
        const cs_sole_message sole = network->users[network->route_links[cls->first_link + i]].sole;
        if (sole.end > now)
            CS_TRY(convert_to_flow(network, sole, now));
    }
    uint32_t id;
    if (!cs_flow_add(network, task, number, since, &id))
        return CS_NO_MEMORY;
    cs_sole_message_count(network, number, 1);
    network->flows[id].place = CS_ON_ITS_WAY;
    return cs_flow_announce(network, id, since);
}
