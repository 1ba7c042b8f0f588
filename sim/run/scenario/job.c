#include "schedules/matrices.h"
#include "schedules/stage-buffers.h"
#include "schedules/states.h"
#include "schedules/ties.h"
#include "sim/run/scenario/build.h"
#include "topologies/link-rings.h"
#include "topologies/route.h"

#include <math.h>

/* Measures the ring of an all-reduce over all devices. */
static cs_status measure_rings(const cs_platform *platform, cs_job *job, cs_error *error)
{
    cs_link_step step = {0};
    uint32_t devices[CS_LINK_RANKS_MAX];
    if (job->n_devices > CS_LINK_RANKS_MAX)
        return CS_OK;
    cs_link_memory *memory = cs_link_memory_create();
    for (uint32_t d = 0; d < CS_LINK_RANKS_MAX; d++)
        devices[d] = d;
    const cs_status status =
        memory ? cs_link_step_find(memory, platform, devices, job->n_devices, &step, error)
               : cs_error_no_memory(error);
    cs_link_memory_destroy(memory);
    job->rings = step.rings;
    job->rings_latency = step.latency;
    job->rings_bandwidth = step.bandwidth;
    job->equal_rings = step.equal;
    return status;
}

/* Adds the messages in both directions between a stage and the next. */
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

cs_status cs_scenario_unplanned_job(const cs_sections *sections, const cs_model *model,
                                    const cs_platform *platform, const cs_parallel *parallel,
                                    const cs_batch *batch, cs_arena *arena, cs_job *job,
                                    cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const cs_optimizer *optimizer = &cs_optimizers[sections->model.optimizer];
    const cs_optimizer_storage storage = cs_model_section_storage(&sections->model);
    const cs_precision precision = (cs_precision)model->precision;
    const double ratio = cs_precision_state_ratio(precision, optimizer->state_ratio, storage);
    const uint32_t n = platform->n_devices;
    double *speeds = cs_arena_alloc(arena, n, sizeof(*speeds));
    if (!speeds)
        return cs_error_no_memory(error);
    cs_job made = {.model = model,
                   .n_devices = n,
                   .speeds = speeds,
                   .micro_batches = batch->micro_batches,
                   .micro_samples = batch->micro_samples,
                   .iterations = sections->top.iterations,
                   .optimizer_ratio = ratio,
                   .blocking = sections->platform.blocking,
                   .host = sections->runtime.step,
                   .message_waits = sections->runtime.message_waits,
                   .batch_waits = sections->runtime.batch_waits,
                   .memory = INT64_MAX};
    if (sections->memory.update_copy && optimizer->state_ratio >= 2)
        made.update_ratio =
            (storage.state_bytes > 0 ? storage.state_bytes : 4.0) / cs_precision_bytes(precision);
    if (optimizer->other_ratio > 0)
        made.other_ratio =
            cs_precision_state_ratio(precision, optimizer->other_ratio, storage) - ratio;
    for (uint32_t d = 0; d < n; d++) {
        speeds[d] = platform->devices[d].speed;
        if (platform->devices[d].capacity < made.memory)
            made.memory = platform->devices[d].capacity;
    }
    CS_TRY(cs_scenario_offload(sections, model, parallel, &made.offload, error));
    if (parallel) {
        made.states = parallel->states;
        if (!schedule->kind->asynchronous) {
            made.receive_buffers = sections->memory.receive_buffers;
            made.stage_results = sections->memory.stage_results;
        }
        made.message_parts = sections->parallel.scatter_gather && !parallel->split.sequence_parallel
                                 ? sections->parallel.tensor
                                 : 1;
        CS_TRY(cs_scenario_layer_states(sections, model, arena, &made.states.layers, error));
        /* Measure the slowest lone message between neighbouring pipeline ranks, from place 0.
         * Whether all messages are equal is known only without links. */
        const uint32_t places = cs_grid_places(&parallel->split.grid), ranks = parallel->n_ranks;
        made.bandwidth = INFINITY;
        for (uint32_t r = 0; ranks > 1 && r < ranks; r++) {
            const uint32_t from = parallel->devices[r * places];
            const uint32_t to = parallel->devices[(r + 1) % ranks * places];
            cs_route route;
            CS_TRY(cs_route_find(platform, from, to, NULL, &route, error));
            made.latency = route.latency > made.latency ? route.latency : made.latency;
            made.bandwidth = fmin(made.bandwidth, route.bandwidth);
        }
        made.bandwidth /= platform->phi;
        made.equal_messages = made.own_links = platform->n_links == 0;
    } else {
        if (schedule->kind->mesh.replicas)
            made.replicas = schedule->kind->mesh.replicas(schedule->params);
        /* Measure the messages to the next device, in a ring over all devices: the time of a lone
         * message, and whether it stays the same if all are in flight. */
        cs_messages ring;
        CS_TRY(cs_messages_init_ring(&ring, platform, made.n_devices, error));
        made.latency = ring.latency;
        made.bandwidth = ring.bandwidth / platform->phi;
        made.equal_messages = cs_messages_are_equal(&ring);
        cs_messages_finish(&ring);
        if (cs_lower_takes_links(&sections->collectives))
            CS_TRY(measure_rings(platform, &made, error));
    }
    *job = made;
    return CS_OK;
}

