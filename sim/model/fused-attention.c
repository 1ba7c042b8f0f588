#include "sim/model/fused-attention.h"

/* Conditions of the stated rates: features of a head, mean keys per query with 4,096 causal tokens,
 * sides where the band of pairs ends inside tiles. */
static const double FEATURES = 128, KEYS = 2048.5, SIDES = 1;

static double ramp_factor(const cs_flash_rate *rate, double keys, double sides)
{
    return 1 + (rate->ramp + sides * rate->tile / 2) / keys;
}

/* Returns the factor for a head whose queries and values have `size` times 128 features, or that
 * has as many flop. */
static double head_factor(const cs_flash_rate *rate, double size, cs_pass pass)
{
    static const double LARGE = 192, LARGE_BACKWARD = 0.73;
    if (size < 1)
        return 1 - rate->softmax + rate->softmax / size;
    const bool large = pass != CS_PASS_FORWARD && size * FEATURES > LARGE;
    return rate->softmax > 0 && large ? 1 / LARGE_BACKWARD : 1;
}

double cs_fused_attention_factor(const cs_flash_rate *rate, const cs_pass_cost *cost, cs_pass pass)
{
    if (!(cost->rows > 0 && cost->columns > 0 && cost->flop > 0))
        return 1;
    const double products = pass == CS_PASS_FORWARD ? 2 : 5;
    const double size = cost->flop / (cost->rows * cost->columns) / (products * 2 * FEATURES);
    return ramp_factor(rate, cost->columns, cost->sides) / ramp_factor(rate, KEYS, SIDES) *
           head_factor(rate, size, pass);
}

/* ---- in fp8 ---- */

/* Adds casts, which read one type and write the other. */
static void add_casts(double elements, double width, cs_pass_cost *pass)
{
    enum { NARROW = 1, KERNELS = 2 };
    pass->cast_bytes += elements * (width + NARROW);
    pass->launches += KERNELS;
}

void cs_narrow_attention_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                              uint32_t batch, cs_precision precision, cs_op_cost *cost)
{
    if (!kernels->given || kernels->flash != CS_FLASH_CUDNN_FP8 || op->kind != CS_OP_ATTENTION ||
        op->attention.kernel != CS_ATTENTION_FLASH)
        return;
    double elements = (double)cs_net_tensor(net, op->output)->elements;
    for (uint32_t i = 0; i < 3; i++)
        elements += (double)cs_net_tensor(net, op->inputs[i])->elements;
    const double width = cs_precision_bytes(precision);
    add_casts(batch * elements, width, &cost->forward);
    if (cost->backward_input.launches == 0)
        return;
    const double shares = op->attention.shares > 0 ? op->attention.shares : 1;
    const double rows = cs_net_tensor(net, op->output)->shape.dims[0] * shares;
    cs_attention whole = op->attention;
    whole.window = 0;
    const double more = cs_op_pairs(&whole, rows, rows) / cs_op_pairs(&op->attention, rows, rows);
    cost->backward_input.flop *= more;
    cost->backward_input.columns *= more;
    if (more > 1)
        cost->backward_input.sides /= 2;
    add_casts(batch * elements, width, &cost->backward_input);
}
