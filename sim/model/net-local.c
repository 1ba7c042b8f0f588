#include "sim/model/net-local.h"

#include "sim/base/vector.h"
#include "sim/model/ops/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the whole network as this place holds it, in one of its layouts. */
typedef struct version {
    cs_tensor_layout layout;
    /* bits 1 << cs_layout_axis: axes along which its readers leave partial gradients */
    uint32_t partial;
    cs_tensor tensor; /* tensor of the local network */
    uint32_t next;    /* next version of the same tensor; CS_NO_TENSOR: none */
} version;

typedef struct maker {
    const cs_net *net;
    const cs_split *split;
    uint32_t place;
    cs_net_links links;
    cs_split_report report;
    cs_net_local *made;
    version *versions;
    uint32_t n_versions, cap_versions;
    uint32_t *first;    /* per tensor: the version that its writer hands on */
    uint32_t *local_of; /* per operator: its operator in the local network */
} maker;

/* The answers of the rules of all axes for one operator, combined. */
typedef struct divided_op {
    cs_tensor_layout inputs[CS_OP_INPUTS_MAX], made, output;
    uint32_t partial[CS_OP_INPUTS_MAX];
    bool shared_over_tensor, copied, ring;
    uint32_t shares;
    uint32_t n_inner;
    cs_inner_exchange inner[CS_N_LAYOUT_AXES * CS_RULE_INNER_MAX];
    cs_layout_axis inner_axis[CS_N_LAYOUT_AXES * CS_RULE_INNER_MAX];
} divided_op;

static void out_of_memory(maker *m)
{
    if (m->report.status == CS_OK)
        m->report.status = cs_error_no_memory(m->report.error);
}

/* ---- links ---- */

static void find_links(maker *m)
{
    const cs_net *net = m->net;
    cs_net_links *links = &m->links;
    uint32_t *filled = calloc(net->n_tensors, sizeof(*filled));
    links->writer = malloc(net->n_tensors * sizeof(*links->writer));
    links->first_reader = calloc(net->n_tensors + (size_t)1, sizeof(*links->first_reader));
    links->readers = calloc((size_t)net->n_ops * CS_OP_INPUTS_MAX, sizeof(*links->readers));
    if (filled && links->writer && links->first_reader && links->readers) {
        memset(links->writer, 0xff, net->n_tensors * sizeof(*links->writer));
        for (uint32_t p = 0; p < net->n_ops; p++) {
            links->writer[net->ops[p].output] = p;
            for (uint32_t i = 0; i < net->ops[p].n_inputs; i++)
                links->first_reader[net->ops[p].inputs[i] + 1]++;
        }
        for (uint32_t t = 0; t < net->n_tensors; t++)
            links->first_reader[t + 1] += links->first_reader[t];
        for (uint32_t p = 0; p < net->n_ops; p++)
            for (uint32_t i = 0; i < net->ops[p].n_inputs; i++) {
                const cs_tensor t = net->ops[p].inputs[i];
                links->readers[links->first_reader[t] + filled[t]++] = p;
            }
    } else {
        out_of_memory(m);
    }
    free(filled);
}

/* ---- parts of the local network ---- */

static uint32_t axis_size(const maker *m, cs_layout_axis axis)
{
    return cs_grid_axes(&m->split->grid, cs_layout_axes(axis)).size;
}

static cs_shape local_shape(const maker *m, const cs_tensor_layout *layout, const cs_shape *shape)
{
    return cs_layout_local(layout, shape, m->split, m->place);
}

static void add_version(maker *m, cs_tensor of, const version *added)
{
    if (!cs_vector_reserve((void **)&m->versions, &m->cap_versions, m->n_versions + 1u,
                           sizeof(*m->versions))) {
        out_of_memory(m);
        return;
    }
    version *to = &m->versions[m->n_versions];
    *to = *added;
    to->next = CS_NO_TENSOR;
    if (m->first[of] == CS_NO_TENSOR) {
        m->first[of] = m->n_versions;
    } else {
        to->next = m->versions[m->first[of]].next;
        m->versions[m->first[of]].next = m->n_versions;
    }
    m->n_versions++;
}

