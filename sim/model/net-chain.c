#include "sim/model/net-chain.h"

#include "sim/base/sum.h"
#include "sim/model/backward-memory.h"
#include "sim/model/expert-kernels.h"
#include "sim/model/fused-attention.h"
#include "sim/model/host-work.h"
#include "sim/model/loss-kernels.h"
#include "sim/model/ops/operator.h"
#include "sim/model/recompute.h"

#include <math.h>
#include <stdlib.h>

/* Adds the matrices of operator p that Muon updates, and the seconds of their update, to the layer;
 * returns the number of elements that Muon updates in p. */
static int64_t add_matrices(const cs_divided_net *d, const cs_net_options *how, uint32_t p,
                            cs_net_layer *layer)
{
    const cs_muon_costs costs = {how->muon,      &how->kernels, how->device,
                                 how->precision, how->storage,  how->float_gradients};
    const cs_op *op = &d->net->ops[p];
    const cs_op *origin = &d->whole->ops[d->local ? d->local->ops[p].origin : p];
    const cs_muon_matrices of =
        cs_muon_matrices_of(d->net, &how->kept, layer->first, layer->end, p, d->whole, origin);
    if (of.n > 0) {
        cs_muon_update *made = &layer->matrices[layer->n_matrices++];
        *made = cs_muon_update_of(&costs, &of, op->kind == CS_OP_GROUPED_LINEAR);
        layer->update += made->n * made->seconds;
    }
    return cs_muon_updates(d->net, op) ? op->weights : 0;
}

static cs_kernel_kind kernel_of(const cs_op *op)
{
    if (op->kind == CS_OP_ATTENTION)
        return CS_KERNEL_ATTENTION;
    return cs_op_is_product(op) || op->kind == CS_OP_CONV ? CS_KERNEL_PRODUCTS
                                                          : CS_KERNEL_MEMORY_BOUND;
}

static bool add_op(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                   const cs_op_times *times, const cs_piece_seconds *seconds, cs_net_layer *layer)
{
    layer->macs += cost->macs;
    layer->forward_flop += cost->forward.flop;
    layer->input_flop += cost->backward_input.flop;
    layer->weight_flop += cost->backward_weight.flop;
    layer->forward_bytes += cost->forward.bytes + cost->forward.cast_bytes;
    layer->input_bytes += cost->backward_input.bytes + cost->backward_input.cast_bytes;
    layer->weight_bytes += cost->backward_weight.bytes + cost->backward_weight.cast_bytes;
    layer->forward += seconds->forward;
    layer->backward_input += seconds->backward_input;
    layer->backward_weight += seconds->backward_weight;
    layer->update += fmax(times->update, 0) + cs_op_seconds_cast(how, op, cost);
    layer->kernels[CS_KERNELS_FORWARD][kernel_of(op)] += seconds->forward;
    layer->kernels[CS_KERNELS_BACKWARD][kernel_of(op)] +=
        seconds->backward_input + seconds->backward_weight;
    return cs_sum_add(&layer->weights, cost->weights) && cs_sum_add(&layer->biases, cost->biases) &&
           cs_sum_add(&layer->frozen, cost->frozen) &&
           cs_sum_add(&layer->copy_bytes, cost->copy_bytes) &&
           cs_sum_add(&layer->cast_bytes, cost->cast_bytes) &&
           cs_sum_add(&layer->narrowed_bytes, cost->narrowed_bytes);
}

/* Finds the part of a layer's forward that is skipped when the layer is recomputed: the operators
 * from repeat_end on. */
static void find_skipped(const cs_net *net, cs_piece_seconds *seconds, cs_net_layer *layer)
{
    for (uint32_t p = layer->repeat_end; p < layer->end; p++) {
        seconds[p].skipped = seconds[p].forward;
        seconds[p].host.skipped = seconds[p].host.forward;
        layer->skipped += seconds[p].forward;
        layer->kernels[CS_KERNELS_SKIPPED][kernel_of(&net->ops[p])] += seconds[p].forward;
    }
}

/* Bytes that the layer hands on besides its own output: the carried tensor, between the layer that
 * writes it and the last layer that reads it. */
static int64_t handed_past(const cs_net *net, const cs_net_options *how, const cs_net_layer *layer)
{
    const cs_op *last = &net->ops[layer->end - 1];
    if (net->carried == 0 || cs_net_is_carried(net, last->output) ||
        cs_net_tensor(net, net->carried)->last_reader < layer->end)
        return 0;
    for (uint32_t p = layer->end; p < net->n_ops; p++)
        if (net->ops[p].output == net->carried)
            return 0; /* not written yet */
    return cs_tensor_bytes(net, net->carried, how->batch_size, how->precision);
}

