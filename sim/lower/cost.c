#include "sim/lower/cost.h"

#include "sim/base/vector.h"
#include "topologies/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A message of the round that is being collected. */
typedef struct message {
    uint32_t from, to; /* ranks */
    int64_t bytes;
} message;

/* What a message spends on its way; its links are those of finite bandwidth. */
typedef struct flow {
    uint32_t first, n; /* in links */
    cs_time latency;
    double bandwidth; /* of the narrowest link */
    double rate;
} flow;

typedef struct account {
    const cs_platform *platform;
    const uint32_t *devices;
    const cs_alpha_beta *levels; /* or NULL; then also: */
    cs_time *busy; /* per rank, sending and receiving: in this round, in the alpha-beta model */
    uint32_t n_ranks;
    message *now, *before; /* this round, and the one that was solved last */
    flow *flows;
    uint32_t *links, *way, *used; /* of all flows, of one route, and which links any flow is on */
    uint32_t n_now, cap_now, n_before, cap_before, cap_flows, n_links, cap_links, n_used, cap_used;
    double *room;    /* per link of the platform: not yet given away; fifo: time that it is busy */
    uint32_t *crowd; /* per link of the platform: flows on it without a rate */
    uint32_t round;
    uint32_t alike;          /* rounds, of which the first stands for all; else 0 */
    cs_time round_cost, sum; /* of the round that was solved last; of all rounds so far */
    cs_status status;
} account;

/* ---- one round ---- */

/* The links of a route on which the message meets others. */
static bool add_links(account *a, flow *of, const cs_route *route)
{
    const uint32_t n = route->n;
    if (!cs_vector_reserve((void **)&a->links, &a->cap_links, (uint64_t)a->n_links + n,
                           sizeof(*a->links)) ||
        !cs_vector_reserve((void **)&a->used, &a->cap_used, (uint64_t)a->n_used + n,
                           sizeof(*a->used)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t link = route->links[i];
        if (!isfinite(a->platform->links[link].bandwidth))
            continue;
        a->links[a->n_links++] = link;
        if (a->crowd[link]++ == 0)
            a->used[a->n_used++] = link;
        of->n++;
    }
    return true;
}

static cs_level level_of(const cs_platform *platform, uint32_t from, uint32_t to,
                         const cs_route *route)
{
    const uint32_t node = platform->node_devices, rack = platform->rack_devices;
    bool peers = true;
    for (uint32_t i = 0; i < route->n; i++)
        peers = peers && platform->links[route->links[i]].peer;
    if (node == 0 ? rack == 0 : from / node == to / node)
        return peers ? CS_LEVEL_GPU_PAIR : CS_LEVEL_NODE;
    return rack == 0 || from / rack == to / rack ? CS_LEVEL_RACK : CS_LEVEL_SYSTEM;
}

/* In place of the latency and the bandwidth of the route, those of its level if they are given. */
static void take_level(const account *a, const message *of, const cs_route *route, flow *out)
{
    const uint32_t from = a->devices[of->from], to = a->devices[of->to];
    const cs_alpha_beta *given = &a->levels[level_of(a->platform, from, to, route)];
    if (given->bandwidth > 0) {
        out->latency = given->alpha;
        out->bandwidth = given->bandwidth;
    }
}

static cs_status find_flows(account *a)
{
    a->n_links = a->n_used = 0;
    if (!cs_vector_reserve((void **)&a->flows, &a->cap_flows, a->n_now, sizeof(*a->flows)))
        return CS_NO_MEMORY;
    for (uint32_t i = 0; i < a->n_now; i++) {
        flow *of = &a->flows[i];
        const uint32_t from = a->devices[a->now[i].from], to = a->devices[a->now[i].to];
        cs_route route;
        CS_TRY(cs_route_find(a->platform, from, to, a->way, &route, NULL));
        *of = (flow){.first = a->n_links, .latency = route.latency, .bandwidth = route.bandwidth};
        if (a->now[i].bytes > 0 && !add_links(a, of, &route))
            return CS_NO_MEMORY;
        if (a->levels)
            take_level(a, &a->now[i], &route, of);
    }
    return CS_OK;
}

static void count_rates(account *a)
{
    for (uint32_t i = 0; i < a->n_now; i++) {
        flow *of = &a->flows[i];
        of->rate = INFINITY;
        for (uint32_t k = of->first; k < of->first + of->n; k++)
            of->rate =
                fmin(of->rate, a->platform->links[a->links[k]].bandwidth / a->crowd[a->links[k]]);
    }
}

/* The least that any link gives to each of its flows without a rate. */
static double least_share(const account *a)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < a->n_used; i++)
        if (a->crowd[a->used[i]] > 0)
            least = fmin(least, a->room[a->used[i]] / a->crowd[a->used[i]]);
    return least;
}

