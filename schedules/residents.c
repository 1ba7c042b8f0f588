#include "schedules/residents.h"

#include <math.h>

uint32_t cs_residents_add(cs_builder *builder, const cs_job *job, uint32_t stage, uint32_t device)
{
    int64_t weights = job->stages[stage].weight_bytes;
    int64_t states = (int64_t)ceil((double)weights * job->optimizer_ratio);
    cs_builder_resident(builder, device, CS_MEMORY_WEIGHTS, weights);
    cs_builder_resident(builder, device, CS_MEMORY_GRADIENTS, weights);
    cs_builder_resident(builder, device, CS_MEMORY_OPTIMIZER, states);
    return cs_builder_slot(builder, stage, device, weights);
}
