#include "sim/base/vector.h"
#include "sim/model/backward-memory.h"
#include "sim/model/net-chain.h"
#include "sim/model/ops/operator.h"

#include <stdlib.h>
#include <string.h>

/* Adds an event at the end of a tape; false if memory runs out. Takes and reads of 0 bytes are left
 * out. */
static bool add_event(cs_tape *tape, cs_tape_what what, uint32_t memory, int64_t bytes)
{
    if (bytes == 0 && (what == CS_TAPE_TAKE || what == CS_TAPE_READ))
        return true;
    if (!cs_vector_reserve((void **)&tape->events, &tape->capacity, tape->n + UINT64_C(1),
                           sizeof(*tape->events)))
        return false;
    tape->events[tape->n++] =
        (cs_tape_event){.memory = memory, .what = (uint8_t)what, .bytes = bytes};
    return true;
}

/* A storage, which several tensors may share. */
typedef struct storage {
    int64_t bytes;   /* bytes of its first tensor, and of tensors that were made part of it */
    uint32_t writer; /* op that writes it; CS_NO_TENSOR: an input */
    uint32_t last;   /* op that reads it last; the op that writes it if none reads it */
    bool used, taken;
    bool gathered_again; /* gathered again in backward, so no op keeps it */
    bool has_gradient;   /* its gradient takes over its memory */
    uint32_t read_in;    /* last layer that read it, + 1; 0: none yet */
} storage;

/* The memory of an operator besides its gradients. */
typedef struct op_memory {
    int64_t extra[1 + CS_KEPT_APART], forward_workspace;
    bool keeps_output;
    uint32_t keeps; /* bit 1 << i: input i is kept */
    uint32_t gives; /* storage whose gradient is last read by this op's backward, + 1; 0: none */
    cs_gathered_bytes gathered; /* bytes that backward gathers again; of exchanges only */
    /* Lists of exchanges whose results are gathered again and live from the backward of this op on
     * (begins), or until it (ends). first: the first exchange of the list, + 1; next: the next
     * exchange of the same list, + 1; 0: none. */
    uint32_t first_begins, next_begins, first_ends, next_ends;
} op_memory;

typedef struct maker {
    const cs_net *net;
    uint32_t *shared; /* per storage: the storage that it is part of, or itself */
    const cs_net_local *local;
    const cs_net_options *how;
    storage *storages;
    op_memory *ops;
    int64_t *workspaces;  /* bytes of workspace in backward, per op */
    int64_t *steps;       /* see cs_backward */
    uint32_t *weights_at; /* per op: see cs_net_local_weights_at */
    cs_tape tape;
} maker;

/* ---- memory numbers ---- */

enum { EXTRAS = 1 + CS_KEPT_APART };

static uint32_t number_of_extra(const maker *m, uint32_t p, uint32_t i)
{
    return m->net->n_storages + EXTRAS * p + i;
}

static uint32_t number_of_gathered(const maker *m, uint32_t p)
{
    return m->net->n_storages + (EXTRAS + 1) * m->net->n_ops + p;
}

/* The number of a weight gradient that lives until the backward of all layers has ended. */
static uint32_t number_of_weights(const maker *m, uint32_t p)
{
    return m->net->n_storages + (EXTRAS + 2) * m->net->n_ops + p;
}

static uint32_t number_of_gradient(const maker *m, uint32_t gradient)
{
    return m->net->n_storages + (EXTRAS + 3) * m->net->n_ops + gradient;
}

/* The storage of a tensor, or the larger storage that it is part of. */
static uint32_t storage_of(const maker *m, cs_tensor tensor)
{
    return m->shared[cs_net_tensor(m->net, tensor)->storage];
}

/* The linear layer in the same block that writes an input of an attention; the attention itself if
 * there is none. */
static uint32_t product_of(const cs_net *net, uint32_t attention, uint32_t input)
{
    const cs_op *op = &net->ops[attention];
    const uint32_t read = cs_net_tensor(net, op->inputs[input])->storage;
    for (uint32_t p = attention; p-- > 0 && net->ops[p].block == op->block;)
        if (net->ops[p].kind == CS_OP_LINEAR &&
            cs_net_tensor(net, net->ops[p].output)->storage == read)
            return p;
    return attention;
}

/* Makes queries, keys and values of one product share the memory of the first of them. */
static void share_product(maker *m, uint32_t attention)
{
    const cs_net *net = m->net;
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t own = product_of(net, attention, i);
        uint32_t first = own;
        for (uint32_t k = 0; k < 3; k++) {
            const uint32_t other = product_of(net, attention, k);
            if (other < first &&
                cs_kept_one_matrix(&net->ops[other], &net->ops[own], &m->how->kept))
                first = other;
        }
        m->shared[cs_net_tensor(net, net->ops[own].output)->storage] =
            cs_net_tensor(net, net->ops[first].output)->storage;
    }
}

