#include "calib/bench/replay/weight-store.h"

#include "calib/bench/replay/numbers.h"

#include <stdlib.h>
#include <string.h>

enum { FLOAT = sizeof(float) };

/* ---- layout ---- */

static int64_t sum_of(const int64_t parts[CS_STORE_REGIONS])
{
    return parts[0] + parts[1];
}

static int64_t before(const int64_t parts[CS_STORE_REGIONS], int region)
{
    return region == 0 ? 0 : parts[0];
}

/* Returns the numbers of a region in the share of place k; the last shares may be smaller or
 * empty. */
static int64_t share_of(const cs_store_unit *unit, int region, uint32_t k)
{
    const int64_t left = unit->sizes[region] - (int64_t)k * unit->shares[region];
    const int64_t most = unit->shares[region];
    return left < 0 ? 0 : left < most ? left : most;
}

static int64_t own_share(const cs_store *store, const cs_store_unit *unit, int region)
{
    return share_of(unit, region, store->rank);
}

/* Return the start of a region in a block of whole regions, and of the place's share in a block of
 * whole regions or of shares. */
static float *region_at(const cs_block *block, const cs_store_unit *unit, int region)
{
    return (float *)block->data + before(unit->sizes, region);
}

static float *share_at(const cs_store *store, const cs_block *block, const cs_store_unit *unit,
                       int region, bool only_shares)
{
    return only_shares ? (float *)block->data + before(unit->shares, region)
                       : region_at(block, unit, region) + store->rank * unit->shares[region];
}

static float *own_weights(const cs_store *store, const cs_store_unit *unit, int region)
{
    return share_at(store, &unit->weights, unit, region, store->zero >= 3);
}

static float *own_gradients(const cs_store *store, const cs_store_unit *unit, int region)
{
    return share_at(store, &unit->gradients, unit, region, store->scatters);
}

/* Tells the trainer the places of the parameters and gradients of a unit's operators. */
static void set_places(cs_store *store, uint32_t u)
{
    const cs_store_unit *unit = &store->units[u];
    cs_part *part = store->part;
    const cs_block *weights = store->zero >= 3 ? &unit->gathered : &unit->weights;
    const cs_block *gradients = store->scatters ? &unit->scattered : &unit->gradients;
    for (uint32_t p = part->first_op; p < part->end_op; p++) {
        const uint32_t i = store->trainer->lenders[p] - part->first_op;
        if (store->unit_of[i] != u)
            continue;
        part->places[p - part->first_op] =
            (cs_op_place){weights->data ? (float *)weights->data + store->offsets[i] : NULL,
                          gradients->data ? (float *)gradients->data + store->offsets[i] : NULL};
    }
}

/* ---- opening ---- */

static int64_t parameters_of(const cs_trainer *trainer, uint32_t op)
{
    return trainer->costs[op].weights + trainer->costs[op].biases;
}

static cs_status take_unit(cs_store *store, cs_store_unit *unit, cs_error *error)
{
    cs_block_pool *pool = store->trainer->pool;
    const int64_t whole = FLOAT * sum_of(unit->sizes), share = FLOAT * sum_of(unit->shares);
    CS_TRY(cs_block_pool_take(pool, store->zero >= 3 ? share : whole, &unit->weights, error));
    CS_TRY(cs_block_pool_take(pool, store->scatters ? share : whole, &unit->gradients, error));
    return cs_block_pool_take(pool, share * store->trainer->n_states, &unit->states, error);
}

static void cut_units(cs_store *store, const cs_job *job, uint32_t stage)
{
    const cs_net_layer *layers = store->trainer->chain->layers;
    uint32_t end = job->plan->stages[stage].end_layer;
    for (uint32_t u = store->n_units; u-- > 0;) {
        const uint32_t first = cs_states_unit(job, stage, end);
        store->units[u].first_layer = first;
        store->units[u].end_layer = end;
        store->units[u].first_op = layers[first].first;
        store->units[u].end_op = layers[end - 1].end;
        store->units[u].planned = cs_states_weights(job, stage, first, end);
        end = first;
    }
}

