#include "sim/workload/net-pieces.h"

typedef struct cutter {
    const cs_net_local *local;
    const cs_net_options *how;
    const cs_piece_seconds *seconds;
    cs_net_layer *layer;
    uint32_t exchange; /* the next one of the network */
    bool used;         /* the piece at the end has work in it */
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
    const int64_t width = exchange->element == CS_ELEMENT_INT64 ? 8
                          : exchange->element == CS_ELEMENT_FLOAT32
                              ? 4
                              : cs_precision_bytes(c->how->precision);
    return elements * width * (exchange->once ? 1 : c->how->batch_size);
}

/* The exchanges in front of a step of an operator, or behind it. */
static void put_exchanges(cutter *c, uint32_t op, uint32_t step)
{
    const cs_net_local *local = c->local;
    for (; c->exchange < local->n_exchanges; c->exchange++) {
        const cs_op_exchange *exchange = &local->exchanges[c->exchange];
        if (exchange->op != op || exchange->step != step)
            return;
        close_piece(c);
        c->layer->exchanges[c->layer->n_exchanges++] =
            (cs_exchange){.kind = exchange->kind,
                          .axes = exchange->axes,
                          .backward = exchange->backward,
                          .beside = exchange->beside,
                          .gap = c->layer->n_pieces,
                          .bytes = bytes_of(c, exchange, exchange->elements),
                          .bytes_back = bytes_of(c, exchange, exchange->elements_back)};
    }
}

static void add_seconds(cutter *c, cs_piece_seconds seconds)
{
    piece(c)->forward += seconds.forward;
    piece(c)->backward_input += seconds.backward_input;
    piece(c)->backward_weight += seconds.backward_weight;
    c->used = true;
}

/* The gradients of the weights of the operators behind an exchange. */
static void add_deferred(cutter *c, uint32_t p)
{
    cs_piece_seconds weights = {0};
    for (uint32_t q = p + 1; q <= c->local->ops[p].deferred; q++)
        weights.backward_weight += c->seconds[q].backward_weight;
    add_seconds(c, weights);
    close_piece(c);
}

/* Backward, an exchange adds to a gradient when it has been done, and that of its bias is made before. */
static void add_exchange(cutter *c, uint32_t p)
{
    const cs_piece_seconds own = c->seconds[p];
    if (own.backward_input > 0)
        add_seconds(c, (cs_piece_seconds){.backward_input = own.backward_input});
    put_exchanges(c, p, 0);
    if (c->local->net.ops[p].biases > 0)
        add_seconds(c, (cs_piece_seconds){.backward_weight = own.backward_weight});
    if (c->local->ops[p].deferred > 0) {
        add_deferred(c, p);
        put_exchanges(c, p, 1);
    }
}

static void add_operators(cutter *c)
{
    uint32_t deferred_end = 0; /* operators before this one have left their gradients of weights */
    for (uint32_t p = c->layer->first; p < c->layer->end; p++) {
        cs_piece_seconds own = c->seconds[p];
        if (c->local->net.ops[p].kind == CS_OP_EXCHANGE) {
            add_exchange(c, p);
            if (c->local->ops[p].deferred > 0)
                deferred_end = c->local->ops[p].deferred + 1;
        } else {
            put_exchanges(c, p, 0);
            if (p < deferred_end)
                own.backward_weight = 0;
            if (c->local->net.ops[p].kind != CS_OP_VIEW)
                add_seconds(c, own);
        }
        if (p + 1 == deferred_end)
            close_piece(c);
        put_exchanges(c, p, CS_BEHIND);
    }
    c->used |= c->layer->n_pieces == 0;
    close_piece(c);
}

static uint32_t count_exchanges(const cs_net_local *local, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    while (first + n < local->n_exchanges && local->exchanges[first + n].op < end)
        n++;
    return n;
}

static void sum_shared(const cs_net_local *local, cs_net_layer *layer)
{
    for (uint32_t p = layer->first; p < layer->end; p++)
        if (local->ops[p].weight_axes == CS_AXES_TENSOR)
            layer->shared_parameters +=
                (local->net.ops[p].tied ? 0 : local->net.ops[p].weights) + local->net.ops[p].biases;
}

cs_status cs_net_pieces_find(const cs_net_local *local, const cs_net_options *how,
                             const cs_piece_seconds *seconds, uint32_t *exchange,
                             cs_net_layer *layer, cs_arena *arena, cs_error *error)
{
    const uint32_t n = count_exchanges(local, *exchange, layer->end);
    const size_t most =
        2 * (size_t)(layer->end - layer->first) + n + 1; /* an operator closes two */
    cutter c = {local, how, seconds, layer, *exchange, false};
    sum_shared(local, layer);
    if (n == 0)
        return CS_OK;
    layer->exchanges = cs_arena_alloc(arena, n, sizeof(*layer->exchanges));
    layer->pieces = cs_arena_alloc(arena, most, sizeof(*layer->pieces));
    if (!layer->exchanges || !layer->pieces)
        return cs_error_no_memory(error);
    add_operators(&c);
    *exchange = c.exchange;
    return CS_OK;
}
