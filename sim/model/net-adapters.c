#include "sim/model/net-adapters.h"

#include "sim/base/text.h"
#include "sim/model/ops/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cs_field target_field = {"target", CS_FIELD_TEXT};

#define LAST_MATRIX "lm_head"

static const char *const base_formats[] = {"as_model", "nf4", "nf4_double", "int8", NULL};

const cs_field cs_adapter_fields[] = {
    {"rank", CS_FIELD_COUNT, offsetof(cs_adapters, rank), .min = 1, .max = 1 << 20,
     .doc = "features between the two matrices of an adapter"},
    {"targets", CS_FIELD_LIST, offsetof(cs_adapters, targets), .of = &target_field, .least = 1,
     .doc = "the linear layers that have an adapter, by the ends of their names in `sim model`",
     .shape = "[\"q_proj\", \"v_proj\"]"},
    {"base", CS_FIELD_CHOICE, offsetof(cs_adapters, base), .fallback = "as_model",
     .choices = base_formats,
     .doc = "how the frozen weights of linear layers are stored (QLoRA): as_model (in the model's "
            "precision), nf4 (4 bits, and 32 for each 64 weights: bitsandbytes), nf4_double (these "
            "are quantised too: 8 bits, and 32 for each 256), int8 (8 bits, and 32 for each row). "
            "Each pass over a layer makes its weights in the model's precision first"},
    {"base_wide", CS_FIELD_LIST, offsetof(cs_adapters, base_wide),
     .fallback = "[\"" LAST_MATRIX "\"]", .of = &target_field,
     .doc = "linear layers that stay in the model's precision, by the ends of their names",
     .shape = "[\"lm_head\"]"},
    {0},
};

/* Whether the last dotted parts of `name` are `target`: "self_attn.q_proj" ends with "q_proj" and
 * with "self_attn.q_proj", but not with "proj". */
static bool ends_with(const char *name, const char *target)
{
    const size_t length = strlen(name), cut = strlen(target);
    return cut > 0 && length >= cut && strcmp(name + length - cut, target) == 0 &&
           (length == cut || name[length - cut - 1] == '.');
}

static bool is_among(const cs_list *names, const cs_op *op)
{
    const char *const *ends = names->items;
    bool is = false;
    for (uint32_t i = 0; i < names->n; i++)
        is |= op->kind == CS_OP_LINEAR && ends_with(op->name, ends[i]);
    return is;
}

/* Bytes per frozen weight of a linear layer with `columns` input features; 0: the bytes of the
 * network's precision. bitsandbytes, bitsandbytes/functional.py: quantize_4bit has a scale per
 * block of 64 weights, and with compress_statistics quantises these scales in blocks of 256;
 * Linear8bitLt has a scale per row. */
static double stored_bytes(const cs_adapters *adapters, const cs_op *op, double columns)
{
    if (op->kind != CS_OP_LINEAR || op->tied || is_among(&adapters->base_wide, op))
        return 0;
    switch ((cs_base_format)adapters->base) {
    case CS_BASE_NF4:
        return 4 / 8.0 + 4 / 64.0;
    case CS_BASE_NF4_DOUBLE:
        return 4 / 8.0 + 1 / 64.0 + 4 / (64.0 * 256);
    case CS_BASE_INT8:
        return 1 + 4 / columns;
    default:
        return 0;
    }
}

/* ---- checking targets ---- */

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool is_first(const cs_net *net, uint32_t p)
{
    for (uint32_t q = 0; q < p; q++)
        if (net->ops[q].kind == CS_OP_LINEAR &&
            strcmp(last_part(net->ops[q].name), last_part(net->ops[p].name)) == 0)
            return false;
    return true;
}

static cs_status refuse(const cs_net *net, const char *target, const cs_json_place *place,
                        cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, target);
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (net->ops[p].kind == CS_OP_LINEAR && is_first(net, p))
            cs_guess_add(&guess, last_part(net->ops[p].name));
    return cs_json_invalid(place, error, "must be the end of a linear layer's name: unknown %s",
                           cs_guess_text(&guess));
}

static cs_status check_target(const cs_net *net, const char *target, const cs_json_place *place,
                              cs_error *error)
{
    uint32_t found = 0;
    for (uint32_t p = 0; p < net->n_ops; p++) {
        if (!ends_with(net->ops[p].name, target))
            continue;
        if (net->ops[p].kind == CS_OP_GROUPED_LINEAR)
            return cs_json_invalid(
                place, error,
                "must not be the name of experts, which can have no adapters (got "
                "%s)",
                net->ops[p].name);
        found += net->ops[p].kind == CS_OP_LINEAR;
    }
    return found > 0 ? CS_OK : refuse(net, target, place, error);
}

/* Checks that each name in a list is the end of a linear layer's name. The default of base_wide,
 * LAST_MATRIX, may be missing: some networks name their last matrix otherwise. */
