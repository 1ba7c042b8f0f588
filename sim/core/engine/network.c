#include "sim/core/engine/network.h"

#include "sim/base/vector.h"
#include "sim/core/engine/fold-paths.h"
#include "sim/core/engine/queues.h"
#include "topologies/route.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A link that may be the tightest, by what it gave to each of its flows without a rate when it was
 * looked at last: a lower bound, for filling other links only leaves it with more for each. A link
 * with one flow bounds the rate of that flow, and nothing changes the bound. */
typedef struct candidate {
    double share;
    uint32_t link;
    uint32_t flow; /* the only one on it; or CS_NONE */
} candidate;

enum { CACHE_LINE = 64, FEW_FLOWS = 3, FIRST_FLOWS = 8 };

/* The links that transfers of a class take: those of finite bandwidth first, which alone can be
 * contended. Of these the ones come last that only messages of the class use, one after the other:
 * they are a cap, and do not list their flows. */
typedef struct route {
    /* one line of the cache: what each message asks for */
    _Alignas(CACHE_LINE) uint32_t first; /* in route_links */
    uint32_t n_shared;
    uint32_t n_finite;
    uint32_t stream; /* whose messages go one after the other, or CS_NONE */
    int64_t bytes;   /* of a transfer of the class */
    double rate;     /* of a message that has its links for itself */
    cs_time latency; /* of messages whose end is known: until they come to their links, */
    cs_time alone;   /* and what their bytes take then, at that rate */
    uint8_t known;   /* cs_known: when the end of a message is */
    /* the rest */
    uint32_t n;       /* links */
    candidate cap;    /* the least share of links that only the class uses; or infinite */
    double bandwidth; /* of the narrowest link; infinite without any */
    cs_pair ends;
    cs_pair slowest; /* of the messages that one stands for: whose links these are */
    uint32_t before; /* folded graphs: the class before with this source, or CS_NONE */
} route;

/* Messages from one device to another for one purpose, in the order in which they came. */
typedef struct stream {
    uint32_t first, last; /* flows: the one on its links, the last that waits; or CS_NONE */
} stream;

/* One line of the cache. */
typedef struct flow {
    _Alignas(CACHE_LINE) uint32_t task;
    uint32_t cls;
    uint32_t mark;       /* of the last walk that saw it */
    uint32_t ahead : 30; /* fifo: links of its route where another message is before it */
    uint32_t place : 2;  /* flow_place */
    double rate;         /* bytes/s since `since` */
    double left;         /* bytes, at `since` */
    double next_rate;
    cs_time since, end;
    uint32_t slot;   /* of its announced end, for who is told */
    uint32_t behind; /* the flow that follows in its stream, or CS_NONE */
} flow;

/* Where a flow is: at its links; still on its way to them, where it will be at `since`; or at its
 * links with the rest of its round. */
typedef enum flow_place { AT_LINKS, ON_ITS_WAY, IN_ROUND } flow_place;

/* One line of the cache: most links have few flows, which are in place. */
typedef struct link_state {
    uint32_t
        *flows; /* on the link, `few` or allocated; fifo: in order of arrival, from `head` on */
    uint32_t head, n, capacity;
    uint32_t mark;
    double bandwidth;
    double free;      /* max-min: not yet given away */
    uint32_t unfixed; /* max-min: messages without a rate yet */
    uint32_t load;    /* of its flows: messages, of which each stands for one or more */
    uint32_t few[FEW_FLOWS];
    bool changed; /* since the last settling */
} link_state;

_Static_assert(sizeof(link_state) <= CACHE_LINE, "a link is one line of the cache");
_Static_assert(sizeof(flow) == CACHE_LINE, "a flow is one line of the cache");
_Static_assert(offsetof(route, n) < CACHE_LINE, "what messages ask for is one line of the cache");

/* A message that is alone on its links, or will be: no flow, unless another one comes to use one of
 * them before it ends. */
typedef struct lone {
    cs_time since, end; /* on its links; `end` is later than now, or there is none */
    uint32_t task, cls;
    uint32_t slot; /* of its announced end */
} lone;

/* Who has or will have a link, of messages that may be alone (CS_KNOWN_IF_ALONE); apart from the
 * rest, which is not looked at while they are. */
typedef struct link_users {
    uint32_t n; /* flows on their way to it, at it or waiting for their turn */
    lone alone; /* besides, the message that has it for itself */
} link_users;

/* A list of ids that is emptied often. */
typedef struct id_list {
    uint32_t *ids, n, capacity;
} id_list;

/* A flow that joined, or whose turn came, since the last settling; or a message of a class whose
 * ends are known. */
typedef struct arrival {
    uint32_t task, what;
} arrival;

typedef struct arrival_list {
    arrival *all;
    uint32_t n, capacity;
} arrival_list;

/* What a flow of a round got: flows that came together when nothing else was on any link. Steps of
 * collectives are often the same round again and again. */
typedef struct round_share {
    uint32_t cls;
    double rate;
    cs_time time; /* until all of its bytes are through at that rate */
} round_share;

struct cs_network {
    uint32_t n_tasks; /* of the graph; those from here on are others' */
    cs_sharing sharing;
    cs_network_announce *announce;
    void *context;
    route *routes; /* per class, within `route_room`, where a line of the cache begins */
    void *route_room;
    uint32_t *route_links, n_route_links, cap_route_links;
    uint32_t *weights,
        cap_weights;      /* folded graphs: of the links of routes, the messages on a link that
                                     * a flow stands for; else NULL */
    uint32_t *last_route; /* folded graphs: per device, the last class with this source */
    cs_fold_paths fold;
    stream *streams;
    link_state *links;
    link_users *users; /* per link */
    uint32_t n_links;
    flow *flows;
    uint32_t n_flows, cap_flows;
    uint32_t mark;       /* of the current walk */
    id_list spare;       /* flows that are free for use */
    uint32_t n_on_links; /* flows that are on links' lists */
    bool has_shortcuts;  /* rounds, and flows that are alone on their links, are looked for */
    round_share *shares; /* of the last round whose rates were solved, by task */
    uint32_t n_shares, cap_shares;
    id_list round; /* flows of a round as that one: no link has them on its list */
    id_list gone;  /* those of them that ended since the last settling */
    arrival_list arrivals;
    arrival_list
        known; /* messages that came to their links since the last settling, their ends known */
    arrival_list started;  /* those that started at this instant, and whose end is known by that */
    cs_time *free_at;      /* per link that serves one message after the other: when it is free */
    id_list changed;       /* links whose flows changed since the last settling */
    id_list first;         /* fifo: flows that became first on all their links since then */
    id_list component;     /* links of the component that a walk found */
    id_list members;       /* flows of it */
    candidate *candidates; /* a heap: the least share, then the lowest link, first */
    uint32_t n_candidates, cap_candidates;
    bool record_rates;
    cs_rate_sample *rates;
    uint32_t n_rates, cap_rates;
};