/* Larger jobs are refused: they would take tens of gigabytes. */
static const double most_tasks = 1 << 28;

/* Counts the simulated devices of a stage. */
static uint32_t simulated(const cs_job *job, const cs_stage *stage)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < stage->n_devices; i++) {
        const uint32_t device = job->plan->devices[stage->first_device + i];
        n += !job->stands_for || job->stands_for[device] == device;
    }
    return n;
}

/* Upper bound of the tasks per micro-batch on a device of a stage: forward, recomputation, backward
 * and two messages. Layers that are split add their pieces and exchanges in each pass. On a replica
 * of the whole model each layer has its own backward. */
static double tasks_of_stage(const cs_job *job, const cs_stage *stage, bool replicated)
{
    double tasks = replicated ? 1 + (double)job->model->n_layers : 5;
    for (uint32_t l = stage->first_layer; l < stage->end_layer; l++) {
        const cs_layer *layer = &job->model->layers[l];
        tasks += 3.0 * layer->n_pieces + 3.0 * layer->n_exchanges;
        tasks += job->offload.layers > 0 ? 4 : 0; /* a copy each way, and one more step in each
                                                   * pass */
    }
    return tasks;
}

/* Whether sums of a stage stay within 64 bits, so that schedules and memory pools need not check.
 * Memory: weights three times, optimizer states, and all micro-batches at once with saved
 * activations, messages (both directions, at both ends) and the input of the loss. Times: one after
 * the other. */
static bool stage_fits(const cs_job *job, const cs_layer_sum *sum, uint32_t n_micro_batches)
{
    const cs_layer *layers = cs_model_layers(job->model, job->micro_samples);
    const int64_t result = layers ? layers[job->model->n_layers - 1].result_bytes : 0;
    static const double limit = 0x1p62; /* half of 2^63, to allow for rounding */
    double per_micro_batch = (double)sum->kept_bytes + 2 * (double)sum->input_bytes +
                             2 * (double)sum->output_bytes + (double)sum->workspace_bytes +
                             (double)result;
    double bytes = (double)sum->frozen_bytes +
                   (double)sum->weight_bytes * (2 + job->optimizer_ratio + job->other_ratio) +
                   (double)sum->gradient_bytes + per_micro_batch * n_micro_batches;
    double time = (double)sum->forward + (double)sum->backward_input +
                  (double)sum->backward_weight + (double)sum->update;
    return bytes < limit && time < limit;
}

/* Counts the devices of a stage that share a micro-batch. */
static uint32_t sharers(const cs_job *job, const cs_plan *plan, uint32_t stage)
{
    return job->replicas == CS_REPLICAS_ALL_REDUCE ? plan->stages[stage].n_devices : 1;
}

