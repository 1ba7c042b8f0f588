/* The cost of an operator of a network, from the shapes that it reads and writes.
 *
 * A flop is one addition or multiplication, so a multiply-accumulate is 2 flop. `macs` counts the
 * multiply-accumulates of convolutions, linear layers (including experts), scans, and the
 * two products of attention, as reference implementations publish them (some under the name
 * "FLOPS").
 *
 * Bytes are those that must move between memory and the device if each tensor of an operator is
 * read and written once (twice if the operator needs two passes, as batch normalisation does).
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
 *   top k             probabilities of all experts (float32), and an int64 per chosen expert
 *   dispatch          an int64 per row: the token that the row holds
 *   grouped linear    input         combine         both inputs
 *   causal conv       input         scan            all inputs, output, a float32 per row and head
 *   add, concat, head concat, copy, view, rotary: nothing
 * An operator whose result needs no gradient keeps nothing. Products with frozen weights keep no
 * input, because only the gradient of the weights would read it.
 *
 * With narrow types (precision.h), a linear layer keeps its input after the cast, for the gradient
 * of the weights, instead of the input itself: only once if several layers read the input, and only
 * the device's own part if the input is gathered again (net-local.h). The input is cast before the
 * first of these layers; the gradient of the result is cast before the first product that reads it.
 * Weights are cast once per step, after their update. Workspace is the matrix of attention weights
 * in memory; the workspace of convolution libraries is not known here. Gradients of activations are
 * counted over the whole network (backward-memory.h).
 */
#ifndef CS_WORKLOAD_OP_COST_H
#define CS_WORKLOAD_OP_COST_H

#include "sim/model/net.h"
#include "sim/model/precision.h"
#include "sim/model/winograd.h"

/* The cost of one of the three passes of an operator. */
typedef struct cs_pass_cost {
    double flop, bytes;
    uint32_t launches; /* kernels, casts included; 0: nothing to do */
    double cast_bytes; /* bytes moved by kernels that first cast operands to a narrow type */
    /* whether rows of operands do not start at multiples of 16 bytes, so that matrix units cannot
     * load them */
    bool unaligned;
    /* size of a linear layer's result; for fused attention: queries of all heads and kernels, and
     * keys per query; 0: another operator */
    double rows, columns;
    /* part of `bytes` that a linear layer's product moves; 0: another operator */
    double product_bytes;
    double result_bytes; /* bytes of the product's result; 0: another operator */
    /* sides of the band of attended keys that depend on the query: 1 if causal, 2 with a window; 0:
     * neither */
    double sides;
    cs_winograd winograd; /* Winograd's algorithm for a convolution; zeroed: not possible */
} cs_pass_cost;

/* Tensors that attention by math keeps besides its weights. */
enum { CS_KEPT_DROPPED, CS_KEPT_DROPOUT, CS_KEPT_PADDING, CS_KEPT_APART };

typedef struct cs_op_cost {
    cs_pass_cost forward;
    cs_pass_cost backward_input;  /* gradients of its inputs */
    cs_pass_cost backward_weight; /* gradients of its parameters */
    cs_pass_cost accumulate; /* part of backward_input: additions to gradients that exist already */
    uint32_t modules;        /* modules that the host goes through per pass, if several; else 0 */
    double macs;
    int64_t input_bytes, output_bytes; /* |x| and |y| */
    int64_t weights, biases;           /* number of parameters that it owns */
    int64_t copy_bytes;                /* bytes of copies of its weights in a narrow type */
    /* part of copy_bytes: copies made from weights that are in memory as well */
    int64_t cast_bytes;
    /* bytes to subtract for weights that exist only in a narrower type */
    int64_t narrowed_bytes;
    int64_t frozen;           /* number of its parameters that are not trained */
    int64_t extra_kept_bytes; /* kept bytes that are not tensors of the network */
    int64_t kept_cast;        /* part of extra_kept_bytes: the input after its cast */
    /* parts of extra_kept_bytes that are separate tensors; all the rest is one tensor */
    int64_t kept_apart[CS_KEPT_APART];
    bool keeps_input, keeps_output;
    int64_t workspace_bytes;
} cs_op_cost;

/* Computes the cost of an operator for a batch of 1 to CS_BATCH_MAX samples. */
void cs_op_cost_of(const cs_net *net, const cs_op *op, uint32_t batch, cs_precision precision,
                   cs_op_cost *cost);

enum { CS_BATCH_MAX = 1 << 20 };

/* The precision of an operator's products if the network is trained in `precision`. */
cs_precision cs_op_precision(const cs_op *op, cs_precision precision);

/* The number of pairs of a query and a key in a head of a sample. A fused causal kernel leaves out
 * the pairs above the diagonal and outside the window. */
double cs_op_pairs(const cs_attention *attention, double rows, double keys);

/* Whether the gradient of input i is added to a gradient that another reader of the tensor has
 * made. Backward runs from the last operator to the first, so the last reader makes the first
 * gradient. */
bool cs_op_accumulates(const cs_net *net, const cs_op *op, uint32_t i);

/* Bytes of a tensor for a batch. */
int64_t cs_tensor_bytes(const cs_net *net, cs_tensor tensor, uint32_t batch,
                        cs_precision precision);

/* Whether a convolution is a plain product of its filters and its input: a kernel of one pixel,
 * without strides, padding and groups. */
bool cs_op_is_pointwise(const cs_op *op);

#endif
