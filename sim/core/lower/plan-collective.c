#include "sim/core/lower/plan-collective.h"

#include "sim/core/lower/rank-order.h"
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

/* Whether the default ring uses one NIC although the first node has several, because nodes
 * differ. */
static bool leaves_nics(const cs_platform *platform, const cs_way *way)
{
    uint32_t ranks = 0;
    if (!platform || !platform->nic_of || way->collective.node_ranks > 0 || !way->network)
        return false;
    const uint32_t size = platform->node_devices, first = way->devices[0] / size;
    while (ranks < way->collective.n && way->devices[ranks] / size == first)
        ranks++;
    return cs_ranks_nics(platform, way->devices, ranks) > 1;
}

static bool several_nodes(const cs_platform *platform, const uint32_t *devices, uint32_t n)
{
    bool several = false;
    for (uint32_t i = 1; i < n && platform && platform->node_devices > 0; i++)
        several |= devices[i] / platform->node_devices != devices[0] / platform->node_devices;
    return several;
}

/* ---- algorithm and chunks ---- */

/* Fraction of bandwidth that the messages' times do not include yet (prices.h). */
static double reached_by_all(const cs_lower_options *options)
{
    return options->reached.all > 0 ? options->reached.all : 1;
}

/* Replaces a time over the links by the time of NCCL's model, s. The platform's bandwidths stay. */
static double by_nccl(const cs_lower_options *options, cs_way *way, cs_time time)
{
    const double rounds = way->facts.kind == CS_ALL_REDUCE ? 2 : 1, n = way->facts.ranks;
    const cs_time wire = time > way->links ? time - way->links : 1;
    const cs_nccl_algorithm only = options->nccl_algorithm > 0
                                       ? (cs_nccl_algorithm)(options->nccl_algorithm - 1)
                                       : CS_NCCL_ALGORITHMS;
    const double seconds = cs_time_seconds(wire) / reached_by_all(options);
    way->facts.bus = rounds * (n - 1) / n * (double)way->facts.bytes / seconds;
    way->choice = cs_nccl_choose(&way->facts, only);
    return way->choice.seconds;
}

/* Returns the reached fraction and start-up time for tokens sent once per node, relative to the
 * general fraction that their messages include already. */
static cs_dispatch_cost cost_beside(const cs_lower_options *options, const cs_way *way)
{
    const double *levels = cs_reached_levels(&options->reached);
    const bool once = way->collective.copies > 0 && way->network &&
                      strcmp(way->algorithm->name, "once_per_node") == 0;
    if (!options->dispatch || !once)
        return (cs_dispatch_cost){reached_by_all(options), options->start};
    return (cs_dispatch_cost){options->dispatch->reached / (levels ? levels[CS_LEVEL_RACK] : 1),
                              options->dispatch->start};
}

/* Seconds that NCCL adds to the bytes of an all-to-all between nodes. */
static double messages_of(const cs_lower_options *options, const cs_way *way)
{
    const cs_collective *of = &way->collective;
    /* whether dispatch has its own start-up time */
    const bool apart = options->dispatch && of->copies > 0;
    if (options->nccl == CS_NCCL_NONE || of->kind != CS_ALL_TO_ALL || !way->network || apart)
        return 0;
    return cs_nccl_messages(of->n - (of->node_ranks > 0 ? of->node_ranks : 1),
                            cs_time_seconds(options->network_latency) * 1e6);
}

/* The share of a collective that its ranks wait for. Tensor-parallel collectives are cut into a
 * chunk per rank, and the product that reads or writes them hides all chunks but one. All-to-alls
 * of experts are hidden by the layers of another micro-batch. */
static double exposed_share(const cs_lower_options *options, const cs_way *way)
{
    const double rest = way->tensor ? 1 - 1.0 / way->collective.n : 0;
    const double hidden = way->expert && !way->alone ? options->expert_overlap : 0;
    return (1 - rest * options->tensor_overlap) * (1 - hidden);
}

/* Applies the reached fraction of the links' bandwidth and adds the start-up time. */
cs_status cs_way_delay(const cs_lower_options *options, cs_way *way, cs_time *time, cs_error *error)
{
    const double exposed = exposed_share(options, way);
    const cs_dispatch_cost by = cost_beside(options, way);
    const double messages = messages_of(options, way);
    way->hidden = 0;
    if (by.reached == 1 && by.start == 0 && exposed >= 1 && !way->by_nccl && messages == 0)
        return CS_OK;
    const double wire = way->by_nccl ? by_nccl(options, way, *time) * (double)CS_PS_PER_SEC
                                     : (double)*time / by.reached;
    const double whole = wire + (double)by.start + messages * (double)CS_PS_PER_SEC;
    if (!(whole <= (double)(INT64_MAX / 2)))
        return cs_error_add(error, CS_OVERFLOW, "a collective takes too long");
    *time = (cs_time)(whole * exposed);
    way->hidden = exposed < 1 ? (cs_time)whole - *time : 0;
    return CS_OK;
}

