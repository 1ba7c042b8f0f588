#include "calib/bench/train/trainer.h"

#include <stdlib.h>
#include <string.h>

enum {
    FLOAT = sizeof(float),
    ALIGNMENT = 16, /* bytes; the alignment of matrices that libraries require */
};

static int64_t width_of(const cs_trainer *trainer)
{
    return cs_precision_bytes(trainer->precision);
}

/* ---- common to all parts ---- */

/* Places a view in its storage. A view with as many elements as its input has the same layout.
 * Other views take some of the features, side by side with other views of the input, or the first
 * row. */
static void lay_view(cs_trainer *trainer, uint32_t p)
{
    const cs_net *net = trainer->net;
    const cs_op *op = &net->ops[p];
    const cs_tensor_info *in = cs_net_tensor(net, op->inputs[0]);
    const cs_tensor_info *out = cs_net_tensor(net, op->output);
    const cs_lie *from = &trainer->lies[op->inputs[0]];
    cs_lie *to = &trainer->lies[op->output];
    if (out->elements == in->elements)
        return;
    *to = *from;
    if (out->shape.rank == in->shape.rank) {
        /* Count the views of this input before operator p. */
        uint32_t n = 0;
        for (uint32_t q = 0; q < p; q++)
            n += net->ops[q].kind == CS_OP_VIEW && net->ops[q].inputs[0] == net->ops[p].inputs[0];
        to->offset += n * cs_tensor_columns(out);
    }
}

static void lay_tensors(cs_trainer *trainer)
{
    const cs_net *net = trainer->net;
    for (uint32_t t = 0; t < net->n_tensors; t++) {
        const cs_tensor_info *info = cs_net_tensor(net, t);
        int64_t bytes = cs_tensor_bytes(net, t, trainer->batch, trainer->precision);
        int64_t *room = &trainer->storage_bytes[info->storage];
        trainer->lies[t] = (cs_lie){0, info->elements, cs_tensor_columns(info)};
        trainer->roots[t] = t;
        trainer->writer[t] = CS_NO_TENSOR;
        *room = bytes > *room ? bytes : *room;
    }
}

static void note_op(cs_trainer *trainer, uint32_t p)
{
    const cs_net *net = trainer->net;
    const cs_op *op = &net->ops[p];
    cs_op_shape shapes[CS_OP_SHAPES_MAX];
    cs_op_cost_of(net, op, trainer->batch, trainer->precision, &trainer->costs[p]);
    uint32_t n =
        cs_op_shapes_of(net, op, trainer->batch, trainer->precision, trainer->n_states, shapes);
    for (uint32_t i = 0; i < n; i++)
        if (shapes[i].piece == CS_PIECE_OPERATOR)
            trainer->passes[p] = (uint8_t)shapes[i].passes;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        trainer->last_use[cs_net_tensor(net, op->inputs[i])->storage] = p;
    trainer->last_use[cs_net_tensor(net, op->output)->storage] = p;
    trainer->writer[op->output] = p;
    if (op->kind == CS_OP_VIEW) {
        trainer->roots[op->output] = trainer->roots[op->inputs[0]];
        lay_view(trainer, p);
    }
    if (op->kind == CS_OP_EXCHANGE && op->in_place)
        trainer->lies[op->output] = trainer->lies[op->inputs[0]];
}

/* Records what an operator of a part needs besides its shapes. */
static void note_part(cs_trainer *trainer, uint32_t p)
{
    const cs_trained_part *part = &trainer->part_of;
    const cs_op *op = &trainer->net->ops[p];
    if (!part->local)
        return;
    const cs_local_op *local = &part->local->ops[p];
    const cs_shape *out = &cs_net_tensor(trainer->net, op->output)->shape;
    const cs_axes tensor = cs_grid_axes(&part->split->grid, CS_AXES_TENSOR);
    const int64_t rows = part->whole->ops[local->origin].weights / out->dims[out->rank - 1];
    if (op->gathers_again)
        trainer->gathers[cs_net_tensor(trainer->net, op->output)->storage] = 1 + p;
    if (op->kind == CS_OP_EMBEDDING && local->made.axes[CS_LAYOUT_TENSOR].part == CS_PARTIAL)
        trainer->firsts[p] =
            cs_part_first((uint32_t)rows, tensor.size, cs_axes_coordinate(tensor, part->place));
    if (op->kind == CS_OP_ADD && op->n_inputs == 1)
        trainer->firsts[p] =
            cs_layout_first(&local->made, &local->whole, part->split, part->place, 0);
}

static cs_status find_lender(cs_trainer *trainer, uint32_t p, cs_error *error)
{
    const cs_net *net = trainer->net;
    const cs_op *op = &net->ops[p];
    trainer->lenders[p] = cs_net_lender(net, p);
    if (trainer->lenders[p] < net->n_ops && !(op->tied && op->biases > 0))
        return CS_OK;
    return cs_error_add(error, CS_INVALID, "%s: operator %s shares weights, but %s", net->name,
                        op->name,
                        op->biases > 0 ? "has its own bias" : "no other operator has as many");
}