/* Shares memory for attention by math, which reads queries, keys and values in place. Fused kernels
 * for several sequences read a copy of each sequence (kept.h). */
static void share_products(maker *m)
{
    for (uint32_t s = 0; s < m->net->n_storages; s++)
        m->shared[s] = s;
    for (uint32_t p = 0; p < m->net->n_ops; p++)
        if (m->net->ops[p].kind == CS_OP_ATTENTION &&
            m->net->ops[p].attention.kernel == CS_ATTENTION_MATH)
            share_product(m, p);
}

/* ---- storages and operators ---- */

static void find_storage(maker *m, uint32_t p, cs_tensor tensor, bool is_output)
{
    storage *at = &m->storages[storage_of(m, tensor)];
    const bool is_part = cs_net_tensor(m->net, tensor)->storage != storage_of(m, tensor);
    if (is_part && is_output)
        at->bytes += cs_tensor_bytes(m->net, tensor, m->how->batch_size, m->how->precision);
    if (!at->used) {
        at->bytes = cs_tensor_bytes(m->net, tensor, m->how->batch_size, m->how->precision);
        at->writer = is_output ? p : CS_NO_TENSOR;
    }
    at->used = true;
    at->last = p;
}

/* The operator whose backward is the last to read a tensor's gradient: the tensor's writer,
 * ignoring exchanges that hand it on unchanged; or, if the writer's weight gradients are computed
 * later, the exchange that these overlap. */
static uint32_t last_of_gradient(const maker *m, cs_tensor tensor)
{
    uint32_t p = m->net->n_ops;
    while (p-- > 0) {
        const cs_op *op = &m->net->ops[p];
        if (op->output != tensor)
            continue;
        if (op->kind != CS_OP_EXCHANGE || !op->in_place)
            return m->local && !op->frozen && op->weights + op->biases > 0 ? m->weights_at[p] : p;
        tensor = op->inputs[0];
    }
    return 0;
}

static void find_op(maker *m, uint32_t p)
{
    const cs_op *op = &m->net->ops[p];
    const cs_net_options *how = m->how;
    const int64_t each = (int64_t)cs_precision_bytes(how->precision) * how->batch_size;
    op_memory *made = &m->ops[p];
    cs_op_cost cost;
    cs_op_cost_of(m->net, op, how->batch_size, how->precision, &cost);
    cs_kept_fuse(m->net, op, &how->kept, how->batch_size, how->precision, &cost);
    made->extra[0] = cost.extra_kept_bytes; /* all in one tensor, except the separate ones */
    for (uint32_t i = 0; i < CS_KEPT_APART && cost.extra_kept_bytes > 0; i++) {
        made->extra[1 + i] = cost.kept_apart[i];
        made->extra[0] -= cost.kept_apart[i];
    }
    made->forward_workspace =
        cost.workspace_bytes +
        cs_kept_beside_loss(m->net, op, &how->kept, how->batch_size, how->precision);
    m->steps[p] = cs_kept_loss_step(m->net, op, &how->kept, how->batch_size);
    made->keeps_output = cost.keeps_output;
    m->workspaces[p] =
        cost.workspace_bytes + cs_kept_beside_backward(m->net, op, &how->kept, how->batch_size);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        if (cost.keeps_input && !cs_kept_again(m->net, op, i, &how->kept))
            made->keeps |= 1u << i;
        find_storage(m, p, op->inputs[i], false);
        if (made->keeps & 1u << i && cs_kept_in_place(op, &how->kept)) {
            m->storages[storage_of(m, op->inputs[i])].has_gradient = true;
            m->ops[last_of_gradient(m, op->inputs[i])].gives = storage_of(m, op->inputs[i]) + 1;
        }
    }
    find_storage(m, p, op->output, true);
    if (!m->local)
        return;
    *(cost.keeps_input ? &made->extra[0] : &made->forward_workspace) +=
        each * m->local->ops[p].halo;
    m->workspaces[p] += each * m->local->ops[p].gradient_halo;
    if (op->gathers_again) {
        made->gathered =
            cs_net_local_gathered(m->local, p, how->batch_size, how->precision, &how->kept);
        made->keeps |= made->gathered.tensor > 0;
        if (cs_kept_gathers_into_buffer(m->net, op, &how->kept))
            made->gathered.tensor = m->storages[storage_of(m, op->output)].bytes = 0;
        m->storages[storage_of(m, op->output)].gathered_again = true;
    }
}

