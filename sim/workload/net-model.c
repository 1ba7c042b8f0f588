#include "sim/workload/net-model.h"

#include "sim/base/text.h"
#include "sim/workload/articulation.h"
#include "sim/workload/backward-memory.h"
#include "sim/workload/expert-kernels.h"
#include "sim/workload/narrow-attention.h"
#include "sim/workload/net-pieces.h"
#include "sim/workload/net-tape.h"
#include "sim/workload/recompute.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_granularity_names[] = {"layer", "block", NULL};

/* ---- layers ---- */

static bool is_side_loss(const cs_net *net, uint32_t p)
{
    cs_op_kind kind = net->ops[p].kind;
    return p + 1 < net->n_ops && (kind == CS_OP_CROSS_ENTROPY || kind == CS_OP_SQUARED_ERROR);
}

static bool reads_input(const cs_net *net, const cs_op *op, const uint32_t *writer)
{
    bool reads = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        reads |=
            writer[op->inputs[i]] == CS_NO_TENSOR && !cs_net_tensor(net, op->inputs[i])->loaded;
    return reads;
}

static bool is_carried(const cs_net *net, cs_tensor tensor)
{
    return net->carried > 0 && tensor == net->carried;
}

/* The position of the last operator that reads what the one at p writes, but for what is handed
 * past the others. */
static uint32_t last_reader(const cs_net *net, uint32_t p)
{
    if (is_carried(net, net->ops[p].output))
        return p;
    uint32_t reader = cs_net_tensor(net, net->ops[p].output)->last_reader;
    if (reader != CS_NO_TENSOR)
        return reader;
    return is_side_loss(net, p) ? p : net->n_ops;
}

static cs_status find_ends(const cs_net *net, uint32_t *ends, uint32_t *n_ends, cs_error *error)
{
    uint32_t n = net->n_ops, last_fed = 0;
    uint32_t *readers = calloc(n, sizeof(*readers));
    uint32_t *writer = calloc(net->n_tensors, sizeof(*writer));
    cs_status status = readers && writer ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        memset(writer, 0xff, net->n_tensors * sizeof(*writer));
        for (uint32_t p = 0; p < n; p++) {
            writer[net->ops[p].output] = p;
            readers[p] = last_reader(net, p);
            if (reads_input(net, &net->ops[p], writer))
                last_fed = p;
        }
        *n_ends = cs_articulation_find(readers, n, last_fed, ends);
    }
    free(readers);
    free(writer);
    return status;
}

static bool only_views(const cs_net *net, uint32_t first, uint32_t end)
{
    bool only = true;
    for (uint32_t p = first; p < end; p++)
        only &= net->ops[p].kind == CS_OP_VIEW;
    return only;
}

/* Views at the end have no layer behind them: they join the one before. */
static uint32_t join_views(const cs_net *net, uint32_t *ends, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = kept > 0 ? ends[kept - 1] : 0;
        bool views = only_views(net, first, ends[i]);
        if (views && i + 1 < n)
            continue;
        if (views && kept > 0)
            kept--;
        ends[kept++] = ends[i];
    }
    return kept;
}

/* The block of the first operator from p on that is no view. */
static uint32_t block_from(const cs_net *net, uint32_t p)
{
    while (p + 1 < net->n_ops && net->ops[p].kind == CS_OP_VIEW)
        p++;
    return net->ops[p].block;
}

/* Keeps the ends behind which another block starts. */
static uint32_t join_blocks(const cs_net *net, uint32_t *ends, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (i + 1 == n || block_from(net, ends[i]) != net->ops[ends[i] - 1].block)
            ends[kept++] = ends[i];
    return kept;
}

static const char *name_layer(const cs_net *net, const cs_net_layer *layer,
                              cs_granularity granularity, cs_arena *arena)
{
    static const char format[] = "%s to %s";
    uint32_t first = layer->first;
    while (first + 1 < layer->end && net->ops[first].kind == CS_OP_VIEW)
        first++;
    const cs_op *a = &net->ops[first], *b = &net->ops[layer->end - 1];
    if (granularity == CS_GRANULARITY_BLOCK)
        return cs_arena_copy(arena, net->blocks[b->block]);
    if (a == b)
        return cs_arena_copy(arena, a->name);
    size_t size = strlen(a->name) + strlen(b->name) + sizeof(format);
    char *name = cs_arena_alloc(arena, size, 1);
    if (name)
        snprintf(name, size, format, a->name, b->name);
    return name;
}

static cs_status make_layers(const cs_net *net, cs_granularity granularity, cs_net_chain *chain,
                             cs_error *error)
{
    uint32_t n = 0;
    uint32_t *ends = cs_arena_alloc(&chain->arena, net->n_ops, sizeof(*ends));
    CS_TRY(ends ? find_ends(net, ends, &n, error) : cs_error_no_memory(error));
    n = join_views(net, ends, n);
    if (granularity == CS_GRANULARITY_BLOCK)
        n = join_blocks(net, ends, n);
    chain->layers = cs_arena_alloc(&chain->arena, n, sizeof(*chain->layers));
    if (!chain->layers)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        cs_net_layer *layer = &chain->layers[i];
        layer->first = i > 0 ? ends[i - 1] : 0;
        layer->end = ends[i];
        layer->name = name_layer(net, layer, granularity, &chain->arena);
        if (!layer->name)
            return cs_error_no_memory(error);
    }
    chain->n_layers = n;
    return CS_OK;
}

/* ---- costs ---- */

