#include "calib/costs.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_cost_passes[] = {"forward", "backward_input", "backward_weight", "update",
                                      NULL};

const char *const cs_cost_collective_names[] = {
#define COLLECTIVE_NAME(name, text) text,
    CS_COST_COLLECTIVE_MAP(COLLECTIVE_NAME)
#undef COLLECTIVE_NAME
        NULL};

const char *const cs_cost_level_names[] = {
#define LEVEL_NAME(name, text) text,
    CS_COST_LEVEL_MAP(LEVEL_NAME)
#undef LEVEL_NAME
        NULL};

void cs_costs_init(cs_costs *costs)
{
    *costs = (cs_costs){0};
    cs_arena_init(&costs->arena);
}

void cs_costs_finish(cs_costs *costs)
{
    if (!costs)
        return;
    free(costs->sources);
    free(costs->compute);
    free(costs->memory);
    free(costs->network);
    free(costs->bandwidths);
    free(costs->overheads);
    cs_arena_finish(&costs->arena);
    *costs = (cs_costs){0};
}

/* ---- look-up ---- */

const cs_cost_compute *cs_costs_compute(const cs_costs *costs, const char *op)
{
    for (uint32_t i = 0; i < costs->n_compute; i++)
        if (strcmp(costs->compute[i].op, op) == 0)
            return &costs->compute[i];
    return NULL;
}

const cs_cost_memory *cs_costs_memory(const cs_costs *costs, const char *network)
{
    for (uint32_t i = 0; i < costs->n_memory; i++)
        if (strcmp(costs->memory[i].network, network) == 0)
            return &costs->memory[i];
    return NULL;
}

const cs_cost_network *cs_costs_network(const cs_costs *costs, cs_cost_collective collective,
                                        cs_cost_level level, uint32_t ranks)
{
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_network *at = &costs->network[i];
        if (at->collective == collective && at->level == level && at->ranks == ranks)
            return at;
    }
    return NULL;
}

const cs_cost_bandwidth *cs_costs_bandwidth(const cs_costs *costs, const char *kind)
{
    for (uint32_t i = 0; i < costs->n_bandwidths; i++)
        if (strcmp(costs->bandwidths[i].kind, kind) == 0)
            return &costs->bandwidths[i];
    return NULL;
}

const cs_cost_overhead *cs_costs_overhead(const cs_costs *costs, const char *kind)
{
    for (uint32_t i = 0; i < costs->n_overheads; i++)
        if (strcmp(costs->overheads[i].kind, kind) == 0)
            return &costs->overheads[i];
    return NULL;
}

const cs_cost_regime *cs_cost_regime_of(const cs_cost_network *network, int64_t bytes)
{
    uint32_t i = network->n_regimes - 1;
    while (i > 0 && network->regimes[i].from > bytes)
        i--;
    return &network->regimes[i];
}

double cs_cost_seconds(const cs_cost_network *network, int64_t bytes)
{
    const cs_cost_regime *regime = cs_cost_regime_of(network, bytes);
    return regime->alpha.value + regime->beta.value * (double)bytes;
}

bool cs_cost_interval_is_known(const cs_cost_interval *interval)
{
    return isfinite(interval->high);
}

double cs_cost_bus_factor(cs_cost_collective collective, uint32_t ranks)
{
    const double share = (ranks - 1.0) / ranks;
    switch (collective) {
    case CS_COST_ALL_REDUCE:
        return 2 * share;
    case CS_COST_ALL_GATHER:
    case CS_COST_REDUCE_SCATTER:
    case CS_COST_ALL_TO_ALL:
    case CS_COST_SCATTER:
    case CS_COST_GATHER:
        return share;
    case CS_COST_SEND:
    case CS_COST_STREAM:
    case CS_COST_BROADCAST:
    case CS_COST_REDUCE:
    case CS_N_COST_COLLECTIVES:
        break;
    }
    return 1;
}

/* ---- building ---- */

