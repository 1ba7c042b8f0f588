#include "sim/model/net-chain.h"

#include "sim/base/sum.h"

static bool is_discarded(const cs_net_counts *of, const cs_net_storage *at, uint32_t first_of_layer)
{
    return at->writer != CS_NO_TENSOR && of->discards[at->writer] && at->writer >= first_of_layer;
}

/* Records that operator p needs a result of a recomputed run, the run of `writer`. */
static void need(const cs_net_counts *of, uint32_t writer, uint32_t p)
{
    uint32_t *last = &of->needed[of->runs[writer] - 1];
    *last = p > *last ? p : *last;
}

/* Whether the operator that writes a storage is recomputed too, in the run of operator p or in
 * another run of the layer. */
static bool is_made_again(const cs_net_counts *of, const cs_net_storage *at, uint32_t p,
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

/* Adds bytes to the layer's saved activations, and to its host bytes if the tensor is offloaded and
 * large enough. */
static bool keep_bytes(const cs_net_options *how, cs_net_layer *layer, int64_t bytes,
                       bool offloaded)
{
    const int64_t smallest =
        how->offload ? (int64_t)how->offload->smallest * cs_precision_bytes(how->precision) : 0;
    return cs_sum_add(&layer->kept_bytes, bytes) &&
           (!offloaded || bytes < smallest || cs_sum_add(&layer->host_bytes, bytes));
}

static void visit_op(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t layer,
                     const cs_op_cost *cost, const cs_net_counts *of, cs_net_layer *to)
{
    const cs_op *op = &net->ops[p];
    const bool again = of->runs[p] > 0;
    for (uint32_t i = 0; i <= op->n_inputs; i++) {
        bool is_output = i == op->n_inputs;
        cs_tensor tensor = is_output ? op->output : op->inputs[i];
        cs_net_storage *at = &of->storages[cs_net_tensor(net, tensor)->storage];
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
        if (cs_net_is_carried(net, tensor)) {
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

/* Adds bytes that the run of operator p makes again and holds during its backward. */
static bool hold_run(const cs_net_counts *of, uint32_t p, int64_t bytes)
{
    return cs_sum_add(&of->held[of->runs[p] - 1], bytes);
}

/* Adds the bytes that a run holds to the workspaces of all operators whose backward runs meanwhile:
 * from the last operator that needs the run, or the run's last operator, back to the run's first
 * operator. */
static bool spread_held(const cs_net *net, cs_net_counts *of)
{
    bool fits = true;
    for (uint32_t p = 0; p < net->n_ops; p++)
        for (uint32_t q = p; of->held[p] > 0 && q < net->n_ops &&
                             (of->runs[q] == of->runs[p] || q <= of->needed[p]);
             q++)
            fits = fits && cs_sum_add(&of->workspaces[q], of->held[p]);
    return fits;
}

/* Whether a product has to cast its input again because the input, or the tensor it was gathered
 * from, is discarded. */
static bool casts_again(const cs_net *net, const cs_net_counts *of, uint32_t p,
                        uint32_t first_of_layer)
{
    const cs_net_storage *at = &of->storages[cs_net_tensor(net, net->ops[p].inputs[0])->storage];
    if (at->writer != CS_NO_TENSOR && net->ops[at->writer].gathers_again)
        at = &of->storages[cs_net_tensor(net, net->ops[at->writer].inputs[0])->storage];
    return is_discarded(of, at, first_of_layer);
}

/* Counts the bytes that an operator keeps besides tensors of the network. */
static bool keep_extra(const cs_net *net, const cs_net_options *how, const cs_net_counts *of,
                       uint32_t p, const cs_op_cost *cost, cs_net_layer *layer)
{
    if (of->runs[p] > 0)
        return hold_run(of, p, cost->extra_kept_bytes);
    const int64_t again = casts_again(net, of, p, layer->first) ? cost->kept_cast : 0;
    return keep_bytes(how, layer, cost->extra_kept_bytes - again, of->offloads[p]) &&
           cs_sum_add(&of->workspaces[p], again);
}

static bool sum_kept(cs_net_chain *chain)
{
    int64_t carried = 0;
    bool fits = true;
    for (uint32_t i = 0; fits && i < chain->n_layers; i++) {
        const cs_net_layer *layer = &chain->layers[i];
        carried = layer->carried_bytes > carried ? layer->carried_bytes : carried;
        fits = cs_sum_add(&chain->kept_bytes, layer->kept_bytes);
    }
    return fits && cs_sum_add(&chain->kept_bytes, carried);
}

/* Counts the rest of a gathered cast if backward does not gather it again: the rest is kept, or
 * held by a run if the operator that casts it is recomputed. */
static bool hold_cast(const cs_net_options *how, const cs_gathered_bytes *bytes,
                      cs_net_layer *layer, const cs_net_counts *of)
{
    const int64_t rest = bytes->cast - bytes->cast_part;
    return bytes->cast == 0 ? true
           : of->runs[bytes->caster] > 0
               ? hold_run(of, bytes->caster, rest)
               : keep_bytes(how, layer, rest, of->offloads[bytes->caster]);
}

/* Keeps the part that this place had before the gather. A part that is discarded is recomputed
 * before the second gather. */
static void keep_part(const cs_net *net, uint32_t p, const cs_gathered_bytes *bytes,
                      const cs_net_layer *layer, const cs_net_counts *of)
{
    cs_net_storage *from = &of->storages[cs_net_tensor(net, net->ops[p].inputs[0])->storage];
    if (!is_discarded(of, from, layer->first)) {
        from->kept |= bytes->tensor > 0;
        return;
    }
    need(of, from->writer, cs_net_tensor(net, net->ops[p].output)->last_reader);
    from->discarded = true;
}

/* Adds the bytes that backward gathers again to the workspaces, from the last operator that reads
 * them back to the first operator that keeps them. A gather that overlaps a computation fills a
 * separate buffer, which is not part of the layer's workspace. */
static bool move_gathered(const cs_net_local *local, const cs_net_options *how, cs_net_chain *chain,
                          const cs_net_counts *of)
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
            fits = fits && cs_sum_add(&of->workspaces[q], bytes.tensor + bytes.cast);
    }
    return fits;
}

/* Counts the neighbours' rows that operator p reads: they are saved together with the input, or
 * received again in a recomputed run. */
static bool keep_halo(const cs_net_local *local, const cs_net_options *how, uint32_t p,
                      cs_net_layer *layer, const cs_net_counts *of)
{
    const int64_t bytes =
        (int64_t)cs_precision_bytes(how->precision) * how->batch_size * local->ops[p].halo;
    cs_op_cost cost;
    if (bytes == 0)
        return true;
    cs_op_cost_of(&local->net, &local->net.ops[p], how->batch_size, how->precision, &cost);
    return !cost.keeps_input ? true
           : of->runs[p] > 0 ? hold_run(of, p, bytes)
                             : cs_sum_add(&layer->kept_bytes, bytes);
}

/* Counts the neighbours' rows that operators read, and the gradients of such rows while the
 * operator runs backward. */
static bool add_halos(const cs_net_local *local, const cs_net_options *how, cs_net_chain *chain,
                      const cs_net_counts *of)
{
    const int64_t each = (int64_t)cs_precision_bytes(how->precision) * how->batch_size;
    bool fits = true;
    for (uint32_t i = 0; i < chain->n_layers; i++)
        for (uint32_t p = chain->layers[i].first; p < chain->layers[i].end; p++)
            fits = fits && keep_halo(local, how, p, &chain->layers[i], of) &&
                   cs_sum_add(&of->workspaces[p], each * local->ops[p].gradient_halo);
    return fits;
}

/* Whether operator p saves the storage for its backward. */
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

/* Adds the storage to each run of the layer that keeps it: the run holds it again while it runs
 * backward. */
static bool hold_storage(const cs_net *net, const cs_net_options *how, uint32_t s, uint32_t end,
                         const cs_net_counts *of)
{
    const cs_net_storage *at = &of->storages[s];
    /* the latest run that has the storage already */
    uint32_t held = at->discarded ? of->runs[at->writer] : 0;
    bool fits = true;
    for (uint32_t p = at->writer; fits && p < end; p++) {
        if (of->runs[p] == held || of->runs[p] == 0 || !keeps_storage(net, how, p, s))
            continue;
        held = of->runs[p];
        fits = hold_run(of, p, at->bytes);
    }
    return fits;
}

/* Counts the saved storages. A run saves the tensors that it reads from other operators, and
 * recomputes the tensors that only the run itself reads. */
static bool keep_storages(const cs_net *net, const cs_net_options *how, cs_net_counts *of,
                          cs_net_chain *chain)
{
    bool fits = true;
    for (uint32_t s = 0; fits && s < net->n_storages; s++) {
        cs_net_storage *at = &of->storages[s];
        if (at->kept || at->read_again)
            fits = keep_bytes(how, &chain->layers[at->layer], at->bytes, at->offloaded);
        else if (at->discarded)
            fits = hold_run(of, at->writer, at->bytes);
        if (fits && at->kept_again && !at->kept && !at->read_again)
            fits = hold_storage(net, how, s, chain->layers[at->layer].end, of);
    }
    return fits;
}

bool cs_net_kept_visit(const cs_net *net, const cs_net_options *how, uint32_t p, uint32_t layer,
                       const cs_op_cost *cost, const cs_net_counts *of, cs_net_layer *to)
{
    visit_op(net, how, p, layer, cost, of, to);
    return keep_extra(net, how, of, p, cost, to);
}

uint32_t cs_net_kept_reach(const cs_net *net, const cs_net_options *how, uint32_t p,
                           const cs_op_cost *cost)
{
    const cs_op *op = &net->ops[p];
    bool reads = cost->weights > 0 || cost->biases > 0;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        reads |= keeps(net, how, p, i, cost);
    return cost->keeps_output || cost->extra_kept_bytes > 0 ? p + 1 : reads ? p : 0;
}

bool cs_net_kept_sum(const cs_net *net, const cs_net_local *local, const cs_net_options *how,
                     cs_net_counts *of, cs_net_chain *chain)
{
    return (!local || (move_gathered(local, how, chain, of) && add_halos(local, how, chain, of))) &&
           keep_storages(net, how, of, chain) && spread_held(net, of) && sum_kept(chain);
}
