/* What frameworks keep of a network besides what its operators by themselves do: fused kernels keep
 * less, and gradients of weights may be made aside before they are summed.
 *
 * Operators by themselves keep what PyTorch keeps of them (op-cost.h). Fused kernels differ:
 *   norm           keeps its input and the statistics of its rows, and computes the normalised rows
 *                  again (LayerNorm and RMSNorm of Apex and TransformerEngine)
 *   swiglu         the activation of a gate and its product with the other half are one kernel, which
 *                  keeps what it reads (Megatron-LM, megatron/core/fusions/fused_bias_swiglu.py)
 *   cross_entropy  keeps the logits, and writes their gradient in their place (TransformerEngine,
 *                  transformer_engine/pytorch/cross_entropy.py; Liger-Kernel); one by itself keeps
 *                  the logarithms in float32
 *   linear         linear layers that read the same are one product with one matrix (Megatron Core:
 *                  linear_qkv, and linear_fc1 with the gate)
 *
 * Gradients of weights:
 *   in_place            kernels add to the sum
 *   apart               each is made in the type of the weights, and then added to the sum (autograd)
 *   transformer_engine  kernels add to the sum, and autograd gets a placeholder as large as the
 *                       gradient, of which there is one for each shape, kept for good
 *                       (transformer_engine/pytorch/module/base.py, get_dummy_wgrad); embeddings, and
 *                       matrices that are `wide`, are apart (Megatron-LM, megatron/core/
 *                       tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication)
 *
 * Weights of routed rows multiply what the experts made of them, when the rows are combined; or,
 * within the experts, what their last product reads (Megatron Core from 0.11 on, megatron/core/
 * transformer/moe/experts.py). Then the experts' results are not kept, but the weighted features
 * are, besides the features, which a fused gate computes again.
 *
 * Products in a narrow type read their weights in two copies, along the one and the other dimension
 * (TransformerEngine caches both from one micro-batch to the next:
 * transformer_engine/pytorch/module/ base.py, get_weight_workspace), or in one, where the device
 * multiplies either way round, as Blackwell does with fp8 (transformer_engine/pytorch/utils.py,
 * is_non_tn_fp8_gemm_supported), or where the second one is made for the time of a product
 * (Megatron Core: disable_parameter_transpose_cache):
 *   copies  cast from weights in the wide type, which are there as well
 *   alone   the weights have the narrow type, and only the optimizer's are wide (Megatron Core:
 *           fp8_param_gather, megatron/core/fp8_utils.py)
 *   cast    made for each product (torchao/float8/float8_linear.py; XLA)
 * They keep what they read as it was cast, or as it was, to cast it again in backward (torchao: the
 * same file, matmul_with_hp_or_float8_args, which saves input_hp).
 *
 * A loss that is not fused keeps logarithms in float32. Besides, while it runs:
 *   in_place  nothing: what it computes on the way takes their memory
 *   copied    forward, a copy of the logits in float32 (Megatron-LM's cross-entropy-loss-fusion:
 *             megatron/core/fusions/fused_cross_entropy.py, whose jitted steps do not work in place)
 *   eager     that copy, where logits are narrower; and backward the gradient of the logarithms and
 *             that of the copy, before it is cast to the gradient of the logits (PyTorch's
 *             cross_entropy of logits.float(): torchtitan, train.py; aten/src/ATen/native/LossNLL.cpp)
 *   parallel  of logits that are divided over the tensor axis: forward, the copy and the logits
 *             less their largest one beside the logarithms; backward, a third tensor beside those
 *             of eager (PyTorch's loss_parallel: torch/distributed/tensor/parallel/loss.py,
 *             _log_softmax, _nll_loss_and_log_softmax_backward)
 *
 * The backward of FlashAttention sums the gradients of queries in float32. Where it must be
 * deterministic, it has a sum for each wave of blocks, ceil(multiprocessors / (sequences x heads)),
 * and adds them up (flash-attention 2.4.1 and above, csrc/flash_attn/flash_api.cpp, mha_bwd).
 *
 * FlashAttention takes tokens sequence by sequence, Megatron's layers have them position by
 * position. TransformerEngine reorders on both sides, so that with several sequences the result of
 * attention is kept twice: as the kernel wrote it, for its backward, and reordered, for the
 * product behind it (transformer_engine/pytorch/attention/dot_product_attention/backends.py,
 * FlashAttention.forward). It takes no queries wider than values, as latent attention has; another
 * kernel then does (dot_product_attention/utils.py, get_attention_backend).
 *
 * Attention by math that leaves out the padding of samples sets its weights to zero there by a mask
 * of a byte for each pair of tokens, which all heads share and each layer makes by itself and keeps
 * for its backward (TransformerEngine, the same file, UnfusedDotProductAttention: masked_fill by
 * the mask of utils.py, get_full_mask).
 *
 * Megatron-LM gathers tokens in front of the last matrix, and in front of experts whose dispatcher
 * gathers them, into one buffer that grows and stays (megatron/core/utils.py, GlobalMemoryBuffer;
 * tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication; transformer/moe/
 * token_dispatcher.py, MoEAllGatherTokenDispatcher). Attention by math takes the same buffer.
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

/* "norm", "swiglu", "cross_entropy", "linear"; "in_place", "apart", "transformer_engine"; ended by
 * NULL. */
extern const char *const cs_fused_names[];
extern const char *const cs_weight_gradients_names[];

/* "copies", "alone", "cast"; "in_place", "copied", "eager", "parallel"; ended by NULL. */
extern const char *const cs_narrow_weights_names[];
extern const char *const cs_loss_names[];

