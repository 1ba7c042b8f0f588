/* The functions that the engine calls. */
#include "sim/core/engine/network.h"

#include "sim/core/engine/network-state.h"

#include <stdlib.h>

/* ---- life cycle ---- */

static bool reserve(cs_network *network, const cs_network_load *load, const cs_platform *platform)
{
    const uint32_t n_links = network->n_links = platform->n_links;
    /* calloc, not aligned_alloc: memory of classes that send nothing is never touched */
    network->class_room =
        calloc((size_t)load->graph->n_classes + load->n_pairs + 2, sizeof(*network->classes));
    network->class_bounds =
        calloc((size_t)load->graph->n_classes + load->n_pairs + 1, sizeof(*network->class_bounds));
    network->users = calloc((size_t)n_links + 1, sizeof(*network->users));
    network->fifo.now.time = -1;
    network->fifo.idle_from = calloc((size_t)n_links + 1, sizeof(*network->fifo.idle_from));
    if (!network->class_room || !network->class_bounds || !network->users ||
        !network->fifo.idle_from)
        return false;
    /* last, because links that exist are expected to be set */
    network->links = aligned_alloc(CS_CACHE_LINE, ((size_t)n_links + 1) * CS_CACHE_LINE);
    if (!network->links)
        return false;
    const uintptr_t past = (uintptr_t)network->class_room % CS_CACHE_LINE;
    network->classes =
        (void *)((char *)network->class_room + (CS_CACHE_LINE - past) % CS_CACHE_LINE);
    for (uint32_t i = 0; i < n_links; i++) {
        cs_link_state *link = &network->links[i];
        *link =
            (cs_link_state){.capacity = CS_FEW_FLOWS, .bandwidth = platform->links[i].bandwidth};
        link->flows = link->few;
    }
    return true;
}

cs_status cs_network_create(const cs_network_load *load, const cs_platform *platform,
                            cs_network_announce *announce, void *context, cs_delivery *deliveries,
                            cs_network **network, cs_error *error)
{
    cs_network *created = calloc(1, sizeof(*created));
    if (!created)
        return cs_error_no_memory(error);
    created->announce = announce;
    created->context = context;
    created->sharing = platform->sharing;
    created->n_tasks = load->graph->n_tasks;
    created->record_rates = load->record_rates;
    created->has_shortcuts = !load->every_event && !load->record_rates;
    const cs_status status =
        reserve(created, load, platform)
            ? cs_network_find_routes(created, load, platform, deliveries, error)
            : cs_error_no_memory(error);
    if (status == CS_OK)
        *network = created;
    else
        cs_network_destroy(created);
    return status;
}

void cs_network_destroy(cs_network *network)
{
    if (!network)
        return;
    for (uint32_t i = 0; network->links && i < network->n_links; i++)
        if (network->links[i].flows != network->links[i].few)
            free(network->links[i].flows);
    cs_id_list *lists[] = {&network->spare_flows,     &network->changed,
                           &network->component.links, &network->component.flows,
                           &network->round.flows,     &network->round.ended};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        cs_id_list_finish(lists[i]);
    cs_fold_paths_finish(&network->fold);
    void *blocks[] = {network->class_room,     network->class_bounds, network->route_links,
                      network->weights,        network->links,        network->streams,
                      network->flows,          network->arrivals.all, network->component.bounds,
                      network->fifo.idle_from, network->fifo.waiting, network->users,
                      network->starting.all,   network->round.shares, network->rates};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        free(blocks[i]);
    free(network);
}

/* ---- records ---- */

bool cs_network_count(cs_network *network, uint32_t cls, uint64_t times, cs_link_record *links)
{
    const cs_message_class *of = &network->classes[cls];
    int64_t bytes;
    bool fits = !__builtin_mul_overflow(of->bytes, times, &bytes) || of->n_links == 0;
    if (fits && network->fold.platform && bytes > 0 && of->n_links > 0)
        return cs_fold_paths_count(&network->fold, of->ends, bytes, links);
    for (uint32_t i = 0; i < of->n_links && fits; i++) {
        cs_link_record *link = &links[network->route_links[of->first_link + i]];
        fits = !__builtin_add_overflow(link->bytes, bytes, &link->bytes);
    }
    return fits;
}

