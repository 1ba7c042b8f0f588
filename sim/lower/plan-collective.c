#include "sim/lower/plan-collective.h"

#include "sim/lower/cost.h"
#include "topologies/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_way_finish(cs_way *way)
{
    free(way->order);
    free(way->devices);
    *way = (cs_way){0};
}

/* ---- order of the ranks ---- */

/* Fewer links are nearer, then wider ones. */
static bool is_nearer(const cs_route *a, const cs_route *b)
{
    return a->n != b->n ? a->n < b->n : a->bandwidth > b->bandwidth;
}

/* From rank 0 on to the nearest rank that is not there yet, of equally near ones the one with the
 * lowest device: what shares a switch, a node, a rack comes together, so that a ring leaves each of
 * them once. O(n^2) routes. */
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

/* The same within each node: rings then follow the links between GPUs, as NCCL looks for them. */
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

/* How many ranks share a node, when it is the same number in every node and they stand together. */
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

/* How many NICs the ranks of the first node use. */
static uint32_t count_nics(const cs_platform *platform, const uint32_t *devices, uint32_t ranks)
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

/* Whether nodes are unlike (else they have a ring per NIC), and the first one uses several NICs. */
static bool leaves_nics(const cs_platform *platform, const cs_way *way)
{
    uint32_t ranks = 0;
    if (!platform || !platform->nic_of || way->collective.node_ranks > 0 || !way->network)
        return false;
    const uint32_t size = platform->node_devices, first = way->devices[0] / size;
    while (ranks < way->collective.n && way->devices[ranks] / size == first)
        ranks++;
    return count_nics(platform, way->devices, ranks) > 1;
}

static bool several_nodes(const cs_platform *platform, const uint32_t *devices, uint32_t n)
{
    bool several = false;
    for (uint32_t i = 1; i < n && platform && platform->node_devices > 0; i++)
        several |= devices[i] / platform->node_devices != devices[0] / platform->node_devices;
    return several;
}

/* ---- algorithm and chunks ---- */

cs_status cs_way_price(const cs_platform *platform, const cs_lower_options *options, cs_way *way,
                       cs_error *error)
{
    const bool by_levels = options->fidelity == CS_FIDELITY_ALPHA_BETA;
    if (way->measured && !by_levels)
        return cs_measured_time(way->measured, way->collective.bytes, &way->cost, error);
    if (way->cost >= 0)
        return CS_OK;
    return cs_collective_cost(&way->collective, way->algorithm, platform, way->devices,
                              by_levels ? options->levels : NULL, &way->cost, error);
}

/* Takes the cheapest of the chunk counts, and of all algorithms that fit where none is named. */
static cs_status take_cheapest(const cs_platform *platform, const cs_lower_options *options,
                               const cs_algorithm *named, cs_way *way, cs_error *error)
{
    static const uint32_t counts[] = {1, 4, 16, 64};
    cs_way best = *way;
    best.cost = -1;
    for (size_t i = 0; cs_algorithms[i]; i++) {
        cs_way tried = *way;
        tried.algorithm = cs_algorithms[i];
        if ((named && named != tried.algorithm) || !tried.algorithm->fits(&tried.collective) ||
            (tried.algorithm->count(&tried.collective) >= CS_LIST &&
             !cs_algorithm_is_short(tried.algorithm, &tried.collective)))
            continue;
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            if (k > 0 && (options->chunks > 0 || !tried.algorithm->uses_chunks(&tried.collective)))
                break;
            tried.collective.chunks = options->chunks > 0 ? options->chunks : counts[k];
            tried.cost = -1;
            CS_TRY(cs_way_price(platform, options, &tried, error));
            if (best.cost < 0 || tried.cost < best.cost)
                best = tried;
        }
    }
    if (best.cost >= 0) /* else all are too large, which is told by who asked */
        *way = best;
    return CS_OK;
}

