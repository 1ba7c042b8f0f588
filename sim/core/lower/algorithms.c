#include "sim/core/lower/algorithms.h"

#include <math.h>
#include <string.h>

/* State of one walk over the messages of a collective. */
typedef struct walk {
    cs_send_function *visit;
    void *context;
    bool stopped;
} walk;

/* Ranks first, first + stride, ... of a collective that take part in one step together. */
typedef struct team {
    uint32_t first, stride, n;
} team;

/* Contiguous part of the vector. */
typedef struct part {
    int64_t offset, bytes;
} part;

static uint32_t member(team of, uint32_t i)
{
    return of.first + i % of.n * of.stride;
}

/* Shares first to end - 1 of n equal shares. If the bytes do not divide by n, the first shares are
 * one byte longer. */
static part shares(part whole, uint32_t n, uint32_t first, uint32_t end)
{
    const int64_t each = whole.bytes / n, longer = whole.bytes % n;
    const int64_t a = first * each + (first < longer ? first : longer);
    const int64_t b = end * each + (end < longer ? end : longer);
    return (part){whole.offset + a, b - a};
}

static part share(part whole, uint32_t n, uint32_t i)
{
    return shares(whole, n, i % n, i % n + 1);
}

static void send(walk *w, uint32_t round, uint32_t from, uint32_t to, part of, bool reduce)
{
    const cs_send made = {round, from, to, of.offset, of.bytes, reduce};
    if (!w->stopped)
        w->stopped = !w->visit(w->context, &made);
}

static part all_of(const cs_collective *c)
{
    return (part){0, c->bytes};
}

static team everyone(const cs_collective *c)
{
    return (team){0, 1, c->n};
}

static bool is_one_of(cs_kind kind, const cs_kind *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

#define IS_ONE_OF(kind, ...)                                                                       \
    is_one_of((kind), (const cs_kind[]){__VA_ARGS__},                                              \
              sizeof((const cs_kind[]){__VA_ARGS__}) / sizeof(cs_kind))

/* ---- ring ---- */

/* One round: member i sends share i + `ahead` to the next member. */
static void ring_round(walk *w, team of, part whole, uint32_t round, uint32_t ahead, bool reduce)
{
    for (uint32_t i = 0; i < of.n; i++)
        send(w, round, member(of, i), member(of, i + 1), share(whole, of.n, i + ahead), reduce);
}

/* Step k of n - 1 of a reduce-scatter. After the last step, member i has all of share i. */
static void scatter_step(walk *w, team of, part whole, uint32_t round, uint32_t k)
{
    ring_round(w, of, whole, round, 2 * of.n - k - 1, true);
}

/* Step k of n - 1 of an all-gather. Member i starts with share i and ends with all shares. */
static void gather_step(walk *w, team of, part whole, uint32_t round, uint32_t k)
{
    ring_round(w, of, whole, round, 2 * of.n - k, false);
}

/* Step k of 2 (n - 1) of an all-reduce: member i sends share i - k. Shares are complete after n - 1
 * steps and then go round once more. */
static void reduce_step(walk *w, team of, part whole, uint32_t round, uint32_t k)
{
    ring_round(w, of, whole, round, 2 * of.n - k, k + 1 < of.n);
}

static uint32_t chain_steps(team of, uint32_t chunks)
{
    return of.n - 1 + chunks - 1;
}

/* Step k of a chain from member 0 to the last member, or of a sum in the opposite direction: hop h
 * carries chunk k - h. */
static void chain_step(walk *w, team of, part whole, uint32_t chunks, uint32_t round, uint32_t k,
                       bool reduce)
{
    const uint32_t hops = of.n - 1;
    for (uint32_t hop = 0; hop < hops; hop++) {
        const uint32_t from = reduce ? hops - hop : hop, to = reduce ? from - 1 : from + 1;
        if (k >= hop && k - hop < chunks)
            send(w, round, member(of, from), member(of, to), share(whole, chunks, k - hop), reduce);
    }
}

/* In round k every rank sends to rank + k + 1. */
static void pairwise_step(walk *w, const cs_collective *c, uint32_t k)
{
    for (uint32_t r = 0; r < c->n; r++)
        send(w, k, r, (r + k + 1) % c->n, share(all_of(c), c->n, r + k + 1), false);
}

static bool ring_fits(const cs_collective *c)
{
    return IS_ONE_OF(c->kind, CS_ALL_REDUCE, CS_REDUCE_SCATTER, CS_ALL_GATHER, CS_ALL_TO_ALL,
                     CS_BROADCAST, CS_REDUCE, CS_SHIFT);
}

/* Every rank sends its whole vector to the next rank. */
static void shift(walk *w, const cs_collective *c)
{
    for (uint32_t r = 0; r < c->n; r++)
        send(w, 0, r, (r + 1) % c->n, all_of(c), false);
}

static bool ring_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    const team all = everyone(c);
    const part whole = all_of(c);
    uint32_t rounds = c->n - 1;
    if (c->kind == CS_ALL_REDUCE)
        rounds = 2 * (c->n - 1);
    else if (c->kind == CS_SHIFT)
        rounds = 1;
    else if (IS_ONE_OF(c->kind, CS_BROADCAST, CS_REDUCE))
        rounds = chain_steps(all, c->chunks);
    for (uint32_t k = 0; k < rounds && !w.stopped; k++) {
        if (c->kind == CS_ALL_REDUCE)
            reduce_step(&w, all, whole, k, k);
        else if (c->kind == CS_REDUCE_SCATTER)
            scatter_step(&w, all, whole, k, k);
        else if (c->kind == CS_ALL_GATHER)
            gather_step(&w, all, whole, k, k);
        else if (c->kind == CS_ALL_TO_ALL)
            pairwise_step(&w, c, k);
        else if (c->kind == CS_SHIFT)
            shift(&w, c);
        else
            chain_step(&w, all, whole, c->chunks, k, k, c->kind == CS_REDUCE);
    }
    return !w.stopped;
}

