/* Muon: momentum whose update is orthogonalised, one matrix after the other (Jordan et al., 2024;
 * Liu et al., Muon is Scalable for LLM Training, arXiv 2502.16982, algorithm 1).
 *
 * Matrices are the weights of linear layers, one for each expert, and tables that are added to
 * activations; Adam updates all else: embeddings, the last matrix, filters of convolutions, norms
 * and biases (Megatron-LM, megatron/core/optimizer/layer_wise_optimizer.py,
 * is_managed_by_layer_wise_optimizer: two dimensions and no
 * is_embedding_or_output_parameter). Linear layers that are one product have one matrix where they
 * are the two halves of a gated MLP; queries, keys and values have one each (muon_split_qkv), where they are
 * layers of their own.
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
 *     norm, and division      3 W          copy to the weights     W + their type, where it is another
 *
 * The host starts a kernel at a time: a matrix takes the longer of the two. */
#ifndef CS_WORKLOAD_MUON_H
#define CS_WORKLOAD_MUON_H

#include "sim/workload/kept.h"
#include "sim/workload/net.h"
#include "sim/workload/runtime-kernels.h"

/* As scenarios state it; zeroed: another optimizer. */
typedef struct cs_muon {
    uint32_t steps; /* of Newton-Schulz */
} cs_muon;

/* Whether it updates the weights of an operator. */
bool cs_muon_updates(const cs_net *net, const cs_op *op);

/* Matrices of an operator, alike; n = 0: it has none. */
typedef struct cs_muon_matrices {
    int64_t rows, columns;
    uint32_t n;
} cs_muon_matrices;

/* Those of operator p, with what it has in one matrix with an operator of the layer [first, end)
 * behind it, which then has none. */
cs_muon_matrices cs_muon_matrices_of(const cs_net *net, const cs_kept_rules *rules, uint32_t first,
                                     uint32_t end, uint32_t p);

/* Of a layer: `n` matrices alike, of so many elements, each of which takes so long. */
typedef struct cs_muon_update {
    int64_t elements;
    double seconds;
    uint32_t n;
    bool expert;
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

/* Seconds of updating one matrix, with the passes over its gradient that the runtime makes. */
double cs_muon_seconds(const cs_muon_costs *costs, int64_t rows, int64_t columns);

#endif
