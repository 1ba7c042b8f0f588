/* Before the run: the links of each class of messages, and the streams of messages that go one at a
 * time. */
#include "sim/core/engine/network-state.h"

#include "topologies/route.h"

#include <stdlib.h>
#include <string.h>

/* For folded graphs, whose messages represent several each. A class takes the route of the slowest
 * message that it represents. Classes with the same ends represent the same messages, so only the
 * first of them searches. */
typedef struct fold_search {
    uint32_t *last;     /* per device: the last class so far with this source, or CS_NONE */
    uint32_t *previous; /* per class: the class before with the same source, or CS_NONE */
    cs_pair *slowest;   /* per class: the message whose route it takes */
} fold_search;

static bool begin_fold(fold_search *search, uint32_t n_devices, size_t n_classes)
{
    search->last = malloc((n_devices + (size_t)1) * sizeof(*search->last));
    search->previous = malloc((n_classes + 1) * sizeof(*search->previous));
    search->slowest = malloc((n_classes + 1) * sizeof(*search->slowest));
    if (!search->last || !search->previous || !search->slowest)
        return false;
    memset(search->last, 0xff, n_devices * sizeof(*search->last));
    return true;
}

/* Sets `slowest` of a class; *same: an earlier class with the same ends, or CS_NONE. */
static cs_status find_slowest(cs_network *network, fold_search *search, uint32_t number,
                              cs_pair ends, uint32_t *same, cs_error *error)
{
    uint32_t *last = &search->last[ends.source];
    *same = *last;
    while (*same != CS_NONE && network->classes[*same].ends.target != ends.target)
        *same = search->previous[*same];
    search->previous[number] = *last;
    *last = number;
    if (*same == CS_NONE)
        return cs_fold_paths_slowest(&network->fold, ends, &search->slowest[number], error);
    search->slowest[number] = search->slowest[*same];
    return CS_OK;
}

/* Finds how many messages a class represents on each of its links, and the rate that remains for
 * each of them. */
static cs_status find_weights(cs_network *network, uint32_t number, uint32_t same, cs_error *error)
{
    cs_message_class *cls = &network->classes[number];
    if (!cs_vector_reserve((void **)&network->weights, &network->cap_weights,
                           network->n_route_links + UINT64_C(1), sizeof(*network->weights)))
        return cs_error_no_memory(error);
    uint32_t *weights = network->weights + cls->first_link;
    const uint32_t *links = network->route_links + cls->first_link;
    if (same == CS_NONE)
        cs_fold_paths_weigh(&network->fold, cls->ends, links, cls->n_links, weights);
    else
        memcpy(weights, network->weights + network->classes[same].first_link,
               cls->n_links * sizeof(*weights));
    for (uint32_t i = 0; i < cls->n_finite && network->sharing != CS_SHARING_FIFO; i++)
        cls->sole_rate = fmin(cls->sole_rate, network->links[links[i]].bandwidth / weights[i]);
    return CS_OK;
}

static cs_status find_route(cs_network *network, const cs_platform *platform, fold_search *search,
                            uint32_t number, cs_pair ends, int64_t bytes, cs_delivery *delivery,
                            cs_error *error)
{
    cs_message_class *cls = &network->classes[number];
    const bool folded = search->last != NULL;
    cs_pair slowest = ends;
    uint32_t same = CS_NONE;
    if (!cs_vector_reserve((void **)&network->route_links, &network->cap_route_links,
                           network->n_route_links + UINT64_C(1) + platform->longest_route,
                           sizeof(*network->route_links)))
        return cs_error_no_memory(error);
    if (folded) {
        CS_TRY(find_slowest(network, search, number, ends, &same, error));
        slowest = search->slowest[number];
    }
    uint32_t *links = network->route_links + network->n_route_links;
    cs_route route;
    CS_TRY(cs_route_find(platform, slowest.source, slowest.target, links, &route, error));
    *cls = (cs_message_class){.first_link = network->n_route_links,
                              .n_links = route.n,
                              .stream = CS_NONE,
                              .ends = ends,
                              .bytes = bytes,
                              .sole_rate = route.bandwidth};
    network->n_route_links += route.n;
    for (uint32_t i = 0; i < route.n; i++) { /* links of finite bandwidth first */
        const uint32_t link = links[i];
        if (!isfinite(platform->links[link].bandwidth))
            continue;
        links[i] = links[cls->n_finite];
        links[cls->n_finite++] = link;
    }
    cls->n_shared = cls->n_finite;
    network->class_bounds[number] = (cs_bound){INFINITY, CS_NONE, CS_NONE};
    if (folded)
        CS_TRY(find_weights(network, number, same, error));
    delivery->competes = bytes > 0 && cls->n_finite > 0 && cs_links_are_contended(platform);
    const double carried =
        platform->sharing == CS_SHARING_PHI ? platform->phi * (double)bytes : (double)bytes;
    cs_time bytes_time = 0;
    if ((!delivery->competes && !cs_time_transfer(carried, route.bandwidth, &bytes_time)) ||
        !cs_time_add(route.latency, bytes_time, &delivery->delay))
        return cs_error_add(
            error, CS_OVERFLOW,
            "a transfer of %lld bytes from device %u to device %u, at %.4g bytes/s, "
            "takes 2^63 ps (106 days) or more",
            (long long)bytes, ends.source, ends.target, route.bandwidth);
    return CS_OK;
}