cs_status cs_trainer_init(cs_trainer *trainer, cs_error *error)
{
    const cs_net *net = trainer->net;
    cs_arena *arena = &trainer->arena;
    cs_arena_init(arena);
    trainer->workspace = (cs_block){0};
    trainer->lies = cs_arena_alloc(arena, net->n_tensors, sizeof(*trainer->lies));
    trainer->roots = cs_arena_alloc(arena, net->n_tensors, sizeof(*trainer->roots));
    trainer->writer = cs_arena_alloc(arena, net->n_tensors, sizeof(*trainer->writer));
    trainer->storage_bytes =
        cs_arena_alloc(arena, net->n_storages, sizeof(*trainer->storage_bytes));
    trainer->last_use = cs_arena_alloc(arena, net->n_storages, sizeof(*trainer->last_use));
    trainer->costs = cs_arena_alloc(arena, net->n_ops, sizeof(*trainer->costs));
    trainer->passes = cs_arena_alloc(arena, net->n_ops, sizeof(*trainer->passes));
    trainer->lenders = cs_arena_alloc(arena, net->n_ops, sizeof(*trainer->lenders));
    trainer->gathers = cs_arena_alloc(arena, net->n_storages, sizeof(*trainer->gathers));
    trainer->firsts = cs_arena_alloc(arena, net->n_ops, sizeof(*trainer->firsts));
    if (!trainer->lies || !trainer->roots || !trainer->writer || !trainer->storage_bytes ||
        !trainer->last_use || !trainer->costs || !trainer->passes || !trainer->lenders ||
        !trainer->gathers || !trainer->firsts) {
        cs_arena_finish(arena);
        return cs_error_no_memory(error);
    }
    lay_tensors(trainer);
    cs_status status = CS_OK;
    for (uint32_t p = 0; p < net->n_ops && status == CS_OK; p++) {
        note_op(trainer, p);
        note_part(trainer, p);
        status = find_lender(trainer, p, error);
    }
    if (status != CS_OK)
        cs_arena_finish(arena);
    return status;
}

void cs_trainer_finish(cs_trainer *trainer)
{
    if (trainer->pool)
        cs_block_pool_give(trainer->pool, &trainer->workspace);
    cs_arena_finish(&trainer->arena);
    *trainer = (cs_trainer){0};
}

int64_t cs_trainer_bytes(const cs_trainer *trainer, cs_tensor tensor)
{
    return cs_tensor_bytes(trainer->net, tensor, trainer->batch, trainer->precision);
}

/* ---- parts ---- */

static uint32_t storage_of(const cs_trainer *trainer, cs_tensor tensor)
{
    return cs_net_tensor(trainer->net, tensor)->storage;
}

/* Whether an operator needs the storage in its backward. A tensor that is gathered again is not
 * kept, but its source is. */
static bool keeps(const cs_trainer *trainer, uint32_t p, uint32_t storage)
{
    const cs_op *op = &trainer->net->ops[p];
    const uint32_t made = storage_of(trainer, op->output);
    bool kept = trainer->costs[p].keeps_output && made == storage;
    for (uint32_t i = 0; trainer->costs[p].keeps_input && i < op->n_inputs; i++)
        kept |= storage_of(trainer, op->inputs[i]) == storage;
    return (kept && trainer->gathers[storage] == 0) ||
           (trainer->gathers[made] == p + 1 && storage_of(trainer, op->inputs[0]) == storage);
}

/* Returns the number of parameters that an operator owns; borrowed ones are updated once, by the
 * lender. */
static int64_t parameters_of(const cs_trainer *trainer, uint32_t p)
{
    return trainer->costs[p].weights + trainer->costs[p].biases;
}

/* Returns the float32 numbers per parameter: states and, in mixed precision, the parameter
 * itself. */
static int64_t states_of(const cs_trainer *trainer)
{
    return trainer->n_states + (width_of(trainer) < FLOAT);
}

/* Initialises the float32 copy of the parameters that a mixed-precision optimizer updates. Without
 * this, the first update would replace the parameters by its step. */
static cs_status copy_masters(cs_trainer *trainer, const cs_part *part, cs_error *error)
{
    for (uint32_t p = part->first_op; p < part->end_op; p++) {
        int64_t n = parameters_of(trainer, p);
        int64_t place = part->offsets[p - part->first_op];
        if (n > 0)
            CS_TRY(trainer->backend->widen(
                trainer->bench, (float *)part->states.data + place * states_of(trainer),
                (char *)part->parameters.data + place * width_of(trainer), n, trainer->precision,
                error));
    }
    return CS_OK;
}

static cs_status fill_part(cs_trainer *trainer, cs_part *part, cs_error *error)
{
    const cs_backend *backend = trainer->backend;
    cs_bench *bench = trainer->bench;
    cs_precision precision = trainer->precision;
    int64_t n = part->n_places, bytes = n * width_of(trainer), states = n * states_of(trainer);
    if (n == 0)
        return CS_OK;
    CS_TRY(cs_block_pool_take(trainer->pool, bytes, &part->parameters, error));
    CS_TRY(cs_block_pool_take(trainer->pool, bytes, &part->gradients, error));
    CS_TRY(cs_block_pool_take(trainer->pool, states * FLOAT, &part->states, error));
    CS_TRY(backend->fill(bench, CS_FILL_NUMBERS, precision, part->parameters.data, n, 0.05, error));
    CS_TRY(backend->fill(bench, CS_FILL_ZERO, precision, part->gradients.data, n, 0, error));
    if (states > 0)
        CS_TRY(backend->fill(bench, CS_FILL_ZERO, CS_PRECISION_FP32, part->states.data, states, 0,
                             error));
    return width_of(trainer) < FLOAT ? copy_masters(trainer, part, error) : CS_OK;
}

