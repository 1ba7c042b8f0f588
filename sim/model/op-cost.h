/* What an operator of a network costs, from the shapes that it reads and writes.
 *
 * A flop is one addition or multiplication, so a multiply-accumulate is 2 flop; `macs` counts the
 * multiply-accumulates of convolutions, linear layers, those of experts included, and the two
 * products of attention and those of scans, which is what the reference implementations publish
 * (some of them under the name of "FLOPS").
 *
 * Bytes are those that must move between memory and the device when each tensor of an operator is
 * read and written once (twice where it takes two passes, as batch normalisation does).
 *
 * Kept bytes follow PyTorch 2.1 (eager, without compilation; torchvision 0.16, transformers 4.40
 * for the architectures):
 *   conv, linear      input
 *   batch, layer norm input, and two float32 statistics per channel or per row
 *   rms norm          input and the normalised input (it is composed of operators), one statistic
 *                     per row and head
 *   relu              output, in place
 *   gelu, silu        input          tanh, softmax   output         mul    both inputs
 *   max pool          input, and an int64 index per output
 *   average pool      input          adaptive pool   input, unless its output is one pixel (a mean)
 *   dropout           a mask of 1 byte per element
 *   attention, flash  queries, keys, values, output and a float32 per row and head
 *   attention, math   queries, keys, values and the weights after softmax; with dropout also its
 *                     mask and the weights after dropout
 *   embedding         token ids, int64
 *   cross entropy     logarithms of the probabilities (float32) and int64 targets
 *   squared error     input and target
 *   top k             probabilities of all experts (float32), and an int64 per chosen one
 *   dispatch          an int64 per row: which token it is
 *   grouped linear    input         combine         both inputs
 *   causal conv       input         scan            all inputs, output, a float32 per row and head
 *   add, concat, head concat, copy, view, rotary: nothing
 * An operator whose result needs no gradient keeps nothing, and products with frozen weights keep
 * no input: only the gradient of the weights would read it.
 * With narrow types (precision.h) a linear layer keeps its input as it was cast for the gradient
 * of the weights, in the place of the input itself: once where several layers read it, and of
 * what is gathered again (net-local.h) the part that the device has. The input is cast before the
 * first of them, the gradient of the result before the first product that reads it. Weights are
 * cast once a step, behind their update. Workspace is the matrix of weights of attention in memory;
 * what a convolution library asks for is not known here. Gradients of activations are counted over
 * the whole network (backward-memory.h).
 */
#ifndef CS_WORKLOAD_OP_COST_H
#define CS_WORKLOAD_OP_COST_H

#include "sim/model/net.h"
#include "sim/model/precision.h"
#include "sim/model/winograd.h"

/* One of the three passes over an operator. */
typedef struct cs_pass_cost {
    double flop, bytes;
    uint32_t launches; /* kernels, those of casts included; 0 where there is nothing to do */
    double cast_bytes; /* moved by kernels before it that cast operands to a narrow type */
    bool unaligned;    /* rows of operands do not start at multiples of 16 bytes, so that units for
                        * matrices cannot load them */
    double rows, columns; /* of the matrix that a linear layer's product makes; of fused attention,
                           * queries of all heads and kernels, and keys that each of them meets; 0:
                           * another operator */
    double product_bytes; /* part of `bytes` that a linear layer's product moves, */
    double result_bytes;  /* and its result's bytes; 0: another operator */
    double sides; /* of attention: those on which the band of pairs ends at other keys for each
                   * query: 1 causal, 2 with a window */
    cs_winograd winograd; /* of a convolution that can be computed so */
} cs_pass_cost;

/* What attention by math keeps besides its weights, each a tensor by itself. */
enum { CS_KEPT_DROPPED, CS_KEPT_DROPOUT, CS_KEPT_PADDING, CS_KEPT_APART };

typedef struct cs_op_cost {
    cs_pass_cost forward;
    cs_pass_cost backward_input;  /* gradients of what it reads */
    cs_pass_cost backward_weight; /* gradients of its parameters */
    cs_pass_cost accumulate; /* of backward_input: adding to gradients that are there already */
    uint32_t modules; /* through which the host goes for a pass, where they are several; else 0 */
    double macs;
    int64_t input_bytes, output_bytes; /* |x| and |y| */
    int64_t weights, biases;           /* parameters that it owns */
    int64_t copy_bytes;                /* of its weights, cast to a narrow type */
    int64_t cast_bytes;                /* of these, what is made of other weights that are there */
    int64_t narrowed_bytes;            /* of its weights, which are there in that type only */
    int64_t frozen;                    /* of these, how many are not trained */
    int64_t extra_kept_bytes;          /* what is kept and is no tensor of the network, */
    int64_t kept_cast;                 /* of it, the input as it was cast, */
    int64_t kept_apart[CS_KEPT_APART]; /* and tensors by themselves; all else of it is one */
    bool keeps_input, keeps_output;
    int64_t workspace_bytes;
} cs_op_cost;

/* For a batch of 1 to CS_BATCH_MAX samples. */
void cs_op_cost_of(const cs_net *net, const cs_op *op, uint32_t batch, cs_precision precision,
                   cs_op_cost *cost);

enum { CS_BATCH_MAX = 1 << 20 };

/* The type that an operator's products have when the network is trained in `precision`. */
cs_precision cs_op_precision(const cs_op *op, cs_precision precision);

/* Queries and keys that meet in a head of a sample: a fused causal kernel leaves out the half above
 * the diagonal, and what is outside of the window. */
double cs_op_pairs(const cs_attention *attention, double rows, double keys);

/* True when the gradient of input i is added to one that another reader of the tensor has made:
 * backward runs from the last operator to the first, so that the last reader's comes first. */
bool cs_op_accumulates(const cs_net *net, const cs_op *op, uint32_t i);

/* Of a tensor, for a batch. */
int64_t cs_tensor_bytes(const cs_net *net, cs_tensor tensor, uint32_t batch,
                        cs_precision precision);

/* True for a convolution that is the product of its filters and its input as it is: of one pixel,
 * without strides, padding and groups. */
bool cs_op_is_pointwise(const cs_op *op);

#endif
