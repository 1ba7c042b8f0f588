#include "schedules/plan/plan.h"

#include <stdlib.h>
#include <string.h>

void cs_plan_finish(cs_plan *plan)
{
    if (!plan)
        return;
    free(plan->stages);
    free(plan->devices);
    *plan = (cs_plan){0};
}

static cs_status reserve(cs_plan *plan, uint32_t n_stages, uint32_t n_devices, cs_error *error)
{
    *plan = (cs_plan){.n_stages = n_stages, .n_devices = n_devices};
    plan->stages = calloc(n_stages, sizeof(*plan->stages));
    plan->devices = calloc(n_devices, sizeof(*plan->devices));
    if (plan->stages && plan->devices)
        return CS_OK;
    cs_plan_finish(plan);
    return cs_error_no_memory(error);
}

cs_status cs_plan_copy(const cs_plan *plan, cs_plan *copy, cs_error *error)
{
    CS_TRY(reserve(copy, plan->n_stages, plan->n_devices, error));
    memcpy(copy->stages, plan->stages, plan->n_stages * sizeof(*copy->stages));
    memcpy(copy->devices, plan->devices, plan->n_devices * sizeof(*copy->devices));
    copy->apart = plan->apart;
    copy->grid = plan->grid;
    return CS_OK;
}

cs_status cs_plan_pipeline(const uint32_t *cuts, uint32_t n_stages, cs_plan *plan, cs_error *error)
{
    cs_status status = reserve(plan, n_stages, n_stages, error);
    for (uint32_t s = 0; s < n_stages && status == CS_OK; s++) {
        plan->stages[s] = (cs_stage){cuts[s], cuts[s + 1], s, 1};
        plan->devices[s] = s;
    }
    return status;
}

cs_status cs_plan_replicated(uint32_t n_layers, uint32_t n_devices, cs_plan *plan, cs_error *error)
{
    CS_TRY(reserve(plan, 1, n_devices, error));
    plan->stages[0] = (cs_stage){0, n_layers, 0, n_devices};
    for (uint32_t d = 0; d < n_devices; d++)
        plan->devices[d] = d;
    return CS_OK;
}

cs_status cs_plan_place(cs_plan *plan, const uint32_t *counts, const uint32_t *devices,
                        cs_error *error)
{
    size_t total = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++)
        total += counts[s];
    uint32_t *copy = calloc(total + 1, sizeof(*copy));
    if (!copy || total >= UINT32_MAX) {
        free(copy);
        return cs_error_no_memory(error);
    }
    memcpy(copy, devices, total * sizeof(*copy));
    free(plan->devices);
    plan->devices = copy;
    plan->n_devices = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        plan->stages[s].first_device = plan->n_devices;
        plan->stages[s].n_devices = counts[s];
        plan->n_devices += counts[s];
    }
    return CS_OK;
}