/* Fills in what NCCL's model needs to know about the ranks and the platform. */
static cs_status find_facts(cs_prices *prices, cs_way *way, cs_error *error)
{
    const cs_platform *platform = prices->platform;
    const cs_lower_options *options = prices->options;
    const double *levels = cs_reached_levels(&options->reached);
    const cs_collective *of = &way->collective;
    const uint32_t size = platform->node_devices;
    cs_route route;
    uint32_t nodes = 1;
    uint32_t *links = malloc(((size_t)platform->longest_route + 1) * sizeof(*links));
    if (!links)
        return cs_error_no_memory(error);
    cs_status status =
        cs_route_find(platform, way->devices[0], way->devices[1], links, &route, error);
    const cs_link *first = status == CS_OK && route.n > 0 ? &platform->links[links[0]] : NULL;
    for (uint32_t i = 1; i < of->n && way->network; i++)
        nodes += way->devices[i] / size != way->devices[i - 1] / size;
    const bool nvlink = first && first->peer;
    const bool switched = nvlink && platform->vertices[first->to].kind == CS_VERTEX_SWITCH;
    nodes = of->node_ranks > 0 ? of->n / of->node_ranks : nodes;
    way->facts =
        (cs_nccl_case){.kind = of->kind,
                       .ranks = of->n,
                       .nodes = nodes,
                       .generation = (cs_nccl_generation)options->nccl,
                       .nvlink = nvlink || of->n == nodes,
                       .nvls = switched && of->n > 2 * nodes && options->nccl >= CS_NCCL_HOPPER,
                       .adapters = nodes > 1 ? of->rings : 0,
                       .network_latency = cs_time_seconds(options->network_latency) * 1e6,
                       .bytes = of->bytes,
                       .switched = switched ? first->bandwidth * (levels ? levels[CS_LEVEL_GPU_PAIR]
                                                                         : reached_by_all(options))
                                            : 0};
    free(links);
    return status;
}

/* Asks NCCL's model, which knows the bandwidth of rings only; the latency on the links is the
 * latency of the same rounds with one byte per rank. */
static cs_status ask_nccl(cs_prices *prices, cs_way *way, cs_error *error)
{
    cs_collective small = way->collective;
    const bool ring = strncmp(way->algorithm->name, "ring", strlen("ring")) == 0;
    const bool known = small.kind == CS_ALL_REDUCE || small.kind == CS_REDUCE_SCATTER ||
                       small.kind == CS_ALL_GATHER;
    if (prices->options->nccl == CS_NCCL_NONE || !ring || !known || small.bytes <= small.n ||
        prices->options->fidelity == CS_FIDELITY_ALPHA_BETA)
        return CS_OK;
    small.bytes = small.n;
    way->by_nccl = true;
    CS_TRY(find_facts(prices, way, error));
    return cs_prices_find(prices, way->group, &small, way->algorithm, way->devices, &way->links,
                          error);
}

cs_status cs_way_price(cs_prices *prices, cs_way *way, cs_error *error)
{
    const bool by_levels = prices->options->fidelity == CS_FIDELITY_ALPHA_BETA;
    if (way->measured && !by_levels) {
        cs_time whole = 0;
        CS_TRY(cs_measured_time(way->measured, way->collective.bytes, &whole, error));
        way->cost = (cs_time)((double)whole * exposed_share(prices->options, way));
        way->hidden = whole - way->cost;
        return CS_OK;
    }
    if (way->cost >= 0)
        return CS_OK;
    CS_TRY(ask_nccl(prices, way, error));
    CS_TRY(cs_prices_find(prices, way->group, &way->collective, way->algorithm, way->devices,
                          &way->cost, error));
    return cs_way_delay(prices->options, way, &way->cost, error);
}

/* Takes the cheapest number of chunks and, if no algorithm is named, the cheapest algorithm that
 * fits. */