/* ---- forward ---- */

static bool is_kept(const maker *m, uint32_t number)
{
    return !m->storages[number].gathered_again;
}

/* Adds an event for memory that an operator keeps. Memory that its gradient takes over is not given
 * here, but after the gradient was last read. */
static bool add_kept_input(maker *m, cs_tape_what what, uint32_t number)
{
    return (what == CS_TAPE_GIVE && m->storages[number].has_gradient) ||
           add_event(&m->tape, what, number, 0);
}

/* Adds an event for each memory that an operator keeps, only once per memory. */
static bool add_kept(maker *m, uint32_t p, cs_tape_what what)
{
    const cs_op *op = &m->net->ops[p];
    const op_memory *of = &m->ops[p];
    const uint32_t output = storage_of(m, op->output);
    bool enough = true, has_output = of->keeps_output && is_kept(m, output);
    for (uint32_t i = 0; i < EXTRAS; i++)
        if (of->extra[i] > 0)
            enough = enough && add_event(&m->tape, what, number_of_extra(m, p, i), 0);
    if (has_output)
        enough = enough && add_event(&m->tape, what, output, 0);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const uint32_t at = storage_of(m, op->inputs[i]);
        bool seen = has_output && at == output;
        for (uint32_t k = 0; k < i; k++)
            seen |= (of->keeps & 1u << k) && storage_of(m, op->inputs[k]) == at;
        if ((of->keeps & 1u << i) && !seen && is_kept(m, at))
            enough = enough && add_kept_input(m, what, at);
    }
    if (what == CS_TAPE_GIVE && of->gives > 0)
        enough = enough && add_event(&m->tape, what, of->gives - 1, 0);
    return enough;
}

static bool add_reads(maker *m, uint32_t p, uint32_t layer, uint32_t first)
{
    const cs_op *op = &m->net->ops[p];
    bool enough = true;
    for (uint32_t i = 0; enough && i < op->n_inputs; i++) {
        const uint32_t number = storage_of(m, op->inputs[i]);
        storage *at = &m->storages[number];
        if (at->read_in == layer + 1 || (at->writer != CS_NO_TENSOR && at->writer >= first))
            continue;
        at->read_in = layer + 1;
        enough = add_event(&m->tape, CS_TAPE_READ, number, at->bytes);
    }
    return enough;
}

static bool add_output(maker *m, uint32_t p, uint32_t end)
{
    const uint32_t number = storage_of(m, m->net->ops[p].output);
    storage *at = &m->storages[number];
    if (at->taken || at->writer != p)
        return true;
    at->taken = true;
    if (!add_event(&m->tape, CS_TAPE_TAKE, number, at->bytes))
        return false;
    if (at->bytes > 0)
        m->tape.events[m->tape.n - 1].leaves = at->last >= end;
    return true;
}

static bool add_last_reads(maker *m, uint32_t p)
{
    const cs_op *op = &m->net->ops[p];
    bool enough = true;
    for (uint32_t i = 0; enough && i <= op->n_inputs; i++) {
        const uint32_t number = storage_of(m, i < op->n_inputs ? op->inputs[i] : op->output);
        storage *at = &m->storages[number];
        if (at->last != p)
            continue;
        at->last = CS_NO_TENSOR; /* so that it is given only once */
        enough = add_event(&m->tape, CS_TAPE_GIVE, number, 0);
    }
    return enough;
}

static bool is_exchange(const maker *m, uint32_t p)
{
    return m->net->ops[p].kind == CS_OP_EXCHANGE;
}

static bool add_forward(maker *m, uint32_t layer, const cs_net_layer *of)
{
    bool enough = true;
    for (uint32_t p = of->first; enough && p < of->end; p++) {
        const uint32_t begin = m->tape.n;
        const op_memory *memory = &m->ops[p];
        const uint32_t workspace = m->net->n_storages + EXTRAS * m->net->n_ops + p;
        const bool works = memory->forward_workspace > 0;
        enough = add_reads(m, p, layer, of->first) && add_output(m, p, of->end);
        for (uint32_t i = 0; enough && i < EXTRAS; i++)
            enough = add_event(&m->tape, CS_TAPE_TAKE, number_of_extra(m, p, i), memory->extra[i]);
        enough = enough &&
                 add_event(&m->tape, CS_TAPE_TAKE, workspace, memory->forward_workspace) &&
                 (!works || add_event(&m->tape, CS_TAPE_GIVE, workspace, 0)) &&
                 add_kept(m, p, CS_TAPE_KEEP) && add_last_reads(m, p);
        for (uint32_t i = begin; i < m->tape.n; i++) {
            cs_tape_event *event = &m->tape.events[i];
            event->skipped = p >= of->repeat_end && event->what == CS_TAPE_TAKE;
            event->sent = is_exchange(m, p) && event->what == CS_TAPE_GIVE;
        }
    }
    return enough;
}