static uint64_t ring_count(const cs_collective *c)
{
    const uint64_t n = c->n;
    if (c->kind == CS_SHIFT)
        return n;
    if (IS_ONE_OF(c->kind, CS_BROADCAST, CS_REDUCE))
        return (n - 1) * c->chunks;
    return (c->kind == CS_ALL_REDUCE ? 2 : 1) * n * (n - 1);
}

/* ---- several rings at once ---- */

/* Rings that each carry an equal share of the bytes. */
typedef struct ring_set {
    uint32_t n;
    uint32_t (*rank_at)(const cs_collective *c, uint32_t ring, uint32_t place);
    uint32_t (*place_of_root)(const cs_collective *c, uint32_t ring);
} ring_set;

/* One round of one ring: every place sends its part of the share that belongs to the rank `ahead`
 * places on. */
static void rings_round(walk *w, const cs_collective *c, const ring_set *set, uint32_t ring,
                        uint32_t round, uint32_t ahead, bool reduce)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const part whole = share(all_of(c), c->n, set->rank_at(c, ring, i + ahead));
        send(w, round, set->rank_at(c, ring, i), set->rank_at(c, ring, i + 1),
             share(whole, set->n, ring), reduce);
    }
}

/* One chain along a ring. A broadcast begins at rank 0, a reduction ends there. */
static void rings_chain(walk *w, const cs_collective *c, const ring_set *set, uint32_t ring,
                        uint32_t round, bool reduce)
{
    const uint32_t root = set->place_of_root(c, ring);
    const part mine = share(all_of(c), set->n, ring);
    for (uint32_t hop = 0; hop + 1 < c->n; hop++) {
        const uint32_t from = root + hop + (reduce ? 1 : 0);
        if (round >= hop && round - hop < c->chunks)
            send(w, round, set->rank_at(c, ring, from), set->rank_at(c, ring, from + 1),
                 share(mine, c->chunks, round - hop), reduce);
    }
}

static bool do_rings(const cs_kind kind)
{
    return IS_ONE_OF(kind, CS_ALL_REDUCE, CS_REDUCE_SCATTER, CS_ALL_GATHER, CS_BROADCAST,
                     CS_REDUCE);
}