static cs_tensor push_op(maker *m, cs_op *op, const cs_shape *shape, cs_element element,
                         const cs_local_op *info)
{
    cs_net_local *made = m->made;
    const uint32_t block = op->block;
    cs_net_add_op(&made->net, op->name, op, shape, element);
    if (m->report.status == CS_OK)
        m->report.status = made->net.status;
    if (m->report.status != CS_OK)
        return CS_NO_TENSOR;
    if (!cs_vector_reserve((void **)&made->ops, &made->cap_ops, made->net.n_ops,
                           sizeof(*made->ops))) {
        out_of_memory(m);
        return CS_NO_TENSOR;
    }
    made->net.ops[made->net.n_ops - 1].block = block;
    made->ops[made->net.n_ops - 1] = *info;
    return op->output;
}

static void push_exchange(maker *m, cs_op_exchange exchange)
{
    if (!cs_net_local_add_exchange(m->made, exchange))
        out_of_memory(m);
}

/* ---- exchanges from layouts ---- */

/* weight_moves: the bias that an exchange adds has a gradient. */
const cs_operator cs_operator_exchange = {
    .name = "exchange",
    .group = "elementwise",
    .each = {.weight_moves = 1},
};

/* A change of a tensor's layout; `shape` is the tensor's shape in the whole network. */
typedef struct change {
    cs_shape shape;
    cs_tensor_layout from, to;
    bool operand,
        gradient; /* the tensor gathered forward (backward) is an operand of a linear layer */
} change;

/* Adds the exchange along one axis, if one is needed. Its size is counted before a sum, after a
 * gather, and on the larger side of an all-to-all (the busiest place). Tensor-parallel places
 * gather operands after they were cast (TransformerEngine, pytorch/distributed.py:
 * gather_along_first_dim with a quantizer), unless the split says otherwise. */
static void push_axis(maker *m, const change *c, cs_tensor_layout *now, cs_layout_axis axis,
                      bool backward)
{
    const cs_shape before = local_shape(m, now, &c->shape);
    const cs_division from = now->axes[axis];
    cs_exchange_kind kind;
    now->axes[axis] = c->to.axes[axis];
    if (axis_size(m, axis) == 1 || !cs_division_exchange(axis, from, c->to.axes[axis], &kind))
        return;
    const cs_shape after = local_shape(m, now, &c->shape);
    const int64_t sent = cs_shape_elements(&before), got = cs_shape_elements(&after);
    const bool gathers = kind == CS_EXCHANGE_ALL_GATHER;
    const bool busiest = kind == CS_EXCHANGE_ALL_TO_ALL && got > sent;
    const bool cast = gathers && axis == CS_LAYOUT_TENSOR && !m->split->wide_gathers &&
                      (backward ? c->gradient : c->operand);
    push_exchange(m, (cs_op_exchange){.op = m->made->net.n_ops - 1,
                                      .kind = (uint8_t)kind,
                                      .axes = (uint8_t)cs_layout_axes(axis),
                                      .backward = backward,
                                      .element = cast ? CS_ELEMENT_OPERAND : CS_ELEMENT_ACTIVATION,
                                      .elements = gathers || busiest ? got : sent});
}

/* Changes the layout of a local tensor for operator `origin` and adds `biases` to it; returns the
 * new tensor. */
