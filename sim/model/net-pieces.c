#include "sim/model/net-chain.h"

#include "sim/model/ops/operator.h"

#include <math.h>
#include <string.h>

typedef struct cutter {
    const cs_net_local *local;
    const cs_net_options *how;
    const cs_piece_seconds *seconds;
    const uint32_t *runs;
    cs_net_layer *layer;
    uint32_t first;    /* first exchange of the layer */
    uint32_t exchange; /* next exchange of the network */
    bool used;         /* whether the open piece at the end has work in it */
} cutter;

static cs_piece_seconds *piece(cutter *c)
{
    return &c->layer->pieces[c->layer->n_pieces];
}

static void close_piece(cutter *c)
{
    c->layer->n_pieces += c->used;
    c->used = false;
}

static int64_t bytes_of(const cutter *c, const cs_op_exchange *exchange, int64_t elements)
{
    static const double widths[] = {[CS_ELEMENT_FLOAT32] = 4, [CS_ELEMENT_INT64] = 8};
    const cs_precision precision = c->how->precision;
    const double width = exchange->element == CS_ELEMENT_ACTIVATION ? cs_precision_bytes(precision)
                         : exchange->element == CS_ELEMENT_OPERAND
                             ? cs_precision_operand_bytes(precision)
                             : widths[exchange->element];
    return (int64_t)ceil((double)elements * width) * (exchange->once ? 1 : c->how->batch_size);
}

/* Whether the exchange comes after all operators of the layer that are recomputed. */
static bool is_skipped(const cutter *c, const cs_op_exchange *exchange)
{
    const uint32_t end = c->layer->repeat_end;
    return !exchange->backward &&
           (exchange->op > end || (exchange->op == end && exchange->step == CS_BEHIND));
}

static void put_at(cutter *c, uint32_t at, const cs_op_exchange *exchange)
{
    cs_exchange *list = c->layer->exchanges;
    memmove(&list[at + 1], &list[at], (c->layer->n_exchanges - at) * sizeof(*list));
    c->layer->n_exchanges++;
    list[at] = (cs_exchange){.kind = exchange->kind,
                             .axes = exchange->axes,
                             .backward = exchange->backward,
                             .beside = exchange->beside,
                             .skipped = is_skipped(c, exchange),
                             .gap = c->layer->n_pieces,
                             .bytes = bytes_of(c, exchange, exchange->elements),
                             .bytes_back = bytes_of(c, exchange, exchange->elements_back)};
}

/* Adds the exchanges before a step of an operator, or after the operator. Within one gap, backward
 * runs the exchanges of the last operator first. */
static void put_exchanges(cutter *c, uint32_t op, uint32_t step)
{
    const cs_net_local *local = c->local;
    uint32_t first = UINT32_MAX; /* first exchange of the gap; UINT32_MAX: not found yet */
    for (; c->exchange < local->n_exchanges; c->exchange++) {
        const cs_op_exchange *exchange = &local->exchanges[c->exchange];
        if (exchange->op != op || exchange->step != step)
            return;
        if (exchange->again_of > 0 &&
            !cs_net_local_gathers_again(local, c->runs, exchange->again_of - 1))
            /* a recomputed run repeats the gather, or its result is kept for such a run */
            continue;
        close_piece(c);
        if (first == UINT32_MAX) {
            first = c->layer->n_exchanges;
            while (first > 0 && c->layer->exchanges[first - 1].gap == c->layer->n_pieces)
                first--;
        }
        put_at(c, exchange->backward ? first++ : c->layer->n_exchanges, exchange);
    }
}

static void add_seconds(cutter *c, cs_piece_seconds seconds)
{
    cs_piece_seconds *to = piece(c);
    to->forward += seconds.forward;
    to->backward_input += seconds.backward_input;
    to->backward_weight += seconds.backward_weight;
    to->skipped += seconds.skipped;
    to->host.forward += seconds.host.forward;
    to->host.backward_input += seconds.host.backward_input;
    to->host.backward_weight += seconds.host.backward_weight;
    to->host.skipped += seconds.host.skipped;
    to->waits |= seconds.waits;
    c->used = true;
}