static bool set_walk(const cs_collective *c, const ring_set *set, cs_send_function *visit,
                     void *context)
{
    walk w = {.visit = visit, .context = context};
    uint32_t rounds = c->n - 1;
    if (c->kind == CS_ALL_REDUCE)
        rounds = 2 * (c->n - 1);
    else if (IS_ONE_OF(c->kind, CS_BROADCAST, CS_REDUCE))
        rounds = chain_steps(everyone(c), c->chunks);
    for (uint32_t k = 0; k < rounds && !w.stopped; k++) {
        for (uint32_t ring = 0; ring < set->n; ring++) {
            if (c->kind == CS_ALL_REDUCE)
                rings_round(&w, c, set, ring, k, 2 * c->n - k, k + 1 < c->n);
            else if (c->kind == CS_REDUCE_SCATTER)
                rings_round(&w, c, set, ring, k, 2 * c->n - k - 1, true);
            else if (c->kind == CS_ALL_GATHER)
                rings_round(&w, c, set, ring, k, 2 * c->n - k, false);
            else
                rings_chain(&w, c, set, ring, k, c->kind == CS_REDUCE);
        }
    }
    return !w.stopped;
}

/* ---- a ring per NIC ---- */

static uint32_t nic_first(const cs_collective *c, uint32_t ring)
{
    return (uint32_t)((uint64_t)ring * c->node_ranks / c->rings);
}

/* Rank at a place of ring `ring`: node by node, starting each node at a different rank. */
static uint32_t nic_rank_at(const cs_collective *c, uint32_t ring, uint32_t place)
{
    const uint32_t g = c->node_ranks, nodes = c->n / g, node = place % c->n / g, at = place % g;
    const bool back = nodes % 2 == 0 && node % 2 == 1;
    return node * g + (nic_first(c, ring) + (back ? g - 1 - at : at)) % g;
}

static uint32_t nic_place_of_root(const cs_collective *c, uint32_t ring)
{
    return (c->node_ranks - nic_first(c, ring)) % c->node_ranks;
}

static bool rings_fit(const cs_collective *c)
{
    return c->rings > 1 && c->node_ranks > 1 && c->n > c->node_ranks && c->n % c->node_ranks == 0 &&
           do_rings(c->kind);
}

static bool rings_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    const ring_set set = {c->rings, nic_rank_at, nic_place_of_root};
    return set_walk(c, &set, visit, context);
}

static uint64_t rings_count(const cs_collective *c)
{
    return c->rings * ring_count(c);
}

/* ---- a ring per link ---- */

static uint32_t link_rank_at(const cs_collective *c, uint32_t ring, uint32_t place)
{
    const uint32_t at = place % c->n;
    return c->links->cycles[ring / 2][ring % 2 == 0 ? at : (c->n - at) % c->n];
}

static uint32_t link_place_of_root(const cs_collective *c, uint32_t ring)
{
    (void)c;
    (void)ring;
    return 0;
}

static bool links_fit(const cs_collective *c)
{
    return c->links && c->links->n_ranks == c->n && do_rings(c->kind);
}

static bool links_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    const ring_set set = {c->links->n_rings, link_rank_at, link_place_of_root};
    return set_walk(c, &set, visit, context);
}

static uint64_t links_count(const cs_collective *c)
{
    return c->links->n_rings * ring_count(c);
}

static uint32_t rings_alike(const cs_collective *c)
{
    if (c->kind == CS_ALL_REDUCE)
        return 2 * (c->n - 1);
    return IS_ONE_OF(c->kind, CS_REDUCE_SCATTER, CS_ALL_GATHER) ? c->n - 1 : 0;
}

/* ---- recursive halving and doubling ---- */

