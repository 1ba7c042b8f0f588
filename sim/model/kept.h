/* Memory that frameworks keep for a network, where it differs from the sum over its operators:
 * fused kernels keep less, and weight gradients may be made in separate memory before they are
 * summed.
 *
 * Single operators keep the same tensors as in PyTorch (op-cost.h). Fused kernels differ:
 *   norm           keeps its input and the statistics of its rows, and recomputes the normalised
 *                  rows (LayerNorm and RMSNorm of Apex and TransformerEngine)
 *   swiglu         computes the activation of a gate and its product with the other half in one
 *                  kernel, which keeps its inputs (Megatron-LM, megatron/core/fusions/
 *                  fused_bias_swiglu.py)
 *   cross_entropy  keeps the logits, and overwrites them with their gradient (TransformerEngine,
 *                  transformer_engine/pytorch/cross_entropy.py; Liger-Kernel); a loss that is not
 *                  fused keeps the logarithms in float32
 *   linear         linear layers with the same input are one product with one matrix (Megatron
 *                  Core: linear_qkv, and linear_fc1 with the gate)
 *
 * Gradients of weights:
 *   in_place            kernels add to the sum
 *   apart               each gradient is made in the type of the weights, and then added to the sum
 *                       (autograd)
 *   transformer_engine  kernels add to the sum, and autograd gets a placeholder as large as the
 *                       gradient. There is one permanent placeholder per shape
 *                       (transformer_engine/pytorch/module/base.py, get_dummy_wgrad). Gradients of
 *                       embeddings, and of matrices that are `wide`, are apart (Megatron-LM,
 *                       megatron/core/tensor_parallel/layers.py,
 *                       LinearWithGradAccumulationAndAsyncCommunication)
 *
 * Routing weights multiply the results of the experts when rows are combined; or, within the
 * experts, the input of their last product (Megatron Core 0.11 and later, megatron/core/
 * transformer/moe/experts.py). In the second case, the experts' results are not kept. The weighted
 * features are kept instead, in addition to the features before weighting, which a fused gate
 * recomputes.
 *
 * Products in a narrow type read their weights from two copies, one along each dimension
 * (TransformerEngine caches both from one micro-batch to the next:
 * transformer_engine/pytorch/module/base.py, get_weight_workspace). One copy is enough if the
 * device can multiply it either way round, as Blackwell can in fp8 (transformer_engine/pytorch/
 * utils.py, is_non_tn_fp8_gemm_supported), or if the second copy exists only during a product
 * (Megatron Core: disable_parameter_transpose_cache). Copies and weights are stored as follows:
 *   copies  copies are cast from weights in the wide type, which are stored as well
 *   alone   the weights have the narrow type, and only the optimizer's weights are wide (Megatron
 *           Core: fp8_param_gather, megatron/core/fp8_utils.py)
 *   cast    copies are made for each product (torchao/float8/float8_linear.py; XLA)
 * Narrow products keep their input either in the narrow type, or in the wide type, to cast it again
 * in backward (torchao: the same file, matmul_with_hp_or_float8_args, which saves input_hp).
 *
 * A loss that is not fused keeps logarithms in float32. While it runs, it also needs:
 *   in_place  nothing: temporaries use the memory of the logarithms
 *   copied    forward: a copy of the logits in float32 (Megatron-LM's cross-entropy-loss-fusion:
 *             megatron/core/fusions/fused_cross_entropy.py, whose jitted steps do not work in
 *             place)
 *   eager     forward: the same copy, if the logits are narrower; backward: the gradient of the
 *             logarithms and the gradient of the copy, before the latter is cast to the gradient of
 *             the logits (PyTorch's cross_entropy of logits.float(): torchtitan, train.py;
 *             aten/src/ATen/native/LossNLL.cpp)
 *   parallel  for logits that are split over the tensor axis. Forward: the copy, and the logits
 *             minus their maximum, in addition to the logarithms; backward: a third tensor in
 *             addition to the two of eager (PyTorch's loss_parallel: torch/distributed/tensor/
 *             parallel/loss.py, _log_softmax, _nll_loss_and_log_softmax_backward)
 *
 * The backward of FlashAttention sums the gradients of queries in float32. If it must be
 * deterministic, it uses one sum per wave of blocks, that is, ceil(multiprocessors / (sequences x
 * heads)) sums, and adds them up (flash-attention 2.4.1 and above, csrc/flash_attn/flash_api.cpp,
 * mha_bwd).
 *
 * FlashAttention reads tokens sequence by sequence, but Megatron's layers store them position by
 * position. TransformerEngine therefore reorders them before and after the kernel. With several
 * sequences, the result of attention is thus kept twice: as the kernel wrote it, for its backward,
 * and reordered, for the next product (transformer_engine/pytorch/attention/dot_product_attention/
 * backends.py, FlashAttention.forward). FlashAttention does not support queries that are wider than
 * values, as in latent attention; another kernel is used for these (dot_product_attention/utils.py,
 * get_attention_backend).
 *
 * Math attention (attention that is not fused) can exclude the padding of samples by a mask, which
 * sets the weights there to zero. The mask has one byte per pair of tokens and is shared by all
 * heads. Each layer makes its own mask and keeps it for its backward (TransformerEngine, the same
 * file, UnfusedDotProductAttention: masked_fill by the mask of utils.py, get_full_mask).
 *
 * Megatron-LM gathers tokens before the last matrix, and before experts whose dispatcher gathers
 * tokens, into one permanent buffer that grows as needed (megatron/core/utils.py,
 * GlobalMemoryBuffer; tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication;
 * transformer/moe/token_dispatcher.py, MoEAllGatherTokenDispatcher). Math attention uses the same
 * buffer.
 */