cs_status cs_scenario_stage_samples(const cs_sections *sections, const cs_job *unplanned,
                                    const cs_plan *plan, cs_arena *arena, cs_samples *samples,
                                    cs_error *error)
{
    const cs_json_place up = {.up = &sections->root, .key = "model"};
    const cs_json_place place = {.up = &up, .key = "batch_size"};
    const uint32_t all = unplanned->micro_samples;
    uint32_t *items = cs_arena_alloc(arena, plan->n_stages, sizeof(*items));
    if (!items)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const uint32_t n = sharers(unplanned, plan, s);
        if (unplanned->model->batch_size > 0 && all % n != 0)
            return cs_json_invalid(&place, error,
                                   "must give a micro-batch a multiple of %u samples, a share for "
                                   "each device of stage %u (has %u)",
                                   n, s, all);
        items[s] = all / n;
    }
    *samples = (cs_samples){plan->n_stages, items};
    return CS_OK;
}

cs_status cs_scenario_shares(const cs_job *job, cs_arena *arena, cs_samples *samples,
                             cs_error *error)
{
    uint32_t *items = cs_arena_alloc(arena, job->n_devices, sizeof(*items)), n = 0;
    if (!items)
        return cs_error_no_memory(error);
    for (uint32_t q = 2; job->replicas == CS_REPLICAS_ALL_REDUCE && q <= job->n_devices; q++) {
        if (job->micro_samples % q == 0)
            items[n++] = job->micro_samples / q;
    }
    *samples = (cs_samples){n, items};
    return CS_OK;
}

cs_status cs_scenario_plan_samples(const cs_sections *sections, const cs_job *job,
                                   const cs_batch *batch, cs_arena *arena, cs_samples *samples,
                                   cs_error *error)
{
    const cs_partition *partition = &sections->schedule.partition;
    cs_samples shares = {0};
    if (partition->kind == CS_PARTITION_PLANNER && partition->planner->replicates)
        CS_TRY(cs_scenario_shares(job, arena, &shares, error));
    uint32_t *items = cs_arena_alloc(arena, shares.n + (size_t)1, sizeof(*items)), n = 0;
    if (!items)
        return cs_error_no_memory(error);
    if (cs_schedule_takes_whole(&sections->schedule))
        items[n++] = cs_batch_share(batch);
    for (uint32_t i = 0; i < shares.n; i++)
        items[n++] = shares.items[i];
    *samples = (cs_samples){n, items};
    return CS_OK;
}

static cs_status report_overflow(const cs_json_place *root, const cs_model *model,
                                 const cs_stage *stage, cs_error *error)
{
    return cs_error_add(error, CS_OVERFLOW,
                        "%s: /model: layers %u to %u of \"%s\" take more time or memory than fits "
                        "64 bits (2^63 ps are 106 days, 2^63 bytes are 8 EiB)",
                        root->file, stage->first_layer, stage->end_layer - 1, model->name);
}

static cs_status sum_stages(const cs_json_place *root, cs_arena *arena, cs_job *job,
                            cs_error *error)
{
    const cs_plan *plan = job->plan;
    cs_layer_sum *sums = cs_arena_alloc(arena, plan->n_stages, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        /* Sum up the work of one device per micro-batch, for its share of the samples. */
        cs_layer_sum *sum = &sums[s];
        const cs_stage *stage = &job->plan->stages[s];
        CS_TRY(cs_model_sum_share(job->model, stage->first_layer, stage->end_layer,
                                  job->micro_samples, sharers(job, job->plan, s), sum, error));
        int64_t received;
        CS_TRY(cs_stage_kept_input(job, s, &received, error));
        sum->kept_bytes -= received;
        sum->input_bytes -= received;
        CS_TRY(cs_ties_borrow(job->model, job->plan, s, sum, error));
        if (!cs_time_add(sums[s].update, cs_states_host(job, s), &sums[s].update) ||
            !stage_fits(job, &sums[s], job->micro_batches))
            return report_overflow(root, job->model, &plan->stages[s], error);
    }
    job->stages = sums;
    return CS_OK;
}

