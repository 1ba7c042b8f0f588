/* Matrices that Muon updates as a whole while weights' states are sharded (zero 1): each matrix
 * belongs to one place, which updates it, and all places gather the result. (Adam shards its
 * weights evenly.)
 *
 * A stage's matrices are assigned in order of size, largest first, ties by slowest update, to the
 * place with the smallest load so far (Megatron-LM, megatron/core/optimizer/
 * layer_wise_optimizer.py, _compute_per_buffer_param_layout). Experts' matrices are assigned among
 * the places with the same experts. All places wait for the slowest; the first places have the
 * largest matrices of both kinds. Every place sums gradients of whole matrices
 * (LayerWiseDistributedOptimizer: "Megatron DDP handle allreduce grad";
 * NVIDIA-NeMo/Emerging-Optimizers, primer of the layer-wise distributed optimizer). */
#ifndef CS_SCHEDULES_MATRICES_H
#define CS_SCHEDULES_MATRICES_H

#include "schedules/schedule.h"

/* Messages before an update, over TENSOR or, for experts, EXPERT_TENSOR: their number and total
 * bytes. */
typedef struct cs_matrix_messages {
    int64_t gathered, summed;
    uint32_t n_gathered, n_summed;
} cs_matrix_messages;

/* Matrices: bytes of weights, time of their update, and messages for it. */
typedef struct cs_matrices {
    int64_t dense, expert;
    cs_time update;
    cs_matrix_messages dense_messages, expert_messages;
} cs_matrices;

/* Matrices of a stage: all of them, and the largest values that one place has. */
typedef struct cs_stage_matrices {
    cs_matrices all, most;
} cs_stage_matrices;

/* Finds the matrices of a stage; the job has its plan and sums of stages. Errors: CS_NO_MEMORY;
 * CS_OVERFLOW if messages exceed 64 bits. */
CS_MUST_CHECK cs_status cs_stage_matrices_find(const cs_job *job, uint32_t stage,
                                               cs_stage_matrices *found, cs_error *error);

#endif