#ifndef CS_WORKLOAD_KEPT_H
#define CS_WORKLOAD_KEPT_H

#include "sim/model/op-cost.h"

typedef enum cs_fused {
    CS_FUSED_NORM,
    CS_FUSED_SWIGLU,
    CS_FUSED_CROSS_ENTROPY,
    CS_FUSED_LINEAR,
    CS_N_FUSED
} cs_fused;

typedef enum cs_weight_gradients {
    CS_WEIGHT_GRADIENTS_IN_PLACE,
    CS_WEIGHT_GRADIENTS_APART,
    CS_WEIGHT_GRADIENTS_PLACEHOLDERS,
} cs_weight_gradients;

/* Names of cs_fused and cs_weight_gradients, NULL-terminated: "norm", "swiglu", "cross_entropy",
 * "linear"; "in_place", "apart", "transformer_engine". */
extern const char *const cs_fused_names[];
extern const char *const cs_weight_gradients_names[];

/* Names of cs_narrow_weights and cs_loss_steps, NULL-terminated: "copies", "alone", "cast";
 * "in_place", "copied", "eager", "parallel", "shifted". */
extern const char *const cs_narrow_weights_names[];
extern const char *const cs_loss_names[];

/* Names of cs_gather_buffer, NULL-terminated: "none", "last_matrix", "experts", "all". */
extern const char *const cs_gather_buffer_names[];

/* Storage of weights that products read in a narrow type (precision.h). */
typedef enum cs_narrow_weights {
    CS_NARROW_WEIGHTS_COPIES, /* in the wide type, plus copies that are cast once per step */
    CS_NARROW_WEIGHTS_ALONE,  /* in the narrow type only */
    CS_NARROW_WEIGHTS_CAST,   /* in the wide type; cast for each product */
} cs_narrow_weights;

/* Ways to compute a loss that is not fused. */
typedef enum cs_loss_steps {
    CS_LOSS_IN_PLACE, /* temporaries use the memory of the logarithms */
    CS_LOSS_COPIED,   /* needs an additional copy of the logits in float32 */
    CS_LOSS_EAGER,    /* operator by operator */
    CS_LOSS_PARALLEL, /* operator by operator, for a part of the vocabulary */
    /* operator by operator, for a shifted copy of the float32 copy; both copies are saved for the
     * backward */
    CS_LOSS_SHIFTED,
} cs_loss_steps;

/* Tensors that are gathered into a permanent buffer; each value includes those above it. */
typedef enum cs_gather_buffer {
    CS_GATHER_BUFFER_NONE,
    CS_GATHER_BUFFER_LAST,    /* tokens before the last matrix */
    CS_GATHER_BUFFER_EXPERTS, /* tokens of all devices that the experts are split over */
    CS_GATHER_BUFFER_ALL,     /* tokens before all products */
} cs_gather_buffer;

