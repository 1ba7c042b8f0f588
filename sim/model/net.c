#include "sim/model/net.h"

#include "sim/base/text.h"
#include "sim/base/vector.h"
#include "sim/model/ops/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life cycle ---- */

void cs_net_begin(cs_net *net, const char *name, cs_error *error)
{
    *net = (cs_net){.error = error};
    cs_arena_init(&net->arena);
    net->name = cs_arena_copy(&net->arena, name);
    if (!net->name)
        net->status = cs_error_no_memory(error);
}

void cs_net_finish(cs_net *net)
{
    if (!net)
        return;
    free(net->ops);
    free(net->tensors);
    free(net->blocks);
    cs_arena_finish(&net->arena);
    *net = (cs_net){0};
}

cs_status cs_net_end(cs_net *net)
{
    if (net->status == CS_OK && net->n_ops == 0)
        cs_net_fail(net, "a network must have at least one operator");
    net->error = NULL;
    net->place = NULL;
    return net->status;
}

/* Records an error, with as much of its place as is known: nothing, the network's description, or a
 * parameter in it. */
static void fail(cs_net *net, const char *parameter, const char *format, va_list arguments)
{
    char text[512];
    const cs_json_place key = {.up = net->place, .key = parameter};
    const char *blank = *parameter ? " " : "";
    if (net->status != CS_OK)
        return;
    cs_text_formatv(text, sizeof(text), format, arguments);
    if (!net->place)
        net->status =
            cs_error_add(net->error, CS_INVALID, "%s: %s%s%s", net->name, parameter, blank, text);
    else if (net->has_keys && *parameter)
        net->status = cs_json_invalid(&key, net->error, "%s", text);
    else
        net->status = cs_json_invalid(net->place, net->error, "%s: %s%s%s", net->name, parameter,
                                      blank, text);
}

void cs_net_fail(cs_net *net, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(net, "", format, arguments);
    va_end(arguments);
}

void cs_net_refuse(cs_net *net, const char *parameter, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(net, parameter, format, arguments);
    va_end(arguments);
}

static void out_of_memory(cs_net *net)
{
    if (net->status == CS_OK)
        net->status = cs_error_no_memory(net->error);
}

/* ---- names ---- */

void cs_net_block(cs_net *net, const char *format, ...)
{
    va_list arguments;
    if (net->status != CS_OK)
        return;
    va_start(arguments, format);
    cs_text_formatv(net->scope, sizeof(net->scope), format, arguments);
    va_end(arguments);
    const char *name = cs_arena_copy(&net->arena, net->scope);
    if (!name || !cs_vector_reserve((void **)&net->blocks, &net->cap_blocks, net->n_blocks + 1u,
                                    sizeof(*net->blocks))) {
        out_of_memory(net);
        return;
    }
    net->blocks[net->n_blocks++] = name;
}

uint32_t cs_net_enter(cs_net *net, const char *name)
{
    size_t length = strlen(net->scope);
    cs_text_format(net->scope + length, sizeof(net->scope) - length, "%s%s", length > 0 ? "." : "",
                   name);
    return (uint32_t)length;
}

void cs_net_leave(cs_net *net, uint32_t entered)
{
    net->scope[entered] = '\0';
}

static const char *full_name(cs_net *net, const char *name)
{
    char text[sizeof(net->scope) + 64];
    cs_text_format(text, sizeof(text), "%s%s%s", net->scope, net->scope[0] ? "." : "", name);
    return cs_arena_copy(&net->arena, text);
}

/* ---- tensors ---- */

const cs_tensor_info *cs_net_tensor(const cs_net *net, cs_tensor tensor)
{
    return &net->tensors[tensor];
}

uint32_t cs_net_writer(const cs_net *net, cs_tensor tensor)
{
    uint32_t p = 0;
    while (p < net->n_ops && net->ops[p].output != tensor)
        p++;
    return p;
}

uint32_t cs_net_lender(const cs_net *net, uint32_t op)
{
    uint32_t lender = net->ops[op].tied ? 0 : op;
    if (net->ops[op].lender > 0)
        return net->ops[op].lender - 1;
    while (lender < net->n_ops &&
           (net->ops[lender].tied || net->ops[lender].weights != net->ops[op].weights))
        lender++;
    return lender;
}

static bool count_elements(const cs_shape *shape, int64_t *elements)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (__builtin_mul_overflow(product, (int64_t)shape->dims[i], &product) ||
            product > CS_MOST_ELEMENTS)
            return false;
    }
    *elements = product;
    return true;
}

