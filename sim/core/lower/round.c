#include "sim/core/lower/round.h"

#include "sim/base/vector.h"
#include "topologies/route.h"

#include <math.h>
#include <stdlib.h>

/* Message in flight. Its links are those with finite bandwidth. */
typedef struct flow {
    uint32_t first, n; /* range in `links` */
    bool seen;         /* whether its component has been found */
    cs_speed speed;    /* its rate starts as the bandwidth of its narrowest link */
    double part;       /* fraction of the rate that it reaches */
} flow;

typedef struct ids {
    uint32_t *of, n, capacity;
} ids;

struct cs_round {
    const cs_platform *platform;
    const cs_alpha_beta *levels; /* levels of the alpha-beta model; or NULL */
    /* fraction of its rate that a message reaches, by level; or NULL */
    const double *parts;
    flow *flows;
    uint32_t cap_flows;
    ids links, used;    /* links of all flows; links with any flow */
    ids on_links;       /* flows on each used link, link by link */
    ids members, reach; /* flows and links of the current component */
    uint32_t *way;      /* buffer for one route */
    /* Per link of the platform: */
    /* number of flows on it; alpha-beta model: sides; max_min: flows without a rate */
    uint32_t *crowd;
    uint32_t *first; /* its range in on_links */
    uint32_t *last;  /* 1 + the side counted last */
    double *room;    /* bandwidth not yet assigned; fifo: busy time */
    bool *reached;   /* whether it belongs to the component being found */
};

static bool reserve_ids(ids *list, uint64_t n)
{
    return cs_vector_reserve((void **)&list->of, &list->capacity, n, sizeof(*list->of));
}

static bool add(ids *list, uint32_t id)
{
    if (!reserve_ids(list, list->n + UINT64_C(1)))
        return false;
    list->of[list->n++] = id;
    return true;
}

cs_round *cs_round_create(const cs_platform *platform, const cs_alpha_beta *levels,
                          const double *reached)
{
    const size_t links = (size_t)platform->n_links + 1;
    cs_round *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->platform = platform;
    made->levels = levels;
    made->parts = reached;
    made->way = malloc(((size_t)platform->longest_route + 1) * sizeof(*made->way));
    made->crowd = calloc(links, sizeof(*made->crowd));
    made->first = malloc(links * sizeof(*made->first));
    made->last = calloc(links, sizeof(*made->last));
    made->room = calloc(links, sizeof(*made->room));
    made->reached = calloc(links, sizeof(*made->reached));
    if (made->way && made->crowd && made->first && made->last && made->room && made->reached)
        return made;
    cs_round_destroy(made);
    return NULL;
}

void cs_round_destroy(cs_round *round)
{
    if (!round)
        return;
    ids *const lists[] = {&round->links, &round->used, &round->on_links, &round->members,
                          &round->reach};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        free(lists[i]->of);
    free(round->flows);
    free(round->way);
    free(round->crowd);
    free(round->first);
    free(round->last);
    free(round->room);
    free(round->reached);
    free(round);
}

/* ---- routes ---- */

/* Lists the links of a route on which the message competes with others. */
static bool add_links(cs_round *r, flow *of, const cs_route *route, uint32_t side)
{
    if (!reserve_ids(&r->links, r->links.n + (uint64_t)route->n) ||
        !reserve_ids(&r->used, r->used.n + (uint64_t)route->n))
        return false;
    for (uint32_t i = 0; i < route->n; i++) {
        const uint32_t link = route->links[i];
        if (!isfinite(r->platform->links[link].bandwidth))
            continue;
        r->links.of[r->links.n++] = link;
        if (r->crowd[link] == 0)
            r->used.of[r->used.n++] = link;
        if (!r->levels || r->last[link] != side + 1)
            r->crowd[link]++;
        r->last[link] = side + 1;
        of->n++;
    }
    return true;
}

static cs_level level_of(const cs_platform *platform, const cs_sent *sent, const cs_route *route)
{
    const uint32_t node = platform->node_devices, rack = platform->rack_devices;
    bool peers = true;
    for (uint32_t i = 0; i < route->n; i++)
        peers = peers && platform->links[route->links[i]].peer;
    if (node == 0 ? rack == 0 : sent->from / node == sent->to / node)
        return peers ? CS_LEVEL_GPU_PAIR : CS_LEVEL_NODE;
    return rack == 0 || sent->from / rack == sent->to / rack ? CS_LEVEL_RACK : CS_LEVEL_SYSTEM;
}

