/* Activations offloaded to the host's memory until their backward.
 *
 * The saved activations of a stage's first layers are copied to the host after their forward and
 * back before their backward, while the device computes. A device has one copy at a time in each
 * direction. The memory is freed at the end of the copy, and allocated again at the start of the
 * copy back. Number the layers of a stage that have something to offload 0 to n - 1; those below N
 * are offloaded. Then
 *   - the forward of layer i + in_flight + 1 begins after the copy of layer i has ended
 *   - the copy back of layer i begins no earlier than the backward of layer i + prefetch, or of the
 *     last layer; the backward of layer i waits for it
 *
 * TransformerEngine has in_flight = prefetch = n - 1 - N, so that at most n - N layers are on the
 * device, and refuses N = n (transformer_engine/pytorch/cpu_offload.py, OffloadSynchronizer,
 * _default_offload_sync_init). It holds what it copied until a layer waits for the copy; here the
 * memory is freed when the copy has ended. Megatron Core's offloading of modules has prefetch 1,
 * waits for no copy in the forward, and keeps the last layer (megatron/core/pipeline_parallel/
 * fine_grained_activation_offload.py, bulk_reload and post_warmup_callback).
 */
#ifndef CS_SCHEDULES_OFFLOAD_H
#define CS_SCHEDULES_OFFLOAD_H

#include "schedules/schedule.h"

/* Activations that a stage offloads per micro-batch. */
typedef struct cs_stage_offload {
    uint32_t n_layers; /* number of layers with something to offload; n in the text above */
    /* number of offloaded layers, N in the text above; 0: nothing is offloaded */
    uint32_t n;
    uint32_t in_flight, prefetch;
    uint32_t *numbers; /* per layer of the stage: its number, or CS_NONE */
    int64_t *bytes;    /* per number below n: size of the copy */
} cs_stage_offload;

/* Finds the activations that a stage offloads. `sums` has one entry per layer of the stage.
 * cs_stage_offload_finish must be called, even after failure. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_stage_offload_init(const cs_job *job, uint32_t stage,
                                              const cs_layer_sum *sums, cs_stage_offload *made,
                                              cs_error *error);
void cs_stage_offload_finish(cs_stage_offload *offload);

/* Returns the time of a copy; less than 2^62 ps for all jobs that job.c accepts. */
cs_time cs_offload_time(const cs_job *job, int64_t bytes);

#endif
