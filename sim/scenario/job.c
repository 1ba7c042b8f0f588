#include "schedules/ties.h"
#include "sim/scenario/sections.h"
#include "topologies/route.h"

/* The time of a lone message between neighbours, around a ring over all devices, and whether it is
 * that of each of them when all are on the way at once. */
static cs_status measure_messages(cs_scenario *scenario, cs_error *error)
{
    cs_job *job = &scenario->job;
    cs_messages ring;
    CS_TRY(cs_messages_init_ring(&ring, &scenario->platform, job->n_devices, error));
    job->latency = ring.latency;
    job->bandwidth = ring.bandwidth / scenario->platform.phi;
    job->equal_messages = cs_messages_are_equal(&ring);
    cs_messages_finish(&ring);
    return CS_OK;
}

/* Adds the messages between the devices of a stage and of the next one, both ways. */
static cs_status add_neighbours(const cs_plan *plan, uint32_t stage, cs_messages *messages,
                                cs_error *error)
{
    const uint32_t a = cs_plan_device(plan, stage), b = cs_plan_device(plan, stage + 1);
    const uint32_t low = a < b ? a : b, high = a < b ? b : a;
    const uint64_t pair = (uint64_t)low << 32 | high;
    if (low == high)
        return CS_OK;
    CS_TRY(cs_messages_add(messages, low, high, pair, error));
    return cs_messages_add(messages, high, low, pair, error);
}

/* Whether a message between the devices of neighbouring stages takes what the job's lone one takes,
 * both ways, and nobody else uses their links. */
static cs_status look_at_links(cs_scenario *scenario, cs_error *error)
{
    cs_job *job = &scenario->job;
    cs_messages messages;
    CS_TRY(cs_messages_init(&messages, &scenario->platform, error));
    cs_status status = CS_OK;
    for (uint32_t s = 0; s + 1 < scenario->plan.n_stages && status == CS_OK; s++)
        status = add_neighbours(&scenario->plan, s, &messages, error);
    const bool as_job =
        messages.n == 0 || (messages.latency == job->latency &&
                            messages.bandwidth / scenario->platform.phi == job->bandwidth);
    job->own_links = messages.alike && messages.apart && as_job;
    cs_messages_finish(&messages);
    return status;
}

/* What planners and schedules see of the platform. */
cs_status cs_draft_view_platform(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    uint32_t n = scenario->platform.n_devices;
    double *speeds = cs_arena_alloc(&scenario->arena, n, sizeof(*speeds));
    if (!speeds)
        return cs_error_no_memory(error);
    scenario->job.memory = INT64_MAX;
    for (uint32_t d = 0; d < n; d++) {
        const cs_device *device = &scenario->platform.devices[d];
        speeds[d] = device->speed;
        if (device->capacity < scenario->job.memory)
            scenario->job.memory = device->capacity;
    }
    scenario->job.speeds = speeds;
    scenario->job.n_devices = n;
    return measure_messages(scenario, error);
}

/* Divides the mini-batch among replicas and micro-batches. */
cs_status cs_draft_divide_batch(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    bool replicated = draft->schedule.kind->layout == CS_LAYOUT_REPLICATED;
    uint32_t replicas = replicated ? scenario->platform.n_devices : 1;
    scenario->job.micro_batches = draft->schedule.kind->micro_batches(draft->schedule.params);
    scenario->model.float_gradients = draft->model.gradients != 0;
    if (draft->schedule.kind->replicas)
        scenario->job.replicas = draft->schedule.kind->replicas(draft->schedule.params);
    scenario->job.optimizer_ratio = cs_precision_state_ratio(
        (cs_precision)scenario->model.precision, cs_optimizers[draft->model.optimizer].state_ratio);
    uint64_t parts = (uint64_t)scenario->job.micro_batches * replicas;
    uint64_t own = scenario->model.batch_size > 0 ? scenario->model.batch_size : 1;
    uint64_t batch = draft->model.batch_size > 0 ? draft->model.batch_size : parts * own;
    cs_json_place model = {.up = &draft->root, .key = "model"};
    cs_json_place place = {.up = &model, .key = "batch_size"};
    if (batch > UINT32_MAX)
        return cs_json_invalid(&place, error, "must be given: %llu samples are too many",
                               (unsigned long long)batch);
    if (batch % parts != 0 && replicated)
        return cs_json_invalid(&place, error,
                               "must be a multiple of %llu, %u micro-batch%s on each of %u devices "
                               "(got %llu)",
                               (unsigned long long)parts, scenario->job.micro_batches,
                               scenario->job.micro_batches == 1 ? "" : "es", replicas,
                               (unsigned long long)batch);
    if (batch % parts != 0)
        return cs_json_invalid(&place, error,
                               "must be a multiple of %llu, the micro-batches (got %llu)",
                               (unsigned long long)parts, (unsigned long long)batch);
    scenario->batch_size = (uint32_t)batch;
    scenario->job.micro_samples = (uint32_t)(batch / parts);
    return CS_OK;
}

/* What a job that is refused would take: tens of gigabytes. */
static const double most_tasks = 1 << 28;

/* Estimated from above: a pipeline has a forward, a recomputation, a backward and two messages per
 * stage and micro-batch; a replica of the whole model has at most a backward per layer. */
static cs_status check_tasks(const cs_draft *draft, cs_error *error)
{
    const cs_scenario *scenario = draft->scenario;
    const cs_job *job = &scenario->job;
    bool replicated = draft->schedule.kind->layout == CS_LAYOUT_REPLICATED;
    double devices = scenario->plan.n_devices, iterations = job->iterations;
    double per_micro_batch = replicated ? 1 + (double)scenario->model.n_layers : 5;
    double tasks = per_micro_batch * devices * job->micro_batches * iterations;
    if (tasks <= most_tasks)
        return CS_OK;
    return cs_json_invalid(&draft->root, error,
                           "too large to simulate: %u mini-batches of %u micro-batches on %u "
                           "devices with %u layers (up to %.2g tasks, at most %.2g are)",
                           job->iterations, job->micro_batches, scenario->plan.n_devices,
                           scenario->model.n_layers, tasks, most_tasks);
}