static cs_tensor exchange(maker *m, cs_tensor tensor, const change *c, uint32_t partial,
                          uint32_t origin, int64_t biases)
{
    const cs_op *of = &m->net->ops[origin];
    const cs_shape before = local_shape(m, &c->from, &c->shape);
    const cs_shape after = local_shape(m, &c->to, &c->shape);
    cs_op op = cs_net_op(CS_OP_EXCHANGE, &tensor, 1);
    cs_local_op info = {.origin = origin,
                        .weight_axes = CS_AXES_GRADIENT,
                        .whole = c->shape,
                        .read = c->from,
                        .made = c->to,
                        .partial = partial};
    if (m->report.status != CS_OK)
        return CS_NO_TENSOR;
    op.name = of->name;
    op.block = of->block;
    op.biases = biases;
    op.in_place =
        cs_shape_elements(&before) == cs_shape_elements(&after) && before.dims[0] == after.dims[0];
    if (c->to.axes[CS_LAYOUT_TENSOR].part == CS_DIVIDED && biases > 0)
        info.weight_axes = CS_AXES_TENSOR;
    const cs_tensor out = push_op(m, &op, &after, CS_ELEMENT_ACTIVATION, &info);
    if (out == CS_NO_TENSOR)
        return out;
    cs_tensor_layout now = cs_layout_cut(&c->from, &c->to);
    for (int axis = 0; axis < CS_N_LAYOUT_AXES; axis++)
        push_axis(m, c, &now, (cs_layout_axis)axis, false);
    if (!m->made->net.tensors[tensor].differentiable)
        return out;
    const change back = {c->shape, cs_layout_gradient(&c->to, partial),
                         cs_layout_gradient(&c->from, 0), c->operand, c->gradient};
    now = cs_layout_cut(&back.from, &back.to);
    for (int axis = CS_N_LAYOUT_AXES; axis-- > 0;)
        push_axis(m, &back, &now, (cs_layout_axis)axis, true);
    return out;
}

static bool is_narrowed(const cs_op *op)
{
    return cs_op_is_product(op) && !op->wide;
}

/* Returns the local tensor in the layout that operator p needs; adds an exchange if that layout
 * does not exist yet. */
static cs_tensor version_for(maker *m, cs_tensor tensor, const cs_tensor_layout *layout,
                             uint32_t partial, uint32_t p)
{
    const version *first = &m->versions[m->first[tensor]];
    if (cs_layout_equal(&first->layout, layout) && partial == 0)
        return first->tensor;
    for (uint32_t v = first->next; v != CS_NO_TENSOR; v = m->versions[v].next)
        if (cs_layout_equal(&m->versions[v].layout, layout) && m->versions[v].partial == partial)
            return m->versions[v].tensor;
    const change c = {cs_net_tensor(m->net, tensor)->shape, first->layout, *layout,
                      is_narrowed(&m->net->ops[p]), false};
    version made = {.layout = *layout, .partial = partial};
    made.tensor = exchange(m, first->tensor, &c, partial, p, 0);
    add_version(m, tensor, &made);
    return made.tensor;
}

/* ---- local operators ---- */

static cs_split_way way_of(const cs_split *split, cs_layout_axis axis)
{
    switch (axis) {
    case CS_LAYOUT_TENSOR:
        return split->tensor_method == CS_TENSOR_FILTER    ? CS_SPLIT_FILTER
               : split->tensor_method == CS_TENSOR_CHANNEL ? CS_SPLIT_CHANNEL
                                                           : CS_SPLIT_PAIRS;
    case CS_LAYOUT_CONTEXT:
        return CS_SPLIT_CONTEXT;
    case CS_LAYOUT_EXPERT:
        return CS_SPLIT_EXPERT;
    case CS_LAYOUT_EXPERT_TENSOR:
        return CS_SPLIT_EXPERT_TENSOR;
    default:
        return CS_SPLIT_SPACE;
    }
}

