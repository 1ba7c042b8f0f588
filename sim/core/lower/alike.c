#include "sim/core/lower/alike.h"

#include "sim/base/units.h"
#include "sim/core/graph/fold-list.h"
#include "topologies/route.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- collectives ---- */

/* Whether the group does the same as `other`, rank by rank. */
static bool stands_for_group(const cs_graph *graph, uint32_t group, uint32_t other)
{
    const cs_group *of = &graph->groups[group];
    const uint32_t device =
        cs_graph_stand_in(graph, graph->group_devices[graph->groups[other].first]);
    for (uint32_t rank = 0; rank < of->n; rank++)
        if (graph->group_devices[of->first + rank] == device)
            return true;
    return false;
}

static void note_unlike(const cs_graph *graph, const cs_class *cls, cs_time own, cs_time other,
                        uint32_t group, char unlike[CS_UNLIKE_BYTES])
{
    const uint32_t device = graph->group_devices[graph->groups[group].first];
    char times[2][CS_UNITS_TEXT_BYTES];
    const cs_time both[] = {own, other};
    for (size_t i = 0; i < 2; i++)
        cs_units_format(cs_time_seconds(both[i]), CS_QUANTITY_TIME, 6, times[i], sizeof(times[i]));
    snprintf(unlike, CS_UNLIKE_BYTES,
             "the %s of stage %u takes %s with device %u, but %s with device %u",
             cs_kind_name(cls->kind), cls->stage, times[0], cs_graph_stand_in(graph, device),
             times[1], device);
}

static cs_status compare_groups(cs_prices *prices, const cs_class *cls, cs_way *way,
                                char unlike[CS_UNLIKE_BYTES], cs_error *error)
{
    const cs_graph *graph = prices->graph;
    const cs_time own = way->cost;
    cs_time hidden = way->hidden;
    cs_relatives family;
    CS_TRY(cs_prices_family(prices, way->group, &way->collective, way->algorithm, &family, error));
    for (uint32_t i = 0; i < family.n; i++) {
        const uint32_t other = family.groups[i];
        cs_time cost = family.costs[i];
        CS_TRY(cs_way_delay(prices->options, way, &cost, error));
        if (cost == own || !stands_for_group(graph, way->group, other))
            continue;
        if (!*unlike)
            note_unlike(graph, cls, own, cost, other, unlike);
        hidden = cost > way->cost ? way->hidden : hidden;
        way->cost = cost > way->cost ? cost : way->cost;
    }
    way->hidden = hidden;
    return CS_OK;
}

/* ---- messages between stages ---- */

typedef struct messages {
    const cs_prices *prices;
    cs_fold_list fold;
    uint32_t *way; /* buffer for one route */
    /* per link: number of messages on it that one simulated message stands for; 0 between calls */
    uint32_t *count;
    uint32_t *last;   /* per device: last class that sends from it, or CS_NONE */
    uint32_t *before; /* per class: previous class with the same sender, or CS_NONE */
} messages;

/* What a message meets on its route: its latency, and the time per byte on the slowest link. */
typedef struct passage {
    cs_time latency;
    double byte_time;
    bool shared;
} passage;

static cs_status find_route(const messages *m, const cs_class *cls, uint32_t k, cs_route *route,
                            cs_error *error)
{
    const uint32_t *devices = m->fold.devices, *first = m->fold.first;
    return cs_route_find(m->prices->platform, devices[first[cls->device] + k],
                         devices[first[cls->peer] + k], m->way, route, error);
}

static cs_status find_passage(const messages *m, const cs_class *cls, uint32_t k, passage *out,
                              cs_error *error)
{
    const cs_platform *platform = m->prices->platform;
    const bool meets = cs_links_are_contended(platform);
    cs_route route;
    CS_TRY(find_route(m, cls, k, &route, error));
    *out = (passage){.latency = route.latency};
    for (uint32_t i = 0; i < route.n; i++) {
        const double bandwidth = platform->links[m->way[i]].bandwidth;
        const uint32_t n = meets && isfinite(bandwidth) ? m->count[m->way[i]] : 1;
        out->byte_time = fmax(out->byte_time, n / bandwidth);
        out->shared |= n > 1;
    }
    return CS_OK;
}