static uint32_t power_below(uint32_t n)
{
    uint32_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* Recursive halving: partners at half the previous distance exchange halves of what they still
 * hold. Rank r ends with share r of n. Returns the next round. */
static uint32_t halve(walk *w, uint32_t n, part whole, uint32_t round)
{
    for (uint32_t distance = n / 2; distance >= 1; distance /= 2, round++)
        for (uint32_t r = 0; r < n; r++) {
            const uint32_t partner = r ^ distance, first = partner & ~(distance - 1);
            send(w, round, r, partner, shares(whole, n, first, first + distance), true);
        }
    return round;
}

static uint32_t double_back(walk *w, uint32_t n, part whole, uint32_t round)
{
    for (uint32_t distance = 1; distance < n; distance *= 2, round++)
        for (uint32_t r = 0; r < n; r++) {
            const uint32_t first = r & ~(distance - 1);
            send(w, round, r, r ^ distance, shares(whole, n, first, first + distance), false);
        }
    return round;
}

/* Ranks beyond the largest power of two send their vector to a partner first and receive the result
 * from it at the end. */
static void halving_all_reduce(walk *w, const cs_collective *c)
{
    const uint32_t n = power_below(c->n), rest = c->n - n;
    for (uint32_t r = 0; r < rest; r++)
        send(w, 0, n + r, r, all_of(c), true);
    uint32_t round = halve(w, n, all_of(c), rest > 0 ? 1 : 0);
    round = double_back(w, n, all_of(c), round);
    for (uint32_t r = 0; r < rest; r++)
        send(w, round, r, n + r, all_of(c), false);
}

static bool halving_fits(const cs_collective *c)
{
    return c->kind == CS_ALL_REDUCE ||
           (power_below(c->n) == c->n && IS_ONE_OF(c->kind, CS_REDUCE_SCATTER, CS_ALL_GATHER));
}

static bool halving_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    if (c->kind == CS_ALL_REDUCE)
        halving_all_reduce(&w, c);
    else if (c->kind == CS_REDUCE_SCATTER)
        halve(&w, c->n, all_of(c), 0);
    else
        double_back(&w, c->n, all_of(c), 0);
    return !w.stopped;
}

static uint64_t halving_count(const cs_collective *c)
{
    const uint64_t n = power_below(c->n);
    uint64_t count = 0;
    for (uint64_t distance = 1; distance < n; distance *= 2)
        count += n;
    return c->kind == CS_ALL_REDUCE ? 2 * count + 2 * (c->n - n) : count;
}

/* ---- two binary trees ---- */

/* Parent in the first tree. Rank 0 is the root and has one child; the other ranks are in order,
 * each parent between its children. The lowest set bit of a rank gives its height. */
static uint32_t tree_parent(uint32_t rank, uint32_t n)
{
    const uint32_t bit = rank & (~rank + 1), up = (rank ^ bit) | bit << 1;
    return up < n ? up : rank ^ bit;
}

/* Rank at a place of tree 0 or 1. The second tree permutes the ranks so that leaves become inner
 * ranks: it mirrors them if n is even and shifts them by one otherwise. For a broadcast or reduce,
 * rank 0 stays the root and only the others move. */
static uint32_t tree_rank(uint32_t place, uint32_t tree, const cs_collective *c)
{
    if (tree == 0)
        return place;
    if (c->kind != CS_ALL_REDUCE)
        return place == 0 ? 0 : c->n - place;
    return c->n % 2 == 0 ? c->n - 1 - place : (place + 1) % c->n;
}

static uint32_t tree_depth(uint32_t place, uint32_t n)
{
    uint32_t depth = 0;
    for (; place != 0; place = tree_parent(place, n))
        depth++;
    return depth;
}

/* One round of both trees. All places of one depth send in the same round; upwards, rounds count
 * from the deepest place. */
static void tree_round(walk *w, const cs_collective *c, uint32_t round, uint32_t deepest, bool up,
                       uint32_t start)
{
    for (uint32_t tree = 0; tree < 2; tree++) {
        const part half = share(all_of(c), 2, tree);
        for (uint32_t place = 1; place < c->n; place++) {
            const uint32_t depth = tree_depth(place, c->n);
            const uint32_t wait = start + (up ? deepest - depth : depth - 1);
            if (round < wait || round - wait >= c->chunks)
                continue;
            const uint32_t child = tree_rank(place, tree, c);
            const uint32_t parent = tree_rank(tree_parent(place, c->n), tree, c);
            send(w, round, up ? child : parent, up ? parent : child,
                 share(half, c->chunks, round - wait), up);
        }
    }
}

static bool tree_fits(const cs_collective *c)
{
    return IS_ONE_OF(c->kind, CS_ALL_REDUCE, CS_REDUCE, CS_BROADCAST);
}

static bool tree_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    uint32_t deepest = 0;
    for (uint32_t place = 1; place < c->n; place++) {
        const uint32_t depth = tree_depth(place, c->n);
        deepest = depth > deepest ? depth : deepest;
    }
    const bool up = c->kind != CS_BROADCAST, down = c->kind != CS_REDUCE;
    const uint32_t turn = up ? deepest : 0;
    const uint32_t rounds = turn + (down ? deepest : 0) + c->chunks - 1;
    for (uint32_t round = 0; round < rounds && !w.stopped; round++) {
        if (up)
            tree_round(&w, c, round, deepest, true, 0);
        if (down)
            tree_round(&w, c, round, deepest, false, turn);
    }
    return !w.stopped;
}