/* Replaces the route's latency and bandwidth by those of its level, if given. */
static void take_level(const cs_round *r, const cs_sent *sent, const cs_route *route, flow *out)
{
    const cs_alpha_beta *given = &r->levels[level_of(r->platform, sent, route)];
    if (given->bandwidth > 0)
        out->speed = (cs_speed){given->alpha, given->bandwidth};
}

static cs_status find_flows(cs_round *r, const cs_sent *sent, uint32_t n)
{
    r->links.n = r->used.n = 0;
    if (!cs_vector_reserve((void **)&r->flows, &r->cap_flows, n, sizeof(*r->flows)))
        return CS_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        flow *of = &r->flows[i];
        cs_route route;
        CS_TRY(cs_route_find(r->platform, sent[i].from, sent[i].to, r->way, &route, NULL));
        *of = (flow){.first = r->links.n, .speed = {route.latency, route.bandwidth}, .part = 1};
        if (sent[i].bytes > 0 && !add_links(r, of, &route, sent[i].side))
            return CS_NO_MEMORY;
        if (r->levels)
            take_level(r, &sent[i], &route, of);
        if (r->parts)
            of->part = r->parts[level_of(r->platform, &sent[i], &route)];
    }
    return CS_OK;
}

/* ---- rates ---- */

static void count_rates(cs_round *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        flow *of = &r->flows[i];
        of->speed.rate = INFINITY;
        for (uint32_t k = of->first; k < of->first + of->n; k++) {
            const uint32_t link = r->links.of[k];
            of->speed.rate =
                fmin(of->speed.rate, r->platform->links[link].bandwidth / r->crowd[link]);
        }
    }
}

/* The smallest fair share on any link of the component, for flows without a rate. */
static double least_share(const cs_round *r)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < r->reach.n; i++) {
        const uint32_t link = r->reach.of[i];
        if (r->crowd[link] > 0)
            least = fmin(least, r->room[link] / r->crowd[link]);
    }
    return least;
}

/* Markers in place of a rate that is not known yet. */
#define WAITING (-1.0)
#define CHOSEN  (-2.0)

static bool is_on_full_link(const cs_round *r, const flow *of, double share)
{
    for (uint32_t k = of->first; k < of->first + of->n; k++) {
        const uint32_t link = r->links.of[k];
        if (r->room[link] / r->crowd[link] <= share * (1 + 1e-12))
            return true;
    }
    return false;
}

/* Progressive filling by levels: all links with the smallest share fill up at once. A component has
 * few levels because its messages are similar. */
static void fill(cs_round *r)
{
    for (uint32_t i = 0; i < r->reach.n; i++)
        r->room[r->reach.of[i]] = r->platform->links[r->reach.of[i]].bandwidth;
    for (uint32_t i = 0; i < r->members.n; i++)
        r->flows[r->members.of[i]].speed.rate = WAITING;
    for (double share; isfinite(share = least_share(r));) {
        /* two passes, so that the level is the same for all */
        for (uint32_t i = 0; i < r->members.n; i++) {
            flow *of = &r->flows[r->members.of[i]];
            if (of->speed.rate == WAITING && is_on_full_link(r, of, share))
                of->speed.rate = CHOSEN;
        }
        for (uint32_t i = 0; i < r->members.n; i++) {
            flow *of = &r->flows[r->members.of[i]];
            if (of->speed.rate != CHOSEN)
                continue;
            of->speed.rate = share;
            for (uint32_t k = of->first; k < of->first + of->n; k++) {
                const uint32_t link = r->links.of[k];
                r->room[link] = fmax(r->room[link] - share, 0);
                r->crowd[link]--;
            }
        }
    }
}

/* Lists the flows on each link. */
static bool list_flows(cs_round *r, uint32_t n)
{
    if (!reserve_ids(&r->on_links, r->links.n))
        return false;
    uint32_t end = 0;
    for (uint32_t i = 0; i < r->used.n; i++) {
        const uint32_t link = r->used.of[i];
        r->first[link] = end;
        end += r->crowd[link];
        r->crowd[link] = 0;
        r->reached[link] = false;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = r->flows[i].first; k < r->flows[i].first + r->flows[i].n; k++) {
            const uint32_t link = r->links.of[k];
            r->on_links.of[r->first[link] + r->crowd[link]++] = i;
        }
    return true;
}