static cs_tensor add_tensor(cs_net *net, const char *name, const cs_shape *shape,
                            cs_element element)
{
    cs_tensor_info info = {
        .shape = *shape, .element = element, .last_reader = CS_NO_TENSOR, .differentiable = true};
    char text[CS_SHAPE_TEXT_BYTES];
    if (net->status != CS_OK)
        return CS_NO_TENSOR;
    if (!count_elements(shape, &info.elements)) {
        cs_net_fail(net, "layer %s: a tensor of %s per sample is too large", name,
                    cs_shape_text(shape, text, sizeof(text)));
        return CS_NO_TENSOR;
    }
    if (!cs_vector_reserve((void **)&net->tensors, &net->cap_tensors, net->n_tensors + 1u,
                           sizeof(info))) {
        out_of_memory(net);
        return CS_NO_TENSOR;
    }
    info.storage = net->n_storages++;
    net->tensors[net->n_tensors] = info;
    return net->n_tensors++;
}

static cs_tensor add_input(cs_net *net, const cs_shape *shape, cs_element element)
{
    cs_tensor x = add_tensor(net, "input", shape, element);
    if (x == CS_NO_TENSOR)
        return x;
    net->tensors[x].differentiable = false;
    return x;
}

cs_tensor cs_net_image(cs_net *net, uint32_t channels, cs_extent space)
{
    cs_shape shape = {1 + space.rank, {channels}};
    for (uint32_t i = 0; i < space.rank; i++)
        shape.dims[1 + i] = space.size[i];
    cs_tensor x = add_input(net, &shape, CS_ELEMENT_ACTIVATION);
    if (x != CS_NO_TENSOR)
        net->input_elements += net->tensors[x].elements;
    return x;
}

cs_tensor cs_net_token_ids(cs_net *net, uint32_t tokens)
{
    cs_tensor x = add_input(net, &(cs_shape){1, {tokens}}, CS_ELEMENT_INT64);
    if (x != CS_NO_TENSOR)
        net->input_ids += net->tensors[x].elements;
    return x;
}

cs_tensor cs_net_more_token_ids(cs_net *net, uint32_t tokens)
{
    cs_tensor x = add_input(net, &(cs_shape){1, {tokens}}, CS_ELEMENT_INT64);
    if (x != CS_NO_TENSOR)
        net->tensors[x].loaded = true;
    return x;
}

void cs_net_carry(cs_net *net, cs_tensor tensor)
{
    if (net->status == CS_OK)
        net->carried = tensor;
}

/* ---- operators ---- */

cs_op cs_net_op(cs_op_kind kind, const cs_tensor *inputs, uint32_t n_inputs)
{
    cs_op op = {.kind = kind, .n_inputs = n_inputs, .groups = 1};
    for (uint32_t i = 0; i < n_inputs; i++)
        op.inputs[i] = inputs[i];
    return op;
}

bool cs_net_usable(const cs_net *net, const cs_tensor *inputs, uint32_t n_inputs)
{
    bool usable = net->status == CS_OK && n_inputs <= CS_OP_INPUTS_MAX;
    for (uint32_t i = 0; usable && i < n_inputs; i++)
        usable = inputs[i] != CS_NO_TENSOR;
    return usable;
}

static void link_op(cs_net *net, const cs_op *op)
{
    cs_tensor_info *out = &net->tensors[op->output];
    bool shares = op->in_place || cs_op_is_view(op);
    out->differentiable = op->weights + op->biases > 0 && !op->frozen;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        net->tensors[op->inputs[i]].last_reader = net->n_ops;
        out->differentiable |= cs_op_makes_gradient(net, op, i);
    }
    if (shares)
        out->storage = net->tensors[op->inputs[0]].storage;
}

cs_tensor cs_net_add_op(cs_net *net, const char *name, cs_op *op, const cs_shape *shape,
                        cs_element element)
{
    op->output = add_tensor(net, name, shape, element);
    if (op->output == CS_NO_TENSOR)
        return CS_NO_TENSOR;
    if (net->n_blocks == 0)
        cs_net_block(net, "%s", net->name);
    op->name = full_name(net, name);
    op->block = net->n_blocks - 1;
    if (net->status != CS_OK || !op->name ||
        !cs_vector_reserve((void **)&net->ops, &net->cap_ops, net->n_ops + 1u, sizeof(*op))) {
        out_of_memory(net);
        return CS_NO_TENSOR;
    }
    op->frozen |= net->frozen && op->weights + op->biases > 0;
    link_op(net, op);
    net->ops[net->n_ops++] = *op;
    return op->output;
}

bool cs_op_makes_gradient(const cs_net *net, const cs_op *op, uint32_t i)
{
    return net->tensors[op->inputs[i]].differentiable &&
           !(cs_operator_of(op)->no_gradient_of & 1u << i);
}

/* ---- names and texts ---- */

char *cs_shape_text(const cs_shape *shape, char *text, size_t size)
{
    size_t end = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < shape->rank && end < size; i++)
        end += (size_t)snprintf(text + end, size - end, "%s%u", i > 0 ? " x " : "", shape->dims[i]);
    return text;
}