static uint64_t tree_count(const cs_collective *c)
{
    return (c->kind == CS_ALL_REDUCE ? 4 : 2) * (uint64_t)(c->n - 1) * c->chunks;
}

/* ---- by nodes ---- */

static bool nodes_fit(const cs_collective *c)
{
    return c->kind == CS_ALL_REDUCE && c->node_ranks > 1 && c->n % c->node_ranks == 0 &&
           c->n > c->node_ranks;
}

static bool hierarchical_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    const uint32_t g = c->node_ranks, nodes = c->n / g, across = 2 * (nodes - 1);
    const uint32_t inside = chain_steps((team){0, 1, g}, c->chunks);
    for (uint32_t k = 0; k < inside; k++)
        for (uint32_t node = 0; node < nodes; node++)
            chain_step(&w, (team){node * g, 1, g}, all_of(c), c->chunks, k, k, true);
    for (uint32_t k = 0; k < across; k++)
        reduce_step(&w, (team){0, g, nodes}, all_of(c), inside + k, k);
    for (uint32_t k = 0; k < inside; k++)
        for (uint32_t node = 0; node < nodes; node++)
            chain_step(&w, (team){node * g, 1, g}, all_of(c), c->chunks, inside + across + k, k,
                       false);
    return !w.stopped;
}

static bool segmented_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    const uint32_t g = c->node_ranks, nodes = c->n / g, across = 2 * (nodes - 1);
    for (uint32_t k = 0; k + 1 < g; k++)
        for (uint32_t node = 0; node < nodes; node++)
            scatter_step(&w, (team){node * g, 1, g}, all_of(c), k, k);
    for (uint32_t k = 0; k < across; k++)
        for (uint32_t r = 0; r < g; r++)
            reduce_step(&w, (team){r, g, nodes}, share(all_of(c), g, r), g - 1 + k, k);
    for (uint32_t k = 0; k + 1 < g; k++)
        for (uint32_t node = 0; node < nodes; node++)
            gather_step(&w, (team){node * g, 1, g}, all_of(c), g - 1 + across + k, k);
    return !w.stopped;
}

static uint64_t hierarchical_count(const cs_collective *c)
{
    const uint64_t g = c->node_ranks, nodes = c->n / g;
    return 2 * nodes * (g - 1) * c->chunks + 2 * (nodes - 1) * nodes;
}

static uint64_t segmented_count(const cs_collective *c)
{
    const uint64_t g = c->node_ranks, nodes = c->n / g;
    return 2 * (g - 1) * c->n + 2 * (nodes - 1) * c->n;
}

/* ---- all at once ---- */

static bool direct_fits(const cs_collective *c)
{
    return IS_ONE_OF(c->kind, CS_BROADCAST, CS_REDUCE, CS_SCATTER, CS_GATHER, CS_ALL_TO_ALL,
                     CS_HALO, CS_SHIFT);
}

/* Halos go in both directions unless one direction has no bytes. */
static bool sends_on(const cs_collective *c)
{
    return c->bytes > 0 || c->bytes_back == 0;
}

static bool sends_back(const cs_collective *c)
{
    return c->bytes_back > 0 || c->bytes == 0;
}

static void exchange_halos(walk *w, const cs_collective *c)
{
    for (uint32_t r = 0; r < c->n; r++) {
        if (r > 0 && sends_back(c))
            send(w, 0, r, r - 1, (part){0, c->bytes_back}, false);
        if (r + 1 < c->n && sends_on(c))
            send(w, 0, r, r + 1, all_of(c), false);
    }
}

static bool direct_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    const bool to_root = IS_ONE_OF(c->kind, CS_REDUCE, CS_GATHER);
    const bool whole = IS_ONE_OF(c->kind, CS_REDUCE, CS_BROADCAST);
    if (c->kind == CS_HALO) {
        exchange_halos(&w, c);
    } else if (c->kind == CS_SHIFT) {
        shift(&w, c);
    } else if (c->kind == CS_ALL_TO_ALL) {
        for (uint32_t r = 0; r < c->n && !w.stopped; r++)
            for (uint32_t k = 0; k < c->n; k++)
                if (k != r)
                    send(&w, 0, r, k, share(all_of(c), c->n, k), false);
    } else {
        for (uint32_t r = 1; r < c->n; r++)
            send(&w, 0, to_root ? r : 0, to_root ? 0 : r,
                 whole ? all_of(c) : share(all_of(c), c->n, r), c->kind == CS_REDUCE);
    }
    return !w.stopped;
}