/* The algorithm that was named does not fit. */
static cs_status does_not_fit(const cs_algorithm *named, const cs_collective *of, const char *file,
                              cs_error *error)
{
    const cs_json_place root = {.file = file};
    const cs_json_place section = {.up = &root, .key = "collectives"};
    const cs_json_place place = {.up = &section, .key = "algorithm"};
    char fitting[128] = "";
    size_t used = 0;
    for (size_t i = 0; cs_algorithms[i]; i++)
        if (cs_algorithms[i]->fits(of) && used < sizeof(fitting))
            used += (size_t)snprintf(fitting + used, sizeof(fitting) - used, "%s, ",
                                     cs_algorithms[i]->name);
    return cs_json_invalid(
        &place, error,
        "must fit the %s of %u ranks: one of %susual, auto (got %s, which is for "
        "%s)",
        cs_kind_name(of->kind), of->n, fitting, named->name, named->needs);
}

static cs_status choose(const cs_platform *platform, const cs_lower_options *options, cs_way *way,
                        cs_error *error)
{
    const cs_collective *of = &way->collective;
    const cs_algorithm *named = options->algorithm >= CS_FIRST_ALGORITHM
                                    ? cs_algorithms[options->algorithm - CS_FIRST_ALGORITHM]
                                    : cs_algorithm_usual(of);
    if (!named->fits(of))
        return does_not_fit(named, of, options->file, error);
    way->algorithm = named;
    way->collective.chunks = options->chunks > 0 ? options->chunks : 1;
    if (options->algorithm == CS_ALGORITHM_AUTO)
        return take_cheapest(platform, options, NULL, way, error);
    if (options->chunks == 0 && platform && named->uses_chunks(of))
        return take_cheapest(platform, options, named, way, error);
    return CS_OK;
}

/* The ranks in the algorithm's order, and what it has to know of their nodes. A halo or a shift is
 * between neighbours as they are given. */
static cs_status order_ranks(const cs_platform *platform, const uint32_t *given,
                             const cs_lower_options *options, cs_way *way, cs_error *error)
{
    cs_collective *of = &way->collective;
    const bool neighbours = of->kind == CS_HALO || of->kind == CS_SHIFT;
    for (uint32_t i = 0; i < of->n; i++)
        way->order[i] = i;
    if (options->order == CS_ORDER_FOUND && !neighbours)
        CS_TRY(find_order(platform, given, of->n, way->order, error));
    for (uint32_t i = 0; i < of->n; i++)
        way->devices[i] = given[way->order[i]];
    of->node_ranks = find_nodes(platform, way->devices, of->n);
    if (options->fidelity != CS_FIDELITY_ALPHA_BETA) /* there a rank has one port */
        of->rings = count_nics(platform, way->devices, of->node_ranks);
    if (options->order != CS_ORDER_AUTO || neighbours || of->rings < 2 || of->n == of->node_ranks)
        return CS_OK;
    CS_TRY(find_order_in_nodes(platform, given, of->n, of->node_ranks, way->order, error));
    for (uint32_t i = 0; i < of->n; i++)
        way->devices[i] = given[way->order[i]];
    return CS_OK;
}

cs_status cs_way_decide(const cs_graph *graph, const cs_class *cls, const cs_platform *platform,
                        const cs_lower_options *options, cs_way *way, cs_error *error)
{
    const cs_group group = graph->groups[cls->peer];
    const uint32_t *given = graph->group_devices + group.first;
    cs_way made = {.collective = {.kind = cls->kind, .n = group.n, .bytes = cls->bytes},
                   .order = malloc(group.n * sizeof(*made.order)),
                   .devices = malloc(group.n * sizeof(*made.devices)),
                   .n_members = cs_graph_count_members(graph, cls->peer),
                   .cost = -1};
    cs_status status = made.order && made.devices
                           ? order_ranks(platform, given, options, &made, error)
                           : cs_error_no_memory(error);
    if (status == CS_OK)
        status = choose(platform, options, &made, error);
    if (status != CS_OK) {
        cs_way_finish(&made);
        return status;
    }
    made.n_sends = made.algorithm->count(&made.collective);
    made.network = several_nodes(platform, made.devices, group.n);
    made.measured = cs_measured_find(options->measured, cls->kind, made.network, group.n);
    made.one_nic = options->algorithm == CS_ALGORITHM_USUAL && !made.measured &&
                   options->fidelity != CS_FIDELITY_ALPHA_BETA && cls->kind != CS_ALL_TO_ALL &&
                   strcmp(made.algorithm->name, "ring") == 0 && leaves_nics(platform, &made);
    *way = made;
    return CS_OK;
}