static void ask_rule(maker *m, const cs_op *op, cs_layout_axis axis, divided_op *d)
{
    cs_division given[CS_OP_INPUTS_MAX];
    cs_rule_answer answer = {0};
    cs_layout_rule *rule = cs_operator_of(op)->split[way_of(m->split, axis)];
    const cs_rule_query query = {.net = m->net,
                                 .links = &m->links,
                                 .split = m->split,
                                 .op = op,
                                 .axis = axis,
                                 .size = axis_size(m, axis),
                                 .given = given,
                                 .report = &m->report};
    for (uint32_t i = 0; i < op->n_inputs; i++)
        given[i] = m->versions[m->first[op->inputs[i]]].layout.axes[axis];
    if (rule)
        rule(&query, &answer);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        d->inputs[i].axes[axis] = answer.inputs[i];
        d->partial[i] |= (uint32_t)answer.partial[i] << axis;
    }
    d->made.axes[axis] = answer.made;
    d->output.axes[axis] = answer.output;
    d->shared_over_tensor |= answer.shared && axis == CS_LAYOUT_TENSOR;
    d->copied |= answer.copied;
    d->shares = answer.shares > 0 ? answer.shares : d->shares;
    d->ring |= answer.ring;
    for (uint32_t i = 0; i < answer.n_inner; i++) {
        d->inner_axis[d->n_inner] = axis;
        d->inner[d->n_inner++] = answer.inner[i];
    }
}

/* Adds the shifts of ring attention. In forward, keys and values move to the next place in each
 * step except the last. Backward starts with the keys and values of the last step and moves them
 * back; their gradients follow one step later and are complete when they are back at their own
 * place. */
static void push_ring(maker *m)
{
    const cs_net *net = &m->made->net;
    const cs_op *op = &net->ops[net->n_ops - 1];
    const uint32_t steps = m->made->ops[net->n_ops - 1].steps;
    cs_op_exchange shift = {.op = net->n_ops - 1,
                            .kind = CS_EXCHANGE_SHIFT,
                            .axes = CS_AXES_CONTEXT,
                            .beside = true,
                            .element = CS_ELEMENT_ACTIVATION};
    for (uint32_t step = 0; step < steps; step++) {
        const bool is_end = step == 0 || step == steps - 1;
        const int64_t keys = cs_net_tensor(net, op->inputs[1])->elements +
                             cs_net_tensor(net, op->inputs[2])->elements;
        shift.step = step;
        shift.backward = false;
        shift.elements = keys;
        if (step > 0)
            push_exchange(m, shift);
        shift.backward = true;
        shift.elements = is_end ? keys : 2 * keys;
        push_exchange(m, shift);
    }
}

/* Adds the exchange of halo rows with the neighbours along one axis, for a tensor that the operator
 * reads or makes. Every place counts as many rows as the place with the most, although a place at
 * the edge of an image has a neighbour on one side only. Rows that were received earlier, along
 * other axes, are handed on, so corners are included. */
static void push_halo(maker *m, const divided_op *d, uint32_t i)
{
    const cs_inner_exchange *inner = &d->inner[i];
    const cs_net *net = &m->made->net;
    const uint32_t p = net->n_ops - 1;
    const cs_op *op = &net->ops[p];
    cs_local_op *info = &m->made->ops[p];
    const cs_tensor of = inner->of == CS_HALO_OF_GRADIENT ? op->output : op->inputs[0];
    cs_shape shape = cs_net_tensor(net, of)->shape;
    for (uint32_t j = 0; j < i; j++)
        if (d->inner[j].kind == CS_EXCHANGE_HALO && d->inner[j].of == inner->of)
            shape.dims[d->inner[j].dim] += d->inner[j].held.before + d->inner[j].held.behind;
    const int64_t row = cs_shape_elements(&shape) / shape.dims[inner->dim];
    *(inner->backward ? &info->gradient_halo : &info->halo) +=
        row * (inner->held.before + inner->held.behind);
    push_exchange(m, (cs_op_exchange){.op = p,
                                      .step = inner->of == CS_HALO_OF_GRADIENT ? CS_BEHIND : 0,
                                      .kind = (uint8_t)inner->kind,
                                      .axes = (uint8_t)cs_layout_axes(d->inner_axis[i]),
                                      .backward = inner->backward,
                                      .element = (uint8_t)inner->element,
                                      .elements = row * inner->halo.before,
                                      .elements_back = row * inner->halo.behind});
}