/* Adds up what schedules and memory pools add up later, so that they need not look. Memory: the
 * weights three times and the optimizer's states, and all micro-batches at once with what they keep
 * and their messages both ways, each at both ends. Times: one after the other. */
static bool stage_fits(const cs_job *job, const cs_layer_sum *sum, uint32_t n_micro_batches)
{
    static const double limit = 0x1p62; /* half of what fits, for what rounding may hide */
    double per_micro_batch = (double)sum->kept_bytes + 2 * (double)sum->input_bytes +
                             2 * (double)sum->output_bytes + (double)sum->workspace_bytes;
    double bytes = (double)sum->weight_bytes * (2 + job->optimizer_ratio) +
                   (double)sum->gradient_bytes + per_micro_batch * n_micro_batches;
    double time = (double)sum->forward + (double)sum->backward_input +
                  (double)sum->backward_weight + (double)sum->update;
    return bytes < limit && time < limit;
}

/* Devices of a stage that share a micro-batch. */
static uint32_t sharers(const cs_job *job, uint32_t stage)
{
    return job->replicas == CS_REPLICAS_ALL_REDUCE ? job->plan->stages[stage].n_devices : 1;
}

/* What one device does of a micro-batch, at the samples that it computes at once. */
static cs_status sum_stage(cs_draft *draft, uint32_t s, cs_layer_sum *sum, cs_error *error)
{
    const cs_job *job = &draft->scenario->job;
    const cs_stage *stage = &job->plan->stages[s];
    uint32_t n = sharers(job, s), samples = job->micro_samples;
    cs_json_place up = {.up = &draft->root, .key = "model"};
    cs_json_place place = {.up = &up, .key = "batch_size"};
    if (job->model->batch_size > 0 && samples % n != 0)
        return cs_json_invalid(&place, error,
                               "must give a micro-batch a multiple of %u samples, a share for each "
                               "device of stage %u (has %u)",
                               n, s, samples);
    CS_TRY(cs_draft_price(draft, samples / n, error));
    CS_TRY(cs_model_sum_share(job->model, stage->first_layer, stage->end_layer, samples, n, sum,
                              error));
    return cs_ties_borrow(job->model, job->plan, s, sum, error);
}

static cs_status report_overflow(const cs_draft *draft, const cs_stage *stage, cs_error *error)
{
    return cs_error_add(error, CS_OVERFLOW,
                        "%s: /model: layers %u to %u of \"%s\" take more time or memory than fits "
                        "64 bits (2^63 ps are 106 days, 2^63 bytes are 8 EiB)",
                        draft->path, stage->first_layer, stage->end_layer - 1,
                        draft->scenario->model.name);
}

static cs_status sum_stages(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    cs_job *job = &scenario->job;
    const cs_plan *plan = &scenario->plan;
    cs_layer_sum *sums = cs_arena_alloc(&scenario->arena, plan->n_stages, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *stage = &plan->stages[s];
        CS_TRY(sum_stage(draft, s, &sums[s], error));
        if (!stage_fits(job, &sums[s], job->micro_batches))
            return report_overflow(draft, stage, error);
    }
    job->stages = sums;
    return CS_OK;
}

/* A stage's work for a whole mini-batch at once. A model without samples is multiplied as if its
 * micro-batches had one each. */
static cs_status sum_whole(const cs_draft *draft, const cs_stage *stage, cs_layer_sum *sum,
                           cs_error *error)
{
    const cs_scenario *scenario = draft->scenario;
    cs_model model = scenario->model;
    uint32_t samples = scenario->batch_size;
    if (model.batch_size == 0) {
        model.batch_size = 1;
        samples = scenario->job.micro_batches;
    }
    return cs_model_sum(&model, stage->first_layer, stage->end_layer, samples, sum, error);
}

static cs_status sum_whole_stages(const cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    const cs_plan *plan = &scenario->plan;
    if (!cs_draft_takes_whole(draft))
        return CS_OK;
    cs_layer_sum *sums = cs_arena_alloc(&scenario->arena, plan->n_stages, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        cs_status status = sum_whole(draft, &plan->stages[s], &sums[s], error);
        if (status == CS_OK && !stage_fits(&scenario->job, &sums[s], 1))
            status = report_overflow(draft, &plan->stages[s], error);
        if (status != CS_OK)
            return status;
    }
    scenario->job.whole = sums;
    return CS_OK;
}

static cs_status check_schedule(const cs_draft *draft, cs_error *error)
{
    const cs_schedule *kind = draft->schedule.kind;
    cs_json_place place = {.up = &draft->root, .key = "schedule"};
    return kind->check ? kind->check(&draft->scenario->job, draft->schedule.params, &place, error)
                       : CS_OK;
}

cs_status cs_draft_build_job(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    cs_job *job = &scenario->job;
    job->model = &scenario->model;
    job->plan = &scenario->plan;
    job->pattern = scenario->pattern.period > 0 ? &scenario->pattern : NULL;
    job->iterations = draft->top.iterations;
    job->blocking = draft->platform.blocking;
    CS_TRY(check_tasks(draft, error));
    CS_TRY(look_at_links(scenario, error));
    CS_TRY(sum_stages(draft, error));
    CS_TRY(sum_whole_stages(draft, error));
    return check_schedule(draft, error);
}
