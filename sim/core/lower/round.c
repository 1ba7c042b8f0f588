#include "sim/core/lower/round.h"

#include "sim/base/vector.h"
#include "topologies/route.h"

#include <math.h>
#include <stdlib.h>

/* A message on its way; its links are those of finite bandwidth. */
typedef struct flow {
    uint32_t first, n; /* in links */
    bool seen;         /* its component has been found */
    cs_speed speed;    /* first with the bandwidth of the narrowest link as its rate */
    double part;       /* of it that is reached */
} flow;

typedef struct ids {
    uint32_t *of, n, capacity;
} ids;

struct cs_round {
    const cs_platform *platform;
    const cs_alpha_beta *levels; /* or NULL */
    const double *parts;         /* of its rate that a message reaches, by level; or NULL */
    flow *flows;
    uint32_t cap_flows;
    ids links, used;    /* of all flows, and which links any flow is on */
    ids on_links;       /* the flows on each used link, one link after the other */
    ids members, reach; /* flows and links of a component */
    uint32_t *way;      /* of one route */
    /* Per link of the platform: */
    uint32_t *crowd; /* flows on it, in the alpha-beta model sides; max_min: those without a rate */
    uint32_t *first; /* of its flows in on_links */
    uint32_t *last;  /* 1 + the side that was counted last */
    double *room;    /* not yet given away; fifo: time that it is busy */
    bool *reached;   /* by the component that is being found */
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

/* The links of a route on which the message meets others. */
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

/* In place of the latency and the bandwidth of the route, those of its level if they are given. */
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

/* The least that any link of the component gives to each of its flows without a rate. */
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

/* In place of a rate while there is none. */
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

/* Progressive filling by levels: all links that give the least are full at once. A component has
 * few levels, for its messages are much alike. */
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

/* The flows that share links with this one, with those that do, and so on; and their links. */
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

/* A link is busy for the sum of what its messages need; each needs all links of its route at once,
 * so none goes faster than its narrowest. */
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

/* Over phi: given, or as many collectives as share a link with the message. */
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

/* What a message gets of its share; exactly the share where that is all of it. */
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