/* Lays out a part; the parameters of each operator begin at a multiple of `unit`. */
static cs_status lay_part(cs_trainer *trainer, uint32_t first, uint32_t end, int64_t unit,
                          cs_part *part, cs_error *error)
{
    *part = (cs_part){.first_op = trainer->chain->layers[first].first,
                      .end_op = trainer->chain->layers[end - 1].end};
    const uint32_t n_ops = part->end_op - part->first_op;
    part->offsets = calloc(n_ops + UINT64_C(1), sizeof(*part->offsets));
    if (!part->offsets)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n_ops; i++) {
        int64_t n = parameters_of(trainer, part->first_op + i);
        part->offsets[i] = part->n_places;
        part->n_parameters += n;
        part->n_places += (n + unit - 1) / unit * unit;
    }
    /* Tied operators read the lender's weights and add to its gradient. */
    for (uint32_t p = part->first_op; p < part->end_op; p++) {
        uint32_t lender = trainer->lenders[p];
        if (lender < part->first_op || lender >= part->end_op)
            return cs_error_add(error, CS_INVALID,
                                "%s: operator %s shares the weights of %s, which is in another "
                                "part",
                                trainer->net->name, trainer->net->ops[p].name,
                                trainer->net->ops[lender].name);
        part->offsets[p - part->first_op] = part->offsets[lender - part->first_op];
    }
    return CS_OK;
}

cs_status cs_part_open(cs_trainer *trainer, uint32_t first, uint32_t end, cs_part *part,
                       cs_error *error)
{
    cs_part made = {0};
    cs_status status = lay_part(trainer, first, end, ALIGNMENT / width_of(trainer), &made, error);
    if (status == CS_OK)
        status = fill_part(trainer, &made, error);
    if (status == CS_OK)
        *part = made;
    else
        cs_part_close(trainer, &made);
    return status;
}

cs_status cs_part_open_bare(cs_trainer *trainer, uint32_t first, uint32_t end, cs_part *part,
                            cs_error *error)
{
    cs_part made = {0};
    cs_status status = lay_part(trainer, first, end, 1, &made, error);
    made.places = calloc(made.end_op - made.first_op + UINT64_C(1), sizeof(*made.places));
    made.needed = calloc(trainer->net->n_storages + UINT64_C(1), sizeof(*made.needed));
    if (status == CS_OK && (!made.places || !made.needed))
        status = cs_error_no_memory(error);
    if (status == CS_OK) {
        /* Computed once for all passes. */
        for (uint32_t s = 0; s < trainer->net->n_storages; s++) {
            uint32_t p = made.first_op;
            while (p < made.end_op && !keeps(trainer, p, s))
                p++;
            made.needed[s] = p < made.end_op ? p : CS_NO_TENSOR;
        }
    }
    if (status == CS_OK)
        *part = made;
    else
        cs_part_close(trainer, &made);
    return status;
}

void cs_part_close(cs_trainer *trainer, cs_part *part)
{
    cs_block_pool_give(trainer->pool, &part->parameters);
    cs_block_pool_give(trainer->pool, &part->gradients);
    cs_block_pool_give(trainer->pool, &part->states);
    free(part->offsets);
    free(part->places);
    free(part->needed);
    *part = (cs_part){0};
}

cs_tensor cs_part_input(const cs_trainer *trainer, const cs_part *part)
{
    const cs_net *net = trainer->net;
    cs_tensor found = CS_NO_TENSOR;
    for (uint32_t p = part->first_op; p < part->end_op; p++) {
        for (uint32_t i = 0; i < net->ops[p].n_inputs; i++) {
            cs_tensor t = net->ops[p].inputs[i];
            uint32_t writer = trainer->writer[t];
            if (writer != CS_NO_TENSOR && writer < part->first_op)
                found = t;
        }
    }
    return found;
}

cs_tensor cs_part_output(const cs_trainer *trainer, const cs_part *part)
{
    return part->end_op == trainer->net->n_ops ? CS_NO_TENSOR
                                               : trainer->net->ops[part->end_op - 1].output;
}

/* ---- activations ---- */

static void free_lists(cs_activations *at)
{
    free(at->data);
    free(at->saved);
    free(at->gradients);
    free(at->counts);
    free(at->written);
    free(at->borrowed);
    *at = (cs_activations){0};
}

cs_status cs_activations_open(cs_trainer *trainer, cs_activations *activations, cs_error *error)
{
    const cs_net *net = trainer->net;
    cs_activations made = {.data = calloc(net->n_storages, sizeof(*made.data)),
                           .saved = calloc(net->n_ops, sizeof(*made.saved)),
                           .gradients = calloc(net->n_tensors, sizeof(*made.gradients)),
                           .counts = calloc(net->n_tensors, sizeof(*made.counts)),
                           .written = calloc(net->n_tensors, sizeof(*made.written)),
                           .borrowed = calloc(net->n_storages, sizeof(*made.borrowed))};
    if (!made.data || !made.saved || !made.gradients || !made.counts || !made.written ||
        !made.borrowed) {
        free_lists(&made);
        return cs_error_no_memory(error);
    }
    *activations = made;
    return CS_OK;
}

static cs_gradient *gradient_of(const cs_trainer *trainer, const cs_activations *at,
                                cs_tensor tensor)
{
    return &at->gradients[trainer->roots[tensor]];
}

static void give_gradient(cs_trainer *trainer, cs_activations *at, cs_gradient *gradient)
{
    if (gradient->block.data && --at->counts[gradient->count] == 0)
        cs_block_pool_give(trainer->pool, &gradient->block);
    *gradient = (cs_gradient){0};
}

