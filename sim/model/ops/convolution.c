/* Convolutions and poolings: a window that slides over an image. They are split over devices as in
 * ParaDL: Kahira et al., HPDC 2021, section 3.
 *
 * filter    Each convolution and linear layer computes a part of its filters or features, which are
 *           then gathered: all-gather in forward. It reads all channels and makes a partial sum of
 *           their gradient: all-reduce in backward (3.3). All other operators, batch norm included,
 *           compute all channels on every device (4.5.2).
 * channel   Each convolution and linear layer except the first reads a part of its channels and
 *           makes a partial result: all-reduce in forward, and an all-gather of the parts'
 *           gradients in backward (3.3, 4.5.1). A convolution with groups makes the filters of its
 *           own groups, which are gathered.
 * space     Each device has a part of the rows of every image, from the network's input up to an
 *           operator that has no rule for space (a linear layer, a pooling to a given size, a view)
 *           or up to space_until. There the parts are gathered, and from then on all devices
 *           compute the same (4.5.1). Convolutions and poolings read rows of neighbouring devices,
 *           and in backward the gradients of the neighbours' outputs (halo.h). Only the device that
 *           computed a max pooling knows where its maxima are, so this device also makes the
 *           gradients of the neighbours' rows and returns them. Batch norm takes the statistics of
 *           the device's own rows, unless they are synchronised.
 *
 * Parts need not be equal; the first is one of the largest (layout.h). */
#include "sim/model/ops/operator.h"

#include <stdio.h>

/* ---- builders ---- */

static cs_extent everywhere(uint32_t rank, uint32_t value)
{
    return (cs_extent){rank, {value, value, value}};
}

static cs_extent or_else(uint32_t rank, const uint32_t values[CS_SPACE_MAX], uint32_t fallback)
{
    cs_extent space = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        space.size[i] = values[i] ? values[i] : fallback;
    return space;
}

/* Returns the number of pixels that a window spans, from the first to the last. */
static uint64_t span(const cs_op *op, uint32_t i)
{
    return (uint64_t)op->dilation.size[i] * (op->kernel.size[i] - 1) + 1;
}

static void out_of_pixels(cs_net *net, const char *name, const cs_op *op, const cs_shape *in)
{
    char space[CS_SHAPE_TEXT_BYTES], kernel[CS_SHAPE_TEXT_BYTES], text[256];
    cs_shape pixels = {in->rank - 1, {0}}, window = {op->kernel.rank, {0}};
    for (uint32_t i = 0; i < op->kernel.rank; i++) {
        pixels.dims[i] = in->dims[1 + i];
        window.dims[i] = (uint32_t)span(op, i);
    }
    snprintf(text, sizeof(text),
             "runs out of pixels: its input is %s, padding %u, its kernel%s %s; the image must be "
             "larger",
             cs_shape_text(&pixels, space, sizeof(space)), op->pad.size[0],
             op->dilation.size[0] > 1 ? " spans" : "",
             cs_shape_text(&window, kernel, sizeof(kernel)));
    cs_net_fail_at(net, name, text);
}

/* Adds an operator that slides its kernel over the image; the result has `out` channels. */
static cs_tensor add_window(cs_net *net, const char *name, cs_op *op, uint32_t out)
{
    const cs_shape in = cs_net_tensor(net, op->inputs[0])->shape;
    cs_shape shape = {in.rank, {out}};
    for (uint32_t i = 0; i < op->kernel.rank; i++) {
        uint64_t padded = (uint64_t)in.dims[1 + i] + 2 * (uint64_t)op->pad.size[i];
        if (padded < span(op, i)) {
            out_of_pixels(net, name, op, &in);
            return CS_NO_TENSOR;
        }
        shape.dims[1 + i] = (uint32_t)((padded - span(op, i)) / op->stride.size[i] + 1);
    }
    return cs_net_add_op(net, name, op, &shape, CS_ELEMENT_ACTIVATION);
}

static bool has_space(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return false;
    if (cs_net_tensor(net, x)->shape.rank >= 2)
        return true;
    cs_net_fail_at(net, name, "needs an image");
    return false;
}

