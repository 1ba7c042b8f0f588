/* Exchanges of a local network in its backward: which gathers are repeated, and which weight
 * gradients are computed while the gradient of an input is summed. */
#include "sim/base/vector.h"
#include "sim/model/net-local.h"
#include "sim/model/ops/operator.h"

#include <math.h>
#include <stdlib.h>

bool cs_net_local_add_exchange(cs_net_local *made, cs_op_exchange exchange)
{
    if (!cs_vector_reserve((void **)&made->exchanges, &made->cap_exchanges, made->n_exchanges + 1u,
                           sizeof(*made->exchanges)))
        return false;
    exchange.order = made->n_exchanges;
    made->exchanges[made->n_exchanges++] = exchange;
    return true;
}

/* ---- finding the exchanges of backward ---- */

/* Whether none of the operators (first, last] has an exchange, and at least one of them has trained
 * weights. */
static bool can_defer(const cs_net_local *made, const bool *exchanges, uint32_t first,
                      uint32_t last)
{
    bool weights = false;
    for (uint32_t p = first + 1; p <= last; p++) {
        if (exchanges[p])
            return false;
        weights |=
            !made->net.ops[p].frozen && made->net.ops[p].weights + made->net.ops[p].biases > 0;
    }
    return weights;
}

/* Whether an exchange belongs to Megatron's context parallelism, or to its tensor parallelism with
 * pairs of layers. Splits by filters and channels follow ParaDL instead: their exchanges are not
 * overlapped, and gathered tensors are kept. */
static bool is_of_pairs(const cs_split *split, const cs_op_exchange *exchange)
{
    return exchange->axes == CS_AXES_CONTEXT ||
           (exchange->axes == CS_AXES_TENSOR && split->tensor_method == CS_TENSOR_PAIRS);
}

/* Defers weight gradients so that they overlap with the sum of the input's gradient, as in
 * Megatron-LM. */
static void defer_weights(cs_net_local *made, const cs_split *split, const bool *exchanges)
{
    for (uint32_t e = 0; e < made->n_exchanges; e++) {
        cs_op_exchange *exchange = &made->exchanges[e];
        const cs_op *op = &made->net.ops[exchange->op];
        const uint32_t last = cs_net_tensor(&made->net, op->output)->last_reader;
        const bool sums = exchange->kind == CS_EXCHANGE_ALL_REDUCE ||
                          exchange->kind == CS_EXCHANGE_REDUCE_SCATTER;
        if (!is_of_pairs(split, exchange) || !exchange->backward || !sums ||
            op->kind != CS_OP_EXCHANGE || last == CS_NO_TENSOR ||
            !can_defer(made, exchanges, exchange->op, last))
            continue;
        made->ops[exchange->op].deferred = last;
        exchange->beside = true;
    }
}

static bool *find_kept(const cs_net *net)
{
    bool *kept = calloc(net->n_storages, sizeof(*kept));
    for (uint32_t p = 0; kept && p < net->n_ops; p++) {
        const cs_op *op = &net->ops[p];
        cs_op_cost cost;
        cs_op_cost_of(net, op, 1, CS_PRECISION_FP16, &cost);
        for (uint32_t i = 0; i < op->n_inputs; i++)
            kept[cs_net_tensor(net, op->inputs[i])->storage] |= cost.keeps_input;
        kept[cs_net_tensor(net, op->output)->storage] |= cost.keeps_output;
    }
    return kept;
}

/* Repeats in backward each gather whose result would otherwise be kept. The second gather is
 * overlapped with the operators before the deferred weight gradients; if none are deferred, it
 * comes before the backward of the tensor's last reader. */
static bool gather_again(cs_net_local *made, const cs_split *split, const bool *kept)
{
    const uint32_t n = made->n_exchanges;
    for (uint32_t e = 0; e < n; e++) {
        cs_op_exchange again = made->exchanges[e];
        const cs_tensor_info *out = cs_net_tensor(&made->net, made->net.ops[again.op].output);
        const cs_local_op *info = &made->ops[again.op];
        if ((split->keeps_tokens && again.axes == CS_AXES_TENSOR) || !is_of_pairs(split, &again) ||
            again.backward || again.kind != CS_EXCHANGE_ALL_GATHER || !kept[out->storage])
            continue;
        made->net.ops[again.op].gathers_again = true;
        again.backward = true;
        again.beside = info->deferred > 0;
        again.step = again.beside ? 1 : CS_BEHIND;
        again.again_of = again.op + 1;
        if (!again.beside)
            again.op = out->last_reader;
        if (!cs_net_local_add_exchange(made, again))
            return false;
    }
    return true;
}