/* Allocates the gradient of a tensor that has none. */
static cs_status take_gradient(cs_trainer *trainer, cs_activations *at, cs_tensor tensor,
                               cs_error *error)
{
    cs_tensor root = trainer->roots[tensor];
    at->gradients[root].count = root;
    at->counts[root] = 1;
    return cs_block_pool_take(trainer->pool, cs_trainer_bytes(trainer, root),
                              &at->gradients[root].block, error);
}

/* Frees a storage, unless another part owns it. */
static void give_data(cs_trainer *trainer, cs_activations *at, uint32_t storage)
{
    if (at->borrowed[storage])
        at->data[storage] = (cs_block){0};
    at->borrowed[storage] = false;
    cs_block_pool_give(trainer->pool, &at->data[storage]);
}

void cs_activations_close(cs_trainer *trainer, cs_activations *at)
{
    for (uint32_t s = 0; at->data && s < trainer->net->n_storages; s++)
        give_data(trainer, at, s);
    for (uint32_t t = 0; at->data && t < trainer->net->n_tensors; t++)
        give_gradient(trainer, at, &at->gradients[t]);
    for (uint32_t p = 0; at->data && p < trainer->net->n_ops; p++)
        cs_block_pool_give(trainer->pool, &at->saved[p]);
    free_lists(at);
}

/* Allocates a storage, if it is not allocated yet. */
static cs_status have(cs_trainer *trainer, cs_activations *at, uint32_t storage, cs_error *error)
{
    if (at->data[storage].data)
        return CS_OK;
    return cs_block_pool_take(trainer->pool, trainer->storage_bytes[storage], &at->data[storage],
                              error);
}

static cs_view view_of(const cs_trainer *trainer, const cs_block *block, cs_tensor tensor)
{
    const cs_lie *lie = &trainer->lies[tensor];
    if (!block->data)
        return (cs_view){0};
    return (cs_view){(char *)block->data + lie->offset * width_of(trainer), lie->sample_stride,
                     lie->row_stride};
}

/* Returns the view of a gradient. The gradient of a tensor that is not a view is contiguous,
 * whatever the layout of the tensor. */
static cs_view gradient_view(const cs_trainer *trainer, const cs_activations *at, cs_tensor tensor)
{
    const cs_tensor_info *info = cs_net_tensor(trainer->net, tensor);
    const cs_block *block = &gradient_of(trainer, at, tensor)->block;
    return trainer->roots[tensor] != tensor || !block->data
               ? view_of(trainer, block, tensor)
               : (cs_view){block->data, info->elements, cs_tensor_columns(info)};
}

/* Returns the tensor of a message: the part's input or output. Gradients arrive for the output and
 * leave for the input. */
static cs_tensor end_of(const cs_trainer *trainer, const cs_part *part, bool input)
{
    return input ? cs_part_input(trainer, part) : cs_part_output(trainer, part);
}

cs_status cs_part_receive(cs_trainer *trainer, const cs_part *part, bool gradient,
                          cs_activations *at, void **data, cs_error *error)
{
    cs_tensor tensor = end_of(trainer, part, !gradient);
    uint32_t storage = storage_of(trainer, tensor);
    CS_TRY(gradient ? take_gradient(trainer, at, tensor, error)
                    : have(trainer, at, storage, error));
    at->written[tensor] = gradient;
    *data = gradient ? gradient_of(trainer, at, tensor)->block.data : at->data[storage].data;
    return CS_OK;
}

void *cs_part_result(const cs_trainer *trainer, const cs_part *part, bool gradient,
                     const cs_activations *at)
{
    cs_tensor tensor = end_of(trainer, part, gradient);
    return gradient ? gradient_of(trainer, at, tensor)->block.data
                    : at->data[storage_of(trainer, tensor)].data;
}

/* Whether an operator of the part keeps the storage. */
static bool is_kept(const cs_trainer *trainer, const cs_part *part, uint32_t storage)
{
    bool kept = false;
    for (uint32_t p = part->first_op; p < part->end_op; p++)
        kept |= keeps(trainer, p, storage);
    return kept;
}

void cs_part_given(cs_trainer *trainer, const cs_part *part, bool gradient, cs_activations *at)
{
    cs_tensor tensor = end_of(trainer, part, gradient);
    uint32_t storage = storage_of(trainer, tensor);
    if (gradient)
        give_gradient(trainer, at, gradient_of(trainer, at, tensor));
    else if (!is_kept(trainer, part, storage))
        give_data(trainer, at, storage);
}

void cs_part_hand_output(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                         cs_activations *next)
{
    uint32_t storage = storage_of(trainer, cs_part_output(trainer, part));
    if (next->data[storage].data || !at->data[storage].data)
        return;
    next->data[storage] = at->data[storage];
    next->borrowed[storage] = is_kept(trainer, part, storage) || at->borrowed[storage];
    if (!next->borrowed[storage])
        at->data[storage] = (cs_block){0};
}

void cs_part_hand_gradient(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                           cs_activations *next)
{
    cs_tensor output = cs_part_output(trainer, part), root = trainer->roots[output];
    cs_gradient *from = gradient_of(trainer, next, output), *to = gradient_of(trainer, at, output);
    if (to->block.data || !from->block.data)
        return;
    next->counts[from->count]--;
    *to = (cs_gradient){from->block, root};
    at->counts[root] = 1;
    at->written[output] = true;
    *from = (cs_gradient){0};
}

/* ---- running operators ---- */

