/* The order of 1F1B, which synchronous and asynchronous schedules share: forwards to warm up, then a
 * backward and a forward in turn, then the remaining backwards. */
#ifndef CS_SCHEDULES_ORDER_1F1B_H
#define CS_SCHEDULES_ORDER_1F1B_H

#include "schedules/pipeline.h"

/* min(P - s, M): forwards of stage s before its first backward, and the most micro-batches that it
 * has in flight. */
uint32_t cs_order_1f1b_warm_up(uint32_t n_stages, uint32_t n_micros, uint32_t stage);

cs_pipeline_step cs_order_1f1b(uint32_t n_stages, uint32_t n_micros, uint32_t stage, uint32_t k);

#endif