static bool add(int64_t *sum, int64_t value)
{
    return !__builtin_add_overflow(*sum, value, sum);
}

/* The pieces of work of an operator, with what is known of their times. */
typedef struct op_times {
    double operator[CS_PASS_UPDATE]; /* s; negative: not measured */
    double accumulate;               /* of all its inputs; negative: not all measured */
    double update;                   /* negative: not measured */
    int64_t workspace;               /* negative: not known */
} op_times;

/* Measured seconds of a pass that has work to do, negative where there are none. */
static double ask(const cs_measured *measured, const char *key, cs_pass pass, cs_net_layer *layer)
{
    const double seconds = measured->seconds(measured->context, key, pass);
    *(seconds >= 0 ? &layer->n_measured : &layer->n_estimated) += 1;
    return seconds;
}

static void ask_operator(const cs_measured *measured, const cs_op_shape *shape, const char *key,
                         cs_net_layer *layer, op_times *times)
{
    for (cs_pass pass = CS_PASS_FORWARD; pass < CS_PASS_UPDATE; pass++)
        if (shape->passes & 1u << pass)
            times->operator[pass] = ask(measured, key, pass, layer);
    times->workspace = measured->workspace(measured->context, key);
}

/* Updates are measured with all that the optimizer keeps in float32. */
static bool is_usual(const cs_optimizer_storage *storage)
{
    return !storage->no_main && (storage->state_bytes == 0 || storage->state_bytes == 4);
}

/* Whether measured times of an update hold for it: not for matrices of Muon. */
static bool has_measured_update(const cs_net *net, const cs_net_options *how, const cs_op *op)
{
    return is_usual(&how->storage) && !(how->muon.steps > 0 && cs_muon_updates(net, op));
}

static op_times find_times(const cs_net *net, const cs_net_options *how, const cs_op *op,
                           cs_net_layer *layer)
{
    op_times times = {.operator= {-1, -1, -1}, .update = -1, .workspace = -1};
    cs_op_shape shapes[CS_OP_SHAPES_MAX];
    char key[CS_OP_KEY_BYTES];
    if (!how->measured)
        return (op_times){.operator= {-1, -1, -1}, .accumulate = -1, .update = -1, .workspace = -1};
    const uint32_t n = cs_op_shapes_of(net, op, how->batch_size, how->precision,
                                       (uint32_t)how->optimizer_states, shapes);
    for (uint32_t i = 0; i < n; i++) {
        cs_op_shape_key(&shapes[i], key, sizeof(key));
        if (shapes[i].piece == CS_PIECE_OPERATOR) {
            ask_operator(how->measured, &shapes[i], key, layer, &times);
        } else if (shapes[i].piece == CS_PIECE_UPDATE && !has_measured_update(net, how, op)) {
            layer->n_estimated++;
        } else if (shapes[i].piece == CS_PIECE_UPDATE) {
            times.update = ask(how->measured, key, CS_PASS_UPDATE, layer);
        } else {
            const double seconds = ask(how->measured, key, CS_PASS_FORWARD, layer);
            times.accumulate =
                seconds < 0 || times.accumulate < 0 ? -1 : times.accumulate + seconds;
        }
    }
    return times;
}

static double or_estimate(double measured, const cs_net_options *how, const cs_op *op,
                          const cs_pass_cost *cost, cs_pass pass)
{
    if (measured >= 0)
        return measured;
    return how->kernels.given ? cs_runtime_kernels_seconds(&how->kernels, how->device, op, cost,
                                                           pass, how->precision)
                              : cs_accelerator_seconds(how->device, op, cost, how->precision);
}

/* What is measured neither in the operator nor in the sums of gradients is one estimate. */
static double input_seconds(const op_times *times, const cs_net_options *how, const cs_op *op,
                            const cs_op_cost *cost)
{
    const double own = times->operator[CS_PASS_BACKWARD_INPUT];
    cs_pass_cost rest = cost->backward_input;
    if (own < 0 && times->accumulate < 0)
        return or_estimate(-1, how, op, &rest, CS_PASS_BACKWARD_INPUT);
    rest.flop -= cost->accumulate.flop;
    rest.bytes -= cost->accumulate.bytes;
    rest.launches -= cost->accumulate.launches;
    return or_estimate(own, how, op, &rest, CS_PASS_BACKWARD_INPUT) +
           or_estimate(times->accumulate, how, op, &cost->accumulate, CS_PASS_BACKWARD_INPUT);
}

/* The roofline of an update is that of all parameters of a layer at once. */
static double update_seconds(const cs_net_options *how, int64_t parameters)
{
    const double bytes =
        (double)parameters * cs_precision_update_bytes(how->precision, how->optimizer_states,
                                                       how->float_gradients, how->storage);
    const double width = cs_precision_bytes(how->precision);
    if (parameters > 0 && how->kernels.given)
        return cs_runtime_kernels_update(&how->kernels, how->device, bytes,
                                         (double)parameters * (how->float_gradients ? 4 : width));
    return parameters > 0 ? cs_accelerator_update_seconds(how->device, bytes) : 0;
}

/* A network, and what is counted of it: all, or what one place has. */
typedef struct divided {
    const cs_net *whole;
    const cs_net_local *local; /* NULL: it is not divided */
    const cs_net *net;
} divided;