/* Changes the cost of an operator to the cost of its kernels in a runtime. If gradients of weights
 * are separate tensors, other kernels add them to the sums (kept.h). */
static void cost_of_runtime(const cs_net *net, const cs_net_options *how, const cs_op *op,
                            cs_op_cost *cost)
{
    const double width = cs_precision_bytes(how->precision);
    cs_runtime_kernels_fuse(&how->kernels, net, op, cost);
    cs_runtime_kernels_fall_back(&how->kernels, op, how->batch_size, cost);
    cs_runtime_kernels_scale(&how->kernels, net, op, how->batch_size, how->precision, cost);
    cs_narrow_attention_cost(&how->kernels, net, op, how->batch_size, how->precision, cost);
    cs_loss_kernels_cost(&how->kernels, net, op, how->batch_size, how->precision, cost);
    cs_runtime_kernels_ring(&how->kernels, net, op, how->batch_size, how->precision, cost);
    const double sum = how->float_gradients ? 4 : width;
    if (cs_net_makes_apart(how))
        cs_runtime_kernels_add_apart(&how->kernels, width, sum, cost);
    else
        cs_runtime_kernels_add_up(&how->kernels, op, width, sum, cost);
    cs_expert_kernels_cost(&how->kernels, net, op, how->split ? how->split->grid.expert : 1,
                           how->batch_size, how->precision, cost);
    cs_runtime_kernels_fill(&how->kernels, op, how->precision, cs_net_makes_apart(how), cost);
}

static bool has_exchange(const cs_net_local *local, const cs_net_layer *layer)
{
    bool found = false;
    for (uint32_t e = 0; local && e < local->n_exchanges; e++)
        found |= local->exchanges[e].op >= layer->first && local->exchanges[e].op < layer->end;
    return found;
}

static bool cost_layers(const cs_divided_net *d, const cs_net_options *how, cs_net_chain *chain,
                        cs_net_counts *of)
{
    const cs_net *net = d->net;
    bool fits = true;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_net_layer *layer = &chain->layers[i];
        int64_t estimated = 0; /* parameters whose update was not measured */
        uint32_t tensors = 0;  /* tensors that hold these parameters */
        int64_t muon = 0;      /* parameters that Muon updates */
        cs_host_work host = {0};
        layer->repeat_end = how->early_stop ? layer->first : layer->end;
        for (uint32_t p = layer->first; fits && p < layer->end; p++) {
            cs_op_cost cost;
            cs_op_cost_of(net, &net->ops[p], how->batch_size, how->precision, &cost);
            cost_of_runtime(net, how, &net->ops[p], &cost);
            cs_kept_fuse(net, &net->ops[p], &how->kept, how->batch_size, how->precision, &cost);
            const cs_op_times times = cs_op_times_find(net, how, &net->ops[p], layer);
            fits =
                cs_sum_add(&of->workspaces[p],
                           times.workspace >= 0 ? times.workspace : cost.workspace_bytes) &&
                cs_sum_add(&of->workspaces[p],
                           cs_kept_beside_backward(net, &net->ops[p], &how->kept, how->batch_size));
            of->steps[p] = cs_kept_loss_step(net, &net->ops[p], &how->kept, how->batch_size);
            of->seconds[p] = cs_op_seconds_of(how, &net->ops[p], &cost, &times);
            cs_host_work_add(how, &net->ops[p], &cost, &of->seconds[p], &host);
            fits = fits && add_op(how, &net->ops[p], &cost, &times, &of->seconds[p], layer) &&
                   (times.update >= 0 ||
                    cs_sum_add(&estimated, cost.weights + cost.biases - cost.frozen));
            /* count the tensors whose update is estimated */
            if (times.update < 0 && !net->ops[p].frozen)
                tensors += (uint32_t)(cost.weights > 0) + (uint32_t)(cost.biases > 0);
            muon += how->muon.steps > 0 ? add_matrices(d, how, p, layer) : 0;
            fits = fits && cs_net_kept_visit(net, how, p, i, &cost, of, layer);
            const uint32_t reach = cs_net_kept_reach(net, how, p, &cost);
            layer->repeat_end = reach > layer->repeat_end ? reach : layer->repeat_end;
            if (p == layer->first)
                layer->read_bytes = cost.input_bytes;
            layer->written_bytes = cost.output_bytes;
        }
        find_skipped(net, of->seconds, layer);
        cs_host_work_end(&host, how->kernels.launch_blocking, has_exchange(d->local, layer),
                         of->seconds, layer);
        layer->update += cs_op_seconds_update(how, estimated - muon) +
                         cs_op_seconds_count_zeros(how, estimated, tensors);
        layer->written_bytes += handed_past(net, how, layer);
    }
    return fits;
}

