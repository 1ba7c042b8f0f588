#include "sim/model/net-model.h"

#include "sim/base/sum.h"
#include "sim/base/text.h"
#include "sim/model/net-chain.h"
#include "sim/model/ops/operator.h"

#include <math.h>
#include <string.h>

const char *const cs_granularity_names[] = {"layer", "block", NULL};

/* Writes where the times come from. */
static void describe_times(const cs_net_options *how, const cs_net_chain *chain, char *source,
                           char *hardware, size_t size)
{
    const char *precision = cs_precision_names[how->precision];
    uint32_t measured = 0, estimated = 0;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        measured += chain->layers[i].n_measured;
        estimated += chain->layers[i].n_estimated;
    }
    cs_text_format(hardware, size, "none; assumed %s", how->device->title);
    if (!how->measured) {
        cs_text_format(source, size, "%s; roofline on device \"%s\" in %s: estimated, not measured",
                       how->source, how->device->name, precision);
        return;
    }
    cs_text_format(
        source, size,
        "%s; %u of %u times of its operators in %s measured (%.200s), the others by roofline "
        "on device \"%s\"",
        how->source, measured, measured + estimated, precision, how->measured->origin,
        how->device->name);
    if (measured > 0)
        cs_text_format(hardware, size, "%s", how->measured->device);
}

/* The share of an operator's multiplications that is not padding of experts up to their capacity:
 * routed rows over rows made by the dispatch, at most 1. */
static double useful_share(const cs_net *net, uint32_t p)
{
    if (net->ops[p].kind != CS_OP_GROUPED_LINEAR)
        return 1;
    const double rows = cs_net_tensor(net, net->ops[p].output)->shape.dims[0];
    while (p > 0 && net->ops[p].kind != CS_OP_DISPATCH)
        p--;
    if (net->ops[p].kind != CS_OP_DISPATCH)
        return 1;
    return fmin(1, (double)cs_net_tensor(net, net->ops[p].inputs[1])->elements / rows);
}

/* The number of products in a whole pass per product in forward: 3, or less if frozen weights make
 * some gradients unnecessary. */
static double passes_of(const cs_net *net, const cs_op *op)
{
    const bool gradient = cs_op_makes_gradient(net, op, 0);
    if (op->kind == CS_OP_ATTENTION || op->kind == CS_OP_SCAN)
        return cs_net_tensor(net, op->output)->differentiable ? 3 : 1;
    return 1.0 + gradient + !op->frozen;
}

static double useful_flop(const cs_net *net)
{
    const bool all = cs_net_trained_parameters(net) == cs_net_parameters(net);
    double sum = 0;
    for (uint32_t p = 0; p < net->n_ops; p++) {
        cs_op_cost cost;
        cs_op_cost_of(net, &net->ops[p], 1, CS_PRECISION_FP32, &cost);
        sum += cost.macs * useful_share(net, p) * (all ? 1 : passes_of(net, &net->ops[p]));
    }
    return all ? 3 * 2 * sum : 2 * sum;
}

/* Fills the work of training as it is usually counted: only products (convolutions, linear layers,
 * attention), each with two more of the same size in backward. All other operators are negligible.
 * A repeated forward does not count, because it only saves memory (Chowdhery et al., PaLM, JMLR
 * 2023, appendix B). */
static bool describe_work(const cs_net *net, const cs_net_options *how, cs_model *model)
{
    cs_model_work *work = &model->work;
    work->flop_per_sample = useful_flop(net);
    work->tokens_per_sample = net->input_ids < UINT32_MAX ? (uint32_t)net->input_ids : 0;
    work->parameters = (double)cs_net_parameters(net);
    work->active_parameters = (double)cs_net_active_parameters(net);
    work->peak =
        isfinite(how->device->peaks[how->precision]) ? how->device->peaks[how->precision] : 0;
    work->device = work->peak > 0 ? cs_arena_copy(&model->arena, how->device->name) : NULL;
    return work->device || !(work->peak > 0);
}