/* Adds what Muon updates of an operator; returns how many elements these are. */
static int64_t add_matrices(const divided *d, const cs_net_options *how, uint32_t p,
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

static double zeros_seconds(const cs_net_options *how, int64_t parameters, uint32_t tensors)
{
    const double width = how->float_gradients ? 4 : cs_precision_bytes(how->precision);
    return cs_runtime_kernels_count_zeros(&how->kernels, how->device, (double)parameters, width,
                                          tensors);
}

/* Tensors of weights that an operator trains. */
static uint32_t trained_tensors(const cs_op *op, const cs_op_cost *cost)
{
    return op->frozen ? 0 : (uint32_t)(cost->weights > 0) + (uint32_t)(cost->biases > 0);
}

/* Weights that are trained are cast once they are updated: read, and written as their copies. */
static double cast_seconds(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost)
{
    const double weights = (double)op->weights * cs_precision_bytes(how->precision);
    return cost->copy_bytes > 0 && !op->frozen
               ? cs_accelerator_update_seconds(how->device, weights + (double)cost->copy_bytes)
               : 0;
}

static cs_piece_seconds seconds_of(const cs_net_options *how, const cs_op *op,
                                   const cs_op_cost *cost, const op_times *times)
{
    return (cs_piece_seconds){
        .forward =
            or_estimate(times->operator[CS_PASS_FORWARD], how, op, &cost->forward, CS_PASS_FORWARD),
        .backward_input = input_seconds(times, how, op, cost),
        .backward_weight = or_estimate(times->operator[CS_PASS_BACKWARD_WEIGHT], how, op,
                                       &cost->backward_weight, CS_PASS_BACKWARD_WEIGHT),
    };
}

static cs_kernel_kind kernel_of(const cs_op *op)
{
    if (op->kind == CS_OP_ATTENTION)
        return CS_KERNEL_ATTENTION;
    return op->kind == CS_OP_LINEAR || op->kind == CS_OP_GROUPED_LINEAR || op->kind == CS_OP_CONV
               ? CS_KERNEL_PRODUCTS
               : CS_KERNEL_MEMORY_BOUND;
}

static bool add_op(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                   const op_times *times, const cs_piece_seconds *seconds, cs_net_layer *layer)
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
    layer->update += fmax(times->update, 0) + cast_seconds(how, op, cost);
    layer->kernels[0][kernel_of(op)] += seconds->forward;
    layer->kernels[1][kernel_of(op)] += seconds->backward_input + seconds->backward_weight;
    return add(&layer->weights, cost->weights) && add(&layer->biases, cost->biases) &&
           add(&layer->frozen, cost->frozen) && add(&layer->copy_bytes, cost->copy_bytes) &&
           add(&layer->cast_bytes, cost->cast_bytes) &&
           add(&layer->narrowed_bytes, cost->narrowed_bytes);
}

/* A storage while it is looked for who keeps it. */
typedef struct storage {
    int64_t bytes;   /* of the first tensor in it, which the others are views of */
    uint32_t layer;  /* the last that reads it, or else the one that writes it */
    uint32_t writer; /* op that writes it first, CS_NO_TENSOR of an input */
    bool used, kept;
    bool read_again; /* by operators that run again (recompute.h), of which its writer is none or
                      * in another layer; */
    bool kept_again; /* by others that run again */
    bool discarded;  /* others need it, for which it is made again */
    bool offloaded;  /* an operator that is offloaded keeps it */
} storage;

/* Per operator, while layers are counted. */
typedef struct counts {
    storage *storages;    /* per storage */
    int64_t *workspaces;  /* of the kernels */
    int64_t *steps;       /* see cs_backward */
    int64_t *peaks;       /* of gradients and workspace */
    uint32_t *weights_at; /* whose backward makes the gradients of weights */
    cs_piece_seconds *seconds;
    uint32_t *runs; /* of operators that run again */
    bool *discards; /* whose results are not kept for others */
    bool *offloads; /* what they keep goes to the host */
    /* of a run, at its first operator: */
    uint32_t *needed; /* the last operator that needs one of those results */
    int64_t *held;    /* bytes while it runs backward */
} counts;

static bool is_discarded(const counts *of, const storage *at, uint32_t first_of_layer)
{
    return at->writer != CS_NO_TENSOR && of->discards[at->writer] && at->writer >= first_of_layer;
}

/* Operator p needs what an operator of a run makes. */
static void need(const counts *of, uint32_t writer, uint32_t p)
{
    uint32_t *last = &of->needed[of->runs[writer] - 1];
    *last = p > *last ? p : *last;
}

/* Whether its writer runs again as well as operator p of the layer does. */
static bool is_made_again(const counts *of, const storage *at, uint32_t p,
                          const cs_net_layer *layer)
{
    const uint32_t run = at->writer == CS_NO_TENSOR ? 0 : of->runs[at->writer];
    return run > 0 && (run == of->runs[p] || at->writer >= layer->first);
}

static bool keeps(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t input,
                  const cs_op_cost *cost)
{
    const cs_op *op = &net->ops[p];
    return input == op->n_inputs ? cost->keeps_output
                                 : cost->keeps_input && !cs_kept_again(net, op, input, &how->kept);
}

/* Adds to what a layer keeps, of a tensor that may be large enough for the host. */
static bool keep_bytes(const cs_net_options *how, cs_net_layer *layer, int64_t bytes,
                       bool offloaded)
{
    const int64_t smallest =
        how->offload ? (int64_t)how->offload->smallest * cs_precision_bytes(how->precision) : 0;
    return add(&layer->kept_bytes, bytes) &&
           (!offloaded || bytes < smallest || add(&layer->host_bytes, bytes));
}

