#include "sim/model/paradl.h"

#include "sim/model/ops/operator.h"
#include "sim/model/split-rules.h"

#include <math.h>

/* ---- the layers of a network ---- */

static bool is_layer(const cs_op *op)
{
    return !cs_op_is_view(op) && !cs_op_is_loss(op);
}

/* Whether the operator has filters and channels. */
static bool is_weighted(const cs_op *op)
{
    return op->kind == CS_OP_CONV || op->kind == CS_OP_LINEAR;
}

/* Whether the operator is a convolution or pooling. */
static bool is_window(const cs_op *op)
{
    return op->kernel.rank > 0;
}

static double outputs_of(const cs_net *net, const cs_op *op)
{
    return (double)cs_net_tensor(net, op->output)->elements;
}

static double inputs_of(const cs_net *net, const cs_op *op)
{
    double sum = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        sum += (double)cs_net_tensor(net, op->inputs[i])->elements;
    return sum;
}

static uint32_t channels_of(const cs_op *op, const cs_shape *shape)
{
    return shape->dims[op->kind == CS_OP_CONV ? 0 : shape->rank - 1];
}

/* Sums over layers for the formulas: elements per sample of |x|, |y| and, equally many, dL/dx,
 * dL/dy. */
typedef struct layer_sums {
    double images;          /* |x| + |y| */
    double weights, biases; /* |w|, |bi| */
    double outputs;         /* |y| of all convolutions and linear layers except the last */
    double n_outputs;
} layer_sums;

static layer_sums sum_ops(const cs_net *net, uint32_t first, uint32_t end)
{
    layer_sums sums = {0};
    double last = 0;
    for (uint32_t p = first; p < end; p++) {
        const cs_op *op = &net->ops[p];
        if (!is_layer(op))
            continue;
        sums.images += inputs_of(net, op) + outputs_of(net, op);
        sums.weights += op->tied ? 0 : (double)op->weights;
        sums.biases += (double)op->biases;
        if (!is_weighted(op))
            continue;
        last = outputs_of(net, op);
        sums.outputs += last;
        sums.n_outputs++;
    }
    if (sums.n_outputs > 0) {
        sums.outputs -= last;
        sums.n_outputs--;
    }
    return sums;
}

/* ---- computation ---- */

static double passes_of(const cs_net_chain *chain, uint32_t first, uint32_t end, double *forward)
{
    double backward = 0;
    *forward = 0;
    for (uint32_t l = first; l < end; l++) {
        *forward += chain->layers[l].forward;
        backward += chain->layers[l].backward_input + chain->layers[l].backward_weight;
    }
    return backward;
}

static double updates_of(const cs_net_chain *chain, uint32_t first, uint32_t end)
{
    double sum = 0;
    for (uint32_t l = first; l < end; l++)
        sum += chain->layers[l].update;
    return sum;
}

/* Computes passes and updates, equations (1), (5), (9), (18), (21): the time of the passes is
 * divided by p, the time of updates by p2 if weights are split. */
static void compute(const cs_net_chain *chain, const cs_paradl_case *c, double samples,
                    cs_paradl_form *form)
{
    const bool divides_weights = c->method == CS_PARADL_FILTER || c->method == CS_PARADL_CHANNEL;
    const double p = (double)c->groups * c->members;
    double forward;
    const double backward = passes_of(chain, 0, chain->n_layers, &forward);
    form->parts[CS_PARADL_PASSES].per_sample = (forward + backward) / samples / p;
    form->parts[CS_PARADL_UPDATE].per_iteration =
        updates_of(chain, 0, chain->n_layers) / (divides_weights ? c->members : 1);
}

/* ---- messages ---- */

/* Adds `steps` * (ranks - 1) ring steps; each sends `messages` messages, with the given bytes per
 * iteration and per sample. */
static void add_ring(cs_paradl_cost *cost, const cs_paradl_link *link, double steps, uint32_t ranks,
                     double messages, double per_iteration, double per_sample)
{
    const double n = steps * (ranks - 1.0);
    cost->per_iteration += n * (messages * link->alpha + per_iteration * link->beta);
    cost->per_sample += n * per_sample * link->beta;
}

/* Adds the all-reduces of weight gradients: equation (6), second part of (22). */
static void sum_gradients(const cs_paradl_case *c, double bytes, cs_paradl_form *form)
{
    cs_paradl_cost *cost = &form->parts[CS_PARADL_GRADIENTS];
    if (c->method == CS_PARADL_SPATIAL)
        add_ring(cost, &c->within, 2, c->members, 1, bytes / c->members, 0);
    else
        bytes /= c->members;
    add_ring(cost, &c->between, 2, c->groups, 1, bytes / c->groups, 0);
}