cs_tensor cs_net_conv(cs_net *net, const char *name, cs_tensor x, const cs_conv *conv)
{
    if (!has_space(net, name, x))
        return CS_NO_TENSOR;
    const cs_shape *in = &cs_net_tensor(net, x)->shape;
    uint32_t rank = in->rank - 1;
    cs_op op = cs_net_op(CS_OP_CONV, &x, 1);
    op.kernel = or_else(rank, conv->kernels, conv->kernel);
    op.stride = everywhere(rank, conv->stride ? conv->stride : 1);
    op.pad = or_else(rank, conv->pads, conv->pad);
    op.dilation = everywhere(rank, conv->dilation ? conv->dilation : 1);
    op.groups = conv->groups ? conv->groups : 1;
    if (in->dims[0] % op.groups != 0 || conv->out % op.groups != 0) {
        cs_net_fail_at(net, name, "has channels that its groups do not divide");
        return CS_NO_TENSOR;
    }
    op.weights = (int64_t)conv->out * (in->dims[0] / op.groups);
    for (uint32_t i = 0; i < rank; i++)
        op.weights *= op.kernel.size[i];
    op.biases = conv->bias ? conv->out : 0;
    return add_window(net, name, &op, conv->out);
}

static cs_tensor add_pool(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x,
                          const cs_window *pool)
{
    if (!has_space(net, name, x))
        return CS_NO_TENSOR;
    const cs_shape *in = &cs_net_tensor(net, x)->shape;
    uint32_t rank = in->rank - 1;
    cs_op op = cs_net_op(kind, &x, 1);
    op.kernel = everywhere(rank, pool->kernel);
    op.stride = everywhere(rank, pool->stride ? pool->stride : pool->kernel);
    op.pad = everywhere(rank, pool->pad);
    op.dilation = everywhere(rank, pool->dilation ? pool->dilation : 1);
    return add_window(net, name, &op, in->dims[0]);
}

cs_tensor cs_net_max_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool)
{
    return add_pool(net, name, CS_OP_MAX_POOL, x, pool);
}

cs_tensor cs_net_avg_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool)
{
    return add_pool(net, name, CS_OP_AVG_POOL, x, pool);
}