static int compare_exchanges(const void *a, const void *b)
{
    const cs_op_exchange *x = a, *y = b;
    const uint32_t left[] = {x->op, x->step, x->order}, right[] = {y->op, y->step, y->order};
    int order = 0;
    for (int i = 0; order == 0 && i < 3; i++)
        order = (left[i] > right[i]) - (left[i] < right[i]);
    return order;
}

bool cs_net_local_order_exchanges(cs_net_local *made, const cs_split *split)
{
    bool *exchanges = calloc(made->net.n_ops, sizeof(*exchanges));
    bool *kept = find_kept(&made->net);
    bool done = exchanges && kept;
    for (uint32_t p = 0; done && p < made->net.n_ops; p++)
        exchanges[p] = made->net.ops[p].kind == CS_OP_EXCHANGE;
    for (uint32_t e = 0; done && e < made->n_exchanges; e++)
        exchanges[made->exchanges[e].op] = true;
    if (done) {
        defer_weights(made, split, exchanges);
        done = gather_again(made, split, kept);
    }
    if (done && made->n_exchanges > 0)
        qsort(made->exchanges, made->n_exchanges, sizeof(*made->exchanges), compare_exchanges);
    free(exchanges);
    free(kept);
    return done;
}

/* ---- queries ---- */

void cs_net_local_weights_at(const cs_net_local *local, uint32_t *at)
{
    for (uint32_t p = 0; p < local->net.n_ops; p++)
        at[p] = p;
    for (uint32_t p = 0; p < local->net.n_ops; p++)
        for (uint32_t q = p + 1; q <= local->ops[p].deferred; q++)
            at[q] = p;
}

static bool reads(const cs_op *op, cs_tensor tensor)
{
    bool found = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        found |= op->inputs[i] == tensor;
    return found;
}

uint32_t cs_net_local_first_keeper(const cs_net_local *local, uint32_t exchange)
{
    const cs_net *net = &local->net;
    cs_op_cost cost;
    const uint32_t last = cs_net_tensor(net, net->ops[exchange].output)->last_reader;
    for (uint32_t p = exchange + 1; last != CS_NO_TENSOR && p <= last; p++) {
        if (!reads(&net->ops[p], net->ops[exchange].output))
            continue;
        cs_op_cost_of(net, &net->ops[p], 1, CS_PRECISION_FP16, &cost);
        if (cost.keeps_input)
            return p;
    }
    return net->n_ops;
}

cs_gathered_bytes cs_net_local_gathered(const cs_net_local *local, uint32_t exchange,
                                        uint32_t batch, cs_precision precision,
                                        const cs_kept_rules *rules)
{
    const cs_net *net = &local->net;
    const cs_tensor made = net->ops[exchange].output;
    const double elements = (double)cs_net_tensor(net, made)->elements * batch;
    cs_gathered_bytes sum = {0};
    const uint32_t last = cs_net_tensor(net, net->ops[exchange].output)->last_reader;
    for (uint32_t p = exchange + 1; last != CS_NO_TENSOR && p <= last; p++) {
        cs_op_cost cost;
        if (!reads(&net->ops[p], made))
            continue;
        cs_op_cost_of(net, &net->ops[p], batch, precision, &cost);
        cs_kept_fuse(net, &net->ops[p], rules, batch, precision, &cost);
        if (cost.keeps_input)
            sum.tensor = cs_tensor_bytes(net, made, batch, precision);
        if (cost.kept_cast > 0) {
            sum.cast = (int64_t)ceil(cs_precision_operand_bytes(precision) * elements);
            sum.cast_part = cost.kept_cast;
            sum.caster = p;
        }
    }
    return sum;
}

bool cs_net_local_gathers_again(const cs_net_local *local, const uint32_t *runs, uint32_t p)
{
    bool again = local->net.ops[p].gathers_again && runs[p] == 0;
    for (uint32_t q = p + 1; again && q < local->net.n_ops; q++)
        again = runs[q] == 0 || !reads(&local->net.ops[q], local->net.ops[p].output);
    return again;
}