static void push_inner(maker *m, const divided_op *d)
{
    const cs_net *net = &m->made->net;
    for (uint32_t i = 0; i < d->n_inner; i++) {
        const cs_op *op = &net->ops[net->n_ops - 1];
        if (d->inner[i].kind == CS_EXCHANGE_HALO)
            push_halo(m, d, i);
        else
            push_exchange(m, (cs_op_exchange){.op = net->n_ops - 1,
                                              .kind = (uint8_t)d->inner[i].kind,
                                              .axes = (uint8_t)cs_layout_axes(d->inner_axis[i]),
                                              .backward = d->inner[i].backward,
                                              .element = (uint8_t)d->inner[i].element,
                                              .elements = d->inner[i].elements(net, op)});
    }
}

/* Adds the exchanges of synchronised batch norm: forward sums the values and their squares,
 * backward sums the gradients and their products with the values, each a float32 per channel (Zhang
 * et al., CVPR 2018, section 3.2). */
static void push_statistics(maker *m)
{
    const uint32_t p = m->made->net.n_ops - 1;
    const cs_shape *shape = &cs_net_tensor(&m->made->net, m->made->net.ops[p].output)->shape;
    if (cs_grid_axes(&m->split->grid, CS_AXES_GRADIENT).size == 1)
        return;
    for (int backward = 0; backward < 2; backward++)
        push_exchange(m, (cs_op_exchange){.op = p,
                                          .step = backward ? CS_BEHIND : 0,
                                          .kind = CS_EXCHANGE_ALL_REDUCE,
                                          .axes = CS_AXES_GRADIENT,
                                          .backward = backward,
                                          .element = CS_ELEMENT_FLOAT32,
                                          .once = true,
                                          .elements = 2 * (int64_t)shape->dims[0]});
}

/* Adds the local operator itself. Its inputs and its result have the layouts that its rules ask
 * for. */
static cs_tensor add_local(maker *m, uint32_t p, const divided_op *d, int64_t *biases_left)
{
    const cs_op *of = &m->net->ops[p];
    const cs_tensor_info *out = cs_net_tensor(m->net, of->output);
    const cs_operator *kind = cs_operator_of(of);
    const cs_grid *grid = &m->split->grid;
    const cs_shape whole = cs_net_tensor(m->net, of->inputs[0])->shape;
    const cs_cut part = {.net = m->net,
                         .local = &m->made->net,
                         .split = m->split,
                         .place = m->place,
                         .of = of,
                         .whole_in = whole,
                         .whole_out = out->shape,
                         .in = local_shape(m, &d->inputs[0], &whole),
                         .out = local_shape(m, &d->made, &out->shape),
                         .made = &d->made,
                         .shares = d->shares,
                         .ring = d->ring};
    cs_op op = *of;
    cs_local_op info = {.origin = p, .whole = out->shape, .read = d->inputs[0], .made = d->made};
    for (uint32_t i = 0; i < of->n_inputs; i++) {
        op.inputs[i] = version_for(m, of->inputs[i], &d->inputs[i], d->partial[i], p);
        if (op.inputs[i] == CS_NO_TENSOR)
            return CS_NO_TENSOR;
    }
    if (kind->cut)
        kind->cut(&part, &op);
    info.steps = op.attention.steps;
    bool partial = false;
    for (int axis = 0; axis < CS_N_LAYOUT_AXES; axis++)
        partial |= axis_size(m, (cs_layout_axis)axis) > 1 && d->made.axes[axis].part == CS_PARTIAL;
    if (partial && !kind->of_experts) { /* the exchange adds the bias to the sum */
        *biases_left = op.biases;
        op.biases = 0;
    }
    info.weight_axes = CS_AXES_GRADIENT;
    if (kind->of_experts)
        info.weight_axes = grid->tensor * grid->expert * grid->expert_tensor > 1
                               ? CS_AXES_EXPERT_DATA
                               : CS_AXES_GRADIENT;
    else if (op.weights + op.biases > 0)
        info.weight_axes = d->shared_over_tensor ? CS_AXES_TENSOR
                           : d->copied           ? CS_AXES_COPIES
                                                 : CS_AXES_GRADIENT;
    m->local_of[p] = m->made->net.n_ops;
    const uint32_t lender = of->tied ? cs_net_lender(m->net, p) : p;
    op.lender = lender < p ? m->local_of[lender] + 1 : 0;
    const cs_tensor made = push_op(m, &op, &part.out, out->element, &info);
    if (made != CS_NO_TENSOR)
        push_inner(m, d);
    if (made != CS_NO_TENSOR && kind->batch_statistics && m->split->synchronised_norm)
        push_statistics(m);
    if (made != CS_NO_TENSOR && info.steps > 1)
        push_ring(m);
    return made;
}