/* In place of a rate while there is none. */
#define WAITING (-1.0)
#define CHOSEN  (-2.0)

static bool is_on_full_link(const account *a, const flow *of, double share)
{
    for (uint32_t k = of->first; k < of->first + of->n; k++)
        if (a->room[a->links[k]] / a->crowd[a->links[k]] <= share * (1 + 1e-12))
            return true;
    return false;
}

/* Progressive filling by levels: all links that give the least are full at once. A round has few
 * levels, for its messages are much alike. */
static void fair_rates(account *a)
{
    for (uint32_t i = 0; i < a->n_used; i++)
        a->room[a->used[i]] = a->platform->links[a->used[i]].bandwidth;
    for (uint32_t i = 0; i < a->n_now; i++)
        a->flows[i].rate = a->flows[i].n > 0 ? WAITING : INFINITY;
    for (double share; isfinite(share = least_share(a));) {
        /* two passes, so that the level is the same for all */
        for (uint32_t i = 0; i < a->n_now; i++)
            if (a->flows[i].rate == WAITING && is_on_full_link(a, &a->flows[i], share))
                a->flows[i].rate = CHOSEN;
        for (uint32_t i = 0; i < a->n_now; i++) {
            flow *of = &a->flows[i];
            if (of->rate != CHOSEN)
                continue;
            of->rate = share;
            for (uint32_t k = of->first; k < of->first + of->n; k++) {
                a->room[a->links[k]] = fmax(a->room[a->links[k]] - share, 0);
                a->crowd[a->links[k]]--;
            }
        }
    }
}

/* A link is busy for the sum of what its messages need; each needs all links of its route at once,
 * so none goes faster than its narrowest. */
static void queue_rates(account *a)
{
    for (uint32_t i = 0; i < a->n_used; i++)
        a->room[a->used[i]] = 0;
    for (uint32_t i = 0; i < a->n_now; i++)
        for (uint32_t k = a->flows[i].first; k < a->flows[i].first + a->flows[i].n; k++)
            a->room[a->links[k]] += (double)a->now[i].bytes / a->flows[i].bandwidth;
    for (uint32_t i = 0; i < a->n_now; i++) {
        flow *of = &a->flows[i];
        double busiest = 0;
        for (uint32_t k = of->first; k < of->first + of->n; k++)
            busiest = fmax(busiest, a->room[a->links[k]]);
        of->rate = busiest > 0 ? (double)a->now[i].bytes / busiest : INFINITY;
    }
}

static void set_rates(account *a)
{
    switch (a->levels && a->platform->sharing != CS_SHARING_PHI ? CS_SHARING_NONE
                                                                : a->platform->sharing) {
    case CS_SHARING_FIFO:
        queue_rates(a);
        return;
    case CS_SHARING_COUNT:
        count_rates(a);
        return;
    case CS_SHARING_MAX_MIN:
        fair_rates(a);
        return;
    case CS_SHARING_NONE:
    case CS_SHARING_PHI:
        break;
    }
    const double phi = a->platform->sharing == CS_SHARING_PHI ? a->platform->phi : 1;
    for (uint32_t i = 0; i < a->n_now; i++)
        a->flows[i].rate = a->flows[i].bandwidth / phi;
}

static void note_time(account *a, cs_time time)
{
    a->round_cost = time > a->round_cost ? time : a->round_cost;
}

/* One port: the messages that a rank sends, and those that it receives, come one after the other. */
static bool add_to_ports(account *a, const message *of, cs_time time)
{
    cs_time *ports[] = {&a->busy[2 * of->from], &a->busy[2 * of->to + 1]};
    for (size_t i = 0; i < 2; i++) {
        if (!cs_time_add(*ports[i], time, ports[i]))
            return false;
        note_time(a, *ports[i]);
    }
    return true;
}

static bool slowest(account *a)
{
    a->round_cost = 0;
    if (a->levels)
        memset(a->busy, 0, 2 * (size_t)a->n_ranks * sizeof(*a->busy));
    for (uint32_t i = 0; i < a->n_now; i++) {
        cs_time time;
        if (!cs_time_transfer((double)a->now[i].bytes, a->flows[i].rate, &time) ||
            !cs_time_add(time, a->flows[i].latency, &time) ||
            (a->levels && !add_to_ports(a, &a->now[i], time)))
            return false;
        note_time(a, time);
    }
    return true;
}