cs_status cs_store_open(cs_store *store, const cs_job *job, uint32_t stage, uint32_t place,
                        cs_error *error)
{
    const size_t n_ops = store->part->end_op - store->part->first_op + (size_t)1;
    store->shards = job->states.zero > 0 ? cs_states_shards(job, false) : 1;
    store->zero = store->shards > 1 ? job->states.zero : 0;
    store->scatters = cs_states_scatters_each(job, store->zero);
    store->rank = cs_axes_coordinate(cs_grid_axes(job->plan->grid, CS_AXES_SHARD), place);
    uint32_t n = 0, end = job->plan->stages[stage].end_layer;
    for (; end > job->plan->stages[stage].first_layer; n++)
        end = cs_states_unit(job, stage, end);
    store->n_units = n;
    store->units = calloc(store->n_units, sizeof(*store->units));
    store->offsets = calloc(n_ops, sizeof(*store->offsets));
    store->unit_of = calloc(n_ops, sizeof(*store->unit_of));
    if (!store->units || !store->offsets || !store->unit_of)
        return cs_error_no_memory(error);
    cut_units(store, job, stage);
    for (uint32_t u = 0; u < store->n_units; u++) {
        cs_store_unit *unit = &store->units[u];
        const cs_trainer *trainer = store->trainer;
        int64_t at = 0;
        for (int region = 0; region < CS_STORE_REGIONS; region++) {
            for (uint32_t p = unit->first_op; p < unit->end_op; p++) {
                const bool tensor = trainer->part_of.local->ops[p].weight_axes == CS_AXES_TENSOR;
                if (tensor != (region == 0))
                    continue;
                store->offsets[p - store->part->first_op] = at;
                store->unit_of[p - store->part->first_op] = u;
                unit->sizes[region] += parameters_of(trainer, p);
                at += parameters_of(trainer, p);
            }
            unit->shares[region] = cs_states_share(unit->sizes[region], store->shards);
        }
        CS_TRY(take_unit(store, &store->units[u], error));
    }
    return CS_OK;
}

void cs_store_close(cs_store *store)
{
    for (uint32_t u = 0; u < store->n_units && store->units; u++) {
        cs_store_unit *unit = &store->units[u];
        cs_block *const blocks[] = {&unit->weights, &unit->gathered, &unit->gradients,
                                    &unit->scattered, &unit->states};
        for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
            cs_block_pool_give(store->trainer->pool, blocks[i]);
    }
    free(store->units);
    free(store->offsets);
    free(store->unit_of);
    *store = (cs_store){0};
}

/* ---- the start ---- */

/* Draws the whole unit; the place keeps its share. */
static cs_status draw_unit(cs_store *store, uint32_t u, float *whole, cs_error *error)
{
    cs_store_unit *unit = &store->units[u];
    for (uint32_t p = unit->first_op; p < unit->end_op; p++)
        if (parameters_of(store->trainer, p) > 0)
            CS_TRY(cs_numbers_parameters(store->trainer, p,
                                         whole + store->offsets[p - store->part->first_op], error));
    if (store->zero < 3) {
        memcpy(unit->weights.data, whole, (size_t)(FLOAT * sum_of(unit->sizes)));
        return CS_OK;
    }
    for (int region = 0; region < CS_STORE_REGIONS; region++)
        memcpy(own_weights(store, unit, region),
               whole + before(unit->sizes, region) + store->rank * unit->shares[region],
               (size_t)(FLOAT * own_share(store, unit, region)));
    return CS_OK;
}

static void clear(cs_block *block)
{
    if (block->data)
        memset(block->data, 0, (size_t)block->bytes);
}

cs_status cs_store_reset(cs_store *store, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t u = 0; u < store->n_units && status == CS_OK; u++) {
        cs_store_unit *unit = &store->units[u];
        float *whole = malloc((size_t)(FLOAT * (sum_of(unit->sizes) + 1)));
        cs_block_pool_give(store->trainer->pool, &unit->gathered);
        cs_block_pool_give(store->trainer->pool, &unit->scattered);
        clear(&unit->gradients);
        clear(&unit->states);
        status = !whole                    ? cs_error_no_memory(error)
                 : sum_of(unit->sizes) > 0 ? draw_unit(store, u, whole, error)
                                           : CS_OK;
        set_places(store, u);
        free(whole);
    }
    return status;
}

void cs_store_count(const cs_store *store, int64_t *resident)
{
    for (uint32_t u = 0; u < store->n_units; u++) {
        resident[CS_MEMORY_WEIGHTS] += store->units[u].weights.bytes;
        resident[CS_MEMORY_GRADIENTS] += store->units[u].gradients.bytes;
        resident[CS_MEMORY_OPTIMIZER] += store->units[u].states.bytes;
    }
}

/* ---- units ---- */

/* Runs a collective on the shares of a region. */
static cs_status move_region(const cs_store *store, const cs_store_unit *unit, int region,
                             cs_cost_collective collective, const cs_wire_group *group,
                             const float *from, float *to, cs_error *error)
{
    int64_t *counts = calloc(store->shards, sizeof(*counts));
    if (!counts)
        return cs_error_no_memory(error);
    for (uint32_t k = 0; k < store->shards; k++)
        counts[k] = share_of(unit, region, k);
    const cs_wire_parts parts = {store->shards, counts, NULL};
    const cs_status status =
        cs_wire_parts_move(store->wire, group, collective, &parts, from, to, error);
    free(counts);
    return status;
}