static uint64_t direct_count(const cs_collective *c)
{
    const uint64_t n = c->n;
    if (c->kind == CS_ALL_TO_ALL)
        return n * (n - 1);
    if (c->kind == CS_SHIFT)
        return n;
    return c->kind == CS_HALO ? (UINT64_C(0) + sends_on(c) + sends_back(c)) * (n - 1) : n - 1;
}

/* ---- tokens, once to a node ---- */

static bool tokens_fit(const cs_collective *c)
{
    return c->kind == CS_ALL_TO_ALL && c->copies > 0;
}

/* Bytes of the sender's tokens that have a copy for at least one of `ranks` ranks. Removes the
 * rounding error of the products before rounding up. */
static int64_t tokens_for(const cs_collective *c, uint32_t ranks)
{
    const double others = c->experts * (1 - (double)ranks / c->n);
    double missed = 1;
    for (uint32_t i = 0; i < c->copies && missed > 0; i++)
        missed *= fmax(others - i, 0) / (c->experts - i);
    return (int64_t)ceil((double)c->bytes / c->copies * (1 - missed) * (1 - 1e-12));
}

static uint32_t ranks_of_node(const cs_collective *c)
{
    return c->node_ranks > 0 ? c->node_ranks : c->n;
}

static bool tokens_walk(const cs_collective *c, cs_send_function *visit, void *context)
{
    walk w = {.visit = visit, .context = context};
    const uint32_t g = ranks_of_node(c), nodes = c->n / g;
    const int64_t to_node = tokens_for(c, g), to_rank = nodes * tokens_for(c, 1);
    for (uint32_t r = 0; r < c->n && !w.stopped; r++) {
        for (uint32_t node = 0; node < nodes; node++)
            if (node != r / g)
                send(&w, 0, r, node * g + r % g, (part){0, to_node}, false);
        for (uint32_t i = r / g * g; i < (r / g + 1) * g; i++)
            if (i != r)
                send(&w, 0, r, i, (part){0, to_rank}, false);
    }
    return !w.stopped;
}

static uint64_t tokens_count(const cs_collective *c)
{
    const uint64_t g = ranks_of_node(c);
    return c->n * (g - 1 + c->n / g - 1);
}

/* ---- the table ---- */

static bool never(const cs_collective *c)
{
    (void)c;
    return false;
}

static bool always(const cs_collective *c)
{
    (void)c;
    return true;
}

static bool is_chain(const cs_collective *c)
{
    return IS_ONE_OF(c->kind, CS_BROADCAST, CS_REDUCE);
}

