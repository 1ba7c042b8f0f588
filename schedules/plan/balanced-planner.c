/* The partition `balanced` of scenarios (plan.h), as a planner. */
#include "schedules/plan/planner.h"

#include <stdlib.h>

typedef struct params {
    bool communication;
} params;

static const cs_field fields[] = {
    {"communication", CS_FIELD_BOOL, offsetof(params, communication), .fallback = "false",
     .doc = "count the messages between stages as well"},
    {0},
};

/* As many stages as there are devices and layers for. cs_plan_balanced takes a model. */
static cs_status partition(const cs_chain *chain, bool communication, cs_plan *plan,
                           cs_error *error)
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
                          .n_stages = chain->n_devices < n_layers ? chain->n_devices : n_layers,
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

static cs_status make_plan(const cs_chain *chain, const void *params_, cs_planned *planned,
                           cs_error *error)
{
    const params *p = params_;
    cs_planned made = {0};
    cs_status status = partition(chain, p->communication, &made.plan, error);
    if (status == CS_OK) {
        made.promised = bottleneck(chain, &made.plan, p->communication);
        status = cs_pattern_1f1b_fit(chain, &made.plan, &made.pattern, error);
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
