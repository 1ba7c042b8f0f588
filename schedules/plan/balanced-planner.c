/* The partition `balanced` (plan.h) as a planner. */
#include "schedules/plan/planner.h"

#include <math.h>
#include <stdlib.h>

typedef struct params {
    bool communication;
    uint32_t stages;
} params;

static const cs_field fields[] = {
    {"communication", CS_FIELD_BOOL, offsetof(params, communication), .fallback = "false",
     .doc = "count the messages between stages too"},
    {"stages", CS_FIELD_COUNT, offsetof(params, stages), .fallback = "0",
     .max = CS_PLAN_DEVICES - 1,
     .doc = "number of stages, each with the same number of replicas; 0: one stage per device"},
    {0},
};

/* Calls cs_plan_balanced, which takes a model. Replicas that share a micro-batch send their shares
 * in parallel; replicas that take turns do the whole work in the time of one, divided by their
 * number. */
static cs_status partition(const cs_chain *chain, uint32_t n_stages, uint32_t replicas,
                           bool communication, cs_plan *plan, cs_error *error)
{
    uint32_t n_layers = chain->n_layers;
    cs_layer *layers = calloc(n_layers, sizeof(*layers));
    if (!layers)
        return cs_error_no_memory(error);
    for (uint32_t l = 0; l < n_layers; l++) {
        layers[l].forward = chain->sum_shared
                                ? (cs_time)cs_chain_replicated_load(chain, l, l + 1, replicas)
                                : cs_chain_load(chain, l, l + 1);
        layers[l].output_bytes = chain->boundary[l + 1];
    }
    cs_model model = {.name = "chain", .n_layers = n_layers, .layers = layers};
    cs_balance balance = {.model = &model,
                          .n_stages = n_stages,
                          .communication = communication,
                          .bandwidth = chain->bandwidth * (chain->sum_shared ? replicas : 1),
                          .latency = chain->latency};
    cs_status status = cs_plan_balanced(&balance, plan, error);
    free(layers);
    return status;
}

/* Returns the time of messages in both directions over a boundary between groups of q replicas. */
static double link_time(const cs_chain *chain, uint32_t boundary, uint32_t q)
{
    double latency = 2 * (double)chain->latency, link = (double)cs_chain_link(chain, boundary);
    if (!chain->sum_shared || link < latency)
        return link / q;
    return (link - latency) / q + latency;
}

static cs_time bottleneck(const cs_chain *chain, const cs_plan *plan, uint32_t q,
                          bool communication)
{
    double most = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *at = &plan->stages[s];
        most = fmax(most, cs_chain_replicated_load(chain, at->first_layer, at->end_layer, q));
        if (communication)
            most = fmax(most, link_time(chain, at->end_layer, q));
    }
    return (cs_time)most;
}

/* Puts stage s on devices s R to s R + R - 1. */
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
        return cs_error_add(
            error, CS_INVALID,
            "stages: must divide the number of devices, %u, so that all have equally many "
            "replicas (got %u)",
            chain->n_devices, stages);
    if (stages > chain->n_layers)
        return cs_error_add(error, CS_INVALID,
                            "stages: must be at most %u, the number of layers (got %u)",
                            chain->n_layers, stages);
    if (!cs_chain_has_share(chain, chain->n_devices / stages))
        return cs_error_add(error, CS_INVALID,
                            "stages: the samples of a micro-batch do not divide into %u equal "
                            "shares, one for each replica of a stage",
                            chain->n_devices / stages);
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
        status = partition(chain, stages, replicas, p->communication, &made.plan, error);
    if (status == CS_OK) {
        made.promised = bottleneck(chain, &made.plan, replicas, p->communication);
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
    .summary =
        "one stage per device, with the slowest as fast as possible, then 1F1B*; ignores memory",
    .source = "PipeDream (SOSP 2019), section 3.1, without replication",
    .fields = fields,
    .params_size = sizeof(params),
    .replicates = true,
    .plan = make_plan,
};