/* Adds an all-gather and an all-reduce of each output: equations (15), (19), first part of (22). */
static void exchange_layers(const cs_paradl_case *c, const layer_sums *sums, double width,
                            cs_paradl_form *form)
{
    const double p = (double)c->groups * c->members;
    add_ring(&form->parts[CS_PARADL_LAYERS], &c->within, 3, c->members, sums->n_outputs, 0,
             sums->outputs * width / p);
}

/* Adds the messages of one tensor's halo in direction d. Extents in earlier directions already
 * include their halos, so corners are included. */
static void add_halo(const cs_paradl_case *c, cs_halo halo, const double *extents, uint32_t rank,
                     uint32_t d, double width, cs_paradl_cost *cost)
{
    const uint32_t rows[] = {halo.before, halo.behind};
    double others = width;
    for (uint32_t e = 0; e <= rank; e++)
        others *= e == 1 + d ? 1 : extents[e];
    for (int i = 0; i < 2; i++) {
        cost->per_iteration += rows[i] > 0 ? c->within.alpha : 0;
        cost->per_sample += rows[i] * others * c->within.beta / c->groups;
    }
}

/* Adds the halos of one operator: equation (10); see halo.h. */
static void add_halos(const cs_net *net, const cs_op *op, const cs_paradl_case *c, double width,
                      cs_paradl_cost *cost)
{
    const cs_tensor_info *in = cs_net_tensor(net, op->inputs[0]);
    const cs_tensor_info *out = cs_net_tensor(net, op->output);
    double inputs[CS_SHAPE_MAX] = {in->shape.dims[0]}, outputs[CS_SHAPE_MAX] = {out->shape.dims[0]};
    const uint32_t rank = op->kernel.rank;
    for (uint32_t d = 0; d < rank; d++) {
        inputs[1 + d] = cs_rows_most(in->shape.dims[1 + d], c->space[d]);
        outputs[1 + d] = cs_rows_most(out->shape.dims[1 + d], c->space[d]);
    }
    for (uint32_t d = 0; d < rank; d++) {
        const cs_sliding sliding = cs_op_sliding(net, op, 1 + d);
        const cs_halo input = cs_halo_most_of_input(&sliding, c->space[d]);
        const cs_halo gradient = cs_halo_most_of_gradient(&sliding, c->space[d]);
        add_halo(c, input, inputs, rank, d, width, cost);
        if (in->differentiable)
            add_halo(c, gradient, outputs, rank, d, width, cost);
        inputs[1 + d] += input.before + input.behind;
        outputs[1 + d] += gradient.before + gradient.behind;
    }
}

static void exchange_halos(const cs_net *net, const cs_paradl_case *c, double width,
                           cs_paradl_form *form)
{
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (is_window(&net->ops[p]))
            add_halos(net, &net->ops[p], c, width, &form->parts[CS_PARADL_HALO]);
}

/* ---- memory ---- */

/* Bytes of memory, equations (2), (8), (16), (17), (20): all tensors, and the gradients of all
 * except biases. */
static double memory_of(const cs_paradl_case *c, const layer_sums *sums, double width)
{
    const bool divides_weights = c->method == CS_PARADL_FILTER || c->method == CS_PARADL_CHANNEL;
    const double images = 2.0 * c->batch / c->groups * sums->images;
    return c->reuse * width *
           (images / (c->method == CS_PARADL_SPATIAL ? c->members : 1) +
            2 * sums->weights / (divides_weights ? c->members : 1) + sums->biases);
}

/* ---- pipelines ---- */

/* Evaluates a pipeline: equations (12) to (14). */
static void evaluate_pipeline(const cs_net *net, const cs_net_chain *chain, const cs_paradl_case *c,
                              double samples, double width, cs_paradl_form *form)
{
    double forward = 0, backward = 0, update = 0, output = 0;
    const double s = c->segments, p = c->members;
    for (uint32_t i = 0; i < c->members; i++) {
        const uint32_t first = i > 0 ? c->ends[i - 1] : 0, end = c->ends[i];
        const layer_sums stage =
            sum_ops(net, chain->layers[first].first, chain->layers[end - 1].end);
        double own;
        backward = fmax(backward, passes_of(chain, first, end, &own));
        forward = fmax(forward, own);
        update = fmax(update, updates_of(chain, first, end));
        if (i + 1 < c->members)
            output = fmax(output, (double)chain->layers[end - 1].written_bytes / samples);
        form->memory = fmax(form->memory, memory_of(c, &stage, width));
    }
    form->parts[CS_PARADL_PASSES].per_sample = (p + s - 1) / s * (forward + backward) / samples;
    form->parts[CS_PARADL_UPDATE].per_iteration = update;
    if (c->members == 1)
        return;
    form->parts[CS_PARADL_STAGES].per_iteration = 2 * (p + s - 2) * c->within.alpha;
    form->parts[CS_PARADL_STAGES].per_sample = 2 * (p + s - 2) / s * output * c->within.beta;
}

