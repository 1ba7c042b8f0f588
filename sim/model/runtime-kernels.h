/* Times of the kernels of a training runtime, used if more is known about it than the roofline of
 * each single operator (accelerator.h):
 *
 *   products        launch + the longer of computing tile by tile and moving bytes, + a share of
 *                   writing the result. Each multiprocessor computes one tile of the result at a
 *                   time, so tiles take whole waves over the device's multiprocessors, and each
 *                   wave has to be filled. Fitted by least squares to measured products of an A100
 *                   and an H100 (facts/devices/), this misses 1.4 and 4 % of the time; launch +
 *                   flop + bytes, with the same rates for all sizes, misses 2.7 and 37 %. If tiles
 *                   are not known, and for experts: launch + flop / (peak * compute) + bytes /
 *                   (bandwidth * memory). If rows of operands do not start at multiples of 16
 *                   bytes, the peak of fp32 is used, because matrix units need such rows (NVIDIA,
 *                   Matrix Multiplication Background User's Guide, section 3.2)
 *   fused attention flop / (peak * efficiency), separately for forward and backward, by the
 *                   kernel's version, the size of heads and the keys per query (fused-attention.h)
 *   all else        launch + bytes / (bandwidth * memory)
 *   the host        starts all kernels and messages one after another, ahead of the device, unless
 *                   a CUDA graph does. Graphs do not contain the kernels of experts, whose rows
 *                   differ from step to step unless experts have a capacity. The host may be slower
 *                   than the host of a DGX H100, by a factor of the device. No task ends before the
 *                   host has started all of it (cs_class.host)
 *   a step          additional time of the host while the device computes nothing
 *   sums            If a product adds the gradient of weights to a sum that micro-batches share
 *                   (memory.weight_gradients is not "apart"), it reads and writes the sum, in the
 *                   sum's type. If gradients are separate tensors, another kernel reads both and
 *                   writes the sum. SimuMax's grouped products on B200 (MooreThreads, 4dcaae51,
 *                   configs/system/b200_bf16_ceperm.json: 32 experts of 1,024 rows, 7,168 by 4,096)
 *                   take 92 us with float32 sums and 77 with bf16 sums; forward they take 58
 *   in a step       all times are multiplied by a factor of the device: clocks under lasting load,
 *                   caches that the previous kernel has filled
 *
 * The rates are from the device's description ("training" in facts/devices/), each with its
 * source; rates that it lacks are taken from its groups of operators. Runtimes that fuse have no
 * separate kernels for the parts of norms, for the activation before a gate, or for dropout before
 * a residual sum. They have one product if several linear layers read the same input, so their
 * gradients need not be summed. A compiler keeps such products separate (`separate_products`;
 * PyTorch, torch/_inductor/config.py: pre_grad_fusion_options and post_grad_fusion_options are
 * empty). It sums their gradients in the last product (torch/_inductor/fx_passes/post_grad.py,
 * is_valid_addmm_fusion) or in a kernel that reads them next; results of torch._scaled_mm, for fp8,
 * cannot be operands of an addmm.
 */
#ifndef CS_WORKLOAD_RUNTIME_KERNELS_H
#define CS_WORKLOAD_RUNTIME_KERNELS_H

#include "sim/model/accelerator.h"
#include "sim/model/op-shape.h"

/* Kernels of a loss (loss-kernels.h). */
typedef enum cs_loss_kernels {
    CS_LOSS_KERNELS_FUSED,
    CS_LOSS_KERNELS_STEPWISE,
    CS_LOSS_KERNELS_JITTED,
    CS_LOSS_KERNELS_EAGER,
    CS_LOSS_KERNELS_PARALLEL,
} cs_loss_kernels;

/* Names of cs_loss_kernels: "fused", "stepwise", "jitted", "eager", "parallel"; ended by NULL. */
extern const char *const cs_loss_kernel_names[];