static void visit_op(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t layer,
                     const cs_op_cost *cost, const counts *of, cs_net_layer *to)
{
    const cs_op *op = &net->ops[p];
    const bool again = of->runs[p] > 0;
    for (uint32_t i = 0; i <= op->n_inputs; i++) {
        bool is_output = i == op->n_inputs;
        cs_tensor tensor = is_output ? op->output : op->inputs[i];
        storage *at = &of->storages[cs_net_tensor(net, tensor)->storage];
        if (!at->used) {
            at->bytes = cs_tensor_bytes(net, tensor, how->batch_size, how->precision);
            at->writer = is_output ? p : CS_NO_TENSOR;
        }
        if (!is_output || !at->used)
            at->layer = layer;
        at->used = true;
        const bool kept = keeps(net, how, p, i, cost);
        const bool casts = i == 0 && cost->kept_cast > 0;
        if (!again && !is_output && (kept || casts) && is_discarded(of, at, to->first)) {
            need(of, at->writer, p);
            at->discarded = true;
            continue;
        }
        if (is_carried(net, tensor)) {
            to->carried_bytes = (again ? !is_output : kept) ? at->bytes : to->carried_bytes;
            continue;
        }
        at->offloaded |= of->offloads[p] && (kept || again);
        if (again && !is_made_again(of, at, p, to))
            at->read_again = true;
        else
            *(again ? &at->kept_again : &at->kept) |= kept;
    }
}

/* Memory of what a run makes again, which is there during its backward. `p` is one of its
 * operators, and those behind it are to be counted. */
static bool hold_run(const counts *of, uint32_t p, int64_t bytes)
{
    return add(&of->held[of->runs[p] - 1], bytes);
}

/* From the backward of the last operator that needs the run, or of its own last one, to that of its
 * first one. */
static bool spread_held(const cs_net *net, counts *of)
{
    bool fits = true;
    for (uint32_t p = 0; p < net->n_ops; p++)
        for (uint32_t q = p; of->held[p] > 0 && q < net->n_ops &&
                             (of->runs[q] == of->runs[p] || q <= of->needed[p]);
             q++)
            fits = fits && add(&of->workspaces[q], of->held[p]);
    return fits;
}

/* Whether a product reads what is discarded, or gathered of it: it casts that again. */
static bool casts_again(const cs_net *net, const counts *of, uint32_t p, uint32_t first_of_layer)
{
    const storage *at = &of->storages[cs_net_tensor(net, net->ops[p].inputs[0])->storage];
    if (at->writer != CS_NO_TENSOR && net->ops[at->writer].gathers_again)
        at = &of->storages[cs_net_tensor(net, net->ops[at->writer].inputs[0])->storage];
    return is_discarded(of, at, first_of_layer);
}

/* What an operator keeps that is no tensor of the network. */
static bool keep_extra(const cs_net *net, const cs_net_options *how, const counts *of, uint32_t p,
                       const cs_op_cost *cost, cs_net_layer *layer)
{
    if (of->runs[p] > 0)
        return hold_run(of, p, cost->extra_kept_bytes);
    const int64_t again = casts_again(net, of, p, layer->first) ? cost->kept_cast : 0;
    return keep_bytes(how, layer, cost->extra_kept_bytes - again, of->offloads[p]) &&
           add(&of->workspaces[p], again);
}

/* What the layer hands on besides what it writes: the carried tensor, from where it is written to
 * where it is last read. */
static int64_t handed_past(const cs_net *net, const cs_net_options *how, const cs_net_layer *layer)
{
    const cs_op *last = &net->ops[layer->end - 1];
    if (net->carried == 0 || is_carried(net, last->output) ||
        cs_net_tensor(net, net->carried)->last_reader < layer->end)
        return 0;
    for (uint32_t p = layer->end; p < net->n_ops; p++)
        if (net->ops[p].output == net->carried)
            return 0; /* it is not there yet */
    return cs_tensor_bytes(net, net->carried, how->batch_size, how->precision);
}

static bool sum_kept(cs_net_chain *chain)
{
    int64_t carried = 0;
    bool fits = true;
    for (uint32_t i = 0; fits && i < chain->n_layers; i++) {
        const cs_net_layer *layer = &chain->layers[i];
        carried = layer->carried_bytes > carried ? layer->carried_bytes : carried;
        fits = add(&chain->kept_bytes, layer->kept_bytes);
    }
    return fits && add(&chain->kept_bytes, carried);
}

/* What the host does for a layer. */
typedef struct host_work {
    cs_host_seconds all;
    double experts;         /* s of the forward, from the rows of experts on to their sum */
    double experts_seconds; /* what that takes on the device */
    bool among_experts;     /* the operator is part of it */
    bool in_graph;          /* and starts from a graph */
} host_work;

static bool makes_apart(const cs_net_options *how)
{
    return how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_APART;
}

static void add_host(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                     const cs_piece_seconds *seconds, host_work *host)
{
    if (op->kind == CS_OP_DISPATCH)
        host->in_graph = how->kernels.graphs && op->capacity > 0;
    if (host->in_graph) {
        host->in_graph = op->kind != CS_OP_COMBINE;
        return;
    }
    const cs_host_seconds own = cs_runtime_kernels_host(&how->kernels, how->device, op, cost,
                                                        how->precision, makes_apart(how));
    host->all.forward += own.forward;
    host->all.backward += own.backward;
    if (host->among_experts) {
        host->experts += own.forward;
        host->experts_seconds += seconds->forward;
    }
    if (op->kind == CS_OP_DISPATCH)
        host->among_experts = cs_expert_kernels_wait(&how->kernels, op);
    else if (op->kind == CS_OP_COMBINE)
        host->among_experts = false;
}