static cs_status describe(const cs_divided_net *d, const cs_net_options *how,
                          const cs_net_chain *chain, cs_model *model, cs_error *error)
{
    const cs_net *net = d->net;
    char source[512], hardware[512];
    cs_arena *arena = &model->arena;
    model->name = cs_arena_copy(arena, net->name);
    model->batch_size = how->batch_size;
    model->precision = how->precision;
    model->input_bytes =
        how->batch_size *
        (net->input_elements * cs_precision_bytes(how->precision) + net->input_ids * 8);
    describe_times(how, chain, source, hardware, sizeof(source));
    model->provenance.source = cs_arena_copy(arena, source);
    model->provenance.hardware = cs_arena_copy(arena, hardware);
    model->provenance.date = cs_arena_copy(arena, how->date ? how->date : "1970-01-01");
    model->provenance.notes =
        "kept as PyTorch 2.1 keeps it, eager; every operator by itself, none fused; convolution "
        "libraries' workspace not known";
    if (!cs_time_from_seconds(cs_runtime_kernels_batch(&how->kernels, how->device),
                              &model->host_batch))
        return cs_error_add(error, CS_OVERFLOW,
                            "%s: the host's time for a micro-batch does not fit", net->name);
    if (!describe_work(d->whole, how, model) || !model->name || !model->provenance.source ||
        !model->provenance.hardware || !model->provenance.date)
        return cs_error_no_memory(error);
    return CS_OK;
}

/* Whether a layer comes before the last block, or the network has only one block. The last block of
 * several, with the loss, is neither recomputed nor offloaded, because its backward comes next. */
static bool is_in_front(const cs_net *net, const cs_net_layer *layer)
{
    return net->n_blocks == 1 || cs_net_block_from(net, layer->first) + 1 < net->n_blocks;
}

static bool fill_host(const cs_host_seconds *from, cs_host_times *to)
{
    return cs_time_from_seconds(from->forward, &to->forward) &&
           cs_time_from_seconds(from->backward_input, &to->backward_input) &&
           cs_time_from_seconds(from->backward_weight, &to->backward_weight) &&
           cs_time_from_seconds(from->skipped, &to->skipped);
}

static bool fill_layer(const cs_net *net, const cs_net_options *how, const cs_net_layer *from,
                       cs_layer *to, cs_arena *arena)
{
    int64_t parameters = from->weights + from->biases - from->frozen;
    const int64_t host = is_in_front(net, from) ? from->host_bytes : 0;
    *to = (cs_layer){
        .name = cs_arena_copy(arena, from->name),
        .output_bytes = from->written_bytes,
        .kept_bytes = from->kept_bytes,
        .carried_bytes = from->carried_bytes,
        .workspace_bytes = from->workspace_bytes,
        .narrowed_bytes = from->narrowed_bytes,
        .cast_bytes = from->cast_bytes,
        .resident_bytes = how->offload ? from->kept_bytes - host : 0,
        .recompute = how->recompute && is_in_front(net, from),
        .waits = from->waits,
        .timing = from->n_measured == 0    ? "estimated"
                  : from->n_estimated == 0 ? "measured"
                                           : "partly measured",
    };
    const int64_t bytes = cs_precision_bytes(how->precision);
    memcpy(to->kernels, from->kernels, sizeof(to->kernels));
    return !__builtin_mul_overflow(parameters, bytes, &to->weight_bytes) &&
           !__builtin_mul_overflow(from->frozen, bytes, &to->frozen_bytes) &&
           cs_sum_add(&to->frozen_bytes, from->copy_bytes) && fill_host(&from->host, &to->host) &&
           cs_time_from_seconds(from->forward, &to->forward) &&
           cs_time_from_seconds(from->skipped, &to->skipped) &&
           cs_time_from_seconds(from->backward_input, &to->backward_input) &&
           cs_time_from_seconds(from->backward_weight, &to->backward_weight) &&
           cs_time_from_seconds(from->update, &to->update);
}