static cs_status sum_whole_stages(const cs_json_place *root, const cs_batch *batch, cs_arena *arena,
                                  cs_job *job, cs_error *error)
{
    const cs_plan *plan = job->plan;
    cs_layer_sum *sums = cs_arena_alloc(arena, plan->n_stages, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        /* Sum up a stage's work for a whole mini-batch at once. A model without samples counts one
         * per micro-batch. */
        const cs_stage *stage = &plan->stages[s];
        cs_model model = *job->model;
        uint32_t samples = cs_batch_share(batch);
        if (model.batch_size == 0) {
            model.batch_size = 1;
            samples = batch->micro_batches;
        }
        CS_TRY(
            cs_model_sum(&model, stage->first_layer, stage->end_layer, samples, &sums[s], error));
        if (!stage_fits(job, &sums[s], 1))
            return report_overflow(root, job->model, &plan->stages[s], error);
    }
    job->whole = sums;
    return CS_OK;
}

cs_status cs_scenario_job(const cs_sections *sections, const cs_platform *platform,
                          const cs_batch *batch, const cs_job *unplanned, const cs_plan *plan,
                          const cs_pattern *pattern, const uint32_t *stands_for, cs_arena *arena,
                          cs_job *job, cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const cs_json_place place = {.up = &sections->root, .key = "schedule"};
    cs_job made = *unplanned;
    made.plan = plan;
    made.pattern = pattern;
    made.stands_for = stands_for;
    const bool replicated = cs_mesh_is_replicated(sections->schedule.kind);
    double tasks = 0;
    for (uint32_t s = 0; s < made.plan->n_stages; s++)
        tasks += simulated(&made, &made.plan->stages[s]) *
                 tasks_of_stage(&made, &made.plan->stages[s], replicated);
    tasks *= (double)made.micro_batches * made.iterations;
    if (tasks > most_tasks)
        return cs_json_invalid(&sections->root, error,
                               "too large to simulate: %u mini-batches of %u micro-batches on %u "
                               "devices with %u layers (up to %.2g tasks, at most %.2g are)",
                               made.iterations, made.micro_batches, made.n_devices,
                               made.model->n_layers, tasks, most_tasks);
    if (!plan->grid) {
        /* Find out whether messages between neighbouring stages take as long as the job's lone
         * message, and have their links to themselves. */
        cs_messages messages;
        CS_TRY(cs_messages_init(&messages, platform, error));
        cs_status status = CS_OK;
        for (uint32_t s = 0; s + 1 < made.plan->n_stages && status == CS_OK; s++)
            status = add_neighbours(made.plan, s, &messages, error);
        const bool as_job =
            messages.n == 0 || (messages.latency == made.latency &&
                                messages.bandwidth / platform->phi == made.bandwidth);
        made.own_links = messages.alike && messages.apart && as_job;
        cs_messages_finish(&messages);
        CS_TRY(status);
    }
    CS_TRY(sum_stages(&sections->root, arena, &made, error));
    CS_TRY(cs_scenario_check_offload(sections, &made, error));
    if (!(made.other_ratio <= 0) && made.plan->grid) {
        cs_stage_matrices *found = cs_arena_alloc(arena, made.plan->n_stages, sizeof(*found));
        if (!found)
            return cs_error_no_memory(error);
        for (uint32_t s = 0; s < made.plan->n_stages; s++)
            CS_TRY(cs_stage_matrices_find(&made, s, &found[s], error));
        made.matrices = found;
    }
    CS_TRY(cs_scenario_libraries(sections, &made, arena, &made.libraries, error));
    if (cs_schedule_takes_whole(schedule))
        CS_TRY(sum_whole_stages(&sections->root, batch, arena, &made, error));
    if (schedule->kind->check)
        CS_TRY(schedule->kind->check(&made, schedule->params, &place, error));
    *job = made;
    return CS_OK;
}