static bool is_loss(const cs_op *op)
{
    return op->kind == CS_OP_CROSS_ENTROPY || op->kind == CS_OP_SQUARED_ERROR;
}

static cs_status observe(const cs_trainer *trainer, uint32_t p, cs_piece piece, cs_pass pass,
                         cs_error *error)
{
    const cs_observer *observer = &trainer->observer;
    return observer->done ? observer->done(observer->context, p, piece, pass, error) : CS_OK;
}

static cs_kernel kernel_of(const cs_trainer *trainer, uint32_t p)
{
    return (cs_kernel){trainer->net, &trainer->net->ops[p], trainer->batch, trainer->precision,
                       trainer->firsts[p]};
}

/* Whether the operator is a cross entropy of a part of the logits. */
static bool is_divided_loss(const cs_trainer *trainer, uint32_t p)
{
    const cs_net_local *local = trainer->part_of.local;
    return local && trainer->net->ops[p].kind == CS_OP_CROSS_ENTROPY &&
           local->ops[p].read.axes[CS_LAYOUT_TENSOR].part == CS_DIVIDED;
}

static cs_status run_pass(cs_trainer *trainer, uint32_t p, cs_pass pass, cs_operands *operands,
                          cs_error *error)
{
    const cs_backend *backend = trainer->backend;
    cs_kernel kernel = kernel_of(trainer, p);
    const char *algorithm;
    int64_t bytes;
    CS_TRY(backend->workspace(trainer->bench, &kernel, pass, &bytes, &algorithm, error));
    CS_TRY(cs_block_pool_take(trainer->pool, bytes, &trainer->workspace, error));
    operands->workspace = trainer->workspace.data;
    const cs_exchanger *others = &trainer->exchanger;
    cs_status status = pass == CS_PASS_FORWARD && is_divided_loss(trainer, p)
                           ? others->entropy(others->context, p, operands, error)
                           : backend->run(trainer->bench, &kernel, pass, operands, error);
    cs_block_pool_give(trainer->pool, &trainer->workspace);
    return status == CS_OK ? observe(trainer, p, CS_PIECE_OPERATOR, pass, error) : status;
}

static void set_operands(const cs_trainer *trainer, const cs_part *part, uint32_t p,
                         void *parameters, const cs_activations *at, cs_operands *operands)
{
    const cs_op *op = &trainer->net->ops[p];
    int64_t offset = part->offsets[p - part->first_op] * width_of(trainer);
    *operands = (cs_operands){.saved = at->saved[p].data};
    for (uint32_t i = 0; i < op->n_inputs; i++)
        operands->in[i] =
            view_of(trainer, &at->data[storage_of(trainer, op->inputs[i])], op->inputs[i]);
    operands->out = view_of(trainer, &at->data[storage_of(trainer, op->output)], op->output);
    operands->grad_out = gradient_view(trainer, at, op->output);
    if (op->weights + op->biases > 0 && part->places) {
        const cs_op_place *place = &part->places[p - part->first_op];
        operands->parameters = place->parameters;
        operands->grad_parameters = place->gradients;
    } else if (op->weights + op->biases > 0) {
        operands->parameters = (char *)parameters + offset;
        operands->grad_parameters = (char *)part->gradients.data + offset;
    }
}

/* ---- forward ---- */

/* Fills inputs that no operator computes: the network's inputs. */
static cs_status make_inputs(cs_trainer *trainer, const cs_op *op, cs_activations *at,
                             cs_error *error)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const cs_tensor_info *info = cs_net_tensor(trainer->net, op->inputs[i]);
        if (at->data[info->storage].data || trainer->writer[op->inputs[i]] != CS_NO_TENSOR)
            continue;
        cs_status status = have(trainer, at, info->storage, error);
        int64_t elements = info->elements * trainer->batch;
        bool ids = info->element == CS_ELEMENT_INT64;
        double limit = ids ? (double)op->weights /
                                 (double)cs_tensor_columns(cs_net_tensor(trainer->net, op->output))
                           : 1;
        if (status == CS_OK && trainer->exchanger.input)
            status = trainer->exchanger.input(trainer->exchanger.context, op->inputs[i],
                                              at->data[info->storage].data, error);
        else if (status == CS_OK)
            status = trainer->backend->fill(trainer->bench, ids ? CS_FILL_IDS : CS_FILL_NUMBERS,
                                            trainer->precision, at->data[info->storage].data,
                                            elements, limit, error);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

/* After its last reader in the part, frees a tensor that no operator keeps, except the part's
 * output. */
static void give_inputs(cs_trainer *trainer, const cs_part *part, uint32_t p, cs_activations *at)
{
    const cs_op *op = &trainer->net->ops[p];
    cs_tensor output = cs_part_output(trainer, part);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t storage = storage_of(trainer, op->inputs[i]);
        bool leaves = output != CS_NO_TENSOR && storage_of(trainer, output) == storage;
        if (trainer->last_use[storage] == p && !leaves && !is_kept(trainer, part, storage))
            give_data(trainer, at, storage);
    }
}

/* A convolution has a bias per channel of its result, other operators one per column. */
typedef struct biased {
    int64_t n, inner, outer; /* number of biases; adjacent numbers with the same one; repetitions */
} biased;

static biased biased_of(const cs_trainer *trainer, uint32_t p)
{
    const cs_op *op = &trainer->net->ops[p];
    const cs_tensor_info *out = cs_net_tensor(trainer->net, op->output);
    const cs_trained_part *part = &trainer->part_of;
    const cs_op *of = &part->whole->ops[part->local->ops[p].origin];
    const int64_t inner = of->kind == CS_OP_CONV ? out->elements / op->biases : 1;
    return (biased){op->biases, inner, trainer->batch * out->elements / (op->biases * inner)};
}

