#include "sim/scenario/sections.h"

#include <math.h>

/* The time of a lone message between the devices of neighbouring stages, if it is the same for all.
 */
static cs_status measure_messages(cs_scenario *scenario, cs_error *error)
{
    cs_job *job = &scenario->job;
    uint32_t n = scenario->platform.n_devices;
    job->bandwidth = INFINITY;
    job->equal_messages = true;
    for (uint32_t d = 0; d + 1 < n; d++) {
        cs_time latency;
        double bandwidth;
        cs_status status =
            cs_platform_path(&scenario->platform, d, d + 1, &latency, &bandwidth, error);
        if (status != CS_OK)
            return status;
        if (d > 0 && (latency != job->latency || bandwidth != job->bandwidth))
            job->equal_messages = false;
        job->latency = latency;
        job->bandwidth = bandwidth;
    }
    job->bandwidth /= scenario->platform.phi;
    return CS_OK;
}

/* What planners and schedules see of the platform. */
cs_status cs_draft_view_platform(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    uint32_t n = scenario->platform.n_devices;
    double *speeds = cs_arena_alloc(&scenario->arena, n, sizeof(*speeds));
    if (!speeds)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < n; d++)
        speeds[d] = scenario->platform.devices[d].speed;
    scenario->job.speeds = speeds;
    scenario->job.n_devices = n;
    return measure_messages(scenario, error);
}

/* Divides the mini-batch among replicas and micro-batches. */
static cs_status divide_batch(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    bool replicated = draft->schedule.kind->layout == CS_LAYOUT_REPLICATED;
    uint32_t replicas = replicated ? scenario->plan.stages[0].n_devices : 1;
    uint64_t parts = (uint64_t)scenario->job.micro_batches * replicas;
    uint64_t own = scenario->model.batch_size > 0 ? scenario->model.batch_size : 1;
    uint64_t batch = draft->model.batch_size > 0 ? draft->model.batch_size : parts * own;
    cs_json_place model = {.up = &draft->root, .key = "model"};
    cs_json_place place = {.up = &model, .key = "batch_size"};
    if (batch > UINT32_MAX)
        return cs_json_invalid(&place, error, "must be given: %llu samples are too many",
                               (unsigned long long)batch);
    if (batch % parts != 0)
        return cs_json_invalid(
            &place, error,
            "must be a multiple of %llu, %u micro-batches on each of %u devices (got "
            "%llu)",
            (unsigned long long)parts, scenario->job.micro_batches, replicas,
            (unsigned long long)batch);
    scenario->batch_size = (uint32_t)batch;
    scenario->job.micro_samples = (uint32_t)(batch / parts);
    return CS_OK;
}

cs_status cs_draft_build_job(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    cs_job *job = &scenario->job;
    const cs_plan *plan = &scenario->plan;
    job->model = &scenario->model;
    job->plan = plan;
    job->micro_batches = draft->schedule.kind->micro_batches(draft->schedule.params);
    job->iterations = draft->top.iterations;
    job->optimizer_ratio = cs_optimizers[draft->model.optimizer].state_ratio;
    job->blocking = draft->platform.blocking;
    if ((uint64_t)job->iterations * job->micro_batches > CS_NONE - 1) {
        cs_json_place place = {.up = &draft->root, .key = "iterations"};
        return cs_json_invalid(&place, error,
                               "times micro-batches must be below 2^32 (got %u * %u)",
                               job->iterations, job->micro_batches);
    }
    cs_status status = divide_batch(draft, error);
    if (status != CS_OK)
        return status;
    cs_layer_sum *sums = cs_arena_alloc(&scenario->arena, plan->n_stages, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++)
        status = cs_model_sum(job->model, plan->stages[s].first_layer, plan->stages[s].end_layer,
                              job->micro_samples, &sums[s], error);
    job->stages = sums;
    return status;
}
