#include "sim/run/replay/replayable-grid.h"

#include "schedules/states.h"
#include "sim/model/net-local.h"
#include "sim/run/replay/replay.h"

static cs_status check_axes(const cs_split *split, const char *path, cs_error *error)
{
    const cs_grid *grid = &split->grid;
    const struct {
        cs_axes_name axes;
        const char *key;
    } rows[] = {{CS_AXES_CONTEXT, "context"}, {CS_AXES_SPACE, "space"}, {CS_AXES_EXPERT, "expert"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint32_t size = cs_grid_axes(grid, rows[i].axes).size;
        if (size > 1)
            return cs_error_add(error, CS_INVALID,
                                "%s: /parallel/%s: must be 1 to be replayed (got %u)", path,
                                rows[i].key, size);
    }
    if (split->synchronised_norm && cs_grid_axes(grid, CS_AXES_GRADIENT).size > 1)
        return cs_error_add(error, CS_INVALID,
                            "%s: /parallel/synchronised_norm: must be false to be replayed", path);
    return CS_OK;
}

/* What kernels need to know of a part of an operator, and are not told. */
static cs_status check_operator(const cs_scenario *scenario, const cs_net_local *local, uint32_t p,
                                const char *path, cs_error *error)
{
    const cs_split *split = &scenario->parallel->split;
    const cs_op *op = &local->net.ops[p], *of = &scenario->net->ops[local->ops[p].origin];
    const char *key = split->tensor_method == CS_TENSOR_FILTER    ? "filter"
                      : split->tensor_method == CS_TENSOR_CHANNEL ? "channel"
                                                                  : "tensor";
    const uint32_t lender = cs_net_lender(&local->net, p);
    if (split->grid.tensor == 1)
        return CS_OK;
    if (lender < local->net.n_ops && op->weights != local->net.ops[lender].weights)
        return cs_error_add(error, CS_INVALID,
                            "%s: /parallel/%s: must be 1 to be replayed, as %s reads a part of the "
                            "weights of %s (got %u)",
                            path, key, of->name, local->net.ops[lender].name, split->grid.tensor);
    if (op->kind == CS_OP_CONV && of->groups > 1)
        return cs_error_add(error, CS_INVALID,
                            "%s: /parallel/%s: must be 1 to be replayed with the %u groups of %s "
                            "(got %u)",
                            path, key, of->groups, of->name, split->grid.tensor);
    if (op->kind == CS_OP_ATTENTION && of->attention.kv_heads < split->grid.tensor)
        return cs_error_add(error, CS_INVALID,
                            "%s: /parallel/tensor: must be at most the %u heads of keys and values "
                            "of %s to be replayed (got %u)",
                            path, of->attention.kv_heads, of->name, split->grid.tensor);
    return CS_OK;
}

/* The first layer of the unit (states.h) that has a layer. */
static uint32_t unit_of(const cs_job *job, uint32_t stage, uint32_t layer)
{
    uint32_t end = job->plan->stages[stage].end_layer, first = cs_states_unit(job, stage, end);
    while (layer < first) {
        end = first;
        first = cs_states_unit(job, stage, end);
    }
    return first;
}

static void find_layer(const cs_scenario *scenario, const cs_net_chain *chain, uint32_t op,
                       uint32_t *layer, uint32_t *stage)
{
    *layer = *stage = 0;
    while (chain->layers[*layer].end <= op)
        ++*layer;
    while (scenario->plan->stages[*stage].end_layer <= *layer)
        ++*stage;
}

/* Weights that are gathered, or whose gradients are scattered, unit by unit are in one. */
static cs_status check_shared(const cs_scenario *scenario, const char *path, cs_error *error)
{
    const cs_net *net = scenario->net;
    const cs_job *job = &scenario->job;
    cs_net_chain chain = {0};
    cs_status status = CS_OK;
    if (cs_states_shards(job, false) == 1 ||
        (job->states.zero < 3 && !cs_states_scatters_each(job, job->states.zero)))
        return CS_OK;
    CS_TRY(cs_replay_chain(scenario, NULL, 0, &chain, error));
    for (uint32_t p = 0; p < net->n_ops && status == CS_OK; p++) {
        const uint32_t lender = cs_net_lender(net, p);
        uint32_t layer, of, stage, stage_of;
        if (lender == p || lender >= net->n_ops)
            continue;
        find_layer(scenario, &chain, p, &layer, &stage);
        find_layer(scenario, &chain, lender, &of, &stage_of);
        if (unit_of(job, stage, layer) != unit_of(job, stage, of))
            status = cs_error_add(error, CS_INVALID,
                                  "%s: /parallel/zero: must be at most %d to be replayed, as "
                                  "operator %s shares the weights of %s, which is gathered and "
                                  "scattered apart (got %u)",
                                  path, job->states.accumulate ? 2 : 1, net->ops[p].name,
                                  net->ops[lender].name, job->states.zero);
    }
    cs_net_chain_finish(&chain);
    return status;
}

cs_status cs_replayable_grid(const cs_scenario *scenario, const char *path, cs_error *error)
{
    cs_net_local local = {0};
    if (scenario->job.states.layers)
        return cs_error_add(error, CS_INVALID,
                            "%s: /parallel/rules: must be empty to be replayed: all layers rest as "
                            "\"zero\" says",
                            path);
    CS_TRY(check_axes(&scenario->parallel->split, path, error));
    CS_TRY(cs_net_local_make(scenario->net, &scenario->parallel->split, 0, NULL, &local, error));
    cs_status status = CS_OK;
    for (uint32_t p = 0; p < local.net.n_ops && status == CS_OK; p++)
        status = check_operator(scenario, &local, p, path, error);
    cs_net_local_finish(&local);
    return status == CS_OK ? check_shared(scenario, path, error) : status;
}
