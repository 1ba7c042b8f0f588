/* The precision of numbers in training: their width, and the values that an optimizer keeps.
 *
 * fp32 and tf32 hold everything in 4 bytes; tf32 uses a different unit to multiply. With fp16 and
 * bf16 the weights, their gradients and the activations take 2 bytes, and the optimizer keeps a
 * master copy of the weights and its states in 4 ("mixed precision", Micikevicius et al., ICLR
 * 2018; with Adam the 2 + 2 + 12 bytes per parameter of Rajbhandari et al., ZeRO, SC 2020).
 * Gradients may be summed in float32 instead, as Megatron-LM does with bf16: 2 + 4 + 12.
 * Normalisation statistics and losses are float32 in all precisions.
 *
 * fp8, mxfp8 and nvfp4 are types of the operands of linear layers, including experts.
 * Everything else is as with bf16: activations, gradients, weights with their master copy,
 * attention, embeddings, and linear layers that are marked as wide, i.e. routers and last matrices
 * (DeepSeek-V3, arXiv 2412.19437, section 3.3; Mishra et al., Recipes for pre-training LLMs with
 * MXFP8, arXiv 2506.08027; NVIDIA, Pretraining LLMs with NVFP4, arXiv 2509.25149). Operands are
 * cast from bf16 before a product, in two copies if two products read them along different
 * dimensions:
 *   fp8    1 byte per element, a scale per tensor (E4M3; gradients E4M3 or E5M2, of the same size)
 *   mxfp8  1 byte per element, and 1 for the scale of 32 elements (OCP Microscaling Formats 1.0)
 *   nvfp4  half a byte per element, and 1 for the scale of 16 elements
 */
#ifndef CS_WORKLOAD_PRECISION_H
#define CS_WORKLOAD_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

typedef enum cs_precision {
    CS_PRECISION_FP32,
    CS_PRECISION_TF32,
    CS_PRECISION_FP16,
    CS_PRECISION_BF16,
    CS_PRECISION_FP8,
    CS_PRECISION_MXFP8,
    CS_PRECISION_NVFP4,
    CS_N_PRECISIONS
} cs_precision;

/* Names of cs_precision for a field: "fp32", ...; ended by NULL. */
extern const char *const cs_precision_names[];

/* Bytes per weight, per gradient of a weight, and per element of an activation. */
uint32_t cs_precision_bytes(cs_precision precision);

/* Whether only the operands of linear layers are cast to the type, and everything else is bf16. */
bool cs_precision_is_narrow(cs_precision precision);

/* The precision of everything else: bf16 with narrow types, otherwise the type itself. */
cs_precision cs_precision_wide(cs_precision precision);

/* Bytes per element of a linear layer's operand, including its share of a scale. */
double cs_precision_operand_bytes(cs_precision precision);

/* How an optimizer stores its values; zeroed: all in float32. */
typedef struct cs_optimizer_storage {
    uint32_t state_bytes; /* bytes per state; 0 means 4 */
    /* whether narrower weights have no master copy and are updated directly */
    bool no_main;
} cs_optimizer_storage;

/* Bytes that an optimizer keeps per byte of weights, besides weights and gradients: `states` values
 * per weight (0 plain descent, 1 momentum or Muon, 2 Adam), and the master copy in mixed
 * precision. */
double cs_precision_state_ratio(cs_precision precision, double states,
                                cs_optimizer_storage storage);

/* Bytes per weight that an update works on: the master copy, or the weight itself if there is no
 * master copy. */
uint32_t cs_precision_updated_bytes(cs_precision precision, cs_optimizer_storage storage);

/* Bytes of gradients per byte of weights: 1, or 2 for float32 gradients of narrower weights. */
int64_t cs_precision_gradient_ratio(cs_precision precision, bool float_gradients);

/* Bytes per weight that an update reads and writes: gradient, weight (the master copy, and the copy
 * for the next step) and states. */
double cs_precision_update_bytes(cs_precision precision, double states, bool float_gradients,
                                 cs_optimizer_storage storage);

/* Bytes per weight that an update moves in addition if each step of its formula is a kernel, as in
 * PyTorch's foreach optimizers with weight decay (torch/optim/sgd.py, _multi_tensor_sgd: decay
 * makes a gradient of its own, momentum is scaled and added to; torch/optim/adam.py,
 * _multi_tensor_adam, decoupled: decay; lerp; mul, addcmul; sqrt, div, add; addcdiv). */
double cs_precision_stepwise_bytes(cs_precision precision, double states, bool float_gradients,
                                   cs_optimizer_storage storage);

#endif
