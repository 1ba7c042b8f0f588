/* What stays in a device's memory for the whole run: weights, their gradients, optimizer states. */
#ifndef CS_SCHEDULES_RESIDENTS_H
#define CS_SCHEDULES_RESIDENTS_H

#include "schedules/schedule.h"

/* Optimizer states of `weights` bytes of weights. */
int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights);

/* Adds those of a stage held by a device, and returns the slot of its weights. */
uint32_t cs_residents_add(cs_builder *builder, const cs_job *job, uint32_t stage, uint32_t device);

#endif