bool cs_network_note_rate(cs_network *network, uint32_t task, double rate, cs_time now)
{
    if (task >= network->n_tasks)
        return true;
    if (!cs_vector_reserve((void **)&network->rates, &network->cap_rates,
                           network->n_rates + UINT64_C(1), sizeof(*network->rates)))
        return false;
    network->rates[network->n_rates++] = (cs_rate_sample){now, rate, task};
    return true;
}

static int compare_samples(const void *left, const void *right)
{
    const cs_rate_sample *a = left, *b = right;
    CS_COMPARE(a->time, b->time);
    CS_COMPARE(a->task, b->task);
    CS_COMPARE(b->rate, a->rate); /* a message that takes no time starts before it ends */
    return 0;
}

/* With fifo, rates are recorded as soon as they are known, before their time comes. */
cs_rate_sample *cs_network_take_rates(cs_network *network, cs_time until, uint32_t *n)
{
    cs_rate_sample *rates = network->rates;
    if (network->sharing == CS_SHARING_FIFO)
        cs_vector_sort(rates, network->n_rates, sizeof(*rates), compare_samples);
    while (network->n_rates > 0 && rates[network->n_rates - 1].time > until)
        network->n_rates--;
    *n = network->n_rates;
    network->rates = NULL;
    network->n_rates = network->cap_rates = 0;
    return rates;
}

double cs_network_rate(const cs_network *network, uint32_t flow)
{
    return network->flows[flow].rate;
}

static int compare_arrivals(const void *left, const void *right)
{
    const cs_arrival *a = left, *b = right;
    CS_COMPARE(a->task, b->task);
    return 0;
}

void cs_arrivals_sort(cs_arrival_list *list)
{
    for (uint32_t i = 1; i < list->n; i++) {
        if (list->all[i - 1].task <= list->all[i].task)
            continue;
        qsort(list->all, list->n, sizeof(*list->all), compare_arrivals);
        return;
    }
}

/* ---- what happens ---- */

cs_status cs_network_join(cs_network *network, uint32_t task, uint32_t cls, cs_time now)
{
    uint32_t id;
    bool enough;
    if (network->classes[cls].at_start)
        enough = cs_arrival_add(&network->starting, task, cls);
    else if (network->sharing == CS_SHARING_FIFO)
        enough = cs_arrival_add(&network->arrivals, task, cls);
    else
        enough = cs_flow_add(network, task, cls, now, &id) && cs_flow_arrive(network, id);
    return enough ? CS_OK : CS_NO_MEMORY;
}

cs_status cs_network_end(cs_network *network, uint32_t flow, cs_time now, bool *ended)
{
    return cs_flow_end(network, flow, now, ended);
}

cs_status cs_network_settle(cs_network *network, cs_time now)
{
    return network->sharing == CS_SHARING_FIFO ? cs_fifo_settle(network, now)
                                               : cs_flows_settle(network, now);
}

cs_status cs_network_leave(cs_network *network, cs_time now)
{
    const bool fifo = network->sharing == CS_SHARING_FIFO;
    cs_arrivals_sort(&network->starting);
    for (uint32_t i = 0; i < network->starting.n; i++) {
        const cs_arrival message = network->starting.all[i];
        cs_fifo_moment arrival = {0, 0};
        if (!fifo)
            CS_TRY(cs_sole_message_start(network, message, now));
        else if (!cs_time_add(now, network->classes[message.what].latency, &arrival.time))
            return CS_OVERFLOW;
        else if (!cs_fifo_serve(network, message, arrival))
            return CS_NO_MEMORY;
    }
    network->starting.n = 0;
    return CS_OK;
}