/* Returns only the weight-gradient half of an operator's backward. */
static cs_piece_seconds of_weights(const cs_piece_seconds *all)
{
    return (cs_piece_seconds){.backward_weight = all->backward_weight,
                              .host = {.backward_weight = all->host.backward_weight}};
}

/* Adds an exchange operator. In backward, it first computes the gradient of its bias, then
 * exchanges, then adds to a gradient. */
static void add_exchange(cutter *c, uint32_t p)
{
    const cs_piece_seconds own = c->seconds[p];
    if (own.backward_input > 0)
        add_seconds(c, (cs_piece_seconds){.backward_input = own.backward_input,
                                          .host = {.backward_input = own.host.backward_input}});
    put_exchanges(c, p, 0);
    if (c->local->net.ops[p].biases > 0)
        add_seconds(c, of_weights(&own));
    if (c->local->ops[p].deferred > 0) {
        for (uint32_t q = p + 1; q <= c->local->ops[p].deferred; q++)
            add_seconds(c, of_weights(&c->seconds[q]));
        close_piece(c);
        put_exchanges(c, p, 1);
    }
}

/* The share of ring attention's time that a step takes. Causal attention over C R tokens, in 2 C
 * chunks of R / 2 (ops/attention.c), has R^2 / 2 + R / 2 pairs in the first step, which computes a
 * place's own chunks, and R^2 / 2 in each other step. Without a mask, or with a window, all steps
 * are assumed to be equal. */
static double share_of_step(const cs_op *op, const cs_shape *out, uint32_t step)
{
    const cs_attention *a = &op->attention;
    const double rows = out->dims[0], steps = a->steps;
    if (!a->causal || a->window > 0 || a->kernel != CS_ATTENTION_FLASH)
        return 1 / steps;
    return (rows + (step == 0)) / (steps * rows + 1);
}

/* Adds a piece for each step of ring attention. The shift of a step overlaps the piece before
 * it. */
static void add_steps(cutter *c, uint32_t p)
{
    const cs_op *op = &c->local->net.ops[p];
    const cs_shape *out = &cs_net_tensor(&c->local->net, op->output)->shape;
    const cs_piece_seconds all = c->seconds[p];
    const double n = c->local->ops[p].steps;
    const cs_host_seconds host = {all.host.forward / n, all.host.backward_input / n,
                                  all.host.backward_weight / n, all.host.skipped / n};
    close_piece(c);
    for (uint32_t step = 0; step < c->local->ops[p].steps; step++) {
        const double share = share_of_step(op, out, step);
        put_exchanges(c, p, step);
        add_seconds(c, (cs_piece_seconds){share * all.forward, share * all.backward_input,
                                          share * all.backward_weight, share * all.skipped, host,
                                          false});
        close_piece(c);
    }
}

/* Adds the exchanges of a recomputed run once more, before the backward of the run. */
static void repeat_exchanges(cutter *c, uint32_t first, uint32_t last)
{
    uint32_t at = UINT32_MAX;
    for (uint32_t e = c->first; e < c->local->n_exchanges; e++) {
        cs_op_exchange exchange = c->local->exchanges[e];
        if (exchange.op > last)
            break;
        if (exchange.op < first || exchange.backward)
            continue;
        close_piece(c);
        at = at == UINT32_MAX ? c->layer->n_exchanges : at + 1;
        exchange.backward = true;
        exchange.beside = false;
        put_at(c, at, &exchange);
    }
}

