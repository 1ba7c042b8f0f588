#include "sim/model/expert-kernels.h"

#include <math.h>

enum { ROUTER_KERNELS = 31, ROUTER_KERNELS_ONCE = 17, COUNTED_OF_ROUTER = 5, FLOAT = 4 };

static double elements_of(const cs_net *net, cs_tensor tensor, uint32_t batch)
{
    return batch * (double)cs_net_tensor(net, tensor)->elements;
}

/* Returns the number of distinct tokens among the `rows` that a device receives; each token has
 * `copies` rows on all devices together. */
static double arriving(double rows, uint32_t places, uint32_t copies)
{
    return rows * places / copies * (1 - pow(1 - 1.0 / places, copies));
}

/* Adds the bytes of reordering rows by expert, or of copying tokens that were sent once. `tokens`
 * are the device's own tokens, which the operator's bytes already include. */
static void order_rows(const cs_runtime_kernels *kernels, const cs_op *op, double tokens,
                       double rows, uint32_t places, double width, cs_op_cost *cost)
{
    double more = 0;
    if (kernels->tokens_once)
        more = width * (arriving(rows, places, op->top_k) - tokens);
    else if (op->experts > places)
        more = 2 * width * rows;
    cost->forward.bytes += more;
    cost->forward.launches += more > 0 && !kernels->tokens_once;
    if (cost->backward_input.launches == 0)
        return;
    cost->backward_input.bytes += more;
    cost->backward_input.launches += more > 0 && !kernels->tokens_once;
}

/* Whether the rows of the product are combined into tokens next, possibly after an exchange with
 * other devices. */
static bool is_last_product(const cs_net *net, const cs_op *op)
{
    uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    while (reader < net->n_ops && net->ops[reader].kind == CS_OP_EXCHANGE)
        reader = cs_net_tensor(net, net->ops[reader].output)->last_reader;
    return reader < net->n_ops && net->ops[reader].kind == CS_OP_COMBINE;
}

static bool is_activation(cs_op_kind kind)
{
    return kind == CS_OP_SILU || kind == CS_OP_GELU || kind == CS_OP_RELU || kind == CS_OP_MUL;
}

/* Whether the operator leads to another product of experts, with only activations in between. */
static bool is_between(const cs_net *net, const cs_op *op)
{
    while (is_activation(op->kind)) {
        const uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
        if (reader >= net->n_ops)
            return false;
        op = &net->ops[reader];
    }
    return op->kind == CS_OP_GROUPED_LINEAR;
}

/* Removes the bytes that a cast reads, because the kernel that makes the cast's input also does the
 * cast. */
static void fuse_cast(double read, cs_pass_cost *pass)
{
    if (!(pass->cast_bytes > 0))
        return;
    pass->cast_bytes -= read;
    pass->launches -= pass->launches > 1;
}

static void fuse(const cs_net *net, const cs_op *op, double in, double out, cs_op_cost *cost)
{
    if (is_activation(op->kind) && is_between(net, op)) {
        cost->forward = cost->backward_input = cost->accumulate = (cs_pass_cost){0};
    } else if (op->kind == CS_OP_GROUPED_LINEAR && is_last_product(net, op)) {
        fuse_cast(in, &cost->forward);
    } else if (op->kind == CS_OP_GROUPED_LINEAR) {
        fuse_cast(out, &cost->backward_input);
    }
}

/* Adds the kernels of the biases for each expert: two forward; backward a cast, two for the weights
 * and two for the biases. They replace the sum of gradients that op-cost.h counts with the gradient
 * of the weights. */
static void add_biases(double result, double width, cs_op_cost *cost)
{
    cost->forward.cast_bytes += result * (FLOAT + (width + 2 * FLOAT) + 2 * FLOAT + FLOAT + width);
    cost->forward.launches += 2;
    cost->backward_weight.flop -= result;
    cost->backward_weight.bytes -= width * result;
    cost->backward_weight.cast_bytes += result * (2 * (width + FLOAT) + 2 * width + 6 * FLOAT);
    cost->backward_weight.launches += 5 - 1;
}

static uint32_t experts_behind(const cs_net *net, const cs_op *op)
{
    while (op->kind != CS_OP_GROUPED_LINEAR)
        op = &net->ops[cs_net_tensor(net, op->output)->last_reader];
    return op->experts;
}

/* Gives an activation between expert products one kernel per expert, like the products. Also adds
 * the kernels that concatenate the rows made by the experts and, in backward, the gradients of the
 * rows that the experts read. */
static void divide_modules(const cs_net *net, const cs_op *op, double in, double out,
                           cs_op_cost *cost)
{
    if (op->kind == CS_OP_GROUPED_LINEAR) {
        cost->modules = op->experts;
    } else if (is_activation(op->kind) && is_between(net, op)) {
        cost->modules = experts_behind(net, op);
        cost->forward.launches *= cost->modules;
        cost->backward_input.launches *= cost->modules;
    } else if (op->kind == CS_OP_COMBINE) {
        cost->forward.bytes += 2 * in;
        cost->forward.launches++;
    } else if (op->kind == CS_OP_DISPATCH && cost->backward_input.launches > 0) {
        cost->backward_input.bytes += 2 * out;
        cost->backward_input.launches++;
    }
}

void cs_expert_kernels_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                            uint32_t places, uint32_t batch, cs_precision precision,
                            cs_op_cost *cost)
{
    const double width = cs_precision_bytes(precision);
    if (!kernels->given || op->n_inputs == 0)
        return;
    const double in = elements_of(net, op->inputs[0], batch);
    const double out = elements_of(net, op->output, batch);
    if (kernels->fused_experts)
        fuse(net, op, width * in, width * out, cost);
    else if (kernels->expert_loop && kernels->expert_modules)
        divide_modules(net, op, width * in, width * out, cost);
    if (op->kind == CS_OP_DISPATCH && places > 1)
        order_rows(kernels, op, in, out, places, width, cost);
    else if (op->kind == CS_OP_COMBINE && places > 1)
        order_rows(kernels, op, out, in, places, width, cost);
    else if (op->kind == CS_OP_TOP_K && kernels->expert_loop)
        cost->forward.launches +=
            (kernels->tokens_once ? ROUTER_KERNELS_ONCE : ROUTER_KERNELS) - COUNTED_OF_ROUTER;
    else if (op->kind == CS_OP_GROUPED_LINEAR && kernels->expert_loop && op->biases > 0 &&
             is_last_product(net, op) && cost->backward_weight.launches > 1)
        add_biases(out, width, cost);
}

bool cs_expert_kernels_wait(const cs_runtime_kernels *kernels, const cs_op *dispatch)
{
    return kernels->expert_loop && !(dispatch->capacity > 0);
}