static inline bool tighter(candidate a, candidate b)
{
    return a.share < b.share || (a.share == b.share && a.link < b.link);
}

static inline bool add(id_list *list, uint32_t id)
{
    if (!cs_vector_reserve((void **)&list->ids, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->ids)))
        return false;
    list->ids[list->n++] = id;
    return true;
}

/* ---- routes ---- */

static cs_status find_delivery(const cs_platform *platform, const route *way, const cs_route *found,
                               cs_pair ends, cs_delivery *delivery, cs_error *error)
{
    cs_time bytes_time = 0;
    delivery->competes = way->bytes > 0 && way->n_finite > 0 && cs_links_are_contended(platform);
    double bytes = (double)way->bytes;
    if (platform->sharing == CS_SHARING_PHI)
        bytes *= platform->phi;
    if ((!delivery->competes && !cs_time_transfer(bytes, found->bandwidth, &bytes_time)) ||
        !cs_time_add(found->latency, bytes_time, &delivery->delay))
        return cs_error_add(
            error, CS_OVERFLOW,
            "a transfer of %lld bytes from device %u to device %u, at %.4g bytes/s, "
            "takes 2^63 ps (106 days) or more",
            (long long)way->bytes, ends.source, ends.target, found->bandwidth);
    return CS_OK;
}

/* Those of finite bandwidth come first. */
static void order_links(const cs_platform *platform, uint32_t *links, route *way)
{
    for (uint32_t i = 0; i < way->n; i++) {
        const uint32_t link = links[i];
        if (!isfinite(platform->links[link].bandwidth))
            continue;
        links[i] = links[way->n_finite];
        links[way->n_finite++] = link;
    }
}

/* Folded graphs: a class with the same ends, which was there before, or CS_NONE. */
static uint32_t find_same(cs_network *network, uint32_t cls)
{
    route *way = &network->routes[cls];
    uint32_t *last = &network->last_route[way->ends.source], same = *last;
    while (same != CS_NONE && network->routes[same].ends.target != way->ends.target)
        same = network->routes[same].before;
    way->before = *last;
    *last = cls;
    return same;
}

/* How many messages a transfer of a folded graph stands for, link by link; those between the same
 * ends stand for the same ones. */
static cs_status weigh(cs_network *network, uint32_t cls, uint32_t same, cs_error *error)
{
    const route *way = &network->routes[cls];
    if (!cs_vector_reserve((void **)&network->weights, &network->cap_weights,
                           network->n_route_links + UINT64_C(1), sizeof(*network->weights)))
        return cs_error_no_memory(error);
    if (same == CS_NONE)
        cs_fold_paths_weigh(&network->fold, way->ends, network->route_links + way->first, way->n,
                            network->weights + way->first);
    else
        memcpy(network->weights + way->first, network->weights + network->routes[same].first,
               way->n * sizeof(*network->weights));
    return CS_OK;
}

static double rate_alone(const cs_network *network, const route *way)
{
    double rate = way->bandwidth;
    for (uint32_t i = 0;
         network->weights && network->sharing != CS_SHARING_FIFO && i < way->n_finite; i++)
        rate = fmin(rate, network->links[network->route_links[way->first + i]].bandwidth /
                              network->weights[way->first + i]);
    return rate;
}

static cs_status find_way(cs_network *network, const cs_platform *platform, uint32_t cls,
                          cs_pair ends, int64_t bytes, cs_delivery *deliveries, cs_error *error)
{
    route *way = &network->routes[cls];
    const uint32_t first = network->n_route_links;
    uint32_t same = CS_NONE;
    if (!cs_vector_reserve((void **)&network->route_links, &network->cap_route_links,
                           first + UINT64_C(1) + platform->longest_route,
                           sizeof(*network->route_links)))
        return cs_error_no_memory(error);
    *way = (route){.first = first,
                   .bytes = bytes,
                   .ends = ends,
                   .slowest = ends,
                   .stream = CS_NONE,
                   .cap = {INFINITY, CS_NONE, CS_NONE}};
    if (network->last_route)
        same = find_same(network, cls);
    if (same != CS_NONE)
        way->slowest = network->routes[same].slowest;
    else if (network->last_route)
        CS_TRY(cs_fold_paths_slowest(&network->fold, ends, &way->slowest, error));
    uint32_t *links = network->route_links + first;
    cs_route found;
    CS_TRY(cs_route_find(platform, way->slowest.source, way->slowest.target, links, &found, error));
    way->n = found.n;
    way->bandwidth = found.bandwidth;
    network->n_route_links += found.n;
    order_links(platform, links, way);
    way->n_shared = way->n_finite;
    if (network->last_route)
        CS_TRY(weigh(network, cls, same, error));
    way->rate = rate_alone(network, way);
    return find_delivery(platform, way, &found, ends, &deliveries[cls], error);
}

static cs_status find_ways(cs_network *network, const cs_network_load *load,
                           const cs_platform *platform, cs_delivery *deliveries, cs_error *error)
{
    const cs_graph *graph = load->graph;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < graph->n_classes && status == CS_OK; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind == CS_TRANSFER)
            status = find_way(network, platform, i, (cs_pair){cls->device, cls->peer}, cls->bytes,
                              deliveries, error);
    }
    for (uint32_t i = 0; i < load->n_pairs && status == CS_OK; i++)
        status = find_way(network, platform, graph->n_classes + i, load->pairs[i], load->pair_bytes,
                          deliveries, error);
    return status;
}

/* A class of messages that belong to a stream. */
typedef struct sender {
    cs_pair ends;
    uint32_t purpose, cls;
} sender;

static int compare_senders(const void *left, const void *right)
{
    const sender *a = left, *b = right;
    if (a->ends.source != b->ends.source)
        return a->ends.source < b->ends.source ? -1 : 1;
    if (a->ends.target != b->ends.target)
        return a->ends.target < b->ends.target ? -1 : 1;
    return a->purpose < b->purpose ? -1 : a->purpose > b->purpose;
}