static void add_operators(cutter *c)
{
    /* weight gradients of operators before this one are in an earlier piece */
    uint32_t deferred_end = 0;
    for (uint32_t p = c->layer->first; p < c->layer->end; p++) {
        cs_piece_seconds own = c->seconds[p];
        if (c->local->net.ops[p].kind == CS_OP_EXCHANGE) {
            add_exchange(c, p);
            if (c->local->ops[p].deferred > 0)
                deferred_end = c->local->ops[p].deferred + 1;
        } else {
            put_exchanges(c, p, 0);
            if (p < deferred_end)
                own.backward_weight = own.host.backward_weight = 0;
            if (c->local->ops[p].steps > 1)
                add_steps(c, p);
            else if (!cs_op_is_view(&c->local->net.ops[p]))
                add_seconds(c, own);
        }
        if (p + 1 == deferred_end || c->seconds[p].waits)
            close_piece(c);
        put_exchanges(c, p, CS_BEHIND);
        if (c->runs[p] > 0 && (p + 1 == c->layer->end || c->runs[p + 1] != c->runs[p]))
            repeat_exchanges(c, c->runs[p] - 1, p);
    }
    c->used |= c->layer->n_pieces == 0;
    close_piece(c);
}

/* Adds the host's time for starting exchanges: each one is started after the piece before it in its
 * pass. */
static void add_starts(cutter *c)
{
    const cs_net_layer *layer = c->layer;
    const double each = cs_runtime_kernels_message(&c->how->kernels, c->how->device);
    for (uint32_t e = 0; each > 0 && e < layer->n_exchanges; e++) {
        const cs_exchange *exchange = &layer->exchanges[e];
        const uint32_t before = exchange->gap > 0 ? exchange->gap - 1 : 0;
        const uint32_t behind = exchange->gap < layer->n_pieces ? exchange->gap : before;
        cs_host_seconds *host = &layer->pieces[exchange->backward ? behind : before].host;
        if (exchange->bytes + exchange->bytes_back == 0 ||
            cs_grid_axes(&c->how->split->grid, exchange->axes).size < 2)
            continue;
        host->backward_input += exchange->backward ? each : 0;
        host->forward += exchange->backward ? 0 : each;
        host->skipped += exchange->skipped ? each : 0;
    }
}

static void sum_parameters(const cs_net_local *local, cs_net_layer *layer)
{
    for (uint32_t p = layer->first; p < layer->end; p++) {
        const cs_op *op = &local->net.ops[p];
        const int64_t parameters = op->frozen ? 0 : (op->tied ? 0 : op->weights) + op->biases;
        if (local->ops[p].weight_axes == CS_AXES_TENSOR)
            layer->shared_parameters += parameters;
        if (local->ops[p].weight_axes == CS_AXES_COPIES)
            layer->copied_parameters += parameters;
        if (local->ops[p].weight_axes == CS_AXES_EXPERT_DATA)
            layer->expert_parameters += parameters;
    }
}

cs_status cs_net_pieces_find(const cs_net_local *local, const cs_net_options *how,
                             const cs_op_timing *timing, uint32_t *exchange, cs_net_layer *layer,
                             cs_arena *arena, cs_error *error)
{
    uint32_t n = 0;
    while (*exchange + n < local->n_exchanges && local->exchanges[*exchange + n].op < layer->end)
        n++;
    /* an operator closes at most three pieces, an exchange at most one */
    const size_t most = 3 * (size_t)(layer->end - layer->first) + 2 * (size_t)n + 1;
    cutter c = {local, how, timing->seconds, timing->runs, layer, *exchange, *exchange, false};
    sum_parameters(local, layer);
    if (n == 0)
        return CS_OK;
    layer->exchanges = cs_arena_alloc(arena, 2 * (size_t)n, sizeof(*layer->exchanges));
    layer->pieces = cs_arena_alloc(arena, most, sizeof(*layer->pieces));
    if (!layer->exchanges || !layer->pieces)
        return cs_error_no_memory(error);
    add_operators(&c);
    add_starts(&c);
    *exchange = c.exchange;
    return CS_OK;
}
