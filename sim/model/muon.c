#include "sim/model/muon.h"

#include "sim/model/ops/operator.h"

#include <math.h>
#include <stddef.h>

const char *const cs_muon_tensor_names[] = {"blockwise", "duplicated", "distributed", NULL};

/* ---- choosing the matrices ---- */

static cs_op_kind reader_of(const cs_net *net, const cs_op *op)
{
    const uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    return reader < net->n_ops ? net->ops[reader].kind : CS_OP_VIEW;
}

/* Whether an operator makes the logits of a loss. */
static bool is_last(const cs_net *net, const cs_op *op)
{
    uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    while (reader < net->n_ops &&
           (cs_op_is_view(&net->ops[reader]) || net->ops[reader].kind == CS_OP_EXCHANGE))
        reader = cs_net_tensor(net, net->ops[reader].output)->last_reader;
    return reader < net->n_ops && net->ops[reader].kind == CS_OP_CROSS_ENTROPY;
}

bool cs_muon_updates(const cs_net *net, const cs_op *op)
{
    const bool product =
        op->kind == CS_OP_GROUPED_LINEAR || (op->kind == CS_OP_LINEAR && !is_last(net, op));
    return (product || op->kind == CS_OP_ADD) && op->weights > 0 && !op->tied && !op->frozen;
}

/* Whether two operators are the halves of a gated MLP: their results are multiplied with each
 * other, one of them after its activation. */
static bool are_halves(const cs_net *net, const cs_kept_rules *rules, const cs_op *a,
                       const cs_op *b)
{
    return cs_kept_one_matrix(a, b, rules) && a->weights == b->weights &&
           (reader_of(net, a) == CS_OP_MUL) != (reader_of(net, b) == CS_OP_MUL);
}

/* Finds the size of one matrix of an operator. */
static void find_sides(const cs_net *net, const cs_op *op, int64_t *rows, int64_t *columns)
{
    const cs_shape *shape = &cs_net_tensor(net, op->inputs[0])->shape;
    *columns = shape->dims[shape->rank - 1];
    *rows = op->weights / cs_op_matrices(op) / *columns;
}

cs_muon_matrices cs_muon_matrices_of(const cs_net *net, const cs_kept_rules *rules, uint32_t first,
                                     uint32_t end, uint32_t p, const cs_net *whole, const cs_op *of)
{
    const cs_op *op = &net->ops[p];
    cs_muon_matrices made = {.n = cs_op_matrices(op)};
    int64_t halves = 1;
    if (!cs_muon_updates(net, op))
        return (cs_muon_matrices){0};
    find_sides(net, op, &made.rows, &made.columns);
    find_sides(whole, of, &made.whole_rows, &made.whole_columns);
    for (uint32_t q = first; q < end; q++) {
        if (q == p || !are_halves(net, rules, op, &net->ops[q]))
            continue;
        if (q < p)
            return (cs_muon_matrices){0};
        halves++;
    }
    made.rows *= halves;
    made.whole_rows *= halves;
    return made;
}

/* ---- times of the update ---- */

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

/* Returns the seconds of a product of (rows x depth) and (depth x columns) that reads and writes
 * `elements` elements. */
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

/* Numbers of kernels in a step and around the steps. Around the steps: decay, two for momentum,
 * three for the norm, two casts, two factors, the update; one more kernel, shared by all matrices,
 * copies them to the weights. */
enum { KERNELS_OF_STEP = 5, KERNELS_AROUND = 11 };

/* Bytes that these kernels move per element: `part` per element of the device's part, `orthogonal`
 * (the norm and the casts) per element that is orthogonalised. */
typedef struct around {
    double part, orthogonal;
} around;

static around bytes_around(const cs_muon_costs *costs)
{
    const double weight = cs_precision_bytes(costs->precision);
    const double w = cs_precision_updated_bytes(costs->precision, costs->storage);
    const double s = costs->storage.state_bytes > 0 ? costs->storage.state_bytes : 4;
    const double b = cs_precision_bytes(type_of_steps(costs));
    return (around){2 * w + (w + 2 * s) + (2 * w + s) + 4 * w + 3 * w +
                        (weight < w ? w + weight : 0),
                    3 * w + (b < w ? 2 * (w + b) : 0)};
}

/* Returns the seconds to update `part` elements if `orthogonal` elements are orthogonalised and
 * their Newton-Schulz steps take `steps` seconds. */
static double seconds_around(const cs_muon_costs *costs, double steps, double part,
                             double orthogonal)
{
    const around each = bytes_around(costs);
    const double w = cs_precision_updated_bytes(costs->precision, costs->storage);
    const double joined = orthogonal > part ? 2 * w * orthogonal : 0;
    const double bytes = each.part * part + each.orthogonal * orthogonal + joined;
    const double gradient = costs->float_gradients ? 4 : cs_precision_bytes(costs->precision);
    const double launch = cs_time_seconds(costs->device->launch);
    const double kernels =
        KERNELS_AROUND + (joined > 0) + KERNELS_OF_STEP * (double)costs->muon.steps;
    if (!costs->kernels->given)
        return steps + cs_accelerator_update_seconds(costs->device, bytes);
    return fmax(
        steps + (KERNELS_AROUND - 1 + (joined > 0)) * launch +
            cs_runtime_kernels_update(costs->kernels, costs->device, bytes, part * gradient),
        cs_runtime_kernels_starts(costs->kernels, costs->device, kernels));
}

static double steps_of(const cs_muon_costs *costs, double a, double b)
{
    return costs->muon.steps * step(costs, fmin(a, b), fmax(a, b));
}

cs_muon_update cs_muon_update_of(const cs_muon_costs *costs, const cs_muon_matrices *of,
                                 bool expert)
{
    const double rows = (double)of->rows, columns = (double)of->columns;
    const double whole = (double)of->whole_rows * (double)of->whole_columns;
    const uint32_t mode = whole > rows * columns ? costs->muon.tensor : CS_MUON_BLOCKWISE;
    cs_muon_update made = {.elements = of->rows * of->columns, .n = of->n, .expert = expert};
    if (mode == CS_MUON_DUPLICATED) {
        const double all = steps_of(costs, (double)of->whole_rows, (double)of->whole_columns);
        made.seconds = seconds_around(costs, all, rows * columns, whole);
        made.gather_bytes = of->whole_rows * of->whole_columns *
                            cs_precision_updated_bytes(costs->precision, costs->storage);
    } else if (mode == CS_MUON_DISTRIBUTED) {
        const bool over_columns = of->whole_columns > of->columns;
        const int64_t m = over_columns ? of->rows : of->columns;
        const double all =
            costs->muon.steps * step(costs, (double)m, over_columns ? columns : rows);
        made.seconds = seconds_around(costs, all, rows * columns, rows * columns);
        made.sum_bytes = m * m * cs_precision_bytes(type_of_steps(costs));
        made.n_sums = costs->muon.steps;
    } else {
        made.seconds =
            seconds_around(costs, steps_of(costs, rows, columns), rows * columns, rows * columns);
    }
    return made;
}