typedef struct cs_kept_rules {
    uint32_t fused;            /* fused kernels: bits 1 << cs_fused */
    uint32_t weight_gradients; /* cs_weight_gradients */
    /* whether math attention has a buffer as large as its matrix of weights, which all layers use
     * (Megatron-LM, megatron/core/transformer/dot_product_attention.py, the global memory buffer
     * "mpu") */
    bool attention_buffer;
    uint32_t gather_buffer; /* cs_gather_buffer */
    bool attention_copy;    /* the result of fused attention is stored in two token orders */
    bool keys_copied;       /* fused attention reads copies of keys and values */
    bool pass_gradients;    /* separate weight gradients stay allocated until a backward ends */
    bool padding_masks;     /* math attention keeps a mask of its padding */
    /* bytes of a sample's inputs other than token ids, allocated while a forward runs */
    int64_t input_bytes;
    uint32_t loss;           /* cs_loss_steps */
    uint32_t narrow_weights; /* cs_narrow_weights */
    bool one_copy;           /* both products that read a weight share one narrow copy */
    bool wide_inputs;        /* narrow products keep their input in the wide type */
    bool weighted_features;  /* routing weights are multiplied within the experts */
    /* bytes of the library workspace for expert products, which all layers use */
    int64_t grouped_workspace;
    /* multiprocessors of the device, with deterministic FlashAttention; 0: its sums are not
     * counted */
    uint32_t deterministic_multiprocessors;
} cs_kept_rules;

/* Adjusts an operator's cost, mainly its saved activations, to fused kernels and the other
 * rules. */
void cs_kept_fuse(const cs_net *net, const cs_op *op, const cs_kept_rules *rules, uint32_t batch,
                  cs_precision precision, cs_op_cost *cost);

/* Whether a fused kernel recomputes input i of the operator, so that this input is not kept for
 * it. */
bool cs_kept_again(const cs_net *net, const cs_op *op, uint32_t i, const cs_kept_rules *rules);

/* Whether two operators are computed as one product with one matrix. */
bool cs_kept_one_matrix(const cs_op *a, const cs_op *b, const cs_kept_rules *rules);

/* Whether the gradient of the operator's input overwrites that input, which is kept. */
bool cs_kept_in_place(const cs_op *op, const cs_kept_rules *rules);

/* Returns the bytes of the operator's weight gradient while its backward runs, in addition to the
 * sum. */
int64_t cs_kept_gradient(const cs_op *op, const cs_kept_rules *rules, cs_precision precision);

/* Returns the additional bytes that an operator needs while its backward runs, for `batch`
 * sequences: the sums of the query gradients of fused attention, or the third tensor of a parallel
 * loss. */
int64_t cs_kept_beside_backward(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                                uint32_t batch);

/* Returns the additional bytes that a loss needs while its forward runs: copies of the logits, and
 * the batch's inputs, which stay allocated until the forward ends. 0 for other operators. */
int64_t cs_kept_beside_loss(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                            uint32_t batch, cs_precision precision);

/* Returns the bytes of each float32 gradient that a loss makes before the gradient of the logits;
 * 0: it makes none. See `steps` of cs_backward. */
int64_t cs_kept_loss_step(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          uint32_t batch);

/* Returns the bytes of the placeholder for the operator's weight gradient (for one matrix, if there
 * are several experts); 0: none. The placeholder is permanent once the operator has run, and the
 * same operators of other layers share it. */
int64_t cs_kept_placeholder(const cs_op *op, const cs_kept_rules *rules, cs_precision precision);

/* Returns the bytes of the library workspace that the operator needs; 0: none. The workspace is
 * permanent once the operator has run, and all such operators of a device share it. */
int64_t cs_kept_workspace(const cs_op *op, const cs_kept_rules *rules);

/* Returns the bytes that the operator needs in the permanent buffer that all operators share; 0:
 * none. `cost` is the operator's cost; `expert_places` is the number of devices that the experts
 * are split over. */
int64_t cs_kept_in_buffer(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          const cs_op_cost *cost, uint32_t expert_places, uint32_t batch,
                          cs_precision precision);

/* Whether an exchange gathers its tensor into this buffer, so that the tensor takes no memory of
 * its own. */
bool cs_kept_gathers_into_buffer(const cs_net *net, const cs_op *op, const cs_kept_rules *rules);

#endif