/* Gives the messages that the graph itself sends streams. Those of a collective have none: their
 * algorithm says what waits for what. With fifo the queues of the links keep the order. */
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
            network->streams[n_streams++] = (stream){CS_NONE, CS_NONE};
        network->routes[senders[i].cls].stream = n_streams - 1;
    }
    free(senders);
    return CS_OK;
}

static bool joins_at_start(uint8_t known)
{
    return known == CS_KNOWN_AT_START || known == CS_KNOWN_IF_ALONE;
}

/* Moves the links that serve nothing but one message of the class after the other behind those that
 * others may share, of which one remains at least. */
static void set_apart(cs_network *network, route *way, const bool *serial)
{
    uint32_t *links = network->route_links + way->first;
    for (uint32_t i = way->n_shared; i-- > 0 && way->n_shared > 1;) {
        const uint32_t link = links[i];
        const candidate cap = {network->links[link].bandwidth, link, CS_NONE};
        if (!serial[link])
            continue;
        links[i] = links[--way->n_shared];
        links[way->n_shared] = link;
        if (tighter(cap, way->cap))
            way->cap = cap;
    }
}

/* Of a message: from when its end is announced, if it is alone. 0: it is not known. */
static cs_time time_alone(const route *way)
{
    cs_time time;
    const cs_time latency = joins_at_start(way->known) ? way->latency : 0;
    return way->alone > 0 && cs_time_add(latency, way->alone, &time) ? time : 0;
}

/* Finds the classes whose messages need no solver of shares (queues.h). Those of others come
 * whenever they like, and rates are recorded flow by flow: then there are none. */
static cs_status find_known(cs_network *network, const cs_network_load *load,
                            const cs_platform *platform, cs_delivery *deliveries, cs_error *error)
{
    const cs_graph *graph = load->graph;
    if (load->every_event || load->record_rates || load->n_pairs > 0 ||
        !cs_links_are_contended(platform))
        return CS_OK;
    cs_queue_class *classes = calloc((size_t)graph->n_classes + 1, sizeof(*classes));
    uint8_t *known = calloc((size_t)graph->n_classes + 1, sizeof(*known));
    bool *serial = calloc((size_t)network->n_links + 1, sizeof(*serial));
    network->free_at = calloc((size_t)network->n_links + 1, sizeof(*network->free_at));
    bool enough = classes && known && serial && network->free_at;
    for (uint32_t i = 0; enough && i < graph->n_classes; i++) {
        route *way = &network->routes[i];
        if (!deliveries[i].competes ||
            !cs_time_add(deliveries[i].delay, graph->classes[i].duration, &way->latency))
            continue;
        if (!cs_time_transfer((double)way->bytes, way->rate, &way->alone))
            way->alone = 0; /* it does not fit */
        classes[i] = (cs_queue_class){network->route_links + way->first,
                                      way->n_finite,
                                      way->stream,
                                      way->latency,
                                      way->alone,
                                      graph->classes[i].origin != CS_TRANSFER};
    }
    enough = enough && cs_queues_find(graph, classes, network->n_links,
                                      network->sharing == CS_SHARING_FIFO, known, serial);
    for (uint32_t i = 0; enough && i < graph->n_classes; i++) {
        const bool always = known[i] == CS_KNOWN_ALWAYS;
        network->routes[i].known = always ? CS_KNOWN_AT_START : known[i];
        deliveries[i].at_start = joins_at_start(network->routes[i].known);
        deliveries[i].alone = time_alone(&network->routes[i]);
        deliveries[i].always = always && deliveries[i].alone > 0;
        if (deliveries[i].competes && known[i] == CS_KNOWN_LATER && !network->weights)
            set_apart(network, &network->routes[i], serial);
    }
    free(classes);
    free(known);
    free(serial);
    return enough ? CS_OK : cs_error_no_memory(error);
}

/* For messages that transfers of a folded graph stand for. */
static cs_status begin_fold(cs_network *network, const cs_graph *graph, const cs_platform *platform,
                            cs_error *error)
{
    if (!graph->stands_for)
        return CS_OK;
    network->last_route = malloc(((size_t)graph->n_devices + 1) * sizeof(*network->last_route));
    if (!network->last_route)
        return cs_error_no_memory(error);
    memset(network->last_route, 0xff, graph->n_devices * sizeof(*network->last_route));
    return cs_fold_paths_init(&network->fold, graph, platform, error);
}

static bool reserve_links(cs_network *network, const cs_platform *platform)
{
    network->links = aligned_alloc(CACHE_LINE, ((size_t)platform->n_links + 1) * CACHE_LINE);
    for (uint32_t i = 0; network->links && i < platform->n_links; i++) {
        link_state *link = &network->links[i];
        *link = (link_state){.capacity = FEW_FLOWS, .bandwidth = platform->links[i].bandwidth};
        link->flows = link->few;
    }
    return network->links != NULL;
}

/* By calloc, not aligned_alloc: what classes that send nothing would have is never touched. */
static bool reserve_routes(cs_network *network, size_t n)
{
    network->route_room = calloc(n + 1, sizeof(route));
    const uintptr_t past = (uintptr_t)network->route_room % CACHE_LINE;
    if (network->route_room)
        network->routes = (void *)((char *)network->route_room + (CACHE_LINE - past) % CACHE_LINE);
    return network->routes != NULL;
}

static bool reserve(cs_network *network, const cs_network_load *load, const cs_platform *platform)
{
    network->n_tasks = load->graph->n_tasks;
    network->record_rates = load->record_rates;
    network->has_shortcuts = !load->every_event && !load->record_rates;
    network->sharing = platform->sharing;
    network->n_links = platform->n_links;
    network->users = calloc((size_t)platform->n_links + 1, sizeof(*network->users));
    return reserve_routes(network, (size_t)load->graph->n_classes + load->n_pairs + 1) &&
           network->users && reserve_links(network, platform);
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
    cs_status status = reserve(created, load, platform)
                           ? begin_fold(created, load->graph, platform, error)
                           : cs_error_no_memory(error);
    if (status == CS_OK)
        status = find_ways(created, load, platform, deliveries, error);
    if (status == CS_OK)
        status = find_streams(created, load->graph, platform, error);
    if (status == CS_OK)
        status = find_known(created, load, platform, deliveries, error);
    if (status != CS_OK) {
        cs_network_destroy(created);
        return status;
    }
    *network = created;
    return CS_OK;
}