/* Adds the biases to the numbers; `back` adds the numbers to the gradients of the biases. */
static void add_biases(const biased *b, float *numbers, float *biases, bool back)
{
    for (int64_t o = 0; o < b->outer; o++)
        for (int64_t c = 0; c < b->n; c++)
            for (int64_t i = 0; i < b->inner; i++) {
                float *at = &numbers[(o * b->n + c) * b->inner + i];
                if (back)
                    biases[c] += *at;
                else
                    *at += biases[c];
            }
}

static cs_status forward_exchange(cs_trainer *trainer, const cs_part *part, uint32_t p,
                                  void *parameters, cs_activations *at, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    const cs_exchanger *others = &trainer->exchanger;
    cs_operands operands;
    set_operands(trainer, part, p, parameters, at, &operands);
    cs_status status = others->exchange(others->context, p, CS_EXCHANGE_FORWARD, &operands.in[0],
                                        &operands.out, error);
    if (status == CS_OK && op->biases > 0) {
        const biased b = biased_of(trainer, p);
        add_biases(&b, operands.out.data, operands.parameters, false);
    }
    give_inputs(trainer, part, p, at);
    return status;
}

static cs_status forward_op(cs_trainer *trainer, const cs_part *part, uint32_t p, void *parameters,
                            cs_activations *at, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    const cs_kernel kernel = kernel_of(trainer, p);
    cs_operands operands;
    cs_status status = make_inputs(trainer, op, at, error);
    if (status != CS_OK || op->kind == CS_OP_VIEW)
        return status;
    CS_TRY(have(trainer, at, storage_of(trainer, op->output), error));
    if (op->kind == CS_OP_EXCHANGE)
        return forward_exchange(trainer, part, p, parameters, at, error);
    CS_TRY(cs_block_pool_take(trainer->pool, cs_kernel_saved(&kernel), &at->saved[p], error));
    set_operands(trainer, part, p, parameters, at, &operands);
    status = run_pass(trainer, p, CS_PASS_FORWARD, &operands, error);
    give_inputs(trainer, part, p, at);
    return status;
}

cs_status cs_part_inputs(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                         cs_error *error)
{
    for (uint32_t p = part->first_op; p < part->end_op; p++)
        CS_TRY(make_inputs(trainer, &trainer->net->ops[p], at, error));
    return CS_OK;
}

cs_status cs_part_forward_some(cs_trainer *trainer, const cs_part *part, uint32_t first,
                               uint32_t end, void *parameters, cs_activations *at, cs_error *error)
{
    for (uint32_t p = first; p < end; p++)
        CS_TRY(forward_op(trainer, part, p, parameters, at, error));
    return CS_OK;
}

cs_status cs_part_forward(cs_trainer *trainer, const cs_part *part, void *parameters,
                          cs_activations *at, cs_error *error)
{
    return cs_part_forward_some(trainer, part, part->first_op, part->end_op, parameters, at, error);
}

const float *cs_part_loss(const cs_trainer *trainer, const cs_part *part, const cs_activations *at)
{
    for (uint32_t p = part->end_op; p-- > part->first_op;) {
        const cs_op *op = &trainer->net->ops[p];
        if (is_loss(op))
            return at->data[storage_of(trainer, op->output)].data;
    }
    return NULL;
}

/* ---- backward ---- */

/* The gradient of an input that other readers have already written, and which must be added. */
typedef struct sum {
    bool pending;
    cs_block addend;
} sum;

static cs_status zero_gradient(cs_trainer *trainer, const cs_gradient *gradient, cs_error *error)
{
    return trainer->backend->fill(trainer->bench, CS_FILL_ZERO, trainer->precision,
                                  gradient->block.data, gradient->block.bytes / width_of(trainer),
                                  0, error);
}

/* Whether a tensor is one row of a larger one, so that its reader leaves the gradients of the other
 * rows zero. */
static bool is_one_row(const cs_trainer *trainer, cs_tensor t)
{
    const cs_tensor_info *info = cs_net_tensor(trainer->net, t);
    return info->shape.rank == 1 && trainer->lies[t].sample_stride > info->elements;
}

/* Chooses where an operator writes the gradient of input i: to its final place, or to a temporary
 * block to be added. */
static cs_status place_gradient(cs_trainer *trainer, const cs_op *op, uint32_t i,
                                cs_activations *at, cs_operands *operands, sum *sums,
                                cs_error *error)
{
    cs_tensor t = op->inputs[i];
    const cs_tensor_info *info = cs_net_tensor(trainer->net, t);
    cs_gradient *gradient = gradient_of(trainer, at, t);
    cs_status status = CS_OK;
    if (!info->differentiable)
        return CS_OK;
    sums[i].pending = at->written[t];
    if (sums[i].pending) {
        status =
            cs_block_pool_take(trainer->pool, cs_trainer_bytes(trainer, t), &sums[i].addend, error);
        operands->grad_in[i] =
            (cs_view){sums[i].addend.data, info->elements, cs_tensor_columns(info)};
        return status;
    }
    if (!gradient->block.data) {
        status = take_gradient(trainer, at, t, error);
        if (status == CS_OK && is_one_row(trainer, t))
            status = zero_gradient(trainer, gradient, error);
    }
    at->written[t] = true;
    operands->grad_in[i] = gradient_view(trainer, at, t);
    return status;
}