/* Adds the recomputation of each run to the backward of the run's last operator that is not a view:
 * the run's forward comes before that backward. */
static void repeat_runs(const cs_net *net, cs_net_counts *of, cs_net_chain *chain)
{
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_net_layer *layer = &chain->layers[i];
        for (uint32_t p = layer->first; p < layer->end; p++) {
            uint32_t last = p;
            if (of->runs[p] == 0)
                continue;
            for (uint32_t q = p; q < layer->end && of->runs[q] == of->runs[p]; q++)
                last = cs_op_is_view(&net->ops[q]) ? last : q;
            of->seconds[last].backward_input += of->seconds[p].forward;
            of->seconds[last].host.backward_input += of->seconds[p].host.forward;
            layer->backward_input += of->seconds[p].forward;
            layer->host.backward_input += of->seconds[p].host.forward;
        }
    }
}

static cs_status find_runs(const cs_net *net, const cs_net_options *how, const cs_net_chain *chain,
                           uint32_t *runs, bool *discards, cs_error *error)
{
    uint32_t *ends = malloc(chain->n_layers * sizeof(*ends));
    if (!ends)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < chain->n_layers; i++)
        ends[i] = chain->layers[i].end;
    cs_status status =
        cs_recompute_find(net, how->recompute_ops, how->n_recompute_ops, ends, runs, error);
    if (status == CS_OK)
        status =
            cs_recompute_discards(net, how->discard_ops, how->n_discard_ops, runs, discards, error);
    free(ends);
    return status;
}

/* Finds the operators whose saved activations are offloaded. CS_INVALID for a name that means no
 * operator. */
static cs_status find_offloads(const cs_net *net, const cs_net_options *how, bool *offloads,
                               cs_error *error)
{
    const cs_offload_rules *rules = how->offload;
    for (uint32_t p = 0; rules && p < net->n_ops; p++)
        offloads[p] = rules->n_operators == 0;
    for (uint32_t i = 0; rules && i < rules->n_operators; i++) {
        bool any = false;
        for (uint32_t p = 0; p < net->n_ops; p++)
            if (cs_recompute_means(rules->operators[i], net->ops[p].name))
                any = offloads[p] = true;
        if (!any)
            return cs_error_add(error, CS_INVALID,
                                "%s: has no operator \"%s\" to offload; its first is \"%s\"",
                                net->name, rules->operators[i], net->ops[0].name);
    }
    return CS_OK;
}

static cs_status check_options(const cs_net *net, const cs_net_options *how, cs_error *error)
{
    if (how->batch_size < 1 || how->batch_size > CS_BATCH_MAX)
        return cs_error_add(error, CS_INVALID,
                            "%s: the batch size must be from 1 to %d samples (got %u)", net->name,
                            CS_BATCH_MAX, how->batch_size);
    return cs_accelerator_check(how->device, how->precision, error);
}

cs_status cs_net_divide(const cs_net *net, const cs_net_options *how, cs_net_local *local,
                        cs_divided_net *d, cs_error *error)
{
    CS_TRY(check_options(net, how, error));
    *d = (cs_divided_net){.whole = net, .net = net};
    if (!how->split)
        return CS_OK;
    cs_split split = *how->split;
    split.samples = how->batch_size;
    CS_TRY(cs_net_local_make(net, &split, how->place, NULL, local, error));
    d->local = local;
    d->net = &local->net;
    return CS_OK;
}