/* Copies a text into the arena. Returns false if memory runs out. */
static bool own(cs_costs *costs, const char **text)
{
    *text = cs_arena_copy(&costs->arena, *text ? *text : "");
    return *text != NULL;
}

static const void *copy(cs_costs *costs, const void *from, uint32_t n, size_t size)
{
    void *made = cs_arena_alloc(&costs->arena, n, size);
    if (made && n > 0)
        memcpy(made, from, n * size);
    return made;
}

static bool same_source(const cs_cost_source *a, const cs_cost_source *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->driver, b->driver) == 0 && strcmp(a->libraries, b->libraries) == 0 &&
           strcmp(a->clock, b->clock) == 0 && strcmp(a->date, b->date) == 0 &&
           strcmp(a->notes, b->notes) == 0;
}

cs_status cs_costs_add_source(cs_costs *costs, const cs_cost_source *source, uint32_t *id,
                              cs_error *error)
{
    cs_cost_source made = *source;
    const bool copied = own(costs, &made.source) && own(costs, &made.device) &&
                        own(costs, &made.driver) && own(costs, &made.libraries) &&
                        own(costs, &made.clock) && own(costs, &made.date) &&
                        own(costs, &made.notes);
    if (!copied || !cs_vector_reserve((void **)&costs->sources, &costs->cap_sources,
                                      costs->n_sources + UINT64_C(1), sizeof(made)))
        return cs_error_no_memory(error);
    *id = 0;
    while (*id < costs->n_sources && !same_source(&costs->sources[*id], &made))
        (*id)++;
    if (*id == costs->n_sources)
        costs->sources[costs->n_sources++] = made;
    return CS_OK;
}

/* A table of entries. put_entry replaces an entry or appends one. */
typedef struct table {
    void **entries;
    uint32_t *n, *capacity;
    size_t size;
} table;

static cs_status put_entry(table to, const void *replaced, const void *entry, cs_error *error)
{
    if (!replaced && !cs_vector_reserve(to.entries, to.capacity, *to.n + UINT64_C(1), to.size))
        return cs_error_no_memory(error);
    char *first = *to.entries;
    const size_t at =
        replaced ? (size_t)((const char *)replaced - first) : (size_t)(*to.n)++ * to.size;
    memcpy(first + at, entry, to.size);
    return CS_OK;
}

#define TABLE(name)                                                                                \
    (table)                                                                                        \
    {                                                                                              \
        (void **)&costs->name, &costs->n_##name, &costs->cap_##name, sizeof(*costs->name)          \
    }

cs_status cs_costs_add_compute(cs_costs *costs, const cs_cost_compute *entry, cs_error *error)
{
    cs_cost_compute made = *entry;
    if (!own(costs, &made.op) || !own(costs, &made.algorithm))
        return cs_error_no_memory(error);
    return put_entry(TABLE(compute), cs_costs_compute(costs, made.op), &made, error);
}

cs_status cs_costs_add_memory(cs_costs *costs, const cs_cost_memory *entry, cs_error *error)
{
    cs_cost_memory made = *entry;
    if (!own(costs, &made.network))
        return cs_error_no_memory(error);
    return put_entry(TABLE(memory), cs_costs_memory(costs, made.network), &made, error);
}

cs_status cs_costs_add_network(cs_costs *costs, const cs_cost_network *entry, cs_error *error)
{
    cs_cost_network made = *entry;
    made.regimes = copy(costs, entry->regimes, entry->n_regimes, sizeof(*entry->regimes));
    made.points = copy(costs, entry->points, entry->n_points, sizeof(*entry->points));
    if (!made.regimes || !made.points)
        return cs_error_no_memory(error);
    return put_entry(TABLE(network),
                     cs_costs_network(costs, made.collective, made.level, made.ranks), &made,
                     error);
}

cs_status cs_costs_add_bandwidth(cs_costs *costs, const cs_cost_bandwidth *entry, cs_error *error)
{
    cs_cost_bandwidth made = *entry;
    if (!own(costs, &made.kind))
        return cs_error_no_memory(error);
    return put_entry(TABLE(bandwidths), cs_costs_bandwidth(costs, made.kind), &made, error);
}