/* The kernels of a runtime, as in scenarios; zeroed: each operator is a roofline. */
typedef struct cs_runtime_kernels {
    bool given;
    bool fused;
    /* although fused: linear layers with the same input are separate products */
    bool separate_products;
    bool written_out; /* if not fused: GELU has a kernel per step of its formula */
    /* although fused: a gate's activation and product are separate kernels */
    bool eager_gate;
    bool eager_rotary;   /* rotary positions have a kernel per step of their formula */
    uint32_t flash;      /* cs_flash */
    uint32_t loss;       /* cs_loss_kernels */
    cs_time host;        /* host time per operator */
    cs_time host_call;   /* host time per backward of an operator, or per message; 0: `host` */
    cs_time host_kernel; /* host time per kernel, in addition */
    cs_time host_product_backward; /* host time per backward of a linear layer; 0: `host_call` */
    /* without fused attention: the softmax is one kernel only if samples times heads is a multiple
     * of this; 0: always */
    uint32_t softmax_multiple;
    /* operators per micro-batch that the host starts besides the network's */
    double batch_operators;
    bool launch_blocking; /* the host waits for each kernel before it starts the next */
    bool graphs;          /* CUDA graphs start all kernels except experts' kernels */
    /* products of experts are started one by one, with their casts; see also expert-kernels.h */
    bool expert_loop;
    /* with expert_loop: each expert has its own modules, and all kernels run on one stream */
    bool expert_modules;
    bool foreach_optimizer; /* updates have a kernel per step of their formula */
    bool counts_zeros;      /* zeros are counted once per step in each tensor of gradients */
    bool fused_experts;     /* one kernel does a product of experts, their activation and casts */
    bool current_scaling;   /* casts to fp8 first look for the largest element */
    bool tokens_once;       /* the dispatcher sends a token once per place, not once per expert */
    bool deterministic;     /* each new tensor is filled before it is written */
    bool eager_ring;        /* ring attention merges partial results operator by operator */
    /* ring attention adds each partial result to a sum in the network's type, with one kernel per
     * result */
    bool summed_ring;
    bool sums_apart; /* separate weight gradients are added to sums for each micro-batch */
    /* ratio of kernels' times to the times of the device's description, e.g. for older libraries; 0
     * means 1 */
    double factor;
    /* times that all gradients are read or written in addition to the update */
    double gradient_passes;
} cs_runtime_kernels;

/* Subtracts the work that a fused kernel saves; if kernels are not fused, adds kernels that scale
 * and mask the weights of attention. Unfused attention has two more kernels: one for dropout, and
 * one that copies its result in the order of tokens. Its backward has one for dropout, and one that
 * joins the gradients of queries, keys and values (TransformerEngine, transformer_engine/pytorch/
 * attention/dot_product_attention/backends.py, UnfusedDotProductAttention: permute(2, 0, 1,
 * 3).contiguous(); Megatron-LM, core/transformer/attention.py: split of mixed_qkv; transformers
 * 4.40, models/gpt2/modeling_gpt2.py, _merge_heads and c_attn(...).split). Sizes stay the same. */
void cs_runtime_kernels_fuse(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                             cs_op_cost *cost);

/* Adds PyTorch's softmax kernels if Megatron-LM's softmax in one kernel is not available
 * (`softmax_multiple`), and takes back its savings: weights of 2 bytes are cast to float32, masked,
 * go through the softmax and are cast back. For W bytes in the network's type these kernels move 3,
 * 4, 4 and 3 W instead of 1.5 W; in backward the casts move 3 W each, the softmax 6 W and the mask
 * 4 W, instead of 2 W (megatron/model/fused_softmax.py, FusedScaleMaskSoftmax: is_kernel_available,
 * forward_torch_softmax). */
void cs_runtime_kernels_fall_back(const cs_runtime_kernels *kernels, const cs_op *op,
                                  uint32_t batch, cs_op_cost *cost);

/* Changes a product whose kernel adds the weight gradient to its sum: it reads and writes the sum,
 * `sum_width` bytes per element, and writes no gradient of `width` bytes. */
void cs_runtime_kernels_add_up(const cs_runtime_kernels *kernels, const cs_op *op, double width,
                               double sum_width, cs_op_cost *cost);

/* Adds, if weight gradients are separate tensors and several micro-batches share a sum, the kernel
 * that reads a gradient of `width` bytes per element and the sum, and writes the sum, for all
 * trained parameters of an operator. The first micro-batch may find no sum
 * (torch/csrc/autograd/functions/accumulate_grad.h); this is neglected. */
void cs_runtime_kernels_add_apart(const cs_runtime_kernels *kernels, double width, double sum_width,
                                  cs_op_cost *cost);

/* Adds the kernels of casts to fp8 with the tensor's own scale: they first read the tensor once
 * more for its largest element and compute its scale, in two more kernels (TransformerEngine,
 * transformer_engine/ pytorch/csrc/quantizer.cpp, Float8CurrentScalingQuantizer; DelayedScaling
 * uses the largest element of earlier steps). */
void cs_runtime_kernels_scale(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                              uint32_t batch, cs_precision precision, cs_op_cost *cost);