static cs_status fill_matrices(const cs_net_options *how, const cs_net_layer *from, cs_layer *to,
                               cs_arena *arena, cs_error *error)
{
    cs_time all, sum = 0;
    bool fits = true;
    to->matrices = cs_arena_alloc(arena, from->n_matrices, sizeof(*to->matrices));
    if (!to->matrices)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < from->n_matrices && fits; i++) {
        const cs_muon_update *of = &from->matrices[i];
        cs_layer_matrix *made = &to->matrices[to->n_matrices++];
        made->n = of->n;
        made->expert = of->expert;
        made->gather_bytes = of->gather_bytes;
        made->sum_bytes = of->sum_bytes;
        made->n_sums = of->n_sums;
        made->bytes = of->elements * cs_precision_bytes(how->precision);
        fits = cs_time_from_seconds(of->seconds, &made->update) &&
               cs_time_mul(made->update, of->n, &all) && cs_time_add(sum, all, &sum);
    }
    /* not less than the sum of the rounded times */
    to->update = sum > to->update ? sum : to->update;
    return fits ? CS_OK
                : cs_error_add(error, CS_OVERFLOW, "the update of layer %s does not fit 64 bits",
                               from->name);
}

/* Fills the result that the network hands to its loss, and whether it is kept: a fused loss keeps
 * it. */
static void fill_result(const cs_net *net, const cs_net_options *how, const cs_net_layer *from,
                        cs_layer *to)
{
    for (uint32_t p = from->first; p < from->end; p++) {
        const cs_op *op = &net->ops[p];
        if (!cs_op_is_loss(op))
            continue;
        to->result_bytes = cs_tensor_bytes(net, op->inputs[0], how->batch_size, how->precision);
        to->result_memory = cs_net_tensor(net, op->inputs[0])->storage;
        to->result_kept = op->kind == CS_OP_CROSS_ENTROPY &&
                          (how->kept.fused & 1u << CS_FUSED_CROSS_ENTROPY) != 0;
    }
}

static bool add_host(const cs_host_times *from, cs_host_times *to)
{
    return cs_time_add(to->forward, from->forward, &to->forward) &&
           cs_time_add(to->backward_input, from->backward_input, &to->backward_input) &&
           cs_time_add(to->backward_weight, from->backward_weight, &to->backward_weight) &&
           cs_time_add(to->skipped, from->skipped, &to->skipped);
}

/* Fills the pieces of a layer, and sets its times to the sums over the pieces. */
static bool fill_pieces(const cs_net_layer *from, cs_layer *to)
{
    bool fits = true;
    to->forward = to->backward_input = to->backward_weight = to->skipped = 0;
    to->host = (cs_host_times){0};
    for (uint32_t i = 0; fits && i < from->n_pieces; i++) {
        cs_layer_piece *piece = &to->pieces[i];
        fits = cs_time_from_seconds(from->pieces[i].forward, &piece->forward) &&
               cs_time_from_seconds(from->pieces[i].skipped, &piece->skipped) &&
               cs_time_from_seconds(from->pieces[i].backward_input, &piece->backward_input) &&
               cs_time_from_seconds(from->pieces[i].backward_weight, &piece->backward_weight) &&
               cs_time_add(to->forward, piece->forward, &to->forward) &&
               cs_time_add(to->skipped, piece->skipped, &to->skipped) &&
               cs_time_add(to->backward_input, piece->backward_input, &to->backward_input) &&
               cs_time_add(to->backward_weight, piece->backward_weight, &to->backward_weight) &&
               fill_host(&from->pieces[i].host, &piece->host) && add_host(&piece->host, &to->host);
        piece->waits = from->pieces[i].waits;
    }
    return fits;
}

