#include "sim/core/lower/rank-order.h"

#include "sim/core/lower/plan-collective.h"
#include "topologies/route.h"

#include <stdlib.h>
#include <string.h>

/* Whether route a is nearer: fewer links first, then higher bandwidth. */
static bool is_nearer(const cs_route *a, const cs_route *b)
{
    return a->n != b->n ? a->n < b->n : a->bandwidth > b->bandwidth;
}

/* Orders ranks from rank 0, each time appending the nearest remaining rank (ties: lowest device).
 * Ranks that share a switch, a node or a rack become adjacent, so a ring leaves each of these once.
 * Needs O(n^2) routes. */
static cs_status find_order(const cs_platform *platform, const uint32_t *given, uint32_t n,
                            uint32_t *order, cs_error *error)
{
    uint32_t *links = malloc(((size_t)platform->longest_route + 1) * sizeof(*links));
    cs_status status = links ? CS_OK : cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = 1; i < n && status == CS_OK; i++) {
        uint32_t best = i;
        cs_route least = {.n = UINT32_MAX}, of = {0};
        for (uint32_t k = i; k < n && status == CS_OK; k++) {
            status =
                cs_route_find(platform, given[order[i - 1]], given[order[k]], links, &of, error);
            const bool equal = !is_nearer(&of, &least) && !is_nearer(&least, &of);
            if (is_nearer(&least, &of) || (equal && given[order[k]] > given[order[best]]))
                continue;
            least = of;
            best = k;
        }
        const uint32_t swap = order[i];
        order[i] = order[best];
        order[best] = swap;
    }
    free(links);
    return status;
}

/* Orders ranks within each node in the same way, so that rings follow the links between GPUs as
 * NCCL's search does. */
static cs_status find_order_in_nodes(const cs_platform *platform, const uint32_t *given, uint32_t n,
                                     uint32_t node_ranks, uint32_t *order, cs_error *error)
{
    for (uint32_t first = 0; first < n; first += node_ranks) {
        CS_TRY(find_order(platform, given + first, node_ranks, order + first, error));
        for (uint32_t i = first; i < first + node_ranks; i++)
            order[i] += first;
    }
    return CS_OK;
}

/* Number of ranks per node if it is the same in every node and ranks of a node are adjacent; else
 * 0. */
static uint32_t find_nodes(const cs_platform *platform, const uint32_t *devices, uint32_t n)
{
    if (!platform || platform->node_devices == 0)
        return 0;
    const uint32_t size = platform->node_devices;
    uint32_t ranks = 0;
    while (ranks < n && devices[ranks] / size == devices[0] / size)
        ranks++;
    for (uint32_t i = 0; i < n; i++) {
        const bool first = i % ranks == 0;
        const bool same = i > 0 && devices[i] / size == devices[i - 1] / size;
        if (first == same)
            return 0;
    }
    return n % ranks == 0 ? ranks : 0;
}

uint32_t cs_ranks_nics(const cs_platform *platform, const uint32_t *devices, uint32_t ranks)
{
    uint32_t nics = 0;
    for (uint32_t i = 0; platform && platform->nic_of && i < ranks; i++) {
        const uint32_t nic = platform->nic_of[devices[i] % platform->node_devices];
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = platform->nic_of[devices[k] % platform->node_devices] == nic;
        nics += !seen;
    }
    return nics;
}

bool cs_ranks_are_neighbours(cs_kind kind)
{
    return kind == CS_HALO || kind == CS_SHIFT;
}

/* Whether the requested algorithm allows rings over links that are not the default. */
static bool may_take_links(uint32_t asked)
{
    return asked == CS_ALGORITHM_AUTO ||
           (asked >= CS_FIRST_ALGORITHM &&
            strcmp(cs_algorithms[asked - CS_FIRST_ALGORITHM]->name, "ring_per_link") == 0);
}

static bool goes_over_links(uint32_t asked)
{
    return asked == CS_ALGORITHM_USUAL || (asked != CS_ALGORITHM_AUTO && may_take_links(asked));
}

bool cs_lower_takes_links(const cs_lower_options *options)
{
    return options->fidelity != CS_FIDELITY_ALPHA_BETA && goes_over_links(options->algorithm) &&
           (options->gradients == 0 || goes_over_links(options->gradients - 1));
}

/* Finds rings over direct links. None in the alpha-beta model, which has one port per rank. */
static cs_status find_links(const cs_prices *prices, const uint32_t *devices, cs_collective *of,
                            cs_error *error)
{
    const cs_platform *platform = prices->platform;
    const cs_lower_options *options = prices->options;
    if (!platform || options->fidelity == CS_FIDELITY_ALPHA_BETA)
        return CS_OK;
    of->links_are_usual = platform->linked_gpus;
    if (!platform->linked_gpus && !may_take_links(options->algorithm) &&
        (options->gradients == 0 || !may_take_links(options->gradients - 1)))
        return CS_OK;
    return cs_link_memory_find(prices->links, platform, devices, of->n, &of->links, error);
}

static cs_status find_nics(const cs_prices *prices, const uint32_t *given, cs_collective *of,
                           uint32_t *order, uint32_t *devices, cs_error *error)
{
    const cs_platform *platform = prices->platform;
    const cs_lower_options *options = prices->options;
    of->node_ranks = find_nodes(platform, devices, of->n);
    /* the alpha-beta model has one port per rank */
    if (options->fidelity != CS_FIDELITY_ALPHA_BETA)
        of->rings = cs_ranks_nics(platform, devices, of->node_ranks);
    if (options->order != CS_ORDER_AUTO || cs_ranks_are_neighbours(of->kind) || of->rings < 2 ||
        of->n == of->node_ranks)
        return CS_OK;
    CS_TRY(find_order_in_nodes(platform, given, of->n, of->node_ranks, order, error));
    for (uint32_t i = 0; i < of->n; i++)
        devices[i] = given[order[i]];
    return CS_OK;
}

cs_status cs_ranks_order(const cs_prices *prices, uint32_t group, cs_collective *of,
                         uint32_t *order, uint32_t *devices, cs_error *error)
{
    const cs_graph *graph = prices->graph;
    const uint32_t *given = graph->group_devices + graph->groups[group].first;
    const bool neighbours = cs_ranks_are_neighbours(of->kind);
    for (uint32_t i = 0; i < of->n; i++)
        order[i] = i;
    if (prices->options->order == CS_ORDER_FOUND && !neighbours)
        CS_TRY(find_order(prices->platform, given, of->n, order, error));
    for (uint32_t i = 0; i < of->n; i++)
        devices[i] = given[order[i]];
    CS_TRY(find_nics(prices, given, of, order, devices, error));
    return neighbours ? CS_OK : find_links(prices, devices, of, error);
}
