#include "sim/model/ops/operator.h"

#include <math.h>

int64_t cs_tensor_bytes(const cs_net *net, cs_tensor tensor, uint32_t batch, cs_precision precision)
{
    const cs_tensor_info *info = cs_net_tensor(net, tensor);
    int64_t width = info->element == CS_ELEMENT_INT64     ? CS_INDEX_BYTES
                    : info->element == CS_ELEMENT_FLOAT32 ? CS_FLOAT_BYTES
                                                          : cs_precision_bytes(precision);
    return info->elements * width * batch;
}

cs_precision cs_op_precision(const cs_op *op, cs_precision precision)
{
    return cs_op_is_product(op) && !op->wide ? precision : cs_precision_wide(precision);
}

void cs_cost_elementwise(const cs_cost_query *s, cs_op_cost *cost)
{
    const cs_elementwise_cost *rule = &cs_operator_of(s->op)->each;
    double parameters = (double)(s->op->weights + s->op->biases);
    cost->forward.flop = rule->forward_flop * s->y;
    cost->forward.bytes = (rule->forward_moves * s->width + rule->bytes) * s->y;
    if (s->needs_gradient) {
        cost->backward_input.flop = rule->backward_flop * s->y;
        cost->backward_input.bytes = (rule->backward_moves * s->width + rule->bytes) * s->y;
    }
    if (parameters > 0 && rule->weight_moves > 0)
        cost->backward_weight =
            (cs_pass_cost){s->y, rule->weight_moves * s->width * s->y + s->width * parameters, 1};
    cost->keeps_input = rule->keeps_input;
    cost->keeps_output = rule->keeps_output;
}

bool cs_op_accumulates(const cs_net *net, const cs_op *op, uint32_t i)
{
    const cs_tensor_info *read = cs_net_tensor(net, op->inputs[i]);
    return cs_op_makes_gradient(net, op, i) && read->last_reader != (uint32_t)(op - net->ops) &&
           !cs_op_is_view(op);
}

/* Adds the sums of gradients of tensors that several operators read. The last reader makes the
 * first gradient; each other reader adds to it, which reads two tensors and writes one. */
static void add_accumulations(const cs_cost_query *s, cs_op_cost *cost)
{
    cs_pass_cost *sum = &cost->accumulate;
    for (uint32_t i = 0; i < s->op->n_inputs; i++) {
        if (!cs_op_accumulates(s->net, s->op, i))
            continue;
        double elements = s->batch * (double)cs_net_tensor(s->net, s->op->inputs[i])->elements;
        sum->flop += elements;
        sum->bytes += 3 * s->width * elements;
        sum->launches++;
    }
    cost->backward_input.flop += sum->flop;
    cost->backward_input.bytes += sum->bytes;
    cost->backward_input.launches += sum->launches;
}

/* Adds the conversion of weights that are stored in fewer bytes: each pass reads them and writes
 * them in the network's precision for its product, which frees them afterwards. */
static void make_weights(const cs_cost_query *s, cs_op_cost *cost)
{
    const double weights = (double)s->op->weights;
    cs_pass_cost *const passes[] = {&cost->forward, &cost->backward_input};
    for (size_t i = 0; i < 2; i++) {
        if (passes[i]->launches == 0)
            continue;
        passes[i]->cast_bytes += weights * (s->op->stored + s->width);
        passes[i]->launches++;
    }
    cost->workspace_bytes += (int64_t)ceil(weights * s->width);
    cost->narrowed_bytes = (int64_t)floor(weights * (s->width - s->op->stored));
}

/* Removes unneeded costs: frozen weights have no gradient, so their product saves no input, and an
 * operator whose result has no gradient saves nothing. */
static void drop_unneeded(const cs_cost_query *s, cs_op_cost *cost)
{
    if (s->op->frozen) {
        cost->frozen = cost->weights + cost->biases;
        cost->backward_weight = (cs_pass_cost){0};
        cost->keeps_input &= !cs_operator_of(s->op)->input_for_weights;
    }
    if (s->out->differentiable)
        return;
    cost->keeps_input = cost->keeps_output = false;
    cost->extra_kept_bytes = cost->kept_cast = 0;
}

static void count_launches(cs_pass_cost *pass)
{
    if (pass->launches == 0 && (pass->bytes > 0 || pass->flop > 0))
        pass->launches = 1;
}

void cs_op_cost_of(const cs_net *net, const cs_op *op, uint32_t batch, cs_precision precision,
                   cs_op_cost *cost)
{
    cs_cost_query s = {.net = net,
                       .op = op,
                       .in = cs_net_tensor(net, op->inputs[0]),
                       .out = cs_net_tensor(net, op->output),
                       .batch = batch,
                       .width = cs_precision_bytes(precision),
                       .precision = precision};
    if (cs_precision_is_narrow(cs_op_precision(op, precision)))
        s.operand = cs_precision_operand_bytes(precision);
    *cost = (cs_op_cost){.weights = op->tied ? 0 : op->weights, .biases = op->biases};
    s.x = s.batch * (double)s.in->elements;
    s.y = s.batch * (double)s.out->elements;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        s.needs_gradient |= cs_op_makes_gradient(net, op, i);
        cost->input_bytes += cs_tensor_bytes(net, op->inputs[i], batch, precision);
    }
    cost->output_bytes = cs_tensor_bytes(net, op->output, batch, precision);
    if (cs_operator_of(op)->cost)
        cs_operator_of(op)->cost(&s, cost);
    else
        cs_cost_elementwise(&s, cost);
    drop_unneeded(&s, cost);
    if (!s.needs_gradient)
        cost->backward_input = (cs_pass_cost){0};
    count_launches(&cost->forward);
    count_launches(&cost->backward_input);
    if (op->stored > 0)
        make_weights(&s, cost);
    add_accumulations(&s, cost);
}
