#include "sim/core/lower/prices.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"
#include "sim/core/lower/rank-order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Costs of the groups of a family that run the same collective at once. */
typedef struct price {
    const cs_algorithm *algorithm;
    cs_kind kind;
    uint32_t chunks, copies, experts;
    int64_t bytes, bytes_back;
    cs_time *costs; /* per group of the family that has members */
} price;

/* Groups of a family with one order of their ranks. */
typedef struct arrangement {
    cs_side *sides;    /* NULL until requested */
    uint32_t *devices; /* devices of all sides */
    uint64_t hash[2];  /* identifies the arrangement in the cache of costs */
    cs_solutions *solutions;
} arrangement;

typedef struct family {
    uint32_t first, n;      /* range in cs_families.groups */
    arrangement ordered[2]; /* [0] in the algorithm's order, [1] in the given order (neighbours) */
    price *prices;
    uint32_t n_prices, cap_prices;
} family;

struct cs_families {
    uint32_t *groups;    /* groups that have a family, sorted by family */
    uint32_t *family_of; /* per group: its position in `of`; CS_NONE: no family */
    uint32_t *place;     /* per group: its position in the family */
    /* parallel to `groups`: whether the group has members, or the graph is folded */
    bool *wanted;
    family *of;
    uint32_t n;
};

/* ---- costs in other graphs ---- */

/* Costs of one family, identified by two hashes of everything that they depend on. */
typedef struct remembered {
    struct remembered *next;
    uint64_t hash[2];
    cs_time costs[];
} remembered;

enum { BUCKETS = 1 << 14 };

struct cs_price_memory {
    const cs_link *links; /* identifies the platform */
    pthread_mutex_t lock;
    remembered *first[BUCKETS];
};

cs_price_memory *cs_price_memory_create(const cs_platform *platform)
{
    cs_price_memory *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->links = platform->links;
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

void cs_price_memory_destroy(cs_price_memory *memory)
{
    for (size_t i = 0; memory && i < BUCKETS; i++)
        for (remembered *at = memory->first[i], *next; at; at = next) {
            next = at->next;
            free(at);
        }
    if (memory)
        pthread_mutex_destroy(&memory->lock);
    free(memory);
}

/* Looks up costs; NULL: unknown. Entries are never removed, so they can be read without the
 * lock. */
static const remembered *recall(cs_price_memory *memory, const uint64_t hash[2])
{
    pthread_mutex_lock(&memory->lock);
    const remembered *at = memory->first[hash[0] % BUCKETS];
    while (at && (at->hash[0] != hash[0] || at->hash[1] != hash[1]))
        at = at->next;
    pthread_mutex_unlock(&memory->lock);
    return at;
}

/* Adds costs to the cache. If memory runs out they are not added; two threads may add the same. */
static void remember(cs_price_memory *memory, const uint64_t hash[2], const cs_time *costs,
                     uint32_t n)
{
    remembered *made = malloc(sizeof(*made) + n * sizeof(*costs));
    if (!made)
        return;
    memcpy(made->hash, hash, sizeof(made->hash));
    memcpy(made->costs, costs, n * sizeof(*costs));
    pthread_mutex_lock(&memory->lock);
    made->next = memory->first[hash[0] % BUCKETS];
    memory->first[hash[0] % BUCKETS] = made;
    pthread_mutex_unlock(&memory->lock);
}

/* Hash of everything that costs depend on besides the family and its collective. */
static uint64_t key_of(const cs_prices *prices)
{
    const double *reached = cs_reached_levels(&prices->options->reached);
    const uint32_t chosen[] = {prices->shared.sharing, prices->options->algorithm,
                               prices->options->gradients, prices->options->fidelity};
    uint64_t key = cs_hash_bytes(chosen, sizeof(chosen), 0);
    if (reached)
        key = cs_hash_bytes(reached, CS_N_LEVELS * sizeof(*reached), key);
    if (prices->levels)
        key = cs_hash_bytes(prices->levels, CS_N_LEVELS * sizeof(*prices->levels), key);
    return key;
}

/* ---- the families of a graph ---- */

/* Group that has a family. */
typedef struct relative {
    uint32_t family, group;
} relative;

static int compare_relatives(const void *left, const void *right)
{
    const relative *a = left, *b = right;
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    return a->group < b->group ? -1 : a->group > b->group;
}

static void destroy(cs_families *families)
{
    for (uint32_t f = 0; families && families->of && f < families->n; f++) {
        family *of = &families->of[f];
        for (size_t i = 0; i < 2; i++) {
            free(of->ordered[i].sides);
            free(of->ordered[i].devices);
            cs_solutions_destroy(of->ordered[i].solutions);
        }
        for (uint32_t i = 0; i < of->n_prices; i++)
            free(of->prices[i].costs);
        free(of->prices);
    }
    if (families) {
        free(families->groups);
        free(families->family_of);
        free(families->place);
        free(families->wanted);
        free(families->of);
    }
    free(families);
}

static uint32_t list_relatives(const cs_graph *graph, relative *out)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < graph->n_groups; g++)
        if (graph->groups[g].family != CS_NONE)
            out[n++] = (relative){graph->groups[g].family, g};
    cs_vector_sort(out, n, sizeof(*out), compare_relatives);
    return n;
}