void cs_network_destroy(cs_network *network)
{
    if (!network)
        return;
    for (uint32_t i = 0; network->links && i < network->n_links; i++)
        if (network->links[i].flows != network->links[i].few)
            free(network->links[i].flows);
    id_list *lists[] = {&network->spare,   &network->changed, &network->first, &network->component,
                        &network->members, &network->round,   &network->gone};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        free(lists[i]->ids);
    free(network->route_room);
    free(network->route_links);
    free(network->weights);
    free(network->last_route);
    free(network->streams);
    cs_fold_paths_finish(&network->fold);
    free(network->links);
    free(network->users);
    free(network->flows);
    free(network->arrivals.all);
    free(network->known.all);
    free(network->started.all);
    free(network->free_at);
    free(network->shares);
    free(network->candidates);
    free(network->rates);
    free(network);
}

bool cs_network_count(cs_network *network, uint32_t cls, uint64_t times, cs_link_record *links)
{
    const route *way = &network->routes[cls];
    int64_t bytes;
    bool fits = !__builtin_mul_overflow(way->bytes, times, &bytes) || way->n == 0;
    if (fits && network->last_route && bytes > 0 && way->n > 0)
        return cs_fold_paths_count(&network->fold, way->ends, bytes, links);
    for (uint32_t i = 0; i < way->n && fits; i++) {
        cs_link_record *link = &links[network->route_links[way->first + i]];
        fits = !__builtin_add_overflow(link->bytes, bytes, &link->bytes);
    }
    return fits;
}

cs_rate_sample *cs_network_take_rates(cs_network *network, uint32_t *n)
{
    cs_rate_sample *rates = network->rates;
    *n = network->n_rates;
    network->rates = NULL;
    network->n_rates = network->cap_rates = 0;
    return rates;
}

double cs_network_rate(const cs_network *network, uint32_t id)
{
    return network->flows[id].rate;
}

/* ---- flows on links ---- */

/* Those that list it. */
static const uint32_t *links_of(const cs_network *network, const flow *of, uint32_t *n)
{
    const route *way = &network->routes[of->cls];
    *n = way->n_shared;
    return network->route_links + way->first;
}

/* On the i-th link of its route. */
static inline uint32_t weight_of(const cs_network *network, const flow *of, uint32_t i)
{
    return network->weights ? network->weights[network->routes[of->cls].first + i] : 1;
}

/* Makes room for another flow. */
static bool widen(link_state *link)
{
    /* close up what has left, if that is enough to pay for the move */
    if (link->head > 0 && link->head >= link->capacity / 2) {
        memmove(link->flows, link->flows + link->head, link->n * sizeof(*link->flows));
        link->head = 0;
        return true;
    }
    const bool few = link->flows == link->few;
    uint32_t *flows = few ? NULL : link->flows;
    if (!cs_vector_grow((void **)&flows, &link->capacity, (uint64_t)link->head + link->n + 1,
                        sizeof(*flows)))
        return false;
    if (few)
        memcpy(flows, link->few, sizeof(link->few));
    link->flows = flows;
    return true;
}

static inline bool push_flow(link_state *link, uint32_t id)
{
    if (link->head + link->n == link->capacity && !widen(link))
        return false;
    link->flows[link->head + link->n++] = id;
    return true;
}

/* Puts a flow on its links; fifo: at the end of their queues. */
static bool enter(cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = links_of(network, &network->flows[id], &n);
    network->n_on_links++;
    for (uint32_t i = 0; i < n; i++) {
        link_state *link = &network->links[links[i]];
        if (link->n > 0)
            network->flows[id].ahead++;
        if (!push_flow(link, id))
            return false;
        link->load += weight_of(network, &network->flows[id], i);
    }
    return true;
}

static bool record_rate(cs_network *network, uint32_t task, double rate, cs_time now)
{
    if (!network->record_rates || task >= network->n_tasks)
        return true;
    if (!cs_vector_reserve((void **)&network->rates, &network->cap_rates,
                           network->n_rates + UINT64_C(1), sizeof(*network->rates)))
        return false;
    network->rates[network->n_rates++] = (cs_rate_sample){now, rate, task};
    return true;
}

static inline cs_status set_end(cs_network *network, uint32_t id, double rate, cs_time now)
{
    flow *of = &network->flows[id];
    cs_time rest;
    if (!record_rate(network, of->task, rate, now))
        return CS_NO_MEMORY;
    if (!cs_time_transfer(of->left, rate, &rest) || !cs_time_add(now, rest, &of->end))
        return CS_OVERFLOW;
    return network->announce(network->context, id, of->task, of->end, &of->slot) ? CS_OK
                                                                                 : CS_NO_MEMORY;
}

static inline bool add_arrival(arrival_list *list, uint32_t task, uint32_t what)
{
    if (!cs_vector_reserve((void **)&list->all, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->all)))
        return false;
    list->all[list->n++] = (arrival){task, what};
    return true;
}

/* It is let onto its links when the instant is over, if it is its turn. */
static inline bool note_arrival(cs_network *network, uint32_t id)
{
    return add_arrival(&network->arrivals, network->flows[id].task, id);
}

/* Room for twice as many flows. */
static bool grow_flows(cs_network *network)
{
    const uint64_t capacity = network->cap_flows ? 2 * (uint64_t)network->cap_flows : FIRST_FLOWS;
    flow *grown =
        capacity < UINT32_MAX ? aligned_alloc(CACHE_LINE, capacity * sizeof(*grown)) : NULL;
    if (!grown)
        return false;
    if (network->n_flows > 0)
        memcpy(grown, network->flows, network->n_flows * sizeof(*grown));
    free(network->flows);
    network->flows = grown;
    network->cap_flows = (uint32_t)capacity;
    return true;
}

/* A flow of a task, which comes to its links at `since`. */
static inline bool add_flow(cs_network *network, uint32_t task, uint32_t cls, cs_time since,
                            uint32_t *id)
{
    if (network->spare.n == 0) {
        if ((network->n_flows == network->cap_flows && !grow_flows(network)) ||
            !add(&network->spare, network->n_flows))
            return false;
        network->flows[network->n_flows++] = (flow){0};
    }
    *id = network->spare.ids[--network->spare.n];
    network->flows[*id] = (flow){.task = task,
                                 .cls = cls,
                                 .left = (double)network->routes[cls].bytes,
                                 .since = since,
                                 .end = -1,
                                 .slot = CS_NONE,
                                 .behind = CS_NONE};
    return true;
}