static const cs_algorithm ring = {
    .name = "ring",
    .doc = "each rank to the next one",
    .needs = "all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce and shift",
    .fits = ring_fits,
    .uses_chunks = is_chain,
    .count = ring_count,
    .alike = rings_alike,
    .walk = ring_walk,
};
static const cs_algorithm ring_per_nic = {
    .name = "ring_per_nic",
    .doc = "a ring for each NIC of a node, all at once",
    .needs =
        "all_reduce, reduce_scatter, all_gather, broadcast and reduce over several nodes with "
        "the same number of ranks each, at least 2, that use several NICs (not with alpha_beta, "
        "where a rank has one port)",
    .fits = rings_fit,
    .uses_chunks = is_chain,
    .count = rings_count,
    .alike = rings_alike,
    .walk = rings_walk,
};
static const cs_algorithm ring_per_link = {
    .name = "ring_per_link",
    .doc = "rings over the links of GPUs to each other, all at once",
    .needs = "all_reduce, reduce_scatter, all_gather, broadcast and reduce over 3 to 16 devices "
             "with links to each other that make a ring (not with alpha_beta, where a rank has one "
             "port)",
    .fits = links_fit,
    .uses_chunks = is_chain,
    .count = links_count,
    .alike = rings_alike,
    .walk = links_walk,
};
static const cs_algorithm halving = {
    .name = "halving",
    .doc = "recursive halving, then doubling",
    .needs = "all_reduce, and reduce_scatter and all_gather of 2^n ranks",
    .fits = halving_fits,
    .uses_chunks = never,
    .count = halving_count,
    .walk = halving_walk,
};
static const cs_algorithm tree = {
    .name = "tree",
    .doc = "two binary trees, in chunks",
    .needs = "all_reduce, reduce and broadcast",
    .fits = tree_fits,
    .uses_chunks = always,
    .count = tree_count,
    .walk = tree_walk,
};
static const cs_algorithm hierarchical = {
    .name = "hierarchical",
    .doc = "in the nodes, then one rank of each",
    .needs = "all_reduce over several nodes with the same number of ranks each, at least 2",
    .fits = nodes_fit,
    .uses_chunks = always,
    .count = hierarchical_count,
    .walk = hierarchical_walk,
};
static const cs_algorithm segmented = {
    .name = "segmented",
    .doc = "in the nodes, then every rank with its peers",
    .needs = "all_reduce over several nodes with the same number of ranks each, at least 2",
    .fits = nodes_fit,
    .uses_chunks = never,
    .count = segmented_count,
    .walk = segmented_walk,
};
static const cs_algorithm direct = {
    .name = "direct",
    .doc = "all messages at once",
    .needs = "broadcast, reduce, scatter, gather, all_to_all, halo and shift",
    .fits = direct_fits,
    .uses_chunks = never,
    .count = direct_count,
    .walk = direct_walk,
};

static const cs_algorithm once_per_node = {
    .name = "once_per_node",
    .doc = "a token at most once to a rank, and to a node",
    .needs = "all_to_all of experts, with \"dispatcher\": \"once_per_node\"",
    .fits = tokens_fit,
    .uses_chunks = never,
    .count = tokens_count,
    .walk = tokens_walk,
};

/* The order matches the choices of the field "algorithm" (lower-options.c). */
const cs_algorithm *const cs_algorithms[] = {
    &ring,   &halving,      &tree,          &hierarchical,  &segmented,
    &direct, &ring_per_nic, &once_per_node, &ring_per_link, NULL};

const cs_algorithm *cs_algorithm_find(const char *name)
{
    for (const cs_algorithm *const *at = cs_algorithms; *at; at++)
        if (strcmp((*at)->name, name) == 0)
            return *at;
    return NULL;
}

uint32_t cs_algorithm_alike(const cs_algorithm *algorithm, const cs_collective *collective)
{
    return algorithm->alike && collective->bytes % collective->n == 0 ? algorithm->alike(collective)
                                                                      : 0;
}

bool cs_algorithm_is_short(const cs_algorithm *algorithm, const cs_collective *collective)
{
    return algorithm->alike && algorithm->alike(collective) > 0;
}

/* Sum of the bytes sent before round `end`. */
typedef struct tally {
    double bytes;
    uint32_t end;
} tally;

static bool add_bytes(void *context, const cs_send *send)
{
    tally *of = context;
    if (send->round >= of->end)
        return false;
    of->bytes += (double)send->bytes;
    return true;
}

double cs_algorithm_bytes(const cs_algorithm *algorithm, const cs_collective *collective)
{
    /* All rounds have the same number of bytes; if bytes do not divide, only the senders of the
     * extra bytes differ. */
    const uint32_t alike = algorithm->alike ? algorithm->alike(collective) : 0;
    tally of = {0, alike > 0 ? 1 : UINT32_MAX};
    if (algorithm == &direct && collective->kind == CS_ALL_TO_ALL) /* n^2 messages */
        return (collective->n - 1.0) * (double)collective->bytes;
    (void)algorithm->walk(collective, add_bytes, &of);
    return alike > 0 ? alike * of.bytes : of.bytes;
}

const cs_algorithm *cs_algorithm_usual(const cs_collective *collective)
{
    if (rings_fit(collective))
        return &ring_per_nic;
    if (collective->links_are_usual && links_fit(collective))
        return &ring_per_link;
    if (collective->kind == CS_ALL_TO_ALL)
        return tokens_fit(collective) ? &once_per_node : &direct;
    return ring_fits(collective) ? &ring : &direct;
}