/* ---- limits ---- */

static void limit(cs_paradl_form *form, uint64_t most, const cs_op *op)
{
    if (most >= form->most_members)
        return;
    form->most_members = most;
    form->limit = op->name;
}

/* Limits the parts of an image: each part needs at least one pixel of every input and output. */
static void limit_space(const cs_net *net, const cs_op *op, const cs_paradl_case *c,
                        cs_paradl_form *form)
{
    uint64_t in = 1, out = 1;
    for (uint32_t d = 0; d < op->kernel.rank; d++) {
        const cs_sliding sliding = cs_op_sliding(net, op, 1 + d);
        in *= sliding.in;
        out *= sliding.out;
        form->fits &= c->space[d] <= sliding.in && c->space[d] <= sliding.out;
    }
    limit(form, in, op);
    limit(form, out, op);
}

/* Finds the limit of p2 in the last column of table 3. The first layer is not split by channels
 * (4.5.1). */
static void find_limit(const cs_net *net, const cs_net_chain *chain, const cs_paradl_case *c,
                       cs_paradl_form *form)
{
    bool first = true;
    form->most_members = UINT64_MAX;
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const cs_op *op = &net->ops[p];
        const cs_shape *in = &cs_net_tensor(net, op->inputs[0])->shape;
        const cs_shape *out = &cs_net_tensor(net, op->output)->shape;
        if (c->method == CS_PARADL_SPATIAL && is_window(op))
            limit_space(net, op, c, form);
        if (c->method == CS_PARADL_FILTER && is_weighted(op))
            limit(form, channels_of(op, out), op);
        if (c->method == CS_PARADL_CHANNEL && is_weighted(op) && !first)
            limit(form, channels_of(op, in), op);
        first &= !is_weighted(op);
    }
    if (c->method == CS_PARADL_PIPELINE)
        form->most_members = chain->n_layers;
    else if (form->most_members == UINT64_MAX)
        form->most_members = 1; /* nothing can be split */
    form->fits &= c->groups <= c->batch && c->members <= form->most_members;
}

/* ---- evaluation ---- */

void cs_paradl_evaluate(const cs_net *net, const cs_net_chain *chain, const cs_net_options *how,
                        const cs_paradl_case *asked, cs_paradl_form *form)
{
    const double width = cs_precision_bytes(how->precision), samples = how->batch_size;
    const layer_sums sums = sum_ops(net, 0, net->n_ops);
    *form = (cs_paradl_form){.fits = true};
    find_limit(net, chain, asked, form);
    if (asked->method == CS_PARADL_PIPELINE) {
        evaluate_pipeline(net, chain, asked, samples, width, form);
        return;
    }
    compute(chain, asked, samples, form);
    sum_gradients(asked, sums.weights * width, form);
    if (asked->method == CS_PARADL_SPATIAL)
        exchange_halos(net, asked, width, form);
    else
        exchange_layers(asked, &sums, width, form);
    form->memory = memory_of(asked, &sums, width);
}

double cs_paradl_seconds(const cs_paradl_form *form, cs_paradl_part part, double samples,
                         uint32_t batch)
{
    const cs_paradl_cost *cost = &form->parts[part];
    return samples * cost->per_sample + ceil(samples / batch) * cost->per_iteration;
}

uint32_t cs_paradl_space_rank(const cs_net *net)
{
    uint32_t rank = 0;
    for (uint32_t p = 0; p < net->n_ops; p++)
        rank = net->ops[p].kernel.rank > rank ? net->ops[p].kernel.rank : rank;
    return rank;
}

/* Gives the largest remaining prime factor to the dimension with the fewest parts, until no factor
 * is left. */
void cs_paradl_divide_space(uint32_t devices, uint32_t rank, uint32_t space[CS_SPACE_MAX])
{
    for (uint32_t d = 0; d < CS_SPACE_MAX; d++)
        space[d] = 1;
    while (devices > 1 && rank > 0) {
        uint32_t factor = 1, rest = devices, least = 0;
        for (uint32_t f = 2; rest > 1; f++)
            for (; rest % f == 0; rest /= f)
                factor = f;
        for (uint32_t d = 1; d < rank; d++)
            least = space[d] < space[least] ? d : least;
        space[least] *= factor;
        devices /= factor;
    }
}