static void add_operator(maker *m, uint32_t p)
{
    const cs_op *of = &m->net->ops[p];
    divided_op d = {0};
    int64_t biases = 0;
    for (int axis = 0; axis < CS_N_LAYOUT_AXES; axis++)
        if (axis_size(m, (cs_layout_axis)axis) > 1)
            ask_rule(m, of, (cs_layout_axis)axis, &d);
    if (m->report.status != CS_OK)
        return;
    version out = {.layout = d.output, .tensor = add_local(m, p, &d, &biases)};
    if (out.tensor != CS_NO_TENSOR && !cs_layout_equal(&d.made, &d.output)) {
        const change c = {cs_net_tensor(m->net, of->output)->shape, d.made, d.output, false,
                          is_narrowed(of)};
        out.tensor = exchange(m, out.tensor, &c, 0, p, biases);
    }
    if (m->net->carried > 0 && of->output == m->net->carried && out.tensor != CS_NO_TENSOR)
        m->made->net.carried = out.tensor;
    add_version(m, of->output, &out);
}

/* ---- inputs ---- */

/* Divides an image: each place loads its own part. */
static void divide_image(maker *m, const cs_shape *shape, cs_tensor_layout *layout)
{
    for (cs_layout_axis axis = CS_LAYOUT_SPACE_X; axis <= CS_LAYOUT_SPACE_Z; axis++) {
        const uint32_t parts = axis_size(m, axis), dim = cs_space_dim(axis);
        if (parts == 1)
            continue;
        if (dim >= shape->rank)
            cs_split_refuse(&m->report, "space",
                            "must have %u numbers at most, as its images have dimensions (got %u)",
                            shape->rank - 1, dim);
        else if (shape->dims[dim] < parts)
            cs_split_refuse_size(&m->report, "space", axis, (cs_nearest){shape->dims[dim], 0, true},
                                 "must be at most the %u rows of the images (got %u)",
                                 shape->dims[dim], parts);
        else
            layout->axes[axis] = cs_divided(dim);
    }
}

static void divide_tokens(maker *m, uint32_t tokens, cs_tensor_layout *layout)
{
    const uint32_t context = m->split->grid.context;
    if (context == 1)
        return;
    layout->axes[CS_LAYOUT_CONTEXT] = cs_divided(0);
    if (tokens % context != 0)
        cs_split_refuse_size(&m->report, "context", CS_LAYOUT_CONTEXT,
                             cs_divisors_next_to(tokens, context),
                             "must divide the %u tokens of a sample (got %u)", tokens, context);
}

static void add_input(maker *m, cs_tensor tensor)
{
    const cs_tensor_info *info = cs_net_tensor(m->net, tensor);
    const bool ids = info->element == CS_ELEMENT_INT64;
    cs_net *net = &m->made->net;
    version in = {0};
    if (!ids)
        divide_image(m, &info->shape, &in.layout);
    else
        divide_tokens(m, info->shape.dims[0], &in.layout);
    if (m->report.status != CS_OK)
        return;
    const cs_shape shape = local_shape(m, &in.layout, &info->shape);
    cs_extent space = {.rank = shape.rank - 1};
    for (uint32_t i = 0; i < space.rank; i++)
        space.size[i] = shape.dims[1 + i];
    in.tensor = ids && info->loaded ? cs_net_more_token_ids(net, shape.dims[0])
                : ids               ? cs_net_token_ids(net, shape.dims[0])
                                    : cs_net_image(net, shape.dims[0], space);
    if (in.tensor == CS_NO_TENSOR)
        out_of_memory(m);
    add_version(m, tensor, &in);
}

