/* Winograd's minimal filtering of 3 x 3 convolutions, F(2x2, 3x3), as computed by Lavin and Gray
 * (Fast Algorithms for Convolutional Neural Networks, CVPR 2016, arXiv 1509.09308).
 *
 * A tile of 2 x 2 results of a filter takes 16 multiplications per channel; the definition takes
 * 36. Tiles of 4 x 4 pixels and the filters are transformed; each of the 16 elements has a matrix
 * product (tiles x channels by channels x filters); and the results of the products are transformed
 * back. For the gradient of the input, filters and channels are exchanged. The gradient of the
 * filters is F(3x3, 2x2), with the same number of multiplications; it sums over the tiles.
 *
 * A library has up to two ways to do this:
 *
 *   one kernel   transforms in registers and shared memory (section 6): a block computes 32 tiles
 *                of 32 filters, and a multiprocessor runs two blocks at once; in whole waves they
 *                take
 *
 *                    2 (16 T C K + 32 T C ceil(K / 32) + 24 T K + 28 C K) flop
 *
 *                where 32, 24 and 28 are the additions to transform pixels, results and filters
 *                (section 4.1), each of which occupies a unit for as long as a multiplication with
 *                its addition. A separate kernel transforms the filters ("FX")
 *   products     of matrices in memory, which separate kernels transform: 16 (T C + T K + C K)
 *                numbers are written and read in addition
 *
 * cuDNN has both (CUDNN_CONVOLUTION_..._ALGO_WINOGRAD and ..._WINOGRAD_NONFUSED) for the forward
 * and the gradient of the input, for 3 x 3 kernels without strides and dilation. For the gradient
 * of the filters it names both, but has only the second. Other tiles, as F(4x4, 3x3) in MIOpen, are
 * left out. Tensor-core kernels do not transform, so only fp32 is computed this way. */
#ifndef CS_WORKLOAD_WINOGRAD_H
#define CS_WORKLOAD_WINOGRAD_H

#include "sim/model/net.h"

/* A pass over a convolution: T tiles of a batch, C channels and K filters, in the roles that they
 * have in the pass. */
typedef struct cs_winograd {
    double tiles; /* 0: not possible */
    /* channels are summed over, except for the gradient of the filters, which sums over tiles */
    double channels, filters;
    double flop; /* flop by the definition, which the tiles replace */
    bool fused;  /* whether one kernel can do the whole pass */
} cs_winograd;

/* Rates that a device reaches. */
typedef struct cs_winograd_rates {
    double fused;             /* flop/s of the single kernel with all multiprocessors busy */
    double products;          /* flop/s of matrix products */
    double moved;             /* bytes/s */
    double launch;            /* s per kernel */
    uint32_t multiprocessors; /* 0: unknown, partial waves cost nothing extra */
} cs_winograd_rates;

/* Whether an operator is a 3 x 3 convolution in two dimensions without strides, dilation and
 * groups. */
bool cs_winograd_computes(const cs_op *op);

/* Fills the passes over a convolution for a batch; all zero if it cannot be computed this way. */
void cs_winograd_passes(const cs_net *net, const cs_op *op, uint32_t batch, cs_winograd *forward,
                        cs_winograd *backward_input, cs_winograd *backward_weight);

/* Seconds of the fastest available way for a pass that, by the definition, has `flop` and moves
 * `bytes`. */
double cs_winograd_seconds(const cs_winograd *pass, double flop, double bytes,
                           const cs_winograd_rates *rates);

#endif