/* "none", "last_matrix", "experts"; ended by NULL. */
extern const char *const cs_gather_buffer_names[];

/* How weights are there that products read in a narrow type (precision.h). */
typedef enum cs_narrow_weights {
    CS_NARROW_WEIGHTS_COPIES, /* as wide ones, and in copies that are cast once a step */
    CS_NARROW_WEIGHTS_ALONE,  /* in the narrow type only */
    CS_NARROW_WEIGHTS_CAST,   /* as wide ones, cast for each product */
} cs_narrow_weights;

/* How a loss that is not fused is computed. */
typedef enum cs_loss_steps {
    CS_LOSS_IN_PLACE, /* in the memory of the logarithms */
    CS_LOSS_COPIED,   /* of a copy of the logits in float32, besides */
    CS_LOSS_EAGER,    /* operator by operator */
    CS_LOSS_PARALLEL, /* likewise, of a part of the vocabulary */
    CS_LOSS_SHIFTED,  /* likewise for a copy of the copy; both are saved for the backward */
} cs_loss_steps;

/* What is gathered into a buffer that stays; each includes those above it. */
typedef enum cs_gather_buffer {
    CS_GATHER_BUFFER_NONE,
    CS_GATHER_BUFFER_LAST,    /* tokens in front of the last matrix */
    CS_GATHER_BUFFER_EXPERTS, /* tokens of all places that divide the experts */
    CS_GATHER_BUFFER_ALL,     /* tokens in front of all products */
} cs_gather_buffer;

typedef struct cs_kept_rules {
    uint32_t fused;            /* bits 1 << cs_fused */
    uint32_t weight_gradients; /* cs_weight_gradients */
    /* attention by math has a buffer as large as its matrix of weights, which all layers use
     * (Megatron-LM, megatron/core/transformer/ dot_product_attention.py, the global memory buffer
     * "mpu") */
    bool attention_buffer;
    uint32_t gather_buffer;    /* cs_gather_buffer */
    bool attention_copy;       /* the result of fused attention is there in two orders of tokens */
    bool keys_copied;          /* fused attention reads copies of keys and values */
    bool pass_gradients;       /* gradients of weights that are apart stay until a backward ends */
    bool padding_masks;        /* attention by math keeps a mask of its padding */
    int64_t input_bytes;       /* of a sample's inputs besides token ids, while a forward runs */
    uint32_t loss;             /* cs_loss_steps */
    uint32_t narrow_weights;   /* cs_narrow_weights */
    bool one_copy;             /* which both products with weights read */
    bool wide_inputs;          /* narrow products keep what they read as it was */
    bool weighted_features;    /* weights of routed rows multiply within the experts */
    int64_t grouped_workspace; /* of a library's for products of experts, which all layers use */
    uint32_t deterministic_multiprocessors; /* of the device, with deterministic FlashAttention; 0:
                                             * its sums are not counted */
} cs_kept_rules;

/* Changes what an operator keeps to what it does within a fused kernel. */
void cs_kept_fuse(const cs_net *net, const cs_op *op, const cs_kept_rules *rules, uint32_t batch,
                  cs_precision precision, cs_op_cost *cost);

/* Whether a fused kernel computes input i of the operator again, which is then not kept for it. */
bool cs_kept_again(const cs_net *net, const cs_op *op, uint32_t i, const cs_kept_rules *rules);

/* Whether two operators are one product with one matrix. */
bool cs_kept_one_matrix(const cs_op *a, const cs_op *b, const cs_kept_rules *rules);

/* Whether the gradient of the operator's input takes the memory of the input, which is kept. */
bool cs_kept_in_place(const cs_op *op, const cs_kept_rules *rules);

/* Bytes of the gradient of the operator's weights while its backward runs, besides the sum. */
int64_t cs_kept_gradient(const cs_op *op, const cs_kept_rules *rules, cs_precision precision);

/* Bytes that an operator has besides while its backward runs, for a batch of `batch` sequences: the
 * sums of queries' gradients of a fused attention, the third tensor of a parallel loss. */
int64_t cs_kept_beside_backward(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                                uint32_t batch);

/* Bytes that a loss has besides while it runs forward: copies of the logits, and the batch's inputs
 * that are there until the forward ends; 0 of other operators. */
int64_t cs_kept_beside_loss(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                            uint32_t batch, cs_precision precision);

/* Bytes of each gradient in float32 that a loss makes on the way to that of the logits; 0: it makes
 * none. See `steps` of cs_backward. */
int64_t cs_kept_loss_step(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          uint32_t batch);

/* Bytes of the placeholder of its weights (of an expert's matrix, where there are several), which
 * is there for good once the operator has run, and which the same operators of other layers
 * share; 0: there is none. */
int64_t cs_kept_placeholder(const cs_op *op, const cs_kept_rules *rules, cs_precision precision);

/* Bytes of a library's workspace that the operator needs, which is there for good once the operator
 * has run, and which all such operators of a device share; 0: it needs none. */
int64_t cs_kept_workspace(const cs_op *op, const cs_kept_rules *rules);

/* Bytes that the operator needs in the buffer that all operators share, and that stays; 0: it needs
 * none. `cost` is the operator's; `expert_places` divide the experts. */
int64_t cs_kept_in_buffer(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          const cs_op_cost *cost, uint32_t expert_places, uint32_t batch,
                          cs_precision precision);

/* Whether the tensor that an exchange gathers is in that buffer: it takes no memory of its own. */
bool cs_kept_gathers_into_buffer(const cs_net *net, const cs_op *op, const cs_kept_rules *rules);

#endif