cs_status cs_network_join(cs_network *network, uint32_t task, uint32_t cls, cs_time now)
{
    const uint8_t known = network->routes[cls].known;
    uint32_t id;
    bool enough;
    if (known == CS_KNOWN_LATER)
        enough = add_flow(network, task, cls, now, &id) && note_arrival(network, id);
    else
        enough =
            add_arrival(joins_at_start(known) ? &network->started : &network->known, task, cls);
    return enough ? CS_OK : CS_NO_MEMORY;
}

/* ---- fifo: the oldest message has the link ---- */

static bool leave_queues(cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = links_of(network, &network->flows[id], &n);
    network->n_on_links--;
    for (uint32_t i = 0; i < n; i++) {
        link_state *link = &network->links[links[i]];
        link->head++;
        if (--link->n == 0)
            continue;
        uint32_t first = link->flows[link->head];
        if (--network->flows[first].ahead == 0 && !add(&network->first, first))
            return false;
    }
    return true;
}

static cs_status settle_fifo(cs_network *network, cs_time now)
{
    for (uint32_t i = 0; i < network->arrivals.n; i++) {
        uint32_t id = network->arrivals.all[i].what;
        if (!enter(network, id) || (network->flows[id].ahead == 0 && !add(&network->first, id)))
            return CS_NO_MEMORY;
    }
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < network->first.n && status == CS_OK; i++) {
        uint32_t id = network->first.ids[i];
        status = set_end(network, id, network->routes[network->flows[id].cls].bandwidth, now);
    }
    network->first.n = 0;
    return status;
}

/* ---- count and max_min: all that are on a link share it ---- */

static stream *stream_of(const cs_network *network, const flow *of)
{
    const uint32_t number = network->routes[of->cls].stream;
    return number == CS_NONE ? NULL : &network->streams[number];
}

/* Whether a flow that arrived may go on its links; else it waits for those before it in its
 * stream. */
static bool take_turn(cs_network *network, uint32_t id)
{
    stream *in = stream_of(network, &network->flows[id]);
    if (!in || in->first == id)
        return true;
    const bool alone = in->first == CS_NONE;
    if (alone)
        in->first = id;
    else
        network->flows[in->last].behind = id;
    in->last = id;
    return alone;
}

/* The flow that follows in its stream arrives. */
static bool pass_turn(cs_network *network, const flow *of)
{
    stream *in = stream_of(network, of);
    if (!in)
        return true;
    in->first = of->behind;
    return in->first == CS_NONE || note_arrival(network, in->first);
}

/* ---- messages that are alone on their links ---- */

/* Adds to the users of the links of a class. */
static void count_users(cs_network *network, uint32_t cls, uint32_t more)
{
    const route *way = &network->routes[cls];
    for (uint32_t i = 0; i < way->n_finite; i++)
        network->users[network->route_links[way->first + i]].n += more;
}

/* Gives a message all of its links, or, with an end that is over, takes them from it. */
static inline void give_links(cs_network *network, lone message)
{
    const route *way = &network->routes[message.cls];
    for (uint32_t i = 0; i < way->n_finite; i++)
        network->users[network->route_links[way->first + i]].alone = message;
}

static bool are_free(const cs_network *network, const route *way, cs_time now)
{
    bool free = true;
    for (uint32_t i = 0; i < way->n_finite; i++) {
        const link_users *users = &network->users[network->route_links[way->first + i]];
        free &= users->n == 0 && users->alone.end <= now;
    }
    return free;
}

static cs_status announce(cs_network *network, uint32_t id, cs_time time)
{
    flow *of = &network->flows[id];
    return network->announce(network->context, id, of->task, time, &of->slot) ? CS_OK
                                                                              : CS_NO_MEMORY;
}

/* A message that was alone may be so no longer: it becomes a flow, on its way or at its links as
 * others are. */
static cs_status share_links(cs_network *network, lone message, cs_time now)
{
    uint32_t id;
    if (!add_flow(network, message.task, message.cls, message.since, &id))
        return CS_NO_MEMORY;
    flow *of = &network->flows[id];
    stream *in = stream_of(network, of);
    of->slot = message.slot;
    of->end = message.end;
    message.end = 0;
    give_links(network, message);
    count_users(network, of->cls, 1);
    if (of->since > now) {
        of->place = ON_ITS_WAY;
        of->end = -1;
        return announce(network, id, of->since);
    }
    of->rate = network->routes[of->cls].rate;
    if (in)
        in->first = in->last = id;
    CS_TRY(announce(network, id, of->end)); /* it is the flow's now */
    return enter(network, id) ? CS_OK : CS_NO_MEMORY;
}

static cs_status share_all(cs_network *network, uint32_t cls, cs_time now)
{
    const route *way = &network->routes[cls];
    for (uint32_t i = 0; i < way->n_finite; i++) {
        const lone *alone = &network->users[network->route_links[way->first + i]].alone;
        if (alone->end > now)
            CS_TRY(share_links(network, *alone, now));
    }
    return CS_OK;
}

/* A message starts at `now`, and ends as if it were alone if its links are free. */
static cs_status start_message(cs_network *network, const arrival *message, cs_time now)
{
    const uint32_t task = message->task, cls = message->what;
    const route *way = &network->routes[cls];
    cs_time since, end;
    uint32_t id, slot = CS_NONE;
    if (!cs_time_add(now, way->latency, &since))
        return CS_OVERFLOW;
    if (are_free(network, way, now) && cs_time_add(since, way->alone, &end)) {
        if (!network->announce(network->context, CS_NETWORK_ENDS, task, end, &slot))
            return CS_NO_MEMORY;
        give_links(network, (lone){since, end, task, cls, slot});
        return CS_OK;
    }
    CS_TRY(share_all(network, cls, now));
    count_users(network, cls, 1);
    if (!add_flow(network, task, cls, since, &id))
        return CS_NO_MEMORY;
    network->flows[id].place = ON_ITS_WAY;
    return announce(network, id, since);
}

/* Remembers the links of a flow that have any as changed. */
static bool note_change(cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = links_of(network, &network->flows[id], &n);
    for (uint32_t i = 0; i < n; i++) {
        link_state *link = &network->links[links[i]];
        if (link->n == 0 || link->changed)
            continue;
        if (!add(&network->changed, links[i]))
            return false;
        link->changed = true;
    }
    return true;
}

