#include "topologies/fabric.h"

#include "sim/base/vector.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE CS_FABRIC_NONE

typedef struct vertex {
    char name[CS_FABRIC_NAME_BYTES];
    cs_vertex_kind kind;
} vertex;

typedef struct edge {
    uint32_t from, to;
    double bandwidth;
    cs_time latency;
    bool peer;
} edge;

/* A route that was given explicitly. */
typedef struct given {
    uint32_t source, target;
    uint32_t first, n; /* slice of given_links */
} given;

struct cs_fabric {
    const char *topology;
    vertex *vertices;
    edge *edges;
    given *given;
    uint32_t *given_links;
    uint32_t n_vertices, cap_vertices, n_edges, cap_edges;
    uint32_t n_given, cap_given, n_given_links, cap_given_links;
    cs_status status;
};

/* Routes. */
typedef struct layout {
    uint32_t n_terminals;
    uint32_t
        *next[2]; /* over the other links, over peer links: at [target * n_vertices + vertex] the
                        * link to take, or NONE */
    uint32_t *through; /* per vertex: its link to itself, or NONE */
    /* at [source * n_terminals + target]: index in `given_links` of the route, preceded by its
     * length, or NONE; NULL: no given routes */
    uint32_t *given;
    uint32_t *given_links;
} layout;

/* ---- drawing ---- */

cs_fabric *cs_fabric_create(const char *topology)
{
    cs_fabric *net = calloc(1, sizeof(*net));
    if (net)
        net->topology = topology;
    return net;
}

void cs_fabric_destroy(cs_fabric *net)
{
    if (!net)
        return;
    free(net->vertices);
    free(net->edges);
    free(net->given);
    free(net->given_links);
    free(net);
}

static bool room(cs_fabric *net, void **data, uint32_t *capacity, uint32_t length, size_t size)
{
    if (!net || net->status != CS_OK)
        return false;
    if (!cs_vector_reserve(data, capacity, length + UINT64_C(1), size))
        net->status = CS_NO_MEMORY;
    return net->status == CS_OK;
}

uint32_t cs_fabric_vertex(cs_fabric *net, cs_vertex_kind kind, const char *format, ...)
{
    if (!net || !room(net, (void **)&net->vertices, &net->cap_vertices, net->n_vertices,
                      sizeof(*net->vertices)))
        return NONE;
    vertex *made = &net->vertices[net->n_vertices];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(made->name, sizeof(made->name), format, arguments);
    va_end(arguments);
    made->kind = kind;
    return net->n_vertices++;
}

void cs_fabric_link(cs_fabric *net, uint32_t from, uint32_t to, double bandwidth, cs_time latency,
                    bool peer)
{
    if (from == NONE || to == NONE || !net ||
        !room(net, (void **)&net->edges, &net->cap_edges, net->n_edges, sizeof(*net->edges)))
        return;
    net->edges[net->n_edges++] = (edge){from, to, bandwidth, latency, peer};
}

void cs_fabric_links(cs_fabric *net, uint32_t from, uint32_t to, double bandwidth, cs_time latency,
                     bool peer)
{
    cs_fabric_link(net, from, to, bandwidth, latency, peer);
    cs_fabric_link(net, to, from, bandwidth, latency, peer);
}

bool cs_fabric_leads(const cs_fabric *net, uint32_t source, uint32_t target, const uint32_t *links,
                     uint32_t n)
{
    uint32_t at = source;
    for (uint32_t i = 0; i < n; i++) {
        if (links[i] >= net->n_edges || net->edges[links[i]].from != at)
            return false;
        at = net->edges[links[i]].to;
    }
    return at == target;
}

void cs_fabric_route(cs_fabric *net, uint32_t source, uint32_t target, const uint32_t *links,
                     uint32_t n)
{
    if (!net ||
        !room(net, (void **)&net->given, &net->cap_given, net->n_given, sizeof(*net->given)))
        return;
    assert(cs_fabric_leads(net, source, target, links, n));
    net->given[net->n_given++] = (given){source, target, net->n_given_links, n};
    for (uint32_t i = 0; i < n; i++) {
        if (!room(net, (void **)&net->given_links, &net->cap_given_links, net->n_given_links,
                  sizeof(*net->given_links)))
            return;
        net->given_links[net->n_given_links++] = links[i];
    }
}

uint32_t cs_fabric_count(const cs_fabric *net, cs_vertex_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; net && i < net->n_vertices; i++)
        n += net->vertices[i].kind == kind;
    return n;
}