cs_status cs_costs_add_overhead(cs_costs *costs, const cs_cost_overhead *entry, cs_error *error)
{
    cs_cost_overhead made = *entry;
    if (!own(costs, &made.kind))
        return cs_error_no_memory(error);
    return put_entry(TABLE(overheads), cs_costs_overhead(costs, made.kind), &made, error);
}

/* ---- merging ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Keeps passes that only the old entry has, and then its algorithms, which describe all its passes.
 * Bytes are the maximum over the passes. */
static void keep_passes(cs_cost_compute *entry, const cs_cost_compute *old)
{
    bool kept = false;
    for (int p = 0; p < CS_COST_PASSES; p++) {
        if (entry->passes[p].samples > 0 || old->passes[p].samples == 0)
            continue;
        entry->passes[p] = old->passes[p];
        entry->pass_sources[p] = old->pass_sources[p];
        kept = true;
    }
    if (!kept)
        return;
    entry->workspace_bytes = larger(entry->workspace_bytes, old->workspace_bytes);
    entry->peak_bytes = larger(entry->peak_bytes, old->peak_bytes);
    entry->algorithm = old->algorithm;
}

/* Each function adds entry i with its source, for a loop over all tables. */
static cs_status merge_compute(cs_costs *costs, const cs_costs *from, uint32_t i, cs_error *error)
{
    cs_cost_compute entry = from->compute[i];
    CS_TRY(cs_costs_add_source(costs, &from->sources[entry.source], &entry.source, error));
    for (int p = 0; p < CS_COST_PASSES; p++)
        if (entry.passes[p].samples > 0)
            CS_TRY(cs_costs_add_source(costs, &from->sources[entry.pass_sources[p]],
                                       &entry.pass_sources[p], error));
    const cs_cost_compute *old = cs_costs_compute(costs, entry.op);
    if (old)
        keep_passes(&entry, old);
    return cs_costs_add_compute(costs, &entry, error);
}

static cs_status merge_memory(cs_costs *costs, const cs_costs *from, uint32_t i, cs_error *error)
{
    cs_cost_memory entry = from->memory[i];
    CS_TRY(cs_costs_add_source(costs, &from->sources[entry.source], &entry.source, error));
    return cs_costs_add_memory(costs, &entry, error);
}

static cs_status merge_network(cs_costs *costs, const cs_costs *from, uint32_t i, cs_error *error)
{
    cs_cost_network entry = from->network[i];
    CS_TRY(cs_costs_add_source(costs, &from->sources[entry.source], &entry.source, error));
    return cs_costs_add_network(costs, &entry, error);
}

static cs_status merge_bandwidth(cs_costs *costs, const cs_costs *from, uint32_t i, cs_error *error)
{
    cs_cost_bandwidth entry = from->bandwidths[i];
    CS_TRY(cs_costs_add_source(costs, &from->sources[entry.source], &entry.source, error));
    return cs_costs_add_bandwidth(costs, &entry, error);
}

static cs_status merge_overhead(cs_costs *costs, const cs_costs *from, uint32_t i, cs_error *error)
{
    cs_cost_overhead entry = from->overheads[i];
    CS_TRY(cs_costs_add_source(costs, &from->sources[entry.source], &entry.source, error));
    return cs_costs_add_overhead(costs, &entry, error);
}

cs_status cs_costs_merge(cs_costs *costs, const cs_costs *from, cs_error *error)
{
    const struct {
        uint32_t n;
        cs_status (*merge)(cs_costs *, const cs_costs *, uint32_t, cs_error *);
    } tables[] = {{from->n_compute, merge_compute},
                  {from->n_memory, merge_memory},
                  {from->n_network, merge_network},
                  {from->n_bandwidths, merge_bandwidth},
                  {from->n_overheads, merge_overhead}};
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (uint32_t i = 0; i < tables[t].n; i++) {
            CS_TRY(tables[t].merge(costs, from, i, error));
        }
    }
    return CS_OK;
}