/* Takes a flow off its links, and remembers those that others are left on as changed. */
static bool leave_links(cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = links_of(network, &network->flows[id], &n);
    id_list *changed = &network->changed;
    network->n_on_links--;
    if (!cs_vector_reserve((void **)&changed->ids, &changed->capacity, changed->n + (uint64_t)n,
                           sizeof(*changed->ids)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        link_state *link = &network->links[links[i]];
        uint32_t at = 0;
        while (link->flows[at] != id)
            at++;
        link->flows[at] = link->flows[--link->n];
        link->load -= weight_of(network, &network->flows[id], i);
        if (link->n == 0 || link->changed)
            continue;
        changed->ids[changed->n++] = links[i];
        link->changed = true;
    }
    return true;
}

/* Whether a link has one flow alone: to that it is a cap, and nothing reaches others over it. */
static inline bool is_cap(const link_state *link)
{
    return link->n == 1;
}

/* Collects the flows on the links of `component`, and with `spread` also the links of those flows
 * that are no caps, their flows, and so on: what a change can reach. */
static bool collect(cs_network *network, bool spread)
{
    network->members.n = 0;
    for (uint32_t i = 0; i < network->component.n; i++) {
        const link_state *link = &network->links[network->component.ids[i]];
        for (uint32_t f = 0; f < link->n; f++) {
            flow *member = &network->flows[link->flows[f]];
            if (member->mark == network->mark)
                continue;
            member->mark = network->mark;
            if (!add(&network->members, link->flows[f]))
                return false;
            uint32_t n;
            const uint32_t *links = links_of(network, member, &n);
            for (uint32_t l = 0; spread && l < n; l++) {
                link_state *reached = &network->links[links[l]];
                if (reached->mark == network->mark)
                    continue;
                reached->mark = network->mark;
                if (!is_cap(reached) && !add(&network->component, links[l]))
                    return false;
            }
        }
    }
    return true;
}

/* Every flow gets its narrowest link's bandwidth over the number of messages on it. */
static void count_rates(cs_network *network)
{
    for (uint32_t i = 0; i < network->members.n; i++) {
        flow *member = &network->flows[network->members.ids[i]];
        uint32_t n;
        const uint32_t *links = links_of(network, member, &n);
        member->next_rate = network->routes[member->cls].cap.share;
        for (uint32_t l = 0; l < n; l++) {
            const link_state *link = &network->links[links[l]];
            member->next_rate = fmin(member->next_rate, link->bandwidth / link->load);
        }
    }
}

/* Puts a candidate where it belongs, from place `at` of the heap on downwards. */
static void sift_down(candidate *heap, uint32_t n, uint32_t at, candidate moved)
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && tighter(heap[child + 1], heap[child]))
            child++;
        if (!tighter(heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* The least share that a cap leaves to a flow; of equal ones that of the lowest link. Infinite: no
 * link is a cap. */
static candidate find_cap(const cs_network *network, uint32_t id)
{
    uint32_t n;
    const flow *member = &network->flows[id];
    const uint32_t *links = links_of(network, member, &n);
    candidate least = network->routes[member->cls].cap;
    for (uint32_t l = 0; l < n; l++) {
        const link_state *link = &network->links[links[l]];
        if (!is_cap(link))
            continue;
        const candidate cap = {link->bandwidth / link->load, links[l], CS_NONE};
        if (tighter(cap, least))
            least = cap;
    }
    least.flow = id;
    return least;
}

static bool list_candidates(cs_network *network)
{
    uint32_t n = 0;
    if (!cs_vector_reserve((void **)&network->candidates, &network->cap_candidates,
                           (uint64_t)network->component.n + network->members.n,
                           sizeof(*network->candidates)))
        return false;
    for (uint32_t i = 0; i < network->component.n; i++) {
        const uint32_t id = network->component.ids[i];
        link_state *link = &network->links[id];
        link->free = link->bandwidth;
        link->unfixed = link->load;
        if (link->n > 1)
            network->candidates[n++] = (candidate){link->free / link->unfixed, id, CS_NONE};
    }
    for (uint32_t i = 0; i < network->members.n; i++) {
        const uint32_t id = network->members.ids[i];
        const candidate cap = find_cap(network, id);
        network->flows[id].next_rate = -1;
        if (cap.link != CS_NONE)
            network->candidates[n++] = cap;
    }
    network->n_candidates = n;
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(network->candidates, n, i, network->candidates[i]);
    return true;
}

/* The link that gives the least to each of its flows that have no rate yet, and how much. Shares in
 * the heap are brought up to date when they come to the top; that of a cap does not change. There
 * must be flows without a rate. */
static candidate tightest(cs_network *network)
{
    candidate *heap = network->candidates;
    for (;;) {
        candidate top = heap[0];
        assert(network->n_candidates > 0);
        if (top.flow != CS_NONE) {
            if (network->flows[top.flow].next_rate < 0)
                return top;
            top = heap[--network->n_candidates];
        } else if (network->links[top.link].unfixed > 0) {
            const link_state *link = &network->links[top.link];
            const double share = link->free / link->unfixed;
            if (share <= top.share)
                return (candidate){share, top.link, CS_NONE};
            top.share = share;
        } else {
            top = heap[--network->n_candidates];
        }
        sift_down(heap, network->n_candidates, 0, top);
    }
}

/* As fmax, without the call. */
static inline double at_least_0(double value)
{
    return value > 0 ? value : 0;
}

static void fix_rate(cs_network *network, flow *member, double rate)
{
    uint32_t n;
    const uint32_t *links = links_of(network, member, &n);
    member->next_rate = rate;
    for (uint32_t l = 0; l < n; l++) {
        link_state *link = &network->links[links[l]];
        if (is_cap(link))
            continue;
        const uint32_t weight = weight_of(network, member, l);
        link->free = at_least_0(link->free - rate * weight);
        link->unfixed -= weight;
    }
}

/* The share that all flows of the component get where its tightest link has all of them, and gives
 * each less than it could have alone; of links that are equally tight, each must. Else 0. */
static double find_common_share(const cs_network *network)
{
    double share = INFINITY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < network->component.n; i++) {
        const link_state *link = &network->links[network->component.ids[i]];
        const double gives = link->bandwidth / link->load;
        if (gives > share)
            continue;
        n = gives < share || link->n < n ? link->n : n;
        share = gives;
    }
    bool common = network->has_shortcuts && n == network->members.n;
    for (uint32_t i = 0; i < network->members.n && common; i++)
        common = share < network->routes[network->flows[network->members.ids[i]].cls].rate;
    return common ? share : 0;
}

/* Progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2): the tightest link fixes the
 * rates of its flows, which leaves the others less to share among fewer. A component of L links and
 * F flows of at most R links takes O(L + F * R * log L), for a link's share is looked at again only
 * after one of its flows got a rate. Links that one flow has for itself count with their least
 * share only, and once all flows have a rate the rest is not looked at: neither changes a rate.
 */
static bool max_min_rates(cs_network *network)
{
    if (network->component.n == 1 && network->members.n == 1) { /* all of its links are caps */
        const uint32_t alone = network->members.ids[0];
        network->flows[alone].next_rate = find_cap(network, alone).share;
        return true;
    }
    if (!list_candidates(network))
        return false;
    for (uint32_t left = network->members.n; left > 0;) {
        const candidate top = tightest(network);
        const link_state *link = &network->links[top.link];
        const uint32_t *flows = top.flow != CS_NONE ? &top.flow : link->flows;
        const uint32_t n = top.flow != CS_NONE ? 1 : link->n;
        for (uint32_t f = 0; f < n; f++) {
            flow *member = &network->flows[flows[f]];
            if (member->next_rate >= 0)
                continue;
            fix_rate(network, member, top.share);
            left--;
        }
    }
    return true;
}

static cs_status set_rate(cs_network *network, uint32_t id, double rate, cs_time now)
{
    flow *of = &network->flows[id];
    if (rate == of->rate)
        return CS_OK;
    if (of->rate > 0)
        of->left = at_least_0(of->left - of->rate * cs_time_seconds(now - of->since));
    of->since = now;
    of->rate = rate;
    return set_end(network, id, rate, now);
}

static cs_status set_rates(cs_network *network, cs_time now)
{
    for (uint32_t i = 0; i < network->members.n; i++) {
        const uint32_t id = network->members.ids[i];
        CS_TRY(set_rate(network, id, network->flows[id].next_rate, now));
    }
    return CS_OK;
}

static cs_status share_alike(cs_network *network, double share, cs_time now)
{
    for (uint32_t i = 0; i < network->members.n; i++)
        CS_TRY(set_rate(network, network->members.ids[i], share, now));
    return CS_OK;
}

static cs_status settle_around(cs_network *network, uint32_t link, cs_time now)
{
    bool max_min = network->sharing == CS_SHARING_MAX_MIN;
    network->component.n = 0;
    network->links[link].mark = network->mark;
    if (!add(&network->component, link) || !collect(network, max_min))
        return CS_NO_MEMORY;
    const double share = max_min ? find_common_share(network) : 0;
    if (share > 0)
        return share_alike(network, share, now);
    if (!max_min)
        count_rates(network);
    else if (!max_min_rates(network))
        return CS_NO_MEMORY;
    return set_rates(network, now);
}

/* ---- rounds ---- */

/* Whether the flows that arrived are all that is on links, and none waits for its turn or counts as
 * the only user of its links. */
static bool is_round(const cs_network *network)
{
    bool is = network->has_shortcuts && network->n_on_links == 0 && network->arrivals.n > 1;
    for (uint32_t i = 0; is && i < network->arrivals.n; i++) {
        const route *way = &network->routes[network->flows[network->arrivals.all[i].what].cls];
        is = way->stream == CS_NONE && way->known == CS_KNOWN_LATER;
    }
    return is;
}

/* Whether the last round that was solved was of the same classes. What flows get depends on the
 * classes and on their order alone. */
static bool is_known_round(const cs_network *network)
{
    const arrival_list *list = &network->arrivals;
    bool same = network->n_shares == list->n;
    for (uint32_t i = 0; same && i < list->n; i++)
        same = network->flows[list->all[i].what].cls == network->shares[i].cls;
    return same;
}

static bool keep_round(cs_network *network, cs_time now)
{
    const arrival_list *list = &network->arrivals;
    if (!cs_vector_reserve((void **)&network->shares, &network->cap_shares, list->n,
                           sizeof(*network->shares)))
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const flow *of = &network->flows[list->all[i].what];
        network->shares[i] = (round_share){of->cls, of->rate, of->end - now};
    }
    network->n_shares = list->n;
    return true;
}