/* Adds the temporary gradients. The sum replaces a block that others may share. */
static cs_status add_up(cs_trainer *trainer, uint32_t p, cs_activations *at, sum *sums,
                        cs_status status, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        cs_gradient *gradient = gradient_of(trainer, at, t);
        if (status == CS_OK && sums[i].pending) {
            status = trainer->backend->accumulate(
                trainer->bench, sums[i].addend.data, gradient->block.data,
                sums[i].addend.bytes / width_of(trainer), trainer->precision, error);
            if (status == CS_OK)
                status = observe(trainer, p, CS_PIECE_ACCUMULATE, CS_PASS_FORWARD, error);
            give_gradient(trainer, at, gradient);
            *gradient = (cs_gradient){sums[i].addend, trainer->roots[t]};
            at->counts[trainer->roots[t]] = 1;
            sums[i].addend = (cs_block){0};
        }
        cs_block_pool_give(trainer->pool, &sums[i].addend);
    }
    return status;
}

static cs_status backward_input(cs_trainer *trainer, uint32_t p, cs_activations *at,
                                cs_operands *operands, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    const cs_exchanger *others = &trainer->exchanger;
    sum sums[CS_OP_INPUTS_MAX] = {0};
    cs_status status = CS_OK;
    for (uint32_t i = 0; status == CS_OK && i < op->n_inputs; i++)
        status = place_gradient(trainer, op, i, at, operands, sums, error);
    if (status == CS_OK && op->kind == CS_OP_EXCHANGE)
        status = others->exchange(others->context, p, CS_EXCHANGE_BACKWARD, &operands->grad_out,
                                  &operands->grad_in[0], error);
    else if (status == CS_OK)
        status = run_pass(trainer, p, CS_PASS_BACKWARD_INPUT, operands, error);
    return add_up(trainer, p, at, sums, status, error);
}

/* Replaces a shared gradient by a copy. */
static cs_status own_gradient(cs_trainer *trainer, cs_activations *at, cs_tensor t, cs_error *error)
{
    cs_gradient *gradient = gradient_of(trainer, at, t);
    const cs_gradient shared = *gradient;
    if (at->counts[shared.count] == 1)
        return CS_OK;
    cs_block own;
    cs_status status = cs_block_pool_take(trainer->pool, shared.block.bytes, &own, error);
    if (status == CS_OK)
        status = trainer->backend->copy(trainer->bench, CS_COPY_DEVICE, own.data, shared.block.data,
                                        own.bytes, error);
    if (status != CS_OK) {
        cs_block_pool_give(trainer->pool, &own);
        return status;
    }
    give_gradient(trainer, at, gradient);
    *gradient = (cs_gradient){own, trainer->roots[t]};
    at->counts[trainer->roots[t]] = 1;
    return CS_OK;
}

/* Passes the gradient of an addition on: inputs without a gradient share it, and it is added to the
 * others. */
static cs_status hand_on(cs_trainer *trainer, uint32_t p, cs_activations *at, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    const cs_gradient from = *gradient_of(trainer, at, op->output);
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < op->n_inputs && status == CS_OK; i++) {
        cs_tensor t = op->inputs[i];
        cs_gradient *gradient = gradient_of(trainer, at, t);
        if (!cs_net_tensor(trainer->net, t)->differentiable)
            continue;
        if (at->written[t]) {
            status = own_gradient(trainer, at, t, error);
            if (status == CS_OK)
                status = trainer->backend->accumulate(
                    trainer->bench, gradient->block.data, from.block.data,
                    from.block.bytes / width_of(trainer), trainer->precision, error);
            if (status == CS_OK)
                status = observe(trainer, p, CS_PIECE_ACCUMULATE, CS_PASS_FORWARD, error);
            continue;
        }
        *gradient = from;
        at->counts[from.count]++;
        at->written[t] = true;
    }
    return status;
}

/* Ensures that the gradient of the result exists; it is zero if nothing read the result. */
static cs_status have_gradient(cs_trainer *trainer, const cs_op *op, cs_activations *at,
                               cs_error *error)
{
    if (is_loss(op) || gradient_of(trainer, at, op->output)->block.data)
        return CS_OK;
    CS_TRY(take_gradient(trainer, at, op->output, error));
    return zero_gradient(trainer, gradient_of(trainer, at, op->output), error);
}

/* Gathers a tensor again, before the backward of its last reader. */
static cs_status gather_again(cs_trainer *trainer, const cs_op *reader, uint32_t p,
                              cs_activations *at, cs_error *error)
{
    const cs_exchanger *others = &trainer->exchanger;
    for (uint32_t i = 0; i < reader->n_inputs; i++) {
        const uint32_t storage = storage_of(trainer, reader->inputs[i]);
        const uint32_t gather = trainer->gathers[storage];
        if (gather == 0 || trainer->last_use[storage] != p || at->data[storage].data)
            continue;
        const cs_op *op = &trainer->net->ops[gather - 1];
        CS_TRY(have(trainer, at, storage, error));
        const cs_view from =
            view_of(trainer, &at->data[storage_of(trainer, op->inputs[0])], op->inputs[0]);
        const cs_view to = view_of(trainer, &at->data[storage], op->output);
        CS_TRY(others->exchange(others->context, gather - 1, CS_EXCHANGE_AGAIN, &from, &to, error));
    }
    return CS_OK;
}

/* Runs the backward of an exchange. If the exchange is in place, the block of the result's gradient
 * becomes the gradient of the input, unless the input shares another gradient. */