/* A class of messages that belongs to a stream. */
typedef struct sender {
    cs_pair ends;
    uint32_t purpose, cls;
} sender;

static int compare_senders(const void *left, const void *right)
{
    const sender *a = left, *b = right;
    CS_COMPARE(a->ends.source, b->ends.source);
    CS_COMPARE(a->ends.target, b->ends.target);
    CS_COMPARE(a->purpose, b->purpose);
    return 0;
}

/* Gives streams to the messages that the graph itself sends. Messages of a collective have none:
 * its algorithm orders them. With fifo the links keep the order. */
static cs_status find_streams(cs_network *network, const cs_graph *graph,
                              const cs_platform *platform, cs_error *error)
{
    if (platform->independent_messages || platform->sharing == CS_SHARING_FIFO ||
        !cs_links_are_contended(platform))
        return CS_OK;
    uint32_t n = 0, n_streams = 0;
    sender *senders = malloc(((size_t)graph->n_classes + 1) * sizeof(*senders));
    network->streams = malloc(((size_t)graph->n_classes + 1) * sizeof(*network->streams));
    if (!senders || !network->streams) {
        free(senders);
        return cs_error_no_memory(error);
    }
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind == CS_TRANSFER && cls->origin == CS_TRANSFER)
            senders[n++] = (sender){{cls->device, cls->peer}, cls->purpose, i};
    }
    cs_vector_sort(senders, n, sizeof(*senders), compare_senders);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || compare_senders(&senders[i - 1], &senders[i]) != 0)
            network->streams[n_streams++] = (cs_stream){CS_NONE, CS_NONE};
        network->classes[senders[i].cls].stream = n_streams - 1;
    }
    free(senders);
    return CS_OK;
}

cs_status cs_network_find_routes(cs_network *network, const cs_network_load *load,
                                 const cs_platform *platform, cs_delivery *deliveries,
                                 cs_error *error)
{
    const cs_graph *graph = load->graph;
    const uint32_t n = graph->n_classes;
    fold_search search = {0};
    cs_status status = CS_OK;
    if (graph->stands_for) {
        status = begin_fold(&search, graph->n_devices, (size_t)n + load->n_pairs)
                     ? cs_fold_paths_init(&network->fold, graph, platform, error)
                     : cs_error_no_memory(error);
    }
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind == CS_TRANSFER)
            status = find_route(network, platform, &search, i, (cs_pair){cls->device, cls->peer},
                                cls->bytes, &deliveries[i], error);
    }
    for (uint32_t i = 0; i < load->n_pairs && status == CS_OK; i++)
        status = find_route(network, platform, &search, n + i, load->pairs[i], load->pair_bytes,
                            &deliveries[n + i], error);
    free(search.last);
    free(search.previous);
    free(search.slowest);
    if (status == CS_OK)
        status = find_streams(network, graph, platform, error);
    if (status != CS_OK || !cs_links_are_contended(platform))
        return status;
    for (uint32_t i = 0; i < n + load->n_pairs; i++) {
        cs_message_class *cls = &network->classes[i];
        if (!deliveries[i].competes)
            continue;
        if (!cs_time_transfer((double)cls->bytes, cls->sole_rate, &cls->sole_time))
            cls->sole_time = -1;
        deliveries[i].alone = cls->sole_time > 0 ? cls->sole_time : 0;
    }
    const bool search_contention = network->has_shortcuts && load->n_pairs == 0; /* no other jobs */
    return search_contention && !cs_network_find_contention(network, graph, deliveries)
               ? cs_error_no_memory(error)
               : CS_OK;
}
