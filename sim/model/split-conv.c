/* Convolutional networks on many devices, as ParaDL divides them: Kahira et al., HPDC 2021,
 * section 3.
 *
 * filter    each convolution and linear layer makes a part of its filters or features, which are then
 *           gathered: all-gather forward. It reads all channels, and the gradient that it leaves
 *           of them is partial: all-reduce backward (3.3). All other operators work on all
 *           channels, on each place alike, batch norm included (4.5.2).
 * channel   each convolution and linear layer but the first reads a part of its channels, and what it
 *           makes is partial: all-reduce forward, and backward an all-gather of the gradients of
 *           the parts (3.3, 4.5.1). A convolution with groups makes the filters of its own groups,
 *           which are gathered.
 * space     each place has a part of the rows of every image, from the network's input up to an operator
 *           that has no rule here (a linear layer, a pooling to a given size, a view) or to
 *           space_until: in front of that the parts are gathered, and from then on all places
 *           compute the same (4.5.1). Convolutions and poolings read rows of their neighbours, and
 *           backward gradients of their neighbours' outputs (halo.h). Where a pooling found its
 *           maximum only it knows, so it makes the gradients of its neighbours' rows as well, and
 *           returns them. Batch norm takes the statistics of its own part, unless they are
 *           synchronised.
 *
 * Parts need not be equal; the first is one of the largest (layout.h). */
#include "sim/model/split-rules.h"

#include <string.h>

/* ---- filters ---- */

static bool is_weighted(const cs_op *op)
{
    return op->kind == CS_OP_CONV || op->kind == CS_OP_LINEAR;
}

/* Of a convolution the channels, of a linear layer the features. */
static uint32_t channels_dim(const cs_rule_query *q, cs_tensor tensor)
{
    return q->op->kind == CS_OP_CONV ? 0 : cs_features_dim(q->net, tensor);
}

static void at_most(const cs_rule_query *q, uint32_t count, const char *of_what)
{
    if (count < q->size)
        cs_rule_refuse(q, (cs_nearest){count, 0, true}, "must be at most the %u %s of %s (got %u)",
                       count, of_what, q->op->name, q->size);
}

static void rule_filter(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t dim = channels_dim(q, q->op->output);
    at_most(q, cs_net_tensor(q->net, q->op->output)->shape.dims[dim],
            q->op->kind == CS_OP_CONV ? "filters" : "features");
    answer->partial[0] = true;
    answer->made = cs_divided(dim);
}

const cs_axis_rules cs_rules_filter = {{
    [CS_OP_CONV] = rule_filter,
    [CS_OP_LINEAR] = rule_filter,
}};

/* ---- channels ---- */

static bool is_first(const cs_rule_query *q)
{
    for (const cs_op *op = q->net->ops; op < q->op; op++)
        if (is_weighted(op))
            return false;
    return true;
}

static void rule_channel(const cs_rule_query *q, cs_rule_answer *answer)
{
    const uint32_t dim = channels_dim(q, q->op->inputs[0]);
    if (is_first(q))
        return;
    if (q->op->groups > 1)
        cs_rule_divides(q, q->op->groups, "groups");
    else
        at_most(q, cs_net_tensor(q->net, q->op->inputs[0])->shape.dims[dim],
                q->op->kind == CS_OP_CONV ? "channels" : "features of the input");
    answer->inputs[0] = cs_divided(dim);
    if (q->op->groups > 1)
        answer->made = cs_divided(0);
    else
        answer->made.part = CS_PARTIAL;
}

const cs_axis_rules cs_rules_channel = {{
    [CS_OP_CONV] = rule_channel,
    [CS_OP_LINEAR] = rule_channel,
}};

/* ---- space ---- */

uint32_t cs_space_dim(cs_layout_axis axis)
{
    return 1 + (uint32_t)(axis - CS_LAYOUT_SPACE_X);
}

uint32_t cs_space_end(const cs_net *net, const char *until)
{
    for (uint32_t p = 0; until && p < net->n_ops; p++)
        if (strcmp(net->ops[p].name, until) == 0 ||
            strcmp(net->blocks[net->ops[p].block], until) == 0)
            return p;
    return net->n_ops;
}

static bool is_space(const cs_rule_query *q)
{
    return cs_is_divided_at(q->given[0], cs_space_dim(q->axis)) &&
           (uint32_t)(q->op - q->net->ops) < cs_space_end(q->net, q->split->space_until);
}

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

/* What the part has that lacks the most rows. */
static cs_halo most_held(const cs_sliding *sliding, uint32_t parts, bool gradient)
{
    cs_halo most = {0};
    for (uint32_t i = 0; i < parts; i++) {
        const cs_halo halo =
            gradient ? cs_halo_of_gradient(sliding, parts, i) : cs_halo_of_input(sliding, parts, i);
        if (halo.before + halo.behind > most.before + most.behind)
            most = halo;
    }
    return most;
}

static void add_halo(const cs_rule_query *q, const cs_sliding *sliding, cs_halo_of of,
                     cs_rule_answer *answer)
{
    const bool gradient = of == CS_HALO_OF_GRADIENT;
    cs_halo most = gradient ? cs_halo_most_of_gradient(sliding, q->size)
                            : cs_halo_most_of_input(sliding, q->size);
    if (most.before + most.behind == 0)
        return;
    if (of == CS_HALO_RETURNED)
        most =
            (cs_halo){most.behind, most.before}; /* what it had of the one before goes back there */
    answer->inner[answer->n_inner++] =
        (cs_inner_exchange){.kind = CS_EXCHANGE_HALO,
                            .backward = of != CS_HALO_OF_INPUT,
                            .element = CS_ELEMENT_ACTIVATION,
                            .dim = (uint8_t)cs_space_dim(q->axis),
                            .of = of,
                            .halo = most,
                            .held = most_held(sliding, q->size, gradient)};
}

static void rule_window(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (!is_space(q))
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

static void rule_pixels(const cs_rule_query *q, cs_rule_answer *answer)
{
    if (is_space(q))
        cs_answer_alike(q, q->given[0], answer);
}

const cs_axis_rules cs_rules_space = {{
    [CS_OP_CONV] = rule_window,
    [CS_OP_MAX_POOL] = rule_window,
    [CS_OP_AVG_POOL] = rule_window,
    [CS_OP_BATCH_NORM] = rule_pixels,
    [CS_OP_RELU] = rule_pixels,
    [CS_OP_GELU] = rule_pixels,
    [CS_OP_SILU] = rule_pixels,
    [CS_OP_TANH] = rule_pixels,
    [CS_OP_MUL] = rule_pixels,
    [CS_OP_ADD] = rule_pixels,
    [CS_OP_DROPOUT] = rule_pixels,
    [CS_OP_COPY] = rule_pixels,
    [CS_OP_CONCAT] = rule_pixels,
}};
