/* Winograd's minimal filtering of 3 x 3 convolutions, F(2x2, 3x3), as Lavin and Gray compute it
 * (Fast Algorithms for Convolutional Neural Networks, CVPR 2016, arXiv 1509.09308).
 *
 * A tile of 2 x 2 results of a filter takes 16 multiplications for each channel, where the
 * definition takes 36: tiles of 4 x 4 pixels and the filters are transformed, in each of 16 places
 * there is a matrix product (tiles x channels by channels x filters), and its results are
 * transformed back. The gradient of the input is the same with filters and channels exchanged; that
 * of the filters is F(3x3, 2x2), with as many multiplications, and tiles as what is summed over.
 *
 * A library has up to two ways to do this:
 *
 *   one kernel   transforms in registers and shared memory (section 6): a block computes 32 tiles
 *                of 32 filters, two blocks at once on a multiprocessor; in whole waves they take
 *
 *                    2 (16 T C K + 32 T C ceil(K / 32) + 24 T K + 28 C K) flop
 *
 *                of which 32, 24 and 28 are the additions of the transforms of pixels, results and
 *                filters (section 4.1), each of which occupies a unit as long as a multiplication
 *                with its addition. Filters are transformed by a kernel of their own ("FX")
 *   products     of matrices in memory, which kernels of their own transform: 16 (T C + T K + C K)
 *                numbers are written and read besides
 *
 * cuDNN has both (CUDNN_CONVOLUTION_..._ALGO_WINOGRAD and ..._WINOGRAD_NONFUSED) for the forward
 * and for the gradient of the input, of kernels of 3 x 3 without strides and dilation; for the
 * gradient of the filters it names both, and has the second. Other tiles, as F(4x4, 3x3), which
 * MIOpen has, are left out. Kernels for tensor cores do not transform, so that only fp32 is
 * computed so. */
#ifndef CS_WORKLOAD_WINOGRAD_H
#define CS_WORKLOAD_WINOGRAD_H

#include "sim/model/net.h"

/* A pass over a convolution: T tiles of a batch, C channels, K filters, as what the pass computes
 * has them. */
typedef struct cs_winograd {
    double tiles;             /* 0: cannot be computed so */
    double channels, filters; /* the pass sums over channels, except of the filters' gradient */
    double flop;              /* by the definition, which these take the place of */
    bool fused;               /* there is one kernel that does all */
} cs_winograd;

/* What a device reaches. */
typedef struct cs_winograd_rates {
    double fused;             /* flop/s, of the one kernel with all multiprocessors busy */
    double products;          /* flop/s, of products of matrices */
    double moved;             /* bytes/s */
    double launch;            /* s, of a kernel */
    uint32_t multiprocessors; /* 0: not known, waves cost nothing */
} cs_winograd_rates;

/* True for a 3 x 3 convolution in two dimensions without strides, dilation and groups. */
bool cs_winograd_computes(const cs_op *op);

/* The passes over it for a batch; all zero where it cannot be computed so. */
void cs_winograd_passes(const cs_net *net, const cs_op *op, uint32_t batch, cs_winograd *forward,
                        cs_winograd *backward_input, cs_winograd *backward_weight);

/* Seconds of the faster way for a pass that has `flop` and moves `bytes` by the definition. */
double cs_winograd_seconds(const cs_winograd *pass, double flop, double bytes,
                           const cs_winograd_rates *rates);

#endif
