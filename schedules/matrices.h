/* Matrices that Muon updates, whole, where the states of weights are divided over places (zero 1):
 * each matrix is one place's, which updates it, and all places gather the result. Adam divides its
 * weights evenly.
 *
 * A stage's matrices go, the largest first and of equal ones the slowest, to the place that has the
 * least so far (Megatron-LM, megatron/core/optimizer/layer_wise_optimizer.py,
 * _compute_per_buffer_param_layout), those of experts over the places with the same experts. All
 * wait for the slowest, and the first places have the largest matrices of both kinds. Gradients are
 * summed whole by all places (LayerWiseDistributedOptimizer: "Megatron DDP handle allreduce grad";
 * NVIDIA-NeMo/Emerging-Optimizers, primer of the layer-wise distributed optimizer). */
#ifndef CS_SCHEDULES_MATRICES_H
#define CS_SCHEDULES_MATRICES_H

#include "schedules/schedule.h"

/* What is exchanged in front of an update, over TENSOR or, for experts, EXPERT_TENSOR: so many
 * messages, of so many bytes together. */
typedef struct cs_matrix_messages {
    int64_t gathered, summed;
    uint32_t n_gathered, n_summed;
} cs_matrix_messages;

/* Matrices: bytes of weights, what updating them takes, and what is exchanged for it. */
typedef struct cs_matrices {
    int64_t dense, expert;
    cs_time update;
    cs_matrix_messages dense_messages, expert_messages;
} cs_matrices;

/* Of a stage: all, and the most of each that one place has. */
typedef struct cs_stage_matrices {
    cs_matrices all, most;
} cs_stage_matrices;

/* Of a job whose plan and sums of stages are there. CS_NO_MEMORY; CS_OVERFLOW for messages beyond
 * 64 bits. */
CS_MUST_CHECK cs_status cs_stage_matrices_find(const cs_job *job, uint32_t stage,
                                               cs_stage_matrices *found, cs_error *error);

#endif
