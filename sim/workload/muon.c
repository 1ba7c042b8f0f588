#include "sim/workload/muon.h"

#include <math.h>

/* ---- which matrices ---- */

static cs_op_kind reader_of(const cs_net *net, const cs_op *op)
{
    const uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    return reader < net->n_ops ? net->ops[reader].kind : CS_OP_VIEW;
}

/* Whether it makes the logits of a loss. */
static bool is_last(const cs_net *net, const cs_op *op)
{
    uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    while (reader < net->n_ops &&
           (net->ops[reader].kind == CS_OP_VIEW || net->ops[reader].kind == CS_OP_EXCHANGE))
        reader = cs_net_tensor(net, net->ops[reader].output)->last_reader;
    return reader < net->n_ops && net->ops[reader].kind == CS_OP_CROSS_ENTROPY;
}

bool cs_muon_updates(const cs_net *net, const cs_op *op)
{
    const bool product =
        op->kind == CS_OP_GROUPED_LINEAR || (op->kind == CS_OP_LINEAR && !is_last(net, op));
    return (product || op->kind == CS_OP_ADD) && op->weights > 0 && !op->tied && !op->frozen;
}

/* The two halves of a gated MLP are multiplied with each other, one of them behind its activation. */
static bool are_halves(const cs_net *net, const cs_kept_rules *rules, const cs_op *a,
                       const cs_op *b)
{
    return cs_kept_one_matrix(a, b, rules) && a->weights == b->weights &&
           (reader_of(net, a) == CS_OP_MUL) != (reader_of(net, b) == CS_OP_MUL);
}

cs_muon_matrices cs_muon_matrices_of(const cs_net *net, const cs_kept_rules *rules, uint32_t first,
                                     uint32_t end, uint32_t p)
{
    const cs_op *op = &net->ops[p];
    if (!cs_muon_updates(net, op))
        return (cs_muon_matrices){0};
    const cs_shape *shape = &cs_net_tensor(net, op->inputs[0])->shape;
    const uint32_t n = op->kind == CS_OP_GROUPED_LINEAR ? op->experts : 1;
    const int64_t columns = shape->dims[shape->rank - 1], rows = op->weights / n / columns;
    int64_t halves = 1;
    for (uint32_t q = first; q < end; q++) {
        if (q == p || !are_halves(net, rules, op, &net->ops[q]))
            continue;
        if (q < p)
            return (cs_muon_matrices){0};
        halves++;
    }
    return (cs_muon_matrices){halves * rows, columns, n};
}

/* ---- what they take ---- */

static cs_precision type_of_steps(const cs_muon_costs *costs)
{
    return costs->device->peaks[CS_PRECISION_BF16] > 0 ? CS_PRECISION_BF16
                                                       : cs_precision_wide(costs->precision);
}

static double seconds_of(const cs_muon_costs *costs, cs_op_kind kind, const cs_pass_cost *cost)
{
    const cs_op op = {.kind = kind, .wide = true};
    const cs_precision type = type_of_steps(costs);
    return costs->kernels->given ? cs_runtime_kernels_seconds(costs->kernels, costs->device, &op,
                                                              cost, CS_PASS_FORWARD, type)
                                 : cs_accelerator_seconds(costs->device, &op, cost, type);
}

/* Of a product of (rows x depth) and (depth x columns), which reads and writes so many elements. */
static double product(const cs_muon_costs *costs, double rows, double depth, double columns,
                      double elements)
{
    const double width = cs_precision_bytes(type_of_steps(costs));
    return seconds_of(costs, CS_OP_LINEAR,
                      &(cs_pass_cost){.flop = 2 * rows * depth * columns,
                                      .bytes = width * elements,
                                      .launches = 1,
                                      .rows = rows,
                                      .columns = columns});
}

static double copy(const cs_muon_costs *costs, double elements)
{
    const double width = cs_precision_bytes(type_of_steps(costs));
    return seconds_of(costs, CS_OP_COPY,
                      &(cs_pass_cost){.bytes = 2 * width * elements, .launches = 1});
}

static double step(const cs_muon_costs *costs, double m, double n)
{
    return product(costs, m, n, m, m * n + m * m) +                         /* X X^T */
           copy(costs, m * m) + product(costs, m, m, m, 3 * m * m) +        /* b A + c A A */
           copy(costs, m * n) + product(costs, m, m, n, m * m + 3 * m * n); /* a X + B X */
}

/* Around the steps: decay, two of momentum, three of the norm, two casts, two factors, the update; a
 * kernel that all matrices share copies them to the weights. */
enum { KERNELS_OF_STEP = 5, KERNELS_AROUND = 11 };

/* Bytes of the kernels around the steps, for each element. */
static double bytes_around(const cs_muon_costs *costs)
{
    const double weight = cs_precision_bytes(costs->precision);
    const double w = cs_precision_updated_bytes(costs->precision, costs->storage);
    const double s = costs->storage.state_bytes > 0 ? costs->storage.state_bytes : 4;
    const double b = cs_precision_bytes(type_of_steps(costs));
    const double casts = b < w ? 2 * (w + b) : 0;
    return 2 * w + (w + 2 * s) + (2 * w + s) + 3 * w + casts + 4 * w + 3 * w +
           (weight < w ? w + weight : 0);
}

double cs_muon_seconds(const cs_muon_costs *costs, int64_t rows, int64_t columns)
{
    const double m = (double)(rows < columns ? rows : columns);
    const double n = (double)(rows < columns ? columns : rows);
    const double bytes = m * n * bytes_around(costs);
    const double gradient = costs->float_gradients ? 4 : cs_precision_bytes(costs->precision);
    const double launch = cs_time_seconds(costs->device->launch);
    const double kernels = KERNELS_AROUND + KERNELS_OF_STEP * (double)costs->muon.steps;
    if (!costs->kernels->given)
        return costs->muon.steps * step(costs, m, n) +
               cs_accelerator_update_seconds(costs->device, bytes);
    const double around =
        cs_runtime_kernels_update(costs->kernels, costs->device, bytes, m * n * gradient);
    return fmax(costs->muon.steps * step(costs, m, n) + around + (KERNELS_AROUND - 1) * launch,
                cs_runtime_kernels_starts(costs->kernels, costs->device, kernels));
}
