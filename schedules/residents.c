#include "schedules/residents.h"

#include <math.h>

int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights)
{
    return (int64_t)ceil((double)weights * job->optimizer_ratio);
}

uint32_t cs_residents_add(cs_builder *builder, const cs_job *job, uint32_t stage, uint32_t device)
{
    int64_t weights = job->stages[stage].weight_bytes;
    cs_builder_resident(builder, device, CS_MEMORY_WEIGHTS,
                        weights + job->stages[stage].frozen_bytes);
    cs_builder_resident(builder, device, CS_MEMORY_GRADIENTS, job->stages[stage].gradient_bytes);
    cs_builder_resident(builder, device, CS_MEMORY_OPTIMIZER, cs_optimizer_bytes(job, weights));
    return cs_builder_slot(builder, stage, device, weights);
}
