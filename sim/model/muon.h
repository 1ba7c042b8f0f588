/* Muon: momentum whose update is orthogonalised, one matrix after the other (Jordan et al., 2024;
 * Liu et al., Muon is Scalable for LLM Training, arXiv 2502.16982, algorithm 1).
 *
 * Matrices are the weights of linear layers, one for each expert, and tables that are added to
 * activations; Adam updates all else: embeddings, the last matrix, filters of convolutions, norms
 * and biases (Megatron-LM, megatron/core/optimizer/layer_wise_optimizer.py,
 * is_managed_by_layer_wise_optimizer: two dimensions and no is_embedding_or_output_parameter). The
 * two halves of a gated MLP have one matrix if they are one product. Queries, keys and values have
 * one each (muon_split_qkv) if they are layers of their own.
 *
 * A step of Newton-Schulz takes an m x n matrix X, m <= n, the other way round where it is taller:
 *
 *     A = X X^T                2 m^2 n flop
 *     B = b A + c A A          2 m^3
 *     X = a X + B X            2 m^2 n
 *
 * all in bf16, where the device has it (muon_fp32_matmul_prec: "medium"). Both sums are products
 * that add to what is there, which a kernel copies before (PyTorch,
 * aten/src/ATen/native/cuda/Blas.cpp, addmm_out_cuda_impl). The products are kernels as those of
 * linear layers. Each matrix passes by itself (NVIDIA-NeMo/Emerging-Optimizers,
 * emerging_optimizers/orthogonalized_optimizers/muon_utils.py, newton_schulz_step).
 *
 * Around these steps kernels read and write each element of a matrix (orthogonalized_optimizer.py,
 * OrthogonalizedOptimizer.step; emerging_optimizers.py of Megatron-LM, scaled_orthogonalize_fn), of
 * W bytes in the type that is updated, S of a state and B of bf16:
 *
 *     weight decay            2 W          to bf16 and back        2 (W + B)
 *     momentum                W + 2 S      two factors             4 W
 *     Nesterov's momentum     2 W + S      update                  3 W
 *     norm, and division      3 W          copy to the weights     W + their type, if another
 *
 * The host starts a kernel at a time: a matrix takes the longer of the two. */
#ifndef CS_WORKLOAD_MUON_H
#define CS_WORKLOAD_MUON_H

#include "sim/model/kept.h"
#include "sim/model/net.h"
#include "sim/model/runtime-kernels.h"

/* What a device orthogonalises of a matrix that tensor parallelism divides (Megatron-LM,
 * muon_tp_mode; muon_utils.py, newton_schulz_tp). */
typedef enum cs_muon_tensor {
    CS_MUON_BLOCKWISE,   /* its part, as if it were a matrix */
    CS_MUON_DUPLICATED,  /* the whole, which is gathered before in the type that is updated, and
                         * joined by a kernel that reads and writes it */
    CS_MUON_DISTRIBUTED, /* its part of the whole: m is the side that is not divided, and A is
                          * summed in bf16 in each step (the sum of the norm is left out) */
} cs_muon_tensor;

/* "blockwise", ..., ended by NULL. */
extern const char *const cs_muon_tensor_names[];

enum { CS_MUON_STEPS = 5 }; /* Megatron-LM, core/optimizer/optimizer_config.py: muon_num_ns_steps */

/* As scenarios state it; zeroed: another optimizer. */
typedef struct cs_muon {
    uint32_t steps;  /* of Newton-Schulz */
    uint32_t tensor; /* cs_muon_tensor */
} cs_muon;

/* Whether it updates the weights of an operator. */
bool cs_muon_updates(const cs_net *net, const cs_op *op);

/* Matrices of an operator, alike; n = 0: it has none. */
typedef struct cs_muon_matrices {
    int64_t rows, columns;
    uint32_t n;
    int64_t whole_rows, whole_columns; /* of which they are one device's part */
} cs_muon_matrices;

/* Those of operator p, with what it has in one matrix with an operator of the layer [first, end)
 * behind it, which then has none. `of` is the operator of the network `whole` that it is part
 * of. */
cs_muon_matrices cs_muon_matrices_of(const cs_net *net, const cs_kept_rules *rules, uint32_t first,
                                     uint32_t end, uint32_t p, const cs_net *whole,
                                     const cs_op *of);

/* Of a layer: `n` matrices alike, of so many elements, each of which takes so long, and what is
 * exchanged over the tensor axis, or that of experts, for each: bytes of a gather, and of each of
 * so many sums. */
typedef struct cs_muon_update {
    int64_t elements;
    double seconds;
    uint32_t n;
    bool expert;
    int64_t gather_bytes, sum_bytes;
    uint32_t n_sums;
} cs_muon_update;

/* What its update depends on besides its size. */
typedef struct cs_muon_costs {
    cs_muon muon;
    const cs_runtime_kernels *kernels;
    const cs_accelerator *device;
    cs_precision precision; /* of the network */
    cs_optimizer_storage storage;
    bool float_gradients;
} cs_muon_costs;

/* What updating them takes, with the passes over their gradients that the runtime makes. */
cs_muon_update cs_muon_update_of(const cs_muon_costs *costs, const cs_muon_matrices *of,
                                 bool expert);

#endif