static void fill(cs_families *families, const cs_graph *graph, const relative *relatives,
                 uint32_t n)
{
    memset(families->family_of, 0xff, graph->n_groups * sizeof(*families->family_of));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t group = relatives[i].group;
        if (i == 0 || relatives[i].family != relatives[i - 1].family)
            families->of[families->n++] = (family){.first = i};
        family *of = &families->of[families->n - 1];
        families->groups[i] = group;
        families->wanted[i] = graph->stands_for || cs_graph_count_members(graph, group) > 0;
        families->family_of[group] = families->n - 1;
        families->place[group] = of->n++;
    }
}

static cs_families *create(const cs_graph *graph)
{
    const size_t n = (size_t)graph->n_groups + 1;
    cs_families *made = calloc(1, sizeof(*made));
    relative *relatives = malloc(n * sizeof(*relatives));
    if (made) {
        made->groups = malloc(n * sizeof(*made->groups));
        made->family_of = malloc(n * sizeof(*made->family_of));
        made->place = malloc(n * sizeof(*made->place));
        made->wanted = malloc(n * sizeof(*made->wanted));
        made->of = malloc(n * sizeof(*made->of));
    }
    const bool complete = made && relatives && made->groups && made->family_of && made->place &&
                          made->wanted && made->of;
    if (complete)
        fill(made, graph, relatives, list_relatives(graph, relatives));
    free(relatives);
    if (complete)
        return made;
    destroy(made);
    return NULL;
}

cs_status cs_prices_init(cs_prices *prices, const cs_graph *graph, const cs_platform *platform,
                         const cs_lower_options *options, cs_error *error)
{
    const bool by_levels = options->fidelity == CS_FIDELITY_ALPHA_BETA;
    *prices = (cs_prices){.graph = graph,
                          .platform = platform,
                          .options = options,
                          .levels = by_levels ? options->levels : NULL,
                          .families = create(graph),
                          .links = cs_link_memory_create()};
    if (platform)
        prices->shared = *platform;
    if (options->sharing == 1)
        prices->shared.sharing = CS_SHARING_MAX_MIN;
    if (options->memory && platform && options->memory->links == platform->links) {
        prices->memory = options->memory;
        prices->key = key_of(prices);
    }
    if (prices->families && prices->links)
        return CS_OK;
    cs_prices_finish(prices);
    return cs_error_no_memory(error);
}

void cs_prices_finish(cs_prices *prices)
{
    cs_round_destroy(prices->network);
    destroy(prices->families);
    cs_link_memory_destroy(prices->links);
    *prices = (cs_prices){0};
}

/* ---- costs ---- */

static cs_status arrange(const cs_prices *prices, const family *of, cs_kind kind, arrangement *made,
                         cs_error *error)
{
    const cs_graph *graph = prices->graph;
    const uint32_t *groups = prices->families->groups + of->first;
    size_t ranks = 0, most = 0;
    for (uint32_t i = 0; i < of->n; i++) {
        const uint32_t n = graph->groups[groups[i]].n;
        ranks += n;
        most = n > most ? n : most;
    }
    cs_side *sides = calloc((size_t)of->n + 1, sizeof(*sides));
    uint32_t *order = malloc((most + 1) * sizeof(*order));
    made->devices = malloc((ranks + 1) * sizeof(*made->devices));
    made->solutions = cs_solutions_create();
    cs_status status =
        sides && order && made->devices && made->solutions ? CS_OK : cs_error_no_memory(error);
    uint32_t *devices = made->devices;
    for (uint32_t i = 0; i < of->n && status == CS_OK; i++) {
        sides[i].collective = (cs_collective){.kind = kind, .n = graph->groups[groups[i]].n};
        sides[i].devices = devices;
        status = cs_ranks_order(prices, groups[i], &sides[i].collective, order, devices, error);
        devices += sides[i].collective.n;
    }
    for (size_t h = 0; prices->memory && status == CS_OK && h < 2; h++) {
        uint64_t hash = cs_hash_bytes(made->devices, ranks * sizeof(*devices), prices->key + h);
        hash = cs_hash_bytes(prices->families->wanted + of->first, of->n, hash);
        for (uint32_t i = 0; i < of->n; i++)
            hash = hash * 0x9e3779b97f4a7c15u + sides[i].collective.n;
        made->hash[h] = hash;
    }
    free(order);
    if (status == CS_OK)
        made->sides = sides;
    else
        free(sides);
    return status;
}