/* ---- the whole local network ---- */

static void check_axes(maker *m)
{
    const char *until = m->split->space_until;
    bool has_experts = false;
    for (uint32_t p = 0; p < m->net->n_ops; p++)
        has_experts |= cs_operator_of(&m->net->ops[p])->of_experts;
    if (until && cs_space_end(m->net, until) == m->net->n_ops)
        cs_split_refuse(&m->report, "space_until",
                        "must name an operator or a block of the network (got \"%s\"); `sim model "
                        "%s --json` lists them",
                        until, m->net->name);
    if (m->split->grid.context > 1 && m->net->input_ids == 0)
        cs_split_refuse(&m->report, "context",
                        "must be 1 for a network that reads no tokens (got %u)",
                        m->split->grid.context);
    if (m->split->grid.expert > 1 && !has_experts)
        cs_split_refuse(&m->report, "expert", "must be 1 for a network without experts (got %u)",
                        m->split->grid.expert);
}

static void make_network(maker *m)
{
    cs_net *net = &m->made->net;
    find_links(m);
    check_axes(m);
    m->first = malloc(m->net->n_tensors * sizeof(*m->first));
    m->local_of = calloc(m->net->n_ops, sizeof(*m->local_of));
    if (!m->first || !m->local_of)
        out_of_memory(m);
    else
        memset(m->first, 0xff, m->net->n_tensors * sizeof(*m->first));
    cs_net_begin(net, m->net->name, m->report.error);
    for (uint32_t b = 0; b < m->net->n_blocks; b++)
        cs_net_block(net, "%s", m->net->blocks[b]);
    net->scope[0] = '\0';
    for (uint32_t t = 0; m->report.status == CS_OK && t < m->net->n_tensors; t++)
        if (m->links.writer[t] == CS_NO_TENSOR)
            add_input(m, t);
    for (uint32_t p = 0; m->report.status == CS_OK && p < m->net->n_ops; p++)
        add_operator(m, p);
    if (m->report.status == CS_OK)
        m->report.status = cs_net_end(net);
    if (m->report.status == CS_OK && !cs_net_local_order_exchanges(m->made, m->split))
        out_of_memory(m);
}

/* Makes the local network; fills the report if the split does not fit. */
static cs_status make_or_refuse(const cs_net *net, const cs_split *split, uint32_t place,
                                cs_net_local *local, cs_split_report *report)
{
    cs_net_local made = {0};
    maker m = {.net = net, .split = split, .place = place, .report = *report, .made = &made};
    make_network(&m);
    free(m.links.writer);
    free(m.links.first_reader);
    free(m.links.readers);
    free(m.versions);
    free(m.first);
    free(m.local_of);
    *report = m.report;
    if (report->status == CS_OK)
        *local = made;
    else
        cs_net_local_finish(&made);
    return report->status;
}

/* ---- proposing sizes that fit ---- */

static uint32_t *size_of_axis(cs_grid *grid, cs_layout_axis axis)
{
    switch (axis) {
    case CS_LAYOUT_TENSOR:
        return &grid->tensor;
    case CS_LAYOUT_CONTEXT:
        return &grid->context;
    case CS_LAYOUT_SPACE_X:
    case CS_LAYOUT_SPACE_Y:
    case CS_LAYOUT_SPACE_Z:
        return &grid->space[axis - CS_LAYOUT_SPACE_X];
    case CS_LAYOUT_EXPERT:
        return &grid->expert;
    default:
        return &grid->expert_tensor;
    }
}

/* From a size that one operator accepts, finds the next size in the same direction that all
 * operators accept: if another operator refuses a size, its report says which size to try next. If
 * it does not say so, returns the first size when searching below, and 0 (none) when searching
 * above. */