/* Of a layer. */
static void add_messages(const cs_net_local *local, const cs_net_options *how,
                         const cs_net_layer *layer, cs_host_seconds *host)
{
    const double each = cs_runtime_kernels_message(&how->kernels, how->device);
    for (uint32_t e = 0; local && e < local->n_exchanges; e++) {
        const cs_op_exchange *exchange = &local->exchanges[e];
        if (exchange->op >= layer->first && exchange->op < layer->end)
            *(exchange->backward ? &host->backward : &host->forward) += each;
    }
}

/* The host starts all kernels of a pass over a layer, one after the other, while the device
 * computes; a layer takes as long as the slower of the two. Where the host waits for the rows of
 * experts it has started no kernel behind that point, and the device waits for it if the experts'
 * kernels take less than to start them; the time is lost, whatever the host gains later. Where it
 * waits for each kernel, the two take turns. */
static void wait_for_host(const host_work *work, bool takes_turns, counts *of, cs_net_layer *layer)
{
    const double backward = layer->backward_input + layer->backward_weight;
    const double behind =
        fmax(work->all.forward - layer->forward, work->experts - work->experts_seconds);
    const double lost = takes_turns ? work->all.forward : behind;
    const double slower = work->all.backward / backward + takes_turns;
    const double forward_by = layer->forward > 0 && lost > 0 ? 1 + lost / layer->forward : 1;
    const double backward_by = backward > 0 && slower > 1 ? slower : 1;
    layer->kernels[0][CS_KERNEL_WAITING] = layer->forward * (forward_by - 1);
    layer->kernels[1][CS_KERNEL_WAITING] = backward * (backward_by - 1);
    layer->forward *= forward_by;
    layer->backward_input *= backward_by;
    layer->backward_weight *= backward_by;
    for (uint32_t p = layer->first; p < layer->end; p++) {
        of->seconds[p].forward *= forward_by;
        of->seconds[p].backward_input *= backward_by;
        of->seconds[p].backward_weight *= backward_by;
    }
}

/* Changes what an operator costs to what its kernels in a runtime do. Gradients that are made apart
 * are added by other kernels (kept.h). */
static void cost_of_runtime(const cs_net *net, const cs_net_options *how, const cs_op *op,
                            cs_op_cost *cost)
{
    const double width = cs_precision_bytes(how->precision);
    cs_runtime_kernels_fuse(&how->kernels, net, op, cost);
    cs_runtime_kernels_scale(&how->kernels, net, op, how->batch_size, how->precision, cost);
    cs_narrow_attention_cost(&how->kernels, net, op, how->batch_size, how->precision, cost);
    cs_runtime_kernels_ring(&how->kernels, net, op, how->batch_size, how->precision, cost);
    const double sum = how->float_gradients ? 4 : width;
    if (makes_apart(how))
        cs_runtime_kernels_add_apart(&how->kernels, width, sum, cost);
    else
        cs_runtime_kernels_add_up(&how->kernels, op, width, sum, cost);
    cs_expert_kernels_cost(&how->kernels, net, op, how->split ? how->split->grid.expert : 1,
                           how->batch_size, how->precision, cost);
    cs_runtime_kernels_fill(&how->kernels, op, how->precision, makes_apart(how), cost);
}

static bool cost_layers(const divided *d, const cs_net_options *how, cs_net_chain *chain,
                        counts *of)
{
    const cs_net *net = d->net;
    bool fits = true;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_net_layer *layer = &chain->layers[i];
        int64_t estimated = 0; /* parameters whose update was not measured, */
        uint32_t tensors = 0;  /* and of how many tensors they are */
        int64_t muon = 0;      /* those that Muon updates */
        host_work host = {0};
        for (uint32_t p = layer->first; fits && p < layer->end; p++) {
            cs_op_cost cost;
            cs_op_cost_of(net, &net->ops[p], how->batch_size, how->precision, &cost);
            cost_of_runtime(net, how, &net->ops[p], &cost);
            cs_kept_fuse(net, &net->ops[p], &how->kept, how->batch_size, how->precision, &cost);
            const op_times times = find_times(net, how, &net->ops[p], layer);
            fits = add(&of->workspaces[p],
                       times.workspace >= 0 ? times.workspace : cost.workspace_bytes) &&
                   add(&of->workspaces[p],
                       cs_kept_beside_backward(net, &net->ops[p], &how->kept, how->batch_size));
            of->steps[p] = cs_kept_loss_step(net, &net->ops[p], &how->kept, how->batch_size);
            of->seconds[p] = seconds_of(how, &net->ops[p], &cost, &times);
            add_host(how, &net->ops[p], &cost, &of->seconds[p], &host);
            fits = fits && add_op(how, &net->ops[p], &cost, &times, &of->seconds[p], layer) &&
                   (times.update >= 0 || add(&estimated, cost.weights + cost.biases - cost.frozen));
            tensors += times.update >= 0 ? 0 : trained_tensors(&net->ops[p], &cost);
            muon += how->muon.steps > 0 ? add_matrices(d, how, p, layer) : 0;
            visit_op(net, how, p, i, &cost, of, layer);
            fits = fits && keep_extra(net, how, of, p, &cost, layer);
            if (p == layer->first)
                layer->read_bytes = cost.input_bytes;
            layer->written_bytes = cost.output_bytes;
        }
        add_messages(d->local, how, layer, &host.all);
        wait_for_host(&host, how->kernels.launch_blocking, of, layer);
        layer->update +=
            update_seconds(how, estimated - muon) + zeros_seconds(how, estimated, tensors);
        layer->written_bytes += handed_past(net, how, layer);
    }
    return fits;
}

