/* The order of 1F1B, shared by synchronous and asynchronous schedules: forwards as warm-up, then
 * alternately a backward and a forward, then the remaining backwards.
 *
 * The warm-up of a stage has as many forwards as the stage may have micro-batches in flight: P - s,
 * or, if replicas take micro-batches in turn, ceil(D / R) on each of the stage's R replicas, where
 * D is the number of devices of this stage and all later ones. On stage 0 this is PipeDream's NOAM
 * (SOSP 2019, section 3.2); on the others it is what PipeDream's program does (runtime/runtime.py:
 * num_warmup_minibatches, plus the first one of the steady state).
 *
 * With `eager` a stage has 2(P - s) - 1 in flight: each message between neighbours then has the
 * time of a forward and a backward to arrive, overlapped with computation (Zhuang et al., On
 * Optimizing the Communication of Model Parallelism, MLSys 2023, section 4).
 */
#ifndef CS_SCHEDULES_ORDER_1F1B_H
#define CS_SCHEDULES_ORDER_1F1B_H

#include "schedules/pipeline.h"

/* Choices of the parameter `replicas`, and their meaning. */
extern const char *const cs_order_1f1b_replica_names[];
cs_replicas cs_order_1f1b_replicas(uint32_t choice);

/* Returns the largest number of micro-batches in flight on one replica of a stage, if there are
 * n_micros in all. */
uint32_t cs_order_1f1b_in_flight(const cs_job *job, uint32_t n_micros, bool eager, uint32_t stage,
                                 uint32_t replica);

bool cs_order_1f1b(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                   cs_pipeline_step *step);
bool cs_order_1f1b_eager(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                         cs_pipeline_step *step);

#endif