static uint32_t taken_by_all(const cs_net *net, const cs_split *split, cs_layout_axis axis,
                             uint32_t number, bool above)
{
    uint32_t at = number;
    while (at > 0) {
        cs_net_local local = {0};
        cs_split tried = *split;
        cs_split_report report = {.net = net};
        *size_of_axis(&tried.grid, axis) = at;
        if (make_or_refuse(net, &tried, 0, &local, &report) == CS_OK) {
            cs_net_local_finish(&local);
            return at;
        }
        const uint32_t next = above ? report.nearest.above : report.nearest.below;
        const bool goes_on = report.sized && report.axis == axis && (above ? next > at : next < at);
        if (!goes_on)
            return above ? 0 : number;
        at = next;
    }
    return above ? 0 : number;
}

/* Proposes a size that all operators accept, and smaller sizes in case the number of devices does
 * not allow it: first the nearest smaller numbers, then halves. */
static void propose(const cs_split *split, const cs_split_report *report, uint32_t number,
                    uint32_t least, cs_error *error)
{
    const uint32_t *space = split->grid.space;
    char pointer[64];
    snprintf(pointer, sizeof(pointer), "/parallel/%s", report->key);
    for (uint32_t n = number; n >= least; n = number - n < 8 ? n - 1 : n / 2) {
        const bool is_space =
            report->axis >= CS_LAYOUT_SPACE_X && report->axis <= CS_LAYOUT_SPACE_Z;
        const uint32_t at = is_space ? report->axis - CS_LAYOUT_SPACE_X : 0;
        if (is_space)
            cs_error_propose(error, n == number, pointer, "[%u, %u, %u]", at == 0 ? n : space[0],
                             at == 1 ? n : space[1], at == 2 ? n : space[2]);
        else
            cs_error_propose(error, n == number, pointer, "%u", n);
    }
}

/* Reports why a split does not fit, and which sizes would: "must divide the 12 heads of NAME (got
 * 8): 6 or 12 would". In a scenario, these sizes are also proposed as corrections. A limit in the
 * message that all operators accept is not repeated. */
static cs_status report_mistake(const cs_split *split, const cs_split_report *report,
                                const cs_json_place *at, cs_error *error)
{
    const cs_json_place key = {.up = at, .key = report->key};
    char would[CS_NEAREST_TEXT_BYTES] = "";
    cs_nearest nearest = {0};
    if (!report->key)
        return report->status;
    if (report->sized) {
        const cs_nearest named = report->nearest;
        nearest.below = taken_by_all(report->net, split, report->axis, named.below, false);
        nearest.above = taken_by_all(report->net, split, report->axis, named.above, true);
        if (!named.is_limit || nearest.below != named.below)
            cs_nearest_text(nearest, would, sizeof(would));
    }
    if (!at)
        return cs_error_add(error, CS_INVALID, "%s: %s %s%s%s", report->net->name, report->key,
                            report->text, would[0] ? ": " : "", would);
    (void)cs_json_invalid(&key, error, "%s", report->text);
    if (report->sized) {
        propose(split, report, nearest.below, 1, error);
        if (nearest.above > 0)
            propose(split, report, nearest.above, nearest.above, error);
    }
    return CS_INVALID;
}

cs_status cs_net_local_make(const cs_net *net, const cs_split *split, uint32_t place,
                            const cs_json_place *at, cs_net_local *local, cs_error *error)
{
    cs_split_report report = {.net = net, .error = error};
    const cs_status status = make_or_refuse(net, split, place, local, &report);
    return status == CS_OK ? CS_OK : report_mistake(split, &report, at, error);
}

void cs_net_local_finish(cs_net_local *local)
{
    if (!local)
        return;
    cs_net_finish(&local->net);
    free(local->ops);
    free(local->exchanges);
    *local = (cs_net_local){0};
}

cs_status cs_net_split_check(const cs_net *net, const cs_split *split, const cs_json_place *at,
                             cs_error *error)
{
    cs_net_local local = {0};
    cs_status status = cs_net_local_make(net, split, 0, at, &local, error);
    cs_net_local_finish(&local);
    return status;
}