/* ---- routes ---- */

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    const layout *l = platform->layout;
    const size_t row = (size_t)target * platform->n_vertices;
    const uint32_t kept = l->given ? l->given[(size_t)source * l->n_terminals + target] : NONE;
    if (kept != NONE) {
        memcpy(links, l->given_links + kept + 1, l->given_links[kept] * sizeof(*links));
        return l->given_links[kept];
    }
    const uint32_t *next = l->next[1] + row;
    if (next[source] == NONE)
        next = l->next[0] + row;
    uint32_t n = 0;
    for (uint32_t at = source; at != target;) {
        if (at != source && l->through[at] != NONE)
            links[n++] = l->through[at];
        links[n++] = next[at];
        at = platform->links[next[at]].to;
    }
    return n;
}

/* Working memory of the search for routes to one target. */
typedef struct search {
    const cs_platform *platform;
    const layout *l;
    uint32_t *into, *first_into; /* links sorted by the vertex where they end */
    uint32_t *from, *first_from; /* links sorted by the vertex where they start */
    uint32_t *queue, n_queue;    /* vertices in order of distance */
    uint32_t *distance, *relays; /* per vertex: links to the target, devices in between */
    /* per vertex: bandwidth of the narrowest link to the target, bytes/s */
    double *width;
    uint32_t longest; /* links of the longest route */
} search;

static bool passes_on(const cs_vertex *at, bool peer)
{
    return at->kind != CS_VERTEX_NIC && (peer || at->kind != CS_VERTEX_GPU);
}

static void find_distances(search *s, uint32_t target, bool peer)
{
    const cs_platform *p = s->platform;
    memset(s->distance, 0xff, p->n_vertices * sizeof(*s->distance));
    s->distance[target] = 0;
    s->queue[0] = target;
    s->n_queue = 1;
    for (uint32_t head = 0; head < s->n_queue; head++) {
        const uint32_t at = s->queue[head];
        if (at != target && !passes_on(&p->vertices[at], peer))
            continue;
        for (uint32_t i = s->first_into[at]; i < s->first_into[at + 1]; i++) {
            const cs_link *link = &p->links[s->into[i]];
            if (link->peer != peer || s->distance[link->from] != NONE)
                continue;
            s->distance[link->from] = s->distance[at] + 1;
            s->queue[s->n_queue++] = link->from;
        }
    }
}

/* Quality of a shortest route: devices that forward, and the narrowest link. */
typedef struct way {
    uint32_t relays;
    double width;
} way;

static bool is_better(way a, way b)
{
    return a.relays < b.relays || (a.relays == b.relays && a.width > b.width);
}

/* Whether a link begins a shortest route to the target; *out is the route's quality. */
static bool leads_on(const search *s, const cs_link *link, uint32_t target, bool peer, way *out)
{
    const uint32_t on = link->to;
    if (link->peer != peer || link->from == on || s->distance[on] == NONE ||
        s->distance[on] + 1 != s->distance[link->from])
        return false;
    *out = (way){s->relays[on], fmin(link->bandwidth, s->width[on])};
    if (on == target)
        return true;
    out->relays += s->platform->vertices[on].kind == CS_VERTEX_GPU;
    if (s->l->through[on] != NONE)
        out->width = fmin(out->width, s->platform->links[s->l->through[on]].bandwidth);
    return passes_on(&s->platform->vertices[on], peer);
}

/* Chooses one of the n first links of the best shortest routes from `at`: number target % n. */
static uint32_t choose_link(search *s, uint32_t at, uint32_t target, bool peer)
{
    const uint32_t *links = s->from + s->first_from[at];
    const uint32_t n = s->first_from[at + 1] - s->first_from[at];
    way best = {.relays = NONE}, one;
    uint32_t equal = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!leads_on(s, &s->platform->links[links[i]], target, peer, &one) || is_better(best, one))
            continue;
        equal = is_better(one, best) ? 1 : equal + 1;
        best = one;
    }
    assert(equal > 0); /* a vertex with a distance has such a link */
    s->relays[at] = best.relays;
    s->width[at] = best.width;
    uint32_t skip = target % equal, chosen = NONE;
    for (uint32_t i = 0; i < n && chosen == NONE; i++)
        if (leads_on(s, &s->platform->links[links[i]], target, peer, &one) &&
            !is_better(best, one) && skip-- == 0)
            chosen = links[i];
    return chosen;
}