/* The flows of a known round get their rates, and stay apart from the links' lists; from these all
 * that was there is gone. */
static cs_status begin_round(cs_network *network, cs_time now)
{
    for (uint32_t i = 0; i < network->changed.n; i++)
        network->links[network->changed.ids[i]].changed = false;
    network->changed.n = 0;
    for (uint32_t i = 0; i < network->arrivals.n; i++) {
        const uint32_t id = network->arrivals.all[i].what;
        flow *of = &network->flows[id];
        of->place = IN_ROUND;
        of->rate = network->shares[i].rate;
        of->since = now;
        if (!cs_time_add(now, network->shares[i].time, &of->end))
            return CS_OVERFLOW;
        if (!add(&network->round, id))
            return CS_NO_MEMORY;
        CS_TRY(announce(network, id, of->end));
    }
    return CS_OK;
}

/* Something happens while a round is under way: where not all of it is over, its flows go on their
 * links' lists after all, and those that ended leave them. */
static bool end_round(cs_network *network)
{
    const bool over = network->gone.n == network->round.n;
    for (uint32_t i = 0; i < network->round.n && !over; i++) {
        network->flows[network->round.ids[i]].place = AT_LINKS;
        if (!enter(network, network->round.ids[i]))
            return false;
    }
    for (uint32_t i = 0; i < network->gone.n; i++) {
        const uint32_t id = network->gone.ids[i];
        if ((!over && !leave_links(network, id)) || !add(&network->spare, id))
            return false;
    }
    network->round.n = network->gone.n = 0;
    return true;
}

/* ---- settling ---- */

/* Whether a flow is alone on its links: then it is a component, whose rate is known. */
static bool is_lone(const cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = links_of(network, &network->flows[id], &n);
    bool is = network->has_shortcuts;
    for (uint32_t i = 0; i < n && is; i++)
        is = is_cap(&network->links[links[i]]);
    return is;
}

/* The same of a flow that arrives: the only one that does knows it from its links' lists. */
static inline bool arrives_alone(const cs_network *network, uint32_t id)
{
    return network->arrivals.n == 1 ? network->has_shortcuts && network->flows[id].ahead == 0
                                    : is_lone(network, id);
}

static cs_status set_rate_of_lone(cs_network *network, uint32_t id, cs_time now)
{
    return set_rate(network, id, network->routes[network->flows[id].cls].rate, now);
}

/* The same when it arrives, with all of its bytes: what they take is known from the start, if it
 * fits. */