static cs_status divide_layer(const cs_net_options *how, const cs_net_layer *from, cs_layer *to,
                              cs_arena *arena, cs_error *error)
{
    const cs_weight_part parts[] = {{CS_AXES_TENSOR, from->shared_parameters},
                                    {CS_AXES_COPIES, from->copied_parameters},
                                    {CS_AXES_EXPERT_DATA, from->expert_parameters}};
    const uint32_t n = sizeof(parts) / sizeof(parts[0]);
    to->weight_parts = cs_arena_alloc(arena, n, sizeof(*to->weight_parts));
    if (!to->weight_parts)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        if (parts[i].bytes > 0)
            to->weight_parts[to->n_weight_parts++] = (cs_weight_part){
                parts[i].axes, parts[i].bytes * cs_precision_bytes(how->precision)};
    if (from->n_pieces == 0)
        return CS_OK;
    to->pieces = cs_arena_alloc(arena, from->n_pieces, sizeof(*to->pieces));
    to->exchanges = cs_arena_alloc(arena, from->n_exchanges, sizeof(*to->exchanges));
    if (!to->pieces || !to->exchanges)
        return cs_error_no_memory(error);
    to->n_pieces = from->n_pieces;
    to->n_exchanges = from->n_exchanges;
    memcpy(to->exchanges, from->exchanges, from->n_exchanges * sizeof(*to->exchanges));
    return fill_pieces(from, to)
               ? CS_OK
               : cs_error_add(error, CS_OVERFLOW, "the times of layer %s do not fit 64 bits",
                              from->name);
}

/* Finds an earlier layer whose weights an operator of layer l uses as well. False if the size
 * overflows. */
static bool find_tie(const cs_net *net, const cs_net_options *how, const cs_net_chain *chain,
                     uint32_t l, cs_model *model)
{
    for (uint32_t p = chain->layers[l].first; p < chain->layers[l].end; p++) {
        const uint32_t lender = net->ops[p].tied ? cs_net_lender(net, p) : net->n_ops;
        uint32_t from = lender < net->n_ops ? 0 : l;
        while (lender < net->n_ops && lender >= chain->layers[from].end)
            from++;
        if (from >= l)
            continue;
        model->layers[l].tied_to = model->layers[from].name;
        return !__builtin_mul_overflow(net->ops[p].weights,
                                       (int64_t)cs_precision_bytes(how->precision),
                                       &model->layers[l].tied_bytes);
    }
    return true;
}

/* Fills the memory that a layer shares with other layers: memory of its operators, by their names
 * without the block's name; a library's workspace; and the most that one operator needs in the
 * buffer that all layers share. */
static cs_status fill_shared(const cs_net *net, const cs_net_options *how, const cs_net_layer *from,
                             cs_layer *to, cs_arena *arena, cs_error *error)
{
    const uint32_t places =
        how->split ? how->split->grid.expert * how->split->grid.expert_tensor : 1;
    int64_t buffer = 0, workspace = 0;
    to->shared = cs_arena_alloc(arena, from->end - from->first + 2ULL, sizeof(*to->shared));
    if (!to->shared)
        return cs_error_no_memory(error);
    for (uint32_t p = from->first; p < from->end; p++) {
        const cs_op *op = &net->ops[p];
        const size_t block = strlen(net->blocks[op->block]);
        cs_op_cost cost;
        cs_op_cost_of(net, op, how->batch_size, how->precision, &cost);
        const int64_t bytes = cs_kept_placeholder(op, &how->kept, how->precision);
        const int64_t needed =
            cs_kept_in_buffer(net, op, &how->kept, &cost, places, how->batch_size, how->precision);
        buffer = needed > buffer ? needed : buffer;
        workspace = workspace > 0 ? workspace : cs_kept_workspace(op, &how->kept);
        if (bytes == 0)
            continue;
        const char *name = strlen(op->name) > block ? op->name + block : op->name;
        to->shared[to->n_shared] = (cs_shared_bytes){cs_arena_copy(arena, name), bytes};
        if (!to->shared[to->n_shared++].name)
            return cs_error_no_memory(error);
    }
    if (workspace > 0)
        to->shared[to->n_shared++] =
            (cs_shared_bytes){"workspace of products of groups", workspace};
    if (buffer > 0)
        to->shared[to->n_shared++] = (cs_shared_bytes){NULL, buffer};
    return CS_OK;
}