static void find_ways(search *s, uint32_t target, bool peer, uint32_t most_relays)
{
    const cs_platform *p = s->platform;
    uint32_t *next = s->l->next[peer] + (size_t)target * p->n_vertices;
    find_distances(s, target, peer);
    memset(next, 0xff, p->n_vertices * sizeof(*next));
    s->width[target] = INFINITY;
    s->relays[target] = 0;
    for (uint32_t i = 1; i < s->n_queue; i++) {
        const uint32_t at = s->queue[i];
        next[at] = choose_link(s, at, target, peer);
    }
    for (uint32_t i = 1; i < s->n_queue; i++)
        if (s->relays[s->queue[i]] > most_relays)
            next[s->queue[i]] = NONE;
}

/* Sorts the links by their start or their end. */
static void sort_links(const cs_platform *p, bool by_target, uint32_t *links, uint32_t *first)
{
    memset(first, 0, ((size_t)p->n_vertices + 1) * sizeof(*first));
    for (uint32_t i = 0; i < p->n_links; i++)
        first[by_target ? p->links[i].to : p->links[i].from]++;
    uint32_t end = 0;
    for (uint32_t v = 0; v <= p->n_vertices; v++) {
        end += v < p->n_vertices ? first[v] : 0;
        first[v] = end;
    }
    for (uint32_t i = p->n_links; i-- > 0;)
        links[--first[by_target ? p->links[i].to : p->links[i].from]] = i;
}

static bool reserve_search(search *s)
{
    const size_t v = (size_t)s->platform->n_vertices + 1, e = (size_t)s->platform->n_links + 1;
    s->into = malloc(e * sizeof(*s->into));
    s->from = malloc(e * sizeof(*s->from));
    s->first_into = malloc(v * sizeof(*s->first_into));
    s->first_from = malloc(v * sizeof(*s->first_from));
    s->queue = malloc(v * sizeof(*s->queue));
    s->distance = malloc(v * sizeof(*s->distance));
    s->relays = malloc(v * sizeof(*s->relays));
    s->width = malloc(v * sizeof(*s->width));
    return s->into && s->from && s->first_into && s->first_from && s->queue && s->distance &&
           s->relays && s->width;
}

static void release_search(search *s)
{
    free(s->into);
    free(s->from);
    free(s->first_into);
    free(s->first_from);
    free(s->queue);
    free(s->distance);
    free(s->relays);
    free(s->width);
}

static cs_status check_pairs(search *s, uint32_t target, cs_error *error)
{
    const cs_platform *p = s->platform;
    const size_t row = (size_t)target * p->n_vertices;
    for (uint32_t source = 0; source < s->l->n_terminals; source++) {
        if (source == target ||
            (s->l->given && s->l->given[(size_t)source * s->l->n_terminals + target] != NONE))
            continue;
        if (s->l->next[0][row + source] == NONE && s->l->next[1][row + source] == NONE)
            return cs_error_add(error, CS_INVALID,
                                "topology %s: there is no route from \"%s\" to \"%s\"", p->topology,
                                p->vertices[source].name, p->vertices[target].name);
        const uint32_t *next = s->l->next[s->l->next[1][row + source] != NONE] + row;
        uint32_t length = 0;
        for (uint32_t at = source; at != target; at = p->links[next[at]].to)
            length += 1 + (at != source && s->l->through[at] != NONE);
        s->longest = length > s->longest ? length : s->longest;
    }
    return CS_OK;
}

/* ---- the platform ---- */

/* Stores the given routes between terminals. */
static cs_status keep_given(const cs_fabric *net, const uint32_t *places, cs_platform *platform,
                            layout *l, cs_error *error)
{
    const size_t pairs = (size_t)l->n_terminals * l->n_terminals;
    if (net->n_given == 0)
        return CS_OK;
    l->given = cs_arena_alloc(&platform->arena, pairs, sizeof(*l->given));
    l->given_links = cs_arena_alloc(&platform->arena, (size_t)net->n_given + net->n_given_links,
                                    sizeof(*l->given_links));
    if (!l->given || !l->given_links)
        return cs_error_no_memory(error);
    memset(l->given, 0xff, pairs * sizeof(*l->given));
    uint32_t used = 0;
    for (uint32_t i = 0; i < net->n_given; i++) {
        const given *of = &net->given[i];
        const uint32_t source = places[of->source], target = places[of->target];
        if (source >= l->n_terminals || target >= l->n_terminals || source == target)
            continue;
        l->given[(size_t)source * l->n_terminals + target] = used;
        l->given_links[used++] = of->n;
        for (uint32_t k = 0; k < of->n; k++)
            l->given_links[used++] = net->given_links[of->first + k];
        if (of->n > platform->longest_route)
            platform->longest_route = of->n;
    }
    return CS_OK;
}