static bool same_as_before(const account *a)
{
    return a->n_now == a->n_before && memcmp(a->now, a->before, a->n_now * sizeof(*a->now)) == 0;
}

static void close_round(account *a)
{
    if (a->status != CS_OK || a->n_now == 0)
        return;
    if (!same_as_before(a)) {
        a->status = find_flows(a);
        if (a->status != CS_OK)
            return;
        set_rates(a);
        for (uint32_t i = 0; i < a->n_used; i++)
            a->crowd[a->used[i]] = 0;
        if (!slowest(a))
            a->status = CS_OVERFLOW;
        message *swap = a->before;
        const uint32_t capacity = a->cap_before;
        a->before = a->now;
        a->n_before = a->n_now;
        a->cap_before = a->cap_now;
        a->now = swap;
        a->cap_now = capacity;
    }
    a->n_now = 0;
    if (a->status == CS_OK && !cs_time_add(a->sum, a->round_cost, &a->sum))
        a->status = CS_OVERFLOW;
}

/* ---- all rounds ---- */

static bool visit(void *context, const cs_send *send)
{
    account *a = context;
    if (a->alike > 0 && send->round > 0)
        return false;
    if (send->round != a->round)
        close_round(a);
    a->round = send->round;
    if (a->status == CS_OK &&
        !cs_vector_reserve((void **)&a->now, &a->cap_now, a->n_now + UINT64_C(1), sizeof(*a->now)))
        a->status = CS_NO_MEMORY;
    if (a->status != CS_OK)
        return false;
    message *made = &a->now[a->n_now++];
    memset(made, 0, sizeof(*made)); /* rounds are compared as bytes */
    made->from = send->from;
    made->to = send->to;
    made->bytes = send->bytes;
    return true;
}

static bool reserve(account *a)
{
    const size_t links = (size_t)a->platform->n_links + 1;
    a->room = calloc(links, sizeof(*a->room));
    a->crowd = calloc(links, sizeof(*a->crowd));
    a->way = malloc(((size_t)a->platform->longest_route + 1) * sizeof(*a->way));
    a->busy = a->levels ? calloc(2 * (size_t)a->n_ranks, sizeof(*a->busy)) : NULL;
    return a->room && a->crowd && a->way && (a->busy || !a->levels);
}

/* So that the shares of the ranks are equal, and rounds alike, where there are shares. */
static void round_up(cs_collective *of)
{
    const bool whole = of->kind == CS_BROADCAST || of->kind == CS_REDUCE || of->kind == CS_HALO ||
                       of->kind == CS_SHIFT;
    if (!whole && of->bytes % of->n != 0 && of->bytes < INT64_MAX - of->n)
        of->bytes += of->n - of->bytes % of->n;
}

cs_status cs_collective_cost(const cs_collective *collective, const cs_algorithm *algorithm,
                             const cs_platform *platform, const uint32_t *devices,
                             const cs_alpha_beta *levels, cs_time *cost, cs_error *error)
{
    account a = {
        .platform = platform, .devices = devices, .levels = levels, .n_ranks = collective->n};
    cs_collective even = *collective;
    round_up(&even);
    a.alike = cs_algorithm_alike(algorithm, &even);
    if (!reserve(&a))
        a.status = CS_NO_MEMORY;
    else if (algorithm->walk(&even, visit, &a) || a.alike > 0)
        close_round(&a);
    if (a.status == CS_OK && a.alike > 0 && __builtin_mul_overflow(a.sum, a.alike, &a.sum))
        a.status = CS_OVERFLOW;
    free(a.now);
    free(a.before);
    free(a.flows);
    free(a.links);
    free(a.way);
    free(a.used);
    free(a.room);
    free(a.crowd);
    free(a.busy);
    if (a.status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    if (a.status != CS_OK)
        return cs_error_add(error, a.status, "a collective takes 2^63 ps or more");
    *cost = a.sum;
    return CS_OK;
}

double cs_form_message(double alpha, double beta, double bytes)
{
    return alpha + bytes * beta;
}

double cs_form_ring_all_reduce(double alpha, double beta, uint32_t ranks, double bytes)
{
    return 2.0 * (ranks - 1) * (alpha + bytes / ranks * beta);
}

double cs_form_ring_all_gather(double alpha, double beta, uint32_t ranks, double gathered)
{
    return (ranks - 1.0) * (alpha + gathered / ranks * beta);
}

double cs_form_tree_all_reduce(double alpha, double beta, uint32_t ranks, uint32_t chunks,
                               double bytes)
{
    return 2 * (log2(ranks) + chunks) * (alpha + bytes / (2.0 * chunks) * beta);
}