cs_status cs_store_gather(cs_store *store, uint32_t u, const cs_wire_group *group, cs_error *error)
{
    cs_store_unit *unit = &store->units[u];
    CS_TRY(cs_block_pool_take(store->trainer->pool, FLOAT * sum_of(unit->sizes), &unit->gathered,
                              error));
    set_places(store, u);
    for (int region = 0; region < CS_STORE_REGIONS; region++)
        if (unit->sizes[region] > 0)
            CS_TRY(move_region(store, unit, region, CS_COST_ALL_GATHER, group,
                               own_weights(store, unit, region),
                               region_at(&unit->gathered, unit, region), error));
    return CS_OK;
}

void cs_store_release(cs_store *store, uint32_t u)
{
    cs_block_pool_give(store->trainer->pool, &store->units[u].gathered);
    set_places(store, u);
}

cs_status cs_store_begin(cs_store *store, uint32_t u, cs_error *error)
{
    cs_store_unit *unit = &store->units[u];
    if (!store->scatters || unit->scattered.data)
        return CS_OK;
    CS_TRY(cs_block_pool_take(store->trainer->pool, FLOAT * sum_of(unit->sizes), &unit->scattered,
                              error));
    clear(&unit->scattered);
    set_places(store, u);
    return CS_OK;
}

/* Reduces and scatters a region. In place, the sum of the own share moves to the front. */
static cs_status scatter_region(cs_store *store, cs_store_unit *unit, int region,
                                const cs_wire_group *group, cs_error *error)
{
    cs_block *from = store->scatters ? &unit->scattered : &unit->gradients;
    float *all = region_at(from, unit, region), *own = own_gradients(store, unit, region);
    const int64_t n = own_share(store, unit, region);
    CS_TRY(move_region(store, unit, region, CS_COST_REDUCE_SCATTER, group, all, all, error));
    if (!store->scatters)
        memmove(own, all, (size_t)(FLOAT * n));
    for (int64_t i = 0; store->scatters && i < n; i++)
        own[i] += all[i];
    return CS_OK;
}

cs_status cs_store_scatter(cs_store *store, uint32_t u, const cs_wire_group *group, cs_error *error)
{
    cs_store_unit *unit = &store->units[u];
    for (int region = 0; region < CS_STORE_REGIONS; region++)
        if (unit->sizes[region] > 0)
            CS_TRY(scatter_region(store, unit, region, group, error));
    cs_block_pool_give(store->trainer->pool, &unit->scattered);
    set_places(store, u);
    return CS_OK;
}

cs_status cs_store_sum(cs_store *store, uint32_t u, bool tensor, const cs_wire_group *group,
                       cs_error *error)
{
    cs_store_unit *unit = &store->units[u];
    for (int region = 0; region < (tensor ? 1 : CS_STORE_REGIONS); region++) {
        const int64_t n = own_share(store, unit, region);
        if (n > 0)
            CS_TRY(cs_wire_sum(store->wire, group, own_gradients(store, unit, region), FLOAT * n,
                               error));
    }
    return CS_OK;
}

int64_t cs_store_bytes(const cs_store *store, uint32_t u, bool share, bool tensor)
{
    const cs_store_unit *unit = &store->units[u];
    int64_t n = 0;
    for (int region = 0; region < (tensor ? 1 : CS_STORE_REGIONS); region++)
        n += share ? own_share(store, unit, region) : unit->sizes[region];
    return FLOAT * n;
}

/* ---- all units ---- */

static cs_status update_region(cs_store *store, cs_store_unit *unit, int region, cs_error *error)
{
    const cs_trainer *trainer = store->trainer;
    const int64_t n = own_share(store, unit, region);
    float *states = unit->states.data;
    const cs_update update = {
        .to = own_weights(store, unit, region),
        .gradients = own_gradients(store, unit, region),
        .states = states ? states + before(unit->shares, region) * trainer->n_states : NULL,
        .from = own_weights(store, unit, region),
        .parameters = n,
        .n_states = trainer->n_states,
        .precision = trainer->precision};
    return n > 0 ? trainer->backend->update(trainer->bench, &update, error) : CS_OK;
}

cs_status cs_store_update(cs_store *store, cs_error *error)
{
    for (uint32_t u = 0; u < store->n_units; u++) {
        for (int region = 0; region < CS_STORE_REGIONS; region++)
            CS_TRY(update_region(store, &store->units[u], region, error));
        clear(&store->units[u].gradients);
    }
    return CS_OK;
}

cs_status cs_store_gather_all(cs_store *store, const cs_wire_group *group, cs_error *error)
{
    for (uint32_t u = 0; u < store->n_units; u++) {
        cs_store_unit *unit = &store->units[u];
        for (int region = 0; region < CS_STORE_REGIONS; region++) {
            float *all = region_at(&unit->weights, unit, region);
            if (unit->sizes[region] > 0)
                CS_TRY(
                    move_region(store, unit, region, CS_COST_ALL_GATHER, group, all, all, error));
        }
    }
    return CS_OK;
}