/* Where backward does not gather again, the whole cast is kept, or there while its run is. */
static bool hold_cast(const cs_net_options *how, const cs_gathered_bytes *bytes,
                      cs_net_layer *layer, const counts *of)
{
    const int64_t rest = bytes->cast - bytes->cast_part;
    return bytes->cast == 0 ? true
           : of->runs[bytes->caster] > 0
               ? hold_run(of, bytes->caster, rest)
               : keep_bytes(how, layer, rest, of->offloads[bytes->caster]);
}

/* The part that this place had is kept, or made again for the gather. */
static void keep_part(const cs_net *net, uint32_t p, const cs_gathered_bytes *bytes,
                      const cs_net_layer *layer, const counts *of)
{
    storage *from = &of->storages[cs_net_tensor(net, net->ops[p].inputs[0])->storage];
    if (!is_discarded(of, from, layer->first)) {
        from->kept |= bytes->tensor > 0;
        return;
    }
    need(of, from->writer, cs_net_tensor(net, net->ops[p].output)->last_reader);
    from->discarded = true;
}

/* What is gathered again in backward is there from the last operator that reads it to the first
 * one. Beside a computation it arrives in a buffer of its own, which is no workspace of the layer.
 * */
static bool move_gathered(const cs_net_local *local, const cs_net_options *how, cs_net_chain *chain,
                          const counts *of)
{
    bool fits = true;
    cs_net_layer *layer = chain->layers;
    for (uint32_t p = 0; p < local->net.n_ops; p++) {
        const cs_op *op = &local->net.ops[p];
        const cs_tensor_info *out = cs_net_tensor(&local->net, op->output);
        layer += p >= layer->end;
        if (!op->gathers_again)
            continue;
        const cs_gathered_bytes bytes =
            cs_net_local_gathered(local, p, how->batch_size, how->precision, &how->kept);
        if (!cs_net_local_gathers_again(local, of->runs, p)) {
            fits = fits && hold_cast(how, &bytes, layer, of);
            continue;
        }
        keep_part(&local->net, p, &bytes, layer, of);
        of->storages[out->storage].kept = false;
        const uint32_t keeper = cs_net_local_first_keeper(local, p);
        of->storages[cs_net_tensor(&local->net, op->inputs[0])->storage].offloaded |=
            keeper < local->net.n_ops && of->offloads[keeper];
        for (uint32_t q = keeper; q <= out->last_reader && local->ops[p].deferred == 0; q++)
            fits = fits && add(&of->workspaces[q], bytes.tensor + bytes.cast);
    }
    return fits;
}

/* Rows of neighbours are kept where the input is that they belong to, or come again in a run. */
static bool keep_halo(const cs_net_local *local, const cs_net_options *how, uint32_t p,
                      cs_net_layer *layer, const counts *of)
{
    const int64_t bytes =
        (int64_t)cs_precision_bytes(how->precision) * how->batch_size * local->ops[p].halo;
    cs_op_cost cost;
    if (bytes == 0)
        return true;
    cs_op_cost_of(&local->net, &local->net.ops[p], how->batch_size, how->precision, &cost);
    return !cost.keeps_input ? true
           : of->runs[p] > 0 ? hold_run(of, p, bytes)
                             : add(&layer->kept_bytes, bytes);
}

/* Gradients of such rows are there while the operator runs backward. */
static bool add_halos(const cs_net_local *local, const cs_net_options *how, cs_net_chain *chain,
                      const counts *of)
{
    const int64_t each = (int64_t)cs_precision_bytes(how->precision) * how->batch_size;
    bool fits = true;
    for (uint32_t i = 0; i < chain->n_layers; i++)
        for (uint32_t p = chain->layers[i].first; p < chain->layers[i].end; p++)
            fits = fits && keep_halo(local, how, p, &chain->layers[i], of) &&
                   add(&of->workspaces[p], each * local->ops[p].gradient_halo);
    return fits;
}

/* Whether operator p keeps the storage. */
static bool keeps_storage(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t s)
{
    const cs_op *op = &net->ops[p];
    cs_op_cost cost;
    bool kept = false;
    cs_op_cost_of(net, op, how->batch_size, how->precision, &cost);
    cs_kept_fuse(net, op, &how->kept, how->batch_size, how->precision, &cost);
    for (uint32_t i = 0; i <= op->n_inputs; i++) {
        const cs_tensor tensor = i == op->n_inputs ? op->output : op->inputs[i];
        kept |= cs_net_tensor(net, tensor)->storage == s && keeps(net, how, p, i, &cost);
    }
    return kept;
}

/* Each run of the layer that keeps the storage has it again while it runs backward. */
static bool hold_storage(const cs_net *net, const cs_net_options *how, uint32_t s, uint32_t end,
                         const counts *of)
{
    const storage *at = &of->storages[s];
    uint32_t held = at->discarded ? of->runs[at->writer] : 0; /* the latest run that has it */
    bool fits = true;
    for (uint32_t p = at->writer; fits && p < end; p++) {
        if (of->runs[p] == held || of->runs[p] == 0 || !keeps_storage(net, how, p, s))
            continue;
        held = of->runs[p];
        fits = hold_run(of, p, at->bytes);
    }
    return fits;
}