static cs_status start_lone(cs_network *network, uint32_t id, cs_time now)
{
    flow *of = &network->flows[id];
    const route *way = &network->routes[of->cls];
    if (way->alone == 0)
        return set_rate_of_lone(network, id, now);
    of->rate = way->rate;
    of->since = now;
    return cs_time_add(now, way->alone, &of->end) ? announce(network, id, of->end) : CS_OVERFLOW;
}

/* Puts the flows that arrived on their links; those that wait for their turn are dropped from the
 * list. */
static bool enter_all(cs_network *network)
{
    arrival_list *list = &network->arrivals;
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        if (!take_turn(network, list->all[i].what))
            continue;
        if (!enter(network, list->all[i].what))
            return false;
        list->all[n++] = list->all[i];
    }
    list->n = n;
    return true;
}

static cs_status settle_changed(cs_network *network, cs_time now)
{
    if (!enter_all(network))
        return CS_NO_MEMORY;
    for (uint32_t i = 0; i < network->arrivals.n; i++) {
        const uint32_t id = network->arrivals.all[i].what;
        if (arrives_alone(network, id))
            CS_TRY(start_lone(network, id, now));
        else if (!note_change(network, id))
            return CS_NO_MEMORY;
    }
    network->mark++;
    for (uint32_t i = 0; i < network->changed.n; i++) {
        const uint32_t id = network->changed.ids[i];
        link_state *link = &network->links[id];
        link->changed = false;
        if (link->mark == network->mark || link->n == 0)
            continue; /* in a component that was just done, or in none */
        if (is_cap(link) && is_lone(network, link->flows[0]))
            CS_TRY(set_rate_of_lone(network, link->flows[0], now));
        else
            CS_TRY(settle_around(network, id, now));
    }
    network->changed.n = 0;
    return CS_OK;
}

static cs_status settle_shares(cs_network *network, cs_time now)
{
    if (network->round.n > 0 && !end_round(network))
        return CS_NO_MEMORY;
    const bool round = is_round(network);
    if (round && is_known_round(network))
        return begin_round(network, now);
    CS_TRY(settle_changed(network, now));
    return !round || keep_round(network, now) ? CS_OK : CS_NO_MEMORY;
}

/* ---- both ---- */

/* A flow comes to its links: it is let onto them when the instant is over. */
static cs_status arrive(cs_network *network, uint32_t id)
{
    flow *of = &network->flows[id];
    of->place = AT_LINKS;
    of->slot = CS_NONE;
    return note_arrival(network, id) ? CS_OK : CS_NO_MEMORY;
}

cs_status cs_network_end(cs_network *network, uint32_t id, cs_time now, bool *ended)
{
    const flow *of = &network->flows[id];
    *ended = of->place != ON_ITS_WAY;
    if (!*ended)
        return arrive(network, id);
    assert(of->end == now);
    if (of->place == IN_ROUND)
        return add(&network->gone, id) ? CS_OK : CS_NO_MEMORY;
    if (!add(&network->spare, id) || !record_rate(network, of->task, 0, now))
        return CS_NO_MEMORY;
    if (network->sharing == CS_SHARING_FIFO)
        return leave_queues(network, id) ? CS_OK : CS_NO_MEMORY;
    if (network->routes[of->cls].known == CS_KNOWN_IF_ALONE)
        count_users(network, of->cls, UINT32_MAX);
    return leave_links(network, id) && pass_turn(network, of) ? CS_OK : CS_NO_MEMORY;
}

static int compare_arrivals(const void *left, const void *right)
{
    const arrival *a = left, *b = right;
    return a->task < b->task ? -1 : a->task > b->task;
}

/* By task, as most of them come. */
static inline void sort_arrivals(arrival_list *list)
{
    for (uint32_t i = 1; i < list->n; i++) {
        if (list->all[i - 1].task <= list->all[i].task)
            continue;
        qsort(list->all, list->n, sizeof(*list->all), compare_arrivals);
        return;
    }
}

/* A message whose end is known comes to its links at `now`, after all that came before it: it
 * starts when the last of them is free. What ends too late is an error of that instant, not of
 * this. */
static cs_status serve(cs_network *network, const arrival *message, cs_time now)
{
    const route *way = &network->routes[message->what];
    const uint32_t *links = network->route_links + way->first;
    cs_time start, end = CS_TIME_MAX;
    if (!cs_time_add(now, way->known == CS_KNOWN_AT_START ? way->latency : 0, &start))
        return CS_OVERFLOW;
    for (uint32_t i = 0; i < way->n_finite; i++)
        start = network->free_at[links[i]] > start ? network->free_at[links[i]] : start;
    const bool fits = cs_time_add(start, way->alone, &end);
    for (uint32_t i = 0; i < way->n_finite; i++)
        network->free_at[links[i]] = end;
    uint32_t slot = CS_NONE;
    return network->announce(network->context, fits ? CS_NETWORK_ENDS : CS_NETWORK_OVERFLOWS,
                             message->task, fits ? end : start, &slot)
               ? CS_OK
               : CS_NO_MEMORY;
}

static cs_status serve_known(cs_network *network, cs_time now)
{
    arrival_list *list = &network->known;
    cs_status status = CS_OK;
    sort_arrivals(list);
    for (uint32_t i = 0; i < list->n && status == CS_OK; i++)
        status = serve(network, &list->all[i], now);
    list->n = 0;
    return status;
}

cs_status cs_network_settle(cs_network *network, cs_time now)
{
    if (network->known.n > 0)
        CS_TRY(serve_known(network, now));
    if (network->arrivals.n == 0 && network->changed.n == 0 && network->first.n == 0 &&
        network->gone.n == 0)
        return CS_OK;
    sort_arrivals(&network->arrivals);
    cs_status status = network->sharing == CS_SHARING_FIFO ? settle_fifo(network, now)
                                                           : settle_shares(network, now);
    network->arrivals.n = 0;
    return status;
}

cs_status cs_network_leave(cs_network *network, cs_time now)
{
    const arrival_list *list = &network->started;
    cs_status status = CS_OK;
    if (list->n == 0)
        return CS_OK;
    sort_arrivals(&network->started);
    for (uint32_t i = 0; i < list->n && status == CS_OK; i++)
        status = network->routes[list->all[i].what].known == CS_KNOWN_IF_ALONE
                     ? start_message(network, &list->all[i], now)
                     : serve(network, &list->all[i], now);
    network->started.n = 0;
    return status;
}