/* ---- backward ---- */

/* The state while the tapes of backward are made, in the order of backward, from the last layer
 * on. */
typedef struct backward {
    maker *m;
    const cs_net_chain *chain;
    cs_layer *to;
    cs_arena *arena;
    uint32_t layer;
    uint32_t op; /* op whose backward runs */
} backward;

static bool copy_tape(const cs_tape *tape, cs_arena *arena, cs_tape_event **events, uint32_t *n)
{
    *events = cs_arena_alloc(arena, tape->n, sizeof(**events));
    if (!*events)
        return false;
    if (tape->n > 0)
        memcpy(*events, tape->events, tape->n * sizeof(**events));
    *n = tape->n;
    return true;
}

static bool see(void *context, cs_tape_what what, uint32_t memory, int64_t bytes)
{
    const backward *b = context;
    maker *m = b->m;
    if (!add_event(&m->tape, what, number_of_gradient(m, memory), bytes))
        return false;
    if (what == CS_TAPE_GIVE)
        m->tape.events[m->tape.n - 1].sent = is_exchange(m, b->op);
    return true;
}

/* Finds the lifetimes in backward of results that are gathered again: from the backward of their
 * last reader to the backward of the first operator that keeps them. If the gather overlaps other
 * operators, they live until the deferred weight gradients are computed. */
static void find_gathers(maker *m)
{
    for (uint32_t p = m->local ? m->net->n_ops : 0; p-- > 0;) {
        if (!m->net->ops[p].gathers_again)
            continue;
        const uint32_t end =
            m->local->ops[p].deferred > 0 ? p : cs_net_local_first_keeper(m->local, p);
        const uint32_t last = cs_net_tensor(m->net, m->net->ops[p].output)->last_reader;
        if (last != CS_NO_TENSOR) {
            m->ops[p].next_begins = m->ops[last].first_begins;
            m->ops[last].first_begins = p + 1;
        }
        m->ops[p].next_ends = m->ops[end].first_ends;
        m->ops[end].first_ends = p + 1;
    }
}

static bool begin_op(void *context, uint32_t op)
{
    backward *b = context;
    maker *m = b->m;
    bool enough = true;
    b->op = op;
    if (m->how->kept.pass_gradients)
        enough = add_event(&m->tape, CS_TAPE_TAKE, number_of_weights(m, op),
                           cs_kept_gradient(&m->net->ops[op], &m->how->kept, m->how->precision));
    for (uint32_t p = m->ops[op].first_begins; enough && p > 0; p = m->ops[p - 1].next_begins) {
        const cs_gathered_bytes *of = &m->ops[p - 1].gathered;
        enough =
            add_event(&m->tape, CS_TAPE_TAKE, number_of_gathered(m, p - 1), of->tensor + of->cast);
    }
    return enough;
}

static bool end_op(void *context, uint32_t op)
{
    backward *b = context;
    const cs_net_layer *of = &b->chain->layers[b->layer];
    cs_layer *to = &b->to[b->layer];
    for (uint32_t p = b->m->ops[op].first_ends; p > 0; p = b->m->ops[p - 1].next_ends)
        if (!add_event(&b->m->tape, CS_TAPE_GIVE, number_of_gathered(b->m, p - 1), 0))
            return false;
    if (!add_kept(b->m, op, CS_TAPE_GIVE))
        return false;
    if (op > of->first)
        return true;
    if (!copy_tape(&b->m->tape, b->arena, &to->backward_tape, &to->n_backward_tape))
        return false;
    b->m->tape.n = 0;
    b->layer -= b->layer > 0;
    return true;
}