/* Runs keep what they read of others; what they make for themselves is made again. */
static bool keep_storages(const cs_net *net, const cs_net_options *how, counts *of,
                          cs_net_chain *chain)
{
    bool fits = true;
    for (uint32_t s = 0; fits && s < net->n_storages; s++) {
        storage *at = &of->storages[s];
        if (at->kept || at->read_again)
            fits = keep_bytes(how, &chain->layers[at->layer], at->bytes, at->offloaded);
        else if (at->discarded)
            fits = hold_run(of, at->writer, at->bytes);
        if (fits && at->kept_again && !at->kept && !at->read_again)
            fits = hold_storage(net, how, s, chain->layers[at->layer].end, of);
    }
    return fits;
}

/* Forward of a run comes in front of the backward of its last operator that does anything. */
static void repeat_runs(const cs_net *net, counts *of, cs_net_chain *chain)
{
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_net_layer *layer = &chain->layers[i];
        for (uint32_t p = layer->first; p < layer->end; p++) {
            uint32_t last = p;
            if (of->runs[p] == 0)
                continue;
            for (uint32_t q = p; q < layer->end && of->runs[q] == of->runs[p]; q++)
                last = net->ops[q].kind == CS_OP_VIEW ? last : q;
            of->seconds[last].backward_input += of->seconds[p].forward;
            layer->backward_input += of->seconds[p].forward;
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

/* CS_INVALID for a name that means no operator. */
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
                                "/offload/operators/%" PRIu32 ": %s has no operator \"%s\"; its "
                                "first is \"%s\" (sim model --json lists them)",
                                i, net->name, rules->operators[i],
                                net->n_ops > 0 ? net->ops[0].name : "");
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

/* `local` is the caller's to finish. */
static cs_status divide(const cs_net *net, const cs_net_options *how, cs_net_local *local,
                        divided *d, cs_error *error)
{
    CS_TRY(check_options(net, how, error));
    *d = (divided){.whole = net, .net = net};
    if (!how->split)
        return CS_OK;
    cs_split split = *how->split;
    split.samples = how->batch_size;
    CS_TRY(cs_net_local_make(net, &split, how->place, NULL, local, error));
    d->local = local;
    d->net = &local->net;
    return CS_OK;
}

static void set_workspace(cs_net_layer *layer, const int64_t *peaks)
{
    for (uint32_t p = layer->first; p < layer->end; p++)
        if (peaks[p] > layer->workspace_bytes)
            layer->workspace_bytes = peaks[p];
}

/* The layers of the whole network, by the operators of the local one. */
static void move_layers(const cs_net_local *local, cs_net_chain *chain)
{
    uint32_t p = 0;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_net_layer *layer = &chain->layers[i];
        layer->first = p;
        while (p < local->net.n_ops && local->ops[p].origin < layer->end)
            p++;
        layer->end = p;
    }
}

static cs_status count_layers(const divided *d, const cs_net_options *how, cs_net_chain *chain,
                              counts *of, cs_error *error)
{
    const cs_net *net = d->net;
    uint32_t exchange = 0;
    CS_TRY(find_runs(net, how, chain, of->runs, of->discards, error));
    CS_TRY(find_offloads(net, how, of->offloads, error));
    if (!cost_layers(d, how, chain, of) || (d->local && !move_gathered(d->local, how, chain, of)) ||
        (d->local && !add_halos(d->local, how, chain, of)) || !keep_storages(net, how, of, chain) ||
        !spread_held(net, of) || !sum_kept(chain))
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
        set_workspace(&chain->layers[i], of->peaks);
        if (d->local)
            CS_TRY(cs_net_pieces_find(d->local, how, &(cs_op_timing){of->seconds, of->runs},
                                      &exchange, &chain->layers[i], &chain->arena, error));
    }
    return CS_OK;
}

/* Room for those of each operator. */
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