static cs_status fill_model(const cs_divided_net *d, const cs_net_options *how,
                            const cs_net_chain *chain, cs_model *model, cs_error *error)
{
    const cs_net *net = d->net;
    CS_TRY(describe(d, how, chain, model, error));
    model->n_layers = chain->n_layers;
    model->layers = cs_arena_alloc(&model->arena, chain->n_layers, sizeof(*model->layers));
    if (!model->layers)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        if (!fill_layer(net, how, &chain->layers[i], &model->layers[i], &model->arena) ||
            !find_tie(net, how, chain, i, model))
            return cs_error_add(error, CS_OVERFLOW,
                                "%s: the times or sizes of layer %s do not fit 64 bits", net->name,
                                chain->layers[i].name);
        if (!model->layers[i].name)
            return cs_error_no_memory(error);
        if (chain->layers[i].n_matrices > 0)
            CS_TRY(fill_matrices(how, &chain->layers[i], &model->layers[i], &model->arena, error));
        CS_TRY(divide_layer(how, &chain->layers[i], &model->layers[i], &model->arena, error));
        if (how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_PLACEHOLDERS ||
            how->kept.attention_buffer || how->kept.gather_buffer != CS_GATHER_BUFFER_NONE ||
            how->kept.grouped_workspace > 0)
            CS_TRY(
                fill_shared(net, how, &chain->layers[i], &model->layers[i], &model->arena, error));
    }
    fill_result(net, how, &chain->layers[chain->n_layers - 1], &model->layers[chain->n_layers - 1]);
    if (how->tapes)
        CS_TRY(cs_net_tape_make(net, d->local, how, chain, model->layers, &model->arena, error));
    return CS_OK;
}

cs_status cs_net_model(const cs_net *net, const cs_net_options *options, cs_model *model,
                       cs_error *error)
{
    cs_net_chain chain = {0};
    cs_net_local local = {0};
    cs_model made = {0};
    cs_divided_net d;
    cs_arena_init(&made.arena);
    cs_status status = cs_net_divide(net, options, &local, &d, error);
    if (status == CS_OK)
        status = cs_net_chain_of(&d, options, &chain, error);
    if (status == CS_OK)
        status = fill_model(&d, options, &chain, &made, error);
    cs_net_chain_finish(&chain);
    cs_net_local_finish(&local);
    if (status != CS_OK) {
        cs_model_finish(&made);
        return status;
    }
    *model = made;
    return CS_OK;
}

/* ---- totals ---- */

int64_t cs_net_parameters(const cs_net *net)
{
    int64_t sum = 0;
    for (uint32_t p = 0; p < net->n_ops; p++)
        sum += (net->ops[p].tied ? 0 : net->ops[p].weights) + net->ops[p].biases;
    return sum;
}

int64_t cs_net_trained_parameters(const cs_net *net)
{
    int64_t sum = cs_net_parameters(net);
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const cs_op *op = &net->ops[p];
        if (op->frozen)
            sum -= (op->tied ? 0 : op->weights) + op->biases;
    }
    return sum;
}

/* Subtracts the weights of idle experts: all except those that compute a token. */
int64_t cs_net_active_parameters(const cs_net *net)
{
    int64_t sum = cs_net_parameters(net);
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const cs_op *op = &net->ops[p];
        if (op->kind == CS_OP_GROUPED_LINEAR)
            sum -= (op->weights + op->biases) / op->experts * (op->experts - op->top_k);
    }
    return sum;
}

double cs_net_macs(const cs_net *net)
{
    double sum = 0;
    for (uint32_t p = 0; p < net->n_ops; p++) {
        cs_op_cost cost;
        cs_op_cost_of(net, &net->ops[p], 1, CS_PRECISION_FP32, &cost);
        sum += cost.macs;
    }
    return sum;
}