static cs_status make_layout(const cs_fabric *net, const uint32_t *places, uint32_t relays,
                             cs_platform *platform, cs_error *error)
{
    layout *l = cs_arena_alloc(&platform->arena, 1, sizeof(*l));
    const uint64_t terminals = (uint64_t)platform->n_devices + platform->n_ports;
    const uint64_t cells = terminals * platform->n_vertices;
    if (cells > UINT32_MAX / 8)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: %" PRIu64 " devices and ports among %" PRIu32
                            " vertices are too many for stored routes",
                            platform->topology, terminals, platform->n_vertices);
    uint32_t *tables = cs_arena_alloc(&platform->arena, 2 * cells, sizeof(*tables));
    uint32_t *through = cs_arena_alloc(&platform->arena, platform->n_vertices, sizeof(*through));
    if (!l || !tables || !through)
        return cs_error_no_memory(error);
    memset(through, 0xff, platform->n_vertices * sizeof(*through));
    for (uint32_t i = 0; i < platform->n_links; i++) { /* the narrowest of several links counts */
        const cs_link *link = &platform->links[i];
        uint32_t *at = &through[link->from];
        if (link->from == link->to &&
            (*at == NONE || link->bandwidth < platform->links[*at].bandwidth))
            *at = i;
    }
    *l = (layout){
        .n_terminals = (uint32_t)terminals, .next = {tables, tables + cells}, .through = through};
    platform->layout = l;
    platform->route = route;
    CS_TRY(keep_given(net, places, platform, l, error));
    search s = {.platform = platform, .l = l, .longest = platform->longest_route};
    if (!reserve_search(&s)) {
        release_search(&s);
        return cs_error_no_memory(error);
    }
    sort_links(platform, true, s.into, s.first_into);
    sort_links(platform, false, s.from, s.first_from);
    cs_status status = CS_OK;
    for (uint32_t target = 0; target < l->n_terminals && status == CS_OK; target++) {
        find_ways(&s, target, false, 0);
        find_ways(&s, target, true, relays);
        status = check_pairs(&s, target, error);
    }
    platform->longest_route = s.longest;
    release_search(&s);
    return status;
}

static cs_status make(const cs_fabric *net, uint32_t n_devices, uint32_t relays,
                      cs_platform *platform, cs_error *error)
{
    uint32_t *places = malloc(((size_t)net->n_vertices + 1) * sizeof(*places));
    if (!places)
        return cs_error_no_memory(error);
    /* Number the vertices: devices, ports, all others. */
    uint32_t gpus = 0, ports = n_devices, others = n_devices + cs_fabric_count(net, CS_VERTEX_NIC);
    for (uint32_t i = 0; i < net->n_vertices; i++) {
        const cs_vertex_kind kind = net->vertices[i].kind;
        if (kind == CS_VERTEX_GPU && gpus < n_devices)
            places[i] = gpus++;
        else
            places[i] = kind == CS_VERTEX_NIC ? ports++ : others++;
    }
    platform->n_ports = cs_fabric_count(net, CS_VERTEX_NIC);
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < net->n_vertices && status == CS_OK; i++)
        status = cs_platform_vertex(platform, places[i], net->vertices[i].kind, error, "%s",
                                    net->vertices[i].name);
    for (uint32_t i = 0; i < net->n_edges && status == CS_OK; i++) {
        const edge *of = &net->edges[i];
        status = cs_platform_link(platform, i, places[of->from], places[of->to], of->bandwidth,
                                  of->latency, error);
        platform->links[i].peer = of->peer;
        platform->linked_gpus |= of->peer && places[of->from] < platform->n_devices &&
                                 places[of->to] < platform->n_devices;
    }
    if (status == CS_OK)
        status = make_layout(net, places, relays, platform, error);
    free(places);
    return status;
}

cs_status cs_fabric_finish(cs_fabric *net, uint32_t n_devices, uint32_t relays,
                           cs_platform *platform, cs_error *error)
{
    if (!net || net->status != CS_OK)
        return cs_error_no_memory(error);
    const uint32_t gpus = cs_fabric_count(net, CS_VERTEX_GPU);
    CS_TRY(cs_platform_check_devices(net->topology, n_devices, error));
    if (n_devices > gpus)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: has %" PRIu32 " GPUs (got %" PRIu32 " devices)",
                            net->topology, gpus, n_devices);
    cs_platform made;
    CS_TRY(cs_platform_init(&made, net->topology, n_devices, net->n_vertices - n_devices,
                            net->n_edges, error));
    return cs_platform_hand_over(make(net, n_devices, relays, &made, error), &made, platform);
}