static cs_status make_chain(const divided *d, const cs_net_options *how, cs_net_chain *chain,
                            cs_error *error)
{
    const cs_net *net = d->net;
    CS_TRY(make_layers(d->whole, how->granularity, chain, error));
    if (d->local)
        move_layers(d->local, chain);
    if (!allocate_matrices(how, chain))
        return cs_error_no_memory(error);
    counts of = {.storages = calloc(net->n_storages, sizeof(*of.storages)),
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

static cs_status find_chain(const divided *d, const cs_net_options *how, cs_net_chain *chain,
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
    divided d;
    cs_status status = divide(net, options, &local, &d, error);
    if (status == CS_OK)
        status = find_chain(&d, options, chain, error);
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

/* ---- the model ---- */

/* Where the times come from. */
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

/* The share of what an operator multiplies that is no padding of experts up to their capacity:
 * routed rows, at most all, by the rows that their dispatch made. */
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

/* Products of forward and backward together by those of forward: 3, but for gradients that are not
 * needed where weights are frozen. */
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

/* The usual count of work in training: of the products (convolutions, linear layers, attention),
 * each of which has two more of its size backward. The rest of the operators is small change, and
 * a kernel that computes forward again does it to save memory (Chowdhery et al., PaLM, JMLR 2023,
 * appendix B). */
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

static cs_status describe(const divided *d, const cs_net_options *how, const cs_net_chain *chain,
                          cs_model *model, cs_error *error)
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
    if (!describe_work(d->whole, how, model) || !model->name || !model->provenance.source ||
        !model->provenance.hardware || !model->provenance.date)
        return cs_error_no_memory(error);
    return CS_OK;
}

/* Not in the last block of several, with the loss, whose backward is next: its forward does not run
 * again, and nothing of it is offloaded. */
static bool is_in_front(const cs_net *net, const cs_net_layer *layer)
{
    return net->n_blocks == 1 || block_from(net, layer->first) + 1 < net->n_blocks;
}

static int64_t resident(const cs_net *net, const cs_net_options *how, const cs_net_layer *layer)
{
    const int64_t host = is_in_front(net, layer) ? layer->host_bytes : 0;
    return how->offload ? layer->kept_bytes - host : 0;
}

static bool fill_layer(const cs_net *net, const cs_net_options *how, const cs_net_layer *from,
                       cs_layer *to, cs_arena *arena)
{
    int64_t parameters = from->weights + from->biases - from->frozen;
    *to = (cs_layer){
        .name = cs_arena_copy(arena, from->name),
        .output_bytes = from->written_bytes,
        .kept_bytes = from->kept_bytes,
        .carried_bytes = from->carried_bytes,
        .workspace_bytes = from->workspace_bytes,
        .narrowed_bytes = from->narrowed_bytes,
        .cast_bytes = from->cast_bytes,
        .resident_bytes = resident(net, how, from),
        .recompute = how->recompute && is_in_front(net, from),
        .timing = from->n_measured == 0    ? "estimated"
                  : from->n_estimated == 0 ? "measured"
                                           : "partly measured",
    };
    const int64_t bytes = cs_precision_bytes(how->precision);
    memcpy(to->kernels, from->kernels, sizeof(to->kernels));
    return !__builtin_mul_overflow(parameters, bytes, &to->weight_bytes) &&
           !__builtin_mul_overflow(from->frozen, bytes, &to->frozen_bytes) &&
           add(&to->frozen_bytes, from->copy_bytes) &&
           cs_time_from_seconds(from->forward, &to->forward) &&
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
    to->update = sum > to->update ? sum : to->update; /* by what was rounded */
    return fits ? CS_OK
                : cs_error_add(error, CS_OVERFLOW, "the update of layer %s does not fit 64 bits",
                               from->name);
}

/* What the network hands to its loss: a fused one keeps it. */
static void fill_result(const cs_net *net, const cs_net_options *how, const cs_net_layer *from,
                        cs_layer *to)
{
    for (uint32_t p = from->first; p < from->end; p++) {
        const cs_op *op = &net->ops[p];
        if (op->kind != CS_OP_CROSS_ENTROPY && op->kind != CS_OP_SQUARED_ERROR)
            continue;
        to->result_bytes = cs_tensor_bytes(net, op->inputs[0], how->batch_size, how->precision);
        to->result_memory = cs_net_tensor(net, op->inputs[0])->storage;
        to->result_kept = op->kind == CS_OP_CROSS_ENTROPY &&
                          (how->kept.fused & 1u << CS_FUSED_CROSS_ENTROPY) != 0;
    }
}

/* Its times become the sums over its pieces. */
static bool fill_pieces(const cs_net_layer *from, cs_layer *to)
{
    bool fits = true;
    to->forward = to->backward_input = to->backward_weight = 0;
    for (uint32_t i = 0; fits && i < from->n_pieces; i++) {
        cs_layer_piece *piece = &to->pieces[i];
        fits = cs_time_from_seconds(from->pieces[i].forward, &piece->forward) &&
               cs_time_from_seconds(from->pieces[i].backward_input, &piece->backward_input) &&
               cs_time_from_seconds(from->pieces[i].backward_weight, &piece->backward_weight) &&
               cs_time_add(to->forward, piece->forward, &to->forward) &&
               cs_time_add(to->backward_input, piece->backward_input, &to->backward_input) &&
               cs_time_add(to->backward_weight, piece->backward_weight, &to->backward_weight);
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

/* The layer that has an operator. */
static uint32_t layer_of(const cs_net_chain *chain, uint32_t op)
{
    uint32_t l = 0;
    while (op >= chain->layers[l].end)
        l++;
    return l;
}

/* Weights of a layer before it, which an operator of layer l uses as well. */
static bool find_tie(const cs_net *net, const cs_net_options *how, const cs_net_chain *chain,
                     uint32_t l, cs_model *model)
{
    for (uint32_t p = chain->layers[l].first; p < chain->layers[l].end; p++) {
        const uint32_t lender = net->ops[p].tied ? cs_net_lender(net, p) : net->n_ops;
        const uint32_t from = lender < net->n_ops ? layer_of(chain, lender) : l;
        if (from >= l)
            continue;
        model->layers[l].tied_to = model->layers[from].name;
        return !__builtin_mul_overflow(net->ops[p].weights,
                                       (int64_t)cs_precision_bytes(how->precision),
                                       &model->layers[l].tied_bytes);
    }
    return true;
}

/* What its operators share with those of other layers, by their names behind the block's, a
 * library's workspace, and the most that one of them needs in the buffer of all. */
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

static cs_status fill_model(const divided *d, const cs_net_options *how, const cs_net_chain *chain,
                            cs_model *model, cs_error *error)
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
    divided d;
    cs_arena_init(&made.arena);
    cs_status status = divide(net, options, &local, &d, error);
    if (status == CS_OK)
        status = find_chain(&d, options, &chain, error);
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

/* Weights of all experts but those that compute a token are idle. */
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
