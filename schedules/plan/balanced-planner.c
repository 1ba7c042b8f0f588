/* The partition `balanced` of scenarios (plan.h), as a planner. */
#include "schedules/plan/planner.h"

#include <stdlib.h>

typedef struct params {
    bool communication;
    uint32_t stages;
} params;

static const cs_field fields[] = {
    {"communication", CS_FIELD_BOOL, offsetof(params, communication), .fallback = "false",
     .doc = "count the messages between stages as well"},
    {"stages", CS_FIELD_COUNT, offsetof(params, stages), .fallback = "0",
     .max = CS_PLAN_DEVICES - 1,
     .doc = "of equally many replicas each, which share out the devices; 0: a stage per device"},
    {0},
};

/* cs_plan_balanced takes a model. */
static cs_status partition(const cs_chain *chain, uint32_t n_stages, bool communication,
                           cs_plan *plan, cs_error *error)
{
    uint32_t n_layers = chain->n_layers;
    cs_layer *layers = calloc(n_layers, sizeof(*layers));
    if (!layers)
        return cs_error_no_memory(error);
    for (uint32_t l = 0; l < n_layers; l++) {
        layers[l].forward = cs_chain_forward(chain, l, l + 1);
        layers[l].backward_input = cs_chain_backward(chain, l, l + 1);
        layers[l].output_bytes = chain->boundary[l + 1];
    }
    cs_model model = {.name = "chain", .n_layers = n_layers, .layers = layers};
    cs_balance balance = {.model = &model,
                          .n_stages = n_stages,
                          .communication = communication,
                          .bandwidth = chain->bandwidth,
                          .latency = chain->latency};
    cs_status status = cs_plan_balanced(&balance, plan, error);
    free(layers);
    return status;
}

static cs_time bottleneck(const cs_chain *chain, const cs_plan *plan, bool communication)
{
    cs_time most = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *at = &plan->stages[s];
        cs_time load = cs_chain_load(chain, at->first_layer, at->end_layer);
        cs_time link = communication ? cs_chain_link(chain, at->end_layer) : 0;
        most = load > most ? load : most;
        most = link > most ? link : most;
    }
    return most;
}

/* Stage s on devices s R .. s R + R - 1. */
static cs_status replicate(cs_plan *plan, uint32_t replicas, cs_error *error)
{
    const uint32_t n_devices = plan->n_stages * replicas;
    uint32_t *counts = malloc(plan->n_stages * sizeof(*counts));
    uint32_t *devices = malloc(n_devices * sizeof(*devices));
    cs_status status = counts && devices ? CS_OK : cs_error_no_memory(error);
    for (uint32_t s = 0; status == CS_OK && s < plan->n_stages; s++)
        counts[s] = replicas;
    for (uint32_t d = 0; status == CS_OK && d < n_devices; d++)
        devices[d] = d;
    if (status == CS_OK)
        status = cs_plan_place(plan, counts, devices, error);
    free(counts);
    free(devices);
    return status;
}

static cs_status check_stages(const cs_chain *chain, uint32_t stages, cs_error *error)
{
    if (chain->n_devices % stages != 0)
        return cs_error_add(error, CS_INVALID,
                            "stages: %u devices are no %u stages of equally many replicas",
                            chain->n_devices, stages);
    if (stages > chain->n_layers)
        return cs_error_add(error, CS_INVALID,
                            "stages: must be at most %u, the number of layers (got %u)",
                            chain->n_layers, stages);
    return CS_OK;
}

static cs_status make_plan(const cs_chain *chain, const void *params_, cs_planned *planned,
                           cs_error *error)
{
    const params *p = params_;
    const uint32_t most = chain->n_devices < chain->n_layers ? chain->n_devices : chain->n_layers;
    const uint32_t stages = p->stages > 0 ? p->stages : most;
    const uint32_t replicas = p->stages > 0 ? chain->n_devices / stages : 1;
    cs_planned made = {0};
    cs_status status = p->stages > 0 ? check_stages(chain, stages, error) : CS_OK;
    if (status == CS_OK)
        status = partition(chain, stages, p->communication, &made.plan, error);
    if (status == CS_OK) {
        made.promised = bottleneck(chain, &made.plan, p->communication) / replicas;
        status = replicas == 1 ? cs_pattern_1f1b_fit(chain, &made.plan, &made.pattern, error)
                               : replicate(&made.plan, replicas, error);
    }
    if (status == CS_OK)
        *planned = made;
    else
        cs_planned_finish(&made);
    return status;
}

const cs_planner cs_planner_balanced = {
    .name = "balanced",
    .summary = "a stage per device, the slowest as fast as can be; memory is not looked at, then "
               "1F1B*",
    .source = "PipeDream (SOSP 2019), section 3.1, without replication",
    .fields = fields,
    .params_size = sizeof(params),
    .plan = make_plan,
};