static cs_status check_names(const cs_net *net, const cs_list *names, const char *key,
                             const cs_json_place *up, cs_error *error)
{
    const cs_json_place list = {.up = up, .key = key};
    const char *const *ends = names->items;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < names->n; i++) {
        const cs_json_place place = {.up = &list, .index = (int)i};
        if (strcmp(key, "base_wide") == 0 && strcmp(ends[i], LAST_MATRIX) == 0)
            continue;
        const cs_status one = check_target(net, ends[i], &place, error);
        status = status == CS_OK ? one : status;
    }
    return status;
}

/* ---- copying the network ---- */

typedef struct copying {
    const cs_net *from;
    cs_net *to;
    const cs_adapters *adapters;
    /* per tensor: the same tensor in the copy, including the adapter's result */
    cs_tensor *tensors;
    uint32_t *ops; /* per operator: the same operator in the copy */
} copying;

static void copy_input(copying *c, cs_tensor tensor)
{
    const cs_tensor_info *info = cs_net_tensor(c->from, tensor);
    cs_extent space = {.rank = info->shape.rank - 1};
    for (uint32_t i = 0; i < space.rank; i++)
        space.size[i] = info->shape.dims[1 + i];
    if (info->element != CS_ELEMENT_INT64)
        c->tensors[tensor] = cs_net_image(c->to, info->shape.dims[0], space);
    else if (info->loaded)
        c->tensors[tensor] = cs_net_more_token_ids(c->to, info->shape.dims[0]);
    else
        c->tensors[tensor] = cs_net_token_ids(c->to, info->shape.dims[0]);
}

/* Adds the adapter of a linear layer that computes y from x; returns y + B A x. */
static cs_tensor add_adapter(copying *c, const char *name, cs_tensor x, cs_tensor y)
{
    uint32_t mark = cs_net_enter(c->to, name);
    const cs_linear down = {.out = c->adapters->rank, .wide = true};
    const cs_shape *out = y == CS_NO_TENSOR ? NULL : &cs_net_tensor(c->to, y)->shape;
    const cs_linear up = {.out = out ? out->dims[out->rank - 1] : 1, .wide = true};
    cs_tensor z = cs_net_linear(c->to, "lora_B", cs_net_linear(c->to, "lora_A", x, &down), &up);
    z = cs_net_add(c->to, "lora_add", y, z);
    cs_net_leave(c->to, mark);
    return z;
}

static void copy_op(copying *c, uint32_t p)
{
    const cs_op *from = &c->from->ops[p];
    const cs_tensor_info *out = cs_net_tensor(c->from, from->output);
    const char *block = c->from->blocks[from->block];
    const char *name = from->name + strlen(block) + 1;
    cs_op op = *from;
    if (c->to->n_blocks <= from->block)
        cs_net_block(c->to, "%s", block);
    for (uint32_t i = 0; i < op.n_inputs; i++)
        op.inputs[i] = c->tensors[from->inputs[i]];
    op.lender = from->lender > 0 ? c->ops[from->lender - 1] + 1 : 0;
    op.frozen = op.weights + op.biases > 0;
    if (op.kind == CS_OP_LINEAR) {
        const cs_shape *in = &cs_net_tensor(c->from, from->inputs[0])->shape;
        op.stored = stored_bytes(c->adapters, from, (double)in->dims[in->rank - 1]);
    }
    c->ops[p] = c->to->n_ops;
    cs_tensor y = cs_net_usable(c->to, op.inputs, op.n_inputs)
                      ? cs_net_add_op(c->to, name, &op, &out->shape, out->element)
                      : CS_NO_TENSOR;
    if (is_among(&c->adapters->targets, from))
        y = add_adapter(c, name, op.inputs[0], y);
    c->tensors[from->output] = y;
}

static bool is_written(const cs_net *net, cs_tensor tensor)
{
    bool is = false;
    for (uint32_t p = 0; p < net->n_ops && !is; p++)
        is = net->ops[p].output == tensor;
    return is;
}

static void copy_all(copying *c)
{
    for (cs_tensor t = 0; t < c->from->n_tensors; t++)
        if (!is_written(c->from, t))
            copy_input(c, t);
    for (uint32_t p = 0; p < c->from->n_ops; p++)
        copy_op(c, p);
    if (c->from->carried > 0)
        cs_net_carry(c->to, c->tensors[c->from->carried]);
    c->to->has_precision = c->from->has_precision;
    c->to->precision = c->from->precision;
}

cs_status cs_net_adapt(cs_net *net, const cs_adapters *adapters, const cs_json_place *place,
                       cs_error *error)
{
    cs_net made;
    CS_TRY(check_names(net, &adapters->targets, "targets", place, error));
    CS_TRY(check_names(net, &adapters->base_wide, "base_wide", place, error));
    cs_net_begin(&made, net->name, error);
    copying c = {.from = net,
                 .to = &made,
                 .adapters = adapters,
                 .tensors = calloc(net->n_tensors, sizeof(*c.tensors)),
                 .ops = calloc(net->n_ops, sizeof(*c.ops))};
    cs_status status = c.tensors && c.ops ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        copy_all(&c);
        status = cs_net_end(&made);
    }
    free(c.tensors);
    free(c.ops);
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    cs_net_finish(net);
    *net = made;
    return CS_OK;
}