cs_tensor cs_net_adaptive_pool(cs_net *net, const char *name, cs_tensor x, uint32_t size)
{
    if (!has_space(net, name, x))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ADAPTIVE_POOL, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    for (uint32_t i = 1; i < shape.rank; i++)
        shape.dims[i] = size;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

static cs_tensor make_conv(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    cs_conv conv = {.out = cs_made_features(m),
                    .stride = cs_size_or(&e->stride, 0, 1),
                    .dilation = cs_size_or(&e->dilation, 0, 1),
                    .groups = e->groups,
                    .bias = e->biases > 0};
    for (uint32_t i = 0; i < e->kernel.n && i < CS_SPACE_MAX; i++) {
        conv.kernels[i] = cs_size_at(&e->kernel, i);
        conv.pads[i] = cs_size_or(&e->pad, i, 0);
    }
    return cs_net_conv(m->net, m->name, m->in[0], &conv);
}

static cs_tensor make_pool(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_window window = {.kernel = cs_size_at(&e->kernel, 0),
                              .stride = cs_size_or(&e->stride, 0, 0),
                              .pad = cs_size_or(&e->pad, 0, 0),
                              .dilation = cs_size_or(&e->dilation, 0, 1)};
    return add_pool(m->net, m->name, (cs_op_kind)e->kind, m->in[0], &window);
}

static cs_tensor make_adaptive_pool(cs_op_making *m)
{
    const cs_list *made = &m->entry->output_shape;
    return cs_net_adaptive_pool(m->net, m->name, m->in[0], cs_size_at(made, made->n - 1));
}

/* ---- cost ---- */

/* Computes the cost of a convolution: an output is a sum over the weights of its channel. */
static void cost_conv(const cs_cost_query *s, cs_op_cost *cost)
{
    double channels = s->out->shape.dims[0];
    cs_cost_product(s, s->y * (double)s->op->weights / channels, cost);
    cs_winograd_passes(s->net, s->op, (uint32_t)s->batch, &cost->forward.winograd,
                       &cost->backward_input.winograd, &cost->backward_weight.winograd);
}

static void cost_pool(const cs_cost_query *s, cs_op_cost *cost)
{
    double window = 1;
    cs_cost_elementwise(s, cost);
    for (uint32_t i = 0; i < s->op->kernel.rank; i++)
        window *= s->op->kernel.size[i];
    cost->forward.bytes += s->width * s->x;
    cost->backward_input.bytes += s->width * s->x;
    cost->forward.flop += window * s->y;
}

/* Computes the cost of a max pooling, which saves the index of each maximum. */
static void cost_max_pool(const cs_cost_query *s, cs_op_cost *cost)
{
    cost_pool(s, cost);
    cost->extra_kept_bytes = (int64_t)(CS_INDEX_BYTES * s->y);
}

/* Computes the cost of an adaptive pooling. A mean over all pixels saves nothing. */
static void cost_adaptive_pool(const cs_cost_query *s, cs_op_cost *cost)
{
    cost_pool(s, cost);
    cost->keeps_input &= s->out->elements != s->out->shape.dims[0];
}

bool cs_op_is_pointwise(const cs_op *op)
{
    if (op->kind != CS_OP_CONV || op->groups != 1)
        return false;
    for (uint32_t i = 0; i < op->kernel.rank; i++)
        if (op->kernel.size[i] != 1 || op->stride.size[i] != 1 || op->pad.size[i] != 0)
            return false;
    return true;
}

/* ---- split by filters and channels ---- */

static uint32_t channels_dim(const cs_rule_query *q, cs_tensor tensor)
{
    return cs_operator_of(q->op)->channels_first ? 0 : cs_features_dim(q->net, tensor);
}

static void at_most(const cs_rule_query *q, uint32_t count, const char *of_what)
{
    if (count < q->size)
        cs_rule_refuse(q, (cs_nearest){count, 0, true}, "must be at most the %u %s of %s (got %u)",
                       count, of_what, q->op->name, q->size);
}

void cs_rule_filter(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t dim = channels_dim(q, q->op->output);
    at_most(q, cs_net_tensor(q->net, q->op->output)->shape.dims[dim],
            q->op->kind == CS_OP_CONV ? "filters" : "features");
    answer->partial[0] = true;
    answer->made = cs_divided(dim);
}

void cs_rule_channel(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t dim = channels_dim(q, q->op->inputs[0]);
    bool is_first = true;
    for (const cs_op *op = q->net->ops; op < q->op; op++)
        is_first &= !cs_operator_of(op)->split[CS_SPLIT_CHANNEL];
    if (is_first)
        return;
    answer->inputs[0] = cs_divided(dim);
    if (q->op->groups > 1) {
        cs_rule_divides(q, q->op->groups, "groups");
        answer->made = cs_divided(0);
    } else {
        at_most(q, cs_net_tensor(q->net, q->op->inputs[0])->shape.dims[dim],
                q->op->kind == CS_OP_CONV ? "channels" : "features of the input");
        answer->made.part = CS_PARTIAL;
    }
}

/* Gives a device its weights and groups. A filter reads the channels of its group; a device has
 * some of the filters, of the channels or of the groups. */
static void cut_conv(const cs_cut *cut, cs_op *op)
{
    const cs_op *of = cut->of;
    const uint32_t channels = cut->whole_in.dims[0], filters = cut->whole_out.dims[0];
    const uint32_t own_channels = cut->in.dims[0], own_filters = cut->out.dims[0];
    int64_t each = of->weights / filters;
    if (of->groups == 1)
        each = each / channels * own_channels;
    op->weights = own_filters * each;
    op->biases = of->biases > 0 ? own_filters : 0;
    if (own_channels < channels)
        op->groups = (uint32_t)((uint64_t)of->groups * own_channels / channels);
    else
        op->groups = (uint32_t)((uint64_t)of->groups * own_filters / filters);
    if (op->groups == 0 || of->groups == 1)
        op->groups = 1;
}

/* ---- split by rows of images ---- */

static void enough_rows(const cs_rule_query *q, uint32_t rows)
{
    if (rows < q->size)
        cs_rule_refuse(q, (cs_nearest){rows, 0, true}, "must be at most the %u rows of %s (got %u)",
                       rows, q->op->name, q->size);
}

static void near_enough(const cs_rule_query *q, const cs_sliding *sliding)
{
    uint32_t parts = q->size;
    while (parts > 1 && !cs_halo_is_near(sliding, parts))
        parts--;
    if (parts < q->size)
        cs_rule_refuse(q, (cs_nearest){parts, 0, true},
                       "must be at most %u: %s reads rows of more than one neighbour each way "
                       "(got %u)",
                       parts, q->op->name, q->size);
}

static void add_halo(const cs_rule_query *q, const cs_sliding *sliding, cs_halo_of of,
                     cs_rule_answer *answer)
{
    const bool gradient = of == CS_HALO_OF_GRADIENT;
    cs_halo held = {0}; /* halo of the device that needs the most rows */
    cs_halo most = gradient ? cs_halo_most_of_gradient(sliding, q->size)
                            : cs_halo_most_of_input(sliding, q->size);
    if (most.before + most.behind == 0)
        return;
    if (of == CS_HALO_RETURNED) /* rows that belong to the previous device are returned to it */
        most = (cs_halo){most.behind, most.before};
    for (uint32_t i = 0; i < q->size; i++) {
        const cs_halo halo = gradient ? cs_halo_of_gradient(sliding, q->size, i)
                                      : cs_halo_of_input(sliding, q->size, i);
        if (halo.before + halo.behind > held.before + held.behind)
            held = halo;
    }
    answer->inner[answer->n_inner++] = (cs_inner_exchange){.kind = CS_EXCHANGE_HALO,
                                                           .backward = of != CS_HALO_OF_INPUT,
                                                           .element = CS_ELEMENT_ACTIVATION,
                                                           .dim = (uint8_t)cs_space_dim(q->axis),
                                                           .of = of,
                                                           .halo = most,
                                                           .held = held};
}

static void split_window(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (!cs_has_rows(q))
        return;
    const cs_sliding sliding = cs_op_sliding(q->net, q->op, cs_space_dim(q->axis));
    enough_rows(q, sliding.in);
    enough_rows(q, sliding.out);
    near_enough(q, &sliding);
    cs_answer_alike(q, q->given[0], answer);
    add_halo(q, &sliding, CS_HALO_OF_INPUT, answer);
    if (cs_net_tensor(q->net, q->op->inputs[0])->differentiable)
        add_halo(q, &sliding,
                 q->op->kind == CS_OP_MAX_POOL ? CS_HALO_RETURNED : CS_HALO_OF_GRADIENT, answer);
}

const cs_operator cs_operator_conv = {
    .name = "conv",
    .group = "conv",
    .channels_first = true,
    .input_for_weights = true,
    .cost = cost_conv,
    .split = {[CS_SPLIT_FILTER] = cs_rule_filter,
              [CS_SPLIT_CHANNEL] = cs_rule_channel,
              [CS_SPLIT_SPACE] = split_window},
    .cut = cut_conv,
    .needs = {1, 1, .output = true, .kernel = true},
    .make = make_conv,
    .key = CS_KEY_GROUPS | CS_KEY_BIAS,
};

const cs_operator cs_operator_max_pool = {
    .name = "max_pool",
    .group = "pool",
    .channels_first = true,
    .each = {0, 1, 1, 1, 0, CS_INDEX_BYTES, true, false},
    .cost = cost_max_pool,
    .split = {[CS_SPLIT_SPACE] = split_window},
    .needs = {1, 1, .kernel = true},
    .check = cs_op_check_even_window,
    .make = make_pool,
};

const cs_operator cs_operator_avg_pool = {
    .name = "avg_pool",
    .group = "pool",
    .channels_first = true,
    .each = {0, 1, 1, 1, 0, 0, true, false},
    .cost = cost_pool,
    .split = {[CS_SPLIT_SPACE] = split_window},
    .needs = {1, 1, .kernel = true},
    .check = cs_op_check_even_window,
    .make = make_pool,
};

const cs_operator cs_operator_adaptive_pool = {
    .name = "adaptive_pool",
    .group = "pool",
    .channels_first = true,
    .each = {1, 1, 1, 1, 0, 0, true, false},
    .cost = cost_adaptive_pool,
    .needs = {1, 1, .output = true},
    .make = make_adaptive_pool,
};
