/* The order of 1F1B, which synchronous and asynchronous schedules share: forwards to warm up, then
 * a backward and a forward in turn, then the remaining backwards.
 *
 * How many forwards warm up a stage is the most micro-batches that it ever has in flight: P - s,
 * or, where replicas take micro-batches in turn, ceil(D / R) on each of the stage's R replicas, D
 * being the devices of this stage and all later ones. On stage 0 that is PipeDream's NOAM (SOSP
 * 2019, section 3.2); on the others it is what its program does (runtime/runtime.py:
 * num_warmup_minibatches, plus the one that the steady state begins with).
 *
 * Eager, a stage has 2(P - s) - 1 in flight: each message between neighbours then has the time of a
 * forward and a backward to arrive in, beside what is computed (Zhuang et al., On Optimizing the
 * Communication of Model Parallelism, MLSys 2023, section 4).
 */
#ifndef CS_SCHEDULES_ORDER_1F1B_H
#define CS_SCHEDULES_ORDER_1F1B_H

#include "schedules/pipeline.h"

/* Choices of the parameter `replicas`, and what they stand for. */
extern const char *const cs_order_1f1b_replica_names[];
cs_replicas cs_order_1f1b_replicas(uint32_t choice);

/* The most micro-batches in flight on one replica of a stage, of n_micros that there are. */
uint32_t cs_order_1f1b_in_flight(const cs_job *job, uint32_t n_micros, bool eager, uint32_t stage,
                                 uint32_t replica);

bool cs_order_1f1b(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                   cs_pipeline_step *step);
bool cs_order_1f1b_eager(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                         cs_pipeline_step *step);

#endif
