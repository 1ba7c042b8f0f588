/* Activations that wait in the memory of the host for their backward.
 *
 * What the first layers of a stage keep is copied to the host behind their forward, and back ahead
 * of their backward, beside what is computed. A device has one copy at a time in each direction.
 * What was copied is freed at the end of the copy, and there again from the start of the copy back.
 * Let the layers that keep something that can be offloaded be numbered 0 ... n - 1 in a stage, of
 * which those below N are. Then
 *   - layer i + in_flight + 1 begins its forward when the copy of layer i has ended
 *   - the copy back of layer i begins, at the earliest, with the backward of layer i + prefetch, or
 *     with that of the last layer; the backward of layer i waits for it
 *
 * TransformerEngine has in_flight = prefetch = n - 1 - N, so that no more than n - N layers are on
 * the device, and refuses N = n (transformer_engine/pytorch/cpu_offload.py, OffloadSynchronizer,
 * _default_offload_sync_init). It holds what was copied until a layer waits for the copy; here it
 * is freed when the copy has ended. Megatron Core's offloading of modules has prefetch 1, waits for
 * no copy in the forward, and keeps the last layer (megatron/core/pipeline_parallel/
 * fine_grained_activation_offload.py, bulk_reload and post_warmup_callback).
 */
#ifndef CS_SCHEDULES_OFFLOAD_H
#define CS_SCHEDULES_OFFLOAD_H

#include "schedules/schedule.h"

/* What a stage offloads of a micro-batch. */
typedef struct cs_stage_offload {
    uint32_t n_layers; /* n above, */
    uint32_t n;        /* N above; 0: nothing is offloaded */
    uint32_t in_flight, prefetch;
    uint32_t *numbers; /* per layer of the stage: its number, or CS_NONE */
    int64_t *bytes;    /* per number below n */
} cs_stage_offload;

/* `sums` are those of the stage's layers one by one. For cs_stage_offload_finish, also when it
 * failed: CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_stage_offload_init(const cs_job *job, uint32_t stage,
                                              const cs_layer_sum *sums, cs_stage_offload *made,
                                              cs_error *error);
void cs_stage_offload_finish(cs_stage_offload *offload);

/* The time of a copy of so many bytes; less than 2^62 ps for what job.c lets through. */
cs_time cs_offload_time(const cs_job *job, int64_t bytes);

#endif
