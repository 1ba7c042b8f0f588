#include "sim/model/fused-attention.h"

/* Of the rates: features of a head, keys of a query of 4,096 causal tokens, sides of the band. */
static const double FEATURES = 128, KEYS = 2048.5, SIDES = 1;

static double ramp_factor(const cs_flash_rate *rate, double keys, double sides)
{
    return 1 + (rate->ramp + sides * rate->tile / 2) / keys;
}

/* Of a head of queries and values of `size` times 128 features each, or as many flop. */
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