static cs_status make(maker *m, const cs_net_chain *chain, cs_layer *to, cs_arena *arena,
                      cs_error *error)
{
    backward b = {m, chain, to, arena, chain->n_layers - 1, 0};
    const cs_backward_observer observer = {see, begin_op, end_op, &b};
    if (m->local)
        cs_net_local_weights_at(m->local, m->weights_at);
    share_products(m);
    for (uint32_t p = 0; p < m->net->n_ops; p++)
        find_op(m, p);
    find_gathers(m);
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        m->tape.n = 0;
        if (!add_forward(m, l, &chain->layers[l]) ||
            !copy_tape(&m->tape, arena, &to[l].forward_tape, &to[l].n_forward_tape))
            return cs_error_no_memory(error);
    }
    m->tape.n = 0;
    const cs_backward watched = {.net = m->net,
                                 .batch = m->how->batch_size,
                                 .precision = m->how->precision,
                                 .rules = &m->how->kept,
                                 .weights_at = m->local ? m->weights_at : NULL,
                                 .workspaces = m->workspaces,
                                 .steps = m->steps};
    if (!m->how->kept.pass_gradients)
        CS_TRY(cs_backward_add_weights(&watched, error));
    return cs_backward_memory_watch(&watched, &observer, error);
}

/* ---- weights ---- */

typedef struct weights {
    const cs_net *net;
    const cs_net_options *how;
    const cs_net_layer *layer;
    int64_t *to; /* bytes per tensor; NULL: count the tensors only */
    uint32_t n;
} weights;

/* Adds the weights and biases of operator p, separately for each expert. Operators that share one
 * matrix are added together with the first of them, and add nothing themselves. */
static void add_weights(weights *w, uint32_t p)
{
    const cs_op *ops = w->net->ops, *op = &ops[p];
    const uint32_t matrices = cs_op_matrices(op);
    int64_t sizes[2] = {op->tied ? 0 : op->weights, op->biases};
    bool added = op->frozen;
    for (uint32_t q = w->layer->first; q < w->layer->end; q++) {
        if (q == p || !cs_kept_one_matrix(op, &ops[q], &w->how->kept))
            continue;
        added |= q < p;
        sizes[0] += ops[q].tied ? 0 : ops[q].weights;
        sizes[1] += ops[q].biases;
    }
    for (uint32_t m = 0; !added && m < matrices; m++) {
        for (int i = 0; i < 2; i++) {
            if (sizes[i] > 0 && w->to)
                w->to[w->n] = sizes[i] / matrices * cs_precision_bytes(w->how->precision);
            w->n += sizes[i] > 0;
        }
    }
}

static void add_all(weights *w, bool experts)
{
    for (uint32_t p = w->layer->first; p < w->layer->end; p++)
        if ((w->net->ops[p].kind == CS_OP_GROUPED_LINEAR) == experts)
            add_weights(w, p);
}

static cs_status find_parameters(const cs_net *net, const cs_net_options *how,
                                 const cs_net_layer *of, cs_layer *to, cs_arena *arena,
                                 cs_error *error)
{
    weights count = {.net = net, .how = how, .layer = of}, fill = count;
    add_all(&count, false);
    add_all(&count, true);
    fill.to = to->parameters = cs_arena_alloc(arena, count.n, sizeof(*to->parameters));
    if (!to->parameters)
        return cs_error_no_memory(error);
    add_all(&fill, false);
    const uint32_t dense = fill.n;
    add_all(&fill, true);
    to->n_parameters = fill.n;
    to->n_expert_parameters = fill.n - dense;
    return CS_OK;
}

cs_status cs_net_tape_make(const cs_net *net, const cs_net_local *local, const cs_net_options *how,
                           const cs_net_chain *chain, cs_layer *to, cs_arena *arena,
                           cs_error *error)
{
    maker m = {.net = net,
               .local = local,
               .how = how,
               .shared = calloc(net->n_storages + 1ULL, sizeof(*m.shared)),
               .storages = calloc(net->n_storages + 1ULL, sizeof(*m.storages)),
               .ops = calloc(net->n_ops + 1ULL, sizeof(*m.ops)),
               .workspaces = calloc(net->n_ops + 1ULL, sizeof(*m.workspaces)),
               .steps = calloc(net->n_ops + 1ULL, sizeof(*m.steps)),
               .weights_at = calloc(net->n_ops + 1ULL, sizeof(*m.weights_at))};
    const bool enough = m.shared && m.storages && m.ops && m.workspaces && m.steps && m.weights_at;
    cs_status status = enough ? CS_OK : cs_error_no_memory(error);
    for (uint32_t l = 0; l < chain->n_layers && status == CS_OK; l++)
        status = find_parameters(net, how, &chain->layers[l], &to[l], arena, error);
    if (status == CS_OK && how->n_recompute_ops == 0 && !how->offload)
        status = make(&m, chain, to, arena, error);
    free(m.tape.events);
    free(m.shared);
    free(m.storages);
    free(m.ops);
    free(m.workspaces);
    free(m.steps);
    free(m.weights_at);
    return status;
}
