/* Links that serve one message at a time, in the order of arrival (fifo). A message starts when the
 * last of its links is idle, and its end is known as soon as it arrives.
 *
 * An instant is settled in rounds (engine.h): a message whose bytes take no time ends in the round
 * after its start, and the next message starts then. So a link is idle from a round of an instant
 * on. */
#include "sim/core/engine/network-state.h"

static inline bool is_later(cs_fifo_moment a, cs_fifo_moment b)
{
    return a.time > b.time || (a.time == b.time && a.round > b.round);
}

static inline bool announce(cs_network *network, uint32_t what, uint32_t task, cs_time time)
{
    uint32_t slot = CS_NONE;
    return network->announce(network->context, what, task, time, &slot);
}

/* If an end does not fit, the run fails when the message would start. */
bool cs_fifo_serve(cs_network *network, cs_arrival message, cs_fifo_moment now)
{
    cs_fifo *fifo = &network->fifo;
    const cs_message_class *cls = &network->classes[message.what];
    const uint32_t *links = network->route_links + cls->first_link, task = message.task;
    cs_fifo_moment start = now, end = {CS_TIME_MAX, 0};
    for (uint32_t i = 0; i < cls->n_finite; i++)
        start = is_later(fifo->idle_from[links[i]], start) ? fifo->idle_from[links[i]] : start;
    const bool fits = cls->sole_time >= 0 && cs_time_add(start.time, cls->sole_time, &end.time);
    if (end.time == start.time)
        end.round = start.round + 1;
    for (uint32_t i = 0; i < cls->n_finite; i++)
        fifo->idle_from[links[i]] = end;
    if (!cs_network_record_rate(network, task, cls->sole_rate, start.time) ||
        !cs_network_record_rate(network, task, 0, end.time))
        return false;
    if (!fits)
        return announce(network, CS_NETWORK_OVERFLOWS, task, start.time);
    if (end.time > start.time || !is_later(start, now))
        return announce(network, CS_NETWORK_ENDS, task, end.time);
    if (!cs_vector_reserve((void **)&fifo->waiting, &fifo->cap_waiting,
                           fifo->n_waiting + UINT64_C(1), sizeof(*fifo->waiting)))
        return false;
    fifo->waiting[fifo->n_waiting++] = (cs_fifo_waiting){start, task};
    return start.time == now.time || announce(network, CS_NETWORK_DUE, task, start.time);
}

cs_status cs_fifo_settle(cs_network *network, cs_time now)
{
    cs_fifo *fifo = &network->fifo;
    fifo->now.round = fifo->now.time == now ? fifo->now.round + 1 : 0;
    fifo->now.time = now;
    for (uint32_t i = fifo->n_waiting; i-- > 0;) {
        const cs_fifo_waiting waiting = fifo->waiting[i];
        if (is_later(waiting.start, fifo->now))
            continue;
        fifo->waiting[i] = fifo->waiting[--fifo->n_waiting];
        if (!announce(network, CS_NETWORK_ENDS, waiting.task, now))
            return CS_NO_MEMORY;
    }
    cs_arrivals_sort(&network->arrivals);
    for (uint32_t i = 0; i < network->arrivals.n; i++)
        if (!cs_fifo_serve(network, network->arrivals.all[i], fifo->now))
            return CS_NO_MEMORY;
    network->arrivals.n = 0;
    return CS_OK;
}
