#include "sim/model/winograd.h"

#include <math.h>

enum {
    FLOAT = 4,
    PIXELS = 9,        /* pixels that a filter reads */
    PLACES = 16,       /* elements of a transformed tile */
    BLOCK = 32,        /* tiles, and filters, per block */
    BLOCKS_AT_ONCE = 2 /* blocks on a multiprocessor at the same time */
};

/* Additions to transform the pixels of a tile, the results of a tile, and a filter. */
enum { PIXEL_ADDITIONS = 32, RESULT_ADDITIONS = 24, FILTER_ADDITIONS = 28 };

bool cs_winograd_computes(const cs_op *op)
{
    if (op->kind != CS_OP_CONV || op->groups != 1 || op->kernel.rank != 2)
        return false;
    for (int i = 0; i < 2; i++)
        if (op->kernel.size[i] != 3 || op->stride.size[i] != 1 || op->dilation.size[i] != 1)
            return false;
    return true;
}

static double tiles_of(const cs_shape *image)
{
    return ceil(image->dims[1] / 2.0) * ceil(image->dims[2] / 2.0);
}

void cs_winograd_passes(const cs_net *net, const cs_op *op, uint32_t batch, cs_winograd *forward,
                        cs_winograd *backward_input, cs_winograd *backward_weight)
{
    const cs_tensor_info *in = cs_net_tensor(net, op->inputs[0]);
    const cs_tensor_info *out = cs_net_tensor(net, op->output);
    const double channels = in->shape.dims[0], filters = out->shape.dims[0];
    *forward = *backward_input = *backward_weight = (cs_winograd){0};
    if (!cs_winograd_computes(op))
        return;
    const double flop = 2 * PIXELS * channels * (double)batch * (double)out->elements;
    const double read = batch * tiles_of(&in->shape), made = batch * tiles_of(&out->shape);
    *forward = (cs_winograd){made, channels, filters, flop, true};
    *backward_input = (cs_winograd){read, filters, channels, flop, true};
    *backward_weight = (cs_winograd){made, channels, filters, flop, false};
}

static double multiplied(const cs_winograd *pass)
{
    return 2.0 * PLACES * pass->tiles * pass->channels * pass->filters;
}

/* The time that the device takes for the blocks of a pass, relative to the same results in full
 * blocks that keep all multiprocessors busy. */
static double waves(const cs_winograd *pass, uint32_t multiprocessors)
{
    const double blocks = ceil(pass->tiles / BLOCK) * ceil(pass->filters / BLOCK);
    const double at_once = BLOCKS_AT_ONCE * (double)multiprocessors;
    const double taken = at_once > 0 ? ceil(blocks / at_once) * at_once : blocks;
    return taken * BLOCK * BLOCK / (pass->tiles * pass->filters);
}

static double seconds_of_kernel(const cs_winograd *pass, double flop, double bytes,
                                const cs_winograd_rates *rates)
{
    const double of_blocks = 2 * pass->tiles *
                             (PIXEL_ADDITIONS * pass->channels * ceil(pass->filters / BLOCK) +
                              RESULT_ADDITIONS * pass->filters);
    const double of_filters = 2 * FILTER_ADDITIONS * pass->channels * pass->filters;
    const double written = FLOAT * PLACES * pass->channels * pass->filters;
    const double computing = ((multiplied(pass) + of_blocks) * waves(pass, rates->multiprocessors) +
                              of_filters + (flop - pass->flop)) /
                             rates->fused;
    return 2 * rates->launch + fmax(computing, (bytes + 2 * written) / rates->moved);
}

static double seconds_of_products(const cs_winograd *pass, double flop, double bytes,
                                  const cs_winograd_rates *rates)
{
    enum { KERNELS = 4 }; /* two transforms, the products, the transform of the results */
    const double transformed = FLOAT * PLACES *
                               (pass->tiles * pass->channels + pass->tiles * pass->filters +
                                pass->channels * pass->filters);
    const double computing = (multiplied(pass) + flop - pass->flop) / rates->products;
    return KERNELS * rates->launch + (bytes + transformed) / rates->moved +
           fmax(computing, transformed / rates->moved);
}

double cs_winograd_seconds(const cs_winograd *pass, double flop, double bytes,
                           const cs_winograd_rates *rates)
{
    const double products = seconds_of_products(pass, flop, bytes, rates);
    return pass->fused ? fmin(seconds_of_kernel(pass, flop, bytes, rates), products) : products;
}