/* Adds the bytes and kernels of ring attention besides fused attention itself, for context
 * parallelism in a ring of n steps with E elements of the result.
 *
 * PyTorch's ring (eager_ring): keys and values have as many heads as queries (torchtitan/models/
 * llama3/model/model.py, repeat_kv), and partial results are in float32 (torch/distributed/tensor/
 * experimental/_attention.py: _SDPAMerger, _templated_ring_attention,
 * _templated_ring_attention_backward).
 *
 *   forward   each step casts its result; each step but the first merges it, out - sigmoid(...) *
 *             (out - result), which reads 2 E, E and 2 E floats and writes E floats three times;
 *             each step but the last joins keys and values to send them, 2 E read and written; at
 *             the end the result is cast back
 *   backward  each step adds three gradients to sums in float32, and joins the sums for keys and
 *             values to send them
 *
 * TransformerEngine's ring (summed_ring; transformer_engine/pytorch/attention.py,
 * AttnFuncWithCPAndKVP2P): keys and values, K elements per place, have their own heads, and
 * everything is in the type of the network.
 *
 *   forward   keys and values are joined, and each step but the first copies half of them; the
 *             result is filled with zeros, and each step adds its own result: E + 3 n E + 2 K +
 *             (n - 1) K
 *   backward  keys and values are copied, and half of them again in each step but the last; the
 *             first step copies its gradients of queries, the others add them: 3 n E - E. Of the
 *             gradients of keys and values, the first step copies half, the last step adds all, the
 *             others add half: 2 K + (n - 1) K + K + 1.5 (n - 2) K + 3 K
 *
 * Two costs are neglected. Logarithms are one number per row (of TransformerEngine's ring, only the
 * kernel that merges them counts). In a ring of causal attention, every place but the last merges
 * only half of the rows in some steps; the last place waits for no other. */
void cs_runtime_kernels_ring(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                             uint32_t batch, cs_precision precision, cs_op_cost *cost);

/* Adds the kernels of PyTorch's deterministic algorithms that fill tensors before an operator
 * writes them: its result, the gradients of its inputs and, if these are separate tensors
 * (`apart`), the gradients of its weights, in the network's precision. */
void cs_runtime_kernels_fill(const cs_runtime_kernels *kernels, const cs_op *op,
                             cs_precision precision, bool apart, cs_op_cost *cost);

/* Seconds of the host (cs_host_times). */
typedef struct cs_host_seconds {
    double forward, backward_input, backward_weight;
    double skipped; /* part of forward */
} cs_host_seconds;

/* Seconds that the host takes for an operator. Both halves of backward are one operator for the
 * host, whose time is divided between them by their numbers of kernels. Includes kernels that
 * reorder the scales of blocks (mxfp8, nvfp4) into the order of tiles and, if weight gradients are
 * separate tensors (`apart`), kernels that add them to sums. Unfused attention counts as one
 * operator per kernel. */

cs_host_seconds cs_runtime_kernels_host(const cs_runtime_kernels *kernels,
                                        const cs_accelerator *device, const cs_op *op,
                                        const cs_op_cost *cost, cs_precision precision, bool apart);

/* Seconds that the host takes for n kernels of an update. Each kernel is an operator without a
 * module. */
double cs_runtime_kernels_starts(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                                 double n);

/* Seconds that the host takes for a collective within a layer, which by default is an operator with
 * one kernel. */
double cs_runtime_kernels_message(const cs_runtime_kernels *kernels, const cs_accelerator *device);

/* Seconds that the host takes for the operators of a micro-batch outside the network; no graph
 * starts them. */
double cs_runtime_kernels_batch(const cs_runtime_kernels *kernels, const cs_accelerator *device);

/* Seconds of the device for a pass of an operator. */
double cs_runtime_kernels_seconds(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                                  const cs_op *op, const cs_pass_cost *cost, cs_pass pass,
                                  cs_precision precision);

/* Seconds of an update that moves `bytes`; additional passes over gradients (gradient_passes) move
 * `gradient_bytes` each. */
double cs_runtime_kernels_update(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                                 double bytes, double gradient_bytes);

/* Seconds to count the zeros in `gradients` gradients of `width` bytes in `tensors` tensors: the
 * longer of the device's moving and the host's starting. Four kernels per tensor: each element is
 * compared with 0, which reads the tensor and writes a byte per element; these bytes are summed;
 * the sum is subtracted from the number of elements, and added to the count of the other tensors
 * (Megatron-LM, core/optimizer/ clip_grads.py, count_zeros_fp32: grad.numel() -
 * torch.count_nonzero(grad); PyTorch, aten/src/ATen/native/TensorAdvancedIndexing.cpp,
 * count_nonzero_cuda: (self != 0).sum()). */
double cs_runtime_kernels_count_zeros(const cs_runtime_kernels *kernels,
                                      const cs_accelerator *device, double gradients, double width,
                                      uint32_t tensors);

#endif