static cs_status backward_exchange(cs_trainer *trainer, const cs_part *part, uint32_t p,
                                   void *parameters, cs_activations *at, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    const cs_exchanger *others = &trainer->exchanger;
    const bool differentiable = cs_net_tensor(trainer->net, op->inputs[0])->differentiable;
    const bool hands_on = op->in_place && trainer->roots[op->inputs[0]] == op->inputs[0];
    cs_operands operands;
    if (!cs_net_tensor(trainer->net, op->output)->differentiable)
        return CS_OK;
    cs_status status = have_gradient(trainer, op, at, error);
    if (status == CS_OK && hands_on)
        status = own_gradient(trainer, at, op->output, error);
    if (status != CS_OK)
        return status;
    set_operands(trainer, part, p, parameters, at, &operands);
    if (op->biases > 0) {
        const biased b = biased_of(trainer, p);
        add_biases(&b, operands.grad_out.data, operands.grad_parameters, true);
    }
    if (differentiable && !hands_on)
        status = backward_input(trainer, p, at, &operands, error);
    else if (differentiable)
        status = others->exchange(others->context, p, CS_EXCHANGE_BACKWARD, &operands.grad_out,
                                  &operands.grad_out, error);
    if (status == CS_OK && differentiable && hands_on)
        status = hand_on(trainer, p, at, error);
    give_gradient(trainer, at, gradient_of(trainer, at, op->output));
    if (trainer->gathers[storage_of(trainer, op->output)] == p + 1)
        give_data(trainer, at, storage_of(trainer, op->output));
    return status;
}

static cs_status backward_op(cs_trainer *trainer, const cs_part *part, uint32_t p, void *parameters,
                             cs_activations *at, cs_error *error)
{
    const cs_op *op = &trainer->net->ops[p];
    cs_operands operands;
    CS_TRY(gather_again(trainer, op, p, at, error));
    if (op->kind == CS_OP_EXCHANGE)
        return backward_exchange(trainer, part, p, parameters, at, error);
    if (op->kind == CS_OP_VIEW) { /* a view and its input share a gradient */
        at->written[op->inputs[0]] |= at->written[op->output];
        return CS_OK;
    }
    cs_status status = have_gradient(trainer, op, at, error);
    if (status != CS_OK)
        return status;
    set_operands(trainer, part, p, parameters, at, &operands);
    if (trainer->passes[p] & 1 << CS_PASS_BACKWARD_WEIGHT)
        status = run_pass(trainer, p, CS_PASS_BACKWARD_WEIGHT, &operands, error);
    if (status == CS_OK && trainer->passes[p] & 1 << CS_PASS_BACKWARD_INPUT)
        status = backward_input(trainer, p, at, &operands, error);
    else if (status == CS_OK && op->kind == CS_OP_ADD)
        status = hand_on(trainer, p, at, error);
    give_gradient(trainer, at, gradient_of(trainer, at, op->output));
    return status;
}

cs_status cs_part_backward_some(cs_trainer *trainer, const cs_part *part, uint32_t first,
                                uint32_t end, void *parameters, cs_activations *at, cs_error *error)
{
    for (uint32_t p = end; p-- > first;)
        CS_TRY(backward_op(trainer, part, p, parameters, at, error));
    return CS_OK;
}

void cs_part_backward_release(cs_trainer *trainer, const cs_part *part, uint32_t first,
                              cs_activations *at)
{
    for (uint32_t s = 0; s < trainer->net->n_storages; s++)
        if (part->needed[s] != CS_NO_TENSOR && part->needed[s] >= first)
            give_data(trainer, at, s);
    for (uint32_t p = first; p < part->end_op; p++)
        cs_block_pool_give(trainer->pool, &at->saved[p]);
}

void cs_part_backward_end(cs_trainer *trainer, const cs_part *part, cs_activations *at)
{
    const cs_net *net = trainer->net;
    for (uint32_t s = 0; s < net->n_storages; s++)
        give_data(trainer, at, s);
    for (uint32_t p = part->first_op; p < part->end_op; p++)
        cs_block_pool_give(trainer->pool, &at->saved[p]);
    memset(at->written, 0, net->n_tensors * sizeof(*at->written));
}

cs_status cs_part_backward(cs_trainer *trainer, const cs_part *part, void *parameters,
                           cs_activations *at, cs_error *error)
{
    const cs_status status =
        cs_part_backward_some(trainer, part, part->first_op, part->end_op, parameters, at, error);
    cs_part_backward_end(trainer, part, at);
    return status;
}

/* ---- update ---- */

cs_status cs_part_update(cs_trainer *trainer, const cs_part *part, void *to, cs_error *error)
{
    for (uint32_t p = part->first_op; p < part->end_op; p++) {
        int64_t n = parameters_of(trainer, p);
        int64_t place = part->offsets[p - part->first_op], offset = place * width_of(trainer);
        float *states = part->states.data;
        if (n == 0)
            continue;
        cs_update update = {.to = (char *)to + offset,
                            .gradients = (char *)part->gradients.data + offset,
                            .states = states ? states + place * states_of(trainer) : NULL,
                            .from = (char *)part->parameters.data + offset,
                            .parameters = n,
                            .n_states = trainer->n_states,
                            .precision = trainer->precision};
        CS_TRY(trainer->backend->update(trainer->bench, &update, error));
        CS_TRY(observe(trainer, p, CS_PIECE_UPDATE, CS_PASS_UPDATE, error));
    }
    return CS_OK;
}