static cs_status take_cheapest(cs_prices *prices, const cs_algorithm *named, cs_way *way,
                               cs_error *error)
{
    const cs_lower_options *options = prices->options;
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
            CS_TRY(cs_way_price(prices, &tried, error));
            if (best.cost < 0 || tried.cost < best.cost)
                best = tried;
        }
    }
    if (best.cost >= 0) /* otherwise all candidates overflow, which the caller reports */
        *way = best;
    return CS_OK;
}

/* Reports that the named algorithm does not fit. */
static cs_status does_not_fit(const cs_algorithm *named, const cs_collective *of, const char *key,
                              const char *file, cs_error *error)
{
    const cs_json_place root = {.file = file};
    const cs_json_place section = {.up = &root, .key = "collectives"};
    const cs_json_place place = {.up = &section, .key = key};
    return cs_json_invalid(&place, error,
                           "must fit the %s of %u ranks, as \"auto\" and \"usual\" do for all "
                           "collectives (got %s, which is for %s)",
                           cs_kind_name(of->kind), of->n, named->name, named->needs);
}

/* The algorithm that the options name for a class, as in cs_lower_options.algorithm. */
static uint32_t algorithm_for(const cs_lower_options *options, const cs_class *cls)
{
    const bool apart = cls->purpose == CS_PURPOSE_GRADIENTS && options->gradients > 0;
    return apart ? options->gradients - 1 : options->algorithm;
}

static cs_status choose(cs_prices *prices, const cs_class *cls, cs_way *way, cs_error *error)
{
    const cs_lower_options *options = prices->options;
    const cs_collective *of = &way->collective;
    const uint32_t asked = algorithm_for(options, cls);
    const cs_algorithm *named = asked >= CS_FIRST_ALGORITHM
                                    ? cs_algorithms[asked - CS_FIRST_ALGORITHM]
                                    : cs_algorithm_usual(of);
    if (!named->fits(of))
        return does_not_fit(named, of, asked == options->algorithm ? "algorithm" : "gradients",
                            options->file, error);
    way->algorithm = named;
    way->collective.chunks = options->chunks > 0 ? options->chunks : 1;
    if (asked == CS_ALGORITHM_AUTO)
        return take_cheapest(prices, NULL, way, error);
    if (options->chunks == 0 && prices->platform && named->uses_chunks(of))
        return take_cheapest(prices, named, way, error);
    return CS_OK;
}

static uint32_t copies_of(const cs_lower_options *options, const cs_class *cls)
{
    return cls->kind == CS_ALL_TO_ALL && cls->purpose == CS_PURPOSE_EXPERT ? options->copies : 0;
}

cs_status cs_way_decide(cs_prices *prices, const cs_class *cls, cs_way *way, cs_error *error)
{
    const cs_graph *graph = prices->graph;
    const cs_platform *platform = prices->platform;
    const cs_lower_options *options = prices->options;
    const cs_group group = graph->groups[cls->peer];
    cs_way made = {.collective = {.kind = cls->kind,
                                  .n = group.n,
                                  .bytes = cls->bytes,
                                  .bytes_back = cls->bytes_back,
                                  .copies = copies_of(options, cls),
                                  .experts = options->experts},
                   .group = cls->peer,
                   .tensor = cls->purpose == CS_PURPOSE_TENSOR,
                   .expert = cls->kind == CS_ALL_TO_ALL && cls->purpose == CS_PURPOSE_EXPERT,
                   .alone = cls->alone,
                   .order = malloc(group.n * sizeof(*made.order)),
                   .devices = malloc(group.n * sizeof(*made.devices)),
                   .n_members = cs_graph_count_members(graph, cls->peer),
                   .cost = -1};
    cs_status status =
        made.order && made.devices
            ? cs_ranks_order(prices, cls->peer, &made.collective, made.order, made.devices, error)
            : cs_error_no_memory(error);
    made.network = status == CS_OK && several_nodes(platform, made.devices, group.n);
    if (status == CS_OK)
        status = choose(prices, cls, &made, error);
    if (status != CS_OK) {
        cs_way_finish(&made);
        return status;
    }
    made.n_sends = made.algorithm->count(&made.collective);
    made.measured = cs_measured_find(options->measured, cls->kind, made.network, group.n);
    made.one_nic = algorithm_for(options, cls) == CS_ALGORITHM_USUAL && !made.measured &&
                   options->fidelity != CS_FIDELITY_ALPHA_BETA && cls->kind != CS_ALL_TO_ALL &&
                   strcmp(made.algorithm->name, "ring") == 0 && leaves_nics(platform, &made);
    *way = made;
    return CS_OK;
}