/* Adds all messages that one stands for to the counts of their links, or clears these counts. */
static cs_status count_all(messages *m, const cs_class *cls, bool clear, cs_error *error)
{
    for (uint32_t k = 0; k < cs_fold_count(&m->fold, cls->device); k++) {
        cs_route route;
        CS_TRY(find_route(m, cls, k, &route, error));
        for (uint32_t i = 0; i < route.n; i++)
            m->count[m->way[i]] = clear ? 0 : m->count[m->way[i]] + 1;
    }
    return CS_OK;
}

static cs_status compare_passages(messages *m, const cs_class *cls, char unlike[CS_UNLIKE_BYTES],
                                  cs_error *error)
{
    const uint32_t *devices = m->fold.devices, *first = m->fold.first;
    passage own = {0}, other;
    uint32_t self = 0;
    while (devices[first[cls->device] + self] != cls->device)
        self++;
    CS_TRY(find_passage(m, cls, self, &own, error));
    if (own.shared && m->prices->platform->sharing == CS_SHARING_FIFO) {
        snprintf(
            unlike, CS_UNLIKE_BYTES,
            "messages of stage %u from device %u and from those that it stands for wait for each "
            "other (fifo)",
            cls->stage, cls->device);
        return CS_OK;
    }
    for (uint32_t k = 0; k < cs_fold_count(&m->fold, cls->device); k++) {
        CS_TRY(find_passage(m, cls, k, &other, error));
        const bool same = other.latency == own.latency && other.byte_time <= own.byte_time &&
                          other.byte_time >= own.byte_time;
        if (same && devices[first[cls->peer] + self] == cls->peer)
            continue;
        snprintf(unlike, CS_UNLIKE_BYTES,
                 "messages of stage %u from device %u to device %u and from device %u to device %u "
                 "take different times",
                 cls->stage, cls->device, cls->peer, devices[first[cls->device] + k],
                 devices[first[cls->peer] + k]);
        return CS_OK;
    }
    return CS_OK;
}

/* Whether a message between the same two devices has been compared already. */
static bool is_known(messages *m, uint32_t id)
{
    const cs_class *cls = &m->prices->graph->classes[id];
    uint32_t same = m->last[cls->device];
    while (same != CS_NONE && m->prices->graph->classes[same].peer != cls->peer)
        same = m->before[same];
    m->before[id] = m->last[cls->device];
    m->last[cls->device] = id;
    return same != CS_NONE;
}

static cs_status compare_messages(messages *m, char unlike[CS_UNLIKE_BYTES], cs_error *error)
{
    const cs_graph *graph = m->prices->graph;
    for (uint32_t i = 0; i < graph->n_classes && !*unlike; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind != CS_TRANSFER || cls->device == cls->peer || is_known(m, i))
            continue;
        CS_TRY(count_all(m, cls, false, error));
        CS_TRY(compare_passages(m, cls, unlike, error));
        CS_TRY(count_all(m, cls, true, error));
    }
    return CS_OK;
}

static void release(messages *m)
{
    cs_fold_list_finish(&m->fold);
    free(m->way);
    free(m->count);
    free(m->last);
    free(m->before);
}

static cs_status find_in_messages(cs_prices *prices, char unlike[CS_UNLIKE_BYTES], cs_error *error)
{
    const cs_graph *graph = prices->graph;
    const cs_platform *platform = prices->platform;
    messages m = {
        .prices = prices,
        .way = malloc(((size_t)platform->longest_route + 1) * sizeof(*m.way)),
        .count = calloc((size_t)platform->n_links + 1, sizeof(*m.count)),
        .last = malloc(((size_t)graph->n_devices + 1) * sizeof(*m.last)),
        .before = malloc(((size_t)graph->n_classes + 1) * sizeof(*m.before)),
    };
    cs_status status = m.way && m.count && m.last && m.before
                           ? cs_fold_list_init(&m.fold, graph, error)
                           : cs_error_no_memory(error);
    if (status == CS_OK) {
        memset(m.last, 0xff, graph->n_devices * sizeof(*m.last));
        status = compare_messages(&m, unlike, error);
    }
    release(&m);
    return status;
}

cs_status cs_alike_find(cs_prices *prices, cs_way *const *ways, char unlike[CS_UNLIKE_BYTES],
                        cs_error *error)
{
    const cs_graph *graph = prices->graph;
    *unlike = '\0';
    for (uint32_t i = 0; i < graph->n_classes; i++)
        if (ways[i] && !ways[i]->measured)
            CS_TRY(compare_groups(prices, &graph->classes[i], ways[i], unlike, error));
    return *unlike ? CS_OK : find_in_messages(prices, unlike, error);
}