/* Finds all flows connected to this one through shared links, directly or not, and their links. */
static bool find_component(cs_round *r, uint32_t from)
{
    r->members.n = r->reach.n = 0;
    r->flows[from].seen = true;
    if (!add(&r->members, from))
        return false;
    for (uint32_t m = 0; m < r->members.n; m++) {
        const flow of = r->flows[r->members.of[m]];
        for (uint32_t k = of.first; k < of.first + of.n; k++) {
            const uint32_t link = r->links.of[k];
            if (r->reached[link])
                continue;
            r->reached[link] = true;
            if (!add(&r->reach, link))
                return false;
            for (uint32_t i = r->first[link]; i < r->first[link] + r->crowd[link]; i++) {
                flow *other = &r->flows[r->on_links.of[i]];
                if (!other->seen && !add(&r->members, r->on_links.of[i]))
                    return false;
                other->seen = true;
            }
        }
    }
    return true;
}

static cs_status fair_rates(cs_round *r, const cs_sent *sent, uint32_t n, const bool *wanted)
{
    if (!list_flows(r, n))
        return CS_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        flow *of = &r->flows[i];
        if (!wanted[sent[i].side] || of->seen)
            continue;
        if (of->n == 0) {
            of->speed.rate = INFINITY;
            continue;
        }
        if (!find_component(r, i))
            return CS_NO_MEMORY;
        fill(r);
    }
    return CS_OK;
}

/* fifo: a link is busy for the sum of its messages' times. A message needs all links of its route
 * at once, so none is faster than its narrowest link. */
static void queue_rates(cs_round *r, const cs_sent *sent, uint32_t n)
{
    for (uint32_t i = 0; i < r->used.n; i++)
        r->room[r->used.of[i]] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = r->flows[i].first; k < r->flows[i].first + r->flows[i].n; k++)
            r->room[r->links.of[k]] += (double)sent[i].bytes / r->flows[i].speed.rate;
    for (uint32_t i = 0; i < n; i++) {
        flow *of = &r->flows[i];
        double busiest = 0;
        for (uint32_t k = of->first; k < of->first + of->n; k++)
            busiest = fmax(busiest, r->room[r->links.of[k]]);
        of->speed.rate = busiest > 0 ? (double)sent[i].bytes / busiest : INFINITY;
    }
}

/* Divides rates by phi: the given value, or the number of collectives that share a link with the
 * message. */
static void lone_rates(cs_round *r, uint32_t n)
{
    const bool given = r->platform->sharing == CS_SHARING_PHI;
    const bool shared = r->levels && cs_links_are_contended(r->platform);
    for (uint32_t i = 0; i < n; i++) {
        flow *of = &r->flows[i];
        double phi = given ? r->platform->phi : 1;
        for (uint32_t k = of->first; shared && k < of->first + of->n; k++)
            phi = fmax(phi, r->crowd[r->links.of[k]]);
        of->speed.rate /= phi;
    }
}

static cs_status set_rates(cs_round *r, const cs_sent *sent, uint32_t n, const bool *wanted)
{
    switch (r->levels ? CS_SHARING_NONE : r->platform->sharing) {
    case CS_SHARING_FIFO:
        queue_rates(r, sent, n);
        return CS_OK;
    case CS_SHARING_COUNT:
        count_rates(r, n);
        return CS_OK;
    case CS_SHARING_MAX_MIN:
        return fair_rates(r, sent, n, wanted);
    case CS_SHARING_NONE:
    case CS_SHARING_PHI:
        break;
    }
    lone_rates(r, n);
    return CS_OK;
}

/* Speed after applying the reached fraction; exactly the share if the fraction is 1. */
static cs_speed reached(const flow *of)
{
    cs_speed speed = of->speed;
    if (of->part < 1) {
        speed.rate *= of->part;
        speed.latency = (cs_time)((double)speed.latency / of->part);
    }
    return speed;
}

cs_status cs_round_solve(cs_round *round, const cs_sent *sent, uint32_t n, const bool *wanted,
                         cs_speed *speeds)
{
    cs_status status = find_flows(round, sent, n);
    if (status == CS_OK)
        status = set_rates(round, sent, n, wanted);
    for (uint32_t i = 0; i < round->used.n; i++)
        round->crowd[round->used.of[i]] = round->last[round->used.of[i]] = 0;
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        speeds[i] = reached(&round->flows[i]);
    return status;
}