static cs_status count_layers(const cs_divided_net *d, const cs_net_options *how,
                              cs_net_chain *chain, cs_net_counts *of, cs_error *error)
{
    const cs_net *net = d->net;
    uint32_t exchange = 0;
    CS_TRY(find_runs(net, how, chain, of->runs, of->discards, error));
    CS_TRY(find_offloads(net, how, of->offloads, error));
    if (!cost_layers(d, how, chain, of) || !cs_net_kept_sum(net, d->local, how, of, chain))
        return cs_error_add(error, CS_OVERFLOW, "%s: the sizes of a layer do not fit 64 bits",
                            net->name);
    repeat_runs(net, of, chain);
    if (d->local)
        cs_net_local_weights_at(d->local, of->weights_at);
    const cs_backward backward = {.net = net,
                                  .batch = how->batch_size,
                                  .precision = how->precision,
                                  .rules = &how->kept,
                                  .weights_at = d->local ? of->weights_at : NULL,
                                  .workspaces = of->workspaces,
                                  .steps = of->steps};
    CS_TRY(cs_backward_add_weights(&backward, error));
    CS_TRY(cs_backward_memory(&backward, of->peaks, error));
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        for (uint32_t p = chain->layers[i].first; p < chain->layers[i].end; p++)
            if (of->peaks[p] > chain->layers[i].workspace_bytes)
                chain->layers[i].workspace_bytes = of->peaks[p];
        if (d->local)
            CS_TRY(cs_net_pieces_find(d->local, how, &(cs_op_timing){of->seconds, of->runs},
                                      &exchange, &chain->layers[i], &chain->arena, error));
    }
    return CS_OK;
}

/* Allocates room for the Muon matrices of each layer, at most one entry per operator; false if
 * memory runs out. */
static bool allocate_matrices(const cs_net_options *how, cs_net_chain *chain)
{
    bool enough = true;
    for (uint32_t i = 0; i < chain->n_layers && how->muon.steps > 0; i++) {
        cs_net_layer *layer = &chain->layers[i];
        layer->matrices = cs_arena_alloc(&chain->arena, layer->end - layer->first + 1ULL,
                                         sizeof(*layer->matrices));
        enough &= layer->matrices != NULL;
    }
    return enough;
}

static cs_status make_chain(const cs_divided_net *d, const cs_net_options *how, cs_net_chain *chain,
                            cs_error *error)
{
    const cs_net *net = d->net;
    CS_TRY(cs_net_layers_make(d->whole, how->granularity, chain, error));
    if (d->local)
        cs_net_layers_move(d->local, chain);
    if (!allocate_matrices(how, chain))
        return cs_error_no_memory(error);
    cs_net_counts of = {.storages = calloc(net->n_storages, sizeof(*of.storages)),
                        .workspaces = calloc(net->n_ops, sizeof(*of.workspaces)),
                        .steps = calloc(net->n_ops, sizeof(*of.steps)),
                        .peaks = calloc(net->n_ops, sizeof(*of.peaks)),
                        .weights_at = calloc(net->n_ops, sizeof(*of.weights_at)),
                        .seconds = calloc(net->n_ops, sizeof(*of.seconds)),
                        .runs = calloc(net->n_ops, sizeof(*of.runs)),
                        .discards = calloc(net->n_ops, sizeof(*of.discards)),
                        .offloads = calloc(net->n_ops, sizeof(*of.offloads)),
                        .needed = calloc(net->n_ops, sizeof(*of.needed)),
                        .held = calloc(net->n_ops, sizeof(*of.held))};
    const bool enough = of.storages && of.workspaces && of.steps && of.peaks && of.weights_at &&
                        of.seconds && of.runs && of.discards && of.offloads && of.needed && of.held;
    const cs_status status =
        enough ? count_layers(d, how, chain, &of, error) : cs_error_no_memory(error);
    free(of.storages);
    free(of.workspaces);
    free(of.steps);
    free(of.peaks);
    free(of.weights_at);
    free(of.seconds);
    free(of.runs);
    free(of.discards);
    free(of.offloads);
    free(of.needed);
    free(of.held);
    return status;
}

cs_status cs_net_chain_of(const cs_divided_net *d, const cs_net_options *how, cs_net_chain *chain,
                          cs_error *error)
{
    cs_net_chain made = {0};
    cs_arena_init(&made.arena);
    cs_status status = make_chain(d, how, &made, error);
    if (status != CS_OK) {
        cs_net_chain_finish(&made);
        return status;
    }
    *chain = made;
    return CS_OK;
}

cs_status cs_net_chain_find(const cs_net *net, const cs_net_options *options, cs_net_chain *chain,
                            cs_error *error)
{
    cs_net_local local = {0};
    cs_divided_net d;
    cs_status status = cs_net_divide(net, options, &local, &d, error);
    if (status == CS_OK)
        status = cs_net_chain_of(&d, options, chain, error);
    cs_net_local_finish(&local);
    return status;
}

void cs_net_chain_finish(cs_net_chain *chain)
{
    if (!chain)
        return;
    cs_arena_finish(&chain->arena);
    *chain = (cs_net_chain){0};
}
