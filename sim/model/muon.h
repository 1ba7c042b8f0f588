/* Muon: momentum with an orthogonalised update, one matrix after the other (Jordan et al., 2024;
 * Liu et al., Muon is Scalable for LLM Training, arXiv 2502.16982, algorithm 1).
 *
 * Muon updates matrices: the weights of linear layers (one matrix per expert), and tables that are
 * added to activations. Adam updates everything else: embeddings, the last matrix, filters of
 * convolutions, norms and biases (Megatron-LM, megatron/core/optimizer/
 * layer_wise_optimizer.py, is_managed_by_layer_wise_optimizer: two dimensions and no
 * is_embedding_or_output_parameter). The two halves of a gated MLP are one matrix if they are
 * computed as one product. Queries, keys and values have one matrix each (muon_split_qkv) if they
 * are separate layers.
 *
 * A step of Newton-Schulz changes an m x n matrix X with m <= n (a taller matrix is transposed):
 *
 *     A = X X^T                2 m^2 n flop
 *     B = b A + c A A          2 m^3
 *     X = a X + B X            2 m^2 n
 *
 * All steps are in bf16 if the device supports it (muon_fp32_matmul_prec: "medium"). Each of the
 * two sums is a product that is added to an existing matrix, which a kernel copies first (PyTorch,
 * aten/src/ATen/native/cuda/Blas.cpp, addmm_out_cuda_impl). The products use the same kernels as
 * linear layers. Each matrix is processed separately (NVIDIA-NeMo/Emerging-Optimizers,
 * emerging_optimizers/orthogonalized_optimizers/muon_utils.py, newton_schulz_step).
 *
 * Before and after these steps, kernels read and write each element of a matrix
 * (orthogonalized_optimizer.py, OrthogonalizedOptimizer.step; emerging_optimizers.py of
 * Megatron-LM, scaled_orthogonalize_fn). Bytes per element, where W is the size in the type that is
 * updated, S the size of a state and B the size in bf16:
 *
 *     weight decay            2 W          to bf16 and back        2 (W + B)
 *     momentum                W + 2 S      two factors             4 W
 *     Nesterov's momentum     2 W + S      update                  3 W
 *     norm, and division      3 W          copy to the weights     W + their type, if another
 *
 * The host starts one kernel at a time: a matrix takes the longer of host time and device time. */
#ifndef CS_WORKLOAD_MUON_H
#define CS_WORKLOAD_MUON_H

#include "sim/model/kept.h"
#include "sim/model/net.h"
#include "sim/model/runtime-kernels.h"

/* Ways to orthogonalise a matrix that tensor parallelism splits: the matrix that each device
 * handles (Megatron-LM, muon_tp_mode; muon_utils.py, newton_schulz_tp). */
typedef enum cs_muon_tensor {
    CS_MUON_BLOCKWISE, /* the device's part, as if it were a whole matrix */
    /* the whole matrix, which is first gathered in the type that is updated, and joined by a kernel
     * that reads and writes it */
    CS_MUON_DUPLICATED,
    /* the device's part of the whole matrix: m is the side that is not split, and A is summed in
     * bf16 in each step (the sum of the norm is not counted) */
    CS_MUON_DISTRIBUTED,
} cs_muon_tensor;

/* Names of cs_muon_tensor, NULL-terminated: "blockwise", ... */
extern const char *const cs_muon_tensor_names[];

/* Default number of steps in Megatron-LM (core/optimizer/optimizer_config.py:
 * muon_num_ns_steps). */
enum { CS_MUON_STEPS = 5 };

/* Settings of Muon in a scenario; zeroed: another optimizer. */
typedef struct cs_muon {
    uint32_t steps;  /* number of Newton-Schulz steps */
    uint32_t tensor; /* cs_muon_tensor */
} cs_muon;

/* Whether Muon updates the weights of an operator. */
bool cs_muon_updates(const cs_net *net, const cs_op *op);

/* Matrices of an operator, all of the same size; n = 0: none. */
typedef struct cs_muon_matrices {
    int64_t rows, columns;
    uint32_t n;
    /* size of the whole matrices that these are parts of */
    int64_t whole_rows, whole_columns;
} cs_muon_matrices;

/* Returns the matrices of operator p, which is a part of the operator `of` of the network `whole`.
 * If operator p and a later operator of the layer [first, end) are the halves of a gated MLP in one
 * matrix, the whole matrix is returned for p, and n = 0 for the later operator. */
cs_muon_matrices cs_muon_matrices_of(const cs_net *net, const cs_kept_rules *rules, uint32_t first,
                                     uint32_t end, uint32_t p, const cs_net *whole,
                                     const cs_op *of);

/* Update of `n` equal matrices of a layer. All other members are per matrix: its elements, its
 * seconds, and its exchanges over the tensor axis (`expert`: the tensor axis of experts), which are
 * an all-gather of `gather_bytes` and `n_sums` sums of `sum_bytes` each. */
typedef struct cs_muon_update {
    int64_t elements;
    double seconds;
    uint32_t n;
    bool expert;
    int64_t gather_bytes, sum_bytes;
    uint32_t n_sums;
} cs_muon_update;

/* Settings and hardware that the cost of an update depends on, in addition to the size. */
typedef struct cs_muon_costs {
    cs_muon muon;
    const cs_runtime_kernels *kernels;
    const cs_accelerator *device;
    cs_precision precision; /* precision of the network */
    cs_optimizer_storage storage;
    bool float_gradients;
} cs_muon_costs;

/* Returns the cost of updating the matrices, including the passes over their gradients that the
 * runtime makes. */
cs_muon_update cs_muon_update_of(const cs_muon_costs *costs, const cs_muon_matrices *of,
                                 bool expert);

#endif