static cs_status solve(cs_prices *prices, const family *of, const arrangement *ordered,
                       const price *wanted, cs_error *error)
{
    const uint64_t asked[] = {(uint64_t)wanted->bytes, (uint64_t)wanted->bytes_back,
                              (uint64_t)(uintptr_t)wanted->algorithm,
                              (uint64_t)wanted->kind << 32 | wanted->chunks,
                              (uint64_t)wanted->copies << 32 | wanted->experts};
    const uint64_t hash[] = {cs_hash_bytes(asked, sizeof(asked), ordered->hash[0]),
                             cs_hash_bytes(asked, sizeof(asked), ordered->hash[1])};
    const remembered *known = prices->memory ? recall(prices->memory, hash) : NULL;
    if (known) {
        memcpy(wanted->costs, known->costs, of->n * sizeof(*wanted->costs));
        return CS_OK;
    }
    for (uint32_t i = 0; i < of->n; i++) {
        cs_side *side = &ordered->sides[i];
        side->collective.kind = wanted->kind;
        side->collective.bytes = wanted->bytes;
        side->collective.bytes_back = wanted->bytes_back;
        side->collective.chunks = wanted->chunks;
        side->collective.copies = wanted->copies;
        side->collective.experts = wanted->experts;
        side->algorithm = wanted->algorithm->fits(&side->collective)
                              ? wanted->algorithm
                              : cs_algorithm_usual(&side->collective);
    }
    CS_TRY(cs_collective_costs(&(cs_sides){.n = of->n,
                                           .of = ordered->sides,
                                           .wanted = prices->families->wanted + of->first,
                                           .solutions = ordered->solutions,
                                           .round = prices->network},
                               &prices->shared, prices->levels, wanted->costs, error));
    if (prices->memory)
        remember(prices->memory, hash, wanted->costs, of->n);
    return CS_OK;
}

static bool is_price_of(const price *at, const cs_collective *collective,
                        const cs_algorithm *algorithm)
{
    return at->algorithm == algorithm && at->kind == collective->kind &&
           at->chunks == collective->chunks && at->copies == collective->copies &&
           at->experts == collective->experts && at->bytes == collective->bytes &&
           at->bytes_back == collective->bytes_back;
}

static cs_status find_in_family(cs_prices *prices, family *of, const cs_collective *collective,
                                const cs_algorithm *algorithm, const cs_time **costs,
                                cs_error *error)
{
    arrangement *ordered = &of->ordered[cs_ranks_are_neighbours(collective->kind)];
    for (uint32_t i = 0; i < of->n_prices; i++) {
        *costs = of->prices[i].costs;
        if (is_price_of(&of->prices[i], collective, algorithm))
            return CS_OK;
    }
    if (!ordered->sides)
        CS_TRY(arrange(prices, of, collective->kind, ordered, error));
    price made = {.algorithm = algorithm,
                  .kind = collective->kind,
                  .chunks = collective->chunks,
                  .copies = collective->copies,
                  .experts = collective->experts,
                  .bytes = collective->bytes,
                  .bytes_back = collective->bytes_back,
                  .costs = malloc(((size_t)of->n + 1) * sizeof(*made.costs))};
    if (!made.costs || !cs_vector_reserve((void **)&of->prices, &of->cap_prices,
                                          of->n_prices + UINT64_C(1), sizeof(*of->prices))) {
        free(made.costs);
        return cs_error_no_memory(error);
    }
    const cs_status status = solve(prices, of, ordered, &made, error);
    if (status != CS_OK) {
        free(made.costs);
        return status;
    }
    of->prices[of->n_prices++] = made;
    *costs = made.costs;
    return CS_OK;
}

bool cs_prices_has_relatives(const cs_prices *prices, uint32_t group)
{
    const uint32_t family_of = prices->families->family_of[group];
    return family_of != CS_NONE && prices->families->of[family_of].n > 1;
}

static cs_status begin(cs_prices *prices, cs_error *error)
{
    if (!prices->network)
        prices->network = cs_round_create(&prices->shared, prices->levels,
                                          cs_reached_levels(&prices->options->reached));
    return prices->network ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_prices_family(cs_prices *prices, uint32_t group, const cs_collective *collective,
                           const cs_algorithm *algorithm, cs_relatives *relatives, cs_error *error)
{
    cs_families *families = prices->families;
    *relatives = (cs_relatives){0};
    if (families->family_of[group] == CS_NONE)
        return CS_OK;
    family *of = &families->of[families->family_of[group]];
    CS_TRY(begin(prices, error));
    CS_TRY(find_in_family(prices, of, collective, algorithm, &relatives->costs, error));
    relatives->n = of->n;
    relatives->groups = families->groups + of->first;
    return CS_OK;
}

cs_status cs_prices_find(cs_prices *prices, uint32_t group, const cs_collective *collective,
                         const cs_algorithm *algorithm, const uint32_t *devices, cs_time *cost,
                         cs_error *error)
{
    static const bool wanted = true;
    cs_relatives relatives;
    CS_TRY(cs_prices_family(prices, group, collective, algorithm, &relatives, error));
    if (relatives.n > 0) {
        *cost = relatives.costs[prices->families->place[group]];
        return CS_OK;
    }
    CS_TRY(begin(prices, error));
    const cs_side side = {*collective, algorithm, devices};
    return cs_collective_costs(
        &(cs_sides){.n = 1, .of = &side, .wanted = &wanted, .round = prices->network},
        &prices->shared, prices->levels, cost, error);
}
